//! Measures the costs of this machine and its kernel. The keys are those of `[costs]` and `[[idle]]` in a machine file.
//!
//! Every cost has its quantiles, the number of samples, and how it was measured. Costs that cannot be measured from
//! outside of the kernel are listed as absent with the reason; none is guessed.

mod absent;
mod bandwidth;
mod caches;
mod calls;
mod crossing;
mod events;
mod expiry;
mod handover;
mod idle;
mod lines;
mod lives;
mod memory;
mod pingpong;
mod quantiles;
mod structures;
mod traced;

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Distance, Topology};
use serde::Serialize;

use crate::error::{AgentError, Result};
use crate::settings::Settings;
use crate::tracing;
use quantiles::Cost;

/// The number of samples.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Samples of cheap operations.
    pub many: usize,
    /// Samples of expensive operations.
    pub few: usize,
    /// Passes over all memory that is measured.
    pub passes: usize,
    /// The most CPUs between each pair of which the transfer of a cache line is measured.
    pub cpus: usize,
}

impl Effort {
    /// A few seconds if `quick`, otherwise about half a minute.
    #[must_use]
    pub fn new(quick: bool) -> Effort {
        if quick {
            Effort { many: 2_000, few: 200, passes: 3, cpus: 8 }
        } else {
            Effort { many: 20_000, few: 2_000, passes: 10, cpus: 64 }
        }
    }
}

/// One cost, or one cost per distance between CPUs.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Entry {
    /// One cost.
    One(Cost),
    /// By distance: `smt`, `llc`, `node`, `remote`.
    ByDistance(BTreeMap<&'static str, Cost>),
}

/// The result of a calibration.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// `uname -r`.
    pub release: String,
    /// The number of CPUs used.
    pub cpus: usize,
    /// The keys of `[costs]`.
    pub costs: BTreeMap<&'static str, Entry>,
    /// The tables of `[[idle]]`.
    pub idle: Vec<idle::State>,
    /// `[memory]`.
    pub memory: bandwidth::Bandwidth,
    /// `[caches]`, where the kernel reports their sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches: Option<caches::Caches>,
    /// The transfers of a cache line between each pair of CPUs, of which `line-transfer` has some.
    pub line_transfers: lines::Matrix,
    /// The time to access all lines of a structure that another CPU has written.
    pub structures: structures::Structures,
    /// Measurements that have no key in a machine file.
    pub other: BTreeMap<&'static str, Cost>,
    /// Costs that were not measured, with the reason.
    pub absent: BTreeMap<&'static str, String>,
}

