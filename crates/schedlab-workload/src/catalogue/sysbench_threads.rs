//! `sysbench threads` 1.0.20: an event is 1000 times lock, sched_yield, unlock, on one of eight mutexes.

use super::about::{parameter, About, Quantity};
use super::sysbench::{self, EVENTS, THREADS, TIME};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{ObjectSpec, Op, Workload};

const RATE: MetricSpec = MetricSpec::rate("events_per_second", "events per second, all threads");
const LATENCY: MetricSpec = sysbench::latency("time of one event");

pub(super) const ENTRY: Entry = Entry {
    id: "sysbench-threads",
    summary: "sysbench threads: threads that yield with a mutex",
    about: About {
        structure: &[
            "Main starts `threads` worker threads and joins them; each ends with the event in which the time runs \
             out.",
            "An event is `thread-yields` times lock, sched_yield, unlock, on one of `thread-locks` mutexes: the \
             number of the event modulo the number of mutexes, whichever thread takes it.",
            "An event is 1000 system calls where nobody waits for a mutex, and as many switches where another \
             thread can run.",
        ],
        parameters: &[parameter(
            "yields of an event",
            Quantity::Number(1000),
            "default of sysbench 1.0.20; 711,562 calls in 711 events under perf stat",
        )],
        simplified: &[
            "The numbers of the mutexes go round in a queue in user memory, which gives the same order.",
            "`rate` and `events` are missing, see the options.",
        ],
    },
    options: &[
        THREADS,
        TIME,
        OptionSpec::number("thread-yields", 1000, 1, 1_000_000, "lock, yield, unlock per event"),
        OptionSpec::number("thread-locks", 8, 1, 1024, "mutexes, taken in turn by the events"),
        EVENTS,
        sysbench::RATE,
    ],
    metrics: &[RATE, LATENCY],
    ends: Ends::Always,
    build,
};

// Registers of a worker, in addition to those of `until_over` and of main.
const NUMBER: u8 = 2;
const COUNTER: u8 = 3;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    sysbench::time(settings)?;
    let mut builder = Builder::new(settings.name);
    let (rate, latency) = (builder.metric(RATE.decl(1)), builder.metric(LATENCY.decl(1)));
    let (yields, locks) = (u64::from(settings.count("thread-yields")), settings.count("thread-locks"));
    let queue = builder.object("number of the next mutex".to_string(), ObjectSpec::Queue);
    let mutexes: Vec<u32> =
        (0..locks).map(|index| builder.object(format!("mutex {index}"), ObjectSpec::Mutex { pi: false })).collect();
    let worker = sysbench::until_over(Some(latency), Some(rate), |code| {
        let take = code.here();
        code.try_receive(queue, NUMBER, take);
        code.op(Op::Send { object: queue, from: NUMBER });
        let done = code.mark();
        let bodies: Vec<_> = mutexes.iter().map(|mutex| (code.mark(), *mutex)).collect();
        for (index, (body, _)) in bodies.iter().enumerate() {
            code.jump_below(NUMBER, index as i64 + 1, *body);
        }
        for (body, mutex) in bodies {
            code.bind(body);
            code.repeat(COUNTER, yields, |code| {
                code.op(Op::Lock(mutex));
                code.op(Op::Yield);
                code.op(Op::Unlock(mutex));
            });
            code.jump(done);
        }
        code.bind(done);
    });
    let program = builder.program("sysbench", worker);
    let numbers = |main: &mut Code| {
        for index in 0..locks {
            main.op(Op::Set(NUMBER, i64::from(index)));
            main.op(Op::Send { object: queue, from: NUMBER });
        }
    };
    Ok(sysbench::start(builder, settings, numbers, |main| sysbench::run_threads(main, settings, program)))
}
