//! CPUs that wait for memory share the bandwidth of the node on which it lies.

use crate::support::{kernel, machine, record, spec, tasks};
use schedlab_model::{Nanos, Topology, MSEC};
use schedlab_spec::{Machine, Memory};
use schedlab_trace::Kind;
use schedlab_workload::catalogue::{self, OptionValue, Where};
use schedlab_workload::{Amount, Op};

/// Two nodes of eight cores with one or two threads. A CPU gets 1 GB/s: 1 MB takes 1 ms.
fn two_nodes(threads: u32, shared: bool) -> Machine {
    let mut machine = machine(Topology::regular(2, 1, 8, threads, true).unwrap(), 0);
    machine.memory = Some(Memory { cpu: 1000, node: 4000, remote: 2000, latency: None });
    machine.physics.memory = shared;
    machine
}

/// When the tasks, each on a CPU of its own, have ended, in order of the tasks.
fn ends(machine: Machine, list: Vec<(u32, Vec<Op>)>) -> Vec<Nanos> {
    let cpus = machine.topology.nr_cpus();
    let list = list.into_iter().map(|(cpu, ops)| ("stream", 0, Some(cpu), ops)).collect();
    let (outcome, record) = record(&spec(machine, kernel("6.12.107", cpus, 250), vec![tasks(list)]));
    outcome.unwrap();
    let end = |pid: i32| {
        let exit = |kind: Kind| matches!(kind, Kind::Exit { pid: gone, .. } if gone == pid);
        record.events.iter().find(|event| exit(event.kind)).map(|event| event.time)
    };
    (1..).map_while(end).collect()
}

fn moves(mb: u32) -> Vec<Op> {
    vec![Op::Stream { bytes: mb * 1_000_000 }]
}

#[track_caller]
fn close(found: &[Nanos], wanted_ms: &[f64]) {
    assert_eq!(found.len(), wanted_ms.len(), "{found:?}");
    for (found, wanted) in found.iter().zip(wanted_ms) {
        let ms = *found as f64 / 1e6;
        // Rates are whole 1/1024.
        assert!((ms - wanted).abs() < 0.01 * wanted, "{ms} ms instead of {wanted}");
    }
}

#[test]
fn a_node_serves_four_at_full_speed_and_more_in_equal_parts() {
    for (tasks, ms) in [(1, 100.0), (2, 100.0), (4, 100.0), (5, 125.0), (8, 200.0)] {
        let list = |_| (0..tasks).map(|cpu| (cpu, moves(100))).collect();
        close(&ends(two_nodes(1, true), list(())), &vec![ms; tasks as usize]);
        close(&ends(two_nodes(1, false), list(())), &vec![100.0; tasks as usize]);
    }
}

#[test]
fn rates_change_when_others_begin_and_end() {
    // Eight for 200 ms at half speed; then two go on alone. One of these computes between its two parts.
    let mut list: Vec<(u32, Vec<Op>)> = (0..6).map(|cpu| (cpu, moves(100))).collect();
    list.push((6, moves(200)));
    list.push((7, [moves(100), vec![Op::Run(Amount::Fixed(50 * MSEC))], moves(100)].concat()));
    let mut wanted = vec![200.0; 6];
    wanted.extend([300.0, 350.0]);
    close(&ends(two_nodes(1, true), list), &wanted);
}

#[test]
fn nodes_do_not_disturb_each_other_and_a_task_leaves_its_memory_behind() {
    let mut list: Vec<(u32, Vec<Op>)> = (0..8).map(|cpu| (cpu, moves(100))).collect();
    list.push((8, moves(100)));
    let mut wanted = vec![200.0; 8];
    wanted.push(100.0);
    close(&ends(two_nodes(1, true), list), &wanted);
    // Four that have moved to the other node have half the link each; one that stayed has all that it can use.
    let away = |cpu: u32| vec![Op::Stream { bytes: 1000 }, Op::SetAffinity(cpu), Op::Stream { bytes: 100_000_000 }];
    let machine = two_nodes(1, true);
    let mut workload =
        tasks((0..5).map(|cpu| ("stream", 0, None, if cpu < 4 { away(cpu) } else { moves(100) })).collect());
    workload.masks = (8..12).map(|cpu| [schedlab_model::CpuId(cpu)].into_iter().collect()).collect();
    for (task, cpu) in workload.tasks.iter_mut().zip(0..) {
        task.affinity = Some([schedlab_model::CpuId(cpu)].into_iter().collect());
    }
    let (outcome, record) = record(&spec(machine, kernel("6.12.107", 16, 250), vec![workload]));
    outcome.unwrap();
    let exit = |pid: i32| {
        let gone = |kind: Kind| matches!(kind, Kind::Exit { pid: gone, .. } if gone == pid);
        record.events.iter().find(|event| gone(event.kind)).unwrap().time
    };
    close(&(1..6).map(exit).collect::<Vec<_>>(), &[200.0, 200.0, 200.0, 200.0, 100.0]);
}

