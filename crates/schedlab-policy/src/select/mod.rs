//! Where a task goes when it wakes, forks or execs (`select_task_rq`, kernel/sched/core.c and fair.c).
//!
//! Read in every version of [`rules`]: wakeups take the fast path ([`wake_affine`], then [`idle_sibling`]), fork and exec the slow
//! one ([`idlest`]). Left out: energy-aware placement, asymmetric capacities, WF_CURRENT_CPU, per-CPU kthreads as
//! wakers, migration-disabled tasks.

mod find_idlest_group_by_load;
pub(crate) mod idle_map;
mod looks;
pub(crate) mod rules;
mod sched_balance_find_dst_cpu;
pub(crate) mod select_idle_cpu;
mod select_idle_cpu_up_to_5_11;
mod select_idle_sibling;
mod wake_affine;
pub(crate) mod wake_wide;

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::decision::{Class, Decision, Verdict, FALLBACK, ONLY_ALLOWED, STAYS};
use crate::features::Feature;
use crate::looked::Step;
use crate::sched::types::{Selection, Tested, WakeKind};
use crate::select::rules::{RecentCpu, RemoteQueue};
use crate::Sched;

impl Sched {
    /// `select_task_rq`: where `task` goes. `waker_cpu` is the CPU that executes the call.
    pub fn select_task_rq(&mut self, task: TaskId, waker_cpu: CpuId, kind: WakeKind, now: Nanos) -> Selection {
        let mut tested = if self.looks.is_some() { Tested::recording(waker_cpu) } else { Tested::new(waker_cpu) };
        let allowed = self.tasks[task.index()].affinity.as_ref();
        let (cpu, rule) = match allowed.filter(|mask| mask.count() == 1).and_then(|mask| mask.lowest()) {
            Some(only) => (only, ONLY_ALLOWED),
            None if self.rt.policy(task).is_some() => self.select_task_rq_rt(task, waker_cpu),
            None => match kind {
                WakeKind::Wakeup { sync } => self.select_for_wakeup(task, sync, &mut tested, now),
                WakeKind::Fork | WakeKind::Exec => self.select_for_fork(task, kind, &mut tested),
            },
        };
        let mut selection = Selection { cpu, tested: tested.counts, rule };
        if !self.tasks[task.index()].allows(cpu) {
            selection.cpu = self.select_fallback_rq(task);
            selection.rule = FALLBACK;
        }
        if self.fair.decisions.is_some() {
            self.explain_placement(task, waker_cpu, &selection, now);
            if let Some(steps) = tested.into_steps() {
                self.keep_looks(&steps);
            }
        }
        selection
    }

    #[cold]
    fn explain_placement(&mut self, task: TaskId, waker_cpu: CpuId, selection: &Selection, now: Nanos) {
        let prev = self.tasks[task.index()].cpu;
        let feature = match selection.rule {
            "wake_affine: lighter" | "wake_affine: prev" => Some(Feature::WaWeight),
            rule if rule.starts_with("wake_affine") => Some(Feature::WaIdle),
            _ => None,
        };
        let compared = [("last CPU", i64::from(prev.0)), ("waker's CPU", i64::from(waker_cpu.0))];
        let verdict = Verdict::Place(task, selection.cpu);
        let class = if self.rt.policy(task).is_some() { Class::RealTime } else { Class::Fair };
        let decision = Decision::outside(now, selection.cpu, verdict, selection.rule, feature, compared);
        self.fair.record(Decision { class, ..decision });
    }

    /// The wakeup half of `select_task_rq_fair`.
    fn select_for_wakeup(
        &mut self,
        task: TaskId,
        sync: bool,
        tested: &mut Tested,
        now: Nanos,
    ) -> (CpuId, &'static str) {
        let (this, prev) = (tested.from, self.tasks[task.index()].cpu);
        self.record_wakee(task, this, now);
        let want_affine = self.wants_affine(task, this, tested);
        // Without a domain that spans both there is no affine target, and no domain carries SD_BALANCE_WAKE.
        let (target, rule) = match self.domains.common_level(&self.topology, this, prev) {
            Some(level) if want_affine && this != prev => self.wake_affine(task, (this, prev), sync, level, tested),
            _ => (prev, STAYS),
        };
        let found = self.select_idle_sibling(task, prev, target, tested, now);
        if found.is_none() {
            let which = if target == prev { "previous" } else { "target" };
            tested.step(|| Step::of("select_idle_sibling", target, which, "no idle CPU found: taken"));
        }
        let found = found.unwrap_or((target, rule));
        if want_affine && self.rules.recent_cpu == RecentCpu::WhereItWoke {
            if let Some(waker) = self.curr(this) {
                self.tasks[waker.index()].recent_used_cpu = this;
            }
        }
        found
    }

