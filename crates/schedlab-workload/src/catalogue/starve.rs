//! `starve`, the test program of "Persistent starvation" (HP Labs, 2003,
//! hpl.hp.com/research/linux/kernel/o1-starve.php): a process signals its parent without pause, which counts the
//! signals and sleeps.

use super::about::{parameter, About, Quantity};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Better, ObjectSpec, Op, TaskKind, TaskSpec, Unit, Workload};

const TIME: MetricSpec =
    MetricSpec::headline("time", Unit::Seconds, Better::Lower, "until the parent has counted all signals");
const RATE: MetricSpec = MetricSpec::rate("signals_per_second", "signals that the parent has handled, per second");
const SENT: MetricSpec = MetricSpec::rate("kills_per_second", "signals that the child has sent, per second");

pub(super) const ENTRY: Entry = Entry {
    id: "starve",
    summary: "starve: signals without pause (HP Labs, 2003)",
    about: About {
        structure: &[
            "A child calls kill(SIGUSR1) on its parent for ever. The parent sleeps until a signal comes, runs the \
             handler, returns by rt_sigreturn and counts, until it has counted `signals`. A signal that is sent \
             while one is pending is lost.",
            "A signal that is counted is one wait and one rt_sigreturn of the parent, at least one kill of the \
             child, one wakeup and one switch to the parent and one away. `copies` pairs run at a time; the first \
             ends the run.",
        ],
        parameters: &[parameter(
            "signals",
            Quantity::Words("10,000,000"),
            "the program in \"Persistent starvation\" (hpl.hp.com/research/linux/kernel/o1-starve.php)",
        )],
        simplified: &[
            "The second of sleep that starts the child is missing, and the cost of setting up the handler's frame \
             beyond that of a call.",
            "A kill that wakes the parent costs a futex wake in addition to the call.",
        ],
    },
    options: &[
        OptionSpec::number("signals", 10_000_000, 1, 1_000_000_000_000, "signals that the parent counts"),
        OptionSpec::number("copies", 1, 1, 100_000, "pairs; the first ends the run"),
    ],
    metrics: &[TIME, RATE, SENT],
    ends: Ends::Always,
    build,
};

const COMM: &str = "starve";

// Registers of the parent.
const CHILD: u8 = 0;
const COUNTER: u8 = 1;
const BEGIN: u8 = 2;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    if settings.repeat {
        let what = "a child that never exits cannot be waited for";
        return Err(settings.error("repeat", what).expected("signals = 1000000000000, which does not end either"));
    }
    let mut builder = Builder::new(settings.name);
    let metrics = [TIME, RATE, SENT].map(|metric| builder.metric(metric.decl(1)));
    for copy in 0..settings.count("copies") {
        let program = pair(&mut builder, settings, copy, metrics);
        builder.task(TaskSpec { name: COMM.to_string(), program, process: copy, ..TaskSpec::default() });
    }
    Ok(builder.finish(true))
}

/// The parent's program of one pair.
fn pair(builder: &mut Builder, settings: &Settings<'_>, copy: u32, [time, rate, sent]: [u16; 3]) -> u32 {
    let call = Op::System(Amount::Fixed(0));
    let pending = builder.object(format!("SIGUSR1 of parent {copy}"), ObjectSpec::Futex);
    let mut child = Code::default();
    child.forever(|code| {
        code.op(call);
        code.op(Op::Post(pending));
        code.op(Op::Count { metric: sent, count: 1 });
    });
    let child = builder.program(COMM, child);
    let mut parent = Code::default();
    parent.op(Op::Fork { program: child, kind: TaskKind::Process, into: CHILD });
    parent.op(Op::Clock(BEGIN));
    let count = |code: &mut Code| {
        code.op(Op::Wait(pending));
        // rt_sigreturn.
        code.op(call);
        code.op(Op::Count { metric: rate, count: 1 });
    };
    if copy == 0 {
        parent.repeat(COUNTER, settings.number("signals").unsigned_abs(), count);
        parent.elapsed(COUNTER, BEGIN);
        parent.op(Op::Sample { metric: time, reg: COUNTER });
        parent.op(Op::Finish);
    } else {
        parent.forever(count);
    }
    builder.program(COMM, parent)
}
