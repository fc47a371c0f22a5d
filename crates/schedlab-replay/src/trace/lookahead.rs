//! What the reader looks for in later records: the list is complete, because the window gives access to them by kind
//! only.
//!
//! A trace records most decisions before their outcome, and some operations by nothing but their consequences. None of
//! the kinds reaches a model except as a field of an [`Operation`](crate::operation::Operation), and each use is
//! counted.

use serde::Serialize;

/// One purpose of looking ahead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum LookAhead {
    /// The need-resched flag after a decision, which the decision is compared with.
    Outcome,
    /// Whether `schedule()` picks the running task again, which shows as a flag that clears without a switch.
    Repick,
    /// Which function called `update_curr`.
    Caller,
    /// What the running task is doing when it is charged: blocking, yielding, forking, changing its group or class.
    TaskCode,
    /// Whether a runtime belongs to another scheduling class.
    Class,
    /// A nice value or policy that no record announced.
    Weight,
    /// The state of a task that is seen for the first time.
    FirstState,
    /// Tasks that were queued when the recording began.
    InitialTasks,
    /// The group of a task that is seen for the first time.
    Group,
    /// A runqueue's clock, from the probe of the same event.
    Clock,
    /// A runqueue's clock before its first record.
    StartClock,
    /// The load that a group's queue reports (`tg_load_avg_contrib`) and `tg->load_avg`.
    TgLoad,
    /// The next run time of the running task, an upper bound of the clock at a wakeup.
    NextRunTime,
    /// A run time recorded after a migration that took effect later.
    UnrecordedCharge,
    /// Whether probes at `sched_stat_runtime` read vruntime before or after the charge.
    ProbeOrder,
    /// The CPU that was selected, which the selection is compared with, and the task where no probe names it.
    Selection,
    /// What a balancing pass found and moved, which the pass is compared with.
    Pass,
    /// The capacity that a balancing pass has computed for its CPU.
    Capacity,
    /// CPUs that became idle or busy while a CPU was selected.
    IdleChanges,
    /// Whether a CPU that loses its scheduling domains gets new ones.
    Domains,
}

impl LookAhead {
    /// All kinds, in the order of reports.
    pub const ALL: [LookAhead; 20] = [
        LookAhead::Outcome,
        LookAhead::Repick,
        LookAhead::Caller,
        LookAhead::TaskCode,
        LookAhead::Class,
        LookAhead::Weight,
        LookAhead::FirstState,
        LookAhead::InitialTasks,
        LookAhead::Group,
        LookAhead::Clock,
        LookAhead::StartClock,
        LookAhead::TgLoad,
        LookAhead::NextRunTime,
        LookAhead::UnrecordedCharge,
        LookAhead::ProbeOrder,
        LookAhead::Selection,
        LookAhead::Pass,
        LookAhead::Capacity,
        LookAhead::IdleChanges,
        LookAhead::Domains,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            LookAhead::Outcome => "need-resched flag after a decision",
            LookAhead::Repick => "whether schedule() picked the running task again",
            LookAhead::Caller => "which function charged a task",
            LookAhead::TaskCode => "what a task was doing when it was charged",
            LookAhead::Class => "whether a run time belongs to another class",
            LookAhead::Weight => "nice values and policies that no record announces",
            LookAhead::FirstState => "state of a task at its first record",
            LookAhead::InitialTasks => "tasks queued when the recording began",
            LookAhead::Group => "group of a task at its first record",
            LookAhead::Clock => "runqueue clock, from the probe of the same event",
            LookAhead::StartClock => "runqueue clock before its first record",
            LookAhead::TgLoad => "load that group queues report",
            LookAhead::NextRunTime => "next run time, as a bound of the clock at a wakeup",
            LookAhead::UnrecordedCharge => "run time recorded after the migration that it precedes",
            LookAhead::Selection => "CPU selected for a task",
            LookAhead::Pass => "what a balancing pass found and moved",
            LookAhead::Capacity => "capacity that a balancing pass computed",
            LookAhead::IdleChanges => "CPUs that became idle or busy during a selection",
            LookAhead::Domains => "whether a CPU gets scheduling domains again",
            LookAhead::ProbeOrder => "whether probes read before or after a charge",
        }
    }
}
