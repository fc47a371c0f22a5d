//! The barrier of OpenMP as libgomp implements it, for threads that alternate between computing and a barrier.
//!
//! A thread that waits spins, then sleeps on a futex; the last one to arrive wakes the sleepers. libgomp spins 300,000
//! times, or 100 times if there are more threads than CPUs (GOMP_SPINCOUNT in its manual): 16 ms and 5 us, at 55 ns per
//! iteration (300,000 iterations of a loop with PAUSE took 16.5 ms at best on a guest, Xeon). `wait-policy` is
//! OMP_WAIT_POLICY: "passive" never spins. "active" spins 30 billion times, here without end, or 1,000 times (55 us) if
//! there are more threads than CPUs.
//!
//! Left out: the growth of a barrier's cost with the threads. A spinning thread checks the barrier only every 2 us. The
//! last one wakes the sleepers one by one instead of by one call.

use super::about::{parameter, Parameter, Quantity};
use super::{OptionKind, OptionSpec, Preset, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op};
use schedlab_model::{Nanos, USEC};

pub(super) const WAIT_POLICY: OptionSpec = OptionSpec {
    name: "wait-policy",
    kind: OptionKind::Choice(&["default", "active", "passive"]),
    default: Preset::Word("default"),
    help: "OMP_WAIT_POLICY: active spins without end, or for 55 us with more threads than CPUs",
    short: "",
};

/// libgomp's 300,000 iterations and, with more threads than CPUs, 100.
const SPIN: Nanos = 16_500 * USEC;
const SPIN_CROWDED: Nanos = 5_500;
/// The numbers of this file and what it simplifies, for the entries that use it.
pub(super) const SPINNING: Parameter = parameter(
    "spinning at a barrier",
    Quantity::Time(SPIN),
    "GOMP_SPINCOUNT, 300,000 iterations, which took 16.5 ms at best on a guest (Xeon)",
);
pub(super) const SPINNING_CROWDED: Parameter =
    parameter("the same with more threads than CPUs", Quantity::Time(SPIN_CROWDED), "100 iterations");
pub(super) const BARRIER: &str =
    "The cost of a barrier does not grow with the threads; a spinning thread looks at it every \
                                  2 us, and the last one wakes the sleepers one by one.";
/// Time between two checks.
const LOOK: Nanos = 2 * USEC;

// Registers that waiting uses.
const LOOKS: u8 = 3;
const COUNTER: u8 = 4;

/// The barrier: how many threads may still arrive before the last one, and for each of two alternating phases the
/// tickets to leave it.
pub(super) struct Barrier {
    others: u64,
    places: u32,
    tickets: [u32; 2],
    /// Checks before a thread sleeps; `None`: it never does.
    looks: Option<u64>,
}

impl Barrier {
    /// For so many threads, 1 or more.
    pub fn new(builder: &mut Builder, settings: &Settings<'_>, threads: u64) -> Barrier {
        let crowded = threads > settings.nr_cpus as u64;
        let looks = match (settings.word("wait-policy").as_str(), crowded) {
            ("active", false) => None,
            ("active", true) => Some(10 * SPIN_CROWDED / LOOK),
            ("passive", _) => Some(0),
            (_, true) => Some(SPIN_CROWDED / LOOK),
            (_, false) => Some(SPIN / LOOK),
        };
        let mut semaphore = |name: &str, initial: u64| {
            let initial = u32::try_from(initial).unwrap_or(u32::MAX);
            builder.object(name.to_string(), ObjectSpec::Semaphore { initial })
        };
        let places = semaphore("places", threads - 1);
        let tickets = ["even tickets", "odd tickets"].map(|name| semaphore(name, 0));
        Barrier { others: threads - 1, places, tickets, looks }
    }

    /// Waits until all have arrived. `kind` alternates between 0 and 1; the last thread to arrive does `last`.
    /// Registers 3 and 4 are in use.
    pub fn meet(&self, code: &mut Code, kind: usize, last: impl FnOnce(&mut Code)) {
        let (all_here, out) = (code.mark(), code.mark());
        code.sem_try_wait(self.places, all_here);
        self.wait(code, kind, out);
        code.bind(all_here);
        // The counter of the next phase is set first: a thread that has a ticket may arrive there at once.
        code.repeat(COUNTER, self.others, |code| code.op(Op::SemPost(self.places)));
        code.repeat(COUNTER, self.others, |code| code.op(Op::SemPost(self.tickets[kind])));
        last(code);
        code.bind(out);
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
