//! The idle CPUs as bit masks per last-level cache, and the state that the CPUs of a cache share (`struct
//! sched_domain_shared`).
//!
//! In the kernel `idle_cpu`, `available_idle_cpu` and `sched_idle_cpu` read three fields of a remote runqueue at every
//! test. Here every change of such a field is reported ([`IdleMap::set`]), so that a test reads one bit and the search
//! of a whole cache a few words. Bits are in CPU order within a cache, which is the order of the kernel's scans.

use std::collections::BTreeMap;
use std::ops::Range;

use schedlab_model::{CpuId, Table, Topology};

/// Index of a last-level cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LlcId(u32);

impl LlcId {
    /// The index, from 0, in the order of the caches' first CPUs.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The state that the CPUs of one last-level cache share (`struct sched_domain_shared`).
#[derive(Clone, Debug)]
pub(crate) struct Llc {
    /// Its CPUs in ascending order.
    pub cpus: Vec<CpuId>,
    /// A core became idle as a whole, and no search for one has failed since (`has_idle_cores`).
    pub has_idle_cores: bool,
    /// The number of CPUs that a search may test (`nr_idle_scan`). Before the first periodic balance: all of them, as
    /// after a long idle time (in the kernel the initial value is 0).
    pub nr_idle_scan: u32,
    /// The average duration of a search, in ns (`avg_scan_cost` of the domain).
    pub avg_scan_cost: u64,
    /// CPUs whose tick runs (`nr_busy_cpus`).
    pub nr_busy: u32,
    words: Range<usize>,
}

/// The threads of one core.
#[derive(Clone, Debug)]
struct Core {
    threads: Vec<CpuId>,
    idle: u32,
}

/// The position of a CPU's bits.
#[derive(Clone, Copy, Debug)]
struct Slot {
    llc: LlcId,
    rank: u32,
    core: u32,
    word: u32,
    bit: u32,
    /// The state last reported; most reports do not change it.
    state: Availability,
}

/// What the search for an idle CPU finds one to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Availability {
    /// Neither of the others.
    Busy,
    /// `sched_idle_cpu`, where that counts as idle.
    SchedIdle,
    /// `available_idle_cpu`.
    Idle,
}

impl Availability {
    /// Whether `available_idle_cpu` holds.
    #[inline]
    pub fn is_idle(self) -> bool {
        self == Availability::Idle
    }

    /// Whether `available_idle_cpu || sched_idle_cpu` holds.
    #[inline]
    pub fn is_usable(self) -> bool {
        self != Availability::Busy
    }
}

/// Idle state of every CPU.
#[derive(Clone, Default, Debug)]
pub(crate) struct IdleMap {
    slots: Table<Slot>,
    llcs: Table<Llc>,
    cores: Table<Core>,
    idle: Table<u64>,
    usable: Table<u64>,
    smt: bool,
}

impl IdleMap {
    /// Every CPU idle.
    pub fn new(topology: &Topology) -> Self {
        let mut map = IdleMap::default();
        map.add_llcs(topology);
        map.add_cores(topology);
        for cpu in topology.cpus() {
            map.set(cpu, Availability::Idle);
        }
        for llc in map.llcs.iter_mut() {
            llc.has_idle_cores = map.smt;
        }
        map
    }

    /// What the CPUs of a cache share as it is when domains are built while the machine runs (`claim_allocations`): no
    /// core is known to be idle, and nothing is searched before the next periodic balance.
    pub fn rebuilt(topology: &Topology) -> Self {
        let mut map = IdleMap::new(topology);
        for llc in map.llcs.iter_mut() {
            (llc.has_idle_cores, llc.nr_idle_scan) = (false, 0);
        }
        map
    }

    fn add_llcs(&mut self, topology: &Topology) {
        let mut numbers = BTreeMap::new();
        for cpu in topology.cpus() {
            let id = *numbers.entry(topology.place(cpu).llc).or_insert(LlcId(self.llcs.len() as u32));
            if id.0 as usize == self.llcs.len() {
                let cpus: Vec<CpuId> = topology.llc(cpu).iter().collect();
                let words = self.idle.len()..self.idle.len() + cpus.len().div_ceil(64);
                self.idle.resize(words.end, 0);
                let nr_idle_scan = cpus.len() as u32;
                self.llcs.push(Llc { cpus, has_idle_cores: false, nr_idle_scan, avg_scan_cost: 0, nr_busy: 0, words });
            }
            let llc = &self.llcs[id.0 as usize];
            let rank = llc.cpus.partition_point(|other| *other < cpu) as u32;
            let word = llc.words.start as u32 + rank / 64;
            self.slots.push(Slot { llc: id, rank, core: 0, word, bit: rank % 64, state: Availability::Busy });
        }
        self.usable = self.idle.clone();
    }

    fn add_cores(&mut self, topology: &Topology) {
        let mut numbers = BTreeMap::new();
        for cpu in topology.cpus() {
            let index = *numbers.entry(topology.place(cpu).core).or_insert(self.cores.len());
            if index == self.cores.len() {
                self.cores.push(Core { threads: topology.smt(cpu).iter().collect(), idle: 0 });
            }
            self.slots[cpu.index()].core = index as u32;
        }
        self.smt = self.cores.iter().any(|core| core.threads.len() > 1);
    }

    /// Reports a CPU's state.
    #[inline(always)]
    pub fn set(&mut self, cpu: CpuId, state: Availability) {
        if self.slots[cpu.index()].state != state {
            self.change(cpu, state);
        }
    }

