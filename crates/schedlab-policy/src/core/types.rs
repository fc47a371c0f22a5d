//! The inputs and results of the scheduler as plain data.

use schedlab_model::{rarely, CpuId, CpuMask, Distance, Nanos, TaskId, Topology};

use super::dl_policy::DlPolicy;
use super::rt_policy::RtPolicy;
use crate::candidate::{Candidate, CandidateView};
use crate::decision::Function;
use crate::features::Feature;
use crate::group_id::GroupId;
use crate::{FairPolicy, Resched};

/// The attributes that a task starts with (`struct sched_attr` and its affinity).
#[derive(Clone, Debug, Default)]
pub struct TaskAttr {
    /// Nice value, -20..=19.
    pub nice: i8,
    /// Policy.
    pub policy: FairPolicy,
    /// Policy of the real-time class; `policy` then is the one that a change back to the fair class would restore.
    pub rt: Option<RtPolicy>,
    /// Parameters of the deadline class; `rt` and `policy` then do not count.
    pub dl: Option<DlPolicy>,
    /// Policy of a class that this crate does not have: its name in that class, and its parameter.
    pub other: Option<(&'static str, i64)>,
    /// latency-nice, -20..=19; ignored by kernels without it.
    pub latency_nice: i8,
    /// Own slice (`sched_attr.sched_runtime`); `None`: the base slice. Ignored by kernels without it.
    pub slice: Option<Nanos>,
    /// CPUs it may use (`cpus_ptr`); `None`: all. A set without any CPU of the machine is refused and counts as all.
    pub affinity: Option<CpuMask>,
    /// The CPU it starts from (`task_cpu`).
    pub cpu: CpuId,
    /// The task group it starts in.
    pub group: GroupId,
    /// It is a thread of the kernel (PF_KTHREAD).
    pub kthread: bool,
    /// It is the stopper of the only CPU that it may use (`sched_set_stop_task`); its policies then do not count.
    pub stop: bool,
}

/// The reason why a CPU is selected for a task (`WF_TTWU`, `WF_FORK`, `WF_EXEC`).
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
    /// The same by an exiting waker, whose sleep does not count (`select_task_rq_fair`: `!(current->flags &
    /// PF_EXITING)`).
    #[must_use]
    pub fn without_sync(self) -> Self {
        match self {
            WakeKind::Wakeup { .. } => WakeKind::Wakeup { sync: false },
            other => other,
        }
    }
}

/// The number of CPUs tested, by [`Distance`] from the searching CPU: same, smt, llc, node, remote.
pub type Counts = [u32; 5];

/// The CPUs that each function of the idle CPU search has tested; `None` where a function tested none.
///
/// Up to 5.11 `select_idle_cpu` follows `select_idle_core`. From 5.12 on it calls `select_idle_core` once for each
/// core; `core` then is the sum of these calls and a part of `cpu`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Scans {
    /// `select_idle_sibling` ran: the selection was made for a wakeup, not for a fork or an exec.
    pub sibling: bool,
    /// `select_idle_core`.
    pub core: Option<Counts>,
    /// `select_idle_cpu`.
    pub cpu: Option<Counts>,
    /// `select_idle_smt`.
    pub smt: Option<Counts>,
}

/// The CPU selected for a task, and the cost of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection {
    /// The CPU.
    pub cpu: CpuId,
    /// CPUs whose state was read in the search. The comparison of two CPUs by wake_affine is part of the fixed cost and
    /// not counted.
    pub tested: Counts,
    /// The CPUs tested by each function of the idle CPU search.
    pub scans: Scans,
    /// How often the host was asked whether a vCPU is preempted.
    pub hypercalls: u32,
    /// The rule that decided.
    pub rule: &'static str,
}

/// The result of a balancing call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Moves {
    /// The tasks that were moved, with their previous CPUs; [`crate::Sched::cpu_of`] is their new CPU.
    pub moved: Vec<(TaskId, CpuId)>,
    /// The CPUs to be rescheduled, because a task was moved there or because of the accounting that a move requires.
    pub resched: Vec<(CpuId, Resched)>,
    /// Domains walked (`load_balance` calls).
    pub passes: u32,
    /// CPUs whose state was read.
    pub looked_at: u32,
    /// Of a walk on behalf of other CPUs: progress at each CPU that received work. What comes after it has not been
    /// spent when such a CPU is sent its interrupt.
    pub stages: Vec<Stage>,
}

/// How far a balancing walk has come: how much of each part of its [`Moves`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stage {
    /// Of the tasks moved.
    pub moved: usize,
    /// Of the reschedules.
    pub resched: usize,
    /// Domains walked.
    pub passes: u32,
    /// CPUs whose state was read.
    pub looked_at: u32,
}

impl Moves {
    /// All of it.
    #[must_use]
    pub fn whole(&self) -> Stage {
        let (moved, resched) = (self.moved.len(), self.resched.len());
        Stage { moved, resched, passes: self.passes, looked_at: self.looked_at }
    }

