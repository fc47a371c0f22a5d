//! Where two runs part: the first scheduler event, over all CPUs, that only one of them has, and the decision behind it.
//!
//! First both runs go side by side until an event of a CPU has no counterpart ([`super::side_by_side`]). Then each is
//! taken again, and the decisions about that CPU since its last common event are kept with the queues as they stood.
//! The decision that made the event is found among the one run's, the answer to the same question among the other's
//! ([`super::behind`]). If both decided alike, time alone parted them ([`super::costs`]).

use std::sync::atomic::AtomicBool;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::decision::{Decision, Verdict};
use schedlab_policy::fair::QueueView;
use schedlab_sim::{Decided, Detail, SimError};
use schedlab_spec::RunSpec;
use serde::Serialize;

use super::behind::{behind, Answered};
use super::costs::{costs, Costs};
use super::item::Item;
use super::lane::{Lane, Shelf};
use super::side_by_side::{find, Split};
use super::told::{groups, names, pid_of, tell, tell_alone, DecisionView, GroupNames, TaskNames};

/// Where two variants part. Plain data; what cannot be told is left out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Parting {
    /// The CPU.
    pub cpu: u32,
    /// What was asked: `preempt_check`, `tick`, `hrtick`, `accounting`, `throttle`, `pick`, `placement`, `delayed_wakeup`, `pull` or, if no decision
    /// but time itself parts them, `order`.
    pub question: &'static str,
    /// About whom.
    pub pid: Pid,
    /// When the decision fell.
    pub time_ns: Nanos,
    /// Common scheduler events before, over all CPUs.
    pub common_events: u64,
    /// Which side has the event first.
    pub first: usize,
    /// Both sides.
    pub sides: [Side; 2],
    /// Decisions alike up to there, over all CPUs.
    pub alike: u64,
    /// The first unlike decisions before, which made no event differ by themselves.
    pub unlike: Option<[DecisionView; 2]>,
    /// Both sides decided by the same rule: it met other numbers.
    pub same_rule: bool,
    /// What time did, where no decision differs.
    pub costs: Option<Costs>,
    /// Names of the tasks that occur.
    pub tasks: TaskNames,
    /// Paths of the groups.
    pub groups: GroupNames,
}

/// One of the two runs where they part.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Side {
    /// The kernel's row.
    pub kernel: &'static str,
    /// HZ.
    pub hz: u32,
    /// The preemption model.
    pub preempt: String,
    /// The event that differs; `None` if the run has no further event on this CPU.
    pub event: Option<String>,
    /// When it came.
    pub event_ns: Option<Nanos>,
    /// The decision; `None` if this run was not asked.
    pub decision: Option<DecisionView>,
    /// The queue as it stood at the decision, or at the other's.
    pub queue: Option<QueueView>,
    /// Overhead of all CPUs up to then.
    pub overhead_ns: Nanos,
}

/// How much longer a run is followed for its answer to a question that the other has answered.
const PATIENCE: Nanos = 100_000_000;

/// Runs both specifications side by side; `None` = they never part.
pub fn explain(specs: [&RunSpec; 2], cancel: &AtomicBool) -> Result<Option<Parting>, SimError> {
    let Some(split) = find(specs, cancel)? else { return Ok(None) };
    let mut logs = [Vec::new(), Vec::new()];
    for side in 0..2 {
        logs[side] = replay(specs[side], &split, side, cancel)?;
    }
    // Where the earlier event is nobody's decision, the other may be: a CPU that went idle where its twin pulled.
    let order = [split.first(), 1 - split.first()];
    let found = order.iter().find_map(|side| Some((*side, behind(&split, *side, &logs, specs[*side])?)));
    let first = found.as_ref().map_or(split.first(), |(side, _)| *side);
    let item = split.items[first];
    let at = item.map_or(split.time(), |item| item.event.time);
    let (question, asked, answer) = match &found {
        Some((_, Answered { question, decision, answer })) => (*question, *decision, *answer),
        None => ("order", None, None),
    };
    let time = asked.map_or(at, |kept| kept.decision.now);
    let mut looks = [Look::default(), Look::default()];
    for side in 0..2 {
        let moment = if side == first { time } else { answer.map_or(time, |kept| kept.decision.now) };
        looks[side] = look(specs[side], split.cpu, moment, cancel)?;
    }
    let costs = if found.is_none() { Some(costs(specs, &split, PATIENCE, cancel)?) } else { None };
    let mut tasks = std::mem::take(&mut looks[0].names);
    tasks.extend(std::mem::take(&mut looks[1].names));
    let mut groups = std::mem::take(&mut looks[0].groups);
    groups.extend(std::mem::take(&mut looks[1].groups));
    let sides = [0, 1].map(|side| {
        let own = if side == first { asked } else { answer };
        side_of(specs[side], split.items[side], own, std::mem::take(&mut looks[side]))
    });
    let of_event = item.map_or(0, |item| item.pid());
    let pid = asked.and_then(|kept| pid_of(&kept.decision)).unwrap_or(of_event);
    let before = |pair: &[Decision; 2]| asked.is_none() || pair[0].now.min(pair[1].now) < time;
    let unlike = split.unlike.filter(before);
    let (cpu, common_events, alike) = (split.cpu.0, split.common, split.alike);
    Ok(Some(Parting {
        cpu,
        question,
        pid,
        time_ns: time,
        common_events,
        first,
        same_rule: same_rule(&sides),
        sides,
        alike,
        unlike: unlike.map(|pair| [0, 1].map(|side| tell_alone(&pair[side], specs[side].kernel.version))),
        costs,
        tasks,
        groups,
    }))
}

