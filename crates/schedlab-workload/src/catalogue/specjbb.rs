//! A load like SPECjbb2015's composite run: requests at an injection rate, three tiers of worker threads, garbage
//! collection.

use super::about::{parameter, About, Quantity};
use super::service::{collector, collectors, lognormal, shape, COLLECTOR_THREADS, COLLECTOR_WORK};
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
    summary: "SPECjbb-like: injected requests in three tiers",
    about: About {
        structure: &[
            "An injector issues requests at random (Poisson) at `injection-rate` per second, or at what needs \
             `load` percent of the CPUs. A request goes through three tiers, each with a pool of `workers` \
             threads behind a queue: three futex wakeups and three waits. The threads of a garbage collector work \
             in the background.",
            "The response time counts from when the request was due, so a late injector hides nothing.",
            "The benchmark's two results, the highest sustained rate (max-jOPS) and the geometric mean of the \
             rates at which the p99 reaches 10, 25, 50, 75 and 100 ms (critical-jOPS), are found by a sweep over \
             `load`.",
        ],
        parameters: &[
            parameter("work", Quantity::Words("0.7 ms"), "estimate, 0.2 to 2 ms: no figure is published"),
            parameter(
                "threads of a tier",
                Quantity::Words("as many as CPUs"),
                "chosen; the kit sets it by specjbb.forkjoin.workers",
            ),
            parameter("tiers", Quantity::Number(TIERS as u64), "chosen; no figure is published"),
            shape("shape of the work"),
            COLLECTOR_THREADS,
            COLLECTOR_WORK,
        ],
        simplified: &[
            "Stop-the-world pauses, the JIT compiler, fork and join within a request and the network between \
             tiers are missing.",
        ],
    },
    options: &[
        OptionSpec::number("load", 50, 1, 400, "percent of the CPUs that the injection rate needs"),
        OptionSpec::number("injection-rate", 0, 1, 100_000_000, "requests per second; default: as load says")
            .default(Preset::Unset),
        OptionSpec {
            name: "work",
            kind: OptionKind::Time { unit: TimeUnit::Microseconds, min: 1_000, max: 10 * SEC },
            default: Preset::Time(700_000),
            help: "CPU time of a request, all tiers, on average",
            short: "",
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
