//! The reader's state of a task.

use schedlab_model::{CpuId, Nanos, Pid};

use crate::operation::{Location, Weight};
use crate::trace::{SchedChange, UNNAMED};

/// A task.
#[derive(Clone)]
pub struct Task {
    pub prio: i32,
    pub weight: Weight,
    pub place: Place,
    /// Its state was taken from the trace.
    pub taken: bool,
    pub exiting: bool,
    /// It has entered `sched_yield` and not yielded yet; it may be preempted in between.
    pub yields: bool,
    /// It was preempted between its yield and the `schedule()` of that.
    pub in_yield: bool,
    /// PF_EXITING: what it wakes does not count on its sleep.
    pub dying: bool,
    /// The CPU that was selected for it, until it is queued there.
    pub selected: Option<CpuId>,
    /// Its affinity was set, to a mask that no record shows.
    pub affinity_set: bool,
    /// Between `sched_waking` and `sched_wakeup`.
    pub waking: bool,
    /// When `sched_waking` was emitted.
    pub waking_at: Nanos,
    /// It was woken while it had the CPU: it may call `schedule()` and stay runnable.
    pub woken: bool,
    /// It changed CPU within its wakeup.
    pub migrated: bool,
    /// It left the fair class, and the models keep it.
    pub left_class: bool,
    /// The change of its own or another task's attributes that it is about to make.
    pub change: Option<SchedChange>,
    /// The task that its system call names for this.
    pub change_target: Option<Pid>,
    /// The task whose affinity it has set since it got the CPU: `sched_setaffinity` may move that task itself.
    pub affinity_of: Option<Pid>,
}

/// Where a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Running(CpuId),
    Queued(CpuId),
    /// On no queue: asleep, waking, new, or between two queues.
    Off(CpuId),
}

impl Task {
    pub fn new(prio: i32, weight: Weight, place: Place) -> Self {
        Task {
            prio,
            weight,
            place,
            taken: false,
            exiting: false,
            yields: false,
            in_yield: false,
            dying: false,
            selected: None,
            affinity_set: false,
            waking: false,
            waking_at: 0,
            woken: false,
            migrated: false,
            left_class: false,
            change: None,
            change_target: None,
            affinity_of: None,
        }
    }

    /// A probe or system call of this task, `own`, says what is about to change.
    pub fn announce(&mut self, change: SchedChange, own: Pid) {
        let named = self.change.map(SchedChange::pid).or(self.change_target.take()).unwrap_or(own);
        if let SchedChange::Affinity { pid } = change {
            self.affinity_of = Some(pid);
        }
        self.change = Some(match change {
            SchedChange::Scheduler { pid: UNNAMED, policy, nice, slice } => {
                SchedChange::Scheduler { pid: named, policy, nice, slice }
            }
            change => change,
        });
    }

    /// Whether it is of another class and waits on this CPU. Where fair tasks run there, it is throttled.
    pub fn is_throttled_on(&self, cpu: CpuId) -> bool {
        !self.is_fair() && self.place == Place::Queued(cpu)
    }

    /// Whether it is in the fair class now.
    pub fn is_fair(&self) -> bool {
        is_fair(self.prio) && !self.left_class
    }

    pub fn location(&self) -> Location {
        match self.place {
            Place::Running(cpu) => Location::Running(cpu),
            Place::Queued(cpu) => Location::Queued(cpu),
            Place::Off(cpu) => Location::Asleep(cpu),
        }
    }
}

/// Whether a kernel priority (0..=139) belongs to the fair class.
pub fn is_fair(prio: i32) -> bool {
    (100..140).contains(&prio)
}

/// The priority of a nice value.
pub fn prio(nice: i8) -> i32 {
    120 + i32::from(nice)
}

/// The nice value of a fair priority.
pub fn nice(prio: i32) -> i8 {
    (prio - 120).clamp(-20, 19) as i8
}
