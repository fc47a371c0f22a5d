//! Whether a woken task preempts the running one (`check_preempt_wakeup`, `check_preempt_wakeup_fair`,
//! `wakeup_preempt_fair`).
//!
//! CFS: a woken entity preempts when it is more than wakeup_granularity (in its virtual time) behind the running
//! entity. EEVDF: it preempts when it would be picked now; a shorter slice overrides the protection of the running
//! entity (PREEMPT_SHORT, 6.12 and later).

use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::{Entity, EntityId};
use super::explain::Reason;
use super::fair_sched_class::Fair;
use super::pick_eevdf::PickRule;
use super::queues::Queues;
use crate::decision::{Action, During};
use crate::features::Feature;
use crate::flags::WakeFlags;
use crate::{FairPolicy, IdleRule, KernelConfig, Resched, WakeupRule};
use schedlab_model::{rarely, CpuId, Nanos, TaskId};

impl Fair {
    /// `wakeup_preempt`: whether the task just queued on the CPU preempts the current one. `need_resched`:
    /// TIF_NEED_RESCHED is already set for another reason. An idle CPU always reschedules.
    #[inline]
    pub fn wakeup_preempt(
        &mut self,
        cpu: CpuId,
        wakee: TaskId,
        flags: WakeFlags,
        need_resched: bool,
        now: Nanos,
    ) -> Resched {
        let queues = &mut self.queues;
        let (root, id) = (cpu.index(), EntityId::of(wakee));
        let before = queues.is_recording().then(|| queues.log.len());
        let curr = queues.arena.leaf(root);
        if curr.is_nil() {
            queues.resched_curr(root);
        } else if curr != id && !queues.throttled_hierarchy(queues.arena.queue_of(id, root)) {
            let nominated = queues.nominate(root, curr, id, flags);
            let pending = need_resched || queues.arena.rqs[root].resched == Resched::Full;
            if !pending || queues.checks_while_pending() {
                let (rq, curr_se, wakee_se) = queues.matched(root, curr, id);
                let (tasks, curr, wakee) = ((curr, id), curr_se, wakee_se);
                queues.check_preempt_wakeup(Check { root, tasks, rq, curr, wakee, flags, nominated, now });
            }
        }
        if let Some(before) = before {
            queues.log.set_during(before, During::Wakeup, queues.arena.rqs[root].resched);
        }
        queues.arena.rqs[root].resched
    }
}

/// One check: a woken task against the running one of its CPU, and the two of their entities that compete.
#[derive(Clone, Copy)]
struct Check {
    /// The CPU's own queue.
    root: usize,
    /// The running and the woken task.
    tasks: (EntityId, EntityId),
    /// The queue on which the entities compete.
    rq: usize,
    curr: EntityId,
    wakee: EntityId,
    flags: WakeFlags,
    /// The woken task is the next buddy already.
    nominated: bool,
    now: Nanos,
}

/// What the policies of the two tasks, and the idleness of their groups, decide.
enum ByPolicy {
    /// `task`: before the entities are matched.
    Preempts {
        task: bool,
    },
    Keeps(&'static str, Option<Feature>),
    Undecided,
}

impl Queues {
    /// The entities of two tasks that compete with each other, and the queue on which they do.
    #[inline]
    fn matched(&self, root: usize, curr: EntityId, wakee: EntityId) -> (usize, EntityId, EntityId) {
        if rarely(self.arena.grouped) {
            let (curr, wakee) = self.arena.find_matching_se(curr, wakee);
            return (self.arena.competes_on(self.arena.queue_of(curr, root)), curr, wakee);
        }
        (root, curr, wakee)
    }

    /// NEXT_BUDDY: the woken task becomes the next buddy whatever follows.
    #[inline]
    fn nominate(&mut self, root: usize, curr: EntityId, wakee: EntityId, flags: WakeFlags) -> bool {
        let nominates = self.config.has(Feature::NextBuddy)
            && !flags.fork
            && !self.arena.entities[wakee].sched_delayed
            && !matches!(self.config.rules.wakeup, WakeupRule::Awake { .. })
            && (self.config.is_eevdf() || self.many_running(self.arena.queue_of(curr, root)));
        if nominates {
            self.arena.set_next_buddy(wakee);
        }
        nominates
    }

    /// Whether a wakeup is checked though the running task must reschedule already.
    #[inline]
    fn checks_while_pending(&self) -> bool {
        self.config.rules.checks_while_pending && self.config.has(Feature::PreemptShort)
    }

    /// CFS considers caches only when a period is full (`scale` in the kernel).
    #[inline]
    fn many_running(&self, rq: usize) -> bool {
        u64::from(self.arena.rqs[rq].nr_running) >= self.config.knobs.nr_latency
    }

