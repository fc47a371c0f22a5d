//! The scan of an address space: when a task does a part of it, and which pages it makes inaccessible
//! (`task_tick_numa`, `task_numa_work`, `task_scan_min`, `task_scan_start`, `task_scan_max`).
//!
//! A process is scanned for `scan_size` at a time by that of its threads which first finds, at a tick, that it has run
//! for its scan period and that the period of the process is over. From 6.4 on a thread leaves out mappings in which it
//! had no fault recently. If the process has a single thread, pages on the node of its CPU stay accessible
//! (`change_pte_range`, mm/mprotect.c).

use schedlab_model::{CpuId, Nanos, TaskId};

use super::memory::{Mm, Numab, Vma};
use super::{Node, Numa, NumaTask};
use crate::jiffies::Jiffies;
use crate::version::placement::NumaScan;

/// `MAX_SCAN_WINDOW`, in MiB a second.
const MAX_SCAN_WINDOW: u64 = 2560;
/// Pages of 4 KiB in a MiB.
const PAGES_PER_MIB: u64 = 256;
/// Pages of 4 KiB to whose multiple the end of a part is rounded up (HPAGE_SIZE).
const ALIGN: u64 = 512;

/// What a task scans.
struct Scan {
    birth: u64,
    nr_threads: u64,
    rule: NumaScan,
    now: Jiffies,
    /// `sysctl_numa_balancing_scan_delay`.
    delay: Jiffies,
    /// The node whose pages stay accessible: that of the CPU, if the process has a single thread.
    target_node: Option<Node>,
    /// Pages of 4 KiB that are left to change, and to look at.
    pages: i64,
    virtpages: i64,
    /// Entries looked at.
    looked_at: u64,
}

impl Numa {
    /// `task_tick_numa` of the running task, which has run for `runtime`.
    pub fn task_tick_numa(&mut self, task: TaskId, runtime: Nanos, jiffies: Jiffies) {
        let scans = |state: &&NumaTask| self.active && state.uses.is_some() && !state.work;
        let Some(state) = self.task(task).filter(scans) else { return };
        let (mm, group) = (state.mm, state.group);
        let period = state.scan_period * 1_000_000;
        if runtime <= state.node_stamp + period {
            return;
        }
        let start = (state.node_stamp == 0).then(|| self.task_scan_start(mm, group));
        let due = mm.and_then(|mm| self.mms.get(&mm)).is_some_and(|mm| jiffies >= mm.next_scan);
        let state = self.task_mut(task);
        state.scan_period = start.unwrap_or(state.scan_period);
        state.node_stamp += period;
        state.work = due;
    }

    /// Whether `task_numa_work` is due before the task returns to user mode.
    pub fn has_work(&self, task: TaskId) -> bool {
        self.task(task).is_some_and(|state| state.work)
    }

    /// `task_numa_work` of the running task; returns how many entries of page tables it examined, which the caller
    /// charges with `per_entry` each.
    pub fn task_numa_work(&mut self, task: TaskId, cpu: CpuId, birth: u64, per_entry: Nanos, jiffies: Jiffies) -> u64 {
        let node = self.node(cpu);
        let (delay, rule) = (self.msecs_to_jiffies(self.tuning.scan_delay), self.rules.numa_scan);
        let state = self.task_mut(task);
        state.work = false;
        let (mm, group) = (state.mm, state.group);
        let Some(next) = mm.and_then(|mm| self.mms.get(&mm)).map(|mm| mm.next_scan) else { return 0 };
        if jiffies < next {
            return 0;
        }
        if self.task_mut(task).scan_period == 0 {
            let period = self.task_scan_start(mm, group);
            self.task_mut(task).scan_period = period;
        }
        let (period, two_ticks) = (self.task_mut(task).scan_period, 2 * self.tick_nsec);
        let next = jiffies + self.msecs_to_jiffies(period);
        let state = self.task_mut(task);
        // Another thread should be the next one.
        state.node_stamp += two_ticks;
        let pages = (self.tuning.scan_size * PAGES_PER_MIB) as i64;
        let Some(mm) = mm.and_then(|mm| self.mms.get_mut(&mm)) else { return 0 };
        mm.next_scan = next;
        let nr_threads = u64::from(mm.users);
        let target_node = (mm.users == 1).then_some(node);
        let virtpages = pages * 8;
        let mut scan =
            Scan { birth, nr_threads, rule, now: jiffies, delay, target_node, pages, virtpages, looked_at: 0 };
        scan.walk(mm);
        // The run time is updated by ticks, so that the kernel notices what takes at least one: 3% of the time at most.
        let took = scan.looked_at * per_entry;
        self.task_mut(task).node_stamp += if took >= two_ticks / 2 { 32 * took } else { 0 };
        scan.looked_at
    }

    /// `task_nr_scan_windows`.
    fn task_nr_scan_windows(&self, mm: Option<u64>) -> u64 {
        let window = (self.tuning.scan_size * PAGES_PER_MIB).max(1);
        let rss = mm.and_then(|mm| self.mms.get(&mm)).map_or(0, Mm::get_mm_rss);
        rss.div_ceil(window).max(1)
    }

    /// `task_scan_min`, in ms.
    pub(crate) fn task_scan_min(&self, mm: Option<u64>) -> u64 {
        let size = self.tuning.scan_size.max(1);
        let windows = if size < MAX_SCAN_WINDOW { MAX_SCAN_WINDOW / size } else { 1 };
        (1000 / windows).max(self.tuning.scan_period_min / self.task_nr_scan_windows(mm))
    }

