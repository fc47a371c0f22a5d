//! `identify TRACE [STEPS THRIFT]`: tries every row on a trace within bounds and prints what each agrees with.

use std::path::Path;
use std::process::ExitCode;

use schedlab_policy::Version;
use schedlab_replay::{Bounds, Options, Sample};

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &[String]) -> Result<(), String> {
    let path = args.first().ok_or("usage: identify TRACE")?;
    let mut reader = schedlab_trace::open(Path::new(path)).map_err(|error| error.to_string())?;
    let options = Options { disagreements: 1, ..Options::default() };
    let number = |at: usize, default: u64| args.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let usual = Bounds::default();
    let thrift = number(2, usual.thrift as u64) as usize;
    let bounds = Bounds { steps: number(1, usual.steps), thrift, ..usual };
    let sample = Sample::read(&mut *reader, &options, bounds).map_err(|error| error.to_string())?;
    for row in Version::all() {
        if let Some(report) = sample.replay(row, &options, &|| false) {
            let (picks, others, unjudged) = (report.picks, report.preemptions, &report.unjudged);
            println!(
                "{:10} picks {}/{} preemptions {}/{} unexplained {:?} {:?} {unjudged:?}",
                row.name,
                picks.agreed,
                picks.decisions,
                others.agreed,
                others.decisions,
                report.unexplained,
                report.tried
            );
        }
    }
    Ok(())
}
