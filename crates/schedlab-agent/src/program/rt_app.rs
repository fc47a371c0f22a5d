//! The program rt-app: its task set in a directory of its own, to which it also writes a log for each thread, and the
//! results in these logs.
//!
//! A row of a log is about one pass through a phase. A column that adds up several events of a pass has no sample of
//! the metric, which is about each event; such metrics are unavailable.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use schedlab_model::{Nanos, USEC};
use schedlab_scenario::Program;
use schedlab_workload::rtapp::{Calibration, Column, LoggedTask, TaskSet};

use crate::error::{AgentError, Result};

/// Why a metric that a log adds up is unavailable.
pub const SEVERAL: &str = "a phase has several such events, which rt-app's log adds up";

/// The prefix of the logs' names, and the name of the task set.
const PREFIX: &str = "log";
const TASK_SET: &str = "task-set.json";

/// The directory with a task set and its logs. It is removed with [`Logs::remove`], and when this is dropped.
#[derive(Debug)]
pub struct Logs {
    directory: PathBuf,
    tasks: Vec<LoggedTask>,
}

/// The results in the logs of all threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogResults {
    /// The samples and counts.
    pub results: Vec<LogResult>,
    /// The metrics that the logs do not contain, although the workload has them.
    pub absent: BTreeSet<String>,
}

/// One sample or count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogResult {
    /// The metric of the workload.
    pub metric: String,
    /// The end of the pass, on the monotonic clock.
    pub ended: Nanos,
    /// What there is at that time.
    pub value: LogValue,
}

/// A sample in ns, or one occurrence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogValue {
    /// A sample.
    Sample(Nanos),
    /// One occurrence.
    Count,
}

/// One row, in us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row {
    run: u64,
    period: u64,
    end: u64,
    slack: i64,
    c_duration: u64,
    c_period: u64,
    wu_lat: u64,
}

/// What of a task set the installed program does not have. Version 1.0 does not print its version; later ones do.
pub fn too_new(program: &Program, version: &str) -> Option<&'static str> {
    program.task_set.as_ref().and_then(|set| set.later).filter(|_| version.ends_with("unknown version"))
}

/// The error about it.
pub fn refusal(what: &str) -> AgentError {
    let hint = "build a later rt-app and set SCHEDLAB_RT_APP=PATH, or driver = \"agent\"";
    AgentError::cannot(format!("rt-app 1.0 does not have {what}"), hint)
}

impl Logs {
    /// Writes the task set for the executable at `path`, and calibrates its work first if the file asks for that. The
    /// program would do that at the begin of the run, of which it would take a second or more.
    pub fn prepare(path: &str, task_set: &TaskSet) -> Result<Logs> {
        let logs = Logs { directory: new_directory()?, tasks: task_set.logged.clone() };
        let ns_per_loop = match task_set.calibration {
            Calibration::NsPerLoop(ns) => ns,
            Calibration::Cpu(cpu) => calibrate(path, &logs.directory, cpu)?,
        };
        let json = task_set.json(&logs.directory.to_string_lossy(), PREFIX, ns_per_loop);
        write(&logs.directory.join(TASK_SET), &json)?;
        Ok(logs)
    }

    /// The path of the task set.
    pub fn file(&self) -> String {
        self.directory.join(TASK_SET).to_string_lossy().into_owned()
    }

    /// Removes the directory.
    pub fn remove(&self) {
        // Removed already, or by somebody else.
        let _ = std::fs::remove_dir_all(&self.directory);
    }

