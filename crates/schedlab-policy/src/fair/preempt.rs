//! Whether the running task must go: at a wakeup (`check_preempt_wakeup`) and at the tick (`task_tick_fair`).
//!
//! CFS 6.1.192: a wakee preempts when it is more than wakeup_granularity (in its virtual time) behind the running
//! entity; the tick preempts when the ideal slice is used up, or when the leftmost is a whole slice behind.
//! EEVDF 6.12.0: a wakee preempts when it would be picked now; a shorter slice first breaks the runner's protection
//! (PREEMPT_SHORT). Its tick only accounts: slice ends are found there.

use super::entity::EntityId;
use super::explain::Compared;
use super::{Fair, WakeFlags};
use crate::decision::Verdict;
use crate::features::Feature;
use crate::weight::calc_delta_fair;
use crate::{FairPolicy, IdleRule, Resched};
use schedlab_model::{CpuId, Nanos, TaskId};

impl Fair {
    /// `check_preempt_wakeup`: whether the task just queued on the CPU preempts the current one. `need_resched`: the
    /// engine knows TIF_NEED_RESCHED to be set for another reason. An idle CPU always reschedules.
    #[inline]
    pub fn wakeup_preempt(
        &mut self,
        cpu: CpuId,
        wakee: TaskId,
        flags: WakeFlags,
        need_resched: bool,
        now: Nanos,
    ) -> Resched {
        let (rq, id) = (cpu.index(), EntityId::of(wakee));
        let curr = self.rqs[rq].curr;
        if curr.is_nil() {
            self.resched_curr(rq);
        } else if curr != id {
            let marked = self.nominate(rq, id, flags);
            if !need_resched && self.rqs[rq].resched != Resched::Full {
                self.check_preempt_wakeup(rq, curr, id, marked, now);
            }
        }
        self.rqs[rq].resched
    }

    /// `task_tick_fair` for the current task of the CPU.
    #[inline]
    pub fn task_tick(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        let rq = cpu.index();
        let curr = self.rqs[rq].curr;
        if curr.is_some() {
            self.update_curr_rq(rq, now);
            if !self.eevdf && self.rqs[rq].nr_running > 1 {
                self.check_preempt_tick(rq, curr, now);
            }
        }
        self.rqs[rq].resched
    }

    /// NEXT_BUDDY: the wakee becomes the next buddy whatever follows.
    #[inline]
    fn nominate(&mut self, rq: usize, wakee: EntityId, flags: WakeFlags) -> bool {
        let nominates = self.config.has(Feature::NextBuddy) && !flags.fork && (self.eevdf || self.many_running(rq));
        if nominates {
            self.set_next_buddy(wakee);
        }
        nominates
    }

    /// CFS cares for caches only when a period is full (`scale` in the kernel).
    #[inline]
    fn many_running(&self, rq: usize) -> bool {
        u64::from(self.rqs[rq].nr_running) >= self.config.knobs.nr_latency
    }

    #[inline]
    fn check_preempt_wakeup(&mut self, rq: usize, curr: EntityId, wakee: EntityId, marked: bool, now: Nanos) {
        let preempts = match self.preempts_by_kind(curr, wakee) {
            ByKind::Preempts(rule) => {
                self.explain_wakeup(rq, wakee, true, rule, None, now);
                true
            }
            ByKind::Keeps(rule, feature) => {
                self.explain_wakeup(rq, wakee, false, rule, feature, now);
                false
            }
            ByKind::Undecided => {
                self.update_curr_rq(rq, now);
                if self.eevdf {
                    self.wakee_is_picked(rq, curr, wakee, now)
                } else {
                    self.wakee_is_far_behind(rq, curr, wakee, marked, now)
                }
            }
        };
        if preempts {
            self.resched_curr(rq);
            let cares = !self.eevdf && self.config.has(Feature::LastBuddy) && self.many_running(rq);
            if cares && self.se(curr).is_task() {
                self.set_last_buddy(curr);
            }
        }
    }

    /// What follows from policies alone, in the order of the kernel's tests.
    #[inline]
    fn preempts_by_kind(&self, curr: EntityId, wakee: EntityId) -> ByKind {
        let (curr, wakee) = (self.se(curr), self.se(wakee));
        let both_normal = curr.policy == FairPolicy::Normal && wakee.policy == FairPolicy::Normal;
        if both_normal && self.config.has(Feature::WakeupPreemption) {
            return ByKind::Undecided;
        }
        let (off, not_normal) = (!self.config.has(Feature::WakeupPreemption), wakee.policy != FairPolicy::Normal);
        let entity_level = self.rules.idle != IdleRule::Task;
        let idle_curr = curr.is_idle() && !wakee.is_idle();
        if self.rules.idle != IdleRule::Entity {
            if idle_curr {
                return ByKind::Preempts("current task is SCHED_IDLE");
            }
            if not_normal {
                return ByKind::Keeps("only SCHED_NORMAL preempts", None);
            }
        }
        if off {
            return ByKind::Keeps("wakeup preemption is off", Some(Feature::WakeupPreemption));
        }
        if entity_level && idle_curr {
            return ByKind::Preempts("current entity is idle");
        }
        if entity_level && curr.is_idle() != wakee.is_idle() {
            return ByKind::Keeps("woken entity is idle", None);
        }
        if not_normal {
            return ByKind::Keeps("only SCHED_NORMAL preempts", None);
        }
        ByKind::Undecided
    }