    /// `check_preempt_wakeup`.
    #[inline(always)]
    fn check_preempt_wakeup(&mut self, check: Check) {
        // The entity that becomes the last buddy.
        let mut preempted = check.curr;
        match preempts_by_policy(&self.arena.entities, &self.config, check) {
            ByPolicy::Preempts { task } => {
                let rule = if task { "current task is SCHED_IDLE" } else { "current entity is idle" };
                self.explain_wakeup(check, true, rule, None);
                if self.config.rules.idle_loses_protection {
                    self.end_protection(check.rq, check.curr);
                }
                if task {
                    preempted = check.tasks.0;
                }
            }
            ByPolicy::Keeps(rule, feature) => {
                if feature.is_none() && self.config.rules.checks_update_protection {
                    self.charge_for(check);
                    self.bound_protection(check);
                }
                return self.explain_wakeup(check, false, rule, feature);
            }
            ByPolicy::Undecided => {
                self.charge_for(check);
                let preempts = match self.config.rules.wakeup {
                    WakeupRule::Granularity => self.wakee_is_far_behind(check),
                    WakeupRule::Pick | WakeupRule::BreakMarker => self.wakee_is_picked(check),
                    WakeupRule::Unprotected => self.wakee_is_picked_unprotected(check),
                    WakeupRule::Awake { .. } => self.wakee_is_next(check),
                };
                if !preempts {
                    return;
                }
            }
        }
        self.resched_curr_lazy(check.rq);
        let last_buddy = !self.config.is_eevdf() && self.config.has(Feature::LastBuddy);
        let task_rq = self.arena.queue_of(check.tasks.0, check.root);
        if last_buddy && self.many_running(task_rq) && !self.arena.is_group(preempted) {
            self.arena.set_last_buddy(preempted);
        }
    }

    /// The charge before a comparison: that of the matched queue, from 7.3 on of all levels.
    #[inline]
    fn charge_for(&mut self, check: Check) {
        match self.config.rules.flat_hierarchy {
            true => self.update_curr_levels(check.root, check.now),
            false => self.update_curr(check.rq, check.now),
        }
    }

    /// CFS's comparison, after accounting.
    #[inline(never)]
    fn wakee_is_far_behind(&mut self, check: Check) -> bool {
        let (entities, config) = (&self.arena.entities, &self.config);
        let preempts = entities.wakeup_preempt_entity(config, check.curr, check.wakee) == 1;
        if preempts && !check.nominated {
            self.arena.set_next_buddy(check.wakee);
        }
        if self.is_recording() {
            self.explain_lead(check, preempts);
        }
        preempts
    }

    #[cold]
    fn explain_lead(&mut self, check: Check, preempts: bool) {
        let entities = &self.arena.entities;
        let lead = entities[check.curr].vruntime.since(entities[check.wakee].vruntime);
        let granularity = entities.wakeup_gran(&self.config, check.wakee) as i64;
        let compared = [("lead of the wakee", lead), ("granularity", granularity)];
        let reason = Reason { rule: "lead against wakeup granularity", feature: None, compared };
        self.explain_check(check, preempts, reason);
    }

    /// EEVDF's comparison up to 6.12, after accounting.
    #[inline(always)]
    fn wakee_is_picked(&mut self, check: Check) -> bool {
        let (arena, config) = (&mut self.arena, &self.config);
        let short = config.rules.wakeup == WakeupRule::BreakMarker
            && arena.rqs[check.rq].do_preempt_short(&arena.entities, config, check.curr, check.wakee);
        if short {
            arena.entities[check.curr].cancel_protect_slice(config);
        }
        let (picked, rule) = arena.rqs[check.rq].pick_eevdf(&arena.entities, config, true);
        self.explain_picked(check, picked, rule, short);
        picked == check.wakee
    }

    /// 6.18's: a shorter slice overrides the protection, and bounds it if that was not enough.
    #[inline(never)]
    fn wakee_is_picked_unprotected(&mut self, check: Check) -> bool {
        let (arena, config) = (&mut self.arena, &self.config);
        let short = arena.entities.preempts_short(config, check.curr, check.wakee);
        let (picked, rule) = arena.rqs[check.rq].pick_eevdf(&arena.entities, config, !short);
        self.explain_picked(check, picked, rule, short);
        let (arena, config) = (&mut self.arena, &self.config);
        if short && picked == check.wakee {
            arena.entities[check.curr].cancel_protect_slice(config);
        } else if short && config.has(Feature::RunToParity) {
            arena.rqs[check.rq].update_protect_slice(&mut arena.entities, config, check.curr);
        }
        picked == check.wakee
    }

