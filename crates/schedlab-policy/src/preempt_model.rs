//! The preemption model that a kernel is booted with.

use std::fmt;
use std::str::FromStr;

use crate::config_error::ConfigError;
use crate::version::release::{value_at, when, Change, Release};
use schedlab_model::nearest;

/// The preemption model (`preempt=`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PreemptModel {
    /// Kernel code is never preempted.
    None,
    /// Only at `might_sleep` points.
    Voluntary,
    /// Anywhere outside critical sections.
    Full,
    /// Fair tasks preempt lazily.
    Lazy,
}

type Models = &'static [PreemptModel];

/// The models that a kernel can be built or booted with, over its releases.
pub(crate) const fn models_at(release: Release) -> Models {
    const CHANGES: &[Change<Models>] = &[
        Change {
            when: when!(from "6.13" by "7c70cb94d29c"),
            value: &[PreemptModel::None, PreemptModel::Voluntary, PreemptModel::Full, PreemptModel::Lazy],
        },
        // Where the architecture supports lazy preemption, as x86 does.
        Change { when: when!(from "7.0" by "7dadeaa6e851"), value: &[PreemptModel::Full, PreemptModel::Lazy] },
    ];
    value_at(&[PreemptModel::None, PreemptModel::Voluntary, PreemptModel::Full], CHANGES, release)
}

/// The model of a kernel where none is asked for. Distributions built up to 6.19 with PREEMPT_VOLUNTARY, which differs
/// from `none` by points that are not modelled.
pub(crate) const fn default_at(release: Release) -> PreemptModel {
    const CHANGES: &[Change<PreemptModel>] =
        &[Change { when: when!(from "7.0" by "7dadeaa6e851"), value: PreemptModel::Lazy }];
    value_at(PreemptModel::None, CHANGES, release)
}

impl PreemptModel {
    const NAMES: [(&'static str, PreemptModel); 4] = [
        ("none", PreemptModel::None),
        ("voluntary", PreemptModel::Voluntary),
        ("full", PreemptModel::Full),
        ("lazy", PreemptModel::Lazy),
    ];

    /// The name that `preempt=` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    /// Why the simulator refuses the model, where it does.
    #[must_use]
    pub fn left_out(self) -> Option<&'static str> {
        (self == PreemptModel::Voluntary)
            .then_some("its might_sleep() points, all that tells it from none, are not modelled; use none or full")
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
