//! System calls as sequences of kernel sections, and kernel work on memory.
//!
//! Where the kernel has check points follows from its code: the scan of a range of page tables checks the flag every
//! few entries, clearing a huge page at each of its 4 KiB, a read of the page cache between batches of folios. The work
//! between two such points is drawn with the machine's costs.

use schedlab_model::Nanos;
use schedlab_trace::{Call, Kind, Sink};
use schedlab_workload::{Amount, MemoryWork, Op, Section, SectionContext};

use super::block::wait_once;
use super::kernel_lock::kernel_unlock;
use super::mmap_lock::holds_mmap_lock;
use super::objects::Object;
use super::position::{Next, UNMAP_PAGES_NEXT};
use super::running::Running;
use crate::kernel::{self, Wait};
use crate::machine::{Mode, WORK_SHIFT};

/// 4 KiB pages of `copy_pte_range` between two checks of the flag (`progress` counts 8 for each, up to 32).
const COPY_PAGES: u64 = 4;
/// Pages that `tlb_batch_pages_flush` frees between two cond_resched() (MAX_NR_FOLIOS_PER_FREE).
const FREE_PAGES: u64 = 512;
/// KiB of a folio that `filemap_read` copies: the page cache is assumed to have folios of 4 KiB.
const FOLIO_KIB: u64 = 4;
/// KiB of a huge page that are cleared between two cond_resched().
const CLEAR_KIB: u64 = 4;

/// A section or work on memory begins.
pub fn begin_section<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    match op {
        Op::Call => x.kernel_call(0),
        Op::Section { amount, section, .. } => {
            let work = x.amount(amount);
            set_points(x, section.might_sleep, u64::from(section.every));
            let mode = mode_of(section);
            if mode == Mode::IrqOff {
                kernel::local_irq_disable(x.kernel);
            }
            Next::Work(mode, work)
        }
        Op::Memory { work, kib } => begin_memory(x, work, u64::from(kib)),
        _ => Next::Done,
    }
}

fn begin_memory<S: Sink>(x: &mut Running<S>, work: MemoryWork, kib: u64) -> Next {
    let (costs, dice) = (&x.machine.costs, &mut x.kernel.tasks[x.task.index()].dice);
    let pages = kib.div_ceil(4);
    let (call, body, every) = match work {
        MemoryWork::Map => (costs.fault.draw(dice), 0, 0),
        MemoryWork::Zero if kib > 4 => {
            let clear = costs.clear_kib.draw(dice);
            (costs.fault.draw(dice), clear * kib, clear * CLEAR_KIB)
        }
        MemoryWork::Zero => {
            let work = costs.clear_kib.draw(dice) * kib + costs.fault.draw(dice);
            let folios = x.kernel.folio_batch;
            let drains = folio_add_lru(x);
            let (call, work) = x.kernel.points.allocating_fault(drains, folios, work);
            return x.fault(call, kib, work);
        }
        MemoryWork::Mmap => (costs.syscall.draw(dice) + costs.mmap.draw_any(dice), 0, 0),
        MemoryWork::Unmap => {
            let locked = holds_mmap_lock(x);
            x.position().phase = if locked { UNMAP_PAGES_NEXT } else { 0 };
            let pages = if locked { Next::Work(Mode::Kernel, 0) } else { begin_unmap_pages(x, kib) };
            let (costs, dice) = (&x.machine.costs, &mut x.kernel.tasks[x.task.index()].dice);
            let call = costs.syscall.draw(dice) + costs.munmap.draw_any(dice);
            return match pages {
                Next::Batches(batches, pages) => Next::Batches(batches, call + pages),
                _ => Next::Work(Mode::Kernel, call),
            };
        }
        MemoryWork::CopyPageTables => {
            let page = costs.copy_page_table.draw(dice);
            (costs.syscall.draw(dice), page * pages, page * COPY_PAGES)
        }
        MemoryWork::ReadFile => {
            let copy = costs.read_kib.draw(dice);
            let folios = u64::from(x.kernel.folio_batch);
            (costs.syscall.draw(dice), copy * kib, copy * FOLIO_KIB * folios)
        }
    };
    set_points(x, false, every);
    if matches!(work, MemoryWork::Map | MemoryWork::Zero) {
        return x.fault(Call::Fault, kib, call + body);
    }
    Next::Batches(0, call + body)
}