/// The CPUs that measurements use.
#[derive(Clone, Debug)]
pub struct Cpus {
    /// The CPU for all measurements on a single CPU.
    pub first: u32,
    /// For each distance that exists on this machine, a CPU at that distance from the first.
    pub others: Vec<(&'static str, u32)>,
    /// The CPUs of the first one's node.
    pub node: Vec<u32>,
    /// The CPUs of another node, if there is one.
    pub other_node: Vec<u32>,
    /// The number of CPUs.
    pub count: usize,
}

/// Size of the trace buffer of each CPU, in KiB.
const BUFFER_KB: u32 = 16384;

const DISTANCES: [(Distance, &str); 4] =
    [(Distance::Smt, "smt"), (Distance::Llc, "llc"), (Distance::Node, "node"), (Distance::Remote, "remote")];

impl Cpus {
    fn new(topology: &Topology, allowed: &[u32]) -> Result<Cpus> {
        let nothing = || {
            AgentError::cannot(
                "the affinity mask of this process is empty",
                "taskset -p PID shows the CPUs that are allowed",
            )
        };
        let first = *allowed.first().ok_or_else(nothing)?;
        let numbered = || allowed.iter().zip(0..).take(topology.nr_cpus());
        let at = |wanted: Distance| {
            numbered().find(|(_, number)| topology.distance(CpuId(0), CpuId(*number)) == wanted).map(|(cpu, _)| *cpu)
        };
        let others = DISTANCES.iter().filter_map(|(distance, name)| Some((*name, at(*distance)?))).collect();
        let of = |cpu: CpuId| {
            let node = topology.node(cpu);
            numbered().filter(|(_, number)| node.has(CpuId(*number))).map(|(cpu, _)| *cpu).collect()
        };
        let remote = numbered().find(|(_, number)| topology.distance(CpuId(0), CpuId(*number)) == Distance::Remote);
        let other_node = remote.map_or_else(Vec::new, |(_, number)| of(CpuId(number)));
        Ok(Cpus { first, others, node: of(CpuId(0)), other_node, count: numbered().count() })
    }
}

/// Measures all costs.
pub fn calibrate(topology: &Topology, quick: bool, trace: bool) -> Result<Calibration> {
    crate::inherited::reset()?;
    let effort = Effort::new(quick);
    let allowed = crate::run::allowed_cpus()?;
    let cpus = Cpus::new(topology, &allowed)?;
    // Reduces the disturbance by other tasks, where it is permitted.
    let _ = crate::attributes::nice(-20);
    let _ = crate::attributes::timer_slack(1);
    pin(cpus.first)?;
    let mut costs = BTreeMap::new();
    let mut other = BTreeMap::new();
    let mut recording = tracing::begin(&Settings { tracing: trace, buffer_kb: BUFFER_KB, ..Settings::default() });
    let measurements = traced::Measurements::measure(effort, cpus.first)?;
    calls::measure(effort, &mut costs, &mut other)?;
    memory::measure(effort, &mut costs)?;
    pingpong::measure(effort, &cpus, &mut costs, &mut other)?;
    measurements.put_lives(&mut costs);
    let mut states = Vec::new();
    if !cpus.others.is_empty() {
        crossing::measure(effort, &cpus, &mut costs)?;
        pingpong::measure_sending(effort, &cpus, &mut costs)?;
        states = idle::measure(effort, &cpus, &costs, &mut other)?;
        lines::measure(effort, &cpus, &mut costs)?;
    }
    let off_reason = recording.off_reason().map(str::to_owned);
    recording.stop();
    let events = events::Events::of(&mut recording)?;
    // The tracepoints cost time until the instance is removed.
    drop(recording);
    if off_reason.is_none() {
        measurements.put(&events, &mut costs, &mut states)?;
        traced::put_clock(effort, cpus.first, &mut costs)?;
    }
    let memory = bandwidth::measure(effort.passes, bandwidth::arrays(), &cpus.node, &cpus.other_node)?;
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let caches = caches::measure(cpus.first, 2 * effort.passes + 1);
    let unmeasured = absent::Unmeasured { one_cpu: cpus.others.is_empty(), off_reason, asked: trace };
    let absent = absent::reasons(&costs, caches.is_some(), &unmeasured);
    let structures = structures::measure(effort, &cpus)?;
    // This pins the thread to other CPUs.
    let line_transfers = lines::matrix(&allowed[..allowed.len().min(effort.cpus)])?;
    Ok(Calibration {
        release,
        cpus: cpus.count,
        costs,
        idle: states,
        memory,
        caches,
        line_transfers,
        structures,
        other,
        absent,
    })
}

/// Pins the calling thread to one CPU.
fn pin(cpu: u32) -> Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu as usize);
    let pinned = crate::attributes::affinity(&set);
    pinned
        .map_err(|(_, error)| AgentError::failed(format!("CPU {cpu}: sched_setaffinity failed with error {error}"), ""))
}

/// The median of a measured cost; 0 if it has not been measured.
fn median(costs: &BTreeMap<&'static str, Entry>, key: &str) -> u64 {
    match costs.get(key) {
        Some(Entry::One(cost)) => cost.p50,
        Some(Entry::ByDistance(by)) => by.values().map(|cost| cost.p50).min().unwrap_or(0),
        None => 0,
    }
}
