//! What the running task was doing when it was charged: the records that follow on its CPU show it.

use schedlab_model::{CpuId, Nanos, Pid, USEC};
use schedlab_policy::WakeKind;
use schedlab_trace::{Kind, TaskState};

use super::switch::prev_state_of;
use super::Reader;
use crate::operation::{Group, PrevState, Weight};
use crate::trace::{Entry, LookAhead, What, Window};

/// The time from the charge of a yield to its switch, before one was seen.
const YIELD_TAKES: Nanos = 10 * USEC;

/// What the `schedule()` of a `sched_yield` did.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AfterYield {
    Switches,
    PicksAgain,
    /// The same, perhaps after an interrupt.
    PicksAgainLater,
    /// Nothing yet: the task was preempted before its `schedule()`.
    PreemptedBefore,
}

/// An interrupt within this time of a yield's last record, or of the switch, may have come between the two.
const SOON: Nanos = 50 * USEC;

/// Records that are emitted from timer interrupts with the same locks each time.
#[derive(Clone, Copy)]
pub enum InterruptKind {
    Charge,
    Waking,
}

fn interrupt_kind(entry: &Entry) -> Option<InterruptKind> {
    match entry.kind().filter(|_| entry.interrupts_task())? {
        Kind::Runtime { .. } => Some(InterruptKind::Charge),
        Kind::Waking { .. } => Some(InterruptKind::Waking),
        _ => None,
    }
}

/// What a task did to itself.
#[derive(Clone, Copy)]
pub enum Change {
    /// What a probe or system call announced.
    Announced,
    /// `sched_move_task` of a task that exits or begins a session.
    MoveTask(Group),
    /// `sched_yield`.
    Yield(AfterYield),
    /// It was charged in the `schedule()` of a yield in which it had been preempted.
    EndYield,
    /// It was charged for the last time: in `schedule()`, or right before where its weight changed.
    Block(Option<Weight>, PrevState),
    Fork(Pid),
    LeaveClass,
    Reweight(Weight),
}

impl Reader {
    /// `setsid` moves the task to a group of its own with its signal lock held, and (from 5.6 on) reschedules. Where
    /// the kernel has no preempt count, the system call itself must have been recorded. Without probes a `getrusage`,
    /// which up to 6.7 charges under that lock as well, looks the same if the slice ends right after it.
    pub(super) fn moves_to_session(&mut self, entry: &Entry, ahead: &Window<'_>) -> bool {
        let own = ahead.look(LookAhead::TaskCode).filter(|next| next.cpu == entry.cpu);
        let mut inside = own.take_while(|next| next.is_inside());
        let probed =
            inside.any(|next| matches!(next.what, What::Clock { pid, move_task: Some(true), .. } if pid == entry.pid));
        let wakes = |next: &Entry| matches!(next.kind(), Some(Kind::Wakeup { .. }));
        let next = next_on(entry, LookAhead::TaskCode, ahead);
        if entry.depth().is_none() {
            // `schedule()` may come first, within the call.
            let schedules =
                picks_again(entry, ahead) || next.is_some_and(|next| matches!(next.kind(), Some(Kind::Switch { .. })));
            let called = !ahead.shows_moves() && !schedules && std::mem::take(&mut self.cpu(entry.cpu).setsid);
            return self.kernel.has_autogroup && (probed || called);
        }
        let flagged = entry.has_flags() && next.is_some_and(|next| next.flags.need_resched() && !wakes(next));
        self.kernel.has_autogroup && entry.depth() == Some(b'3') && (probed || flagged && !ahead.shows_moves())
    }

