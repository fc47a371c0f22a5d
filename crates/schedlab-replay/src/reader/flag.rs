//! Need-resched: the outcome of a decision, read from the records that follow it on the CPU.
//!
//! A record's flags are read before its time. A virtual CPU may be stopped in between, and an interrupt may come: such
//! a record shows a flag from before its time.

use schedlab_model::{CpuId, Nanos, Pid, USEC};
use schedlab_trace::{Kind, TaskState};

use super::task::is_fair;
use super::Reader;
use crate::operation::{Cause, Flag, Operation};
use crate::trace::{Entry, LookAhead, What, Window};

/// A CPU whose running task was charged this recently has a clock that advances, unless it was seen not to.
const CLOCK_RUNS: Nanos = 1000 * USEC;

impl Reader {
    /// The flag of a CPU as far as it is known.
    pub(super) fn flag_of(&self, cpu: CpuId) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|cpu| cpu.flag)
    }

    /// Whether TIF_NEED_RESCHED of a CPU is set, not only the lazy flag.
    fn is_full(&self, cpu: CpuId, ahead: &Window<'_>) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|cpu| cpu.flag && (cpu.full || !ahead.shows_lazy()))
    }

    /// The flag around a decision for `cpu` that code on CPU `by` makes: the next record on `cpu` shows it, unless the
    /// check has not returned by then.
    pub(super) fn flag_ahead(&self, cpu: CpuId, by: CpuId, ahead: &Window<'_>) -> Flag {
        self.flag_of_check(cpu, by, 0, ahead)
    }

    /// As `flag_ahead`, for a check that follows `others` checks of the same pass. On the CPU that makes them, the
    /// returns from those are skipped.
    pub(super) fn flag_of_check(&self, cpu: CpuId, by: CpuId, others: usize, ahead: &Window<'_>) -> Flag {
        let mut flag =
            Flag { before: self.flag_of(cpu), before_full: self.is_full(cpu, ahead), after: None, cause: Cause::Own };
        let (mut rest, mut checked, mut returned) = (ahead.look(LookAhead::Outcome), None, 0);
        let others = if by == cpu { others } else { 0 };
        let mut checking = by != cpu && is_checking(by, ahead);
        while let Some(entry) = rest.next() {
            let decides = self.decides_for(cpu, entry);
            checking &= entry.cpu != by || entry.is_inside();
            if entry.cpu != cpu || entry.inferred {
                flag.cause = flag.cause.max(cause(decides, entry));
            } else if matches!(entry.what, What::Checked) {
                checked = checked.or((returned >= others).then_some(entry));
                returned += 1;
            } else if entry.is_inside() && entry.has_flags() && entry.flag() && !flag.before && checked.is_none() {
                // `schedule()` may clear it before the next record that is not inside of an operation.
                return self.unless_replenished(cpu, Flag { after: Some(true), ..flag }, ahead);
            } else if !(entry.is_inside() || checking && clear_in_interrupt(entry)) {
                // A `sched_wakeup` shows the flag after its own check, as the return from that check does.
                let wakes = decides && matches!(entry.kind(), Some(Kind::Wakeup { .. }));
                let shows = checked.filter(|_| !wakes).unwrap_or(entry);
                flag.after = self.flag_shown(cpu, shows);
                let decides = wakes || self.charge_sets_flag(cpu, shows);
                flag.cause = flag.cause.max(cause(decides, shows));
                if flag.after == Some(false) && std::ptr::eq(shows, entry) && self.was_set(cpu, entry, rest) {
                    (flag.after, flag.cause) = (Some(true), flag.cause.max(Cause::Later));
                }
                return self.unless_replenished(cpu, flag, ahead);
            }
        }
        flag.after = checked.and_then(|checked| self.flag_shown(cpu, checked));
        flag
    }

    /// The flag, with the cause that a task of another class was replenished, if so.
    fn unless_replenished(&self, cpu: CpuId, mut flag: Flag, ahead: &Window<'_>) -> Flag {
        if flag.after == Some(true) && self.is_replenished(cpu, ahead) {
            flag.cause = Cause::Other;
        }
        flag
    }

    /// Whether the CPU switches next to a task of another class that was throttled at the decision: a timer that no
    /// record shows has set need-resched.
    fn is_replenished(&self, cpu: CpuId, ahead: &Window<'_>) -> bool {
        let mut arrived = Vec::new();
        for kind in ahead.look(LookAhead::Outcome).filter_map(|next| Some((next.cpu, next.kind()?))) {
            match kind {
                (_, Kind::Wakeup { pid, target_cpu: to, .. } | Kind::WakeupNew { pid, target_cpu: to, .. })
                | (_, Kind::Migrate { pid, dest_cpu: to, .. })
                    if to == cpu =>
                {
                    arrived.push(pid);
                }
                (of, Kind::Switch { next, next_prio, .. }) if of == cpu => {
                    let arrives = arrived.contains(&next);
                    return next != 0 && !is_fair(next_prio) && !arrives && self.may_be_throttled(cpu, next);
                }
                _ => {}
            }
        }
        false
    }

    /// Whether a task of another class waits on a CPU although fair tasks run there, or has not been seen yet.
    fn may_be_throttled(&self, cpu: CpuId, pid: Pid) -> bool {
        self.tasks.get(&pid).is_none_or(|task| task.is_throttled_on(cpu))
    }

    /// The flag around a charge, which its own record shows on kernels that request the reschedule before they emit it.
    /// If it is clear there, a group above the task may still request it: the groups are charged after the task.
    pub(super) fn own_flag(&self, cpu: CpuId, charge: &Entry) -> Option<Flag> {
        let shown = self.kernel.charges_show_outcome && charge.cpu == cpu && charge.has_flags();
        let FlagBefore { flag: before, full: before_full } = self.cpus.get(cpu.index()).filter(|_| shown)?.flag_before;
        let flag = Flag { before, before_full, after: Some(charge.flag()), cause: Cause::Own };
        (charge.flag() || !self.may_be_in_group(cpu)).then_some(flag)
    }

    /// Whether a record with the flag is that of a charge which may have set it, at the end of a slice.
    pub(super) fn charge_sets_flag(&self, cpu: CpuId, entry: &Entry) -> bool {
        let charged = match entry.kind() {
            Some(Kind::Runtime { pid, .. }) => Some(pid),
            _ => None,
        };
        self.kernel.charges_show_outcome && entry.flag() && charged.is_some() && charged == self.current(cpu)
    }

    /// Whether the running task of a CPU is in a group other than the root's, as far as its probes show.
    fn may_be_in_group(&self, cpu: CpuId) -> bool {
        let shown = self.current(cpu).and_then(|pid| self.shown_in.get(&pid));
        shown.map_or(self.kernel.uses_autogroup, |address| !address.is_root)
    }

    /// Remembers the flag that a decision left, where the record that shows it shows nothing else.
    pub(super) fn note_outcome(&mut self, cpu: CpuId, flag: &Flag) {
        if flag.cause == Cause::Own {
            self.cpu(cpu).flag = flag.before || flag.after == Some(true);
        }
    }

    /// Whether the records behind one without the flag show that it was set already: the next one has it, and nothing
    /// in between can have set it.
    fn was_set<'a>(&self, cpu: CpuId, clear: &Entry, rest: impl Iterator<Item = &'a Entry>) -> bool {
        if self.decides_for(cpu, clear) || clear.cpu == cpu && clear.in_task() && charges(clear) {
            return false;
        }
        for entry in rest {
            // A selection comes before the check of its wakeup.
            if entry.cpu == cpu && entry.flag() && matches!(entry.what, What::Select(_) | What::Selected { .. }) {
                return true;
            }
            if self.decides_for(cpu, entry) || entry.cpu == cpu && matches!(entry.what, What::Checked) {
                return false;
            }
            if entry.cpu == cpu && !entry.is_inside() && !entry.inferred {
                return entry.flag() || self.is_preempted_by(cpu, entry);
            }
        }
        false
    }

    /// Whether a record is the switch of the CPU's running task though that is runnable and has not yielded.
    fn is_preempted_by(&self, cpu: CpuId, entry: &Entry) -> bool {
        let yields = self.current(cpu).and_then(|pid| self.tasks.get(&pid)).is_some_and(|task| task.yields);
        let yielded = !entry.preempts && (yields || self.cpus.get(cpu.index()).is_none_or(|view| view.yielded));
        let prev = match entry.kind() {
            Some(Kind::Switch { prev, prev_state: TaskState::Running, .. }) => Some(prev),
            _ => None,
        };
        prev.is_some() && prev == self.current(cpu) && !yielded
    }

    /// Whether a record is that of a decision for the CPU, or of one about to be made.
    fn decides_for(&self, cpu: CpuId, entry: &Entry) -> bool {
        match entry.kind() {
            Some(Kind::Wakeup { target_cpu: to, .. } | Kind::WakeupNew { target_cpu: to, .. }) => to == cpu,
            Some(Kind::Migrate { dest_cpu, .. }) => dest_cpu == cpu,
            Some(Kind::Runtime { pid, .. }) => Some(pid) == self.current(cpu) && (entry.cpu != cpu || entry.in_irq()),
            _ => false,
        }
    }

    /// Whether a record is that of a change to the CPU's queue.
    fn changes_queue(&self, cpu: CpuId, entry: &Entry) -> bool {
        self.decides_for(cpu, entry) || matches!(entry.kind(), Some(Kind::Migrate { orig_cpu, .. }) if orig_cpu == cpu)
    }

    /// Need-resched as a record shows it. A switch clears the flag before it is recorded: a task that was switched out
    /// runnable had it set; so had one that was not charged though the clock advances, because `schedule()` skips the
    /// update of its clock only after a check has set the flag.
    pub(super) fn flag_shown(&self, cpu: CpuId, entry: &Entry) -> Option<bool> {
        match entry.kind() {
            _ if !entry.has_flags() => None,
            Some(Kind::Switch { prev, prev_state, .. }) => {
                let view = self.cpus.get(cpu.index()).filter(|view| !view.yielded)?;
                let clock_runs = !view.clock_stands && self.now.saturating_sub(view.charged) < CLOCK_RUNS;
                let uncharged = self.charges && !view.blocked && clock_runs;
                let preempted = prev_state == TaskState::Running || uncharged;
                (Some(prev) == view.current && preempted).then_some(true)
            }
            _ => Some(entry.flag()),
        }
    }

    /// Tracks the flag of the record's CPU, and returns it as it was before. A flag that clears without a switch is
    /// that of a `schedule()` that picked the running task again.
    pub(super) fn follow_flag(&mut self, entry: &Entry, ahead: &Window<'_>) -> FlagBefore {
        let before = FlagBefore { flag: self.flag_of(entry.cpu), full: self.is_full(entry.cpu, ahead) };
        if entry.inferred || matches!(entry.kind(), Some(Kind::Switch { .. })) {
            return before;
        }
        let mut now = entry.flag();
        if before.flag && !now && entry.has_flags() && self.current_is_fair(entry.cpu) {
            now = self.was_set(entry.cpu, entry, ahead.look(LookAhead::Repick));
            if !now {
                self.push(Operation::Repick { cpu: entry.cpu, certain: false });
            }
        }
        self.cpu(entry.cpu).flag = now;
        self.cpu(entry.cpu).full = entry.flags.need_resched() || !entry.flag() && before.full;
        before
    }

    /// The flag will clear without a switch: `schedule()` runs now, if this record is its own charge or if the queue
    /// does not change before the next event. (Otherwise it is not known between which of the changes it runs.) A
    /// change of attributes sets the flag though no event need follow it, so any record may be the last one that shows
    /// it.
    pub(super) fn repick_before_next(&mut self, entry: &Entry, ahead: &Window<'_>) {
        let cpu = entry.cpu;
        if self.cpu(cpu).picks_again && !entry.in_task() {
            return self.pick_again_after_interrupt(entry, ahead);
        }
        // `schedule()` clears the flag before its switch: a switch that shows it shows the previous task's.
        let shown = entry.flag() && !matches!(entry.kind(), Some(Kind::Switch { .. }));
        let view = self.cpu(cpu);
        if !(shown || view.resched) || view.repicked || matches!(entry.what, What::Lost) {
            return;
        }
        let undecided =
            ahead.look(LookAhead::Repick).take_while(|next| next.cpu == cpu || !self.decides_for(cpu, next));
        let mut later = undecided.filter(|next| next.cpu == cpu);
        if !self.current_is_fair(cpu) || later.next().is_some_and(|next| next.is_inside() && next.flag()) {
            return;
        }
        self.cpu(cpu).resched = false;
        let charges = self.cpu(cpu).schedules;
        let (mut changed, mut decided, mut locked) = (false, false, false);
        let mut rest = ahead.look(LookAhead::Repick);
        let own = |next: &&Entry| {
            let own = next.cpu == cpu && next.kind().is_some();
            changed |= !own && self.changes_queue(cpu, next);
            let decides = !own && self.decides_for(cpu, next);
            decided |= decides;
            // A migration is recorded before its destination is locked.
            locked |= decides && !matches!(next.kind(), Some(Kind::Migrate { .. }));
            own
        };
        let Some(next) = rest.by_ref().find(own) else { return };
        let switches = matches!(next.kind(), Some(Kind::Switch { .. }));
        let clears = next.has_flags() && !next.flag() && !self.was_set(cpu, next, rest);
        // It cleared and was set again.
        let set_again = charges && decided && next.flag();
        // `schedule()` holds the lock from its charge to its switch: it is another one that switches.
        let picked = if switches { charges && locked } else { clears && (charges || !changed) || set_again };
        if picked {
            self.push(Operation::Repick { cpu, certain: true });
            self.cpu(cpu).flag = false;
            self.cpu(cpu).repicked = true;
        }
    }
}

