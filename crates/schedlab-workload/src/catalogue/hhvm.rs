//! A web server like HHVM, from what its operators published: request threads that need long slices and a short wakeup
//! latency.

use super::about::{parameter, About, Quantity};
use super::{BuildError, Ends, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{
    Amount, Better, Dist, MetricKind, ObjectId, ObjectSpec, OfTasks, Op, Remote, Sends, TaskSpec, Unit, Workload,
};
use schedlab_model::{Nanos, MSEC, USEC};

const RATE: MetricSpec = MetricSpec::rate("requests_per_second", "requests completed per second");
const CPU_RATE: MetricSpec = MetricSpec::cpu_rate(
    "requests_per_cpu_second",
    "requests completed per second of CPU time of the request threads: stands for instructions per cycle",
);
const LATENCY: MetricSpec =
    MetricSpec::latency("latency", &["p50", "p95", "p99"], "from the arrival of a request to its completion");
const QUEUEING: MetricSpec =
    MetricSpec::queueing("queueing", &["p50", "p99"], "from the arrival of a request until a thread takes it");
const SERVICE: MetricSpec =
    MetricSpec::latency("service", &["p50", "p99"], "from when a thread takes a request until it is complete");
const FAULTS: MetricSpec = MetricSpec {
    name: "major_faults_per_minute",
    help: "major faults of preempted requests per minute",
    unit: Unit::PerMinute,
    better: Better::Lower,
    kind: MetricKind::Rate,
    stats: &[],
    queueing: false,
};

/// The columns of the report on EEVDF that the scheduler's events give.
const SCHEDULER: [MetricSpec; 4] = [
    MetricSpec::tasks("switches", OfTasks::Switches, "switches away from request threads per second"),
    MetricSpec::tasks(
        "involuntary_switches",
        OfTasks::InvoluntarySwitches,
        "those of them at which the thread was still runnable, per second",
    ),
    MetricSpec::tasks(
        "run_delay",
        OfTasks::RunDelay,
        "time of the request threads on runqueues without running, of the time in which they could run",
    ),
    MetricSpec::tasks("utilization", OfTasks::Utilization, "CPU time of the request threads, of all CPUs"),
];

pub(super) const ENTRY: Entry = Entry {
    id: "hhvm",
    summary: "HHVM-like web server: 5 to 20 ms requests",
    about: About {
        structure: &[
            "Request threads, two per CPU by default. Each serves a request from its arrival to its end: \
             `request` of CPU time in three parts, with a wait of `wait` for a back end between two parts. A \
             request is two sleeps and, with `load`, one futex wait, so three switches away where nothing \
             preempts it.",
            "Without `load` every thread has the next request at hand, as at the limit of a server's throughput. \
             With `load` clients on other machines send requests at random (Poisson) at a rate that needs that \
             percentage of the CPUs: each interrupts a CPU, whose softirq takes `softirq` before a thread is \
             woken. Latency counts from when the request reached the machine (no coordinated omission). On real \
             kernels a task of the machine sends them.",
            "A thread that was preempted within a request refills its part of the core's cache, for no longer \
             than it was away, and takes a major fault with a probability of `fault-permille`: a read from the \
             disk that all threads share.",
            "`requests_per_cpu_second` stands for instructions per cycle (IPC), which a simulation without \
             instructions does not have. A request executes the same instructions however long it takes, so at one \
             frequency its relative change is that of IPC in user mode, as far as refills cause it. It has no \
             absolute value of IPC, and the system calls and faults of the threads are in the CPU time, which a \
             measured IPC counts with instructions of their own.",
            "On a machine with `caches`, `refill = \"0us\"` and a `working-set` of the workload replace the bound by what \
             the other tasks really displaced, and `sched.warmth` is the IPC of all tasks relative to tasks that \
             refill nothing.",
        ],
        parameters: &[
            parameter(
                "CPU time of a request",
                Quantity::Between(REQUEST[0], REQUEST[1]),
                "what Meta's engineers want undisturbed per request (LKML, April 2023, EEVDF report)",
            ),
            parameter(
                "parts of a request",
                Quantity::Number(PARTS),
                "two waits, as in the README of schbench 1.0, the stand-in of the same engineers",
            ),
            parameter("wait for a back end", Quantity::Words("100 us"), "the sleep of a request of schbench 1.0"),
            parameter(
                "softirq of a request",
                Quantity::Time(SOFTIRQ),
                "estimate, 1 to 5 us: the receive path of TCP for a small segment, about 5,000 cycles; not measured",
            ),
            parameter(
                "request threads per CPU",
                Quantity::Number(2),
                "HHVM's default, Server.ThreadCount in hphp/runtime/base/runtime-option.cpp (from memory)",
            ),
            parameter(
                "fault-permille",
                Quantity::Words("5"),
                "estimate, 1 to 10: the report has major faults rise with the preemptions, no figure is published",
            ),
            parameter(
                "random read of the disk",
                Quantity::Between(READ[0], READ[1]),
                "Intel P4500 of 1 and 2 TB, and of 4 TB (Lenovo product guide 4XB7A08539)",
            ),
            parameter("reads at a time", Quantity::Number(DEPTH as u64), "645,000 reads a second of the same disk"),
            parameter(
                "refill",
                Quantity::Words("57 us"),
                "estimate, 28 to 270 us: 1 MiB of L2 (server cores from Skylake to Cooper Lake) at 55 ns per KiB, \
                 which is what reading 256 KiB takes longer after a forced migration on an i5-12600KF in WSL2 \
                 (17.6 us instead of 3.45); 28 us if half of it is needed again, 270 us at a core's share of the \
                 memory bandwidth (108 GB/s on 28 cores of Skylake-SP)",
            ),
        ],
        simplified: &[
            "The caches above and below the L2 and the cold front end are missing, and how much the other threads \
             really displaced within the bound of a refill.",
            "The tail of the disk (2.5 times the mean at p99.99, anandtech.com/show/13704, page 5), the \
             asynchronous I/O threads and the other services of the machine are missing.",
        ],
    },
    options: &[
        OptionSpec::number("threads", 0, 1, 100_000, "request threads; default: two per CPU").default(Preset::Unset),
        OptionSpec::number(
            "load",
            0,
            1,
            400,
            "percent of the CPUs that arrivals need, each alone in its core; default: always a next request",
        )
        .default(Preset::Unset),
        OptionSpec {
            name: "request",
            kind: OptionKind::Time { unit: TimeUnit::Microseconds, min: 1_000, max: 1_000_000_000 },
            default: Preset::Unset,
            help: "CPU time of every request; default: uniform from 5 to 20 ms",
            short: "",
        },
        OptionSpec::time("wait", TimeUnit::Microseconds, 100, 1_000_000, "wait for a back end, twice per request"),
        OptionSpec::time(
            "refill",
            TimeUnit::Microseconds,
            57,
            10_000,
            "refilling the core's cache after a preemption, at most",
        ),
        OptionSpec::number("fault-permille", 5, 0, 1000, "major faults per thousand preemptions within a request"),
    ],
    metrics: &[
        RATE,
        CPU_RATE,
        LATENCY,
        QUEUEING,
        SERVICE,
        FAULTS,
        SCHEDULER[0],
        SCHEDULER[1],
        SCHEDULER[2],
        SCHEDULER[3],
    ],
    ends: Ends::Never,
    build,
};

/// Parts of a request, with a wait between two of them.
const PARTS: u64 = 3;
/// CPU time of a request, which according to Meta's engineers should not be interrupted.
const REQUEST: [Nanos; 2] = [5 * MSEC, 20 * MSEC];
/// A random read of the disk, and how many it serves at a time.
const READ: [Nanos; 2] = [85 * USEC, 115 * USEC];
const DEPTH: u32 = 74;
const PER_MINUTE: u32 = 60;
/// The work of NET_RX for a request.
const SOFTIRQ: Nanos = 2 * USEC;

// Registers of a request thread.
const ARRIVED: u8 = 0;
const TAKEN: u8 = 1;
const NOW: u8 = 2;
const PART: u8 = 3;
const SEEN: u8 = 4;
const LEFT: u8 = 5;
const SPENT: u8 = 6;
const BEFORE: u8 = 7;

/// What the threads share.
struct Server {
    part: Amount,
    wait: Nanos,
    refill: Nanos,
    disk: ObjectId,
    read: Amount,
    /// Draws below 1000; a fault is a draw below `permille`.
    coin: u32,
    permille: i64,
    rate: u16,
    latency: u16,
    faults: u16,
    cpu_rate: u16,
}

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let threads = match settings.is_given("threads") {
        true => settings.count("threads"),
        false => 2 * settings.nr_cpus as u32,
    };
    let request = match settings.is_given("request") {
        true => Dist::Constant(settings.time("request")),
        false => Dist::Uniform { low: REQUEST[0], high: REQUEST[1] },
    };
    let mean = request.typical();
    let server = Server {
        part: builder.amount(request.scaled(1.0 / PARTS as f64, Nanos::MAX)),
        wait: settings.time("wait"),
        refill: settings.time("refill"),
        disk: builder.object("disk".to_string(), ObjectSpec::Disk { depth: DEPTH }),
        read: builder.amount(Dist::Uniform { low: READ[0], high: READ[1] }),
        coin: builder.dist(Dist::Uniform { low: 0, high: 999 }),
        permille: settings.number("fault-permille"),
        rate: builder.metric(RATE.decl(1)),
        latency: builder.metric(LATENCY.decl(1)),
        faults: builder.metric(FAULTS.decl(1)),
        cpu_rate: builder.metric(CPU_RATE.decl(1)),
    };
    let thread = if settings.is_given("load") {
        let each = mean * 100 / settings.number("load").unsigned_abs() / settings.nr_cpus as u64;
        open(&mut builder, &server, each.max(1))
    } else {
        let mut code = Code::default();
        code.forever(|code| {
            code.op(Op::Clock(ARRIVED));
            server.serve(code);
        });
        code
    };
    let program = builder.program("hhvm", thread);
    builder.task(TaskSpec { name: "hhvm".to_string(), program, count: threads, ..TaskSpec::default() });
    for spec in SCHEDULER {
        builder.metric(spec.decl(1));
    }
    Ok(builder.finish(false))
}

