//! The bandwidth of the memory, as the `[memory]` of a machine file states it: the triad of STREAM, `a[i] = b[i] + s *
//! c[i]`, 24 bytes per element, by one CPU, by all CPUs of a node, and by the CPUs of another node.
//!
//! Each rate is that of the shortest pass, as STREAM reports it. The arrays are four times as large as the last-level
//! cache, as STREAM demands, but no larger than an eighth of the available memory.

use std::sync::Barrier;

use schedlab_model::Nanos;
use serde::Serialize;

use super::pin;
use crate::clock::now;
use crate::error::{AgentError, Result};
use crate::memory::available_kib;

/// Bytes that an element counts for.
const ELEMENT: usize = 24;
/// The size of the last-level cache where the kernel does not report it.
const USUAL_LLC: usize = 32 << 20;

/// Rates in MB/s (10^6 bytes).
#[derive(Clone, Debug, Serialize)]
pub struct Bandwidth {
    /// Of one CPU alone.
    pub cpu: u64,
    /// Of all CPUs of a node from its memory.
    pub node: u64,
    /// Of all CPUs of another node from that memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<u64>,
    /// How it was measured.
    pub how: String,
}

/// Bytes of the three arrays on this machine.
pub fn arrays() -> usize {
    (4 * llc()).min(available_kib() as usize * 1024 / 8)
}

/// Measures the rates with the CPUs of the first node and, if there is one, of another node.
pub fn measure(passes: usize, bytes: usize, node: &[u32], other: &[u32]) -> Result<Bandwidth> {
    let cpu = best(passes, bytes, &node[..1], &node[..1])?;
    let whole = if node.len() > 1 { best(passes, bytes, node, node)? } else { cpu };
    let home: Vec<u32> = (0..other.len()).map(|index| node[index % node.len()]).collect();
    let remote = if other.is_empty() { None } else { Some(best(passes, bytes, &home, other)?) };
    let (mib, cpus) = (bytes >> 20, node.len());
    let how = format!("triad on three arrays of {mib} MiB in all, the best of {passes} passes; node: {cpus} CPUs");
    // A pass of several CPUs that was disturbed more than that of one must not contradict it.
    let node = whole.max(cpu);
    Ok(Bandwidth { cpu, node, remote: remote.map(|rate| rate.min(node)), how })
}

/// MB/s of the shortest pass by a thread on each of the CPUs `run`, over memory that was first written on the CPUs
/// `home`.
fn best(passes: usize, bytes: usize, home: &[u32], run: &[u32]) -> Result<u64> {
    let elements = (bytes / ELEMENT / run.len()).max(1);
    let barrier = Barrier::new(run.len());
    let spans: Vec<Result<Vec<[Nanos; 2]>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = home
            .iter()
            .zip(run)
            .map(|(home, run)| scope.spawn(|| thread(passes, elements, [*home, *run], &barrier)))
            .collect();
        let lost = || AgentError::failed("a thread that measures the memory ended early", "");
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(lost()))).collect()
    });
    let spans = spans.into_iter().collect::<Result<Vec<_>>>()?;
    let took = |pass: usize| {
        let begin = spans.iter().map(|own| own[pass][0]).min().unwrap_or(0);
        let end = spans.iter().map(|own| own[pass][1]).max().unwrap_or(0);
        end.saturating_sub(begin).max(1)
    };
    let shortest = (0..passes).map(took).min().unwrap_or(1);
    Ok((elements * ELEMENT * run.len()) as u64 * 1_000 / shortest)
}

/// The begin and the end of each pass of one thread.
fn thread(passes: usize, elements: usize, [home, run]: [u32; 2], barrier: &Barrier) -> Result<Vec<[Nanos; 2]>> {
    let pinned = pin(home);
    let [mut a, b, c] = [1.0, 2.0, 3.0].map(|value| vec![value; elements]);
    let pinned = pinned.and_then(|()| pin(run));
    let spans = (0..passes)
        .map(|_| {
            // All threads meet here even if one could not be pinned, or the others would wait for ever.
            barrier.wait();
            let begin = now();
            triad(&mut a, &b, &c);
            [begin, now()]
        })
        .collect();
    pinned.map(|()| spans)
}

fn triad(a: &mut [f64], b: &[f64], c: &[f64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = *b + 3.0 * *c;
    }
    std::hint::black_box(a);
}

/// Bytes of the last-level cache of the first CPU.
fn llc() -> usize {
    let size = |index: u32| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().strip_suffix('K')?.parse::<usize>().ok()
    };
    (0..5).filter_map(size).max().map_or(USUAL_LLC, |kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rates_of_a_node_are_at_least_those_of_a_cpu() {
        let cpus = crate::run::allowed_cpus().unwrap();
        for others in [0, cpus.len().min(2)] {
            let rates = measure(2, 6 << 20, &cpus, &cpus[..others]).unwrap();
            assert!(rates.cpu > 10 && rates.node >= rates.cpu, "{rates:?}");
            assert_eq!(rates.remote.is_some(), others > 0);
            assert!(rates.remote.is_none_or(|remote| remote <= rates.node), "{rates:?}");
        }
    }

    #[test]
    fn the_triad_reads_two_arrays_and_writes_the_third() {
        let mut a = [0.0; 5];
        triad(&mut a, &[1.0, 2.0, 3.0, 4.0, 5.0], &[10.0; 5]);
        assert_eq!(a, [31.0, 32.0, 33.0, 34.0, 35.0]);
    }

    #[test]
    fn a_cpu_that_does_not_exist_ends_the_measurement_with_its_number() {
        let error = best(2, 1 << 10, &[1_000], &[1_000]).unwrap_err();
        assert!(error.to_string().contains("CPU 1000"), "{error}");
    }
}
