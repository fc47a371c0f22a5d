//! The kernel and the machine of a recording, as keys of a scenario: only what differs from the row's defaults.

use schedlab_model::Topology;
use schedlab_policy::{Feature, KernelConfig, Knob, KnobUnit, Version};
use schedlab_replay::{settings, uses_autogroup, Machine};
use schedlab_trace::Header;

/// The recorded kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its row.
    pub row: &'static Version,
    /// Ticks per second.
    pub hz: u32,
    /// Its settings, as lines of a `[[variant]]`.
    pub lines: Vec<String>,
    /// Settings that the row does not take.
    pub refused: Vec<String>,
    /// Whether sessions are groups.
    pub autogroup: bool,
}

/// Reads the settings of the recorded kernel from the header.
#[must_use]
pub fn kernel(header: &Header, row: &'static Version) -> Kernel {
    let found = settings(header, row);
    let (config, mut refused) = (found.config, found.refused);
    let plain = KernelConfig::new(row, config.nr_cpus, config.hz());
    let mut lines = vec![format!("preempt = \"{}\"", config.preempt.name())];
    let differs = |info: &&schedlab_policy::FeatureInfo| config.has(info.feature) != plain.has(info.feature);
    for info in Feature::all().iter().filter(|info| info.default_in(row).is_some()).filter(differs) {
        let mut tried = plain.clone();
        match tried.set_feature(info.name, config.has(info.feature)) {
            Ok(()) => lines.push(format!("features.{} = {}", info.name, config.has(info.feature))),
            Err(error) => refused.push(error.to_string()),
        }
    }
    for info in Knob::all().iter().filter(|info| info.exists_in(row)) {
        let value = config.knobs.get(info.knob);
        if value == plain.knobs.get(info.knob) {
            continue;
        }
        match plain.clone().set_knob(info.name, value) {
            Ok(()) => lines.push(format!("knobs.{} = {}", info.name, shown(info.unit, value))),
            Err(error) => refused.push(error.to_string()),
        }
    }
    Kernel { row, hz: config.hz(), lines, refused, autogroup: uses_autogroup(header) }
}

fn shown(unit: KnobUnit, value: u64) -> String {
    match unit {
        KnobUnit::Nanos => format!("\"{value}ns\""),
        KnobUnit::Number => value.to_string(),
    }
}

/// The counts of a `[topology]` for the machine of a recording; `false`: the header does not describe it, or it is
/// irregular, so that all CPUs share one cache.
#[must_use]
pub fn topology(header: &Header, cpus: usize) -> (String, bool) {
    let machine = Machine::of(header, cpus);
    match regular(&machine.topology).filter(|_| machine.described || cpus == 1) {
        Some(line) => (line, true),
        None => (format!("{{ cores-per-llc = {cpus} }}"), false),
    }
}

fn regular(topology: &Topology) -> Option<String> {
    let cpus = topology.nr_cpus();
    let units = |of: fn(&schedlab_model::CpuPlace) -> u32| {
        let mut ids: Vec<u32> = topology.cpus().map(|cpu| of(&topology.place(cpu))).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    };
    let (nodes, llcs, cores) = (units(|p| p.node), units(|p| p.llc), units(|p| p.core));
    let whole = llcs % nodes == 0 && cores % llcs == 0 && cpus % cores == 0;
    whole.then(|| {
        let adjacent = topology.nr_cpus() > cores && topology.place(schedlab_model::CpuId(1)).core == 0;
        let numbering = if adjacent { ", numbering = \"adjacent\"" } else { "" };
        format!(
            "{{ nodes = {nodes}, llcs-per-node = {}, cores-per-llc = {}, threads-per-core = {}{numbering} }}",
            llcs / nodes,
            cores / llcs,
            cpus / cores
        )
    })
}