#[test]
fn the_threads_of_a_core_get_no_more_than_one_does() {
    close(&ends(two_nodes(2, true), vec![(0, moves(100)), (1, moves(100))]), &[200.0, 200.0]);
    // Beside one that computes, a thread has the rate of two busy threads: 640 of 1024.
    let computes = vec![Op::Run(Amount::Fixed(500 * MSEC))];
    close(&ends(two_nodes(2, true), vec![(0, moves(100)), (1, computes)])[..1], &[160.0]);
}

#[test]
fn interrupts_take_as_long_beside_memory_as_elsewhere() {
    let ticks = |stream: bool| {
        let mut machine = two_nodes(1, true);
        machine.costs.tick = schedlab_workload::Dist::Constant(10_000);
        let ops = if stream { moves(100) } else { vec![Op::Run(Amount::Fixed(200 * MSEC))] };
        ends(machine, (0..8).map(|cpu| (cpu, ops.clone())).collect())[0]
    };
    let (streams, runs) = (ticks(true), ticks(false));
    assert!(runs > 200 * MSEC && streams.abs_diff(runs) < 50_000, "{streams} {runs}");
}

/// Triad of the `stream` workload with so many threads, in MB/s.
fn triad(threads: i64, shared: bool) -> f64 {
    let options = [("threads", threads), ("array-size", 1_000_000), ("ntimes", 3)]
        .map(|(key, value)| (key.to_owned(), OptionValue::Int(value), Where::default()));
    let workload = catalogue::build("stream", &options, "stream", false, 16).unwrap();
    let place = workload.metrics.iter().position(|metric| metric.name == "triad_mb_per_second").unwrap() as u16;
    let (outcome, record) = record(&spec(two_nodes(1, shared), kernel("6.12.107", 16, 250), vec![workload]));
    outcome.unwrap();
    let shortest = record.events.iter().filter_map(|event| match event.kind {
        Kind::Sample { metric, value, .. } if metric == place => Some(value),
        _ => None,
    });
    24_000_000.0 * 1e3 / shortest.min().unwrap() as f64
}

#[test]
fn throughput_rises_with_threads_until_the_memory_has_no_more() {
    let curve: Vec<f64> = [1, 2, 4, 8, 16].into_iter().map(|threads| triad(threads, true)).collect();
    for (found, most) in curve.iter().zip([1000.0, 2000.0, 4000.0, 8000.0, 8000.0]) {
        // The threads start where the kernel puts them, so few may share a node; all CPUs share both.
        assert!(*found <= 1.001 * most && *found >= 0.45 * most, "{curve:?}");
    }
    assert!((7700.0..8010.0).contains(&curve[4]), "{curve:?}");
    assert!((15_000.0..16_010.0).contains(&triad(16, false)));
}

/// The preset with two sockets of 28 cores: threads on one of them, in GB/s. Published: 12 of one thread, and 80 to 90,
/// half of what both sockets deliver, of all (the sources are in the machine file).
#[test]
fn a_socket_saturates_with_the_threads_that_its_memory_serves() {
    let rate = |threads: u32| {
        let machine = schedlab_scenario::preset("xeon-2s28c-smt2").unwrap().unwrap();
        let took = *ends(machine, (0..threads).map(|cpu| (cpu, moves(120))).collect()).iter().max().unwrap();
        f64::from(threads) * 120e6 / took as f64
    };
    let curve: Vec<f64> = [1, 2, 4, 6, 8, 16, 28].into_iter().map(rate).collect();
    println!("{curve:.1?}");
    for (found, wanted) in curve.iter().zip([12.0, 24.0, 48.0, 72.0, 85.0, 85.0, 85.0]) {
        assert!((found - wanted).abs() < 0.02 * wanted, "{curve:?}");
    }
}
