//! `stress-ng --cpu` 0.15.06: CPU-bound workers, at full load or at a share of it.

use schedlab_model::{Nanos, MSEC};

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::{BuildError, Ends, Entry, OptionSpec, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Dist, Op, TaskKind, TaskSpec, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-cpu",
    summary: "stress-ng --cpu: busy workers, or a load in percent",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "A worker at a load of 100% never sleeps. A part load works for a slice of CPU time and then sleeps \
             for CPU time * (100 - load) / load by the wall clock, less by how much the last sleep was too long; \
             so contention lowers the share.",
            "A bogo op at full load is no system call; a slice of a part load ends with one select.",
        ],
        parameters: &[
            parameter(
                "CPU time of a bogo op",
                Quantity::Time(BOGO_OP),
                "stress-cpu.c, V0.15.06 scales every method to 1484.5 bogo ops per second of CPU time on its \
                 author's machine; a guest with 2 vCPUs had 1510 with --cpu 1 -t 3",
            ),
            parameter(
                "longest random slice",
                Quantity::Time(LONGEST_SLICE * BOGO_OP),
                "below half a second, stress-cpu.c",
            ),
        ],
        simplified: &[
            "All methods are the same bogo ops.",
            "The CPU time of a slice is that of its work at full rate: where a CPU runs slower (SMT), the share \
             comes out higher.",
            stress_ng::CPU_TIME,
        ],
    },
    options: &[
        OptionSpec::number("cpu", 0, 0, 100_000, "workers; 0 = one per CPU").short("c"),
        OptionSpec::number("cpu-load", 100, 0, 100, "percent of a CPU; 0 sleeps").short("l"),
        OptionSpec::number("cpu-load-slice", -64, -5_000, 5_000, "busy slice: ms; 0 = random; below 0: bogo ops"),
        OptionSpec::number(
            "cpu-ops",
            0,
            0,
            1_000_000_000_000,
            "end each worker after its share of so many bogo ops; 0 = endless",
        ),
        OptionSpec::time("timeout", TimeUnit::Seconds, 0, 1_000_000, "end after this time; 0 = endless").short("t"),
        OptionSpec::not_modelled("cpu-method", "all methods are the same bogo ops here: their rates are normalised"),
    ],
    metrics: stress_ng::METRICS,
    ends: Ends::With(&["cpu-ops", "timeout"]),
    build,
};

/// CPU time of one bogo op: the program scales every method to 1484.5 bogo ops per second of CPU time on its author's
/// machine (stress-cpu.c, V0.15.06). A guest of 2 vCPUs gave 1510 with `--cpu 1 -t 3`.
const BOGO_OP: Nanos = 673_628;
/// Bogo ops of one step at full load: a report every 5 ms.
const STEP: u32 = 8;
/// Bogo ops of the longest random slice: it is below half a second.
const LONGEST_SLICE: Nanos = 500 * MSEC / BOGO_OP;

// Registers of a worker.
const DELAY: u8 = 0;
const BIAS: u8 = 1;
const COUNTER: u8 = 2;
const BEGIN: u8 = 3;
// Register of main.
const CHILD: u8 = 0;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let workers = match settings.count("cpu") {
        0 => settings.nr_cpus as u32,
        workers => workers,
    };
    let load = settings.number("cpu-load");
    let ops = settings.number("cpu-ops").unsigned_abs();
    if ops > 0 && load < 100 {
        return Err(settings
            .error("cpu-ops", "cpu-ops with a part load is not modelled: slices do not end with whole bogo ops")
            .expected("cpu-load = 100, or timeout"));
    }
    if ops > 0 && settings.is_set("timeout") {
        return Err(settings.error("timeout", "cpu-ops and timeout both end the run").expected("one of the two"));
    }
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let code = match load {
        0 => sleeper(),
        100 => full(rates, ops / u64::from(workers)),
        load => part(&mut builder, rates, load.unsigned_abs(), settings.number("cpu-load-slice")),
    };
    let program = builder.program("stress-ng-cpu", code);
    let timeout = if settings.repeat { 0 } else { settings.time("timeout") };
    let ends = !settings.repeat && (ops > 0 || timeout > 0);
    let mut main = Code::default();
    let again = main.here();
    let fork = Op::Fork { program, kind: TaskKind::Process, into: CHILD };
    main.repeat(COUNTER, u64::from(workers), |code| code.op(fork));
    if timeout > 0 {
        main.op(Op::Sleep(Amount::Fixed(timeout)));
    } else {
        main.repeat(COUNTER, u64::from(workers), |code| code.op(Op::Reap));
    }
    if ends {
        main.op(Op::Finish);
    } else {
        main.jump(again);
    }
    let program = builder.program("stress-ng", main);
    builder.task(TaskSpec { name: "stress-ng".to_string(), program, ..TaskSpec::default() });
    Ok(builder.finish(ends))
}

/// Full load, for ever or for `ops` bogo ops.
fn full(rates: Rates, ops: u64) -> Code {
    let mut code = Code::default();
    rates.start(&mut code);
    let step = |code: &mut Code, count: u32| {
        code.op(Op::Run(Amount::Fixed(BOGO_OP * u64::from(count))));
        rates.count(code, count);
        rates.report(code);
    };
    if ops == 0 {
        code.forever(|code| step(code, STEP));
    } else {
        code.repeat(COUNTER, ops / u64::from(STEP), |code| step(code, STEP));
        code.repeat(COUNTER, ops % u64::from(STEP), |code| step(code, 1));
    }
    code
}

/// A load of 0: one long sleep.
fn sleeper() -> Code {
    let mut code = Code::default();
    code.forever(|code| code.op(Op::Sleep(Amount::Fixed(86_400 * schedlab_model::SEC))));
    code
}

/// A part load, for ever.
fn part(builder: &mut Builder, rates: Rates, load: u64, slice: i64) -> Code {
    let idle = |busy: Nanos| i64::try_from(busy * (100 - load) / load).unwrap_or(i64::MAX);
    let mut code = Code::default();
    rates.start(&mut code);
    let (late, asleep) = (code.mark(), code.mark());
    let top = code.here();
    if slice == 0 {
        let ops = builder.dist(Dist::Uniform { low: 1, high: LONGEST_SLICE });
        code.op(Op::Set(DELAY, 0));
        code.op(Op::Draw(COUNTER, ops));
        let more = code.here();
        code.op(Op::Run(Amount::Fixed(BOGO_OP)));
        rates.count(&mut code, 1);
        rates.report(&mut code);
        code.op(Op::AddConst(DELAY, idle(BOGO_OP)));
        code.dec_jump(COUNTER, more);
    } else {
        // Slices in ms end with the bogo op during which the time runs out.
        let wanted = if slice > 0 { (slice.unsigned_abs() * MSEC).div_ceil(BOGO_OP) } else { slice.unsigned_abs() };
        let busy = wanted * BOGO_OP;
        code.op(Op::Run(Amount::Fixed(busy)));
        rates.count(&mut code, wanted as u32);
        rates.report(&mut code);
        code.op(Op::Set(DELAY, idle(busy)));
    }
    code.op(Op::SubReg { into: DELAY, from: BIAS });
    code.jump_below(DELAY, 0, late);
    code.op(Op::Clock(BEGIN));
    code.op(Op::Sleep(Amount::Reg(DELAY)));
    code.elapsed(BIAS, BEGIN);
    code.op(Op::SubReg { into: BIAS, from: DELAY });
    code.jump(asleep);
    code.bind(late);
    code.op(Op::Set(BIAS, 0));
    code.bind(asleep);
    code.jump(top);
    code
}
