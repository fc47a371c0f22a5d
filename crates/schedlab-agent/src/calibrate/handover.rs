//! The separate costs of a wakeup and a switch: two threads on one CPU read the clock before and after their calls, and
//! the kernel's tracepoints show when it woke and switched in between.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
use rustix::thread::futex::{self, Flags};
use schedlab_model::{Nanos, Pid, USEC};
use schedlab_workload::Policy;

use super::events::Events;
use super::pin;
use crate::clock::{self, now};
use crate::error::{errno, Result};

/// The timestamps of one thread, before and after each of its calls.
#[derive(Clone, Debug, Default)]
pub struct Side {
    tid: Pid,
    stamps: Vec<(Nanos, Nanos)>,
}

impl Side {
    fn new() -> Side {
        Side { tid: rustix::thread::gettid().as_raw_nonzero().get(), stamps: Vec::new() }
    }

    fn call(&mut self, call: impl FnOnce()) {
        let begin = now();
        call();
        self.stamps.push((begin, now()));
    }
}

/// The timestamps of two threads of which one wakes the other repeatedly.
#[derive(Clone, Debug)]
pub struct WakeupPair {
    waker: Side,
    wakee: Side,
}

/// How long the waker sleeps before it wakes, so that the wakees block meanwhile; a round takes so long on average,
/// whether or not the wakee preempts.
const PAUSE: Nanos = 200 * USEC;

/// The number of rounds after a sleep if the wakee preempts.
const BATCH: u32 = 10;

/// One means of waking a thread.
trait Channel: Sync {
    /// Wakes the thread that blocks, or is about to block, in this round.
    fn wake(&self, round: u32);
    /// Blocks until the round's wakeup.
    fn block(&self, round: u32);
}

/// A futex word: it holds the number of wakeups.
#[derive(Default)]
struct Word(AtomicU32);

impl Channel for Word {
    fn wake(&self, round: u32) {
        self.0.store(round + 1, SeqCst);
        let _ = futex::wake(&self.0, Flags::PRIVATE, 1);
    }

    fn block(&self, round: u32) {
        let _ = futex::wait(&self.0, Flags::PRIVATE, round, None);
    }
}

/// A stream of bytes: a byte is a wakeup.
struct Stream {
    read: OwnedFd,
    write: OwnedFd,
}

impl Channel for Stream {
    fn wake(&self, _: u32) {
        let _ = rustix::io::write(&self.write, &[1]);
    }

    fn block(&self, _: u32) {
        let _ = rustix::io::read(&self.read, &mut [0; 1]);
    }
}

/// Lets one thread wake another through the second of two channels, again and again. If `preempts`, the wakee preempts
/// the waker, otherwise it waits until the waker sleeps.
///
/// The costs are those of calls that a workload repeats, so their code and data are in the caches. A wakee that
/// preempts blocks again before the waker returns, so that the next call can follow at once; a batch of such calls
/// follows a sleep, so that another task on the CPU disturbs only some of them. Otherwise the waker sleeps before each
/// call, as both wakees must run. Before a measured call it wakes the other thread.
fn wakeup_pair(samples: u32, cpu: u32, preempts: bool, channels: [&dyn Channel; 2]) -> WakeupPair {
    let policies = if preempts { (Policy::Idle, Policy::Normal) } else { (Policy::Normal, Policy::Idle) };
    let begin = |policy| {
        let _ = pin(cpu);
        let _ = crate::attributes::timer_slack(1);
        let _ = crate::attributes::policy(policy);
        Side::new()
    };
    let wakee = |channel: &dyn Channel| {
        let mut side = begin(policies.1);
        (0..samples).for_each(|round| side.call(|| channel.block(round)));
        side
    };
    let [first, measured] = channels;
    thread::scope(|scope| {
        scope.spawn(|| wakee(first));
        let wakee = scope.spawn(|| wakee(measured));
        let waker = scope.spawn(|| {
            let mut side = begin(policies.0);
            for round in 0..samples {
                let batch = if preempts { BATCH } else { 1 };
                if round % batch == 0 {
                    clock::sleep_until(now() + PAUSE * u64::from(batch));
                }
                first.wake(round);
                side.call(|| measured.wake(round));
            }
            side
        });
        let (waker, wakee) = (waker.join().unwrap_or_default(), wakee.join().unwrap_or_default());
        WakeupPair { waker, wakee }
    })
}

