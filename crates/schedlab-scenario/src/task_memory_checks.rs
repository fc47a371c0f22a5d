//! Whether the machine can place the memory of the tasks of a workload.

use std::collections::BTreeMap;

use schedlab_spec::Machine;

use crate::error::Result;
use crate::workload::Draft;

/// The most that the tasks of a workload may have together, in pages: 64 GiB.
const MOST_PAGES: u64 = 1 << 24;

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
