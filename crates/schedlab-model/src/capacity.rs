//! The capacities of CPUs, and the power of their performance states.

use crate::{CpuId, CpuMask};

/// The capacity of the largest CPU at its highest frequency (`SCHED_CAPACITY_SCALE`).
pub const FULL_CAPACITY: u32 = 1024;

/// A performance state of a CPU (`struct em_perf_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerfState {
    /// The capacity of a CPU in this state.
    pub performance: u32,
    /// The power of a busy CPU in this state, in microwatts.
    pub power: u64,
}

/// CPUs that change their frequency together (`struct perf_domain`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PerfDomain {
    /// The CPUs.
    pub cpus: CpuMask,
    /// Their states, slowest first; the last one is their capacity.
    pub states: Vec<PerfState>,
}

/// The capacities of the CPUs of a machine, of which at least two differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capacities {
    of: Vec<u32>,
    perf_domains: Vec<PerfDomain>,
}

/// Why capacities cannot be those of a machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CapacityError {
    /// A CPU is in no type or in two.
    #[error("CPU {0} must have exactly one capacity")]
    NotOnce(u32),
    /// No CPU has the full capacity, or one has more or none.
    #[error("capacities are parts of 1024, and the largest one is 1024")]
    NotScaled,
    /// Threads of one core.
    #[error("CPUs of different capacity with several threads per core are not modelled: the kernel supports them only from 7.2 on")]
    Smt,
}

impl Capacities {
    /// The capacities of CPUs from 0 on; without performance states nothing is known of their power.
    #[must_use]
    pub fn new(of: Vec<u32>, perf_domains: Vec<PerfDomain>) -> Self {
        Capacities { of, perf_domains }
    }

    /// The capacity of a CPU, 1 to 1024 (`arch_scale_cpu_capacity`).
    #[inline]
    #[must_use]
    pub fn of(&self, cpu: CpuId) -> u32 {
        self.of[cpu.index()]
    }

    /// One for each CPU.
    #[must_use]
    pub fn all(&self) -> &[u32] {
        &self.of
    }

    /// The CPUs that change their frequency together, with their states; empty: no energy model.
    #[must_use]
    pub fn perf_domains(&self) -> &[PerfDomain] {
        &self.perf_domains
    }

    /// Whether the span contains CPUs of at least two capacities.
    #[must_use]
    pub fn differ_in(&self, span: &CpuMask) -> bool {
        let mut capacities = span.iter().map(|cpu| self.of(cpu));
        capacities.next().is_some_and(|first| capacities.any(|other| other != first))
    }

    /// Whether the span contains CPUs of every capacity of the machine.
    #[must_use]
    pub fn complete_in(&self, span: &CpuMask) -> bool {
        self.of.iter().all(|capacity| span.iter().any(|cpu| self.of(cpu) == *capacity))
    }
}
