//! UnixBench 6.0.0, the small programs: how often per second each does its loop, summed over the copies.

use super::about::{parameter, About, Parameter, Quantity};
use super::{limit, BuildError, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op, ProgramId, TaskKind, TaskSpec, Unit, Workload};

const RATE: MetricSpec = MetricSpec {
    unit: Unit::LoopsPerSecond,
    ..MetricSpec::rate("lps", "loops per second, all copies: the column RESULT")
};
pub(super) const INDEX: MetricSpec =
    MetricSpec { unit: Unit::Count, ..MetricSpec::rate("index", "10 * result / baseline: the column INDEX") };

/// The rate of a program and its index.
#[derive(Clone, Copy)]
struct Score {
    rate: u16,
    index: u16,
}

impl Score {
    /// A program whose result on the machine of the baseline was `baseline` loops per second.
    ///
    /// index = 10 * loops / s / baseline
    fn new(builder: &mut Builder, baseline: u64) -> Self {
        Score { rate: builder.metric(RATE.decl(1)), index: builder.metric(INDEX.decl(baseline)) }
    }

    /// A loop.
    fn count(self, code: &mut Code) {
        code.op(Op::Count { metric: self.rate, count: 1 });
        code.op(Op::Count { metric: self.index, count: 10 });
    }
}

/// Loops per second of the machine of the baseline.
const EXECL_BASELINE: u64 = 43;
const CONTEXT1_BASELINE: u64 = 4_000;
const SPAWN_BASELINE: u64 = 126;
const SYSCALL_BASELINE: u64 = 15_000;
const PIPE_BASELINE: u64 = 12_440;

const fn baseline(lps: u64) -> Parameter {
    parameter(
        "baseline of the index, lps",
        Quantity::Number(lps),
        "pgms/index.base of UnixBench 6.0.0 (byte-unixbench): a SPARCstation 20-61; index = 10 * result / baseline",
    )
}

pub(super) const OPTIONS: &[OptionSpec] =
    &[OptionSpec::number("copies", 1, 1, 100_000, "copies of the program at a time").short("c"), limit::TIME];

pub(super) const EXECL: Entry = Entry {
    id: "unixbench-execl",
    summary: "UnixBench Execl Throughput: exec in a loop (6.0.0)",
    about: About {
        structure: &[
            "`copies` processes, each of which replaces itself by itself. A loop is one exec, no fork, no wakeup; \
             every exec is a point at which the kernel balances.",
        ],
        parameters: &[baseline(EXECL_BASELINE)],
        simplified: &[
            "The counter in the arguments is missing.",
            "The worst third of several runs is not dropped; a run is one pass.",
        ],
    },
    options: OPTIONS,
    metrics: &[RATE, INDEX],
    ends: limit::ENDS,
    build: execl,
};

pub(super) const CONTEXT1: Entry = Entry {
    id: "unixbench-context1",
    summary: "UnixBench Pipe-based Context Switching (6.0.0)",
    about: About {
        structure: &[
            "`copies` pairs of a parent and a child that pass 8 bytes to and fro through two pipes. A loop is one \
             round trip: two writes, two reads, two wakeups, 2.0 switches.",
        ],
        parameters: &[baseline(CONTEXT1_BASELINE)],
        simplified: &[
            "The check of the numbers takes no time.",
            "The worst third of several runs is not dropped; a run is one pass.",
        ],
    },
    options: OPTIONS,
    metrics: &[RATE, INDEX],
    ends: limit::ENDS,
    build: context1,
};

pub(super) const SPAWN: Entry = Entry {
    id: "unixbench-spawn",
    summary: "UnixBench Process Creation: fork and wait (6.0.0)",
    about: About {
        structure: &[
            "`copies` processes. A loop is a fork, the exit of the child and a wait: one wakeup, two switches \
             where parent and child share a CPU.",
        ],
        parameters: &[baseline(SPAWN_BASELINE)],
        simplified: &["The worst third of several runs is not dropped; a run is one pass."],
    },
    options: OPTIONS,
    metrics: &[RATE, INDEX],
    ends: limit::ENDS,
    build: spawn,
};

pub(super) const SYSCALL: Entry = Entry {
    id: "unixbench-syscall",
    summary: "UnixBench System Call Overhead (6.0.0)",
    about: About {
        structure: &[
            "`copies` processes. A loop is five system calls: dup, close, getpid, getuid and umask. There is no \
             wakeup and no switch.",
        ],
        parameters: &[baseline(SYSCALL_BASELINE)],
        simplified: &[
            "All five take what the machine's shortest system call takes.",
            "The worst third of several runs is not dropped; a run is one pass.",
        ],
    },
    options: OPTIONS,
    metrics: &[RATE, INDEX],
    ends: limit::ENDS,
    build: syscall,
};

