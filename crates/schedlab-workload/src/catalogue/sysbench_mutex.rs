//! `sysbench mutex` 1.0.20: each thread does one event of 50,000 times an empty loop, then lock and unlock of a random
//! mutex.

use schedlab_model::Nanos;

use super::about::{parameter, About, Quantity};
use super::sysbench::{self, THREADS};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Better, Dist, ObjectSpec, Op, Unit, Workload};

const TOTAL_TIME: MetricSpec = MetricSpec::headline(
    "total_time",
    Unit::Seconds,
    Better::Lower,
    "until all threads have ended; includes creating them, a few us each",
);
const LATENCY: MetricSpec = sysbench::latency("time of one event");

pub(super) const ENTRY: Entry = Entry {
    id: "sysbench-mutex",
    summary: "sysbench mutex: one of many mutexes, briefly",
    about: About {
        structure: &[
            "Main starts `threads` threads and joins them. Each does one event: `mutex-locks` times an empty loop \
             of `mutex-loops`, then lock and unlock of a random one of `mutex-num` mutexes.",
            "An event makes no system call but where two threads meet at a mutex.",
        ],
        parameters: &[parameter(
            "1000 iterations of the empty loop",
            Quantity::Time(ITERATIONS_1000),
            "186.6 ms for one thread with the default and 9.5 ms with a loop of 0, on a guest with 2 vCPUs \
                 (Debian's build)",
        )],
        simplified: &[
            "The addition to a shared variable under the mutex, one instruction, is missing.",
            "`time` has no effect on an event and is refused.",
        ],
    },
    options: &[
        THREADS,
        OptionSpec::number("mutex-num", 4096, 1, 16_384, "mutexes"),
        OptionSpec::number("mutex-locks", 50_000, 1, 1_000_000_000, "locks of each thread"),
        OptionSpec::number("mutex-loops", 10_000, 0, 1_000_000_000, "iterations of the empty loop before a lock"),
        OptionSpec::not_modelled("time", "an event is not interrupted, so a limit below its length changes nothing"),
        sysbench::RATE,
    ],
    metrics: &[TOTAL_TIME, LATENCY],
    ends: Ends::Always,
    build,
};

/// CPU time of 1000 iterations of the empty loop: 186.6 ms for one thread with the default, 9.5 ms with a loop of 0, in
/// a guest of 2 vCPUs (Debian's build).
const ITERATIONS_1000: Nanos = 354;

// Registers of a worker.
const BEGIN: u8 = 0;
const TOOK: u8 = 1;
const COUNTER: u8 = 2;
const NUMBER: u8 = 3;
// Registers of main; 0, 1 and 4 are those of `run_threads`.
const ALL: u8 = 2;
const BEGUN: u8 = 3;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let (total, latency) = (builder.metric(TOTAL_TIME.decl(1)), builder.metric(LATENCY.decl(1)));
    let mutexes: Vec<u32> = (0..settings.count("mutex-num"))
        .map(|index| builder.object(format!("mutex {index}"), ObjectSpec::Mutex { pi: false }))
        .collect();
    let any = builder.dist(Dist::Uniform { low: 0, high: mutexes.len() as Nanos - 1 });
    let work = (settings.number("mutex-loops").unsigned_abs() * ITERATIONS_1000).div_ceil(1000);
    let mut worker = Code::default();
    worker.op(Op::Clock(BEGIN));
    worker.repeat(COUNTER, settings.number("mutex-locks").unsigned_abs(), |code| {
        code.op(Op::Draw(NUMBER, any));
        if work > 0 {
            code.op(Op::Run(Amount::Fixed(work)));
        }
        lock_one(code, &mutexes, 0);
    });
    worker.elapsed(TOOK, BEGIN);
    worker.op(Op::Sample { metric: latency, reg: TOOK });
    let program = builder.program("sysbench", worker);
    let pass = |main: &mut Code| {
        main.op(Op::Clock(BEGUN));
        sysbench::run_threads(main, settings, program);
        main.elapsed(ALL, BEGUN);
        main.op(Op::Sample { metric: total, reg: ALL });
    };
    Ok(sysbench::start(builder, settings, |_| {}, pass))
}

/// Locks and unlocks the mutex whose index, counted from `first`, is in the register: the program has no other way to
/// choose an object than jumps.
fn lock_one(code: &mut Code, mutexes: &[u32], first: usize) {
    match mutexes {
        [] => {}
        [mutex] => {
            code.op(Op::Lock(*mutex));
            code.op(Op::Unlock(*mutex));
        }
        _ => {
            let (low, high) = mutexes.split_at(mutexes.len() / 2);
            let (lower, done) = (code.mark(), code.mark());
            code.jump_below(NUMBER, (first + low.len()) as i64, lower);
            lock_one(code, high, first + low.len());
            code.jump(done);
            code.bind(lower);
            lock_one(code, low, first);
            code.bind(done);
        }
    }
}
