//! A hog: tasks that never leave the CPU by themselves. No program of its own; `stress-ng --cpu` without its counting.

use schedlab_model::SEC;

use super::about::{parameter, About, Quantity};
use super::{BuildError, Ends, Entry, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Op, TaskSpec, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "hog",
    summary: "tasks that consume CPU for ever",
    about: About {
        structure: &["`threads` tasks that compute and never leave the CPU by themselves: no system call, no wakeup; \
             switches come from other tasks alone."],
        parameters: &[parameter(
            "length of a step",
            Quantity::Time(SEC),
            "no effect on the load: the steps follow each other at once",
        )],
        simplified: &[
            "There is no program of this name; stress-ng --cpu does the same and counts its operations, which is \
             missing here.",
        ],
    },
    options: &[OptionSpec::number("threads", 1, 0, 100_000, "how many; 0 = one per CPU")],
    metrics: &[],
    ends: Ends::Never,
    build,
};

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let count = match settings.count("threads") {
        0 => settings.nr_cpus as u32,
        count => count,
    };
    let mut builder = Builder::new(settings.name);
    let mut code = Code::default();
    code.forever(|code| code.op(Op::Run(Amount::Fixed(SEC))));
    let program = builder.program("hog", code);
    builder.task(TaskSpec { name: "hog".to_string(), program, count, ..TaskSpec::default() });
    Ok(builder.finish(false))
}
