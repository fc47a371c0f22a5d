//! The pages of an address space: on which node each of them is, which ones the scan has made inaccessible, and which
//! task used them last.
//!
//! A task uses the pages of its own mapping and those of the mapping that its process shares one after the other, over
//! and over, all of them once in `pass` of its time in user mode. Tasks begin at different places.

use schedlab_model::{CpuId, Nanos};

use super::Node;
use crate::jiffies::Jiffies;

/// The memory of a task, as the caller states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NumaMemory {
    /// Pages of 4 KiB that only the task uses.
    pub private: u32,
    /// Pages of 4 KiB that the tasks of its process share.
    pub shared: u32,
    /// The user time in which it uses each of them once.
    pub pass: Nanos,
    /// The node on which they are at the start; `None`: each is on the node of the CPU that uses it first.
    pub node: Option<u32>,
    /// Whether they are huge pages of 2 MiB.
    pub huge: bool,
}

/// `last_cpupid` of a page: the CPU and the task (by its birth) of its last hinting fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CpuPid {
    pub cpu: CpuId,
    pub birth: u64,
}

/// A page, small or huge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// `ABSENT`: no task has used it.
    node: u16,
    /// `pte_protnone`.
    pub protnone: bool,
    last_cpu: u32,
    /// 0: none.
    last_birth: u64,
}

const ABSENT: u16 = u16::MAX;
/// Pages of 4 KiB in a huge page.
const HUGE: usize = 512;

impl Page {
    pub fn node(&self) -> Option<Node> {
        (self.node != ABSENT).then_some(self.node as Node)
    }

    /// `folio_last_cpupid`.
    pub fn folio_last_cpupid(&self) -> Option<CpuPid> {
        (self.last_birth != 0).then_some(CpuPid { cpu: CpuId(self.last_cpu), birth: self.last_birth })
    }

    /// `folio_xchg_last_cpupid`.
    pub fn folio_xchg_last_cpupid(&mut self, last: CpuPid) {
        (self.last_cpu, self.last_birth) = (last.cpu.0, last.birth);
    }
}

/// A mapping (`struct vm_area_struct`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Vma {
    pub pages: Vec<Page>,
    /// Pages of 4 KiB in each of them.
    pub per: usize,
    /// Whether all threads use it.
    shared: bool,
    /// Pages that the scan has made inaccessible.
    pub protnone: usize,
    /// Pages that nobody has used yet.
    absent: usize,
    /// Pages on each node.
    pub on: Vec<usize>,
    /// `vma->numab_state`, once it was scanned.
    pub numab: Option<Numab>,
}

/// `struct vma_numab_state`: the tasks whose faults there are recent, as bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numab {
    pub next_scan: Jiffies,
    pub reset: Jiffies,
    pub pids_active: [u64; 2],
    pub start_scan_seq: u64,
    /// The pass in which it was scanned completely.
    pub prev_scan_seq: Option<u64>,
}

/// An address space (`struct mm_struct`).
#[derive(Clone, Debug)]
pub(crate) struct Mm {
    pub users: u32,
    pub next_scan: Jiffies,
    pub scan_seq: u64,
    /// `numa_scan_offset`: a mapping, and a page in it.
    pub scan_offset: (usize, usize),
    pub vmas: Vec<Vma>,
}

/// The mappings that a task uses, and how far it has come.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub vmas: Vec<usize>,
    pub pass: Nanos,
    /// All of it, in pages of 4 KiB.
    pub total: usize,
    /// The place of its next use, in pages of 4 KiB.
    pub at: usize,
    /// Time that was no whole page, times `total`.
    pub rest: u64,
}

impl Vma {
    fn new(pages_4k: u32, memory: &NumaMemory, shared: bool, nodes: usize) -> Vma {
        let per = if memory.huge { HUGE } else { 1 };
        let count = (pages_4k as usize).div_ceil(per);
        let node = memory.node.map_or(ABSENT, |node| node as u16);
        let page = Page { node, protnone: false, last_cpu: 0, last_birth: 0 };
        let mut on = vec![0; nodes];
        let absent = match memory.node {
            Some(node) => {
                on[node as usize] = count;
                0
            }
            None => count,
        };
        Vma { pages: vec![page; count], per, shared, protnone: 0, absent, on, numab: None }
    }

    /// In pages of 4 KiB.
    pub fn len(&self) -> usize {
        self.pages.len() * self.per
    }

