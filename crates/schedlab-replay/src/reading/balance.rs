//! `sched_migrate_task`: by the balancer and the migration thread, which detach, then attach; or within a wakeup.

use schedlab_model::{CpuId, Nanos, Pid, USEC};
use schedlab_trace::Kind;

use super::account::leaves;
use super::clock::clock_behind;
use super::switch::left;
use super::{Cpu, Place, Reading};
use crate::operation::{Left, Operation, Whereabouts};
use crate::step::Step;
use crate::window::Window;

/// Of a record's time, at best.
const RESOLUTION: Nanos = USEC;

impl Reading {
    pub(super) fn migrate(&mut self, step: &Step, (pid, prio): (Pid, i32), from: CpuId, to: CpuId, ahead: &Window<'_>) {
        if pid == 0 {
            return;
        }
        if !self.tasks.contains_key(&pid) {
            self.introduce(pid, Some(prio), Whereabouts::Queued(from), None, ahead);
        }
        self.follow_prio(pid, prio, ahead);
        let Some(task) = self.tasks.get(&pid) else { return };
        let (place, waking, fair) = (task.place, task.waking, task.is_fair());
        self.put(pid, Place::Off(to));
        if !fair {
            return;
        }
        let becomes = match place {
            Place::Off(_) if waking => return self.rehome(pid, from, to, ahead),
            // Asleep and yet moved: its dequeue was delayed.
            Place::Off(_) => Place::Off(to),
            Place::Queued(_) | Place::Running(_) => Place::Queued(to),
        };
        self.leave_before_pulling(step, to, ahead);
        self.push(Operation::Detach { pid, from, to });
        self.cpu(step.cpu).moving.push((pid, to, becomes));
    }

    /// Within a wakeup.
    fn rehome(&mut self, pid: Pid, from: CpuId, to: CpuId, ahead: &Window<'_>) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.moved = true;
        }
        let charged = self.charged_unrecorded(from, ahead);
        self.push(Operation::Rehome { pid, from, to, charged });
    }

    /// A migration is recorded before it is made, a charge after: of two records of one microsecond the charge came first.
    fn charged_unrecorded(&self, cpu: CpuId, ahead: &Window<'_>) -> Nanos {
        let Some(current) = self.current(cpu) else { return 0 };
        let same_time = ahead.ahead().take_while(|step| step.time < self.now + RESOLUTION);
        let charge = |step: &Step| match step.kind()? {
            Kind::Runtime { pid, runtime, .. } if pid == current && step.cpu == cpu => Some(runtime),
            _ => None,
        };
        same_time.filter(|step| step.cpu == cpu).map_while(charge).next().unwrap_or(0)
    }

    /// A CPU that pulls a task for itself outside any interrupt is in `schedule()`, and its current task has left the
    /// queue though its switch is still to come.
    fn leave_before_pulling(&mut self, step: &Step, to: CpuId, ahead: &Window<'_>) {
        if to != step.cpu || !step.in_task() || !self.current_is_fair(to) {
            return;
        }
        if let Some(left) = self.current(to).and_then(|current| leaves(to, current, true, ahead)) {
            self.block(to, left);
            self.push(Operation::RunDry { cpu: to });
        }
    }

    /// The same where nothing is pulled: a CPU that has nobody left to run finds that out before it looks elsewhere, and
    /// the clock goes on meanwhile. An idle one that was brought tasks finds out whether they sleep.
    pub(super) fn leave_before_switching(&mut self, step: &Step, kind: Kind, ahead: &Window<'_>) {
        let cpu = step.cpu;
        if step.interrupts_task() && std::mem::take(&mut self.cpu(cpu).brought) {
            self.push(Operation::RunDry { cpu });
        }
        let Kind::Switch { prev, prev_state, next, .. } = kind else { return };
        let left = left(prev_state);
        if left == Left::Runnable || !self.current_is_fair(cpu) || self.current(cpu) != Some(prev) {
            return;
        }
        if clock_behind(step, ahead).is_some() && next == 0 {
            self.block(cpu, left);
            self.push(Operation::RunDry { cpu });
        }
    }

    /// The running task leaves the queue ahead of its switch.
    pub(super) fn block(&mut self, cpu: CpuId, left: Left) {
        if !std::mem::replace(&mut self.cpu(cpu).blocked, true) {
            self.push(Operation::Block { cpu, special: left == Left::Special });
        }
    }

    /// What this CPU's code detached is attached by its next record at the latest; before that record, unless it is the
    /// accounting within the attaching.
    pub(super) fn arrive_before(&mut self, step: &Step, kind: Kind, ahead: &Window<'_>) {
        if self.cpu(step.cpu).moving.is_empty() || matches!(kind, Kind::Migrate { .. }) {
            return;
        }
        let moving = std::mem::take(&mut self.cpu(step.cpu).moving);
        if let Kind::Runtime { pid, .. } = kind {
            let charged = self.place(pid);
            let there = moving.iter().any(|(_, to, _)| charged == Some(Place::Running(*to)));
            let clocks = self.cpu(step.cpu).attaches.zip(clock_behind(step, ahead).map(|(_, clock)| clock));
            if there && clocks.is_none_or(|(attaches, charges)| attaches == charges) {
                self.cpu(step.cpu).moving = moving;
                return;
            }
        }
        self.arrive(step, moving, ahead);
    }

    /// A task that runs has arrived, though the code that moves it has nothing more to tell.
    pub(super) fn arrive_to_run(&mut self, step: &Step, kind: Kind, ahead: &Window<'_>) {
        let Kind::Switch { next, .. } = kind else { return };
        let brings = |view: &mut Cpu| view.moving.iter().any(|(pid, ..)| *pid == next);
        if let Some(view) = self.cpus.iter_mut().find_map(|view| brings(view).then_some(view)) {
            let moving = std::mem::take(&mut view.moving);
            self.arrive(step, moving, ahead);
        }
    }

    /// The accounting within the attaching is done.
    pub(super) fn arrive_after(&mut self, step: &Step, ahead: &Window<'_>) {
        let moving = std::mem::take(&mut self.cpu(step.cpu).moving);
        self.arrive(step, moving, ahead);
    }

    fn arrive(&mut self, step: &Step, moving: Vec<(Pid, CpuId, Place)>, ahead: &Window<'_>) {
        self.cpu(step.cpu).attaches = None;
        // `detach_tasks` adds at the head of its list, and `attach_tasks` takes from there.
        let mut arriving = moving.into_iter().rev().peekable();
        while let Some((pid, to, becomes)) = arriving.next() {
            self.put(pid, becomes);
            self.cpu(to).brought |= self.current(to) == Some(0);
            let mut flag = self.flag_ahead(to, ahead);
            if to == step.cpu && !matches!(step.kind(), Some(Kind::Runtime { .. } | Kind::Switch { .. })) {
                (flag.after, flag.shared) = (step.has_flags().then_some(step.flag()), false);
            }
            flag.shared |= arriving.peek().is_some_and(|(_, next, _)| *next == to);
            self.push(Operation::Attach { pid, cpu: to, flag });
        }
    }
}
