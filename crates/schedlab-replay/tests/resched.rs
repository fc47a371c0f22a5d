//! From a request to reschedule to the switch: where each preemption model honours it, on traces written here and on
//! recordings of 6.18.12 under three models.
#![allow(clippy::unwrap_used, clippy::type_complexity)] // a test fails by panicking; tables of cases

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use schedlab_policy::Version;
use schedlab_replay::{replay, row_of, Options, Report, ReschedReport};

const WAKES: &str = "sched_wakeup: comm=w pid=20 prio=120 target_cpu=000";
const WAKING: &str = "sched_waking: comm=w pid=20 prio=120 target_cpu=000";
const RUNS: &str = "sched_stat_runtime: comm=hog pid=10 runtime=1000 [ns]";
const ENTERS: &str = "sys_enter: NR 1 (1, 2)";
const LEAVES: &str = "sys_exit: NR 1 = 0";
const POINT: &str = "cr: (__cond_resched+0x4/0x70)";
/// On the way to user mode, and in the kernel.
const AWAY: &str =
    "sched_switch: prev_comm=hog prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=w next_pid=20 next_prio=120";
const PREEMPTED: &str =
    "sched_switch: prev_comm=hog prev_pid=10 prev_prio=120 prev_state=R+ ==> next_comm=w next_pid=20 next_prio=120";

/// Records with the time in us and the flags, of a task on one CPU.
fn judged(preempt: &str, records: &[(u64, &str, &str)]) -> ReschedReport {
    static NTH: AtomicUsize = AtomicUsize::new(0);
    let nth = NTH.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("schedlab-resched-{}-{nth}.ftrace", std::process::id()));
    let head = format!("# kernel 6.18.12 cpus 1\n# hz 250\n# sched_autogroup_enabled 0\n# preempt {preempt}\n#\n");
    let line = |(us, flags, text): &(u64, &str, &str)| {
        format!("             hog-10      [000] {flags} {:>5}.{:06}: {text}\n", 1 + us / 1_000_000, us % 1_000_000)
    };
    std::fs::write(&path, head + &records.iter().map(line).collect::<String>()).unwrap();
    let options = Options { warm_up: 0, ..Options::default() };
    let mut reader = schedlab_trace::open(&path).unwrap();
    let report = replay(&mut *reader, Version::find("6.18.12").unwrap(), &options).unwrap();
    std::fs::remove_file(&path).unwrap();
    report.resched
}

const NONE: &str = "(none) voluntary full lazy";
const FULL: &str = "none voluntary (full) lazy";
const LAZY: &str = "none voluntary full (lazy)";

/// The model, the records after a tick, and where the request ends: the place, whether it agrees, and from the request
/// to the check point in us.
#[test]
fn every_model_honours_a_request_at_its_check_point() {
    let interrupt = "end of the interrupt";
    let call = "return from a call";
    let cases: &[(&str, &[(u64, &str, &str)], &str, bool, Option<u64>)] = &[
        // User mode: the end of the interrupt, lazy or not.
        (
            NONE,
            &[(9, ".....", LEAVES), (50, "dNh3.", WAKES), (52, "dNh2.", WAKING), (54, "d..2.", AWAY)],
            interrupt,
            true,
            Some(2),
        ),
        (
            LAZY,
            &[(9, ".....", LEAVES), (50, "dLh3.", WAKES), (52, "dLh2.", WAKING), (54, "d..2.", AWAY)],
            interrupt,
            true,
            Some(2),
        ),
        // It is not honoured: the task enters the kernel with the flag set.
        (FULL, &[(9, ".....", LEAVES), (50, "dNh3.", WAKES), (90, ".N...", ENTERS)], interrupt, false, None),
        // Kernel mode: full preemption at once, a lazy request at the return from the call.
        (FULL, &[(9, ".....", ENTERS), (50, "dNh3.", WAKES), (54, "d..2.", PREEMPTED)], interrupt, true, Some(0)),
        (
            LAZY,
            &[(9, ".....", ENTERS), (50, "dLh3.", WAKES), (90, ".L...", LEAVES), (93, "d..2.", AWAY)],
            call,
            true,
            Some(40),
        ),
        (
            NONE,
            &[(9, ".....", ENTERS), (50, "dNh3.", WAKES), (90, ".N...", LEAVES), (93, "d..2.", AWAY)],
            call,
            true,
            Some(40),
        ),
        // A point that kernel code offers.
        (
            NONE,
            &[(9, ".....", ENTERS), (50, "dNh3.", WAKES), (70, ".N...", POINT), (73, "d..2.", PREEMPTED)],
            "cond_resched",
            true,
            Some(20),
        ),
        // A point that the kernel passed by.
        (
            NONE,
            &[
                (9, ".....", ENTERS),
                (50, "dNh3.", WAKES),
                (70, ".N...", POINT),
                (90, ".N...", LEAVES),
                (93, "d..2.", AWAY),
            ],
            "cond_resched",
            false,
            None,
        ),
        // The tick that makes a lazy request a full one, and one that does not.
        (
            LAZY,
            &[(9, ".....", ENTERS), (500, "dLh3.", WAKES), (4000, "dBh3.", RUNS), (4004, "d..2.", PREEMPTED)],
            "tick that upgrades",
            true,
            Some(3500),
        ),
        (
            LAZY,
            &[(9, ".....", ENTERS), (500, "dLh3.", WAKES), (4000, "dLh3.", RUNS)],
            "tick that upgrades",
            false,
            None,
        ),
        // Kernel mode is left though the request is a lazy one.
        (
            LAZY,
            &[(9, ".....", ENTERS), (50, "dLh3.", WAKES), (54, "d..2.", PREEMPTED)],
            "tick that upgrades",
            false,
            None,
        ),
    ];
    for (preempt, records, place, agreed, predicted) in cases {
        let report = judged(preempt, &[&[(0, "d.h3.", RUNS), (5, "d.h2.", WAKING)], *records].concat());
        let found: Vec<_> = report.places.iter().map(|p| (p.name, p.score.decisions, p.score.agreed)).collect();
        assert_eq!(found, [(*place, 1, u64::from(*agreed))], "{preempt} {records:?}: {report:?}");
        let delay = report.places[0].predicted.map(|delays| delays.p50_ns / 1000);
        assert_eq!(delay, *predicted, "{preempt} {records:?}");
        assert_eq!(report.disagreements.len(), usize::from(!agreed));
    }
}

