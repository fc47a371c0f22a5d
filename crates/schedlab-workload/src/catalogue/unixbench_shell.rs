//! UnixBench Shell Scripts 6.0.0: `looper` runs `multi.sh N` again and again; that runs N copies of `tst.sh` at a time.

use super::about::{parameter, About, Quantity};
use super::unixbench::INDEX;
use super::{limit, BuildError, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectId, ObjectSpec, Op, ProgramId, TaskKind, TaskSpec, Unit, Workload};
use schedlab_model::{Nanos, USEC};

const RATE: MetricSpec = MetricSpec {
    unit: Unit::LoopsPerMinute,
    ..MetricSpec::rate("lpm", "loops of looper per minute, all copies: the column RESULT")
};

pub(super) const ENTRY: Entry = Entry {
    id: "unixbench-shell",
    summary: "UnixBench Shell Scripts: pipelines (6.0.0)",
    about: About {
        structure: &[
            "`copies` loopers run multi.sh again and again; that runs `concurrent` copies of tst.sh at a time and \
             waits for them. A tst.sh is a shell that runs sort; od piped to sort; grep piped to tee piped to wc; \
             rm.",
            "A loop with one copy forks and executes eight programs below multi.sh, one with eight copies 64.",
        ],
        parameters: &[
            parameter(
                "work of each program and shell",
                Quantity::Time(WORK),
                "a loop with one copy took 9.3 ms on a guest with 2 vCPUs, of which nine forks and execs took 5.3 \
                 ms; the rest is that of ten programs and shells",
            ),
            parameter(
                "bytes through a pipeline",
                Quantity::Number(DATA as u64),
                "estimate, 0.5 to 4 KiB: the size of the text that tst.sh sorts",
            ),
            parameter(
                "baselines of the index",
                Quantity::Words("42.4 lpm for 1 copy, 6 lpm for 8"),
                "pgms/index.base of UnixBench 6.0.0: a SPARCstation 20-61; there is none for 16, so no index \
                 either",
            ),
        ],
        simplified: &[
            "Files, and the work of the shells beyond that, are missing.",
            "The worst third of several runs is not dropped; a run is one pass.",
        ],
    },
    options: &[
        OptionSpec::number(
            "concurrent",
            1,
            1,
            64,
            "copies of tst.sh that multi.sh runs at a time: shell1, shell8, shell16",
        ),
        OptionSpec::number("copies", 1, 1, 10_000, "copies of the program at a time").short("c"),
        limit::TIME,
    ],
    metrics: &[RATE, INDEX],
    ends: limit::ENDS,
    build,
};

/// Work of a program or shell of its own.
const WORK: Nanos = 400 * USEC;
/// Bytes that a pipeline passes on.
const DATA: u32 = 1024;
const PER_MINUTE: u32 = 60;
/// Copies of tst.sh, and ten times the loops per minute of the machine of the baseline with so many.
const BASELINES: [(u32, u64); 2] = [(1, 424), (8, 60)];

const CHILD: u8 = 0;
const COUNTER: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(RATE.decl(1));
    // index = 10 * loops / min / baseline
    let baseline = BASELINES.into_iter().find(|(copies, _)| *copies == settings.count("concurrent"));
    let index = baseline.map(|(_, tenths)| builder.metric(INDEX.decl(tenths)));
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
            if let Some(metric) = index {
                code.op(Op::Count { metric, count: 100 * PER_MINUTE });
            }
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
