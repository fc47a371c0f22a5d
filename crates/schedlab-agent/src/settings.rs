//! What a run is asked for beyond its scenario.

use std::path::PathBuf;

/// What is asked beyond the scenario.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where the trace goes; the suffix chooses the format.
    pub trace: Option<PathBuf>,
    /// Whether scheduler tracepoints are recorded.
    pub tracing: bool,
    /// KiB of trace buffer for each CPU.
    pub buffer_kb: u32,
    /// What the report calls the arm.
    pub arm: String,
    /// What a reader of the trace must know, in its header.
    pub remark: Option<String>,
}
