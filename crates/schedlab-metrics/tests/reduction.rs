//! The reduction compared with small traces worked out by hand, and against a slow count of random ones.

use proptest::prelude::*;
use schedlab_metrics::{sched_metrics, MetricEntry, Metrics, Plan, Report, Stat};
use schedlab_model::{CpuId, KernelId, Nanos, Pid};
use schedlab_trace::{Call, Event, Kind, Section, Sink, TaskState};
use schedlab_workload::{Better, MetricDecl, MetricKind, OfTasks, Unit};

const PRIO: i32 = 120;

fn switch(time: Nanos, cpu: u32, prev: Pid, state: TaskState, next: Pid) -> Event {
    let kind = Kind::Switch { prev, prev_prio: PRIO, prev_state: state, next, next_prio: PRIO };
    Event::new(time, CpuId(cpu), kind)
}

fn waking(time: Nanos, pid: Pid, cpu: u32) -> Event {
    Event::new(time, CpuId(0), Kind::Waking { pid, prio: PRIO, target_cpu: CpuId(cpu) })
}

fn wakeup(time: Nanos, pid: Pid, cpu: u32) -> Event {
    Event::new(time, CpuId(0), Kind::Wakeup { pid, prio: PRIO, target_cpu: CpuId(cpu) })
}

fn migrate(time: Nanos, pid: Pid, from: u32, to: u32) -> Event {
    let kind = Kind::Migrate { pid, prio: PRIO, orig_cpu: CpuId(from), dest_cpu: CpuId(to) };
    Event::new(time, CpuId(to), kind)
}

fn sample(time: Nanos, metric: u16, value: u64) -> Event {
    Event::new(time, CpuId(0), Kind::Sample { pid: 1, metric, value })
}

fn count(time: Nanos, metric: u16, count: u64) -> Event {
    Event::new(time, CpuId(0), Kind::Count { pid: 1, metric, count })
}

fn reduce(plan: Plan, events: &[Event], end: Nanos) -> Report {
    let mut metrics = Metrics::new(plan);
    events.iter().for_each(|event| metrics.event(event));
    metrics.finish(end)
}

#[track_caller]
fn check(report: &Report, wanted: &[(&str, f64)]) {
    for (name, want) in wanted {
        let got = report.metric(name).unwrap_or(f64::NAN);
        assert!((got - want).abs() <= want.abs() * 1e-9, "{name}: {got} instead of {want}\n{report:#?}");
    }
}

use TaskState::{Dead, Running, Sleeping};

/// 10 runs 0..300 us and again 500..600; 20 wakes at 100, waits until 300 (10 is preempted), sleeps at 500.
fn two_tasks() -> Vec<Event> {
    vec![
        switch(0, 0, 0, Running, 10),
        waking(100_000, 20, 0),
        wakeup(110_000, 20, 0),
        switch(300_000, 0, 10, Running, 20),
        switch(500_000, 0, 20, Sleeping, 10),
        switch(600_000, 0, 10, Dead, 0),
    ]
}

#[test]
fn one_cpu_two_tasks_by_hand() {
    let report = reduce(Plan { nr_cpus: 1, ..Plan::default() }, &two_tasks(), 1_000_000);
    check(
        &report,
        &[
            ("sched.switches", 4.0),
            ("sched.involuntary_switches", 1.0),
            ("sched.voluntary_switches", 2.0),
            ("sched.wakeups", 1.0),
            ("sched.wakeup_latency.max", 200.0),
            ("sched.wakeup_latency.count", 1.0),
            ("sched.run_delay.count", 2.0),
            ("sched.run_delay.mean", 195.0),
            ("sched.run_time.mean", 200.0),
            ("sched.cpu_busy", 60.0),
            ("sched.idle_while_runnable", 0.0),
        ],
    );
    let rows: Vec<_> = report.tasks.iter().map(|t| (t.pid, t.cpu_ns, t.wait_ns, t.switches)).collect();
    assert_eq!(rows, [(10, 400_000, 200_000, 2), (20, 200_000, 190_000, 1)]);
}

