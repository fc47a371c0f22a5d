//! `sched_stat_runtime`, the record of `update_curr`: the records around it show which function called it.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_trace::Kind;

use super::class::{charges_to_preempt, is_outside, outside_next};
use super::code::{forks, leaves, next_on, picks_again, reschedules, schedule_switches, AfterYield, Change};
use super::task::{Place, Task};
use super::Reader;
use crate::operation::{Caller, Cause, Charge, Flag, Group, Location, Operation, Timer};
use crate::trace::{Entry, LookAhead, SchedChange, What, Window};

/// No task runs for 18 minutes without a tick: a longer run time is damaged.
const LONGEST: Nanos = 1 << 40;

impl Reader {
    pub(super) fn runtime(&mut self, entry: &Entry, pid: Pid, ran: Nanos, printed: Option<u64>, ahead: &Window<'_>) {
        if ran > LONGEST || pid == 0 {
            return;
        }
        self.charges = true;
        if !self.tasks.contains_key(&pid) {
            let Some(cpu) = self.running_cpu(pid, entry, ahead) else { return };
            self.cpu(cpu).current = Some(pid);
            self.add_task(pid, None, Location::Running(cpu), Some(entry), ahead);
        }
        let Some(task) = self.tasks.get(&pid) else { return };
        let (place, fair) = (task.place, task.is_fair());
        let cpu = match place {
            Place::Running(cpu) => cpu,
            Place::Queued(_) | Place::Off(_) => entry.cpu,
        };
        let blocked = self.cpus.get(cpu.index()).is_some_and(|cpu| cpu.blocked);
        if !blocked && is_outside(pid, printed, ahead.look(LookAhead::Class).next()) {
            return self.runtime_outside(pid, ahead);
        }
        if !fair {
            self.announced_return(pid, ahead);
            return;
        }
        self.charge(entry, cpu, Runtime { pid, ran, printed }, ahead);
    }

    /// A charge of a task of the fair class that runs on `cpu`.
    fn charge(&mut self, entry: &Entry, cpu: CpuId, runtime: Runtime, ahead: &Window<'_>) {
        let Runtime { pid, ran, printed } = runtime;
        self.newidle_before(entry, cpu);
        let change = match entry.in_task() {
            true if self.is_change_pending(entry, ahead) => Some(Change::Announced),
            true if cpu == entry.cpu => self.change(entry, pid, printed, ahead),
            _ => None,
        };
        (self.cpu(cpu).charged, self.cpu(cpu).clock_stands) = (entry.time, false);
        let attaching = self.cpu(entry.cpu).moving.iter().any(|moving| moving.to == cpu);
        let caller = match change {
            None if !attaching => self.caller(entry, cpu, ahead),
            _ => Caller::NoCheck,
        };
        let flagged = cpu == entry.cpu && entry.in_task() && entry.flag();
        self.cpu(cpu).schedules = flagged && change.is_none() && !matches!(caller, Caller::Wakeup(_));
        let waking_at = match caller {
            Caller::Wakeup(wakee) => self.tasks.get(&wakee).filter(|task| task.waking).map(|task| task.waking_at),
            _ => None,
        };
        self.enqueue_moved(entry.cpu);
        self.push(Operation::UpdateCurr(Charge { cpu, pid, ran, printed, caller, waking_at }));
        if let Caller::Other(flag) = &caller {
            self.note_outcome(cpu, flag);
        }
        if matches!(caller, Caller::Wakeup(_)) && cpu != entry.cpu {
            self.cpu(entry.cpu).checking = Some((cpu, self.flag_of(cpu)));
        }
        if caller == Caller::Tick {
            // What the code that it interrupted has read is used up.
            self.cpu(entry.cpu).sums_read.clear();
            let flag = self.own_flag(cpu, entry).unwrap_or_else(|| self.flag_ahead(cpu, entry.cpu, ahead));
            self.note_outcome(cpu, &flag);
            let timer = self.timer(cpu, entry, ahead);
            self.push(Operation::Tick { cpu, flag, timer });
        }
        if change.is_none() && caller != Caller::Tick && entry.in_task() {
            self.cpu(entry.cpu).unexplained = Some(pid);
            self.wait_task_inactive(entry, ahead);
        }
        if let Some(change) = change {
            self.make_change(entry, pid, change, ahead);
        }
        self.attach_after(entry, ahead);
    }

