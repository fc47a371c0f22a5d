//! Traces from one file format to another: the new file appears when it is whole, or not at all.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use schedlab_trace::{create, Fault, Format, Place, TraceError, TraceReader, TraceWriter};
use serde_json::json;

use crate::errors;
use crate::run::Cancel;
use crate::traces::{Stoppable, TraceFailure};

/// Copies the trace `source` to `target` in the format of its suffix. Returns what was copied as a JSON document.
#[pyfunction]
#[pyo3(signature = (source, target, *, cancel=None))]
pub fn convert(py: Python<'_>, source: &str, target: &str, cancel: Option<&Cancel>) -> PyResult<String> {
    let flag = cancel.map_or_else(Arc::default, Cancel::flag);
    let (source, target) = (Path::new(source), Path::new(target));
    let copied = py.detach(|| {
        Format::of_path(target).map_err(TraceFailure::Input)?;
        let mut reader = Stoppable::open(source, flag).map_err(TraceFailure::Input)?;
        copy(&mut reader, target)
    });
    copied.map_err(|failure| errors::trace(py, &failure))
}

fn copy(reader: &mut Stoppable, target: &Path) -> Result<String, TraceFailure> {
    let part = Part::beside(target);
    let header = reader.header().clone();
    let mut writer = create(&part.path, &header).map_err(|error| part.failure(error))?;
    let counts = records(reader, &mut *writer).map_err(TraceFailure::Input)?;
    writer.finish().map_err(|error| part.failure(error))?;
    part.keep()?;
    Ok(counts)
}

fn records(reader: &mut Stoppable, writer: &mut dyn TraceWriter) -> Result<String, TraceError> {
    let (mut records, mut events, mut first, mut last) = (0u64, 0u64, None, 0);
    while let Some(record) = reader.next_record()? {
        records += 1;
        events += u64::from(record.event().is_some());
        first.get_or_insert(record.time);
        last = record.time;
        writer.record(&record);
    }
    let span_ns = last - first.unwrap_or(last);
    let header = reader.header();
    let counts = json!({
        "kernel": header.kernel,
        "cpus": header.nr_cpus,
        "records": records,
        "events": events,
        "lost": reader.lost(),
        "span_ns": span_ns,
    });
    Ok(counts.to_string())
}

/// A file under a name of its own until it is whole. What is no regular file (a pipe, /dev/null) is written directly.
struct Part {
    path: PathBuf,
    target: PathBuf,
}

impl Part {
    fn beside(target: &Path) -> Part {
        let direct = target.metadata().is_ok_and(|found| !found.is_file());
        // The suffix chooses the format, so it stays at the end.
        let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let hidden = target.with_file_name(format!(".part{}-{name}", std::process::id()));
        Part { path: if direct { target.to_owned() } else { hidden }, target: target.to_owned() }
    }

    fn keep(self) -> Result<(), TraceFailure> {
        if self.path == self.target {
            return Ok(());
        }
        std::fs::rename(&self.path, &self.target).map_err(|error| {
            let fault = Fault::Io(error);
            self.failure(TraceError { file: self.path.clone(), at: Place::File, fault })
        })
    }

    /// An error in the words of the person, who knows the file by its final name.
    fn failure(&self, error: TraceError) -> TraceFailure {
        let file = if error.file == self.path { self.target.clone() } else { error.file };
        TraceFailure::Output(TraceError { file, ..error })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.path != self.target {
            // After a rename there is nothing left to remove.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
