//! `stress-ng --futex` 0.15.06: a parent that calls FUTEX_WAKE in a loop, a child that waits 5 us at a time.
//!
//! The parent never sleeps. The child counts a bogo op for each wait that did not time out; after every 100,000 timeouts it
//! sleeps for 250 ms. The timeout has the timer slack of the task, 50 us by default.

use schedlab_model::MSEC;

use super::stress_ng::{self, Rates};
use super::{BuildError, Entry, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op, TaskKind, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-futex",
    summary: "stress-ng --futex: a process that wakes without pause, another that waits 5 us at a time (0.15.06)",
    options: &[stress_ng::workers("futex"), stress_ng::TIMEOUT],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

const COMM: &str = "stress-ng-futex";
/// The timeout of a wait.
const TIMEOUT: i64 = 5_000;
/// Timeouts between two pauses of the child.
const THRESHOLD: i64 = 100_000;
/// Waits of the child, or wakes of the parent, between two reports of CPU time.
const REPORT_WAITS: u64 = 64;
const REPORT_WAKES: u64 = 1024;

// Registers: of the child how long it waits and the timeouts left, of the parent its child and what a wake returns.
const WAIT: u8 = 0;
const LEFT: u8 = 1;
const CHILD: u8 = 0;
const WOKEN: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let workers: Vec<u32> = (0..stress_ng::count(settings, "futex"))
        .map(|index| {
            let futex = builder.object(format!("futex of worker {index}"), ObjectSpec::FutexQueue);
            let child = waiter(rates, futex);
            let child = builder.program(COMM, child);
            let mut parent = Code::default();
            parent.op(Op::Fork { program: child, kind: TaskKind::Process, into: CHILD });
            rates.forever(&mut parent, REPORT_WAKES, |code| {
                code.op(Op::FutexWake { object: futex, count: 1, into: WOKEN });
            });
            builder.program(COMM, parent)
        })
        .collect();
    stress_ng::start_each(builder, settings, &workers)
}

fn waiter(rates: Rates, futex: u32) -> Code {
    let mut code = Code::default();
    code.op(Op::Set(WAIT, TIMEOUT));
    code.op(Op::Set(LEFT, THRESHOLD));
    rates.forever(&mut code, REPORT_WAITS, |code| {
        let (expired, after) = (code.mark(), code.mark());
        code.futex_wait(futex, WAIT, expired);
        rates.count(code, 1);
        code.jump(after);
        code.bind(expired);
        code.dec_jump(LEFT, after);
        code.op(Op::Sleep(Amount::Fixed(250 * MSEC)));
        code.op(Op::Set(LEFT, THRESHOLD));
        code.bind(after);
    });
    code
}
