//! Where two runs first differ: the first scheduler event, over all CPUs, that only one of them has, and the decision
//! that caused it.
//!
//! Both runs first advance side by side until an event of a CPU has no counterpart ([`super::side_by_side`]). Then each
//! is repeated, and the decisions about that CPU since its last common event are recorded with the state of the queues.
//! The decision that caused the event is looked up in one run, the answer to the same question in the other
//! ([`super::question`]). If all decisions agree, the runs differ only in when things happened ([`super::costs`]).

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::decision::{Action, Decision};
use schedlab_policy::fair::QueueView;
use schedlab_policy::{Feature, FeatureInfo, KernelConfig};
use schedlab_sim::{Decided, Detail, SimError};
use schedlab_spec::RunSpec;
use schedlab_trace::Sink;
use serde::Serialize;

use super::costs::{costs, Costs};
use super::question::{find_question, Compare, DifferingAnswer, Question};
use super::sched_event::SchedEvent;
use super::side_by_side::{first_mismatch, Mismatch};
use super::stepper::{seen, EventBuffer, Stepper};
use super::views::{decision_view, groups, names, pid_of, recorded_view, DecisionView, GroupNames, TaskNames};

/// The first difference between the runs of two variants. Plain data.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FirstDifference {
    /// The CPU that the differing event belongs to.
    pub cpu: u32,
    /// The question that was decided differently.
    pub question: Question,
    /// The task that the question is about.
    pub pid: Pid,
    /// The time of the decision.
    pub time_ns: Nanos,
    /// The number of scheduler events that both runs had before, over all CPUs.
    pub common_events: u64,
    /// The side that has the event, or has it first.
    pub first: usize,
    /// Both sides.
    pub sides: [Side; 2],
    /// The number of earlier decisions that agree, over all CPUs, before and after `first_different`.
    pub equal_decisions: u64,
    /// The first pair of earlier decisions that disagree although no event differed because of them.
    pub first_different: Option<[DecisionView; 2]>,
    /// Both sides decided by the same rule, on different numbers.
    pub same_rule: bool,
    /// How costs changed the order of events, if no decision differs.
    pub costs: Option<Costs>,
    /// The names of all tasks.
    pub tasks: TaskNames,
    /// The paths of all groups.
    pub groups: GroupNames,
}

/// One of the two runs at their first difference.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Side {
    /// The kernel's row.
    pub kernel: &'static str,
    /// HZ.
    pub hz: u32,
    /// The preemption model.
    pub preempt: String,
    /// The control groups of its tasks; `sessions` where autogroup makes one of each workload.
    pub groups: Vec<String>,
    /// Features that differ from the row's defaults, as sched/features shows them.
    pub features: Vec<String>,
    /// The event that differs; `None` if the run has no further event on this CPU.
    pub event: Option<String>,
    /// The time of that event.
    pub event_ns: Option<Nanos>,
    /// The decision; `None` if the question did not come up in this run.
    pub decision: Option<DecisionView>,
    /// The runqueue at the time of the decision, or of the other run's decision.
    pub queue: Option<QueueView>,
    /// The overhead of all CPUs up to then.
    pub overhead_ns: Nanos,
}

/// For how much longer a run continues in search of its answer to a question that the other run has answered.
const ANSWER_WINDOW: Nanos = 100_000_000;

