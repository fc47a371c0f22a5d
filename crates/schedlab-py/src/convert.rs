//! Converts traces from one file format to another. The new file appears under its name only when it is complete.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use schedlab_trace::{create, Format, TraceError, TraceReader, TraceWriter};
use serde_json::json;

use crate::errors;
use crate::run::Cancel;
use crate::traces::{CancellableReader, TraceFailure};

/// Copies the trace `source` to `target`, in the format of the target's suffix; `buffer` is the ring buffer to read
/// where there are several. Returns the counts as a JSON document.
#[pyfunction]
#[pyo3(signature = (source, target, *, buffer=None, cancel=None))]
pub fn convert(
    py: Python<'_>,
    source: &str,
    target: &str,
    buffer: Option<&str>,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let flag = cancel.map_or_else(Arc::default, Cancel::flag);
    let (source, target) = (Path::new(source), Path::new(target));
    let copied = py.detach(|| {
        Format::of_path(target).map_err(TraceFailure::Input)?;
        if same_file(source, target) {
            return Err(TraceFailure::Same(target.to_owned()));
        }
        let mut reader = CancellableReader::open(source, buffer, flag).map_err(TraceFailure::Input)?;
        copy(&mut reader, target)
    });
    copied.map_err(|failure| errors::trace(py, &failure))
}

/// Whether both names are those of one file.
fn same_file(source: &Path, target: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(source).is_some_and(|source| real(target) == Some(source))
}

fn copy(reader: &mut CancellableReader, target: &Path) -> Result<String, TraceFailure> {
    let header = reader.header().clone();
    let mut writer = create(target, &header).map_err(TraceFailure::Output)?;
    let counts = records(reader, &mut *writer).map_err(TraceFailure::Input)?;
    writer.finish().map_err(TraceFailure::Output)?;
    Ok(counts)
}

fn records(reader: &mut CancellableReader, writer: &mut dyn TraceWriter) -> Result<String, TraceError> {
    let (mut records, mut events, mut lost, mut first, mut last) = (0u64, 0u64, 0u64, None, 0);
    while let Some(record) = reader.next_record()? {
        lost = lost.saturating_add(record.lost());
        records += u64::from(record.lost() == 0);
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
        "lost": lost,
        "notes": reader.notes(),
        "span_ns": span_ns,
    });
    Ok(counts.to_string())
}
