//! Real programs: which one a workload of the catalogue stands for, its command line, and how its output is parsed.
//!
//! The options of a workload are the long options of the program; only the units of times are converted, and a time
//! that is no whole number of the program's unit is refused. What the model fixes is passed too. A program that never
//! ends by itself is sent SIGINT at the end of the run and then prints its results.

mod calls;
mod lmbench;
pub(crate) mod netperf;
mod parse;
pub(crate) mod rt_app;
mod unixbench;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{memfd_create, MemfdFlags};
use schedlab_model::{Nanos, MSEC, SEC};
use schedlab_scenario::Program;
use schedlab_workload::catalogue::{self, OptionKind, OptionValue, Preset, TimeUnit};
use schedlab_workload::Workload;

use crate::error::{errno, AgentError, Result};
use calls::{ProgramCall, PROGRAM_CALLS};
pub(crate) use parse::{parse, ParsedOutput};

/// The name of a stressor, which is also its option with the number of workers.
fn stressor_of(id: &str) -> Option<&str> {
    id.strip_prefix("stress-ng-")
}

/// The number of 1 us buckets in cyclictest's histogram, which makes it print every sample.
const HISTOGRAM_BUCKETS: i64 = 100_000;

/// The time that a program may take beyond the seconds for which it runs its load: to start, and to print its results
/// before the run ends.
const BESIDE: Nanos = 500 * MSEC;

/// What runs a workload of the catalogue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DriverChoice {
    /// The program where it is installed, otherwise the agent.
    #[default]
    Installed,
    /// The program. It is an error if it is not installed.
    Program,
    /// The agent.
    Agent,
}

/// A real program that is ready to be started.
#[derive(Debug)]
pub struct RealProgram {
    /// The catalogue's id.
    pub id: &'static str,
    /// Executable and arguments.
    pub argv: Vec<String>,
    /// Its name and version.
    pub version: String,
    /// Whether it is started again when it has ended.
    pub repeat: bool,
    /// Whether it is interrupted at the end of the run and then prints its results.
    pub interrupt: bool,
    /// The files for its stdout and stderr.
    pub output: [OwnedFd; 2],
    /// One line for each pass, see [`crate::launch::Pass`].
    pub passes: OwnedFd,
    /// The logs of rt-app.
    pub logs: Option<rt_app::Logs>,
    /// Variables of its environment, in addition to those of the agent.
    pub environment: &'static [(&'static str, &'static str)],
    /// How many of it run at a time.
    pub copies: u32,
    /// The server that it needs.
    pub server: Option<netperf::Server>,
}

impl RealProgram {
    /// The results in the output of a pass.
    pub fn results(&self, stdout: &str, stderr: &str) -> std::result::Result<ParsedOutput, String> {
        match self.id {
            id if unixbench::is_program(id) => unixbench::parse(id, &self.argv, stderr),
            id => parse(id, self.copies, stdout, stderr),
        }
    }
}

