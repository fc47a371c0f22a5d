//! The `[physics]` of a machine: which mechanisms beyond the cost of instructions it has.

use schedlab_spec::{Caches, Costs, Frequency, Machine, Mechanism, Memory, Physics};

use super::sources::Sources;
use crate::error::Result;
use crate::keys::PHYSICS;
use crate::value::Table;

/// What mechanisms need of a machine: its costs, its caches, the bandwidth of its memory, and its frequencies.
pub(crate) type Numbers<'m> = (&'m Costs, Option<&'m Caches>, Option<Memory>, Option<&'m Frequency>);

/// Reads the mechanisms of a machine. Those that are missing are the base's; lines are on if their transfer has a cost,
/// memory if the machine states its bandwidth, warmth if the caches have sizes, frequency if it states any.
pub(super) fn read(
    machine: &Table,
    base: Option<&Machine>,
    numbers: Numbers,
    sources: &mut Sources,
) -> Result<Physics> {
    let own_cost = machine
        .get("costs")
        .is_some_and(|costs| costs.as_table().is_some_and(|costs| costs.get("line-transfer").is_some()));
    let mut physics = base.map(|base| base.physics).unwrap_or_default();
    physics.lines |= own_cost;
    physics.memory |= machine.get("memory").is_some();
    physics.warmth |= machine.get("caches").is_some();
    physics.frequency |= machine.get("frequency").is_some();
    let Some(value) = machine.get("physics") else { return Ok(physics) };
    let table = value.table("a table such as { locks = true, source = \"..\" }")?.only(&PHYSICS)?;
    sources.read("physics", &table)?;
    switches(&table, physics, numbers)
}

/// The mechanisms with those that the table switches.
pub(crate) fn switches(
    table: &Table,
    physics: Physics,
    (costs, caches, memory, frequency): Numbers,
) -> Result<Physics> {
    let mut physics = physics;
    for (name, value) in table.entries().into_iter().filter(|(name, _)| *name != "source") {
        let found = Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == name);
        let mechanism = found.ok_or_else(|| {
            let error = table.key_error(name, format!("unknown mechanism {}", crate::error::quote(name)));
            error.expected(
                "one of lines, locks, selection, cpuidle, core-idle, housekeeping, memory, warmth, teo, mmap-lock, frequency, schedutil",
            )
        })?;
        physics.set(mechanism, value.boolean()?);
        if mechanism == Mechanism::Warmth && physics.warmth && caches.is_none() {
            let error = value.error("the machine does not say how large its caches are");
            return Err(error.hint("give them as caches of the machine"));
        }
        let nothing = costs.line_transfer.iter().all(|cost| cost.typical() == 0);
        if mechanism == Mechanism::Lines && physics.lines && nothing {
            let error = value.error("the machine does not say what the transfer of a cache line costs");
            return Err(error.hint("give it as costs.line-transfer of the machine"));
        }
        if mechanism == Mechanism::Frequency && physics.frequency && frequency.is_none() {
            let error = value.error("the machine does not say at which frequencies its CPUs run");
            return Err(error.hint("give them as [frequency] of the machine"));
        }
        if mechanism == Mechanism::Memory && physics.memory && memory.is_none() {
            let error = value.error("the machine does not say what its memory delivers");
            return Err(error.hint("give it as [memory] of the machine"));
        }
    }
    Ok(physics)
}
