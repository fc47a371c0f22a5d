//! Requests of clients on other machines: they cost what their interrupts and softirqs cost, on the CPUs that take
//! them, and no task.

use crate::support::{flat, kernel, record, sampled_time, spec, tasks, Record};
use schedlab_model::{CpuMask, Nanos, MSEC, SEC, USEC};
use schedlab_spec::RunSpec;
use schedlab_trace::Kind;
use schedlab_workload::{Amount, Dist, ObjectSpec, Op, Remote, Sends, Workload};

const QUEUE: u32 = 0;
const REPLIES: u32 = 1;
const SOFTIRQ: Nanos = 3 * USEC;

/// A server on CPU 1 that computes for 100 us for each request and answers it; samples the time since its arrival.
fn server(sends: Sends, irq_cpus: &str) -> Workload {
    let program = vec![
        Op::Receive { object: QUEUE, into: 0 },
        Op::Run(Amount::Fixed(100 * USEC)),
        Op::Clock(1),
        Op::SubReg { into: 1, from: 0 },
        Op::Sample { metric: 0, reg: 1 },
        Op::Send { object: REPLIES, from: 1 },
        Op::Jump(0),
    ];
    let mut workload = tasks(vec![("server", 0, Some(1), program)]);
    workload.objects = vec![ObjectSpec::Queue, ObjectSpec::Queue];
    workload.metrics = vec![sampled_time("response")];
    let irq_cpus = CpuMask::from_list(irq_cpus);
    workload.remotes.push(Remote { name: "c".into(), queue: QUEUE, sends, irq_cpus, softirq: Amount::Fixed(SOFTIRQ) });
    workload
}

fn run_of(workload: Workload) -> RunSpec {
    let mut run = spec(flat(2, 500), kernel("6.12.107", 2, 250), vec![workload]);
    run.duration = SEC;
    run
}

fn finished(run: &RunSpec) -> (Record, Vec<Nanos>) {
    let (outcome, record) = record(run);
    let cpus = outcome.unwrap().cpus;
    (record, cpus.iter().map(|cpu| cpu.cost).collect())
}

fn every(ns: Nanos) -> Sends {
    Sends::Every(Amount::Fixed(ns))
}

#[test]
fn requests_arrive_on_time_and_take_no_task() {
    let (record, _) = finished(&run_of(server(every(MSEC), "0")));
    let samples = record.samples();
    assert!((998..=1000).contains(&samples.len()), "one each ms for a second: {}", samples.len());
    // The softirq, the server's wakeup and its 100 us; with idle CPUs nothing waits.
    let most = SOFTIRQ + 100 * USEC + 20 * USEC;
    assert!(samples.iter().all(|sample| (SOFTIRQ + 100 * USEC..most).contains(sample)), "{samples:?}");
    let names: Vec<&str> = record.names.iter().map(|(_, name)| name.as_str()).collect();
    assert!(names.iter().all(|name| *name == "server"), "no other task exists: {names:?}");
}

/// CPU 0 pays for the interrupts that it takes: all, none or about half of them. The server runs on CPU 1.
#[test]
fn interrupts_cost_the_cpus_that_take_them() {
    for (irq_cpus, part) in [("0", 90..=110), ("1", 0..=1), ("0-1", 40..=60)] {
        let cost = |softirq: Nanos| {
            let mut workload = server(every(MSEC), irq_cpus);
            workload.remotes[0].softirq = Amount::Fixed(softirq);
            let mut run = run_of(workload);
            run.noise = true;
            finished(&run).1[0]
        };
        let more = cost(50 * USEC) - cost(0);
        assert!(part.contains(&(100 * more / (1000 * 50 * USEC))), "{irq_cpus}: {more} ns more");
    }
}

/// The softirq delays the reply once.
#[test]
fn a_response_contains_the_softirq() {
    let response = |softirq: Nanos| {
        let mut workload = server(every(MSEC), "0");
        workload.remotes[0].softirq = Amount::Fixed(softirq);
        finished(&run_of(workload)).0.samples()[10]
    };
    let more = response(50 * USEC) - response(0);
    assert!((49 * USEC..=51 * USEC).contains(&more), "{more} ns more");
}

#[test]
fn a_hog_on_the_cpu_of_the_interrupts_is_interrupted_but_not_switched_out() {
    let mut workload = server(every(MSEC), "0");
    let hog = tasks(vec![("hog", 0, Some(0), vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)])]);
    workload.programs.extend(hog.programs);
    workload.tasks.push(schedlab_workload::TaskSpec { program: 1, process: 1, ..hog.tasks[0].clone() });
    let (record, costs) = finished(&run_of(workload));
    let on_0 = record.events.iter().filter(|event| event.cpu.0 == 0 && matches!(event.kind, Kind::Switch { .. }));
    assert_eq!(on_0.count(), 1, "the hog is switched in once");
    assert!(costs[0] > 1000 * SOFTIRQ && record.samples().len() > 990, "{costs:?}");
}

/// A client waits for its reply: with 4 clients, 1 ms of thought and 200 us on the way, no more than 4 requests are
/// under way, and the rate is that of the loop.
#[test]
fn a_closed_loop_waits_for_replies() {
    let fixed = Amount::Fixed;
    let sends =
        |clients, think| Sends::Closed { clients, think: fixed(think), network: fixed(200 * USEC), replies: REPLIES };
    for (clients, think, least, most) in [
        // 1 / (1,000 + 2 * 200 + 3 + 100 us) a second, and the costs.
        (1, MSEC, 640, 666),
        // The server's 100 us limit the rate.
        (40, 0, 8_000, 10_000),
    ] {
        let (record, _) = finished(&run_of(server(sends(clients, think), "0")));
        let samples = record.samples();
        assert!((least..=most).contains(&samples.len()), "{clients} clients: {}", samples.len());
        let longest = samples.iter().max().unwrap();
        assert!(*longest < 120 * USEC * u64::from(clients) + SOFTIRQ, "{clients} clients: {longest}");
    }
}

#[test]
fn times_and_cpus_of_requests_follow_the_seed() {
    let arrivals = |seed, noise| {
        let mut workload = server(Sends::Every(Amount::Drawn(0)), "0-1");
        workload.dists = vec![Dist::Exponential { mean: MSEC }];
        let mut run = run_of(workload);
        (run.seed, run.noise) = (seed, noise);
        let (record, _) = finished(&run);
        let woken = |event: &&schedlab_trace::Event| matches!(event.kind, Kind::Waking { .. });
        record.events.iter().filter(woken).map(|event| (event.time, event.cpu.0)).collect::<Vec<_>>()
    };
    let (first, again, other) = (arrivals(1, true), arrivals(1, true), arrivals(2, true));
    assert!(first == again && first != other);
    assert!((800..1200).contains(&first.len()), "{}", first.len());
    assert!(first.iter().any(|(_, cpu)| *cpu == 0) && first.iter().any(|(_, cpu)| *cpu == 1));
}