impl Reader {
    /// `schedule()` follows the last record of the interrupt; or it preceded the interrupt, which matters if the queue
    /// has changed.
    fn pick_again_after_interrupt(&mut self, entry: &Entry, ahead: &Window<'_>) {
        let cpu = entry.cpu;
        let changes = self.changes_queue(cpu, entry) && !matches!(entry.kind(), Some(Kind::Runtime { .. }));
        self.cpu(cpu).changed |= changes;
        if ahead.look(LookAhead::Repick).find(|next| next.cpu == cpu).is_none_or(Entry::in_task) {
            let view = self.cpu(cpu);
            let certain = !std::mem::take(&mut view.changed);
            (view.picks_again, view.flag, view.repicked) = (false, false, true);
            self.push(Operation::Repick { cpu, certain });
        }
    }
}

/// Whether code on a CPU is about to check whether a task preempts: the return from that is its next record.
fn is_checking(by: CpuId, ahead: &Window<'_>) -> bool {
    let mut own = ahead.look(LookAhead::Outcome).filter(|next| next.cpu == by && !next.is_inside());
    own.next().is_some_and(|next| matches!(next.what, What::Checked))
}

/// Whether a record is that of an interrupt which finds the flag clear.
fn clear_in_interrupt(entry: &Entry) -> bool {
    !entry.in_task() && entry.has_flags() && !entry.flag()
}

/// What a record that `decides` for a CPU, or does not, adds to the causes of its flag.
fn cause(decides: bool, entry: &Entry) -> Cause {
    let prio = match entry.kind() {
        Some(Kind::Wakeup { prio, .. } | Kind::WakeupNew { prio, .. } | Kind::Migrate { prio, .. }) => prio,
        _ => 120,
    };
    match decides {
        false => Cause::Own,
        true if is_fair(prio) => Cause::Later,
        true => Cause::Other,
    }
}

/// Need-resched of a CPU before a record.
#[derive(Clone, Copy, Default)]
pub struct FlagBefore {
    /// It was set, lazy or not.
    pub flag: bool,
    /// TIF_NEED_RESCHED was set.
    pub full: bool,
}

/// A charge in task context may be that of a change that sets the flag.
fn charges(entry: &Entry) -> bool {
    matches!(entry.kind(), Some(Kind::Runtime { .. }))
}
