//! Costs of a switch between threads and between processes, of a wakeup, and of the tick.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread;

use rustix::thread::futex::{self, Flags};
use schedlab_model::{Nanos, MSEC, USEC};
use schedlab_workload::Policy;

use super::{median, pin, Cost, Cpus, Effort, Entry};
use crate::clock::{self, now};
use crate::error::{errno, os, Result};
use crate::sys::{self, Forked};

/// The number of round trips in a sample.
const TRIPS: u64 = 50;

type Pipe = (OwnedFd, OwnedFd);

/// Measures these costs.
pub fn measure(
    effort: Effort,
    cpus: &Cpus,
    costs: &mut BTreeMap<&'static str, Entry>,
    other: &mut BTreeMap<&'static str, Cost>,
) -> Result<()> {
    let mut put = |key, cost: Option<Cost>, part: Nanos| {
        if let Some(cost) = cost {
            costs.insert(key, Entry::One(cost.less(part)));
        }
        (median(costs, "syscall"), (median(costs, "pipe-read") + median(costs, "pipe-write")) / 2, median(costs, key))
    };
    let how = "futex(FUTEX_WAKE) of a SCHED_IDLE thread on the same CPU, less one without a waiter";
    let without = Cost::of(wakeups(effort.few, Wakee::None)?, "").map_or(0, |cost| cost.p50);
    let (call, pipe, wakeup) = put("wakeup", Cost::of(wakeups(effort.few, Wakee::Here(cpus.first))?, how), without);
    let hop = 2 * (call + pipe) + wakeup;
    let how = format!("one hop of a 1-byte ping-pong through pipes on one CPU, means of {TRIPS} round trips");
    let less = "less two syscalls, two pipe operations and a wakeup";
    let samples = effort.few / 4;
    let threads = Cost::of(between_threads(samples, cpus.first, cpus.first)?, format!("{how}, threads, {less}"));
    put("switch-thread", threads, hop);
    let processes = Cost::of(between_processes(samples, cpus.first)?, format!("{how}, processes, {less}"));
    put("switch-process", processes, hop);
    let length = if effort.few > 1000 { 2_000 * MSEC } else { 500 * MSEC };
    put("tick", ticks(length), 0);
    for (distance, cpu) in &cpus.others {
        let how = format!("one hop of a 1-byte ping-pong through pipes between CPU {} and CPU {cpu}", cpus.first);
        let name = match *distance {
            "smt" => "hop-smt",
            "llc" => "hop-llc",
            "node" => "hop-node",
            _ => "hop-remote",
        };
        if let Some(cost) = Cost::of(between_threads(samples, cpus.first, *cpu)?, how) {
            other.insert(name, cost);
        }
    }
    Ok(())
}

/// Measures for how long sending an interrupt keeps the sender busy: what a wakeup takes longer whose wakee preempts a
/// thread on another CPU.
pub fn measure_sending(effort: Effort, cpus: &Cpus, costs: &mut BTreeMap<&'static str, Entry>) -> Result<()> {
    let Some((_, other)) = cpus.others.first() else { return Ok(()) };
    let here = Cost::of(wakeups(effort.few, Wakee::Here(cpus.first))?, "").map_or(0, |cost| cost.p50);
    let how =
        format!("futex(FUTEX_WAKE) of a thread that preempts another one on CPU {other}, less one on the waker's CPU");
    if let Some(cost) = Cost::of(wakeups(effort.few, Wakee::On(*other))?, how) {
        costs.insert("ipi-send", Entry::One(cost.less(here)));
    }
    Ok(())
}

/// Whom a measured call wakes.
#[derive(Clone, Copy)]
enum Wakee {
    /// Nobody.
    None,
    /// A SCHED_IDLE thread on the waker's CPU, which runs only when the waker sleeps.
    Here(u32),
    /// A thread on this CPU, where a SCHED_IDLE thread never sleeps.
    On(u32),
}

