//! The memory of tasks: how much they have, how fast they use it, where it is; and whether machine and kernels know what that means.

use std::collections::BTreeMap;

use schedlab_model::{Nanos, MSEC, SEC};
use schedlab_spec::Machine;
use schedlab_workload::TaskMemory;

use crate::error::Result;
use crate::kernel_sections::kib;
use crate::keys::TASK_MEMORY;
use crate::value::Value;
use crate::workload::Draft;

/// KiB of a page.
const PAGE: u32 = 4;
/// The most that the tasks of a workload may have together, in pages: 64 GiB.
const MOST_PAGES: u64 = 1 << 24;
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

/// Refuses memory that the machine cannot place, and memory in a guest.
pub(crate) fn check(draft: &Draft, machine: &Machine) -> Result<()> {
    let mut tasks = draft.workload.tasks.iter().filter_map(|task| Some((task, task.memory?))).peekable();
    if tasks.peek().is_none() {
        return Ok(());
    }
    if draft.guest.is_some() {
        let error = draft.table.error("memory of tasks in a guest is not modelled");
        return Err(error.hint("a guest's pages are placed by the host; remove memory"));
    }
    let topology = &machine.topology;
    let nodes = topology.cpus().map(|cpu| topology.place(cpu).node + 1).max().unwrap_or(1);
    if nodes > 1 && machine.memory.is_none_or(|memory| memory.latency.is_none()) {
        let error = draft.table.error("the machine does not say how much longer a read from another node takes");
        return Err(error.hint("choose a machine with latency and remote-latency in [memory], or state them"));
    }
    let (mut pages, mut shared) = (0u64, BTreeMap::new());
    for (task, memory) in tasks {
        if let Some(node) = memory.node.filter(|node| *node >= nodes) {
            let message =
                format!("task {}: memory on node {node}, but the machine has nodes 0 to {}", task.name, nodes - 1);
            return Err(draft.table.error(message).hint("choose another node, or a machine with more"));
        }
        pages += u64::from(memory.private) * u64::from(task.count);
        if memory.shared > 0 {
            let known = *shared.entry(task.process).or_insert((memory.shared, memory.node, memory.huge));
            if known != (memory.shared, memory.node, memory.huge) {
                let message = format!("task {}: tasks of one process share the same memory", task.name);
                return Err(draft.table.error(message).expected("the same shared, node and huge for all of them"));
            }
        }
    }
    pages += shared.values().map(|(pages, ..)| u64::from(*pages)).sum::<u64>();
    if pages > MOST_PAGES {
        let gib = pages.div_ceil(1 << 18);
        return Err(draft.table.error(format!("{gib} GiB of memory")).expected("at most 64 GiB in a workload"));
    }
    Ok(())
}
