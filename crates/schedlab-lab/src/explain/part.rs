//! Where two runs part: the first scheduler event, over all CPUs, that only one of them has, and the decision behind it.
//!
//! First both runs go side by side until an event of a CPU has no counterpart ([`super::item`]). Then each is taken
//! again, and the decisions about that CPU since its last common event are kept with the queues as they stood. The
//! decision that made the event is found among the one run's, the answer to the same question among the other's.

use std::sync::atomic::AtomicBool;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::decision::{Decision, During, Verdict};
use schedlab_policy::fair::QueueView;
use schedlab_policy::Feature;
use schedlab_sim::{RunSpec, SimError};
use serde::Serialize;

use super::item::Item;
use super::lane::{Lane, Shelf};
use super::told::{names, pid_of, tell, TaskNames, Told};

/// Where two variants part. Plain data; what cannot be told is left out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Parting {
    /// The CPU.
    pub cpu: u32,
    /// What was asked: `preempt_check`, `tick`, `hrtick`, `accounting`, `pick`, `placement`, `delayed_wakeup`, `pull` or, if no decision
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
    /// Names of the tasks that occur.
    pub tasks: TaskNames,
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
    pub decision: Option<Told>,
    /// The queue as it stood at the decision, or at the other's.
    pub queue: Option<QueueView>,
    /// Overhead of all CPUs up to then.
    pub overhead_ns: Nanos,
}

/// The CPU where two runs part and both sides' events.
struct Split {
    cpu: CpuId,
    items: [Option<Item>; 2],
    /// When each run's last common event of the CPU was.
    since: [Nanos; 2],
    common: u64,
}

/// Runs both specifications side by side; `None` = they never part.
pub fn explain(specs: [&RunSpec; 2], cancel: &AtomicBool) -> Result<Option<Parting>, SimError> {
    let Some(split) = find(specs, cancel)? else { return Ok(None) };
    let first = split.first();
    let at = split.items[first].map_or(0, |item| item.event.time);
    let mut logs = [Vec::new(), Vec::new()];
    let mut looks = [Look::default(), Look::default()];
    for side in 0..2 {
        let until = split.items[side].map_or(at, |item| item.event.time).max(at);
        logs[side] = replay(specs[side], &split, side, until, cancel)?;
    }
    let of = |side: usize| behind(&split, side, &logs[side], specs[side]);
    // Where the earlier event is nobody's decision, the other may be: a CPU that went idle where its twin pulled.
    let (first, (question, decision)) = match (of(first), of(1 - first)) {
        (("order", _), (question, decision)) if question != "order" => (1 - first, (question, decision)),
        (own, _) => (first, own),
    };
    let answer = match (decision, question) {
        (Some((decision, _)), _) => answer(&logs[1 - first], decision, question),
        (None, "delayed_wakeup") => placed(&logs[1 - first], split.items[first], at),
        _ => None,
    };
    let time = decision.map_or(at, |(decision, _)| decision.now);
    for side in 0..2 {
        let moment = if side == first { time } else { answer.map_or(time, |(decision, _)| decision.now) };
        looks[side] = look(specs[side], split.cpu, moment, cancel)?;
    }
    let mut tasks = std::mem::take(&mut looks[0].names);
    tasks.extend(std::mem::take(&mut looks[1].names));
    let sides = [0, 1].map(|side| {
        let own = if side == first { decision } else { answer };
        side_of(specs[side], split.items[side], own, std::mem::take(&mut looks[side]))
    });
    let pid =
        decision.map_or_else(|| split.items[first].map_or(0, |item| item.pid()), |(decision, _)| pid_of(decision));
    Ok(Some(Parting {
        cpu: split.cpu.0,
        question,
        pid,
        time_ns: time,
        common_events: split.common,
        first,
        sides,
        tasks,
    }))
}

impl Split {
    /// The side whose event comes first.
    fn first(&self) -> usize {
        let time = |side: usize| self.items[side].map_or(Nanos::MAX, |item| item.event.time);
        usize::from(time(1) < time(0))
    }

    fn time(&self) -> Nanos {
        self.items.iter().flatten().map(|item| item.event.time).min().unwrap_or(Nanos::MAX)
    }
}

