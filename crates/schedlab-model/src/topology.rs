//! Which CPUs share what: threads of a core, a cluster, a last-level cache, a package, a NUMA node.

use std::sync::Arc;

use crate::{Capacities, CapacityError, CpuId, CpuMask, Table, FULL_CAPACITY, MAX_CPUS};

/// Where one CPU sits. Numbers are global (core 5 exists once in the machine).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuPlace {
    /// Physical core.
    pub core: u32,
    /// Cores that share something below the last-level cache, such as an L2 cache (`cpu_clustergroup_mask`).
    pub cluster: u32,
    /// Last-level cache domain (`sd_llc`).
    pub llc: u32,
    /// Package.
    pub socket: u32,
    /// NUMA node.
    pub node: u32,
}

/// How far apart two CPUs are; costs are looked up by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Distance {
    /// The same CPU.
    Same,
    /// Threads of one core.
    Smt,
    /// Cores under one last-level cache.
    Llc,
    /// Caches of one NUMA node.
    Node,
    /// Different NUMA nodes.
    Remote,
}

/// A level of the scheduling-domain hierarchy, smallest span first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Threads of a core.
    Smt,
    /// Cores of a cluster (CLS).
    Cls,
    /// Cores sharing the last-level cache.
    Mc,
    /// All CPUs of a node (DIE up to 6.6, PKG later).
    Pkg,
    /// All nodes.
    Numa,
}

/// Why a topology cannot exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TopologyError {
    /// No CPU at all.
    #[error("a machine needs at least one CPU")]
    Empty,
    /// More CPUs than a kernel can have.
    #[error("{0} CPUs are more than the {MAX_CPUS} a kernel can have")]
    TooMany(usize),
    /// A smaller unit spans two of a larger one.
    #[error("{inner} {number} spans two {outer}s")]
    Straddles {
        /// The smaller unit: `core`, `llc` or `socket`.
        inner: &'static str,
        /// Its number.
        number: u32,
        /// The larger unit it straddles.
        outer: &'static str,
    },
}

/// The machine's CPUs and what they share. Immutable once built.
#[derive(Clone, PartialEq, Debug)]
pub struct Topology {
    places: Table<CpuPlace>,
    smt: Table<CpuMask>,
    cluster: Table<CpuMask>,
    llc: Table<CpuMask>,
    node: Table<CpuMask>,
    all: CpuMask,
    /// The first CPU of a CPU's cluster, or of its last-level cache where it has no cluster (`sd_share_id`).
    share_id: Vec<CpuId>,
    has_clusters: bool,
    capacities: Option<Arc<Capacities>>,
}

impl Topology {
    /// Builds from one place per CPU. A core must lie within one cluster, a cluster within one LLC, an LLC within one
    /// node.
    pub fn new(places: Vec<CpuPlace>) -> Result<Self, TopologyError> {
        if places.is_empty() {
            return Err(TopologyError::Empty);
        }
        if places.len() > MAX_CPUS {
            return Err(TopologyError::TooMany(places.len()));
        }
        nested(&places, "core", |p| p.core, "llc", |p| p.llc)?;
        nested(&places, "core", |p| p.core, "cluster", |p| p.cluster)?;
        nested(&places, "cluster", |p| p.cluster, "llc", |p| p.llc)?;
        nested(&places, "llc", |p| p.llc, "node", |p| p.node)?;
        let smt = sharing(&places, |p| p.core);
        let cluster = sharing(&places, |p| p.cluster);
        let llc = sharing(&places, |p| p.llc);
        let is_clustered = |cpu: usize| cluster[cpu].count() > smt[cpu].count();
        let unit = |cpu: usize| if is_clustered(cpu) { &cluster[cpu] } else { &llc[cpu] };
        let share_id = (0..places.len()).map(|cpu| unit(cpu).lowest().unwrap_or_default()).collect();
        Ok(Topology {
            has_clusters: (0..places.len()).any(is_clustered),
            capacities: None,
            share_id,
            smt,
            cluster,
            llc,
            node: sharing(&places, |p| p.node),
            all: CpuMask::first(places.len()),
            places: places.into(),
        })
    }

    /// The same CPUs with these capacities. If all are equal there is nothing to keep.
    pub fn with_capacities(self, capacities: Capacities) -> Result<Self, CapacityError> {
        let of = capacities.all();
        if let Some(cpu) = (0..self.nr_cpus()).find(|cpu| of.get(*cpu).is_none()) {
            return Err(CapacityError::NotOnce(cpu as u32));
        }
        if of.iter().max() != Some(&FULL_CAPACITY) || of.contains(&0) {
            return Err(CapacityError::NotScaled);
        }
        let differ = capacities.differ_in(&self.all);
        if differ && self.smt.iter().any(|threads| threads.count() > 1) {
            return Err(CapacityError::Smt);
        }
        Ok(Topology { capacities: differ.then(|| Arc::new(capacities)), ..self })
    }

