//! The caches, as the `[caches]` of a machine file states them: their sizes, as the kernel reports them, and how long
//! it takes to read 1 KiB from each and from memory.
//!
//! A set of half the nearest cache is read in order, 8 bytes at a time, after so much other data that it lies in the
//! cache in question: twice the size of the cache before it. The time of a pass, divided by its KiB, is a sample; the
//! median counts.

use std::path::Path;

use schedlab_model::Nanos;
use serde::Serialize;

use crate::clock::now;
use crate::memory::available_kib;

/// One level of cache.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Level {
    /// Its key: l1, l2 or llc.
    pub name: &'static str,
    pub kib: usize,
    /// Reading 1 KiB from it, in ns.
    pub read: Nanos,
    /// Whether the CPUs of the last-level cache share it, although it is not the last.
    #[serde(rename = "shared-by", skip_serializing_if = "Option::is_none")]
    pub shared_by: Option<&'static str>,
}

/// All levels, nearest first, and the memory behind them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Caches {
    pub levels: Vec<Level>,
    /// Reading 1 KiB from memory, in ns.
    pub memory: Nanos,
    /// How it was measured.
    pub how: String,
}

/// A cache of data as the kernel describes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Found {
    level: u32,
    kib: usize,
    shared: String,
}

/// Measures the caches of a CPU, on which the thread must be pinned; `None` where the kernel does not report their
/// sizes.
pub fn measure(cpu: u32, samples: usize) -> Option<Caches> {
    let mut levels = levels(&found(Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}/cache"))))?;
    let set = (levels[0].kib * 1024 / 2 / 8).max(128);
    let set = vec![1u64; set];
    let most = available_kib() as usize / 8;
    let mut displaced = 1;
    let mut fastest = 0;
    // A pass that was disturbed less than one over a nearer cache must not contradict it.
    let mut read = |displaced: usize| {
        fastest = time(&set, displaced.min(most), samples).max(fastest).max(1);
        fastest
    };
    for level in &mut levels {
        level.read = read(displaced);
        displaced = 2 * level.kib;
    }
    let memory = read(displaced);
    let how = format!(
        "{} KiB read in order after twice the size of the cache before, medians of {samples} passes",
        set.len() * 8 / 1024
    );
    Some(Caches { levels, memory, how })
}

/// The caches of data below this folder of sysfs, by level.
fn found(dir: &Path) -> Vec<Found> {
    let one = |index: u32| {
        let read = |file: &str| std::fs::read_to_string(dir.join(format!("index{index}/{file}"))).ok();
        let level = read("level")?.trim().parse().ok()?;
        let kib = read("size")?.trim().strip_suffix('K')?.parse().ok().filter(|kib| *kib > 0)?;
        let data = read("type")?.trim() != "Instruction";
        data.then(|| Found { level, kib, shared: read("shared_cpu_list").unwrap_or_default() })
    };
    let mut found: Vec<Found> = (0..8).filter_map(one).collect();
    found.sort();
    found
}

/// The levels of a machine file, times missing: the last cache is `llc`, those before it are `l1` and `l2`.
fn levels(found: &[Found]) -> Option<Vec<Level>> {
    let (last, before) = found.split_last()?;
    let level = |name, cache: &Found, shared_by| Level { name, kib: cache.kib, read: 0, shared_by };
    let named = before.iter().zip(["l1", "l2"]).map(|(cache, name)| {
        let wide = cache.shared == last.shared && cache.shared != before[0].shared;
        level(name, cache, wide.then_some("llc"))
    });
    let mut levels: Vec<Level> = named.collect();
    levels.push(level("llc", last, None));
    levels.is_sorted_by_key(|level| level.kib).then_some(levels)
}

/// Nanoseconds per KiB of a pass over the set after so much other data.
fn time(set: &[u64], other_kib: usize, samples: usize) -> Nanos {
    let other = vec![1u64; other_kib * 1024 / 8];
    let walk = |memory: &[u64]| {
        let begin = now();
        std::hint::black_box(memory.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)));
        now() - begin
    };
    let clock = (0..100).map(|_| walk(&[])).min().unwrap_or(0);
    let one = |_| {
        walk(set);
        walk(&other);
        walk(set).saturating_sub(clock)
    };
    let mut times: Vec<Nanos> = (0..samples).map(one).collect();
    times.sort_unstable();
    times.get(samples / 2).map_or(0, |time| time / (set.len() as u64 * 8 / 1024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn cache(level: u32, kib: usize, shared: &str) -> Found {
        Found { level, kib, shared: shared.to_owned() }
    }

    #[test]
    fn the_last_cache_is_the_llc() {
        let shapes = |found: &[Found]| -> Option<Vec<(&str, usize, Option<&str>)>> {
            Some(levels(found)?.iter().map(|level| (level.name, level.kib, level.shared_by)).collect())
        };
        let cases = [
            (vec![], None),
            (vec![cache(2, 1024, "0-3")], Some(vec![("llc", 1024, None)])),
            (vec![cache(1, 32, "0"), cache(2, 1024, "0-3")], Some(vec![("l1", 32, None), ("llc", 1024, None)])),
            (
                vec![cache(1, 48, "0"), cache(2, 1280, "0"), cache(3, 8192, "0-3")],
                Some(vec![("l1", 48, None), ("l2", 1280, None), ("llc", 8192, None)]),
            ),
            // POWER9: a pair of cores shares L2 and L3.
            (
                vec![cache(1, 32, "0-3"), cache(2, 512, "0-7"), cache(3, 10240, "0-7")],
                Some(vec![("l1", 32, None), ("l2", 512, Some("llc")), ("llc", 10240, None)]),
            ),
            // One CPU: all caches have the same list.
            (
                vec![cache(1, 48, "0"), cache(2, 1280, "0"), cache(3, 8192, "0")],
                Some(vec![("l1", 48, None), ("l2", 1280, None), ("llc", 8192, None)]),
            ),
            (vec![cache(1, 64, "0"), cache(2, 32, "0")], None),
        ];
        for (found, want) in cases {
            assert_eq!(shapes(&found), want, "{found:?}");
        }
    }

    #[test]
    fn caches_of_data_are_read_from_sysfs() {
        let dir = std::env::temp_dir().join(format!("schedlab-caches-{}", std::process::id()));
        for (index, level, kind, size) in [
            (0, "1", "Data", "48K"),
            (1, "1", "Instruction", "32K"),
            (2, "2", "Unified", "1280K"),
            (3, "3", "Unified", "?"),
        ] {
            let dir = dir.join(format!("index{index}"));
            std::fs::create_dir_all(&dir).unwrap();
            for (file, text) in [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", "0")] {
                std::fs::write(dir.join(file), format!("{text}\n")).unwrap();
            }
        }
        let seen = found(&dir);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(seen, [cache(1, 48, "0\n"), cache(2, 1280, "0\n")]);
    }

    /// Whatever disturbs the measurement, a farther cache is not faster.
    #[test]
    fn times_do_not_fall_from_one_level_to_the_next() {
        let Some(caches) = measure(0, 3) else {
            let _ = writeln!(std::io::stdout(), "skipped: times of caches: the kernel does not report their sizes");
            return;
        };
        let times: Vec<Nanos> = caches.levels.iter().map(|level| level.read).chain([caches.memory]).collect();
        assert!(times.is_sorted() && times[0] > 0, "{times:?}");
    }
}
