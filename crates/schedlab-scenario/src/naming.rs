//! The names of workloads and guests, and `repeat`, which every kind of workload has.

use crate::error::Result;
use crate::value::{Table, Value};

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

/// Reads a name that can be part of a metric's name: letters, digits, `_` and `-`.
pub(crate) fn word<'a>(value: &Value<'a>) -> Result<&'a str> {
    const FORM: &str = "1 to 64 letters, digits, _ or -";
    let text = value.string(FORM)?;
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.is_empty() || text.len() > 64 || !text.chars().all(good) {
        return Err(value.refuse("not a valid name").expected(FORM));
    }
    Ok(text)
}
