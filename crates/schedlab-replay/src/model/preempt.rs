//! Checks for preemption: by timers, and of a task that has just been queued.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::{Feature, Resched, WakeKind};

use super::Model;
use crate::decision::DecisionKind;
use crate::inputs::InputKind;
use crate::operation::{Flag, Timer};

/// A preemption check (`wakeup_preempt`).
pub(super) struct Check {
    pub kind: DecisionKind,
    pub cpu: CpuId,
    pub pid: Pid,
    /// The runqueue's clock.
    pub now: Nanos,
    /// Need-resched of the model before the task was queued.
    pub before: Resched,
    pub flag: Flag,
}

impl Model {
    /// `sched_tick` or `hrtick`, after its charge. Where either may have fired, only a slice that is used up can be
    /// judged.
    pub(super) fn tick(&mut self, cpu: CpuId, flag: Flag, timer: Timer) {
        let Some(curr) = self.sched.curr(cpu) else { return };
        let contested = self.fair().rq(cpu).h_nr_running > 1;
        let expired = timer == Timer::Hrtick && self.fair().config.has(Feature::Hrtick);
        let now = self.clock(cpu);
        let resched = match expired {
            true => self.sched.follow().hrtick(cpu, now),
            false => self.sched.tick(cpu, now),
        } != Resched::No;
        if contested && timer != Timer::Tick && !resched {
            self.unjudged_timer(cpu, curr, flag);
        } else if contested {
            self.judge_preemption(DecisionKind::Tick, cpu, curr, resched, flag);
        }
        self.sched.clear_resched(cpu);
    }

    /// TIF_NEED_RESCHED is set before a check. `before`: need-resched of the model.
    pub(super) fn is_marked(&self, cpu: CpuId, before: Resched, flag: Flag) -> bool {
        flag.before_full || before == Resched::Full || self.cpus[cpu.index()].preempted == Resched::Full
    }

    /// `wakeup_preempt`, compared with the record, and the model as the record has it from then on. What the model
    /// requests.
    pub(super) fn check_preempt(&mut self, check: &Check) -> Resched {
        let Check { kind, cpu, pid, now, before, flag } = *check;
        let (Some(id), Some(curr)) = (self.task(pid), self.sched.curr(cpu)) else { return Resched::No };
        if curr == id {
            self.sched.clear_resched(cpu);
            return Resched::No;
        }
        let preempted = self.cpus[cpu.index()].preempted;
        let marked = self.is_marked(cpu, before, flag);
        let before = flag.before || before == Resched::Full || preempted != Resched::No;
        let woken = if kind == DecisionKind::Fork { WakeKind::Fork } else { WakeKind::Wakeup { sync: false } };
        let charged = self.fair().entity(curr).exec_start;
        let level = self.sched.wakeup_preempt(cpu, id, woken, marked, now);
        let checked = self.fair().entity(curr).exec_start;
        self.cpus[cpu.index()].checked = (kind == DecisionKind::Fork && checked > charged).then_some((curr, checked));
        let resched = level != Resched::No;
        if !self.sched.on_rq(curr) {
            // `schedule()` is under way, in `sched_balance_newidle`: the flag stays until the switch, and the next task
            // that is attached is not checked.
            let queue = &mut self.cpus[cpu.index()];
            queue.preempted = queue.preempted.max(level);
        } else {
            self.judge_preemption(kind, cpu, id, resched, flag);
            if let (false, Some(after)) = (before || flag.is_shared(), flag.after) {
                self.sched.follow().preemption(cpu, id, after);
                self.tally.inputs.take(InputKind::CheckOutcome);
            }
        }
        self.sched.clear_resched(cpu);
        level
    }
}
