//! cyclictest of rt-tests 2.4: threads that sleep to absolute times and sample how late they ran.

use schedlab_model::{CpuId, CpuMask, Nanos, MSEC};

use super::about::{parameter, About, Quantity};
use super::{BuildError, Ends, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Op, Policy, ProgramId, TaskSpec, Workload};

const LATENCY: MetricSpec = MetricSpec::latency(
    "latency",
    &["p50", "p99", "p99.9", "max"],
    "from the timer's expiry until the thread ran; timer slack, 50 us by default, is part of it",
);

const POLICIES: &[&str] = &["other", "normal", "batch", "idle", "fifo", "rr"];

pub(super) const ENTRY: Entry = Entry {
    id: "cyclictest",
    summary: "rt-tests cyclictest: latency of periodic timers",
    about: About {
        structure: &[
            "`threads` threads; thread n has an interval of `interval` + n * `distance`. Each sleeps to an \
             absolute time, takes latency = now - next, and moves `next` on by the interval, over all the times \
             that have passed.",
            "A cycle is one clock_nanosleep, one timer and one wakeup, and one switch away and one back.",
            "The main thread, of the policy other and free to run on every CPU, looks at the counters and sleeps for \
             10 ms in turn; as with --quiet it prints nothing.",
        ],
        parameters: &[
            parameter(
                "statistics and histogram of a cycle",
                Quantity::Time(RECORD),
                "estimate, 50 to 500 ns: 9.7 us a cycle where time counts instructions (a guest on 6.1), of which \
                 its sleep, the switch and two looks at the clock are 9.6",
            ),
            parameter(
                "main thread, between two sleeps",
                Quantity::Time(LOOK),
                "estimate, 50 to 500 ns: 10.4 us a cycle where time counts instructions (a guest on 6.18.12), of \
                 a measuring thread 10.5 us",
            ),
            parameter("its sleep", Quantity::Time(PAUSE), "cyclictest.c: usleep(10000) in main()"),
            parameter(
                "longest exit latency of an idle state",
                Quantity::Words("0 us, unless default-system"),
                "cyclictest.c writes 0 to /dev/cpu_dma_latency",
            ),
        ],
        simplified: &["The main thread does not print the counters, as it does without --quiet."],
    },
    options: &[
        OptionSpec {
            name: "threads",
            kind: OptionKind::NumberOrPerCpu(100_000),
            default: Preset::Number(1),
            help: "number of threads; 0, or true as -t alone: one per CPU",
            short: "t",
        },
        OptionSpec {
            name: "affinity",
            kind: OptionKind::Cpus,
            default: Preset::Unset,
            help: "pins the threads to these CPUs in turn; true, as -a alone: to all",
            short: "a",
        },
        OptionSpec::flag("mlockall", "without effect: no page of the program is ever missing in the model").short("m"),
        OptionSpec::flag("nanosleep", "without effect: cyclictest always uses clock_nanosleep; 2.4 has no -n")
            .short("n"),
        OptionSpec {
            name: "interval",
            kind: OptionKind::Time { unit: TimeUnit::Microseconds, min: 1_000, max: 1_000_000_000_000 },
            default: Preset::Time(1_000_000),
            help: "interval of the first thread",
            short: "i",
        },
        OptionSpec::time("distance", TimeUnit::Microseconds, 500, 1_000_000_000, "added per further thread").short("d"),
        OptionSpec::number("loops", 0, 0, i64::MAX, "end when the first thread has run this often; 0 = endless")
            .short("l"),
        OptionSpec::time("duration", TimeUnit::Seconds, 0, 1_000_000, "end after this time; 0 = endless").short("D"),
        OptionSpec {
            name: "policy",
            kind: OptionKind::Choice(POLICIES),
            default: Preset::Word("other"),
            help: "scheduling policy of the threads",
            short: "",
        },
        OptionSpec::flag("default-system", "leave /dev/cpu_dma_latency alone: CPUs may idle deeply"),
        OptionSpec::flag("smp", "one thread per CPU, each pinned to its own").short("S"),
        OptionSpec::number("histogram", 0, 0, 1_000_000, "as in the program, makes the distance 0").short("h"),
        OptionSpec::number("priority", 0, 0, 99, "real-time priority of the threads; selects fifo unless policy is rr")
            .short("p"),
    ],
    metrics: &[LATENCY],
    ends: Ends::With(&["loops", "duration"]),
    build,
};

/// What a thread does between two sleeps: statistics and histogram, 50 instructions or so. Measured where time counts
/// instructions, from `sched_switch` to `sched_switch`: 9.7 us a cycle of cyclictest 2.4 in a guest on 6.1, of which
/// its sleep, the switch and two looks at the clock are 9.6.
const RECORD: Nanos = 100;
/// What the main thread does between two sleeps, and how long it sleeps.
const LOOK: Nanos = 100;
const PAUSE: Nanos = 10 * MSEC;

