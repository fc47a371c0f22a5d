//! `stress-ng --sem` 0.15.06: threads that take and give one POSIX semaphore without ever waiting for it.

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::{BuildError, Entry, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Dist, ObjectSpec, Op, TaskKind, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-sem",
    summary: "stress-ng --sem: a semaphore, yields and short sleeps",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "`sem-procs` threads of a worker take and give one POSIX semaphore without ever waiting for it. Every \
             other try is sem_trywait; the rest are sem_timedwait with a time that has passed, which is a system \
             call and fails where the semaphore is taken.",
            "A thread that has got it counts a bogo op, gives it back, and then yields or sleeps for 0 us, at \
             random: one system call per bogo op. The switches come from the sleeps, which last for the timer \
             slack, and from yields where another thread can run.",
        ],
        parameters: &[parameter(
            "user mode of a try",
            Quantity::Time(TRY),
            "estimate, 10 to 40 ns: sem_getvalue, a look at the clock, the random bit; what it takes is the \
                 yield's and the sleep's",
        )],
        simplified: &[stress_ng::CPU_TIME],
    },
    options: &[
        stress_ng::workers("sem"),
        OptionSpec::number("sem-procs", 2, 2, 64, "threads of a worker"),
        stress_ng::TIMEOUT,
    ],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

const COMM: &str = "stress-ng-sem";
/// Pairs of tries between two reports of CPU time.
const REPORT: u64 = 16;
/// User-mode work of a try: `sem_getvalue`, a look at the clock, the random bit. About 20 ns; what it takes is the
/// yield's and the sleep's.
const TRY: u64 = 20;

// Registers: of a thread whether it yields, of a worker its child and the countdown.
const COIN: u8 = 0;
const CHILD: u8 = 0;
const COUNTER: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let coin = builder.dist(Dist::Uniform { low: 0, high: 1 });
    let threads = u64::from(settings.count("sem-procs"));
    let workers: Vec<u32> = (0..stress_ng::count(settings, "sem"))
        .map(|index| {
            let semaphore =
                builder.object(format!("semaphore of worker {index}"), ObjectSpec::Semaphore { initial: 1 });
            let mut thread = Code::default();
            rates.forever(&mut thread, REPORT, |code| {
                attempt(code, rates, semaphore, coin, false);
                attempt(code, rates, semaphore, coin, true);
            });
            let thread = builder.program(COMM, thread);
            let mut worker = Code::default();
            let fork = Op::Fork { program: thread, kind: TaskKind::Thread, into: CHILD };
            worker.repeat(COUNTER, threads, |code| code.op(fork));
            worker.repeat(COUNTER, threads, |code| code.op(Op::Reap));
            builder.program(COMM, worker)
        })
        .collect();
    stress_ng::start_each(builder, settings, &workers)
}

/// One try, `sem_timedwait` or `sem_trywait`.
fn attempt(code: &mut Code, rates: Rates, semaphore: u32, coin: u32, trywait: bool) {
    let (taken, sleep, after) = (code.mark(), code.mark(), code.mark());
    code.op(Op::Run(Amount::Fixed(TRY)));
    code.sem_try_wait(semaphore, taken);
    rates.count(code, 1);
    code.op(Op::SemPost(semaphore));
    code.op(Op::Draw(COIN, coin));
    code.jump_below(COIN, 1, sleep);
    code.op(Op::Yield);
    code.jump(after);
    code.bind(sleep);
    code.op(Op::Sleep(Amount::Fixed(0)));
    code.jump(after);
    code.bind(taken);
    if !trywait {
        code.op(Op::System(Amount::Fixed(0)));
    }
    code.bind(after);
}
