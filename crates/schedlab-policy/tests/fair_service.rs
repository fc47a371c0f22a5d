//! Service over time: hogs on one CPU receive it by weight, and never fall further behind than the theory allows.

use proptest::prelude::*;
use schedlab_model::{CpuId, Nanos, TaskId, MSEC};
use schedlab_policy::fair::{Enqueue, Fair};
use schedlab_policy::{KernelConfig, Resched, TaskAttr, Version};

const CPU: CpuId = CpuId(0);

/// Runs hogs of the given nice values and slices for `ticks`; calls `check` with everyone's lag in ns of service.
fn run(version: &str, hz: u32, hogs: &[(i8, Option<Nanos>)], ticks: u64, check: impl Fn(TaskId, f64)) -> Fair {
    let version = Version::find(version).expect("a modelled version");
    let mut fair = Fair::new(KernelConfig::new(version, 8, hz));
    let hog = |(nice, slice): &(i8, Option<Nanos>)| TaskAttr { nice: *nice, slice: *slice, ..TaskAttr::default() };
    let tasks: Vec<TaskId> = hogs.iter().map(|spec| fair.add_task(&hog(spec))).collect();
    for task in &tasks {
        fair.enqueue_task(CPU, *task, Enqueue { wakeup: true, ..Enqueue::default() }, 0);
    }
    fair.pick_next_task(CPU, 0);
    let total: u64 = tasks.iter().map(|task| fair.entity(*task).load.weight).sum();
    for tick in 1..=ticks {
        let now = tick * fair.config.tick_nsec();
        if fair.task_tick(CPU, now) == Resched::Full {
            fair.pick_next_task(CPU, now);
        }
        for task in &tasks {
            let se = fair.entity(*task);
            let due = now as f64 * se.load.weight as f64 / total as f64;
            check(*task, due - se.sum_exec_runtime as f64);
        }
    }
    fair
}

proptest! {
    /// EEVDF's bound with requests stretched to whole ticks: no task is owed, or ahead by, more than the longest
    /// request and one quantum.
    #[test]
    fn eevdf_lag_is_bounded_by_the_longest_request_and_a_quantum(
        hz in prop_oneof![Just(250u32), Just(1000)],
        hogs in proptest::collection::vec((-10i8..11, proptest::option::of(100_000u64..20_000_000)), 1..8),
    ) {
        let longest = hogs.iter().map(|(_, slice)| slice.unwrap_or(3 * MSEC)).max().unwrap_or(0);
        let tick = 1_000_000_000 / u64::from(hz);
        let quantum = longest.div_ceil(tick) * tick;
        let bound = (longest + quantum) as f64;
        run("6.12.0", hz, &hogs, 600, |task, lag| {
            assert!(lag.abs() <= bound, "{task} is {lag} ns off, bound {bound}");
        });
    }

    /// CFS gives no such bound per request, but over a second every task has its share to within a few periods.
    #[test]
    fn cfs_serves_by_weight(
        hz in prop_oneof![Just(250u32), Just(1000)],
        nices in proptest::collection::vec(-5i8..6, 1..8),
    ) {
        let hogs: Vec<(i8, Option<Nanos>)> = nices.iter().map(|nice| (*nice, None)).collect();
        let bound = (2 * 24 * MSEC + 2 * 1_000_000_000 / u64::from(hz)) as f64;
        run("6.1", hz, &hogs, u64::from(hz) * 2, |task, lag| {
            assert!(lag.abs() <= bound, "{task} is {lag} ns off, bound {bound}");
        });
    }
}

#[test]
fn shares_follow_the_weight_table() {
    for version in ["6.1", "6.12.0"] {
        for (nice, share) in [(0, 0.5), (1, 820.0 / 1844.0), (5, 335.0 / 1359.0), (-5, 3121.0 / 4145.0)] {
            let fair = run(version, 1000, &[(0, None), (nice, None)], 20_000, |_, _| {});
            let got = fair.entity(TaskId(1)).sum_exec_runtime as f64 / (20_000 * MSEC) as f64;
            assert!((got - share).abs() < 0.002, "{version}: nice {nice} got {got:.4}, due {share:.4}");
        }
    }
}
