//! The decision behind the event at which two runs part, and the other run's answer to the same question.
//!
//! A decision counts only if the other run, asked the same, answered otherwise or was not asked at all: where both
//! decided alike, sooner or later, something else parted them.

use schedlab_model::Nanos;
use schedlab_policy::decision::{Decision, During, Verdict};
use schedlab_policy::Feature;
use schedlab_sim::Decided;
use schedlab_spec::RunSpec;
use schedlab_trace::Kind::Switch;

use super::item::{same_decision, Item};
use super::side_by_side::Split;
use super::told::pid_of;

/// A question that the two runs answered differently.
pub(super) struct Answered<'a> {
    pub question: &'static str,
    /// `None`: it was woken in the queue, which nobody decides.
    pub decision: Option<&'a Decided>,
    pub answer: Option<&'a Decided>,
}

/// The question whose answer made the side's event, if the other run answered it otherwise.
pub(super) fn behind<'a>(
    split: &Split,
    side: usize,
    logs: &'a [Vec<Decided>; 2],
    spec: &RunSpec,
) -> Option<Answered<'a>> {
    let item = split.items[side]?;
    let other = split.items[1 - side];
    let (log, others) = (&logs[side], &logs[1 - side]);
    let at = item.event.time;
    if let Some(cause) = item.cause.filter(|_| item.preempts()) {
        // Both were asked to go by the same decision: then the picks differ, or how soon the request was honoured.
        let alike = other.filter(Item::preempts).and_then(|other| other.cause);
        if !alike.is_some_and(|other| same_decision(cause, other) && cause.asked == other.asked) {
            let question = match (cause.during, cause.verdict) {
                (During::Tick, _) => "tick",
                (During::Hrtick, _) => "hrtick",
                (_, Verdict::Preempt(_)) => "preempt_check",
                (_, Verdict::Leave(_)) => "throttle",
                _ => "accounting",
            };
            let own =
                log.iter().find(|kept| kept.decision.now == cause.time && kept.decision.verdict == cause.verdict)?;
            return answered(question, own, answer(others, &own.decision, question));
        }
    }
    if matches!(item.event.kind, Switch { .. }) {
        return if other.is_some_and(|other| leaves_alike(&item, &other)) { pick(split, side, logs) } else { None };
    }
    let pid = Some(item.pid());
    let last = |wanted: &dyn Fn(&Decision) -> bool| {
        log.iter().rev().find(|kept| kept.decision.now <= at && pid_of(&kept.decision) == pid && wanted(&kept.decision))
    };
    if let Some(own) = last(&|decision| matches!(decision.verdict, Verdict::Pull(..)) && decision.now == at) {
        return answered("pull", own, answer(others, &own.decision, "pull"));
    }
    match last(&|decision| matches!(decision.verdict, Verdict::Place(..))) {
        Some(own) => answered("placement", own, answer(others, &own.decision, "placement")),
        // A task that sleeps in the queue is woken there; no CPU is chosen.
        None if spec.kernel.has(Feature::DelayDequeue) => {
            let answer = placed(others, item, at)?;
            Some(Answered { question: "delayed_wakeup", decision: None, answer: Some(answer) })
        }
        None => None,
    }
}

/// Unless the other run decided alike. A placement that the other never had to make was made elsewhere, not here.
fn answered<'a>(question: &'static str, own: &'a Decided, answer: Option<&'a Decided>) -> Option<Answered<'a>> {
    let differs = match answer {
        Some(Decided { decision: other, .. }) => {
            other.verdict != own.decision.verdict || other.asked != own.decision.asked
        }
        None => question != "placement",
    };
    differs.then_some(Answered { question, decision: Some(own), answer })
}

/// Both switch away from the same task in the same state.
fn leaves_alike(a: &Item, b: &Item) -> bool {
    match (a.event.kind, b.event.kind) {
        (Switch { prev: p, prev_state: s, .. }, Switch { prev: q, prev_state: t, .. }) => (p, s) == (q, t),
        _ => false,
    }
}

/// A pick is one decision per level, from the root down: the first level at which the two picks differ.
fn pick<'a>(split: &Split, side: usize, logs: &'a [Vec<Decided>; 2]) -> Option<Answered<'a>> {
    let [own, other] = [side, 1 - side].map(|side| {
        let at = split.items[side].map_or(0, |item| item.event.time);
        levels(&logs[side], at)
    });
    let (a, b) = own.iter().zip(&other).find(|(a, b)| a.decision.verdict != b.decision.verdict)?;
    Some(Answered { question: "pick", decision: Some(a), answer: Some(b) })
}

/// The last pick of an instant, level by level.
fn levels(log: &[Decided], at: Nanos) -> Vec<&Decided> {
    let picks = |kept: &&Decided| {
        kept.decision.now == at && matches!(kept.decision.verdict, Verdict::Pick(_) | Verdict::PickGroup(_))
    };
    let all: Vec<&Decided> = log.iter().filter(picks).collect();
    let root = schedlab_policy::fair::GroupId::ROOT;
    let from = all.iter().rposition(|kept| kept.decision.queue == root).unwrap_or(0);
    all[from..].to_vec()
}

/// The other run's answer to the same question: a tick's at the same time, else the nearest.
fn answer<'a>(log: &'a [Decided], asked: &Decision, question: &str) -> Option<&'a Decided> {
    let near = |kept: &&Decided| kept.decision.now.abs_diff(asked.now);
    let about = |decision: &Decision| decision.task() == asked.task();
    let same = |kept: &&'a Decided| {
        let decision = &kept.decision;
        match question {
            "tick" => decision.during == During::Tick && decision.now == asked.now && decision.cpu == asked.cpu,
            "preempt_check" => matches!(decision.verdict, Verdict::Preempt(_) | Verdict::Keep(_)) && about(decision),
            "accounting" | "hrtick" | "throttle" => {
                decision.during == asked.during && decision.verdict == asked.verdict
            }
            "placement" => matches!(decision.verdict, Verdict::Place(..)) && about(decision),
            "pull" => decision.verdict == asked.verdict && decision.cpu == asked.cpu,
            _ => false,
        }
    };
    log.iter().filter(same).min_by_key(near)
}

/// Where the other run put the task, nearest in time.
fn placed(log: &[Decided], item: Item, at: Nanos) -> Option<&Decided> {
    let same = |kept: &&Decided| {
        matches!(kept.decision.verdict, Verdict::Place(..)) && pid_of(&kept.decision) == Some(item.pid())
    };
    log.iter().filter(same).min_by_key(|kept| kept.decision.now.abs_diff(at))
}