    /// The capacities of the CPUs, if they differ.
    #[inline]
    #[must_use]
    pub fn capacities(&self) -> Option<&Capacities> {
        self.capacities.as_deref()
    }

    /// The capacity of a CPU, of 1024 (`arch_scale_cpu_capacity`).
    #[inline]
    #[must_use]
    pub fn capacity(&self, cpu: CpuId) -> u32 {
        self.capacities.as_ref().map_or(FULL_CAPACITY, |capacities| capacities.of(cpu))
    }

    /// The same CPUs with this many cores in each cluster, counted within each last-level cache.
    pub fn clustered(&self, cores_per_cluster: u32) -> Result<Self, TopologyError> {
        let mut cores = std::collections::BTreeMap::<u32, Vec<u32>>::new();
        for place in &self.places {
            let of_llc = cores.entry(place.llc).or_default();
            if !of_llc.contains(&place.core) {
                of_llc.push(place.core);
            }
        }
        let first_of_cluster = |place: &CpuPlace| {
            let of_llc = &cores[&place.llc];
            let nth = of_llc.iter().position(|core| *core == place.core).unwrap_or(0);
            of_llc[nth - nth % cores_per_cluster.max(1) as usize]
        };
        let places = self.places.iter().map(|place| CpuPlace { cluster: first_of_cluster(place), ..*place });
        Ok(Topology { capacities: self.capacities.clone(), ..Topology::new(places.collect())? })
    }

    /// The machine without clusters, for kernels that have no cluster domains.
    #[must_use]
    pub fn without_clusters(&self) -> Self {
        let llc_ids = self.llc.iter().map(|llc| llc.lowest().unwrap_or_default()).collect();
        let places = self.places.iter().map(|place| CpuPlace { cluster: place.core, ..*place }).collect();
        Topology { places, cluster: self.smt.clone(), share_id: llc_ids, has_clusters: false, ..self.clone() }
    }

    /// The machine while only some CPUs are active (`cpu_active_mask`). The others share nothing with any CPU, are in
    /// no mask but their own and have no domains. [`Topology::node`] of such a CPU has the active CPUs of its node.
    #[must_use]
    pub fn with_active(&self, active: &CpuMask) -> Self {
        let active = active.and(&self.all);
        let free = self.places.iter().map(|place| place.core.max(place.cluster).max(place.llc) + 1).max().unwrap_or(0);
        let place = |(at, place): (usize, &CpuPlace)| {
            let own = free + at as u32;
            match active.has(CpuId(at as u32)) {
                true => *place,
                false => CpuPlace { core: own, cluster: own, llc: own, ..*place },
            }
        };
        let of = |masks: &[CpuMask]| -> Table<CpuMask> {
            let each = self.cpus().zip(masks);
            each.map(|(cpu, mask)| if active.has(cpu) { mask.and(&active) } else { CpuMask::from_iter([cpu]) })
                .collect()
        };
        let (smt, cluster, llc) = (of(&self.smt), of(&self.cluster), of(&self.llc));
        let is_clustered = |cpu: usize| cluster[cpu].count() > smt[cpu].count();
        let unit = |cpu: usize| if is_clustered(cpu) { &cluster[cpu] } else { &llc[cpu] };
        Topology {
            places: self.places.iter().enumerate().map(place).collect(),
            share_id: (0..self.nr_cpus()).map(|cpu| unit(cpu).lowest().unwrap_or_default()).collect(),
            has_clusters: (0..self.nr_cpus()).any(is_clustered),
            node: self.node.iter().map(|mask| mask.and(&active)).collect(),
            all: active,
            capacities: self.capacities.clone(),
            smt,
            cluster,
            llc,
        }
    }

