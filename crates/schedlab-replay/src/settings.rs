//! The kernel a trace was recorded on: its header's words as a configuration of a version row.

use schedlab_model::{Nanos, SEC};
use schedlab_policy::{ConfigError, KernelConfig, PreemptModel, Version};
use schedlab_trace::Header;

/// Ticks per second where the header does not say: Debian's kernels.
const HZ: u32 = 250;

/// Header lines that are knobs; the rest of the line is the value.
const KNOBS: [&str; 6] = [
    "base_slice_ns",
    "latency_ns",
    "min_granularity_ns",
    "wakeup_granularity_ns",
    "idle_min_granularity_ns",
    "migration_cost_ns",
];

/// A row configured as the header says, and what the row does not have.
pub struct Settings {
    pub config: KernelConfig,
    pub refused: Vec<String>,
}

/// The row a kernel release belongs to, if it is modelled: by its whole number, or by a row that stands for its series.
#[must_use]
pub fn row_of(release: &str) -> Option<&'static Version> {
    Version::of_release(release)
}

/// Configures `version` by the header of a trace.
#[must_use]
pub fn settings(header: &Header, version: &'static Version) -> Settings {
    let hz = header.get("hz").and_then(|hz| hz.parse().ok()).unwrap_or(HZ);
    let mut config = KernelConfig::new(version, header.nr_cpus.unwrap_or(1), hz);
    let mut refused = Vec::new();
    let mut keep = |result: Result<(), ConfigError>| {
        if let Err(error) = result {
            refused.push(error.to_string());
        }
    };
    if let Some(scaling) = header.get("tunable_scaling").and_then(|value| value.parse::<u64>().ok()) {
        if scaling != config.knobs.tunable_scaling {
            keep(config.set_knob("tunable_scaling", scaling));
        }
    }
    for knob in KNOBS {
        if let Some(value) = header.get(knob).and_then(|value| value.parse().ok()) {
            keep(config.set_knob(knob, value));
        }
    }
    for word in header.get("features").unwrap_or("").split_ascii_whitespace() {
        let (name, on) = word.strip_prefix("NO_").map_or((word, true), |name| (name, false));
        keep(config.set_feature(name, on));
    }
    if let Some(model) = header.get("preempt").and_then(chosen) {
        keep(config.set_preempt(model));
    }
    Settings { config, refused }
}

/// The model in parentheses in `none (voluntary) full`.
fn chosen(line: &str) -> Option<PreemptModel> {
    let (_, rest) = line.split_once('(')?;
    rest.split_once(')')?.0.parse().ok()
}

/// The tick period of a recorded kernel whose slices may also end by a timer of their own (HRTICK).
#[must_use]
pub fn tick_beside_hrtick(header: &Header) -> Option<Nanos> {
    let on = header.get("features").unwrap_or("").split_ascii_whitespace().any(|word| word == "HRTICK");
    let hz = header.get("hz").and_then(|hz| hz.parse().ok()).unwrap_or(HZ);
    on.then(|| SEC / u64::from(hz.max(1)))
}

/// Whether the recorded kernel was built with autogroups: only then is there a value to print.
#[must_use]
pub fn has_autogroup(header: &Header) -> bool {
    header.get("sched_autogroup_enabled").is_some_and(|value| !value.is_empty())
}

/// Whether it used them: every session a group.
#[must_use]
pub fn uses_autogroup(header: &Header) -> bool {
    header.get("sched_autogroup_enabled").is_some_and(|value| value.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_find_their_row() {
        for (release, row) in [
            ("6.1.0-56-cloud-amd64", Some("6.1")),
            ("6.1.192", Some("6.1")),
            ("6.12.0", Some("6.12.0")),
            ("6.12.999+deb13-cloud-amd64", Some("6.12.107")),
            ("5.2", Some("5.2")),
            ("4.19", None),
            ("", None),
            ("mainline", None),
        ] {
            assert_eq!(row_of(release).map(|row| row.name), row, "{release}");
        }
    }

    #[test]
    fn the_header_configures_the_row() {
        let comments = ["hz 1000", "latency_ns 12000000", "features NO_LAST_BUDDY GENTLE_FAIR_SLEEPERS PICK_BUDDY"];
        let comments = comments.iter().chain(&["preempt none voluntary (full)", "sched_autogroup_enabled 0"]);
        let header = Header {
            nr_cpus: Some(2),
            comments: comments.map(|line| (*line).to_owned()).collect(),
            ..Header::default()
        };
        let row = Version::find("6.1").unwrap();
        let Settings { config, refused } = settings(&header, row);
        assert_eq!((config.hz, config.knobs.latency, config.nr_cpus), (1000, 12_000_000, 2));
        assert!(!config.has(schedlab_policy::Feature::LastBuddy));
        assert_eq!(config.preempt, PreemptModel::Full);
        assert!(refused.len() == 1 && refused[0].contains("PICK_BUDDY"), "{refused:?}");
        assert!(has_autogroup(&header) && !has_autogroup(&Header::default()));
    }
}
