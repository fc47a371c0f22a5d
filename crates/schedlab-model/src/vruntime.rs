//! Virtual time on the kernel's wrapping 64-bit clock.

/// A point in virtual time, in weighted nanoseconds.
///
/// The kernel's vruntimes start near 2^64 and wrap, so two of them are ordered by the SIGN of their 64-bit
/// difference (`entity_before`, `max_vruntime` in kernel/sched/fair.c), never by their unsigned values. That order
/// is total only while all compared values lie within 2^63 of each other, which the fair class keeps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub struct Vruntime(pub u64);

impl Vruntime {
    /// `self - other`, signed.
    #[inline]
    pub fn since(self, other: Vruntime) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }

    /// Whether `self` comes strictly before `other`.
    #[inline]
    pub fn before(self, other: Vruntime) -> bool {
        self.since(other) < 0
    }

    /// `self` moved right by `delta` weighted nanoseconds (left when negative).
    #[inline]
    #[must_use]
    pub fn plus(self, delta: i64) -> Vruntime {
        Vruntime(self.0.wrapping_add(delta as u64))
    }

    /// The later of the two.
    #[inline]
    #[must_use]
    pub fn max(self, other: Vruntime) -> Vruntime {
        if self.before(other) {
            other
        } else {
            self
        }
    }

    /// The earlier of the two.
    #[inline]
    #[must_use]
    pub fn min(self, other: Vruntime) -> Vruntime {
        if other.before(self) {
            other
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Vruntime;

    #[test]
    fn order_survives_the_wrap() {
        let before = Vruntime(u64::MAX - 5);
        let after = before.plus(10);
        assert!(before.before(after));
        assert_eq!(after.since(before), 10);
        assert_eq!(before.max(after), after);
        assert_eq!(before.min(after), before);
    }
}
