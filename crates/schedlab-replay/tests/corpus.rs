//! Traces of real kernels: how many of their decisions the row of their kernel must reach, and that no other row does
//! better.
//!
//! The traces in `corpus/` are cut from recordings in QEMU, autogroup off where their names do not say that it was on;
//! the names say kernel, CPUs and load.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use schedlab_policy::Version;
use schedlab_replay::{matrix_table, replay, replay_rows, row_of, Answer, Options, Question, Report, Score};

/// What a trace must reach at least, in parts of 10,000: contested picks, preemptions, and vruntimes (up to 6.1) or
/// everything that probes show (from 6.12 on) equal to the ns.
#[derive(Clone, Copy)]
struct Floor {
    picks: u64,
    preemptions: u64,
    state: u64,
}

/// Every decision and every number, with one CPU and with several.
const ALL: Floor = Floor { picks: 10_000, preemptions: 10_000, state: 10_000 };

/// Sessions are groups there. With one CPU that changes nothing: a group's weight is its shares.
const GROUPS: &str = "-autogroup";

/// With several a group's weight follows loads, by the runqueues' clocks. Probes read them; when the kernel last told a group
/// its load, which it does once in a millisecond, is by a clock of its own.
const SEVERAL_GROUPED: Floor = Floor { picks: 10_000, preemptions: 9970, state: 9800 };

/// Up to 6.1 there are no probes: the clocks go on as the trace's does.
const SEVERAL_GROUPED_BY_RECORDS: Floor = Floor { picks: 9380, preemptions: 9380, state: 8980 };

/// Recordings that reach less than the others of their kind; docs/models/replay.md says what is known of each.
const SHORT: [(&str, Floor); 1] =
    [("6.1.192-2cpu-hackbench", Floor { picks: 10_000, preemptions: 10_000, state: 9996 })];

/// A machine in use: its sessions, which are groups, began before the recording, and neither their lags nor their loads show. Where it
/// stands; the row of another sublevel (6.18.2) reaches 400 and 5,600.
const RUNNING: &str = "-running";
const IN_USE: Floor = Floor { picks: 5000, preemptions: 7200, state: 0 };

/// The same with probes of its state; what queues told of before the recording parts a zero point now and then.
const IN_USE_SHOWN: Floor = Floor { picks: 10_000, preemptions: 10_000, state: 8800 };

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
}

/// Whether `part` of `all` is at least `floor` parts of 10,000.
fn reaches(part: u64, all: u64, floor: u64) -> bool {
    part * 10_000 >= all * floor
}

#[test]
fn every_trace_is_decided_as_its_kernel_did() {
    let mut judged = 0;
    for trace in corpus() {
        let Some(row) = trace.row else {
            println!("{}: row not modelled yet", trace.name);
            continue;
        };
        let (report, name) = (trace.replay(row), &trace.name);
        assert_eq!(report.trace.sessions, name.ends_with(GROUPS) || name.ends_with(RUNNING), "{name}");
        if name.ends_with(RUNNING) {
            let (picks, preemptions) = (report.picks, report.preemptions);
            assert!(picks.decisions > 50 && preemptions.decisions > 50, "{name}: {report}");
            let state = report.state.events;
            let floor = if state.decisions > 0 { IN_USE_SHOWN } else { IN_USE };
            let scores = [(picks, floor.picks), (preemptions, floor.preemptions), (state, floor.state)];
            for (score, wanted) in scores {
                assert!(reaches(score.agreed, score.decisions, wanted), "{name}: {report}");
            }
            assert!(report.unjudged_share < 0.03, "{name}: {:?}", report.unjudged);
            assert!(report.desyncs == 0, "{name}: {report}");
            continue;
        }
        let short = SHORT.iter().find(|(short, _)| short == name).map(|(_, floor)| *floor);
        let floor = short.unwrap_or(match (trace.cpus, name.ends_with(GROUPS)) {
            (1, _) | (_, false) => ALL,
            (_, true) if report.state.events.decisions > 0 => SEVERAL_GROUPED,
            (_, true) => SEVERAL_GROUPED_BY_RECORDS,
        });
        judged += report.picks.decisions + report.preemptions.decisions;
        for (score, wanted) in [(report.picks, floor.picks), (report.preemptions, floor.preemptions)] {
            assert!(score.decisions > 50 && reaches(score.agreed, score.decisions, wanted), "{name}: {report}");
        }
        let (steps, state) = (&report.vruntime, report.state.events);
        assert!(reaches(steps.equal, steps.compared, floor.state), "{name}: {report}");
        assert!(reaches(state.agreed, state.decisions, floor.state), "{name}: {report}");
        assert!(report.unjudged_share < 0.02, "{name}: {:?}", report.unjudged);
        assert!(report.desyncs == 0 && report.trace.lost == 0, "{name}: {report}");
    }
    assert!(judged > 12_000, "only {judged} decisions");
}

/// Rows of neighbouring releases often decide a load alike. No row may do better than that of the kernel. By state, where
/// probes show it, each other row falls behind on some trace of the kernel, and each recorded row is ahead of those of all
/// other series by decisions alone on some trace.
#[test]
fn the_row_of_the_recorded_kernel_wins() {
    let rows: Vec<&'static Version> = Version::all().iter().collect();
    let mut alone: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut probed, mut behind): (BTreeSet<&str>, BTreeSet<(&str, &str)>) = Default::default();
    for trace in corpus().into_iter().filter(|trace| !trace.name.ends_with(RUNNING)) {
        let Some(row) = trace.row else { continue };
        let mut reader = schedlab_trace::open(&trace.path).unwrap();
        let reports = replay_rows(&mut *reader, &rows, &Options::default()).unwrap();
        let key = |score: Score| (score.share * 1e6) as u64;
        let decisions = |report: &Report| key(report.picks) + key(report.preemptions);
        let state = |report: &Report| (decisions(report), report.state.events.agreed);
        let (own, others): (Vec<&Report>, Vec<&Report>) = reports.iter().partition(|report| report.row == row.name);
        let (own, table) = (own[0], || format!("{}\n{}", trace.name, matrix_table(&reports)));
        assert!(others.iter().all(|other| decisions(other) <= decisions(own)), "{}", table());
        if own.state.events.decisions > 0 {
            assert!(others.iter().all(|other| state(other) <= state(own)), "{}", table());
            probed.insert(row.name);
            behind.extend(others.iter().filter(|o| state(o) < state(own)).map(|other| (row.name, other.row)));
        }
        let mut elsewhere = others.iter().filter(|other| series(other.row) != series(row.name));
        *alone.entry(row.name).or_default() += u32::from(elsewhere.all(|other| decisions(other) < decisions(own)));
    }
    for (kernel, other) in probed.iter().flat_map(|kernel| rows.iter().map(move |other| (*kernel, other.name))) {
        assert!(kernel == other || behind.contains(&(kernel, other)), "no trace of {kernel} tells it from {other}");
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
    for trace in corpus() {
        let Some(row) = trace.row else { continue };
        let report = trace.replay(row);
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

/// Whoever waits is in the queue that is shown, somebody else runs, and the wait ends where the trace says.
#[test]
fn whoever_waits_is_explained() {
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
            assert_eq!(shown, why.state != "sleeping", "{name}: {why:?}");
            assert!(why.runner.is_some() && why.runner != Some(pid) || why.state != "waiting", "{name}: {why:?}");
            assert!(why.ended_ns.is_none_or(|ended| ended >= why.at_ns), "{name}: {why:?}");
            waited += u64::from(why.state == "waiting");
        }
        assert!(waited > 3, "{name}: {waited}");
    }
}
