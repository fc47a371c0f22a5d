//! Costs of a timer expiry: the interrupt, the wakeup of the sleeper from it, the sleep itself, and the exit from idle.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use schedlab_model::{Nanos, Pid, USEC};
use schedlab_workload::Policy;

use super::events::Events;
use super::pin;
use crate::clock::{self, now};

/// The other thread on the CPU while a thread sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherThread {
    /// None: the CPU idles.
    None,
    /// A thread of lower priority, which the sleeper preempts.
    Lower,
    /// A thread of higher priority, which the interrupt only delays.
    Higher,
}

/// The sleeps of a thread, each with the time before the call, the requested expiry and the time after the call.
#[derive(Clone, Debug, Default)]
pub struct Sleeps {
    sleeper: Pid,
    stamps: Vec<(Nanos, Nanos, Nanos)>,
    /// The gaps in the other thread's loop: when they began and how long they lasted.
    gaps: Vec<(Nanos, Nanos)>,
}

/// Lets a thread sleep repeatedly.
pub fn sleeps(samples: u32, cpu: u32, other_thread: OtherThread) -> Sleeps {
    let over = AtomicBool::new(false);
    let begin = |policy| {
        let _ = pin(cpu);
        let _ = crate::attributes::timer_slack(1);
        let _ = crate::attributes::policy(policy);
    };
    thread::scope(|scope| {
        let spinner = (other_thread != OtherThread::None).then(|| {
            scope.spawn(|| {
                begin(if other_thread == OtherThread::Lower { Policy::Idle } else { Policy::Normal });
                spin(&over, other_thread == OtherThread::Higher)
            })
        });
        let sleeper = scope.spawn(|| {
            begin(if other_thread == OtherThread::Higher { Policy::Idle } else { Policy::Normal });
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            let mut stamps = Vec::new();
            for round in 0..u64::from(samples) {
                let before = now();
                // Lengths that are not a multiple of any other period.
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

/// Reads the clock in a loop and records the gaps. With `pauses`, the thread sleeps now and then so that others can
/// run.
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

/// The parts of expiries and sleeps, as samples in ns.
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
    /// The whole interruption of a thread that is not preempted.
    pub interruption: Vec<Nanos>,
}

impl Sleeps {
    /// Splits the sleeps into parts; `clock_read` is the cost of a clock read.
    pub fn parts(&self, events: &Events, clock_read: Nanos) -> Parts {
        let mut parts = Parts::default();
        let half = |time: Nanos| time.saturating_sub(clock_read / 2);
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
                parts.interruption.push(length.saturating_sub(clock_read));
            }
        }
        parts
    }
}
