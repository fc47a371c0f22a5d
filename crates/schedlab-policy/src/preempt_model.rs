//! The preemption model a kernel is booted with.

use std::fmt;
use std::str::FromStr;

use crate::config_error::ConfigError;
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
    /// Fair tasks preempt lazily (6.13 and later).
    Lazy,
}

impl PreemptModel {
    const NAMES: [(&'static str, PreemptModel); 4] = [
        ("none", PreemptModel::None),
        ("voluntary", PreemptModel::Voluntary),
        ("full", PreemptModel::Full),
        ("lazy", PreemptModel::Lazy),
    ];

    /// The name `preempt=` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
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