/// Both runs side by side up to the first event without counterpart that no earlier one can precede.
fn find(specs: [&RunSpec; 2], cancel: &AtomicBool) -> Result<Option<Split>, SimError> {
    let mut sinks = [Shelf::default(), Shelf::default()];
    let [sink_a, sink_b] = &mut sinks;
    let mut lanes = [Lane::new(specs[0], sink_a), Lane::new(specs[1], sink_b)];
    let (mut found, mut common): (Option<Split>, u64) = (None, 0);
    loop {
        let behind = usize::from(lanes[1].next_time() < lanes[0].next_time());
        let done = lanes.iter().all(|lane| lane.over);
        if !done {
            lanes[behind].step(cancel)?;
        }
        for cpu in touched(&lanes[behind], done) {
            let (matched, split) = compare(&mut lanes, cpu, done);
            common += matched;
            if let Some(split) = split.filter(|split| found.as_ref().is_none_or(|known| split.time() < known.time())) {
                found = Some(Split { common, ..split });
            }
        }
        if done || found.as_ref().is_some_and(|split| nothing_before(&lanes, split.time())) {
            return Ok(found);
        }
    }
}

/// The CPUs to compare: those with new events; at the end all.
fn touched(lane: &Lane<'_>, done: bool) -> Vec<CpuId> {
    match done {
        true => (0..lane.rows.len()).map(|cpu| CpuId(cpu as u32)).collect(),
        false => lane.touched.clone(),
    }
}

