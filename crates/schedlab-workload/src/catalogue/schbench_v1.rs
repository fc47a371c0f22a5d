//! schbench 1.0 (2023 to 2025): requests of a short sleep and matrix work under a spin lock per CPU.

use schedlab_model::Nanos;

use super::about::{parameter, About, Quantity};
use super::schbench::TRANSFER;
use super::schbench_v1_auto_rps::Main;
use super::wake_list::{memset_cost, sample_from_1us, WakeList, NOW};
use super::{schbench_v1_rps, BuildError, Ends, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op, Reg, TaskKind, TaskSpec, Workload};

const WAKEUP: MetricSpec =
    MetricSpec::latency("wakeup_latency", &["p50", "p99"], "from the start of the batch until the worker ran");
const REQUEST: MetricSpec =
    MetricSpec::latency("request_latency", &["p50", "p99"], "one request: sleep, wait for the lock, work");
const RPS: MetricSpec = MetricSpec::rate("average_rps", "requests completed per second, all workers");
const RPS_SECOND: MetricSpec =
    MetricSpec::per_second("rps", &["p20", "p50", "p90"], "requests completed in each second, all workers");

pub(super) const ENTRY: Entry = Entry {
    id: "schbench-1.0",
    summary: "schbench 1.0: requests under per-CPU locks",
    about: About {
        structure: &[
            "`message-threads` message threads with `threads` workers each, all threads of one process. A message \
             thread waits for its futex and wakes all the workers on its list under one time stamp.",
            "A worker puts itself on the list, wakes its message thread and waits (sample of the wakeup). Its \
             request then sleeps for `sleep_usec`, takes the spinlock of the CPU on which it runs, multiplies \
             matrices, and releases the lock (sample of the request). A request is three system calls that may \
             block: the wake, the wait and the sleep.",
            "With `pipe` a worker has no request: it passes the bytes that the message thread has written back. \
             `rps` makes the message thread a generator that gives a request to one worker after the other, eight \
             at a time, with pauses; a worker that has been given nine gets none. `auto-rps` has main read \
             /proc/stat every second and change that rate until the CPUs are as busy as requested.",
        ],
        parameters: &[
            parameter(
                "one multiply-add",
                Quantity::Picos(MULTIPLY_ADD_PS as u64),
                "five products of 104 x 104 took about 2.6 ms with gcc -O2 on a guest with 2 vCPUs (Xeon, Linux \
                 6.18); the author's README has 17 ms for a request on the author's machine",
            ),
            parameter(
                "operations of a request",
                Quantity::Words("operations * n^3, n = sqrt(cache_footprint / 24 bytes)"),
                "schbench.c: three matrices of 8-byte numbers",
            ),
            parameter(
                "working set of a worker",
                Quantity::Words("the three matrices, 3 * 8 * n^2 bytes: 253 KiB by default; none with `pipe`"),
                "schbench.c: each worker allocates its own and multiplies them in every request",
            ),
            parameter("first rate of auto-rps", Quantity::Number(AUTO_RPS as u64), "schbench.c of 2023-04 to 2025-04"),
        ],
        simplified: &[
            "The matrices are a working set, of which a worker refills what others have evicted, in any order.",
            "The generator of `rps` is that of 2023-04 to 2025-04; later versions give the requests of a second \
             without a pause and drop from 129 on.",
            "The factor of auto-rps is a whole number of millionths instead of a float, and a rate of 0, at which \
             the program divides by 0, is 1.",
            "The table of requests per second is not reset when auto-rps is within 5% of its goal; use the \
             scenario's `warmup`.",
        ],
    },
    options: &[
        OptionSpec::number("message-threads", 1, 1, 10_000, "message threads").short("m"),
        OptionSpec::number("threads", 0, 1, 100_000, "workers of each message thread; default: one per CPU in all")
            .short("t")
            .default(Preset::PerCpu),
        OptionSpec::time("runtime", TimeUnit::Seconds, 30, 1_000_000, "how long to run").short("r"),
        OptionSpec::number("operations", 5, 0, 1_000_000, "matrix multiplications per request").short("n"),
        OptionSpec::number("cache_footprint", 256, 1, 1_048_576, "KB of the three matrices").short("F"),
        OptionSpec::time("sleep_usec", TimeUnit::Microseconds, 100, 1_000_000_000, "sleep at the start of a request")
            .short("s"),
        OptionSpec::flag("no-locking", "no lock around the work").short("L"),
        OptionSpec::flag("calibrate", "no lock, and the sleep is no part of the request's time").short("C"),
        OptionSpec {
            name: "pipe",
            kind: OptionKind::Number { min: 0, max: 1_048_576 },
            default: Preset::Number(0),
            help: "bytes to transfer instead of the work; 0 = off",
            short: "p",
        },
        OptionSpec {
            name: "rps",
            kind: OptionKind::Number { min: 0, max: 1_000_000 },
            default: Preset::Number(0),
            help: "requests per second of all message threads, as up to 2025-04; 0 = off",
            short: "R",
        },
        OptionSpec::number(
            "auto-rps",
            0,
            0,
            100,
            "target utilisation of all CPUs in percent, to which rps is adapted, from 10 on; 0 = off",
        )
        .short("A"),
        OptionSpec::not_modelled("split", "data that threads share has no model"),
        OptionSpec::not_modelled("message-cpus", "use the scenario's own affinity").short("M"),
        OptionSpec::not_modelled("worker-cpus", "use the scenario's own affinity").short("W"),
        OptionSpec::not_modelled("warmuptime", "use the scenario's warmup").short("w"),
    ],
    metrics: &[WAKEUP, REQUEST, RPS, RPS_SECOND, TRANSFER],
    ends: Ends::Always,
    build,
};