/// The times of the waking call.
fn wakeups(samples: usize, wakee: Wakee) -> Result<Vec<Nanos>> {
    let (word, ready, over) = (AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
    let waiter = !matches!(wakee, Wakee::None);
    let begin = |cpu, policy| {
        let _ = pin(cpu);
        let _ = crate::attributes::policy(policy);
    };
    let (word, ready, over, begin) = (&word, &ready, &over, &begin);
    let mut times = Vec::with_capacity(samples);
    thread::scope(|scope| {
        if let Wakee::On(cpu) = wakee {
            scope.spawn(move || {
                begin(cpu, Policy::Idle);
                while !over.load(SeqCst) {
                    std::hint::spin_loop();
                }
            });
        }
        if let Wakee::Here(cpu) | Wakee::On(cpu) = wakee {
            let policy = if matches!(wakee, Wakee::Here(_)) { Policy::Idle } else { Policy::Normal };
            scope.spawn(move || {
                begin(cpu, policy);
                while !over.load(SeqCst) {
                    let seen = word.load(SeqCst);
                    ready.store(seen + 1, SeqCst);
                    let _ = futex::wait(word, Flags::PRIVATE, seen, None);
                }
            });
        }
        for round in 0..samples as u32 {
            // The wakee has blocked once it has announced its wait and the waker has slept long enough.
            while waiter && ready.load(SeqCst) != round + 1 {
                clock::sleep_until(now() + 20 * USEC);
            }
            if waiter {
                clock::sleep_until(now() + 20 * USEC);
            }
            word.store(round + 1, SeqCst);
            let begin = now();
            let woken = futex::wake(word, Flags::PRIVATE, 1);
            let end = now();
            if woken == Ok(usize::from(waiter)) {
                times.push(end - begin);
            }
        }
        over.store(true, SeqCst);
        word.fetch_add(1, SeqCst);
        let _ = futex::wake(word, Flags::PRIVATE, 1);
    });
    Ok(times)
}

fn pipes() -> Result<(Pipe, Pipe)> {
    let pipe = || rustix::pipe::pipe().map_err(errno("pipe"));
    Ok((pipe()?, pipe()?))
}

/// The other side: returns every byte until the pipe is closed or all trips are done.
fn echo(there: &OwnedFd, back: &OwnedFd, trips: u64) {
    let mut byte = [0];
    for _ in 0..trips {
        if !matches!(rustix::io::read(there, &mut byte), Ok(1)) || rustix::io::write(back, &byte).is_err() {
            return;
        }
    }
}

/// The times of one hop.
fn hops(there: &OwnedFd, back: &OwnedFd, samples: usize) -> Vec<Nanos> {
    let mut byte = [0];
    let mut one = |_| {
        let begin = now();
        for _ in 0..TRIPS {
            let _ = rustix::io::write(there, &byte);
            let _ = rustix::io::read(back, &mut byte);
        }
        (now() - begin) / (2 * TRIPS)
    };
    (0..samples).map(&mut one).collect()
}

fn between_threads(samples: usize, here: u32, there: u32) -> Result<Vec<Nanos>> {
    let (forth, back) = pipes()?;
    pin(here)?;
    Ok(thread::scope(|scope| {
        scope.spawn(|| {
            let _ = pin(there);
            echo(&forth.0, &back.1, samples as u64 * TRIPS);
        });
        hops(&forth.1, &back.0, samples)
    }))
}

fn between_processes(samples: usize, cpu: u32) -> Result<Vec<Nanos>> {
    let (forth, back) = pipes()?;
    pin(cpu)?;
    match sys::fork().map_err(os("fork"))? {
        Forked::Child => {
            echo(&forth.0, &back.1, samples as u64 * TRIPS);
            sys::exit_now(0);
        }
        Forked::Parent(_) => {
            let times = hops(&forth.1, &back.0, samples);
            sys::wait_any(true, true).map_err(os("waitpid"))?;
            Ok(times)
        }
    }
}

/// An interval of a busy loop in which the loop did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    begin: Nanos,
    length: Nanos,
    /// Another task ran in it, such as a thread of the kernel that the tick had woken.
    switched: bool,
}

/// The gaps in a busy loop that recur with the period of the tick, without those in which another task ran: what such a
/// task takes is its own time, and a task of a higher class would preempt it.
fn ticks(length: Nanos) -> Option<Cost> {
    const SHORTEST: Nanos = 300;
    /// Longer gaps are due to a hypervisor.
    const LONGEST: Nanos = 100 * USEC;
    let mut switches = sys::thread_usage().involuntary;
    let (begin, mut last) = (now(), now());
    let mut gaps = Vec::new();
    while last - begin < length {
        let time = now();
        if time - last > SHORTEST {
            let before = std::mem::replace(&mut switches, sys::thread_usage().involuntary);
            gaps.push(Gap { begin: last, length: time - last, switched: switches != before });
            last = now();
        } else {
            last = time;
        }
    }
    // The coarse clock advances with the tick.
    let period = clock::tick();
    let phase = in_phase(&gaps, period);
    if phase.len() as u64 * 2 <= length / period {
        return None;
    }
    let how = format!("gaps of a busy loop without a switch that come every {} us, the tick's period", period / USEC);
    let times = phase.into_iter().filter(|gap| !gap.switched && gap.length < LONGEST).map(|gap| gap.length).collect();
    Cost::of(times, how)
}

/// The gaps that begin within 5% of a multiple of the period, relative to the most frequent phase.
fn in_phase(gaps: &[Gap], period: Nanos) -> Vec<Gap> {
    const BINS: usize = 40;
    let bin = |gap: &Gap| (gap.begin % period * BINS as u64 / period) as usize;
    let mut counts = [0u32; BINS];
    gaps.iter().for_each(|gap| counts[bin(gap)] += 1);
    let densest = (0..BINS).max_by_key(|b| counts[*b] + counts[(*b + 1) % BINS]).unwrap_or(0);
    let near = |gap: &&Gap| bin(gap) == densest || bin(gap) == (densest + 1) % BINS;
    gaps.iter().filter(near).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gaps_at_the_tick_period_count() {
        let gap = |begin, length| Gap { begin, length, switched: false };
        let ticks: Vec<_> = (1..50).map(|i| gap(i * 4 * MSEC + 123, 900)).collect();
        let strays = [gap(5_000_000, 70), gap(9_900_000, 80)];
        let gaps: Vec<_> = ticks.iter().copied().chain(strays).collect();
        assert_eq!(in_phase(&gaps, 4 * MSEC), ticks);
    }

    #[test]
    fn every_wakeup_finds_its_waiter() {
        let cpu = crate::run::allowed_cpus().unwrap()[0];
        let times = thread::spawn(move || {
            pin(cpu).unwrap();
            wakeups(30, Wakee::Here(cpu)).unwrap()
        });
        assert!(times.join().unwrap().len() > 10);
    }
}
