//! The deadline class: admission, the constant bandwidth server, the order on one CPU and on several.

#![allow(clippy::unwrap_used)] // a test fails by panicking

#[path = "dl/lab.rs"]
mod lab;

use lab::{config, Job, Lab};
use proptest::prelude::*;
use schedlab_model::{CpuId, Nanos, MSEC, SEC, USEC};
use schedlab_policy::dl::DlPolicy;
use schedlab_policy::rt::RtPolicy;
use schedlab_policy::{KernelConfig, Resched, TaskAttr, Version};

fn dl(runtime: Nanos, deadline: Nanos, period: Nanos) -> DlPolicy {
    DlPolicy { runtime, deadline, period }
}

/// A task that runs for its whole runtime in every period.
fn periodic(runtime: Nanos, period: Nanos, first: Nanos) -> Job {
    Job { dl: Some(dl(runtime, period, period)), first, every: period, work: runtime }
}

/// A task that never sleeps.
fn hog(dl: Option<DlPolicy>) -> Job {
    Job { dl, first: 0, every: 1000 * SEC, work: 900 * SEC }
}

fn whole_cpu(config: &mut KernelConfig) {
    config.set_knob("sched_rt_runtime_us", 1_000_000).unwrap();
}

/// Task sets: runtime and period of each in us, and the start of its first job.
fn task_set(most: usize) -> impl Strategy<Value = Vec<(Nanos, Nanos, Nanos)>> {
    let task = (100u64..20_000, 2u64..60, 0u64..30_000);
    prop::collection::vec(task.prop_map(|(runtime, factor, first)| (runtime, runtime * factor / 2, first)), 1..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// EDF is optimal on one CPU: whatever is admitted there meets every deadline, also at full use.
    #[test]
    fn what_one_cpu_admits_meets_its_deadlines(set in task_set(9), hrtick: bool, fair: bool) {
        for version in ["5.10", "6.1"] {
            let mut lab = Lab::new(config(version, 1, |config| {
                whole_cpu(config);
                if hrtick {
                    config.set_feature(if version == "6.1" { "HRTICK_DL" } else { "HRTICK" }, true).unwrap();
                }
            }));
            if fair {
                lab.add(hog(None));
            }
            let mut admitted = 0;
            for (runtime, period, first) in &set {
                let period = (*period).max(100) * USEC;
                admitted += usize::from(lab.add(periodic(runtime * USEC, period, first * USEC)).is_some());
            }
            lab.run(300 * MSEC, |_| {});
            prop_assert!(admitted > 0 || set.iter().all(|(runtime, period, _)| runtime > period));
            for task in lab.tasks.iter().filter(|task| task.job.dl.is_some()) {
                let late = task.responses.iter().find(|response| **response > task.job.every);
                prop_assert!(late.is_none(), "{version}: {:?} took {late:?}", task.job);
                prop_assert!(lab.now - task.released <= task.job.every || task.left == 0, "{:?} is late", task.job);
            }
        }
    }

    /// Global EDF: on m CPUs the m earliest deadlines run, after every instant.
    #[test]
    fn the_earliest_deadlines_of_the_machine_run(set in task_set(16), cpus in 1u32..5, version in 0usize..3) {
        let mut lab = Lab::new(config(["5.10", "6.12.0", "7.2"][version], cpus, |_| {}));
        for (index, (runtime, period, first)) in set.iter().enumerate() {
            let period = (*period).max(100) * USEC;
            // Some need more than their runtime, some less.
            let work = runtime * USEC * (1 + index as u64 % 3) / 2;
            lab.add(Job { work, ..periodic(runtime * USEC, period, first * USEC) });
        }
        let mut wrong = None;
        lab.run(200 * MSEC, |lab| {
            let mut ready: Vec<Nanos> = lab.all().flat_map(|cpu| lab.sched.dl.queued(cpu).collect::<Vec<_>>())
                .map(|task| lab.sched.dl.deadline(task)).collect();
            ready.sort_unstable();
            ready.truncate(lab.cpus as usize);
            let mut running: Vec<Nanos> =
                lab.all().filter_map(|cpu| lab.sched.dl.curr(cpu)).map(|task| lab.sched.dl.deadline(task)).collect();
            running.sort_unstable();
            if ready != running && wrong.is_none() {
                wrong = Some(format!("at {}: earliest {ready:?}, running {running:?}", lab.now));
            }
        });
        prop_assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    }

    /// A task gets no more than its runtime in each period, however much it needs: exactly with a timer at its end,
    /// else with at most a tick too much, which is taken from its next period.
    #[test]
    fn a_greedy_task_gets_its_bandwidth_and_no_more(
        runtime in 500u64..8_000, factor in 3u64..9, hrtick: bool, constrained: bool,
    ) {
        // A runtime below the tick cannot be kept without the timer, in the kernel either.
        let runtime = if hrtick { runtime } else { runtime.max(1000) };
        let (runtime, period) = (runtime * USEC, runtime * factor / 2 * USEC);
        let mut lab = Lab::new(config("6.1", 1, |config| {
            config.set_feature("HRTICK_DL", hrtick).unwrap();
        }));
        let deadline = if constrained { (runtime + period) / 2 } else { period };
        let greedy = lab.add(hog(Some(dl(runtime, deadline, period)))).unwrap();
        let fair = lab.add(hog(None)).unwrap();
        let start = lab.now;
        let most = if hrtick { 0 } else { MSEC };
        let mut worst = 0i64;
        lab.run(400 * MSEC, |lab| {
            let periods = (lab.now - start).div_ceil(period);
            worst = worst.max(lab.tasks[greedy].ran as i64 - (periods * runtime) as i64);
        });
        prop_assert!(worst <= most as i64, "{worst} ns too much");
        let least = (400 * MSEC / period).saturating_sub(1) * runtime;
        prop_assert!(lab.tasks[greedy].ran + 2 * MSEC >= least, "{} of {least}", lab.tasks[greedy].ran);
        prop_assert_eq!(lab.tasks[greedy].ran + lab.tasks[fair].ran, 400 * MSEC);
    }

    /// The bandwidth of tasks is free again after their 0-lag times, wherever they exit.
    #[test]
    fn bandwidth_comes_back_after_exits(set in task_set(8), when in 1u64..40) {
        let mut lab = Lab::new(config("6.12.0", 2, |_| {}));
        for (runtime, period, first) in &set {
            lab.add(periodic(runtime * USEC, (*period).max(100) * USEC, first * USEC));
        }
        let admitted: u64 = lab.tasks.iter().map(|task| task.job.dl.unwrap().dl_bw()).sum();
        prop_assert_eq!(lab.sched.dl.total_bw(), admitted);
        lab.run(when * MSEC, |_| {});
        // A step shorter than any runtime finds each task running within its period, which is at most 600 ms.
        let mut left = lab.tasks.len();
        for _ in 0..2 * SEC / (90 * USEC) {
            let exiting = lab.all().find_map(|cpu| lab.sched.curr(cpu));
            if let Some(index) = exiting.and_then(|id| lab.tasks.iter().position(|task| task.id == id)) {
                lab.exit(index);
                left -= 1;
            }
            if left == 0 {
                break;
            }
            lab.run(90 * USEC, |_| {});
        }
        prop_assert_eq!(left, 0, "a task did not run in 2 s");
        lab.run(2 * SEC, |_| {});
        prop_assert_eq!(lab.sched.dl.total_bw(), 0);
    }
}

/// What is admitted: runtime and period of tasks in ms, in turn, and whether each fits.
#[test]
fn admission_counts_cpus_and_limits() {
    type Case<'a> = (&'a str, u32, &'a [(u64, u64, bool)]);
    let cases: &[Case] = &[
        ("6.1", 1, &[(95, 100, true), (1, 1000, false)]),
        ("6.1", 1, &[(96, 100, false), (50, 100, true), (45, 100, true), (1, 1000, false)]),
        ("6.1", 4, &[(100, 100, true), (100, 100, true), (100, 100, true), (80, 100, true), (1, 100, false)]),
        // 6.12.107 and 7.2.13 admit more than 0.9 of one CPU beside its fair server.
        ("6.12.0", 1, &[(96, 100, false), (92, 100, true), (4, 100, false)]),
        ("6.12.0", 2, &[(100, 100, true), (90, 100, true), (1, 100, false)]),
        ("7.2", 1, &[(96, 100, false), (95, 100, true)]),
    ];
    for (version, cpus, tasks) in cases {
        let mut lab = Lab::new(config(version, *cpus, |_| {}));
        for (runtime, period, fits) in *tasks {
            let admitted = lab.add(periodic(runtime * MSEC, period * MSEC, 0)).is_some();
            assert_eq!(admitted, *fits, "{version}, {cpus} CPUs: {runtime}/{period}");
        }
    }
    let mut lab = Lab::new(config("6.1", 1, |config| config.set_knob("sched_rt_runtime_us", 500_000).unwrap()));
    lab.add(periodic(20 * MSEC, 100 * MSEC, 0)).unwrap();
    let refused = lab.sched.dl.sched_dl_overflow(None, dl(400 * MSEC, SEC, SEC)).unwrap();
    let rounded = [refused.wanted, refused.tasks, refused.limit].map(|x| (x * 1e3).round());
    assert_eq!(rounded, [400.0, 200.0, 500.0]);
}

/// The wakeup rule, in ms from the first wakeup: a task with 10 of every 100 that sleeps after `ran` and wakes at
/// `wakes` has this deadline, and must run this long to use its runtime up.
#[test]
fn a_wakeup_keeps_its_runtime_only_if_that_is_within_its_share() {
    let cases: &[(u64, u64, u64, u64)] = &[
        // 8 left for 97 is within 10 for 100; 8 left for 70 is not: a new period.
        (2, 3, 100, 8),
        (2, 30, 130, 10),
        // The deadline has passed.
        (2, 150, 250, 10),
        (9, 80, 100, 1),
    ];
    for (ran, wakes, deadline, left) in cases {
        let mut lab = Lab::new(config("6.1", 1, |config| config.set_feature("HRTICK_DL", true).unwrap()));
        let start = lab.now;
        let job =
            Job { dl: Some(dl(10 * MSEC, 100 * MSEC, 100 * MSEC)), first: 0, every: wakes * MSEC, work: ran * MSEC };
        let task = lab.add(job).unwrap();
        lab.run(wakes * MSEC - 1, |_| {});
        lab.tasks[task].job.work = 90 * MSEC;
        lab.run(2, |_| {});
        let id = lab.tasks[task].id;
        assert_eq!((lab.sched.dl.deadline(id) - start) / MSEC, *deadline, "{ran} {wakes}");
        let before = lab.tasks[task].ran;
        while !lab.sched.dl.is_throttled(id) {
            lab.run(10 * USEC, |_| {});
        }
        assert_eq!((lab.tasks[task].ran - before + USEC) / MSEC, *left, "{ran} {wakes}");
    }
}

/// A deadline shorter than the period: the revised rule takes runtime, and a wakeup after the deadline waits for the
/// period.
#[test]
fn constrained_deadlines_follow_the_revised_rule() {
    let dl = dl(10 * MSEC, 40 * MSEC, 100 * MSEC);
    // Wakes at, then: deadline, runs from, runs for, all in ms.
    let cases: &[(u64, u64, u64, u64)] = &[
        // 8 left for 20 to the deadline is more than a quarter: 5 are left.
        (20, 40, 20, 5),
        // After the deadline: from the next period on, with all of its runtime.
        (60, 140, 100, 10),
        (150, 190, 150, 10),
    ];
    for (wakes, deadline, from, length) in cases {
        let mut lab = Lab::new(config("6.12.0", 1, |config| config.set_feature("HRTICK_DL", true).unwrap()));
        let start = lab.now;
        let task = lab.add(Job { dl: Some(dl), first: 0, every: wakes * MSEC, work: 2 * MSEC }).unwrap();
        lab.run(wakes * MSEC - 1, |_| {});
        lab.tasks[task].job.work = 90 * MSEC;
        let id = lab.tasks[task].id;
        let before = lab.tasks[task].ran;
        while lab.sched.curr(CpuId(0)) != Some(id) {
            lab.run(1, |_| {});
        }
        assert_eq!((lab.now - start, (lab.sched.dl.deadline(id) - start) / MSEC), (from * MSEC, *deadline), "{wakes}");
        while !lab.sched.dl.is_throttled(id) {
            lab.run(USEC, |_| {});
        }
        assert_eq!((lab.tasks[task].ran - before + 10 * USEC) / MSEC, *length, "{wakes}");
    }
}

/// `sched_yield` gives up the rest of the period.
#[test]
fn a_yield_ends_the_period() {
    let mut lab = Lab::new(config("6.1", 1, |_| {}));
    let start = lab.now;
    let greedy = lab.add(hog(Some(dl(10 * MSEC, 50 * MSEC, 50 * MSEC)))).unwrap();
    lab.add(hog(None));
    lab.run(3 * MSEC, |_| {});
    lab.sched.yield_current(CpuId(0), lab.now);
    lab.schedule(CpuId(0));
    let id = lab.tasks[greedy].id;
    assert!(lab.sched.dl.is_throttled(id) && lab.sched.curr(CpuId(0)).is_some());
    lab.run(46 * MSEC, |_| {});
    assert_eq!(lab.tasks[greedy].ran, 3 * MSEC);
    lab.run(3 * MSEC, |_| {});
    assert_eq!((lab.tasks[greedy].ran, lab.sched.dl.deadline(id) - start), (5 * MSEC, 100 * MSEC));
}

/// Deadline tasks go before real-time ones on every row, and real-time ones find other CPUs.
#[test]
fn deadline_tasks_are_above_real_time_tasks() {
    for version in Version::all() {
        let mut lab = Lab::new(config(version.name, 2, |_| {}));
        let fifo = TaskAttr { rt: Some(RtPolicy { priority: 99, round_robin: false }), ..TaskAttr::default() };
        for _ in 0..2 {
            let rt = lab.sched.add_task(&fifo);
            lab.tasks.push(lab::Task {
                id: rt,
                job: hog(None),
                left: 900 * SEC,
                released: 0,
                ran: 0,
                responses: Vec::new(),
            });
            let cpu = CpuId(rt.0);
            lab.sched.activate(rt, cpu, schedlab_policy::WakeKind::Fork, lab.now);
            lab.schedule(cpu);
        }
        lab.tasks.iter_mut().for_each(|task| task.job.every = 0);
        let greedy = {
            let id = lab.sched.add_task(&TaskAttr {
                dl: Some(dl(4 * MSEC, 10 * MSEC, 10 * MSEC)),
                cpu: CpuId(1),
                ..TaskAttr::default()
            });
            lab.sched.activate(id, CpuId(1), schedlab_policy::WakeKind::Fork, lab.now);
            id
        };
        let kind = schedlab_policy::WakeKind::Fork;
        assert_eq!(lab.sched.wakeup_preempt(CpuId(1), greedy, kind, false, lab.now), Resched::Full, "{}", version.name);
        lab.schedule(CpuId(1));
        assert_eq!(lab.sched.curr(CpuId(1)), Some(greedy), "{}", version.name);
        assert_eq!(lab.sched.prio(greedy), -1);
        // 4 of 10 ms, and from then on the real-time task again.
        let mut ran = [0u64; 2];
        for _ in 0..100 {
            for cpu in 0..2u32 {
                ran[cpu as usize] += u64::from(lab.sched.curr(CpuId(cpu)) == Some(greedy));
            }
            lab.now += MSEC;
            if lab.sched.next_timer().is_some_and(|at| at <= lab.now) {
                let moves = lab.sched.timer_expired(lab.now);
                moves.resched.iter().for_each(|(cpu, _)| lab.schedule(*cpu));
            }
            for cpu in [CpuId(0), CpuId(1)] {
                if lab.sched.curr(cpu).is_some() && lab.sched.tick(cpu, lab.now) != Resched::No {
                    lab.schedule(cpu);
                }
            }
        }
        assert_eq!(ran[0] + ran[1], 40, "{}", version.name);
    }
}
