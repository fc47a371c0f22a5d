//! An idle CPU that shares the target's cache (`select_idle_sibling`, kernel/sched/fair.c 5.2 to 7.2).
//!
//! The candidates in their order: target; prev if it shares the cache; prev if a kernel thread of that CPU wakes the
//! task there, as after IO (5.6 and later); the recently used CPU; with SMT and without the idle-core hint, a sibling
//! of prev; then the search of the cache ([`super::select_idle_cpu`]; up to 5.11
//! [`super::select_idle_cpu_up_to_5_11`]). From 6.7 on, on a machine with clusters, prev and the recently used CPU are
//! taken at once only in the target's cluster; in another one they come after the search. Where CPUs differ in
//! capacity, a candidate must have enough of it, and the search is that of [`crate::asym`].

use schedlab_model::{rarely, CpuId, Nanos, TaskId};

use super::select_idle_cpu::{searched, select_idle_smt};
use super::select_rule::{SelectRule, Selected};
use crate::candidate::{Candidate, Role};
use crate::core::types::Tested;
use crate::fair::class::FairClass;
use crate::version::placement::{IdleSearch, KthreadStacks, RecentCpu, SchedIdleCpu};
use crate::FairPolicy;

impl FairClass<'_> {
    /// `select_idle_sibling`; `None`: no idle CPU was found, and the target is kept.
    pub(super) fn select_idle_sibling(
        &mut self,
        task: TaskId,
        prev: CpuId,
        target: CpuId,
        tested: &mut Tested,
        now: Nanos,
    ) -> Option<Selected> {
        tested.scans.sibling = true;
        if self.core.asym.is_some() {
            self.fair.sync_entity_load_avg(task);
        }
        let role = if target == prev { Role::Previous } else { Role::Target };
        if self.is_candidate_idle(task, target, role, target, tested) {
            return Some((target, SelectRule::TargetIdle));
        }
        let mut spare = None;
        if prev != target && self.is_candidate_idle(task, prev, Role::Previous, target, tested) {
            if self.is_near(prev, target) {
                return Some((prev, SelectRule::PrevIdle));
            }
            spare = Some((prev, SelectRule::PrevIdleInOtherCluster));
        }
        if self.stacks_with_kthread(task, prev, tested) {
            return Some((prev, SelectRule::WithKthread));
        }
        if let Some(recent) = self.recently_used(task, prev, target, tested) {
            if self.is_near(recent, target) {
                return Some((recent, SelectRule::RecentlyUsedIdle));
            }
            spare = spare.or(Some((recent, SelectRule::RecentlyUsedIdleInOtherCluster)));
        }
        if let Some(level) = self.core.domains.asym_level(target) {
            return self.select_idle_capacity(task, target, level, tested);
        }
        let found = match self.core.rules.idle_search {
            IdleSearch::OnePass => self.search_llc(task, prev, target, tested, now),
            IdleSearch::ThreePasses { stops_early } => self.search_in_passes(task, target, stops_early, tested, now),
        };
        if let (None, Some((cpu, _))) = (found, spare) {
            let role = if cpu == prev { Role::Previous } else { Role::RecentlyUsed };
            tested.consider(|| {
                Candidate::of("select_idle_sibling", cpu, role, "idle in another cluster: chosen after all")
            });
        }
        found.or(spare)
    }

    /// Whether an idle CPU of the target's cache is taken before the search: in the target's cluster, where clusters
    /// are searched first (`cpus_share_resources`).
    #[inline]
    fn is_near(&self, cpu: CpuId, target: CpuId) -> bool {
        !self.core.scans_clusters() || self.core.topology.share_resources(cpu, target)
    }

    /// Whether a per-CPU kthread wakes the task on the CPU that both were on, and no other task is there. The wakee has
    /// queued the work that the kthread has done, so the kthread is about to sleep. Up to 5.15 the task that an
    /// interrupt stops counts as the waker, also the idle task.
    fn stacks_with_kthread(&self, task: TaskId, prev: CpuId, tested: &mut Tested) -> bool {
        if self.core.rules.kthread_stacks == KthreadStacks::Never || tested.from != prev {
            return false;
        }
        let by_task = tested.in_task || self.core.rules.kthread_stacks == KthreadStacks::AlsoInterrupted;
        let kthread = self.core.curr(prev).map_or(!tested.in_task, |waker| self.core.is_per_cpu_kthread(waker));
        let others = self.core.nr_running(prev);
        let stacks = by_task && kthread && others <= 1 && self.asym_fits_cpu(task, prev);
        if stacks {
            tested.consider(|| {
                let numbers = [("tasks on the CPU", i64::from(others)), ("", 0)];
                let answer = "its per-CPU kthread wakes the task: chosen";
                Candidate::of("select_idle_sibling", prev, Role::Previous, answer).with(numbers)
            });
        }
        stacks
    }

    /// The task's `recent_used_cpu` if it is idle. Prev replaces it, up to 5.14 only in that case.
    fn recently_used(&mut self, task: TaskId, prev: CpuId, target: CpuId, tested: &mut Tested) -> Option<CpuId> {
        let recent = self.core.tasks[task.index()].recent_used_cpu;
        let found = recent != prev
            && recent != target
            && self.is_candidate_idle(task, recent, Role::RecentlyUsed, target, tested);
        if found || self.core.rules.recent_cpu == RecentCpu::BeforePrev {
            self.core.tasks[task.index()].recent_used_cpu = prev;
        }
        found.then_some(recent)
    }

    /// Whether a CPU is in the target's cache, allowed and usable. Target and prev are allowed already.
    fn is_candidate_idle(&self, task: TaskId, cpu: CpuId, role: Role, target: CpuId, tested: &mut Tested) -> bool {
        let allowed = self.is_candidate(task, cpu, role, target);
        if allowed {
            tested.add(&self.core.topology, cpu);
        }
        let taken = allowed && self.choose_idle_cpu(task, cpu) && self.asym_fits_cpu(task, cpu);
        if rarely(tested.is_recording()) {
            tested.push(self.candidate(task, cpu, role, target, taken));
        }
        taken
    }

    #[inline(always)]
    fn is_candidate(&self, task: TaskId, cpu: CpuId, role: Role, target: CpuId) -> bool {
        let reachable = cpu == target || self.core.topology.share_llc(cpu, target);
        reachable && (role != Role::RecentlyUsed || self.core.tasks[task.index()].allows(cpu))
    }

    #[cold]
    #[inline(never)]
    fn candidate(&self, task: TaskId, cpu: CpuId, role: Role, target: CpuId, taken: bool) -> Candidate {
        let reachable = cpu == target || self.core.topology.share_llc(cpu, target);
        let allowed = self.is_candidate(task, cpu, role, target);
        let answer = match () {
            () if taken && !self.is_near(cpu, target) => "idle, but not in the target's cluster",
            () if taken => "idle: chosen",
            () if allowed && self.choose_idle_cpu(task, cpu) => "idle, but too small for the task",
            () if !reachable => "not in the target's cache",
            () if !allowed => "not allowed there",
            () if self.core.is_preempted_idle(cpu) => "idle, but its vCPU reads as preempted (available_idle_cpu)",
            () => "not idle",
        };
        Candidate::of("select_idle_sibling", cpu, role, answer)
    }

    /// `choose_idle_cpu`: idle, or, depending on the version and the wakee, running SCHED_IDLE tasks only.
    pub(crate) fn choose_idle_cpu(&self, task: TaskId, cpu: CpuId) -> bool {
        if self.wants_idle_only(task) {
            self.core.idle.is_idle(cpu)
        } else {
            self.core.idle.is_usable(cpu)
        }
    }

    pub(super) fn wants_idle_only(&self, task: TaskId) -> bool {
        self.core.rules.sched_idle_cpu == SchedIdleCpu::CountsForOthers
            && self.fair.entity(task).policy == FairPolicy::Idle
    }

    /// The search of the target's cache: a thread of prev's core, then `select_idle_cpu`.
    fn search_llc(
        &mut self,
        task: TaskId,
        prev: CpuId,
        target: CpuId,
        tested: &mut Tested,
        now: Nanos,
    ) -> Option<Selected> {
        let llc = self.core.idle.llc_of(target);
        if self.core.idle.llc(llc).cpus.len() == 1 {
            return None;
        }
        let has_idle_core = self.core.idle.smt_active() && self.core.idle.llc(llc).has_idle_cores;
        if self.core.idle.smt_active() && !has_idle_core && self.core.topology.share_llc(prev, target) {
            let (search, before) = (self.search(task, target), tested.counts);
            let found = select_idle_smt(&self.core.idle, &self.core.topology, &search, prev, tested);
            tested.scans.smt = tested.since(before);
            let siblings = self.core.idle.threads(prev);
            tested.consider(|| searched("select_idle_smt", Role::Siblings, found, siblings));
            if let Some(cpu) = found {
                return Some((cpu, SelectRule::SiblingOfPrev));
            }
        }
        self.select_idle_cpu(task, target, has_idle_core, tested, now)
    }
}
