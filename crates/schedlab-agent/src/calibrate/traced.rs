//! Costs of the parts of calls, from the timestamps of threads and the tracepoints recorded during the same calls.
//!
//! The parts of a call add up to the whole call: wakeup, pick and switch are measured once, and the rest is attributed
//! to the call.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schedlab_model::Nanos;

use super::events::Events;
use super::expiry::{self, OtherThread, Sleeps};
use super::handover::{self, WakeupPair};
use super::lives::{self, Lifetimes};
use super::{idle, median, Cost, Effort, Entry};
use crate::error::Result;
use crate::settings::Settings;
use crate::tracing;

/// The costs that only a trace can separate.
pub const PARTS: [&str; 16] = [
    "wakeup-clock",
    "schedule",
    "irq-entry",
    "timer-resume",
    "pipe-wake",
    "pipe-wait",
    "pipe-resume",
    "socket-wake",
    "socket-wait",
    "socket-resume",
    "futex-wait",
    "futex-resume",
    "start-process",
    "start-thread",
    "reap-wait",
    "reap",
];

type Costs = BTreeMap<&'static str, Entry>;

/// The measurements that are made while the kernel records.
#[derive(Debug)]
pub struct Measurements {
    few: usize,
    processes: Lifetimes,
    threads: Lifetimes,
    futex: Pair,
    pipe: Pair,
    socket: Pair,
    idle: Sleeps,
    beside_lower: Sleeps,
    beside_higher: Sleeps,
}

/// One means of waking, once with a wakee that waits until the waker sleeps and once with one that preempts it.
#[derive(Debug)]
struct Pair {
    waits: WakeupPair,
    preempts: WakeupPair,
}

impl Pair {
    fn of(wakeup_pair: impl Fn(bool) -> Result<WakeupPair>) -> Result<Pair> {
        Ok(Pair { waits: wakeup_pair(false)?, preempts: wakeup_pair(true)? })
    }
}

impl Measurements {
    /// Makes the measurements on one CPU.
    pub fn measure(effort: Effort, cpu: u32) -> Result<Measurements> {
        let few = effort.few as u32 / 2;
        let sleeps = |other_thread| expiry::sleeps(few, cpu, other_thread);
        Ok(Measurements {
            few: few as usize,
            // First, while the process is small, because the cost of fork depends on it.
            processes: lives::processes(few as usize)?,
            threads: lives::threads(few as usize)?,
            futex: Pair::of(|preempts| Ok(handover::by_futex(few, cpu, preempts)))?,
            pipe: Pair::of(|preempts| handover::by_pipe(few, cpu, preempts))?,
            socket: Pair::of(|preempts| handover::by_socket(few, cpu, preempts))?,
            idle: sleeps(OtherThread::None),
            beside_lower: sleeps(OtherThread::Lower),
            beside_higher: sleeps(OtherThread::Higher),
        })
    }

    /// Adds the costs of task creation and exit that can be measured without a trace.
    pub fn put_lives(&self, costs: &mut Costs) {
        let no_events = Events::default();
        put(costs, "fork-process", self.processes.parts(&no_events, 0).make, 0, "fork() in a process of a few MB");
        let how = "creation of a thread, its stack's mmap() included";
        put(costs, "fork-thread", self.threads.parts(&no_events, 0).make, 0, how);
        let how = "from fork()'s return until waitpid()'s, on one CPU, less two switches";
        let switch = median(costs, "switch-process");
        put(costs, "exit-process", self.processes.parts(&no_events, 0).ends, 2 * switch, how);
        let how = "from a thread's creation until it is joined, on one CPU, less two switches";
        let switch = median(costs, "switch-thread");
        put(costs, "exit-thread", self.threads.parts(&no_events, 0).ends, 2 * switch, how);
    }

    /// Replaces the costs of whole calls by those of their parts.
    pub fn put(&self, events: &Events, costs: &mut Costs, states: &mut Vec<idle::State>) -> Result<()> {
        let clock_read = median(costs, "user-op");
        let call = median(costs, "syscall");
        let (waits, preempts) =
            (self.futex.waits.parts(events, clock_read), self.futex.preempts.parts(events, clock_read));
        let how = "from sched_waking until the caller of FUTEX_WAKE is back, which the wakee does not preempt";
        put(costs, "wakeup", sums(&waits.waking, &waits.from_wakeup), 0, how);
        let how = "from sched_wakeup until sched_switch to a wakee that preempts, less the way back of the call";
        put(costs, "schedule", preempts.from_wakeup.clone(), middle(&waits.from_wakeup), how);
        let how = "from sched_switch to a preempted thread until it is in user mode";
        let other = median(costs, "switch-process").saturating_sub(median(costs, "switch-thread"));
        put(costs, "switch-thread", preempts.resume.clone(), 0, how);
        let how = "the same, and what a ping-pong's hop takes longer between processes";
        put(costs, "switch-process", preempts.resume.iter().map(|time| time + other).collect(), 0, how);
        put(costs, "futex-wake", waits.to_waking, call, "from user mode until sched_waking, less syscall");
        self.put_waits(costs, "futex-wait", "futex-resume", &preempts.to_sleep, &preempts.from_sleep);
        let pipe = [&self.pipe, &self.socket]
            .map(|p| (p.waits.parts(events, clock_read), p.preempts.parts(events, clock_read)));
        let keys = [
            ["pipe-write", "pipe-wake", "pipe-wait", "pipe-resume"],
            ["socket-send", "socket-wake", "socket-wait", "socket-resume"],
        ];
        for ((waits, preempts), [write, wake, wait, resume]) in pipe.into_iter().zip(keys) {
            let how = "a call that wakes a reader, less syscall, the same call without one, and a wakeup";
            let whole = sums(&sums(&waits.to_waking, &waits.waking), &waits.from_wakeup);
            put(costs, wake, whole, call + median(costs, write) + median(costs, "wakeup"), how);
            self.put_waits(costs, wait, resume, &preempts.to_sleep, &preempts.from_sleep);
        }
        self.put_timers(events, clock_read, costs, states);
        self.put_traced_lives(clock_read, costs)
    }

