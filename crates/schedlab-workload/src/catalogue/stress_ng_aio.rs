//! `stress-ng --aio` 0.15.06: POSIX asynchronous reads and writes of 16 bytes, carried out by a helper thread of glibc.
//!
//! 16 requests are outstanding at one file, so one helper thread serves them in order. It signals each completion; a signal
//! ends the 250 ms sleep of the main thread, which then looks at all requests, counts a bogo op for each that is complete
//! and issues it again. Left out: the handler of a signal that arrives while the main thread runs, and what the request to
//! synchronise the file costs beyond a read (none on a file system in memory).

use schedlab_model::MSEC;

use super::stress_ng::{self, Rates};
use super::{BuildError, Entry, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op, TaskKind, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-aio",
    summary: "stress-ng --aio: requests served by a helper thread that signals each completion (0.15.06)",
    options: &[
        stress_ng::workers("aio"),
        OptionSpec::number("aio-requests", 16, 1, 4096, "outstanding requests of a worker"),
        stress_ng::TIMEOUT,
    ],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

const COMM: &str = "stress-ng-aio";
/// Reading or writing 16 bytes of a file in memory and queueing the signal, beyond the system calls: a guest of 2 vCPUs took
/// 4.2 us of CPU time per request on one CPU, of which five system calls are 1.05 and the issue is 0.1.
const TRANSFER: u64 = 3_050;
/// The sleep of the main thread that a signal ends.
const SLEEP: i64 = 250 * MSEC as i64;
/// Looking at one request (`aio_error`) and queueing it again (two locks, a list).
const ISSUE: u64 = 100;
/// Requests of the helper, or sleeps of the main thread, between two reports of CPU time.
const REPORT: u64 = 16;

// Registers of both threads.
const SLOT: u8 = 0;
const WOKEN: u8 = 1;
// Registers of the main thread.
const LENGTH: u8 = 2;
const COUNTER: u8 = 3;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let requests = u64::from(settings.count("aio-requests"));
    let workers: Vec<u32> =
        (0..stress_ng::count(settings, "aio")).map(|index| worker(&mut builder, rates, index, requests)).collect();
    stress_ng::start_each(builder, settings, &workers)
}

/// The main thread's program; it starts the helper.
fn worker(builder: &mut Builder, rates: Rates, index: u32, requests: u64) -> u32 {
    let issued = builder.object(format!("requests of worker {index}"), ObjectSpec::Queue);
    let complete = builder.object(format!("completions of worker {index}"), ObjectSpec::Queue);
    let signal = builder.object(format!("signal of worker {index}"), ObjectSpec::FutexQueue);
    let mut helper = Code::default();
    rates.forever(&mut helper, REPORT, |code| {
        code.op(Op::Receive { object: issued, into: SLOT });
        code.op(Op::System(Amount::Fixed(TRANSFER)));
        code.op(Op::Send { object: complete, from: SLOT });
        // getpid and getuid, for the sender's fields of the signal.
        code.op(Op::System(Amount::Fixed(0)));
        code.op(Op::System(Amount::Fixed(0)));
        // rt_sigqueueinfo: wakes the sleeper, else the handler runs where the main thread is.
        code.op(Op::FutexWake { object: signal, count: 1, into: WOKEN });
    });
    let helper = builder.program(COMM, helper);
    let mut code = Code::default();
    code.op(Op::Set(LENGTH, SLEEP));
    code.op(Op::Fork { program: helper, kind: TaskKind::Thread, into: SLOT });
    code.repeat(COUNTER, requests, |code| {
        code.op(Op::Run(Amount::Fixed(ISSUE)));
        code.op(Op::Send { object: issued, from: COUNTER });
    });
    rates.forever(&mut code, REPORT, |code| {
        let (slept, none) = (code.mark(), code.mark());
        code.futex_wait(signal, LENGTH, slept);
        // rt_sigreturn of the handler.
        code.op(Op::System(Amount::Fixed(0)));
        code.bind(slept);
        let next = code.here();
        code.try_receive(complete, SLOT, none);
        rates.count(code, 1);
        code.op(Op::Run(Amount::Fixed(ISSUE)));
        code.op(Op::Send { object: issued, from: SLOT });
        code.jump(next);
        code.bind(none);
    });
    builder.program(COMM, code)
}