#[test]
fn without_system_calls_in_the_trace_a_lazy_request_is_judged_at_ticks_alone() {
    let records = [(0, "d.h3.", RUNS), (40, "d.h2.", WAKING), (50, "dLh3.", WAKES), (54, "d..2.", AWAY)];
    let report = judged(LAZY, &records);
    assert_eq!((report.all.decisions, report.unjudged[0].count), (0, 1), "{report:?}");
    assert!(!report.calls_recorded);
    // A full one is honoured in either mode.
    let records = [(0, "d.h3.", RUNS), (40, "d.h2.", WAKING), (50, "dNh3.", WAKES), (54, "d..2.", AWAY)];
    assert_eq!(judged(FULL, &records).all.agreed, 1);
}

fn recorded(name: &str) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{name}.ftrace.gz"));
    let mut reader = schedlab_trace::open(&path).unwrap();
    let row = row_of(reader.header().kernel.as_deref().unwrap()).unwrap();
    replay(&mut *reader, row, &Options::default()).unwrap()
}

/// Recordings of 6.18.12 with system calls and `__cond_resched`. Model, how many requests are judged at least, and the
/// check points with the most by which the median of the recorded delay exceeds that of the predicted one, in us: the
/// end of the interrupt and `__schedule` up to the switch.
#[test]
fn recorded_requests_are_honoured_at_their_check_points() {
    let cases: [(&str, u64, &[(&str, u64)]); 3] = [
        ("none", 100, &[("end of the interrupt", 10), ("cond_resched", 10)]),
        ("full", 300, &[("end of the interrupt", 10)]),
        ("lazy", 250, &[("end of the interrupt", 10), ("return from a call", 10), ("tick that upgrades", 50)]),
    ];
    for (model, judged, places) in cases {
        let report = recorded(&format!("check-points/6.18.12-1cpu-preempt-{model}"));
        let resched = &report.resched;
        assert!(resched.model == Some(model) && resched.calls_recorded, "{report}");
        assert!(resched.all.decisions >= judged && resched.all.agreed == resched.all.decisions, "{report}");
        let unjudged: u64 = resched.unjudged.iter().map(|part| part.count).sum();
        assert!(unjudged * 4 < resched.all.decisions, "{report}");
        for (name, most) in places {
            let place = resched.places.iter().find(|place| place.name == *name).unwrap();
            let (predicted, recorded) = (place.predicted.unwrap(), place.recorded.unwrap());
            let late = recorded.p50_ns.saturating_sub(predicted.p50_ns);
            assert!(place.score.decisions >= 20 && late <= most * 1000, "{model} {name}: {report}");
        }
    }
}

/// Without system calls the ends of interrupts are judged where the flag is a full one, and the ticks that upgrade lazy
/// ones.
#[test]
fn recordings_without_system_calls_agree_where_they_can_be_judged() {
    for (name, place, judged) in
        [("7.2.13-1cpu-hackbench", "end of the interrupt", 100), ("6.19.14-4cpu-mix", "tick that upgrades", 50)]
    {
        let report = recorded(name);
        let resched = &report.resched;
        let found = resched.places.iter().find(|found| found.name == place).map_or(0, |found| found.score.decisions);
        assert!(!resched.calls_recorded && found >= judged, "{name}: {report}");
        assert_eq!(resched.all.agreed, resched.all.decisions, "{name}: {report}");
    }
}
