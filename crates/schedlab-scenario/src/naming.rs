//! The names of workloads and guests, and `repeat`, which every kind of workload has.

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

/// The name of the first, second, ... of several guests of one table, and of the workloads in it: `vm`, `vm-2`, ...
pub(crate) fn numbered(name: &str, number: usize) -> String {
    if number == 1 {
        name.to_owned()
    } else {
        format!("{name}-{number}")
    }
}
