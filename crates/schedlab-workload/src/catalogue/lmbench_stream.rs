//! lmbench 3 `stream`: one thread per process that moves arrays between its CPU and memory. It is not STREAM
//! (stream.rs): it has no OpenMP and, with `parallelism` 1, no barrier, and so shows what one thread gets.

use super::about::{parameter, About, Quantity};
use super::{limit, BuildError, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Op, Workload};

const fn latency(name: &'static str) -> MetricSpec {
    MetricSpec::latency(name, &["min", "mean"], "time of one element")
}

const fn bandwidth(name: &'static str) -> MetricSpec {
    MetricSpec::best_rate(name, "MB/s (10^6 bytes) of the fastest pass, with the bytes that the program counts")
}

/// What a kernel moves, and what the program counts for it, in words of 8 bytes per element.
struct Kernel {
    latency: MetricSpec,
    bandwidth: MetricSpec,
    moved: u32,
    counted: u32,
    /// Whether each element waits for the one before it.
    chain: bool,
}

const KERNELS: [Kernel; 4] = [
    kernel(latency("copy"), bandwidth("copy_mb_per_second"), 2, 2, false),
    kernel(latency("scale"), bandwidth("scale_mb_per_second"), 2, 2, false),
    kernel(latency("add"), bandwidth("add_mb_per_second"), 1, 3, true),
    kernel(latency("triad"), bandwidth("triad_mb_per_second"), 3, 3, false),
];

const fn kernel(latency: MetricSpec, bandwidth: MetricSpec, moved: u32, counted: u32, chain: bool) -> Kernel {
    Kernel { latency, bandwidth, moved, counted, chain }
}

pub(super) const ENTRY: Entry = Entry {
    id: "lmbench-stream",
    summary: "lmbench stream: one thread and its memory (3.0)",
    about: About {
        structure: &[
            "`parallelism` processes of one thread each, without a barrier. Three arrays of 8-byte numbers share \
             `bytes`; copy, scale, add and triad follow each other, and each is timed by itself. There is no \
             system call and no switch of its own.",
            "Copy and scale move 16 bytes per element, triad 24. What the program prints as add runs its sum \
             (src/stream.c calls benchmp with it): it adds up one array, 8 bytes per element, but counts 24.",
        ],
        parameters: &[
            parameter(
                "an addition that waits for the one before",
                Quantity::Picos(ADD_PS),
                "4 cycles at 3 GHz: Skylake-SP to Ice Lake-SP (Agner Fog, instruction tables); estimate for other \
                 machines, 3 to 7 cycles at 1.5 to 4 GHz",
            ),
            parameter("bytes", Quantity::Words("24,000,000"), "default of lmbench 3's stream.c"),
        ],
        simplified: &[
            "Caches are missing: where `bytes` fit into them the real program shows their bandwidth and this one \
             that of memory.",
            "lmbench repeats a kernel for a time that it calibrates and reports the fastest of 11 repetitions; \
             here every pass is a sample.",
        ],
    },
    options: &[
        OptionSpec::number("parallelism", 1, 1, 10_000, "processes at a time, -P").short("P"),
        OptionSpec::number("bytes", 24_000_000, 24_000, 1_000_000_000, "bytes of the three arrays of a process, -M")
            .short("M"),
        limit::TIME,
    ],
    metrics: &[
        KERNELS[0].latency,
        KERNELS[0].bandwidth,
        KERNELS[1].latency,
        KERNELS[1].bandwidth,
        KERNELS[2].latency,
        KERNELS[2].bandwidth,
        KERNELS[3].latency,
        KERNELS[3].bandwidth,
    ],
    ends: limit::ENDS,
    build,
};

/// Words of 8 bytes in a megabyte.
const WORDS: u64 = 125_000;
/// A floating-point addition that waits for the one before, in ps.
const ADD_PS: u64 = 1_333;
const COMM: &str = "stream";

const SINCE: u8 = 0;
const TOOK: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let elements = settings.number("bytes").unsigned_abs() / 24;
    let mut builder = Builder::new(settings.name);
    let metrics = KERNELS
        .each_ref()
        .map(|kernel| (builder.metric(kernel.latency.decl(elements)), builder.metric(kernel.bandwidth.decl(WORDS))));
    let mut code = Code::default();
    code.forever(|code| {
        for (kernel, (latency, bandwidth)) in KERNELS.iter().zip(metrics) {
            code.op(Op::Clock(SINCE));
            match kernel.chain {
                true => code.op(Op::Run(Amount::Fixed(elements * ADD_PS / 1_000))),
                false => code.op(Op::Stream { bytes: elements as u32 * 8 * kernel.moved }),
            }
            code.elapsed(TOOK, SINCE);
            code.op(Op::Sample { metric: latency, reg: TOOK });
            code.op(Op::Sample { metric: bandwidth, reg: TOOK });
            code.op(Op::Count { metric: bandwidth, count: elements as u32 * kernel.counted });
        }
    });
    let program = builder.program(COMM, code);
    Ok(limit::copies(builder, settings, COMM, program, settings.count("parallelism")))
}
