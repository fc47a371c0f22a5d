//! `perf bench futex wake`, `wake-parallel` and `requeue` of perf 6.1: the time of the calls that wake or move waiters.

use schedlab_model::MSEC;

use super::about::{parameter, About, Parameter, Quantity};
use super::perf_futex::{self, Threads, SHARED, THREADS};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Better, ObjectId, ObjectSpec, Op, ProgramId, TaskKind, Unit, Workload};

const WAKE_TIME: MetricSpec =
    MetricSpec::headline("time", Unit::Milliseconds, Better::Lower, "from the first to the last call that wakes");
const REQUEUE_TIME: MetricSpec =
    MetricSpec::headline("time", Unit::Milliseconds, Better::Lower, "from the first to the last call that moves");
const LATENCY: MetricSpec =
    MetricSpec::latency("latency", &["mean", "max"], "time of the one call of a waking thread, all threads and runs");

const RUNS: OptionSpec =
    OptionSpec::number("runs", 10, 1, 1_000_000, "runs with fresh threads; perf bench --repeat, here a key of its own");

pub(super) const WAKE: Entry = Entry {
    id: "perf-futex-wake",
    summary: "perf bench futex wake: main wakes all threads",
    about: About {
        structure: &[
            perf_futex::START,
            "Every thread blocks in FUTEX_WAIT on one word. Main then wakes `nwakes` of them by each FUTEX_WAKE \
             until it has woken all. Only the waker's side is timed, not when the woken threads run.",
            "A run is one FUTEX_WAIT per thread and a call for every `nwakes` threads.",
        ],
        parameters: &[SETTLING],
        simplified: &[perf_futex::READY],
    },
    options: &[
        THREADS,
        OptionSpec::number("nwakes", 1, 1, 100_000, "threads to wake by one call").short("w"),
        RUNS,
        SHARED,
    ],
    metrics: &[WAKE_TIME],
    ends: Ends::Always,
    build: wake,
};

pub(super) const WAKE_PARALLEL: Entry = Entry {
    id: "perf-futex-wake-parallel",
    summary: "perf bench futex wake-parallel: several wakers",
    about: About {
        structure: &[
            perf_futex::START,
            "Every thread blocks in FUTEX_WAIT on one word. Then `nwakers` threads meet at a barrier and each \
             wakes an equal part by one FUTEX_WAKE. Only the waker's side is timed, not when the woken threads \
             run.",
            "A run is one FUTEX_WAIT per thread and one FUTEX_WAKE per waking thread.",
        ],
        parameters: &[SETTLING],
        simplified: &[perf_futex::READY],
    },
    options: &[
        THREADS,
        OptionSpec::number("nwakers", 0, 0, 100_000, "waking threads; 0 = as many as threads").short("w"),
        RUNS,
        SHARED,
    ],
    metrics: &[LATENCY],
    ends: Ends::Always,
    build: wake_parallel,
};

pub(super) const REQUEUE: Entry = Entry {
    id: "perf-futex-requeue",
    summary: "perf bench futex requeue: main moves all threads",
    about: About {
        structure: &[
            perf_futex::START,
            "Every thread blocks in FUTEX_WAIT on one word. Main moves `nrequeue` of them to a second word by \
             each FUTEX_CMP_REQUEUE until it has moved all, and then wakes all of them by one FUTEX_WAKE, which \
             is not timed.",
        ],
        parameters: &[SETTLING],
        simplified: &[perf_futex::READY],
    },
    options: &[
        THREADS,
        OptionSpec::number("nrequeue", 1, 1, 100_000, "threads to move by one call").short("q"),
        RUNS,
        SHARED,
    ],
    metrics: &[REQUEUE_TIME],
    ends: Ends::Always,
    build: requeue,
};

/// Main's sleep, in which all threads come to wait.
const SETTLE: u64 = 100 * MSEC;
const SETTLING: Parameter = parameter(
    "time for the threads to block",
    Quantity::Time(SETTLE),
    "usleep(100000) in tools/perf/bench/futex-wake.c, futex-wake-parallel.c and futex-requeue.c",
);

// Registers of main; 0 and 1 are those of `Threads`. A waking thread uses those of the same name.
const BEGIN: u8 = 2;
const DONE: u8 = 3;
const TOTAL: u8 = 4;
const LEFT: u8 = 5;
/// Register of a thread: below 0, it waits without a timeout.
const TIMEOUT: u8 = 0;

