//! Replay: does a version row decide what a recorded kernel decided?
//!
//! The trace is read once, streaming (`trace`), as operations on runqueues (`reader`). Each row is driven through them
//! (`model`): at every switch it picks a task, at every wakeup and charge it decides whether the running task is
//! rescheduled; then it is put on the kernel's decision. The method and its limits: docs/models/replay.md.
//!
//! ```
//! use std::path::Path;
//!
//! use schedlab_replay::{replay_rows, row_of, Options};
//!
//! let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/6.1.192-1cpu-video.ftrace.gz");
//! let mut reader = schedlab_trace::open(&trace)?;
//! let release = reader.header().kernel.clone().unwrap_or_default();
//! let row = row_of(&release).ok_or("no row models this release")?;
//! let reports = replay_rows(&mut *reader, &[row], &Options::default())?;
//! assert_eq!(reports[0].row, row.name);
//! assert!(reports[0].picks.decisions > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod balance;
mod count;
mod decision;
mod display;
mod explain;
mod groups;
mod guess;
mod header;
mod inputs;
mod lags;
mod model;
mod operation;
mod pass;
mod placement;
mod reader;
mod report;
mod resched;
mod sample;
mod spans;
mod summary;
mod tally;
mod topology;
mod trace;
mod unjudged;
mod waits;

pub use answer::{Answer, Question, Why};
pub use display::matrix_table;
pub use groups::{GroupName, InitialGroups};
pub use header::{row_of, settings, tick_period, uses_autogroup, Settings};
pub use inputs::{InputCount, InputGroup, InputKind};
pub use report::{
    BalanceBaselines, BalanceMiss, BalanceReport, Baselines, Delays, Disagreement, LookCount, Part, PlacementBaselines,
    PlacementMiss, PlacementReport, Queued, Report, ReschedMiss, ReschedPlace, ReschedReport, Score, StateMiss,
    StateScores, StepMiss, TaskCounts, TraceInfo, Tried, Unexplained, Unjudgeable, VruntimeSteps,
};
pub use sample::{Bounds, Sample};
pub use spans::UnjudgedSpan;
pub use topology::Machine;
pub use trace::LookAhead;
pub use waits::{waits, Began, Ran, Wait, Waiter, Waits};

use schedlab_model::{Nanos, MSEC};
use schedlab_policy::Version;
use schedlab_trace::{Header, TraceError, TraceReader};

use explain::Asking;
use lags::Row;
use pass::{Pass, Seen};

/// What to report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Length of the warm-up: until then queues contain tasks that no record has named, and decisions do not count.
    pub warm_up: Nanos,
    /// How many disagreements are described.
    pub disagreements: usize,
    /// A moment to explain, under the first row.
    pub explain: Option<Question>,
}

impl Default for Options {
    fn default() -> Self {
        Options { warm_up: 10 * MSEC, disagreements: 10, explain: None }
    }
}

/// Replays a trace under one version row.
pub fn replay(
    reader: &mut dyn TraceReader,
    version: &'static Version,
    options: &Options,
) -> Result<Report, TraceError> {
    let mut reports = replay_rows(reader, &[version], options)?;
    // One row in, one report out.
    Ok(reports.remove(0))
}

/// Replays a trace under several rows in one pass.
pub fn replay_rows(
    reader: &mut dyn TraceReader,
    versions: &[&'static Version],
    options: &Options,
) -> Result<Vec<Report>, TraceError> {
    let mut pass = Pass::begin(reader, options)?;
    let mut rows: Vec<(Row, Vec<String>)> = versions.iter().map(|version| pass.start.row(version, options)).collect();
    let mut asking = options.explain.clone().map(Asking::new);
    while let Some(entry) = pass.next()? {
        if let (Some(asking), Some((row, _))) = (&mut asking, rows.first()) {
            asking.reach(row.model(), entry.time, &pass.window);
        }
        for input in pass.read(&entry) {
            for (row, _) in &mut rows {
                row.apply(&input);
            }
            if let (Some(asking), Some((row, _))) = (&mut asking, rows.first()) {
                asking.follow(row.model(), &input);
            }
        }
    }
    let (start, window, seen) = pass.end();
    let mut reports: Vec<Report> =
        rows.into_iter().map(|(row, refused)| finish(row, refused, &start.header, &seen, options)).collect();
    if let Some(report) = reports.first_mut() {
        report.explanation = asking.map(|asking| asking.end(&window));
    }
    Ok(reports)
}

fn finish(row: Row, refused: Vec<String>, header: &Header, seen: &Seen, options: &Options) -> Report {
    let kernel = header.kernel.clone();
    let recorded = kernel.as_deref().and_then(row_of).map(|row| row.name);
    let trace = TraceInfo {
        kernel,
        cpus: row.model().fair().config.nr_cpus,
        records: seen.records,
        lost: seen.lost,
        wakeups_placed: seen.wakeups_placed,
        span_ns: seen.span_ns,
        sessions: uses_autogroup(header),
        grouped: InitialGroups::of(header).len(),
    };
    let version = row.model().fair().config.version;
    let version = version.name;
    let (placements, mut balances) = (row.placements.report(), row.balances.report());
    let mut tally = row.tally;
    balances.preferences = Score::of(tally.preferences);
    for queued in tally.disagreements.iter_mut().flat_map(|disagreement| &mut disagreement.queue) {
        seen.name(queued.pid).clone_into(&mut queued.name);
    }
    let report = Report::new(trace, version, recorded, refused, options.warm_up, tally);
    let mut missing = seen.missing.clone();
    if missing.is_empty() {
        missing.extend(groups_missing(&report));
    }
    Report {
        look_ahead: seen.look_ahead.clone(),
        resched: seen.resched.clone(),
        missing,
        placements,
        balances,
        ..report
    }
}

/// The share of queues in percent that have as many entities as the model's, below which groups are missing from the
/// trace. In the corpus it is at least 99.7.
const QUEUES_ALIKE: u64 = 90;

/// Control groups that are made or joined while a trace is recorded leave no record, but probes show that tasks are on
/// other queues than in the model.
fn groups_missing(report: &Report) -> Option<String> {
    let count = &report.state.count;
    let differs = count.agreed * 100 < count.decisions * QUEUES_ALIKE && report.recorded_row == Some(report.row);
    differs.then(|| {
        "the groups of its tasks: over a tenth of the queues have another number of tasks than in the model (control groups made or \
         joined while it was recorded are not followed)"
            .to_owned()
    })
}
