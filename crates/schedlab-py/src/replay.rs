//! Replay of recorded traces under version rows.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pyo3::prelude::*;
use schedlab_policy::Version;
use schedlab_replay::{replay_rows, row_of, Bounds, Options, Question, Sample};
use schedlab_trace::TraceReader;

use crate::errors;
use crate::run::Cancel;
use crate::traces::{CancellableReader, TraceFailure};

/// Replays a trace under one row (by default the recorded kernel's), or under every row, and returns the reports as a
/// JSON list. `explain` is a task (pid or name) and a time in ns, which the first report then explains. Where
/// `warm_up_ms` or `first` is `None`, the replay's default applies.
#[pyfunction]
#[pyo3(signature = (trace, kernel=None, *, matrix=false, first=None, warm_up_ms=None, explain=None, cancel=None))]
#[allow(clippy::too_many_arguments)] // keywords of one Python function
pub fn replay(
    py: Python<'_>,
    trace: &str,
    kernel: Option<&str>,
    matrix: bool,
    first: Option<usize>,
    warm_up_ms: Option<u64>,
    explain: Option<(String, u64)>,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let flag = cancel.map_or_else(Arc::default, Cancel::flag);
    let defaults = Options::default();
    let options = Options {
        disagreements: first.unwrap_or(defaults.disagreements),
        warm_up: warm_up_ms.map_or(defaults.warm_up, |ms| ms.saturating_mul(1_000_000)),
        explain: explain.map(|(task, at)| Question { task, at }),
    };
    let reports = py.detach(|| -> Result<String, TraceFailure> {
        let named = kernel.map(find).transpose()?;
        let mut reader = CancellableReader::open(Path::new(trace), None, flag).map_err(TraceFailure::Input)?;
        let rows = match (matrix, named) {
            (true, _) => Version::all().iter().collect(),
            (false, Some(row)) => vec![row],
            (false, None) => vec![recorded_row(&reader, "--kernel")?],
        };
        let reports = replay_rows(&mut reader, &rows, &options).map_err(TraceFailure::Input)?;
        // Reports are plain data with string keys: they always serialise.
        Ok(serde_json::to_string(&reports).unwrap_or_default())
    });
    reports.map_err(|failure| errors::trace(py, &failure))
}

/// Parts of a trace, on which every row is tried within bounds.
#[pyclass(frozen)]
pub struct TraceSample(Sample, Options);

#[pymethods]
impl TraceSample {
    /// Reads the parts; reports describe the `first` disagreements.
    #[new]
    #[pyo3(signature = (trace, *, first=1, cancel=None))]
    fn new(py: Python<'_>, trace: &str, first: usize, cancel: Option<&Cancel>) -> PyResult<Self> {
        let flag = cancel.map_or_else(Arc::default, Cancel::flag);
        let options = Options { disagreements: first, ..Options::default() };
        let sample = py.detach(|| {
            let mut reader = CancellableReader::open(Path::new(trace), None, flag)?;
            Sample::read(&mut reader, &options, Bounds::default())
        });
        let sample = sample.map_err(|error| errors::trace(py, &TraceFailure::Input(error)))?;
        Ok(TraceSample(sample, options))
    }

    /// The rows, that of the recorded kernel first.
    fn rows(&self) -> Vec<&'static str> {
        let own = self.0.kernel().and_then(row_of).map(|row| row.name);
        let others = Version::all().iter().map(|row| row.name).filter(|row| Some(*row) != own);
        own.into_iter().chain(others).collect()
    }

    /// The report of one row as JSON; `None` if it was cancelled.
    #[pyo3(signature = (row, *, cancel=None))]
    fn replay(&self, py: Python<'_>, row: &str, cancel: Option<&Cancel>) -> PyResult<Option<String>> {
        let flag = cancel.map_or_else(Arc::default, Cancel::flag);
        let version = find(row).map_err(|failure| errors::trace(py, &failure))?;
        let report = py.detach(|| self.0.replay(version, &self.1, &|| flag.load(Ordering::Relaxed)));
        Ok(report.map(|report| serde_json::to_string(&report).unwrap_or_default()))
    }
}

pub(crate) fn find(name: &str) -> Result<&'static Version, TraceFailure> {
    Version::find(name).map_err(|error| TraceFailure::Kernel { message: error.to_string(), hint: error.hint() })
}

pub(crate) fn recorded_row(reader: &CancellableReader, flag: &str) -> Result<&'static Version, TraceFailure> {
    let Some(release) = reader.header().kernel.clone() else {
        let rows: Vec<&str> = Version::all().iter().map(|row| row.name).collect();
        let hint = format!("choose a row with {flag}: {}", rows.join(", "));
        return Err(TraceFailure::Kernel {
            message: "the file does not name the kernel that it was recorded on, or it is not a trace".into(),
            hint,
        });
    };
    row_of(&release).ok_or_else(|| {
        let hint = Version::find(&release).err().map(|error| error.hint()).unwrap_or_default();
        let message = format!("kernel {release}: row not modelled yet");
        TraceFailure::Kernel { message, hint: format!("choose a row with --kernel: {hint}") }
    })
}

/// The `keep` longest waits of each task of a trace, or of the task `only` (a pid or a name), as JSON.
#[pyfunction]
#[pyo3(signature = (trace, *, keep=1, only=None, cancel=None))]
pub fn waits(
    py: Python<'_>,
    trace: &str,
    keep: usize,
    only: Option<&str>,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let flag = cancel.map_or_else(Arc::default, Cancel::flag);
    let found = py.detach(|| {
        let mut reader = CancellableReader::open(Path::new(trace), None, flag)?;
        schedlab_replay::waits(&mut reader, keep, only)
    });
    let found = found.map_err(|error| errors::trace(py, &TraceFailure::Input(error)))?;
    Ok(serde_json::to_string(&found).unwrap_or_default())
}

/// The version row of a kernel release such as `6.12.107+deb13-cloud-amd64`, by its name.
#[pyfunction]
#[pyo3(name = "row_of")]
pub fn row_name(release: &str) -> Option<&'static str> {
    row_of(release).map(|row| row.name)
}