    /// Every CPU, whether active or not.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> {
        (0..self.places.len() as u32).map(CpuId)
    }

    /// A regular machine: every unit has the same number of the next smaller one. CPUs are numbered core-major with
    /// the threads of a core adjacent when `adjacent_threads` (POWER), else thread-major over all cores (x86).
    pub fn regular(
        nodes: u32,
        llcs_per_node: u32,
        cores_per_llc: u32,
        threads_per_core: u32,
        adjacent_threads: bool,
    ) -> Result<Self, TopologyError> {
        let counts = [nodes, llcs_per_node, cores_per_llc, threads_per_core];
        let total = counts.iter().try_fold(1usize, |n, c| n.checked_mul(*c as usize)).unwrap_or(usize::MAX);
        if total > MAX_CPUS {
            return Err(TopologyError::TooMany(total));
        }
        let cores = nodes * llcs_per_node * cores_per_llc;
        let place = |core: u32| {
            let llc = core / cores_per_llc;
            let node = llc / llcs_per_node;
            CpuPlace { core, cluster: core, llc, socket: node, node }
        };
        let cpus = if adjacent_threads {
            (0..cores * threads_per_core).map(|cpu| place(cpu / threads_per_core)).collect()
        } else {
            (0..threads_per_core).flat_map(|_| (0..cores).map(place)).collect()
        };
        Topology::new(cpus)
    }

    /// Number of CPUs, at least 1.
    #[must_use]
    pub fn nr_cpus(&self) -> usize {
        self.places.len()
    }

    /// Where a CPU sits.
    #[must_use]
    pub fn place(&self, cpu: CpuId) -> CpuPlace {
        self.places[cpu.index()]
    }

    /// Every CPU that is active.
    #[must_use]
    pub fn all(&self) -> &CpuMask {
        &self.all
    }

    /// The threads of the CPU's core, itself included (`cpu_smt_mask`).
    #[must_use]
    pub fn smt(&self, cpu: CpuId) -> &CpuMask {
        &self.smt[cpu.index()]
    }

    /// Whether any cluster has more than one core (`sched_cluster_active`).
    #[inline]
    #[must_use]
    pub fn has_clusters(&self) -> bool {
        self.has_clusters
    }

    /// The CPUs of the same cluster, itself included; without clusters the threads of the core.
    #[must_use]
    pub fn cluster(&self, cpu: CpuId) -> &CpuMask {
        &self.cluster[cpu.index()]
    }

    /// Whether two CPUs share a cluster, or a last-level cache where there are no clusters (`cpus_share_resources`).
    #[inline]
    #[must_use]
    pub fn share_resources(&self, a: CpuId, b: CpuId) -> bool {
        self.share_id[a.index()] == self.share_id[b.index()]
    }

    /// The CPUs under the same last-level cache, itself included (`sd_llc` span).
    #[must_use]
    pub fn llc(&self, cpu: CpuId) -> &CpuMask {
        &self.llc[cpu.index()]
    }

    /// The CPUs of the same NUMA node, itself included.
    #[must_use]
    pub fn node(&self, cpu: CpuId) -> &CpuMask {
        &self.node[cpu.index()]
    }

    /// Whether two CPUs share a last-level cache (`cpus_share_cache`).
    #[inline]
    #[must_use]
    pub fn share_llc(&self, a: CpuId, b: CpuId) -> bool {
        self.places[a.index()].llc == self.places[b.index()].llc
    }

    /// How far apart two CPUs are.
    #[inline]
    #[must_use]
    pub fn distance(&self, a: CpuId, b: CpuId) -> Distance {
        if a == b {
            return Distance::Same;
        }
        let (p, q) = (&self.places[a.index()], &self.places[b.index()]);
        if p.core == q.core {
            Distance::Smt
        } else if p.llc == q.llc {
            Distance::Llc
        } else if p.node == q.node {
            Distance::Node
        } else {
            Distance::Remote
        }
    }

    /// The scheduling domains of a CPU, smallest first, levels that add no CPU dropped (`build_sched_domains`).
    #[must_use]
    pub fn domains(&self, cpu: CpuId) -> Vec<(Level, CpuMask)> {
        let i = cpu.index();
        if !self.all.has(cpu) {
            return Vec::new();
        }
        let spans = [
            (Level::Smt, self.smt[i]),
            (Level::Cls, self.cluster[i]),
            (Level::Mc, self.llc[i]),
            (Level::Pkg, self.node[i]),
            (Level::Numa, self.all),
        ];
        let mut levels: Vec<(Level, CpuMask)> = Vec::new();
        for (level, span) in spans {
            if span.count() > levels.last().map_or(1, |(_, below)| below.count()) {
                levels.push((level, span));
            }
        }
        levels
    }
}

fn sharing(places: &[CpuPlace], unit: fn(&CpuPlace) -> u32) -> Table<CpuMask> {
    let mut masks = std::collections::BTreeMap::<u32, CpuMask>::new();
    for (cpu, place) in places.iter().enumerate() {
        masks.entry(unit(place)).or_default().set(CpuId(cpu as u32));
    }
    places.iter().map(|place| masks[&unit(place)]).collect()
}

