//! The feature table against `kernel/sched/features.h` of the trees at hand, switch by switch.
//!
//! Left out: 5.13, 6.6, 6.18.2 and the 2023 series, whose trees were not read for this list. Where a default depends on the
//! configuration it is that without PREEMPT_RT, with HAVE_RT_PUSH_IPI and with CONFIG_HRTIMER_REARM_DEFERRED (7.2 and later on x86).

#![allow(clippy::unwrap_used)] // a test fails by panicking

use schedlab_policy::{Feature, Version};

/// Row, and its switches in the order of the file, + on, - off.
const HEADERS: &[(&str, &str)] = &[
    (
        "5.2",
        "GENTLE_FAIR_SLEEPERS+ START_DEBIT+ NEXT_BUDDY- LAST_BUDDY+ CACHE_HOT_BUDDY+ WAKEUP_PREEMPTION+ \
         HRTICK- DOUBLE_TICK- LB_BIAS- NONTASK_CAPACITY+ TTWU_QUEUE+ SIS_AVG_CPU- SIS_PROP+ \
         WARN_DOUBLE_CLOCK- RT_PUSH_IPI+ RT_RUNTIME_SHARE+ LB_MIN- ATTACH_AGE_LOAD+ WA_IDLE+ WA_WEIGHT+ \
         WA_BIAS+ UTIL_EST+",
    ),
    (
        "5.7",
        "GENTLE_FAIR_SLEEPERS+ START_DEBIT+ NEXT_BUDDY- LAST_BUDDY+ CACHE_HOT_BUDDY+ WAKEUP_PREEMPTION+ \
         HRTICK- DOUBLE_TICK- NONTASK_CAPACITY+ TTWU_QUEUE+ SIS_AVG_CPU- SIS_PROP+ WARN_DOUBLE_CLOCK- \
         RT_PUSH_IPI+ RT_RUNTIME_SHARE+ LB_MIN- ATTACH_AGE_LOAD+ WA_IDLE+ WA_WEIGHT+ WA_BIAS+ UTIL_EST+ \
         UTIL_EST_FASTUP+",
    ),
    (
        "6.1",
        "GENTLE_FAIR_SLEEPERS+ START_DEBIT+ NEXT_BUDDY- LAST_BUDDY+ CACHE_HOT_BUDDY+ WAKEUP_PREEMPTION+ \
         HRTICK- HRTICK_DL- DOUBLE_TICK- NONTASK_CAPACITY+ TTWU_QUEUE+ SIS_PROP- SIS_UTIL+ \
         WARN_DOUBLE_CLOCK- RT_PUSH_IPI- RT_RUNTIME_SHARE- LB_MIN- ATTACH_AGE_LOAD+ WA_IDLE+ WA_WEIGHT+ \
         WA_BIAS+ UTIL_EST+ UTIL_EST_FASTUP+ LATENCY_WARN- NI_RANDOM+ ALT_PERIOD+ BASE_SLICE+",
    ),
    (
        "6.3",
        "GENTLE_FAIR_SLEEPERS+ START_DEBIT+ NEXT_BUDDY- LAST_BUDDY+ CACHE_HOT_BUDDY+ WAKEUP_PREEMPTION+ \
         HRTICK- HRTICK_DL- DOUBLE_TICK- NONTASK_CAPACITY+ TTWU_QUEUE+ SIS_PROP- SIS_UTIL+ \
         WARN_DOUBLE_CLOCK- RT_PUSH_IPI+ RT_RUNTIME_SHARE- LB_MIN- ATTACH_AGE_LOAD+ WA_IDLE+ WA_WEIGHT+ \
         WA_BIAS+ UTIL_EST+ UTIL_EST_FASTUP+ LATENCY_WARN- ALT_PERIOD+ BASE_SLICE+",
    ),
    (
        "6.12.0",
        "PLACE_LAG+ PLACE_DEADLINE_INITIAL+ PLACE_REL_DEADLINE+ RUN_TO_PARITY+ PREEMPT_SHORT+ NEXT_BUDDY- \
         CACHE_HOT_BUDDY+ DELAY_DEQUEUE+ DELAY_ZERO+ WAKEUP_PREEMPTION+ HRTICK- HRTICK_DL- DOUBLE_TICK- \
         NONTASK_CAPACITY+ TTWU_QUEUE+ SIS_UTIL+ WARN_DOUBLE_CLOCK- RT_PUSH_IPI+ RT_RUNTIME_SHARE- LB_MIN- \
         ATTACH_AGE_LOAD+ WA_IDLE+ WA_WEIGHT+ WA_BIAS+ UTIL_EST+ LATENCY_WARN-",
    ),
    (
        "6.12.107",
        "PLACE_LAG+ PLACE_DEADLINE_INITIAL+ PLACE_REL_DEADLINE+ RUN_TO_PARITY+ PREEMPT_SHORT+ NEXT_BUDDY- \
         PICK_BUDDY+ CACHE_HOT_BUDDY+ DELAY_DEQUEUE+ DELAY_ZERO+ WAKEUP_PREEMPTION+ HRTICK- HRTICK_DL- \
         DOUBLE_TICK- NONTASK_CAPACITY+ TTWU_QUEUE+ SIS_UTIL+ WARN_DOUBLE_CLOCK- RT_PUSH_IPI- \
         RT_RUNTIME_SHARE- LB_MIN- ATTACH_AGE_LOAD+ WA_IDLE+ WA_WEIGHT+ WA_BIAS+ UTIL_EST+ LATENCY_WARN- \
         NI_RANDOM+",
    ),
    (
        "6.18.44",
        "PLACE_LAG+ PLACE_DEADLINE_INITIAL+ PLACE_REL_DEADLINE+ RUN_TO_PARITY+ PREEMPT_SHORT+ NEXT_BUDDY- \
         PICK_BUDDY+ CACHE_HOT_BUDDY+ DELAY_DEQUEUE+ DELAY_ZERO+ WAKEUP_PREEMPTION+ HRTICK- HRTICK_DL- \
         NONTASK_CAPACITY+ TTWU_QUEUE+ SIS_UTIL+ WARN_DOUBLE_CLOCK- RT_PUSH_IPI- RT_RUNTIME_SHARE- LB_MIN- \
         ATTACH_AGE_LOAD+ WA_IDLE+ WA_WEIGHT+ WA_BIAS+ UTIL_EST+ LATENCY_WARN- NI_RANDOM+",
    ),
    (
        "7.2",
        "PLACE_LAG+ PLACE_DEADLINE_INITIAL+ PLACE_REL_DEADLINE+ RUN_TO_PARITY+ PREEMPT_SHORT+ NEXT_BUDDY- \
         PICK_BUDDY+ CACHE_HOT_BUDDY+ DELAY_DEQUEUE+ DELAY_ZERO+ PARANOID_AVG- WAKEUP_PREEMPTION+ HRTICK+ \
         HRTICK_DL+ NONTASK_CAPACITY+ TTWU_QUEUE+ SIS_UTIL+ WARN_DOUBLE_CLOCK- RT_PUSH_IPI- \
         RT_RUNTIME_SHARE- LB_MIN- ATTACH_AGE_LOAD+ WA_IDLE+ WA_WEIGHT+ WA_BIAS+ UTIL_EST+ LATENCY_WARN- \
         NI_RANDOM+ NI_RATE+",
    ),
    (
        "7.3",
        "PLACE_LAG+ PLACE_DEADLINE_INITIAL+ PLACE_REL_DEADLINE+ RUN_TO_PARITY+ PREEMPT_SHORT+ NEXT_BUDDY- \
         PICK_BUDDY+ CACHE_HOT_BUDDY+ DELAY_DEQUEUE+ DELAY_ZERO+ PARANOID_AVG- WAKEUP_PREEMPTION+ HRTICK+ \
         HRTICK_DL+ NONTASK_CAPACITY+ TTWU_QUEUE+ SIS_UTIL+ WARN_DOUBLE_CLOCK- RT_PUSH_IPI- \
         RT_RUNTIME_SHARE- LB_MIN- ATTACH_AGE_LOAD+ WA_IDLE+ WA_WEIGHT+ WA_BIAS+ UTIL_EST+ LATENCY_WARN- \
         NI_RANDOM+ NI_RATE+",
    ),
];

#[test]
fn every_switch_exists_where_the_header_has_it_with_its_default() {
    for (row, header) in HEADERS {
        let version = Version::find(row).unwrap();
        let mut wanted: Vec<(&str, bool)> =
            header.split(' ').map(|word| (&word[..word.len() - 1], word.ends_with('+'))).collect();
        let merged = Feature::all().iter().filter(|info| info.proposed.is_none());
        let known = merged.filter_map(|info| Some((info.name, info.default_in(version)?)));
        let mut known: Vec<(&str, bool)> = known.collect();
        wanted.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, wanted, "{row}");
    }
}
