//! The trace's header as a configuration of a version row: which settings the recorded kernel had.

use schedlab_model::{Nanos, SEC};
use schedlab_policy::{ConfigError, KernelConfig, PreemptModel, Release, SliceSource, Version};
use schedlab_trace::Header;

use crate::trace::release;

/// What the recorded kernel is like, as the header says.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    pub cpus: usize,
    /// CONFIG_SCHED_AUTOGROUP: an exiting task is moved to the root's group.
    pub has_autogroup: bool,
    /// `sched_move_task` moves a task within its group as well.
    pub moves_within_group: bool,
    /// Autogroups are on: every session is a group.
    pub uses_autogroup: bool,
    /// The tick's period.
    pub tick: Nanos,
    /// The same, if HRTICK is on: a second timer interrupt in one period may be the hrtick.
    pub tick_beside_hrtick: Option<Nanos>,
    /// `task_fork_fair` charges the parent (`update_curr`), as it does before 6.12. A charge that a fork follows is
    /// otherwise that of something else, such as a change of the nice value.
    pub fork_charges: bool,
    /// `sched_stat_runtime` is emitted after the charge has requested the reschedule: its flag is the tick's outcome.
    pub charges_show_outcome: bool,
    /// The machine has several NUMA nodes: tasks have a preferred node (`sched_setnuma`).
    pub several_nodes: bool,
    /// The trace is simulated: it begins with empty queues and holds the fork of every task.
    pub simulated: bool,
}

/// Ticks per second unless the header gives them: those of Debian's kernels.
const HZ: u32 = 250;

/// The values of CONFIG_HZ that are accepted.
const HZ_RANGE: std::ops::RangeInclusive<u32> = 1..=10_000;

/// Header lines that are knobs, each followed by its value.
const KNOBS: [&str; 12] = [
    "base_slice_ns",
    "latency_ns",
    "min_granularity_ns",
    "wakeup_granularity_ns",
    "idle_min_granularity_ns",
    "migration_cost_ns",
    "llc_balancing/enabled",
    "llc_balancing/aggr_tolerance",
    "llc_balancing/epoch_period",
    "llc_balancing/epoch_affinity_timeout",
    "llc_balancing/overaggr_pct",
    "llc_balancing/imb_pct",
];

/// A configured row, and the settings of the header that it could not take.
pub struct Settings {
    /// The row as the header configures it.
    pub config: KernelConfig,
    /// A sentence for each setting that the row does not take.
    pub refused: Vec<String>,
}

/// The row of a kernel release, if it is modelled: that of the release itself or that of its series.
#[must_use]
pub fn row_of(release: &str) -> Option<&'static Version> {
    Version::of_release(release)
}

/// Configures `version` as the header of a trace says.
#[must_use]
pub fn settings(header: &Header, version: &'static Version) -> Settings {
    let mut config = KernelConfig::new(version, header.nr_cpus.unwrap_or(1), hz(header).unwrap_or(HZ));
    let mut refused: Vec<String> = another_release(header, version).into_iter().chain(hz(header).err()).collect();
    let mut keep = |result: Result<(), ConfigError>| {
        if let Err(error) = result {
            refused.push(error.to_string());
        }
    };
    if let Some(scaling) = setting(header, "tunable_scaling").and_then(|value| value.parse::<u64>().ok()) {
        if scaling != config.knobs.tunable_scaling {
            keep(config.restore_knob("tunable_scaling", scaling));
        }
    }
    for knob in KNOBS {
        if let Some(value) = setting(header, knob).and_then(|value| value.parse().ok()) {
            keep(config.restore_knob(knob, value));
        }
    }
    for word in features(header).split_ascii_whitespace() {
        let (name, on) = word.strip_prefix("NO_").map_or((word, true), |name| (name, false));
        keep(config.set_feature(name, on));
    }
    if let Some(model) = header.get("preempt").and_then(chosen) {
        keep(config.set_preempt(model));
    }
    Settings { config, refused }
}

/// What the header says of the recorded kernel that decides how its records are read.
#[must_use]
pub fn kernel(header: &Header) -> Kernel {
    Kernel {
        cpus: header.nr_cpus.unwrap_or(1),
        has_autogroup: has_autogroup(header),
        moves_within_group: moves_within_group(header),
        uses_autogroup: uses_autogroup(header),
        tick: tick_period(header),
        tick_beside_hrtick: tick_beside_hrtick(header),
        fork_charges: fork_charges(header),
        charges_show_outcome: charges_show_outcome(header),
        several_nodes: several_nodes(header),
        simulated: is_simulated(header),
    }
}

