//! The keys that every kind of workload has: `name` and `repeat`.

use crate::error::Result;
use crate::program::word;
use crate::value::Table;

/// The name of the workload; the default is that of its program.
pub(crate) fn name_of(table: &Table, default: &str) -> Result<String> {
    match table.get("name") {
        Some(value) if value.as_string() == Some("sched") => {
            Err(value.refuse("this is the prefix of the scheduler's metrics").hint("choose another name"))
        }
        Some(value) => Ok(word(&value)?.to_owned()),
        None => Ok(default.to_owned()),
    }
}

/// Whether the workload restarts when it ends.
pub(crate) fn repeat_of(table: &Table) -> Result<bool> {
    Ok(table.get("repeat").map(|value| value.boolean()).transpose()?.unwrap_or(false))
}