    /// Reads the logs of all threads.
    pub fn read(&self) -> std::result::Result<LogResults, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.directory.display());
        let mut names: Vec<PathBuf> = std::fs::read_dir(&self.directory)
            .map_err(failed)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<std::io::Result<_>>()
            .map_err(failed)?;
        names.sort();
        let mut found = LogResults { absent: self.absent(), ..LogResults::default() };
        for path in names {
            let Some(task) = path.file_name().and_then(|name| self.task_of(&name.to_string_lossy())) else { continue };
            let bytes = std::fs::read(&path).map_err(failed)?;
            let rows = rows(&String::from_utf8_lossy(&bytes)).map_err(|what| format!("{}: {what}", path.display()))?;
            rows.iter().for_each(|row| found.results.extend(self.results(task, row)));
        }
        found.results.retain(|result| !found.absent.contains(&result.metric));
        Ok(found)
    }

    /// The task of the log `log-TASK-NUMBER.log`.
    fn task_of(&self, file: &str) -> Option<&LoggedTask> {
        let inner = file.strip_prefix(PREFIX)?.strip_prefix('-')?.strip_suffix(".log")?;
        let (written, number) = inner.rsplit_once('-')?;
        number.parse::<u32>().ok()?;
        self.tasks.iter().find(|task| task.written == written)
    }

    fn absent(&self) -> BTreeSet<String> {
        let of = |task: &LoggedTask| -> Vec<String> {
            let columns = [(task.run, &["run"][..]), (task.timer, &["wu_lat", "slack", "misses"])];
            let several = columns.iter().filter(|(column, _)| *column == Column::Several);
            let metrics = several.flat_map(|(_, metrics)| metrics.iter());
            metrics.flat_map(|metric| [(*metric).to_owned(), format!("{}.{metric}", task.name)]).collect()
        };
        self.tasks.iter().flat_map(of).collect()
    }

    /// The results of a row: for the workload, and, where it has several tasks, for the task.
    fn results(&self, task: &LoggedTask, row: &Row) -> Vec<LogResult> {
        let ended = row.end * USEC;
        let mut found = Vec::new();
        let mut sample = |metric: &str, micros: u64| {
            let value = LogValue::Sample(micros * USEC);
            found.extend([metric.to_owned(), format!("{}.{metric}", task.name)].map(|metric| LogResult {
                metric,
                ended,
                value,
            }));
        };
        sample("period", row.period);
        if task.run == Column::Sample && row.c_duration > 0 {
            sample("run", row.run);
        }
        if task.timer == Column::Sample && row.c_period > 0 {
            // A timer that had expired has no latency of a wakeup.
            let missed = row.slack < 0 || (row.slack == 0 && row.wu_lat == 0);
            sample("slack", row.slack.max(0).unsigned_abs());
            if missed {
                found.push(LogResult { metric: "misses".to_owned(), ended, value: LogValue::Count });
            } else {
                sample("wu_lat", row.wu_lat);
            }
        }
        found
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The rows of a log: comments begin with `#`.
fn rows(text: &str) -> std::result::Result<Vec<Row>, String> {
    const MOST: u64 = u64::MAX / (2 * USEC);
    let row = |line: &str| {
        let fields: Vec<i64> = line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let [_, _, run, period, _, end, _, slack, c_duration, c_period, wu_lat] = fields[..] else { return None };
        let positive = |value: i64| u64::try_from(value).ok().filter(|value| *value <= MOST);
        Some(Row {
            run: positive(run)?,
            period: positive(period)?,
            end: positive(end)?,
            slack: slack.clamp(-(1 << 50), 1 << 50),
            c_duration: positive(c_duration)?,
            c_period: positive(c_period)?,
            wu_lat: positive(wu_lat)?,
        })
    };
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|line| row(line).ok_or_else(|| format!("'{line}' is not a row of 11 numbers"))).collect()
}

