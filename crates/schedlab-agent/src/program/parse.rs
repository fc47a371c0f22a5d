//! Parses the output of real programs to metrics of the catalogue. Examples of real output are in `tests/programs`.
//!
//! If a program prints every sample (cyclictest's histogram) or a total, the result is samples. If it prints only
//! percentiles (schbench), these are copied, and the other statistics of the metric are unknown.

use schedlab_model::Nanos;

/// The results in the output of one pass.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ParsedOutput {
    /// Samples: the metric of the catalogue and the value in ns.
    pub samples: Vec<(&'static str, Nanos)>,
    /// Rates: the metric and the operations per second of the whole pass.
    pub rates: Vec<(&'static str, f64)>,
    /// Rates by CPU time.
    pub cpu_rates: Vec<CpuRate>,
    /// Statistics: the metric, the name of the statistic, and the value in the unit of the report.
    pub stats: Vec<(&'static str, String, f64)>,
}

/// Operations of a pass, and the CPU time that they took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CpuRate {
    /// The metric of the catalogue.
    pub metric: &'static str,
    /// Operations.
    pub count: u64,
    /// User and system time of all tasks.
    pub time: Nanos,
}

/// Parses the output of all copies of the program `id`. The error names what is missing.
pub fn parse(id: &str, copies: u32, stdout: &str, stderr: &str) -> Result<ParsedOutput, String> {
    match id {
        "hackbench" => total(stdout, "Time:", "time"),
        "perf-messaging" => total(stdout, "Total time:", "total_time"),
        "perf-pipe" | "perf-pipe-6.15" | "perf-seccomp-notify" => perf_pipe(stdout),
        "cyclictest" => cyclictest(stdout),
        id if super::stressor_of(id).is_some() => stress_ng(super::stressor_of(id).unwrap_or(id), stdout, stderr),
        "perf-futex-hash" | "perf-futex-lock-pi" => futex_rate(stdout),
        "perf-futex-wake" => futex_time(stdout, "Wokeup"),
        "perf-futex-requeue" => futex_time(stdout, "Requeued"),
        "perf-futex-wake-parallel" => futex_wake_parallel(stdout),
        "sysbench-cpu" => sysbench_cpu(stdout),
        "sysbench-threads" => sysbench_threads(stdout),
        "sysbench-mutex" => sysbench_mutex(stdout),
        "sysbench-memory" => sysbench_memory(stdout),
        id if super::lmbench::is_tool(id) => super::lmbench::parse(id, stderr),
        "netperf-tcp-rr" | "netperf-udp-rr" => super::netperf::parse(stdout, copies),
        // The line of 2020 and 2021 also says how long it has run, so that the two are not taken for each other.
        "schbench" if stderr.contains(SCHBENCH_2020) => {
            Err(format!("'{SCHBENCH_2020}' is that of schbench-2020, and is"))
        }
        "schbench" => schbench(stderr, &[("Latency percentiles (usec)", "latency")]),
        "schbench-2020" => schbench(stderr, &[(SCHBENCH_2020, "latency")]),
        "schbench-1.0" => schbench_1_0(stderr),
        other => Err(format!("the output of {other} cannot be parsed")),
    }
}

const SCHBENCH_2020: &str = "Latency percentiles (usec) runtime";

/// The first number on the first line that begins with `key`, after the key.
fn number_after(text: &str, key: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(key))?;
    number(rest.split_ascii_whitespace().next()?)
}

fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

fn total(stdout: &str, key: &str, metric: &'static str) -> Result<ParsedOutput, String> {
    let seconds = number_after(stdout, key).ok_or_else(|| format!("no line '{key} SECONDS'"))?;
    Ok(ParsedOutput { samples: vec![(metric, nanos(seconds, 1e9))], ..ParsedOutput::default() })
}

fn nanos(value: f64, each: f64) -> Nanos {
    (value * each).round() as Nanos
}

/// The total time is computed from the time per operation, which is printed with more digits.
fn perf_pipe(stdout: &str) -> Result<ParsedOutput, String> {
    let line = |word: &str| stdout.lines().find_map(|line| number(line.trim().strip_suffix(word)?.trim()));
    let each = line("usecs/op").ok_or("no line 'N usecs/op'")?;
    // `# Executed N pipe operations between two processes`, `# Executed N system calls`.
    let executed = stdout.lines().find_map(|line| line.strip_prefix("# Executed "));
    let loops = executed.and_then(|rest| number(rest.split_ascii_whitespace().next()?));
    let loops = loops.ok_or("no line '# Executed N ...'")?;
    let time = nanos(each * loops, 1e3);
    Ok(ParsedOutput { samples: vec![("usecs_per_op", time), ("total_time", time)], ..ParsedOutput::default() })
}

