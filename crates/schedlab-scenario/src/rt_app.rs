//! `rt-app = "file"`: an rt-app file as it is, found relative to the scenario.

use std::path::Path;

use schedlab_workload::Workload;

use crate::error::Result;
use crate::value::{Table, Value};

/// What an rt-app file became.
#[derive(Debug)]
pub(crate) struct RtApp {
    /// The file as messages call it.
    pub file: String,
    /// What runs.
    pub workload: Workload,
}

/// Reads the file a workload names.
pub(crate) fn read(_table: &Table, path: &Value, _dir: &Path, _nr_cpus: usize) -> Result<RtApp> {
    Err(path.error("rt-app files cannot be read yet"))
}
