//! rt-app files: the dialect of rt-app itself and that of its `workgen`, as workloads.
//!
//! Semantics follow rt-app 1.0, with the keys of later versions. What a model cannot do is refused with file, line and
//! key, and never skipped: an unknown key, a class of scheduling or a kind of event without a model.

mod event;
mod global;
mod json;
mod locks;
mod merge;
mod metrics;
mod parsed;
mod props;
mod read;
mod take;
mod task;
mod task_set;

use schedlab_model::Nanos;

use crate::Workload;
use json::At;
use props::Machine;
pub use task_set::{Calibration, Column, LoggedTask, TaskSet};

/// A file: its name for messages, and what is in it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its contents.
    pub bytes: &'a [u8],
}

/// What a file, or a list of fragments, describes.
#[derive(Clone, PartialEq, Debug)]
pub struct RtApp {
    /// The workload.
    pub workload: Workload,
    /// `global.duration`, when rt-app ends the run whatever its tasks do: the caller's to add. `None` = until all tasks
    /// have ended, which the workload then does by itself unless one is endless.
    pub duration: Option<Nanos>,
    /// The same for the program rt-app.
    pub task_set: TaskSet,
}

/// Why a file cannot be run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct RtAppError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The key concerned, dotted from the file's top; empty in errors of syntax.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What would be right, or the nearest valid name.
    pub hint: Option<String>,
    /// Index of the file among the sources.
    index: u32,
}

impl RtAppError {
    fn at(at: At, key: &str, what: impl Into<String>) -> Self {
        RtAppError {
            file: String::new(),
            line: at.line,
            column: at.column,
            key: json::short(key),
            what: what.into(),
            hint: None,
            index: at.file,
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Errors of the levels below name their own key only: puts the key of this level before it.
    fn within(mut self, key: &str) -> Self {
        let key = json::short(key);
        self.key = if self.key.is_empty() { key } else { format!("{key}.{}", self.key) };
        self
    }
}

/// Reads a file, or fragments that together are one, for a machine of `nr_cpus`, as the workload `name`.
pub fn read(name: &str, sources: &[Source<'_>], nr_cpus: usize) -> Result<RtApp, RtAppError> {
    build(name, sources, nr_cpus).map_err(|error| {
        let file = sources.get(error.index as usize).map_or("", |source| source.name);
        RtAppError { file: file.to_string(), ..error }
    })
}

fn build(name: &str, sources: &[Source<'_>], nr_cpus: usize) -> Result<RtApp, RtAppError> {
    let sections = merge::sections(sources)?;
    let global = global::read(&sections.global)?;
    merge::check_resources(&sections.resources)?;
    let tasks = task::read(&sections, Machine { nr_cpus, deadline: global.deadline })?;
    let (tree, followed) = task::tree(name, &tasks, sections.tasks_at, &global, nr_cpus)?;
    let workload = crate::lower(&tree).map_err(|error| {
        let at = At { line: error.line, column: 1, ..sections.tasks_at };
        let hint = error.hint.clone();
        RtAppError { hint, ..RtAppError::at(at, "tasks", error.what) }
    })?;
    let task_set = TaskSet::new(&sections, &tasks, &followed, global.calibration);
    Ok(RtApp { workload, duration: global.duration, task_set })
}

#[cfg(test)]
mod tests;