/// `LATENCY COUNT COUNT ...`, one line per microsecond, then `# Max Latencies:` and `# Histogram Overflows:` per
/// thread.
fn cyclictest(stdout: &str) -> Result<ParsedOutput, String> {
    /// The maximum number of samples in one line of a histogram.
    const MOST: u64 = 100_000_000;
    let mut samples = Vec::new();
    for line in stdout.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split_ascii_whitespace().map(str::parse::<u64>);
        let (Some(Ok(latency)), counts) = (fields.next(), fields) else { continue };
        let count: u64 = counts.filter_map(Result::ok).fold(0, u64::saturating_add);
        if count.saturating_add(samples.len() as u64) > MOST {
            return Err(format!("{count} samples in one line"));
        }
        samples.extend(std::iter::repeat_n(("latency", latency.saturating_mul(1000)), count as usize));
    }
    let by_thread = |key: &str| -> Vec<u64> {
        let rest = stdout.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("");
        rest.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let (largest, over) = (by_thread("# Max Latencies:"), by_thread("# Histogram Overflows:"));
    if largest.is_empty() {
        return Err("no line '# Max Latencies:'".into());
    }
    // Samples beyond the last bucket count with the maximum of their thread, which is known exactly.
    for (largest, over) in largest.iter().zip(&over).filter(|(_, over)| **over > 0 && **over < MOST) {
        samples.extend(std::iter::repeat_n(("latency", largest.saturating_mul(1000)), *over as usize));
    }
    Ok(ParsedOutput { samples, ..ParsedOutput::default() })
}

/// `stress-ng: metrc: [PID] STRESSOR OPS REAL USR SYS OPS/S OPS/S(usr+sys)`, and for nanosleep a line
/// `... nanosleep NS nanosec sleep overrun ...`.
fn stress_ng(stressor: &str, stdout: &str, stderr: &str) -> Result<ParsedOutput, String> {
    let of_stressor = |line: &'_ str| {
        let rest = line.strip_prefix("stress-ng: metrc: ").or_else(|| line.strip_prefix("stress-ng: info: "))?;
        let rest = rest.trim_start().split_once("] ")?.1.trim_start().strip_prefix(stressor)?;
        rest.starts_with(' ').then(|| rest.trim_start().to_owned())
    };
    let lines: Vec<String> = stdout.lines().chain(stderr.lines()).filter_map(of_stressor).collect();
    let columns = lines.iter().find_map(|line| {
        let fields: Vec<f64> = line.split_ascii_whitespace().map_while(number).collect();
        <[f64; 6]>::try_from(fields.get(..6)?).ok()
    });
    let [ops, _, _, _, rate, cpu_rate] =
        columns.ok_or_else(|| format!("no line of metrics for the stressor {stressor}"))?;
    let mut found = ParsedOutput { rates: vec![("bogo_ops_per_second", rate)], ..ParsedOutput::default() };
    // A run that is too short for its CPU time of two digits has no rate of it.
    if cpu_rate > 0.0 {
        let time = nanos(ops / cpu_rate, 1e9);
        found.cpu_rates.push(CpuRate { metric: "bogo_ops_per_second_usr_sys", count: ops as u64, time });
    }
    let overrun = lines.iter().find_map(|line| {
        let (value, rest) = line.split_once(' ')?;
        rest.starts_with("nanosec sleep overrun").then(|| number(value)).flatten()
    });
    found.stats.extend(overrun.map(|ns| ("sleep_overrun", "mean".to_owned(), ns / 1e3)));
    Ok(found)
}

/// `Averaged 952832 operations/sec (+- 27.57%), total secs = 1`
fn futex_rate(stdout: &str) -> Result<ParsedOutput, String> {
    let rate = number_after(stdout, "Averaged").ok_or("no line 'Averaged N operations/sec'")?;
    Ok(ParsedOutput { rates: vec![("operations_per_second", rate)], ..ParsedOutput::default() })
}

/// `Wokeup 8 of 8 threads in 0.2397 ms (+-8.84%)`: the mean over the runs, whose own lines begin with `[Run`.
fn futex_time(stdout: &str, verb: &str) -> Result<ParsedOutput, String> {
    let milliseconds = milliseconds_in(stdout, verb)?;
    Ok(ParsedOutput { samples: vec![("time", nanos(milliseconds, 1e6))], ..ParsedOutput::default() })
}

