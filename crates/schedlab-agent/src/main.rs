//! The command line: `schedlab-agent run|probe|calibrate|programs`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use schedlab_agent::program::{self, Choice};
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
    /// Say what this machine offers.
    Probe,
    /// Measure what this machine's kernel costs.
    Calibrate {
        /// A few seconds instead of half a minute.
        #[arg(long)]
        quick: bool,
        /// With the scheduler's tracepoints on, as in a run: they tell the parts of a wakeup and a switch apart.
        #[arg(long)]
        traced: bool,
        /// Where the JSON goes; stdout if not given.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Say which executables the workloads of a scenario may start.
    Programs {
        /// The scenario file.
        scenario: PathBuf,
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
    /// Where the JSON report goes; stdout if not given.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write the trace to this file; the suffix chooses the format.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Do not record scheduler tracepoints.
    #[arg(long)]
    no_tracing: bool,
    /// KiB of trace buffer for each CPU.
    #[arg(long, default_value_t = 16384)]
    buffer: u32,
    /// Who runs the catalogue's workloads; the program where it is installed if not given.
    #[arg(long)]
    driver: Option<Driver>,
    /// What the report calls the arm.
    #[arg(long, default_value = "host")]
    arm: String,
    /// What a reader of the trace must know; it goes into its header.
    #[arg(long)]
    remark: Option<String>,
    /// Another duration, such as 2s.
    #[arg(long)]
    duration: Option<String>,
    /// Whether anything is drawn at random.
    #[arg(long)]
    noise: Option<bool>,
    /// Another machine than this one: its number of CPUs is what the workloads are built for.
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
    let done = match command {
        Command::Run(options) => run(&options),
        Command::Probe => write(&schedlab_agent::probe(), None),
        Command::Calibrate { quick, traced, out } => calibrate(quick, traced, out.as_deref()),
        Command::Programs { scenario } => programs(&scenario),
    };
    match done {
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
    let overrides = serde_json::json!({
        "machine": options.machine, "duration": options.duration, "noise": options.noise,
    });
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
        None => Choice::Installed,
        Some(Driver::Program) => Choice::Program,
        Some(Driver::Agent) => Choice::Agent,
    };
    let real = program::choose(scenario.programs(), &spec.workloads, choice)?;
    let mut json = schedlab_agent::run(&spec, real, &settings)?;
    json["variant"] = options.variant.as_str().into();
    write(&json, options.out.as_deref())
}

fn calibrate(quick: bool, traced: bool, out: Option<&Path>) -> Result<()> {
    let none = || AgentError::cannot("this machine's topology cannot be read", "mount -t sysfs none /sys");
    let machine = schedlab_scenario::preset("host").ok_or_else(none)??;
    let measured = schedlab_agent::calibrate::calibrate(&machine.topology, quick, traced)?;
    write(&serde_json::json!(measured), out)
}

fn programs(scenario: &Path) -> Result<()> {
    let scenario = Scenario::load(scenario, Some(r#"{"machine": "host"}"#))?;
    let workloads = scenario.variants().first().map_or(&[][..], |variant| &variant.workloads[..]);
    let executables = workloads.iter().zip(scenario.programs()).map(|(workload, program)| {
        let executables = program.as_ref().map_or_else(Vec::new, program::executables);
        (workload.name.clone(), executables.into())
    });
    write(&serde_json::Value::Object(executables.collect()), None)
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
