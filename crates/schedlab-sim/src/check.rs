//! Checkers: invariants held against every run, outside the code they check, on in release.

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::task::Life;

/// What the checkers have seen so far.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    pub looks: u64,
}

impl Checks {
    pub fn new(_nr_cpus: usize) -> Self {
        Checks::default()
    }

    pub fn born(&mut self, _task: TaskId) {}
    pub fn woken(&mut self, _task: TaskId, _now: Nanos) {}
    pub fn enter(&mut self, _cpu: CpuId, _task: TaskId, _life: Life) {}
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("looks", self.looks)]
    }
}
