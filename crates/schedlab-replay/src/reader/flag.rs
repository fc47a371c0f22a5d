//! Need-resched: the outcome of a decision, read from the records that follow it on the CPU.
//!
//! A record's flags are read before its time. A virtual CPU may be stopped in between, and an interrupt may come: such a
//! record shows a flag from before its time.

use schedlab_model::{CpuId, Nanos, USEC};
use schedlab_trace::{Kind, TaskState};

use super::Reader;
use crate::operation::{Flag, Operation};
use crate::trace::{Entry, LookAhead, Window};

/// A CPU whose running task was charged this recently has a clock that advances, unless it was seen not to.
const CLOCK_RUNS: Nanos = 1000 * USEC;

impl Reader {
    /// The flag of a CPU as far as it is known.
    pub(super) fn flag_of(&self, cpu: CpuId) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|cpu| cpu.flag)
    }

    /// The flag around a decision for `cpu`, which the next record there shows.
    pub(super) fn flag_ahead(&self, cpu: CpuId, ahead: &Window<'_>) -> Flag {
        let mut flag = Flag { before: self.flag_of(cpu), after: None, shared: false };
        let mut rest = ahead.look(LookAhead::Outcome);
        while let Some(entry) = rest.next() {
            let decides = self.decides_for(cpu, entry);
            if entry.cpu != cpu {
                flag.shared |= decides;
            } else if !entry.is_inside() {
                flag.after = self.flag_shown(cpu, entry);
                // A `sched_wakeup` shows the flag after its own check.
                flag.shared |= decides && matches!(entry.kind(), Some(Kind::Wakeup { .. }));
                if flag.after == Some(false) && self.was_set(cpu, entry, rest) {
                    (flag.after, flag.shared) = (Some(true), true);
                }
                break;
            }
        }
        flag
    }

    /// Whether the records behind one without the flag show that it was set already: the next one has it, and nothing in
    /// between can have set it.
    fn was_set<'a>(&self, cpu: CpuId, clear: &Entry, rest: impl Iterator<Item = &'a Entry>) -> bool {
        if self.decides_for(cpu, clear) || clear.cpu == cpu && clear.in_task() && charges(clear) {
            return false;
        }
        for entry in rest {
            if self.decides_for(cpu, entry) {
                return false;
            }
            if entry.cpu == cpu && !entry.is_inside() {
                return entry.flag();
            }
        }
        false
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

    /// Need-resched as a record shows it. A switch clears the flag before it is recorded: a task that was switched out runnable
    /// had it set; so had one that was not charged though the clock advances, because `schedule()` skips the update of its clock
    /// only after a check has set the flag.
    fn flag_shown(&self, cpu: CpuId, entry: &Entry) -> Option<bool> {
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

    /// Tracks the flag of the record's CPU, and returns it as it was before. A flag that clears without a switch is that of a
    /// `schedule()` that picked the running task again.
    pub(super) fn follow_flag(&mut self, entry: &Entry, kind: Kind, ahead: &Window<'_>) -> bool {
        let before = self.flag_of(entry.cpu);
        if matches!(kind, Kind::Switch { .. }) {
            return before;
        }
        let mut now = entry.flag();
        if before && !now && entry.has_flags() && self.current_is_fair(entry.cpu) {
            now = self.was_set(entry.cpu, entry, ahead.look(LookAhead::Repick));
            if !now {
                self.push(Operation::Repick { cpu: entry.cpu, certain: false });
            }
        }
        self.cpu(entry.cpu).flag = now;
        before
    }

    /// The flag will clear without a switch: `schedule()` runs now, if this record is its own charge or if the queue does not
    /// change before the next record. (Otherwise it is not known between which of the changes it runs.)
    pub(super) fn repick_before_next(&mut self, entry: &Entry, ahead: &Window<'_>) {
        let cpu = entry.cpu;
        if !self.flag_of(cpu) || !entry.flag() || !self.current_is_fair(cpu) {
            return;
        }
        let charges = self.cpu(cpu).schedules;
        let (mut changed, mut decided) = (false, false);
        let mut rest = ahead.look(LookAhead::Repick);
        let own = |next: &&Entry| {
            let own = next.cpu == cpu && next.kind().is_some();
            changed |= !own && self.changes_queue(cpu, next);
            decided |= !own && self.decides_for(cpu, next);
            own
        };
        let Some(next) = rest.by_ref().find(own) else { return };
        let kept = matches!(next.kind(), Some(Kind::Switch { .. } | Kind::Fork { .. }));
        let clears = next.has_flags() && !next.flag() && !self.was_set(cpu, next, rest);
        // It cleared and was set again.
        let set_again = charges && decided && next.flag();
        if !kept && (clears && (charges || !changed) || set_again) {
            self.push(Operation::Repick { cpu, certain: true });
            self.cpu(cpu).flag = false;
        }
    }
}

/// A charge in task context may be that of a change that sets the flag.
fn charges(entry: &Entry) -> bool {
    matches!(entry.kind(), Some(Kind::Runtime { .. }))
}