/// `Avg per-thread latency (waking 4/8 threads) in 0.1350 ms (+-16.08%)`
fn futex_wake_parallel(stdout: &str) -> Result<ParsedOutput, String> {
    let milliseconds = milliseconds_in(stdout, "Avg per-thread latency")?;
    let mean = ("latency", "mean".to_owned(), milliseconds * 1e3);
    Ok(ParsedOutput { stats: vec![mean], ..ParsedOutput::default() })
}

/// The time on the last line that begins with `key`, as ` in TIME ms`.
fn milliseconds_in(stdout: &str, key: &str) -> Result<f64, String> {
    let line = stdout.lines().rev().find(|line| line.starts_with(key));
    let time = line.and_then(|line| number(line.rsplit_once(" in ")?.1.split_once(" ms")?.0));
    time.ok_or_else(|| format!("no line '{key} ... in TIME ms'"))
}

/// `events per second:  1732.87`
fn sysbench_cpu(stdout: &str) -> Result<ParsedOutput, String> {
    let rate = number_after(stdout, "events per second:").ok_or("no line 'events per second: N'")?;
    Ok(ParsedOutput { rates: vec![("events_per_second", rate)], ..sysbench_latency(stdout)? })
}

/// `total number of events:  334`, in the total time.
fn sysbench_threads(stdout: &str) -> Result<ParsedOutput, String> {
    let events = number_after(stdout, "total number of events:").ok_or("no line 'total number of events: N'")?;
    let rate = ("events_per_second", events / sysbench_time(stdout)?);
    Ok(ParsedOutput { rates: vec![rate], ..sysbench_latency(stdout)? })
}

fn sysbench_mutex(stdout: &str) -> Result<ParsedOutput, String> {
    let time = ("total_time", nanos(sysbench_time(stdout)?, 1e9));
    Ok(ParsedOutput { samples: vec![time], ..sysbench_latency(stdout)? })
}

/// `Total operations: 3535722 (3533530.86 per second)` and `3452.85 MiB transferred (3450.71 MiB/sec)`
fn sysbench_memory(stdout: &str) -> Result<ParsedOutput, String> {
    let per_second = |key: &str| {
        let line = stdout.lines().find(|line| line.contains(key))?;
        number(line.split_once('(')?.1.split_ascii_whitespace().next()?)
    };
    let rate = |key: &str| per_second(key).ok_or_else(|| format!("no line with '{key}' and a rate"));
    let rates = vec![("ops_per_second", rate("Total operations:")?), ("mib_per_second", rate("MiB transferred")?)];
    Ok(ParsedOutput { rates, ..ParsedOutput::default() })
}

/// `total time:   1.0019s`
fn sysbench_time(stdout: &str) -> Result<f64, String> {
    let line = stdout.lines().find_map(|line| line.trim().strip_prefix("total time:"));
    let seconds = line.and_then(|rest| number(rest.trim().strip_suffix('s')?)).filter(|seconds| *seconds > 0.0);
    seconds.ok_or_else(|| "no line 'total time: SECONDSs'".to_owned())
}

/// Under `Latency (ms):` the lines `min:`, `avg:`, `max:` and `95th percentile:`, in steps of 10 us.
fn sysbench_latency(stdout: &str) -> Result<ParsedOutput, String> {
    let mut found = ParsedOutput::default();
    let latency: Vec<&str> = stdout.lines().skip_while(|line| line.trim() != "Latency (ms):").skip(1).collect();
    for line in latency.iter().take_while(|line| !line.trim().is_empty()) {
        let Some((name, value)) = line.trim().split_once(':') else { continue };
        let stat = match name.strip_suffix("th percentile") {
            Some(rank) => format!("p{rank}"),
            None if name == "avg" => "mean".into(),
            None if matches!(name, "min" | "max") => name.into(),
            None => continue,
        };
        let milliseconds = number(value.trim()).ok_or_else(|| format!("no number in '{}'", line.trim()))?;
        found.stats.push(("latency", stat, milliseconds * 1e3));
    }
    Ok(found)
        .and_then(|found| if found.stats.is_empty() { Err("no lines under 'Latency (ms):'".into()) } else { Ok(found) })
}

