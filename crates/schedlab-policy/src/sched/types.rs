//! What goes into the scheduler and what comes out of it, as plain data.

use schedlab_model::{CpuId, CpuMask, Distance, Nanos, TaskId, Topology};

use crate::group_id::GroupId;
use crate::looked::Step;
use crate::rt::RtPolicy;
use crate::{FairPolicy, Resched};

/// What a task is born with (`struct sched_attr` and its affinity).
#[derive(Clone, Debug, Default)]
pub struct TaskAttr {
    /// Nice value, -20..=19.
    pub nice: i8,
    /// Policy.
    pub policy: FairPolicy,
    /// Policy of the real-time class; `policy` is then the one it would return to.
    pub rt: Option<RtPolicy>,
    /// latency-nice, -20..=19; ignored by kernels without it.
    pub latency_nice: i8,
    /// Own slice (`sched_attr.sched_runtime`); `None` = base slice. Ignored by kernels without it.
    pub slice: Option<Nanos>,
    /// CPUs it may use (`cpus_ptr`); `None` = all. A set without any CPU of the machine is refused: it means all.
    pub affinity: Option<CpuMask>,
    /// The CPU it starts from (`task_cpu`).
    pub cpu: CpuId,
    /// The task group it starts in.
    pub group: GroupId,
}

/// Why a CPU is being chosen for a task (`WF_TTWU`, `WF_FORK`, `WF_EXEC`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeKind {
    /// `try_to_wake_up`.
    Wakeup {
        /// The waker is about to sleep (`WF_SYNC`).
        sync: bool,
    },
    /// `wake_up_new_task`.
    Fork,
    /// `sched_exec`.
    Exec,
}

impl WakeKind {
    /// The same from a waker whose sleep nobody counts on (`select_task_rq_fair`: `!(current->flags & PF_EXITING)`).
    #[must_use]
    pub fn without_sync(self) -> Self {
        match self {
            WakeKind::Wakeup { .. } => WakeKind::Wakeup { sync: false },
            other => other,
        }
    }
}

/// Where a task goes and what finding out took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection {
    /// The CPU.
    pub cpu: CpuId,
    /// CPUs whose state was read in the search, by [`Distance`] from the CPU that searched (same, smt, llc, node,
    /// remote). The comparison of two CPUs by wake_affine is part of the fixed cost and not counted.
    pub tested: [u32; 5],
    /// Which rule decided.
    pub rule: &'static str,
}

/// What a load-balance call did. Empty vectors own no memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Moves {
    /// Tasks that changed CPU and where they came from; where they went is [`crate::Sched::cpu_of`].
    pub moved: Vec<(TaskId, CpuId)>,
    /// CPUs that a moved task, or accounting on its way, asked to reschedule.
    pub resched: Vec<(CpuId, Resched)>,
    /// Domains walked (`load_balance` calls).
    pub passes: u32,
    /// CPUs whose state was read.
    pub looked_at: u32,
}

/// The count of CPUs tested from one CPU, while a search goes on, and its steps if they are recorded.
#[derive(Clone, Debug)]
pub(crate) struct Tested {
    pub(crate) from: CpuId,
    pub(crate) counts: [u32; 5],
    steps: Option<Vec<Step>>,
}

impl Tested {
    pub(crate) fn new(from: CpuId) -> Self {
        Tested { from, counts: [0; 5], steps: None }
    }

    /// The same, which records its steps.
    pub(crate) fn recording(from: CpuId) -> Self {
        Tested { steps: Some(Vec::new()), ..Tested::new(from) }
    }

    /// Adds a step, if they are recorded.
    #[inline]
    pub(crate) fn step(&mut self, step: impl FnOnce() -> Step) {
        if let Some(steps) = &mut self.steps {
            steps.push(step());
        }
    }

    /// Whether steps are recorded.
    pub(crate) fn is_recording(&self) -> bool {
        self.steps.is_some()
    }

    /// The steps recorded.
    pub(crate) fn into_steps(self) -> Option<Vec<Step>> {
        self.steps
    }

    #[inline]
    pub(crate) fn add(&mut self, topology: &Topology, cpu: CpuId) {
        self.add_many(topology.distance(self.from, cpu), 1);
    }

    #[inline]
    pub(crate) fn add_many(&mut self, distance: Distance, count: u32) {
        self.counts[distance as usize] += count;
    }

    pub(crate) fn total(&self) -> u32 {
        self.counts.iter().sum()
    }
}