    /// Notes the end of one CPU's part of a walk, if it had an effect.
    pub(crate) fn end_stage(&mut self) {
        let (now, last) = (self.whole(), self.stages.last().copied().unwrap_or_default());
        if (now.moved, now.resched) != (last.moved, last.resched) {
            self.stages.push(now);
        }
    }
}

/// The CPUs that a search has tested so far, by their distance from the CPU that searches, and its steps if they are
/// recorded.
#[derive(Clone, Debug)]
pub struct Tested {
    pub(crate) from: CpuId,
    /// The wakeup requests that CPU (WF_CURRENT_CPU).
    pub(crate) here: bool,
    /// The running task of that CPU makes the wakeup, not an interrupt (`in_task()`).
    pub(crate) in_task: bool,
    pub(crate) counts: Counts,
    pub(crate) scans: Scans,
    /// The feature that made the difference.
    pub(crate) feature: Option<Feature>,
    /// The function that decided.
    pub(crate) function: Function,
    /// The CPUs whose test is a hypercall, and how many were made; `None`: there are no such hypercalls.
    asks: Option<(Box<CpuMask>, u32)>,
    /// The candidates, if they are recorded.
    candidates: Option<Box<Candidates>>,
}

/// The candidates of a search, in the order in which they were considered.
#[derive(Clone, Default, Debug)]
struct Candidates {
    considered: Vec<Candidate>,
    /// The same with the state of the CPUs.
    views: Vec<CandidateView>,
}

impl Tested {
    pub(crate) fn new(from: CpuId, records: bool) -> Self {
        let (counts, scans) = ([0; 5], Scans::default());
        let (feature, function) = (None, Function::Usual);
        let (here, in_task, candidates) = (false, true, records.then(Box::default));
        Tested { from, here, in_task, counts, scans, feature, function, asks: None, candidates }
    }

    /// Tests of these CPUs ask the host.
    pub(crate) fn asking(mut self, cpus: Option<Box<CpuMask>>) -> Self {
        self.asks = cpus.map(|cpus| (cpus, 0));
        self
    }

    /// `available_idle_cpu` of a CPU: a hypercall where only the host has the answer.
    #[inline]
    pub(crate) fn available_idle_cpu(&mut self, cpu: CpuId) {
        if let Some((cpus, count)) = &mut self.asks {
            *count += u32::from(cpus.has(cpu));
        }
    }

    /// Whether tests may ask the host.
    pub(crate) fn asks_host(&self) -> bool {
        self.asks.is_some()
    }

    /// How often the host was asked.
    pub(crate) fn hypercalls(&self) -> u32 {
        self.asks.as_ref().map_or(0, |(_, count)| *count)
    }

    /// The CPU that searches.
    #[must_use]
    pub fn from(&self) -> CpuId {
        self.from
    }

    /// Adds a candidate, if they are recorded.
    #[inline(always)]
    pub(crate) fn consider(&mut self, candidate: impl FnOnce() -> Candidate) {
        if rarely(self.is_recording()) {
            self.push_candidate(candidate);
        }
    }

    /// Out of line, so that searches contain no more than the call.
    #[cold]
    #[inline(never)]
    fn push_candidate(&mut self, candidate: impl FnOnce() -> Candidate) {
        self.push(candidate());
    }

    /// Adds a candidate to those recorded.
    #[cold]
    pub(crate) fn push(&mut self, candidate: Candidate) {
        if let Some(candidates) = &mut self.candidates {
            candidates.considered.push(candidate);
        }
    }

    /// Whether candidates are recorded.
    #[inline]
    pub(crate) fn is_recording(&self) -> bool {
        self.candidates.is_some()
    }

    /// The candidates so far.
    pub(crate) fn candidates(&self) -> &[Candidate] {
        self.candidates.as_ref().map_or(&[], |candidates| &candidates.considered)
    }

    /// Stores the candidates with the state of the CPUs.
    pub(crate) fn set_views(&mut self, views: Vec<CandidateView>) {
        if let Some(candidates) = &mut self.candidates {
            candidates.views = views;
        }
    }

    /// Takes the candidates with the state of the CPUs; `None`: they are not recorded.
    pub(crate) fn take_views(&mut self) -> Option<Vec<CandidateView>> {
        self.candidates.take().map(|candidates| candidates.views)
    }

    /// The search has tested whether this CPU is available.
    #[inline]
    pub fn add(&mut self, topology: &Topology, cpu: CpuId) {
        self.available_idle_cpu(cpu);
        self.add_load(topology, cpu);
    }

    /// The search has read the load of this CPU.
    #[inline]
    pub fn add_load(&mut self, topology: &Topology, cpu: CpuId) {
        self.add_many(topology.distance(self.from, cpu), 1);
    }

    #[inline]
    pub(crate) fn add_many(&mut self, distance: Distance, count: u32) {
        self.counts[distance as usize] += count;
    }

    /// The CPUs tested since `before`; `None` if there were none.
    pub(crate) fn since(&self, before: Counts) -> Option<Counts> {
        (self.counts != before).then(|| std::array::from_fn(|distance| self.counts[distance] - before[distance]))
    }

    pub(crate) fn total(&self) -> u32 {
        self.counts.iter().sum()
    }
}
