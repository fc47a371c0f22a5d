//! From a recording to a scenario: names, programs, arrivals, groups, and what is known of each pool.

use std::collections::BTreeMap;

use schedlab_model::Nanos;
use schedlab_replay::{tick_period, GroupName, InitialGroups};
use schedlab_trace::Header;

use crate::causes::{waits, Ends, Ticks};
use crate::costs::Costs;
use crate::load::{Extracted, Group, Load};
use crate::measure::{Measure, Metrics};
use crate::pools::{stem, Pool, Share};
use crate::program::program;
use crate::recording::{Recording, Task};
use crate::settings::{topology, Kernel};
use crate::text;

/// The result of an extraction.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Extraction {
    /// The scenario, with the recorded kernel as its only variant.
    #[serde(rename = "text")]
    pub scenario: String,
    /// The row of the recorded kernel.
    pub row: String,
    /// The release of the recorded kernel.
    pub release: String,
    /// CPUs.
    pub cpus: usize,
    /// How long the recording lasted, ns.
    pub span: Nanos,
    /// What a wakeup and a switch took.
    pub costs: Costs,
    /// Records.
    pub records: u64,
    /// What the recording lacks, in a sentence each.
    pub notes: Vec<String>,
    /// Pools of tasks of one name, the busiest first.
    pub pools: Vec<Pool>,
}

/// Makes the load and the pools of a recording.
pub fn extract(
    header: &Header,
    recording: &Recording,
    measure: &Measure,
    kernel: Kernel,
    notes: Vec<String>,
) -> Extraction {
    let cpus = header.nr_cpus.unwrap_or(1).max(1);
    let flagged = recording.counts.flagged > 0;
    let ticks = Ticks::of(recording, tick_period(header));
    let names = names(recording);
    let groups = InitialGroups::of(header);
    let (topology, described) = topology(header, cpus);
    let mut notes = notes;
    if !described && cpus > 1 {
        notes.push("which CPUs share a cache: all of them in the scenario".to_owned());
    }
    let mut load = Load {
        name: "recorded".to_owned(),
        span: recording.span(),
        costs: measure.costs(),
        kernel,
        topology,
        notes,
        groups: Vec::new(),
        queues: BTreeMap::new(),
        tasks: Vec::with_capacity(recording.tasks.len()),
        names,
    };
    let mut pools: BTreeMap<String, Share> = BTreeMap::new();
    for (index, task) in recording.tasks.iter().enumerate() {
        let waits = waits(task, &ticks, flagged);
        let program = program(task, &waits, load.costs);
        let share = pools.entry(stem(&task.name)).or_default();
        share.add(task, &waits, &program, &load.names[index]);
        let queue = format!("to-{}", word(&stem(&task.name)));
        let arrived = task.waits().zip(&waits.ends).filter(|(_, ends)| **ends == Ends::Arrival);
        let times: Vec<Nanos> = arrived.map(|(wait, _)| wait.to - recording.start).collect();
        if !times.is_empty() {
            load.queues.entry(queue.clone()).or_default().extend(times);
        }
        let attributes = attributes(&mut load, header, &groups, task);
        let name = load.names[index].clone();
        load.tasks.push(Extracted { name, forked: task.parent.is_some(), attributes, program, queue });
    }
    load.queues.values_mut().for_each(|times| times.sort_unstable());
    let recorded = measure.pools(|task, _| recording.tasks.get(task).map(|task| stem(&task.name)));
    Extraction {
        scenario: text::scenario(&load),
        row: load.kernel.row.name.to_owned(),
        release: header.kernel.clone().unwrap_or_default(),
        cpus,
        span: load.span,
        costs: load.costs,
        records: recording.counts.records,
        pools: together(pools, recorded),
        notes: load.notes,
    }
}

/// The pools with their recorded metrics, the busiest first.
fn together(shares: BTreeMap<String, Share>, recorded: Vec<(String, Metrics)>) -> Vec<Pool> {
    let mut recorded: BTreeMap<String, Metrics> = recorded.into_iter().collect();
    let mut pools: Vec<Pool> = shares
        .into_iter()
        .filter_map(|(name, share)| recorded.remove(&name).map(|recorded| Pool { name, share, recorded }))
        .collect();
    pools.sort_by(|a, b| b.recorded.cpu.cmp(&a.recorded.cpu).then_with(|| a.name.cmp(&b.name)));
    pools
}

/// A name for each task: the last that it had, and its pid.
fn names(recording: &Recording) -> Vec<String> {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let name = |task: &Task| {
        let name = format!("{}-{}", word(&task.name), task.pid);
        let count = taken.entry(name.clone()).or_insert(0);
        *count += 1;
        if *count == 1 {
            name
        } else {
            format!("{name}-again{count}")
        }
    };
    recording.tasks.iter().map(name).collect()
}

/// A name that a scenario accepts.
fn word(name: &str) -> String {
    let good = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' };
    match name {
        "" => "task".to_owned(),
        name => name.chars().map(good).take(40).collect(),
    }
}

fn attributes(load: &mut Load, header: &Header, groups: &InitialGroups, task: &Task) -> String {
    let mut lines = String::new();
    let policy = policy(header, task);
    match (task.prio, policy) {
        (..=99, Some("2")) => lines += &format!("policy = \"rr:{}\"\n", (99 - task.prio).clamp(1, 99)),
        (..=99, _) => lines += &format!("policy = \"{}\"\n", text::real_time(task.prio)),
        (_, Some("3")) => lines += "policy = \"batch\"\n",
        (_, Some("5")) => lines += "policy = \"idle\"\n",
        _ => {}
    }
    if task.prio > 99 && task.prio != 120 {
        lines += &format!("nice = {}\n", (task.prio - 120).clamp(-20, 19));
    }
    if task.parent.is_none() && task.forked > 0 {
        lines += &format!("delay = \"{}\"\n", text::show(task.forked));
    }
    let path = match groups.find(task.pid).filter(|_| task.parent.is_none()) {
        Some(GroupName::Cgroup(path)) => path.trim_start_matches('/').to_owned(),
        Some(GroupName::Autogroup(number, _)) if load.kernel.autogroup => format!("session-{number}"),
        _ => return lines,
    };
    if !load.groups.iter().any(|group| group.path == path) {
        load.groups.push(Group { weight: weight(header, groups, task, &path), path: path.clone() });
    }
    lines + &format!("cgroup = \"{path}\"\n")
}

/// The policy that the header gives for a task, by its number.
fn policy<'a>(header: &'a Header, task: &Task) -> Option<&'a str> {
    let pid = task.pid.to_string();
    header.comments.iter().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let found = words.next() == Some("task") && words.next() == Some(&pid) && words.next() == Some("policy");
        found.then(|| words.next()).flatten()
    })
}

fn weight(header: &Header, groups: &InitialGroups, task: &Task, path: &str) -> String {
    if let Some(GroupName::Autogroup(_, nice)) = groups.find(task.pid) {
        return format!("weight-nice = {nice}\n");
    }
    let line = header.comments.iter().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["cgroup", group, file, value] if group.trim_start_matches('/') == path => Some((file, value)),
            _ => None,
        }
    });
    match line {
        Some(("nice", value)) => format!("weight-nice = {value}\n"),
        Some((file @ ("weight" | "shares"), value)) => format!("{file} = {value}\n"),
        _ => String::new(),
    }
}
