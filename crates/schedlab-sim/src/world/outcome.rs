//! What a finished run reports besides its trace.

use schedlab_model::Nanos;
use schedlab_policy::fair::BandwidthStats;

use crate::machine::CpuTime;

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Every workload with an end of its own reached it, or every task exited.
    Completed,
    /// At the limit.
    Duration,
}

/// What a finished run reports of one of its kernels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// Simulated time at the end.
    pub now: Nanos,
    /// Events handled in the run.
    pub handled: u64,
    /// Context switches.
    pub switches: u64,
    /// Most events of the run pending at once, as seen when the checkers looked.
    pub pending_max: usize,
    /// Most tasks that existed at once.
    pub tasks_max: usize,
    /// Per CPU, where the time went.
    pub cpus: Vec<CpuTime>,
    /// How often each checker looked.
    pub checks: Vec<(&'static str, u64)>,
    /// Per control group with a quota, how it was used (`cpu.stat`).
    pub bandwidth: Vec<(String, BandwidthStats)>,
}