    /// `wait_task_inactive` dequeues a task whose dequeue is delayed (b7ca5743a260), as in `kthread_bind` of a new
    /// kernel thread. The wakeup that follows finds it on no queue.
    fn wait_task_inactive(&mut self, entry: &Entry, ahead: &Window<'_>) {
        let mut own = ahead.look(LookAhead::TaskCode).filter(|next| next.cpu == entry.cpu);
        let Some(Kind::Waking { pid, .. }) = own.find_map(Entry::kind) else { return };
        if own.next().is_some_and(|next| matches!(next.what, What::Probe(probe) if probe.pid == pid && !probe.queued)) {
            self.push(Operation::FinishDelayed { pid });
        }
    }

    /// What the running task does, now that it is charged for it.
    fn make_change(&mut self, entry: &Entry, pid: Pid, change: Change, ahead: &Window<'_>) {
        let cpu = entry.cpu;
        match change {
            Change::Announced => {
                self.cpu(cpu).changed_task =
                    self.tasks.get(&entry.pid).and_then(|task| task.change).map(SchedChange::pid);
                self.make_pending_change(entry.pid, true, ahead);
            }
            Change::MoveTask(to) => {
                let to = if self.kernel.uses_autogroup { to } else { Group::Same };
                let flag = Flag {
                    before: entry.flag(),
                    before_full: entry.flags.need_resched(),
                    ..self.flag_ahead(cpu, cpu, ahead)
                };
                self.cpu(cpu).flag = reschedules(entry, ahead);
                self.push(Operation::MoveTask { cpu, pid, to, flag });
            }
            Change::Yield(after) => {
                self.push(Operation::Yield { cpu });
                match after {
                    AfterYield::Switches => self.cpu(cpu).yielded = true,
                    AfterYield::PicksAgain => self.push(Operation::Repick { cpu, certain: true }),
                    AfterYield::PicksAgainLater => self.cpu(cpu).picks_again = true,
                    AfterYield::PreemptedBefore => {
                        if let Some(task) = self.tasks.get_mut(&pid) {
                            task.in_yield = true;
                        }
                    }
                }
            }
            Change::EndYield => match schedule_switches(entry, pid, ahead.look(LookAhead::TaskCode)) {
                true => self.cpu(cpu).yielded = true,
                false => self.push(Operation::Repick { cpu, certain: true }),
            },
            Change::Block(weight, state) => {
                if let Some(weight) = weight {
                    self.reweight(pid, weight);
                }
                self.block(cpu, state);
            }
            Change::LeaveClass => self.leave_class_unannounced(pid),
            Change::Fork(child) => self.fork(cpu, (pid, child), true, ahead),
            Change::Reweight(weight) => self.reweight(pid, weight),
        }
    }

    /// Which timer's interrupt it is: a probe shows the hrtick; without it the tick is the first timer interrupt of its
    /// period.
    fn timer(&mut self, cpu: CpuId, entry: &Entry, ahead: &Window<'_>) -> Timer {
        let second = self.kernel.tick_beside_hrtick.is_some_and(|period| self.ticked(cpu, entry.time / period));
        match std::mem::take(&mut self.cpu(cpu).hrtick) {
            true => Timer::Hrtick,
            false if second && !ahead.shows_hrtick() => Timer::Either,
            false => Timer::Tick,
        }
    }

    /// Whether a timer interrupt was seen in the period already.
    fn ticked(&mut self, cpu: CpuId, period: u64) -> bool {
        std::mem::replace(&mut self.cpu(cpu).ticked, period) == period
    }

    /// A run time outside the fair class. It is the last one there if the next is not.
    fn runtime_outside(&mut self, pid: Pid, ahead: &Window<'_>) {
        if self.tasks.get(&pid).is_some_and(Task::is_fair) {
            self.leave_class_unannounced(pid);
        }
        if !self.announced_return(pid, ahead) && outside_next(pid, ahead) == Some(false) {
            self.return_to_class(pid, ahead);
        }
    }

