//! Whether the running task must go: at a wakeup (`check_preempt_wakeup`) and at the tick (`task_tick_fair`).
//!
//! CFS: a wakee preempts when it is more than wakeup_granularity (in its virtual time) behind the running
//! entity; the tick preempts when the ideal slice is used up, or when the leftmost is a whole slice behind.
//! EEVDF: a wakee preempts when it would be picked now; a shorter slice is not held off by the runner's protection
//! (PREEMPT_SHORT, 6.12 and later). Its tick only accounts, slice ends are found there; that of the 2023 series picks.

use super::entity::EntityId;
use super::explain::Compared;
use super::pick::PROTECTED;
use super::{Fair, WakeFlags};
use crate::decision::{During, Verdict};
use crate::features::Feature;
use crate::weight::calc_delta_fair;
use crate::{FairPolicy, IdleRule, Resched, WakeupRule};
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
        let (root, id) = (cpu.index(), EntityId::of(wakee));
        let (curr, before) = (self.leaf(root), self.recorded());
        if self.decisions.is_some() {
            self.woken = wakee;
        }
        if curr.is_nil() {
            self.resched_curr(root);
        } else if curr != id && !self.throttled_hierarchy(self.queue_of(id, root)) {
            let marked = self.nominate(self.queue_of(curr, root), id, flags);
            if !need_resched && self.rqs[root].resched != Resched::Full {
                self.check_preempt_wakeup(root, (curr, id), flags, marked, now);
            }
        }
        if self.decisions.is_some() {
            self.fell_during(before, During::Wakeup, self.rqs[root].resched);
        }
        self.rqs[root].resched
    }

    /// `task_tick_fair` for the current task of the CPU; before it, `sched_tick` turns a lazy wish into a full one.
    #[inline]
    pub fn task_tick(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        let (root, before) = (cpu.index(), self.recorded());
        if self.rqs[root].resched == Resched::Lazy {
            self.resched_curr(root);
        }
        let mut curr = self.leaf(root);
        while curr.is_some() {
            self.entity_tick(curr, now);
            curr = self.se(curr).parent;
        }
        if self.decisions.is_some() {
            self.explain_tick_over(root, before, now);
        }
        self.rqs[root].resched
    }

    /// `entity_tick`.
    fn entity_tick(&mut self, curr: EntityId, now: Nanos) {
        let rq = self.se(curr).cfs_rq as usize;
        self.account_level(rq, curr, now);
        if !self.rules.expiry_reschedules && self.rqs[rq].nr_running > 1 && !self.left_to_hrtick(rq) {
            match self.eevdf {
                true => self.pick_at_tick(rq, curr, now),
                false => self.check_preempt_tick(rq, curr, now),
            }
        }
    }

    /// The slice's own timer is running, so that the tick does not look at it (`entity_tick` without DOUBLE_TICK).
    #[inline]
    fn left_to_hrtick(&self, rq: usize) -> bool {
        self.rqs[self.root_of(rq)].hrtick_active && !self.config.has(Feature::DoubleTick)
    }

    fn account_level(&mut self, rq: usize, curr: EntityId, now: Nanos) {
        self.update_curr_rq(rq, now);
        self.update_load_avg(rq, curr, true, now);
        if self.is_group(curr) {
            self.update_cfs_group(curr, now);
        }
    }

    /// What every tick does at each level, from a task up.
    pub(super) fn account_levels(&mut self, mut curr: EntityId, now: Nanos) {
        while curr.is_some() {
            self.account_level(self.se(curr).cfs_rq as usize, curr, now);
            curr = self.se(curr).parent;
        }
    }

    /// NEXT_BUDDY: the wakee becomes the next buddy whatever follows.
    #[inline]
    fn nominate(&mut self, rq: usize, wakee: EntityId, flags: WakeFlags) -> bool {
        let nominates = self.config.has(Feature::NextBuddy)
            && !flags.fork
            && !self.se(wakee).sched_delayed
            && !matches!(self.rules.wakeup, WakeupRule::Requeue { .. })
            && (self.eevdf || self.many_running(rq));
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

    #[inline(always)]
    fn check_preempt_wakeup(
        &mut self,
        root: usize,
        tasks: (EntityId, EntityId),
        flags: WakeFlags,
        marked: bool,
        now: Nanos,
    ) {
        let (mut curr, wakee) = self.find_matching_se(tasks.0, tasks.1);
        let rq = self.queue_of(curr, root);
        match self.preempts_by_kind(tasks, (curr, wakee)) {
            ByKind::Preempts(rule) => {
                self.explain_wakeup(rq, wakee, true, rule, None, now);
                if self.rules.idle_loses_protection {
                    self.lose_protection(rq, curr);
                }
                if rule == IDLE_TASK {
                    // Decided before the entities were matched.
                    curr = tasks.0;
                }
            }
            ByKind::Keeps(rule, feature) => return self.explain_wakeup(rq, wakee, false, rule, feature, now),
            ByKind::Undecided => {
                self.update_curr_rq(rq, now);
                let preempts = match self.rules.wakeup {
                    WakeupRule::Granularity => self.wakee_is_far_behind(rq, curr, wakee, marked, now),
                    WakeupRule::Pick | WakeupRule::BreakMarker => self.wakee_is_picked(rq, curr, wakee, now),
                    WakeupRule::Unprotected => self.wakee_is_picked_unprotected(rq, curr, wakee, now),
                    WakeupRule::Requeue { .. } => self.wakee_is_next(rq, curr, wakee, flags, now),
                };
                if !preempts {
                    return;
                }
            }
        }
        self.resched_curr_lazy(rq);
        let cares = !self.eevdf && self.config.has(Feature::LastBuddy);
        if cares && self.many_running(self.queue_of(tasks.0, root)) && !self.is_group(curr) {
            self.set_last_buddy(curr);
        }
    }

    /// What follows from policies alone, in the order of the kernel's tests.
    #[inline]
    fn preempts_by_kind(&self, tasks: (EntityId, EntityId), matched: (EntityId, EntityId)) -> ByKind {
        let (curr, wakee) = (self.se(tasks.0), self.se(tasks.1));
        let (curr_side, wakee_side) = (self.se(matched.0).is_idle(), self.se(matched.1).is_idle());
        let both_normal = curr.policy == FairPolicy::Normal && wakee.policy == FairPolicy::Normal;
        if both_normal && !curr_side && !wakee_side && self.config.has(Feature::WakeupPreemption) {
            return ByKind::Undecided;
        }
        let (off, not_normal) = (!self.config.has(Feature::WakeupPreemption), wakee.policy != FairPolicy::Normal);
        let entity_level = self.rules.idle != IdleRule::Task;
        if self.rules.idle != IdleRule::Entity {
            if curr.is_idle() && !wakee.is_idle() {
                return ByKind::Preempts(IDLE_TASK);
            }
            if not_normal {
                return ByKind::Keeps("only SCHED_NORMAL preempts", None);
            }
        }
        if off {
            return ByKind::Keeps("wakeup preemption is off", Some(Feature::WakeupPreemption));
        }
        if entity_level && curr_side && !wakee_side {
            return ByKind::Preempts("current entity is idle");
        }
        if entity_level && curr_side != wakee_side {
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

    /// EEVDF's comparison up to 6.12, after accounting.
    #[inline(always)]
    fn wakee_is_picked(&mut self, rq: usize, curr: EntityId, wakee: EntityId, now: Nanos) -> bool {
        let short = self.rules.wakeup == WakeupRule::BreakMarker && self.do_preempt_short(rq, curr, wakee);
        if short {
            self.cancel_protect_slice(curr);
        }
        let (picked, rule) = self.pick_eevdf(rq, true);
        self.explain_pick_of(rq, wakee, picked, rule, short, now);
        picked == wakee
    }

    /// 6.18's: a shorter slice looks through the protection, and bounds it if that was not enough.
    fn wakee_is_picked_unprotected(&mut self, rq: usize, curr: EntityId, wakee: EntityId, now: Nanos) -> bool {
        let short = self.is_short(curr, wakee);
        let (picked, rule) = self.pick_eevdf(rq, !short);
        self.explain_pick_of(rq, wakee, picked, rule, short, now);
        if short && picked == wakee {
            self.cancel_protect_slice(curr);
        } else if short && self.config.has(Feature::RunToParity) {
            self.update_protect_slice(rq, curr);
        }
        picked == wakee
    }

    /// That of 6.18 stable and 7.x: the pick may take delayed entities off the queue on its way.
    fn wakee_is_next(&mut self, rq: usize, curr: EntityId, wakee: EntityId, flags: WakeFlags, now: Nanos) -> bool {
        let short = self.is_short(curr, wakee);
        let never = match (flags.fork, self.se(wakee).sched_delayed) {
            (true, _) => Some("a new task does not preempt"),
            (_, true) => Some("nobody preempts whose dequeue is delayed"),
            _ => None,
        };
        if let Some(rule) = never.filter(|_| !short) {
            self.explain_wakeup(rq, wakee, false, rule, None, now);
            return false;
        }
        if !short && self.config.has(Feature::NextBuddy) && self.set_preempt_buddy(rq, wakee) && flags.sync {
            return self.preempt_sync(rq, curr, wakee, now);
        }
        let (picked, rule) = loop {
            let next = self.rqs[rq].next;
            let buddy = !(short && self.looks_past_buddy()) && next.is_some() && self.config.has(Feature::PickBuddy);
            let (picked, rule) = match buddy && self.entity_eligible(rq, next) {
                true => (next, "next buddy is eligible"),
                false => self.pick_eevdf(rq, !short),
            };
            // Nobody is left if the wakee itself was only changed while it slept in the queue.
            if picked.is_nil() || !self.se(picked).sched_delayed {
                break (picked, rule);
            }
            self.finish_delayed_dequeue(picked, now);
        };
        self.explain_pick_of(rq, wakee, picked, rule, short, now);
        if picked == wakee {
            if short {
                self.lose_protection(rq, curr);
            }
            return true;
        }
        if self.config.has(Feature::RunToParity) {
            self.update_protect_slice(rq, curr);
        }
        false
    }

    fn looks_past_buddy(&self) -> bool {
        self.rules.wakeup == WakeupRule::Requeue { over_buddy: true }
    }

    /// PREEMPT_SHORT from 6.18 on.
    #[inline]
    fn is_short(&self, curr: EntityId, wakee: EntityId) -> bool {
        self.config.has(Feature::PreemptShort) && self.se(wakee).slice < self.se(curr).slice
    }

    /// The wakee becomes the next buddy unless the one there has an earlier deadline (`set_preempt_buddy`).
    fn set_preempt_buddy(&mut self, rq: usize, wakee: EntityId) -> bool {
        let next = self.rqs[rq].next;
        if next.is_some() && self.se(next).deadline.before(self.se(wakee).deadline) {
            return false;
        }
        self.set_next_buddy(wakee);
        true
    }

    /// `preempt_sync`: the waker says it will sleep; it is preempted only after it ran a while. The time since the charge
    /// just made is what the kernel compares, so only a charge of the same instant counts.
    fn preempt_sync(&mut self, rq: usize, curr: EntityId, wakee: EntityId, now: Nanos) -> bool {
        let (current, woken) = (self.se(curr), self.se(wakee));
        let ran = now.saturating_sub(current.exec_start);
        let threshold = self.config.knobs.migration_cost;
        let preempts = woken.deadline.before(current.deadline) && ran >= threshold;
        if self.decisions.is_some() {
            let compared = [("ran", ran as i64), ("migration cost", threshold as i64)];
            let feature = Some(Feature::NextBuddy);
            self.explain_wakeup_numbers(rq, wakee, preempts, "waker is about to sleep", feature, compared, now);
        }
        preempts
    }

    /// Protection ends for good: somebody else is going to run.
    fn lose_protection(&mut self, rq: usize, curr: EntityId) {
        self.cancel_protect_slice(curr);
        if self.looks_past_buddy() {
            self.clear_buddies(rq, curr);
        }
    }

    #[inline(always)]
    fn explain_pick_of(
        &mut self,
        rq: usize,
        wakee: EntityId,
        picked: EntityId,
        rule: &'static str,
        short: bool,
        now: Nanos,
    ) {
        if self.decisions.is_some() {
            self.explain_picked(rq, wakee, picked, rule, short, now);
        }
    }

    #[cold]
    fn explain_picked(
        &mut self,
        rq: usize,
        wakee: EntityId,
        picked: EntityId,
        rule: &'static str,
        short: bool,
        now: Nanos,
    ) {
        let curr = self.rqs[rq].curr;
        let third = picked != wakee && picked != curr;
        let against = if third { ("picked deadline", picked) } else { ("current deadline", curr) };
        let compared = self.deadlines(rq, ("wakee deadline", wakee), against);
        let parity = (rule == PROTECTED).then_some(Feature::RunToParity);
        let feature = if short { Some(Feature::PreemptShort) } else { parity };
        self.explain_wakeup_numbers(rq, wakee, picked == wakee, rule, feature, compared, now);
    }

    /// The tick of the 2023 series: whoever would be picked now runs.
    fn pick_at_tick(&mut self, rq: usize, curr: EntityId, now: Nanos) {
        let (picked, rule) = self.pick_eevdf(rq, true);
        if picked == curr {
            return;
        }
        self.resched_curr(rq);
        self.clear_buddies(rq, curr);
        if self.decisions.is_some() {
            let numbers = self.deadlines(rq, ("current deadline", curr), ("picked deadline", picked));
            self.explain_tick(rq, curr, rule, numbers, now);
        }
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
            self.clear_buddies(rq, curr);
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
            self.explain_end(rq, curr, (rule, None), compared, now);
        }
    }

    /// What the tick decided was decided there; if it asked for nothing while others wait, that was decided too.
    #[cold]
    fn explain_tick_over(&mut self, rq: usize, before: usize, now: Nanos) {
        let asked = self.rqs[rq].resched;
        let curr = self.leaf(rq).task().filter(|_| self.rqs[rq].h_nr_running > 1);
        if let (false, Some(curr)) = (self.fell_during(before, During::Tick, asked), curr) {
            self.explain_stay(curr, now);
            self.fell_during(before, During::Tick, asked);
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
        let task = if self.is_group(wakee) { self.woken } else { wakee.task_id() };
        let verdict = if preempts { Verdict::Preempt(task) } else { Verdict::Keep(task) };
        self.explain_by(rq, now, verdict, wakee, (rule, feature), compared);
    }
}

/// Name of a rule.
const IDLE_TASK: &str = "current task is SCHED_IDLE";

/// What the policies of the two tasks, and the idleness of their groups, decide.
enum ByKind {
    Preempts(&'static str),
    Keeps(&'static str, Option<Feature>),
    Undecided,
}