fn several_nodes(header: &Header) -> bool {
    header.comments.iter().filter(|line| line.starts_with("topology nodes ")).count() > 1
}

/// Ticks per second as the header gives them, or what is wrong with the line.
fn hz(header: &Header) -> Result<u32, String> {
    let Some(text) = header.get("hz") else { return Ok(HZ) };
    let refuse = || {
        let (from, to) = (HZ_RANGE.start(), HZ_RANGE.end());
        format!("header: hz {text:?}, expected {from} to {to} ticks per second; {HZ} is assumed")
    };
    text.trim().parse().ok().filter(|hz| HZ_RANGE.contains(hz)).ok_or_else(refuse)
}

/// A warning where the row models another release of the same series.
fn another_release(header: &Header, version: &'static Version) -> Option<String> {
    let kernel = header.kernel.as_deref()?;
    let number: String = kernel.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let (row, series) = (version.name, format!("{}.", version.name));
    let own = row_of(kernel).is_some_and(|own| own.name == row);
    let other = own && number != row && !number.starts_with(&series);
    other.then(|| format!("recorded on {number}, judged by row {row}, which models another release of the series"))
}

/// A file of the scheduler's directory in debugfs; up to 5.12 a sysctl of the same name after `sched_`.
fn setting<'a>(header: &'a Header, name: &str) -> Option<&'a str> {
    header.get(name).or_else(|| header.get(&format!("sched_{name}")))
}

fn features(header: &Header) -> &str {
    setting(header, "features").unwrap_or("")
}

/// The model in parentheses in `none (voluntary) full`. Where the kernel rescheduled is in the trace, so that voluntary
/// preemption points make no difference here.
fn chosen(line: &str) -> Option<PreemptModel> {
    let (_, rest) = line.split_once('(')?;
    match rest.split_once(')')?.0.parse().ok()? {
        PreemptModel::Voluntary => Some(PreemptModel::None),
        model => Some(model),
    }
}

/// The tick's period.
#[must_use]
pub fn tick_period(header: &Header) -> Nanos {
    SEC / u64::from(hz(header).unwrap_or(HZ))
}

/// The tick period, if the recorded kernel had HRTICK on, so that a timer interrupt may be either.
fn tick_beside_hrtick(header: &Header) -> Option<Nanos> {
    let on = features(header).split_ascii_whitespace().any(|word| word == "HRTICK");
    on.then(|| tick_period(header))
}

/// Whether `update_curr` of the recorded kernel requests a reschedule at the end of a slice before it emits the run
/// time (6.6 to 6.11; from 6.12 on after it).
fn charges_show_outcome(header: &Header) -> bool {
    let row = header.kernel.as_deref().and_then(row_of);
    let ends = |row: &Version| row.rules.expiry_reschedules && row.rules.slice == SliceSource::Base;
    !is_simulated(header) && row.is_some_and(ends)
}

/// Whether the recorded kernel was built with CONFIG_SCHED_AUTOGROUP: only then does the file exist.
fn has_autogroup(header: &Header) -> bool {
    header.get("sched_autogroup_enabled").is_some_and(|value| !value.is_empty())
}

/// Whether `sched_move_task` moves a task within its group: from 6.4 on it did not (eff6c8ce8d4d), until 6.14 and the
/// stable releases 6.13.10, 6.12.22 and 6.6.86 reverted that (76f970ce51c8; the stable releases by their lists of
/// patches, none recorded).
fn moves_within_group(header: &Header) -> bool {
    const LEFT_OUT: [(Option<Release>, Option<Release>); 3] = [
        (Release::parse("6.4"), Release::parse("6.6.86")),
        (Release::parse("6.7"), Release::parse("6.12.22")),
        (Release::parse("6.13"), Release::parse("6.13.10")),
    ];
    let release = release(header);
    release.is_none() || LEFT_OUT.iter().all(|(from, to)| release < *from || release >= *to)
}

/// Whether the trace is simulated: nothing runs when it begins, and every task's fork is in it.
fn is_simulated(header: &Header) -> bool {
    header.get("simulated").is_some()
}

/// Whether a fork charges the parent on the recorded kernel (`task_fork_fair`, before 6.12). A kernel without a row
/// may.
fn fork_charges(header: &Header) -> bool {
    header.kernel.as_deref().and_then(row_of).is_none_or(|row| row.rules.fork_places)
}

