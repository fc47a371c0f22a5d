//! The scheduling domains of a machine: which CPUs are balanced against each other, how often, and from which imbalance
//! on.
//!
//! kernel/sched/topology.c `sd_init`, 5.2 to 7.2: w = CPUs of the domain; interval w ms (up to 2w), times 16 on a busy
//! CPU (32 up to 5.9); imbalance_pct 110 (SMT) or 117 (125 above the cache up to 5.9); cache_nice_tries 0 (SMT), 1, 2
//! (NUMA).
//!
//! A domain's groups are its child domains (its CPUs at the lowest level); each CPU's list begins with its own group.
//! Domains of equal span share one object here; the state that the kernel keeps per CPU is [`DomainState`]. A CPU that
//! is not active has none. Not modelled: overlapping NUMA domains (one NUMA level spans all nodes, within reclaim
//! distance), isolated CPUs.

use schedlab_model::{CpuId, CpuMask, Level, Nanos, Table, Topology};

use crate::jiffies::Jiffies;
use crate::pelt::series::CAPACITY_SCALE;

/// The largest number of levels.
pub(crate) const MAX_LEVELS: usize = 5;

/// One span and its groups.
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    pub level: Level,
    pub span: CpuMask,
    pub weight: u32,
    pub groups: Vec<Group>,
    pub imbalance_pct: u32,
    pub cache_nice_tries: u32,
    /// NUMA only: the number of running tasks up to which an imbalance is tolerated (`imb_numa_nr`).
    pub imb_numa_nr: u32,
    /// CPUs with at least two tasks.
    pub overloaded: u32,
    /// It spans CPUs of different capacity (SD_ASYM_CPUCAPACITY).
    pub asym: bool,
}

/// A group of a domain (`struct sched_group`).
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Its CPUs in ascending order.
    pub cpus: Vec<CpuId>,
    pub mask: CpuMask,
    pub cores: u32,
    /// Its CPUs are the threads of one core (SD_SHARE_CPUCAPACITY of the child domain).
    pub smt: bool,
    /// Affinity kept a lower level from balancing it (`sgc->imbalance`).
    pub imbalance: bool,
    /// The capacity of its CPUs for the fair class, as last computed (`sgc->capacity`).
    pub capacity: u64,
    /// Before this time newidle passes do not update the capacity.
    pub next_update: Jiffies,
}

/// The state that a CPU keeps of one of its domains (the fields of `struct sched_domain` that change).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DomainState {
    pub last_balance: Jiffies,
    /// In ms.
    pub balance_interval: u64,
    pub nr_balance_failed: u32,
    pub max_newidle_lb_cost: Nanos,
    pub last_decay: Jiffies,
    pub newidle_call: u32,
    pub newidle_success: u32,
    pub newidle_ratio: u32,
    /// When the last 512 calls began, since boot.
    pub newidle_stamp: Nanos,
}

/// A CPU's domain at one level, and its own group in that domain.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    domain: u32,
    local: u32,
}

/// Every domain of the machine.
#[derive(Clone, Debug)]
pub(crate) struct Domains {
    domains: Table<Domain>,
    links: Table<[Link; MAX_LEVELS]>,
    depths: Table<u8>,
    states: Table<[DomainState; MAX_LEVELS]>,
    overload: bool,
    /// The level of each CPU's smallest domain with every capacity (`sd_asym_cpucapacity`); empty if all are equal.
    asym_levels: Vec<Option<u8>>,
}

impl Domain {
    /// SD_SHARE_CPUCAPACITY.
    pub fn is_smt(&self) -> bool {
        self.level == Level::Smt
    }

    /// SD_SHARE_PKG_RESOURCES, later SD_SHARE_LLC.
    pub fn shares_llc(&self) -> bool {
        self.level <= Level::Mc
    }

    /// SD_NUMA.
    pub fn is_numa(&self) -> bool {
        self.level == Level::Numa
    }
}

impl DomainState {
    /// The state after minutes of idleness: the domain was last balanced long ago, every pass found nothing to do and
    /// doubled the interval up to its maximum, and the cost of newidle balancing has decayed.
    pub(crate) fn new(weight: u32) -> Self {
        DomainState {
            last_balance: 0,
            balance_interval: 2 * u64::from(weight),
            nr_balance_failed: 0,
            max_newidle_lb_cost: 0,
            last_decay: 0,
            newidle_call: 512,
            newidle_success: 256,
            newidle_ratio: 512,
            newidle_stamp: 0,
        }
    }
}

