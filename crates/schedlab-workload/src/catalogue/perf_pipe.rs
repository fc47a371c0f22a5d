//! `perf bench sched pipe` up to perf 6.14: two tasks pass one token of 4 bytes to and fro, strictly in turn.

use super::about::{parameter, About, Quantity};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Better, ObjectSpec, Op, TaskKind, TaskSpec, Unit, Workload};

const USECS_PER_OP: MetricSpec =
    MetricSpec::headline("usecs_per_op", Unit::Microseconds, Better::Lower, "time of one round trip, two wakeups");
const TOTAL_TIME: MetricSpec =
    MetricSpec::headline("total_time", Unit::Seconds, Better::Lower, "all round trips, creation of the tasks included");

pub(super) const ENTRY: Entry = Entry {
    id: "perf-pipe",
    summary: "perf bench sched pipe, up to 6.14: ping-pong",
    about: About {
        structure: &[
            "Two tasks and two pipes. One task writes a token and reads the answer, the other reads it and \
             answers: one token is under way, strictly in turn.",
            "An operation is one round trip: two writes, two reads, two wakeups and two switches (200,006 \
             switches for 100,000 operations of perf 6.1).",
        ],
        parameters: &[parameter("token", Quantity::Words("4 bytes"), "`sizeof(int)` in tools/perf/bench/sched-pipe.c")],
        simplified: &["The program's own instructions between two system calls take no time."],
    },
    options: &[
        OptionSpec::number("loop", 1_000_000, 1, 1_000_000_000, "round trips").short("l"),
        OptionSpec::flag("threaded", "threads instead of processes").short("T"),
    ],
    metrics: &[USECS_PER_OP, TOTAL_TIME],
    ends: Ends::Always,
    build,
};

pub(super) const ENTRY_6_15: Entry = Entry {
    id: "perf-pipe-6.15",
    summary: "perf bench sched pipe, from 6.15: two tokens",
    about: About {
        structure: &[
            "Two tasks and two pipes. Both tasks write before they read, so two tokens are under way, and a task \
             often finds its token without waiting.",
            "An operation is two writes and two reads; the commit that made this change reports \
             about one switch per operation instead of two.",
        ],
        parameters: &[parameter("token", Quantity::Words("4 bytes"), "`sizeof(int)` in tools/perf/bench/sched-pipe.c")],
        simplified: &[
            "The options -G (control groups) and -n (non-blocking, epoll) of newer versions are missing.",
            "The program's own instructions between two system calls take no time.",
        ],
    },
    build: |settings| build_with(settings, true),
    ..ENTRY
};

/// `sizeof(int)`.
const TOKEN: u32 = 4;
const COMM: &str = "sched-pipe";

// Registers of main.
const CHILD: u8 = 0;
const COUNTER: u8 = 1;
const BEGIN: u8 = 2;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    build_with(settings, false)
}

/// `both`: both sides write first.
fn build_with(settings: &Settings<'_>, both: bool) -> Result<Workload, BuildError> {
    let loops = u64::from(settings.count("loop"));
    let mut builder = Builder::new(settings.name);
    let metrics = [builder.metric(USECS_PER_OP.decl(loops)), builder.metric(TOTAL_TIME.decl(1))];
    let pipe = ObjectSpec::Pipe { pages: 16, packet: false };
    let there = builder.object("pipe 1".to_string(), pipe.clone());
    let back = builder.object("pipe 2".to_string(), pipe);
    let (read_there, write_there) =
        (Op::Read { object: there, bytes: TOKEN }, Op::Write { object: there, bytes: TOKEN });
    let (read_back, write_back) = (Op::Read { object: back, bytes: TOKEN }, Op::Write { object: back, bytes: TOKEN });
    let echo = if both { [write_back, read_there] } else { [read_there, write_back] };
    let ping = [write_there, read_back];

    let mut code = Code::default();
    let again = code.here();
    code.op(Op::Clock(BEGIN));
    if settings.flag("threaded") {
        // Both sides are threads; main joins them in order.
        let joins = [0, 1].map(|i| builder.object(format!("exit of thread {i}"), ObjectSpec::Futex));
        for (body, join) in [echo, ping].iter().zip(joins) {
            let program = builder.program(COMM, exchange(Code::default(), loops, body, Some(Op::Post(join))));
            code.op(Op::Fork { program, kind: TaskKind::Thread, into: CHILD });
        }
        joins.iter().for_each(|join| code.op(Op::Wait(*join)));
    } else {
        // The child answers; the parent itself is the other side.
        let program = builder.program(COMM, exchange(Code::default(), loops, &echo, None));
        code.op(Op::Fork { program, kind: TaskKind::Process, into: CHILD });
        code = exchange(code, loops, &ping, Some(Op::Reap));
    }
    code.elapsed(COUNTER, BEGIN);
    metrics.iter().for_each(|metric| code.op(Op::Sample { metric: *metric, reg: COUNTER }));
    if settings.repeat {
        code.jump(again);
    } else {
        code.op(Op::Finish);
    }
    let program = builder.program(COMM, code);
    builder.task(TaskSpec { name: COMM.to_string(), program, ..TaskSpec::default() });
    Ok(builder.finish(!settings.repeat))
}

/// One side: its two transfers, `loops` times, then `end`.
fn exchange(mut code: Code, loops: u64, body: &[Op; 2], end: Option<Op>) -> Code {
    code.repeat(COUNTER, loops, |code| body.iter().for_each(|op| code.op(*op)));
    if let Some(end) = end {
        code.op(end);
    }
    code
}
