//! STREAM 5.10 (stream.c) with OpenMP: threads that move arrays between CPU and memory, with a barrier after each
//! kernel.

use super::about::{parameter, About, Quantity};
use super::openmp::{self, Barrier, WAIT_POLICY};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Preset, Settings};
use crate::build::{Builder, Code};
use crate::{Op, TaskKind, TaskSpec, Unit, Workload};

const fn rate(name: &'static str) -> MetricSpec {
    MetricSpec::best_rate(name, "MB/s (10^6 bytes) of the fastest iteration, as `Best Rate`")
}

const fn time(name: &'static str) -> MetricSpec {
    let times = MetricSpec::latency(name, &["mean", "min", "max"], "time of the kernel, without the first iteration");
    MetricSpec { unit: Unit::Seconds, ..times }
}

/// Of each kernel in turn: the rate, the time, and the words of 8 bytes that count for an element.
const KERNELS: [(MetricSpec, MetricSpec, u32); 4] = [
    (rate("copy_mb_per_second"), time("copy"), 2),
    (rate("scale_mb_per_second"), time("scale"), 2),
    (rate("add_mb_per_second"), time("add"), 3),
    (rate("triad_mb_per_second"), time("triad"), 3),
];
/// Words of 8 bytes in a megabyte.
const WORDS: u64 = 125_000;

pub(super) const ENTRY: Entry = Entry {
    id: "stream",
    summary: "STREAM 5.10: arrays between CPUs and memory",
    about: About {
        structure: &[
            "`threads` threads of one process; main is the first. Three arrays of `array-size` 8-byte numbers. \
             Each of `ntimes` iterations runs copy, scale, add and triad; every kernel is a parallel loop in \
             which a thread has one contiguous part of the arrays. A loop begins and ends with a barrier at which \
             threads spin and then sleep on a futex.",
            "Copy and scale count 16 bytes an element, add and triad 24. The rates are those of the shortest time \
             of a kernel, the times leave out the first iteration. A first loop fills the arrays, so each part is \
             on the node on which its thread ran then.",
        ],
        parameters: &[
            parameter("array-size and ntimes", Quantity::Words("10,000,000 and 10"), "defaults of stream.c 5.10"),
            openmp::SPINNING,
            openmp::SPINNING_CROWDED,
        ],
        simplified: &[
            "Page faults of the first loop, the check of the results, caches (the program requires arrays of at \
             least four times their size) and the read for ownership are missing, so copy is as fast as triad: \
             0.8 to 1.0 of it on a guest (Xeon), 1.14 on a Raspberry Pi 4.",
            openmp::BARRIER,
        ],
    },
    options: &[
        OptionSpec::number("threads", 0, 1, 10_000, "threads, OMP_NUM_THREADS").default(Preset::PerCpu),
        OptionSpec::number("array-size", 10_000_000, 1, 1_000_000_000, "elements of an array, STREAM_ARRAY_SIZE"),
        OptionSpec::number("ntimes", 10, 2, 1_000_000, "iterations, NTIMES"),
        WAIT_POLICY,
    ],
    metrics: &[
        KERNELS[0].0,
        KERNELS[1].0,
        KERNELS[2].0,
        KERNELS[3].0,
        KERNELS[0].1,
        KERNELS[1].1,
        KERNELS[2].1,
        KERNELS[3].1,
    ],
    ends: Ends::Always,
    build,
};

/// The most bytes of one operation.
const MOST: u64 = 1 << 30;

// Registers of a thread, in addition to those of the barrier.
const LEFT: u8 = 0;
const SINCE: u8 = 1;
const TOOK: u8 = 2;
const PIECES: u8 = 5;
// Registers of main before and after its own iterations.
const CHILD: u8 = 0;
const COUNTER: u8 = 1;

/// What a thread does, and whether it reports: only main does.
struct Thread<'a> {
    barrier: &'a Barrier,
    /// Its elements of each array.
    elements: u64,
    report: Option<Report>,
}

#[derive(Clone, Copy)]
struct Report {
    /// Rate and time of each kernel.
    metrics: [(u16, u16); 4],
    array_size: u32,
}

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let rates = KERNELS.each_ref().map(|(rate, ..)| builder.metric(rate.decl(WORDS)));
    let times = KERNELS.each_ref().map(|(_, time, _)| builder.metric(time.decl(1)));
    let metrics = [0, 1, 2, 3].map(|kernel| (rates[kernel], times[kernel]));
    let threads = settings.number("threads").max(1).unsigned_abs();
    let array_size = settings.count("array-size");
    if u64::from(array_size) < threads {
        let what = "fewer elements than threads";
        return Err(settings.error("array-size", what).expected(format!("{threads} or more")));
    }
    let iterations = settings.number("ntimes").unsigned_abs();
    let barrier = Barrier::new(&mut builder, settings, threads);
    // libgomp gives each of the first threads one element more.
    let (each, more) = (u64::from(array_size) / threads, u64::from(array_size) % threads);
    let thread = |index: u64, report| Thread { barrier: &barrier, elements: each + u64::from(index < more), report };
    let mut main = Code::default();
    let again = main.here();
    // Threads with equally many elements have one program.
    for (index, count) in [(0, more.saturating_sub(1)), (more.max(1), threads - more.max(1))] {
        if count > 0 {
            let mut code = Code::default();
            thread(index, None).run(&mut code, iterations);
            let program = builder.program("stream", code);
            main.repeat(COUNTER, count, |code| code.op(Op::Fork { program, kind: TaskKind::Thread, into: CHILD }));
        }
    }
    thread(0, Some(Report { metrics, array_size })).run(&mut main, iterations);
    main.repeat(COUNTER, threads - 1, |code| code.op(Op::Reap));
    match settings.repeat {
        true => main.jump(again),
        false => main.op(Op::Finish),
    }
    let program = builder.program("stream", main);
    builder.task(TaskSpec { name: "stream".to_string(), program, ..TaskSpec::default() });
    Ok(builder.finish(!settings.repeat))
}

impl Thread<'_> {
    fn run(&self, code: &mut Code, iterations: u64) {
        // The loop that fills the three arrays.
        self.parallel(code, 3, None);
        self.iteration(code, None);
        code.repeat(LEFT, iterations - 1, |code| self.iteration(code, self.report));
    }

    fn iteration(&self, code: &mut Code, report: Option<Report>) {
        for (kernel, (.., words)) in KERNELS.iter().enumerate() {
            self.parallel(code, *words, report.map(|report| (report.metrics[kernel], report.array_size)));
        }
    }

    /// A parallel loop over the thread's part with this many words per element.
    fn parallel(&self, code: &mut Code, words: u32, report: Option<((u16, u16), u32)>) {
        if report.is_some() {
            code.op(Op::Clock(SINCE));
        }
        self.barrier.meet(code, 0, |_| {});
        let bytes = self.elements * 8 * u64::from(words);
        code.repeat(PIECES, bytes / MOST, |code| code.op(Op::Stream { bytes: MOST as u32 }));
        if bytes % MOST > 0 {
            code.op(Op::Stream { bytes: (bytes % MOST) as u32 });
        }
        self.barrier.meet(code, 1, |_| {});
        if let Some(((rate, time), array_size)) = report {
            code.elapsed(TOOK, SINCE);
            code.op(Op::Sample { metric: time, reg: TOOK });
            code.op(Op::Sample { metric: rate, reg: TOOK });
            code.op(Op::Count { metric: rate, count: array_size * words });
        }
    }
}
