//! The decision on which the slow samples of a metric depend: of the variant whose slowest samples are longer, the
//! waits on their critical paths, and which of the decisions behind them the other variant makes differently for the
//! same samples.
//!
//! Runs of two variants soon differ in many decisions that do not matter to a metric, most of them in the warm-up. This
//! answer starts from the samples instead. Of each wait of a slow one that is longer than in the other run, the first
//! decision that differs is looked up. Waits are then grouped by the rules that decided; the group with the most time
//! is shown by its first sample.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::decision::Decision;
use schedlab_policy::decision_view::ActionKind;
use schedlab_policy::Version;
use schedlab_sim::{Decided, Detail, SimError};
use schedlab_spec::RunSpec;
use schedlab_trace::Sink;
use serde::Serialize;

use super::first_difference::{side_of, snapshot, Side, Snapshot};
use super::question::Question;
use super::samples::{paths, samples, slowest, Counterparts, Sample, SampleId};
use super::sched_event::SchedEvent;
use super::stepper::{seen, EventBuffer, Stepper};
use super::views::{decision_view, pid_of, GroupNames, TaskNames};
use super::waits::{differing, Differing, Wait};

/// Waits that make less than one part in so many of what a sample is longer by do not make it slow.
const LEAST: Nanos = 10;

/// What the slow samples of a metric depend on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MetricDifference {
    /// The metric.
    pub metric: String,
    /// Whether the slowest samples of the second side are the longer ones.
    pub second_slower: bool,
    /// The number of its slowest samples, and of all.
    pub slow: usize,
    /// The number of all of its samples.
    pub samples: usize,
    /// The length from which on a sample is one of the slowest.
    pub from_ns: Nanos,
    /// The mean of the slowest samples, and of their counterparts in the other run.
    pub mean_ns: [Nanos; 2],
    /// How many of them have a counterpart in the other run.
    pub paired: usize,
    /// How many of these counterparts begin at the same moment; the others are those of the same task that begin
    /// nearest.
    pub same_begin: usize,
    /// How many of these wait for a CPU longer than in the other run.
    pub waits: usize,
    /// Why, those with the most time first.
    pub causes: Vec<Cause>,
    /// The first sample of the first cause.
    pub shown: Option<Shown>,
}

/// Waits of slow samples that one pair of rules decided.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cause {
    /// The question.
    pub question: Question,
    /// The rule of the slower run, and that of the other one; `None` if the question did not come up there.
    pub rules: [Option<Rule>; 2],
    /// In how many samples.
    pub samples: usize,
    /// How many waits.
    pub waits: usize,
    /// By how much they waited longer than in the other run.
    pub ns: Nanos,
}

/// A rule, and its outcome.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rule {
    /// What was decided.
    pub action: ActionKind,
    /// By which function.
    pub function: &'static str,
    /// By which feature.
    pub feature: Option<&'static str>,
    /// By which rule.
    pub rule: &'static str,
}

/// One sample, with the decision that differs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shown {
    /// The task of the sample.
    pub sample_pid: Pid,
    /// The task of its counterpart.
    pub other_pid: Pid,
    /// The length of the sample in both runs, in the order of the variants.
    pub ns: [Nanos; 2],
    /// When it ended.
    pub at_ns: [Nanos; 2],
    /// The task that waits: that of the sample, or one that it waits for.
    pub waiter: Pid,
    /// For how long it waits in both runs.
    pub wait_ns: [Nanos; 2],
    /// The CPU of the slower run's decision.
    pub cpu: u32,
    /// What was decided.
    pub question: Question,
    /// The task that the question is about.
    pub pid: Pid,
    /// When the slower run decided.
    pub time_ns: Nanos,
    /// Both sides, in the order of the variants.
    pub sides: [Side; 2],
    /// Both sides decided by the same rule, on different numbers.
    pub same_rule: bool,
    /// The names of all tasks.
    pub tasks: TaskNames,
    /// The paths of all groups.
    pub groups: GroupNames,
}

/// A slow sample, what it waited for and why it does not in the other run.
struct Found {
    samples: [Sample; 2],
    waits: (Wait, Option<Wait>),
    differing: Differing,
}

impl Found {
    fn longer(&self) -> Nanos {
        self.waits.0.ns().saturating_sub(self.waits.1.as_ref().map_or(0, Wait::ns))
    }
}