/// Picoseconds of one multiply-add of the naive matrix product: five products of 104 x 104 took about 2.6 ms with
/// gcc -O2 on a guest of 2 vCPUs.
const MULTIPLY_ADD_PS: u128 = 462;

/// Requests per second with which `auto-rps` begins.
const AUTO_RPS: u32 = 10;

/// Register that receives a child's id.
const CHILD: Reg = 0;
const COUNTER: Reg = 1;
/// Register of a worker: start of its request.
const BEGIN: Reg = 2;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let message_threads = settings.count("message-threads");
    let workers = match settings.is_given("threads") {
        true => settings.count("threads"),
        false => (settings.nr_cpus as u32).div_ceil(message_threads),
    };
    if u64::from(workers) * u64::from(message_threads) > 200_000 {
        return Err(settings.error("threads", "more than 200000 workers").expected("fewer threads or message-threads"));
    }
    let rps = rps(settings, message_threads, workers)?;
    let mut builder = Builder::new(settings.name);
    let pipe = settings.count("pipe");
    let wakeup = builder.metric(WAKEUP.decl(1));
    let measured = match pipe {
        0 => Measured::Requests([REQUEST, RPS, RPS_SECOND].map(|spec| builder.metric(spec.decl(1)))),
        _ => Measured::Transfers(builder.metric(TRANSFER.decl((workers * message_threads).into()))),
    };
    let locks = builder.object("lock of the CPU".to_string(), ObjectSpec::CpuLocks);
    let mut message_programs = Vec::new();
    for index in 0..message_threads {
        if rps > 0 {
            let body = |code: &mut Code| measured.body(code, settings, locks);
            let generator = schbench_v1_rps::generator(&mut builder, index, workers, rps, wakeup, &body);
            message_programs.push(generator);
            continue;
        }
        let list = WakeList::new(&mut builder, index);
        let transfer = (pipe > 0).then(|| memset_cost(pipe));
        let mut code = Code::default();
        code.forever(|code| {
            list.message(code, transfer, wakeup);
            measured.body(code, settings, locks);
        });
        let worker = builder.program("schbench-worker", code);
        let mut code = Code::default();
        let fork = Op::Fork { program: worker, kind: TaskKind::Thread, into: CHILD };
        code.repeat(COUNTER, u64::from(workers), |code| code.op(fork));
        list.serve(&mut code, transfer, None, None);
        message_programs.push(builder.program("schbench-msg", code));
    }
    if pipe == 0 {
        builder.working_set("schbench-worker", matrices_kib(settings));
    }
    let (percent, runtime) = (settings.count("auto-rps"), settings.time("runtime"));
    let mut main = Code::default();
    if percent > 0 {
        main = Main { percent, nr_cpus: settings.nr_cpus as u64, rps, runtime }.code(&mut builder, &message_programs);
    } else {
        let fork = |program| Op::Fork { program, kind: TaskKind::Thread, into: CHILD };
        message_programs.iter().for_each(|program| main.op(fork(*program)));
        main.op(Op::Sleep(Amount::Fixed(runtime)));
    }
    if !settings.repeat {
        main.op(Op::Finish);
    }
    let program = builder.program("schbench", main);
    builder.task(TaskSpec { name: "schbench".to_string(), program, ..TaskSpec::default() });
    Ok(builder.finish(!settings.repeat))
}

