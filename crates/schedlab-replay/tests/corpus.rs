//! Traces of real kernels: how many of their decisions the row of their kernel must reach, and that no other row does
//! better.
//!
//! The traces in `corpus/` are cut from recordings in QEMU, autogroup off where their names do not say that it was on;
//! the names say kernel, CPUs and load.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use schedlab_policy::decision_view::TaskState;
use schedlab_policy::Version;
use schedlab_replay::{matrix_table, replay, replay_rows, row_of, Answer, InputKind, Options, Question, Report, Score};

/// What a trace must reach at least, in parts of 10,000: contested picks, preemptions, and vruntimes (up to 6.1) or
/// everything that probes show (from 6.12 on) equal to the ns.
#[derive(Clone, Copy)]
struct Floor {
    picks: u64,
    preemptions: u64,
    state: u64,
}

/// What is demanded where everything that a decision depends on is recorded: all of it.
const ALL: Floor = Floor { picks: 10_000, preemptions: 10_000, state: 10_000 };

/// Sessions are groups there. With one CPU that changes nothing: a group's weight is its shares.
const GROUPS: &str = "-autogroup";

/// With several, a group's weight follows loads, and `update_tg_load_avg` is gated by a clock that nothing records: one
/// decision in a hundred and one number in twenty may differ.
const GROUPS_ON_SEVERAL_CPUS: Floor = Floor { picks: 9900, preemptions: 9900, state: 9500 };

/// QEMU runs each CPU as a thread, and a busy host stops it anywhere, so that a few records come so late that single
/// decisions are read wrongly; the zero point of a queue may stay shifted afterwards, which shows where tasks leave it.
const OVERLAPS: (&str, Floor) = ("6.1.192-4cpu-mix", Floor { picks: 9900, preemptions: 9900, state: 9000 });

/// A trace in which the state of a task is a few ns off because its clock was read at another time: one number in a
/// thousand.
const CLOCKS: (&str, Floor) = ("6.1.192-2cpu-hackbench", Floor { picks: 10_000, preemptions: 10_000, state: 9990 });

/// With four CPUs records of different CPUs overlap more often: what is demanded is 99 in 100.
const MANY_CPUS: Floor = Floor { picks: 9900, preemptions: 9900, state: 9900 };

/// A machine in use: its sessions, which are groups, began before the recording. With probes that show their state the
/// decisions are demanded as with groups on several CPUs; without, replay must say that the trace does not determine
/// them.
const RUNNING: &str = "-running";
const IN_USE: Floor = Floor { picks: 9900, preemptions: 9900, state: 8500 };

struct Trace {
    name: String,
    path: PathBuf,
    row: Option<&'static Version>,
    cpus: usize,
}

fn corpus() -> Vec<Trace> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().ends_with(".ftrace.gz")).collect();
    paths.sort();
    paths.into_iter().map(trace).collect()
}

fn trace(path: PathBuf) -> Trace {
    let name = path.file_name().unwrap().to_string_lossy().trim_end_matches(".ftrace.gz").to_owned();
    let header = schedlab_trace::open(&path).unwrap().header().clone();
    Trace { name, path, row: header.kernel.as_deref().and_then(row_of), cpus: header.nr_cpus.unwrap_or(1) }
}

impl Trace {
    fn replay(&self, row: &'static Version) -> Report {
        let mut reader = schedlab_trace::open(&self.path).unwrap();
        replay(&mut *reader, row, &Options::default()).unwrap()
    }

    /// The reports of all rows, that of the kernel first.
    fn replay_all(&self) -> Vec<Report> {
        let others = Version::all().iter().filter(|row| Some(row.name) != self.row.map(|own| own.name));
        let others = others.filter(|_| !self.name.ends_with(RUNNING));
        let rows: Vec<&'static Version> = self.row.into_iter().chain(others).collect();
        let mut reader = schedlab_trace::open(&self.path).unwrap();
        replay_rows(&mut *reader, &rows, &Options::default()).unwrap()
    }
}

/// Every trace whose kernel has a row, with the reports of all rows, that row's first: computed once for all tests, in
/// one pass of each trace. A machine in use is replayed under its own row alone.
fn replayed() -> &'static [(Trace, Vec<Report>)] {
    static REPLAYED: OnceLock<Vec<(Trace, Vec<Report>)>> = OnceLock::new();
    REPLAYED.get_or_init(|| {
        let traces: Vec<Trace> = corpus().into_iter().filter(|trace| trace.row.is_some()).collect();
        let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(trace) = traces.get(at) else { break };
                    let reports = trace.replay_all();
                    done.lock().unwrap().insert(at, reports);
                });
            }
        });
        traces.into_iter().zip(done.into_inner().unwrap().into_values()).collect()
    })
}