    /// Whether the use of a page may be a fault.
    pub fn may_fault(&self) -> bool {
        self.protnone > 0 || self.absent > 0
    }

    /// The first use of a page by a CPU of the node.
    pub fn touch(&mut self, page: usize, node: Node) {
        self.pages[page].node = node as u16;
        self.absent -= 1;
        self.on[node] += 1;
    }

    /// The page is accessible again.
    pub fn clear_protnone(&mut self, page: usize) {
        self.pages[page].protnone = false;
        self.protnone -= 1;
    }

    /// Moves a page to another node.
    pub fn migrate(&mut self, page: usize, to: Node) {
        let Some(from) = self.pages[page].node() else { return };
        self.on[from] -= 1;
        self.on[to] += 1;
        self.pages[page].node = to as u16;
    }

    /// `change_prot_numa` of some pages, except those on the node `but` (`target_node`); how many entries it changed.
    pub fn change_prot_numa(&mut self, pages: std::ops::Range<usize>, but: Option<Node>) -> usize {
        let mut changed = 0;
        let but = but.map_or(ABSENT, |node| node as u16);
        for page in &mut self.pages[pages] {
            if !page.protnone && page.node != ABSENT && page.node != but {
                page.protnone = true;
                changed += 1;
            }
        }
        self.protnone += changed;
        changed
    }

    fn unmap(&mut self) {
        let nodes = self.on.len();
        *self = Vma { per: self.per, on: vec![0; nodes], ..Vma::default() };
    }
}

impl Mm {
    pub fn new(next_scan: Jiffies) -> Mm {
        Mm { users: 0, next_scan, scan_seq: 0, scan_offset: (0, 0), vmas: Vec::new() }
    }

    /// Maps the memory of a new task.
    pub fn map(&mut self, memory: &NumaMemory, birth: u64, nodes: usize) -> Use {
        let mut vmas = Vec::new();
        if memory.shared > 0 {
            let known = self.vmas.iter().position(|vma| vma.shared);
            vmas.push(known.unwrap_or_else(|| self.add(Vma::new(memory.shared, memory, true, nodes))));
        }
        if memory.private > 0 {
            vmas.push(self.add(Vma::new(memory.private, memory, false, nodes)));
        }
        let total = vmas.iter().map(|vma| self.vmas[*vma].len()).sum::<usize>();
        // The golden ratio spreads any number of beginnings evenly.
        let begins = birth.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let at = (begins as usize).wrapping_mul(total) >> 32;
        Use { vmas, pass: memory.pass.max(1), total, at: at % total.max(1), rest: 0 }
    }

    fn add(&mut self, vma: Vma) -> usize {
        self.vmas.push(vma);
        self.vmas.len() - 1
    }

    /// Unmaps what only the exiting task has used.
    pub fn unmap(&mut self, uses: &Use) {
        for &vma in &uses.vmas {
            if !self.vmas[vma].shared {
                self.vmas[vma].unmap();
            }
        }
    }

    /// `get_mm_rss`, in pages of 4 KiB.
    pub fn get_mm_rss(&self) -> u64 {
        self.vmas.iter().map(|vma| (vma.pages.len() - vma.absent) * vma.per).sum::<usize>() as u64
    }

    /// Pages of 4 KiB by node.
    pub fn pages_by_node(&self, nodes: usize) -> Vec<u64> {
        let on = |node: Node| self.vmas.iter().map(|vma| (vma.on[node] * vma.per) as u64).sum();
        (0..nodes).map(on).collect()
    }
}

impl Use {
    /// How many pages it uses in so much time in user mode.
    pub fn advance(&mut self, user: Nanos) -> u64 {
        let done = u128::from(self.rest) + u128::from(user) * self.total as u128;
        self.rest = (done % u128::from(self.pass)) as u64;
        (done / u128::from(self.pass)) as u64
    }

    /// Of the pages that it uses in a pass, those on another node: (those, all).
    pub fn remote(&self, mm: &Mm, node: Node) -> (u64, u64) {
        let of = |vma: &usize| {
            let vma = &mm.vmas[*vma];
            let present = vma.pages.len() - vma.absent;
            ((present - vma.on[node]) * vma.per, vma.len())
        };
        self.vmas.iter().map(of).fold((0, 0), |sum, part| (sum.0 + part.0 as u64, sum.1 + part.1 as u64))
    }
}
