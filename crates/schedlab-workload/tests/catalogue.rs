//! The structure of every catalogue program, executed by the reference interpreter.

#![allow(clippy::unwrap_used)]

mod reference;

use reference::{End, Machine, Outcome};
use schedlab_model::{MSEC, SEC};
use schedlab_workload::catalogue::{self, OptionKind, OptionValue, Where};
use schedlab_workload::{Amount, Op, Workload};

/// Options as the tables below write them.
type Given<'a> = &'a [(&'a str, OptionValue)];

fn options(given: Given<'_>) -> Vec<(String, OptionValue, Where)> {
    given.iter().map(|(key, value)| ((*key).to_string(), value.clone(), Where { line: 3, column: 1 })).collect()
}

fn int(value: i64) -> OptionValue {
    OptionValue::Int(value)
}

fn on() -> OptionValue {
    OptionValue::Bool(true)
}

fn text(value: &str) -> OptionValue {
    OptionValue::Text(value.to_string())
}

fn build(id: &str, given: Given<'_>, repeat: bool) -> Workload {
    catalogue::build(id, &options(given), "w", repeat, 4).unwrap_or_else(|error| panic!("{id}: {error}"))
}

fn run(workload: &Workload) -> Outcome {
    Machine::new(workload).run(10 * SEC, 3)
}

/// One worker of a stressor, for this long.
fn one(stressor: &'static str, time: &str) -> [(&'static str, OptionValue); 2] {
    [(stressor, int(1)), ("timeout", text(time))]
}

#[test]
fn messaging_sends_every_message_once_and_reaps_every_task() {
    let cases: &[(&str, Given<'_>, u64, usize)] = &[
        ("hackbench", &[], 400_000, 400),
        ("hackbench", &[("groups", int(2)), ("fds", int(3)), ("loops", int(7)), ("pipe", on())], 2 * 9 * 7, 12),
        ("hackbench", &[("groups", int(2)), ("fds", int(3)), ("loops", int(700)), ("threads", on())], 2 * 9 * 700, 12),
        ("hackbench", &[("groups", int(1)), ("datasize", int(65_536)), ("pipe", on())], 400 * 100, 40),
        ("hackbench", &[("groups", int(2)), ("fds", int(3)), ("loops", int(70)), ("inet", on())], 2 * 9 * 70, 12),
        ("perf-messaging", &[("group", int(1)), ("nr_loops", int(5))], 400 * 5, 40),
        ("perf-messaging", &[("group", int(1)), ("thread", on()), ("pipe", on())], 400 * 100, 40),
    ];
    for (id, given, messages, tasks) in cases {
        let workload = build(id, given, false);
        let out = run(&workload);
        let channels = 1..workload.objects.len();
        let sum = |counted: &[u64]| channels.clone().map(|i| counted[i]).sum::<u64>();
        assert_eq!(out.end, End::Finished, "{id} {given:?}");
        assert_eq!((sum(&out.written), sum(&out.read)), (*messages, *messages), "{id} {given:?}");
        assert_eq!((out.written[0], out.read[0]), (*tasks as u64, *tasks as u64), "ready bytes of {id} {given:?}");
        assert_eq!((out.created, out.exited), (tasks + 1, *tasks), "{id} {given:?}");
        assert_eq!(out.storms, [*tasks], "{id} {given:?}: one storm wakes all");
        assert_eq!(out.samples[0].len(), 1);
        // `perf trace -F all`: a process meets them after its last message.
        let threads = given.iter().any(|(key, _)| key.starts_with("thread"));
        let each = if id.starts_with("perf") { 123 } else { 14 };
        assert_eq!(out.faults, if threads { 0 } else { each * *tasks as u64 }, "{id} {given:?}");
    }
}

#[test]
fn repeat_starts_again_with_fresh_tasks_behind_a_closed_gate() {
    let cases: &[(&str, Given<'_>, usize)] = &[
        ("hackbench", &[("groups", int(1)), ("fds", int(2))], 4),
        ("hackbench", &[("groups", int(1)), ("fds", int(2)), ("threads", on()), ("pipe", on())], 4),
        ("perf-messaging", &[("group", int(1)), ("nr_loops", int(1))], 40),
        ("perf-pipe", &[("loop", int(10))], 1),
        ("perf-pipe", &[("loop", int(10)), ("threaded", on())], 2),
    ];
    for (id, given, children) in cases {
        let workload = build(id, given, true);
        assert!(!workload.ends, "{id}");
        assert!(!workload.programs.iter().any(|program| program.ops.contains(&Op::Finish)), "{id}");
        let out = run(&workload);
        assert_eq!(out.end, End::Limit, "{id} {given:?}");
        assert_eq!(out.samples[0].len(), 3, "{id} {given:?}: three passes");
        assert_eq!(out.created, 1 + 3 * children, "{id} {given:?}: fresh tasks each pass");
        assert_eq!(out.alive_max, 1 + children, "{id} {given:?}: the old tasks have exited first");
        assert!(out.storms.iter().all(|woken| woken == children), "{id} {given:?}: {:?}", out.storms);
    }
}

#[test]
fn perf_pipe_makes_its_round_trips_strictly_in_turn() {
    for threaded in [false, true] {
        let workload = build("perf-pipe", &[("loop", int(1000)), ("threaded", OptionValue::Bool(threaded))], false);
        let out = run(&workload);
        assert_eq!(out.end, End::Finished);
        assert_eq!((out.written.clone(), out.read.clone()).0[..2], [1000, 1000]);
        assert_eq!(out.read[..2], [1000, 1000]);
        assert_eq!(workload.metrics[0].divide, 1000);
        assert_eq!((out.samples[0].len(), out.samples[1].len()), (1, 1));
        // The side that answers reads first; the other writes first: one token at a time.
        let first = |program: usize| {
            workload.programs[program].ops.iter().find(|op| matches!(op, Op::Read { .. } | Op::Write { .. }))
        };
        assert!(matches!(first(0), Some(Op::Read { .. })) && matches!(first(1), Some(Op::Write { .. })));
    }
}

#[test]
fn schbench_wakes_every_worker_of_a_batch_and_ends_after_its_runtime() {
    let given = [
        ("message-threads", int(1)),
        ("threads", int(4)),
        ("runtime", int(2)),
        ("cputime", text("1ms")),
        ("sleeptime", text("4ms")),
    ];
    let workload = build("schbench", &given, false);
    let out = run(&workload);
    assert_eq!((out.end.clone(), out.now), (End::Finished, 2 * SEC));
    assert_eq!(out.created, 1 + 1 + 4);
    assert_eq!(workload.metrics.len(), 1, "only the latency");
    // With a CPU for each task no task waits: every sample is below the program's microsecond and dropped.
    assert!(out.samples[0].is_empty());
    let defaults = build("schbench", &[], true);
    assert_eq!((defaults.programs.len(), defaults.ends), (5, false));
    assert_eq!(Machine::new(&defaults).run(5 * SEC, 1).created, 1 + 2 + 32);
}

#[test]
fn schbench_transfers_and_serves_requests() {
    let out = run(&build(
        "schbench",
        &[("message-threads", int(1)), ("threads", int(1)), ("pipe", int(1_048_576)), ("runtime", int(1))],
        false,
    ));
    // Two transfers of 10.5 us each per loop.
    let loops = out.counts[1];
    assert!((47_000..48_000).contains(&loops), "{loops} loops in a second");
    let given = [("threads", int(6)), ("rps", int(800)), ("runtime", int(2)), ("cputime", text("100us"))];
    let workload = build("schbench", &given, false);
    let out = run(&workload);
    // 400 per message thread: batches of 4 every 10 ms, the first after one pause.
    let served = out.counts[1];
    assert!((1580..=1600).contains(&served), "{served} requests in 2 s");
    assert_eq!(out.samples[0].len() as u64, served);
    assert!(out.samples[0].iter().all(|sample| *sample == 1_000), "nothing queues on free CPUs");
    assert_eq!(out.created, 1 + 2 + 12);
}

#[test]
fn schbench_v1_takes_one_worker_per_cpu_and_samples_wakeups_and_requests() {
    let workload = build("schbench-1.0", &[("runtime", int(1))], false);
    let out = run(&workload);
    assert_eq!(out.created, 1 + 1 + 4, "one message thread, a worker per CPU");
    let requests = out.counts[2];
    // 100 us of sleep and 2.6 ms of work per request on 4 workers.
    assert!((1470..=1490).contains(&requests), "{requests}");
    assert_eq!(out.samples[1].len() as u64, requests);
    assert_eq!(out.counts[3], requests, "and every one counts for its second");
    let unlocked = build("schbench-1.0", &[("no-locking", on())], false);
    assert!(!unlocked.programs.iter().any(|p| p.ops.iter().any(|op| matches!(op, Op::CpuLock(_)))));
}

/// Until 2025-04: as many requests a second as asked for, and of those that find nine waiting none.
#[test]
fn schbench_v1_counts_its_transfers() {
    let given = [("message-threads", int(1)), ("threads", int(2)), ("pipe", int(1_048_576)), ("runtime", int(1))];
    let workload = build("schbench-1.0", &given, false);
    let names: Vec<&str> = workload.metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(names, ["wakeup_latency", "transfer"]);
    // Two transfers of 10.5 us each per loop of a worker, as above, and two workers.
    let loops = run(&workload).counts[1];
    assert_eq!(workload.metrics[1].divide, 2);
    assert!((94_000..96_000).contains(&loops), "{loops} loops in a second");
}

#[test]
fn schbench_v1_serves_the_requests_that_it_is_given() {
    let one = [("runtime", int(3)), ("message-threads", int(2)), ("threads", int(5))];
    let out = run(&build("schbench-1.0", &[&one[..], &[("rps", int(400))]].concat(), false));
    assert_eq!(out.created, 1 + 2 + 10);
    // Two generators with 200 a second each; a request of the last second may still be under way.
    assert!((1190..=1200).contains(&out.counts[2]), "{}", out.counts[2]);
    assert_eq!((out.counts[3], out.samples[1].len() as u64), (out.counts[2], out.counts[2]));
    assert!(out.samples[1].iter().all(|took| (2_690_000..2_710_000).contains(took)), "the queue is not in it");
    // Far more than the 370 a second that a worker can serve: it gets nine, and nine once or twice again while it takes
    // some, before the rest of the second is dropped.
    let out = run(&build("schbench-1.0", &[&one[..], &[("rps", int(20_000))]].concat(), false));
    assert!((3 * 10 * 9..=3 * 10 * 27).contains(&out.counts[2]), "{}", out.counts[2]);
    for given in [("pipe", int(1)), ("message-threads", int(5))] {
        let both = options(&[("rps", int(3)), given]);
        assert_eq!(catalogue::build("schbench-1.0", &both, "w", false, 4).unwrap_err().key, "rps");
    }
}

#[test]
fn schbench_v1_adapts_its_requests_to_how_busy_the_cpus_are() {
    // The interpreter says that half of the CPUs are busy. Percent, rate at the beginning, rate in each second.
    let cases: &[(i64, i64, &[i64])] = &[
        (50, 10, &[10, 10, 10]),
        // d is 2, 3, 1.4 reduced to 1.1, 1.1 reduced to 1.0125: rounded up.
        (100, 10, &[10, 20, 40]),
        (70, 100, &[100, 110, 121]),
        (55, 100, &[100, 102, 104]),
        // 0.3, 0.7, 0.84 and 0.94 go to 0.3, 0.7, 0.88 and 0.9475: rounded down.
        (10, 100, &[100, 30, 9]),
        (35, 100, &[100, 70, 49]),
        (42, 100, &[100, 88, 77]),
        (47, 100, &[100, 94, 89]),
        (10, 3, &[3, 1, 1]),
    ];
    for (percent, rps, rates) in cases {
        for message_threads in [1, 3] {
            let given = [
                ("message-threads", int(message_threads)),
                ("threads", int(2)),
                ("runtime", text("3s")),
                ("rps", int(rps * message_threads)),
                ("auto-rps", int(*percent)),
            ];
            let workload = build("schbench-1.0", &given, false);
            let out = run(&workload);
            // A look at the beginning, and one each second, the last of which comes too late.
            let set: Vec<i64> = out.peer_registers.iter().filter(|(reg, _)| *reg == 1).map(|(_, rate)| *rate).collect();
            assert_eq!((set.len(), out.end), (3 * message_threads as usize, End::Finished));
            let rates_set: Vec<i64> = set.chunks(message_threads as usize).take(2).map(|each| each[0]).collect();
            assert!(set.chunks(message_threads as usize).all(|each| each.iter().all(|rate| *rate == each[0])));
            assert_eq!(rates_set, rates[1..], "{percent}% from {rps}");
        }
    }
}

#[test]
fn cyclictest_keeps_its_intervals_and_ends_with_its_loops_or_duration() {
    let out = run(&build("cyclictest", &[("loops", int(100)), ("threads", int(2))], false));
    assert_eq!(out.end, End::Finished);
    // Thread 1 runs at 1.5 times the interval of thread 0.
    assert_eq!(out.samples[0].len(), 100 + 66);
    assert!(out.samples[0].iter().all(|late| *late == 0));
    let out = run(&build("cyclictest", &[("duration", text("1s")), ("interval", text("10ms"))], false));
    assert_eq!((out.end, out.now), (End::Finished, SEC));
    // The recording of a sample takes 0.1 us, so an interval of 1 us is kept where nothing else takes time.
    let out = Machine::new(&build("cyclictest", &[("interval", text("1us"))], false)).run(MSEC, 1);
    assert_eq!((out.end, out.samples[0].len()), (End::Limit, 1000));
    let smp = build("cyclictest", &[("smp", on())], false);
    let cpus: Vec<_> = smp.tasks.iter().map(|task| task.affinity.map(|cpus| cpus.to_list())).collect();
    // The main thread, the last one, is not pinned.
    assert_eq!(cpus, [Some("0".into()), Some("1".into()), Some("2".into()), Some("3".into()), None]);
    assert!(smp.tasks.iter().all(|task| task.timer_slack == 50_000));
}

#[test]
fn cyclictest_pins_its_threads_to_the_cpus_of_a_set_in_turn() {
    let pinned = |given: &[(&str, OptionValue)]| -> Vec<String> {
        let workload = build("cyclictest", given, false);
        workload.tasks.iter().map(|task| task.affinity.map_or("-".into(), |cpus| cpus.to_list())).collect()
    };
    // The main thread, the last one, is not pinned.
    assert_eq!(pinned(&[("a", on()), ("t", on())]), ["0", "1", "2", "3", "-"]);
    assert_eq!(pinned(&[("affinity", int(2)), ("threads", int(2))]), ["2", "2", "-"]);
    assert_eq!(pinned(&[("a", text("2-3,0")), ("t", int(4))]), ["0", "2", "3", "0", "-"]);
    assert_eq!(pinned(&[("a", text("!1-2")), ("t", int(2))]), ["0", "3", "-"]);
    assert_eq!(pinned(&[("t", on())]), ["-", "-", "-", "-", "-"]);
    let plain = build("cyclictest", &[], false);
    assert_eq!(build("cyclictest", &[("m", on()), ("n", on())], false), plain, "without effect");
}

#[test]
fn stress_ng_keeps_its_load_and_its_ops() {
    let out = run(&build("stress-ng-cpu", &[("cpu", int(2)), ("cpu-ops", int(1000))], false));
    assert_eq!((out.end.clone(), out.counts[0], out.counts[1]), (End::Finished, 1000, 1000));
    // The CPU time that the workers report, which is the time since their start here.
    let cpu_time = out.samples[1].iter().sum::<i64>() as f64;
    assert!((cpu_time / (1000.0 * 673_628.0) - 1.0).abs() < 0.001, "{cpu_time}");
    for (load, slice) in [(40, -64), (40, 10), (50, 0), (5, 100), (99, 1)] {
        let given = [("cpu", int(1)), ("cpu-load", int(load)), ("cpu-load-slice", int(slice)), ("timeout", int(200))];
        let out = Machine::new(&build("stress-ng-cpu", &given, false)).run(300 * SEC, 1);
        let share = out.counts[0] as f64 * 673_628.0 / out.now as f64 * 100.0;
        assert_eq!(out.end, End::Finished);
        assert!((share / load as f64 - 1.0).abs() < 0.04, "asked for {load} % with slice {slice}, got {share:.1} %");
    }
    assert_eq!(run(&build("stress-ng-cpu", &[("cpu-load", int(0))], false)).end, End::Limit);
}

#[test]
fn sysbench_searches_until_its_time_is_up() {
    let out = run(&build("sysbench-cpu", &[("threads", int(2)), ("time", int(1))], false));
    // Alone on its CPU a search takes what its divisions take.
    let each = (117_526_u64 * 1_872).div_ceil(1000);
    assert_eq!((out.end.clone(), out.counts[0]), (End::Finished, 2 * SEC.div_ceil(each)));
    assert!(out.samples[1].iter().all(|sample| *sample == each as i64), "{:?}", &out.samples[1][..3]);
    assert!((SEC..SEC + 2 * each).contains(&out.now), "{}", out.now);
    let none = catalogue::build("sysbench-cpu", &[("time".into(), int(0), Where::default())], "w", false, 4);
    assert!(none.unwrap_err().what.contains("without an end"));
}

/// Per event of `threads` 1000 yields and no other call, as the real program has: 711,562 calls in 711 events.
#[test]
fn sysbench_yields_locks_and_copies_as_the_real_one_does() {
    let given = [("threads", int(2)), ("thread-yields", int(10)), ("thread-locks", int(3)), ("time", text("1us"))];
    let workload = build("sysbench-threads", &given, false);
    let out = Machine::new(&workload).budget(100_000).run(SEC, 1);
    let worker = &workload.programs[0].ops;
    let locks: Vec<Op> = worker.iter().filter(|op| matches!(op, Op::Lock(_))).copied().collect();
    assert_eq!(locks, [Op::Lock(1), Op::Lock(2), Op::Lock(3)]);
    assert_eq!(worker.iter().filter(|op| matches!(op, Op::Yield)).count(), 3, "one after each lock, in a loop");
    // Events take the mutexes in turn: two threads never wait for each other here, and yields take no time.
    assert_eq!((out.end, out.created), (End::Limit, 3));
    assert!(out.counts[0] > 1_000, "{}", out.counts[0]);
    assert_eq!(out.written[0], out.read[0] + 3, "each number goes back to the queue");

    let given = [("threads", int(4)), ("mutex-num", int(5)), ("mutex-locks", int(700)), ("mutex-loops", int(10_000))];
    let out = run(&build("sysbench-mutex", &given, false));
    assert_eq!((out.end.clone(), out.created, out.samples[1].len()), (End::Finished, 1 + 4, 4), "one event a thread");
    assert!(out.samples[1].iter().all(|event| *event == 700 * 3_540), "{:?}", out.samples[1]);

    let given = [("threads", int(2)), ("time", int(1)), ("memory-block-size", int(16_384))];
    let out = run(&build("sysbench-memory", &given, false));
    // 757 ns an event, as measured, and 16 KiB each.
    let events = out.counts[0] as f64;
    assert!((events * 757.0 / 2e9 - 1.0).abs() < 0.02, "{events}");
    assert_eq!(out.counts[1], out.counts[0] * 4096);
}

#[test]
fn stress_ng_counts_the_work_of_a_random_slice_as_it_is_done() {
    let given = [("cpu", int(1)), ("cpu-load", int(99)), ("cpu-load-slice", int(0))];
    let workload = build("stress-ng-cpu", &given, false);
    for seed in 1..10 {
        // Some slices of up to 0.5 s in a second: by their number alone the work would be wrong by tenths.
        let out = Machine::new(&workload).run(SEC, seed);
        let share = out.counts[0] as f64 * 673_628.0 / out.now as f64;
        assert!((0.97..=1.0).contains(&share), "seed {seed}: {share}");
    }
}

/// Bogo ops, messages, tasks and system calls of the stressors, as the reference page and runs of the real program have
/// them.
#[test]
fn stressors_do_per_bogo_op_what_the_real_ones_do() {
    let one = |name: &'static str| [(name, int(1)), ("timeout", text("100ms"))];
    // A write and a read per op, nothing else.
    let out = run(&build("stress-ng-switch", &[("switch", int(2)), ("timeout", text("1ms"))], false));
    assert_eq!(out.created, 1 + 2 + 2);
    let paced = [("switch", int(1)), ("switch-freq", int(1000)), ("timeout", text("100ms"))];
    let out = run(&build("stress-ng-switch", &paced, false));
    assert_eq!((out.end.clone(), out.counts[0], out.written[0]), (End::Finished, 100, 100));
    assert_eq!(out.counts[0], out.counts[1], "the same ops for both rates");
    // A write and a read per op; the pipe has room for 16 messages of any size, as FIONREAD shows of the real one.
    let out = run(&build("stress-ng-pipe", &[("pipe", int(1)), ("timeout", text("100us"))], false));
    assert!(out.written[0].abs_diff(out.read[0]) <= 16 && out.written[0].abs_diff(out.counts[0]) <= 1);
    // A child per op, with fork-max of them at a time.
    let fork = build("stress-ng-fork", &[("fork", int(1)), ("fork-max", int(3))], false);
    let child = &fork.programs[0].ops;
    assert!(matches!(child[0], Op::Set(_, 9)) && child.contains(&Op::Yield), "{child:?}");
    // 61.8 to 63.4 faults per op in three placements, of which 17.8 are those of any fork.
    let out = run(&build("stress-ng-fork", &one("fork"), false));
    let faults = out.faults as f64 / out.counts[0] as f64;
    assert!(out.counts[0] > 100 && (faults / 44.0 - 1.0).abs() < 0.1, "{faults} faults in {} ops", out.counts[0]);
    // 19 sleeps per pass, 8 threads: 13.8 us a sleep on average.
    let out = run(&build("stress-ng-nanosleep", &one("nanosleep"), false));
    assert_eq!(out.created, 1 + 1 + 8);
    let (ops, sleeps) = (out.counts[0], out.samples[2].len() as u64);
    assert!((sleeps / 19 - ops) <= 8, "{sleeps} sleeps, {ops} ops");
    assert!((2_900..3_200).contains(&ops), "8 threads, 262 us a pass: {ops}");
}

/// stress-ng 0.15.06 under perf stat: 146.3 calls and 29.2 faults per op with 16 pages, 1826 and 440 with 256.
#[test]
fn stress_ng_mmap_makes_the_calls_and_faults_of_the_real_one() {
    for (kib, mprotect, calls, faults) in
        [(64, false, 146.3, 29.2), (1024, false, 1826.0, 440.0), (64, true, 685.5, 29.3)]
    {
        let size = [("mmap-bytes", int(kib << 10)), ("mmap-mprotect", OptionValue::Bool(mprotect))];
        let out = run(&build("stress-ng-mmap", &[&one("mmap", "3s")[..], &size].concat(), false));
        let per = |what: u64| what as f64 / out.counts[0] as f64;
        assert!(out.counts[0] > 300 && (per(out.calls) / calls - 1.0).abs() < 0.01, "{kib}: {} calls", per(out.calls));
        assert!((per(out.faults) / faults - 1.0).abs() < 0.10, "{kib}: {} faults", per(out.faults));
    }
    // Two workers share the bytes.
    let two = [("mmap", int(2)), ("mmap-bytes", int(1 << 20)), ("timeout", text("1s"))];
    let out = run(&build("stress-ng-mmap", &two, false));
    let per = out.calls as f64 / out.counts[0] as f64;
    assert!((per / (7.0 * 128.0 + 34.0) - 1.0).abs() < 0.02, "{per}");
}

/// stress-ng 0.15.06 under perf stat with 16 MiB: per pass 5.0 calls and 3,585 to 3,654 faults with write64, 7.4 and
/// 3,376 to 3,594 with zero-one, 5.2 and none with read64.
#[test]
fn stress_ng_vm_makes_the_calls_and_faults_of_the_real_one() {
    for (method, ops, calls, faults) in
        [("write64", 16, 5.0, 3620.0), ("zero-one", 1024, 7.4, 3485.0), ("read64", 16, 5.2, 0.0)]
    {
        let size = [("vm-bytes", int(16 << 20)), ("vm-method", text(method))];
        let out = run(&build("stress-ng-vm", &[&one("vm", "5s")[..], &size].concat(), false));
        let passes = out.counts[0] as f64 / f64::from(ops);
        let (made, met) = (out.calls as f64 / passes, out.faults as f64 / passes);
        assert!(passes > 200.0 && (made / calls - 1.0).abs() < 0.06, "{method}: {made} calls in {passes} passes");
        assert!((met - faults).abs() <= 0.10 * faults, "{method}: {met} faults");
    }
    let kept = [("vm-keep", on()), ("vm-bytes", int(2 << 20)), ("vm-method", text("incdec"))];
    let out = run(&build("stress-ng-vm", &[&one("vm", "1s")[..], &kept].concat(), false));
    assert!(out.counts[0] > 100_000 && out.faults <= 512, "{} ops, {} faults", out.counts[0], out.faults);
    let slow = [("vm-hang", text("2s")), ("vm-bytes", int(1 << 20)), ("vm-populate", on())];
    let out = run(&build("stress-ng-vm", &[&one("vm", "5s")[..], &slow].concat(), false));
    assert_eq!((out.counts[0], out.faults), (3, 0));
}

/// stress-ng 0.15.06 under perf stat in three placements: 219 to 228 system calls, 356 to 372 page faults, one fork and
/// 0.74 to 0.77 execs per op. A call for the fork, for the wait and for each exec and exit is none that the interpreter
/// counts.
#[test]
fn stress_ng_exec_forks_execs_and_faults_as_the_real_one() {
    for children in [1, 16] {
        let given = [("exec-max", int(children))];
        let out = run(&build("stress-ng-exec", &[&one("exec", "8s")[..], &given].concat(), false));
        let ops = out.counts[0] as f64;
        let (execs, faults) = (out.execs as f64 / ops, out.faults as f64 / ops);
        let calls = out.calls as f64 / ops + 3.0 + execs;
        assert!(ops > 1_000.0 && (0.72..0.78).contains(&execs), "{execs} execs in {ops} ops");
        assert!((210.0..230.0).contains(&calls) && (345.0..375.0).contains(&faults), "{calls} calls, {faults} faults");
        let forks = out.created - 2;
        assert!((0..=children as usize).contains(&(forks - ops as usize)), "{forks} forks, {ops} ops");
    }
}

/// stress-ng 0.15.06 under perf stat in three placements: 1122 to 1125 system calls per op, of which 510 sends and 272
/// recvs.
#[test]
fn stress_ng_sock_sends_and_receives_as_the_real_one() {
    let out = run(&build("stress-ng-sock", &[("sock", int(2)), ("timeout", text("2s"))], false));
    let ops = out.counts[0] as f64;
    assert!(ops > 1_000.0 && out.created == 1 + 2 + 2, "{ops}");
    // Objects: the connections and the data of each worker.
    let (connects, sent) = (out.written[0] + out.written[2], out.written[1] + out.written[3]);
    let (accepts, received) = (out.read[0] + out.read[2], out.read[1] + out.read[3]);
    assert!((connects as f64 - ops).abs() <= 2.0 && (accepts as f64 - ops).abs() <= 2.0);
    let calls = (out.calls + connects + accepts + sent + received) as f64 / ops;
    assert!((sent as f64 / ops - 32.0).abs() < 0.1, "{sent} segments in {ops} ops");
    assert!((received as f64 / ops / 272.0 - 1.0).abs() < 0.07, "{received} recvs in {ops} ops");
    assert!((calls / 1123.0 - 1.0).abs() < 0.05, "{calls}");
}

#[test]
fn unixbench_and_lmbench_fork_and_exec_as_the_real_ones_do() {
    // Per iteration of multi.sh: itself, and eight programs for each copy of tst.sh.
    for (concurrent, below) in [(1, 8), (8, 64)] {
        let given = [("concurrent", int(concurrent)), ("time", text("95ms"))];
        let out = run(&build("unixbench-shell", &given, false));
        let iterations = out.counts[0] / 60;
        assert!(iterations > 10, "{iterations}");
        let (forks, execs) = (out.created - 2, out.execs);
        let each = below + 1;
        assert!((0..=each).contains(&(forks - iterations as usize * each)), "{forks} forks in {iterations} iterations");
        assert!((0..=each).contains(&(execs - iterations as usize * each)), "{execs} execs in {iterations} iterations");
    }
    let out = run(&build("unixbench-execl", &[("copies", int(2)), ("time", text("10ms"))], false));
    assert!(out.created == 3 && (0..=2).contains(&(out.counts[0] as usize - out.execs)), "no fork");
    for (what, execs) in [("fork", 0), ("exec", 1), ("shell", 2)] {
        let workload = build("lmbench-lat-proc", &[("what", text(what)), ("time", text("10ms"))], false);
        let out = Machine::new(&workload).budget(10_000).run(SEC, 1);
        let (ops, forks) = (out.samples[0].len(), out.created - 2);
        assert!(ops > 20 && (ops..=ops + 1).contains(&forks), "{what}: {forks} forks, {ops} samples");
        assert!((ops * execs..=(ops + 1) * execs).contains(&out.execs), "{what}: {} execs, {ops} samples", out.execs);
    }
    // The token visits every process once per sample.
    let ring = build("lmbench-lat-ctx", &[("processes", int(5)), ("size", int(64)), ("time", text("1ms"))], false);
    let out = run(&ring);
    let rounds = out.samples[0].len() as u64;
    assert!(rounds > 50 && out.written.iter().all(|hops| (rounds..=rounds + 1).contains(hops)), "{:?}", out.written);
    assert_eq!(ring.metrics[0].divide, 5, "per hop");
}

/// index = 10 * result / baseline, with the baselines of pgms/index.base; shell16 has none.
#[test]
fn unixbench_prints_its_index_beside_its_result() {
    let cases: [(&str, Given<'_>, Option<f64>); 8] = [
        ("unixbench-execl", &[], Some(43.0)),
        ("unixbench-context1", &[], Some(4000.0)),
        ("unixbench-spawn", &[], Some(126.0)),
        ("unixbench-syscall", &[], Some(15_000.0)),
        ("unixbench-pipe", &[], Some(12_440.0)),
        ("unixbench-shell", &[], Some(42.4)),
        ("unixbench-shell", &[("concurrent", int(8))], Some(6.0)),
        ("unixbench-shell", &[("concurrent", int(16))], None),
    ];
    for (id, given, baseline) in cases {
        let workload = build(id, given, false);
        let out = Machine::new(&workload).budget(30_000).run(SEC, 1);
        let value = |metric: usize| out.counts[metric] as f64 / workload.metrics[metric].divide as f64;
        assert_eq!(workload.metrics.len(), 1 + usize::from(baseline.is_some()), "{id} {given:?}");
        assert!(["lps", "lpm"].contains(&workload.metrics[0].name.as_str()) && value(0) >= 1.0, "{id} {given:?}");
        if let Some(baseline) = baseline {
            // The run may end between the two counts of a loop, which is 60 for a result per minute.
            let loop_of = if workload.metrics[0].name == "lpm" { 60.0 } else { 1.0 };
            let (loops, of_index) = (value(0) / loop_of, value(1) * baseline / 10.0 / loop_of);
            assert!(
                loops >= 3.0 && (0.0..1.01).contains(&(loops - of_index + 1e-6)),
                "{id} {given:?}: {loops}, {of_index}"
            );
        }
    }
}

/// Programs that do one thing: messages, forks and other system calls of an operation, as their sources have them.
#[test]
fn an_operation_of_a_small_program_is_what_the_real_one_does() {
    let cases: &[(&str, Given<'_>, [u64; 3])] = &[
        ("unixbench-context1", &[], [2, 0, 0]),
        ("unixbench-context1", &[("copies", int(3))], [2, 0, 0]),
        ("unixbench-spawn", &[], [0, 1, 0]),
        ("unixbench-syscall", &[], [0, 0, 5]),
        ("unixbench-pipe", &[], [1, 0, 0]),
        ("lmbench-lat-pipe", &[], [2, 0, 0]),
        ("lmbench-lat-unix", &[], [2, 0, 0]),
        ("lmbench-lat-select", &[("fds", int(10))], [0, 0, 1]),
        ("lmbench-lat-syscall", &[], [0, 0, 1]),
        ("lmbench-lat-syscall", &[("call", text("fstat"))], [0, 0, 1]),
        ("lmbench-lat-syscall", &[("call", text("open"))], [0, 0, 2]),
        ("stress-ng-context", &[("context", int(1))], [0, 0, 1000]),
    ];
    for (id, given, per_op) in cases {
        let workload = build(id, given, false);
        let out = Machine::new(&workload).budget(20_000).run(SEC, 1);
        let ops = if out.counts[0] > 0 { out.counts[0] } else { out.samples[0].len() as u64 };
        let messages: u64 = out.written.iter().sum();
        let forks = (out.created - workload.tasks.len()) as u64;
        // Children that exist for the whole run, and an operation under way in each copy.
        let slack = 4;
        assert!(ops >= 5, "{id} {given:?}: {ops}");
        for (found, each) in [messages, forks, out.calls].into_iter().zip(per_op) {
            let range = ops * each..=(ops + slack) * each + slack;
            assert!(range.contains(&found), "{id} {given:?}: {found} in {ops} operations");
        }
    }
    // Each side of lat_sem takes once and gives once.
    let sem = build("lmbench-lat-sem", &[], false);
    let each = |program: &schedlab_workload::Program, wanted: fn(&Op) -> bool| {
        program.ops.iter().filter(|op| wanted(op)).count()
    };
    let of_pair: Vec<_> = sem.programs.iter().filter(|program| program.name == "lat_sem").collect();
    for program in &of_pair {
        let (takes, gives) =
            (each(program, |op| matches!(op, Op::SemWait(_))), each(program, |op| matches!(op, Op::SemPost(_))));
        assert_eq!((takes, gives), (1, 1));
    }
    assert_eq!((of_pair.len(), sem.metrics[0].divide), (2, 2), "half a round trip");
}

#[test]
fn hogs_compute_and_do_nothing_else() {
    let out = Machine::new(&build("hog", &[("threads", int(3))], false)).run(20 * MSEC, 1);
    assert_eq!((out.end, out.created, out.exited, out.calls), (End::Limit, 3, 0, 0));
}

/// Where the tasks depend on each other, the parts of an operation add up.
#[test]
fn operations_that_depend_on_others_add_up() {
    let stressor = |name: &str| {
        let workload = build(&format!("stress-ng-{name}"), &[(name, int(1))], false);
        Machine::new(&workload).budget(100_000).run(SEC, 1)
    };
    // The waker never stops, so no wait times out: a bogo op for each but the last one, and no pause.
    let out = stressor("futex");
    let waits = out.calls - out.completed(WAKE);
    assert!(out.counts[0] > 40 && (out.counts[0]..=out.counts[0] + 1).contains(&waits), "{waits} {:?}", out.counts);
    assert_eq!(out.completed(Op::Sleep(Amount::Fixed(0))), 0);
    // A try that got the semaphore gives it back and then yields or sleeps, each with a probability of a half.
    let out = stressor("sem");
    let (yields, sleeps) = (out.completed(Op::Yield), out.completed(Op::Sleep(Amount::Fixed(0))));
    assert!(out.counts[0] > 10_000 && out.completed(Op::SemPost(0)).abs_diff(out.counts[0]) <= 2);
    assert!(out.counts[0].abs_diff(yields + sleeps) <= 2, "{:?}, {yields} yields, {sleeps} sleeps", out.counts);
    let four_deviations = 2.0 * (out.counts[0] as f64).sqrt();
    assert!((yields as f64 - out.counts[0] as f64 / 2.0).abs() < four_deviations, "{yields} of {:?}", out.counts);
    // A timed wait whose time has passed is a call where the semaphore is taken; nobody keeps it for any time here.
    assert_eq!(out.calls, sleeps + out.completed(Op::System(Amount::Fixed(0))));
    // An aio op is a transfer, getpid, getuid and a signal, and at most one wait and one return from the handler.
    let out = stressor("aio");
    let (system, wakes) = (out.completed(Op::System(Amount::Fixed(0))), out.completed(WAKE));
    let waits = out.calls - wakes - system;
    assert!(
        out.counts[0] > 1_000 && wakes.abs_diff(out.counts[0]) <= 16,
        "16 requests are under way: {:?}",
        out.counts
    );
    let returns = system - 3 * wakes;
    assert!(returns <= waits + 3 && waits <= wakes + 1, "{system} calls, {wakes} signals, {waits} waits");
}

/// FUTEX_WAKE.
const WAKE: Op = Op::FutexWake { object: 0, count: 1, into: 0 };

#[test]
fn kernbench_starts_six_processes_per_object_one_per_directory_and_no_more_jobs_than_tokens() {
    // 30 objects are two directories of 12 and one of 6.
    for (load, most) in [("half", 3), ("optimal", 16), ("maximal", 30)] {
        let workload = build("kernbench", &[("load", text(load)), ("objects", int(30))], false);
        let out = Machine::new(&workload).run(600 * SEC, 1);
        assert_eq!((out.end.clone(), out.created - 1, out.execs), (End::Finished, 3 + 30 * 6, 3 + 30 * 6), "{load}");
        // A job is at most a shell, a driver and a compiler at a time; the makes wait for theirs.
        assert!(out.alive_max <= 1 + 3 + 3 * most, "{load}: {} tasks at a time", out.alive_max);
    }
}

#[test]
fn request_servers_measure_from_the_arrival_in_one_task_to_the_completion_in_another() {
    // Four CPUs at half load: 8 threads that never wait for each other here, where every task has a CPU.
    let given = [("load", int(50)), ("request", text("10ms"))];
    let workload = build("hhvm", &given, false);
    assert_eq!((workload.tasks.len(), workload.remotes.len()), (1, 1), "requests come from other machines");
    let workload = workload.with_local_clients();
    let out = Machine::new(&workload).run(10 * SEC, 1);
    let (requests, latency, queueing, service) = (out.counts[0], &out.samples[1], &out.samples[4], &out.samples[5]);
    assert!((1_800..2_200).contains(&requests), "4 CPUs * 50% / 10 ms * 10 s: {requests}");
    assert_eq!((latency.len() as u64, queueing.len()), (requests, requests as usize + queueing.len() - latency.len()));
    for (index, whole) in latency.iter().enumerate() {
        assert!(*whole >= service[index] && service[index] >= 10_000_000, "{whole} {}", service[index]);
    }
    let closed = build("hhvm", &[], false);
    assert_eq!((closed.tasks[0].count, closed.tasks.len()), (8, 1), "two threads per CPU, nothing else");
}

/// Requests of a mix, the calls of each to the database, and orders, by the numbers of the entry.
#[test]
fn daytrader_answers_its_mix_in_a_closed_and_in_an_open_loop() {
    // Work and calls of quotes, pages, updates and orders; the call of an order to the order thread is one more
    // message.
    let (work, calls) = ([300_000.0, 600_000.0, 800_000.0, 1_000_000.0], [1.0, 2.0, 3.0, 5.0]);
    let mixes: [[i64; 4]; 3] = [[40, 49, 3, 8], [0, 0, 0, 100], [100, 0, 0, 0]];
    for (mix, open) in mixes.into_iter().flat_map(|mix| [(mix, false), (mix, true)]) {
        let names = ["quotes", "pages", "updates", "orders"];
        let mut given: Vec<(&str, OptionValue)> = names.into_iter().zip(mix.map(int)).collect();
        given.extend([("time", text("1s")), if open { ("load", int(50)) } else { ("users", int(2)) }]);
        let workload = build("daytrader", &given, false);
        let out = Machine::new(&workload).run(2 * SEC, 1);
        assert_eq!(out.end, End::Finished);
        let requests = out.counts[0];
        let mean = |part: [f64; 4]| part.iter().zip(mix).map(|(each, share)| each * share as f64 / 100.0).sum::<f64>();
        // Objects: requests, calls, orders. Two requests may be under way, each with a call.
        let shown = format!("{mix:?} open {open}: {requests} requests, {:?} messages", &out.written[..3]);
        assert!(out.written[0] - requests <= 12, "{shown}");
        let per = |object: usize| out.written[object] as f64 / requests as f64;
        assert!((per(1) - mean(calls)).abs() <= 0.02 * mean(calls), "{shown}");
        assert!((per(2) - mix[3] as f64 / 100.0).abs() <= 0.01, "{shown}");
        let busy = mean(work) + 100_000.0 * (mean(calls) + mix[3] as f64 / 100.0);
        let rate = requests as f64;
        let names: Vec<&str> = workload.metrics.iter().map(|metric| metric.name.as_str()).collect();
        let (names, kinds) = names.split_at(if open { 4 } else { 3 });
        daytrader_samples_each_kind(&out.samples[1], &out.samples[names.len()..], kinds, mix);
        if open {
            // Half of four CPUs, Poisson: three standard deviations.
            let due = 0.5 * 4.0 * 1e9 / busy;
            assert!((rate - due).abs() < 3.0 * due.sqrt() + 3.0, "{shown}: {due} due in a second");
            assert_eq!(names, ["requests_per_second", "latency", "service", "queueing"]);
            // From when it was due: the parts add up for every request that a thread has taken and answered.
            let sum = |metric: usize| out.samples[metric].iter().map(|ns| *ns as f64).sum::<f64>();
            assert!((sum(1) / (sum(2) + sum(3)) - 1.0).abs() < 0.01, "{shown}");
        } else {
            assert_eq!(names, ["requests_per_second", "latency", "service"]);
            // The order thread works beside the requests.
            let alone = busy - 100_000.0 * mix[3] as f64 / 100.0;
            assert!((2e9 / alone / rate - 1.0).abs() < 0.05, "{shown}, {alone} ns of work");
        }
    }
}

/// Every answer is a sample of exactly one kind, in the proportion of the mix; a kind without requests has no metric.
fn daytrader_samples_each_kind(all: &[i64], by_kind: &[Vec<i64>], names: &[&str], mix: [i64; 4]) {
    let kinds = ["quotes_latency", "pages_latency", "updates_latency", "orders_latency"];
    let with_requests = || kinds.into_iter().zip(mix).filter(|(_, share)| *share > 0);
    assert_eq!(names, with_requests().map(|(kind, _)| kind).collect::<Vec<_>>());
    let (mut parts, mut whole) = (by_kind.concat(), all.to_vec());
    parts.sort_unstable();
    whole.sort_unstable();
    assert_eq!(parts, whole);
    for ((kind, share), samples) in with_requests().zip(by_kind) {
        // A binomial number: five standard deviations.
        let (n, p) = (all.len() as f64, share as f64 / 100.0);
        let off = (samples.len() as f64 - n * p).abs();
        assert!(off <= 5.0 * (n * p * (1.0 - p)).sqrt(), "{} of {n} are {kind}, {share} percent", samples.len());
    }
}

#[test]
fn daytrader_thinks_locks_rows_and_refuses_contradictions() {
    let slow = [("users", int(3)), ("think-time", text("1s")), ("time", text("10s"))];
    let out = Machine::new(&build("daytrader", &slow, false)).run(11 * SEC, 1);
    assert!((27..=30).contains(&out.counts[0]), "{}", out.counts[0]);
    // All orders are of one stock: an order at a time makes its last two calls.
    let one = [("users", int(16)), ("quotes", int(0)), ("pages", int(0)), ("updates", int(0)), ("orders", int(100))];
    let rate = |stocks: i64| {
        let given = [&one[..], &[("stocks", int(stocks)), ("time", text("1s"))]].concat();
        Machine::new(&build("daytrader", &given, false)).run(2 * SEC, 1).counts[0] as f64
    };
    // One stock: two calls of 100 us under the lock, 5,000 a second at most. Many: 8 web threads, 1.5 ms an order,
    // 5,333 at most.
    let (one, many) = (rate(1), rate(10_000));
    assert!((4_250.0..=5_000.0).contains(&one), "{one} with one stock");
    assert!((5_100.0..=5_333.0).contains(&many), "{many} with many stocks");
    let refused: [(&[(&str, OptionValue)], &str); 4] = [
        (&[("quotes", int(41))], "quotes"),
        (&[("load", int(70)), ("rate", int(100))], "load"),
        (&[("load", int(70)), ("users", int(5))], "users"),
        (&[("rate", int(70)), ("think-time", text("1ms"))], "think-time"),
    ];
    for (given, key) in refused {
        assert_eq!(catalogue::build("daytrader", &options(given), "w", false, 4).unwrap_err().key, key);
    }
}

/// Messages and system calls of a transaction, as counted with pgbench 15.18: docs/guides/workloads.md.
#[test]
fn pgbench_makes_ten_system_calls_for_each_statement() {
    let cases: &[(&str, Given<'_>, u64)] = &[
        ("select-only", &[], 1),
        ("simple-update", &[("client", int(7)), ("jobs", int(3))], 5),
        ("tpcb-like", &[("client", int(5)), ("scale", int(3))], 7),
    ];
    for (script, given, statements) in cases {
        let fixed = [("builtin", text(script)), ("accesses", int(0)), ("time", text("200ms"))];
        let workload = build("pgbench", &[*given, &fixed].concat(), false);
        let out = run(&workload);
        let clients = given.iter().find(|(key, _)| *key == "client").map_or(1, |(_, n)| match n {
            OptionValue::Int(n) => *n as u64,
            _ => 0,
        });
        let sockets: Vec<usize> = (0..workload.objects.len())
            .filter(|index| matches!(workload.objects[*index], schedlab_workload::ObjectSpec::UnixStream { .. }))
            .collect();
        let messages: u64 = sockets.iter().map(|index| out.written[*index] + out.read[*index]).sum();
        let asked = out.counts[0] * statements;
        // A statement sent and read, a reply sent and read; each client has at most one statement under way.
        assert!(asked > 1_000 && (0..=4 * clients * statements).contains(&(messages - 4 * asked)), "{script}");
        let calls = messages + out.calls - 1;
        assert!((9.95..10.2).contains(&(calls as f64 / asked as f64)), "{script}: {calls} calls, {asked} statements");
        assert_eq!(out.samples[1].len() as u64, out.counts[0], "{script}: a latency per transaction");
        assert_eq!(out.end, End::Finished, "{script}");
    }
    let faults = |page: &str| {
        let given = [("builtin", text("select-only")), ("fault", text(page)), ("time", text("200ms"))];
        let out = run(&build("pgbench", &given, false));
        out.faults as f64 / out.counts[0] as f64
    };
    assert!((1.99..2.01).contains(&faults("4KiB")), "two pages of 4 KiB hold a buffer");
    assert!((1.0 / 300.0..1.0 / 200.0).contains(&faults("2MiB")), "a page of 2 MiB holds 256");
    let many = catalogue::build("pgbench", &options(&[("jobs", int(2))]), "w", false, 4).unwrap_err();
    assert!(many.what.contains("2 threads for 1 clients"));
}

/// As counted with sockperf and nginx 1.22: docs/guides/workloads.md.
#[test]
fn request_and_response_are_four_calls_and_a_file_is_one_pass_through_the_pool() {
    for (id, softirq) in [("netperf-tcp-rr", 1030), ("netperf-udp-rr", 430)] {
        let workload = build(id, &[("instances", int(2)), ("time", text("10ms"))], false);
        let out = run(&workload);
        let done = out.counts[0];
        // Without costs a transaction takes the two softirqs.
        assert!(done.abs_diff(2 * 10_000_000 / (2 * softirq)) <= 2, "{id}: {done}");
        assert!(out.written.iter().chain(&out.read).all(|each| each.abs_diff(done / 2) <= 1), "{id}");
        assert_eq!(out.calls, 1, "{id}: the softirq is part of the send");
    }
    // Worker: recvfrom, openat, fstat, writev, close; pool or worker: sendfile.
    for (aio, pool) in [("threads", true), ("off", false)] {
        let given = [("aio", text(aio)), ("connections", int(9)), ("time", text("100ms"))];
        let workload = build("nginx", &given, false);
        let out = run(&workload);
        let done = out.counts[0];
        assert!(done > 1_000 && (0..=60).contains(&(out.calls - 6 * done)), "{aio}: {} calls, {done}", out.calls);
        let sum = |what: &str| -> u64 {
            let named = (0..workload.objects.len()).filter(|index| workload.object_names[*index].starts_with(what));
            named.map(|index| out.read[index]).sum()
        };
        assert!(sum("thread pool").abs_diff(if pool { done } else { 0 }) <= 9, "{aio}");
        assert!(sum("events").abs_diff(done * (1 + u64::from(pool))) <= 9, "{aio}");
        assert_eq!(out.created, 1 + 4 + 4 + if pool { 4 * 32 } else { 0 }, "{aio}: a client thread per worker");
    }
}

#[test]
fn every_rank_passes_every_barrier_and_the_slowest_decides() {
    let cases: &[(Given<'_>, u64, u64)] = &[
        (&[("iterations", int(7))], 4, 7 * 1_000_000),
        (&[("iterations", int(8)), ("wait-policy", text("passive")), ("straggler", int(50))], 4, 8 * 1_500_000),
        (&[("iterations", int(3)), ("wait-policy", text("active")), ("ranks", int(2))], 2, 3 * 1_000_000),
        (&[("iterations", int(5)), ("ranks", int(9)), ("straggler", int(10))], 9, 5 * 1_100_000),
        // More threads than CPUs: after 55 us they sleep, or a rank without a CPU would never get to the barrier.
        (&[("iterations", int(2)), ("wait-policy", text("active")), ("ranks", int(9))], 9, 2 * 1_000_000),
    ];
    for (given, ranks, least) in cases {
        let workload = build("nas", &[*given, &[("imbalance", int(0))]].concat(), false);
        let out = run(&workload);
        let phases = out.counts[1];
        assert_eq!(out.end, End::Finished, "{given:?}");
        assert_eq!(out.samples[2].len() as u64, ranks * phases, "{given:?}: each rank waits at each barrier");
        // A rank that spins looks every 2 us.
        let took = out.samples[0][0] as u64;
        assert!((*least..=least + 2_000 * phases).contains(&took), "{given:?}: {took}");
        assert_eq!(out.created as u64, ranks + 1);
    }
}

#[test]
fn stream_moves_each_array_once_a_kernel_and_times_all_but_the_first_iteration() {
    // Threads, elements, iterations.
    for (threads, elements, ntimes) in [(1, 1_000_000, 2), (4, 1_000_003, 10), (5, 7_000, 3), (3, 200_000_000, 2)] {
        let given = [("threads", int(threads)), ("array-size", int(elements)), ("ntimes", int(ntimes))];
        let out = run(&build("stream", &given, false));
        assert_eq!(out.end, End::Finished, "{given:?}");
        // Three arrays are filled; then 2, 2, 3 and 3 arrays are read or written in each iteration.
        assert_eq!(out.streamed as i64, 8 * elements * (3 + 10 * ntimes), "{given:?}");
        assert_eq!((out.created, out.exited), (threads as usize, threads as usize - 1), "{given:?}");
        for (kernel, words) in [2, 2, 3, 3].into_iter().enumerate() {
            let times = ntimes as usize - 1;
            assert_eq!((out.samples[kernel].len(), out.samples[4 + kernel].len()), (times, times), "{given:?}");
            assert_eq!(out.counts[kernel] as i64, elements * words * times as i64, "{given:?}");
        }
    }
}

/// src/stream.c of lmbench: copy and scale move two arrays, triad three; add moves one and counts three.
#[test]
fn lmbench_stream_runs_its_four_kernels_in_turn() {
    for (bytes, parallelism) in [(24_000_000, 1), (240_000, 3)] {
        let given = [("bytes", int(bytes)), ("parallelism", int(parallelism)), ("time", text("100ms"))];
        let out = run(&build("lmbench-stream", &given, false));
        let elements = bytes / 24;
        let passes: Vec<i64> = (0..4).map(|kernel| out.samples[2 * kernel].len() as i64).collect();
        assert!(out.end == End::Finished && passes[3] > 1, "{given:?}: {passes:?}");
        assert!(
            passes.windows(2).all(|pair| (0..=parallelism).contains(&(pair[0] - pair[1]))),
            "{given:?}: {passes:?}"
        );
        for (kernel, words) in [2, 2, 3, 3].into_iter().enumerate() {
            assert_eq!(out.counts[2 * kernel + 1] as i64, words * elements * passes[kernel], "{given:?}");
        }
        // An operation that the end interrupts has moved its bytes already.
        let moved = 8 * elements * (2 * passes[0] + 2 * passes[1] + 3 * passes[3]);
        assert!((0..=24 * elements * parallelism).contains(&(out.streamed as i64 - moved)), "{given:?}");
    }
}

#[test]
fn specjbb_completes_what_is_injected_tier_by_tier() {
    let given = [("injection-rate", int(1000)), ("time", text("5s"))];
    let out = Machine::new(&build("specjbb", &given, false)).run(6 * SEC, 1);
    let done = out.counts[0];
    assert!((4_700..5_300).contains(&done), "1000 a second for 5 s: {done}");
    assert!(out.read.iter().take(3).all(|tier| (done..done + 20).contains(tier)), "{:?}", out.read);
    let mean = out.samples[1].iter().sum::<i64>() as f64 / done as f64;
    assert!((690_000.0..720_000.0).contains(&mean), "no request queues on free CPUs: {mean}");
    let both = options(&[("load", int(5)), ("injection-rate", int(5))]);
    assert!(catalogue::build("specjbb", &both, "w", false, 4).unwrap_err().what.contains("both set the rate"));
}

#[test]
fn frames_and_audio_keep_their_times_or_say_how_often_they_do_not() {
    let one = |key: &'static str, value| [(key, value), ("time", text("2s"))];
    // Frames that take no time: every refresh has one, with a post and a wait for each render thread and back.
    let none = [("main", int(0)), ("render", int(0)), ("hz", int(120)), ("time", text("2s"))];
    let out = run(&build("frames", &none, false));
    let due = out.completed(Op::TimerDue { object: 0, into: 0 });
    assert_eq!((out.counts[0], out.counts[1], out.samples[2].len() as u64), (due, 0, due));
    assert_eq!((out.completed(Op::SemPost(0)), out.completed(Op::SemWait(0))), (2 * 3 * due, 2 * 3 * due));
    assert_eq!(due, 2 * SEC / (SEC / 120));
    // A third and a fifth of the period, lognormal with sigma 0.2: the whole is late where a render thread takes 2.4
    // times its median, 4.4 sigma: one of 180,000.
    let out = run(&build("frames", &one("hz", int(120)), false));
    assert!((due - 1..=due).contains(&out.counts[0]) && out.counts[1] == 0, "the last is under way: {:?}", out.counts);
    // The main thread alone takes 2.5 periods in the median, so two to three refreshes a frame, each of which has one
    // or has not.
    let slow = [("main", int(41_666)), ("render", int(0)), ("time", text("2s"))];
    let out = run(&build("frames", &slow, false));
    let (shown, dropped) = (out.counts[0], out.counts[1]);
    let due = out.completed(Op::TimerDue { object: 0, into: 0 });
    assert!((36..46).contains(&shown), "{shown}");
    assert!(shown <= due && due <= shown + 1, "a frame for each refresh at which the main thread waits: {due} {shown}");
    assert!(
        (117..=120).contains(&(shown + dropped)),
        "{shown} {dropped}: a frame of up to three refreshes is under way"
    );
    assert!(out.samples[2].iter().all(|took| *took < 100_000_000), "a late frame does not make the next one late");
    // 1024 frames at 48 kHz, of which driver and two clients take a fifth; a cycle is a post each of the driver and of
    // the clients.
    let out = run(&build("audio", &one("load", int(20)), false));
    let cycles = 2 * SEC / (1024 * SEC / 48_000);
    assert_eq!((out.samples[1].len() as u64, out.counts[0]), (cycles, 0));
    assert!(out.completed(Op::Post(0)) - 3 * cycles <= 3, "{} posts", out.completed(Op::Post(0)));
    let cycle = 3 * (1024 * SEC / 48_000 * 20 / 100 / 3) as i64;
    assert!(out.samples[1].iter().all(|found| *found == cycle), "{cycle}: {:?}", &out.samples[1][..2]);
    // Each frame time has a frame or drops one. Decoding that takes no time drops none.
    for (decode, least, most) in [
        (0, 119, 120),
        // 6 ms in the median, sigma 0.5, four buffers: one of the first frames may be late.
        (6_000, 115, 120),
        // Two decoders at 80 ms in the median, 90.7 ms in the mean: 44.1 in 2 s, four deviations of sqrt(44.1 * 0.284).
        (80_000, 30, 58),
    ] {
        let out = run(&build("video", &[("decode", int(decode)), ("fps", int(60)), ("time", text("2s"))], false));
        let (shown, dropped) = (out.counts[0], out.counts[1]);
        let due = out.completed(Op::TimerDue { object: 0, into: 0 });
        assert_eq!(due, 120);
        assert!((due - 1..=due).contains(&(shown + dropped)), "{shown} {dropped}");
        assert!((least..=most).contains(&shown), "{decode}: {shown}");
    }
}

#[test]
fn perf_pipe_of_6_15_writes_first_on_both_sides() {
    let out = run(&build("perf-pipe-6.15", &[("loop", int(1000))], false));
    assert_eq!((out.end, &out.written[..], &out.read[..]), (End::Finished, &[1000, 1000][..], &[1000, 1000][..]));
    let workload = build("perf-pipe-6.15", &[("loop", int(10))], false);
    let first = |ops: &[Op]| ops.iter().find(|op| matches!(op, Op::Read { .. } | Op::Write { .. })).copied();
    assert!(workload.programs.iter().all(|program| matches!(first(&program.ops), Some(Op::Write { .. }))));
}

#[test]
fn schbench_of_2020_computes_between_the_post_and_the_sleep() {
    let given = [("message-threads", int(1)), ("threads", int(2)), ("runtime", int(2)), ("cputime", text("1ms"))];
    let out = run(&build("schbench-2020", &given, false));
    assert_eq!((out.end.clone(), out.now, out.created), (End::Finished, 2 * SEC, 1 + 1 + 2));
    let burns = |id: &str| {
        let workload = build(id, &[("threads", int(1))], false);
        let ops = workload.programs.into_iter().flat_map(|program| program.ops).collect::<Vec<_>>();
        let place = |wanted: &dyn Fn(&Op) -> bool| ops.iter().position(wanted).unwrap();
        let spin = Op::RunWall(schedlab_workload::Amount::Fixed(30 * MSEC + 1_000));
        // Beside the workers' spin of the same length, one of the message thread, which waits before it and then
        // sleeps.
        let wait = place(&|op| matches!(op, Op::Post(_)));
        let later = ops[wait..].iter().position(|op| *op == spin).map(|at| wait + at);
        later.is_some_and(|at| matches!(ops[at - 1], Op::Wait(_)) && matches!(ops[at + 1], Op::Sleep(_)))
    };
    assert_eq!(["schbench", "schbench-2020"].map(burns), [false, true]);
}

/// A signal is a kill, what the sleeper does after it an rt_sigreturn; signals that find one pending are lost.
#[test]
fn starve_counts_signals_that_are_not_lost() {
    let workload = build("starve", &[("signals", int(500))], false);
    let out = run(&workload);
    assert_eq!((out.end.clone(), out.created, out.samples[0].len()), (End::Finished, 2, 1));
    assert_eq!(out.counts[1], 500);
    // Two tasks with a CPU each that take no time: every kill finds the parent asleep. None is lost but that after the
    // last.
    let (kills, calls) = (out.counts[2], out.completed(Op::System(Amount::Fixed(0))));
    assert!((500..=501).contains(&kills), "{kills} kills");
    assert_eq!((out.completed(Op::Wait(0)), out.completed(Op::Post(0))), (500, kills));
    assert!((0..=1).contains(&(calls - 500 - kills)), "{calls} calls: a kill each, and a return from each handler");
}

#[test]
fn perf_seccomp_notify_answers_every_call_in_turn() {
    let workload = build("perf-seccomp-notify", &[("loop", int(1000))], false);
    let out = run(&workload);
    assert_eq!((out.end, out.created, out.exited, out.samples[0].len()), (End::Finished, 2, 1, 1));
    assert_eq!(workload.metrics[0].divide, 1000);
    let steps = |program: usize| {
        let ops = workload.programs[program].ops.iter();
        ops.filter(|op| matches!(op, Op::Post(_) | Op::Wait(_))).copied().collect::<Vec<_>>()
    };
    assert_eq!((steps(0), steps(1)), (vec![Op::Post(0), Op::Wait(1)], vec![Op::Wait(0), Op::Post(1)]));
    let sync = build("perf-seccomp-notify", &[("loop", int(1000)), ("sync-mode", on())], false);
    let posts = sync.programs.iter().flat_map(|program| &program.ops).filter(|op| matches!(op, Op::PostHere(_)));
    assert_eq!((run(&sync).end, posts.count()), (End::Finished, 2));
}

/// System calls of perf bench futex: each wait, each wake or move, and main's sleep; of `lock-pi` a lock, a sleep, an
/// unlock.
#[test]
fn perf_futex_makes_the_calls_that_perf_makes() {
    let cases: &[(&str, Given<'_>, u64, u64, usize)] = &[
        // Calls of main, calls of the waking threads, and these threads, per run.
        ("perf-futex-wake", &[("threads", int(8))], 1 + 8, 0, 0),
        ("perf-futex-wake", &[("threads", int(8)), ("nwakes", int(3))], 1 + 3, 0, 0),
        ("perf-futex-requeue", &[("threads", int(8)), ("nrequeue", int(3))], 1 + 3 + 1, 0, 0),
        ("perf-futex-wake-parallel", &[("threads", int(8))], 1, 8, 8),
        ("perf-futex-wake-parallel", &[("threads", int(8)), ("nwakers", int(2))], 1, 2, 2),
    ];
    for (id, given, main, parallel, wakers) in cases {
        let mut given = given.to_vec();
        given.push(("runs", int(3)));
        let out = run(&build(id, &given, false));
        assert_eq!((out.end, out.calls), (End::Finished, 3 * (8 + main + parallel)), "{id} {given:?}");
        assert_eq!((out.created, out.exited), (1 + 3 * (8 + wakers), 3 * (8 + wakers)), "{id} {given:?}");
        assert_eq!(out.samples[0].len(), 3 * (*wakers).max(1), "{id} {given:?}: perf's one, or one a waking thread");
    }
    let time = ("runtime", text("10ms"));
    let out = run(&build("perf-futex-hash", &[("threads", int(3)), time.clone()], false));
    assert_eq!((out.created, out.calls, out.counts[0] % 1024), (1 + 3, out.counts[0], 0), "a call per operation");
    assert!(out.counts[0] > 3 * 30_000, "{}", out.counts[0]);
    for (multi, holders) in [(false, 1), (true, 3)] {
        let given = [("threads", int(3)), time.clone(), ("multi", OptionValue::Bool(multi))];
        let out = run(&build("perf-futex-lock-pi", &given, false));
        assert_eq!(out.calls, 3 * out.counts[0]);
        // A sleep of 1 us for each holder at a time; the reference has no other costs.
        assert!((9_990 * holders..=10_003 * holders).contains(&out.counts[0]), "{multi}: {}", out.counts[0]);
    }
}

#[test]
fn every_program_ends_or_is_endless_by_design() {
    for entry in catalogue::all() {
        let workload = build(entry.id, &[], false);
        let (limit, budget) = match entry.ends {
            catalogue::Ends::Always => (100 * SEC, u64::MAX),
            _ => (20 * MSEC, 300_000),
        };
        let short: Given<'_> = match entry.id {
            "kernbench" => &[("objects", int(20))],
            // Nothing takes time there where every task has a CPU.
            "sysbench-threads" => continue,
            "starve" => &[("signals", int(1000))],
            "perf-seccomp-notify" => &[("loop", int(1000))],
            "perf-futex-hash" => &[("runtime", int(1)), ("threads", int(1))],
            _ => &[],
        };
        let workload = if short.is_empty() { workload } else { build(entry.id, short, false) };
        let out = Machine::new(&workload).budget(budget).run(limit, 1);
        match entry.ends {
            catalogue::Ends::Always => assert_eq!(out.end, End::Finished, "{}", entry.id),
            _ => assert_eq!(out.end, End::Limit, "{}", entry.id),
        }
        assert_eq!(workload.ends, entry.ends == catalogue::Ends::Always, "{}", entry.id);
        for decl in &workload.metrics {
            assert!(entry.metrics.iter().any(|spec| spec.name == decl.name), "{}: {}", entry.id, decl.name);
        }
        for program in &workload.programs {
            let end = program.ops.len() as u32;
            let labels = program.ops.iter().filter_map(|op| match op {
                Op::Jump(to) | Op::JumpBelow { to, .. } | Op::DecJump { to, .. } => Some(*to),
                Op::ListPop { empty, .. } | Op::MailTake { empty, .. } => Some(*empty),
                _ => None,
            });
            assert!(labels.into_iter().all(|to| to <= end), "{} jumps out of {}", entry.id, program.name);
        }
        assert_eq!(workload.objects.len(), workload.object_names.len());
    }
}

#[test]
fn option_tables_are_consistent() {
    for entry in catalogue::all() {
        let mut names: Vec<&str> = entry.options.iter().map(|spec| spec.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), entry.options.len(), "{} has an option twice", entry.id);
        for spec in entry.options {
            assert!(
                !spec.help.is_empty() && !spec.expected().is_empty() && !spec.name.starts_with('-'),
                "{}",
                spec.name
            );
        }
    }
}

#[test]
fn errors_have_the_key_the_position_and_the_nearest_name() {
    let cases: &[(&str, &str, OptionValue, &str, &str)] = &[
        ("hackbench", "group", int(1), "no option `group`", "did you mean `groups`?"),
        ("hackbench", "groups", int(0), "cannot be 0", "a whole number from 1 to 100000"),
        ("hackbench", "groups", text("ten"), "cannot be \"ten\"", "whole number"),
        ("hackbench", "groups", int(100_000), "more than the maximum of 200000", "fewer"),
        ("hackbench", "pipe", int(1), "cannot be 1", "true or false"),
        ("cyclictest", "interval", text("1h"), "cannot be \"1h\"", "\"1us\""),
        ("cyclictest", "interval", int(0), "cannot be 0", "from 1us"),
        ("cyclictest", "policy", text("othr"), "cannot be \"othr\"", "did you mean `other`?"),
        ("cyclictest", "priority", int(100), "cannot be 100", "0 to 99"),
        ("cyclictest", "affinity", int(4), "this machine has no CPUs 4", "CPUs 0 to 3"),
        ("cyclictest", "affinity", text("x"), "no list of CPUs", "0,2-3"),
        ("cyclictest", "affinity", text("!0-3"), "leaves no CPU", ""),
        ("cyclictest", "threads", int(-1), "cannot be -1", "true: one per CPU"),
        ("schbench", "w", int(1), "not modelled: later versions have it", ""),
        ("schbench", "L", on(), "not modelled: only schbench-1.0 has it", ""),
        ("schbench", "rps", int(1), "less than one request", "2 or more"),
        ("schbench", "cputime", int(0), "neither spins nor transfers", "pipe"),
        ("stress-ng-cpu", "cpu-load", int(101), "cannot be 101", "0 to 100"),
        ("perf-pipe", "loops", int(1), "no option `loops`", "did you mean `loop`?"),
        ("perf-futex-wake-parallel", "nwakers", int(3), "4 threads in 3 equal parts", "a divisor of threads"),
        ("perf-futex-hash", "buckets", int(0), "cannot be 0", "1 to 1048576"),
        ("perf-futex-hash", "threads", int(5000), "5000 threads with 1024 futexes each", "at most 4194304"),
        ("schbench-2020", "message-cputime", int(1), "the program ignores it", ""),
        ("stress-ng-pipe", "pipe-size", int(5000), "a pipe of 5000 bytes", "a power of two"),
        ("hog", "n", int(1), "no option `n`", "one of threads"),
    ];
    for (id, key, value, what, hint) in cases {
        let error = catalogue::build(id, &options(&[(key, value.clone())]), "w", false, 4).unwrap_err();
        assert!(error.to_string().contains(what), "{id} {key}: {error}");
        assert!(error.hint().contains(hint), "{id} {key}: {}", error.hint());
        assert_eq!((error.key.as_str(), error.at.line), (*key, 3), "{id} {key}");
    }
    let both = options(&[("loops", int(1)), ("duration", int(2))]);
    assert!(catalogue::build("cyclictest", &both, "w", false, 4).unwrap_err().what.contains("both end"));
    let both = options(&[("cpu-ops", int(1)), ("timeout", int(2))]);
    assert!(catalogue::build("stress-ng-cpu", &both, "w", false, 4).unwrap_err().what.contains("both end"));
    let twice = options(&[("loop", int(1)), ("loop", int(2))]);
    assert!(catalogue::build("perf-pipe", &twice, "w", false, 4).unwrap_err().what.contains("twice"));
    let unknown = catalogue::build("hackbensh", &[], "w", false, 4).unwrap_err();
    assert_eq!(unknown.nearest.as_deref(), Some("hackbench"));
    let endless = catalogue::build("hog", &[], "w", true, 4).unwrap_err();
    assert_eq!((endless.key.as_str(), endless.what.contains("never ends")), ("repeat", true));
    assert!(catalogue::build("cyclictest", &[], "w", true, 4).unwrap_err().what.contains("loops or duration"));
}

/// The engine counts the ends it has seen: a workload must not report more than one.
#[test]
fn an_end_is_reported_by_one_program_once() {
    let cases: &[(&str, Given<'_>)] = &[
        ("hackbench", &[]),
        ("perf-pipe", &[("threaded", on())]),
        ("schbench", &[]),
        ("cyclictest", &[("loops", int(5)), ("threads", int(3)), ("histogram", int(400))]),
        ("cyclictest", &[("duration", int(5)), ("threads", int(3))]),
        ("stress-ng-cpu", &[("timeout", int(5))]),
        ("stress-ng-mmap", &[("timeout", int(5))]),
        ("stress-ng-vm", &[("timeout", int(5)), ("vm-keep", on())]),
        ("stress-ng-cpu", &[("cpu-ops", int(5))]),
        ("sysbench-cpu", &[("threads", int(3))]),
        ("perf-futex-wake-parallel", &[]),
        ("perf-futex-lock-pi", &[]),
        ("sysbench-threads", &[("threads", int(3))]),
        ("sysbench-mutex", &[("threads", int(3))]),
        ("sysbench-memory", &[("threads", int(3))]),
        ("schbench-2020", &[]),
        ("perf-seccomp-notify", &[]),
        ("starve", &[("copies", int(3))]),
    ];
    for (id, given) in cases {
        let workload = build(id, given, false);
        let ends = workload.programs.iter().enumerate().filter(|(_, program)| program.ops.contains(&Op::Finish));
        let runs: Vec<u32> = ends
            .map(|(id, _)| {
                workload.tasks.iter().filter(|task| task.program as usize == id).map(|task| task.count).sum()
            })
            .collect();
        assert_eq!(runs, [1], "{id} {given:?}");
    }
}

/// An option under its short name is the option: the same workload, or the same refusal.
#[test]
fn short_names_are_those_of_the_programs_and_mean_the_long_ones() {
    let known: [(&str, &str); 11] = [
        ("hackbench", "g groups f fds l loops s datasize p pipe T threads P process i inet F fifo"),
        ("perf-messaging", "g group l nr_loops p pipe t thread"),
        ("perf-pipe", "l loop T threaded"),
        ("perf-futex-hash", "t threads r runtime f futexes S shared m mlockall"),
        ("perf-futex-requeue", "t threads q nrequeue S shared"),
        ("schbench", "m message-threads t threads r runtime s sleeptime c cputime p pipe R rps a auto w warmuptime L no-locking"),
        ("cyclictest", "t threads a affinity m mlockall n nanosleep i interval d distance l loops D duration S smp h histogram p priority"),
        ("stress-ng-cpu", "c cpu l cpu-load t timeout"),
        ("stress-ng-vm", "m vm t timeout"),
        ("pgbench", "c client j jobs b builtin T time"),
        ("lmbench-stream", "P parallelism M bytes"),
    ];
    for (id, names) in known {
        let entry = catalogue::find(id).unwrap();
        let shorts: Vec<&str> = names.split(' ').collect();
        let has = entry.options.iter().filter(|option| !option.short.is_empty());
        let mut has: Vec<(&str, &str)> = has.map(|option| (option.short, option.name)).collect();
        let mut want: Vec<(&str, &str)> = shorts.chunks(2).map(|pair| (pair[0], pair[1])).collect();
        has.sort_unstable();
        want.sort_unstable();
        assert_eq!(has, want, "{id}");
    }
    for entry in catalogue::all() {
        for option in entry.options.iter().filter(|option| !option.short.is_empty()) {
            let called = entry.options.iter().filter(|other| other.is_called(option.short)).count();
            assert_eq!(called, 1, "{} -{}", entry.id, option.short);
            let value = match option.kind {
                OptionKind::Flag | OptionKind::NotModelled(_) => on(),
                OptionKind::Number { min, max } => int(min.max(2).min(max)),
                OptionKind::Time { .. } => text("1s"),
                OptionKind::Choice(words) => text(words[0]),
                OptionKind::NumberOrPerCpu(_) | OptionKind::Cpus => int(0),
            };
            let built = |key: &str| {
                let given = options(&[(key, value.clone())]);
                let workload = catalogue::build(entry.id, &given, "w", false, 4);
                workload
                    .map_err(|error| error.what.replace(&format!("`{}`", option.short), &format!("`{}`", option.name)))
            };
            assert_eq!(built(option.short), built(option.name), "{} -{}", entry.id, option.short);
        }
    }
}