/// Whether `part` of `all` is at least `floor` parts of 10,000.
fn reaches(part: u64, all: u64, floor: u64) -> bool {
    part * 10_000 >= all * floor
}

#[test]
fn every_trace_is_decided_as_its_kernel_did() {
    let mut judged = 0;
    for (trace, reports) in replayed() {
        let (report, name) = (&reports[0], &trace.name);
        assert_eq!(report.trace.sessions, name.ends_with(GROUPS) || name.ends_with(RUNNING), "{name}");
        assert!(report.desyncs == 0, "{name}: {report}");
        if name.ends_with(RUNNING) && report.state.events.decisions == 0 {
            let unexplained = report.unexplained.picks + report.unexplained.preemptions;
            assert!(unexplained > 0 && report.to_string().starts_with("unreliable"), "{name}: {report}");
            continue;
        }
        let floor = match (trace.cpus, name.ends_with(GROUPS)) {
            _ if name == OVERLAPS.0 => OVERLAPS.1,
            _ if name.ends_with(RUNNING) => IN_USE,
            _ if name == CLOCKS.0 => CLOCKS.1,
            (3.., false) => MANY_CPUS,
            (1, _) | (_, false) => ALL,
            (_, true) => GROUPS_ON_SEVERAL_CPUS,
        };
        judged += report.picks.decisions + report.preemptions.decisions;
        for (score, wanted) in [(report.picks, floor.picks), (report.preemptions, floor.preemptions)] {
            assert!(score.decisions > 50 && reaches(score.agreed, score.decisions, wanted), "{name}: {report}");
        }
        let (steps, state) = (&report.vruntime, report.state.events);
        assert!(reaches(steps.equal, steps.compared, floor.state), "{name}: {report}");
        assert!(reaches(state.agreed, state.decisions, floor.state), "{name}: {report}");
        assert!(report.unjudged_share < 0.03, "{name}: {:?}", report.unjudged);
        assert!(report.trace.lost == 0, "{name}: {report}");
    }
    assert!(judged > 12_000, "only {judged} decisions");
}

/// What is demanded of the CPUs selected, in parts of 100, where at least so many are judged: of wakeups, and of
/// wakeups that leave the previous CPU where probes show loads and histories. Forks compare utilisation of before the
/// recording.
const WAKEUPS: u64 = 98;
const MOVED: u64 = 95;
const FORKS: u64 = 75;

/// With more CPUs there are more to choose from whose utilisation is not known: 25 of 40 on 6.1 with eight.
const FORKS_ON_MANY_CPUS: u64 = 60;

const JUDGED: u64 = 40;

/// The same of forks where probes show the averages of CPUs.
const FORKS_BY_AVERAGES: u64 = 95;

#[test]
fn tasks_are_placed_where_the_kernel_placed_them() {
    let (mut traces, mut by_probes) = (0, 0);
    for (trace, reports) in replayed() {
        let (report, placed, name) = (&reports[0], &reports[0].placements, &trace.name);
        if placed.all.decisions == 0 {
            continue;
        }
        let kind = |kind: &str| placed.kinds.iter().find(|part| part.name == kind).unwrap().score;
        let probed = placed.histories.decisions > 0;
        let averages = report.inputs.iter().any(|input| input.kind == InputKind::CpuAverages);
        let forks = match averages {
            true => FORKS_BY_AVERAGES,
            false if trace.cpus > 4 => FORKS_ON_MANY_CPUS,
            false => FORKS,
        };
        let mut scores = vec![(kind("wakeup"), WAKEUPS), (kind("fork"), forks)];
        if probed {
            scores.push((placed.moved, MOVED));
            by_probes += 1;
        }
        for (score, wanted) in scores {
            assert!(score.decisions < JUDGED || score.agreed * 100 >= score.decisions * wanted, "{name}: {report}");
        }
        // On two CPUs the previous one is nearly always right.
        if trace.cpus < 4 {
            continue;
        }
        let unjudged: u64 = placed.unjudged.iter().map(|part| part.count).sum();
        assert!(placed.all.decisions > 400 && (!probed || unjudged * 5 < placed.all.decisions), "{name}: {report}");
        let simple = placed.baselines;
        for rule in [simple.prev, simple.lowest_idle, simple.waker] {
            assert!(rule.agreed < placed.all.agreed && rule.decisions == placed.all.decisions, "{name}: {report}");
        }
        assert!(placed.topology_recorded, "{name}");
        traces += 1;
    }
    assert!(traces >= 3 && by_probes >= 2, "{traces} {by_probes}");
}

