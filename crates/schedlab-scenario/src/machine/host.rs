//! The topology and kernel release of the running machine, from sysfs and procfs.
//!
//! Offline CPUs are left out and the others are renumbered from 0, because simulated CPU numbers have no gaps.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use schedlab_model::{CpuMask, CpuPlace, Topology};

/// Reads the topology below `sys` (`/sys`). The error is a reason.
pub(super) fn topology(sys: &Path) -> Result<Topology, String> {
    let cpus = sys.join("devices/system/cpu");
    let online = list(&cpus.join("online"))?;
    let nodes = nodes(&sys.join("devices/system/node"));
    let mut numbers = [BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new()];
    let mut places = Vec::new();
    for cpu in online.iter() {
        let dir = cpus.join(format!("cpu{}", cpu.0));
        let own = CpuMask::from_list(&cpu.0.to_string()).unwrap_or_default();
        let core = list(&dir.join("topology/thread_siblings_list")).unwrap_or(own);
        let llc = last_level(&dir.join("cache")).unwrap_or(core);
        let node = nodes.iter().position(|node| node.has(cpu)).unwrap_or(0) as u32;
        let socket = fs::read_to_string(dir.join("topology/physical_package_id")).unwrap_or_default();
        // x86 without clusters shows those of the package or of the core: both are no level of their own.
        let cluster = list(&dir.join("topology/cluster_cpus_list")).unwrap_or(core);
        let is_level = cluster.count() > core.count() && cluster.count() < llc.count();
        let cluster = if is_level { cluster } else { core };
        let [cores, clusters, llcs, sockets] = &mut numbers;
        let core = number(cores, core.to_list(), node);
        let cluster = number(clusters, cluster.to_list(), node);
        let llc = number(llcs, llc.to_list(), node);
        places.push(CpuPlace { core, cluster, llc, socket: number(sockets, socket.trim().to_owned(), 0), node });
    }
    Topology::new(places).map_err(|error| format!("{}: {error}", cpus.display()))
}

/// Reads the release of the running kernel. The error is a reason.
pub(crate) fn release() -> Result<String, String> {
    const FILE: &str = "/proc/sys/kernel/osrelease";
    fs::read_to_string(FILE).map(|text| text.trim().to_owned()).map_err(|error| format!("{FILE}: {error}"))
}

/// Numbers the units in the order of their first CPU.
fn number(known: &mut BTreeMap<(String, u32), u32>, unit: String, node: u32) -> u32 {
    let next = known.len() as u32;
    *known.entry((unit, node)).or_insert(next)
}

fn list(path: &Path) -> Result<CpuMask, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    CpuMask::from_list(text.trim()).ok_or_else(|| format!("{}: {:?} is not a CPU list", path.display(), text.trim()))
}

/// The CPUs that share the last-level cache (`cpu_llc_shared_mask`).
fn last_level(caches: &Path) -> Option<CpuMask> {
    let level = |dir: &Path| fs::read_to_string(dir.join("level")).ok()?.trim().parse::<u32>().ok();
    let dirs = fs::read_dir(caches).ok()?.flatten().map(|entry| entry.path());
    let (_, dir) = dirs.filter_map(|dir| Some((level(&dir)?, dir))).max()?;
    list(&dir.join("shared_cpu_list")).ok()
}

/// The CPU list of every node, in the order of node numbers; empty if the kernel has no NUMA.
fn nodes(dir: &Path) -> Vec<CpuMask> {
    let id = |name: &str| name.strip_prefix("node")?.parse::<u32>().ok();
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut nodes: Vec<(u32, CpuMask)> = entries
        .filter_map(|entry| {
            Some((id(&entry.file_name().to_string_lossy())?, list(&entry.path().join("cpulist")).ok()?))
        })
        .collect();
    nodes.sort_unstable_by_key(|node| node.0);
    nodes.into_iter().map(|node| node.1).collect()
}
