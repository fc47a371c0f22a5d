//! `sched_migrate_task`: emitted by the balancer and the migration thread, which detach and then attach, or within a
//! wakeup.

use schedlab_model::{CpuId, Nanos, Pid, USEC};
use schedlab_trace::Kind;

use super::clock::clock_behind;
use super::code::leaves;
use super::first::first_state;
use super::switch::prev_state_of;
use super::task::Place;
use super::{Cpu, Moving, Reader};
use crate::operation::{Cause, First, Location, Operation, PrevState};
use crate::trace::{Entry, LookAhead, What, Window};

/// Of a record's time, at best.
const RESOLUTION: Nanos = USEC;

impl Reader {
    pub(super) fn migrate(&mut self, entry: &Entry, kind: Kind, ahead: &Window<'_>) {
        let Kind::Migrate { pid, prio, orig_cpu: from, dest_cpu: to } = kind else { return };
        if pid == 0 {
            return;
        }
        if !self.tasks.contains_key(&pid) {
            self.add_task(pid, Some(prio), Location::Queued(from), None, ahead);
        }
        self.follow_prio(pid, prio, ahead);
        let Some(task) = self.tasks.get(&pid) else { return };
        let (place, waking, fair) = (task.place, task.waking, task.is_fair());
        self.put(pid, Place::Off(to));
        if !fair {
            return;
        }
        let becomes = match place {
            Place::Off(_) if waking => return self.set_task_cpu(pid, from, to, ahead),
            // Asleep and yet moved: its dequeue was delayed.
            Place::Off(_) => Place::Off(to),
            Place::Queued(_) | Place::Running(_) => Place::Queued(to),
        };
        self.block_before_pull(entry, pid, to, ahead);
        self.push(Operation::Detach { pid, from, to });
        self.cpu(entry.cpu).moving.push(Moving { pid, to, becomes, enqueued: false });
    }