/// What is demanded of balancing passes in which kernel or row finds an imbalance, in parts of 100: the same source,
/// and the same source and tasks.
const SOURCES: u64 = 90;
const PULLS: u64 = 90;

#[test]
fn tasks_are_pulled_as_the_kernel_pulled_them() {
    let mut traces = 0;
    for (trace, reports) in replayed() {
        let (report, pulled, name) = (&reports[0], &reports[0].balances, &trace.name);
        if pulled.all.decisions == 0 {
            continue;
        }
        for (score, wanted) in [(pulled.source, SOURCES), (pulled.all, PULLS)] {
            assert!(score.decisions < JUDGED || score.agreed * 100 >= score.decisions * wanted, "{name}: {report}");
        }
        if trace.cpus < 4 || pulled.all.decisions <= 20 {
            continue;
        }
        assert!(pulled.quiet > 20, "{name}: {report}");
        for rule in [pulled.baselines.most_tasks, pulled.baselines.never] {
            assert!(2 * rule.agreed < pulled.all.agreed && rule.decisions == pulled.all.decisions, "{name}: {report}");
        }
        traces += 1;
    }
    assert!(traces >= 3, "{traces}");
}

/// What is demanded of the caches that processes and their threads prefer (7.2 and later) where these change, in parts
/// of 100.
const PREFERENCES: u64 = 90;

#[test]
fn caches_are_preferred_as_the_kernel_preferred_them() {
    let changes = replayed().iter().map(|(trace, reports)| (trace, &reports[0], reports[0].balances.preferences));
    let shown: Vec<_> = changes.filter(|(_, _, score)| score.decisions > 0).collect();
    for (trace, report, score) in &shown {
        assert!(score.agreed * 100 >= score.decisions * PREFERENCES, "{}: {report}", trace.name);
    }
    assert!(shown.iter().any(|(_, _, score)| score.decisions > JUDGED), "no trace has changes enough");
}

/// Rows of different series whose picks and preemptions on one CPU follow the same rules but for the order in which
/// buddies are cleared: ALT_PERIOD and BASE_SLICE of 5.13 are backports in 5.10.262, and 5.15 adds only what idle
/// groups do. They differ in placement and load. 6.8 differs from 6.6 by its tree and by what a new weight does to a
/// queued group, 6.17 from 6.18 by quotas, balancing and the zero point. 6.19.6 decides as those but for forks, and
/// 7.0.4 as 7.1 but for delayed wakeups. 6.12.0 and 6.16 decide the two recordings of 6.12.0 alike, whose loads do not
/// show by decisions what came in between (SCHED_IDLE tasks lose their protection, a new nice value places a task
/// anew); their state tells them apart.
const ALIKE: [[&str; 2]; 10] = [
    ["5.10", "5.13"],
    ["5.10", "5.15"],
    ["5.13", "5.15"],
    ["6.6", "6.8"],
    ["6.12.0", "6.16"],
    ["6.17", "6.18.2"],
    ["6.17", "6.18.12"],
    ["6.17", "6.19.6"],
    ["6.18.2", "6.19.6"],
    ["7.0.4", "7.1"],
];

/// Of those, the rows that no load without groups tells apart by state either.
const SAME_STATE: [[&str; 2]; 4] = [["6.6", "6.6.9"], ["6.6", "6.8"], ["6.12.0", "6.12.43"], ["6.17", "6.18.2"]];

/// Rows of neighbouring releases often decide a load alike. No row may do better than that of the kernel. Among the
/// rows that the corpus has recordings of, by state, where probes show it, each other row falls behind on some trace of
/// the kernel, and each row is ahead of those of all other series by decisions alone on some trace.
#[test]
fn the_row_of_the_recorded_kernel_wins() {
    let mut alone: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut probed, mut behind): (BTreeSet<&str>, BTreeSet<(&str, &str)>) = Default::default();
    let recorded: BTreeSet<&str> = replayed().iter().filter_map(|(trace, _)| trace.row).map(|row| row.name).collect();
    for (trace, reports) in replayed().iter().filter(|(trace, _)| !trace.name.ends_with(RUNNING)) {
        let Some(row) = trace.row else { continue };
        let key = |score: Score| (score.share * 1e6) as u64;
        let decisions = |report: &Report| key(report.picks) + key(report.preemptions);
        let state = |report: &Report| (decisions(report), report.state.events.agreed);
        let (own, others): (Vec<&Report>, Vec<&Report>) = reports.iter().partition(|report| report.row == row.name);
        let (own, table) = (own[0], || format!("{}\n{}", trace.name, matrix_table(reports)));
        assert!(others.iter().all(|other| decisions(other) <= decisions(own)), "{}", table());
        if own.state.events.decisions > 0 {
            assert!(others.iter().all(|other| state(other) <= state(own)), "{}", table());
            probed.insert(row.name);
            behind.extend(others.iter().filter(|o| state(o) < state(own)).map(|other| (row.name, other.row)));
        }
        let mut elsewhere = others.iter().filter(|o| {
            let alike = ALIKE.iter().any(|pair| pair.contains(&o.row) && pair.contains(&row.name));
            recorded.contains(o.row) && series(o.row) != series(row.name) && !alike
        });
        *alone.entry(row.name).or_default() += u32::from(elsewhere.all(|other| decisions(other) < decisions(own)));
    }
    for (kernel, other) in probed.iter().flat_map(|kernel| recorded.iter().map(move |other| (*kernel, *other))) {
        let same = kernel == other || SAME_STATE.iter().any(|pair| pair.contains(&kernel) && pair.contains(&other));
        assert!(same || behind.contains(&(kernel, other)), "no trace of {kernel} tells it from {other}");
    }
    assert!(alone.len() >= 3 && alone.values().all(|traces| *traces > 0), "{alone:?}");
}

