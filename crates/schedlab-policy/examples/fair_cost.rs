//! Prints what one operation of the fair class costs, in ns, against the number of queued tasks, of groups and their
//! depth.
//!
//! A part of `make bench`; with a version as argument, only its ping-pong runs, for a profiler.

use std::time::Instant;

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_policy::fair::{Dequeue, Enqueue, Fair, GroupId, WakeFlags};
use schedlab_policy::{KernelConfig, TaskAttr, Version};

const CPU: CpuId = CpuId(0);
const SLEEP: Dequeue =
    Dequeue { sleep: true, special: false, throttle: false, save: false, delayed: false, migrating: false };
const WAKE: Enqueue = Enqueue { wakeup: true, migrated: false, initial: false, delayed: false };

/// The best of five repetitions.
fn ns_per_loop(loops: u32, mut body: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..5 {
        #[allow(clippy::disallowed_methods)] // a stopwatch around the class, which itself is handed its time
        let start = Instant::now();
        (0..loops).for_each(|_| body());
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(loops));
    }
    best
}

fn fair(version: &str, tasks: usize) -> (Fair, Vec<TaskId>) {
    let version = Version::all().iter().find(|v| v.name == version).expect("a modelled version");
    let mut fair = Fair::new(KernelConfig::new(version, 1, 1000));
    let nices = [0, 0, 0, 5, -5];
    let attr = |i: usize| TaskAttr { nice: if tasks > 2 { nices[i % nices.len()] } else { 0 }, ..TaskAttr::default() };
    let ids = (0..tasks).map(|i| fair.add_task(&attr(i))).collect();
    (fair, ids)
}

/// The current task wakes the other and sleeps: enqueue, preemption check if asked for, dequeue, pick.
fn ping_pong(version: &str, check: bool) -> f64 {
    let (mut fair, tasks) = fair(version, 2);
    let mut now: Nanos = 1;
    fair.enqueue_task(CPU, tasks[0], WAKE, now);
    fair.pick_next_task(CPU, now);
    let mut turn = 0;
    ns_per_loop(1_000_000, || {
        now += 1500;
        let (running, other) = (tasks[turn], tasks[1 - turn]);
        fair.enqueue_task(CPU, other, WAKE, now);
        if check {
            fair.wakeup_preempt(CPU, other, WakeFlags::default(), false, now);
        }
        now += 700;
        fair.dequeue_task(CPU, running, SLEEP, now);
        let next = fair.pick_next_task(CPU, now);
        assert_eq!(next, Some(other));
        turn = 1 - turn;
    })
}

/// The current task sleeps, the next is picked, a sleeper comes back: `queued` stay runnable.
fn sleep_and_wake(version: &str, queued: usize) -> f64 {
    let (mut fair, tasks) = fair(version, queued + 1);
    let mut now: Nanos = 1;
    for task in &tasks[..queued] {
        now += 1000;
        fair.enqueue_task(CPU, *task, WAKE, now);
    }
    let mut asleep = tasks[queued];
    fair.pick_next_task(CPU, now);
    ns_per_loop(if queued > 10_000 { 200_000 } else { 1_000_000 }, || {
        now += 20_000;
        let running = fair.curr(CPU).expect("the queue is not empty");
        fair.enqueue_task(CPU, asleep, WAKE, now);
        fair.wakeup_preempt(CPU, asleep, WakeFlags::default(), false, now);
        now += 1000;
        let gone = fair.dequeue_task(CPU, running, Dequeue { special: true, ..SLEEP }, now);
        assert!(gone);
        asleep = running;
        fair.pick_next_task(CPU, now);
    })
}

/// The tick that lets the next hog run: accounting, pick, put, set.
fn tick_switch(version: &str, queued: usize) -> f64 {
    let (mut fair, tasks) = fair(version, queued);
    let mut now: Nanos = 1;
    for task in &tasks {
        now += 1000;
        fair.enqueue_task(CPU, *task, WAKE, now);
    }
    fair.pick_next_task(CPU, now);
    ns_per_loop(if queued > 10_000 { 200_000 } else { 1_000_000 }, || {
        now += 4_000_000;
        fair.task_tick(CPU, now);
        fair.pick_next_task(CPU, now);
    })
}

/// The ping-pong between two of `wide` groups, each the lowest of a chain of `depth`; all others are empty.
fn between_groups(version: &str, wide: u32, depth: u32) -> f64 {
    let version = Version::all().iter().find(|v| v.name == version).expect("a modelled version");
    let mut fair = Fair::new(KernelConfig::new(version, 1, 1000));
    let chain = |fair: &mut Fair| (0..depth).fold(GroupId::ROOT, |above, _| fair.sched_create_group(above));
    let groups: Vec<GroupId> = (0..wide).map(|_| chain(&mut fair)).collect();
    let ends = [groups[0], groups[groups.len() - 1]];
    let tasks = ends.map(|group| fair.add_task(&TaskAttr { group, ..TaskAttr::default() }));
    let mut now: Nanos = 1;
    fair.enqueue_task(CPU, tasks[0], WAKE, now);
    fair.pick_next_task(CPU, now);
    let mut turn = 0;
    ns_per_loop(200_000, || {
        now += 1500;
        let (running, other) = (tasks[turn], tasks[1 - turn]);
        fair.enqueue_task(CPU, other, WAKE, now);
        fair.wakeup_preempt(CPU, other, WakeFlags::default(), false, now);
        now += 700;
        fair.dequeue_task(CPU, running, SLEEP, now);
        fair.pick_next_task(CPU, now);
        turn = 1 - turn;
    })
}

const ROWS: [&str; 3] = ["6.1", "6.12.107", "7.2"];

fn main() {
    if let Some(version) = std::env::args().nth(1) {
        println!("{:.1}", ping_pong(&version, true));
        return;
    }
    print!("{:<34}", "");
    ROWS.iter().for_each(|row| print!("{row:>16}"));
    println!();
    row("ping-pong: enqueue, dequeue, pick", None, |version| ping_pong(version, false));
    let first = row("the same with the wakeup check", None, |version| ping_pong(version, true));
    for (wide, depth) in [(2, 1), (1000, 1), (2, 4), (250, 4)] {
        let name = format!("the same, {wide} groups {depth} deep");
        row(&name, Some(&first), |version| between_groups(version, wide, depth));
    }
    scaling("enqueue, check, dequeue, pick", sleep_and_wake);
    scaling("tick and switch", tick_switch);
}

/// The cost with 2 queued tasks, and what more of them make of it.
fn scaling(name: &str, cost: fn(&str, usize) -> f64) {
    let first = row(&format!("{name}, 2 tasks"), None, |version| cost(version, 2));
    for queued in [10, 100, 1000, 100_000] {
        row(&format!("the same, {queued} tasks"), Some(&first), |version| cost(version, queued));
    }
}

/// Prints ns per loop on each version, and the ratio to `first`.
fn row(name: &str, first: Option<&[f64]>, cost: impl Fn(&str) -> f64) -> Vec<f64> {
    print!("{name:<34}");
    let mut costs = Vec::new();
    for (i, version) in ROWS.iter().enumerate() {
        let ns = cost(version);
        let ratio = first.map_or(String::new(), |first| format!("x{:.2}", ns / first[i]));
        print!(" {ns:>7.0} {ratio:>7}");
        costs.push(ns);
    }
    println!();
    costs
}