    /// The CPU of a task that is first seen by a run time: the record's, or one that has no record yet.
    fn running_cpu(&self, pid: Pid, entry: &Entry, ahead: &Window<'_>) -> Option<CpuId> {
        if entry.pid == pid {
            return Some(entry.cpu);
        }
        let mut later = ahead.look(LookAhead::FirstState).filter(|later| later.pid == pid);
        later.next().map(|later| later.cpu).filter(|cpu| self.current(*cpu).is_none())
    }

    fn caller(&self, entry: &Entry, cpu: CpuId, ahead: &Window<'_>) -> Caller {
        let own = cpu == entry.cpu;
        match ahead.next_event_on(entry.cpu, LookAhead::Caller) {
            Some(Kind::Wakeup { pid, .. } | Kind::WakeupNew { pid, .. }) => Caller::Wakeup(pid),
            _ if own && entry.in_irq() => Caller::Tick,
            Some(Kind::Switch { .. }) if own => Caller::NoCheck,
            _ => {
                // A flag that is set may be due to what came before the charge.
                let clear = self.own_flag(cpu, entry).filter(|flag| flag.after == Some(false));
                Caller::Other(clear.unwrap_or_else(|| {
                    let mut flag = self.flag_ahead(cpu, entry.cpu, ahead);
                    if charged_again_next(entry, ahead) {
                        flag.cause = Cause::Other;
                    }
                    flag
                }))
            }
        }
    }

    /// What a task did to itself when it was charged in task context and not for a wakeup.
    fn change(&mut self, entry: &Entry, pid: Pid, printed: Option<u64>, ahead: &Window<'_>) -> Option<Change> {
        let cpu = entry.cpu;
        let next = ahead.next_event_on(cpu, LookAhead::TaskCode);
        if matches!(next, Some(Kind::Wakeup { .. } | Kind::WakeupNew { .. })) {
            return None;
        }
        // A charge right before a switch is `schedule()`'s own.
        let exiting = |task: &mut Task| std::mem::take(&mut task.exiting);
        let charged_again = |next: &&Entry| matches!(next.kind(), Some(Kind::Runtime { pid: of, .. }) if of == pid);
        let mut later = ahead.look(LookAhead::TaskCode);
        let next_charge = later.find(|next| next.cpu == cpu && next.kind().is_some() || charged_again(next));
        let switches = next_charge.is_some_and(|next| matches!(next.kind(), Some(Kind::Switch { .. })));
        let leaves_group = self.kernel.uses_autogroup || self.kernel.moves_within_group;
        let moves = self.kernel.has_autogroup && leaves_group && !switches && !picks_again(entry, ahead);
        if moves && self.tasks.get_mut(&pid).is_some_and(exiting) {
            return Some(Change::MoveTask(Group::Root));
        }
        if !charges_to_preempt(entry, ahead) && self.take_in_yield(pid) {
            return Some(Change::EndYield);
        }
        if !charges_to_preempt(entry, ahead) && self.take_yield(pid) || self.yields(entry, pid, ahead) {
            return Some(Change::Yield(self.after_yield(entry, pid, ahead)));
        }
        if let Some(state) = leaves(cpu, pid, false, ahead) {
            return Some(Change::Block(self.new_weight(pid, printed, ahead), state));
        }
        if self.moves_to_session(entry, ahead) {
            return Some(Change::MoveTask(Group::New));
        }
        let child = self.kernel.fork_charges.then(|| forks(entry, pid, ahead)).flatten();
        match child {
            Some(child) => Some(Change::Fork(child)),
            _ if outside_next(pid, ahead) == Some(true) => Some(Change::LeaveClass),
            _ => self.new_weight(pid, printed, ahead).map(Change::Reweight),
        }
    }
}

/// The fields of a `sched_stat_runtime`.
#[derive(Clone, Copy)]
struct Runtime {
    pid: Pid,
    ran: Nanos,
    printed: Option<u64>,
}

/// Whether the next record is another charge of the task that prints its vruntime. Such a kernel (up to 6.7) sets a new
/// deadline before it emits the record: the flag may be that charge's own.
fn charged_again_next(entry: &Entry, ahead: &Window<'_>) -> bool {
    let next = next_on(entry, LookAhead::Caller, ahead).and_then(Entry::kind);
    matches!(next, Some(Kind::Runtime { pid, vruntime: Some(_), .. }) if pid == entry.pid)
}
