//! schbench, the line of 2016 to 2019 (commit 3d16b23): wakeup latency of workers that a message thread wakes in
//! batches.

use schedlab_model::{Nanos, MSEC, USEC};

use super::about::{parameter, About, Quantity};
use super::wake_list::{memset_cost, WakeList, NOW, STAMP};
use super::{BuildError, Ends, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Dist, ObjectSpec, Op, ProgramId, Reg, TaskKind, TaskSpec, Workload};

const LATENCY: MetricSpec = MetricSpec::latency(
    "latency",
    &["p50", "p99", "p99.9"],
    "from the start of the batch until the worker ran; with rps: from the request's creation to its end, less its CPU time",
);
pub(super) const TRANSFER: MetricSpec = MetricSpec::rate("transfer", "with pipe: round trips per second of one worker");
const RPS: MetricSpec = MetricSpec::rate("rps", "with rps: requests completed per second");

pub(super) const ENTRY: Entry = Entry {
    id: "schbench",
    summary: "schbench of 2016-2019: wakeups of batches",
    about: About {
        structure: &[
            "`message-threads` message threads with `threads` workers each, all threads of one process.",
            "A worker spins by the wall clock for `cputime`, puts itself on the list of its message thread, wakes \
             that and waits for its own futex. A message thread takes the whole list, takes the time once, wakes \
             every worker on the list, last come first, waits for its own futex, and sleeps for `sleeptime` and \
             up to a quarter more.",
            "A sample is the time from that one moment until the worker runs, so a worker that preempts the \
             message thread delays the rest of its batch. A loop of a worker is two futex calls and one wakeup.",
            "`pipe` is a transfer through shared memory with the same futexes, no pipe; `rps` makes the message \
             thread a generator of requests.",
        ],
        parameters: &[parameter(
            "cputime and sleeptime",
            Quantity::Words("30 ms each"),
            "defaults of schbench.c at 3d16b23; the first commit had 10 ms",
        )],
        simplified: &[
            "Samples of less than 1 us are dropped, as in the program, whose clock has microseconds.",
            "`auto`, which is a series of runs, is missing.",
        ],
    },
    options: &[
        OptionSpec::number("message-threads", 2, 1, 10_000, "message threads").short("m"),
        OptionSpec::number("threads", 16, 1, 100_000, "workers of each message thread").short("t"),
        OptionSpec::time("runtime", TimeUnit::Seconds, 30, 1_000_000, "how long to run").short("r"),
        OptionSpec::time(
            "sleeptime",
            TimeUnit::Microseconds,
            30_000,
            1_000_000_000,
            "pause of the message thread; 0 with pipe",
        )
        .short("s"),
        OptionSpec::time(
            "cputime",
            TimeUnit::Microseconds,
            30_000,
            1_000_000_000,
            "spin of a worker per loop; 0 with pipe",
        )
        .short("c"),
        OptionSpec::number("pipe", 0, 0, 1_048_576, "bytes to transfer per loop; 0 = off").short("p"),
        OptionSpec {
            name: "rps",
            kind: OptionKind::Number { min: 0, max: 100_000_000 },
            default: Preset::Number(0),
            help: "requests per second of all message threads; 0 = off",
            short: "R",
        },
        OptionSpec::not_modelled("auto", "it is a series of runs").short("a"),
        OptionSpec::not_modelled("warmuptime", "later versions have it: use the scenario's warmup").short("w"),
        OptionSpec::not_modelled("no-locking", "only schbench-1.0 has it, whose workers hold a lock of their CPU")
            .short("L"),
    ],
    metrics: &[LATENCY, TRANSFER, RPS],
    ends: Ends::Always,
    build,
};

