//! A video player: decoder threads that work ahead, a presenter that shows a frame at each of its times, and audio.

use super::about::{parameter, About, Quantity};
use super::{limit, BuildError, Entry, MetricSpec, OptionSpec, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Better, Dist, MetricKind, ObjectSpec, Op, TaskSpec, TimerMode, Unit, Workload};
use schedlab_model::SEC;

const RATE: MetricSpec = MetricSpec::rate("frames_per_second", "frames shown at their time, per second");
const DROPPED: MetricSpec = MetricSpec {
    name: "dropped",
    help: "frame times without a new frame",
    unit: Unit::Count,
    better: Better::Lower,
    kind: MetricKind::Total,
    stats: &[],
    queueing: false,
};
const LATENESS: MetricSpec =
    MetricSpec::latency("lateness", &["p99", "max"], "from the time of a frame until it has been presented");

pub(super) const ENTRY: Entry = Entry {
    id: "video",
    summary: "a video player: decoders, presenter, dropped frames",
    about: About {
        structure: &[
            "`threads` decoder threads take a free buffer, decode a frame and queue it; there are `buffers` of \
             them, so they work ahead of the presenter and then sleep. At every frame time the presenter takes \
             the next decoded frame and computes for `present`; giving the buffer back wakes a decoder.",
            "A frame time at which no frame is ready, or which the presenter itself misses by a whole one, is a \
             dropped frame. Frame times follow a fixed clock.",
        ],
        parameters: &[
            parameter(
                "decode",
                Quantity::Words("6 ms in the median"),
                "chosen in the order of 1080p in software; no published trace of a player has it",
            ),
            parameter("shape of it", Quantity::Words("lognormal, sigma 0.5"), "chosen; no figure is published"),
            parameter("present", Quantity::Words("1 ms"), "chosen; no figure is published"),
            parameter("buffers", Quantity::Words("4"), "chosen; no figure is published"),
        ],
        simplified: &[
            "Reordering of frames, reading the file and the graphics processor are missing; `audio` is a workload \
             of its own.",
        ],
    },
    options: &[
        OptionSpec::number("fps", 60, 1, 1000, "frames per second of the video"),
        OptionSpec::number("threads", 2, 1, 1000, "decoder threads"),
        OptionSpec::number("buffers", 4, 1, 1000, "decoded frames that may wait"),
        OptionSpec::time("decode", TimeUnit::Microseconds, 6_000, 1_000_000, "CPU time to decode a frame, median"),
        OptionSpec::time("present", TimeUnit::Microseconds, 1_000, 1_000_000, "CPU time to present a frame"),
        limit::TIME,
    ],
    metrics: &[RATE, DROPPED, LATENESS],
    ends: limit::ENDS,
    build,
};

const SIGMA: f64 = 0.5;

const DUE: u8 = 0;
const TOOK: u8 = 1;
const FRAME: u8 = 2;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let [rate, dropped, lateness] = [RATE, DROPPED, LATENESS].map(|spec| builder.metric(spec.decl(1)));
    let period = SEC / settings.number("fps").unsigned_abs();
    let decode = match settings.time("decode") {
        0 => Amount::Fixed(0),
        median => builder.amount(Dist::Lognormal { median, sigma: SIGMA }),
    };
    let clock = builder.object("frame times".to_string(), ObjectSpec::Timer);
    let free = ObjectSpec::Semaphore { initial: settings.count("buffers") };
    let free = builder.object("free buffers".to_string(), free);
    let frames = builder.object("decoded frames".to_string(), ObjectSpec::Queue);

    let mut code = Code::default();
    code.forever(|code| {
        code.op(Op::SemWait(free));
        code.op(Op::Run(decode));
        code.op(Op::Send { object: frames, from: FRAME });
    });
    let program = builder.program("decoder", code);
    let count = settings.count("threads");
    builder.task(TaskSpec { name: "decoder".to_string(), program, count, ..TaskSpec::default() });

    let next_time = Op::Timer { object: clock, period: Amount::Fixed(period), mode: TimerMode::Absolute };
    let mut code = Code::default();
    code.forever(|code| {
        let (none, over) = (code.mark(), code.mark());
        code.op(next_time);
        code.op(Op::TimerDue { object: clock, into: DUE });
        code.try_receive(frames, FRAME, none);
        code.op(Op::Run(Amount::Fixed(settings.time("present"))));
        code.op(Op::SemPost(free));
        code.elapsed(TOOK, DUE);
        code.op(Op::Sample { metric: lateness, reg: TOOK });
        code.op(Op::Count { metric: rate, count: 1 });
        // Frame times that are past, for which the timer does not wait.
        let late = code.here();
        code.jump_below(TOOK, period as i64 + 1, over);
        code.op(Op::Count { metric: dropped, count: 1 });
        code.op(next_time);
        code.op(Op::AddConst(TOOK, -(period as i64)));
        code.jump(late);
        code.bind(none);
        code.op(Op::Count { metric: dropped, count: 1 });
        code.bind(over);
    });
    let program = builder.program("presenter", code);
    builder.task(TaskSpec { name: "presenter".to_string(), program, timer_slack: 1, ..TaskSpec::default() });
    Ok(limit::finish(builder, settings, "video", 1))
}