#[test]
fn warm_up_cuts_counters_and_totals_and_keeps_state() {
    let report = reduce(Plan { nr_cpus: 1, warmup: 400_000, ..Plan::default() }, &two_tasks(), 1_000_000);
    check(
        &report,
        &[
            ("sched.switches", 2.0),
            ("sched.wakeups", 0.0),
            ("sched.run_delay.count", 1.0),
            ("sched.cpu_busy", 200.0 / 6.0),
        ],
    );
    let rows: Vec<_> = report.tasks.iter().map(|t| (t.cpu_ns, t.wait_ns, t.switches)).collect();
    assert_eq!(rows, [(100_000, 100_000, 1), (100_000, 0, 1)]);
}

#[test]
fn a_waker_that_meets_the_wakee_on_its_way_out_counts_from_waking() {
    let events = [
        switch(0, 0, 0, Running, 10),
        waking(90, 10, 0),
        switch(100, 0, 10, Sleeping, 0),
        wakeup(120, 10, 0),
        switch(150, 0, 0, Running, 10),
    ];
    check(&reduce(Plan { nr_cpus: 1, ..Plan::default() }, &events, 200), &[("sched.wakeup_latency.max", 0.060)]);
    let absorbed =
        [switch(0, 0, 0, Running, 10), waking(90, 10, 0), wakeup(95, 10, 0), switch(100, 0, 10, Sleeping, 0)];
    let report = reduce(Plan { nr_cpus: 1, ..Plan::default() }, &absorbed, 200);
    check(&report, &[("sched.wakeups", 0.0), ("sched.wakeup_latency.count", 0.0)]);
}

#[test]
fn without_sched_wakeup_a_wait_begins_at_waking() {
    let events = [switch(0, 0, 0, Running, 10), waking(40, 20, 0), switch(100, 0, 10, Sleeping, 20)];
    let report = reduce(Plan { nr_cpus: 1, ..Plan::default() }, &events, 200);
    check(&report, &[("sched.wakeups", 1.0), ("sched.wakeup_latency.max", 0.060), ("sched.run_delay.max", 0.060)]);
}

/// Each case: what happens on two CPUs while CPU 0 runs task 1 from 0 on, the end, CPU time lost and to which cause.
#[test]
fn idle_while_runnable_names_its_cause() {
    let busy = [switch(0, 0, 0, Running, 1), wakeup(0, 2, 1), switch(0, 1, 0, Running, 2)];
    let cases: [(&str, &[Event], Nanos, &str, f64); 5] = [
        ("placed on the busy CPU", &[switch(10, 1, 2, Sleeping, 0), wakeup(100, 3, 0)], 200, "wakeup", 100.0),
        ("CPU 1 goes idle", &[wakeup(100, 3, 0), switch(150, 1, 2, Sleeping, 0)], 200, "newidle", 50.0),
        ("an idle CPU about to run its own", &[switch(10, 1, 2, Sleeping, 0), wakeup(100, 3, 1)], 200, "wakeup", 0.0),
        (
            "pulled after a while",
            &[wakeup(100, 3, 0), switch(150, 1, 2, Sleeping, 0), migrate(180, 3, 0, 1), switch(180, 1, 0, Running, 3)],
            300,
            "newidle",
            30.0,
        ),
        (
            "preempted beside an idle CPU",
            &[wakeup(100, 3, 0), switch(100, 0, 1, Running, 3), switch(100, 1, 2, Sleeping, 0)],
            200,
            "newidle",
            100.0,
        ),
    ];
    for (name, events, end, cause, lost) in cases {
        let all: Vec<Event> = busy.iter().chain(events).copied().collect();
        let report = reduce(Plan { nr_cpus: 2, ..Plan::default() }, &all, end);
        let percent = 100.0 * lost / (2.0 * end as f64);
        println!("{name}");
        let by_cause = format!("sched.idle_while_runnable.{cause}");
        check(&report, &[("sched.idle_while_runnable", percent), (&by_cause, percent)]);
    }
}