    /// The fork and exec half of `select_task_rq_fair`: the highest domain of the searching CPU, downwards.
    fn select_for_fork(&mut self, task: TaskId, kind: WakeKind, tested: &mut Tested) -> (CpuId, &'static str) {
        let (this, prev) = (tested.from, self.tasks[task.index()].cpu);
        if self.domains.depth(this) == 0 {
            return (prev, "no domain");
        }
        (self.sched_balance_find_dst_cpu(task, kind, (this, prev), tested), "idlest group")
    }

    /// `record_wakee` for whatever runs on the waking CPU, its idle task included.
    fn record_wakee(&mut self, task: TaskId, this: CpuId, now: Nanos) {
        let (jiffies, hz) = (self.jiffies(now), u64::from(self.fair.config.hz));
        let birth = self.tasks[task.index()].birth;
        let waker = match self.curr(this) {
            Some(curr) => &mut self.tasks[curr.index()].wakee,
            None => &mut self.idle_wakees[this.index()],
        };
        wake_wide::record_wakee(waker, birth, jiffies, hz);
    }

    /// Whether the waker's CPU may become the target: the task may run there, and `wake_wide` does not forbid it.
    fn wants_affine(&self, task: TaskId, this: CpuId, tested: &mut Tested) -> bool {
        if !self.tasks[task.index()].allows(this) {
            tested.step(|| Step::of("select_task_rq_fair", this, "waker's", "not allowed there: no candidate"));
            return false;
        }
        let waker = match self.curr(this) {
            Some(curr) => self.tasks[curr.index()].wakee.flips,
            None => self.idle_wakees[this.index()].flips,
        };
        let wakee = self.tasks[task.index()].wakee.flips;
        let llc_size = self.idle.llc(self.idle.llc_of(this)).cpus.len() as u32;
        let wide = wake_wide::wake_wide(waker, wakee, llc_size);
        if wide {
            let numbers = [("waker's flips", i64::from(waker)), ("wakee's flips", i64::from(wakee))];
            tested.step(|| Step::of("wake_wide", this, "waker's", "too many wakees: no candidate").with(numbers));
        }
        !wide
    }

    /// `select_fallback_rq`: an allowed CPU of the last CPU's node, else any allowed one.
    fn select_fallback_rq(&self, task: TaskId) -> CpuId {
        let task = &self.tasks[task.index()];
        let Some(mask) = &task.affinity else { return task.cpu };
        let near = mask.and(self.topology.node(task.cpu)).lowest();
        near.or_else(|| mask.lowest()).unwrap_or(task.cpu)
    }

    /// `ttwu_queue_cond`: whether the wakeup goes through the target's wakelist (and an IPI), so that the target
    /// enqueues it itself. `leaving`: the task has not left that CPU yet (`p->on_cpu`), which is why none was selected.
    #[must_use]
    pub fn ttwu_queue_cond(&self, task: TaskId, waker_cpu: CpuId, target: CpuId, leaving: bool) -> bool {
        if !self.fair.config.has(Feature::TtwuQueue) || !self.tasks[task.index()].allows(target) {
            return false;
        }
        let (other_cache, others) = (!self.topology.share_llc(waker_cpu, target), self.rqs[target.index()].nr_running);
        match self.rules.remote_queue {
            RemoteQueue::OtherCache => other_cache && !leaving,
            RemoteQueue::OrLeaving => other_cache || (leaving && others <= 1),
            RemoteQueue::OrEmpty => other_cache || (target != waker_cpu && others == 0),
        }
    }
}