/// `6.18` of row `6.18.2`; sublevels may differ in nothing but state.
fn series(row: &str) -> String {
    let release = Version::find(row).unwrap().release.to_string();
    release.split('.').take(2).collect::<Vec<_>>().join(".")
}

#[test]
fn simple_rules_are_far_behind() {
    let (mut rules, mut picks) = ([0; 4], 0);
    for (_, reports) in replayed() {
        let report = &reports[0];
        let simple = report.baselines;
        let agreed = [simple.fifo, simple.lifo, simple.keep_running, simple.lowest_pid].map(|score| score.agreed);
        rules.iter_mut().zip(agreed).for_each(|(sum, agreed)| *sum += agreed);
        picks += report.picks.decisions;
    }
    assert!(rules.iter().all(|agreed| agreed * 10 < picks * 7), "{rules:?} of {picks}");
}

#[test]
fn a_report_is_json_and_text() {
    let trace = corpus().into_iter().find(|trace| trace.name == "6.1.192-1cpu-hack").unwrap();
    let report = trace.replay(Version::find("6.12.0").unwrap());
    assert!(report.disagreements.iter().any(|one| one.rule.is_some()));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["recorded_row"], "6.1");
    assert!(json["disagreements"][0]["queue"][0]["deadline"].is_u64());
    let text = report.to_string();
    assert!(text.contains("contested picks") && text.contains("rule:") && text.contains("lowest pid"), "{text}");
}

/// A waiting task is in the queue that is shown, another task runs, and the wait ends where the trace says.
#[test]
fn a_waiting_task_is_explained() {
    let traces = corpus();
    for (name, row) in
        [("6.1.192-1cpu-niced", "6.1"), ("6.12.107-1cpu-niced", "6.12.107"), ("7.2.13-2cpu-niced", "7.2")]
    {
        let trace = traces.iter().find(|trace| trace.name == name).unwrap();
        let (mut waited, mut from) = (0, 0);
        for step in 0..20 {
            let mut reader = schedlab_trace::open(&trace.path).unwrap();
            let question = Question { task: "sh".to_owned(), at: from + step * 20_000_000 };
            let options = Options { explain: Some(question), ..Options::default() };
            let report = replay(&mut *reader, Version::find(row).unwrap(), &options).unwrap();
            let pid = match report.explanation.unwrap() {
                Answer::Outside(first, last) => {
                    from = if from == 0 { first } else { last };
                    continue;
                }
                Answer::Tasks(tasks) => tasks[step as usize % tasks.len()],
                Answer::Why(why) => why.pid,
            };
            let question = Question { task: pid.to_string(), at: from + step * 20_000_000 };
            let options = Options { explain: Some(question), ..Options::default() };
            let mut reader = schedlab_trace::open(&trace.path).unwrap();
            let report = replay(&mut *reader, Version::find(row).unwrap(), &options).unwrap();
            let Some(Answer::Why(why)) = report.explanation else { panic!("{name}: {pid}") };
            let shown = why.queue.entities.iter().any(|entity| entity.pid == pid);
            assert_eq!(shown, why.state != TaskState::Sleeping, "{name}: {why:?}");
            assert!(
                why.runner.is_some() && why.runner != Some(pid) || why.state != TaskState::Waiting,
                "{name}: {why:?}"
            );
            assert!(why.ended_ns.is_none_or(|ended| ended >= why.at_ns), "{name}: {why:?}");
            waited += u64::from(why.state == TaskState::Waiting);
        }
        assert!(waited > 3, "{name}: {waited}");
    }
}
