//! The `topology` of a machine: regular counts, or that of the running system.

use std::path::Path;
use std::sync::Arc;

use schedlab_model::{CpuId, Topology};
use schedlab_spec::Machine;

use super::host;
use super::sources::Sources;
use crate::error::Result;
use crate::keys::TOPOLOGY;
use crate::value::{Table, Value};

/// The rate of a thread that is alone on its core.
const WHOLE: u32 = 1024;

#[derive(Clone, Copy)]
enum Numbering {
    /// The first threads of all cores come first, then the second threads (x86).
    ThreadsLast,
    /// The threads of a core are adjacent.
    Adjacent,
    /// The threads of two cores alternate (big cores of POWER10).
    PairedCores,
}

/// The CPUs and the execution rates of their threads.
pub(super) fn read(value: &Value, base: Option<&Machine>, sources: &mut Sources) -> Result<(Arc<Topology>, Vec<u32>)> {
    let from_base = base.map(|base| base.smt_rates.clone());
    if let Some(word) = value.as_string() {
        if word != "host" {
            return Err(value.unknown("topology", word, ["host"]));
        }
        let topology = host::topology(Path::new("/sys")).map_err(|reason| value.error(reason))?;
        sources.insert("topology", "/sys/devices/system/cpu and node of this machine".into());
        let threads = topology.all().iter().map(|cpu| topology.smt(cpu).count()).max().unwrap_or(1);
        return Ok((Arc::new(topology), rates(from_base.unwrap_or_else(|| vec![WHOLE]), threads)));
    }
    let table = value.table("a table, or \"host\"")?.only(&TOPOLOGY)?;
    let topology = counted(&table)?;
    let threads = threads_per_core(&table)?;
    let given = table.get("smt-rates").map(|value| smt_rates(&value, threads)).transpose()?;
    let enough = from_base.filter(|rates| rates.len() >= threads);
    let rates = match given.or(enough) {
        Some(rates) => rates,
        None if threads == 1 => vec![WHOLE],
        None => {
            let error = table.error("the key \"smt-rates\" is missing");
            return Err(error.expected("the speed of a thread by the number of busy threads of its core").hint(RATES));
        }
    };
    sources.read("topology", &table)?;
    Ok((Arc::new(topology), rates))
}

const RATES: &str = "for 2 threads: smt-rates = [\"100%\", \"62%\"]";

/// Regular counts.
pub(crate) fn counted(table: &Table) -> Result<Topology> {
    let count = |key: &str| table.get(key).map(|value| value.integer(1..=1024)).transpose();
    let nodes = count("nodes")?.unwrap_or(1) as u32;
    let llcs = count("llcs-per-node")?.unwrap_or(1) as u32;
    let cores = table.require("cores-per-llc", "a whole number")?.integer(1..=1024)? as u32;
    let threads = threads_per_core(table)? as u32;
    let numbering = table.get("numbering").map(|value| {
        value.choice(&[
            ("threads-last", Numbering::ThreadsLast),
            ("adjacent", Numbering::Adjacent),
            ("paired-cores", Numbering::PairedCores),
        ])
    });
    let numbering = numbering.transpose()?.unwrap_or(Numbering::ThreadsLast);
    let adjacent = !matches!(numbering, Numbering::ThreadsLast);
    let impossible = |error: schedlab_model::TopologyError| table.error(error.to_string());
    let clusters = table.get("cores-per-cluster").map(|value| cores_per_cluster(&value, cores)).transpose()?;
    let regular = Topology::regular(nodes, llcs, cores, threads, adjacent).map_err(impossible)?;
    let regular = match clusters {
        Some(cores) => regular.clustered(cores).map_err(impossible)?,
        None => regular,
    };
    match numbering {
        Numbering::PairedCores if (nodes * llcs * cores) % 2 == 0 => paired(&regular, threads).map_err(impossible),
        Numbering::PairedCores => Err(table.error("paired-cores needs an even number of cores")),
        _ => Ok(regular),
    }
}

/// The numbering in which the threads of each pair of cores alternate.
fn paired(adjacent: &Topology, threads: u32) -> std::result::Result<Topology, schedlab_model::TopologyError> {
    let place = |cpu: u32| {
        let (pair, within) = (cpu / (2 * threads), cpu % (2 * threads));
        adjacent.place(CpuId((2 * pair + within % 2) * threads + within / 2))
    };
    Topology::new((0..adjacent.nr_cpus() as u32).map(place).collect())
}

fn cores_per_cluster(value: &Value, cores_per_llc: u32) -> Result<u32> {
    let cores = value.integer(1..=1024)? as u32;
    if cores_per_llc % cores != 0 {
        return Err(value
            .refuse("does not divide the cores of a last-level cache")
            .expected(format!("a divisor of cores-per-llc = {cores_per_llc}")));
    }
    Ok(cores)
}

fn threads_per_core(table: &Table) -> Result<usize> {
    Ok(table.get("threads-per-core").map(|value| value.integer(1..=8)).transpose()?.unwrap_or(1) as usize)
}

fn smt_rates(value: &Value, threads: usize) -> Result<Vec<u32>> {
    let form = format!("{threads} percentages, the first \"100%\", none above the previous one");
    let mut rates = Vec::new();
    for item in value.array(&form)? {
        let rate = (item.percent(100.0)? * f64::from(WHOLE) / 100.0).round() as u32;
        if rate == 0 || rate > rates.last().copied().unwrap_or(WHOLE) || (rates.is_empty() && rate != WHOLE) {
            return Err(item.refuse("not valid at this position").expected(form));
        }
        rates.push(rate);
    }
    if rates.len() != threads {
        return Err(value.refuse(&format!("{} rates for {threads} threads", rates.len())).expected(form));
    }
    Ok(rates)
}

/// The given rates; the last is repeated for the remaining threads of the core.
fn rates(mut known: Vec<u32>, threads: usize) -> Vec<u32> {
    let last = known.last().copied().unwrap_or(WHOLE);
    known.resize(threads.max(1), last);
    known
}
