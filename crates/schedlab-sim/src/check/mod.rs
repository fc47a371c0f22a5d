//! Checkers: invariants that every run must satisfy, outside the code they check, enabled in release builds.
//!
//! Each keeps a small record of its own and compares it with the simulator's state; none derives what that state should
//! be from the state itself. Idle-while-runnable is a metric, not a check: the kernel itself is not work-conserving.

mod accounts;
mod fair;
mod lives;

use schedlab_model::{CpuId, Nanos, TaskId};

pub use accounts::Accounts;
pub use fair::FairSums;
pub use lives::{Lives, OnCpu};

/// What a checker found: its name and the finding.
pub type Finding = (&'static str, String);

/// The checkers of one kernel.
#[derive(Clone, Debug)]
pub struct Checks {
    /// One task per CPU, legal state transitions, every wakeup ends in a run.
    pub lives: Lives,
    /// Time conservation per CPU.
    pub accounts: Accounts,
    /// Sums and lag of the fair class.
    pub fair: FairSums,
    finding: Option<Finding>,
}

impl Checks {
    pub fn new(nr_cpus: usize) -> Self {
        Checks {
            lives: Lives::default(),
            accounts: Accounts::new(nr_cpus),
            fair: FairSums::new(nr_cpus),
            finding: None,
        }
    }

    /// A task was created.
    pub fn created(&mut self, task: TaskId) {
        let found = self.lives.created(task);
        self.keep(found);
    }

    /// A task was woken.
    #[inline]
    pub fn woken(&mut self, task: TaskId, now: Nanos) {
        let found = self.lives.woken(task, now);
        self.keep(found);
    }

    /// A task that was woken before its CPU had left it runs on, without a switch.
    pub fn kept(&mut self, task: TaskId) {
        self.lives.kept(task);
    }

    /// A CPU picks its next task.
    #[inline]
    pub fn picked(&mut self, cpu: CpuId, now: Nanos) {
        self.fair.picked(cpu, now);
    }

    /// A CPU switches from `prev` to `next`.
    #[inline(always)]
    pub fn switched(&mut self, cpu: CpuId, prev: Option<(TaskId, OnCpu)>, next: Option<TaskId>, now: Nanos) {
        self.accounts.switched(cpu, prev.is_some(), now);
        if let Some((task, how)) = prev {
            let found = self.lives.leave(cpu, task, how);
            self.keep(found);
        }
        if let Some(task) = next {
            let found = self.lives.enter(cpu, task);
            self.keep(found);
        }
    }

    /// Whether there is a finding.
    #[inline]
    pub fn found(&self) -> bool {
        self.finding.is_some()
    }

    /// The first finding since the last call.
    pub fn take(&mut self) -> Option<Finding> {
        self.finding.take()
    }

    /// Keeps a finding, unless there is one already.
    #[inline]
    pub fn keep(&mut self, found: Option<Finding>) {
        if found.is_some() {
            self.keep_first(found);
        }
    }

    #[cold]
    fn keep_first(&mut self, found: Option<Finding>) {
        if self.finding.is_none() {
            self.finding = found;
        }
    }

    /// How often each checker looked.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("one_task_per_cpu", self.lives.switches),
            ("wakeup_ends_in_a_run", self.lives.wakeups),
            ("time_conservation", self.accounts.looks),
            ("fair_sums", self.fair.looks),
            ("lag_bound", self.fair.lags),
        ]
    }
}
