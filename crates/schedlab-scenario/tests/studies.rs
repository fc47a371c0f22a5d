//! Studies: every shipped study loads, every invalid one has its error, and conditions take effect.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use schedlab_scenario::{listing, ScenarioError, Section, Study, StudyOptions, STUDY_SECTIONS};
use serde_json::Value as Json;

const SHORT: StudyOptions = StudyOptions { short: true, units: 2 };

fn parse(text: &str, options: &StudyOptions) -> Result<Study, Box<ScenarioError>> {
    Study::parse(text, "bad.toml", options, |path| match path {
        "bad.csv" => Ok((path.to_owned(), "experiment\n".to_owned())),
        _ => Err(format!("{path}: no such file or directory")),
    })
}

fn shown(error: &ScenarioError) -> String {
    match &error.hint {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}

/// `study_errors.txt` has the format of `errors.txt`.
#[test]
fn every_invalid_study_has_its_error() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/study_errors.txt");
    let table = std::fs::read_to_string(&path).unwrap();
    let mut fresh = table.split("\n==== ").next().unwrap().to_owned();
    let mut wrong = Vec::new();
    for block in table.split("\n==== ").skip(1) {
        let (name, rest) = block.split_once('\n').unwrap();
        let (file, want) = rest.split_once("----\n").unwrap();
        let got = match parse(file, &StudyOptions::default()) {
            Ok(_) => "accepted".to_owned(),
            Err(error) => shown(&error),
        };
        write!(fresh, "\n==== {name}\n{file}----\n{got}\n").unwrap();
        if got != want.trim_end() {
            wrong.push(format!("{name}:\n  got    {got}\n  wanted {}", want.trim_end()));
        }
    }
    if std::env::var_os("UPDATE_ERRORS").is_some() {
        std::fs::write(&path, fresh).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn shipped() -> Vec<String> {
    let list = listing("studies", None).unwrap();
    list.as_array().unwrap().iter().map(|study| study["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_file_in_studies_is_shipped() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut stems: Vec<String> = files.iter().map(|path| path.file_stem().unwrap().to_string_lossy().into()).collect();
    let mut ids = shipped();
    stems.sort();
    ids.sort();
    assert_eq!(ids, stems);
}

#[test]
fn every_shipped_study_loads_in_full_and_in_short() {
    for id in shipped() {
        for options in [StudyOptions::default(), SHORT] {
            let study = Study::load(&id, &options).unwrap_or_else(|error| panic!("{id}: {}", shown(&error)));
            let about = study.describe();
            assert!(!about["summary"].as_str().unwrap().is_empty(), "{id}");
            for case in about["cases"].as_array().unwrap() {
                let number = case["scenario"].as_u64();
                assert_eq!(number.is_none(), case["missing"].is_string(), "{id}: {case}");
                let Some(number) = number else { continue };
                let scenario = study.scenario(number as usize).unwrap();
                assert_eq!(scenario.seeds.len() as u64, options.units);
                for variant in scenario.variants() {
                    scenario.run_spec(&variant.name, 1).unwrap();
                }
            }
        }
    }
}

/// A study like a published one: a group with its own latency nice, with load from another session.
const CONDITIONS: &str = r#"
source = "a test"
machine = "laptop-8"

[[condition]]
what = "autogroup"
is = "on"
assumed = "a test"
set = { autogroup = true, hz = 1000 }
instead = { autogroup = false, machine = "rpi4" }

[[variant]]
name = "cfs"
kernel = "6.3"

[[variant]]
name = "eevdf"
kernel = "eevdf-rfc"
knobs = { base_slice_ns = "1ms" }
cgroups.bench.latency_nice = -19
tasks.hackbench.latency_nice = 5

[[experiment]]
name = "one"
metric.time = { of = "hackbench.time" }
cgroup = [{ name = "bench" }]
case = [
    { workload = "small", set.hackbench = { groups = 1, cpus = "0-1" } },
    { workload = "large", set.hackbench = { groups = 2 }, set.stress-ng-cpu = { cpu-load = 75 } },
]
workload = [
    { use = "hackbench", cgroup = "bench" },
    { use = "stress-ng-cpu", cpu = 8, cpu-load = 50 },
]
"#;

#[test]
fn conditions_reach_the_scenarios() {
    let study = parse(CONDITIONS, &StudyOptions::default()).map_err(|error| shown(&error)).unwrap();
    let about = study.describe();
    let cases = about["cases"].as_array().unwrap();
    let alternatives: Vec<&Json> = cases.iter().map(|case| &case["alternative"]).collect();
    assert_eq!(alternatives, [&Json::Null, &Json::Null, &"autogroup".into(), &"autogroup".into()]);
    let scenario = |number: usize| study.scenario(number).unwrap();
    assert_eq!(scenario(0).machine.name, "laptop-8");
    assert_eq!(scenario(2).machine.name, "rpi4");
    for (number, autogroup) in [(0, true), (1, true), (2, false), (3, false)] {
        for variant in scenario(number).variants() {
            assert_eq!((variant.autogroup, variant.kernel.hz()), (autogroup, 1000));
        }
    }
    let eevdf = &scenario(1).variants()[1];
    assert_eq!(eevdf.changes["cgroups"]["/bench"]["latency_nice"], -19);
    assert_eq!(eevdf.changes["tasks"]["hackbench"]["latency_nice"], 5);
    assert_eq!(scenario(0).seeds.len(), 6);
    assert_eq!(cases[0]["metrics"][0]["metric"], "hackbench.time");
}

#[test]
fn an_alternative_can_be_longer() {
    let alternative = |loops: u64| {
        let instead = format!("instead = {{ cases = 1, duration = \"30s\", set.hackbench = {{ loops = {loops} }} }}");
        let text = CONDITIONS.replace("instead = { autogroup = false, machine = \"rpi4\" }", &instead);
        let study = parse(&text, &StudyOptions::default()).map_err(|error| shown(&error)).unwrap();
        assert_eq!([0, 2].map(|number| study.scenario(number).unwrap().duration), [10_000_000_000, 30_000_000_000]);
        assert_eq!(study.describe()["cases"].as_array().unwrap().len(), 3);
        [0, 2].map(|case| study.describe()["cases"][case]["fingerprint"].as_str().unwrap().to_owned())
    };
    let (short, long) = (alternative(1000), alternative(2000));
    assert_eq!(short[0], long[0]);
    assert_ne!(short[1], long[1]);
}

/// Stored runs are found by the fingerprint, so it must change with everything that a run depends on and with nothing
/// else.
#[test]
fn the_fingerprint_covers_what_a_run_depends_on() {
    let of = |text: &str| {
        let study = parse(text, &StudyOptions::default()).map_err(|error| shown(&error)).unwrap();
        study.describe()["cases"][0]["fingerprint"].as_str().unwrap().to_owned()
    };
    let own = of(CONDITIONS);
    assert_eq!(own, of(&CONDITIONS.replace("a test", "another source")));
    for (old, new) in [
        ("groups = 1,", "groups = 3,"),
        ("cpu-load = 50", "cpu-load = 51"),
        ("machine = \"laptop-8\"", "machine = { base = \"laptop-8\", costs.tick = { constant = \"9us\" } }"),
        ("kernel = \"6.3\"", "kernel = \"6.1\""),
        ("hz = 1000", "hz = 250"),
        ("base_slice_ns = \"1ms\"", "base_slice_ns = \"2ms\""),
        ("[[experiment]]", "[[experiment]]\nduration = \"11s\""),
    ] {
        assert_ne!(own, of(&CONDITIONS.replacen(old, new, 1)), "{new}");
    }
}

#[test]
fn the_short_form_has_the_first_cases() {
    let text = CONDITIONS
        .replace("[[experiment]]", "[[experiment]]\nshort = { duration = \"20ms\", set.hackbench = { loops = 3 } }");
    let study = parse(&text, &SHORT).map_err(|error| shown(&error)).unwrap();
    let cases = study.describe()["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 1);
    let scenario = study.scenario(0).unwrap();
    assert_eq!((scenario.duration, scenario.seeds.len()), (20_000_000, 2));
}

/// Missing parts keep their rows: without a variant the baseline still runs, without the experiment or study nothing
/// does.
#[test]
fn missing_parts_are_not_run() {
    let counts = |text: &str| {
        let study = parse(text, &StudyOptions::default()).map_err(|error| shown(&error)).unwrap();
        let cases = study.describe()["cases"].as_array().unwrap().clone();
        let variants = study.scenario(0).map_or(0, |scenario| scenario.variants().len());
        (cases.len(), cases.iter().filter(|case| case["missing"].is_string()).count(), variants)
    };
    let without = "name = \"eevdf\"\nmissing = \"a feature\"\n[[experiment]]";
    let (head, rest) = CONDITIONS.split_once("name = \"eevdf\"").unwrap();
    let tail = rest.split_once("[[experiment]]").unwrap().1;
    assert_eq!(counts(CONDITIONS), (4, 0, 2));
    assert_eq!(counts(&format!("{head}{without}{tail}")), (4, 0, 1));
    assert_eq!(counts(&CONDITIONS.replace("metric.time", "missing = \"all of it\"\nmetric.time")), (2, 2, 0));
    assert_eq!(counts(&CONDITIONS.replace("machine = \"laptop-8\"\n", "missing = \"a machine\"\n")), (2, 2, 0));
}

const END: &str = "<!-- end of keys -->\n";

/// UPDATE_PAGE=1 cargo test -p schedlab-scenario --test studies rewrites the tables of docs/studies/format.md.
#[test]
fn every_key_of_a_study_is_on_the_page() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies/format.md");
    let mut page = std::fs::read_to_string(&file).unwrap();
    for section in STUDY_SECTIONS {
        let marker = format!("<!-- keys of {} -->\n", section.name);
        let start = page.find(&marker).unwrap_or_else(|| panic!("no {marker}")) + marker.len();
        let end = start + page[start..].find(END).unwrap();
        if std::env::var_os("UPDATE_PAGE").is_some() {
            page.replace_range(start..end, &table(section));
        } else {
            assert_eq!(&page[start..end], table(section), "{}", section.name);
        }
    }
    if std::env::var_os("UPDATE_PAGE").is_some() {
        std::fs::write(file, page).unwrap();
    }
}

fn table(section: &Section) -> String {
    let mut table = "| key | value | default | meaning |\n|---|---|---|---|\n".to_owned();
    for key in section.keys {
        writeln!(table, "| `{}` | {} | {} | {} |", key.name, key.form, key.default, key.help).unwrap();
    }
    table
}
