//! `stress-ng --fork` 0.15.06: workers that fork children which exit at once.

use super::about::{parameter, About, Quantity};
use super::forked::Faults;
use super::stress_ng::{self, Rates};
use super::{BuildError, Entry, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Op, TaskKind, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-fork",
    summary: "stress-ng --fork: children that exit at once",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "A worker forks `fork-max` children and then waits for each. A child makes nine system calls \
             (set_robust_list, getpid, getpgid, setsid, vhangup, setpgid four times), yields, makes one more \
             (prctl) and exits.",
            "A bogo op is a child that was reaped: 14 system calls with the fork, the wait and the exit, and 62 \
             page faults, of which 18 are those of any fork.",
        ],
        parameters: &[
            parameter(
                "system calls of a child before it yields",
                Quantity::Number(CHILD_CALLS),
                "stress-ng 0.15.06 under strace",
            ),
            parameter(
                "page faults of a child",
                Quantity::Number(CHILD_FAULTS.map + CHILD_FAULTS.copy),
                "code that it maps, and a page of its stack that it copies for the title of the process; perf \
                 trace -F all of stress-ng 0.15.06",
            ),
            parameter(
                "page faults of the worker between two rounds",
                Quantity::Number(TABLE.map),
                "it clears its table of 16,000 children, 32 pages that the last fork has write-protected and that \
                 it has for itself again",
            ),
        ],
        simplified: &[
            "The autogroup that setsid creates where the kernel has autogroups is missing, and the cost of these \
             calls beyond that of any call.",
            stress_ng::CPU_TIME,
        ],
    },
    options: &[
        stress_ng::workers("fork").short("f"),
        OptionSpec::number("fork-max", 1, 1, 16_000, "children of a worker at a time"),
        OptionSpec::not_modelled("fork-vm", "memory advice has no model"),
        stress_ng::TIMEOUT,
    ],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

const COMM: &str = "stress-ng-fork";
/// System calls of a child before it yields.
const CHILD_CALLS: u64 = 9;
/// Faults of a child, and of the worker between two rounds.
const CHILD_FAULTS: Faults = Faults { map: 11, copy: 1 };
const TABLE: Faults = Faults { map: 32, copy: 0 };
/// Rounds of a worker between two reports of CPU time.
const REPORT: u64 = 8;

// Registers of a worker.
const CHILD: u8 = 0;
const COUNTER: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let mut child = Code::default();
    child.repeat(COUNTER, CHILD_CALLS, |code| code.op(Op::System(Amount::Fixed(0))));
    child.op(Op::Yield);
    CHILD_FAULTS.meet(&mut child, COUNTER);
    child.op(Op::System(Amount::Fixed(0)));
    let child = builder.program(COMM, child);
    let children = u64::from(settings.count("fork-max"));
    let mut worker = Code::default();
    rates.forever(&mut worker, REPORT, |code| {
        TABLE.meet(code, COUNTER);
        let fork = Op::Fork { program: child, kind: TaskKind::Process, into: CHILD };
        code.repeat(COUNTER, children, |code| code.op(fork));
        code.repeat(COUNTER, children, |code| {
            code.op(Op::Reap);
            rates.count(code, 1);
        });
    });
    let worker = builder.program(COMM, worker);
    stress_ng::start(builder, settings, "fork", worker)
}