    /// `sched_yield` whose system call was not recorded: no other code charges a task with nothing but the runqueue
    /// locked. Where the kernel has no preempt count: the task is switched out runnable though need-resched was not
    /// set, and was not woken while it was going to sleep.
    pub(super) fn yields(&self, entry: &Entry, pid: Pid, ahead: &Window<'_>) -> bool {
        if let Some(depth) = entry.depth() {
            return depth == b'1';
        }
        let runnable = |kind| matches!(kind, Kind::Switch { prev, prev_state: TaskState::Running, .. } if prev == pid);
        let voluntary = entry.has_flags() && !entry.flag() && self.tasks.get(&pid).is_some_and(|task| !task.woken);
        voluntary && ahead.next_event_on(entry.cpu, LookAhead::TaskCode).is_some_and(runnable)
    }

    /// What follows a yield: `schedule()`, at once, which begins with a charge. An interrupt came before it if no probe
    /// shows that charge; without such probes, if the task is switched out uncharged, or if it comes sooner than the
    /// switch of any other yield, or finds preemption disabled and comes soon. A task that an interrupt preempts before
    /// it calls `schedule()` when it runs again.
    pub(super) fn after_yield(&mut self, entry: &Entry, pid: Pid, ahead: &Window<'_>) -> AfterYield {
        let shows = |next: &&Entry| next.kind().is_some() || next.in_task() && !next.is_inside();
        let mut own = ahead.look(LookAhead::TaskCode).filter(|next| next.cpu == entry.cpu).filter(shows).peekable();
        // At the end of the trace nothing shows.
        let Some(next) = own.peek().copied() else { return AfterYield::Switches };
        let passed = next.time.saturating_sub(entry.time);
        if next.in_task() {
            if leaves_runnable(next, pid) && next.preempts {
                return AfterYield::PreemptedBefore;
            }
            let at_once = leaves_runnable(next, pid);
            if at_once {
                self.yield_takes = Some(self.yield_takes.map_or(passed, |takes| takes.min(passed)));
            }
            let behind = ahead.look(LookAhead::TaskCode).skip_while(|of| !std::ptr::eq(*of, next)).skip(1);
            let locks_two = !next.flag() && next.depth().is_some_and(|depth| depth != b'1');
            let switches = at_once || locks_two && charges(next, pid) && schedule_switches(next, pid, behind);
            return if switches { AfterYield::Switches } else { AfterYield::PicksAgain };
        }
        // A task that is alone does not yield: the charge is that of `schedule()`, which locks once more.
        let alone = entry.depth().is_some_and(|depth| depth != b'1');
        let sooner = || passed < self.yield_takes.unwrap_or(YIELD_TAKES);
        let uncharged = switches_uncharged(entry.cpu, pid, ahead);
        let before = !alone
            && match ahead.shows_charges() {
                true => !charged_in_task(entry.cpu, ahead),
                false => {
                    let soon = || self.interrupts_atomic(next) && quiet_before(next, entry, ahead) < SOON;
                    uncharged || sooner() || soon()
                }
            };
        // After an interrupt `schedule()` may charge the task again.
        match own.find(|next| next.in_task() && !charges(next, pid)).filter(|next| leaves_runnable(next, pid)) {
            _ if !before => AfterYield::PicksAgain,
            Some(next) if !next.preempts => AfterYield::Switches,
            Some(_) if uncharged => AfterYield::PreemptedBefore,
            _ => AfterYield::PicksAgainLater,
        }
    }

    /// Whether a record is that of an interrupt which found preemption disabled: its preempt count is higher than that
    /// of other records of its kind.
    pub fn interrupts_atomic(&self, entry: &Entry) -> bool {
        let depth = interrupt_kind(entry).and_then(|kind| self.irq_depth[kind as usize]);
        depth.zip(entry.depth()).is_some_and(|(least, depth)| depth > least)
    }

    /// Notes the preempt count of interrupts.
    pub(super) fn note_depth(&mut self, entry: &Entry) {
        if let (Some(kind), Some(depth)) = (interrupt_kind(entry), entry.depth()) {
            let least = self.irq_depth[kind as usize].get_or_insert(depth);
            *least = depth.min(*least);
        }
    }
}