fn declared(name: &str, unit: Unit, kind: MetricKind, divide: u64) -> MetricEntry {
    let decl = MetricDecl {
        name: name.into(),
        help: String::new(),
        unit,
        better: Better::Lower,
        kind,
        default_stats: vec![],
        divide,
        queueing: false,
    };
    MetricEntry { workload: "w".into(), decl }
}

#[test]
fn program_metrics_come_in_their_unit() {
    let metrics = vec![
        declared("latency", Unit::Microseconds, MetricKind::Samples, 1),
        declared("ops", Unit::PerSecond, MetricKind::Rate, 1),
        declared("time", Unit::Seconds, MetricKind::Headline, 1),
        declared("per_op", Unit::Microseconds, MetricKind::Headline, 1000),
        declared("silent", Unit::Microseconds, MetricKind::Samples, 1),
        declared("best", Unit::PerSecond, MetricKind::BestRate, 10),
        declared("never", Unit::PerSecond, MetricKind::BestRate, 1),
    ];
    let plan = Plan { metrics, nr_cpus: 1, warmup: 1_000_000_000, ..Plan::default() };
    let mut events = [
        sample(500, 0, 7_777),
        count(600, 1, 5),
        sample(700, 3, 4_000_000),
        sample(1_000_000_000, 0, 2_000),
        sample(1_500_000_000, 0, 4_000),
        count(1_600_000_000, 1, 30),
        sample(1_700_000_000, 2, 3_000_000_000),
        sample(2_900_000_000, 2, 1_000_000_000),
        sample(2_900_000_000, 99, 1),
        // Two passes of 30 operations in the measured time, the shorter of which took 0.5 s.
        sample(900, 5, 1_000),
        count(900, 5, 30),
        sample(1_000_000_000, 5, 1_000_000_000),
        count(1_000_000_000, 5, 30),
        sample(2_000_000_000, 5, 500_000_000),
        count(2_000_000_000, 5, 30),
    ];
    events.sort_by_key(|event| event.time);
    let report = reduce(plan, &events, 3_000_000_000);
    check(
        &report,
        &[
            ("w.latency.mean", 3.0),
            ("w.latency.max", 4.0),
            ("w.latency.count", 2.0),
            ("w.ops", 15.0),
            ("w.time", 2.0),
            ("w.per_op", 4.0),
            ("w.best", 6.0),
        ],
    );
    let json = report.to_json();
    assert!(json["metrics"]["w.silent.p99"].is_null());
    assert!(json["metrics"]["w.never"].is_null());
    assert_eq!(json["series"]["w.latency"]["unit"], "us");
    assert_eq!(json["series"]["w.latency"]["curve"].as_array().unwrap().last().unwrap()[1], 4.0);
}

/// The metrics of the tasks that report to a workload: 10 alone, 20 alone, both, and a workload of which no task
/// reports.
#[test]
fn the_scheduler_is_measured_for_the_tasks_of_a_workload() {
    let of = |workload: &str| {
        let kinds = [OfTasks::Switches, OfTasks::InvoluntarySwitches, OfTasks::RunDelay, OfTasks::Utilization];
        let names = ["switches", "involuntary", "run_delay", "utilization"];
        let entry = |(name, kind): (&str, OfTasks)| {
            let entry = declared(name, Unit::Count, MetricKind::Tasks(kind), 1);
            MetricEntry { workload: workload.into(), ..entry }
        };
        let counter = MetricEntry { workload: workload.into(), ..declared("ops", Unit::Count, MetricKind::Rate, 1) };
        let mut metrics = vec![counter];
        metrics.extend(names.into_iter().zip(kinds).map(entry));
        metrics
    };
    // 10 runs 300 us, waits 200 and runs 100; 20 waits from 110 to 300 us and runs 200.
    let (ten, twenty) = ([2_000.0, 1_000.0, 100.0 / 3.0, 40.0], [1_000.0, 0.0, 100.0 * 190.0 / 390.0, 20.0]);
    let both = [3_000.0, 1_000.0, 100.0 * 390.0 / 990.0, 60.0];
    for (reporters, want) in [(vec![10], ten), (vec![20], twenty), (vec![10, 20, 10], both)] {
        let plan = Plan { metrics: [of("none"), of("w")].concat(), nr_cpus: 1, ..Plan::default() };
        let note = |pid: &Pid| Event::new(550_000, CpuId(0), Kind::Count { pid: *pid, metric: 5, count: 1 });
        let mut events: Vec<Event> = two_tasks().into_iter().chain(reporters.iter().map(note)).collect();
        events.sort_by_key(|event| event.time);
        let report = reduce(plan, &events, 1_000_000);
        let names = ["w.switches", "w.involuntary", "w.run_delay", "w.utilization"];
        check(&report, &names.into_iter().zip(want).collect::<Vec<_>>());
        check(&report, &[("none.switches", 0.0), ("none.utilization", 0.0)]);
        assert!(report.to_json()["metrics"]["none.run_delay"].is_null());
    }
}

