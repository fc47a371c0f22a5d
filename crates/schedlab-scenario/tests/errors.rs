//! Invalid scenario files and the exact error of each; `errors.txt` is the table.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fmt::Write as _;
use std::path::Path;

use schedlab_policy::Version;
use schedlab_scenario::{Scenario, ScenarioError};

struct Case<'a> {
    name: &'a str,
    file: &'a str,
    error: &'a str,
}

/// The cases of the table: `==== name`, the file, `----`, the error.
fn cases(table: &str) -> Vec<Case<'_>> {
    let blocks = table.split("\n==== ").skip(1);
    let case = |block| {
        let (name, rest): (&str, &str) = str::split_once(block, '\n').unwrap();
        let (file, error) = rest.split_once("----\n").unwrap();
        Case { name, file, error: error.trim_end() }
    };
    blocks.map(case).collect()
}

fn shown(error: &ScenarioError) -> String {
    match &error.hint {
        Some(hint) => format!("{error}\nhint: {}", with_open_lists(hint)),
        None => error.to_string(),
    }
}

/// A list of rows up to the newest one ends in `...` behind its first: a new row does not change the table.
fn with_open_lists(hint: &str) -> String {
    let rows: Vec<&str> = Version::all().iter().map(|version| version.name).collect();
    let list =
        (0..rows.len() - 1).find_map(|from| hint.strip_suffix(&rows[from..].join(", ")).map(|start| (start, from)));
    list.map_or_else(|| hint.to_owned(), |(start, from)| format!("{start}{}, ...", rows[from]))
}

/// Checks that the simulator supports every variant.
fn simulated(scenario: Scenario) -> schedlab_scenario::Result<()> {
    scenario.variants().iter().try_for_each(|variant| scenario.run_spec(&variant.name, 1).map(drop))
}

#[test]
fn every_invalid_file_has_its_error() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors.txt");
    let table = std::fs::read_to_string(&path).unwrap();
    let mut fresh = table.split("\n==== ").next().unwrap().to_owned();
    let mut wrong = Vec::new();
    for case in cases(&table) {
        let got = match Scenario::parse(case.file, "bad.toml", None).and_then(simulated) {
            Ok(()) => "accepted".to_owned(),
            Err(error) => shown(&error),
        };
        write!(fresh, "\n==== {}\n{}----\n{got}\n", case.name, case.file).unwrap();
        if got != case.error {
            wrong.push(format!("{}:\n  got    {got}\n  wanted {}", case.name, case.error));
        }
    }
    if std::env::var_os("UPDATE_ERRORS").is_some() {
        std::fs::write(&path, fresh).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_that_are_not_scenarios_are_refused() {
    let junk: Vec<(&str, String)> = vec![
        ("10 MB of x", "x".repeat(10_000_000)),
        ("10 MB of lines", "a = 1\n".repeat(1_700_000)),
        ("deep arrays", "a = ".to_owned() + &"[".repeat(100_000)),
        ("deep tables", "a = ".to_owned() + &"{a=".repeat(100_000)),
        ("a deep key", format!("a{} = 1", ".a".repeat(100_000))),
        ("many tables", "[[workload]]\n".repeat(70_000)),
        ("many workloads", format!("machine = \"rpi4\"\n{}", "[[workload]]\nuse = \"hog\"\n".repeat(20_000))),
        (
            "many tasks",
            format!(
                "machine = \"rpi4\"\n{}",
                (0..9)
                    .map(|n| format!("[[workload]]\nuse = \"cyclictest\"\nname = \"a{n}\"\nthreads = 100000\n"))
                    .collect::<String>()
            ),
        ),
        (
            "many steps",
            format!("machine = \"rpi4\"\nworkload = [{{ program = [{}] }}]\n", "\"yield\",\n".repeat(80_000)),
        ),
        ("one long string", format!("name = \"{}\"", "y".repeat(1_000_000))),
        ("a NUL", "\0".to_owned()),
    ];
    for (name, text) in junk {
        let error = Scenario::parse(&text, "junk.toml", None).expect_err(name).to_string();
        assert!(error.starts_with("junk.toml") && error.len() < 400 && !error.contains('\n'), "{name}: {error}");
    }
}

#[test]
fn files_that_cannot_be_read() {
    let dir = std::env::temp_dir();
    let missing = Scenario::load(&dir.join("schedlab-no-such.toml"), None).unwrap_err();
    assert!(missing.to_string().ends_with("schedlab-no-such.toml: no such file or directory"), "{missing}");
    assert_eq!((missing.line, missing.exit_code()), (None, 2));
    assert!(Scenario::load(&dir, None).unwrap_err().to_string().ends_with("is a directory"));
    let binary = dir.join(format!("schedlab-binary-{}.toml", std::process::id()));
    std::fs::write(&binary, b"name = \"\xff\xfe\"").unwrap();
    let error = Scenario::load(&binary, None).unwrap_err();
    std::fs::remove_file(&binary).unwrap();
    assert!(error.to_string().ends_with(":1:9: the file is not UTF-8 text; expected a TOML file"), "{error}");
}

#[test]
fn special_files_are_refused() {
    let null = Scenario::load(Path::new("/dev/null"), None).unwrap_err();
    assert_eq!(null.to_string(), "/dev/null: not a regular file");
    assert_eq!(null.exit_code(), 2);
    let fifo = std::env::temp_dir().join(format!("schedlab-fifo-{}.toml", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|status| status.success()));
    let error = Scenario::load(&fifo, None).unwrap_err();
    std::fs::remove_file(&fifo).unwrap();
    assert!(error.to_string().ends_with("not a regular file"), "{error}");
}

#[test]
fn overrides_have_precedence_and_are_validated() {
    let text = "machine = \"laptop-8\"\nduration = \"4s\"\nwarmup = \"1s\"\nworkload = [{ use = \"hog\" }]\nvariant = [{ name = \"a\", kernel = \"6.1\" }]\n";
    let overrides = r#"{"seeds": [5, 9], "duration": "2s", "machine": "rpi4", "noise": false}"#;
    let scenario = Scenario::parse(text, "s.toml", Some(overrides)).unwrap();
    assert_eq!((scenario.seeds.as_slice(), scenario.duration), (&[5, 9][..], 2_000_000_000));
    assert_eq!((scenario.machine.name.as_str(), scenario.noise), ("rpi4", false));
    let bad = [
        (
            r#"{"duration": "1s"}"#,
            "command line: duration: the warm-up of 1s is not shorter than the run of 1s; expected a warmup shorter than duration",
        ),
        (
            r#"{"duration": "1ns"}"#,
            "command line: duration: \"1ns\": out of range; expected a duration from 1ms to 24h",
        ),
        (
            r#"{"seeds": 0}"#,
            "command line: seeds: 0 seeds: out of range; expected a count or a list of distinct numbers, at most 10000",
        ),
        (
            r#"{"machine": "rpi5"}"#,
            "command line: machine: unknown machine \"rpi5\"; expected a preset, \"host\" or a path that ends in .toml",
        ),
    ];
    for (overrides, want) in bad {
        assert_eq!(Scenario::parse(text, "s.toml", Some(overrides)).unwrap_err().to_string(), want);
    }
    let error = scenario.run_spec("b", 1).unwrap_err();
    assert_eq!(error.to_string(), "s.toml: variant: there is no variant \"b\"");
}
