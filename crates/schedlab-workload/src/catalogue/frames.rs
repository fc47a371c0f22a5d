//! A frame loop, as of a game: a main thread, render threads that share a frame, a display that shows one per refresh.

use super::about::{parameter, About, Quantity};
use super::{limit, BuildError, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Better, Dist, MetricKind, ObjectSpec, Op, TaskSpec, TimerMode, Unit, Workload};
use schedlab_model::{Nanos, SEC};

const RATE: MetricSpec = MetricSpec::rate("frames_per_second", "frames presented per second, late ones too");
const DROPPED: MetricSpec = MetricSpec {
    name: "dropped",
    help: "refreshes without a new frame",
    unit: Unit::Count,
    better: Better::Lower,
    kind: MetricKind::Total,
    stats: &[],
    queueing: false,
};
const TIME: MetricSpec =
    MetricSpec::latency("frame", &["p50", "p99", "max"], "from the refresh until the frame is presented");

/// A time with a default that is a part of the period.
const fn part(name: &'static str, help: &'static str) -> OptionSpec {
    let kind = OptionKind::Time { unit: TimeUnit::Microseconds, min: 0, max: SEC };
    OptionSpec { name, kind, default: Preset::Unset, help, short: "" }
}

pub(super) const ENTRY: Entry = Entry {
    id: "frames",
    summary: "a game's frame loop: dropped frames",
    about: About {
        structure: &[
            "At every refresh of the display (`hz`) the main thread computes for `main`, hands the frame to \
             `threads` render threads, which compute for `render` each, waits for all of them and presents the \
             frame: one wakeup per render thread and one of the main thread.",
            "A frame that is not presented by the next refresh leaves that one without a new frame: it is \
             dropped. The main thread then begins with the first refresh that is still to come, so one frame of \
             two and a half periods drops two.",
        ],
        parameters: &[
            parameter(
                "main",
                Quantity::Words("a fifth of the period"),
                "chosen: an idle machine with a CPU for each thread drops almost none",
            ),
            parameter("render", Quantity::Words("a third of the period"), "chosen, as above"),
            parameter("shape of both", Quantity::Words("lognormal, sigma 0.2"), "chosen; no figure is published"),
        ],
        simplified: &[
            "The graphics processor, buffering of several frames, a variable refresh rate, sound and network \
             threads are missing.",
        ],
    },
    options: &[
        OptionSpec::number("hz", 60, 1, 1000, "refreshes of the display per second"),
        OptionSpec::number("threads", 3, 1, 1000, "render threads"),
        part("main", "CPU time of the main thread per frame; default: a fifth of the period"),
        part("render", "CPU time of each render thread per frame; default: a third of the period"),
        limit::TIME,
    ],
    metrics: &[RATE, DROPPED, TIME],
    ends: limit::ENDS,
    build,
};

const SIGMA: f64 = 0.2;

const DUE: u8 = 0;
const TOOK: u8 = 1;
const NOW: u8 = 2;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let [rate, dropped, time] = [RATE, DROPPED, TIME].map(|spec| builder.metric(spec.decl(1)));
    let period = SEC / settings.number("hz").unsigned_abs();
    let threads = settings.number("threads").unsigned_abs();
    let mut work = |key: &str, default: Nanos| {
        let median = if settings.is_given(key) { settings.time(key) } else { default };
        match median {
            0 => Amount::Fixed(0),
            median => builder.amount(Dist::Lognormal { median, sigma: SIGMA }),
        }
    };
    let (main, render) = (work("main", period / 5), work("render", period / 3));
    let refresh = builder.object("refresh".to_string(), ObjectSpec::Timer);
    let start = builder.object("frame".to_string(), ObjectSpec::Semaphore { initial: 0 });
    let done = builder.object("rendered".to_string(), ObjectSpec::Semaphore { initial: 0 });

    let mut code = Code::default();
    code.forever(|code| {
        let next = code.mark();
        code.op(Op::Timer { object: refresh, period: Amount::Fixed(period), mode: TimerMode::Absolute });
        code.op(Op::TimerDue { object: refresh, into: DUE });
        code.op(Op::Run(main));
        code.repeat(NOW, threads, |code| code.op(Op::SemPost(start)));
        code.repeat(NOW, threads, |code| code.op(Op::SemWait(done)));
        code.elapsed(TOOK, DUE);
        code.op(Op::Sample { metric: time, reg: TOOK });
        code.op(Op::Count { metric: rate, count: 1 });
        // Every whole period that is over is a refresh without a frame. Its expiry is past, so the timer does not wait.
        let late = code.here();
        code.jump_below(TOOK, period as i64 + 1, next);
        code.op(Op::Count { metric: dropped, count: 1 });
        code.op(Op::Timer { object: refresh, period: Amount::Fixed(period), mode: TimerMode::Absolute });
        code.op(Op::AddConst(TOOK, -(period as i64)));
        code.jump(late);
        code.bind(next);
    });
    let program = builder.program("main", code);
    builder.task(TaskSpec { name: "main".to_string(), program, timer_slack: 1, ..TaskSpec::default() });
    let mut code = Code::default();
    code.forever(|code| {
        code.op(Op::SemWait(start));
        code.op(Op::Run(render));
        code.op(Op::SemPost(done));
    });
    let program = builder.program("render", code);
    let count = settings.count("threads");
    builder.task(TaskSpec { name: "render".to_string(), program, count, ..TaskSpec::default() });
    Ok(limit::finish(builder, settings, "frames", 1))
}
