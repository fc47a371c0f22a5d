//! The preemption model that a kernel is booted with.

use std::fmt;
use std::str::FromStr;

use crate::config_error::ConfigError;
use crate::history::release::{value_at, when, Change, Release};
use schedlab_model::{nearest, Nanos};

/// The preemption model (`preempt=`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PreemptModel {
    /// Kernel code is preempted at cond_resched() only.
    None,
    /// Kernel code is preempted at cond_resched() and might_sleep().
    Voluntary,
    /// Kernel code is preempted anywhere outside critical sections.
    Full,
    /// As full, but the fair class requests lazily.
    Lazy,
    /// PREEMPT_AUTO, policy none: every request is lazy.
    AutoNone,
    /// PREEMPT_AUTO, policy voluntary: requests by a higher class are full, all others lazy.
    AutoVoluntary,
    /// PREEMPT_AUTO, policy full: every request is full.
    AutoFull,
    /// PREEMPT_RT with full preemption: sections under a spinlock are preempted, too.
    Rt,
}

type Models = &'static [PreemptModel];

/// With the series PREEMPT_AUTO of 13 February 2024 (20240213055554.1802415-1-ankur.a.arora@oracle.com).
pub(crate) const WITH_AUTO: Models = &[
    PreemptModel::None,
    PreemptModel::Voluntary,
    PreemptModel::Full,
    PreemptModel::AutoNone,
    PreemptModel::AutoVoluntary,
    PreemptModel::AutoFull,
];

/// The models that a kernel can be built or booted with, over its releases.
pub(crate) const fn models_at(release: Release) -> Models {
    use PreemptModel::{Full, Lazy, None, Rt, Voluntary};
    const CHANGES: &[Change<Models>] = &[
        Change { when: when!(from "6.12" by "d2d6422f8bd1"), value: &[None, Voluntary, Full, Rt] },
        Change { when: when!(from "6.13" by "7c70cb94d29c"), value: &[None, Voluntary, Full, Lazy, Rt] },
        // Where the architecture supports lazy preemption, as x86 does.
        Change { when: when!(from "7.0" by "7dadeaa6e851"), value: &[Full, Lazy, Rt] },
    ];
    value_at(&[None, Voluntary, Full], CHANGES, release)
}

/// The model of a kernel if none is set.
pub(crate) const fn default_at(release: Release) -> PreemptModel {
    const CHANGES: &[Change<PreemptModel>] =
        &[Change { when: when!(from "7.0" by "7dadeaa6e851"), value: PreemptModel::Lazy }];
    value_at(PreemptModel::None, CHANGES, release)
}

/// Folios that `filemap_read` copies between two cond_resched() (PAGEVEC_SIZE).
pub(crate) const fn folio_batch_at(release: Release) -> u32 {
    const CHANGES: &[Change<u32>] =
        &[Change { when: when!(from "6.12" unverified "15 in 6.6, 31 in 6.12.107"), value: 31 }];
    value_at(15, CHANGES, release)
}

/// How long a time slice extension lasts (`rseq_slice_ext_nsecs`, debugfs `rseq/slice_ext_nsec`), ns; 0: the kernel has
/// none. The series merged for 7.0 begins with 30 us and ends with 5 us (21c0e92d0681).
pub(crate) const fn slice_extension_at(release: Release) -> Nanos {
    const CHANGES: &[Change<Nanos>] = &[Change { when: when!(from "7.0" by "3c78aaec19b0"), value: 5_000 }];
    value_at(0, CHANGES, release)
}

impl PreemptModel {
    const NAMES: [(&'static str, PreemptModel); 8] = [
        ("none", PreemptModel::None),
        ("voluntary", PreemptModel::Voluntary),
        ("full", PreemptModel::Full),
        ("lazy", PreemptModel::Lazy),
        ("auto-none", PreemptModel::AutoNone),
        ("auto-voluntary", PreemptModel::AutoVoluntary),
        ("auto-full", PreemptModel::AutoFull),
        ("rt", PreemptModel::Rt),
    ];

    /// The name that `preempt=` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    /// Which kernels have the model.
    #[must_use]
    pub fn exists_in(self) -> &'static str {
        match self {
            PreemptModel::None | PreemptModel::Voluntary => {
                "up to 6.19; from 7.0 on only architectures without lazy preemption have it"
            }
            PreemptModel::Full => "in all kernels",
            PreemptModel::Lazy => "from 6.13 on",
            PreemptModel::AutoNone | PreemptModel::AutoVoluntary | PreemptModel::AutoFull => {
                "in 6.8 with the series PREEMPT_AUTO of February 2024, which was not merged"
            }
            PreemptModel::Rt => "from 6.12 on",
        }
    }

    /// Kernel code outside critical sections is preempted by a full request (CONFIG_PREEMPTION, and not switched off).
    #[must_use]
    pub fn is_preemptible(self) -> bool {
        !matches!(self, PreemptModel::None | PreemptModel::Voluntary)
    }

    /// Spinlocks sleep, and their sections are preempted (CONFIG_PREEMPT_RT).
    #[must_use]
    pub fn has_sleeping_locks(self) -> bool {
        self == PreemptModel::Rt
    }

    /// cond_resched() reschedules.
    #[must_use]
    pub fn has_cond_resched(self) -> bool {
        matches!(self, PreemptModel::None | PreemptModel::Voluntary)
    }

    /// might_sleep() reschedules.
    #[must_use]
    pub fn has_might_resched(self) -> bool {
        self == PreemptModel::Voluntary
    }

    /// A full request is answered with a time slice extension, as a lazy one is (TIF_SLICE_EXT_SCHED of
    /// kernel/entry/common.c).
    #[must_use]
    pub fn extends_full_requests(self) -> bool {
        self != PreemptModel::Rt
    }

    /// Under PREEMPT_AUTO most requests are lazy, and a tick upgrades one only if it requests a reschedule itself.
    #[must_use]
    pub fn is_auto_lazy(self) -> bool {
        matches!(self, PreemptModel::AutoNone | PreemptModel::AutoVoluntary)
    }
}

impl fmt::Display for PreemptModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PreemptModel {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let known = Self::NAMES.iter().find(|(name, _)| *name == text);
        known.map(|(_, model)| *model).ok_or_else(|| ConfigError::UnknownPreempt {
            name: text.to_string(),
            nearest: nearest(text, Self::NAMES.iter().map(|(name, _)| *name)),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::version::Version;

    #[test]
    fn a_read_copies_more_folios_between_two_points_since_6_12() {
        let folios = |row: &str| Version::find(row).unwrap().folio_batch();
        assert_eq!(["6.1", "6.8", "6.12.107", "6.18.12", "7.2"].map(folios), [15, 15, 31, 31, 31]);
    }

    #[test]
    fn time_slice_extensions_came_with_7_0() {
        let length = |row: &str| Version::find(row).unwrap().slice_extension();
        assert_eq!(["6.12.107", "6.18.12", "7.2"].map(length), [0, 0, 5_000]);
    }
}
