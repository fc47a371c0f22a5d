//! What each rule is called, which function of the kernel follows it and since when: the smallest parts of a row that
//! make sense alone.
//!
//! `since` says where the change came in, with its commit where that is sure; rows between two changes have either.

use super::rules::{Policy, Rules};
use super::Version;
use crate::select::rules::PlacementRules;

/// A rule of a row, or several that only make sense together.
pub(crate) struct NamedRule<R> {
    pub of: Of,
    pub name: &'static str,
    /// Where the kernel decides it.
    pub function: &'static str,
    /// The releases that changed it.
    pub since: &'static str,
    pub show: fn(&R) -> String,
    pub take: fn(&mut R, &R),
}

/// Who reads a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Of {
    /// CFS alone.
    Cfs,
    /// EEVDF alone.
    Eevdf,
    /// Both, but what it says belongs to one of them.
    Policy,
    /// Both, and it can be exchanged between them.
    Both,
}

macro_rules! rule {
    ($of:ident $name:literal, $function:literal, $since:literal, $($field:ident).+ $(, $($more:ident).+)*) => {
        NamedRule {
            of: Of::$of,
            name: $name,
            function: $function,
            since: $since,
            show: |rules| [format!("{:?}", rules.$($field).+) $(, format!("{:?}", rules.$($more).+))*].join(", "),
            take: |rules, from| { rules.$($field).+ = from.$($field).+; $(rules.$($more).+ = from.$($more).+;)* },
        }
    };
}

