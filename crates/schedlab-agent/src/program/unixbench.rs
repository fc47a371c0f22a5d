//! The programs of UnixBench: one copy, for whole seconds, which are its only argument; it prints how often it went
//! round.

use schedlab_model::Nanos;
use schedlab_scenario::Program;
use schedlab_workload::catalogue::{self, OptionValue, Quantity};

use super::{whole_seconds, ParsedOutput};
use crate::error::Result;

/// Whether a workload is one of these programs.
pub fn is_program(id: &str) -> bool {
    id.starts_with("unixbench-")
}

/// Why the program cannot stand for these options.
pub fn refusal(program: &Program) -> Option<&'static str> {
    let several = |(key, value): &(String, OptionValue)| key == "copies" && *value != OptionValue::Int(1);
    (is_program(program.id) && program.options.iter().any(several))
        .then_some("the program is one copy; Run starts several")
}

/// The seconds for which it runs.
pub fn arguments(program: &Program, duration: Nanos) -> Result<Vec<String>> {
    Ok(vec![whole_seconds(program, duration)?.to_string()])
}

/// `COUNT|109422|1|lps`; a child of context1 prints a second one. `argv` ends with the seconds.
pub fn parse(id: &str, argv: &[String], stderr: &str) -> std::result::Result<ParsedOutput, String> {
    let count = stderr.lines().find_map(|line| line.strip_prefix("COUNT|")?.split('|').next()?.parse::<u64>().ok());
    let seconds = argv.last().and_then(|word| word.parse::<u64>().ok()).filter(|seconds| *seconds > 0);
    let (Some(count), Some(seconds)) = (count, seconds) else { return Err("no line 'COUNT|N|1|lps'".to_owned()) };
    let lps = count as f64 / seconds as f64;
    let entry = catalogue::find(id).map_err(|error| error.to_string())?;
    let baseline = entry.about.parameters.iter().find_map(|parameter| match parameter.value {
        Quantity::Number(number) if parameter.name.starts_with("baseline") => Some(number as f64),
        _ => None,
    });
    let index = baseline.map(|baseline| ("index", 10.0 * lps / baseline));
    Ok(ParsedOutput { rates: std::iter::once(("lps", lps)).chain(index).collect(), ..ParsedOutput::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use schedlab_model::SEC;

    #[test]
    fn loops_are_divided_by_the_seconds() {
        let real = include_str!("../../tests/programs/unixbench-context1.txt");
        let argv = ["unixbench-context1", "2"].map(str::to_owned);
        let found = parse("unixbench-context1", &argv, real).unwrap();
        // 178,847 round trips in 2 s, of the 4,000 a second of the baseline.
        assert_eq!(found.rates, [("lps", 89_423.5), ("index", 10.0 * 89_423.5 / 4_000.0)]);
        assert!(parse("unixbench-context1", &argv[..1], real).is_err());
        let program = |options: &[(&str, i64)]| Program {
            id: "unixbench-spawn",
            options: options.iter().map(|(key, value)| ((*key).to_owned(), OptionValue::Int(*value))).collect(),
            repeat: false,
            task_set: None,
        };
        assert_eq!(arguments(&program(&[("time", 3)]), SEC).unwrap(), ["3"]);
        assert_eq!(arguments(&program(&[]), 3 * SEC).unwrap(), ["2"]);
        assert!(refusal(&program(&[("copies", 1)])).is_none() && refusal(&program(&[("copies", 2)])).is_some());
    }

    proptest! {
        #[test]
        fn no_output_makes_the_parser_panic(text in "(COUNT|[0-9|a-z\\n ]){0,40}", word in "\\PC{0,9}") {
            let _ = parse("unixbench-pipe", &[word], &text);
        }
    }
}
