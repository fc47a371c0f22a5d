//! The need-resched flag: the outcome of a decision, read from the records that follow it on the CPU.
//!
//! A record's flags are read before its time is taken. A virtual CPU may be stopped in between, and an interrupt may
//! come: such a record shows a flag from before its time.

use schedlab_model::{CpuId, Nanos, USEC};
use schedlab_trace::{Kind, TaskState};

use super::Reading;
use crate::operation::{Flag, Operation};
use crate::step::Step;
use crate::window::Window;

/// A CPU whose running task was charged this recently has a clock that goes on, unless it was seen not to.
const CLOCK_RUNS: Nanos = 1000 * USEC;

impl Reading {
    /// The flag of a CPU as far as it is known.
    pub(super) fn flag_of(&self, cpu: CpuId) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|cpu| cpu.flag)
    }

    /// The flag around a decision on `cpu` that the next record there shows.
    pub(super) fn flag_ahead(&self, cpu: CpuId, ahead: &Window<'_>) -> Flag {
        let mut flag = Flag { before: self.flag_of(cpu), after: None, shared: false };
        let mut rest = ahead.ahead();
        while let Some(step) = rest.next() {
            let decides = self.decides_for(cpu, step);
            if step.cpu != cpu {
                flag.shared |= decides;
            } else if !step.is_inside() {
                flag.after = self.flag_shown(cpu, step);
                // It shows the flag after its own decision.
                flag.shared |= decides && matches!(step.kind(), Some(Kind::Wakeup { .. }));
                if flag.after == Some(false) && self.was_set(cpu, step, rest) {
                    (flag.after, flag.shared) = (Some(true), true);
                }
                break;
            }
        }
        flag
    }

    /// Whether the records behind one that shows no flag show that it was set already: the next one has it, and nothing
    /// in between could have set it.
    fn was_set<'a>(&self, cpu: CpuId, clear: &Step, rest: impl Iterator<Item = &'a Step>) -> bool {
        if self.decides_for(cpu, clear) || clear.cpu == cpu && clear.in_task() && charges(clear) {
            return false;
        }
        for step in rest {
            if self.decides_for(cpu, step) {
                return false;
            }
            if step.cpu == cpu && !step.is_inside() {
                return step.flag();
            }
        }
        false
    }

    /// Whether a record tells of a decision for the CPU, or of one about to be made.
    fn decides_for(&self, cpu: CpuId, step: &Step) -> bool {
        match step.kind() {
            Some(Kind::Wakeup { target_cpu: to, .. } | Kind::WakeupNew { target_cpu: to, .. }) => to == cpu,
            Some(Kind::Migrate { dest_cpu, .. }) => dest_cpu == cpu,
            Some(Kind::Runtime { pid, .. }) => Some(pid) == self.current(cpu) && (step.cpu != cpu || step.in_irq()),
            _ => false,
        }
    }

    /// Whether a record tells of a change to the CPU's queue.
    fn touches(&self, cpu: CpuId, step: &Step) -> bool {
        self.decides_for(cpu, step) || matches!(step.kind(), Some(Kind::Migrate { orig_cpu, .. }) if orig_cpu == cpu)
    }

    /// Need-resched as a record shows it. A switch clears the flag before it is recorded: a task that left while runnable
    /// was told to; so was one that left without being charged though the clock goes on, as only a flag set by a check
    /// makes `schedule()` skip its clock.
    fn flag_shown(&self, cpu: CpuId, step: &Step) -> Option<bool> {
        match step.kind() {
            _ if !step.has_flags() => None,
            Some(Kind::Switch { prev, prev_state, .. }) => {
                let view = self.cpus.get(cpu.index()).filter(|view| !view.yielded)?;
                let clock_runs = !view.stands && self.now.saturating_sub(view.charged) < CLOCK_RUNS;
                let uncharged = self.charges && !view.blocked && clock_runs;
                let told = prev_state == TaskState::Running || uncharged;
                (Some(prev) == view.current && told).then_some(true)
            }
            _ => Some(step.flag()),
        }
    }

    /// Keeps up with the flag of the record's CPU. A flag that clears without a switch was a `schedule()` that chose the
    /// running task again. Returns the flag as it was.
    pub(super) fn follow_flag(&mut self, step: &Step, kind: Kind, ahead: &Window<'_>) -> bool {
        let before = self.flag_of(step.cpu);
        if matches!(kind, Kind::Switch { .. }) {
            return before;
        }
        let mut now = step.flag();
        if before && !now && step.has_flags() && self.current_is_fair(step.cpu) {
            now = self.was_set(step.cpu, step, ahead.ahead());
            if !now {
                self.push(Operation::Repick { cpu: step.cpu, sure: false });
            }
        }
        self.cpu(step.cpu).flag = now;
        before
    }

    /// The flag will clear without a switch: `schedule()` runs now, if this record is its own charge or if the queue
    /// stays as it is until the next. (Else nobody knows before which of the changes it runs.)
    pub(super) fn repick_before_next(&mut self, step: &Step, ahead: &Window<'_>) {
        let cpu = step.cpu;
        if !self.flag_of(cpu) || !step.flag() || !self.current_is_fair(cpu) {
            return;
        }
        let charges = self.cpu(cpu).schedules;
        let (mut touched, mut decided) = (false, false);
        let mut rest = ahead.ahead();
        let own = |next: &&Step| {
            let own = next.cpu == cpu && next.kind().is_some();
            touched |= !own && self.touches(cpu, next);
            decided |= !own && self.decides_for(cpu, next);
            own
        };
        let Some(next) = rest.by_ref().find(own) else { return };
        let kept = matches!(next.kind(), Some(Kind::Switch { .. } | Kind::Fork { .. }));
        let clears = next.has_flags() && !next.flag() && !self.was_set(cpu, next, rest);
        // It cleared and was set again.
        let set_again = charges && decided && next.flag();
        if !kept && (clears && (charges || !touched) || set_again) {
            self.push(Operation::Repick { cpu, sure: true });
            self.cpu(cpu).flag = false;
        }
    }
}

/// A charge by the task's own code may be that of a change which sets the flag.
fn charges(step: &Step) -> bool {
    matches!(step.kind(), Some(Kind::Runtime { .. }))
}