pub(super) const ENTRY_2020: Entry = Entry {
    id: "schbench-2020",
    summary: "schbench of 2020-2021: busy message threads",
    about: About {
        structure: &["As `schbench`, but a message thread also spins for 30 ms between its wakeups and its sleep."],
        parameters: &[
            parameter(
                "spin of a message thread",
                Quantity::Time(MESSAGE_CPUTIME),
                "schbench.c at abe4f96: the option that should set it is read into itself, so it is always this \
                 long",
            ),
            parameter("cputime and sleeptime", Quantity::Words("30 ms each"), "defaults of schbench.c at abe4f96"),
        ],
        simplified: &["`pipe`, `rps`, `auto-rps`, `auto` and `warmuptime` are missing, see the options."],
    },
    options: &[
        OptionSpec::number("message-threads", 2, 1, 10_000, "message threads").short("m"),
        OptionSpec::number("threads", 16, 1, 100_000, "workers of each message thread").short("t"),
        OptionSpec::time("runtime", TimeUnit::Seconds, 30, 1_000_000, "how long to run").short("r"),
        OptionSpec {
            name: "sleeptime",
            kind: OptionKind::Time { unit: TimeUnit::Microseconds, min: USEC, max: 1_000_000_000_000 },
            default: Preset::Time(30_000_000),
            help: "pause of the message thread",
            short: "s",
        },
        OptionSpec::time("cputime", TimeUnit::Microseconds, 30_000, 1_000_000_000, "spin of a worker per loop")
            .short("c"),
        OptionSpec::not_modelled("message-cputime", "the program ignores it: it is always 30 ms").short("C"),
        OptionSpec::not_modelled("pipe", "its message threads poll then: use schbench or schbench-1.0").short("p"),
        OptionSpec::not_modelled("rps", "it is that of schbench").short("R"),
        OptionSpec::not_modelled("auto-rps", "it reads /proc/stat").short("A"),
        OptionSpec::not_modelled("auto", "it is a series of runs").short("a"),
        OptionSpec::not_modelled("warmuptime", "use the scenario's warmup").short("w"),
        OptionSpec::not_modelled("no-locking", "only schbench-1.0 has it, whose workers hold a lock of their CPU")
            .short("L"),
    ],
    metrics: &[LATENCY],
    ends: Ends::Always,
    build: build_2020,
};

/// `message_cputime`, which the option that should set it does not.
const MESSAGE_CPUTIME: Nanos = 30 * MSEC;
const COMM: &str = "schbench";
/// Register that receives a child's id.
const CHILD: Reg = 0;
const COUNTER: Reg = 1;

/// The options in the program's terms.
struct Config {
    workers: u32,
    sleep: Nanos,
    spin: Nanos,
    transfer: Option<Nanos>,
    /// Spin of a message thread.
    burn: Option<Nanos>,
    /// Requests per second of one message thread.
    rps: u64,
}

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let message_threads = settings.count("message-threads");
    let config = Config::new(settings, message_threads)?;
    run(settings, message_threads, &config)
}

fn build_2020(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let (message_threads, workers) = (settings.count("message-threads"), settings.count("threads"));
    let (sleep, spin) = (settings.time("sleeptime"), settings.time("cputime"));
    let config = Config { workers, sleep, spin, transfer: None, burn: Some(MESSAGE_CPUTIME + USEC), rps: 0 };
    config.check(settings, message_threads)?;
    run(settings, message_threads, &config)
}

fn run(settings: &Settings<'_>, message_threads: u32, config: &Config) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let latency = builder.metric(LATENCY.decl(1));
    let workers = u64::from(message_threads) * u64::from(config.workers);
    let rps = (config.rps > 0).then(|| builder.metric(RPS.decl(1)));
    let transfer = (rps.is_none() && config.transfer.is_some()).then(|| builder.metric(TRANSFER.decl(workers)));
    let mut main = Code::default();
    for index in 0..message_threads {
        let program = match rps {
            Some(rps) => generator(&mut builder, config, index, latency, rps),
            None => messenger(&mut builder, config, index, latency, transfer),
        };
        main.op(Op::Fork { program, kind: TaskKind::Thread, into: CHILD });
    }
    main.op(Op::Sleep(Amount::Fixed(settings.time("runtime"))));
    if !settings.repeat {
        main.op(Op::Finish);
    }
    let program = builder.program(COMM, main);
    builder.task(TaskSpec { name: COMM.to_string(), program, ..TaskSpec::default() });
    Ok(builder.finish(!settings.repeat))
}

impl Config {
    fn new(settings: &Settings<'_>, message_threads: u32) -> Result<Self, BuildError> {
        let bytes = settings.count("pipe");
        // -p sets both times to 0 unless they are given.
        let time = |key| if bytes > 0 && !settings.is_given(key) { 0 } else { settings.time(key) };
        let config = Config {
            workers: settings.count("threads"),
            sleep: if bytes > 0 { 0 } else { time("sleeptime") },
            spin: time("cputime"),
            transfer: (bytes > 0).then(|| memset_cost(bytes)),
            burn: None,
            rps: u64::from(settings.count("rps")) / u64::from(message_threads),
        };
        if config.rps > 0 && config.workers < 2 {
            return Err(settings
                .error("threads", "rps wakes two thirds of the workers at a time")
                .expected("2 or more"));
        }
        if config.rps == 0 && settings.is_set("rps") {
            return Err(settings
                .error("rps", "less than one request per second for each message thread")
                .expected(format!("{message_threads} or more")));
        }
        config.check(settings, message_threads)?;
        Ok(config)
    }

