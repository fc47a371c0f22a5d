//! Which streams a task draws from: the same on the simulator and on real threads, whatever else runs.

use schedlab_model::{stream, Nanos, Stream, MSEC};

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
