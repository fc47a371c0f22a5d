//! The `[frequency]` of a machine: turbo bins, and what the governor schedutil needs.

use schedlab_model::{Topology, MSEC, SEC};
use schedlab_spec::{Frequency, Machine};

use super::sources::Sources;
use crate::error::Result;
use crate::keys::FREQUENCY;
use crate::value::{Table, Value};

const MHZ: &str = "a frequency in MHz, 1 to 100000";
const BINS: &str = "pairs of busy cores and MHz such as [[2, 3800], [28, 3200]]";

/// Reads the frequencies. If they are missing they are the base's.
pub(super) fn read(
    machine: &Table,
    base: Option<&Machine>,
    topology: &Topology,
    sources: &mut Sources,
) -> Result<Option<Frequency>> {
    let Some(value) = machine.get("frequency") else { return Ok(base.and_then(|base| base.frequency.clone())) };
    let form = "a table such as { base = 2500, turbo = [[2, 3800], [28, 3200]], source = \"..\" }";
    let table = value.table(form)?.only(&FREQUENCY)?;
    sources.read("frequency", &table)?;
    if topology.capacities().is_some() {
        let error = value.error("the CPUs of this machine are of several types");
        return Err(error.hint("frequencies that change are modelled for CPUs of one type only"));
    }
    let own = mhz(&table.require("base", MHZ)?)?;
    let min = match table.get("min") {
        None => own,
        Some(value) => match mhz(&value)? {
            min if (own.div_ceil(64)..=own).contains(&min) => min,
            _ => return Err(value.refuse("out of range").expected(format!("{} to {own}", own.div_ceil(64)))),
        },
    };
    let turbo = table.get("turbo").map(|value| bins(&value, min)).transpose()?.unwrap_or_default();
    let rate_limit = table.get("rate-limit").map(|value| value.duration(0..=SEC)).transpose()?.unwrap_or(MSEC);
    Ok(Some(Frequency { base: own, min, turbo, rate_limit }))
}

fn mhz(value: &Value) -> Result<u32> {
    value.integer(1..=100_000).map(|mhz| mhz as u32)
}

/// The counts of cores rise, the frequencies fall or stay.
fn bins(value: &Value, min: u32) -> Result<Vec<(u32, u32)>> {
    let mut bins: Vec<(u32, u32)> = Vec::new();
    for bin in value.array(BINS)? {
        let [cores, most] = &bin.array(BINS)?[..] else { return Err(bin.refuse("not a pair").expected(BINS)) };
        let (cores, most) = (cores.integer(1..=100_000)? as u32, mhz(most)?);
        if bins.last().is_some_and(|(before, faster)| cores <= *before || most > *faster) || most < min {
            return Err(bin
                .refuse("out of order")
                .expected("more cores and no higher frequency than in the pair before, and at least min"));
        }
        bins.push((cores, most));
    }
    if bins.is_empty() {
        return Err(value.refuse("empty").expected(BINS));
    }
    Ok(bins)
}
