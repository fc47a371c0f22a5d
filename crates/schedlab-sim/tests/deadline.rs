//! SCHED_DEADLINE in whole runs: shares, what the kernel refuses, and deadline tasks among random others.

use std::sync::Arc;

use crate::support::swarm::scenario;
use crate::support::{flat, kernel, record, spec, tasks, Record};
use proptest::prelude::*;
use schedlab_model::{CpuMask, Nanos, MSEC, USEC};
use schedlab_policy::Version;
use schedlab_sim::SimError;
use schedlab_spec::RunSpec;
use schedlab_trace::Kind;
use schedlab_workload::rtapp::{self, Source};
use schedlab_workload::{Amount, Deadline, Op, Policy, Program, TaskKind, TaskSpec, Workload};

fn deadline(runtime: Nanos, deadline: Nanos, period: Nanos) -> Policy {
    Policy::Deadline(Deadline { runtime, deadline, period })
}

fn work(ns: Nanos) -> Op {
    Op::Run(Amount::Fixed(ns))
}

/// CPU time of every task of this name.
fn cpu_time(record: &Record, cpus: u32, name: &str, end: Nanos) -> Nanos {
    let mut sum = 0;
    for cpu in 0..cpus {
        let mut since = (0, 0);
        let switches = record.events.iter().filter(|event| event.cpu.0 == cpu).filter_map(|event| match event.kind {
            Kind::Switch { next, .. } => Some((next, event.time)),
            _ => None,
        });
        for (next, time) in switches.chain([(0, end)]) {
            if since.0 != 0 && record.name(since.0) == name {
                sum += time - since.1;
            }
            since = (next, time);
        }
    }
    sum
}

/// Deadline tasks that never sleep get their share on every row, and the fair tasks beside them the rest.
#[test]
fn greedy_deadline_tasks_get_their_share() {
    for version in Version::all() {
        for cpus in [1, 2] {
            let hog = || vec![work(MSEC), Op::Jump(0)];
            let mut workload =
                tasks(vec![("greedy", 0, None, hog()), ("small", 0, None, hog()), ("fair", 0, None, hog())]);
            workload.tasks[0].policy = deadline(6 * MSEC, 10 * MSEC, 10 * MSEC);
            workload.tasks[1].policy = deadline(4 * MSEC, 20 * MSEC, 40 * MSEC);
            workload.tasks[2].count = 3;
            let spec = spec(flat(cpus, 0), kernel(version.name, cpus as usize, 1000), vec![workload]);
            let (outcome, record) = record(&spec);
            outcome.unwrap();
            let of = |name| cpu_time(&record, cpus, name, spec.duration) / MSEC;
            let what = format!("{} on {cpus} CPUs", version.name);
            assert!((594..=608).contains(&of("greedy")), "{what}: {}", of("greedy"));
            assert!((96..=104).contains(&of("small")), "{what}: {}", of("small"));
            let fair = of("fair");
            assert!(fair >= 1000 * u64::from(cpus) - 720, "{what}: {fair}");
        }
    }
}

/// A thread with a slice of its own beside a SCHED_DEADLINE thread whose period is its runtime, as rt-app's example has
/// them: the deadline thread asks for a whole CPU, so it takes two CPUs to admit it.
#[test]
fn an_rt_app_file_with_a_slice_and_a_deadline_thread_runs() {
    let text = r#"{
        "tasks": {
            "sliced": { "policy": "SCHED_OTHER", "priority": -10, "dl-runtime": 50000, "loop": -1, "run": 4000 },
            "edf": { "policy": "SCHED_DEADLINE", "dl-runtime": 150000, "loop": -1, "run": 4000 }
        },
        "global": { "duration": 1, "calibration": "CPU0" }
    }"#;
    for (cpus, admitted) in [(2, true), (1, false)] {
        let source = Source { name: "slices.json", bytes: text.as_bytes() };
        let app = rtapp::read("app", &[source], cpus as usize).unwrap();
        let spec = spec(flat(cpus, 0), kernel("6.12.107", cpus as usize, 250), vec![app.workload]);
        let (outcome, record) = record(&spec);
        assert_eq!(outcome.is_ok(), admitted, "{cpus} CPUs: {outcome:?}");
        if admitted {
            let ran = ["edf", "sliced"].map(|name| cpu_time(&record, cpus, name, spec.duration) / MSEC);
            // The fair thread may begin behind the other one, until the idle CPU pulls it.
            assert!(ran[0] == 1000 && ran[1] >= 900, "{ran:?}");
        }
    }
}

/// Trace events show priority -1, as the kernel's do.
#[test]
fn events_show_their_priority() {
    let mut workload = tasks(vec![("dl", 0, None, vec![work(MSEC), Op::Sleep(Amount::Fixed(9 * MSEC)), Op::Jump(0)])]);
    workload.tasks[0].policy = deadline(2 * MSEC, 10 * MSEC, 10 * MSEC);
    let (outcome, record) = record(&spec(flat(1, 100), kernel("6.12.0", 1, 250), vec![workload]));
    outcome.unwrap();
    let prios: Vec<i32> = record
        .events
        .iter()
        .filter_map(|event| match event.kind {
            Kind::Wakeup { prio, .. } | Kind::WakeupNew { prio, .. } => Some(prio),
            _ => None,
        })
        .collect();
    assert!(prios.len() > 50 && prios.iter().all(|prio| *prio == -1), "{prios:?}");
}

