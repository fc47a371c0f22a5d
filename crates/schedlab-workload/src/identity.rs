//! Which streams a task draws from: the same on the simulator and on real threads, whatever else runs.

use schedlab_model::{stream, Nanos, Stream, MSEC};

use crate::Workload;

/// Independent tasks start within this much of each other.
const START_SPREAD: Nanos = MSEC;

/// The key of a task that the run starts with.
#[must_use]
pub fn first_key(workload: &str, task: &str, instance: u32) -> u64 {
    xxhash_rust::xxh3::xxh3_64(format!("{workload}/{task}/{instance}").as_bytes())
}

/// The key of a task's `number`th child, from 1.
#[must_use]
pub fn child_key(parent: u64, number: u32) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(&number.to_le_bytes(), parent)
}

/// What the task's distributions are drawn from.
#[must_use]
pub fn work_stream(seed: u64, key: u64) -> Stream {
    stream(seed ^ key, "work")
}

/// How much later than planned an independent task starts, and its rank among tasks of one instant.
#[must_use]
pub fn start_jitter(seed: u64, workload: &str, task: &str, instance: u32) -> (Nanos, u64) {
    let mut draw = stream(seed, &format!("start/{workload}/{task}/{instance}"));
    (draw.below(START_SPREAD), draw.next_u64())
}

/// How much later than planned the tasks of a workload start, at most `at_most`. Programs are started independently,
/// so the timers of one may expire at any time of the period of another: where several workloads run, each is late by a
/// part of the longest period of its own timers.
#[must_use]
pub fn start_phase(seed: u64, workloads: &[Workload], index: usize, at_most: Nanos) -> Nanos {
    let programs = workloads.iter().filter(|workload| !workload.kernel_threads).count();
    let workload = &workloads[index];
    if programs < 2 || workload.kernel_threads {
        return 0;
    }
    stream(seed, &format!("start/{}", workload.name)).below(workload.longest_period().min(at_most))
}

/// The most by which a run of this duration delays a workload, see [`start_phase`].
#[must_use]
pub const fn latest_phase(duration: Nanos) -> Nanos {
    duration / 10
}