/// Whether a record is the switch from a task that is still runnable.
fn leaves_runnable(entry: &Entry, pid: Pid) -> bool {
    matches!(entry.kind(), Some(Kind::Switch { prev, prev_state: TaskState::Running, .. }) if prev == pid)
}

/// Whether a record is a charge of the task.
fn charges(entry: &Entry, pid: Pid) -> bool {
    matches!(entry.kind(), Some(Kind::Runtime { pid: of, .. }) if of == pid)
}

/// Whether a charge after a yield is that of a `schedule()` which switches: an interrupt that no record shows has
/// updated the clock since the yield, or the task was preempted in between. Other code that charges the running task
/// has set need-resched, locks the queue alone, or locks the task as well (`task_rq_lock`), as a change of its
/// attributes or a read of its run time does. The latter holds as many locks as `schedule()`, which differs in what
/// follows: it enqueues nothing again, and keeps the queue's lock up to its switch, so that no other CPU changes the
/// queue.
pub fn schedule_switches<'a>(entry: &Entry, pid: Pid, mut behind: impl Iterator<Item = &'a Entry>) -> bool {
    let ends = behind.find(|next| match next.what {
        What::Event(Kind::Wakeup { target_cpu: to, .. } | Kind::WakeupNew { target_cpu: to, .. })
            if to == entry.cpu =>
        {
            true
        }
        What::Clock { pid: of, move_task: Some(_), .. } if of == pid => true,
        _ => charges(next, pid) || next.cpu == entry.cpu && !next.is_inside(),
    });
    ends.is_some_and(|next| leaves_runnable(next, pid) && !next.preempts)
}

/// Whether a task that has yielded is switched out, after interrupts, by a `schedule()` that does not charge it: the
/// first one after the yield, which skips the update of the clock (RQCF_REQ_SKIP). That is the yield's own, or the one
/// that preempts the task before it (`R+`). A task that arrived may have set TIF_NEED_RESCHED, with which any other
/// `schedule()` skips the update, too.
fn switches_uncharged(cpu: CpuId, pid: Pid, ahead: &Window<'_>) -> bool {
    let mut may_skip = false;
    for next in ahead.look(LookAhead::TaskCode) {
        if next.cpu == cpu && !matches!(next.kind(), Some(Kind::Switch { .. })) {
            may_skip &= next.flags.need_resched();
        }
        match next.kind() {
            Some(Kind::Wakeup { target_cpu: to, .. } | Kind::WakeupNew { target_cpu: to, .. }) if to == cpu => {
                may_skip = true;
            }
            Some(Kind::Migrate { dest_cpu, .. }) if dest_cpu == cpu => may_skip = true,
            Some(Kind::Switch { .. }) if next.cpu == cpu => return leaves_runnable(next, pid) && !may_skip,
            kind if next.cpu == cpu && next.in_task() && (kind.is_some() || !next.is_inside()) => return false,
            _ => {}
        }
    }
    false
}

/// How long before an interrupt the CPU's last record was, that of a charge or a probe in it.
fn quiet_before(interrupt: &Entry, charge: &Entry, ahead: &Window<'_>) -> Nanos {
    let own = ahead.look(LookAhead::TaskCode).filter(|next| next.cpu == charge.cpu);
    let last = own.take_while(|next| next.is_inside()).last().map_or(charge.time, |last| last.time);
    interrupt.time.saturating_sub(last)
}

/// Whether code of the running task began to charge it before the next interrupt.
fn charged_in_task(cpu: CpuId, ahead: &Window<'_>) -> bool {
    let own = ahead.look(LookAhead::TaskCode).filter(|next| next.cpu == cpu);
    own.take_while(|next| next.in_task()).any(Entry::begins_charge)
}

