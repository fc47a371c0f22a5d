//! A load like the NAS Parallel Benchmarks with OpenMP: ranks that compute and meet at a barrier, again and again.
//!
//! - Every rank computes for `work` of CPU time, uniform within `imbalance` percent of it, and waits at the barrier until
//!   all have come. The slowest rank decides how long a phase takes. `straggler` makes the phases of the first rank longer.
//! - A rank waits as libgomp's threads do: it spins, then sleeps on a futex; the last one to come wakes the sleepers.
//!   libgomp spins 300,000 times, or 100 times if there are more threads than CPUs (GOMP_SPINCOUNT in its manual): 16 ms
//!   and 5 us, by 55 ns a turn (300,000 turns of a loop with PAUSE took 16.5 ms at best on a guest, Xeon). `wait-policy`
//!   is OMP_WAIT_POLICY: "passive" never spins. "active" spins 30 billion turns, here without end, or 1,000 turns (55 us) if
//!   there are more threads than CPUs.
//! - A phase of 1 ms and an imbalance of 5% are choices: the programs of the suite reach from barriers every few tens of
//!   microseconds to seconds.
//!
//! Left out: memory bandwidth and caches, data exchanged between ranks, a barrier's cost that grows with the ranks. A rank
//! that spins looks at the barrier every 2 us only. The last rank wakes the sleepers one by one instead of by one call.

use super::{BuildError, Ends, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Better, Dist, ObjectSpec, Op, ProgramId, TaskKind, TaskSpec, Unit, Workload};
use schedlab_model::{Nanos, USEC};

const TIME: MetricSpec =
    MetricSpec::headline("time", Unit::Seconds, Better::Lower, "from the start of the ranks until the last has ended");
const RATE: MetricSpec = MetricSpec::rate("phases_per_second", "barriers that all ranks have passed per second");
const WAIT: MetricSpec =
    MetricSpec::latency("wait", &["mean", "p99"], "of each rank at each barrier, spinning or sleeping");

pub(super) const ENTRY: Entry = Entry {
    id: "nas",
    summary: "NAS-like: ranks compute and meet at a barrier, with imbalance",
    options: &[
        OptionSpec::number("ranks", 0, 2, 10_000, "threads").default(Preset::PerCpu),
        OptionSpec::time("work", TimeUnit::Microseconds, 1000, 10_000_000, "CPU time of a rank between two barriers"),
        OptionSpec::number("imbalance", 5, 0, 100, "percent by which that varies, up and down"),
        OptionSpec::number("straggler", 0, 0, 10_000, "percent by which the first rank has more to do"),
        OptionSpec::number("iterations", 1000, 1, 100_000_000, "barriers"),
        OptionSpec {
            name: "wait-policy",
            kind: OptionKind::Choice(&["default", "active", "passive"]),
            default: Preset::Word("default"),
            help: "OMP_WAIT_POLICY: active spins without end, or for 55 us with more threads than CPUs",
        },
    ],
    metrics: &[TIME, RATE, WAIT],
    ends: Ends::Always,
    build,
};

/// libgomp's 300,000 turns and, with more threads than CPUs, 100 turns.
const SPIN: Nanos = 16_500 * USEC;
const SPIN_CROWDED: Nanos = 5_500;
/// Time between two looks.
const LOOK: Nanos = 2 * USEC;

// Registers of a rank.
const LEFT: u8 = 0;
const SINCE: u8 = 1;
const NOW: u8 = 2;
const LOOKS: u8 = 3;
const COUNTER: u8 = 4;
// Registers of main.
const CHILD: u8 = 0;
const BEGIN: u8 = 1;

