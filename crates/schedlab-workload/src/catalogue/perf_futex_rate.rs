//! `perf bench futex hash` and `lock-pi` of perf 6.1: operations per second of one thread, averaged over the threads.

use schedlab_model::{stream, Nanos, USEC};

use super::about::{parameter, About, Quantity};
use super::perf_futex::{self, Threads, SHARED, THREADS};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectId, ObjectSpec, Op, Workload};

const RATE: MetricSpec =
    MetricSpec::rate("operations_per_second", "operations per second of one thread, averaged over the threads");
const RUNTIME: OptionSpec = OptionSpec {
    name: "runtime",
    kind: super::OptionKind::Time { unit: TimeUnit::Seconds, min: 1, max: 1_000_000_000_000_000 },
    default: Preset::Time(10_000_000_000),
    help: "how long the threads work",
    short: "r",
};

pub(super) const HASH: Entry = Entry {
    id: "perf-futex-hash",
    summary: "perf bench futex hash: futex calls that fail at once",
    about: About {
        structure: &[
            perf_futex::START,
            "Each thread calls FUTEX_WAIT on one of its `futexes` words after the other, with a value that the \
             word never holds. An operation is one call, which returns EAGAIN; no thread blocks.",
        ],
        parameters: &[parameter(
            "hash buckets for each CPU",
            Quantity::Number(BUCKETS_PER_CPU as u64),
            "futex_init, kernel/futex/core.c: 256 per CPU, rounded up to a power of two",
        )],
        simplified: &[
            perf_futex::READY,
            "Each bucket is one object, and each word of a thread is hashed to one of them at random, the same \
             one in every run; on a real kernel an object is a word, which the kernel hashes itself.",
            "Threads look at the clock to see whether their time is up, where perf reads a flag that main sets.",
            "The key of a shared futex has no cost of its own.",
        ],
    },
    options: &[
        THREADS,
        RUNTIME,
        OptionSpec::number("futexes", 1024, 1, 1 << 16, "futexes of each thread").short("f"),
        OptionSpec::number(
            "buckets",
            0,
            1,
            1 << 20,
            "hash buckets, as from perf 6.16 on; default: 256 per CPU, rounded up to a power of two (futex_init)",
        )
        .default(Preset::Unset),
        SHARED,
        OptionSpec::not_modelled("mlockall", "no memory of a task is ever paged out").short("m"),
    ],
    metrics: &[RATE],
    ends: Ends::Always,
    build: hash,
};

pub(super) const LOCK_PI: Entry = Entry {
    id: "perf-futex-lock-pi",
    summary: "perf bench futex lock-pi: a PI lock handed round",
    about: About {
        structure: &[
            perf_futex::START,
            "Each thread takes the one lock (its own with `multi`) by FUTEX_LOCK_PI, sleeps for 1 us while it \
             holds it, and releases it by FUTEX_UNLOCK_PI. The lock goes to the first waiter, so a thread gets it \
             once per round of all waiters.",
            "An operation is three system calls and, where threads wait, two switches.",
        ],
        parameters: &[parameter(
            "sleep with the lock",
            Quantity::Words("1 us"),
            "usleep(1) in tools/perf/bench/futex-lock-pi.c; it lasts for the timer slack of 50 us as well",
        )],
        simplified: &[
            perf_futex::READY,
            "The boost of the lock's owner is missing; among tasks of the fair class it changes neither weight \
             nor class.",
            "Threads look at the clock to see whether their time is up, where perf reads a flag that main sets.",
        ],
    },
    options: &[THREADS, RUNTIME, OptionSpec::flag("multi", "a lock for each thread").short("M"), SHARED],
    metrics: &[RATE],
    ends: Ends::Always,
    build: lock_pi,
};

/// Buckets of the kernel's table for each CPU.
const BUCKETS_PER_CPU: usize = 256;
/// The most futexes of all threads, each of which is an operation of a program.
const MAX_FUTEXES: u64 = 1 << 22;

// Registers of a thread.
const END: u8 = 2;
const OVER: u8 = 3;
// Register of main.
const PASSES: u8 = 2;

fn hash(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let (threads, futexes) = (settings.count("threads"), settings.count("futexes"));
    let all = u64::from(threads) * u64::from(futexes);
    if all > MAX_FUTEXES {
        let text = format!("{threads} threads with {futexes} futexes each are {all} futexes");
        let key = if settings.is_set("futexes") { "futexes" } else { "threads" };
        return Err(settings.error(key, text).expected(format!("at most {MAX_FUTEXES} of all threads")));
    }
    let buckets = match settings.is_set("buckets") {
        true => settings.count("buckets"),
        false => u32::try_from((BUCKETS_PER_CPU * settings.nr_cpus).next_power_of_two()).unwrap_or(1 << 20),
    };
    let mut table: Vec<ObjectId> = Vec::new();
    let mut hashes = stream(0, "futex-hash");
    rate(settings, "futex-hash", true, move |builder, code, _, metric| {
        if table.is_empty() {
            let bucket = |index| builder.object(format!("bucket {index}"), ObjectSpec::FutexQueue);
            table = (0..buckets).map(bucket).collect();
        }
        for _ in 0..futexes {
            let bucket = hashes.below(u64::from(buckets)) as usize;
            code.op(Op::FutexMismatch(table[bucket]));
        }
        code.op(Op::Count { metric, count: futexes });
    })
}

fn lock_pi(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let multi = settings.flag("multi");
    let mut one = None;
    rate(settings, "futex-lock-pi", multi, move |builder, code, index, metric| {
        let name = if multi { format!("lock of thread {index}") } else { "global_futex".to_string() };
        let lock = one.filter(|_| !multi).unwrap_or_else(|| builder.object(name, ObjectSpec::PiFutex));
        one = Some(lock);
        code.op(Op::FutexLockPi(lock));
        code.op(Op::Sleep(Amount::Fixed(USEC)));
        code.op(Op::FutexUnlockPi(lock));
        code.op(Op::Count { metric, count: 1 });
    })
}

/// Threads that repeat the body until the time is up.
fn rate(
    settings: &Settings<'_>,
    comm: &'static str,
    own: bool,
    mut body: impl FnMut(&mut Builder, &mut Code, u32, u16),
) -> Result<Workload, BuildError> {
    let runtime: Nanos = settings.time("runtime");
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(RATE.decl(u64::from(settings.count("threads"))));
    let all = Threads::new(&mut builder, settings, comm);
    let programs = all.programs(&mut builder, own, |builder, code, index| {
        code.op(Op::Clock(END));
        code.op(Op::AddConst(END, i64::try_from(runtime).unwrap_or(i64::MAX)));
        let top = code.here();
        body(builder, code, index, metric);
        code.elapsed(OVER, END);
        code.jump_below(OVER, 0, top);
    });
    Ok(all.finish(builder, settings, 1, PASSES, |main| {
        all.start(main, &programs);
        Threads::join(main, all.len());
    }))
}
