//! Which CPUs share what, as the trace's header says (`topology KIND LIST`, docs/record.md).

use schedlab_model::{CpuId, CpuMask, CpuPlace, Topology};
use schedlab_trace::Header;

/// The machine of a trace, and whether its header describes it.
pub struct Machine {
    /// Its CPUs.
    pub topology: Topology,
    /// Whether the header describes them.
    pub described: bool,
}

impl Machine {
    /// A header that says nothing, or what cannot be, stands for CPUs with a core each under one cache.
    pub fn of(header: &Header, cpus: usize) -> Machine {
        let units = |kind: &str| -> Vec<CpuMask> {
            let lists = header.comments.iter().filter_map(|line| line.strip_prefix("topology ")?.strip_prefix(kind));
            let mut units: Vec<CpuMask> = lists.filter_map(|list| CpuMask::from_list(list.trim())).collect();
            units.sort_by_key(|unit| unit.lowest());
            units
        };
        let [cores, clusters, llcs, sockets, nodes] = ["cores ", "clusters ", "llcs ", "sockets ", "nodes "].map(units);
        let unit = |units: &[CpuMask], cpu: CpuId| units.iter().position(|unit| unit.has(cpu)).map(|nth| nth as u32);
        let place = |cpu: CpuId| {
            let socket = unit(&sockets, cpu)?;
            let (llc, node) = (unit(&llcs, cpu).unwrap_or(socket), unit(&nodes, cpu).unwrap_or(0));
            // A cluster is numbered behind the cores, by which CPUs without one are numbered.
            let core = unit(&cores, cpu)?;
            let cluster = unit(&clusters, cpu).map_or(core, |nth| nth + cores.len() as u32);
            Some(CpuPlace { core, cluster, llc, socket, node })
        };
        let places: Option<Vec<CpuPlace>> = (0..cpus as u32).map(|cpu| place(CpuId(cpu))).collect();
        match places.and_then(|places| Topology::new(places).ok()) {
            Some(topology) => Machine { topology, described: true },
            None => Machine { topology: one_cache(cpus), described: false },
        }
    }
}

fn one_cache(cpus: usize) -> Topology {
    let places =
        (0..cpus.max(1) as u32).map(|core| CpuPlace { core, cluster: core, llc: 0, socket: 0, node: 0 }).collect();
    Topology::new(places).expect("CPUs with a core each under one cache are a machine")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_describes_the_machine() {
        let lines = ["topology cores 0-1", "topology cores 2-3", "topology llcs 0-3", "topology sockets 0-3"];
        let comments = lines.map(str::to_owned).to_vec();
        let machine = Machine::of(&Header { comments, ..Header::default() }, 4);
        assert!(machine.described);
        assert_eq!(machine.topology.smt(CpuId(2)).to_list(), "2-3");
        assert_eq!(machine.topology.llc(CpuId(0)).to_list(), "0-3");
        let unknown = Machine::of(&Header::default(), 4);
        assert!(!unknown.described);
        assert_eq!((unknown.topology.smt(CpuId(2)).count(), unknown.topology.llc(CpuId(0)).count()), (1, 4));
    }
}