fn wake(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(WAKE_TIME.decl(1));
    let word = builder.object("futex1".to_string(), ObjectSpec::FutexQueue);
    let (all, programs) = waiters(&mut builder, settings, "futex-wake", word);
    let call = Op::FutexWake { object: word, count: settings.count("nwakes"), into: DONE };
    Ok(all.finish(builder, settings, runs(settings), LEFT, |main| {
        all.start(main, &programs);
        main.op(Op::Sleep(Amount::Fixed(SETTLE)));
        until_all(main, call, all.len(), metric);
        Threads::join(main, all.len());
    }))
}

fn requeue(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(REQUEUE_TIME.decl(1));
    let [word, to] = ["futex1", "futex2"].map(|name| builder.object(name.to_string(), ObjectSpec::FutexQueue));
    let (all, programs) = waiters(&mut builder, settings, "futex-requeue", word);
    let call = Op::FutexRequeue { object: word, to, count: settings.count("nrequeue"), into: DONE };
    Ok(all.finish(builder, settings, runs(settings), LEFT, |main| {
        all.start(main, &programs);
        main.op(Op::Sleep(Amount::Fixed(SETTLE)));
        until_all(main, call, all.len(), metric);
        main.op(Op::FutexWake { object: to, count: all.len(), into: DONE });
        Threads::join(main, all.len());
    }))
}

fn wake_parallel(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let threads = settings.count("threads");
    let wakers = match settings.count("nwakers") {
        wakers if wakers == 0 || wakers > threads => threads,
        wakers => wakers,
    };
    if threads % wakers != 0 {
        let what = format!("{threads} threads in {wakers} equal parts");
        return Err(settings.error("nwakers", what).expected("a divisor of threads"));
    }
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(LATENCY.decl(1));
    let word = builder.object("futex".to_string(), ObjectSpec::FutexQueue);
    let barrier = builder.object("barrier".to_string(), ObjectSpec::Barrier { parties: wakers + 1 });
    let (all, programs) = waiters(&mut builder, settings, "futex-wake-parallel", word);
    let mut waker = Code::default();
    waker.op(Op::Barrier(barrier));
    waker.op(Op::Clock(BEGIN));
    waker.op(Op::FutexWake { object: word, count: threads / wakers, into: DONE });
    waker.elapsed(TOTAL, BEGIN);
    waker.op(Op::Sample { metric, reg: TOTAL });
    let waker = builder.program("futex-wake-parallel", waker);
    Ok(all.finish(builder, settings, runs(settings), LEFT, |main| {
        all.start(main, &programs);
        main.op(Op::Sleep(Amount::Fixed(SETTLE)));
        let fork = Op::Fork { program: waker, kind: TaskKind::Thread, into: 0 };
        main.repeat(super::perf_futex::COUNTER, u64::from(wakers), |code| code.op(fork));
        main.op(Op::Barrier(barrier));
        Threads::join(main, wakers + threads);
    }))
}

fn runs(settings: &Settings<'_>) -> u64 {
    u64::from(settings.count("runs"))
}

/// Threads that wait on the word once and exit.
fn waiters(
    builder: &mut Builder,
    settings: &Settings<'_>,
    comm: &'static str,
    word: ObjectId,
) -> (Threads, Vec<ProgramId>) {
    let all = Threads::new(builder, settings, comm);
    let programs = all.programs(builder, false, |_, code, _| {
        let woken = code.mark();
        code.op(Op::Set(TIMEOUT, -1));
        code.futex_wait(word, TIMEOUT, woken);
        code.bind(woken);
    });
    (all, programs)
}

/// Repeats the call until it has reached all threads, and reports how long that took.
fn until_all(main: &mut Code, call: Op, threads: u32, metric: u16) {
    main.op(Op::Clock(BEGIN));
    main.op(Op::Set(TOTAL, 0));
    let top = main.here();
    main.op(call);
    main.op(Op::AddReg { into: TOTAL, from: DONE });
    main.jump_below(TOTAL, i64::from(threads), top);
    main.elapsed(TOTAL, BEGIN);
    main.op(Op::Sample { metric, reg: TOTAL });
}
