//! Replay: does a version row decide what a recorded kernel decided?
//!
//! A trace is read once, streaming, as operations on runqueues (`reading`). Each row is driven through them
//! (`model`): at every switch it is asked whom it would run, at every wakeup and accounting whether the running task
//! must go; then it is put on the kernel's choice. A task's state is taken from the trace at most once; afterwards
//! vruntimes are compared and never fed back. The method and its limits: docs/models/replay.md.

mod display;
mod explain;
mod homes;
mod hypotheses;
mod model;
mod operation;
mod reading;
mod report;
mod settings;
mod step;
mod tally;
mod verdict;
mod window;

pub use display::matrix_table;
pub use explain::{Answer, Question, Why};
pub use report::{
    Baselines, Disagreement, Part, Queued, Report, Score, StateMiss, StateScores, StepMiss, TaskCounts, TraceInfo,
    Unjudgeable, VruntimeSteps,
};
pub use settings::row_of;

use std::sync::Arc;

use schedlab_model::{Nanos, MSEC};
use schedlab_policy::Version;
use schedlab_trace::{Header, TraceError, TraceReader};

use explain::Asking;
use homes::Homes;
use hypotheses::Row;
use model::Model;
use reading::Reading;
use settings::{has_autogroup, settings, tick_beside_hrtick, uses_autogroup, Settings};
use tally::Tally;
use window::Window;

/// What to do beside the comparison itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Decisions in the first so many ns of the trace do not count: queues fill with tasks not seen before.
    pub warm_up: Nanos,
    /// How many disagreements are described.
    pub disagreements: usize,
    /// A moment to explain, as the first row has it.
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
    let mut header = reader.header().clone();
    let mut window = Window::new(reader);
    let mut first = window.next()?;
    header.nr_cpus = Some(window.fix_cpus(header.nr_cpus));
    let from = window.start() + options.warm_up;
    let homes = Arc::new(Homes::of(&header));
    let mut rows: Vec<(Row, Vec<String>)> = versions
        .iter()
        .map(|version| {
            let Settings { config, refused } = settings(&header, version);
            let tally = Tally { from, limit: options.disagreements, ..Tally::default() };
            (Row::new(Model::new(config, Tally::default(), homes.clone(), window.shows_state()), tally), refused)
        })
        .collect();
    let mut asking = options.explain.clone().map(Asking::new);
    let mut reading = Reading::new(
        header.nr_cpus.unwrap_or(1),
        (has_autogroup(&header), uses_autogroup(&header)),
        tick_beside_hrtick(&header),
    );
    while let Some(step) = match first.take() {
        Some(step) => Some(step),
        None => window.next()?,
    } {
        if let (Some(asking), Some((row, _))) = (&mut asking, rows.first()) {
            asking.reach(row.model(), step.time, &window);
        }
        for operation in reading.read(&step, &window) {
            for (row, _) in &mut rows {
                row.apply(&operation, step.time, step.cpu);
            }
            if let (Some(asking), Some((row, _))) = (&mut asking, rows.first()) {
                asking.follow(row.model(), &operation, step.time);
            }
        }
    }
    let mut reports: Vec<Report> =
        rows.into_iter().map(|(row, refused)| finish(row, refused, &header, &window, options)).collect();
    if let Some(report) = reports.first_mut() {
        report.explanation = asking.map(|asking| asking.end(&window));
    }
    Ok(reports)
}

fn finish(row: Row, refused: Vec<String>, header: &Header, window: &Window<'_>, options: &Options) -> Report {
    let (records, lost, span_ns) = window.totals();
    let kernel = header.kernel.clone();
    let recorded = kernel.as_deref().and_then(row_of).map(|row| row.name);
    let sessions = uses_autogroup(header);
    let trace = TraceInfo {
        kernel,
        cpus: row.model().fair.config.nr_cpus,
        records,
        lost,
        span_ns,
        sessions,
        placed: Homes::of(header).len(),
    };
    let version = row.model().fair.config.version.name;
    let mut tally = row.tally;
    for queued in tally.disagreements.iter_mut().flat_map(|disagreement| &mut disagreement.queue) {
        window.name(queued.pid).clone_into(&mut queued.name);
    }
    Report::new(trace, version, recorded, refused, options.warm_up, tally)
}
