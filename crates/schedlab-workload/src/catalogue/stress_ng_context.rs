//! `stress-ng --context` 0.15.06: three coroutines of one thread that hand over to each other by swapcontext.

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::{BuildError, Entry, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Op, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-context",
    summary: "stress-ng --context: swapcontext in one thread",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "Three coroutines of one thread hand over to each other by swapcontext; the kernel sees one busy \
             thread.",
            "A bogo op is 1000 swapcontexts, each of which calls rt_sigprocmask once, and no context switch of \
             the kernel.",
        ],
        parameters: &[
            parameter("calls of swapcontext in a bogo op", Quantity::Number(CALLS), "stress-context.c, V0.15.06"),
            parameter(
                "user mode of one",
                Quantity::Time(SWAP),
                "434 ns of CPU time per call, of which the system call is 210, looks at the clock included, on a \
                 guest with 2 vCPUs (Xeon, Linux 6.18)",
            ),
        ],
        simplified: &["The three coroutines are one loop.", stress_ng::CPU_TIME],
    },
    options: &[stress_ng::workers("context"), stress_ng::TIMEOUT],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

/// Calls of swapcontext in a bogo op.
const CALLS: u64 = 1000;
/// User-mode work of one, looks at the clock included: a guest of 2 vCPUs took 434 ns of CPU time per call, of which
/// the system call is 210.
const SWAP: u64 = 224;
const COUNTER: u8 = 0;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let mut worker = Code::default();
    rates.forever(&mut worker, 1, |code| {
        code.repeat(COUNTER, CALLS, |code| {
            code.op(Op::Run(Amount::Fixed(SWAP)));
            code.op(Op::System(Amount::Fixed(0)));
        });
        rates.count(code, 1);
    });
    let worker = builder.program("stress-ng-contx", worker);
    stress_ng::start(builder, settings, "context", worker)
}
