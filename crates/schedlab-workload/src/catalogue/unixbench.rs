//! UnixBench 6.0.0, the small programs: how often per second each does its loop, summed over the copies.
//!
//! - `execl`: a process replaces itself by itself; no fork. Every exec is a point at which the kernel balances.
//! - `context1`: parent and child pass 8 bytes to and fro through two pipes; 2.0 switches per count.
//! - `spawn`: fork, exit of the child, wait.
//! - `syscall`: dup, close, getpid, getuid and umask; `pipe`: 512 bytes written to and read from a pipe by one task.
//!
//! Left out: the index, which is the rate over a baseline, and the dropping of the worst third of several runs.

use super::{limit, BuildError, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op, ProgramId, TaskKind, TaskSpec, Workload};

pub(super) const RATE: MetricSpec = MetricSpec::rate("lps", "loops per second, all copies");
pub(super) const OPTIONS: &[OptionSpec] =
    &[OptionSpec::number("copies", 1, 1, 100_000, "copies of the program at a time"), limit::TIME];

pub(super) const EXECL: Entry = Entry {
    id: "unixbench-execl",
    summary: "UnixBench Execl Throughput: a process that replaces itself again and again (6.0.0)",
    options: OPTIONS,
    metrics: &[RATE],
    ends: limit::ENDS,
    build: execl,
};

pub(super) const CONTEXT1: Entry = Entry {
    id: "unixbench-context1",
    summary: "UnixBench Pipe-based Context Switching: 8 bytes to and fro between two processes (6.0.0)",
    options: OPTIONS,
    metrics: &[RATE],
    ends: limit::ENDS,
    build: context1,
};

pub(super) const SPAWN: Entry = Entry {
    id: "unixbench-spawn",
    summary: "UnixBench Process Creation: fork, exit and wait (6.0.0)",
    options: OPTIONS,
    metrics: &[RATE],
    ends: limit::ENDS,
    build: spawn,
};

pub(super) const SYSCALL: Entry = Entry {
    id: "unixbench-syscall",
    summary: "UnixBench System Call Overhead: five short system calls (6.0.0)",
    options: OPTIONS,
    metrics: &[RATE],
    ends: limit::ENDS,
    build: syscall,
};

pub(super) const PIPE: Entry = Entry {
    id: "unixbench-pipe",
    summary: "UnixBench Pipe Throughput: 512 bytes through a pipe within one process (6.0.0)",
    options: OPTIONS,
    metrics: &[RATE],
    ends: limit::ENDS,
    build: pipe,
};

const CHILD: u8 = 0;

fn execl(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(RATE.decl(1));
    let program = builder.reserve_program();
    let mut code = Code::default();
    code.op(Op::Count { metric, count: 1 });
    code.op(Op::Exec(program));
    builder.fill_program(program, "execl", code);
    Ok(limit::copies(builder, settings, "execl", program, settings.count("copies")))
}

fn context1(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(RATE.decl(1));
    let copies = settings.count("copies");
    for copy in 0..copies {
        let program = ping_pong(&mut builder, metric, copy);
        let name = "context1".to_string();
        builder.task(TaskSpec { name, program, process: copy, ..TaskSpec::default() });
    }
    Ok(limit::finish(builder, settings, "context1", copies))
}

/// The parent's program of one copy.
fn ping_pong(builder: &mut Builder, metric: u16, copy: u32) -> ProgramId {
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
        code.op(Op::Count { metric, count: 1 });
    });
    builder.program("context1", parent)
}

fn spawn(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(RATE.decl(1));
    let child = builder.program("spawn", Code::default());
    let mut code = Code::default();
    code.forever(|code| {
        code.op(Op::Fork { program: child, kind: TaskKind::Process, into: CHILD });
        code.op(Op::Reap);
        code.op(Op::Count { metric, count: 1 });
    });
    let program = builder.program("spawn", code);
    Ok(limit::copies(builder, settings, "spawn", program, settings.count("copies")))
}

fn syscall(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    const CALLS: usize = 5;
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(RATE.decl(1));
    let mut code = Code::default();
    code.forever(|code| {
        (0..CALLS).for_each(|_| code.op(Op::System(Amount::Fixed(0))));
        code.op(Op::Count { metric, count: 1 });
    });
    let program = builder.program("syscall", code);
    Ok(limit::copies(builder, settings, "syscall", program, settings.count("copies")))
}

fn pipe(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    const BYTES: u32 = 512;
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(RATE.decl(1));
    let copies = settings.count("copies");
    for copy in 0..copies {
        let object = builder.object(format!("pipe of copy {copy}"), ObjectSpec::Pipe { pages: 16, packet: false });
        let mut code = Code::default();
        code.forever(|code| {
            code.op(Op::Write { object, bytes: BYTES });
            code.op(Op::Read { object, bytes: BYTES });
            code.op(Op::Count { metric, count: 1 });
        });
        let program = builder.program("pipe", code);
        builder.task(TaskSpec { name: "pipe".to_string(), program, process: copy, ..TaskSpec::default() });
    }
    Ok(limit::finish(builder, settings, "pipe", copies))
}
