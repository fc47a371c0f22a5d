//! CPUs of different capacity, example by example: four of 462 (a HiKey960's Cortex-A53) and four of 1,024.

use schedlab_model::{Capacities, CpuId, CpuMask, PerfDomain, PerfState, TaskId, Topology, MSEC, SEC};

use crate::lab::{Lab, Shape, WAKE};

const ROWS: [&str; 4] = ["6.1", "6.8", "6.12.107", "7.2"];
/// One cache, and one for each half.
const SHAPES: [Shape; 2] = [(1, 1, 8, 1), (1, 2, 4, 1)];

/// The machine; with `energy` small CPUs need a quarter of the energy of big ones for the same work at the same speed.
pub fn big_little((nodes, llcs, cores, threads): Shape, energy: bool) -> Topology {
    let flat = Topology::regular(nodes, llcs, cores, threads, true).expect("a regular topology");
    let half = flat.nr_cpus() / 2;
    let of: Vec<u32> = (0..flat.nr_cpus()).map(|cpu| if cpu < half { 462 } else { 1024 }).collect();
    let state = |performance, power| PerfState { performance, power };
    let domain = |from: usize, to: usize, states: Vec<PerfState>| PerfDomain {
        cpus: CpuMask::from_iter((from..to).map(|cpu| CpuId(cpu as u32))),
        states,
    };
    let little = domain(0, half, vec![state(133, 29_000), state(250, 70_000), state(462, 245_000)]);
    let big = domain(half, flat.nr_cpus(), vec![state(391, 243_000), state(782, 804_000), state(1024, 1_572_000)]);
    flat.with_capacities(Capacities::new(of, if energy { vec![little, big] } else { vec![] }))
        .expect("four capacities and two tables")
}

fn lab(version: &str, shape: Shape, energy: bool) -> Lab {
    Lab::on(version, big_little(shape, energy), |_| {})
}

/// Ticks every CPU each 4 ms for so long; how often each task moved.
fn pass(lab: &mut Lab, ms: u64) -> Vec<TaskId> {
    let mut moved = Vec::new();
    for _ in 0..ms / 4 {
        lab.now += 4 * MSEC;
        for cpu in lab.cpus() {
            moved.extend(lab.tick(cpu).moved.into_iter().map(|(task, _)| task));
            lab.schedule(cpu);
        }
    }
    moved
}

#[test]
fn a_wakee_goes_to_an_idle_cpu_that_is_big_enough() {
    for (version, shape) in ROWS.iter().flat_map(|row| SHAPES.map(|shape| (*row, shape))) {
        for (busy, expected) in [
            (&[][..], (4, "idle and big enough")),
            (&[4, 5], (6, "idle and big enough")),
            (&[4, 5, 6, 7], (0, "the biggest idle CPU")),
        ] {
            let mut lab = lab(version, shape, false);
            let task = lab.running(0);
            // On a small CPU, whose clock of load tracking is slow: about 724 of 1,024, more than four fifths of 462.
            for _ in 0..25 {
                lab.now += 4 * MSEC;
                lab.sched.tick(CpuId(0), lab.now);
            }
            lab.block(CpuId(0));
            busy.iter().for_each(|cpu| _ = lab.running(*cpu));
            let selection = lab.select(task, 0, WAKE);
            assert_eq!((selection.cpu.0, selection.rule), expected, "{version} on {shape:?} with {busy:?} busy");
        }
    }
}

#[test]
fn a_task_that_is_too_big_is_pushed_to_a_big_cpu() {
    for (version, shape) in ROWS.iter().flat_map(|row| SHAPES.map(|shape| (*row, shape))) {
        for energy in [false, true] {
            let mut lab = lab(version, shape, energy);
            let task = lab.running(0);
            pass(&mut lab, 400);
            assert!(lab.sched.cpu_of(task).0 >= 4, "{version} on {shape:?}, energy model: {energy}");
            // There it stays.
            assert_eq!(pass(&mut lab, 2000), [], "{version} on {shape:?}, energy model: {energy}");
        }
    }
}

#[test]
fn a_pinned_task_stays_on_its_small_cpus() {
    for version in ROWS {
        let mut lab = lab(version, SHAPES[1], true);
        let task = lab.pinned(0, "0-3");
        lab.enqueue(task);
        lab.schedule(CpuId(0));
        pass(&mut lab, 1000);
        assert!(lab.sched.cpu_of(task).0 < 4, "{version}");
    }
}

/// A task that runs 1 ms of every 20, first on a big CPU, while another one runs on CPU 7 for as much.
fn light_task(lab: &mut Lab) -> (CpuId, &'static str) {
    let task = lab.running(6);
    let mut last = (CpuId(6), "");
    for _ in 0..60 {
        lab.now += MSEC;
        let cpu = lab.sched.cpu_of(task);
        lab.block(cpu);
        pass(lab, 16);
        lab.now += 3 * MSEC;
        let selection = lab.wake(task, cpu, WAKE).expect("it sleeps");
        last = (selection.cpu, selection.rule);
    }
    last
}

#[test]
fn light_tasks_go_where_they_need_the_least_energy_while_no_cpu_is_overutilized() {
    for version in ROWS {
        let mut quiet = lab(version, SHAPES[1], true);
        let (cpu, rule) = light_task(&mut quiet);
        assert!(cpu.0 < 4 && rule.contains("energy"), "{version}: {rule} on {cpu:?}");
        let mut loaded = lab(version, SHAPES[1], true);
        loaded.running(7);
        loaded.now += SEC;
        pass(&mut loaded, 100);
        let (_, rule) = light_task(&mut loaded);
        assert!(
            !rule.contains("energy"),
            "{version}: {rule} beside a hog, which uses more than four fifths of its CPU"
        );
    }
}

#[test]
fn a_small_cpu_takes_nothing_from_a_big_one_with_a_single_task() {
    for version in ROWS {
        let mut lab = lab(version, SHAPES[0], false);
        let hogs: Vec<TaskId> = (4..8).map(|cpu| lab.running(cpu)).collect();
        assert_eq!(pass(&mut lab, 2000), [], "{version}");
        assert!(hogs.iter().all(|hog| lab.sched.cpu_of(*hog).0 >= 4), "{version}");
        // A ninth task finds a small CPU better than a queue.
        let more: Vec<TaskId> = (0..4).map(|_| lab.task_on(4)).collect();
        more.iter().for_each(|task| lab.enqueue(*task));
        pass(&mut lab, 2000);
        assert_eq!(lab.counts(), [1; 8], "{version}");
    }
}