/// Runs both specifications side by side; `None` if all their scheduler events agree.
pub fn explain(specs: [&RunSpec; 2], cancel: &AtomicBool) -> Result<Option<FirstDifference>, SimError> {
    let Some(mismatch) = first_mismatch(specs, cancel)? else { return Ok(None) };
    let mut records = [Vec::new(), Vec::new()];
    for side in 0..2 {
        records[side] = record_decisions(specs[side], &mismatch, side, cancel)?;
    }
    // The earlier event may not follow from a decision while the later one does, as where one CPU goes idle and the
    // other pulls a task.
    let order = [mismatch.first(), 1 - mismatch.first()];
    let find = |compare| {
        let of = |side: usize| Some((side, find_question(&mismatch, side, &records, specs[side], compare)?));
        order.into_iter().find_map(of)
    };
    let found = find(Compare::Outcomes).or_else(|| find(Compare::Times).filter(|_| same_costs(specs)));
    let first = found.as_ref().map_or(mismatch.first(), |(side, _)| *side);
    let item = mismatch.items[first];
    let at = item.map_or(mismatch.time(), |item| item.event.time);
    let (question, decided, answer) = match &found {
        Some((_, DifferingAnswer { question, decision, answer })) => (*question, *decision, *answer),
        None => (Question::Order, None, None),
    };
    let time = decided.map_or(at, |kept| kept.decision.now);
    let mut snapshots = [Snapshot::default(), Snapshot::default()];
    for side in 0..2 {
        let moment = if side == first { time } else { answer.map_or(time, |kept| kept.decision.now) };
        snapshots[side] = snapshot(specs[side], mismatch.cpu, moment, cancel)?;
    }
    let costs = if found.is_none() { Some(costs(specs, &mismatch, ANSWER_WINDOW, cancel)?) } else { None };
    let mut tasks = std::mem::take(&mut snapshots[0].names);
    tasks.extend(std::mem::take(&mut snapshots[1].names));
    let mut groups = std::mem::take(&mut snapshots[0].groups);
    groups.extend(std::mem::take(&mut snapshots[1].groups));
    let sides = [0, 1].map(|side| {
        let own = if side == first { decided } else { answer };
        side_of(specs[side], mismatch.items[side], own, std::mem::take(&mut snapshots[side]))
    });
    let of_event = item.map_or(0, |item| item.pid());
    let pid = decided.and_then(|kept| pid_of(&kept.decision)).unwrap_or(of_event);
    let before = |pair: &[Decision; 2]| decided.is_none() || pair[0].now.min(pair[1].now) < time;
    let first_different = mismatch.first_different.filter(before);
    let (cpu, common_events, equal_decisions) = (mismatch.cpu.0, mismatch.common, mismatch.equal);
    Ok(Some(FirstDifference {
        cpu,
        question,
        pid,
        time_ns: time,
        common_events,
        first,
        same_rule: same_rule(&sides),
        sides,
        equal_decisions,
        first_different: first_different
            .map(|pair| [0, 1].map(|side| decision_view(&pair[side], seen(specs[side]).kernel.version))),
        costs,
        tasks,
        groups,
    }))
}

/// Whether every cost is the same in both runs, so that their times differ only through decisions.
fn same_costs(specs: [&RunSpec; 2]) -> bool {
    let same = |a: &RunSpec, b: &RunSpec| {
        let (x, y) = (&a.kernel, &b.kernel);
        a.machine == b.machine && (x.hz(), x.preempt) == (y.hz(), y.preempt)
    };
    let guests = specs.map(|spec| spec.guests.iter().map(|guest| &guest.run));
    let [a, b] = guests;
    same(specs[0], specs[1]) && specs[0].guests.len() == specs[1].guests.len() && a.zip(b).all(|(a, b)| same(a, b))
}

fn same_rule(sides: &[Side; 2]) -> bool {
    let rule = |side: &Side| side.decision.as_ref().map(|view| (view.function, view.rule, view.feature));
    rule(&sides[0]).is_some() && rule(&sides[0]) == rule(&sides[1])
}

