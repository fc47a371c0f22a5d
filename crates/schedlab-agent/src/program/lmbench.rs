//! The latency tools of lmbench: the command line, and the one number that a tool prints.
//!
//! A tool measures for a time of its own, 0.1 to 1 s after it has found out how many operations that are. By default it
//! also measures the resolution of the clock and the cost of a loop, for half a minute, and repeats all of it 11 times.

use std::path::Path;

use schedlab_scenario::Program;
use schedlab_workload::catalogue::OptionValue;

use super::ParsedOutput;

/// What makes a tool measure once, without the half minute before: the shortest time of a measurement in us, and the
/// costs that it would subtract, of a look at the clock and of a loop.
pub const ENVIRONMENT: &[(&str, &str)] = &[("ENOUGH", "100000"), ("TIMING_O", "0"), ("LOOP_O", "0")];

/// Whether a workload is one of these tools.
pub fn is_tool(id: &str) -> bool {
    id.starts_with("lmbench-lat-")
}

/// Why the tool cannot stand for these options.
pub fn refusal(program: &Program) -> Option<&'static str> {
    let given = |name: &str| program.options.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    match program.id {
        id if !is_tool(id) => None,
        _ if given("time").is_some_and(|time| *time != OptionValue::Int(0)) => {
            Some("`time` does not concern the tool, which decides itself how long it measures")
        }
        "lmbench-lat-proc" if word(program, "what", "fork") != "fork" => {
            Some("exec and shell run /tmp/hello, which has to be put there")
        }
        _ => None,
    }
}

/// The arguments of a tool. `path` is its own, the file that it opens.
pub fn arguments(program: &Program, path: &Path) -> Vec<String> {
    let number = |name: &str, default: i64| match program.options.iter().find(|(key, _)| key == name) {
        Some((_, OptionValue::Int(number))) => number.to_string(),
        _ => default.to_string(),
    };
    let own = match program.id {
        "lmbench-lat-proc" => vec!["fork".to_owned()],
        "lmbench-lat-ctx" => vec!["-s".to_owned(), number("size", 0), number("processes", 2)],
        "lmbench-lat-select" => vec!["-n".to_owned(), number("fds", 200), "file".to_owned()],
        "lmbench-lat-syscall" => match word(program, "call", "null") {
            "null" => vec!["null".to_owned()],
            call => vec![call.to_owned(), path.to_string_lossy().into_owned()],
        },
        _ => Vec::new(),
    };
    ["-N", "1"].into_iter().map(str::to_owned).chain(own).collect()
}

fn word<'a>(program: &'a Program, name: &str, default: &'a str) -> &'a str {
    match program.options.iter().find(|(key, _)| key == name) {
        Some((_, OptionValue::Text(word))) => word,
        _ => default,
    }
}

/// `Pipe latency: 9.2558 microseconds`, or, of lat_ctx, `2 4.17`: processes and microseconds. It is a mean.
pub fn parse(id: &str, stderr: &str) -> Result<ParsedOutput, String> {
    let labelled = |line: &str| line.strip_suffix(" microseconds")?.rsplit_once(": ")?.1.parse::<f64>().ok();
    let by_processes = |line: &str| {
        let (processes, time) = line.split_once(' ')?;
        processes.parse::<u32>().ok().and(time.parse::<f64>().ok())
    };
    let mut lines = stderr.lines().map(str::trim);
    let time = match id {
        "lmbench-lat-ctx" => lines.find_map(by_processes),
        _ => lines.find_map(labelled),
    };
    let time = time.filter(|time| time.is_finite() && *time >= 0.0);
    let Some(time) = time else {
        // What it subtracts is measured in one process, at another time than the ring.
        let larger = id == "lmbench-lat-ctx" && stderr.contains("ovr=");
        let what = "no time in microseconds";
        return Err(if larger { format!("{what} (the overhead `ovr` was larger than it)") } else { what.to_owned() });
    };
    Ok(ParsedOutput { stats: vec![("latency", "mean".to_owned(), time)], ..ParsedOutput::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tools_get_the_options_of_the_workload() {
        let text = |word: &str| OptionValue::Text(word.to_owned());
        let cases = [
            ("lmbench-lat-pipe", vec![], "-N 1"),
            ("lmbench-lat-proc", vec![("what", text("fork"))], "-N 1 fork"),
            (
                "lmbench-lat-ctx",
                vec![("processes", OptionValue::Int(4)), ("size", OptionValue::Int(16))],
                "-N 1 -s 16 4",
            ),
            ("lmbench-lat-select", vec![], "-N 1 -n 200 file"),
            ("lmbench-lat-syscall", vec![], "-N 1 null"),
            ("lmbench-lat-syscall", vec![("call", text("open"))], "-N 1 open /bin/tool"),
        ];
        let program = |id, options: Vec<(&str, OptionValue)>| {
            let options = options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            Program { id, options, repeat: false, task_set: None }
        };
        for (id, options, want) in cases {
            let program = program(id, options);
            assert_eq!(
                (arguments(&program, Path::new("/bin/tool")).join(" "), refusal(&program)),
                (want.to_owned(), None)
            );
        }
        assert!(refusal(&program("lmbench-lat-proc", vec![("what", text("shell"))])).is_some());
        assert!(refusal(&program("lmbench-lat-pipe", vec![("time", text("2s"))])).is_some());
        assert!(refusal(&program("hackbench", vec![("time", text("2s"))])).is_none());
    }

    #[test]
    fn the_time_is_read() {
        let real = include_str!("../../tests/programs/lmbench-3.0-a9.txt");
        let outputs: Vec<&str> = real.split("--\n").collect();
        let of = |id: &str, index: usize| parse(id, outputs[index]).unwrap().stats[0].2;
        assert_eq!(of("lmbench-lat-pipe", 0), 6.4978);
        assert_eq!(of("lmbench-lat-ctx", 1), 3.69);
        assert_eq!(of("lmbench-lat-syscall", 2), 0.3130);
        assert!(parse("lmbench-lat-ctx", outputs[0]).is_err());
    }

    proptest! {
        #[test]
        fn no_output_makes_the_parser_panic(text in "[0-9. a-z:\\n-]{0,200}", other in "\\PC{0,60}") {
            for id in ["lmbench-lat-pipe", "lmbench-lat-ctx"] {
                let _ = parse(id, &text);
                let _ = parse(id, &other);
            }
        }
    }
}