/// Whether a task was charged because it blocks: its switch follows, with nothing in between but what the CPU pulls in
/// `sched_balance_newidle`. That may take long, and other CPUs see the queue without the task.
pub fn leaves(cpu: CpuId, pid: Pid, mut pulled: bool, ahead: &Window<'_>) -> Option<PrevState> {
    for entry in ahead.look(LookAhead::TaskCode).filter(|entry| entry.cpu == cpu) {
        let Some(kind) = entry.kind() else { continue };
        match kind {
            // Interrupts are off until the switch.
            _ if !entry.in_task() => return None,
            Kind::Runtime { pid: of, .. } if of != pid || pulled => {}
            Kind::Migrate { dest_cpu, .. } if dest_cpu == cpu => pulled = true,
            Kind::Switch { prev, prev_state, .. } if prev == pid => {
                return Some(prev_state_of(prev_state)).filter(|state| *state != PrevState::Runnable);
            }
            _ => return None,
        }
    }
    None
}

/// Whether a task was charged in `task_fork_fair`: its next record is that of its child. Up to 5.16 much of
/// `copy_process` comes between, so that it may have been preempted there, more than once. A task that is preempted on
/// its return to user mode (`R` instead of `R+`) has left it.
///
/// Right before a preemption it is `schedule()` that charges, unless the parent was moved to another CPU after it and
/// the child was not (see [`born_on`]). The flag of a preemption check makes that `schedule()` keep the clock of the
/// fork, so that nothing is left for it to charge.
pub fn forks(entry: &Entry, pid: Pid, ahead: &Window<'_>) -> Option<Pid> {
    let right_before_switch = matches!(ahead.next_event_on(entry.cpu, LookAhead::TaskCode), Some(Kind::Switch { .. }));
    let own = ahead.look(LookAhead::TaskCode).filter(|next| next.pid == pid && next.in_task());
    let mut own = own.filter(|next| next.kind().is_some()).peekable();
    if right_before_switch && !own.peek().is_some_and(|next| next.preempts) {
        return None;
    }
    loop {
        let next = own.next()?;
        match next.kind()? {
            Kind::Fork { parent, child } if parent == pid => {
                let stayed = || next.cpu != entry.cpu && born_on(child, ahead) == Some(entry.cpu);
                return (!right_before_switch || stayed()).then_some(child);
            }
            // `schedule()` charges right before it switches. Of several such charges on the child's CPU the last is
            // taken.
            Kind::Runtime { pid: of, .. } if of == pid && own.peek().is_some_and(|next| next.preempts) => {
                if right_before_switch && next.cpu == entry.cpu {
                    return None;
                }
            }
            Kind::Switch { .. } if next.preempts => {}
            _ => return None,
        }
    }
}

/// The CPU on which a task was forked: its first selection shows it as the previous one.
fn born_on(child: Pid, ahead: &Window<'_>) -> Option<CpuId> {
    ahead.look(LookAhead::TaskCode).find_map(|next| match next.what {
        What::Select(probe) if probe.kind == WakeKind::Fork && probe.state?.pid == child => Some(probe.prev),
        _ => None,
    })
}

/// Whether the CPU's next record shows that a charge ended in `resched_curr`, as `sched_move_task` of the running task
/// does from 5.6 on: by the flag, or by the switch that it led to.
pub fn reschedules(entry: &Entry, ahead: &Window<'_>) -> bool {
    let switches = |next: &Entry| matches!(next.kind(), Some(Kind::Switch { .. }));
    let next = || next_on(entry, LookAhead::Outcome, ahead);
    !entry.has_flags() || next().is_some_and(|next| next.flags.need_resched() || switches(next))
}

/// Whether a charge is that of a `schedule()` that picks the same task again: the flag is set at the charge, and clear
/// after it.
pub fn picks_again(entry: &Entry, ahead: &Window<'_>) -> bool {
    entry.flag() && !reschedules(entry, ahead)
}

/// The next scheduler event of the entry's CPU.
pub fn next_on<'a>(entry: &Entry, purpose: LookAhead, ahead: &'a Window<'_>) -> Option<&'a Entry> {
    ahead.look(purpose).find(|next| next.cpu == entry.cpu && next.kind().is_some())
}