/// Repeats a run and records the decisions about the CPU, or about the event's task, since the last common event. The
/// run continues past its own event because it may answer the question later than the other run.
fn record_decisions(
    spec: &RunSpec,
    mismatch: &Mismatch,
    side: usize,
    cancel: &AtomicBool,
) -> Result<Vec<Decided>, SimError> {
    let events = EventBuffer::default();
    let mut sink = events.clone();
    let mut sink: &mut dyn Sink = &mut sink;
    let mut stepper = Stepper::new(spec, events, &mut sink);
    let pids: Vec<Pid> = mismatch.items.iter().flatten().map(SchedEvent::pid).collect();
    // A lazy reschedule request may be older than the CPU's last event.
    let cause = mismatch.items[side].and_then(|item| item.cause).map_or(Nanos::MAX, |cause| cause.time);
    // The other run's last common event on this CPU may be later than its own answer, which may concern another CPU.
    let since = mismatch.since[0].min(mismatch.since[1]).min(cause);
    let until = mismatch.items.iter().flatten().map(|item| item.event.time).max().unwrap_or(since) + ANSWER_WINDOW;
    let (mut kept, mut views) = (Vec::new(), false);
    while !stepper.over && stepper.next_time() <= until {
        if !views && stepper.next_time() >= since {
            stepper.session.record(Detail::Queues);
            views = true;
        }
        stepper.step(cancel)?;
        if views {
            // The balancer refuses many moves; only those of the moment can answer a question.
            let recent =
                |kept: &Decided| !kept.decision.is_refused_move() || kept.decision.now + ANSWER_WINDOW <= until;
            let concerns = |kept: &Decided| {
                kept.decision.cpu == mismatch.cpu && recent(kept)
                    || is_placement(&kept.decision.action) && pid_of(&kept.decision).is_some_and(|p| pids.contains(&p))
            };
            kept.extend(stepper.decided.drain(..).filter(concerns));
        }
        if kept.len() > MAX_RECORDED {
            break;
        }
    }
    Ok(kept)
}

/// How many decisions of one CPU are recorded at most.
const MAX_RECORDED: usize = 4096;

fn is_placement(action: &Action) -> bool {
    matches!(action, Action::Place(..) | Action::Search(_) | Action::Pull(..))
}

/// The state of a run at one moment.
#[derive(Default)]
pub(super) struct Snapshot {
    queue: Option<QueueView>,
    pub names: TaskNames,
    pub groups: GroupNames,
    overhead: Nanos,
}

/// Repeats a run up to just before the moment.
pub(super) fn snapshot(spec: &RunSpec, cpu: CpuId, moment: Nanos, cancel: &AtomicBool) -> Result<Snapshot, SimError> {
    let events = EventBuffer::default();
    let mut sink = events.clone();
    let mut sink: &mut dyn Sink = &mut sink;
    let mut stepper = Stepper::new(spec, events, &mut sink);
    while !stepper.over && stepper.next_time() < moment {
        stepper.step(cancel)?;
    }
    let overhead = stepper.overhead();
    let queue = Some(stepper.session.queue(cpu));
    // Tasks may be created in that very instant.
    if !stepper.over {
        stepper.step(cancel)?;
    }
    Ok(Snapshot { queue, names: names(&stepper.session), groups: groups(&stepper.session), overhead })
}

/// Where the tasks of a run are.
fn groups_of(spec: &RunSpec) -> Vec<String> {
    let tasks = || spec.workloads.iter().flat_map(|workload| &workload.tasks);
    let paths: BTreeSet<&String> = tasks().filter_map(|task| task.cgroup.as_ref()).collect();
    let sessions = spec.autogroup && tasks().any(|task| task.cgroup.is_none());
    paths.into_iter().cloned().chain(sessions.then(|| "sessions".to_owned())).collect()
}

/// The features that are not as the kernel boots with them.
fn switched(kernel: &KernelConfig) -> Vec<String> {
    let others = Feature::all()
        .iter()
        .filter(|info| info.default_in(kernel.version).is_some_and(|default| default != kernel.has(info.feature)));
    let word =
        |info: &FeatureInfo| if kernel.has(info.feature) { info.name.to_owned() } else { format!("NO_{}", info.name) };
    others.map(word).collect()
}

pub(super) fn side_of(
    spec: &RunSpec,
    item: Option<SchedEvent>,
    decision: Option<&Decided>,
    snapshot: Snapshot,
) -> Side {
    let version = seen(spec).kernel.version;
    let view = decision.map(|kept| recorded_view(kept, version));
    Side {
        kernel: version.name,
        hz: seen(spec).kernel.hz(),
        preempt: seen(spec).kernel.preempt.to_string(),
        groups: groups_of(seen(spec)),
        features: switched(&seen(spec).kernel),
        event: item.map(|item| item.event.kind.to_string()),
        event_ns: item.map(|item| item.event.time),
        decision: view,
        queue: decision.and_then(|kept| kept.queue.clone()).or(snapshot.queue),
        overhead_ns: snapshot.overhead,
    }
}
