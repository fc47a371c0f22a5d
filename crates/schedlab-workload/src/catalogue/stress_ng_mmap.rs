//! `stress-ng --mmap` 0.15.06: maps memory, unmaps it page by page, maps the pages again one by one and unmaps them.

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::stress_ng_memory::{self, call, Memory, PAGE_KIB};
use super::{BuildError, Entry, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, MemoryWork, Op, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-mmap",
    summary: "stress-ng --mmap: maps and unmaps page by page",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "A worker maps `mmap-bytes`, advises at random, reads the pages in by MADV_POPULATE_READ and writes \
             them; unmaps page by page; maps the pages again one by one, and unmaps them. It has no wakeup and no \
             switch of its own.",
            "A bogo op on N pages is 7 N + 34 system calls and 1.9 N page faults.",
        ],
        parameters: &[
            parameter(
                "work on a page after it was mapped",
                Quantity::Words("2.15 us"),
                "0.29 s of user time for 264 ops of 256 pages, each mapped twice, on a guest with 2 vCPUs",
            ),
            parameter(
                "calls on odd arguments per op",
                Quantity::Number(ODD_CALLS),
                "stress-ng 0.15.06 under strace: 146.3 calls per op with 16 pages, 1826 with 256",
            ),
            parameter(
                "page faults per op",
                Quantity::Words("29.2 with 16 pages, 440 with 256"),
                "stress-ng 0.15.06 under perf stat",
            ),
            stress_ng_memory::READING,
            stress_ng_memory::WRITING,
        ],
        simplified: &[
            "mmap's random flags are missing (with MAP_LOCKED, one of ten, the writes meet no fault), and \
             MAP_POPULATE, which the program uses until the first mapping has failed for want of huge pages: with \
             the default size that takes seconds, and the real one meets hardly any faults until then.",
            "The splitting of a huge page and the faults of the odd calls, one an op, are missing; so are files.",
            stress_ng::CPU_TIME,
        ],
    },
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

/// User-mode work on a page after it was mapped: 0.29 s of user time for 264 ops of 256 pages, each mapped twice, on a
/// guest of 2 vCPUs.
const CONTENT: Amount = Amount::Fixed(2_150);
/// Calls on odd arguments at the end of an op.
const ODD_CALLS: u64 = 29;
/// Calls of mprotect with `mmap-mprotect`, for the whole and for each page three times: six on odd arguments, five
/// changes.
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
