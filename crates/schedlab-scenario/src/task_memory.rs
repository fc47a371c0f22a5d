//! The memory of tasks: how much they have, how fast they use it, and where it is.

use schedlab_model::{Nanos, MSEC, SEC};
use schedlab_workload::TaskMemory;

use crate::error::Result;
use crate::kernel_sections::kib;
use crate::keys::TASK_MEMORY;
use crate::value::Value;

/// KiB of a page.
const PAGE: u32 = 4;
/// The range of `pass`.
const PASS: std::ops::RangeInclusive<Nanos> = MSEC..=3600 * SEC;

/// Reads the memory of a task.
pub(crate) fn read(value: &Value) -> Result<TaskMemory> {
    let form = "a table such as { private = \"64MiB\", pass = \"20ms\" }";
    let table = value.table(form)?.only(&TASK_MEMORY)?;
    let size = |key: &str| -> Result<u32> {
        Ok(table.get(key).map(|value| kib(&value)).transpose()?.unwrap_or(0).div_ceil(PAGE))
    };
    let (private, shared) = (size("private")?, size("shared")?);
    if private + shared == 0 {
        return Err(table.error("there is no memory").expected("private, shared or both"));
    }
    let pass = table.require("pass", "the time in which the task uses all of it once")?.duration(PASS)?;
    let node = table.get("node").map(|value| value.integer(0..=1023)).transpose()?.map(|node| node as u32);
    let huge = table.get("huge").map(|value| value.boolean()).transpose()?.unwrap_or(false);
    Ok(TaskMemory { private, shared, pass, node, huge })
}
