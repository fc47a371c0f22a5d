//! What the tests of sysbench 1.0.20 share: main starts worker threads and joins them; each ends with the event in
//! which the time runs out.

use super::{BuildError, MetricSpec, OptionSpec, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Op, ProgramId, TaskKind, TaskSpec, Workload};

pub(super) const THREADS: OptionSpec = OptionSpec::number("threads", 1, 1, 100_000, "worker threads");
pub(super) const TIME: OptionSpec = OptionSpec::time("time", TimeUnit::Seconds, 10, 1_000_000, "end after this time");
pub(super) const RATE: OptionSpec = OptionSpec::not_modelled("rate", "an open loop has no model here");
pub(super) const EVENTS: OptionSpec = OptionSpec::not_modelled("events", "a count that all threads share has no model");

/// Register of a worker with the time it has left; from 4 on a thread gets its parent's.
const LEFT: u8 = 4;
// Registers of a worker for the events of `until_over`, and of main.
const SINCE: u8 = 0;
const TOOK: u8 = 1;
const CHILD: u8 = 0;
const COUNTER: u8 = 1;

/// The metric of sysbench's latency block for events of this kind.
pub(super) const fn latency(help: &'static str) -> MetricSpec {
    MetricSpec::latency("latency", &["mean", "max"], help)
}

/// The time option; sysbench without an end is refused.
pub(super) fn time(settings: &Settings<'_>) -> Result<u64, BuildError> {
    match settings.time("time") {
        0 => Err(settings.error("time", "sysbench without an end is not modelled").expected("1s or more")),
        time => Ok(time),
    }
}

/// A worker that repeats an event until its time is up; `latency` samples each, `rate` counts it. Registers 0, 1 and 4
/// are in use.
pub(super) fn until_over(latency: Option<u16>, rate: Option<u16>, event: impl FnOnce(&mut Code)) -> Code {
    let mut code = Code::default();
    let over = code.mark();
    let top = code.here();
    code.jump_below(LEFT, 1, over);
    code.op(Op::Clock(SINCE));
    event(&mut code);
    code.elapsed(TOOK, SINCE);
    latency.into_iter().for_each(|metric| code.op(Op::Sample { metric, reg: TOOK }));
    rate.into_iter().for_each(|metric| code.op(Op::Count { metric, count: 1 }));
    code.op(Op::SubReg { into: LEFT, from: TOOK });
    code.jump(top);
    code.bind(over);
    code
}

/// Main creates the threads, which run until the time is up, and joins them.
pub(super) fn run_threads(main: &mut Code, settings: &Settings<'_>, program: ProgramId) {
    let threads = u64::from(settings.count("threads"));
    main.op(Op::Set(LEFT, settings.time("time") as i64));
    main.repeat(COUNTER, threads, |code| code.op(Op::Fork { program, kind: TaskKind::Thread, into: CHILD }));
    main.repeat(COUNTER, threads, |code| code.op(Op::Reap));
}

/// The workload with main's program: `before`, then `pass` once, or for ever with `repeat`.
pub(super) fn start(
    mut builder: Builder,
    settings: &Settings<'_>,
    before: impl FnOnce(&mut Code),
    pass: impl FnOnce(&mut Code),
) -> Workload {
    let mut main = Code::default();
    before(&mut main);
    let again = main.here();
    pass(&mut main);
    if settings.repeat {
        main.jump(again);
    } else {
        main.op(Op::Finish);
    }
    let program = builder.program("sysbench", main);
    builder.task(TaskSpec { name: "sysbench".to_string(), program, ..TaskSpec::default() });
    builder.finish(!settings.repeat)
}
