//! UnixBench Shell Scripts 6.0.0: `looper` runs `multi.sh N` again and again; that runs N copies of `tst.sh` at a time.
//!
//! A `tst.sh` is a shell that runs sort; od piped to sort; grep piped to tee piped to wc; rm. So an iteration with one copy
//! forks and executes eight programs below multi.sh, one with eight copies 64. A pipeline's data, 1 KB, passes through
//! pipes. Every program has the same work of its own: an iteration with one copy took 9.3 ms in a guest with 2 vCPUs, of
//! which nine forks and execs took 5.3 ms; 0.4 ms is what is left for each of the ten programs and shells.
//! Left out: files, and the work of the shells beyond that.

use super::{limit, BuildError, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectId, ObjectSpec, Op, ProgramId, TaskKind, TaskSpec, Unit, Workload};
use schedlab_model::{Nanos, USEC};

const RATE: MetricSpec =
    MetricSpec { unit: Unit::PerMinute, ..MetricSpec::rate("lpm", "iterations of multi.sh per minute, all copies") };

pub(super) const ENTRY: Entry = Entry {
    id: "unixbench-shell",
    summary: "UnixBench Shell Scripts: shells that run pipelines of short programs (6.0.0)",
    options: &[
        OptionSpec::number(
            "concurrent",
            1,
            1,
            64,
            "copies of tst.sh that multi.sh runs at a time: shell1, shell8, shell16",
        ),
        OptionSpec::number("copies", 1, 1, 10_000, "copies of the program at a time"),
        limit::TIME,
    ],
    metrics: &[RATE],
    ends: limit::ENDS,
    build,
};

/// Work of a program or shell of its own.
const WORK: Nanos = 400 * USEC;
/// Bytes that a pipeline passes on.
const DATA: u32 = 1024;
const PER_MINUTE: u32 = 60;

const CHILD: u8 = 0;
const COUNTER: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(RATE.decl(1));
    let (copies, concurrent) = (settings.count("copies"), settings.count("concurrent"));
    for copy in 0..copies {
        let scripts: Vec<ProgramId> = (0..concurrent).map(|index| script(&mut builder, copy, index)).collect();
        let multi = builder.program("multi.sh", multi(&scripts));
        let multi = started(&mut builder, "looper", multi);
        let mut looper = Code::default();
        looper.forever(|code| {
            run(code, multi);
            code.op(Op::Reap);
            code.op(Op::Count { metric, count: PER_MINUTE });
        });
        let program = builder.program("looper", looper);
        builder.task(TaskSpec { name: "looper".to_string(), program, process: copy, ..TaskSpec::default() });
    }
    Ok(limit::finish(builder, settings, "looper", copies))
}

fn run(code: &mut Code, program: ProgramId) {
    code.op(Op::Fork { program, kind: TaskKind::Process, into: CHILD });
}

/// What a fork of `parent` runs to become this program.
fn started(builder: &mut Builder, parent: &str, program: ProgramId) -> ProgramId {
    let mut code = Code::default();
    code.op(Op::Exec(program));
    builder.program(parent, code)
}

/// multi.sh: all copies in the background, then wait.
fn multi(scripts: &[ProgramId]) -> Code {
    let mut code = Code::default();
    code.op(Op::Run(Amount::Fixed(WORK)));
    scripts.iter().for_each(|script| run(&mut code, *script));
    code.repeat(COUNTER, scripts.len() as u64, |code| code.op(Op::Reap));
    code
}

/// A program of a pipeline, what it reads from and what it writes to.
type Stage<'a> = (&'a str, Option<ObjectId>, Option<ObjectId>);

/// One tst.sh with its four commands; what multi.sh forks.
fn script(builder: &mut Builder, copy: u32, index: u32) -> ProgramId {
    let mut pipe = |name: &str| {
        let name = format!("{name} of script {index} of copy {copy}");
        builder.object(name, ObjectSpec::Pipe { pages: 16, packet: false })
    };
    let (od, grep, tee) = (pipe("od"), pipe("grep"), pipe("tee"));
    let commands: [&[Stage<'_>]; 4] = [
        &[("sort", None, None)],
        &[("od", None, Some(od)), ("sort", Some(od), None)],
        &[("grep", None, Some(grep)), ("tee", Some(grep), Some(tee)), ("wc", Some(tee), None)],
        &[("rm", None, None)],
    ];
    let mut shell = Code::default();
    shell.op(Op::Run(Amount::Fixed(WORK)));
    for command in commands {
        for (name, from, to) in command {
            let program = utility(builder, name, *from, *to);
            let program = started(builder, "tst.sh", program);
            run(&mut shell, program);
        }
        shell.repeat(COUNTER, command.len() as u64, |code| code.op(Op::Reap));
    }
    let shell = builder.program("tst.sh", shell);
    started(builder, "multi.sh", shell)
}

/// A program of a pipeline.
fn utility(builder: &mut Builder, name: &str, from: Option<ObjectId>, to: Option<ObjectId>) -> ProgramId {
    let mut code = Code::default();
    if let Some(object) = from {
        code.op(Op::Read { object, bytes: DATA });
    }
    code.op(Op::Run(Amount::Fixed(WORK)));
    if let Some(object) = to {
        code.op(Op::Write { object, bytes: DATA });
    }
    builder.program(name, code)
}