/// The barrier: how many may still come before the last one, and for each of two phases in turn the tickets out of it.
struct Barrier {
    others: u64,
    places: u32,
    tickets: [u32; 2],
    /// Looks before a rank sleeps; `None`: it never does.
    looks: Option<u64>,
}

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let [time, rate, wait] = [TIME, RATE, WAIT].map(|spec| builder.metric(spec.decl(1)));
    let ranks = settings.number("ranks").max(2).unsigned_abs();
    let crowded = ranks > settings.nr_cpus as u64;
    let looks = match (settings.word("wait-policy").as_str(), crowded) {
        ("active", false) => None,
        ("active", true) => Some(10 * SPIN_CROWDED / LOOK),
        ("passive", _) => Some(0),
        (_, true) => Some(SPIN_CROWDED / LOOK),
        (_, false) => Some(SPIN / LOOK),
    };
    let mut semaphore = |name: &str, initial: u64| {
        builder.object(name.to_string(), ObjectSpec::Semaphore { initial: u32::try_from(initial).unwrap_or(u32::MAX) })
    };
    let places = semaphore("places", ranks - 1);
    let tickets = ["even tickets", "odd tickets"].map(|name| semaphore(name, 0));
    let barrier = Barrier { others: ranks - 1, places, tickets, looks };
    let phases = settings.number("iterations").unsigned_abs();
    let work = settings.time("work");
    let percent = settings.number("imbalance").unsigned_abs();
    let mut program = |work: Nanos| {
        let work = builder.amount(spread(work, percent));
        let mut code = Code::default();
        // Two phases at a time, one with each kind of tickets; an odd one comes first.
        if phases % 2 == 1 {
            barrier.phase(&mut code, work, 1, rate, wait);
        }
        code.repeat(LEFT, phases / 2, |code| (0..2).for_each(|kind| barrier.phase(code, work, kind, rate, wait)));
        builder.program("nas", code)
    };
    let straggler = program(work + work * settings.number("straggler").unsigned_abs() / 100);
    let rank = program(work);
    let code = main_thread(settings.repeat, [straggler, rank], ranks, time);
    let program = builder.program("nas", code);
    builder.task(TaskSpec { name: "nas".to_string(), program, ..TaskSpec::default() });
    Ok(builder.finish(!settings.repeat))
}

fn spread(work: Nanos, percent: u64) -> Dist {
    match percent {
        0 => Dist::Constant(work),
        _ => Dist::Uniform { low: work - work * percent / 100, high: work + work * percent / 100 },
    }
}

impl Barrier {
    fn phase(&self, code: &mut Code, work: Amount, kind: usize, rate: u16, wait: u16) {
        let (last, out) = (code.mark(), code.mark());
        code.op(Op::Run(work));
        code.op(Op::Clock(SINCE));
        code.sem_try_wait(self.places, last);
        self.wait(code, kind, out);
        code.bind(last);
        // Places for the next phase first: whoever has a ticket may come there at once.
        code.repeat(COUNTER, self.others, |code| code.op(Op::SemPost(self.places)));
        code.repeat(COUNTER, self.others, |code| code.op(Op::SemPost(self.tickets[kind])));
        code.op(Op::Count { metric: rate, count: 1 });
        code.bind(out);
        code.elapsed(NOW, SINCE);
        code.op(Op::Sample { metric: wait, reg: NOW });
    }

    /// Spins, then sleeps, for a ticket.
    fn wait(&self, code: &mut Code, kind: usize, out: crate::build::Mark) {
        if self.looks != Some(0) {
            code.op(Op::Set(LOOKS, self.looks.map_or(i64::MAX, |looks| looks as i64)));
            let again = code.here();
            let none = code.mark();
            code.sem_try_wait(self.tickets[kind], none);
            code.jump(out);
            code.bind(none);
            code.op(Op::Run(Amount::Fixed(LOOK)));
            code.dec_jump(LOOKS, again);
        }
        code.op(Op::SemWait(self.tickets[kind]));
        code.jump(out);
    }
}

/// Starts the ranks and waits for them.
fn main_thread(repeat: bool, [straggler, rank]: [ProgramId; 2], ranks: u64, time: u16) -> Code {
    let mut code = Code::default();
    let again = code.here();
    code.op(Op::Clock(BEGIN));
    let fork = |code: &mut Code, program| code.op(Op::Fork { program, kind: TaskKind::Thread, into: CHILD });
    fork(&mut code, straggler);
    code.repeat(COUNTER, ranks - 1, |code| fork(code, rank));
    code.repeat(COUNTER, ranks, |code| code.op(Op::Reap));
    code.elapsed(NOW, BEGIN);
    code.op(Op::Sample { metric: time, reg: NOW });
    match repeat {
        true => code.jump(again),
        false => code.op(Op::Finish),
    }
    code
}
