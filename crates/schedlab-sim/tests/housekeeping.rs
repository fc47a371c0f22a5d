//! The kernel's periodic threads: how often they run, that a deferrable timer wakes no idle CPU, that they change
//! nothing while the mechanism is off.

use crate::support::{kernel, machine, record, spec, tasks, Record};
use schedlab_model::{CpuId, Nanos, Topology, MSEC, SEC, USEC};
use schedlab_spec::{Machine, Mechanism};
use schedlab_trace::Kind;
use schedlab_workload::{Amount, ObjectSpec, Op, Policy, Workload};

const HZ: u32 = 250;

fn four(on: bool) -> Machine {
    let mut machine = machine(Topology::regular(1, 1, 4, 1, true).unwrap(), 0);
    machine.physics.set(Mechanism::Housekeeping, on);
    machine
}

/// A task that is always busy, on this CPU.
fn hog(cpu: u32) -> Workload {
    tasks(vec![("hog", 0, Some(cpu), vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)])])
}

fn run(machine: Machine, version: &str, workloads: Vec<Workload>, duration: Nanos) -> Record {
    let mut spec = spec(machine, kernel(version, 4, HZ), workloads);
    spec.duration = duration;
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    record
}

/// When a thread of this name is switched to.
fn stays(record: &Record, name: &str) -> Vec<(CpuId, Nanos)> {
    let Some((pid, _)) = record.names.iter().find(|(_, known)| known == name) else { return Vec::new() };
    let to = |event: &&schedlab_trace::Event| matches!(event.kind, Kind::Switch { next, .. } if next == *pid);
    record.events.iter().filter(to).map(|event| (event.cpu, event.time)).collect()
}

#[test]
fn each_thread_runs_in_its_period_on_its_own_cpu() {
    let record = run(four(true), "6.12.107", (0..4).map(hog).collect(), 40 * SEC);
    for cpu in 0..4 {
        let watchdog = stays(&record, &format!("migration/{cpu}"));
        assert!((9..=11).contains(&watchdog.len()), "migration/{cpu}: {} stays", watchdog.len());
        assert!(watchdog.iter().all(|(on, _)| on.0 == cpu));
        let vmstat = stays(&record, &format!("kworker/{cpu}:1"));
        assert!(vmstat.len() >= 38, "kworker/{cpu}:1: {} stays", vmstat.len());
        assert!(vmstat.iter().all(|(on, _)| on.0 == cpu));
    }
    let compaction = stays(&record, "kcompactd0").len();
    assert!((76..=84).contains(&compaction), "{compaction}");
}

#[test]
fn a_deferrable_timer_leaves_an_idle_cpu_asleep() {
    let record = run(four(true), "6.12.107", vec![hog(0)], 40 * SEC);
    let (busy, idle) = (stays(&record, "kworker/0:1").len(), stays(&record, "kworker/3:1").len());
    assert!(busy >= 38, "{busy}");
    // The stops of the watchdog do wake the CPU, but no tick follows in which the timer could fire.
    assert!(idle <= 12, "{idle}");
    assert!(stays(&record, "migration/3").len() >= 9);
}

#[test]
fn the_tick_for_a_timer_of_the_wheel_fires_deferrable_timers_of_an_idle_cpu() {
    let sleeper = || tasks(vec![("sleeper", 0, Some(0), vec![Op::Sleep(Amount::Fixed(100 * SEC)), Op::Exit])]);
    let record = run(four(true), "6.12.107", vec![sleeper()], 40 * SEC);
    // Nothing moves kcompactd away from the CPU on which it starts.
    let compaction = stays(&record, "kcompactd0");
    let (home, _) = compaction[0];
    assert!(compaction.iter().all(|(cpu, _)| *cpu == home) && compaction.len() >= 76);
    for cpu in 0..4 {
        let vmstat = stays(&record, &format!("kworker/{cpu}:1")).len();
        assert_eq!(vmstat >= 38, cpu == home.0, "kworker/{cpu}:1: {vmstat} stays");
    }
}

#[test]
fn the_threads_are_older_than_the_run_and_start_asleep() {
    let record = run(four(true), "6.12.107", vec![hog(0)], 100 * MSEC);
    assert!(record.names.len() > 10);
    let early = record.events.iter().filter(|event| event.time < MSEC).count();
    let forks = record.events.iter().filter(|event| matches!(event.kind, Kind::Fork { .. })).count();
    // The hog's fork, its wakeup and its switch.
    assert!(forks <= 1 && early < 8, "{forks} {early}");
}

#[test]
fn a_stopper_goes_before_every_other_task() {
    // Up to 6.7 a SCHED_FIFO task may run for 950 ms of a second; the stopper waits for neither.
    let mut fifo = hog(0);
    fifo.tasks[0].policy = Policy::Fifo(99);
    for version in ["6.1", "6.12.107", "7.2"] {
        let record = run(four(true), version, vec![fifo.clone()], 20 * SEC);
        let stopper = record.names.iter().find(|(_, name)| name == "migration/0").unwrap().0;
        let is_its_wakeup = |kind: &Kind| matches!(kind, Kind::Wakeup { pid, .. } if *pid == stopper);
        let wakeups = record.events.iter().filter(|event| is_its_wakeup(&event.kind));
        let woken: Vec<_> = wakeups.map(|event| event.time).collect();
        let stays = stays(&record, "migration/0");
        assert!(woken.len() >= 4 && woken.len() == stays.len(), "{version}: {} {}", woken.len(), stays.len());
        assert!(woken.iter().zip(&stays).all(|(woken, (_, runs))| runs - woken < 10 * USEC), "{version}");
    }
}

#[test]
fn a_deadlock_is_found_although_the_threads_go_on() {
    let mut workload = tasks(vec![("a", 0, Some(1), vec![Op::Run(Amount::Fixed(MSEC)), Op::Wait(0)])]);
    workload.objects = vec![ObjectSpec::Futex];
    let mut spec = spec(four(true), kernel("6.12.107", 4, HZ), vec![workload]);
    spec.duration = 10 * SEC;
    let said = record(&spec).0.unwrap_err().to_string();
    assert!(said.starts_with("deadlock at 0.001") && said.contains("w/a") && !said.contains("housekeeping"), "{said}");
}

#[test]
fn releases_differ_in_what_they_run() {
    let threads = |version: &str| {
        let record = run(four(true), version, vec![hog(0)], 100 * MSEC);
        let has = |name: &str| record.names.iter().any(|(_, known)| known.starts_with(name));
        (has("kcompactd"), has("kworker/u"), has("kworker/0"))
    };
    assert_eq!(threads("5.2"), (false, false, true));
    assert_eq!(threads("6.12.107"), (true, true, true));
}

#[test]
fn a_task_that_is_preempted_gets_its_time_all_the_same() {
    // The time of the threads delays the work of tasks and does not replace it: the same work ends later by that time.
    let once = || tasks(vec![("w", 0, Some(0), vec![Op::Run(Amount::Fixed(20 * SEC)), Op::Exit])]);
    let end = |on: bool| {
        let record = run(four(on), "6.12.107", vec![once(), hog(1)], 30 * SEC);
        let exit = |event: &&schedlab_trace::Event| matches!(event.kind, Kind::Exit { .. });
        record.events.iter().find(exit).unwrap().time
    };
    let (with, without) = (end(true), end(false));
    assert!(with > without && with - without < 20 * 10 * 100 * USEC, "{with} {without}");
}

#[test]
fn off_means_that_nothing_of_it_is_there() {
    let record = run(four(false), "6.12.107", vec![hog(0)], SEC);
    assert_eq!(record.names.len(), 1);
}