fn nested(
    places: &[CpuPlace],
    inner: &'static str,
    inner_of: fn(&CpuPlace) -> u32,
    outer: &'static str,
    outer_of: fn(&CpuPlace) -> u32,
) -> Result<(), TopologyError> {
    let mut home = std::collections::BTreeMap::new();
    for place in places {
        let number = inner_of(place);
        if *home.entry(number).or_insert(outer_of(place)) != outer_of(place) {
            return Err(TopologyError::Straddles { inner, number, outer });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_not_active_shares_nothing() {
        let all = Topology::regular(2, 1, 2, 2, true).unwrap();
        let t = all.with_active(&CpuMask::from_list("0,2-7").unwrap());
        let away = CpuId(1);
        assert_eq!((t.all().to_list().as_str(), t.domains(away).len()), ("0,2-7", 0));
        assert_eq!([t.smt(CpuId(0)), t.llc(CpuId(0)), t.node(away)].map(CpuMask::to_list), ["0", "0,2-3", "0,2-3"]);
        assert!(!t.share_llc(away, CpuId(0)) && !t.share_resources(away, CpuId(0)) && t.share_llc(CpuId(0), CpuId(2)));
        // The levels of CPU 0: it has no sibling, so the threads add none.
        let spans = |cpu: u32| t.domains(CpuId(cpu)).iter().map(|(_, span)| span.count()).collect::<Vec<_>>();
        assert_eq!((spans(0), spans(2), spans(4)), (vec![3, 7], vec![2, 3, 7], vec![2, 4, 7]));
        // Everything is as before once it is back.
        let back = all.with_active(all.all());
        for cpu in all.cpus() {
            assert_eq!(back.domains(cpu), all.domains(cpu));
            assert!(
                back.place(cpu) == all.place(cpu)
                    && back.share_resources(cpu, CpuId(0)) == all.share_resources(cpu, CpuId(0))
            );
        }
    }

    #[test]
    fn x86_numbering_puts_siblings_half_the_machine_apart() {
        let t = Topology::regular(2, 1, 28, 2, false).unwrap();
        assert_eq!(t.nr_cpus(), 112);
        assert_eq!(t.smt(CpuId(0)).to_list(), "0,56");
        assert_eq!(t.llc(CpuId(0)).to_list(), "0-27,56-83");
        assert_eq!(t.distance(CpuId(0), CpuId(56)), Distance::Smt);
        assert_eq!(t.distance(CpuId(0), CpuId(28)), Distance::Remote);
        let levels: Vec<Level> = t.domains(CpuId(0)).iter().map(|d| d.0).collect();
        assert_eq!(levels, [Level::Smt, Level::Mc, Level::Numa]);
    }

    #[test]
    fn a_cluster_is_a_level_between_core_and_cache() {
        let t = Topology::regular(1, 1, 8, 2, false).unwrap().clustered(4).unwrap();
        assert_eq!(t.cluster(CpuId(9)).to_list(), "0-3,8-11");
        let levels: Vec<(Level, usize)> = t.domains(CpuId(0)).iter().map(|d| (d.0, d.1.count())).collect();
        assert_eq!(levels, [(Level::Smt, 2), (Level::Cls, 8), (Level::Mc, 16)]);
        assert!(t.share_resources(CpuId(0), CpuId(11)) && !t.share_resources(CpuId(0), CpuId(4)));
        let flat = t.without_clusters();
        assert!(!flat.has_clusters() && flat.share_resources(CpuId(0), CpuId(4)));
        assert_eq!(flat.domains(CpuId(0)).len(), 2);
        // One core per cluster is none, and one cluster per cache takes the cache's place.
        assert!(!Topology::regular(1, 1, 4, 1, true).unwrap().clustered(1).unwrap().has_clusters());
        let whole = Topology::regular(1, 1, 4, 1, true).unwrap().clustered(4).unwrap();
        assert_eq!(whole.domains(CpuId(0)).len(), 1);
    }

    /// Some CPUs in clusters beside others in none, as cores of an x86 hybrid: those without share the cache.
    #[test]
    fn cpus_without_a_cluster_share_their_cache() {
        let place = |core, cluster| CpuPlace { core, cluster, llc: 0, socket: 0, node: 0 };
        let t = Topology::new(vec![place(0, 0), place(1, 1), place(2, 2), place(3, 2)]).unwrap();
        assert!(t.share_resources(CpuId(0), CpuId(1)) && t.share_resources(CpuId(2), CpuId(3)));
        assert!(!t.share_resources(CpuId(1), CpuId(2)));
    }

    #[test]
    fn one_cpu_has_no_domain() {
        assert!(Topology::regular(1, 1, 1, 1, true).unwrap().domains(CpuId(0)).is_empty());
    }

    #[test]
    fn impossible_machines_are_refused() {
        let place = |core, llc, node| CpuPlace { core, cluster: core, llc, socket: node, node };
        assert_eq!(Topology::new(vec![]).unwrap_err(), TopologyError::Empty);
        let split = Topology::new(vec![place(0, 0, 0), place(0, 1, 0)]).unwrap_err();
        assert_eq!(split.to_string(), "core 0 spans two llcs");
        assert_eq!(Topology::regular(64, 64, 64, 8, true).unwrap_err(), TopologyError::TooMany(2_097_152));
    }
}