/// Selects the programs for the workloads of a scenario, which runs for `duration`; `None` where the agent runs the
/// tasks itself.
pub fn choose(
    programs: &[Option<Program>],
    workloads: &[Workload],
    duration: Nanos,
    choice: DriverChoice,
) -> Result<Vec<Option<RealProgram>>> {
    let one = |(program, workload): (&Option<Program>, &Workload)| {
        let Some(program) = program.as_ref().filter(|_| choice != DriverChoice::Agent) else { return Ok(None) };
        let Some(call) = PROGRAM_CALLS.iter().find(|call| call.id == program.id) else { return Ok(None) };
        std::iter::once(call.executable).chain(call.server).try_for_each(is_file_if_named)?;
        let (path, server) = (find(call.executable), call.server.and_then(find));
        let Some(path) = path.filter(|_| server.is_some() || call.server.is_none()) else {
            return if choice == DriverChoice::Program { Err(missing(call)) } else { Ok(None) };
        };
        if let Some(what) =
            netperf::refusal(program).or_else(|| lmbench::refusal(program)).or_else(|| unixbench::refusal(program))
        {
            let error = || AgentError::input(format!("{}: {what}", call.id), "leave it out, or driver = \"agent\"");
            return if choice == DriverChoice::Program { Err(error()) } else { Ok(None) };
        }
        if call.not_as_root && rustix::process::geteuid().is_root() {
            return if choice == DriverChoice::Program { Err(refuses_root(call)) } else { Ok(None) };
        }
        let version = version(call, &path.to_string_lossy());
        if !is_this(call, &version) {
            return if choice == DriverChoice::Program { Err(other_version(call, &version)) } else { Ok(None) };
        }
        if let Some(what) = rt_app::too_new(program, &version) {
            return if choice == DriverChoice::Program { Err(rt_app::refusal(what)) } else { Ok(None) };
        }
        let takes_seconds = call.server.is_some() || unixbench::is_program(program.id) || lmbench::is_tool(program.id);
        match whole_seconds(program, duration) {
            Err(error) if takes_seconds && choice == DriverChoice::Program => Err(error),
            Err(_) if takes_seconds => Ok(None),
            _ => prepare(call, path, server, version, program, workload, duration).map(Some),
        }
    };
    programs.iter().zip(workloads).map(one).collect()
}

/// The executables of a workload, installed or not.
#[must_use]
pub fn executables(program: &Program) -> Vec<&'static str> {
    let calls = PROGRAM_CALLS.iter().filter(|call| call.id == program.id);
    calls.flat_map(|call| std::iter::once(call.executable).chain(call.server)).collect()
}

/// Every executable of the catalogue, with its path if it is installed.
#[must_use]
pub fn installed() -> Vec<(&'static str, Option<PathBuf>)> {
    let mut known: Vec<_> = PROGRAM_CALLS.iter().map(|call| (call.executable, find(call.executable))).collect();
    known.dedup();
    known
}

/// The path of an executable, from a variable such as `SCHEDLAB_SCHBENCH` or from PATH.
fn find(executable: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable(executable)) {
        return Some(PathBuf::from(path)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(executable)).find(|path| path.is_file())
}

/// Refuses a variable that names an executable which does not exist: another program, or the agent, would run
/// unnoticed.
fn is_file_if_named(executable: &str) -> Result<()> {
    let variable = variable(executable);
    match std::env::var_os(&variable).map(PathBuf::from) {
        Some(path) if !path.is_file() => {
            let what = format!("{variable}: {} is not a file", path.display());
            Err(AgentError::input(what, format!("give the path of {executable}, or unset the variable")))
        }
        _ => Ok(()),
    }
}

/// The variable that names an executable.
fn variable(executable: &str) -> String {
    format!("SCHEDLAB_{}", executable.to_uppercase().replace('-', "_"))
}

/// `time` of a workload, or the whole seconds that fit into the run of a program that has to have a time.
fn whole_seconds(program: &Program, duration: Nanos) -> Result<u64> {
    let time = program.options.iter().find(|(key, _)| key == "time").map(|(_, value)| value);
    let seconds = match time.and_then(|value| catalogue::time_of(TimeUnit::Seconds, value)) {
        Some(time) if time > 0 && time % SEC != 0 => return Err(not_whole(program.id, "time", TimeUnit::Seconds)),
        Some(time) if time > 0 => time / SEC,
        _ => duration.saturating_sub(BESIDE) / SEC,
    };
    if seconds == 0 {
        let what = format!("{} runs for whole seconds, of which none fits into the run", program.id);
        return Err(AgentError::input(what, "a duration of 1.5s or more, or driver = \"agent\""));
    }
    Ok(seconds)
}

