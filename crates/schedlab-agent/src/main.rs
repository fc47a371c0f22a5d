//! The command line: `schedlab-agent run|probe|calibrate|sections|programs`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand, ValueEnum};
use schedlab_agent::program::{self, DriverChoice};
use schedlab_agent::{AgentError, Result, Settings};
use schedlab_scenario::Scenario;

/// Runs schedlab's scenarios on the running kernel.
#[derive(Parser)]
#[command(name = "schedlab-agent", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run one variant of a scenario with one seed.
    Run(Run),
    /// Print what this machine supports.
    Probe,
    /// Measure the scheduling costs of this machine and its kernel.
    Calibrate {
        /// Measure for a few seconds instead of half a minute.
        #[arg(long)]
        quick: bool,
        /// Enable the scheduler tracepoints, as in a run; they separate the parts of a wakeup and a context switch.
        #[arg(long)]
        traced: bool,
        /// Write the JSON to this file instead of stdout.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Make system calls and page faults one by one, each after a marker in the trace, for `schedlab calibrate
    /// --sections`.
    Sections {
        /// How often each of them is made.
        #[arg(long, default_value_t = 9)]
        repeat: usize,
    },
    /// Print which executables the workloads of a scenario may start.
    Programs {
        /// The scenario file.
        scenario: PathBuf,
        /// Override a key of the scenario, for example workload.hackbench.groups=4.
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
}

#[derive(Args)]
struct Run {
    /// The scenario file.
    scenario: PathBuf,
    /// The variant.
    #[arg(long)]
    variant: String,
    /// The seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the JSON report to this file instead of stdout.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write the trace to this file; the suffix selects the format.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Do not record scheduler tracepoints.
    #[arg(long)]
    no_tracing: bool,
    /// Size of the trace buffer of each CPU, in KiB.
    #[arg(long, default_value_t = 16384)]
    buffer: u32,
    /// Run the catalogue's workloads as the real program or as the agent's model of it. Default: the program where it
    /// is installed.
    #[arg(long)]
    driver: Option<Driver>,
    /// The name of the arm in the report.
    #[arg(long, default_value = "host")]
    arm: String,
    /// A remark for the header of the trace.
    #[arg(long)]
    remark: Option<String>,
    /// Override a key of the scenario, for example duration=2s or knobs.base_slice=3ms.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Build the workloads for the CPUs of this machine file instead of those of this machine.
    #[arg(long, default_value = "host")]
    machine: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Driver {
    Program,
    Agent,
}

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    let outcome = match command {
        Command::Run(options) => run(&options),
        Command::Probe => write(&schedlab_agent::probe(), None),
        Command::Calibrate { quick, traced, out } => calibrate(quick, traced, out.as_deref()),
        Command::Sections { repeat } => schedlab_agent::sections::carry_out(repeat),
        Command::Programs { scenario, set } => programs(&scenario, &set),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if !error.hint().is_empty() {
                eprintln!("hint: {}", error.hint());
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(options: &Run) -> Result<()> {
    let overrides = serde_json::json!({ "set": options.set, "machine": options.machine });
    let scenario = Scenario::load(&options.scenario, Some(&overrides.to_string()))?;
    let spec = scenario.real_spec(&options.variant, options.seed)?;
    let settings = Settings {
        trace: options.trace.clone(),
        tracing: !options.no_tracing,
        buffer_kb: options.buffer,
        arm: options.arm.clone(),
        remark: options.remark.clone(),
    };
    let choice = match options.driver {
        None => DriverChoice::Installed,
        Some(Driver::Program) => DriverChoice::Program,
        Some(Driver::Agent) => DriverChoice::Agent,
    };
    let programs = scenario.variants().iter().find(|variant| variant.name == options.variant);
    let programs = programs.map_or_else(Arc::default, |variant| Arc::clone(&variant.programs));
    let real = program::choose(&programs, &spec.workloads, spec.duration, choice)?;
    let mut json = schedlab_agent::run(&spec, real, &settings)?;
    json["variant"] = options.variant.as_str().into();
    write(&json, options.out.as_deref())
}

fn calibrate(quick: bool, traced: bool, out: Option<&Path>) -> Result<()> {
    let unreadable = || AgentError::cannot("this machine's topology cannot be read", "mount -t sysfs unreadable /sys");
    let machine = schedlab_scenario::preset("host").ok_or_else(unreadable)??;
    let measured = schedlab_agent::calibrate::calibrate(&machine.topology, quick, traced)?;
    write(&serde_json::json!(measured), out)
}

fn programs(scenario: &Path, set: &[String]) -> Result<()> {
    let overrides = serde_json::json!({ "set": set, "machine": "host" });
    let scenario = Scenario::load(scenario, Some(&overrides.to_string()))?;
    // Variants can differ in the options of a program, and so in what it executes.
    let executables = scenario.variants().iter().flat_map(|variant| {
        variant.workloads.iter().zip(variant.programs.iter()).map(|(workload, program)| {
            let executables = program.as_ref().map_or_else(Vec::new, program::executables);
            (workload.name.clone(), executables)
        })
    });
    let mut all: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (workload, executables) in executables {
        let known = all.entry(workload).or_default();
        executables.into_iter().for_each(|one| {
            if !known.contains(&one) {
                known.push(one)
            }
        });
    }
    write(&serde_json::json!(all), None)
}

fn write(json: &serde_json::Value, out: Option<&Path>) -> Result<()> {
    let text = format!("{json}\n");
    let written = match out {
        Some(path) => std::fs::write(path, text),
        None => std::io::stdout().write_all(text.as_bytes()),
    };
    written.map_err(|error| {
        let name = out.map_or_else(|| "stdout".into(), |path| path.display().to_string());
        AgentError::input(format!("{name}: {error}"), "choose another --out")
    })
}