fn same_rule(sides: &[Side; 2]) -> bool {
    let rule = |side: &Side| side.decision.as_ref().map(|told| (told.function, told.rule, told.feature));
    rule(&sides[0]).is_some() && rule(&sides[0]) == rule(&sides[1])
}

/// Takes a run again and keeps the decisions about the CPU, or about the event's task, since the last common event;
/// longer than to its own event, because it may answer later.
fn replay(spec: &RunSpec, split: &Split, side: usize, cancel: &AtomicBool) -> Result<Vec<Decided>, SimError> {
    let mut sink = Shelf::default();
    let mut lane = Lane::new(spec, &mut sink);
    let pids: Vec<Pid> = split.items.iter().flatten().map(Item::pid).collect();
    // A lazy request may be older than the CPU's last event.
    let asked = split.items[side].and_then(|item| item.cause).map_or(Nanos::MAX, |cause| cause.time);
    let since = split.since[side].min(asked);
    let until = split.items.iter().flatten().map(|item| item.event.time).max().unwrap_or(since) + PATIENCE;
    let (mut kept, mut views) = (Vec::new(), false);
    while !lane.over && lane.next_time() <= until {
        if !views && lane.next_time() >= since {
            lane.session.record(Detail::Queues);
            views = true;
        }
        lane.step(cancel)?;
        if views {
            let concerns = |kept: &Decided| {
                kept.decision.cpu == split.cpu
                    || is_placement(&kept.decision.verdict) && pid_of(&kept.decision).is_some_and(|p| pids.contains(&p))
            };
            kept.extend(lane.decided.drain(..).filter(concerns));
        }
        if kept.len() > ENOUGH {
            break;
        }
    }
    Ok(kept)
}

/// Decisions of one CPU that are looked through.
const ENOUGH: usize = 4096;

fn is_placement(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Place(..) | Verdict::Search(_) | Verdict::Pull(..))
}

/// A run's state at a moment.
#[derive(Default)]
struct Look {
    queue: Option<QueueView>,
    names: TaskNames,
    groups: GroupNames,
    overhead: Nanos,
}

/// Takes a run again up to just before the moment.
fn look(spec: &RunSpec, cpu: CpuId, moment: Nanos, cancel: &AtomicBool) -> Result<Look, SimError> {
    let mut sink = Shelf::default();
    let mut lane = Lane::new(spec, &mut sink);
    while !lane.over && lane.next_time() < moment {
        lane.step(cancel)?;
    }
    let overhead = lane.overhead();
    let queue = Some(lane.session.queue(cpu));
    // Tasks may be born in the very instant.
    if !lane.over {
        lane.step(cancel)?;
    }
    Ok(Look { queue, names: names(&lane.session), groups: groups(&lane.session), overhead })
}

fn side_of(spec: &RunSpec, item: Option<Item>, decision: Option<&Decided>, look: Look) -> Side {
    let version = spec.kernel.version;
    let told = decision.map(|kept| tell(kept, version));
    Side {
        kernel: version.name,
        hz: spec.kernel.hz,
        preempt: spec.kernel.preempt.to_string(),
        event: item.map(|item| item.event.kind.to_string()),
        event_ns: item.map(|item| item.event.time),
        decision: told,
        queue: decision.and_then(|kept| kept.queue.clone()).or(look.queue),
        overhead_ns: look.overhead,
    }
}