impl Domains {
    /// The domains of a machine; `imbalance_pct` is that of the levels above the cache.
    pub fn new(topology: &Topology, imbalance_pct: u32) -> Self {
        let mut domains: Table<Domain> = Table::default();
        let (mut links, mut depths, mut states) = (Table::default(), Table::default(), Table::default());
        for cpu in topology.cpus() {
            let (mut link, mut state) = ([Link::default(); MAX_LEVELS], [DomainState::new(1); MAX_LEVELS]);
            let levels = topology.domains(cpu);
            for (at, (level, span)) in levels.iter().take(MAX_LEVELS).enumerate() {
                let known = domains.iter().rposition(|d| d.level == *level && d.span == *span);
                let index = known.unwrap_or_else(|| {
                    domains.push(build(topology, *level, *span, imbalance_pct));
                    domains.len() - 1
                });
                let local = domains[index].groups.iter().position(|group| group.mask.has(cpu)).unwrap_or(0);
                link[at] = Link { domain: index as u32, local: local as u32 };
                state[at] = DomainState::new(domains[index].weight);
            }
            links.push(link);
            states.push(state);
            depths.push(levels.len().min(MAX_LEVELS) as u8);
        }
        let mut built = Domains { domains, links, depths, states, overload: false, asym_levels: Vec::new() };
        if let Some(capacities) = topology.capacities() {
            let complete = |cpu: CpuId| {
                (0..built.depth(cpu)).find(|level| capacities.complete_in(&built.at(cpu, *level).span)).map(|l| l as u8)
            };
            built.asym_levels = topology.cpus().map(complete).collect();
            built.set_capacities(|cpu| u64::from(topology.capacity(cpu)));
        }
        built
    }

    /// The domains as they are built while the machine runs (`sd_init`): none has been balanced yet.
    pub fn rebuilt(topology: &Topology, imbalance_pct: u32, jiffies: Jiffies) -> Self {
        let mut built = Domains::new(topology, imbalance_pct);
        for state in built.states.iter_mut().flatten() {
            let weight = state.balance_interval / 2;
            (state.balance_interval, state.last_balance, state.last_decay) = (weight, jiffies, jiffies);
        }
        built
    }

    /// The level of the CPU's smallest domain that contains CPUs of every capacity, if capacities differ.
    #[inline]
    pub fn asym_level(&self, cpu: CpuId) -> Option<usize> {
        self.asym_levels.get(cpu.index()).copied().flatten().map(usize::from)
    }

    /// How many domains the CPU has.
    #[inline]
    pub fn depth(&self, cpu: CpuId) -> usize {
        usize::from(self.depths[cpu.index()])
    }

    /// The CPU's domain at `level`, 0 = lowest; `level` is below [`Domains::depth`].
    #[inline]
    pub fn at(&self, cpu: CpuId, level: usize) -> &Domain {
        &self.domains[self.links[cpu.index()][level].domain as usize]
    }

    /// Index of the CPU's own group in that domain.
    #[inline]
    pub fn local_group(&self, cpu: CpuId, level: usize) -> usize {
        self.links[cpu.index()][level].local as usize
    }

    /// The CPU's own group there.
    pub fn local_group_mut(&mut self, cpu: CpuId, level: usize) -> &mut Group {
        let Link { domain, local } = self.links[cpu.index()][level];
        &mut self.domains[domain as usize].groups[local as usize]
    }

    /// The state that the CPU keeps of that domain.
    #[inline]
    pub fn state(&self, cpu: CpuId, level: usize) -> &DomainState {
        &self.states[cpu.index()][level]
    }

    /// The same, mutable.
    #[inline]
    pub fn state_mut(&mut self, cpu: CpuId, level: usize) -> &mut DomainState {
        &mut self.states[cpu.index()][level]
    }

    /// The imbalance mark on the CPU's own group one level above `level` (`sd_parent->groups->sgc->imbalance`).
    pub fn parent_imbalance(&mut self, cpu: CpuId, level: usize) -> Option<&mut bool> {
        if level + 1 >= self.depth(cpu) {
            return None;
        }
        let Link { domain, local } = self.links[cpu.index()][level + 1];
        Some(&mut self.domains[domain as usize].groups[local as usize].imbalance)
    }

    /// Sets the imbalance marks of the CPU's own group in its domain of that level, if there is one, and of the group
    /// behind it.
    pub fn set_marks(&mut self, cpu: CpuId, level: usize, [own, next]: [Option<bool>; 2]) {
        if level < self.depth(cpu) {
            let Link { domain, local } = self.links[cpu.index()][level];
            let groups = &mut self.domains[domain as usize].groups;
            let behind = (local as usize + 1) % groups.len();
            for (group, mark) in [(behind, next), (local as usize, own)] {
                groups[group].imbalance = mark.unwrap_or(groups[group].imbalance);
            }
        }
    }

    /// The CPU's lowest domain that spans `other` too.
    pub fn common_level(&self, cpu: CpuId, other: CpuId) -> Option<usize> {
        (0..self.depth(cpu)).find(|level| self.at(cpu, *level).span.has(other))
    }

    /// The root domain's overload flag: set at once when a CPU gets its second task, cleared only by a balance pass
    /// over the highest domain.
    #[inline]
    pub fn overload(&self) -> bool {
        self.overload
    }

    /// Each CPU has this capacity, and each group that of its CPUs.
    pub fn set_capacities(&mut self, of: impl Fn(CpuId) -> u64) {
        for group in self.domains.iter_mut().flat_map(|domain| &mut domain.groups) {
            group.capacity = group.cpus.iter().map(|cpu| of(*cpu)).sum();
        }
    }