// Registers of a thread.
const NEXT: u8 = 0;
const NOW: u8 = 1;
const LATE: u8 = 2;
const COUNTER: u8 = 3;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    if settings.is_set("loops") && settings.is_set("duration") {
        return Err(settings.error("duration", "loops and duration both end the run").expected("one of the two"));
    }
    let smp = settings.flag("smp");
    let threads = match settings.count("threads") {
        0 => settings.nr_cpus as u32,
        _ if smp => settings.nr_cpus as u32,
        threads => threads,
    };
    let policy = policy(settings, threads);
    let cpus = affinity(settings)?;
    // -h makes all threads equal.
    let distance = if settings.is_set("histogram") { 0 } else { settings.time("distance") };
    let mut builder = Builder::new(settings.name);
    let latency = builder.metric(LATENCY.decl(1));
    let loops = if settings.repeat { 0 } else { settings.number("loops").unsigned_abs() };
    let spec = |program, index: u32| TaskSpec {
        name: "cyclictest".to_string(),
        program,
        policy,
        affinity: cpus.get(index as usize % cpus.len().max(1)).map(|cpu| CpuMask::from_iter([*cpu])),
        ..TaskSpec::default()
    };
    let mut same: Option<ProgramId> = None;
    for index in 0..threads {
        let interval = settings.time("interval").saturating_add(distance.saturating_mul(u64::from(index)));
        // Only the first thread's count ends the run, so only its program differs where intervals are equal.
        let counted = if index == 0 { loops } else { 0 };
        let known = same.filter(|_| distance == 0 && index > 1);
        let program = known.unwrap_or_else(|| builder.program("cyclictest", thread(interval, counted, latency)));
        same = Some(program);
        builder.task(spec(program, index));
    }
    let program = builder.program("cyclictest", main_thread());
    // When the others start, it has created them and sleeps.
    builder.task(TaskSpec { name: "cyclictest".to_string(), program, delay: PAUSE, ..TaskSpec::default() });
    let duration = settings.time("duration");
    if duration > 0 && !settings.repeat {
        let mut code = Code::default();
        code.op(Op::Sleep(Amount::Fixed(duration)));
        code.op(Op::Finish);
        let program = builder.program("cyclictest", code);
        builder.task(TaskSpec { name: "cyclictest".to_string(), program, jitter: false, ..TaskSpec::default() });
    }
    let mut workload = builder.finish(!settings.repeat && (loops > 0 || duration > 0));
    workload.idle_latency_limit = (!settings.flag("default-system")).then_some(0);
    Ok(workload)
}

/// The CPUs that threads are pinned to in turn: with `smp` all, without `affinity` none.
fn affinity(settings: &Settings<'_>) -> Result<Vec<CpuId>, BuildError> {
    let all = 0..settings.nr_cpus as u32;
    if settings.flag("smp") || (settings.is_given("affinity") && settings.word("affinity").is_empty()) {
        return Ok(all.map(CpuId).collect());
    }
    if !settings.is_given("affinity") {
        return Ok(Vec::new());
    }
    let text = settings.word("affinity");
    let (list, negated) = text.strip_prefix('!').map_or((text.as_str(), false), |list| (list, true));
    let mut named = CpuMask::default();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            return Err(settings.error("affinity", format!("{text:?} is no list of CPUs")).expected("\"0,2-3\""));
        };
        if first > last || last as usize >= settings.nr_cpus {
            let what = format!("this machine has no CPUs {part}");
            return Err(settings.error("affinity", what).expected(format!("CPUs 0 to {}", settings.nr_cpus - 1)));
        }
        (first..=last).for_each(|cpu| named.set(CpuId(cpu)));
    }
    let cpus: Vec<CpuId> = all.map(CpuId).filter(|cpu| named.has(*cpu) != negated).collect();
    match cpus.is_empty() {
        true => Err(settings.error("affinity", format!("{text:?} leaves no CPU"))),
        false => Ok(cpus),
    }
}

/// A priority makes any policy but rr fifo; a real-time policy without one gets one more than there are threads.
fn policy(settings: &Settings<'_>, threads: u32) -> Policy {
    let priority = settings.count("priority") as u8;
    let default = threads.saturating_add(1).min(99) as u8;
    match (settings.word("policy").as_str(), priority) {
        ("rr", 0) => Policy::RoundRobin(default),
        ("rr", priority) => Policy::RoundRobin(priority),
        ("fifo", 0) => Policy::Fifo(default),
        ("batch", 0) => Policy::Batch,
        ("idle", 0) => Policy::Idle,
        (_, 0) => Policy::Normal,
        (_, priority) => Policy::Fifo(priority),
    }
}

fn main_thread() -> Code {
    let mut code = Code::default();
    let top = code.here();
    code.op(Op::Run(Amount::Fixed(LOOK)));
    code.op(Op::Sleep(Amount::Fixed(PAUSE)));
    code.jump(top);
    code
}

/// One thread; with `loops` above 0 it finishes the workload after so many.
fn thread(interval: Nanos, loops: u64, latency: u16) -> Code {
    let step = i64::try_from(interval).unwrap_or(i64::MAX);
    let mut code = Code::default();
    if loops > 0 {
        code.op(Op::Set(COUNTER, i64::try_from(loops).unwrap_or(i64::MAX)));
    }
    code.op(Op::Clock(NEXT));
    code.op(Op::AddConst(NEXT, step));
    let top = code.here();
    code.op(Op::SleepUntil(NEXT));
    code.elapsed(NOW, NEXT);
    code.op(Op::Sample { metric: latency, reg: NOW });
    code.op(Op::Run(Amount::Fixed(RECORD)));
    let skip = code.here();
    code.op(Op::AddConst(NEXT, step));
    code.op(Op::Clock(NOW));
    code.op(Op::Copy { into: LATE, from: NEXT });
    code.op(Op::SubReg { into: LATE, from: NOW });
    code.jump_below(LATE, 0, skip);
    if loops > 0 {
        code.dec_jump(COUNTER, top);
        code.op(Op::Finish);
    } else {
        code.jump(top);
    }
    code
}