/// Takes off what both have; the events left over if they differ. At the end one side may have none.
fn compare(lanes: &mut [Lane<'_>; 2], cpu: CpuId, done: bool) -> (u64, Option<Split>) {
    let [a, b] = lanes;
    let (a, b) = (&mut a.rows[cpu.index()], &mut b.rows[cpu.index()]);
    let mut common = 0;
    while let (Some(x), Some(y)) = (a.items.front(), b.items.front()) {
        if !x.same(y) {
            break;
        }
        common += 1;
        (a.matched, b.matched) = (x.event.time, y.event.time);
        a.items.pop_front();
        b.items.pop_front();
    }
    let items = [a.items.front().copied(), b.items.front().copied()];
    let parts = if done { items.iter().any(Option::is_some) } else { items.iter().all(Option::is_some) };
    (common, parts.then_some(Split { cpu, items, since: [a.matched, b.matched], common: 0 }))
}

/// Both runs are past the time, and no event before it still waits for its counterpart.
fn nothing_before(lanes: &[Lane<'_>; 2], time: Nanos) -> bool {
    lanes.iter().all(|lane| {
        let pending = |row: &super::lane::Row| row.items.front().is_some_and(|item| item.event.time < time);
        lane.known_until() >= time && !lane.rows.iter().any(pending)
    })
}

type Kept = (Decision, Option<QueueView>);

/// Takes a run again and keeps the decisions about the CPU, or about the event's task, since the last common event.
fn replay(
    spec: &RunSpec,
    split: &Split,
    side: usize,
    until: Nanos,
    cancel: &AtomicBool,
) -> Result<Vec<Kept>, SimError> {
    let mut sink = Shelf::default();
    let mut lane = Lane::new(spec, &mut sink);
    let pids: Vec<Pid> = split.items.iter().flatten().map(Item::pid).collect();
    // A lazy request may be older than the CPU's last event.
    let asked = split.items[side].and_then(|item| item.cause).map_or(Nanos::MAX, |cause| cause.time);
    let since = split.since[side].min(asked);
    let (mut kept, mut views) = (Vec::new(), false);
    while !lane.over && lane.next_time() <= until {
        if !views && lane.next_time() >= since {
            lane.session.record(true);
            views = true;
        }
        lane.step(cancel)?;
        if views {
            let concerns =
                |kept: &Kept| kept.0.cpu == split.cpu || is_placement(&kept.0) && pids.contains(&pid_of(&kept.0));
            kept.extend(lane.decided.drain(..).filter(concerns));
        }
    }
    Ok(kept)
}

fn is_placement(decision: &Decision) -> bool {
    matches!(decision.verdict, Verdict::Place(..) | Verdict::Search(_) | Verdict::Pull(..))
}

/// A run's state at a moment.
#[derive(Default)]
struct Look {
    queue: Option<QueueView>,
    names: TaskNames,
    overhead: Nanos,
}

/// Takes a run again up to just before the moment.
fn look(spec: &RunSpec, cpu: CpuId, moment: Nanos, cancel: &AtomicBool) -> Result<Look, SimError> {
    let mut sink = Shelf::default();
    let mut lane = Lane::new(spec, &mut sink);
    while !lane.over && lane.next_time() < moment {
        lane.step(cancel)?;
    }
    let nr_cpus = lane.rows.len() as u32;
    let overhead = (0..nr_cpus).map(|cpu| lane.session.cpu(CpuId(cpu)).cost).sum();
    let queue = Some(lane.session.queue(cpu));
    // Tasks may be born in the very instant.
    if !lane.over {
        lane.step(cancel)?;
    }
    Ok(Look { queue, names: names(&lane.session), overhead })
}

/// The question whose answer made the event, and the decision.
fn behind<'a>(split: &Split, side: usize, log: &'a [Kept], spec: &RunSpec) -> (&'static str, Option<&'a Kept>) {
    let Some(item) = split.items[side] else { return ("order", None) };
    let other = split.items[1 - side];
    if let (true, Some(cause)) = (item.preempts(), item.cause) {
        let question = match (cause.during, cause.verdict) {
            (During::Tick, _) => "tick",
            (During::Hrtick, _) => "hrtick",
            (_, Verdict::Preempt(_)) => "preempt_check",
            _ => "accounting",
        };
        // Both were asked to go by the same decision: then the picks differ.
        if !other.is_some_and(|other| other.preempts() && other.cause == item.cause) {
            return (question, log.iter().find(|kept| kept.0.now == cause.time && kept.0.verdict == cause.verdict));
        }
    }
    let pid = item.pid();
    let last = |wanted: &dyn Fn(&Decision) -> bool| log.iter().rev().find(|kept| wanted(&kept.0));
    if matches!(item.event.kind, schedlab_trace::Kind::Switch { .. }) {
        let both_switch = other.is_some_and(|other| leaves_alike(&item, &other));
        let picked = last(&|decision| matches!(decision.verdict, Verdict::Pick(_)) && decision.now == item.event.time);
        return if both_switch && picked.is_some() { ("pick", picked) } else { ("order", None) };
    }
    if let Some(pull) =
        last(&|d| matches!(d.verdict, Verdict::Pull(..)) && pid_of(d) == pid && d.now == item.event.time)
    {
        return ("pull", Some(pull));
    }
    match last(&|d| matches!(d.verdict, Verdict::Place(..)) && pid_of(d) == pid && d.now <= item.event.time) {
        Some(place) if other.is_none_or(|other| other.pid() != pid || other.event.kind != item.event.kind) => {
            ("placement", Some(place))
        }
        // A task that sleeps in the queue is woken there; no CPU is chosen.
        None if spec.kernel.has(Feature::DelayDequeue) => ("delayed_wakeup", None),
        _ => ("order", None),
    }
}

/// Both switch away from the same task in the same state.
fn leaves_alike(a: &Item, b: &Item) -> bool {
    use schedlab_trace::Kind::Switch;
    match (a.event.kind, b.event.kind) {
        (Switch { prev: p, prev_state: s, .. }, Switch { prev: q, prev_state: t, .. }) => (p, s) == (q, t),
        _ => false,
    }
}

/// The other run's answer to the same question.
fn answer<'a>(log: &'a [Kept], asked: &Decision, question: &str) -> Option<&'a Kept> {
    let near = |kept: &&Kept| kept.0.now.abs_diff(asked.now);
    let same = |kept: &&'a Kept| {
        let decision = &kept.0;
        match question {
            "tick" => decision.during == During::Tick && decision.now == asked.now && decision.cpu == asked.cpu,
            "preempt_check" => {
                matches!(decision.verdict, Verdict::Preempt(_) | Verdict::Keep(_)) && decision.task() == asked.task()
            }
            "pick" => matches!(decision.verdict, Verdict::Pick(_)),
            "placement" => matches!(decision.verdict, Verdict::Place(..)) && decision.task() == asked.task(),
            _ => false,
        }
    };
    log.iter().filter(same).min_by_key(near)
}

/// Where the other run put the task, nearest in time.
fn placed(log: &[Kept], item: Option<Item>, at: Nanos) -> Option<&Kept> {
    let pid = item.map(|item| item.pid());
    let same = |kept: &&Kept| matches!(kept.0.verdict, Verdict::Place(..)) && Some(pid_of(&kept.0)) == pid;
    log.iter().filter(same).min_by_key(|kept| kept.0.now.abs_diff(at))
}

fn side_of(spec: &RunSpec, item: Option<Item>, decision: Option<&Kept>, look: Look) -> Side {
    let version = spec.kernel.version;
    let told = decision.map(|(decision, _)| tell(decision, None, version));
    Side {
        kernel: version.name,
        hz: spec.kernel.hz,
        preempt: spec.kernel.preempt.to_string(),
        event: item.map(|item| item.event.kind.to_string()),
        event_ns: item.map(|item| item.event.time),
        decision: told,
        queue: decision.and_then(|(_, queue)| queue.clone()).or(look.queue),
        overhead_ns: look.overhead,
    }
}