    /// That of 6.18 stable, 6.19 and 7.x; with the rule `wakeup_dequeues_delayed` its pick dequeues delayed
    /// entities on the way.
    #[inline(never)]
    fn wakee_is_next(&mut self, check: Check) -> bool {
        let short = self.arena.entities.preempts_short(&self.config, check.curr, check.wakee);
        if let Some(rule) = self.never_preempts(check, short) {
            if self.config.rules.checks_update_protection {
                self.bound_protection(check);
            }
            self.explain_wakeup(check, false, rule, None);
            return false;
        }
        let buddy = !short && self.config.has(Feature::NextBuddy);
        if buddy && self.arena.set_preempt_buddy(check.rq, check.wakee) && check.flags.sync {
            let preempts = self.preempt_sync(check);
            if preempts && self.config.rules.checks_update_protection {
                self.end_protection(check.rq, check.curr);
            }
            return preempts;
        }
        let (picked, rule) = self.pick_past_delayed(check, short);
        self.explain_picked(check, picked, rule, short);
        let preempts = picked == check.wakee || short && self.short_needs_no_pick(check);
        if !preempts {
            self.bound_protection(check);
        } else if short || self.config.rules.checks_update_protection {
            self.end_protection(check.rq, check.curr);
        }
        if preempts && short && self.config.rules.short_becomes_buddy {
            self.arena.set_short_buddy(check.rq, check.wakee);
        }
        preempts
    }

    /// Why the woken entity cannot preempt, whatever the result of the pick.
    fn never_preempts(&self, check: Check, short: bool) -> Option<&'static str> {
        let delayed = self.arena.entities[check.wakee].sched_delayed;
        let over_short = self.config.rules.checks_update_protection && delayed;
        match (check.flags.fork, delayed) {
            _ if short && !over_short => None,
            (true, _) => Some("a new task does not preempt"),
            (_, true) => Some("a task with a delayed dequeue does not preempt"),
            _ => None,
        }
    }

    /// An eligible entity with a shorter slice need not be the one that is picked (7.3).
    fn short_needs_no_pick(&self, check: Check) -> bool {
        self.config.rules.short_needs_no_pick
            && self.arena.rqs[check.rq].entity_eligible(&self.arena.entities, check.wakee)
    }

    /// RUN_TO_PARITY: the entity keeps the CPU, but no longer than the shortest slice on the queue.
    fn bound_protection(&mut self, check: Check) {
        if self.config.has(Feature::RunToParity) {
            self.arena.rqs[check.rq].update_protect_slice(&mut self.arena.entities, &self.config, check.curr);
        }
    }

    /// The pick of [`Queues::wakee_is_next`]: delayed entities that it meets leave the queue.
    fn pick_past_delayed(&mut self, check: Check, short: bool) -> (EntityId, PickRule) {
        loop {
            let (q, entities) = (&self.arena.rqs[check.rq], &self.arena.entities);
            let overridden = short && overrides_buddy(&self.config);
            let buddy = !overridden && q.next.is_some() && self.config.has(Feature::PickBuddy);
            let (picked, rule) = match buddy && q.entity_eligible(entities, q.next) {
                true => (q.next, PickRule::NextBuddyIsEligible),
                false => q.pick_eevdf(entities, &self.config, !short),
            };
            // No entity is left if the wakee itself was only changed while it slept in the queue.
            let dequeues = self.config.rules.wakeup_dequeues_delayed;
            if !dequeues || picked.is_nil() || !entities[picked].sched_delayed {
                return (picked, rule);
            }
            self.finish_delayed_dequeue(picked, check.now);
        }
    }

    /// `preempt_sync`: the waker is about to sleep; it is preempted only after it ran for a while. The time since the
    /// charge just made is what the kernel compares, so only a charge of the same instant counts.
    fn preempt_sync(&mut self, check: Check) -> bool {
        let (current, woken) = (&self.arena.entities[check.curr], &self.arena.entities[check.wakee]);
        let ran = check.now.saturating_sub(current.exec_start);
        let threshold = self.config.knobs.migration_cost;
        let preempts = woken.deadline.before(current.deadline) && ran >= threshold;
        if self.is_recording() {
            let compared = [("ran", ran as i64), ("migration cost", threshold as i64)];
            let reason = Reason { rule: "waker is about to sleep", feature: Some(Feature::NextBuddy), compared };
            self.explain_check(check, preempts, reason);
        }
        preempts
    }