/// The thread of an open loop, and the clients on other machines that send its requests, one each `every` on average.
fn open(builder: &mut Builder, server: &Server, every: Nanos) -> Code {
    let queueing = builder.metric(QUEUEING.decl(1));
    let service = builder.metric(SERVICE.decl(1));
    let queue = builder.object("requests".to_string(), ObjectSpec::Queue);
    let sends = Sends::Every(builder.amount(Dist::Exponential { mean: every }));
    let softirq = Amount::Fixed(SOFTIRQ);
    builder.remote(Remote { name: "arrivals".to_string(), queue, sends, irq_cpus: None, softirq });
    let mut code = Code::default();
    code.forever(|code| {
        code.op(Op::Receive { object: queue, into: ARRIVED });
        code.op(Op::Clock(TAKEN));
        code.op(Op::Copy { into: NOW, from: TAKEN });
        code.op(Op::SubReg { into: NOW, from: ARRIVED });
        code.op(Op::Sample { metric: queueing, reg: NOW });
        server.serve(code);
        code.elapsed(NOW, TAKEN);
        code.op(Op::Sample { metric: service, reg: NOW });
    });
    code
}

impl Server {
    /// One request that arrived at the time in its register.
    fn serve(&self, code: &mut Code) {
        code.op(Op::CpuTime(BEFORE));
        code.op(Op::Preemptions(SEEN));
        let done = code.mark();
        code.op(Op::Set(PART, PARTS as i64));
        let next = code.here();
        code.op(Op::Clock(LEFT));
        code.op(Op::CpuTime(SPENT));
        code.op(Op::SubReg { into: LEFT, from: SPENT });
        code.op(Op::Run(self.part));
        self.preempted(code);
        let last = code.mark();
        code.jump_below(PART, 2, last);
        code.op(Op::Sleep(Amount::Fixed(self.wait)));
        code.bind(last);
        code.dec_jump(PART, next);
        code.bind(done);
        code.op(Op::Count { metric: self.rate, count: 1 });
        code.op(Op::Count { metric: self.cpu_rate, count: 1 });
        code.op(Op::CpuTime(SPENT));
        code.op(Op::SubReg { into: SPENT, from: BEFORE });
        code.op(Op::Sample { metric: self.cpu_rate, reg: SPENT });
        code.elapsed(NOW, ARRIVED);
        code.op(Op::Sample { metric: self.latency, reg: NOW });
    }

