//! `stress-ng --nanosleep` 0.15.06: threads that sleep for random short times.

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::{BuildError, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Dist, Op, TaskKind, Workload};

const OVERRUN: MetricSpec = MetricSpec::latency(
    "sleep_overrun",
    &["mean"],
    "how much longer than requested a sleep took, timer slack included",
);

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-nanosleep",
    summary: "stress-ng --nanosleep: threads that sleep briefly",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "A worker has `nanosleep-threads` threads. A pass of a thread is 19 sleeps, each of 8 ns up to 8 ns + \
             2^k ns for k = 18 down to 0.",
            "A bogo op is a pass: 19 system calls, 19 timers and 19 switches away.",
        ],
        parameters: &[parameter("shortest sleep", Quantity::Time(SHORTEST), "stress-nanosleep.c, V0.15.06")],
        simplified: &[
            "The worker's own thread, which adds up the counters every 10 ms, is missing.",
            stress_ng::CPU_TIME,
        ],
    },
    options: &[
        stress_ng::workers("nanosleep"),
        OptionSpec::number("nanosleep-threads", 8, 1, 1024, "threads of a worker"),
        stress_ng::TIMEOUT,
    ],
    metrics: &[stress_ng::METRICS[0], stress_ng::METRICS[1], OVERRUN],
    ends: stress_ng::ENDS,
    build,
};

const COMM: &str = "stress-ng-nanos";
/// The shortest sleep.
const SHORTEST: u64 = 8;

// Registers of a thread.
const ASKED: u8 = 0;
const BEGIN: u8 = 1;
const TOOK: u8 = 2;
// Registers of a worker.
const CHILD: u8 = 0;
const COUNTER: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let overrun = builder.metric(OVERRUN.decl(1));
    let lengths: Vec<u32> = (0..=18)
        .rev()
        .map(|k: u32| builder.dist(Dist::Uniform { low: SHORTEST, high: SHORTEST + (1 << k) - 1 }))
        .collect();
    let mut thread = Code::default();
    rates.forever(&mut thread, 1, |code| {
        for length in lengths {
            code.op(Op::Draw(ASKED, length));
            code.op(Op::Clock(BEGIN));
            code.op(Op::Sleep(Amount::Reg(ASKED)));
            code.elapsed(TOOK, BEGIN);
            code.op(Op::SubReg { into: TOOK, from: ASKED });
            code.op(Op::Sample { metric: overrun, reg: TOOK });
        }
        rates.count(code, 1);
    });
    let thread = builder.program(COMM, thread);
    let threads = u64::from(settings.count("nanosleep-threads"));
    let mut worker = Code::default();
    let fork = Op::Fork { program: thread, kind: TaskKind::Thread, into: CHILD };
    worker.repeat(COUNTER, threads, |code| code.op(fork));
    worker.repeat(COUNTER, threads, |code| code.op(Op::Reap));
    let worker = builder.program(COMM, worker);
    stress_ng::start(builder, settings, "nanosleep", worker)
}