    /// Protection ends for good: another entity is going to run.
    fn end_protection(&mut self, rq: usize, curr: EntityId) {
        self.arena.entities[curr].cancel_protect_slice(&self.config);
        if overrides_buddy(&self.config) && !self.config.rules.short_becomes_buddy {
            self.arena.clear_buddies(rq, curr);
        }
    }

    #[inline(always)]
    fn explain_picked(&mut self, check: Check, picked: EntityId, rule: PickRule, short: bool) {
        if self.is_recording() {
            self.explain_picked_instead(check, picked, rule, short);
        }
    }

    #[cold]
    fn explain_picked_instead(&mut self, check: Check, picked: EntityId, rule: PickRule, short: bool) {
        let q = &self.arena.rqs[check.rq];
        let third = picked != check.wakee && picked != q.curr;
        let against = if third { ("picked deadline", picked) } else { ("current deadline", q.curr) };
        let compared = q.deadlines(&self.arena.entities, [("wakee deadline", check.wakee), against]);
        let parity = (rule == PickRule::Protected).then_some(Feature::RunToParity);
        let feature = if short { Some(Feature::PreemptShort) } else { parity };
        self.explain_check(check, picked == check.wakee, Reason { rule: rule.text(), feature, compared });
    }

    #[inline]
    fn explain_wakeup(&mut self, check: Check, preempts: bool, rule: &'static str, feature: Option<Feature>) {
        if self.is_recording() {
            let q = &self.arena.rqs[check.rq];
            let named = [("wakee vruntime", check.wakee), ("current vruntime", q.curr)];
            let compared = q.vruntimes(&self.arena.entities, named);
            self.explain_check(check, preempts, Reason { rule, feature, compared });
        }
    }

    #[cold]
    fn explain_check(&mut self, check: Check, preempts: bool, reason: Reason) {
        let task = check.tasks.1.task_id();
        let action = if preempts { Action::Preempt(task) } else { Action::Keep(task) };
        self.explain_by(check.rq, check.now, action, check.wakee, reason);
    }
}

/// What follows from policies alone, in the order of the kernel's tests.
#[inline]
fn preempts_by_policy(entities: &Entities, config: &KernelConfig, check: Check) -> ByPolicy {
    let (curr, wakee) = (&entities[check.tasks.0], &entities[check.tasks.1]);
    let normal = |se: &Entity| se.policy == FairPolicy::Normal;
    let preemption = config.has(Feature::WakeupPreemption);
    let tasks_compete = check.tasks == (check.curr, check.wakee);
    if normal(curr) && normal(wakee) && tasks_compete && preemption {
        return ByPolicy::Undecided;
    }
    let (curr_side, wakee_side) = (entities[check.curr].is_idle(), entities[check.wakee].is_idle());
    let entity_level = config.rules.idle != IdleRule::Task;
    if config.rules.idle != IdleRule::Entity {
        if curr.is_idle() && !wakee.is_idle() {
            return ByPolicy::Preempts { task: true };
        }
        if !normal(wakee) {
            return ByPolicy::Keeps("only SCHED_NORMAL preempts", None);
        }
    }
    if !preemption {
        return ByPolicy::Keeps("wakeup preemption is off", Some(Feature::WakeupPreemption));
    }
    if entity_level && curr_side && !wakee_side {
        return ByPolicy::Preempts { task: false };
    }
    if entity_level && curr_side != wakee_side {
        return ByPolicy::Keeps("woken entity is idle", None);
    }
    if !normal(wakee) {
        return ByPolicy::Keeps("only SCHED_NORMAL preempts", None);
    }
    ByPolicy::Undecided
}

/// Whether a shorter slice passes over the next buddy too (7.x).
fn overrides_buddy(config: &KernelConfig) -> bool {
    config.rules.wakeup == WakeupRule::Awake { over_buddy: true }
}

impl Entities {
    /// PREEMPT_SHORT from 6.18 on.
    #[inline(always)]
    fn preempts_short(&self, config: &KernelConfig, curr: EntityId, wakee: EntityId) -> bool {
        config.has(Feature::PreemptShort) && self[wakee].slice < self[curr].slice
    }
}

impl CfsRq {
    /// `do_preempt_short`: the wakee's slice is shorter, and it deserves the CPU by deadline or eligibility.
    #[inline(always)]
    fn do_preempt_short(&self, entities: &Entities, config: &KernelConfig, curr: EntityId, wakee: EntityId) -> bool {
        entities.preempts_short(config, curr, wakee)
            && self.entity_eligible(entities, wakee)
            && (entities[wakee].deadline.before(entities[curr].deadline) || !self.entity_eligible(entities, curr))
    }
}
