//! What a placement looked at on the way to its CPU: each CPU asked, by which function, what it found there.
//!
//! The rule of a placement names the step that decided; these are the steps before it, so that the reason why one CPU
//! was chosen over another can be seen: idle state, load and cache of every candidate at that moment. A search of a
//! whole cache is one step, with how many CPUs it tested.

use schedlab_model::CpuId;
use serde::Serialize;

use crate::features::Feature;

/// One step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub function: &'static str,
    pub feature: Option<Feature>,
    /// The CPUs asked about: one, or a group of a domain.
    pub cpus: Vec<CpuId>,
    pub which: &'static str,
    pub answer: &'static str,
    pub numbers: Vec<(&'static str, i64)>,
}

impl Step {
    /// A step that asked about one CPU; `which` says why that one.
    pub fn of(function: &'static str, cpu: CpuId, which: &'static str, answer: &'static str) -> Self {
        Step { function, feature: None, cpus: vec![cpu], which, answer, numbers: Vec::new() }
    }

    /// The feature by which it asked.
    pub fn by(self, feature: Feature) -> Self {
        Step { feature: Some(feature), ..self }
    }

    /// Numbers that the answer rests on.
    pub fn with<const N: usize>(self, numbers: [(&'static str, i64); N]) -> Self {
        Step { numbers: numbers.to_vec(), ..self }
    }

    /// It asked about a group of CPUs.
    pub fn about(self, cpus: &[CpuId]) -> Self {
        Step { cpus: cpus.to_vec(), ..self }
    }
}

/// A step with the CPU as it stood.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Looked {
    /// The kernel's function.
    pub function: &'static str,
    /// The feature by which it asked.
    pub feature: Option<&'static str>,
    /// The CPUs it asked about: one, or a group of a domain.
    pub cpus: Vec<u32>,
    /// Why those: `previous`, `waker's`, `recently used` ...
    pub which: &'static str,
    /// How many of them are idle, and how many of the others run nothing but SCHED_IDLE tasks.
    pub idle: u32,
    /// See `idle`.
    pub sched_idle: u32,
    /// Tasks queued there.
    pub nr_running: u32,
    /// `cpu_load`.
    pub load: u64,
    /// The first one's last-level cache, counted from 0.
    pub cache: u32,
    /// What came out.
    pub answer: &'static str,
    /// Numbers that the answer rests on, if any.
    pub numbers: Vec<(&'static str, i64)>,
}
