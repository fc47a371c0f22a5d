//! Cache-aware balancing (7.2 and later): threads of a process come together, and what keeps them apart.

use proptest::prelude::*;
use schedlab_model::{CpuId, TaskId, MSEC};
use schedlab_policy::KernelConfig;

use crate::lab::{Lab, Shape};

/// Hogs that start on these CPUs, in processes of these numbers.
fn hogs(lab: &mut Lab, starts: &[(u32, u64)]) -> Vec<TaskId> {
    let mut tasks = Vec::new();
    for (cpu, process) in starts {
        let task = lab.task_on(*cpu);
        lab.sched.fair.set_mm(task, *process, false, lab.now);
        lab.enqueue(task);
        tasks.push(task);
    }
    for cpu in lab.cpus() {
        lab.schedule(cpu);
    }
    tasks
}

/// The number of tasks that were moved in so many ticks.
fn run(lab: &mut Lab, ticks: u32) -> usize {
    let mut moved = 0;
    for _ in 0..ticks {
        lab.now += 4 * MSEC;
        for cpu in lab.cpus() {
            moved += lab.tick(cpu).moved.len();
            lab.schedule(cpu);
        }
    }
    moved
}

/// How many of the tasks are under each cache of so many CPUs.
fn by_cache(lab: &Lab, tasks: &[TaskId], size: u32) -> Vec<usize> {
    let of = |task: &TaskId| lab.sched.cpu_of(*task).0 / size;
    (0..lab.idle.len() as u32 / size).map(|llc| tasks.iter().filter(|task| of(task) == llc).count()).collect()
}

#[test]
fn threads_of_a_process_come_together_and_stay() {
    const APART: [(u32, u64); 3] = [(0, 7), (1, 7), (8, 7)];
    const EIGHT: Shape = (1, 2, 8, 1);
    type Case<'a> = (&'a str, &'a str, Shape, (&'a str, u64), &'a [(u32, u64)], [usize; 2]);
    let cases: &[Case] = &[
        ("threads", "7.2", EIGHT, ("imb_pct", 20), &APART, [3, 0]),
        ("threads", "7.3", EIGHT, ("imb_pct", 20), &APART, [3, 0]),
        ("threads on two nodes", "7.2", (2, 1, 8, 1), ("imb_pct", 20), &APART, [3, 0]),
        ("switched off", "7.2", EIGHT, ("enabled", 0), &APART, [2, 1]),
        ("before 7.2", "7.1", EIGHT, ("", 0), &APART, [2, 1]),
        ("processes", "7.2", EIGHT, ("imb_pct", 20), &[(0, 1), (1, 2), (8, 3)], [2, 1]),
        (
            "more threads than a small cache takes",
            "7.2",
            (1, 2, 2, 1),
            ("imb_pct", 20),
            &[(0, 7), (1, 7), (2, 7)],
            [2, 1],
        ),
        ("no thread is too many", "7.2", EIGHT, ("aggr_tolerance", 0), &APART, [2, 1]),
    ];
    for (name, row, shape, (knob, value), starts, expected) in cases {
        let knob = |config: &mut KernelConfig| {
            if !knob.is_empty() {
                config.set_knob(&format!("llc_balancing/{knob}"), *value).expect("a knob");
            }
        };
        let mut lab = Lab::configured(row, *shape, knob);
        let tasks = hogs(&mut lab, starts);
        run(&mut lab, 200);
        assert_eq!(by_cache(&lab, &tasks, shape.2), expected, "{name}, {row}");
        assert_eq!(run(&mut lab, 200), 0, "{name}, {row}: it does not move again");
        let together = expected[1] == 0;
        let preferred = tasks.iter().map(|task| lab.sched.fair.preferred_llc(*task)).collect::<Vec<_>>();
        assert_eq!(preferred, vec![together.then_some(CpuId(0)); 3], "{name}, {row}");
    }
}

#[test]
fn a_process_that_stops_running_prefers_no_cache() {
    let mut lab = Lab::new("7.2", (1, 2, 8, 1));
    let tasks = hogs(&mut lab, &[(0, 7), (1, 7)]);
    run(&mut lab, 20);
    assert_eq!(lab.sched.fair.preferred_llc(tasks[0]), Some(CpuId(0)));
    // The other thread exits, and a process of one thread prefers nothing.
    lab.block(CpuId(1));
    lab.sched.fair.exit_mm(tasks[1]);
    run(&mut lab, 1);
    assert_eq!(lab.sched.fair.preferred_llc(tasks[0]), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever the processes, no CPU stays idle beside a queue, and nothing moves once they have settled.
    #[test]
    fn processes_settle(
        shape in prop::sample::select(&[(1, 2, 4, 1), (1, 2, 2, 2), (2, 2, 2, 2), (1, 4, 3, 1)][..]),
        row in prop::sample::select(&["7.2", "7.3"][..]),
        starts in proptest::collection::vec((0u32..16, 0u64..3), 1..16),
    ) {
        let mut lab = Lab::new(row, shape);
        let cpus = lab.idle.len() as u32;
        let starts: Vec<(u32, u64)> = starts.iter().take(cpus as usize).map(|(cpu, mm)| (cpu % cpus, *mm)).collect();
        hogs(&mut lab, &starts);
        run(&mut lab, 1000);
        prop_assert_eq!(run(&mut lab, 300), 0);
        prop_assert!(lab.counts().iter().all(|count| *count <= 1), "idle beside a queue: {:?}", lab.counts());
        prop_assert_eq!(lab.counts().iter().sum::<u32>() as usize, starts.len());
    }
}
