//! The slice-end timer (HRTICK) beside the tick, per version.

use schedlab_model::{CpuId, MSEC};
use schedlab_policy::fair::{Enqueue, Fair, Hrtick};
use schedlab_policy::{Algorithm, KernelConfig, Resched, TaskAttr, Version};

const CPU: CpuId = CpuId(0);
const WAKE: Enqueue = Enqueue { wakeup: true, migrated: false, initial: false, delayed: false };

/// So many tasks on one CPU of eight, one of them running since time 0, and HRTICK on.
fn crowd(version: &'static Version, features: &[&str], count: usize) -> Fair {
    let mut config = KernelConfig::new(version, 8, 250);
    for feature in features {
        config.set_feature(feature, true).expect("every row asked has it");
    }
    let mut fair = Fair::new(config);
    for _ in 0..count {
        let task = fair.add_task(&TaskAttr::default());
        fair.enqueue_task(CPU, task, WAKE, 0);
    }
    fair.pick_next_task(CPU, 0).expect("a task is queued");
    fair
}

/// Up to 6.3 slices shrink with every task until `sched_nr_latency` of them are there; from there on the timer stays.
#[test]
fn a_wakeup_moves_the_timer_only_while_slices_change() {
    for version in Version::all() {
        let cfs = version.rules.algorithm == Algorithm::Cfs;
        for count in 2..12 {
            let follows = crowd(version, &["HRTICK"], count).hrtick_update(CPU).is_some();
            assert_eq!(follows, !cfs || count < 8, "{} with {count} tasks", version.name);
        }
        // A pick sets it however many there are.
        assert!(matches!(crowd(version, &["HRTICK"], 11).hrtick_start(CPU), Hrtick::After(_)), "{}", version.name);
    }
}

/// Up to 6.3 the tick leaves the end of a slice to the timer while that runs, but for DOUBLE_TICK.
#[test]
fn the_tick_leaves_slices_to_the_timer() {
    for version in Version::all().iter().filter(|version| version.rules.algorithm == Algorithm::Cfs) {
        for (features, active, expected) in [
            (&["HRTICK"][..], true, Resched::No),
            (&["HRTICK"], false, Resched::Full),
            (&["HRTICK", "DOUBLE_TICK"], true, Resched::Full),
        ] {
            let mut fair = crowd(version, features, 2);
            fair.set_hrtick_active(CPU, active);
            // The slice is 12 ms.
            let request = fair.task_tick(CPU, 20 * MSEC);
            assert_eq!(request, expected, "{} with {features:?}, timer {active}", version.name);
        }
    }
}
