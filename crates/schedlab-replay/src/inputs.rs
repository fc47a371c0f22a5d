//! What a model takes from the trace instead of computing it, counted by kind.

use serde::Serialize;

use crate::operation::Operation;

/// A kind of input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// `sched_stat_runtime`.
    RunTime,
    /// `clock_task` of a runqueue.
    Clock,
    /// A timer interrupt.
    Tick,
    /// A wakeup with the CPU that was selected.
    Wakeup,
    /// A migration, of a waking task or by the balancer.
    Migration,
    /// `sched_process_fork`.
    Fork,
    /// A switch: the model goes on from the kernel's pick.
    Switch,
    /// A `schedule()` that picked the running task again.
    Repick,
    /// A dequeue of the running task ahead of its switch, with what `schedule()` does in between.
    Block,
    /// The outcome of a preemption check, from which the model goes on.
    CheckOutcome,
    /// `sched_yield`.
    Yield,
    /// A change of nice value, policy, slice or affinity that a probe or system call announced.
    Attributes,
    /// A nice value or policy that follows from later records only.
    InferredWeight,
    /// A change of the scheduling class.
    Class,
    /// A move to another group.
    Group,
    /// An update of load averages by the balancer or for a group.
    LoadUpdate,
    /// The load that a group's queue has reported, and the group's sum.
    TgLoad,
    /// The group's sum that `calc_group_shares` read while other CPUs reported, as the weight shows.
    TgSum,
    /// A call of `select_task_rq_fair`: its arguments, and the CPUs that were idle.
    Selection,
    /// A balancing pass: its domain, its failures, and the CPUs that it considered and that were idle.
    BalancePass,
    /// The capacity that a pass computes for the pulling CPU, from the utilisation by other classes and interrupts.
    PassCapacity,
    /// The CPUs that a task which a pass considered may use.
    CpusAllowed,
    /// Whether groups are marked because affinity kept them from being balanced, as a selection or a pass reads it.
    GroupMarks,
    /// Load and utilisation of a task that a pass considered.
    TaskAverages,
    /// A task that a pass considered; if the pass leaves it, the next one considers it last.
    CanMigrateTask,
    /// The process of a task that is charged, and the caches that both prefer.
    Process,
    /// A call of `task_cache_work`.
    CacheWork,
    /// A CPU that lost its scheduling domains, or got some again.
    Domains,
    /// Load, runnable and utilisation of a CPU's queue, where a probe shows each change.
    CpuAverages,
    /// The limit of an idle CPU search and the hint about idle cores (`sched_domain_shared`).
    SearchLimit,
    /// A task's state at its first record.
    TaskState,
    /// Lag and slice of a task asleep at its first record.
    SleepingState,
    /// A task's load average.
    TaskLoad,
    /// The load average of a CPU's queue.
    CpuLoad,
    /// A task's history of wakeups (`wakee_flips`, `recent_used_cpu`).
    WakeHistory,
    /// The position of a queue in virtual time.
    QueuePosition,
    /// The state of a group's entity.
    GroupState,
    /// The load average of a group's queue.
    GroupLoad,
    /// A task's state, taken again because the model's was no longer certain.
    TaskStateAgain,
    /// A group's entity, likewise.
    GroupStateAgain,
    /// The load average of a group's queue, likewise.
    GroupLoadAgain,
    /// The position of a queue, likewise.
    QueuePositionAgain,
}

/// How inputs are grouped in reports.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum InputGroup {
    /// What the kernel did at a time.
    Operation,
    /// State from before the trace, read once.
    State,
    /// State that the model had and that was replaced.
    StateAgain,
}

use InputKind as K;

/// Every kind with its words, in the order of reports.
const KINDS: [(InputKind, InputGroup, &str); 42] = [
    (K::RunTime, InputGroup::Operation, "run times"),
    (K::Clock, InputGroup::Operation, "runqueue clocks"),
    (K::Tick, InputGroup::Operation, "timer interrupts"),
    (K::Wakeup, InputGroup::Operation, "wakeups with their CPU"),
    (K::Migration, InputGroup::Operation, "migrations"),
    (K::Fork, InputGroup::Operation, "forks"),
    (K::Switch, InputGroup::Operation, "switches"),
    (K::Repick, InputGroup::Operation, "picks of the running task"),
    (K::Block, InputGroup::Operation, "dequeues ahead of a switch"),
    (K::CheckOutcome, InputGroup::Operation, "outcomes of preemption checks"),
    (K::Yield, InputGroup::Operation, "yields"),
    (K::Attributes, InputGroup::Operation, "changes of attributes"),
    (K::InferredWeight, InputGroup::Operation, "weights inferred from later records"),
    (K::Class, InputGroup::Operation, "changes of class"),
    (K::Group, InputGroup::Operation, "moves between groups"),
    (K::LoadUpdate, InputGroup::Operation, "load updates"),
    (K::TgLoad, InputGroup::Operation, "loads that group queues report"),
    (K::TgSum, InputGroup::Operation, "groups' sums read while other CPUs reported"),
    (K::Selection, InputGroup::Operation, "selections with the idle CPUs"),
    (K::BalancePass, InputGroup::Operation, "balancing passes"),
    (K::PassCapacity, InputGroup::Operation, "capacities that passes computed"),
    (K::CpusAllowed, InputGroup::Operation, "CPUs allowed to tasks that a pass considered"),
    (K::GroupMarks, InputGroup::Operation, "marks of groups that affinity kept from being balanced"),
    (K::TaskAverages, InputGroup::Operation, "averages of tasks that a pass considered"),
    (K::CanMigrateTask, InputGroup::Operation, "tasks that a pass considered"),
    (K::Process, InputGroup::Operation, "processes of charged tasks, with the caches that they prefer"),
    (K::CacheWork, InputGroup::Operation, "examinations of the caches in which a process runs"),
    (K::Domains, InputGroup::Operation, "CPUs that lost or got scheduling domains"),
    (K::CpuAverages, InputGroup::Operation, "CPUs' averages, as probes show each change"),
    (K::SearchLimit, InputGroup::Operation, "limits of the idle CPU search"),
    (K::TaskState, InputGroup::State, "tasks"),
    (K::SleepingState, InputGroup::State, "sleeping tasks' lags and slices"),
    (K::TaskLoad, InputGroup::State, "tasks' load averages"),
    (K::CpuLoad, InputGroup::State, "CPUs' load averages"),
    (K::WakeHistory, InputGroup::State, "tasks' histories of wakeups"),
    (K::QueuePosition, InputGroup::State, "queue positions"),
    (K::GroupState, InputGroup::State, "group entities"),
    (K::GroupLoad, InputGroup::State, "group queues' load averages"),
    (K::TaskStateAgain, InputGroup::StateAgain, "tasks"),
    (K::GroupStateAgain, InputGroup::StateAgain, "group entities"),
    (K::GroupLoadAgain, InputGroup::StateAgain, "group queues' load averages"),
    (K::QueuePositionAgain, InputGroup::StateAgain, "queue positions"),
];

