//! Why a kernel cannot be configured as requested.

/// A setting that this kernel does not have, or that changes nothing in the model of it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// No such feature in this version.
    #[error("kernel {version} has no feature {name}")]
    UnknownFeature {
        /// The name or value that was given.
        name: String,
        /// The version.
        version: &'static str,
        /// Closest names it has.
        nearest: Vec<&'static str>,
    },
    /// The kernel has the setting; in the model it changes nothing.
    #[error("{kind} {name} of kernel {version} is not simulated: {why}; it stays {stays}")]
    NotModelled {
        /// `feature`, `knob` or `preemption model`.
        kind: &'static str,
        /// The feature, knob or model.
        name: &'static str,
        /// The version.
        version: &'static str,
        /// What it is instead.
        stays: String,
        /// Why it changes nothing.
        why: &'static str,
    },
    /// No such knob in this version.
    #[error("kernel {version} has no knob {name}")]
    UnknownKnob {
        /// The name or value that was given.
        name: String,
        /// The version.
        version: &'static str,
        /// Closest names it has.
        nearest: Vec<&'static str>,
    },
    /// A value outside the knob's range.
    #[error("knob {name} of kernel {version} takes {} to {}, not {value}", range.0, range.1)]
    KnobRange {
        /// The knob.
        name: &'static str,
        /// The version.
        version: &'static str,
        /// The name or value that was given.
        value: u64,
        /// What it takes.
        range: (u64, u64),
    },
    /// Not a preemption model at all.
    #[error("unknown preemption model \"{name}\"")]
    UnknownPreempt {
        /// The name or value that was given.
        name: String,
        /// Closest names.
        nearest: Vec<&'static str>,
    },
    /// A preemption model that this version cannot be booted with.
    #[error("kernel {version} has no preemption model {model}, which exists {exists_in}")]
    Preempt {
        /// The name or value that was given.
        model: &'static str,
        /// Which kernels have it.
        exists_in: &'static str,
        /// The version.
        version: &'static str,
        /// What it has.
        supported: Vec<&'static str>,
    },
}

impl ConfigError {
    /// What to do instead, if anything is near.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            ConfigError::UnknownFeature { nearest, .. }
            | ConfigError::UnknownKnob { nearest, .. }
            | ConfigError::UnknownPreempt { nearest, .. } => {
                (!nearest.is_empty()).then(|| format!("did you mean {}?", nearest.join(" or ")))
            }
            ConfigError::Preempt { supported, .. } => Some(format!("it has {}", supported.join(", "))),
            ConfigError::NotModelled { .. } => Some("leave it out, or use an arm with a real kernel".to_string()),
            ConfigError::KnobRange { .. } => None,
        }
    }
}
