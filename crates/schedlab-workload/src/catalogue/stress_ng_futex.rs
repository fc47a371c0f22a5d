//! `stress-ng --futex` 0.15.06: a parent that calls FUTEX_WAKE in a loop, a child that waits 5 us at a time.

use schedlab_model::MSEC;

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::{BuildError, Entry, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op, TaskKind, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-futex",
    summary: "stress-ng --futex: wakes without pause, short waits",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "A worker calls FUTEX_WAKE without pause and never sleeps. Its child calls FUTEX_WAIT with a timeout \
             of 5 us; after every 100,000 timeouts it sleeps for 250 ms.",
            "A bogo op is a wait that did not time out: one FUTEX_WAIT and as many FUTEX_WAKE as the worker makes \
             in the meantime.",
        ],
        parameters: &[
            parameter(
                "timeout of a wait",
                Quantity::Time(TIMEOUT as u64),
                "stress-futex.c, V0.15.06; the timer slack of the task, 50 us, is added",
            ),
            parameter("timeouts between two pauses", Quantity::Number(THRESHOLD as u64), "stress-futex.c, V0.15.06"),
            parameter("pause", Quantity::Time(PAUSE), "stress-futex.c, V0.15.06"),
        ],
        simplified: &[
            "Where machines have no `lines`, the two do not contend for the lock of the hash bucket, so a wake \
             comes before the waiter sleeps less often than with the real program.",
            stress_ng::CPU_TIME,
        ],
    },
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
/// The pause.
const PAUSE: u64 = 250 * MSEC;
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
        code.op(Op::Sleep(Amount::Fixed(PAUSE)));
        code.op(Op::Set(LEFT, THRESHOLD));
        code.bind(after);
    });
    code
}
