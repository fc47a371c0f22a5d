//! What the stressors of stress-ng 0.15.06 share: a main process that forks the workers and ends them after `timeout`,
//! and the two rates of bogo operations, by real time and by user plus system time.
//!
//! stress-ng sums the CPU time of its processes when they end (`times`). Here each of them reports what it has used
//! every so many operations, by one `getrusage` that the program does not have.

use super::{BuildError, MetricSpec, OptionSpec, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Op, ProgramId, Reg, TaskKind, TaskSpec, Workload};

const RATE: MetricSpec = MetricSpec::rate("bogo_ops_per_second", "bogo ops per second of real time, all workers");
const CPU_RATE: MetricSpec = MetricSpec::cpu_rate(
    "bogo_ops_per_second_usr_sys",
    "bogo ops per second of user plus system time, all tasks of all workers",
);

/// The metrics of every stressor.
pub(super) const METRICS: &[MetricSpec] = &[RATE, CPU_RATE];
/// The options of every stressor but its number of workers.
/// The first sentence about the structure of a stressor.
pub(super) const MAIN: &str = "Main forks the workers and, with `timeout`, ends them.";
/// How the CPU time of `bogo_ops_per_second_usr_sys` is simplified.
pub(super) const CPU_TIME: &str =
    "Each task reports the CPU time it has used by a getrusage every so many operations, where \
                                   stress-ng sums the CPU time of its processes when they end.";

pub(super) const TIMEOUT: OptionSpec =
    OptionSpec::time("timeout", TimeUnit::Seconds, 0, 1_000_000, "end after this time; 0 = endless").short("t");
/// The options that end a stressor.
pub(super) const ENDS: super::Ends = super::Ends::With(&["timeout"]);

/// The option with the number of workers, which has the stressor's name.
pub(super) const fn workers(name: &'static str) -> OptionSpec {
    OptionSpec::number(name, 0, 0, 100_000, "workers; 0 = one per CPU")
}

// Registers that a report uses.
const REPORTED: Reg = 6;
const SPENT: Reg = 7;
/// Register with the countdown to the next report.
const COUNTDOWN: Reg = 5;

/// The two rates of a stressor.
#[derive(Clone, Copy)]
pub(super) struct Rates {
    real: u16,
    cpu: u16,
}

impl Rates {
    pub fn new(builder: &mut Builder) -> Self {
        Rates { real: builder.metric(RATE.decl(1)), cpu: builder.metric(CPU_RATE.decl(1)) }
    }

    /// `count` bogo operations.
    pub fn count(&self, code: &mut Code, count: u32) {
        code.op(Op::Count { metric: self.real, count });
        code.op(Op::Count { metric: self.cpu, count });
    }

    /// Nothing has been reported yet: a child inherits its parent's registers, and its own CPU time starts at 0.
    pub fn start(&self, code: &mut Code) {
        code.op(Op::Set(REPORTED, 0));
    }

    /// Reports the CPU time since the last report of this task.
    pub fn report(&self, code: &mut Code) {
        code.op(Op::CpuTime(SPENT));
        code.op(Op::SubReg { into: SPENT, from: REPORTED });
        code.op(Op::Sample { metric: self.cpu, reg: SPENT });
        code.op(Op::AddReg { into: REPORTED, from: SPENT });
    }

    /// The body for ever, with a report after every `times` of it.
    pub fn forever(&self, code: &mut Code, times: u64, body: impl FnOnce(&mut Code)) {
        self.start(code);
        let top = code.here();
        code.repeat(COUNTDOWN, times, body);
        self.report(code);
        code.jump(top);
    }
}

// Registers of main.
const CHILD: Reg = 0;
const COUNTER: Reg = 1;

/// The number of workers.
pub(super) fn count(settings: &Settings<'_>, stressor: &str) -> u32 {
    match settings.count(stressor) {
        0 => settings.nr_cpus as u32,
        workers => workers,
    }
}

/// The workload whose workers all run the same program: main starts them and, with `timeout`, ends the run.
pub(super) fn start(
    builder: Builder,
    settings: &Settings<'_>,
    stressor: &str,
    worker: ProgramId,
) -> Result<Workload, BuildError> {
    let workers = u64::from(count(settings, stressor));
    let fork = Op::Fork { program: worker, kind: TaskKind::Process, into: CHILD };
    finish(builder, settings, workers, |main| main.repeat(COUNTER, workers, |code| code.op(fork)))
}

/// The workload whose workers have a program each, because they have objects of their own.
pub(super) fn start_each(
    builder: Builder,
    settings: &Settings<'_>,
    workers: &[ProgramId],
) -> Result<Workload, BuildError> {
    let fork = |program: &ProgramId| Op::Fork { program: *program, kind: TaskKind::Process, into: CHILD };
    finish(builder, settings, workers.len() as u64, |main| workers.iter().for_each(|worker| main.op(fork(worker))))
}

fn finish(
    mut builder: Builder,
    settings: &Settings<'_>,
    workers: u64,
    start: impl FnOnce(&mut Code),
) -> Result<Workload, BuildError> {
    if settings.repeat {
        let what = "a stressor with a timeout does not start again";
        return Err(settings.error("repeat", what).expected("neither timeout nor repeat: then it runs for ever"));
    }
    let timeout = settings.time("timeout");
    let mut main = Code::default();
    start(&mut main);
    if timeout > 0 {
        main.op(Op::Sleep(Amount::Fixed(timeout)));
        main.op(Op::Finish);
    } else {
        main.repeat(COUNTER, workers, |code| code.op(Op::Reap));
    }
    let program = builder.program("stress-ng", main);
    builder.task(TaskSpec { name: "stress-ng".to_string(), program, ..TaskSpec::default() });
    Ok(builder.finish(timeout > 0))
}
