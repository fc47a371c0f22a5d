//! Structures of several cache lines that another CPU has just written: the time to access all lines of one of them.
//!
//! One CPU writes every line of [`STRUCTURES`] structures. Another CPU then accesses the structures one after the
//! other, and does so a second time, when its own cache has the lines.
//!
//! ```text
//! sample = (first pass - second pass) / STRUCTURES
//! ```
//!
//! The address of a structure depends on the values in the one before it, so that the transfers of different structures
//! cannot overlap; those within a structure can, as far as the way of access permits. The lines are in random order,
//! which no prefetcher predicts.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::thread;

use schedlab_model::{stream, Nanos};
use serde::Serialize;

use super::lines::{spin, Line, LIMIT};
use super::{pin, Cost, Cpus, Effort};
use crate::clock::now;
use crate::error::Result;

/// Structures in a pass.
const STRUCTURES: usize = 16;
/// The numbers of lines that a structure may have.
const LINES: [usize; 5] = [1, 2, 3, 4, 8];

/// The time to access a structure, by the distance of the CPU that wrote it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Structures {
    /// The numbers of lines.
    pub lines: [usize; LINES.len()],
    /// By distance and way of access, the median in ns for each number of lines; `None`: too few samples.
    pub ns: BTreeMap<&'static str, BTreeMap<&'static str, Vec<Option<Nanos>>>>,
    /// How it was measured.
    pub how: String,
}

/// How the lines of a structure are accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// All are read, none before another.
    Read,
    /// The first is changed by an atomic operation, as a lock is; the others are read and then written.
    Change,
    /// Each is read at an address that depends on the line before it.
    Chain,
}

const WAYS: [(Way, &str); 3] = [(Way::Read, "read"), (Way::Change, "change"), (Way::Chain, "chain")];

impl Way {
    /// Accesses the lines with these numbers, to each of which `carry` is added. The result depends on all of their
    /// values. As these are 0 in a measurement, so is every `carry`; neither the compiler nor the processor can assume
    /// it.
    #[inline]
    fn access(self, lines: &[Line], numbers: &[usize], mut carry: u64) -> u64 {
        let line = |number: &usize, carry: u64| &lines[number + carry as usize].0;
        match self {
            Way::Read => numbers.iter().fold(carry, |sum, number| sum | line(number, carry).load(Relaxed)),
            Way::Chain => {
                for number in numbers {
                    carry |= line(number, carry).load(Relaxed);
                }
                carry
            }
            Way::Change => {
                let Some((first, others)) = numbers.split_first() else { return carry };
                let mut sum = line(first, carry).fetch_add(carry, SeqCst);
                for number in others {
                    let word = line(number, carry);
                    let value = word.load(Relaxed);
                    word.store(value + carry, Relaxed);
                    sum |= value;
                }
                sum
            }
        }
    }

    /// The time to access all structures of `size` lines.
    fn pass(self, lines: &[Line], order: &[usize], size: usize) -> Nanos {
        let begin = now();
        let accessed = order.chunks_exact(size).fold(0, |carry, numbers| self.access(lines, numbers, carry));
        std::hint::black_box(accessed);
        now() - begin
    }
}

/// Measures by distance what the first CPU pays; nothing on one CPU.
pub fn measure(effort: Effort, cpus: &Cpus) -> Result<Structures> {
    let mut ns = BTreeMap::new();
    for (distance, cpu) in &cpus.others {
        ns.insert(*distance, medians(effort.few / 4, cpus.first, *cpu)?);
    }
    let how = format!(
        "CPU {} accesses {STRUCTURES} structures that another CPU has written, and again; difference by structure, median",
        cpus.first
    );
    Ok(Structures { lines: LINES, ns, how })
}

