//! `stress-ng --fork` 0.15.06: workers that fork children which exit at once.
//!
//! A worker forks `fork-max` children, then waits for each. A child makes nine system calls (set_robust_list, getpid,
//! getpgid, setsid, vhangup, setpgid four times), yields, makes one more (prctl) and exits. A bogo op is a child that was reaped.
//! An op has 62 page faults, 18 of them those of any fork: a child maps code and copies a page of its stack for the title of the
//! process, and the worker clears its table of 16,000 children before each round, 32 pages that the last fork has write-protected
//! and that it has for itself again. Left out: the autogroup that setsid creates where the
//! kernel has autogroups, and the cost of these calls beyond that of any call.

use super::forked::Faults;
use super::stress_ng::{self, Rates};
use super::{BuildError, Entry, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Op, TaskKind, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-fork",
    summary: "stress-ng --fork: workers that fork children which exit at once (0.15.06)",
    options: &[
        stress_ng::workers("fork"),
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