    fn put_waits(&self, costs: &mut Costs, wait: &'static str, resume: &'static str, to: &[Nanos], from: &[Nanos]) {
        let before = median(costs, "syscall") + median(costs, "schedule");
        let switch = median(costs, "switch-thread");
        put(
            costs,
            wait,
            to.to_vec(),
            before,
            "from user mode until sched_switch to another, less syscall and schedule",
        );
        put(costs, resume, from.to_vec(), switch, "from sched_switch back until user mode, less switch-thread");
    }

    fn put_timers(&self, events: &Events, clock_read: Nanos, costs: &mut Costs, states: &mut Vec<idle::State>) {
        let busy = self.beside_lower.parts(events, clock_read);
        let goes_on = self.beside_higher.parts(events, clock_read);
        put(costs, "irq-entry", busy.to_waking.clone(), 0, "from a timer's expiry until sched_waking of its sleeper");
        let part = middle(&busy.to_waking) + median(costs, "wakeup");
        let how = "how long the interrupt of a timer stops a thread that goes on, less irq-entry and wakeup";
        put(costs, "irq", goes_on.interruption, part, how);
        self.put_waits(costs, "timer-program", "timer-resume", &busy.to_sleep, &busy.from_sleep);
        if states.is_empty() {
            let idle = self.idle.parts(events, clock_read);
            let whole = |parts: &expiry::Parts| sums(&sums(&parts.to_waking, &parts.waking), &parts.to_switch);
            let how = "from a timer's expiry until sched_switch to its sleeper, less the same on a busy CPU";
            if let Some(exit) = Cost::of(whole(&idle), how) {
                states.push(idle::State::only(exit.less(middle(&whole(&busy)))));
            }
        }
    }

    fn put_traced_lives(&self, clock_read: Nanos, costs: &mut Costs) -> Result<()> {
        let way = median(costs, "wakeup") + median(costs, "schedule");
        let keys = [
            ("process", "switch-process", ["fork-process", "start-process", "exit-process"]),
            ("thread", "switch-thread", ["fork-thread", "start-thread", "exit-thread"]),
        ];
        for (kind, switch, [make, start, exit]) in keys {
            let (lives, events) = lives::in_a_run(kind, self.few)?;
            let parts = lives.parts(&events, clock_read);
            let switch = median(costs, switch);
            put(costs, make, parts.make, 0, "the whole call, without a switch in between");
            put(
                costs,
                start,
                parts.begin,
                switch,
                "from sched_switch to it until its first clock_read at the clock, less switch",
            );
            let how = "from its last clock_read at the clock until sched_switch from it, less wakeup and schedule";
            put(costs, exit, sums(&parts.end, &parts.leave), way, how);
            if kind == "process" {
                self.put_waits(costs, "reap-wait", "reap", &parts.to_sleep, &parts.from_sleep);
            }
        }
        Ok(())
    }
}

/// Measures when a wakeup updates the runqueue clock: `sched_stat_runtime` of the waker follows immediately. Runs do
/// not record that event, so this is a separate recording.
pub fn put_clock(effort: Effort, cpu: u32, costs: &mut Costs) -> Result<()> {
    let mut recording = tracing::begin(&Settings {
        tracing: true,
        trace: Some(PathBuf::new()),
        buffer_kb: 4096,
        ..Settings::default()
    });
    let wakeup_pair = handover::by_futex(effort.few as u32 / 2, cpu, true);
    recording.stop();
    let how = "from sched_waking until sched_stat_runtime of the waker that the wakee preempts";
    put(costs, "wakeup-clock", wakeup_pair.clocks(&Events::of(&mut recording)?), 0, how);
    Ok(())
}

fn put(costs: &mut Costs, key: &'static str, samples: Vec<Nanos>, part: Nanos, how: &str) {
    if let Some(cost) = Cost::of(samples, how) {
        costs.insert(key, Entry::One(cost.less(part)));
    }
}

/// The sums of the samples of the same rounds.
fn sums(first: &[Nanos], second: &[Nanos]) -> Vec<Nanos> {
    first.iter().zip(second).map(|(a, b)| a + b).collect()
}

fn middle(samples: &[Nanos]) -> Nanos {
    Cost::of(samples.to_vec(), "").map_or(0, |cost| cost.p50)
}
