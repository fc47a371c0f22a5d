//! A load like SPECjbb2015's composite run: requests at an injection rate, three tiers of worker threads, garbage collection.
//!
//! - An injector issues requests at random (Poisson) at `injection-rate` per second, or at what needs `load` percent of the
//!   CPUs. A request goes through three tiers, each with a pool of as many threads as there are CPUs, a choice (the kit sets
//!   it by `specjbb.forkjoin.workers`); its parts are a third of `work` each, lognormal with sigma 0.5.
//! - The response time counts from when the request was due, so a late injector hides nothing.
//! - The benchmark has two results: the highest rate that the system sustains (max-jOPS), and the geometric mean of the
//!   rates at which the p99 of response times reaches 10, 25, 50, 75 and 100 ms (critical-jOPS, run and reporting rules).
//!   Both are found by runs at several rates: a sweep over `load`.
//! - `work`, 0.7 ms of CPU time a request, and the collector are choices, no figure is published: as many threads as
//!   HotSpot's default (all CPUs up to 8, then 5/8 of the rest), which take 2 to 10 ms each, every 0.5 to 2 s.
//!
//! Left out: stop-the-world pauses, the JIT compiler, fork and join within a request, the network between tiers.

use super::service::{collector, collectors, lognormal};
use super::{limit, BuildError, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Better, Dist, MetricKind, ObjectSpec, Op, TaskSpec, TimerMode, Unit, Workload};
use schedlab_model::{Nanos, SEC};

const RATE: MetricSpec = MetricSpec::rate("jops", "requests completed per second");
const RESPONSE: MetricSpec = MetricSpec {
    name: "response",
    help: "from when a request is due until its last tier has completed it",
    unit: Unit::Milliseconds,
    better: Better::Lower,
    kind: MetricKind::Samples,
    stats: &["p50", "p95", "p99", "max"],
    queueing: false,
};

pub(super) const ENTRY: Entry = Entry {
    id: "specjbb",
    summary: "SPECjbb-like: requests at an injection rate through three tiers of threads",
    options: &[
        OptionSpec::number("load", 50, 1, 400, "percent of the CPUs that the injection rate needs"),
        OptionSpec::number("injection-rate", 0, 1, 100_000_000, "requests per second; default: as load says")
            .default(Preset::Unset),
        OptionSpec {
            name: "work",
            kind: OptionKind::Time { unit: TimeUnit::Microseconds, min: 1_000, max: 10 * SEC },
            default: Preset::Time(700_000),
            help: "CPU time of a request, all tiers, on average",
        },
        OptionSpec::number("workers", 0, 1, 10_000, "threads of each tier").default(Preset::PerCpu),
        limit::TIME,
    ],
    metrics: &[RATE, RESPONSE],
    ends: limit::ENDS,
    build,
};

const TIERS: usize = 3;

const DUE: u8 = 0;
const NOW: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    if settings.is_given("load") && settings.is_given("injection-rate") {
        return Err(settings.error("load", "`load` and `injection-rate` both set the rate").expected("one of them"));
    }
    let mut builder = Builder::new(settings.name);
    let [rate, response] = [RATE, RESPONSE].map(|spec| builder.metric(spec.decl(1)));
    let work = settings.time("work");
    let every = match settings.is_given("injection-rate") {
        true => SEC / settings.number("injection-rate").unsigned_abs(),
        false => work * 100 / settings.number("load").unsigned_abs() / settings.nr_cpus as u64,
    };
    let queues: Vec<u32> = (1..=TIERS).map(|tier| builder.object(format!("tier {tier}"), ObjectSpec::Queue)).collect();
    let injector = injector(&mut builder, queues[0], every.max(1));
    // The injector is another machine: its timer has no slack.
    let program = builder.program("injector", injector);
    let spec = TaskSpec { name: "injector".to_string(), program, timer_slack: 1, ..TaskSpec::default() };
    builder.task(TaskSpec { process: 1, ..spec });
    for tier in 0..TIERS {
        let part = lognormal(&mut builder, work / TIERS as u64);
        let mut code = Code::default();
        code.forever(|code| {
            code.op(Op::Receive { object: queues[tier], into: DUE });
            code.op(Op::Run(part));
            match queues.get(tier + 1) {
                Some(next) => code.op(Op::Send { object: *next, from: DUE }),
                None => {
                    code.elapsed(NOW, DUE);
                    code.op(Op::Sample { metric: response, reg: NOW });
                    code.op(Op::Count { metric: rate, count: 1 });
                }
            }
        });
        let (name, count) = (format!("tier{}", tier + 1), settings.count("workers"));
        let program = builder.program(&name, code);
        builder.task(TaskSpec { name, program, count, ..TaskSpec::default() });
    }
    let count = collectors(settings.nr_cpus as u32);
    let code = collector(&mut builder);
    let program = builder.program("collector", code);
    builder.task(TaskSpec { name: "collector".to_string(), program, count, ..TaskSpec::default() });
    Ok(limit::finish(builder, settings, "specjbb", 2))
}

fn injector(builder: &mut Builder, queue: u32, every: Nanos) -> Code {
    let timer = builder.object("arrivals".to_string(), ObjectSpec::Timer);
    let period = builder.amount(Dist::Exponential { mean: every });
    let mut code = Code::default();
    code.forever(|code| {
        code.op(Op::Timer { object: timer, period, mode: TimerMode::Absolute });
        code.op(Op::TimerDue { object: timer, into: DUE });
        code.op(Op::Send { object: queue, from: DUE });
    });
    code
}
