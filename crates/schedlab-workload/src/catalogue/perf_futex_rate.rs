//! `perf bench futex hash` and `lock-pi` of perf 6.1: operations per second of one thread, averaged over the threads.
//!
//! - `hash`: each thread calls FUTEX_WAIT with a value that its words never hold. Every call is EAGAIN; no thread blocks.
//! - `lock-pi`: each thread takes the lock, sleeps 1 us and the timer slack while it holds it, and releases it. The lock goes
//!   to the first waiter, so a thread gets it once per round of all waiters.
//!
//! Both look whether their time is up by the clock, where perf reads a flag that main sets. Left out of `hash`: its 1024
//! words per thread are one, since the kernel's table of buckets has no model; see [`crate::Op::FutexLockPi`] for `lock-pi`.

use schedlab_model::{Nanos, USEC};

use super::perf_futex::{Threads, SHARED, THREADS};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op, Workload};

const RATE: MetricSpec =
    MetricSpec::rate("operations_per_second", "operations per second of one thread, averaged over the threads");
const RUNTIME: OptionSpec = OptionSpec {
    name: "runtime",
    kind: super::OptionKind::Time { unit: TimeUnit::Seconds, min: 1, max: 1_000_000_000_000_000 },
    default: super::Preset::Time(10_000_000_000),
    help: "how long the threads work",
};

pub(super) const HASH: Entry = Entry {
    id: "perf-futex-hash",
    summary: "perf bench futex hash: futex calls that fail at once, without pause (perf 6.1)",
    options: &[
        THREADS,
        RUNTIME,
        OptionSpec::not_modelled("futexes", "the kernel's table of futex buckets has no model"),
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

/// Calls of a thread of `hash` between two looks at the time: its number of words.
const FUTEXES: u32 = 1024;

// Registers of a thread.
const COUNTER: u8 = 1;
const END: u8 = 2;
const OVER: u8 = 3;
// Register of main.
const PASSES: u8 = 2;

fn hash(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    rate(settings, "futex-hash", true, |builder, code, index, metric| {
        let word = builder.object(format!("words of thread {index}"), ObjectSpec::FutexQueue);
        code.repeat(COUNTER, u64::from(FUTEXES), |code| code.op(Op::FutexMismatch(word)));
        code.op(Op::Count { metric, count: FUTEXES });
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
