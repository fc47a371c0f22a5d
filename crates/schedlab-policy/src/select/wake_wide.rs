//! Whether a waker has too many wakees to pull them all to its own CPU (`record_wakee`, `wake_wide`).
//!
//! kernel/sched/fair.c, equal in 5.2 to 7.2: m = larger and s = smaller of the two tasks' flips, L = CPUs of the
//! waker's LLC; wide iff s >= L and m >= s * L. Flips are halved at most once per waking second.

use crate::core::task::Wakee;
use crate::jiffies::Jiffies;

/// `record_wakee`; `wakee` is its birth.
pub(crate) fn record_wakee(waker: &mut Wakee, wakee: u64, jiffies: Jiffies, hz: Jiffies) {
    if jiffies > waker.decayed + hz {
        waker.flips >>= 1;
        waker.decayed = jiffies;
    }
    if waker.last != wakee {
        waker.last = wakee;
        waker.flips = waker.flips.saturating_add(1);
    }
}

/// `wake_wide`.
pub(crate) fn wake_wide(waker_flips: u32, wakee_flips: u32, llc_size: u32) -> bool {
    let (slave, master) = (waker_flips.min(wakee_flips), waker_flips.max(wakee_flips));
    slave >= llc_size && u64::from(master) >= u64::from(slave) * u64::from(llc_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_needs_both_many_flips_and_a_factor() {
        for (waker, wakee, llc, wide) in [
            (0, 0, 1, false),
            (16, 4, 4, true),
            (4, 16, 4, true),
            (15, 4, 4, false),
            (100, 3, 4, false),
            (1, 1, 1, true),
        ] {
            assert_eq!(wake_wide(waker, wakee, llc), wide, "{waker} {wakee} {llc}");
        }
    }

    #[test]
    fn flips_count_changes_and_halve_once() {
        let mut waker = Wakee::default();
        for (task, jiffies, flips) in
            [(1, 0, 1), (1, 5, 1), (2, 6, 2), (1, 7, 3), (1, 250, 3), (1, 251, 1), (2, 1000, 1), (2, 1001, 1)]
        {
            record_wakee(&mut waker, task, jiffies, 250);
            assert_eq!(waker.flips, flips, "task {task} at {jiffies}");
        }
    }
}
