//! `stress-ng --exec` 0.15.06: workers that fork children which replace themselves by stress-ng, which exits at once.

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::stress_ng_memory::{call, PAGE_KIB};
use super::{BuildError, Entry, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Dist, MemoryWork, Op, ProgramId, TaskKind, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-exec",
    summary: "stress-ng --exec: children that exec and exit",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "A worker forks `exec-max` children, with a wait4 that does not block after each, then waits for \
             each. A child makes 14 system calls. Three of four then start the program, which makes 265 calls for \
             its libraries and constructors and exits; the fourth writes a file of garbage, fails to execute it \
             and removes it.",
            "A bogo op is a child that was reaped: 219 system calls, 357 page faults, one fork and 0.75 execs \
             that succeed.",
        ],
        parameters: &[
            parameter("system calls of a child", Quantity::Number(CHILD_CALLS), "stress-ng 0.15.06 under strace"),
            parameter(
                "system calls of the new program",
                Quantity::Number(PROGRAM_CALLS),
                "stress-ng 0.15.06 under strace",
            ),
            parameter(
                "calls around an exec that fails",
                Quantity::Number(GARBAGE_CALLS),
                "stress-ng 0.15.06 under strace",
            ),
            parameter(
                "page faults of a child before the exec",
                Quantity::Number(CHILD_FAULTS),
                "--fork of the same program has 61.4 a child",
            ),
            parameter(
                "page faults of the new program",
                Quantity::Number(PROGRAM_FAULTS),
                "what remains of 356 to 372 an op in three placements, perf stat",
            ),
            parameter("user mode of the new program", Quantity::Words("3.4 ms"), "0.75 s for 294 ops"),
        ],
        simplified: &[
            "Which of the new program's faults allocate a page is missing (all only map one here), the copy of \
             the page tables at the fork, and reaping while children are still being forked.",
            "The real program refuses to run as root.",
            "The other methods of exec and fork are missing.",
            stress_ng::CPU_TIME,
        ],
    },
    options: &[
        stress_ng::workers("exec"),
        OptionSpec::number("exec-max", 4096, 1, 16_000, "children of a worker at a time"),
        stress_ng::TIMEOUT,
        OptionSpec::not_modelled("exec-method", "it is always execve"),
        OptionSpec::not_modelled("exec-fork-method", "it is always fork"),
        OptionSpec::not_modelled("exec-no-pthread", "the main thread of a child always does the exec"),
    ],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

const COMM: &str = "stress-ng-exec";
/// Calls of a child before it executes anything.
const CHILD_CALLS: u64 = 14;
/// Calls of the new program before it exits.
const PROGRAM_CALLS: u64 = 265;
/// Calls around an exec that fails, itself included.
const GARBAGE_CALLS: u64 = 7;
/// Faults of a child before the exec.
const CHILD_FAULTS: u64 = 62;
/// Faults of the new program.
const PROGRAM_FAULTS: u64 = 393;
/// User-mode work of the new program between two faults: 3.4 ms in all.
const PROGRAM_WORK: Amount = Amount::Fixed(3_400_000 / PROGRAM_FAULTS);
/// One exec in so many fails.
const FAILS: u64 = 4;

const CHILD: u8 = 0;
const COUNTER: u8 = 1;
const DRAWN: u8 = 3;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let child = child(&mut builder);
    let children = u64::from(settings.count("exec-max"));
    let mut worker = Code::default();
    rates.forever(&mut worker, 1, |code| {
        code.repeat(COUNTER, children, |code| {
            code.op(Op::Fork { program: child, kind: TaskKind::Process, into: CHILD });
            call(code);
        });
        code.repeat(COUNTER, children, |code| {
            code.op(Op::Reap);
            rates.count(code, 1);
        });
    });
    let worker = builder.program(COMM, worker);
    stress_ng::start(builder, settings, "exec", worker)
}

/// A child, up to the exec.
fn child(builder: &mut Builder) -> ProgramId {
    let mut program = Code::default();
    program.repeat(COUNTER, PROGRAM_FAULTS, |code| {
        code.op(Op::Memory { work: MemoryWork::Map, kib: PAGE_KIB });
        code.op(Op::Run(PROGRAM_WORK));
    });
    program.repeat(COUNTER, PROGRAM_CALLS, call);
    let program = builder.program("stress-ng", program);
    let draw = builder.dist(Dist::Uniform { low: 0, high: FAILS - 1 });
    let mut code = Code::default();
    let garbage = code.mark();
    code.repeat(COUNTER, CHILD_FAULTS, |code| code.op(Op::Memory { work: MemoryWork::Zero, kib: PAGE_KIB }));
    code.repeat(COUNTER, CHILD_CALLS, call);
    code.op(Op::Draw(DRAWN, draw));
    code.jump_below(DRAWN, 1, garbage);
    code.op(Op::Exec(program));
    code.bind(garbage);
    code.repeat(COUNTER, GARBAGE_CALLS, call);
    builder.program(COMM, code)
}