    /// Records whether a pass over the highest domain found any CPU with two tasks.
    pub fn set_overload(&mut self, overload: bool) {
        self.overload = overload;
    }

    /// A CPU received its second task, or has fewer than two again (`add_nr_running`, `sub_nr_running`).
    pub fn count_overloaded(&mut self, cpu: CpuId, overloaded: bool) {
        for level in 0..self.depth(cpu) {
            let domain = &mut self.domains[self.links[cpu.index()][level].domain as usize];
            domain.overloaded = if overloaded { domain.overloaded + 1 } else { domain.overloaded - 1 };
        }
        self.overload |= overloaded;
    }
}

fn build(topology: &Topology, level: Level, span: CpuMask, above_llc: u32) -> Domain {
    let groups = groups(topology, level, &span);
    let (imbalance_pct, cache_nice_tries) = match level {
        Level::Smt => (110, 0),
        Level::Cls | Level::Mc => (117, 1),
        Level::Pkg => (above_llc, 1),
        Level::Numa => (above_llc, 2),
    };
    let imb_numa_nr = if level == Level::Numa { imb_numa_nr(topology, &span) } else { 0 };
    let weight = span.count() as u32;
    let asym = topology.capacities().is_some_and(|capacities| capacities.differ_in(&span));
    Domain { level, span, weight, groups, imbalance_pct, cache_nice_tries, imb_numa_nr, overloaded: 0, asym }
}

/// The child domains of the span, or its CPUs where a CPU has no smaller domain.
fn groups(topology: &Topology, level: Level, span: &CpuMask) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut covered = CpuMask::default();
    for cpu in span.iter() {
        if covered.has(cpu) {
            continue;
        }
        let child = topology.domains(cpu).into_iter().rfind(|(l, _)| *l < level);
        let mask = child.map_or_else(|| CpuMask::from_iter([cpu]), |(_, mask)| mask);
        let cpus: Vec<CpuId> = mask.iter().collect();
        cpus.iter().for_each(|cpu| covered.set(*cpu));
        let first_of_core = |cpu: &&CpuId| topology.smt(**cpu).lowest() == Some(**cpu);
        let cores = cpus.iter().filter(first_of_core).count().max(1) as u32;
        let smt = child.is_some_and(|(l, _)| l == Level::Smt);
        let capacity = cpus.len() as u64 * CAPACITY_SCALE;
        groups.push(Group { cpus, mask, cores, smt, imbalance: false, capacity, next_update: 0 });
    }
    groups
}

/// `imb_numa_nr` of a NUMA domain: an eighth of a node's CPUs, or its number of last-level caches
/// (`build_sched_domains`).
fn imb_numa_nr(topology: &Topology, span: &CpuMask) -> u32 {
    let Some(cpu) = span.lowest() else { return 1 };
    let (node, llc) = (topology.node(cpu).count() as u32, topology.llc(cpu).count() as u32);
    let caches = node / llc.max(1);
    let allowed = if caches <= 1 { node >> 3 } else { caches };
    allowed.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sockets_with_smt() {
        let topology = Topology::regular(2, 1, 28, 2, false).unwrap();
        let domains = Domains::new(&topology, 117);
        let cpu = CpuId(29);
        let shape: Vec<(Level, u32, usize, u32)> = (0..domains.depth(cpu))
            .map(|level| domains.at(cpu, level))
            .map(|d| (d.level, d.weight, d.groups.len(), d.imb_numa_nr))
            .collect();
        assert_eq!(shape, [(Level::Smt, 2, 2, 0), (Level::Mc, 56, 28, 0), (Level::Numa, 112, 2, 7)]);
        assert_eq!(domains.local_group(cpu, 1), 1);
        assert_eq!(domains.at(cpu, 2).groups[1].cores, 28);
        assert!(domains.at(cpu, 1).groups[0].smt && !domains.at(cpu, 2).groups[0].smt);
        for (other, level) in [(85, Some(0)), (30, Some(1)), (0, Some(2))] {
            assert_eq!(domains.common_level(cpu, CpuId(other)), level);
        }
    }

    #[test]
    fn clusters_are_the_groups_of_their_cache() {
        let topology = Topology::regular(1, 1, 8, 1, true).unwrap().clustered(4).unwrap();
        let domains = Domains::new(&topology, 117);
        let of = |level| domains.at(CpuId(5), level);
        let shape = |d: &Domain| (d.level, d.weight, d.groups.len(), d.imbalance_pct, d.cache_nice_tries);
        assert_eq!([shape(of(0)), shape(of(1))], [(Level::Cls, 4, 4, 117, 1), (Level::Mc, 8, 2, 117, 1)]);
        assert_eq!(domains.common_level(CpuId(5), CpuId(6)), Some(0));
        assert_eq!(domains.common_level(CpuId(5), CpuId(3)), Some(1));
    }

    #[test]
    fn one_cpu_has_nothing_to_balance() {
        let topology = Topology::regular(1, 1, 1, 1, true).unwrap();
        assert_eq!(Domains::new(&topology, 117).depth(CpuId(0)), 0);
    }
}
