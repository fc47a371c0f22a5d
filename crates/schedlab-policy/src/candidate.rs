//! The CPUs that a selection considered before it chose one: in which function, in which role, with what result.
//!
//! The last candidate is the one that decided. The others show why it was chosen over them: idle state, load and cache
//! of every candidate at that moment. The search of a whole cache is one candidate, with the number of CPUs tested.

use schedlab_model::CpuId;
use serde::Serialize;

use crate::features::Feature;

/// Why a CPU, or a group of CPUs, is a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The CPU that the task was on last.
    Previous,
    /// The CPU that executes the wakeup.
    Waker,
    /// The CPU around which an idle one is searched.
    Target,
    /// The CPU before the last.
    RecentlyUsed,
    /// The threads of one core.
    Siblings,
    /// The CPUs of one last-level cache.
    Cache,
    /// The domain's group that contains the searching CPU.
    LocalGroup,
    /// Another group of the domain.
    OtherGroup,
    /// A CPU of the group chosen.
    OfGroup,
    /// A CPU of the domain that contains every capacity.
    Capacity,
    /// The CPU with the most spare capacity of those that share a frequency.
    MostSpare,
}

impl Role {
    /// The role as records show it.
    fn text(self) -> &'static str {
        match self {
            Role::Previous => "previous",
            Role::Waker => "waker's",
            Role::Target => "target",
            Role::RecentlyUsed => "recently used",
            Role::Siblings => "siblings",
            Role::Cache => "the cache",
            Role::LocalGroup => "own group",
            Role::OtherGroup => "another group",
            Role::OfGroup => "of the group",
            Role::Capacity => "of all capacities",
            Role::MostSpare => "most spare capacity",
        }
    }
}

/// A CPU, or a group of CPUs, that was considered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    pub function: &'static str,
    pub feature: Option<Feature>,
    /// The CPUs tested: one, or a group of a domain.
    pub cpus: Vec<CpuId>,
    pub role: Role,
    pub answer: &'static str,
    pub numbers: Vec<(&'static str, i64)>,
}

impl Candidate {
    /// The role of the CPUs, as records show it.
    pub fn which(&self) -> &'static str {
        self.role.text()
    }

    /// A single CPU.
    pub fn of(function: &'static str, cpu: CpuId, role: Role, answer: &'static str) -> Self {
        Candidate { function, feature: None, cpus: vec![cpu], role, answer, numbers: Vec::new() }
    }

    /// The feature that made the kernel test it.
    pub fn by(self, feature: Feature) -> Self {
        Candidate { feature: Some(feature), ..self }
    }

    /// The numbers behind the answer.
    pub fn with<const N: usize>(self, numbers: [(&'static str, i64); N]) -> Self {
        Candidate { numbers: numbers.to_vec(), ..self }
    }

    /// A group of CPUs.
    pub fn about(self, cpus: &[CpuId]) -> Self {
        Candidate { cpus: cpus.to_vec(), ..self }
    }
}

/// A candidate with the state of its CPUs at that moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CandidateView {
    /// The kernel's function.
    pub function: &'static str,
    /// The feature that made the kernel test it.
    pub feature: Option<&'static str>,
    /// The CPUs tested: one, or a group of a domain.
    pub cpus: Vec<u32>,
    /// Their role: `previous`, `waker's`, `recently used` ...
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
    /// The result.
    pub answer: &'static str,
    /// The numbers behind the answer, if any.
    pub numbers: Vec<(&'static str, i64)>,
}
