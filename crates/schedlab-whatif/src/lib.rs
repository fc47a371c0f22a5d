//! From a recorded trace to task programs that can be simulated under another kernel: a scenario, and what is known of
//! the recording. The method and its limits: docs/what-if.md.

mod causes;
mod costs;
mod cycles;
mod extraction;
mod load;
mod measure;
mod pools;
mod program;
mod progress;
mod reader;
mod recording;
mod settings;
mod steps;
mod text;

pub use costs::Costs;
pub use extraction::Extraction;
pub use measure::{Measure, Metrics};
pub use pools::{Pool, Share};
pub use recording::{Act, Cause, Counts, Recording, Task, TaskIndex, Wait};

use schedlab_policy::Version;
use schedlab_trace::{Header, TraceError, TraceReader};

/// Why nothing can be extracted from a trace.
#[derive(Debug)]
pub enum Failure {
    /// It cannot be read.
    Trace(TraceError),
    /// It lacks what an extraction needs: the message, and a hint.
    Lacks(String, String),
}

/// Reads what the tasks of a trace did.
pub fn read(trace: &mut dyn TraceReader) -> Result<Recording, TraceError> {
    reader::read(trace).map(|(recording, _)| recording)
}

/// Extracts the programs of a trace recorded on a kernel of this row.
pub fn extract(trace: &mut dyn TraceReader, row: &'static Version) -> Result<Extraction, Failure> {
    let (recording, measure) = reader::read(trace).map_err(Failure::Trace)?;
    let mut header = trace.header().clone();
    header.nr_cpus = Some(header.nr_cpus.unwrap_or(1).max(recording.counts.cpus));
    check(&recording)?;
    let kernel = settings::kernel(&header, row);
    let notes = notes(&recording, &header, &kernel.refused);
    Ok(extraction::extract(&header, &recording, &measure, kernel, notes))
}

const RECORD: &str = "record sched_switch, sched_waking, sched_wakeup, sched_wakeup_new, sched_process_fork, \
     sched_process_exit and sched_stat_runtime, as `schedlab record` and `perf sched record` do";

/// Refuses recordings from which no program follows.
fn check(recording: &Recording) -> Result<(), Failure> {
    let counts = &recording.counts;
    let lacks = |what: &str| Err(Failure::Lacks(what.to_owned(), RECORD.to_owned()));
    if counts.switches == 0 {
        return lacks("the trace has no sched_switch, so that nothing is known of what its tasks did");
    }
    if counts.wakeups == 0 && recording.tasks.iter().flat_map(Task::waits).any(|wait| wait.cause != Cause::End) {
        return lacks("the trace has neither sched_waking nor sched_wakeup, so that no cause of any wait is known");
    }
    if counts.lost * 10 > counts.records {
        let what = format!("the recorder lost {} events and kept {}", counts.lost, counts.records);
        return Err(Failure::Lacks(what, "record with a larger buffer, or fewer events".to_owned()));
    }
    if recording.tasks.len() < 2 {
        let hint = "a single task always gets its CPU, on every kernel; record all tasks of the machine";
        return Err(Failure::Lacks("the trace shows only one task".to_owned(), hint.to_owned()));
    }
    Ok(())
}

/// What the recording lacks.
fn notes(recording: &Recording, header: &Header, refused: &[String]) -> Vec<String> {
    let counts = &recording.counts;
    let mut notes = Vec::new();
    let mut note = |some: bool, text: String| notes.extend(some.then_some(text));
    note(
        counts.charges == 0,
        "run times (sched_stat_runtime): the time between two switches, which contains interrupts and steal".to_owned(),
    );
    note(
        counts.flagged == 0,
        "flags of context: a wakeup from an interrupt counts as one by the task that was interrupted".to_owned(),
    );
    note(
        counts.wakeups_only > 0,
        format!("sched_waking of {} wakeups: sched_wakeup, which may be emitted on another CPU", counts.wakeups_only),
    );
    note(counts.lost > 0, format!("{} events, lost by the recorder: waits in the gap have no cause", counts.lost));
    note(counts.reused > 0, format!("the exits of {} tasks whose pid was used again", counts.reused));
    note(header.get("hz").is_none(), "the settings of the kernel (schedlab record has them): its defaults".to_owned());
    notes.extend(refused.iter().map(|text| format!("a setting that the row does not take: {text}")));
    notes
}