/// What a deadline task may not do, and what the message says.
#[test]
fn the_kernel_refuses_what_it_refuses() {
    let small = deadline(MSEC, 10 * MSEC, 10 * MSEC);
    let cases: Vec<(&str, Policy, Vec<Op>, &[&str])> = vec![
        (
            "6.1",
            deadline(96 * MSEC, 100 * MSEC, 100 * MSEC),
            vec![work(1)],
            &["EBUSY", "asks for 0.960", "more than 0.950"],
        ),
        (
            "6.12.0",
            deadline(96 * MSEC, 100 * MSEC, 100 * MSEC),
            vec![work(1)],
            &["asks for 0.960", "0.000 for other deadline tasks", "more than 0.950"],
        ),
        (
            "6.12.0",
            Policy::Normal,
            vec![work(1), Op::SetPolicy(deadline(97 * MSEC, 100 * MSEC, 100 * MSEC))],
            &["task \"t\"", "EBUSY"],
        ),
        ("6.1", small, vec![Op::Fork { program: 0, kind: TaskKind::Thread, into: 0 }], &["EAGAIN", "step 0"]),
        ("6.1", small, vec![work(1), Op::SetSlice(MSEC)], &["a runtime instead of a slice"]),
    ];
    for (version, policy, ops, parts) in cases {
        let mut workload = tasks(vec![("t", 0, None, ops)]);
        workload.tasks[0].policy = policy;
        let (outcome, _) = record(&spec(flat(1, 100), kernel(version, 1, 250), vec![workload]));
        let error = outcome.unwrap_err();
        assert!(!error.hint().is_empty());
        for part in parts {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
    // A task that may not use every CPU is refused, before and after.
    for ops in [vec![Op::SetAffinity(0), Op::SetPolicy(small)], vec![Op::SetPolicy(small), Op::SetAffinity(0)]] {
        let mut workload = tasks(vec![("t", 0, None, ops)]);
        workload.masks = vec![CpuMask::first(1)];
        let (outcome, _) = record(&spec(flat(2, 100), kernel("6.1", 2, 250), vec![workload]));
        let error = outcome.unwrap_err();
        assert!(matches!(error, SimError::Deadline { .. } | SimError::Program { .. }), "{error}");
        assert!(error.to_string().contains("CPU"), "{error}");
    }
}

/// Bandwidth that a task gave up can be had by another, after its 0-lag time: it exits at 30 ms with half of its
/// runtime, which is worth half of its period before its deadline at 100 ms.
#[test]
fn bandwidth_is_free_again_after_an_exit() {
    let dl = deadline(60 * MSEC, 100 * MSEC, 100 * MSEC);
    for (delay, admitted) in [(10 * MSEC, false), (45 * MSEC, false), (55 * MSEC, true)] {
        let mut workload =
            tasks(vec![("first", 0, None, vec![work(30 * MSEC)]), ("second", 0, None, vec![work(MSEC)])]);
        workload.tasks.iter_mut().for_each(|task| task.policy = dl);
        workload.tasks[1].delay = delay;
        let (outcome, _) = record(&spec(flat(1, 100), kernel("6.1", 1, 250), vec![workload]));
        assert_eq!(outcome.is_ok(), admitted, "{outcome:?}");
    }
}

/// Adds deadline tasks to a run: of little bandwidth, some of which want more, some of which change their policy.
fn with_deadline_tasks(mut spec: RunSpec) -> RunSpec {
    let cpus = spec.machine.topology.nr_cpus() as u64;
    let mut workload = Workload { name: "deadline".into(), ..Workload::default() };
    for index in 0..(2 + spec.seed % 5) {
        let draw = (spec.seed >> index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let period = (500 + draw % 20_000) * USEC;
        let runtime = (period * cpus / 20).min(period * 9 / 10).max(2 * USEC);
        let policy = deadline(runtime, period - (period - runtime) / (1 + draw % 3), period);
        let job = work(runtime / 2 + draw % 3 * runtime / 2 + 1);
        let pause = Op::Sleep(Amount::Fixed(draw % 7 * period / 5 + 1));
        let last = match draw % 4 {
            0 => Op::Yield,
            1 => Op::SetPolicy(Policy::Normal),
            _ => Op::SetNice(1),
        };
        let again = Op::SetPolicy(policy);
        let ops = vec![Op::Set(7, 20), again, job, pause, last, work(1000), Op::DecJump { reg: 7, to: 1 }];
        workload.programs.push(Program { name: format!("d{index}"), ops, ..Program::default() });
        workload.tasks.push(TaskSpec {
            name: format!("d{index}"),
            program: index as u32,
            policy,
            ..TaskSpec::default()
        });
    }
    let workloads: Vec<Workload> = spec.workloads.iter().cloned().chain([workload]).collect();
    spec.workloads = Arc::new(workloads);
    spec
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_check_holds_with_deadline_tasks(spec in scenario(Version::all().iter().collect()), hrtick: bool) {
        let mut spec = with_deadline_tasks(spec);
        if hrtick {
            let _ = spec.kernel.set_feature("HRTICK_DL", true);
        }
        let (outcome, first) = record(&spec);
        if let Err(error) = &outcome {
            prop_assert!(false, "{error}");
        }
        let (again, second) = record(&spec);
        prop_assert_eq!(outcome, again);
        prop_assert!(first.events == second.events, "two runs of one specification differ");
    }
}
