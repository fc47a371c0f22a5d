//! `replay TRACE [--kernel V] [--matrix] [--json] [--first N] [--warm-up MS]`: replays a trace and prints the report.

use std::path::Path;
use std::process::ExitCode;

use schedlab_policy::Version;
use schedlab_replay::{matrix_table, replay, replay_rows, row_of, Options};

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &[String]) -> Result<String, String> {
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let value = |flag: &str| args.iter().position(|arg| arg == flag).and_then(|at| args.get(at + 1));
    let number = |flag: &str, default: u64| match value(flag).map(|number| number.parse()) {
        None => Ok(default),
        Some(Ok(number)) => Ok(number),
        Some(Err(_)) => Err(format!("{flag} takes a number")),
    };
    let valued = |at: usize| at > 0 && ["--kernel", "--first", "--warm-up"].contains(&args[at - 1].as_str());
    let mut free = args.iter().enumerate().filter(|(at, arg)| !arg.starts_with("--") && !valued(*at));
    let path = free.next().map(|(_, arg)| arg);
    let path = path.ok_or("usage: replay TRACE [--kernel V] [--matrix] [--json] [--first N] [--warm-up MS]")?;
    let mut reader = schedlab_trace::open(Path::new(path)).map_err(|error| error.to_string())?;
    let (disagreements, warm_up) = (number("--first", 10)? as usize, number("--warm-up", 10)? * 1_000_000);
    let options = Options { disagreements, warm_up, explain: None };
    if has("--matrix") {
        let rows: Vec<&'static Version> = Version::all().iter().collect();
        let reports = replay_rows(&mut *reader, &rows, &options).map_err(|error| error.to_string())?;
        return match has("--json") {
            true => serde_json::to_string_pretty(&reports).map_err(|error| error.to_string()),
            false => Ok(matrix_table(&reports)),
        };
    }
    let row = match value("--kernel") {
        Some(name) => Version::find(name).map_err(|error| format!("{error}\nhint: {}", error.hint()))?,
        None => {
            let release = reader.header().kernel.clone().ok_or("the trace names no kernel: say --kernel")?;
            row_of(&release).ok_or_else(|| format!("kernel {release}: row not modelled yet"))?
        }
    };
    let report = replay(&mut *reader, row, &options).map_err(|error| error.to_string())?;
    match has("--json") {
        true => serde_json::to_string_pretty(&report).map_err(|error| error.to_string()),
        false => Ok(report.to_string()),
    }
}