/// Requests per second of one message thread; 0 without `rps`.
fn rps(settings: &Settings<'_>, message_threads: u32, workers: u32) -> Result<u64, BuildError> {
    // A worker has a program of its own then.
    const MOST: u64 = 20_000;
    let asked = match (settings.is_set("rps"), settings.is_set("auto-rps")) {
        (true, _) => settings.count("rps"),
        (false, true) => AUTO_RPS,
        (false, false) => return Ok(0),
    };
    if settings.is_set("pipe") {
        return Err(settings.error("rps", "rps and pipe are two modes").expected("one of them"));
    }
    if u64::from(workers) * u64::from(message_threads) > MOST {
        return Err(settings.error("rps", format!("more than {MOST} workers")).expected("fewer threads"));
    }
    match u64::from(asked / message_threads) {
        0 => {
            let what = "less than one request per second for each message thread";
            Err(settings.error("rps", what).expected(format!("{message_threads} or more")))
        }
        each => Ok(each),
    }
}

/// What a worker does after it was woken, and the metrics of that.
#[derive(Clone, Copy)]
enum Measured {
    /// A request: its latency, the rate, the rate of every second.
    Requests([u16; 3]),
    /// With `pipe`, nothing: the transfer is part of the wait.
    Transfers(u16),
}

impl Measured {
    fn body(self, code: &mut Code, settings: &Settings<'_>, locks: u32) {
        match self {
            Measured::Requests(metrics) => request(code, settings, locks, metrics),
            Measured::Transfers(metric) => code.op(Op::Count { metric, count: 1 }),
        }
    }
}

/// One request.
fn request(code: &mut Code, settings: &Settings<'_>, locks: u32, [request, rps, rps_second]: [u16; 3]) {
    let calibrate = settings.flag("calibrate");
    let locked = !calibrate && !settings.flag("no-locking");
    let sleep = settings.time("sleep_usec");
    let work = work(settings.number("cache_footprint").unsigned_abs(), settings.number("operations").unsigned_abs());
    code.op(Op::Clock(BEGIN));
    if sleep > 0 {
        code.op(Op::Sleep(Amount::Fixed(sleep)));
    }
    if calibrate {
        code.op(Op::Clock(BEGIN));
    }
    if locked {
        code.op(Op::CpuLock(locks));
    }
    if work > 0 {
        code.op(Op::Run(Amount::Fixed(work)));
    }
    if locked {
        code.op(Op::CpuUnlock(locks));
    }
    code.op(Op::Count { metric: rps, count: 1 });
    code.op(Op::Count { metric: rps_second, count: 1 });
    code.elapsed(NOW, BEGIN);
    sample_from_1us(code, NOW, request);
}

/// Rows of each of three square matrices of 8-byte numbers that fill the footprint.
fn side(footprint_kb: u64) -> u64 {
    (footprint_kb * 1024 / 3 / 8).isqrt()
}

/// CPU time of the matrix work of one request.
fn work(footprint_kb: u64, operations: u64) -> Nanos {
    let total = u128::from(side(footprint_kb)).pow(3) * u128::from(operations) * MULTIPLY_ADD_PS / 1000;
    Nanos::try_from(total).unwrap_or(Nanos::MAX)
}

/// KiB of a worker's matrices.
fn matrices_kib(settings: &Settings<'_>) -> u32 {
    let side = side(settings.number("cache_footprint").unsigned_abs());
    u32::try_from(3 * 8 * side * side / 1024).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{build, OptionValue, Where};
    use super::work;

    /// Three matrices of 104 x 104 numbers of 8 bytes; only workers have them, also those of `rps`.
    #[test]
    fn a_worker_has_its_matrices_as_working_set() {
        let option = |name: &str, value| (name.to_owned(), OptionValue::Int(value), Where::default());
        let cases =
            [(vec![], 253), (vec![("cache_footprint", 64)], 63), (vec![("rps", 100)], 253), (vec![("pipe", 64)], 0)];
        for (options, kib) in cases {
            let options: Vec<_> = options.into_iter().map(|(name, value)| option(name, value)).collect();
            let workload = build("schbench-1.0", &options, "s", false, 2).unwrap();
            for program in &workload.programs {
                let want = if program.name == "schbench-worker" { kib } else { 0 };
                assert_eq!(program.working_set, want, "{} {options:?}", program.name);
            }
        }
    }

    #[test]
    fn the_default_request_is_the_measured_one() {
        assert!((2_590_000..2_610_000).contains(&work(256, 5)), "{}", work(256, 5));
        assert_eq!(work(256, 0), 0);
    }
}
