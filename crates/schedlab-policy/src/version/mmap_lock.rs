//! Which page faults take `mmap_lock`, and how a read-write semaphore is waited for, over the kernel's releases.
//!
//! Read in mm/memory.c, mm/vma.c and kernel/locking/rwsem.c of 6.12.117.

use crate::history::release::{value_at, when, Change, Release};

/// What a page fault does about `mmap_lock`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultLock {
    /// It holds the lock for reading.
    Read,
    /// It holds the lock of the mapping instead. The first fault of an anonymous mapping holds `mmap_lock` for reading.
    Vma,
    /// The same, and that first fault takes `mmap_lock` only for a moment if it is free (`__vmf_anon_prepare`).
    VmaAndTry,
}

/// The rules of a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MmapLockRules {
    /// Faults of anonymous memory.
    pub anonymous: FaultLock,
    /// Faults of shared files.
    pub file: FaultLock,
    /// Readers spin as writers do before they sleep.
    pub readers_spin: bool,
    /// Writers also spin for a time while readers hold the semaphore, and a wakeup of readers wakes all that wait, not
    /// only those before the first writer.
    pub since_rewrite: bool,
}

impl MmapLockRules {
    pub(crate) const fn at(release: Release) -> Self {
        const ANONYMOUS: &[Change<FaultLock>] = &[
            Change { when: when!(from "6.4" by "0bff0aaea03e"), value: FaultLock::Vma },
            Change {
                when: when!(from "6.10" unverified "series of April 2024, present in 6.12.117"),
                value: FaultLock::VmaAndTry,
            },
        ];
        const FILE: &[Change<FaultLock>] =
            &[Change { when: when!(from "6.7" by "4ed4379881aa"), value: FaultLock::Vma }];
        const READERS: &[Change<bool>] = &[
            Change { when: when!(from "5.3" unverified "the rewrite of rwsem of May 2019"), value: true },
            Change { when: when!(from "5.11" by "617f3ef95177"), value: false },
        ];
        const REWRITE: &[Change<bool>] =
            &[Change { when: when!(from "5.3" unverified "the rewrite of rwsem of May 2019"), value: true }];
        MmapLockRules {
            anonymous: value_at(FaultLock::Read, ANONYMOUS, release),
            file: value_at(FaultLock::Read, FILE, release),
            readers_spin: value_at(false, READERS, release),
            since_rewrite: value_at(false, REWRITE, release),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FaultLock::{Read, Vma, VmaAndTry};
    use crate::Version;

    #[test]
    fn rules_of_the_rows() {
        for (row, anonymous, file, readers_spin, since_rewrite) in [
            ("5.2", Read, Read, false, false),
            ("5.10", Read, Read, true, true),
            ("6.1", Read, Read, false, true),
            ("6.6", Vma, Read, false, true),
            ("6.12.0", VmaAndTry, Vma, false, true),
            ("7.2", VmaAndTry, Vma, false, true),
        ] {
            let rules = Version::find(row).unwrap().mmap_lock();
            let found = (rules.anonymous, rules.file, rules.readers_spin, rules.since_rewrite);
            assert_eq!(found, (anonymous, file, readers_spin, since_rewrite), "{row}");
        }
    }
}
