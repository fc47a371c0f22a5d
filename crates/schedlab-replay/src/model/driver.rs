//! The replay as a driver of the kernel's procedures ([`schedlab_policy::procedure`]): they call the steps in the
//! kernel's order, and each decision is compared with the recorded one, which is the one returned.
//!
//! A trace shows a procedure in up to three parts with operations of other CPUs between them: the selection of a CPU
//! and the enqueue; the dequeue of the running task, newidle balancing and the switch. Not taken from `try_to_wake_up`:
//! whether the waker waits for `on_cpu` or leaves the task on a wakelist, which no record shows; the time and the CPU
//! of the enqueue contain the effect of either.

use schedlab_model::{CpuId, Nanos, Pid, TaskId};
use schedlab_policy::procedure::{Driver, Effect, Scheduler, Wakeup};
use schedlab_policy::{Moves, Resched, Scans, Selection, WakeKind};

use super::preempt::Check;
use super::Model;
use crate::decision::DecisionKind;
use crate::operation;

/// The model that a procedure works on, and the recorded part of that procedure.
pub(super) struct Replay<'a> {
    model: &'a mut Model,
    recorded: Recorded<'a>,
    /// The clock of the runqueue, once the procedure has read it.
    clock: Option<Nanos>,
}

/// The part of a procedure that one operation of the trace shows.
#[derive(Clone, Copy)]
pub(super) enum Recorded<'a> {
    /// `select_task_rq` and `set_task_cpu`.
    Selected { pid: Pid, from: CpuId, to: CpuId, charged: Nanos },
    /// The enqueue, on the CPU selected, and the preemption check. `resched`: need-resched of the model before.
    Enqueued { wakeup: &'a operation::Wakeup, resched: Resched },
    /// The dequeue of the running task.
    Blocked,
    /// A pick that found nothing, and the beginning of `sched_balance_newidle`.
    Newidle,
    /// The pick and the switch. `pick`: until the procedure has picked.
    Switched { cpu: CpuId, prev: Pid, pick: Option<Pick> },
}

/// The task that the kernel picked.
#[derive(Clone, Copy)]
pub(super) enum Pick {
    /// A task of the fair class, perhaps the running one; `certain`: from the queue as it is now.
    Fair { pid: Pid, certain: bool },
    /// A task of another class.
    Other { pid: Pid },
    /// The idle task.
    Idle,
}

/// Set in the id of a task of another class, which the model does not contain. The other bits are its pid.
const OTHER_CLASS: u32 = 1 << 31;

impl<'a> Replay<'a> {
    pub fn new(model: &'a mut Model, recorded: Recorded<'a>) -> Self {
        Replay { model, recorded, clock: None }
    }

    /// The id of a task that a switch names; the idle task has none.
    fn id(&self, pid: Pid) -> Option<TaskId> {
        let other = TaskId(OTHER_CLASS | pid as u32);
        (pid != 0).then(|| self.model.task(pid).unwrap_or(other))
    }

    /// The wakeup whose enqueue is recorded.
    fn enqueued(&self) -> Option<&'a operation::Wakeup> {
        match self.recorded {
            Recorded::Enqueued { wakeup, .. } => Some(wakeup),
            _ => None,
        }
    }

    /// The clock at the enqueue, read once.
    fn read_clock(&mut self, task: TaskId) -> Nanos {
        let clock = self.enqueued().map_or_else(|| self.model.now(), |wakeup| self.model.clock_at_wakeup(wakeup, task));
        *self.clock.get_or_insert(clock)
    }
}

impl Driver for Replay<'_> {
    type Sched = Self;

    fn sched(&mut self) -> &mut Self {
        self
    }

    fn clock(&self, cpu: CpuId) -> Nanos {
        self.clock_task(cpu)
    }

    fn clock_task(&self, cpu: CpuId) -> Nanos {
        self.clock.unwrap_or_else(|| self.model.clock(cpu))
    }

    fn need_resched(&self, cpu: CpuId) -> bool {
        match self.recorded {
            Recorded::Enqueued { wakeup, resched } => self.model.is_marked(cpu, resched, wakeup.flag),
            _ => false,
        }
    }

    fn rq_lock(&mut self, task: TaskId, _: CpuId) {
        self.read_clock(task);
    }

    fn search_takes_time(&mut self, _: Wakeup, _: CpuId) -> bool {
        matches!(self.recorded, Recorded::Selected { .. })
    }

    fn newidle_takes_time(&mut self, _: CpuId) -> bool {
        matches!(self.recorded, Recorded::Newidle)
    }

    fn effect(&mut self, effect: Effect) {
        let Recorded::Switched { cpu, prev, .. } = self.recorded else { return };
        match effect {
            Effect::Switch { .. } => {
                self.model.note_queued(prev);
                self.model.end_schedule(cpu);
            }
            Effect::Repicked { .. } => self.model.end_schedule(cpu),
            _ => {}
        }
    }

    // Tasks are moved where the trace says so.
    fn balanced(&mut self, _: &Moves) {}

    fn selected(&mut self, _: TaskId, selection: &Selection) -> CpuId {
        selection.cpu
    }
}

