//! nginx with a thread pool: worker processes accept and parse requests, blocking reads go to a pool of threads.

use super::about::{parameter, About, Quantity};
use super::{limit, BuildError, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Dist, ObjectSpec, Op, TaskSpec, Workload};
use schedlab_model::{Nanos, MSEC, USEC};

const RATE: MetricSpec = MetricSpec::rate("requests_per_second", "responses per second, as wrk's `Requests/sec`");
const LATENCY: MetricSpec =
    MetricSpec::latency("latency", &["mean", "p50", "p99"], "from a request until its response, at the client");

pub(super) const ENTRY: Entry = Entry {
    id: "nginx",
    summary: "nginx 1.22: event loops with a thread pool",
    about: About {
        structure: &[
            "A worker per CPU runs an event loop over its connections. It takes a request and with `aio` = \
             \"threads\" hands the file to its pool (one queue under a mutex), takes the next event, and \
             completes the request when the pool has notified it by an eventfd. With `aio` = \"off\" it sends the \
             file itself.",
            "A request is epoll_wait, recvfrom, openat, fstat, writev, sendfile and close; with threads one more \
             epoll_wait, a futex wake, a futex wait and the write to the eventfd. There are fewer epoll_waits \
             where several events are ready.",
            "`connections` connections are kept alive and spread evenly over the workers; each has one request \
             under way. A client thread per worker, as one of wrk, waits for a response of any of them and sends \
             the next request.",
        ],
        parameters: &[
            parameter(
                "user mode of a request",
                Quantity::Time(USER),
                "a file of 16 KiB in the page cache, nginx 1.22 under wrk, on a guest (Xeon) with other load",
            ),
            parameter(
                "kernel mode of a call beyond its entry",
                Quantity::Time(CALL),
                "9.6 us a request in the same runs, of which 0.9 us are the entries; the rest is split evenly \
                 over six calls",
            ),
            parameter("threads of a pool", Quantity::Number(32), "nginx's default, one pool per worker"),
            parameter(
                "read of a file that is not in the page cache",
                Quantity::Words("0.1 to 1 ms"),
                "chosen: a read from flash up to one that queues",
            ),
        ],
        simplified: &[
            "The softirqs of the network card, new connections (accept), the log and the proxy modules are \
             missing.",
            "The client is another machine's: it has no CPU time, but its wakeups have.",
            "The queue between clients and a worker costs what a futex costs, not a socket and epoll.",
        ],
    },
    options: &[
        OptionSpec::number("worker-processes", 0, 1, 1024, "workers").default(Preset::PerCpu),
        OptionSpec {
            name: "aio",
            kind: OptionKind::Choice(&["threads", "off"]),
            default: Preset::Word("threads"),
            help: "who reads the files: the pool, or the worker itself",
            short: "",
        },
        OptionSpec::number("threads", 32, 1, 1000, "threads of each worker's pool"),
        OptionSpec::number("connections", 0, 1, 10_000, "connections in all; default: 8 per worker")
            .default(Preset::Unset),
        OptionSpec::number("miss-permille", 0, 0, 1000, "files per thousand that are not in the page cache"),
        limit::TIME,
    ],
    metrics: &[RATE, LATENCY],
    ends: limit::ENDS,
    build,
};

/// User mode of a request, half of it before the file is read.
const USER: Nanos = 2_900;
/// Kernel mode of one call beyond its entry.
const CALL: Nanos = 1_450;
/// Calls before the file is read (recvfrom, openat, fstat, writev) and after it (close).
const BEFORE: u64 = 4;
/// The disk.
const DISK: Dist = Dist::Uniform { low: 100 * USEC, high: MSEC };

// Registers.
const BEGIN: u8 = 0;
const NOW: u8 = 1;
const COIN: u8 = 2;