#[test]
fn every_catalogued_metric_is_reported() {
    let report = reduce(Plan { nr_cpus: 1, ..Plan::default() }, &[], 10);
    let has = |name: &str| report.metrics.iter().any(|(known, _)| known == name);
    for metric in sched_metrics() {
        match metric.stats {
            [] => assert!(has(metric.name), "{}", metric.name),
            _ => assert!(Stat::ALL.iter().all(|(s, _)| has(&format!("{}.{s}", metric.name))), "{}", metric.name),
        }
        assert!(metric.stats.iter().all(|stat| Stat::named(stat).is_some()));
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    let (pid, cpu) = (-2..6i32, 0..5u32);
    let state = prop_oneof![Just(Running), Just(Sleeping), Just(Dead)];
    let kind = prop_oneof![
        (pid.clone(), state, pid.clone()).prop_map(|(prev, prev_state, next)| Kind::Switch {
            prev,
            prev_prio: PRIO,
            prev_state,
            next,
            next_prio: PRIO
        }),
        (pid.clone(), cpu.clone()).prop_map(|(pid, c)| Kind::Waking { pid, prio: PRIO, target_cpu: CpuId(c) }),
        (pid.clone(), cpu.clone()).prop_map(|(pid, c)| Kind::Wakeup { pid, prio: PRIO, target_cpu: CpuId(c) }),
        (pid.clone(), cpu.clone()).prop_map(|(pid, c)| Kind::WakeupNew { pid, prio: PRIO, target_cpu: CpuId(c) }),
        (pid.clone(), cpu.clone(), cpu.clone()).prop_map(|(pid, a, b)| Kind::Migrate {
            pid,
            prio: PRIO,
            orig_cpu: CpuId(a),
            dest_cpu: CpuId(b)
        }),
        (pid.clone(), pid.clone()).prop_map(|(parent, child)| Kind::Fork { parent, child }),
        (pid, any::<u16>(), any::<u64>()).prop_map(|(pid, metric, value)| Kind::Sample { pid, metric, value }),
    ];
    (0..1000u64, cpu, kind).prop_map(|(time, cpu, kind)| Event::new(time, CpuId(cpu), kind))
}

proptest! {
    /// Any order of events, possible or not: no panic, and no CPU is busy or idle for longer than there was.
    #[test]
    fn nonsense_is_survived(mut events in prop::collection::vec(any_event(), 0..200), warmup in 0..500u64) {
        events.sort_by_key(|event| event.time);
        let report = reduce(Plan { nr_cpus: 2, warmup, ..Plan::default() }, &events, 1000);
        for cpu in &report.cpus {
            prop_assert_eq!(cpu.busy_ns + cpu.idle_ns, report.measured_ns);
        }
        let share = report.metric("sched.idle_while_runnable").unwrap();
        prop_assert!((0.0..=100.0).contains(&share), "{}", share);
    }

    /// Legal schedules of one CPU: the time the tasks got is the time the CPU was busy, and every wait is counted once.
    #[test]
    fn time_is_conserved(steps in prop::collection::vec((1..50u64, 0..4usize, any::<bool>()), 1..200)) {
        let (events, end) = schedule(&steps);
        let report = reduce(Plan { nr_cpus: 1, ..Plan::default() }, &events, end);
        let ran: Nanos = report.tasks.iter().map(|task| task.cpu_ns).sum();
        prop_assert_eq!(ran, report.cpus[0].busy_ns);
        let waited: Nanos = report.tasks.iter().map(|task| task.wait_ns).sum();
        prop_assert_eq!(waited, brute_force_wait(&events, end));
    }
}

/// A legal FIFO schedule: at each step time passes, one of four tasks wakes if it sleeps, then the current one gives
/// up.
fn schedule(steps: &[(Nanos, usize, bool)]) -> (Vec<Event>, Nanos) {
    let (mut events, mut queue, mut current, mut time) = (Vec::new(), Vec::<Pid>::new(), 0, 0);
    for (pass, wakee, sleeps) in steps {
        time += pass;
        let wakee = *wakee as Pid + 1;
        if wakee != current && !queue.contains(&wakee) {
            events.push(wakeup(time, wakee, 0));
            queue.push(wakee);
        }
        time += pass / 2;
        let state = if *sleeps { Sleeping } else { Running };
        let next = if queue.is_empty() { 0 } else { queue.remove(0) };
        if next == 0 && (!sleeps || current == 0) {
            continue;
        }
        events.push(switch(time, 0, current, if current == 0 { Running } else { state }, next));
        if current != 0 && !sleeps {
            queue.push(current);
        }
        current = next;
    }
    (events, time + 10)
}

/// Sums, for every instant between events, how many tasks wait.
fn brute_force_wait(events: &[Event], end: Nanos) -> Nanos {
    let (mut waiting, mut last, mut total) = (0u64, 0, 0);
    for event in events {
        total += waiting * (event.time - last);
        last = event.time;
        match event.kind {
            Kind::Wakeup { .. } => waiting += 1,
            Kind::Switch { prev, prev_state, next, .. } => {
                waiting += u64::from(prev != 0 && prev_state == Running);
                waiting -= u64::from(next != 0);
            }
            _ => {}
        }
    }
    total + waiting * (end - last)
}

#[test]
fn ended_tasks_beyond_the_first_thousand_are_added_up_by_name() {
    let (tasks, ran) = (5_000, 100);
    let mut metrics = Metrics::new(Plan { nr_cpus: 1, ..Plan::default() });
    for pid in 1..=tasks {
        let time = Nanos::from(pid as u32) * 1000;
        metrics.name(KernelId::FIRST, pid, ["even", "odd"][pid as usize % 2]);
        metrics.event(&Event::new(time, CpuId(0), Kind::Fork { parent: 0, child: pid }));
        metrics.event(&switch(time, 0, 0, Running, pid));
        metrics.event(&switch(time + ran, 0, pid, Dead, 0));
    }
    let report = metrics.finish(6_000_000);
    assert_eq!((report.tasks_total, report.tasks.len()), (tasks as u64, 1002));
    for row in &report.tasks {
        let odd = ["even", "odd"].iter().position(|name| *name == row.name);
        assert!(odd.is_some() && (row.pid == 0) == (row.tasks > 1), "{row:?}");
        assert_eq!((row.cpu_ns, row.switches), (ran * row.tasks, row.tasks), "{row:?}");
        assert!(row.tasks == 1 || row.tasks == 2000, "{row:?}");
    }
}

/// Events were lost: a task that was running on CPU 0 exits on CPU 1, and its entry is freed. CPU 0 then switches from
/// the idle task, which is not that entry.
#[test]
fn an_entry_that_was_freed_is_not_the_task_of_a_cpu() {
    let last: Pid = 1_002;
    let mut metrics = Metrics::new(Plan { nr_cpus: 2, ..Plan::default() });
    for pid in 1..=last {
        metrics.event(&Event::new(0, CpuId(0), Kind::Fork { parent: 0, child: pid }));
    }
    metrics.event(&switch(10, 0, 0, Running, last));
    metrics.event(&switch(20, 1, last, Dead, 0));
    metrics.event(&switch(30, 0, 0, Running, 5));
    metrics.event(&switch(40, 0, 5, Sleeping, 0));
    let report = metrics.finish(1_000);
    check(&report, &[("sched.involuntary_switches", 0.0), ("sched.run_time.count", 2.0)]);
}

proptest! {
    #[test]
    fn the_longest_section_is_that_of_the_measured_time_by_cause_and_by_call(
        found in prop::collection::vec(
            (
                0..2_000_000_u64,
                1..1_000_000_u64,
                prop::sample::select(Section::ALL[1..].to_vec()),
                prop::option::of(prop::sample::select(Call::ALL.to_vec())),
            ),
            0..20,
        ),
    ) {
        let warmup = 1_000_000;
        let events: Vec<Event> = found
            .iter()
            .map(|&(at, time, section, call)| {
                Event::new(at, CpuId(0), Kind::NonPreemptible { pid: 1, time, section, call })
            })
            .collect();
        let report = reduce(Plan { nr_cpus: 1, warmup, ..Plan::default() }, &events, 3_000_000);
        let longest = |of: &dyn Fn(Section, Option<Call>) -> bool| {
            let measured = found.iter().filter(|(at, _, section, call)| *at >= warmup && of(*section, *call));
            measured.map(|(_, time, ..)| *time as f64 / 1000.0).reduce(f64::max)
        };
        prop_assert_eq!(report.metric("sched.longest_section"), longest(&|_, _| true));
        for (name, section) in [("unchecked", Section::Kernel), ("spinlock", Section::Spinlock)] {
            let name = format!("sched.longest_section.{name}");
            prop_assert_eq!(report.metric(&name), longest(&|of, _| of == section));
        }
        for call in Call::ALL {
            let name = format!("sched.longest_section.{}", call.name().replace('-', "_"));
            prop_assert_eq!(report.metric(&name), longest(&|_, of| of == Some(call)));
        }
    }
}

/// A latency that grows from the second to the last third, at half the rate of operations. The run ends at its time,
/// or before it, when there are no thirds to compare.
#[test]
fn the_second_and_the_last_third_show_a_drift() {
    let plan = || Plan {
        metrics: vec![
            declared("latency", Unit::Microseconds, MetricKind::Samples, 1),
            declared("rate", Unit::PerSecond, MetricKind::Rate, 1),
        ],
        nr_cpus: 1,
        warmup: 1_000,
        ..Plan::default()
    };
    let lasting = |duration| plan().lasting(duration);
    // Thirds end at 4,000, 7,000 and 10,000 ns.
    let events = [
        sample(500, 0, 7),
        sample(2_000, 0, 100),
        count(4_000, 1, 8),
        sample(5_000, 0, 200),
        sample(6_000, 0, 220),
        count(8_000, 1, 4),
        sample(9_000, 0, 900),
    ];
    let parts =
        |report: &Report, name: &str| report.parts.iter().find(|(known, _)| known == name).map(|(_, part)| *part);
    let whole = reduce(lasting(10_000), &events, 10_000);
    for (name, second, last) in [
        ("w.latency.mean", Some(210.0), Some(900.0)),
        ("w.latency.count", Some(2.0), Some(1.0)),
        ("w.rate", Some(8.0), Some(4.0)),
        ("sched.switches", Some(0.0), Some(0.0)),
        ("sched.run_delay.mean", None, None),
    ] {
        assert_eq!(parts(&whole, name), Some([second, last]), "{name}");
    }
    assert!(reduce(lasting(10_000), &events, 9_500).parts.is_empty(), "it ended before its time");
    assert!(reduce(plan(), &events, 10_000).parts.is_empty(), "its time is not known");
    assert_eq!(reduce(plan(), &events, 10_000).metrics, whole.metrics);
}