impl Scheduler for Replay<'_> {
    fn cpu_of(&mut self, task: TaskId) -> CpuId {
        self.model.sched.cpu_of(task)
    }

    fn requeue_delayed(&mut self, task: TaskId, _: Nanos) -> bool {
        let se = self.model.fair().entity(task);
        let (on_rq, cpu) = (se.on_rq, se.cpu);
        let Some(wakeup) = self.enqueued().filter(|wakeup| on_rq && wakeup.cpu == cpu) else { return false };
        let now = self.read_clock(task);
        self.model.enqueue_wakee(task, wakeup, now);
        true
    }

    fn select_task_rq(&mut self, task: TaskId, _: CpuId, _: WakeKind, _: Nanos) -> Selection {
        let cpu = match self.recorded {
            Recorded::Selected { to, .. } => to,
            Recorded::Enqueued { wakeup, .. } => wakeup.cpu,
            _ => self.cpu_of(task),
        };
        Selection { cpu, tested: Default::default(), scans: Scans::default(), hypercalls: 0, rule: "recorded" }
    }

    fn select_task_rq_for(&mut self, wakeup: Wakeup, kind: WakeKind, now: Nanos) -> Selection {
        self.select_task_rq(wakeup.task, wakeup.waker_cpu, kind, now)
    }

    fn set_wakee_cpu(&mut self, _: TaskId, _: CpuId, _: Nanos) {
        match self.recorded {
            Recorded::Selected { pid, from, to, charged } => self.model.set_task_cpu(pid, from, to, charged),
            Recorded::Enqueued { wakeup, .. } => self.model.adopt_cpu(wakeup.pid, wakeup.cpu),
            _ => {}
        }
    }

    fn activate(&mut self, task: TaskId, _: CpuId, _: WakeKind, now: Nanos) {
        if let Some(wakeup) = self.enqueued() {
            self.model.adopt_cpu(wakeup.pid, wakeup.cpu);
            self.model.enqueue_wakee(task, wakeup, now);
        }
    }

    fn wakeup_preempt(&mut self, cpu: CpuId, task: TaskId, kind: WakeKind, _: bool, now: Nanos) -> Resched {
        let Recorded::Enqueued { wakeup, resched } = self.recorded else { return Resched::No };
        let kind = if kind == WakeKind::Fork { DecisionKind::Fork } else { DecisionKind::Wakeup };
        let (pid, before, flag) = (self.model.pid(task), resched, wakeup.flag);
        self.model.check_preempt(&Check { kind, cpu, pid, now, before, flag })
    }

    fn executes(&mut self, cpu: CpuId) -> Option<TaskId> {
        match self.recorded {
            Recorded::Switched { prev, .. } => self.id(prev),
            _ => self.model.sched.curr(cpu),
        }
    }

    fn block(&mut self, task: TaskId, special: bool, _: Nanos) -> bool {
        let cpu = self.cpu_of(task);
        self.model.deactivate_curr(cpu, special);
        !self.model.sched.on_rq(task)
    }

    fn pick_next_task(&mut self, cpu: CpuId, _: Nanos) -> Option<TaskId> {
        match self.recorded {
            Recorded::Newidle => {
                self.model.pick_nothing(cpu);
                None
            }
            Recorded::Switched { prev, pick: Some(pick), .. } => {
                self.recorded = Recorded::Switched { cpu, prev, pick: None };
                self.clock = Some(self.model.pick_next_task(cpu, prev, pick));
                match pick {
                    Pick::Fair { pid, .. } | Pick::Other { pid } => self.id(pid),
                    Pick::Idle => None,
                }
            }
            _ => None,
        }
    }

    fn nr_running(&mut self, _: CpuId) -> u32 {
        u32::from(matches!(self.recorded, Recorded::Switched { pick: Some(_), .. }))
    }

    fn set_on_cpu(&mut self, cpu: CpuId, task: Option<TaskId>) -> Option<TaskId> {
        let prev = self.executes(cpu);
        if task.is_some() && task != prev {
            let now = self.clock_task(cpu);
            self.model.sched.idle_exit(cpu, now);
        }
        prev
    }

    fn idle_enter(&mut self, cpu: CpuId, now: Nanos) {
        self.model.sched.idle_enter(cpu, now);
    }
}