/// What the slow samples of a metric depend on; `None` if the runs do not both have samples of it.
pub fn explain_metric(
    specs: [&RunSpec; 2],
    metric: &str,
    cancel: &AtomicBool,
) -> Result<Option<MetricDifference>, SimError> {
    let (Some(a), Some(b)) = (samples(specs[0], metric, cancel)?, samples(specs[1], metric, cancel)?) else {
        return Ok(None);
    };
    let all = [a, b];
    let measured =
        |side: usize| all[side].iter().filter(|one| one.at >= specs[side].warmup).copied().collect::<Vec<_>>();
    let measured = [measured(0), measured(1)];
    if measured.iter().any(Vec::is_empty) {
        return Ok(None);
    }
    let slow = measured.each_ref().map(|own| slowest(own));
    let means = slow.each_ref().map(|own| mean(own.iter().map(|one| one.ns)));
    let slower = usize::from(means[1] > means[0]);
    let others = Counterparts::new(&all[1 - slower]);
    let paired: Vec<(Sample, Sample, bool)> =
        slow[slower].iter().filter_map(|own| others.of(own).map(|(other, same)| (*own, other, same))).collect();
    let longer = paired.iter().filter(|(own, other, _)| own.ns > other.ns);
    let pairs: Vec<[Sample; 2]> = longer.map(|(own, other, _)| [*own, *other]).collect();
    let wanted = |of: usize| pairs.iter().map(|pair| (pair[of].id, pair[of].ns)).collect::<BTreeMap<_, _>>();
    let traced =
        [paths(specs[slower], metric, &wanted(0), cancel)?, paths(specs[1 - slower], metric, &wanted(1), cancel)?];
    let found: Vec<Vec<Found>> =
        pairs.iter().map(|pair| longer_waits(*pair, &traced)).filter(|found| !found.is_empty()).collect();
    let versions = [slower, 1 - slower].map(|side| seen(specs[side]).kernel.version);
    let causes = grouped(&found, versions);
    let shown = match causes.first() {
        Some((_, first)) => Some(show(specs, slower, first, cancel)?),
        None => None,
    };
    Ok(Some(MetricDifference {
        metric: metric.to_owned(),
        second_slower: slower == 1,
        slow: slow[slower].len(),
        samples: measured[slower].len(),
        from_ns: slow[slower].last().map_or(0, |one| one.ns),
        mean_ns: [means[slower], mean(paired.iter().map(|(_, other, _)| other.ns))],
        paired: paired.len(),
        same_begin: paired.iter().filter(|(_, _, same)| *same).count(),
        waits: found.len(),
        causes: causes.into_iter().map(|(cause, _)| cause).collect(),
        shown,
    }))
}

fn mean(all: impl Iterator<Item = Nanos>) -> Nanos {
    let (count, sum) = all.fold((0u64, 0u128), |(count, sum), ns| (count + 1, sum + u128::from(ns)));
    if count == 0 {
        0
    } else {
        (sum / u128::from(count)) as Nanos
    }
}

/// The waits of the sample that are longer than the same waits in the other run by a decision that differs; none if
/// they do not make the sample slow.
fn longer_waits(samples: [Sample; 2], traced: &[BTreeMap<SampleId, Vec<Wait>>; 2]) -> Vec<Found> {
    let [own, others] = [0, 1].map(|side| traced[side].get(&samples[side].id).map_or(&[][..], Vec::as_slice));
    let counterpart = |index: usize| {
        let wait = &own[index];
        let nth = own[..index].iter().filter(|before| before.same_kind(wait)).count();
        others.iter().filter(|other| other.same_kind(wait)).nth(nth)
    };
    let found = (0..own.len()).filter_map(|index| {
        let (wait, other) = (&own[index], counterpart(index));
        Some(Found { samples, waits: (wait.clone(), other.cloned()), differing: differing(wait, other)? })
    });
    let found: Vec<Found> = found.filter(|one| one.longer() > 0).collect();
    let extra = samples[0].ns.saturating_sub(samples[1].ns);
    let all: Nanos = found.iter().map(Found::longer).sum();
    if all * LEAST < extra {
        return Vec::new();
    }
    found
}