    /// CFS's comparison, after accounting.
    fn wakee_is_far_behind(
        &mut self,
        rq: usize,
        curr: EntityId,
        wakee: EntityId,
        already_marked: bool,
        now: Nanos,
    ) -> bool {
        let preempts = self.wakeup_preempt_entity(curr, wakee) == 1;
        if preempts && !already_marked {
            self.set_next_buddy(wakee);
        }
        if self.decisions.is_some() {
            let lead = self.se(curr).vruntime.since(self.se(wakee).vruntime);
            let compared = [("lead of the wakee", lead), ("granularity", self.wakeup_gran(wakee) as i64)];
            self.explain_wakeup_numbers(rq, wakee, preempts, "lead against wakeup granularity", None, compared, now);
        }
        preempts
    }

    /// EEVDF's comparison, after accounting.
    fn wakee_is_picked(&mut self, rq: usize, curr: EntityId, wakee: EntityId, now: Nanos) -> bool {
        let short = self.do_preempt_short(rq, curr, wakee);
        if short && self.se(curr).marked() {
            self.se_mut(curr).vlag = self.se(curr).vlag.wrapping_add(1);
        }
        let (picked, rule) = self.pick_eevdf(rq);
        if self.decisions.is_some() {
            let compared = self.deadlines(rq, ("wakee deadline", wakee), ("picked deadline", picked));
            let feature = short.then_some(Feature::PreemptShort);
            self.explain_wakeup_numbers(rq, wakee, picked == wakee, rule, feature, compared, now);
        }
        picked == wakee
    }

    /// `do_preempt_short`: the wakee's slice is shorter, and it deserves the CPU by deadline or eligibility.
    #[inline]
    fn do_preempt_short(&self, rq: usize, curr: EntityId, wakee: EntityId) -> bool {
        let (current, woken) = (self.se(curr), self.se(wakee));
        self.config.has(Feature::PreemptShort)
            && woken.slice < current.slice
            && self.entity_eligible(rq, wakee)
            && (woken.deadline.before(current.deadline) || !self.entity_eligible(rq, curr))
    }

    /// `wakeup_preempt_entity`: 1 if `se` is more than its granularity behind `curr`, 0 if behind, -1 if not.
    #[inline]
    pub(super) fn wakeup_preempt_entity(&self, curr: EntityId, se: EntityId) -> i32 {
        let lead = self.se(curr).vruntime.since(self.se(se).vruntime);
        if lead <= 0 {
            -1
        } else {
            i32::from(lead > self.wakeup_gran(se) as i64)
        }
    }

    /// `wakeup_gran`.
    #[inline]
    fn wakeup_gran(&self, se: EntityId) -> u64 {
        calc_delta_fair(self.config.knobs.wakeup_granularity, self.se(se).load)
    }

    /// `check_preempt_tick`, on a queue where others wait.
    fn check_preempt_tick(&mut self, rq: usize, curr: EntityId, now: Nanos) {
        let mut slice = self.sched_slice(rq, curr);
        if self.rules.tick_slice_cap {
            slice = slice.min(self.config.knobs.latency);
        }
        let se = self.se(curr);
        let (ran, vruntime) = (se.sum_exec_runtime - se.prev_sum_exec_runtime, se.vruntime);
        if ran > slice {
            self.resched_curr(rq);
            // It must not be picked again as somebody's buddy.
            self.rqs[rq].clear_buddies(curr);
            self.explain_tick(rq, curr, "slice used up", [("ran", ran as i64), ("slice", slice as i64)], now);
            return;
        }
        let first = self.rqs[rq].tree.first();
        if ran < self.config.knobs.min_granularity || first.is_nil() {
            return;
        }
        let lead = vruntime.since(self.se(first).vruntime);
        if lead >= 0 && lead as u64 > slice {
            self.resched_curr(rq);
            let numbers = [("lead of the leftmost", lead), ("slice", slice as i64)];
            self.explain_tick(rq, curr, "leftmost is a slice behind", numbers, now);
        }
    }

    #[inline]
    fn explain_tick(&mut self, rq: usize, curr: EntityId, rule: &'static str, compared: Compared, now: Nanos) {
        if self.decisions.is_some() {
            self.explain(rq, now, Verdict::Expire(curr.task_id()), rule, None, compared);
        }
    }

    #[inline]
    fn explain_wakeup(
        &mut self,
        rq: usize,
        wakee: EntityId,
        preempts: bool,
        rule: &'static str,
        feature: Option<Feature>,
        now: Nanos,
    ) {
        if self.decisions.is_some() {
            let compared = self.vruntimes(rq, ("wakee vruntime", wakee), ("current vruntime", self.rqs[rq].curr));
            self.explain_wakeup_numbers(rq, wakee, preempts, rule, feature, compared, now);
        }
    }

    #[cold]
    #[allow(clippy::too_many_arguments)]
    fn explain_wakeup_numbers(
        &mut self,
        rq: usize,
        wakee: EntityId,
        preempts: bool,
        rule: &'static str,
        feature: Option<Feature>,
        compared: Compared,
        now: Nanos,
    ) {
        let task = wakee.task_id();
        let verdict = if preempts { Verdict::Preempt(task) } else { Verdict::Keep(task) };
        self.explain(rq, now, verdict, rule, feature, compared);
    }
}

/// What the policies of the two tasks decide.
enum ByKind {
    Preempts(&'static str),
    Keeps(&'static str, Option<Feature>),
    Undecided,
}