/// Wakes by futex.
pub fn by_futex(samples: u32, cpu: u32, preempts: bool) -> WakeupPair {
    wakeup_pair(samples, cpu, preempts, [&Word::default(), &Word::default()])
}

/// Wakes by a pipe.
pub fn by_pipe(samples: u32, cpu: u32, preempts: bool) -> Result<WakeupPair> {
    let stream = || rustix::pipe::pipe().map(|(read, write)| Stream { read, write }).map_err(errno("pipe"));
    Ok(wakeup_pair(samples, cpu, preempts, [&stream()?, &stream()?]))
}

/// Wakes by an AF_UNIX stream.
pub fn by_socket(samples: u32, cpu: u32, preempts: bool) -> Result<WakeupPair> {
    let pair = || socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None);
    let stream = || pair().map(|(read, write)| Stream { read, write }).map_err(errno("socketpair"));
    Ok(wakeup_pair(samples, cpu, preempts, [&stream()?, &stream()?]))
}

/// The parts of the calls, as samples in ns.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// From the waker's user mode to `sched_waking`.
    pub to_waking: Vec<Nanos>,
    /// From `sched_waking` until `sched_wakeup`.
    pub waking: Vec<Nanos>,
    /// From `sched_wakeup` until the waker is in user mode, or switches to the wakee.
    pub from_wakeup: Vec<Nanos>,
    /// From `sched_switch` to the preempted waker until it is in user mode.
    pub resume: Vec<Nanos>,
    /// From the wakee's user mode to the `sched_switch` from it.
    pub to_sleep: Vec<Nanos>,
    /// From the `sched_switch` to it until it is in user mode.
    pub from_sleep: Vec<Nanos>,
}

impl WakeupPair {
    /// The times from `sched_waking` until the waker's runtime is accounted, where that is recorded.
    pub fn clocks(&self, events: &Events) -> Vec<Nanos> {
        let clock = |(begin, end): &(Nanos, Nanos)| {
            let waking = events.within(*begin, *end).waking(self.wakee.tid)?;
            Some(events.within(waking, *end).runtime(self.waker.tid)? - waking)
        };
        self.waker.stamps.iter().filter_map(clock).collect()
    }

    /// Splits the calls into parts; `clock_read` is the cost of a clock read, half of which falls on either side.
    pub fn parts(&self, events: &Events, clock_read: Nanos) -> Parts {
        let mut parts = Parts::default();
        let (waker, wakee) = (self.waker.tid, self.wakee.tid);
        let half = |time: Nanos| time.saturating_sub(clock_read / 2);
        for (begin, end) in self.waker.stamps.iter().copied() {
            let during = events.within(begin, end);
            let (Some(waking), Some(wakeup)) = (during.waking(wakee), during.wakeup(wakee)) else { continue };
            match (during.switches(), during.switch(waker, wakee), during.switch(wakee, waker)) {
                (0, ..) => parts.from_wakeup.push(half(end - wakeup)),
                (2, Some(left), Some(back)) => {
                    parts.from_wakeup.push(left - wakeup);
                    parts.resume.push(half(end - back));
                }
                _ => continue,
            }
            parts.to_waking.push(half(waking - begin));
            parts.waking.push(wakeup - waking);
        }
        for (begin, end) in self.wakee.stamps.iter().copied() {
            let during = events.within(begin, end);
            if let (Some(left), Some(back)) = (during.only_from(wakee), during.only_to(wakee)) {
                parts.to_sleep.push(half(left - begin));
                parts.from_sleep.push(half(end - back));
            }
        }
        parts
    }
}