/// How many inputs of each kind a model took.
#[derive(Clone, Debug)]
pub struct Inputs([u64; KINDS.len()]);

impl Default for Inputs {
    fn default() -> Self {
        Inputs([0; KINDS.len()])
    }
}

/// The number of inputs of one kind.
#[derive(Clone, Copy, Serialize, Debug)]
pub struct InputCount {
    /// The kind.
    pub kind: InputKind,
    /// Its group.
    pub group: InputGroup,
    /// The kind in words, in the plural.
    pub name: &'static str,
    /// How many.
    pub count: u64,
}

impl Inputs {
    pub fn take(&mut self, kind: InputKind) {
        self.0[kind as usize] += 1;
    }

    /// The inputs of an operation itself.
    pub fn take_operation(&mut self, operation: &Operation) {
        if let Some(kind) = kind_of(operation) {
            self.take(kind);
        }
    }

    /// The kinds that occurred.
    pub fn counts(&self) -> Vec<InputCount> {
        let all =
            KINDS.iter().map(|&(kind, group, name)| InputCount { kind, group, name, count: self.0[kind as usize] });
        all.filter(|input| input.count > 0).collect()
    }
}

fn kind_of(operation: &Operation) -> Option<InputKind> {
    match operation {
        Operation::UpdateRqClock { .. } => Some(K::Clock),
        Operation::UpdateBlockedAverages { .. } | Operation::UpdateCfsRqLoad(_) => Some(K::LoadUpdate),
        Operation::UpdateTgLoad { .. } => Some(K::TgLoad),
        Operation::UpdateCurr(_) => Some(K::RunTime),
        Operation::Tick { .. } => Some(K::Tick),
        Operation::Wakeup(_) => Some(K::Wakeup),
        Operation::SetTaskCpu { .. } | Operation::Detach { .. } => Some(K::Migration),
        Operation::Fork { .. } | Operation::Start { .. } => Some(K::Fork),
        Operation::Block { .. } => Some(K::Block),
        Operation::Switch(_) => Some(K::Switch),
        Operation::Repick { .. } => Some(K::Repick),
        Operation::MoveTask { .. } => Some(K::Group),
        Operation::Yield { .. } => Some(K::Yield),
        Operation::SelectTaskRq(_) => Some(K::Selection),
        Operation::SchedBalanceRq(_) => Some(K::BalancePass),
        Operation::CpusAllowed { .. } => Some(K::CpusAllowed),
        Operation::GroupMarks { .. } => Some(K::GroupMarks),
        Operation::TaskAverages { .. } => Some(K::TaskAverages),
        Operation::CanMigrateTask { .. } => Some(K::CanMigrateTask),
        Operation::Process { .. } => Some(K::Process),
        Operation::TaskCacheWork { .. } => Some(K::CacheWork),
        Operation::CpuAverages { .. } => Some(K::CpuAverages),
        Operation::SetCpuActive { .. } => Some(K::Domains),
        Operation::SetAffinity { .. }
        | Operation::FinishDelayed { .. }
        | Operation::SetScheduler { .. }
        | Operation::SetPolicy { .. }
        | Operation::SetNice { .. } => Some(K::Attributes),
        Operation::Reweight { .. } => Some(K::InferredWeight),
        Operation::SwitchedFrom { .. } | Operation::SwitchedTo { .. } => Some(K::Class),
        // Counted by what the model takes of it, or part of another operation.
        Operation::AddTask(_)
        | Operation::ForkedWith { .. }
        | Operation::EnqueueMoved { .. }
        | Operation::Attach { .. }
        | Operation::NewidleBalance { .. }
        | Operation::Release { .. }
        | Operation::Probe { .. }
        | Operation::Lost => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_in_their_order() {
        assert!(KINDS.iter().enumerate().all(|(nth, (kind, ..))| *kind as usize == nth));
    }
}