/// Whether autogroups were on.
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
            ("6.3.8-1-amd64", Some("6.3")),
            ("6.3.8-eevdf-rfc", Some("eevdf-rfc")),
            ("6.12.999+deb13-cloud-amd64", Some("6.12.107")),
            ("5.2", Some("5.2")),
            ("5.14.2", Some("5.13")),
            ("5.15.2", Some("5.15")),
            ("4.19", None),
            ("", None),
            ("mainline", None),
        ] {
            assert_eq!(row_of(release).map(|row| row.name), row, "{release}");
        }
    }

    #[test]
    fn settings_that_the_row_cannot_take_are_reported() {
        let configured = |kernel: &str, line: &str, row: &str| {
            let header = Header { kernel: Some(kernel.into()), comments: vec![line.to_owned()], ..Header::default() };
            let Settings { config, refused } = settings(&header, Version::find(row).unwrap());
            (config.hz(), refused.join("; "))
        };
        for (kernel, line, row, hz, words) in [
            ("6.1.192", "hz 250", "6.1", 250, ""),
            ("6.12.107+deb13", "hz 1000", "6.12.107", 1000, ""),
            ("6.12.0", "hz 100", "6.12.0", 100, ""),
            ("6.12.5", "hz 250", "6.12.0", 250, "recorded on 6.12.5, judged by row 6.12.0"),
            // A row that the user chose gets no such warning.
            ("6.12.5", "hz 250", "6.1", 250, ""),
            ("6.1.192", "hz 0", "6.1", 250, "hz \"0\", expected 1 to 10000"),
            ("6.1.192", "hz -1", "6.1", 250, "hz \"-1\", expected 1 to 10000"),
            ("6.1.192", "hz 10001", "6.1", 250, "hz \"10001\", expected 1 to 10000"),
            ("6.1.192", "hz fast", "6.1", 250, "hz \"fast\", expected 1 to 10000"),
        ] {
            let (ticks, refused) = configured(kernel, line, row);
            assert!(
                ticks == hz && refused.contains(words) && refused.is_empty() == words.is_empty(),
                "{line}: {refused}"
            );
        }
    }

    #[test]
    fn settings_are_read_by_their_names_of_before_5_13() {
        let lines = ["sched_latency_ns 12000000", "sched_min_granularity_ns 3000000", "sched_tunable_scaling 0"];
        let lines =
            lines.iter().chain(&["sched_wakeup_granularity_ns 2000000", "sched_features NO_START_DEBIT HRTICK"]);
        let comments = lines.map(|line| (*line).to_owned()).collect();
        let header = Header { nr_cpus: Some(2), comments, ..Header::default() };
        let Settings { config, refused } = settings(&header, Version::find("5.2").unwrap());
        let knobs = config.knobs;
        assert_eq!(
            (knobs.latency, knobs.min_granularity, knobs.wakeup_granularity),
            (12_000_000, 3_000_000, 2_000_000)
        );
        assert_eq!((knobs.nr_latency, knobs.tunable_scaling), (4, 0));
        assert!(!config.has(schedlab_policy::Feature::StartDebit) && refused.is_empty(), "{refused:?}");
        assert!(tick_beside_hrtick(&header).is_some());
    }

    #[test]
    fn forks_charge_the_parent_before_6_12() {
        for (release, charges) in
            [("6.1.192", true), ("6.8.0", true), ("6.12.107", false), ("7.2.13", false), ("", true)]
        {
            let header = Header { kernel: Some(release.into()), ..Header::default() };
            assert_eq!(fork_charges(&header), charges, "{release}");
        }
    }

    #[test]
    fn some_releases_leave_out_moves_within_a_group() {
        for (release, moves) in [
            ("5.2.1", true),
            ("6.3.8", true),
            ("6.6.0", false),
            ("6.6.86", true),
            ("6.8.0-31-generic", false),
            ("6.12.0", false),
            ("6.12.43+deb13-cloud-amd64", true),
            ("6.16.3", true),
        ] {
            let header = Header { kernel: Some(release.into()), ..Header::default() };
            assert_eq!(moves_within_group(&header), moves, "{release}");
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
        assert_eq!((config.hz(), config.knobs.latency, config.nr_cpus), (1000, 12_000_000, 2));
        assert!(!config.has(schedlab_policy::Feature::LastBuddy));
        assert_eq!(config.preempt, PreemptModel::Full);
        assert!(refused.len() == 1 && refused[0].contains("PICK_BUDDY"), "{refused:?}");
        assert!(has_autogroup(&header) && !has_autogroup(&Header::default()));
    }
}
