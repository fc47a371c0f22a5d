//! `sysbench memory` 1.0.20: threads that write or read blocks of memory and never block.

use schedlab_model::{Nanos, USEC};

use super::about::{parameter, About, Quantity};
use super::option::{OptionKind, Preset};
use super::sysbench::{self, THREADS, TIME};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::Builder;
use crate::{Amount, Op, Workload};

const OPS: MetricSpec = MetricSpec::rate("ops_per_second", "blocks per second, all threads");
const MIB: MetricSpec = MetricSpec::rate("mib_per_second", "MiB written or read per second, all threads");

const fn word(name: &'static str, words: &'static [&'static str], help: &'static str) -> OptionSpec {
    OptionSpec { name, kind: OptionKind::Choice(words), default: Preset::Word(words[0]), help, short: "" }
}

pub(super) const ENTRY: Entry = Entry {
    id: "sysbench-memory",
    summary: "sysbench memory: blocks written or read",
    about: About {
        structure: &[
            "Main starts `threads` worker threads and joins them; each ends with the event in which the time runs \
             out.",
            "An event writes or reads one block of `memory-block-size` bytes in order or at random. It makes no \
             system call and never blocks.",
        ],
        parameters: &[
            parameter(
                "event, without its block",
                Quantity::Time(EVENT),
                "183 ns for 1 KiB on a guest with 2 vCPUs (2 GiB in 392 ms less 9 ms of start)",
            ),
            parameter(
                "write of 1 KiB in order",
                Quantity::Picos(WRITE_KIB_PS),
                "blocks of 16 KiB took 757 ns in all there; of 1 MiB a KiB takes 40 ns",
            ),
            parameter(
                "read of 1 KiB in order",
                Quantity::Picos(READ_KIB_PS),
                "blocks of 16 KiB took 368 ns in all there; of 1 MiB a KiB takes 32 ns",
            ),
            parameter(
                "write of 1 KiB at random",
                Quantity::Picos(RANDOM_WRITE_KIB_PS),
                "blocks of 1 MiB, with the drawing of 256 places, there",
            ),
            parameter(
                "read of 1 KiB at random",
                Quantity::Picos(RANDOM_READ_KIB_PS),
                "blocks of 1 MiB, with the drawing of 256 places, there",
            ),
        ],
        simplified: &[
            "Caches are missing, so blocks beyond them do not share the bandwidth of memory either (`stream` \
             does); `memory-scope` therefore changes nothing and is refused.",
            "Blocks are counted some 100 us at a time.",
            "`memory-total-size` and `events`, totals that all threads share, are missing.",
        ],
    },
    options: &[
        THREADS,
        TIME,
        OptionSpec::number("memory-block-size", 1024, 4, 1 << 30, "bytes of a block, a multiple of 4"),
        word("memory-oper", &["write", "read"], "what is done with a block"),
        word("memory-access-mode", &["seq", "rnd"], "in order or at random"),
        OptionSpec::not_modelled("memory-total-size", "a total that all threads share has no model: set time"),
        OptionSpec::not_modelled("memory-scope", "data that threads share has no model"),
        sysbench::RATE,
    ],
    metrics: &[OPS, MIB],
    ends: Ends::Always,
    build,
};

/// CPU time of an event, without its block: 183 ns for 1 KiB, in a guest of 2 vCPUs (2 GiB in 392 ms less 9 ms of
/// start).
const EVENT: Nanos = 140;
/// Picoseconds of a write and a read of 1 KiB in order: blocks of 16 KiB took 757 and 368 ns in all there. Of 1 MiB a
/// KiB is written in 40 ns and read in 32.
const WRITE_KIB_PS: u64 = 38_600;
const READ_KIB_PS: u64 = 14_300;
/// The same at random, for blocks of 1 MiB: 402 and 329 ns with the drawing of 256 places.
const RANDOM_WRITE_KIB_PS: u64 = 402_000;
const RANDOM_READ_KIB_PS: u64 = 329_000;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    sysbench::time(settings)?;
    let size = settings.count("memory-block-size");
    if size % 4 != 0 {
        return Err(settings
            .error("memory-block-size", format!("{size} bytes are no whole words"))
            .expected("a multiple of 4"));
    }
    let kib = match (settings.word("memory-oper").as_str(), settings.word("memory-access-mode").as_str()) {
        ("read", "rnd") => RANDOM_READ_KIB_PS,
        ("read", _) => READ_KIB_PS,
        (_, "rnd") => RANDOM_WRITE_KIB_PS,
        _ => WRITE_KIB_PS,
    };
    let each = EVENT + (u64::from(size) * kib).div_ceil(1_024_000);
    let events = (100 * USEC / each).max(1);
    let mut builder = Builder::new(settings.name);
    // Counted in words of 4 bytes.
    let (ops, mib) = (builder.metric(OPS.decl(1)), builder.metric(MIB.decl(1 << 18)));
    let worker = sysbench::until_over(None, None, |code| {
        code.op(Op::Run(Amount::Fixed(each * events)));
        code.op(Op::Count { metric: ops, count: events as u32 });
        code.op(Op::Count { metric: mib, count: events as u32 * (size / 4) });
    });
    let program = builder.program("sysbench", worker);
    Ok(sysbench::start(builder, settings, |_| {}, |main| sysbench::run_threads(main, settings, program)))
}