/// A directory that nobody else can write to.
fn new_directory() -> Result<PathBuf> {
    let base = std::env::temp_dir();
    let mut error = None;
    for number in 0..100 {
        let path = base.join(format!("schedlab-rt-app-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(what) => error = Some(what),
        }
    }
    let what = error.map_or_else(String::new, |error| error.to_string());
    Err(AgentError::cannot(format!("no directory for the logs of rt-app in {}: {what}", base.display()), "set TMPDIR"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let failed = |error| AgentError::cannot(format!("{}: {error}", path.display()), "set TMPDIR");
    std::fs::write(path, text).map_err(failed)
}

/// ns per loop of the program's work, as the program measures it.
fn calibrate(program: &str, directory: &Path, cpu: u32) -> Result<u64> {
    let file = directory.join("calibration.json");
    let json = serde_json::json!({
        "tasks": { "calibration": { "loop": 1, "phases": { "p1": { "loop": 1, "run": 0 } } } },
        "global": { "calibration": format!("CPU{cpu}"), "logdir": directory, "log_basename": "calibration" },
    });
    write(&file, &json.to_string())?;
    let failed =
        |what: String| AgentError::failed(format!("{program} {}: {what}", file.display()), "run it by hand to see why");
    let output = Command::new(program).arg(&file).env("LC_ALL", "C").stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    let text = [output.stdout, output.stderr].concat();
    let found = p_load(&String::from_utf8_lossy(&text));
    found.ok_or_else(|| failed("no 'pLoad = N ns' above 0 in the output".to_owned()))
}

/// `[rt-app] <notice> pLoad = 15ns : calib_cpu 0`
fn p_load(output: &str) -> Option<u64> {
    let rest = output.lines().find_map(|line| line.split_once("pLoad = "))?.1;
    rest.split_once("ns")?.0.parse().ok().filter(|ns| *ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOG: &str = include_str!("../../tests/programs/rt-app-1.0.txt");

    fn task(written: &str, name: &str, run: Column, timer: Column) -> LoggedTask {
        LoggedTask { written: written.to_owned(), name: name.to_owned(), run, timer }
    }

    #[test]
    fn a_row_is_a_pass_through_a_phase() {
        let found = rows(LOG).unwrap();
        assert_eq!(found.len(), 5);
        let second = Row {
            run: 14_157,
            period: 14_159,
            end: 41_000_886_222,
            slack: -6081,
            c_duration: 2000,
            c_period: 10_000,
            wu_lat: 0,
        };
        assert_eq!(found[1], second);
        assert!(rows("   0  1 2\n").is_err());
    }

    #[test]
    fn results_are_those_of_single_events() {
        use Column::{Nothing, Sample, Several};
        let tasks = vec![task("a-1", "a-1", Sample, Sample), task("b_2", "b", Several, Nothing)];
        let logs = Logs { directory: new_directory().unwrap(), tasks };
        let put = |name: &str, text: &str| std::fs::write(logs.directory.join(name), text).unwrap();
        put("log-a-1-0.log", "# Policy\n 0 1 20 30 40 70 0 5 20 10 7\n 0 1 25 35 70 105 0 -4 20 10 0\n");
        put("log-b_2-1.log", "#idx\n 1 1 20 33 40 73 0 0 20 0 0\n");
        put("calibration-calibration-0.log", "0 1 2 3 4 5 6 7 8 9 10\n");
        let found = logs.read().unwrap();
        let absent: Vec<&str> = found.absent.iter().map(String::as_str).collect();
        assert_eq!(absent, ["b.run", "run"]);
        let shown: Vec<String> = found
            .results
            .iter()
            .map(|result| match result.value {
                LogValue::Sample(value) => format!("{} {} at {}", result.metric, value / USEC, result.ended / USEC),
                LogValue::Count => format!("{} at {}", result.metric, result.ended / USEC),
            })
            .collect();
        let of = |metric: &str, rest: &str| vec![format!("{metric} {rest}"), format!("a-1.{metric} {rest}")];
        let want = [
            of("period", "30 at 70"),
            vec!["a-1.run 20 at 70".to_owned()],
            of("slack", "5 at 70"),
            of("wu_lat", "7 at 70"),
            of("period", "35 at 105"),
            vec!["a-1.run 25 at 105".to_owned()],
            of("slack", "0 at 105"),
            vec!["misses at 105".to_owned()],
            vec!["period 33 at 73".to_owned(), "b.period 33 at 73".to_owned()],
        ];
        assert_eq!(shown, want.concat());
        let directory = logs.directory.clone();
        drop(logs);
        assert!(!directory.exists());
    }

    #[test]
    fn the_calibration_is_read() {
        let output = "[rt-app] <notice> Calibrate ns per loop\n[rt-app] <notice> pLoad = 15ns : calib_cpu 0\n";
        assert_eq!(p_load(output), Some(15));
        assert_eq!(p_load("pLoad = 0ns : calib_cpu 0"), None);
        assert_eq!(p_load("[rt-app] <error> pLoad"), None);
    }

    proptest! {
        #[test]
        fn no_log_makes_the_reader_panic(cut in 0usize..2000, other in "\\PC{0,20}", number in any::<i64>()) {
            let text: String = LOG.chars().take(cut).chain(other.chars()).collect();
            let _ = rows(&text);
            if let Ok(found) = rows(&format!("0 0 {number} {number} 0 {number} 0 {number} {number} {number} {number}\n")) {
                let logs = Logs { directory: PathBuf::from("/nonexistent"), tasks: Vec::new() };
                let all = task("a", "a", Column::Sample, Column::Sample);
                found.iter().for_each(|row| drop(logs.results(&all, row)));
            }
            let _ = p_load(&text);
        }
    }
}
