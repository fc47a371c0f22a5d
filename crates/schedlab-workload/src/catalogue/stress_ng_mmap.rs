//! `stress-ng --mmap` 0.15.06: maps memory, unmaps it page by page, maps the pages again one by one and unmaps them.
//!
//! A bogo op on `mmap-bytes` of N pages is 7 N + 34 system calls: mmap, random advice and MADV_POPULATE_READ, twice, of the
//! whole; for each page advice and munmap; munmap of the whole; for each page mmap at the same address, MADV_POPULATE_READ and
//! advice; for each page advice and munmap; 29 calls on odd arguments. The real one made 146.3 per op with 16 pages and 1826
//! with 256, and met 29.2 and 440 page faults per op, 1.8 and 1.7 a page; 685.5 and 29.3 with `mmap-mprotect` and 16 pages. Here
//! a page faults 1.9 times, once after each mapping, unless the advice has populated it. There is no switch of its own: 0.1 and
//! 1.5 per op were measured beside other load.
//!
//! Left out: mmap's random flags (with MAP_LOCKED, one of ten, the writes meet no fault), and MAP_POPULATE, which the program
//! uses until the first mapping has failed for want of huge pages. With the default size that takes seconds: the real one
//! meets hardly any faults until then. Also left out: the splitting of a huge page and the faults of the odd calls (one an op).

use super::stress_ng::{self, Rates};
use super::stress_ng_memory::{call, Memory, PAGE_KIB};
use super::{BuildError, Entry, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, MemoryWork, Op, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-mmap",
    summary: "stress-ng --mmap: workers that map, write and unmap memory page by page (0.15.06)",
    options: &[
        stress_ng::workers("mmap"),
        OptionSpec::number(
            "mmap-bytes",
            256 << 20,
            4096,
            1 << 34,
            "bytes of all workers together, in whole pages each",
        ),
        OptionSpec::flag("mmap-mprotect", "eleven mprotect calls after each mapping and before each munmap of a page"),
        stress_ng::TIMEOUT,
        OptionSpec::not_modelled("mmap-file", "files have no model but reads of the page cache"),
        OptionSpec::not_modelled("mmap-async", "files have no model but reads of the page cache"),
        OptionSpec::not_modelled("mmap-odirect", "files have no model but reads of the page cache"),
        OptionSpec::not_modelled("mmap-osync", "files have no model but reads of the page cache"),
    ],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

/// User-mode work on a page after it was mapped: 0.29 s of user time for 264 ops of 256 pages, each mapped twice, on a guest
/// of 2 vCPUs.
const CONTENT: Amount = Amount::Fixed(2_150);
/// Calls on odd arguments at the end of an op.
const ODD_CALLS: u64 = 29;
/// Calls of mprotect with `mmap-mprotect`, for the whole and for each page three times: six on odd arguments, five changes.
const PROTECTIONS: u64 = 11;

const PAGE: u8 = 0;
const COUNTER: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let workers = u64::from(stress_ng::count(settings, "mmap"));
    let pages = (settings.number("mmap-bytes").unsigned_abs() / workers / 4096).max(1);
    let mprotect = if settings.flag("mmap-mprotect") { PROTECTIONS } else { 0 };
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let memory = Memory::new(&mut builder);
    let mut worker = Code::default();
    rates.forever(&mut worker, 1, |code| {
        call(code);
        memory.advise_and_write(code, COUNTER, pages);
        code.repeat(COUNTER, mprotect, call);
        call(code);
        code.repeat(PAGE, pages, |code| {
            code.op(Op::Run(CONTENT));
            unmap(code, mprotect);
        });
        call(code);
        code.repeat(PAGE, pages, |code| {
            call(code);
            memory.advise_and_write(code, COUNTER, 1);
            code.repeat(COUNTER, mprotect, call);
            code.op(Op::Run(CONTENT));
        });
        code.repeat(PAGE, pages, |code| unmap(code, mprotect));
        code.repeat(COUNTER, ODD_CALLS, call);
        rates.count(code, 1);
    });
    let worker = builder.program("stress-ng-mmap", worker);
    stress_ng::start(builder, settings, "mmap", worker)
}

/// Advice for a page, then its munmap.
fn unmap(code: &mut Code, mprotect: u64) {
    call(code);
    code.repeat(COUNTER, mprotect, call);
    code.op(Op::Memory { work: MemoryWork::Unmap, kib: PAGE_KIB });
}
