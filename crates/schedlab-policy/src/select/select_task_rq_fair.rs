//! The CPU for a task that wakes up, forks or calls exec (`select_task_rq_fair`, kernel/sched/fair.c).

use schedlab_model::{CpuId, Nanos, TaskId};

use super::select_rule::{SelectRule, Selected};
use super::wake_wide;
use crate::candidate::{Candidate, Role};
use crate::core::types::{Tested, WakeKind};
use crate::fair::class::FairClass;
use crate::version::placement::RecentCpu;

impl FairClass<'_> {
    /// `select_task_rq_fair`.
    pub(crate) fn select_task_rq_fair(
        &mut self,
        task: TaskId,
        kind: WakeKind,
        tested: &mut Tested,
        now: Nanos,
    ) -> Selected {
        let (cpu, rule) = match kind {
            WakeKind::Wakeup { sync } => self.select_for_wakeup(task, sync, tested, now),
            WakeKind::Fork | WakeKind::Exec => self.select_for_fork(task, kind, tested),
        };
        if self.core.is_recording() {
            self.drain_log();
            let views = self.candidate_views(tested.candidates());
            tested.set_views(views);
            (tested.feature, tested.function) = (rule.feature(), rule.function());
        }
        (cpu, rule)
    }

    /// The wakeup half of `select_task_rq_fair`.
    fn select_for_wakeup(&mut self, task: TaskId, sync: bool, tested: &mut Tested, now: Nanos) -> Selected {
        let (this, prev) = (tested.from, self.core.tasks[task.index()].cpu);
        let flips = self.record_wakee(task, this, now);
        if tested.here && self.core.rules.wakes_here && self.core.allows(task, this) {
            tested.consider(|| Candidate::of("select_task_rq_fair", this, Role::Waker, "WF_CURRENT_CPU: chosen"));
            return (this, SelectRule::CurrentCpu);
        }
        if self.core.asym.is_some() {
            if let Some(found) = self.find_energy_efficient_cpu(task, prev, tested) {
                return found;
            }
        }
        let want_affine = self.wants_affine(task, this, flips, tested);
        // Without a domain that spans both there is no affine target, and no domain carries SD_BALANCE_WAKE.
        let affine = want_affine && this != prev;
        let (target, rule) = match affine.then(|| self.core.domains.common_level(this, prev)).flatten() {
            Some(level) => self.wake_affine(task, this, prev, sync, level, tested),
            None => (prev, SelectRule::Previous),
        };
        let found = self.select_idle_sibling(task, prev, target, tested, now);
        if found.is_none() {
            let role = if target == prev { Role::Previous } else { Role::Target };
            tested.consider(|| Candidate::of("select_idle_sibling", target, role, "no idle CPU found: chosen"));
        }
        let found = found.unwrap_or((target, rule));
        if want_affine && self.core.rules.recent_cpu == RecentCpu::WhereItWoke {
            if let Some(waker) = self.core.curr(this) {
                self.core.tasks[waker.index()].recent_used_cpu = this;
            }
        }
        found
    }

    /// The fork and exec half of `select_task_rq_fair`: from the highest domain of the searching CPU downwards.
    fn select_for_fork(&mut self, task: TaskId, kind: WakeKind, tested: &mut Tested) -> Selected {
        let (this, prev) = (tested.from, self.core.tasks[task.index()].cpu);
        if self.core.domains.depth(this) == 0 {
            return (prev, SelectRule::NoDomain);
        }
        (self.sched_balance_find_dst_cpu(task, kind, this, prev, tested), SelectRule::IdlestGroup)
    }

    /// `record_wakee` for the task that runs on the waking CPU, which may be its idle task. Returns its flips.
    fn record_wakee(&mut self, task: TaskId, this: CpuId, now: Nanos) -> u32 {
        let (jiffies, hz) = (self.core.jiffies(now), u64::from(self.fair.config.hz()));
        let birth = self.core.tasks[task.index()].birth;
        let waker = match self.core.curr(this) {
            Some(curr) => &mut self.core.tasks[curr.index()].wakee,
            None => &mut self.core.idle_wakees[this.index()],
        };
        wake_wide::record_wakee(waker, birth, jiffies, hz);
        waker.flips
    }

    /// Whether the waker's CPU may become the target: the task may run there, and `wake_wide` does not forbid it.
    /// `waker`: the flips of the waker.
    fn wants_affine(&self, task: TaskId, this: CpuId, waker: u32, tested: &mut Tested) -> bool {
        let task = &self.core.tasks[task.index()];
        if !task.allows(this) {
            tested.consider(|| {
                Candidate::of("select_task_rq_fair", this, Role::Waker, "not allowed there: no candidate")
            });
            return false;
        }
        let wakee = task.wakee.flips;
        let llc_size = self.core.idle.llc(self.core.idle.llc_of(this)).cpus.len() as u32;
        let wide = wake_wide::wake_wide(waker, wakee, llc_size);
        if wide {
            let numbers = [("waker's flips", i64::from(waker)), ("wakee's flips", i64::from(wakee))];
            tested.consider(|| {
                Candidate::of("wake_wide", this, Role::Waker, "too many wakees: no candidate").with(numbers)
            });
        }
        !wide
    }
}
