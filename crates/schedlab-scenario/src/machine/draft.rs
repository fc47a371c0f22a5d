//! Reads a machine table. Keys that are missing come from its base.

use std::sync::Arc;

use schedlab_model::{Nanos, Topology, SEC};
use schedlab_spec::{IdleState, Machine};

use super::sources::Sources;
use super::{caches, capacities, costs, frequency, memory, physics, preset, sections, topology};
use crate::dist::constant_or_quantiles_up_to;
use crate::error::Result;
use crate::keys::{IDLE, MACHINE};
use crate::value::{Table, Value};

/// The values of CONFIG_HZ.
pub(crate) const HZ: &[u32] = &[100, 250, 300, 1000];

/// Reads a machine; `name` is the default for its name.
pub(super) fn machine(table: Table, name: &str) -> Result<Machine> {
    let table = table.only(&MACHINE)?;
    let base = table.get("base").map(|value| base(&value)).transpose()?;
    let mut sources = base.as_ref().map_or_else(Sources::default, Sources::of);
    let own_costs = table.get("costs").is_some();
    let (topology, smt_rates) = match (table.get("topology"), &base) {
        (Some(value), _) => topology::read(&value, base.as_ref(), &mut sources)?,
        (None, Some(base)) => (Arc::clone(&base.topology), base.smt_rates.clone()),
        (None, None) => return Err(table.error("the key \"topology\" is missing").expected("a table, or a base")),
    };
    let topology = capacities::read(&table, &topology, &mut sources)?.map_or(topology, Arc::new);
    let costs = costs::read(&table, base.as_ref().map(|base| &base.costs), &mut sources)?;
    let idle_states = match (table.get("idle"), &base) {
        (Some(value), _) => idle_states(&value, &mut sources)?,
        (None, Some(base)) => base.idle_states.clone(),
        (None, None) => return Err(table.error("the key \"idle\" is missing").expected("at least one idle state")),
    };
    let memory = memory::read(&table, base.as_ref(), &mut sources)?;
    let caches = caches::read(&table, base.as_ref().and_then(|base| base.caches.as_ref()), &mut sources)?;
    let frequency = frequency::read(&table, base.as_ref(), &topology, &mut sources)?;
    let sections = sections::read(&table, base.as_ref().map(|base| &base.sections))?;
    let numbers = (&costs, caches.as_ref(), memory, frequency.as_ref());
    let physics = physics::read(&table, base.as_ref(), numbers, &mut sources)?;
    let text = |key: &str| table.get(key).map(|value| value.string("a string").map(str::to_owned)).transpose();
    let (sources, ranges) = sources.finish();
    Ok(Machine {
        name: text("name")?.unwrap_or_else(|| name.to_owned()),
        summary: text("summary")?.or_else(|| base.as_ref().map(|base| like(base, &topology))).unwrap_or_default(),
        calibrated: match table.get("calibrated") {
            Some(value) => value.boolean()?,
            None => base.as_ref().is_some_and(|base| base.calibrated) && !own_costs,
        },
        sources,
        ranges,
        topology,
        smt_rates,
        costs,
        idle_states,
        memory,
        frequency,
        caches,
        sections,
        physics,
        hz: table.get("hz").map(|value| hz(&value)).transpose()?.or(base.map(|base| base.hz)).unwrap_or(250),
    })
}

/// The summary of a machine that has a base and no summary of its own.
fn like(base: &Machine, topology: &Topology) -> String {
    let (cpus, known) = (topology.nr_cpus(), base.topology.nr_cpus());
    let size = if cpus == known { String::new() } else { format!(" with {cpus} instead of {known} CPUs") };
    format!("like {}{size}", base.name)
}

/// Reads a timer frequency.
pub(crate) fn hz(value: &Value) -> Result<u32> {
    let valid = value.as_integer().and_then(|number| u32::try_from(number).ok()).filter(|number| HZ.contains(number));
    valid.ok_or_else(|| value.refuse("not a timer frequency of the kernel").expected("one of 100, 250, 300, 1000"))
}

fn base(value: &Value) -> Result<Machine> {
    let id = value.string("the id of a preset")?;
    match preset(id) {
        Some(machine) => machine,
        None => Err(value.unknown("preset", id, super::preset_ids().into_iter().chain([super::HOST]))),
    }
}

fn idle_states(value: &Value, sources: &mut Sources) -> Result<Vec<IdleState>> {
    const FORM: &str = "at least one [[idle]] table";
    sources.drop_idle_states();
    let mut states: Vec<IdleState> = Vec::new();
    for state in value.array(FORM)? {
        let table = state.table(FORM)?.only(&IDLE)?;
        let name = table.require("name", "the kernel's name of the state")?.string("a string")?.to_owned();
        let exit = table.require("exit", "constant or quantiles")?;
        let state = IdleState {
            exit: constant_or_quantiles_up_to(
                super::costs::DEAREST,
                &exit.table("constant or quantiles")?.only_these(&["constant", "quantiles"], "exit")?,
            )?,
            latency: table.get("latency").map(|value| value.duration(0..=SEC)).transpose()?,
            target_residency: residency(&table, states.last())?,
            polling: table.get("polling").map(|value| value.boolean()).transpose()?.unwrap_or(false),
            name,
        };
        sources.read(&format!("idle.{}", state.name), &table)?;
        states.push(state);
    }
    if states.is_empty() {
        return Err(value.error("there is no idle state").expected(FORM));
    }
    Ok(states)
}

/// Reads the target residency. States are listed shallowest first, which is the order of their residencies.
fn residency(table: &Table, shallower: Option<&IdleState>) -> Result<Nanos> {
    let Some(value) = table.get("target-residency") else { return Ok(0) };
    let residency = value.duration(0..=10 * SEC)?;
    if shallower.is_some_and(|state| state.target_residency > residency) {
        return Err(value
            .refuse("shorter than that of the previous state")
            .expected("states ordered shallowest first"));
    }
    Ok(residency)
}