/// The waits by question and rules, those with the most time first, each with its longest wait of the first sample.
fn grouped<'a>(found: &'a [Vec<Found>], versions: [&'static Version; 2]) -> Vec<(Cause, &'a Found)> {
    let mut groups: Vec<(Cause, &Found)> = Vec::new();
    let mut in_time: Vec<&Found> = found.iter().flatten().collect();
    in_time.sort_by_key(|one| (one.samples[0].at, one.samples[0].id, std::cmp::Reverse(one.longer())));
    let mut last = Vec::new();
    for one in in_time {
        let Differing { question, own, other } = one.differing;
        let rules = [Some(rule(&own, versions[0])), other.map(|other| rule(&other, versions[1]))];
        let known = groups.iter().position(|(cause, _)| cause.question == question && cause.rules == rules);
        let index = known.unwrap_or_else(|| {
            groups.push((Cause { question, rules, samples: 0, waits: 0, ns: 0 }, one));
            last.push(None);
            groups.len() - 1
        });
        let cause = &mut groups[index].0;
        cause.samples += usize::from(last[index].replace(one.samples[0].id) != Some(one.samples[0].id));
        cause.waits += 1;
        cause.ns += one.longer();
    }
    groups.sort_by_key(|(cause, _)| std::cmp::Reverse(cause.ns));
    groups
}

fn rule(decision: &Decision, version: &'static Version) -> Rule {
    let view = decision_view(decision, version);
    Rule { action: view.action, function: view.function, feature: view.feature, rule: view.rule }
}

/// Repeats both runs up to the decisions.
fn show(specs: [&RunSpec; 2], slower: usize, found: &Found, cancel: &AtomicBool) -> Result<Shown, SimError> {
    let Differing { question, own, other } = found.differing;
    let (wait, others) = (&found.waits.0, found.waits.1.as_ref());
    // Where the question did not come up, the state at the beginning of the wait, or of the sample.
    let begin = found.samples[1].begin();
    let moments = [
        (Some(own), own.cpu, own.now),
        match (other, others) {
            (Some(other), _) => (Some(other), other.cpu, other.now),
            (None, Some(wait)) => (None, wait.cpu, wait.from),
            (None, None) => (None, wait.cpu, begin),
        },
    ];
    let mut both = Vec::new();
    let (mut tasks, mut groups) = (TaskNames::new(), GroupNames::new());
    for (which, side) in [slower, 1 - slower].into_iter().enumerate() {
        let (decision, cpu, at) = moments[which];
        let mut state: Snapshot = snapshot(specs[side], cpu, at, cancel)?;
        tasks.append(&mut state.names);
        groups.append(&mut state.groups);
        let (kept, event) = recorded(specs[side], decision, cpu, at, cancel)?;
        both.push(side_of(specs[side], event, kept.as_ref(), state));
    }
    let ordered = |own, other| if slower == 0 { [own, other] } else { [other, own] };
    let [a, b] = [both.remove(0), both.remove(0)];
    let rules = [&a, &b].map(|side| side.decision.as_ref().map(|view| (view.function, view.rule, view.feature)));
    Ok(Shown {
        sample_pid: found.samples[0].id.0,
        other_pid: found.samples[1].id.0,
        ns: ordered(found.samples[0].ns, found.samples[1].ns),
        at_ns: ordered(found.samples[0].at, found.samples[1].at),
        waiter: wait.pid,
        wait_ns: ordered(wait.ns(), others.map_or(0, Wait::ns)),
        cpu: own.cpu.0,
        question,
        pid: pid_of(&own).unwrap_or(wait.pid),
        time_ns: own.now,
        same_rule: rules[0].is_some() && rules[0] == rules[1],
        sides: if slower == 0 { [a, b] } else { [b, a] },
        tasks,
        groups,
    })
}

/// The decision with the queue and the candidates, and the first event of the CPU from then on.
fn recorded(
    spec: &RunSpec,
    decision: Option<Decision>,
    cpu: CpuId,
    at: Nanos,
    cancel: &AtomicBool,
) -> Result<(Option<Decided>, Option<SchedEvent>), SimError> {
    let events = EventBuffer::default();
    let mut sink = events.clone();
    let mut sink: &mut dyn Sink = &mut sink;
    let mut stepper = Stepper::new(spec, events, &mut sink);
    while !stepper.over && stepper.next_time() < at {
        stepper.step(cancel)?;
    }
    stepper.session.record(Detail::Queues);
    stepper.cpus.iter_mut().for_each(|cpu| cpu.items.clear());
    let mut kept = None;
    let mut event = None;
    while !stepper.over && (event.is_none() || stepper.next_time() <= at) {
        stepper.step(cancel)?;
        let same = |one: &Decided| decision.is_some_and(|decision| one.decision == decision);
        kept = kept.or_else(|| stepper.decided.drain(..).find(same));
        event = event.or_else(|| stepper.cpus[cpu.index()].items.pop_front());
    }
    Ok((kept, event))
}