    /// `task_scan_start`.
    pub(crate) fn task_scan_start(&self, mm: Option<u64>, group: Option<usize>) -> u64 {
        let least = self.task_scan_min(mm);
        least.max(self.for_shared(least, group))
    }

    /// `task_scan_max`.
    pub(crate) fn task_scan_max(&self, mm: Option<u64>, group: Option<usize>) -> u64 {
        let most = self.tuning.scan_period_max / self.task_nr_scan_windows(mm);
        self.task_scan_min(mm).max(most.max(self.for_shared(most, group)))
    }

    /// A period grows with the tasks of the group and with the part of their faults that is shared.
    fn for_shared(&self, period: u64, group: Option<usize>) -> u64 {
        let Some(group) = group.and_then(|group| self.groups.get(group)) else { return period };
        let [shared, private] = [false, true].map(|private| group.by_kind(private).max(0) as u64);
        let scaled = u128::from(period) * u128::from(group.nr_tasks) * u128::from(shared + 1);
        // `numa_scan_period` has 32 bits.
        (scaled / u128::from(private + shared + 1)).min(u128::from(u32::MAX)) as u64
    }
}

impl Scan {
    fn walk(&mut self, mm: &mut Mm) {
        let (mut first, mut page) = mm.scan_offset;
        if first >= mm.vmas.len() {
            reset_ptenuma_scan(mm);
            (first, page) = (0, 0);
        }
        let mut skipped = false;
        if self.mappings(mm, (first, page), false, &mut skipped) {
            return;
        }
        // Nothing else is left: one of the mappings that were left out is scanned all the same.
        if self.rule == NumaScan::Forced && skipped && self.mappings(mm, (first, page), true, &mut skipped) {
            return;
        }
        reset_ptenuma_scan(mm);
    }

    /// The mappings from a page on. True: the work is done before their end.
    fn mappings(&mut self, mm: &mut Mm, from: (usize, usize), forced: bool, skipped: &mut bool) -> bool {
        let mut page = from.1;
        for index in from.0..mm.vmas.len() {
            let start = std::mem::take(&mut page);
            if mm.vmas[index].pages.is_empty() || !self.numab(mm, index) {
                continue;
            }
            if !forced && self.rule != NumaScan::All && !self.vma_is_accessed(mm, index) {
                *skipped = true;
                continue;
            }
            if let Some(stopped) = self.pages_of(&mut mm.vmas[index], start) {
                mm.scan_offset = (index, stopped);
                if stopped == mm.vmas[index].pages.len() {
                    mm.scan_offset = (index + 1, 0);
                }
                return true;
            }
            let seq = mm.scan_seq;
            if let Some(numab) = &mut mm.vmas[index].numab {
                numab.prev_scan_seq = Some(seq);
            }
            if forced {
                mm.scan_offset = (index + 1, 0);
                return true;
            }
        }
        false
    }

    /// The state of a mapping (6.4 and later); whether it may be scanned now.
    fn numab(&self, mm: &mut Mm, index: usize) -> bool {
        if self.rule == NumaScan::All {
            return true;
        }
        let seq = mm.scan_seq;
        let next_scan = self.now + self.delay;
        let new = Numab {
            next_scan,
            reset: next_scan + 4 * self.delay,
            pids_active: [0; 2],
            start_scan_seq: seq,
            prev_scan_seq: None,
        };
        let numab = mm.vmas[index].numab.get_or_insert(new);
        if seq > 0 && self.now < numab.next_scan {
            return false;
        }
        if seq > 0 && self.now > numab.reset {
            numab.reset += 4 * self.delay;
            numab.pids_active = [numab.pids_active[1], 0];
        }
        !(self.rule == NumaScan::Forced && numab.prev_scan_seq == Some(seq))
    }

    /// `vma_is_accessed`.
    fn vma_is_accessed(&self, mm: &Mm, index: usize) -> bool {
        let Some(numab) = mm.vmas[index].numab else { return true };
        let known = numab.pids_active[0] | numab.pids_active[1];
        let scanned = if self.rule == NumaScan::Forced { mm.scan_seq - numab.start_scan_seq } else { mm.scan_seq };
        let begun = mm.scan_offset.0 == index && mm.scan_offset.1 > 0;
        let long_ago = mm.scan_seq > numab.prev_scan_seq.unwrap_or(numab.start_scan_seq) + self.nr_threads;
        scanned < 2 || known & access_bit(self.birth) != 0 || self.rule == NumaScan::Forced && (begun || long_ago)
    }

    /// The pages of a mapping from one on. `Some`: where the work ended, if it is done before or at its end.
    fn pages_of(&mut self, vma: &mut Vma, mut start: usize) -> Option<usize> {
        while start < vma.pages.len() {
            let per = vma.per as u64;
            let end = (start as u64 * per + self.pages.max(0) as u64).next_multiple_of(ALIGN).div_ceil(per) as usize;
            let end = end.clamp(start + 1, vma.pages.len());
            let changed = vma.change_prot_numa(start..end, self.target_node);
            let size = ((end - start) as u64 * per) as i64;
            self.looked_at += (end - start) as u64;
            self.pages -= if changed > 0 { size } else { 0 };
            self.virtpages -= size;
            start = end;
            if self.pages <= 0 || self.virtpages <= 0 {
                return Some(start);
            }
        }
        None
    }
}

/// The bit of a task in `pids_active`; the kernel hashes its pid to one of 64.
pub(crate) fn access_bit(birth: u64) -> u64 {
    1 << (birth % 64)
}

/// `reset_ptenuma_scan`: the next pass begins.
fn reset_ptenuma_scan(mm: &mut Mm) {
    mm.scan_seq += 1;
    mm.scan_offset = (0, 0);
}
