//! `sysbench cpu` 1.0.20: threads that look for primes and never block; an event is one search.
//!
//! The worker threads loop until the time is up, then each ends with the event it is in. The search divides every number
//! by all up to its root or its first divisor: how many divisions that takes is counted here, as the program does them.

use schedlab_model::Nanos;

use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Op, TaskKind, TaskSpec, Workload};

const RATE: MetricSpec = MetricSpec::rate("events_per_second", "searches per second, all threads");
const LATENCY: MetricSpec = MetricSpec::latency("latency", &["mean", "max"], "time of one search");

pub(super) const ENTRY: Entry = Entry {
    id: "sysbench-cpu",
    summary: "sysbench cpu: threads that look for primes and never block (1.0.20)",
    options: &[
        OptionSpec::number("threads", 1, 1, 100_000, "worker threads"),
        OptionSpec::time("time", TimeUnit::Seconds, 10, 1_000_000, "end after this time"),
        OptionSpec::number("cpu-max-prime", 10_000, 3, 1_000_000, "look for primes below this number"),
        OptionSpec::not_modelled("events", "a count that all threads share has no model"),
        OptionSpec::not_modelled("rate", "an open loop has no model here"),
    ],
    metrics: &[RATE, LATENCY],
    ends: Ends::Always,
    build,
};

/// CPU time of 1000 divisions: a guest of 2 vCPUs took 0.22 ms for the 117,526 of the default (fastest of 3,474 events of
/// one thread).
const DIVISIONS_1000: Nanos = 1_872;

// Registers of a worker.
const SINCE: u8 = 0;
const TOOK: u8 = 1;
const LEFT: u8 = 4;
// Registers of main; from INHERITED on a thread gets its parent's.
const CHILD: u8 = 0;
const COUNTER: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let (threads, time) = (settings.count("threads"), settings.time("time"));
    if time == 0 {
        return Err(settings.error("time", "sysbench without an end is not modelled").expected("1s or more"));
    }
    let mut builder = Builder::new(settings.name);
    let (rate, latency) = (builder.metric(RATE.decl(1)), builder.metric(LATENCY.decl(1)));
    let search = Op::Run(Amount::Fixed((divisions(settings.count("cpu-max-prime")) * DIVISIONS_1000).div_ceil(1000)));

    let mut worker = Code::default();
    let over = worker.mark();
    let top = worker.here();
    worker.jump_below(LEFT, 1, over);
    worker.op(Op::Clock(SINCE));
    worker.op(search);
    worker.elapsed(TOOK, SINCE);
    worker.op(Op::Sample { metric: latency, reg: TOOK });
    worker.op(Op::Count { metric: rate, count: 1 });
    worker.op(Op::SubReg { into: LEFT, from: TOOK });
    worker.jump(top);
    worker.bind(over);
    let program = builder.program("sysbench", worker);

    let mut main = Code::default();
    let again = main.here();
    main.op(Op::Set(LEFT, time as i64));
    main.repeat(COUNTER, u64::from(threads), |code| code.op(Op::Fork { program, kind: TaskKind::Thread, into: CHILD }));
    main.repeat(COUNTER, u64::from(threads), |code| code.op(Op::Reap));
    if settings.repeat {
        main.jump(again);
    } else {
        main.op(Op::Finish);
    }
    let program = builder.program("sysbench", main);
    builder.task(TaskSpec { name: "sysbench".to_string(), program, ..TaskSpec::default() });
    Ok(builder.finish(!settings.repeat))
}

/// Divisions of one search.
fn divisions(below: u32) -> u64 {
    let of = |number: u32| {
        let tried = (2..).take_while(|divisor| divisor * divisor <= number);
        let until = tried.clone().position(|divisor| number % divisor == 0);
        until.map_or_else(|| tried.count(), |at| at + 1) as u64
    };
    (3..below).map(of).sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn divisions_are_those_of_the_program() {
        assert_eq!([3, 10, 10_000].map(super::divisions), [0, 7, 117_526]);
    }
}