fn missing(call: &ProgramCall) -> AgentError {
    let hint = match call.package {
        "" => format!("build it and set {}=PATH", variable(call.executable)),
        package => format!("apt-get install {package}"),
    };
    let executables = std::iter::once(call.executable).chain(call.server);
    let missing: Vec<&str> = executables.filter(|executable| find(executable).is_none()).collect();
    AgentError::cannot(format!("{} is not installed", missing.join(" and ")), hint)
}

fn refuses_root(call: &ProgramCall) -> AgentError {
    AgentError::cannot(
        format!("{} refuses to run as root", call.id),
        "run schedlab as another user, or driver = \"agent\"",
    )
}

/// Whether a program of this version, such as "perf 6.1.192", is the one that the workload stands for; one without a
/// version is taken for it.
fn is_this(call: &ProgramCall, version: &str) -> bool {
    let numbers = version.rsplit(' ').next().unwrap_or("").split('.').map(|part| part.parse().ok());
    let numbers: Vec<Option<u32>> = numbers.take(2).collect();
    let [Some(major), Some(minor)] = numbers[..] else { return true };
    let [from, before] = call.versions;
    from.is_none_or(|from| (major, minor) >= from) && before.is_none_or(|before| (major, minor) < before)
}

fn other_version(call: &ProgramCall, version: &str) -> AgentError {
    let what = format!("{version} is not the program that {} stands for", call.id);
    let versions = match call.versions {
        [Some((major, minor)), None] => format!("{major}.{minor} or later"),
        [None, Some((major, minor))] => format!("a version before {major}.{minor}"),
        _ => "another version".to_owned(),
    };
    let hint = format!("install {versions} of {}, or run the model with driver = \"agent\"", call.executable);
    AgentError::cannot(what, hint)
}

fn prepare(
    call: &ProgramCall,
    path: PathBuf,
    server: Option<PathBuf>,
    version: String,
    program: &Program,
    workload: &Workload,
    duration: Nanos,
) -> Result<RealProgram> {
    let memory = |name: &str| memfd_create(name, MemfdFlags::CLOEXEC).map_err(errno("memfd"));
    let path = path.to_string_lossy().into_owned();
    let mut argv = vec![path.clone()];
    argv.extend(call.subcommand.iter().map(ToString::to_string));
    if let Some(runs) = futex_runs(program) {
        // An option of `perf bench`, before the name of the collection.
        argv.splice(2..2, ["--repeat".to_owned(), runs]);
    }
    let server = server.map(|server| netperf::Server::prepare(&server)).transpose()?;
    argv.extend(match &server {
        Some(server) => netperf::arguments(program, server, duration)?,
        None if unixbench::is_program(program.id) => unixbench::arguments(program, duration)?,
        None if lmbench::is_tool(program.id) => lmbench::arguments(program, Path::new(&path)),
        None => arguments(program)?,
    });
    argv.extend(call.after.iter().map(ToString::to_string));
    let logs = program.task_set.as_ref().map(|task_set| rt_app::Logs::prepare(&path, task_set)).transpose()?;
    argv.extend(logs.as_ref().map(rt_app::Logs::file));
    Ok(RealProgram {
        id: program.id,
        version,
        argv,
        repeat: program.repeat,
        // rt-app ends with the run even if its file says a later time.
        interrupt: call.interruptible && (!workload.ends || logs.is_some()) && !program.repeat,
        output: [memory("stdout")?, memory("stderr")?],
        passes: memory("passes")?,
        logs,
        environment: call.environment,
        copies: if server.is_some() { netperf::clients(program) } else { 1 },
        server,
    })
}

/// `runs` of `perf bench futex`, which is an option of `perf bench`.
fn futex_runs(program: &Program) -> Option<String> {
    let runs = program.options.iter().find(|(key, _)| key == "runs" && program.id.starts_with("perf-futex-"));
    runs.and_then(|(_, value)| if let OptionValue::Int(runs) = value { Some(runs.to_string()) } else { None })
}

