//! What a kernel's name in a scenario stands for: row, configuration, and how tasks are grouped.

use schedlab_scenario::Scenario;
use serde_json::Value as Json;

fn scenario(variants: &str, rest: &str, overrides: Option<&str>) -> Result<Scenario, String> {
    let text = format!(
        "machine = \"laptop-8\"\nworkload = [{{ use = \"hog\", name = \"a\" }}, {{ use = \"hog\", name = \"b\"{rest} }}]\n{variants}"
    );
    Scenario::parse(&text, "s.toml", overrides)
        .map_err(|error| format!("{error} {}", error.hint.clone().unwrap_or_default()))
}

fn boot(variant: &str) -> Result<Json, String> {
    let found = scenario(&format!("[[variant]]\nname = \"x\"\n{variant}"), "", None)?;
    Ok(found.describe()["variants"][0]["boot"].clone())
}

/// Row, Hz, preemption model, whether sessions are groups, and whose configuration it is.
#[test]
fn a_distribution_brings_its_configuration() {
    for (variant, hz, preempt, autogroup, config) in [
        ("kernel = \"6.1\"", 250, "none", false, ""),
        ("kernel = \"7.2\"", 250, "lazy", false, ""),
        ("kernel = \"debian-12\"", 250, "voluntary", true, "debian-12"),
        ("kernel = \"6.1.0-18-amd64\"", 250, "voluntary", true, "debian-12"),
        ("kernel = \"debian-13-backports\"", 250, "lazy", true, "debian-13-backports"),
        ("kernel = \"ubuntu-24.04\"", 1000, "voluntary", true, "ubuntu-24.04"),
        ("kernel = \"6.1\"\nconfig = \"rhel-9\"", 1000, "voluntary", true, "rhel-9"),
        ("kernel = \"debian-12\"\nconfig = \"fedora-37\"", 1000, "voluntary", true, "fedora-37"),
        // What a variant says itself is stronger.
        ("kernel = \"debian-12\"\nhz = 100\npreempt = \"full\"\nautogroup = false", 100, "full", false, "debian-12"),
        ("kernel = \"7.2\"\nconfig = \"debian-12\"\npreempt = \"full\"", 250, "full", true, "debian-12"),
    ] {
        let boot = boot(variant).unwrap();
        assert_eq!(boot["hz"], hz, "{variant}");
        assert_eq!(boot["preempt"], preempt, "{variant}");
        assert_eq!(boot["autogroup"], autogroup, "{variant}");
        assert_eq!(boot["config"].as_str().unwrap_or_default(), config, "{variant}");
        assert_eq!(boot["config_source"].is_string(), !config.is_empty(), "{variant}");
    }
    for (variant, says) in [
        (
            "kernel = \"7.2\"\nconfig = \"debian-12\"",
            "the configuration of debian-12: kernel 7.2 has no preemption model",
        ),
        ("kernel = \"rhel-9\"", "kernel = \"6.1\", config = \"rhel-9\""),
        ("kernel = \"debian-1\"", "did you mean"),
        ("kernel = \"6.1\"\nconfig = \"debain-12\"", "did you mean \"debian-12\"?"),
    ] {
        let error = boot(variant).unwrap_err();
        assert!(error.contains(says), "{variant}: {error}");
    }
}

#[test]
fn a_guest_has_the_configuration_of_its_distribution() {
    let text = r#"
machine = "laptop-8"
guest = [{ name = "vm", vcpus = 2, platform = "x86-kvm", kernel = "ubuntu-24.04" }]
workload = [{ use = "hog", guest = "vm" }]
variant = [{ name = "x", kernel = "debian-12" }, { name = "y", kernel = "6.1", guests.vm.config = "debian-12" }]
"#;
    let found = Scenario::parse(text, "s.toml", None).unwrap();
    let guest = |variant: &str| found.run_spec(variant, 1).unwrap().guests[0].run.clone();
    for (variant, hz) in [("x", 1000), ("y", 250)] {
        let run = guest(variant);
        assert_eq!((run.kernel.hz(), run.kernel.preempt.name(), run.autogroup), (hz, "voluntary", true), "{variant}");
    }
}

/// The grouping with which a comparison is repeated, and what that does to the groups of the two workloads.
#[test]
fn the_other_grouping_keeps_groups_that_are_meant() {
    let debian = "variant = [{ name = \"x\", kernel = \"debian-12\" }]";
    let generic = "variant = [{ name = \"x\", kernel = \"6.1\" }]";
    let mixed = "variant = [{ name = \"x\", kernel = \"6.1\" }, { name = \"y\", kernel = \"debian-12\" }]";
    let plain = format!("cgroup = [{{ name = \"web\" }}]\n{generic}");
    let weighted = format!("cgroup = [{{ name = \"web\", weight = 300 }}, {{ name = \"web/inner\" }}]\n{generic}");
    for (variants, rest, other, autogroup, group) in [
        (debian, "", Some("none"), false, None),
        (generic, "", Some("sessions"), true, None),
        (mixed, "", None, false, None),
        (&plain, ", cgroup = \"web\"", Some("none"), false, None),
        (&weighted, ", cgroup = \"web/inner\"", Some("none"), false, Some("/web")),
        (&weighted, ", cgroup = \"web\"", Some("sessions"), true, Some("/web")),
    ] {
        let found = scenario(variants, rest, None).unwrap();
        assert_eq!(found.describe()["other_grouping"].as_str(), other, "{variants} {rest}");
        let Some(other) = other else { continue };
        let repeated = scenario(variants, rest, Some(&format!("{{\"grouping\": \"{other}\"}}"))).unwrap();
        let spec = repeated.run_spec("x", 1).unwrap();
        assert_eq!((spec.autogroup, spec.workloads[1].tasks[0].cgroup.as_deref()), (autogroup, group), "{variants}");
    }
    let error = scenario(generic, "", Some("{\"grouping\": \"all\"}")).unwrap_err();
    assert!(error.contains("grouping"), "{error}");
}
