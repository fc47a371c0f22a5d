//! What the memory stressors of stress-ng 0.15.06 share: a private anonymous mapping that is advised at random, read
//! into the page tables by MADV_POPULATE_READ, and then written.
//!
//! - The advice is one of 15 with equal probability (12,642 calls under strace). Two of them change what the writes
//!   meet: after MADV_POPULATE_WRITE they meet no fault, after MADV_HUGEPAGE a fault for each 2 MiB. After any other a
//!   write meets a fault for each 4 KiB page, which replaces the page of zeros by one of its own.
//! - MADV_POPULATE_READ took 251 ns a page and MADV_POPULATE_WRITE 1,518 ns (4096 pages, best of 9, a guest of 2 vCPUs
//!   with Linux 6.18). The kernel offers to reschedule after each page (`__get_user_pages`, mm/gup.c).
//!
//! Left out: what the other advice does (MADV_PAGEOUT, MADV_COLD, MADV_MERGEABLE ...) beyond the cost of a system call,
//! the alignment of huge pages, and swap.

use super::about::{parameter, Parameter, Quantity};
use crate::build::{Builder, Code};
use crate::{Amount, Dist, DistId, MemoryWork, Op, Reg, Section, SectionContext};

/// KiB of a page.
pub(super) const PAGE_KIB: u32 = 4;
/// Pages of a huge page.
const HUGE_PAGES: u64 = 512;
/// MADV_POPULATE_READ of a page.
const POPULATE_READ: u64 = 251;
/// MADV_POPULATE_WRITE of a page.
const POPULATE_WRITE: u64 = 1_518;
/// Both, for the entries that use this file.
pub(super) const READING: Parameter =
    parameter("MADV_POPULATE_READ of a page", Quantity::Time(POPULATE_READ), POPULATING);
pub(super) const WRITING: Parameter =
    parameter("MADV_POPULATE_WRITE of a page", Quantity::Time(POPULATE_WRITE), POPULATING);
const POPULATING: &str = "4096 pages, best of 9, on a guest with 2 vCPUs (Xeon, Linux 6.18)";
/// Kinds of advice.
const ADVICE: u64 = 15;

/// Register with the number of the advice; it is free before and after.
const DRAWN: Reg = 3;

/// The random advice of a workload.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    advice: DistId,
}

impl Memory {
    pub fn new(builder: &mut Builder) -> Self {
        Memory { advice: builder.dist(Dist::Uniform { low: 0, high: ADVICE - 1 }) }
    }

    /// Random advice for `pages` new pages, MADV_POPULATE_READ, and a write to each: two system calls and the faults.
    /// Uses `counter`.
    pub fn advise_and_write(&self, code: &mut Code, counter: Reg, pages: u64) {
        let (huge, small, done) = (code.mark(), code.mark(), code.mark());
        code.op(Op::Draw(DRAWN, self.advice));
        code.jump_below(DRAWN, ADVICE as i64 - 2, small);
        code.jump_below(DRAWN, ADVICE as i64 - 1, huge);
        populate_write(code, pages);
        populate_read(code, pages);
        code.jump(done);
        code.bind(huge);
        call(code);
        populate_read(code, pages.div_ceil(HUGE_PAGES));
        write(code, counter, MemoryWork::Zero, pages / HUGE_PAGES, PAGE_KIB * HUGE_PAGES as u32);
        write(code, counter, MemoryWork::Zero, pages % HUGE_PAGES, PAGE_KIB);
        code.jump(done);
        code.bind(small);
        call(code);
        populate_read(code, pages);
        write(code, counter, MemoryWork::Zero, pages, PAGE_KIB);
        code.bind(done);
    }

    /// Random advice for `pages` new pages and MADV_POPULATE_READ, when nothing writes to them.
    pub fn advise(&self, code: &mut Code, pages: u64) {
        call(code);
        populate_read(code, pages);
    }
}

/// A system call whose own work has no model.
pub(super) fn call(code: &mut Code) {
    code.op(Op::System(Amount::Fixed(0)));
}

/// MAP_POPULATE or MADV_POPULATE_WRITE: one system call that allocates and clears the pages.
pub(super) fn populate_write(code: &mut Code, pages: u64) {
    populate(code, pages, POPULATE_WRITE);
}

fn populate_read(code: &mut Code, pages: u64) {
    populate(code, pages, POPULATE_READ);
}

fn populate(code: &mut Code, pages: u64, each: u64) {
    let section = Section { context: SectionContext::Preemptible, might_sleep: false, every: each as u32 };
    code.op(Op::Call);
    code.op(Op::Section { amount: Amount::Fixed(pages * each), section, last: true });
}

fn write(code: &mut Code, counter: Reg, work: MemoryWork, times: u64, kib: u32) {
    code.repeat(counter, times, |code| code.op(Op::Memory { work, kib }));
}