/// Of the fair and the real-time class. CFS or EEVDF, the kind of protection and laziness are not here: see `mechanism`.
pub(crate) const RULES: &[NamedRule<Rules>] = &[
    rule!(Policy "pick: order of the tree", "__enqueue_entity", "6.8 (2227a957e1d5)", tree_key),
    rule!(Eevdf "pick: search", "pick_eevdf", "6.6 (147f3efaa241)", search),
    rule!(Policy "wakeup preemption", "check_preempt_wakeup", "6.6 (147f3efaa241), 6.12 (85e511df3cec), 6.17, 6.19", wakeup),
    rule!(Eevdf "protection: renewal", "set_protect_slice", "6.6 (63304558ba5d), 6.17 (052c3d87c82e), 7.0 (bcd74b2ffdd0)", protection),
    rule!(Both "idle entities: who is idle", "check_preempt_wakeup", "5.15 (304000390f88), 6.12", idle),
    rule!(Eevdf "idle entities: protection", "check_preempt_wakeup_fair", "6.15 (f553741ac8c0), 6.12 stable", idle_loses_protection),
    rule!(Cfs "idle entities: slice floor", "sched_slice", "5.16 (51ce83ed523b)", idle_slice_floor),
    rule!(Cfs "idle entities: sleeper credit", "place_entity", "5.16 (2cae3948edd4)", idle_sleeper_credit),
    rule!(Cfs "tick: slice cap", "check_preempt_tick", "6.3 (79ba1e607d68)", tick_slice_cap),
    rule!(Cfs "placement: long sleepers", "place_entity", "6.3 (829c1651e9c4), 6.1 stable", long_sleeper),
    rule!(Policy "placement: forks", "task_fork_fair", "6.12", fork_places, initial_enqueue),
    rule!(Eevdf "placement: relative deadline", "place_entity", "6.13 (6d71a9c61604), back in 7.1 (101f3498b4bd)", keeps_rel_deadline),
    rule!(Eevdf "placement: zero point follows", "place_entity", "after 6.18", place_moves_zero),
    rule!(Policy "zero point of vruntimes", "update_zero_vruntime", "6.12 stable, 6.19 (79f3f9bedd14)", zero),
    rule!(Eevdf "average: rounding", "avg_vruntime", "6.6 (650cad561cce)", averaging.truncates),
    rule!(Eevdf "average: weights in full", "avg_vruntime_weight", "7.1 (4823725d9d1d)", averaging.shift, averaging.wide),
    rule!(Eevdf "average: of slices", "avg_slice_add", "2023 series only", averaging.slices),
    rule!(Eevdf "slices: source", "set_slice", "6.6, 6.12 (857b158dc5e8)", slice),
    rule!(Eevdf "slices: of groups", "set_min_slice", "6.12 (aef6987d8954), 6.15 (563bc2161b94), 6.12 stable", group_slice),
    rule!(Eevdf "slices: stale in trees", "min_vruntime_cb", "after 6.18", stale_slices),
    rule!(Eevdf "lag: limit", "entity_lag", "7.0 (6e3c0a4e1ad1)", lag_limit),
    rule!(Eevdf "lag: delayed entities", "requeue_delayed_entity", "6.12 (152e11f6df29), after 6.18", delayed_lag),
    rule!(Eevdf "slice end reschedules", "update_curr", "6.6 (147f3efaa241)", expiry_reschedules),
    rule!(Eevdf "buddies: which feature", "pick_next_entity", "6.12 stable, 6.18", buddy_feature),
    rule!(Cfs "buddies: forgotten at the pick", "pick_next_task_fair", "up to 5.11", pick_clears_buddies),
    rule!(Policy "yield", "yield_task_fair", "6.6, 6.19 (79104becf42b), 6.12 and 6.18 stable", yields),
    rule!(Policy "reweight: how", "reweight_entity", "6.6, 6.7 (eab03c23c2a1), 6.13 (6d71a9c61604), back in 7.1 (101f3498b4bd)", reweight),
    rule!(Eevdf "reweight: relative deadline", "rescale_entity", "6.13 (6d71a9c61604)", reweight_deadline),
    rule!(Both "reweight: unchanged weights", "update_cfs_group", "up to 6.6", reweights_unchanged),
    rule!(Both "reweight: charges first", "reweight_entity", "after 6.6", reweight_charges),
    rule!(Policy "groups: weight while empty", "update_cfs_group", "6.12 stable", keeps_empty_weight),
    rule!(Both "quota: burst", "__refill_cfs_bandwidth_runtime", "5.14 (f4183717b370)", bandwidth_burst),
    rule!(Both "quota: slices expire", "expire_cfs_rq_runtime", "up to 5.3 (de53fd7aedb1 in 5.4)", bandwidth_expires),
    rule!(Both "quota: a second look", "throttle_cfs_rq", "5.8", throttle_borrows),
    rule!(Both "quota: time of empty groups", "throttle_cfs_rq", "6.6 (79462e8c879a)", throttle_clock_waits),
    rule!(Both "quota: who leaves, when", "throttle_cfs_rq", "6.18, after 6.18", throttles_tasks, throttles_at_once),
    rule!(Both "real-time: limit", "update_curr_rt", "6.12", rt_limit),
    rule!(Cfs "nice: lone task", "prio_changed_fair", "up to 5.2", prio_changed_alone),
    rule!(Cfs "groups: a move reschedules", "sched_move_task", "5.6 and later", move_reschedules),
    rule!(Policy "hrtick: when", "hrtick_start_fair", "after 6.18", hrtick),
    rule!(Both "hrtick: full reschedule", "entity_tick", "after 6.18", hrtick_full),
    rule!(Both "hrtick: stays armed", "hrtick_update", "after 6.18", hrtick_stays),
    rule!(Both "calc_delta: division", "__calc_delta", "after 6.18", delta_divides),
    rule!(Cfs "sysctl: nr_latency", "sched_proc_update_handler", "up to 5.12", sysctl_updates_nr_latency),
    rule!(Both "load: second signal", "update_load_avg", "5.7", pelt.runnable_load, pelt.runnable_shift),
    rule!(Both "load: sums kept", "update_cfs_rq_load_avg", "5.13, 5.17, after 6.18", pelt.floor),
    rule!(Both "load: delayed tasks", "se_update_runnable", "6.12 stable", pelt.delayed_not_runnable),
    rule!(Both "load: waking from idle", "migrate_se_pelt_lag", "5.19", pelt.migrate_lag),
    rule!(Both "load: leaves within the dequeue", "update_load_avg", "6.0", pelt.detach_in_dequeue),
    rule!(Both "load: new tasks", "post_init_entity_util_avg", "6.7", pelt.init_full_weight),
    rule!(Both "load: util_est", "util_est_update", "5.7, 5.13, 6.8", pelt.util_est),
    rule!(Both "load: how often of groups", "update_tg_load_avg", "6.7", pelt.tg_update_interval),
];

