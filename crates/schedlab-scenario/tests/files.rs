//! Files that a scenario refers to: they are found relative to it, and errors have positions in them.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::path::PathBuf;

use schedlab_scenario::{Result, Scenario};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("schedlab-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn scenario(&self, workload: &str, files: &[(&str, &str)]) -> Result<Scenario> {
        for (name, text) in files {
            fs::write(self.0.join(name), text).unwrap();
        }
        let file = self.0.join("s.toml");
        let rest = "machine = \"rpi4\"\nvariant = [{ name = \"a\", kernel = \"6.1\" }]\n";
        fs::write(&file, format!("{rest}workload = [{{ {workload} }}]\n")).unwrap();
        Scenario::load(&file, None)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const TASK: &str = r#"{ "tasks": { "t": { "loop": -1, "run": 1000, "sleep": 1000 } } }"#;

#[test]
fn an_rt_app_file_next_to_the_scenario_is_found() {
    let dir = Dir::new("beside");
    let scenario = dir.scenario("rt-app = \"my app.json\", nice = 3", &[("my app.json", TASK)]).unwrap();
    let workload = &scenario.variants()[0].workloads[0];
    assert_eq!((workload.name.as_str(), workload.ends), ("my-app", false));
    assert!(workload.tasks.iter().all(|task| task.nice == 3));
    assert_eq!(scenario.describe()["workloads"][0]["use"], "my app.json");
}

#[test]
fn the_duration_of_the_file_ends_the_workload() {
    let dir = Dir::new("duration");
    let text = TASK.replace("\"tasks\"", "\"global\": { \"duration\": 2 }, \"tasks\"");
    let scenario = dir.scenario("rt-app = \"a.json\"", &[("a.json", &text)]).unwrap();
    assert!(scenario.variants()[0].workloads[0].ends);
}

#[test]
fn task_groups_of_the_file_need_no_declaration() {
    let dir = Dir::new("groups");
    let text = TASK.replace("\"loop\"", "\"taskgroup\": \"/tg1/tg11\", \"loop\"");
    let scenario = dir.scenario("rt-app = \"a.json\"", &[("a.json", &text)]).unwrap();
    let paths: Vec<&str> = scenario.variants()[0].cgroups.iter().map(|cgroup| cgroup.path.as_str()).collect();
    assert_eq!(paths, ["/tg1", "/tg1/tg11"]);
    assert_eq!(scenario.variants()[0].workloads[0].cgroups, ["/tg1/tg11"]);
}

#[test]
fn errors_have_line_numbers_of_the_file() {
    let dir = Dir::new("errors");
    let cases = [
        ("rt-app = \"a.json\"", "{\n  \"tasks\": { \"t\": { \"rum\": 10 } }\n}", "a.json:2:"),
        (
            "rt-app = \"a.json\"",
            "{\n  \"tasks\": { \"t\": { \"policy\": \"SCHED_DEADLINE\", \"run\": 10 } }\n}",
            "a.json:2:",
        ),
        ("rt-app = \"a.json\"", "", "a.json:1:"),
        ("rt-app = \"a.json\"", "{\n{", "a.json:2:"),
        ("rt-app = [\"a.json\", \"b.json\"]", TASK, "no such file"),
        ("rt-app = []", TASK, "the list is empty"),
        ("rt-app = 3", TASK, "expected the path of an rt-app file"),
        ("rt-app = \"a.json\", repeat = true", TASK, "repeat is not supported"),
        ("rt-app = \"a.json\", groups = 3", TASK, "unknown key \"groups\""),
        ("rt-app = \"a.json\", cpus = \"7\"", TASK, "the machine has CPUs 0 to 3"),
    ];
    for (workload, file, want) in cases {
        let error = dir.scenario(workload, &[("a.json", file)]).unwrap_err();
        assert!(error.to_string().contains(want), "{workload} {file}: {error}");
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn a_machine_file_next_to_the_scenario_is_found() {
    let dir = Dir::new("machine");
    let scenario = |machine: &str| {
        fs::write(dir.0.join("box.toml"), machine).unwrap();
        let file = dir.0.join("s.toml");
        let text =
            "machine = \"box.toml\"\nworkload = [{ use = \"hog\" }]\nvariant = [{ name = \"a\", kernel = \"6.1\" }]\n";
        fs::write(&file, text).unwrap();
        Scenario::load(&file, None)
    };
    let good = scenario("base = \"rpi4\"\nhz = 1000\n").unwrap();
    assert_eq!((good.machine.name.as_str(), good.machine.hz), ("box", 1000));
    let error = scenario("base = \"rpi4\"\nhz = \"1000\"\n").unwrap_err();
    assert!(error.to_string().contains("box.toml:2:6: hz: \"1000\""), "{error}");
    assert!(scenario("").unwrap_err().to_string().contains("box.toml:1:1: the key \"topology\" is missing"));
}

/// Every preset has one, so the machine is a file without: what shares the memory, or streams through it, is refused.
#[test]
fn a_machine_without_a_memory_table_streams_nothing() {
    let preset = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/laptop-8.toml")).unwrap();
    let begin = preset.find("[memory]").unwrap();
    let end = begin + 1 + preset[begin + 1..].find("\n[").unwrap();
    let without = format!("{}{}", &preset[..begin], &preset[end..]);
    let dir = Dir::new("memory");
    fs::write(dir.0.join("box.toml"), without).unwrap();
    let load = |workload: &str, more: &str| {
        let file = dir.0.join("s.toml");
        let variant = format!("variant = [{{ name = \"a\", kernel = \"6.12.0\"{more} }}]");
        fs::write(&file, format!("machine = \"box.toml\"\nworkload = [{{ use = \"{workload}\" }}]\n{variant}\n"))
            .unwrap();
        Scenario::load(&file, None)
    };
    load("hog", "").unwrap();
    let shared = ", physics = { memory = true }";
    for (workload, more, at) in [
        ("stream", "", "2:13: workload"),
        ("lmbench-stream", "", "2:13: workload"),
        ("hog", shared, "3:66: variant.physics"),
    ] {
        let error = load(workload, more).unwrap_err().to_string();
        assert!(error.contains(at) && error.contains("does not say what its memory delivers"), "{workload}: {error}");
    }
}
