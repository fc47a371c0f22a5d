//! Sets of CPUs.

use crate::CpuId;

/// The largest number of CPUs one kernel may have (NR_CPUS).
pub const MAX_CPUS: usize = 1024;
const WORDS: usize = MAX_CPUS / 64;

/// A set of CPUs (`cpumask_t`), bit n = CPU n.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CpuMask {
    words: [u64; WORDS],
}

impl Default for CpuMask {
    fn default() -> Self {
        CpuMask { words: [0; WORDS] }
    }
}

impl CpuMask {
    /// The CPUs `0..count`; `count` above [`MAX_CPUS`] is cut to it.
    #[must_use]
    pub fn first(count: usize) -> Self {
        let mut mask = CpuMask::default();
        for cpu in 0..count.min(MAX_CPUS) {
            mask.set(CpuId(cpu as u32));
        }
        mask
    }

    /// Adds a CPU.
    #[inline]
    pub fn set(&mut self, cpu: CpuId) {
        self.words[cpu.index() / 64] |= 1 << (cpu.index() % 64);
    }

    /// Removes a CPU.
    #[inline]
    pub fn clear(&mut self, cpu: CpuId) {
        self.words[cpu.index() / 64] &= !(1 << (cpu.index() % 64));
    }

    /// Whether the CPU is in the set.
    #[inline]
    #[must_use]
    pub fn has(&self, cpu: CpuId) -> bool {
        self.words[cpu.index() / 64] >> (cpu.index() % 64) & 1 == 1
    }

    /// The CPUs in both sets.
    #[must_use]
    pub fn and(&self, other: &CpuMask) -> CpuMask {
        let mut out = *self;
        for (word, theirs) in out.words.iter_mut().zip(&other.words) {
            *word &= theirs;
        }
        out
    }

    /// The CPUs in this set and not in the other.
    #[must_use]
    pub fn without(&self, other: &CpuMask) -> CpuMask {
        let mut out = *self;
        for (word, theirs) in out.words.iter_mut().zip(&other.words) {
            *word &= !theirs;
        }
        out
    }

    /// Whether the two sets share a CPU.
    #[must_use]
    pub fn intersects(&self, other: &CpuMask) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// How many CPUs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// The smallest CPU in the set.
    #[must_use]
    pub fn lowest(&self) -> Option<CpuId> {
        self.next_from(0)
    }

    /// The smallest CPU with number `from` or above.
    #[must_use]
    pub fn next_from(&self, from: usize) -> Option<CpuId> {
        let mut index = from / 64;
        if index >= WORDS {
            return None;
        }
        let mut word = self.words[index] & (!0u64 << (from % 64));
        loop {
            if word != 0 {
                return Some(CpuId((index * 64) as u32 + word.trailing_zeros()));
            }
            index += 1;
            if index == WORDS {
                return None;
            }
            word = self.words[index];
        }
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let cpu = self.next_from(from)?;
            from = cpu.index() + 1;
            Some(cpu)
        })
    }

    /// The members starting at `start`, wrapping round (`for_each_cpu_wrap`).
    pub fn iter_from(&self, start: CpuId) -> impl Iterator<Item = CpuId> + '_ {
        let tail = self.iter().take_while(move |cpu| *cpu < start);
        let mut from = start.index();
        let head = std::iter::from_fn(move || {
            let cpu = self.next_from(from)?;
            from = cpu.index() + 1;
            Some(cpu)
        });
        head.chain(tail)
    }

    /// The set in the kernel's list format, such as `0-3,8`.
    #[must_use]
    pub fn to_list(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut run: Option<(u32, u32)> = None;
        let mut close = |run: &mut Option<(u32, u32)>| {
            if let Some((a, b)) = run.take() {
                parts.push(if a == b { a.to_string() } else { format!("{a}-{b}") });
            }
        };
        for cpu in self.iter() {
            match &mut run {
                Some((_, last)) if *last + 1 == cpu.0 => *last = cpu.0,
                _ => {
                    close(&mut run);
                    run = Some((cpu.0, cpu.0));
                }
            }
        }
        close(&mut run);
        parts.join(",")
    }

    /// Reads the kernel's list format: `0-3,8`. `None` if it is malformed or names a CPU of [`MAX_CPUS`] or above.
    #[must_use]
    pub fn from_list(text: &str) -> Option<CpuMask> {
        let mut mask = CpuMask::default();
        for part in text.trim().split(',').filter(|p| !p.trim().is_empty()) {
            let (a, b) = part.split_once('-').unwrap_or((part, part));
            let (a, b): (usize, usize) = (a.trim().parse().ok()?, b.trim().parse().ok()?);
            if a > b || b >= MAX_CPUS {
                return None;
            }
            (a..=b).for_each(|cpu| mask.set(CpuId(cpu as u32)));
        }
        Some(mask)
    }
}

impl std::fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{}}}", self.to_list())
    }
}

impl FromIterator<CpuId> for CpuMask {
    fn from_iter<T: IntoIterator<Item = CpuId>>(cpus: T) -> Self {
        let mut mask = CpuMask::default();
        cpus.into_iter().for_each(|cpu| mask.set(cpu));
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_format_round_trips() {
        for text in ["", "0", "0-3,8", "5,63-65,1023"] {
            assert_eq!(CpuMask::from_list(text).unwrap().to_list(), text);
        }
        for bad in ["x", "3-1", "1024", "1-", "-"] {
            assert!(CpuMask::from_list(bad).is_none(), "{bad} was accepted");
        }
    }

    #[test]
    fn wrapping_iteration_visits_each_member_once() {
        let mask = CpuMask::from_list("1-2,70,900").unwrap();
        let order: Vec<u32> = mask.iter_from(CpuId(3)).map(|c| c.0).collect();
        assert_eq!(order, [70, 900, 1, 2]);
    }
}