/// What a worker and its threads share.
struct Pool {
    events: u32,
    tasks: u32,
    responses: u32,
    disk: Amount,
    coin: u32,
    misses: i64,
    threads: bool,
}

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    if settings.is_given("threads") && settings.word("aio") == "off" {
        return Err(settings.error("threads", "there is no pool with aio = \"off\"").expected("aio = \"threads\""));
    }
    let mut builder = Builder::new(settings.name);
    let [rate, latency] = [RATE, LATENCY].map(|spec| builder.metric(spec.decl(1)));
    let workers = settings.count("worker-processes");
    let connections = if settings.is_given("connections") { settings.count("connections") } else { 8 * workers };
    let disk = builder.amount(DISK);
    let coin = builder.dist(Dist::Uniform { low: 0, high: 999 });
    let threads = settings.word("aio") == "threads";
    for process in 0..workers {
        let mut queue = |name: &str| builder.object(format!("{name} {process}"), ObjectSpec::Queue);
        let [events, tasks, responses] = ["events", "thread pool", "responses"].map(&mut queue);
        let misses = settings.number("miss-permille");
        let pool = Pool { events, tasks, responses, disk, coin, misses, threads };
        let mut task = |name: &str, code: Code, count: u32, process: u32| {
            let program = builder.program(name, code);
            builder.task(TaskSpec { name: name.to_string(), program, count, process, ..TaskSpec::default() });
        };
        task("nginx", pool.worker(), 1, process);
        if threads {
            task("pool", pool.thread(), settings.count("threads"), process);
        }
        let own = (process..connections).step_by(workers as usize).count() as u64;
        task("client", pool.client(own, rate, latency), 1, workers);
    }
    Ok(limit::finish(builder, settings, "client", workers + 1))
}

impl Pool {
    /// The event loop.
    fn worker(&self) -> Code {
        let mut code = Code::default();
        code.forever(|code| {
            let (read, done) = (code.mark(), code.mark());
            code.op(Op::Receive { object: self.events, into: BEGIN });
            code.jump_below(BEGIN, 0, read);
            code.op(Op::Run(Amount::Fixed(USER / 2)));
            (0..BEFORE).for_each(|_| code.op(Op::System(Amount::Fixed(CALL))));
            if self.threads {
                code.op(Op::Send { object: self.tasks, from: BEGIN });
            } else {
                self.read(code);
                self.respond(code);
            }
            code.jump(done);
            code.bind(read);
            negate(code);
            self.respond(code);
            code.bind(done);
        });
        code
    }

    /// sendfile, which waits for the disk where the file is not in the page cache.
    fn read(&self, code: &mut Code) {
        let (missed, go) = (code.mark(), code.mark());
        if self.misses > 0 {
            code.op(Op::Draw(COIN, self.coin));
            code.jump_below(COIN, self.misses, missed);
            code.jump(go);
            code.bind(missed);
            code.op(Op::Sleep(self.disk));
            code.bind(go);
        }
        code.op(Op::System(Amount::Fixed(CALL)));
    }

    fn respond(&self, code: &mut Code) {
        code.op(Op::Run(Amount::Fixed(USER / 2)));
        code.op(Op::System(Amount::Fixed(CALL)));
        code.op(Op::Send { object: self.responses, from: BEGIN });
    }

    /// A thread of the pool.
    fn thread(&self) -> Code {
        let mut code = Code::default();
        code.forever(|code| {
            code.op(Op::Receive { object: self.tasks, into: BEGIN });
            self.read(code);
            negate(code);
            code.op(Op::Send { object: self.events, from: BEGIN });
        });
        code
    }

    /// The thread that serves this many connections of the worker.
    fn client(&self, connections: u64, rate: u16, latency: u16) -> Code {
        let request = |code: &mut Code| {
            code.op(Op::Clock(BEGIN));
            code.op(Op::Send { object: self.events, from: BEGIN });
        };
        let mut code = Code::default();
        // The clock begins at 0, and an event of 0 has no sign.
        code.op(Op::Sleep(Amount::Fixed(1)));
        code.repeat(COIN, connections, request);
        code.forever(|code| {
            code.op(Op::Receive { object: self.responses, into: BEGIN });
            code.elapsed(NOW, BEGIN);
            code.op(Op::Sample { metric: latency, reg: NOW });
            code.op(Op::Count { metric: rate, count: 1 });
            request(code);
        });
        code
    }
}

/// An event is the time of a request that has come or, negative, of one whose file has been read.
fn negate(code: &mut Code) {
    code.op(Op::Copy { into: COIN, from: BEGIN });
    code.op(Op::Set(BEGIN, 0));
    code.op(Op::SubReg { into: BEGIN, from: COIN });
}
