//! `stress-ng --pipe` 0.15.06: a writer and a reader of 512-byte messages at a pipe with room for 16 of them.

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::{BuildError, Entry, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op, TaskKind, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-pipe",
    summary: "stress-ng --pipe: messages through a packet pipe",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "A worker fills messages of `pipe-data-size` bytes and writes them to a pipe, its child reads them \
             and checks none, so it waits for the writer. The pipe is in packet mode (O_DIRECT), so each message \
             takes a page of it whatever its size: 16 messages fit.",
            "A bogo op is a write: two system calls. The switches depend on how full the pipe gets, up to two.",
        ],
        parameters: &[parameter(
            "filling a message",
            Quantity::Words("340 ns"),
            "0.12 s of user mode for 352,555 messages and 0.14 s for 372,534 on a guest with 2 vCPUs (Xeon, \
                 Linux 6.18)",
        )],
        simplified: &[
            "What the pages of a packet cost the kernel beyond the bytes is missing, and `pipe-vmsplice` and \
             `--verify`.",
            stress_ng::CPU_TIME,
        ],
    },
    options: &[
        stress_ng::workers("pipe").short("p"),
        OptionSpec::number("pipe-data-size", 512, 8, 4096, "bytes of a message"),
        OptionSpec::number("pipe-size", 65_536, 4096, 1_048_576, "bytes of the pipe, a power of two"),
        stress_ng::TIMEOUT,
    ],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

const COMM: &str = "stress-ng-pipe";
/// Filling a message: 0.12 s of user mode for 352,555 messages, 0.14 s for 372,534, in a guest of 2 vCPUs.
const CONTENT: Amount = Amount::Fixed(340);
/// Messages between two reports of CPU time.
const REPORT: u64 = 64;
const CHILD: u8 = 0;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let (bytes, size) = (settings.count("pipe-data-size"), settings.count("pipe-size"));
    if !size.is_power_of_two() {
        return Err(settings.error("pipe-size", format!("a pipe of {size} bytes")).expected("a power of two"));
    }
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let workers: Vec<u32> = (0..stress_ng::count(settings, "pipe"))
        .map(|index| {
            let spec = ObjectSpec::Pipe { pages: size / 4096, packet: true };
            let pipe = builder.object(format!("pipe of worker {index}"), spec);
            let mut reader = Code::default();
            rates.forever(&mut reader, REPORT, |code| {
                code.op(Op::Read { object: pipe, bytes });
            });
            let reader = builder.program(COMM, reader);
            let mut writer = Code::default();
            writer.op(Op::Fork { program: reader, kind: TaskKind::Process, into: CHILD });
            rates.forever(&mut writer, REPORT, |code| {
                code.op(Op::Run(CONTENT));
                code.op(Op::Write { object: pipe, bytes });
                rates.count(code, 1);
            });
            builder.program(COMM, writer)
        })
        .collect();
    stress_ng::start_each(builder, settings, &workers)
}
