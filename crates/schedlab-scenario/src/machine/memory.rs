//! The `[memory]` of a machine: the bandwidth of its memory, and its latency.

use schedlab_model::Nanos;
use schedlab_spec::{Machine, Memory};

use super::sources::Sources;
use crate::error::Result;
use crate::keys::MEMORY;
use crate::value::{Table, Value};

/// The most that may be stated, 10 TB/s.
const MOST: i64 = 10_000_000;
/// The longest latency that may be stated.
const MOST_LATENCY: Nanos = 10_000;

/// Reads the bandwidth of the memory. If it is missing it is the base's.
pub(super) fn read(machine: &Table, base: Option<&Machine>, sources: &mut Sources) -> Result<Option<Memory>> {
    let Some(value) = machine.get("memory") else { return Ok(base.and_then(|base| base.memory)) };
    let form = "a table such as { cpu = 12000, node = 80000, source = \"..\" }";
    let table = value.table(form)?.only(&MEMORY)?;
    sources.read("memory", &table)?;
    let rate = |value: &Value| value.integer(1..=MOST).map(|rate| rate as u32);
    let cpu = rate(&table.require("cpu", "a whole number of MB/s")?)?;
    let node_value = table.require("node", "a whole number of MB/s")?;
    let node = rate(&node_value)?;
    if node < cpu {
        return Err(node_value.refuse("less than one CPU gets").expected(format!("{cpu} or more")));
    }
    let remote = match table.get("remote") {
        None => node,
        Some(value) => {
            let remote = rate(&value)?;
            if remote > node {
                return Err(value.refuse("more than the memory delivers").expected(format!("{node} or less")));
            }
            remote
        }
    };
    Ok(Some(Memory { cpu, node, remote, latency: latency(&table)? }))
}

/// The latencies of the own node and of another, if they are stated.
fn latency(table: &Table) -> Result<Option<[Nanos; 2]>> {
    let (local, remote) = match (table.get("latency"), table.get("remote-latency")) {
        (None, None) => return Ok(None),
        (Some(local), Some(remote)) => (local, remote),
        (Some(value), None) | (None, Some(value)) => {
            return Err(value.error("only one of the two latencies").expected("latency and remote-latency"))
        }
    };
    let [near, far] = [local.duration(1..=MOST_LATENCY)?, remote.duration(1..=MOST_LATENCY)?];
    if far < near {
        let form = format!("{} or more", crate::units::show_duration(near));
        return Err(remote.refuse("less than the latency of the own node").expected(form));
    }
    Ok(Some([near, far]))
}
