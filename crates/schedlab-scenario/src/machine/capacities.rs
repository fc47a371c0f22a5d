//! The `[[cpu-type]]` of a machine: the speed of CPUs relative to the fastest ones, and the power that their
//! frequencies need.
//!
//! Power of a state = coefficient * voltage^2 * frequency, as the kernel computes it from `dynamic-power-coefficient`
//! of a device tree (`_get_dt_power`, drivers/opp/of.c); its performance = capacity * frequency / the highest
//! frequency.

use schedlab_model::{Capacities, CpuMask, PerfDomain, PerfState, Topology, FULL_CAPACITY};

use super::sources::Sources;
use crate::error::Result;
use crate::keys::{CPU_TYPE, PERF_STATE};
use crate::value::{Table, Value};

const FORM: &str = "[[cpu-type]] tables";
const STATES: &str = "states slowest first, such as [{ mhz = 533, mv = 700 }, { mhz = 999, mv = 800 }]";

/// The topology with the capacities of its CPUs, if the machine states them.
pub(super) fn read(machine: &Table, topology: &Topology, sources: &mut Sources) -> Result<Option<Topology>> {
    let Some(value) = machine.get("cpu-type") else { return Ok(None) };
    let (mut of, mut domains, mut without_states) = (vec![0; topology.nr_cpus()], Vec::new(), 0);
    for item in value.array(FORM)? {
        let table = item.table(FORM)?.only(&CPU_TYPE)?;
        let name = table.require("name", "a word")?.string("a word")?.to_owned();
        let cpus = cpus(&table.require("cpus", "a CPU list")?, topology)?;
        let capacity = table.require("capacity", "a part of 1024")?.integer(1..=i64::from(FULL_CAPACITY))? as u32;
        for cpu in cpus.iter() {
            if of[cpu.index()] != 0 {
                return Err(item.error(format!("CPU {} has two types", cpu.0)));
            }
            of[cpu.index()] = capacity;
        }
        match states(&table, capacity)? {
            Some(states) => domains.push(PerfDomain { cpus, states }),
            None => without_states += 1,
        }
        sources.read(&format!("cpu-type.{name}"), &table)?;
    }
    if let Some(cpu) = of.iter().position(|capacity| *capacity == 0) {
        return Err(value.error(format!("CPU {cpu} has no type")).expected("each CPU in one [[cpu-type]]"));
    }
    if without_states > 0 && !domains.is_empty() {
        let error = value.error("some types have states and others do not");
        return Err(error.expected("an energy model of all CPUs (sched_energy_enabled), or of none"));
    }
    let capacities = Capacities::new(of, domains);
    topology.clone().with_capacities(capacities).map(Some).map_err(|error| value.error(error.to_string()))
}

fn cpus(value: &Value, topology: &Topology) -> Result<CpuMask> {
    let text = value.string("a CPU list such as \"0-3\"")?;
    let mask = CpuMask::from_list(text).filter(|mask| !mask.is_empty() && mask.without(topology.all()).is_empty());
    mask.ok_or_else(|| {
        let last = topology.nr_cpus() - 1;
        value.refuse("not a list of CPUs of this machine").expected(format!("CPUs from 0 to {last} such as \"0-3\""))
    })
}

fn states(table: &Table, capacity: u32) -> Result<Option<Vec<PerfState>>> {
    let (Some(value), Some(coefficient)) = (table.get("states"), table.get("power-coefficient")) else {
        return match table.get("states").or(table.get("power-coefficient")) {
            None => Ok(None),
            Some(_) => Err(table.error("states and power-coefficient belong together").expected(STATES)),
        };
    };
    let coefficient = coefficient.integer(1..=100_000)? as u64;
    let mut read: Vec<(u64, u64)> = Vec::new();
    for item in value.array(STATES)? {
        let state = item.table(STATES)?.only(&PERF_STATE)?;
        let mhz = state.require("mhz", "a frequency in MHz")?.integer(1..=100_000)? as u64;
        let mv = state.require("mv", "a voltage in mV")?.integer(1..=10_000)? as u64;
        if read.last().is_some_and(|(slower, _)| *slower >= mhz) {
            return Err(item.error("a state is not faster than the one before it").expected(STATES));
        }
        read.push((mhz, mv));
    }
    let Some(&(fastest, _)) = read.last() else { return Err(value.error("there is no state").expected(STATES)) };
    let state = |(mhz, mv): (u64, u64)| PerfState {
        performance: (u64::from(capacity) * mhz / fastest).max(1) as u32,
        power: coefficient * mv * mv * mhz / 1_000_000,
    };
    Ok(Some(read.into_iter().map(state).collect()))
}
