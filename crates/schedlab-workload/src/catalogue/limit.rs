//! Programs that run until a time is up.

use super::{OptionSpec, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Op, ProgramId, TaskSpec, Workload};

/// The option that ends such a program.
pub(super) const TIME: OptionSpec =
    OptionSpec::time("time", TimeUnit::Seconds, 0, 1_000_000, "end after this time; 0 = endless");
/// When such a program ends.
pub(super) const ENDS: super::Ends = super::Ends::With(&["time"]);

/// The workload with `copies` tasks of the program, each a process of its own, which ends when the time is up.
pub(super) fn copies(
    mut builder: Builder,
    settings: &Settings<'_>,
    comm: &str,
    program: ProgramId,
    copies: u32,
) -> Workload {
    for process in 0..copies {
        builder.task(TaskSpec { name: comm.to_string(), program, process, ..TaskSpec::default() });
    }
    finish(builder, settings, comm, copies)
}

/// The workload as it stands, which ends when the time is up; `process` is a number that no task has.
pub(super) fn finish(mut builder: Builder, settings: &Settings<'_>, comm: &str, process: u32) -> Workload {
    let time = if settings.repeat { 0 } else { settings.time("time") };
    if time > 0 {
        let mut code = Code::default();
        code.op(Op::Sleep(Amount::Fixed(time)));
        code.op(Op::Finish);
        let program = builder.program(comm, code);
        builder.task(TaskSpec { name: comm.to_string(), program, process, jitter: false, ..TaskSpec::default() });
    }
    builder.finish(time > 0)
}
