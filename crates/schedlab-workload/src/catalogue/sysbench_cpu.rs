//! `sysbench cpu` 1.0.20: threads that look for primes and never block; an event is one search.

use schedlab_model::Nanos;

use super::about::{parameter, About, Quantity};
use super::sysbench::{self, EVENTS, THREADS, TIME};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::Builder;
use crate::{Amount, Op, Workload};

const RATE: MetricSpec = MetricSpec::rate("events_per_second", "searches per second, all threads");
const LATENCY: MetricSpec = sysbench::latency("time of one search");

pub(super) const ENTRY: Entry = Entry {
    id: "sysbench-cpu",
    summary: "sysbench cpu: threads that look for primes",
    about: About {
        structure: &[
            "Main starts `threads` worker threads and joins them; each ends with the event in which the time runs \
             out.",
            "An event divides every number up to `cpu-max-prime` by all numbers up to its root or its first \
             divisor. It makes no system call and never blocks; switches come from other tasks alone.",
        ],
        parameters: &[parameter(
            "1000 divisions",
            Quantity::Time(DIVISIONS_1000),
            "0.22 ms for the 117,526 divisions of the default, the fastest of 3,474 events of one thread on a \
                 guest with 2 vCPUs",
        )],
        simplified: &["`rate` and `events` are missing, see the options."],
    },
    options: &[
        THREADS,
        TIME,
        OptionSpec::number("cpu-max-prime", 10_000, 3, 1_000_000, "look for primes below this number"),
        EVENTS,
        sysbench::RATE,
    ],
    metrics: &[RATE, LATENCY],
    ends: Ends::Always,
    build,
};

/// CPU time of 1000 divisions: a guest of 2 vCPUs took 0.22 ms for the 117,526 of the default (fastest of 3,474 events
/// of one thread).
const DIVISIONS_1000: Nanos = 1_872;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    sysbench::time(settings)?;
    let mut builder = Builder::new(settings.name);
    let (rate, latency) = (builder.metric(RATE.decl(1)), builder.metric(LATENCY.decl(1)));
    let search = Op::Run(Amount::Fixed((divisions(settings.count("cpu-max-prime")) * DIVISIONS_1000).div_ceil(1000)));
    let worker = sysbench::until_over(Some(latency), Some(rate), |code| code.op(search));
    let program = builder.program("sysbench", worker);
    Ok(sysbench::start(builder, settings, |_| {}, |main| sysbench::run_threads(main, settings, program)))
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
