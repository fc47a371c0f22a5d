//! The settings of a run that are not part of its scenario.

use std::path::PathBuf;

/// The settings of a run that are not part of its scenario.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The file for the trace; the suffix selects the format.
    pub trace: Option<PathBuf>,
    /// Whether scheduler tracepoints are recorded.
    pub tracing: bool,
    /// Size of the trace buffer of each CPU, in KiB.
    pub buffer_kb: u32,
    /// The name of the arm in the report.
    pub arm: String,
    /// A remark for the header of the trace.
    pub remark: Option<String>,
}