    /// What no line can run.
    fn check(&self, settings: &Settings<'_>, message_threads: u32) -> Result<(), BuildError> {
        if u64::from(self.workers) * u64::from(message_threads) > 200_000 {
            return Err(settings
                .error("threads", "more than 200000 workers")
                .expected("fewer threads or message-threads"));
        }
        if self.rps == 0 && self.spin == 0 && self.transfer.is_none() {
            return Err(settings
                .error("cputime", "a worker that neither spins nor transfers")
                .expected("above 0, or pipe"));
        }
        Ok(())
    }

    /// The wall-clock spin: it ends when more whole microseconds than asked for have passed.
    fn spin(&self, code: &mut Code) {
        if self.spin > 0 {
            code.op(Op::RunWall(Amount::Fixed(self.spin + USEC)));
        }
    }
}

/// A message thread with its workers, in the normal and the pipe mode.
fn messenger(builder: &mut Builder, config: &Config, index: u32, latency: u16, rate: Option<u16>) -> ProgramId {
    let list = WakeList::new(builder, index);
    let mut worker = Code::default();
    worker.forever(|code| {
        config.spin(code);
        if let Some(metric) = rate {
            code.op(Op::Count { metric, count: 1 });
        }
        list.message(code, config.transfer, latency);
    });
    let worker = builder.program(COMM, worker);
    let mut code = Code::default();
    start(&mut code, worker, config.workers);
    let pause = (config.sleep > 0).then(|| {
        let jitter = (config.sleep / USEC / 4).saturating_sub(1) * USEC;
        builder.amount(Dist::Uniform { low: config.sleep, high: config.sleep + jitter })
    });
    list.serve(&mut code, config.transfer, config.burn, pause);
    builder.program(COMM, code)
}

/// A message thread that makes requests: every pause it gives one to each of the next two thirds of the workers.
fn generator(builder: &mut Builder, config: &Config, index: u32, latency: u16, rate: u16) -> ProgramId {
    const OWN: Reg = 2;
    const PEER: Reg = 3;
    const CREATED: Reg = 4;
    let worker = request_worker(builder, config, latency, rate);
    let batch = u64::from(config.workers) * 2 / 3;
    let pause = (1_000_000 / config.rps.div_ceil(batch)) * USEC;
    let ring = builder.object(format!("message thread {index} itself"), ObjectSpec::List);
    let mut code = Code::default();
    // The ring of workers is this thread's own mailbox; its own id comes from a list that only it uses.
    let known = code.mark();
    code.op(Op::ListPush(ring));
    code.op(Op::ListTake(ring));
    code.list_pop(OWN, known);
    code.bind(known);
    code.repeat(COUNTER, u64::from(config.workers), |code| {
        code.op(Op::Fork { program: worker, kind: TaskKind::Thread, into: PEER });
        code.op(Op::MailPeer { peer: OWN, from: PEER });
    });
    code.forever(|code| {
        let none = code.mark();
        code.op(Op::Sleep(Amount::Fixed(pause)));
        code.repeat(COUNTER, batch, |code| {
            code.mail_take(PEER, none);
            code.op(Op::Clock(CREATED));
            code.op(Op::MailPeer { peer: PEER, from: CREATED });
            code.op(Op::PostPeer(PEER));
            code.op(Op::MailPeer { peer: OWN, from: PEER });
        });
        code.bind(none);
    });
    builder.program(COMM, code)
}

/// A worker that serves the requests in its mailbox, oldest first.
fn request_worker(builder: &mut Builder, config: &Config, latency: u16, rate: u16) -> ProgramId {
    let mut code = Code::default();
    let idle = code.mark();
    let top = code.here();
    code.mail_take(STAMP, idle);
    config.spin(&mut code);
    code.elapsed(NOW, STAMP);
    code.op(Op::AddConst(NOW, -i64::try_from(config.spin).unwrap_or(i64::MAX)));
    // What is left below 1 us counts as 1 us.
    let enough = code.mark();
    let sample = code.mark();
    code.jump_below(NOW, 1_000, enough);
    code.jump(sample);
    code.bind(enough);
    code.op(Op::Set(NOW, 1_000));
    code.bind(sample);
    code.op(Op::Sample { metric: latency, reg: NOW });
    code.op(Op::Count { metric: rate, count: 1 });
    code.jump(top);
    code.bind(idle);
    code.op(Op::WaitOwn);
    code.jump(top);
    builder.program(COMM, code)
}

/// Starts the workers.
fn start(code: &mut Code, worker: ProgramId, workers: u32) {
    let fork = Op::Fork { program: worker, kind: TaskKind::Thread, into: CHILD };
    code.repeat(COUNTER, u64::from(workers), |code| code.op(fork));
}
