//! A load like the NAS Parallel Benchmarks with OpenMP: ranks that compute and meet at a barrier, again and again.

use super::about::{parameter, About, Quantity};
use super::openmp::{self, Barrier, WAIT_POLICY};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Better, Dist, Op, ProgramId, TaskKind, TaskSpec, Unit, Workload};
use schedlab_model::Nanos;

const TIME: MetricSpec =
    MetricSpec::headline("time", Unit::Seconds, Better::Lower, "from the start of the ranks until the last has ended");
const RATE: MetricSpec = MetricSpec::rate("phases_per_second", "barriers that all ranks have passed per second");
const WAIT: MetricSpec =
    MetricSpec::latency("wait", &["mean", "p99"], "of each rank at each barrier, spinning or sleeping");

pub(super) const ENTRY: Entry = Entry {
    id: "nas",
    summary: "NAS-like: ranks that meet at a barrier",
    about: About {
        structure: &[
            "`ranks` threads of one process. Each computes for `work`, uniform within `imbalance` percent of it, \
             and waits at the barrier until all have come, `iterations` times. The slowest rank decides how long \
             a phase takes; `straggler` makes the phases of the first rank longer.",
            "A thread that waits spins and then sleeps on a futex; the last one to arrive wakes the sleepers.",
        ],
        parameters: &[
            parameter(
                "work",
                Quantity::Words("1 ms"),
                "chosen: the suite reaches from barriers every few tens of microseconds to seconds",
            ),
            parameter("imbalance", Quantity::Words("5 percent"), "chosen; no figure is published"),
            openmp::SPINNING,
            openmp::SPINNING_CROWDED,
        ],
        simplified: &["Memory bandwidth, caches and data exchanged between ranks are missing.", openmp::BARRIER],
    },
    options: &[
        OptionSpec::number("ranks", 0, 2, 10_000, "threads").default(Preset::PerCpu),
        OptionSpec::time("work", TimeUnit::Microseconds, 1000, 10_000_000, "CPU time of a rank between two barriers"),
        OptionSpec::number("imbalance", 5, 0, 100, "percent by which that varies, up and down"),
        OptionSpec::number("straggler", 0, 0, 10_000, "percent by which the first rank has more to do"),
        OptionSpec::number("iterations", 1000, 1, 100_000_000, "barriers"),
        WAIT_POLICY,
    ],
    metrics: &[TIME, RATE, WAIT],
    ends: Ends::Always,
    build,
};

// Registers of a rank.
const LEFT: u8 = 0;
const SINCE: u8 = 1;
const NOW: u8 = 2;
// Registers of main.
const CHILD: u8 = 0;
const BEGIN: u8 = 1;
const COUNTER: u8 = 4;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let [time, rate, wait] = [TIME, RATE, WAIT].map(|spec| builder.metric(spec.decl(1)));
    let ranks = settings.number("ranks").max(2).unsigned_abs();
    let barrier = Barrier::new(&mut builder, settings, ranks);
    let phases = settings.number("iterations").unsigned_abs();
    let work = settings.time("work");
    let percent = settings.number("imbalance").unsigned_abs();
    let mut program = |work: Nanos| {
        let work = builder.amount(spread(work, percent));
        let mut code = Code::default();
        // Two phases at a time, one with each kind of tickets; an odd one comes first.
        if phases % 2 == 1 {
            phase(&mut code, &barrier, work, 1, [rate, wait]);
        }
        let pair = |code: &mut Code| (0..2).for_each(|kind| phase(code, &barrier, work, kind, [rate, wait]));
        code.repeat(LEFT, phases / 2, pair);
        builder.program("nas", code)
    };
    let straggler = program(work + work * settings.number("straggler").unsigned_abs() / 100);
    let rank = program(work);
    let code = main_thread(settings.repeat, [straggler, rank], ranks, time);
    let program = builder.program("nas", code);
    builder.task(TaskSpec { name: "nas".to_string(), program, ..TaskSpec::default() });
    Ok(builder.finish(!settings.repeat))
}

fn spread(work: Nanos, percent: u64) -> Dist {
    match percent {
        0 => Dist::Constant(work),
        _ => Dist::Uniform { low: work - work * percent / 100, high: work + work * percent / 100 },
    }
}

/// Computes and meets the others.
fn phase(code: &mut Code, barrier: &Barrier, work: Amount, kind: usize, [rate, wait]: [u16; 2]) {
    code.op(Op::Run(work));
    code.op(Op::Clock(SINCE));
    barrier.meet(code, kind, |code| code.op(Op::Count { metric: rate, count: 1 }));
    code.elapsed(NOW, SINCE);
    code.op(Op::Sample { metric: wait, reg: NOW });
}

/// Starts the ranks and waits for them.
fn main_thread(repeat: bool, [straggler, rank]: [ProgramId; 2], ranks: u64, time: u16) -> Code {
    let mut code = Code::default();
    let again = code.here();
    code.op(Op::Clock(BEGIN));
    let fork = |code: &mut Code, program| code.op(Op::Fork { program, kind: TaskKind::Thread, into: CHILD });
    fork(&mut code, straggler);
    code.repeat(COUNTER, ranks - 1, |code| fork(code, rank));
    code.repeat(COUNTER, ranks, |code| code.op(Op::Reap));
    code.elapsed(NOW, BEGIN);
    code.op(Op::Sample { metric: time, reg: NOW });
    match repeat {
        true => code.jump(again),
        false => code.op(Op::Finish),
    }
    code
}