/// The options as command-line arguments. hackbench needs values as separate arguments, sysbench needs `--key=value`.
fn arguments(program: &Program) -> Result<Vec<String>> {
    let entry = catalogue::all().iter().find(|entry| entry.id == program.id);
    let given = |name: &str| program.options.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let mut words = Vec::new();
    let mut option = |key: &str, value: String| match program.id {
        id if id.starts_with("sysbench-") => words.push(format!("--{key}={value}")),
        _ => words.extend([format!("--{key}"), value]),
    };
    let mut flags = Vec::new();
    for (key, value) in &program.options {
        let kind = entry.and_then(|entry| entry.options.iter().find(|option| option.name == key)).map(|o| o.kind);
        match (kind, value) {
            // Set below.
            _ if program.id == "cyclictest" && key == "histogram" => {}
            // It always sleeps so, and 2.4 does not take the option any more.
            _ if program.id == "cyclictest" && key == "nanosleep" => {}
            // Before the subcommand.
            _ if key == "runs" && futex_runs(program).is_some() => {}
            (_, OptionValue::Bool(on)) => flags.extend(on.then(|| format!("--{key}"))),
            (Some(OptionKind::Time { unit, .. }), value) => {
                let nanos = catalogue::time_of(unit, value).unwrap_or(0);
                if nanos % unit.nanos() != 0 {
                    return Err(not_whole(program.id, key, unit));
                }
                option(key, (nanos / unit.nanos()).to_string());
            }
            (Some(OptionKind::Cpus), OptionValue::Text(cpus)) => flags.push(format!("--{key}={cpus}")),
            (Some(OptionKind::Cpus), OptionValue::Int(cpu)) => flags.push(format!("--{key}={cpu}")),
            (_, OptionValue::Text(text)) => option(key, if text == "normal" { "other".into() } else { text.clone() }),
            (_, OptionValue::Int(number)) => option(key, number.to_string()),
            (_, OptionValue::Float(number)) => option(key, number.to_string()),
        }
    }
    if program.id == "cyclictest" {
        // --histogram sets the distance to 0, which must not happen unless the scenario has a histogram.
        let histogram = given("histogram").is_some_and(|value| *value != OptionValue::Int(0));
        if given("distance").is_none() {
            option("distance", if histogram { "0" } else { "500" }.into());
        }
        option("histogram", HISTOGRAM_BUCKETS.to_string());
    }
    if let Some(stressor) = stressor_of(program.id) {
        // The number of workers selects the stressor, and the default of a choice may be another one in the program.
        let missing = entry.iter().flat_map(|entry| entry.options).filter(|spec| given(spec.name).is_none());
        for spec in missing {
            match spec.default {
                Preset::Word(word) => option(spec.name, word.to_owned()),
                _ if spec.name == stressor => option(stressor, "0".into()),
                _ => {}
            }
        }
    }
    words.extend(flags);
    Ok(words)
}

fn not_whole(id: &str, key: &str, unit: TimeUnit) -> AgentError {
    let what = format!("the program {id} takes `{key}` in whole {}", unit.suffix());
    AgentError::input(what, "round it, or run the model with driver = \"agent\"")
}

