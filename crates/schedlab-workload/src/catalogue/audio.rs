//! Audio with deadlines, like PipeWire or JACK: a driver and a chain of clients that must be through within a period.

use super::about::{parameter, About, Quantity};
use super::{limit, BuildError, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Better, MetricKind, ObjectSpec, Op, TaskSpec, TimerMode, Unit, Workload};
use schedlab_model::{Nanos, SEC};

const XRUNS: MetricSpec = MetricSpec {
    name: "xruns",
    help: "cycles that ended after the next interrupt",
    unit: Unit::Count,
    better: Better::Lower,
    kind: MetricKind::Total,
    stats: &[],
    queueing: false,
};
const CYCLE: MetricSpec =
    MetricSpec::latency("cycle", &["p99", "max"], "from the interrupt until the chain is through");
const WAKEUP: MetricSpec = MetricSpec::latency("wakeup", &["p99", "max"], "from the interrupt until the driver runs");

pub(super) const ENTRY: Entry = Entry {
    id: "audio",
    summary: "audio with deadlines: driver and client chain",
    about: About {
        structure: &[
            "The sound card interrupts once a period (`quantum` frames at `rate`) and wakes the driver. The \
             driver wakes the first client by its eventfd, each client wakes the next, and the last one the \
             driver, which must hand the samples to the card before the next interrupt. A cycle with n clients is \
             n + 2 wakeups.",
            "A cycle that ends later than the next interrupt is an xrun; the driver then continues with the next \
             interrupt that is still to come.",
        ],
        parameters: &[
            parameter(
                "quantum and rate",
                Quantity::Words("1024 at 48 kHz"),
                "pipewire.conf: default.clock.quantum, default.clock.rate",
            ),
            parameter(
                "load",
                Quantity::Words("20 percent of the period"),
                "chosen, evenly split over driver and clients",
            ),
            parameter(
                "policy",
                Quantity::Words("the default one"),
                "PipeWire asks for SCHED_FIFO 88 or, where it may not have that, nice -11 (module-rt); a scenario \
                 sets it for the tasks `driver` and `client`",
            ),
        ],
        simplified: &["The card's own buffer beyond one period and concurrent clients are missing."],
    },
    options: &[
        OptionSpec::number("quantum", 1024, 16, 8192, "frames of a period"),
        OptionSpec::number("rate", 48_000, 8_000, 384_000, "frames per second"),
        OptionSpec::number("clients", 2, 1, 100, "clients, one after the other"),
        OptionSpec::number("load", 20, 1, 100, "percent of the period that the chain computes"),
        limit::TIME,
    ],
    metrics: &[XRUNS, CYCLE, WAKEUP],
    ends: limit::ENDS,
    build,
};

const DUE: u8 = 0;
const NOW: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let [xruns, cycle, wakeup] = [XRUNS, CYCLE, WAKEUP].map(|spec| builder.metric(spec.decl(1)));
    let period: Nanos = settings.number("quantum").unsigned_abs() * SEC / settings.number("rate").unsigned_abs();
    let clients = settings.count("clients");
    let part = period * settings.number("load").unsigned_abs() / 100 / u64::from(clients + 1);
    let interrupt = builder.object("interrupt".to_string(), ObjectSpec::Timer);
    let event = |builder: &mut Builder, number| builder.object(format!("eventfd {number}"), ObjectSpec::Futex);
    let events: Vec<u32> = (0..=clients).map(|number| event(&mut builder, number)).collect();

    let mut driver = Code::default();
    driver.forever(|code| {
        let in_time = code.mark();
        code.op(Op::Timer { object: interrupt, period: Amount::Fixed(period), mode: TimerMode::Absolute });
        code.op(Op::TimerDue { object: interrupt, into: DUE });
        code.elapsed(NOW, DUE);
        code.op(Op::Sample { metric: wakeup, reg: NOW });
        code.op(Op::Post(events[0]));
        code.op(Op::Wait(events[clients as usize]));
        code.op(Op::Run(Amount::Fixed(part)));
        code.elapsed(NOW, DUE);
        code.op(Op::Sample { metric: cycle, reg: NOW });
        code.jump_below(NOW, period as i64 + 1, in_time);
        code.op(Op::Count { metric: xruns, count: 1 });
        // Interrupts that are past, for which the timer does not wait.
        let late = code.here();
        code.op(Op::Timer { object: interrupt, period: Amount::Fixed(period), mode: TimerMode::Absolute });
        code.op(Op::AddConst(NOW, -(period as i64)));
        code.jump_below(NOW, period as i64 + 1, in_time);
        code.jump(late);
        code.bind(in_time);
    });
    // The card's interrupt has no timer slack.
    let program = builder.program("driver", driver);
    let task = TaskSpec { name: "driver".to_string(), program, timer_slack: 1, ..TaskSpec::default() };
    builder.task(task);
    for number in 0..clients {
        let mut code = Code::default();
        code.forever(|code| {
            code.op(Op::Wait(events[number as usize]));
            code.op(Op::Run(Amount::Fixed(part)));
            code.op(Op::Post(events[number as usize + 1]));
        });
        let program = builder.program("client", code);
        let process = number + 1;
        builder.task(TaskSpec { name: "client".to_string(), program, process, ..TaskSpec::default() });
    }
    Ok(limit::finish(builder, settings, "audio", clients + 1))
}
