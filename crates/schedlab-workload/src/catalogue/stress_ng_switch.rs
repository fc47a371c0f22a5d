//! `stress-ng --switch` 0.15.06: two processes pass single bytes through a pipe that holds one of them.

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::{BuildError, Entry, OptionKind, OptionSpec, Preset, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op, TaskKind, Workload};
use schedlab_model::SEC;

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-switch",
    summary: "stress-ng --switch: a pipe with room for one byte",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "A worker writes single bytes to a pipe and its child reads them. The pipe is in packet mode \
             (O_DIRECT) and one page long, so every write fills it and the next one blocks until the child has \
             read.",
            "A bogo op is one write: two system calls, two wakeups and 2.0 switches.",
        ],
        parameters: &[parameter(
            "pages of the pipe",
            Quantity::Number(1),
            "stress-switch.c, V0.15.06: F_SETPIPE_SZ of a page",
        )],
        simplified: &["The methods mq and sem-sysv are missing.", stress_ng::CPU_TIME],
    },
    options: &[
        stress_ng::workers("switch").short("s"),
        OptionSpec {
            name: "switch-freq",
            kind: OptionKind::Number { min: 0, max: 1_000_000_000 },
            default: Preset::Number(0),
            help: "writes per second; 0 = as fast as possible",
            short: "",
        },
        OptionSpec::not_modelled("switch-method", "message queues and System V semaphores have no model; it is pipe"),
        stress_ng::TIMEOUT,
    ],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

const COMM: &str = "stress-ng-switch";
/// Writes between two reports of CPU time.
const REPORT: u64 = 64;
const CHILD: u8 = 0;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let pause = (settings.number("switch-freq") > 0).then(|| SEC / settings.number("switch-freq").unsigned_abs());
    let pairs: Vec<u32> =
        (0..stress_ng::count(settings, "switch")).map(|index| pair(&mut builder, rates, index, pause)).collect();
    stress_ng::start_each(builder, settings, &pairs)
}

/// One worker with its child; the worker's program.
fn pair(builder: &mut Builder, rates: Rates, index: u32, pause: Option<u64>) -> u32 {
    let pipe = builder.object(format!("pipe of worker {index}"), ObjectSpec::Pipe { pages: 1, packet: true });
    let mut reader = Code::default();
    rates.forever(&mut reader, REPORT, |code| code.op(Op::Read { object: pipe, bytes: 1 }));
    let reader = builder.program(COMM, reader);
    let mut writer = Code::default();
    writer.op(Op::Fork { program: reader, kind: TaskKind::Process, into: CHILD });
    rates.forever(&mut writer, REPORT, |code| {
        rates.count(code, 1);
        code.op(Op::Write { object: pipe, bytes: 1 });
        if let Some(pause) = pause {
            code.op(Op::Sleep(Amount::Fixed(pause)));
        }
    });
    builder.program(COMM, writer)
}