pub(super) const PIPE: Entry = Entry {
    id: "unixbench-pipe",
    summary: "UnixBench Pipe Throughput in one process (6.0.0)",
    about: About {
        structure: &[
            "`copies` processes. A loop writes 512 bytes to a pipe and reads them back: two system calls, no \
             wakeup and no switch.",
        ],
        parameters: &[baseline(PIPE_BASELINE)],
        simplified: &["The worst third of several runs is not dropped; a run is one pass."],
    },
    options: OPTIONS,
    metrics: &[RATE, INDEX],
    ends: limit::ENDS,
    build: pipe,
};

const CHILD: u8 = 0;

fn execl(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let score = Score::new(&mut builder, EXECL_BASELINE);
    let program = builder.reserve_program();
    let mut code = Code::default();
    score.count(&mut code);
    code.op(Op::Exec(program));
    builder.fill_program(program, "execl", code);
    Ok(limit::copies(builder, settings, "execl", program, settings.count("copies")))
}

fn context1(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let score = Score::new(&mut builder, CONTEXT1_BASELINE);
    let copies = settings.count("copies");
    for copy in 0..copies {
        let program = ping_pong(&mut builder, score, copy);
        let name = "context1".to_string();
        builder.task(TaskSpec { name, program, process: copy, ..TaskSpec::default() });
    }
    Ok(limit::finish(builder, settings, "context1", copies))
}

/// The parent's program of one copy.
fn ping_pong(builder: &mut Builder, score: Score, copy: u32) -> ProgramId {
    const BYTES: u32 = 8;
    let spec = ObjectSpec::Pipe { pages: 16, packet: false };
    let there = builder.object(format!("pipe 1 of copy {copy}"), spec.clone());
    let back = builder.object(format!("pipe 2 of copy {copy}"), spec);
    let mut child = Code::default();
    child.forever(|code| {
        code.op(Op::Read { object: there, bytes: BYTES });
        code.op(Op::Write { object: back, bytes: BYTES });
    });
    let program = builder.program("context1", child);
    let mut parent = Code::default();
    parent.op(Op::Fork { program, kind: TaskKind::Process, into: CHILD });
    parent.forever(|code| {
        code.op(Op::Write { object: there, bytes: BYTES });
        code.op(Op::Read { object: back, bytes: BYTES });
        score.count(code);
    });
    builder.program("context1", parent)
}

fn spawn(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let score = Score::new(&mut builder, SPAWN_BASELINE);
    let child = builder.program("spawn", Code::default());
    let mut code = Code::default();
    code.forever(|code| {
        code.op(Op::Fork { program: child, kind: TaskKind::Process, into: CHILD });
        code.op(Op::Reap);
        score.count(code);
    });
    let program = builder.program("spawn", code);
    Ok(limit::copies(builder, settings, "spawn", program, settings.count("copies")))
}

fn syscall(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    const CALLS: usize = 5;
    let mut builder = Builder::new(settings.name);
    let score = Score::new(&mut builder, SYSCALL_BASELINE);
    let mut code = Code::default();
    code.forever(|code| {
        (0..CALLS).for_each(|_| code.op(Op::System(Amount::Fixed(0))));
        score.count(code);
    });
    let program = builder.program("syscall", code);
    Ok(limit::copies(builder, settings, "syscall", program, settings.count("copies")))
}

fn pipe(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    const BYTES: u32 = 512;
    let mut builder = Builder::new(settings.name);
    let score = Score::new(&mut builder, PIPE_BASELINE);
    let copies = settings.count("copies");
    for copy in 0..copies {
        let object = builder.object(format!("pipe of copy {copy}"), ObjectSpec::Pipe { pages: 16, packet: false });
        let mut code = Code::default();
        code.forever(|code| {
            code.op(Op::Write { object, bytes: BYTES });
            code.op(Op::Read { object, bytes: BYTES });
            score.count(code);
        });
        let program = builder.program("pipe", code);
        builder.task(TaskSpec { name: "pipe".to_string(), program, process: copy, ..TaskSpec::default() });
    }
    Ok(limit::finish(builder, settings, "pipe", copies))
}
