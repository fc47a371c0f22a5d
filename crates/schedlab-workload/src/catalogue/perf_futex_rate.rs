//! `perf bench futex hash` and `lock-pi` of perf 6.1: operations per second of one thread, averaged over the threads.
//!
//! - `hash`: each thread calls FUTEX_WAIT with a value that its words never hold. Every call is EAGAIN; no thread blocks.
//! - `lock-pi`: each thread takes the lock, sleeps 1 us and the timer slack while it holds it, and releases it. The lock goes
//!   to the first waiter, so a thread gets it once per round of all waiters.
//!
//! Both look whether their time is up by the clock, where perf reads a flag that main sets. The words of `hash` are only
//! read, so what threads share are the buckets of the kernel's table: each bucket is one object, and each word of a thread
//! is hashed to one of them at random, the same one in every run. On a real kernel an object is a word, which the kernel
//! hashes to one of its own buckets. See [`crate::Op::FutexLockPi`] for `lock-pi`.

use schedlab_model::{stream, Nanos, USEC};

use super::perf_futex::{Threads, SHARED, THREADS};
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
};

pub(super) const HASH: Entry = Entry {
    id: "perf-futex-hash",
    summary: "perf bench futex hash: futex calls that fail at once, without pause (perf 6.1)",
    options: &[
        THREADS,
        RUNTIME,
        OptionSpec::number("futexes", 1024, 1, 1 << 16, "futexes of each thread"),
        OptionSpec::number(
            "buckets",
            0,
            1,
            1 << 20,
            "hash buckets, as from perf 6.16 on; default: 256 per CPU, rounded up to a power of two (futex_init)",
        )
        .default(Preset::Unset),
        SHARED,
        OptionSpec::not_modelled("mlockall", "no memory of a task is ever paged out"),
    ],
    metrics: &[RATE],
    ends: Ends::Always,
    build: hash,
};

pub(super) const LOCK_PI: Entry = Entry {
    id: "perf-futex-lock-pi",
    summary: "perf bench futex lock-pi: threads hand a PI lock round and sleep 1 us with it (perf 6.1)",
    options: &[THREADS, RUNTIME, OptionSpec::flag("multi", "a lock for each thread"), SHARED],
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
    Ok(all.finish(builder, settings, (1, PASSES), |main| {
        all.start(main, &programs);
        Threads::join(main, all.len());
    }))
}
