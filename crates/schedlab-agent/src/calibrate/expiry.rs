//! Costs of a timer: its interrupt, the wakeup of the sleeper from there, the sleep itself, and leaving idle.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use schedlab_model::{Nanos, Pid, USEC};
use schedlab_workload::Policy;

use super::events::Events;
use super::pin;
use crate::clock::{self, now};

/// What else the CPU does while a thread sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beside {
    /// Nothing: it idles.
    Nothing,
    /// A thread that the sleeper preempts.
    Lower,
    /// A thread that goes on, which the interrupt only delays.
    Higher,
}

/// Sleeps of a thread: before the call, expiry asked for, after the call.
#[derive(Clone, Debug, Default)]
pub struct Sleeps {
    sleeper: Pid,
    stamps: Vec<(Nanos, Nanos, Nanos)>,
    /// When the thread beside it stood still, and for how long.
    gaps: Vec<(Nanos, Nanos)>,
}

/// Lets a thread sleep again and again.
pub fn sleeps(samples: u32, cpu: u32, beside: Beside) -> Sleeps {
    let over = AtomicBool::new(false);
    let begin = |policy| {
        let _ = pin(cpu);
        let _ = crate::attributes::timer_slack(1);
        let _ = crate::attributes::policy(policy);
    };
    thread::scope(|scope| {
        let spinner = (beside != Beside::Nothing).then(|| {
            scope.spawn(|| {
                begin(if beside == Beside::Lower { Policy::Idle } else { Policy::Normal });
                spin(&over, beside == Beside::Higher)
            })
        });
        let sleeper = scope.spawn(|| {
            begin(if beside == Beside::Higher { Policy::Idle } else { Policy::Normal });
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            let mut stamps = Vec::new();
            for round in 0..u64::from(samples) {
                let before = now();
                // Lengths that are no multiple of anything else's period.
                let expiry = before + 150 * USEC + round * 7919 % (100 * USEC);
                clock::sleep_until(expiry);
                stamps.push((before, expiry, now()));
            }
            over.store(true, SeqCst);
            (tid, stamps)
        });
        let (sleeper, stamps) = sleeper.join().unwrap_or_default();
        let gaps = spinner.and_then(|spinner| spinner.join().ok()).unwrap_or_default();
        Sleeps { sleeper, stamps, gaps }
    })
}

/// Looks at the clock without pause and notes when it stood still; `pauses`: now and then it lets others run.
fn spin(over: &AtomicBool, pauses: bool) -> Vec<(Nanos, Nanos)> {
    const SHORTEST: Nanos = 300;
    const TURN: Nanos = 500 * USEC;
    let mut gaps = Vec::new();
    while !over.load(SeqCst) {
        let mut last = now();
        let end = last + TURN;
        while last < end || !pauses && !over.load(SeqCst) {
            let time = now();
            if time - last > SHORTEST {
                gaps.push((last, time - last));
            }
            last = time;
        }
        if pauses {
            clock::sleep_until(now() + 100 * USEC);
        }
    }
    gaps
}

/// Parts of an expiry and a sleep, in ns, a sample each.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// From the expiry until `sched_waking`.
    pub to_waking: Vec<Nanos>,
    /// From `sched_waking` until `sched_wakeup`.
    pub waking: Vec<Nanos>,
    /// From `sched_wakeup` until the `sched_switch` to the sleeper.
    pub to_switch: Vec<Nanos>,
    /// From the sleeper's user mode until the `sched_switch` from it.
    pub to_sleep: Vec<Nanos>,
    /// From the `sched_switch` to it until it is in user mode.
    pub from_sleep: Vec<Nanos>,
    /// The whole interruption of a thread that goes on.
    pub interruption: Vec<Nanos>,
}

impl Sleeps {
    /// Their parts; `look` is what a look at the clock takes.
    pub fn parts(&self, events: &Events, look: Nanos) -> Parts {
        let mut parts = Parts::default();
        let half = |time: Nanos| time.saturating_sub(look / 2);
        for (before, expiry, after) in self.stamps.iter().copied() {
            let during = events.within(before, after);
            let (Some(left), Some(back)) = (during.only_from(self.sleeper), during.only_to(self.sleeper)) else {
                continue;
            };
            let (Some(waking), Some(wakeup)) = (during.waking(self.sleeper), during.wakeup(self.sleeper)) else {
                continue;
            };
            if waking < expiry || expiry < left {
                continue;
            }
            parts.to_waking.push(waking - expiry);
            parts.waking.push(wakeup - waking);
            parts.to_switch.push(back - wakeup);
            parts.to_sleep.push(half(left - before));
            parts.from_sleep.push(half(after - back));
        }
        for (at, length) in self.gaps.iter().copied() {
            let during = events.within(at, at + length);
            if during.switches() == 0 && during.wakeup(self.sleeper).is_some() {
                parts.interruption.push(length.saturating_sub(look));
            }
        }
        parts
    }
}
