//! `stress-ng --vm` 0.15.06: writes to freshly mapped memory and unmaps it, again and again.

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::stress_ng_memory::{self, call, populate_write, Memory, PAGE_KIB};
use super::{BuildError, Entry, OptionKind, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, MemoryWork, Op, Workload};
use schedlab_model::{Nanos, SEC};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-vm",
    summary: "stress-ng --vm: writes to new memory and unmaps it",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "A pass of a worker maps `vm-bytes`, advises at random, reads the pages in by MADV_POPULATE_READ, \
             runs the method, advises again and unmaps. It has no wakeup and no switch of its own.",
            "A pass is five system calls, seven with `zero-one` and six with `incdec`, and 0.87 page faults a \
             page where the method writes. A bogo op is 1 MiB of `write64` and `read64`, 16 KiB of `zero-one` and \
             4 KiB of `incdec`.",
        ],
        parameters: &[
            parameter(
                "user mode of 1 MiB with write64",
                Quantity::Words("163 us"),
                "6001 ops in 0.98 s of user time, 64 MiB with vm-keep, a guest with 2 vCPUs and other load",
            ),
            parameter(
                "user mode of 1 MiB with read64",
                Quantity::Words("23.6 us"),
                "23,262 ops in 0.55 s; every page is the page of zeros",
            ),
            parameter("user mode of 16 KiB with zero-one", Quantity::Words("10.7 us"), "71,680 ops in 0.77 s"),
            parameter("user mode of 4 KiB with incdec", Quantity::Words("7.8 us"), "114,688 ops in 0.89 s"),
            stress_ng_memory::READING,
            stress_ng_memory::WRITING,
        ],
        simplified: &[
            "The other methods and `all`, which takes them in turn and is the program's default, are missing.",
            "Writes and faults of a first pass alternate in the program; here the faults come first.",
            "The user mode does not depend on the machine's memory.",
            stress_ng::CPU_TIME,
        ],
    },
    options: &[
        stress_ng::workers("vm").short("m"),
        OptionSpec::number("vm-bytes", 256 << 20, 1 << 20, 1 << 34, "bytes of all workers together, in whole MiB each"),
        OptionSpec {
            name: "vm-method",
            kind: OptionKind::Choice(&["write64", "read64", "zero-one", "incdec"]),
            default: Preset::Word("write64"),
            help: "what is done to the memory; the program's own default, all, takes its 35 methods in turn",
            short: "",
        },
        OptionSpec::flag("vm-keep", "maps once and goes on with the same memory"),
        OptionSpec::flag("vm-populate", "mmap itself allocates and clears the pages"),
        OptionSpec {
            name: "vm-hang",
            kind: OptionKind::Time { unit: TimeUnit::Seconds, min: SEC, max: 1_000_000 * SEC },
            default: Preset::Unset,
            help: "sleep before each munmap",
            short: "",
        },
        stress_ng::TIMEOUT,
        OptionSpec::not_modelled("vm-locked", "locked memory has no model"),
        OptionSpec::not_modelled("vm-madvise", "the advice is drawn"),
    ],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

/// A method.
struct Method {
    /// Bytes of a bogo op.
    bytes: u64,
    /// User-mode work of a bogo op.
    work: Nanos,
    /// System calls of its own in a pass.
    calls: u64,
    /// Whether it writes.
    writes: bool,
}

const MIB: u64 = 1 << 20;
const PAGE: u8 = 0;
const COUNTER: u8 = 1;

fn method(name: &str) -> Method {
    match name {
        "read64" => Method { bytes: MIB, work: 23_600, calls: 0, writes: false },
        "zero-one" => Method { bytes: 16 << 10, work: 10_700, calls: 2, writes: true },
        "incdec" => Method { bytes: 4 << 10, work: 7_800, calls: 1, writes: true },
        _ => Method { bytes: MIB, work: 163_000, calls: 0, writes: true },
    }
}

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let workers = u64::from(stress_ng::count(settings, "vm"));
    let bytes = (settings.number("vm-bytes").unsigned_abs() / workers / MIB).max(1) * MIB;
    let method = method(&settings.word("vm-method"));
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let memory = Memory::new(&mut builder);
    let run = |code: &mut Code| {
        code.repeat(COUNTER, bytes / method.bytes, |code| {
            code.op(Op::Run(Amount::Fixed(method.work)));
            rates.count(code, 1);
        });
        code.repeat(COUNTER, method.calls, call);
    };
    let map = |code: &mut Code| match settings.flag("vm-populate") {
        true => {
            populate_write(code, bytes >> 12);
            memory.advise(code, bytes >> 12);
        }
        false => {
            call(code);
            match method.writes {
                true => memory.advise_and_write(code, PAGE, bytes >> 12),
                false => memory.advise(code, bytes >> 12),
            }
        }
    };
    let hang = settings.time("vm-hang");
    let mut worker = Code::default();
    if settings.flag("vm-keep") {
        map(&mut worker);
        rates.forever(&mut worker, 1, |code| {
            run(code);
            call(code);
        });
    } else {
        rates.forever(&mut worker, 1, |code| {
            map(code);
            run(code);
            call(code);
            if hang > 0 {
                code.op(Op::Sleep(Amount::Fixed(hang)));
            }
            code.op(Op::Memory { work: MemoryWork::Unmap, kib: (bytes >> 12) as u32 * PAGE_KIB });
        });
    }
    let worker = builder.program("stress-ng-vm", worker);
    stress_ng::start(builder, settings, "vm", worker)
}