/// Tables of percentiles under a headline. schbench prints them repeatedly; the last table of each kind is used.
fn schbench(stderr: &str, tables: &[(&str, &'static str)]) -> Result<ParsedOutput, String> {
    let mut found = ParsedOutput::default();
    for (headline, metric) in tables {
        let lines: Vec<&str> = stderr.lines().collect();
        let last = lines.iter().rposition(|line| line.starts_with(headline));
        let last = last.ok_or_else(|| format!("no table '{headline}'"))?;
        let rows = lines[last + 1..].iter().take_while(|line| line.starts_with(['\t', ' ']));
        let before = found.stats.len();
        for row in rows {
            let row = row.trim().trim_start_matches('*').trim();
            if let Some((rank, rest)) = row.split_once("th:") {
                let value = rest.split_ascii_whitespace().next().and_then(number);
                if let (Some(rank), Some(value)) = (number(rank.trim()), value) {
                    found.stats.push((metric, format!("p{rank}"), value));
                }
            } else {
                // min=0, max=11708
                let extremes = row.split(',').filter_map(|part| part.trim().split_once('='));
                let known = extremes.filter(|(name, _)| matches!(*name, "min" | "max"));
                let read = known.filter_map(|(name, value)| Some((*metric, name.to_owned(), number(value.trim())?)));
                found.stats.extend(read);
            }
        }
        if found.stats.len() == before {
            return Err(format!("no percentile under '{headline}'"));
        }
    }
    Ok(found)
}

/// Three tables, and the line `average rps: 7526.67`.
fn schbench_1_0(stderr: &str) -> Result<ParsedOutput, String> {
    let tables = [("Wakeup Latencies", "wakeup_latency"), ("Request Latencies", "request_latency"), ("RPS", "rps")];
    let mut found = schbench(stderr, &tables)?;
    let average = number_after(stderr, "average rps:").ok_or("no line 'average rps: N'")?;
    found.rates.push(("average_rps", average));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HACKBENCH: &str = include_str!("../../tests/programs/hackbench-2.40.txt");
    const MESSAGING: &str = include_str!("../../tests/programs/perf-6.1-messaging.txt");
    const PIPE: &str = include_str!("../../tests/programs/perf-6.1-pipe.txt");
    const CYCLICTEST: &str = include_str!("../../tests/programs/cyclictest-2.40.txt");
    const STRESS: &str = include_str!("../../tests/programs/stress-ng-0.15.06.txt");
    const STRESSORS: &str = include_str!("../../tests/programs/stress-ng-0.15.06-stressors.txt");

    // No schbench is packaged: built from its repository at 3d16b23, at abe4f96 for 2020, and at 24e32b8 for 1.0.
    const SCHBENCH: &str = include_str!("../../tests/programs/schbench-3d16b23.txt");
    const SCHBENCH_20: &str = include_str!("../../tests/programs/schbench-abe4f96.txt");
    const SCHBENCH_1: &str = include_str!("../../tests/programs/schbench-1.0.txt");
    const HASH: &str = include_str!("../../tests/programs/perf-6.1-futex-hash.txt");
    const LOCK_PI: &str = include_str!("../../tests/programs/perf-6.1-futex-lock-pi.txt");
    const WAKE: &str = include_str!("../../tests/programs/perf-6.1-futex-wake.txt");
    const WAKE_PARALLEL: &str = include_str!("../../tests/programs/perf-6.1-futex-wake-parallel.txt");
    const REQUEUE: &str = include_str!("../../tests/programs/perf-6.1-futex-requeue.txt");
    const THREADS: &str = include_str!("../../tests/programs/sysbench-1.0.20-threads.txt");
    const MUTEX: &str = include_str!("../../tests/programs/sysbench-1.0.20-mutex.txt");
    const MEMORY: &str = include_str!("../../tests/programs/sysbench-1.0.20-memory.txt");
    const SYSBENCH: &str = include_str!("../../tests/programs/sysbench-1.0.20-cpu.txt");

    const IDS: [&str; 22] = [
        "schbench-2020",
        "lmbench-lat-ctx",
        "netperf-udp-rr",
        "hackbench",
        "perf-messaging",
        "perf-pipe",
        "cyclictest",
        "stress-ng-cpu",
        "stress-ng-switch",
        "stress-ng-nanosleep",
        "stress-ng-exec",
        "sysbench-cpu",
        "sysbench-threads",
        "sysbench-mutex",
        "sysbench-memory",
        "perf-futex-hash",
        "perf-futex-lock-pi",
        "perf-futex-wake",
        "perf-futex-wake-parallel",
        "perf-futex-requeue",
        "schbench",
        "schbench-1.0",
    ];

    #[test]
    fn real_output_is_parsed() {
        let one = |id, text| parse(id, 1, text, "").unwrap();
        assert_eq!(one("hackbench", HACKBENCH).samples, [("time", 166_000_000)]);
        assert_eq!(one("perf-messaging", MESSAGING).samples, [("total_time", 313_000_000)]);
        assert_eq!(one("perf-pipe", PIPE).samples, [("usecs_per_op", 37_819_000), ("total_time", 37_819_000)]);
        assert_eq!(parse("stress-ng-cpu", 1, "", STRESS).unwrap().rates, [("bogo_ops_per_second", 225.72)]);
    }

    #[test]
    fn both_rates_of_every_stressor_are_read() {
        // The columns of real time and of user plus system time, as printed; the latter comes back from count and time.
        let cases = [
            ("switch", 134_444.37, 177_562.70),
            ("fork", 191.92, 1_838.94),
            ("futex", 18_772.77, 33_112.06),
            ("nanosleep", 4_417.74, 10_261.63),
            ("sem", 6_268.39, 200_981.02),
            ("context", 711.40, 3_438.27),
            ("aio", 16_804.22, 64_795.37),
            ("pipe", 283_736.49, 419_544.44),
            ("mmap", 798.55, 2_521.64),
            ("vm", 521.63, 1_750.62),
            ("sock", 264.49, 618.98),
            ("exec", 68.29, 223.50),
        ];
        for (stressor, real, usr_sys) in cases {
            let found = parse(&format!("stress-ng-{stressor}"), 1, "", STRESSORS).unwrap();
            assert_eq!(found.rates, [("bogo_ops_per_second", real)], "{stressor}");
            let [cpu] = found.cpu_rates[..] else { panic!("{stressor}") };
            let rate = cpu.count as f64 / (cpu.time as f64 / 1e9);
            assert!((rate / usr_sys - 1.0).abs() < 1e-6, "{stressor}: {rate}");
            let overrun = [("sleep_overrun", "mean".to_owned(), 81.125_43)];
            assert_eq!(found.stats, if stressor == "nanosleep" { &overrun[..] } else { &[] }, "{stressor}");
        }
        let idle = "stress-ng: metrc: [1] sem   5   1.00  0.00  0.00   5.00   0.00\n";
        assert!(parse("stress-ng-sem", 1, "", idle).unwrap().cpu_rates.is_empty());
    }

    #[test]
    fn perf_bench_futex_prints_means() {
        let one = |id, text| parse(id, 1, text, "").unwrap();
        assert_eq!(one("perf-futex-hash", HASH).rates, [("operations_per_second", 952_832.0)]);
        assert_eq!(one("perf-futex-lock-pi", LOCK_PI).rates, [("operations_per_second", 3_369.0)]);
        assert_eq!(one("perf-futex-wake", WAKE).samples, [("time", 239_700)]);
        assert_eq!(one("perf-futex-requeue", REQUEUE).samples, [("time", 9_700)]);
        assert_eq!(one("perf-futex-wake-parallel", WAKE_PARALLEL).stats, [("latency", "mean".to_owned(), 135.0)]);
    }

    #[test]
    fn sysbench_prints_rates_by_test() {
        let one = |id, text| parse(id, 1, text, "").unwrap();
        assert_eq!(one("sysbench-threads", THREADS).rates, [("events_per_second", 334.0 / 1.0019)]);
        assert_eq!(one("sysbench-mutex", MUTEX).samples, [("total_time", 3_600_000)]);
        let rates = [("ops_per_second", 3_533_530.86), ("mib_per_second", 3_450.71)];
        assert_eq!(one("sysbench-memory", MEMORY).rates, rates);
        let mean = |id, text| one(id, text).stats.iter().find(|(_, stat, _)| stat == "mean").map(|(.., value)| *value);
        assert_eq!((mean("sysbench-threads", THREADS), mean("sysbench-mutex", MUTEX)), (Some(6_000.0), Some(1_730.0)));
    }

    #[test]
    fn sysbench_prints_some_statistics() {
        let found = parse("sysbench-cpu", 1, SYSBENCH, "").unwrap();
        assert_eq!(found.rates, [("events_per_second", 1732.87)]);
        let stats: Vec<(&str, i64)> =
            found.stats.iter().map(|(_, stat, value)| (stat.as_str(), value.round() as i64)).collect();
        assert_eq!(stats, [("min", 220), ("mean", 580), ("max", 16_310), ("p95", 4_330)]);
    }

    #[test]
    fn cyclictest_has_every_sample() {
        let found = parse("cyclictest", 1, CYCLICTEST, "").unwrap();
        // 464 and 649 samples were beyond the histogram of that run; the maximum of each thread is known.
        assert_eq!(found.samples.len(), 464 + 649);
        assert_eq!(found.samples.iter().map(|(_, time)| *time).max(), Some(19_983_000));
        let text =
            "000001 000002\t000000\n000003 000000 000001\n# Max Latencies: 00001 00003\n# Histogram Overflows: 0 0\n";
        let found = parse("cyclictest", 1, text, "").unwrap();
        assert_eq!(found.samples, [("latency", 1000), ("latency", 1000), ("latency", 3000)]);
    }

    #[test]
    fn percentiles_of_schbench_are_copied() {
        let stats = |id, text| -> Vec<String> {
            let found = parse(id, 1, "", text).unwrap();
            found.stats.iter().map(|(metric, stat, value)| format!("{metric}.{stat} {value}")).collect()
        };
        let old = "p50 185 p75 4312 p90 8008 p95 9040 p99 11696 p99.5 11696 p99.9 11696 min 0 max 11708".split(' ');
        let old: Vec<&str> = old.collect();
        let old: Vec<String> = old.chunks(2).map(|pair| format!("latency.{} {}", pair[0], pair[1])).collect();
        assert_eq!(stats("schbench", SCHBENCH), old);
        let of_2020 = stats("schbench-2020", SCHBENCH_20);
        assert_eq!(of_2020.len(), 9, "{of_2020:?}");
        for (id, text) in [("schbench", SCHBENCH_20), ("schbench-2020", SCHBENCH), ("schbench", SCHBENCH_1)] {
            assert!(parse(id, 1, "", text).is_err(), "{id}");
        }
        let new = stats("schbench-1.0", SCHBENCH_1);
        for one in ["wakeup_latency.p99.9 3612", "request_latency.p50 182", "request_latency.max 24246", "rps.p50 7240"]
        {
            assert!(new.iter().any(|found| found == one), "{one}: {new:?}");
        }
        assert_eq!(parse("schbench-1.0", 1, "", SCHBENCH_1).unwrap().rates, [("average_rps", 7526.67)]);
    }

    #[test]
    fn the_last_table_of_schbench_is_used() {
        let table = |name: &str, value: u32| {
            format!("{name} percentiles (x) runtime 5 (s) (6 total samples)\n\t  50.0th: {value}       (3 samples)\n\t* 99.9th: 9   (1 samples)\n")
        };
        let tables: String = [1, 2]
            .iter()
            .map(|pass| {
                table("Wakeup Latencies", *pass) + &table("Request Latencies", 10 * pass) + &table("RPS", 100 * pass)
            })
            .collect();
        let found = parse("schbench-1.0", 1, "", &(tables + "average rps: 410.00\n")).unwrap();
        let p50: Vec<f64> = found.stats.iter().filter(|(_, stat, _)| stat == "p50").map(|(.., value)| *value).collect();
        assert_eq!(p50, [2.0, 20.0, 200.0]);
        assert_eq!(found.rates, [("average_rps", 410.0)]);
    }

    #[test]
    fn an_output_without_the_result_is_an_error() {
        for id in IDS {
            assert!(parse(id, 1, "", "").is_err(), "{id}");
            assert!(parse(id, 1, "nothing here\n", "Time: x\n").is_err(), "{id}");
        }
    }

    proptest! {
        #[test]
        fn no_output_makes_the_parsers_panic(
            id in proptest::sample::select(&IDS[..]),
            base in proptest::sample::select(&[HACKBENCH, MESSAGING, PIPE, CYCLICTEST, STRESS, STRESSORS, SYSBENCH, THREADS, MUTEX, MEMORY, HASH, WAKE, WAKE_PARALLEL, SCHBENCH, SCHBENCH_1][..]),
            cut in 0usize..4000, other in "\\PC{0,20}", at in 0usize..4000, any in "[ -~\\n\\t]{0,200}",
        ) {
            let mut text: Vec<char> = base.chars().take(cut).collect();
            let at = at.min(text.len());
            text.splice(at..at, other.chars());
            let text: String = text.into_iter().collect();
            let _ = parse(id, 1, &text, &any);
            let _ = parse(id, 1, &any, &text);
        }
    }
}