/// The part of a munmap that clears the entries of present pages and frees the pages.
pub fn begin_unmap_pages<S: Sink>(x: &mut Running<S>, kib: u64) -> Next {
    let (costs, dice) = (&x.machine.costs, &mut x.kernel.tasks[x.task.index()].dice);
    let pages = kib.div_ceil(4);
    let page = costs.unmap_page.draw(dice);
    let zap = costs.zap_page.draw(dice);
    let segment = &mut x.machine.cpus[x.cpu.index()].segment;
    // zap_pte_range() checks the flag at every page and returns to a cond_resched().
    segment.every_before = zap.min(u64::from(u32::MAX)) as u32;
    segment.tail = (page * pages) << WORK_SHIFT;
    let batches = x.kernel.points.free_batch();
    let free = if batches == 0 { FREE_PAGES } else { u64::from(x.kernel.folio_batch) };
    set_points(x, false, page * free);
    Next::Batches(batches, (zap + page) * pages)
}

/// A page that was allocated joins the CPU's batch of those that are not yet on a list of reclaim (`folio_add_lru`);
/// whether the batch is full, and is put on one. Pages that munmap takes off the batch are not subtracted.
fn folio_add_lru<S: Sink>(x: &mut Running<S>) -> bool {
    let batch = &mut x.kernel.cpus[x.cpu.index()].lru_add;
    *batch += 1;
    let full = *batch >= x.kernel.folio_batch;
    if full {
        *batch = 0;
    }
    full
}

fn set_points<S: Sink>(x: &mut Running<S>, might_sleep: bool, every: u64) {
    let segment = x.segment();
    (segment.might_sleep, segment.every) = (might_sleep, every.min(u64::from(u32::MAX)) as u32);
}

impl<S: Sink> Running<'_, '_, S> {
    /// A page fault of this length begins. The sections of one of 2 MiB were not measured.
    fn fault(&mut self, call: Call, kib: u64, work: Nanos) -> Next {
        let pid = self.task().pid;
        self.kernel.emit(self.run, self.cpu, Kind::Fault { pid, kib: kib as u32, major: false });
        Next::Call(if kib == FOLIO_KIB { self.kernel.points.call(call, kib as u32) } else { 0 }, work)
    }

    /// A major page fault begins: it finds that the page is not in memory.
    pub fn begin_major_fault(&mut self) -> Next {
        let pid = self.task().pid;
        self.kernel.emit(self.run, self.cpu, Kind::Fault { pid, kib: FOLIO_KIB as u32, major: true });
        let dice = &mut self.kernel.tasks[self.task.index()].dice;
        Next::Call(self.kernel.points.call(Call::Fault, FOLIO_KIB as u32), self.machine.costs.fault.draw(dice))
    }

    /// `filemap_fault` waits for the page; after that the fault is retried and maps it. The disk serves `depth`
    /// requests at once, and interrupts the CPU that submitted the request:
    ///
    /// ```text
    /// done = max(now, the earliest end among those that it serves) + service
    /// ```
    pub fn wait_for_disk(&mut self, object: u32, service: Amount) -> Next {
        let (service, now) = (self.amount(service), self.local_time());
        let Object::Disk(served) = self.object(object) else { return Next::Done };
        let Some(first) = served.iter_mut().min() else { return Next::Done };
        *first = now.max(*first).saturating_add(service);
        let done = *first;
        self.task().in_iowait = true;
        kernel::start_device(self.run, self.machine, self.kernel, self.cpu, self.task, done);
        wait_once(self, Wait::Object(object))
    }
}

/// The section is over. True: the call returns to user mode.
pub fn end_section<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    let segment = x.segment();
    (segment.every, segment.every_before) = (0, 0);
    match op {
        Op::Section { section, last, .. } => {
            if section.context == SectionContext::IrqOff {
                kernel::local_irq_enable(x.run, x.kernel, x.cpu);
            }
            last
        }
        Op::KernelUnlock { object, last } => {
            kernel_unlock(x, object);
            last
        }
        // The rest of fork follows.
        Op::Memory { work, .. } => work != MemoryWork::CopyPageTables,
        _ => false,
    }
}

fn mode_of(section: Section) -> Mode {
    match section.context {
        SectionContext::Preemptible => Mode::Kernel,
        SectionContext::Spinlock => Mode::Locked,
        SectionContext::PreemptOff => Mode::PreemptOff,
        SectionContext::IrqOff => Mode::IrqOff,
    }
}
