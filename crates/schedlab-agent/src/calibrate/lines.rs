//! Transfers of a cache line between CPUs: two threads on a CPU each take turns to change a word by compare-and-swap.
//! Half a round trip, less a compare-and-swap of a word that no other CPU uses, is the time in which the line comes
//! from the other CPU. Samples of more than four times the median are left out: one of the threads did not run
//! meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::thread;

use schedlab_model::{Nanos, MSEC};
use serde::Serialize;

use super::{pin, Cost, Cpus, Effort, Entry};
use crate::clock::now;
use crate::error::Result;

/// The number of round trips in a sample.
const TRIPS: u64 = 100;
/// The number of samples of a pair in the matrix.
const SAMPLES: usize = 40;
/// The longest time for one measurement: CPUs that a hypervisor does not run at the same time need much longer than
/// others.
pub const LIMIT: Nanos = 300 * MSEC;

/// The median transfer between each pair of CPUs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Matrix {
    /// The CPUs.
    pub cpus: Vec<u32>,
    /// A row for each CPU but the first, with the transfers between it and each CPU before it, in ns; `None`: too few
    /// samples.
    pub ns: Vec<Vec<Option<Nanos>>>,
}

/// A word in a line of its own; some processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Default)]
pub struct Line(pub AtomicU64);

/// Measures the cost by distance.
pub fn measure(effort: Effort, cpus: &Cpus, costs: &mut BTreeMap<&'static str, Entry>) -> Result<()> {
    let alone = alone(cpus.first)?;
    let mut by = BTreeMap::new();
    for (distance, cpu) in &cpus.others {
        let how = format!(
            "half a round trip of compare-and-swap between CPU {} and CPU {cpu}, means of {TRIPS}, less {alone} ns on one CPU",
            cpus.first
        );
        if let Some(cost) = Cost::of(handovers(effort.few / 4, cpus.first, *cpu)?, how) {
            by.insert(*distance, cost.less(alone));
        }
    }
    if !by.is_empty() {
        costs.insert("line-transfer", Entry::ByDistance(by));
    }
    Ok(())
}

/// Measures each pair of these CPUs, a few ms each.
pub fn matrix(cpus: &[u32]) -> Result<Matrix> {
    let mut ns = Vec::new();
    for (place, cpu) in cpus.iter().enumerate().skip(1) {
        let alone = alone(*cpu)?;
        let mut row = Vec::new();
        for other in &cpus[..place] {
            let cost = Cost::of(handovers(SAMPLES, *cpu, *other)?, "");
            row.push(cost.map(|cost| cost.p50.saturating_sub(alone)));
        }
        ns.push(row);
    }
    Ok(Matrix { cpus: cpus.to_vec(), ns })
}

/// A compare-and-swap of a word that no other CPU uses: the smallest mean.
fn alone(cpu: u32) -> Result<Nanos> {
    pin(cpu)?;
    let line = Line::default();
    let sample = |_| {
        let begin = now();
        for turn in 0..TRIPS {
            let _ = line.0.compare_exchange(turn, turn + 1, SeqCst, Relaxed);
        }
        line.0.store(0, SeqCst);
        (now() - begin) / TRIPS
    };
    Ok((0..SAMPLES).map(sample).min().unwrap_or(0))
}

/// The times of half a round trip.
fn handovers(samples: usize, here: u32, there: u32) -> Result<Vec<Nanos>> {
    let (line, over) = (Line::default(), AtomicBool::new(false));
    pin(here)?;
    let end = now() + LIMIT;
    let mut times = Vec::with_capacity(samples);
    thread::scope(|scope| {
        let other = scope.spawn(|| -> Result<()> {
            pin(there)?;
            let mut turn = 1;
            while take_turn(&line, turn, || over.load(Acquire)) {
                turn += 2;
            }
            Ok(())
        });
        let mut turns = (0..).step_by(2);
        while times.len() < samples && now() < end {
            let begin = now();
            if turns.by_ref().take(TRIPS as usize).all(|turn| take_turn(&line, turn, || now() >= end)) {
                times.push((now() - begin) / (2 * TRIPS));
            }
        }
        over.store(true, SeqCst);
        other.join().unwrap_or(Ok(()))
    })?;
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or(0);
    times.retain(|time| *time <= 4 * median);
    Ok(times)
}

/// Changes the word from this turn to the next as soon as the other thread has changed it to this one; false if the
/// measurement is over before.
fn take_turn(line: &Line, turn: u64, over: impl Fn() -> bool) -> bool {
    spin(|| line.0.compare_exchange(turn, turn + 1, SeqCst, Relaxed).is_ok(), over)
}

/// Tries until it succeeds; false if the measurement is over before. Whether it is over is checked rarely, as the check
/// takes longer than a transfer.
pub fn spin(attempt: impl Fn() -> bool, over: impl Fn() -> bool) -> bool {
    const UNCHECKED: u32 = 1 << 12;
    let mut attempts: u32 = 0;
    while !attempt() {
        attempts = attempts.wrapping_add(1);
        if attempts % UNCHECKED == 0 && over() {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cpus_hand_a_line_over() {
        let cpus = crate::run::allowed_cpus().unwrap();
        if let [first, second, ..] = cpus[..] {
            let times = thread::spawn(move || handovers(5, first, second)).join().unwrap().unwrap();
            assert!(times.iter().all(|time| *time > 0), "{times:?}");
        }
        let matrix = thread::spawn(move || matrix(&cpus[..1])).join().unwrap().unwrap();
        assert!(matrix.ns.is_empty());
    }

    #[test]
    fn a_cpu_that_does_not_exist_ends_the_measurement_with_its_number() {
        let cpu = crate::run::allowed_cpus().unwrap()[0];
        let error = thread::spawn(move || handovers(5, cpu, 1_000)).join().unwrap().unwrap_err();
        assert!(error.to_string().contains("CPU 1000"), "{error}");
    }

    #[test]
    fn no_turn_is_taken_once_the_measurement_is_over() {
        assert!(take_turn(&Line::default(), 0, || true));
        assert!(!take_turn(&Line::default(), 1, || true));
    }
}