/// The name of the program with the first word of its output that looks like a version.
fn version(call: &ProgramCall, path: &str) -> String {
    let said = |argument: &str| {
        let output = Command::new(path).arg(argument).env("LC_ALL", "C").output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let is_version = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
        let word = text.split(|c: char| c.is_whitespace() || c == ',').find(is_version)?;
        Some(format!("{} {word}", call.executable))
    };
    let asked = Some(call.version).filter(|option| !option.is_empty());
    asked.and_then(said).unwrap_or_else(|| format!("{}, unknown version", call.executable))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(t: &str) -> OptionValue {
        OptionValue::Text(t.into())
    }

    #[test]
    fn options_are_passed_under_their_own_names() {
        let cases = [
            (
                "hackbench",
                vec![("groups", OptionValue::Int(2)), ("pipe", OptionValue::Bool(true))],
                "--groups 2 --pipe",
            ),
            ("hackbench", vec![("threads", OptionValue::Bool(false))], ""),
            ("cyclictest", vec![("interval", text("1ms"))], "--interval 1000 --distance 500 --histogram 100000"),
            (
                "cyclictest",
                vec![("histogram", OptionValue::Int(400)), ("policy", text("normal"))],
                "--policy other --distance 0 --histogram 100000",
            ),
            (
                "cyclictest",
                vec![
                    ("affinity", text("0,2-3")),
                    ("threads", OptionValue::Bool(true)),
                    ("nanosleep", OptionValue::Bool(true)),
                ],
                "--distance 500 --histogram 100000 --affinity=0,2-3 --threads",
            ),
            ("stress-ng-cpu", vec![("timeout", text("2s"))], "--timeout 2 --cpu 0"),
            ("stress-ng-switch", vec![("switch", OptionValue::Int(3))], "--switch 3"),
            (
                "stress-ng-vm",
                vec![("vm-bytes", OptionValue::Int(1 << 20)), ("vm-keep", OptionValue::Bool(true))],
                "--vm-bytes 1048576 --vm 0 --vm-method write64 --vm-keep",
            ),
            ("stress-ng-vm", vec![("vm-method", text("incdec"))], "--vm-method incdec --vm 0"),
            ("perf-pipe", vec![("loop", OptionValue::Int(9))], "--loop 9"),
            ("perf-futex-wake", vec![("runs", OptionValue::Int(3)), ("nwakes", OptionValue::Int(2))], "--nwakes 2"),
            ("sysbench-mutex", vec![("mutex-num", OptionValue::Int(5))], "--mutex-num=5"),
            ("sysbench-cpu", vec![("threads", OptionValue::Int(4)), ("time", text("2s"))], "--threads=4 --time=2"),
        ];
        for (id, options, want) in cases {
            let options = options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            assert_eq!(
                arguments(&Program { id, options, repeat: false, task_set: None }).unwrap().join(" "),
                want,
                "{id}"
            );
        }
        let options = vec![("timeout".to_owned(), text("1500ms"))];
        let error = arguments(&Program { id: "stress-ng-pipe", options, repeat: false, task_set: None }).unwrap_err();
        assert!(error.to_string().contains("`timeout` in whole s"), "{error}");
    }

    #[test]
    fn a_program_that_changed_under_its_name_is_recognised_by_its_version() {
        let cases = [
            ("perf-pipe", "perf 6.1.192", true),
            ("perf-pipe", "perf 6.14", true),
            ("perf-pipe", "perf 6.15.0", false),
            ("perf-pipe", "perf 7.0.1", false),
            ("perf-pipe-6.15", "perf 6.14.9", false),
            ("perf-pipe-6.15", "perf 7.0.1", true),
            ("perf-seccomp-notify", "perf 6.1.192", false),
            ("perf-seccomp-notify", "perf 6.6.1", true),
            ("perf-pipe", "perf, unknown version", true),
            ("hackbench", "hackbench 2.40", true),
        ];
        for (id, version, wanted) in cases {
            let call = PROGRAM_CALLS.iter().find(|call| call.id == id).unwrap();
            assert_eq!(is_this(call, version), wanted, "{id} {version}");
        }
    }

    #[test]
    fn every_program_is_in_the_catalogue() {
        for call in PROGRAM_CALLS.iter().filter(|call| call.id != "rt-app") {
            assert!(catalogue::find(call.id).is_ok(), "{}", call.id);
        }
        let stressors = catalogue::all().iter().filter(|entry| stressor_of(entry.id).is_some());
        for entry in stressors {
            assert!(PROGRAM_CALLS.iter().any(|call| call.id == entry.id), "{} has its program", entry.id);
            assert_eq!(Some(entry.options[0].name), stressor_of(entry.id), "the number of workers comes first");
        }
    }
}
