//! Measures the costs of this machine and its kernel. The keys are those of `[costs]` and `[[idle]]` in a machine file.
//!
//! Every cost has its quantiles, the number of samples, and how it was measured. Costs that cannot be measured from outside of
//! the kernel are listed as absent with the reason; none is guessed.

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
    let mut absent = BTreeMap::new();
    let mut recording = tracing::begin(&Settings { tracing: trace, buffer_kb: BUFFER_KB, ..Settings::default() });
    let measurements = traced::Measurements::measure(effort, cpus.first)?;
    calls::measure(effort, &mut costs, &mut other)?;
    memory::measure(effort, &mut costs)?;
    pingpong::measure(effort, &cpus, &mut costs, &mut other)?;
    measurements.put_lives(&mut costs);
    let mut states = Vec::new();
    if cpus.others.is_empty() {
        let why = "the measurement needs two CPUs and there is only one";
        absent.extend(["ipi", "ipi-send", "irq", "idle", "line-transfer"].map(|key| (key, why.to_owned())));
    } else {
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
        absent.remove("irq");
        absent.remove("idle");
    }
    let why = match off_reason {
        None => "too few undisturbed samples".to_owned(),
        Some(_) if !trace => "measured only with --traced".to_owned(),
        Some(why) => format!("only tracepoints separate it from other costs: {why}"),
    };
    for key in traced::PARTS.iter().filter(|key| !costs.contains_key(**key)) {
        absent.insert(key, why.clone());
    }
    for key in ["scan-cpu", "balance-pass", "balance-cpu"] {
        absent.insert(key, "internal to the kernel; neither a program nor a tracepoint can measure it".to_owned());
    }
    absent.insert("copy-page-table", "fork is measured as a whole".to_owned());
    for key in ["vm-exit", "vm-exit-nested", "idle-hint", "cpu-relax", "ple-window"] {
        absent.insert(key, "it concerns the host of a guest, where the agent does not run".to_owned());
    }
    absent.insert("tlb-flush", "internal to the kernel; munmap is measured in a process of one thread".to_owned());
    absent.insert("exec", "the agent does not execute programs; lat_proc of lmbench measures it".to_owned());
    let known =
        ["syscall", "switch-thread", "switch-process", "wakeup", "tick", "ipi", "ipi-send", "irq", "line-transfer"];
    for key in known.iter().filter(|key| !costs.contains_key(**key)) {
        absent.entry(key).or_insert_with(|| "too few undisturbed samples".to_owned());
    }
    let memory = bandwidth::measure(effort.passes, bandwidth::arrays(), &cpus.node, &cpus.other_node)?;
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let caches = caches::measure(cpus.first, 2 * effort.passes + 1);
    if caches.is_none() {
        absent.insert("caches", "the kernel does not report the sizes of the caches".to_owned());
    }
    // This pins the thread to other CPUs.
    let line_transfers = lines::matrix(&allowed[..allowed.len().min(effort.cpus)])?;
    Ok(Calibration { release, cpus: cpus.count, costs, idle: states, memory, caches, line_transfers, other, absent })
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