    #[inline(never)]
    fn change(&mut self, cpu: CpuId, state: Availability) {
        let slot = &mut self.slots[cpu.index()];
        let before = std::mem::replace(&mut slot.state, state);
        let (word, bit) = (slot.word as usize, slot.bit);
        self.idle[word] ^= u64::from(before.is_idle() != state.is_idle()) << bit;
        self.usable[word] ^= u64::from(before.is_usable() != state.is_usable()) << bit;
        let core = &mut self.cores[slot.core as usize];
        core.idle = core.idle + u32::from(state.is_idle()) - u32::from(before.is_idle());
    }

    /// Whether the CPU is idle (`available_idle_cpu`).
    #[inline]
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        self.slots[cpu.index()].state.is_idle()
    }

    /// `available_idle_cpu || sched_idle_cpu`.
    #[inline]
    pub fn is_usable(&self, cpu: CpuId) -> bool {
        self.slots[cpu.index()].state.is_usable()
    }

    /// Whether any core has more than one thread (`sched_smt_active`).
    #[inline]
    pub fn smt_active(&self) -> bool {
        self.smt
    }

    /// The CPU's last-level cache.
    #[inline]
    pub fn llc_of(&self, cpu: CpuId) -> LlcId {
        self.slots[cpu.index()].llc
    }

    /// The state that the CPUs of the cache share.
    #[inline]
    pub fn llc(&self, llc: LlcId) -> &Llc {
        &self.llcs[llc.0 as usize]
    }

    /// The same, mutable.
    pub fn llc_mut(&mut self, llc: LlcId) -> &mut Llc {
        &mut self.llcs[llc.0 as usize]
    }

    /// The CPU's position among the CPUs of its cache.
    #[inline]
    pub fn rank(&self, cpu: CpuId) -> usize {
        self.slots[cpu.index()].rank as usize
    }

    /// The CPU's core, as an index below the number of cores.
    #[inline]
    pub fn core_of(&self, cpu: CpuId) -> usize {
        self.slots[cpu.index()].core as usize
    }

    /// Number of cores.
    pub fn nr_cores(&self) -> usize {
        self.cores.len()
    }

    /// The threads of the CPU's core, itself included, in ascending order.
    #[inline]
    pub fn threads(&self, cpu: CpuId) -> &[CpuId] {
        &self.cores[self.core_of(cpu)].threads
    }

    /// `is_core_idle`: every other thread of the core is idle.
    pub fn is_core_idle(&self, cpu: CpuId) -> bool {
        let core = &self.cores[self.core_of(cpu)];
        core.idle as usize + usize::from(!self.is_idle(cpu)) == core.threads.len()
    }

    /// `__update_idle_core`, called when the CPU's idle task is switched in.
    pub fn __update_idle_core(&mut self, cpu: CpuId) {
        if self.smt && self.is_core_idle(cpu) {
            let llc = self.llc_of(cpu);
            self.llc_mut(llc).has_idle_cores = true;
        }
    }

    /// The first usable CPU of the cache at rank `from` or after, wrapping round, and its distance from there in CPUs.
    pub fn next_usable(&self, llc: LlcId, from: usize) -> Option<(CpuId, usize)> {
        let llc = &self.llcs[llc.0 as usize];
        let words = &self.usable[llc.words.clone()];
        let size = llc.cpus.len();
        let rank = first_set(words, from).or_else(|| first_set(words, 0))?;
        Some((llc.cpus[rank], if rank >= from { rank - from } else { rank + size - from }))
    }
}

/// The first set bit at position `from` or above.
fn first_set(words: &[u64], from: usize) -> Option<usize> {
    let mut index = from / 64;
    let mut word = words.get(index)? & (!0u64 << (from % 64));
    loop {
        if word != 0 {
            return Some(index * 64 + word.trailing_zeros() as usize);
        }
        index += 1;
        word = *words.get(index)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_follow_the_cache_not_the_cpu_numbers() {
        // 2 sockets of 28 cores of 2 threads, siblings 56 apart: cache 0 is 0-27,56-83.
        let topology = Topology::regular(2, 1, 28, 2, false).unwrap();
        let mut map = IdleMap::new(&topology);
        let llc = map.llc_of(CpuId(56));
        assert_eq!((llc, map.rank(CpuId(56)), map.llc(llc).cpus.len()), (map.llc_of(CpuId(0)), 28, 56));
        for cpu in topology.all().iter() {
            map.set(cpu, Availability::Busy);
        }
        assert_eq!(map.next_usable(llc, 0), None);
        map.set(CpuId(83), Availability::Idle);
        map.set(CpuId(28), Availability::Idle);
        assert_eq!(map.next_usable(llc, 3), Some((CpuId(83), 52)));
        map.set(CpuId(1), Availability::SchedIdle);
        assert_eq!(map.next_usable(llc, 3), Some((CpuId(83), 52)));
        map.set(CpuId(83), Availability::Busy);
        assert_eq!(map.next_usable(llc, 3), Some((CpuId(1), 54)));
        assert!(map.is_usable(CpuId(1)) && !map.is_idle(CpuId(1)));
    }

    #[test]
    fn idle_core_hint_needs_every_sibling() {
        let topology = Topology::regular(1, 1, 2, 4, true).unwrap();
        let mut map = IdleMap::new(&topology);
        let llc = map.llc_of(CpuId(0));
        map.llc_mut(llc).has_idle_cores = false;
        map.set(CpuId(1), Availability::Busy);
        map.__update_idle_core(CpuId(0));
        assert!(!map.llc(llc).has_idle_cores);
        map.__update_idle_core(CpuId(1));
        assert!(map.llc(llc).has_idle_cores, "the CPU's own state is not asked");
    }
}