    /// What the preemptions of a part cost: each of them a refilled cache, and one of them perhaps a major fault.
    ///
    /// refill = min(preemptions * refill, time of the part - CPU time of the part)
    fn preempted(&self, code: &mut Code) {
        let none = code.mark();
        let faults = code.mark();
        code.op(Op::Preemptions(NOW));
        code.op(Op::SubReg { into: NOW, from: SEEN });
        code.jump_below(NOW, 1, none);
        code.op(Op::AddReg { into: SEEN, from: NOW });
        if self.refill > 0 {
            self.refill(code);
        }
        code.op(Op::Draw(NOW, self.coin));
        code.jump_below(NOW, self.permille, faults);
        code.jump(none);
        code.bind(faults);
        code.op(Op::MajorFault { object: self.disk, service: self.read });
        code.op(Op::Count { metric: self.faults, count: PER_MINUTE });
        code.bind(none);
    }

    /// Refills the cache after the preemptions counted in `NOW`, each for what is left of the time away. `LEFT` is the
    /// time that the thread had been off its CPU when the part began, and then how many refills are left.
    fn refill(&self, code: &mut Code) {
        let refilled = code.mark();
        code.op(Op::CpuTime(SPENT));
        code.op(Op::AddReg { into: LEFT, from: SPENT });
        code.elapsed(SPENT, LEFT);
        code.op(Op::Copy { into: LEFT, from: NOW });
        let again = code.here();
        let whole = code.mark();
        let bounded = code.mark();
        code.jump_below(SPENT, self.refill as i64, bounded);
        code.op(Op::Run(Amount::Fixed(self.refill)));
        code.op(Op::AddConst(SPENT, -(self.refill as i64)));
        code.jump(whole);
        code.bind(bounded);
        code.op(Op::Run(Amount::Reg(SPENT)));
        code.jump(refilled);
        code.bind(whole);
        code.dec_jump(LEFT, again);
        code.bind(refilled);
    }
}