/// The median time to access a structure on the CPU `here` after the CPU `there` has written it, by way of access and
/// number of lines.
fn medians(samples: usize, here: u32, there: u32) -> Result<BTreeMap<&'static str, Vec<Option<Nanos>>>> {
    let most = LINES.into_iter().max().unwrap_or(0);
    let lines: Vec<Line> = (0..STRUCTURES * most).map(|_| Line::default()).collect();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    stream(0, "structures").shuffle(&mut order);
    // Odd: `here` accesses the lines. Even: `there` writes them.
    let (turn, over) = (Line::default(), AtomicBool::new(false));
    pin(here)?;
    let mut medians = BTreeMap::new();
    thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<()> {
            pin(there)?;
            let mut round = 0;
            while comes(&turn, round, || over.load(Acquire)) {
                lines.iter().for_each(|line| line.0.store(0, Relaxed));
                turn.0.store(round + 1, Release);
                round += 2;
            }
            Ok(())
        });
        let mut round = 1;
        for (way, name) in WAYS {
            let mut median = |size| {
                let (end, order) = (now() + LIMIT, &order[..STRUCTURES * size]);
                let mut times = Vec::with_capacity(samples);
                while times.len() < samples && comes(&turn, round, || now() >= end) {
                    let [first, second] = [(); 2].map(|()| way.pass(&lines, order, size));
                    times.push(first.saturating_sub(second) / STRUCTURES as u64);
                    turn.0.store(round + 1, Release);
                    round += 2;
                }
                Cost::of(times, "").map(|cost| cost.p50)
            };
            medians.insert(name, LINES.map(&mut median).to_vec());
        }
        over.store(true, SeqCst);
        writer.join().unwrap_or(Ok(()))
    })?;
    Ok(medians)
}

/// Waits for this turn; false if the measurement is over before.
fn comes(turn: &Line, wanted: u64, over: impl Fn() -> bool) -> bool {
    spin(|| turn.0.load(Acquire) == wanted, over)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Lines with these values, which a way of access has not changed where `carry` is 0.
    fn accessed(way: Way, values: &[u64], numbers: &[usize], carry: u64) -> u64 {
        let lines: Vec<Line> = values.iter().map(|value| Line((*value).into())).collect();
        let result = way.access(&lines, numbers, carry);
        if carry == 0 {
            assert!(lines.iter().zip(values).all(|(line, value)| line.0.load(Relaxed) == *value), "{way:?}");
        }
        result
    }

    #[test]
    fn the_result_depends_on_every_line() {
        for (way, _) in WAYS {
            for size in LINES {
                for number in 0..size {
                    // Only this line has a value other than 0.
                    let mut values = vec![0; size + 16];
                    values[number] = 16;
                    let numbers: Vec<usize> = (0..size).collect();
                    assert_eq!(accessed(way, &values, &numbers, 0), 16, "{way:?}: {size} lines, the line {number}");
                }
            }
        }
    }

    #[test]
    fn only_the_addresses_of_a_chain_depend_on_the_line_before() {
        // The first line has the value 1, so that a chain reads the third one next.
        let values = [1, 2, 4];
        let want = [(Way::Read, 0, 3), (Way::Change, 0, 3), (Way::Chain, 0, 5)];
        for (way, carry, sum) in want {
            assert_eq!(accessed(way, &values, &[0, 1], carry), sum, "{way:?}");
        }
        // The structure as a whole depends on the one before it.
        for (way, _) in WAYS {
            assert_eq!(accessed(way, &values, &[1], 1) & !1, 4, "{way:?}");
        }
    }

    #[test]
    fn every_number_of_lines_is_measured_in_every_way() {
        let allowed = crate::run::allowed_cpus().unwrap();
        let [first, second, ..] = allowed[..] else {
            let _ = writeln!(std::io::stdout(), "skipped: several cache lines: there is only one CPU");
            return;
        };
        let cpus = Cpus { first, others: vec![("llc", second)], node: vec![first], other_node: vec![], count: 2 };
        let effort = Effort { few: 48, ..Effort::new(true) };
        // On a busy machine all samples of a cell may be missing, but not all of every cell each time.
        let has_samples = (0..5).any(|_| {
            let cpus = cpus.clone();
            let measured = thread::spawn(move || measure(effort, &cpus)).join().unwrap().unwrap();
            let by_way = &measured.ns["llc"];
            assert_eq!(by_way.keys().copied().collect::<Vec<_>>(), ["chain", "change", "read"]);
            by_way.values().flatten().any(Option::is_some)
        });
        assert!(has_samples);
    }

    #[test]
    fn a_cpu_that_does_not_exist_ends_the_measurement_with_its_number() {
        let cpu = crate::run::allowed_cpus().unwrap()[0];
        let error = thread::spawn(move || medians(5, cpu, 1_000)).join().unwrap().unwrap_err();
        assert!(error.to_string().contains("CPU 1000"), "{error}");
    }

    #[test]
    fn a_turn_comes_or_the_measurement_is_over() {
        assert!(comes(&Line::default(), 0, || true));
        assert!(!comes(&Line::default(), 1, || true));
    }
}