    /// Within a wakeup.
    fn set_task_cpu(&mut self, pid: Pid, from: CpuId, to: CpuId, ahead: &Window<'_>) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.migrated = true;
        }
        let charged = self.unrecorded_charge(from, ahead);
        self.push(Operation::SetTaskCpu { pid, from, to, charged });
    }

    /// A migration is recorded before it is made, a charge after: of two records of one microsecond the charge came
    /// first.
    fn unrecorded_charge(&self, cpu: CpuId, ahead: &Window<'_>) -> Nanos {
        let Some(current) = self.current(cpu) else { return 0 };
        let later = ahead.look(LookAhead::UnrecordedCharge);
        let same_time = later.take_while(|entry| entry.time < self.now + RESOLUTION);
        let charge = |entry: &Entry| match entry.kind()? {
            Kind::Runtime { pid, runtime, .. } if pid == current && entry.cpu == cpu => Some(runtime),
            _ => None,
        };
        same_time.filter(|entry| entry.cpu == cpu).map_while(charge).next().unwrap_or(0)
    }

    /// A CPU that pulls a task in task context is in `schedule()`: its current task has been dequeued though its switch
    /// is still to come.
    fn block_before_pull(&mut self, entry: &Entry, pid: Pid, to: CpuId, ahead: &Window<'_>) {
        let moved_by_call = self.tasks.get(&entry.pid).is_some_and(|task| task.affinity_of == Some(pid));
        if to != entry.cpu || !entry.in_task() || moved_by_call || !self.current_is_fair(to) {
            return;
        }
        if let Some(state) = self.current(to).and_then(|current| leaves(to, current, true, ahead)) {
            self.block(to, state);
            self.newidle_balance(to);
        }
    }

    /// The same where nothing is pulled: a CPU whose queue is empty finds that out before it balances, and its clock
    /// advances meanwhile. An idle CPU that was given tasks finds out whether they are delayed.
    pub(super) fn block_before_switch(&mut self, entry: &Entry, kind: Kind, ahead: &Window<'_>) {
        let cpu = entry.cpu;
        if entry.interrupts_task() && std::mem::take(&mut self.cpu(cpu).received) {
            self.push(Operation::NewidleBalance { cpu });
        }
        let Kind::Switch { prev, prev_state, next, .. } = kind else { return };
        let state = prev_state_of(prev_state);
        if state == PrevState::Runnable || !self.current_is_fair(cpu) || self.current(cpu) != Some(prev) {
            return;
        }
        if clock_behind(entry, ahead).is_some() && (next == 0 || self.is_unthrottled(cpu, next)) {
            self.block(cpu, state);
            self.newidle_balance(cpu);
        }
    }

    /// Whether a task of another class was throttled until `schedule()` gave up the lock: the task was queued while
    /// fair tasks ran, although need-resched was not set.
    fn is_unthrottled(&self, cpu: CpuId, pid: Pid) -> bool {
        self.tasks.get(&pid).is_some_and(|task| task.is_throttled_on(cpu)) && !self.flag_of(cpu)
    }

    /// Code on another CPU changes this one's queue though its running task was dequeued: `schedule()` gives up the
    /// lock only in `sched_balance_newidle`, which it enters if it found the queue empty.
    pub(super) fn newidle_before(&mut self, entry: &Entry, cpu: CpuId) {
        if entry.cpu != cpu && self.cpu(cpu).blocked && !self.cpu(cpu).newidle {
            self.newidle_balance(cpu);
        }
    }

    fn newidle_balance(&mut self, cpu: CpuId) {
        self.cpu(cpu).newidle = true;
        self.push(Operation::NewidleBalance { cpu });
    }

    /// The running task is dequeued ahead of its switch.
    pub(super) fn block(&mut self, cpu: CpuId, state: PrevState) {
        if !std::mem::replace(&mut self.cpu(cpu).blocked, true) {
            self.push(Operation::Block { cpu, special: state == PrevState::Special });
        }
    }

    /// What this CPU's code has detached is attached by its next record at the latest: before that record, unless it is
    /// the charge within `attach_task`, or detaches another task before any is enqueued.
    pub(super) fn attach_before(&mut self, entry: &Entry, kind: Kind, ahead: &Window<'_>) {
        let enqueued = self.cpu(entry.cpu).moving.iter().any(|moving| moving.enqueued);
        if self.cpu(entry.cpu).moving.is_empty() || matches!(kind, Kind::Migrate { .. }) && !enqueued {
            return;
        }
        let moving = std::mem::take(&mut self.cpu(entry.cpu).moving);
        if let Kind::Runtime { pid, .. } = kind {
            let charged = self.place(pid);
            let there = moving.iter().any(|moving| charged == Some(Place::Running(moving.to)));
            let clocks = self.cpu(entry.cpu).attach_clock.zip(clock_behind(entry, ahead).map(|(_, clock)| clock));
            if there && clocks.is_none_or(|(attaches, charges)| attaches == charges) {
                self.cpu(entry.cpu).moving = moving;
                return;
            }
        }
        self.attach(entry.cpu, entry, moving, ahead);
    }

    /// The same where a probe reads another clock than that by which it is enqueued.
    pub(super) fn attach_before_clock(&mut self, entry: &Entry, clock: Nanos, ahead: &Window<'_>) {
        if self.cpu(entry.cpu).attach_clock.is_some_and(|attaches| attaches != clock) {
            let moving = std::mem::take(&mut self.cpu(entry.cpu).moving);
            self.attach(entry.cpu, entry, moving, ahead);
        }
    }

    /// A task that runs or is woken has been attached, though the code that moves it has emitted nothing more. An idle
    /// CPU has looked for a task to run by then, unless a probe of the task that is woken finds one on its queue, or
    /// reads the queue of a group, which does not show whether the CPU's own is empty.
    pub(super) fn attach_named_task(&mut self, entry: &Entry, kind: Kind, ahead: &Window<'_>) {
        let (Kind::Switch { next: pid, .. } | Kind::Waking { pid, .. }) = kind else { return };
        let has_task = |view: &Cpu| view.moving.iter().any(|moving| moving.pid == pid);
        if let Some(by) = self.cpus.iter().position(has_task) {
            let moving = std::mem::take(&mut self.cpus[by].moving);
            self.attach(CpuId(by as u32), entry, moving, ahead);
        }
        if let (Kind::Waking { .. }, Some(Place::Off(cpu))) = (kind, self.place(pid)) {
            if cpu != entry.cpu && !may_find_queued(entry, pid, ahead) && std::mem::take(&mut self.cpu(cpu).received) {
                self.push(Operation::NewidleBalance { cpu });
            }
        }
    }

    /// What probes show to be enqueued on a queue was attached before the next record under that queue's lock, by
    /// another CPU.
    pub(super) fn attach_enqueued(&mut self, entry: &Entry, locked: CpuId, ahead: &Window<'_>) {
        for cpu in (0..self.cpus.len()).filter(|cpu| *cpu != entry.cpu.index()) {
            let moving = std::mem::take(&mut self.cpus[cpu].moving);
            let (there, rest): (Vec<_>, _) = moving.into_iter().partition(|it| it.to == locked && it.enqueued);
            self.cpus[cpu].moving = rest;
            if !there.is_empty() {
                self.attach(CpuId(cpu as u32), entry, there, ahead);
            }
        }
    }

    /// The queue whose lock is held where an event is emitted.
    pub(super) fn locked_by(&self, entry: &Entry, kind: Kind) -> Option<CpuId> {
        match kind {
            Kind::Switch { .. } => Some(entry.cpu),
            Kind::Wakeup { target_cpu, .. } | Kind::WakeupNew { target_cpu, .. } => Some(target_cpu),
            Kind::Migrate { pid, orig_cpu, .. } => (!self.is_waking(pid)).then_some(orig_cpu),
            Kind::Runtime { pid, .. } => match self.place(pid)? {
                Place::Running(cpu) => Some(cpu),
                _ => None,
            },
            _ => None,
        }
    }

    /// A charge follows what probes show of the enqueues.
    pub(super) fn enqueue_moved(&mut self, cpu: CpuId) {
        let enqueued = self.cpu(cpu).moving.iter().rev().filter(|moving| moving.enqueued);
        let operations: Vec<_> = enqueued.map(|it| Operation::EnqueueMoved { pid: it.pid, cpu: it.to }).collect();
        operations.into_iter().for_each(|operation| self.push(operation));
    }

    /// The charge within `attach_task` is done.
    pub(super) fn attach_after(&mut self, entry: &Entry, ahead: &Window<'_>) {
        let moving = std::mem::take(&mut self.cpu(entry.cpu).moving);
        self.attach(entry.cpu, entry, moving, ahead);
    }

    /// The state of a task that is the first to arrive on a queue: it shows the queue's position.
    fn first_position(&mut self, pid: Pid, to: CpuId, ahead: &Window<'_>) -> Option<First> {
        if self.kernel.simulated || self.cpu(to).primed {
            return None;
        }
        let first = first_state(pid, None, ahead).filter(|first| *first != First::Unknown);
        self.cpu(to).primed = first.is_some();
        first
    }

    /// Code on CPU `by` attaches what it has detached, before this record.
    fn attach(&mut self, by: CpuId, entry: &Entry, moving: Vec<Moving>, ahead: &Window<'_>) {
        self.cpu(by).attach_clock = None;
        // `detach_tasks` adds at the head of its list, and `attach_tasks` takes from there.
        let mut attaching = moving.into_iter().rev().enumerate().peekable();
        while let Some((nth, Moving { pid, to, becomes, .. })) = attaching.next() {
            self.put(pid, becomes);
            self.cpu(to).received |= self.current(to) == Some(0);
            let mut flag = self.flag_of_check(to, by, nth, ahead);
            if let Some((after, cause)) = self.shown_by_record(by, to, entry) {
                (flag.after, flag.cause) = (after, cause);
            }
            if attaching.peek().is_some_and(|(_, next)| next.to == to) {
                flag.cause = flag.cause.max(Cause::Later);
            }
            self.note_outcome(to, &flag);
            let first = self.first_position(pid, to, ahead);
            self.read_sums_of(by, entry, (pid, to), ahead);
            self.push(Operation::Attach { pid, cpu: to, first, flag });
        }
    }

    /// The flag of a CPU behind the attach of a task, and what has set it, where the record that follows the attach is
    /// of that CPU and shows them. The charge and the switch of the code that attaches show the flag from before its
    /// check.
    fn shown_by_record(&self, by: CpuId, to: CpuId, entry: &Entry) -> Option<(Option<bool>, Cause)> {
        let own = by == to;
        if to != entry.cpu || own && matches!(entry.kind(), Some(Kind::Runtime { .. } | Kind::Switch { .. })) {
            return None;
        }
        // A `sched_wakeup` shows the flag after its own check.
        let checks = matches!(entry.kind(), Some(Kind::Wakeup { .. }));
        if own {
            let after = entry.has_flags().then_some(entry.flag());
            return Some((after, if checks { Cause::Later } else { Cause::Own }));
        }
        let decides = checks || self.charge_sets_flag(to, entry);
        Some((self.flag_shown(to, entry), if decides { Cause::Later } else { Cause::Own }))
    }
}

/// Whether the probe of a `sched_waking` finds tasks on the queue on which the task was last, or does not show the
/// root's queue of that CPU: up to 7.2 it counts the tasks of the task's group there, and others may be queued beside
/// them.
fn may_find_queued(entry: &Entry, pid: Pid, ahead: &Window<'_>) -> bool {
    let mut own = ahead.look(LookAhead::TaskCode).filter(|next| next.cpu == entry.cpu);
    let probe = own.next().map(|next| next.what);
    let Some(What::Probe(probe)) = probe else { return false };
    let shows_root = probe.weight.is_some() || probe.address.is_none_or(|group| group.is_root);
    probe.pid == pid && (!shows_root || probe.sums.is_some_and(|sums| sums.count > 0))
}