/// Of placement and balancing.
pub(crate) const PLACEMENT: &[NamedRule<PlacementRules>] = &[
    rule!(Both "idle search: passes", "select_idle_sibling", "5.7, 5.12", idle_search),
    rule!(Both "idle search: where it begins", "select_idle_cpu", "5.14", search_from_target),
    rule!(Both "idle search: budget of SIS_PROP", "select_idle_cpu", "5.14", prop_by_avg_idle),
    rule!(Both "idle search: SCHED_IDLE CPUs", "sched_idle_cpu", "5.4, after 6.18", sched_idle_cpu),
    rule!(Both "idle search: recent CPU", "select_idle_sibling", "5.15", recent_cpu),
    rule!(Both "wake_affine: idle prev", "wake_affine_idle", "5.11", affine_prev_idle),
    rule!(Both "wake_affine: delayed tasks", "wake_affine_idle", "6.12 stable", affine_skips_delayed),
    rule!(Both "wakeup: through the wakelist", "ttwu_queue_cond", "5.8, 5.19, 5.15 stable", remote_queue),
    rule!(Both "idle time: which spells count", "update_avg", "after 6.18", idle_spell),
    rule!(Both "balance: groups compared by", "find_busiest_group", "5.5", groups_by),
    rule!(Both "fork: equally idle groups", "find_idlest_group", "5.10", idlest_by_util),
    rule!(Both "balance: NUMA imbalance", "adjust_numa_imbalance", "5.5, 5.11, 5.18", numa_slack),
    rule!(Both "balance: interval of busy CPUs", "sd_init", "5.10", busy_factor),
    rule!(Both "balance: levels do not meet", "get_sd_balance_interval", "5.10", busy_jiffy_less),
    rule!(Both "balance: imbalance_pct", "sd_init", "5.10", imbalance_pct),
    rule!(Both "balance: newidle gate", "newidle_balance", "5.14 to 5.16", newidle_by_cost),
    rule!(Both "balance: tasks within a cache", "calculate_imbalance", "5.10", tasks_in_llc),
    rule!(Both "balance: stops at the average", "calculate_imbalance", "5.15", stops_at_average),
    rule!(Both "balance: size of a task", "detach_tasks", "5.5, 5.10, 6.12, 6.1 stable", detach_limit),
    rule!(Both "balance: hot between threads", "task_hot", "up to 5.9", hot_between_threads),
    rule!(Both "balance: active balancing", "need_active_balance", "up to 5.11", pushes_for_anything),
    rule!(Both "balance: prefers idle cores", "should_we_balance", "6.6", prefer_idle_core),
    rule!(Both "balance: per core", "sibling_imbalance", "6.6", sibling_imbalance),
    rule!(Both "balance: from busy cores", "smt_balance", "6.6", smt_balance),
    rule!(Both "balance: last fully busy", "update_sd_pick_busiest", "6.6", last_fully_busy),
    rule!(Both "balance: runnable boost", "find_busiest_queue", "6.5", runnable_boost),
    rule!(Both "balance: reduced capacity", "sched_reduced_capacity", "6.0", reduced_capacity),
    rule!(Both "balance: misfit ties", "update_sd_pick_busiest", "6.7", last_misfit),
    rule!(Both "balance: delayed tasks", "can_migrate_task", "6.14 (61b82dfb6b7e)", refuses_delayed),
    rule!(Both "balance: ineligible tasks", "can_migrate_task", "6.14 (873199d27bb2)", prefers_eligible),
];

/// A rule as a row follows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleView {
    /// What it is called.
    pub name: &'static str,
    /// The kernel's function.
    pub function: &'static str,
    /// The releases that changed it.
    pub since: &'static str,
    /// What the row does; `None`: its policy has no such thing.
    pub value: Option<String>,
}

impl Version {
    /// Every named rule as this row follows it.
    #[must_use]
    pub fn named_rules(&self) -> Vec<RuleView> {
        let cfs = self.rules.policy == Policy::Cfs;
        let reads = |of: Of| of != if cfs { Of::Eevdf } else { Of::Cfs };
        let kind = |name, function, since, value: String| RuleView { name, function, since, value: Some(value) };
        let mut all = vec![
            kind("policy", "pick_next_entity", "6.6 (147f3efaa241)", format!("{:?}", self.rules.policy)),
            kind("lazy rescheduling", "resched_curr_lazy", "6.13", format!("{:?}", self.rules.lazy)),
        ];
        all.extend(RULES.iter().map(|rule| view(rule, &self.rules, reads(rule.of))));
        all.extend(PLACEMENT.iter().map(|rule| view(rule, &self.placement, true)));
        all
    }
}

fn view<R>(rule: &NamedRule<R>, rules: &R, reads: bool) -> RuleView {
    let NamedRule { name, function, since, show, .. } = *rule;
    RuleView { name, function, since, value: reads.then(|| show(rules)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_rows_apart_is_named() {
        for pair in Version::all().windows(2) {
            let [a, b] = [0, 1].map(|i| pair[i].named_rules());
            let names: Vec<_> = a.iter().zip(&b).filter(|(a, b)| a.value != b.value).map(|(a, _)| a.name).collect();
            let (rules, placement) = (pair[0].rules == pair[1].rules, pair[0].placement == pair[1].placement);
            assert_eq!(names.is_empty(), rules && placement, "{} {}: {names:?}", pair[0].name, pair[1].name);
        }
        let value = |version: &str, name: &str| {
            let rules = Version::find(version).unwrap().named_rules();
            rules.into_iter().find(|rule| rule.name == name).unwrap().value
        };
        assert_eq!(value("6.1", "average: rounding"), None);
        assert_eq!(value("6.6", "average: rounding").as_deref(), Some("false"));
        assert_eq!(value("6.18", "placement: relative deadline").as_deref(), Some("true"));
        assert_eq!(value("7.2", "tick: slice cap"), None);
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Version::all()[0].named_rules().into_iter().map(|rule| rule.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
