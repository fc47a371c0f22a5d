//! The decision that caused the event at which two runs differ, and the other run's answer to the same question.
//!
//! A decision explains the difference only if the other run decided the same question differently or never had to
//! decide it. If both decisions are the same, the cause is elsewhere.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_policy::decision::{Action, Decision, During};
use schedlab_policy::Feature;
use schedlab_sim::Decided;
use schedlab_spec::RunSpec;
use schedlab_trace::Kind::Switch;
use serde::Serialize;

use super::sched_event::{same_request, SchedEvent};
use super::side_by_side::Mismatch;
use super::stepper::seen;
use super::views::pid_of;

/// The decision that differs between two runs, as a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Whether the tick ends the running task's turn.
    Tick,
    /// Whether the slice timer does.
    Hrtick,
    /// Whether a woken task preempts.
    PreemptCheck,
    /// Whether a throttled task leaves the queue.
    Throttle,
    /// Whether a class, or a deadline reservation, has no runtime left.
    Runtime,
    /// Whether an update of run times ends the turn.
    Accounting,
    /// Which task runs next.
    Pick,
    /// Which task the balancer moves.
    Pull,
    /// Where a woken task runs.
    Placement,
    /// The same, of a task that is still queued in one of the runs.
    DelayedWakeup,
    /// No decision differs: costs alone changed the order of events.
    Order,
}

/// A question that the two runs answered differently.
pub(super) struct DifferingAnswer<'a> {
    pub question: Question,
    /// `None` if the task was woken while still queued, for which no CPU is selected.
    pub decision: Option<&'a Decided>,
    pub answer: Option<&'a Decided>,
}

/// When two decisions on the same question differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compare {
    /// If their outcomes do.
    Outcomes,
    /// Also if they fell at another time, or by another rule: for runs in which every cost is the same.
    Times,
}

/// The question whose answer caused the side's event, if the other run answered it differently.
pub(super) fn find_question<'a>(
    mismatch: &Mismatch,
    side: usize,
    logs: &'a [Vec<Decided>; 2],
    spec: &RunSpec,
    compare: Compare,
) -> Option<DifferingAnswer<'a>> {
    let if_different = |question, own, answer| if_different(question, own, answer, compare);
    let item = mismatch.items[side]?;
    let other = mismatch.items[1 - side];
    let (log, others) = (&logs[side], &logs[1 - side]);
    let at = item.event.time;
    if let Some(cause) = item.cause.filter(|_| item.preempts()) {
        // If the same decision requested both reschedules, the picks differ or the delay until the request was
        // honoured.
        let alike = other.filter(SchedEvent::preempts).and_then(|other| other.cause);
        if !alike.is_some_and(|other| same_request(cause, other) && cause.resched == other.resched) {
            let question = match (cause.during, cause.action) {
                (During::Tick, _) => Question::Tick,
                (During::Hrtick, _) => Question::Hrtick,
                (_, Action::Preempt(_)) => Question::PreemptCheck,
                (_, Action::Leave(_)) => Question::Throttle,
                (_, Action::Throttle(_)) => Question::Runtime,
                _ => Question::Accounting,
            };
            let own =
                log.iter().find(|kept| kept.decision.now == cause.time && kept.decision.action == cause.action)?;
            let turn = turn(others, mismatch.cpu, mismatch.since[1 - side], cause.action);
            return if_different(question, own, answer(turn, &own.decision, question));
        }
    }
    if matches!(item.event.kind, Switch { .. }) {
        return if other.is_some_and(|other| same_prev(&item, &other)) { pick(mismatch, side, logs) } else { None };
    }
    let pid = Some(item.pid());
    let last = |wanted: &dyn Fn(&Decision) -> bool| {
        log.iter().rev().find(|kept| kept.decision.now <= at && pid_of(&kept.decision) == pid && wanted(&kept.decision))
    };
    if let Some(own) = last(&|decision| matches!(decision.action, Action::Pull(..)) && decision.now == at) {
        return if_different(Question::Pull, own, not_pulled(others, &own.decision));
    }
    match last(&|decision| matches!(decision.action, Action::Place(..))) {
        Some(own) => if_different(Question::Placement, own, answer(others, &own.decision, Question::Placement)),
        // A task whose dequeue was delayed is woken where it is queued; no CPU is selected.
        None if seen(spec).kernel.has(Feature::DelayDequeue) => {
            let answer = placed(others, item, at)?;
            Some(DifferingAnswer { question: Question::DelayedWakeup, decision: None, answer: Some(answer) })
        }
        None => None,
    }
}

/// The question, unless the other run decided it alike. If the other run had no such placement at all, the runs differ
/// for another reason.
fn if_different<'a>(
    question: Question,
    own: &'a Decided,
    answer: Option<&'a Decided>,
    compare: Compare,
) -> Option<DifferingAnswer<'a>> {
    let outcome = |d: &Decision| (d.action, d.resched);
    let rule = |d: &Decision| (d.rule, d.feature, d.class);
    let differs = match answer.map(|kept| (&own.decision, &kept.decision)) {
        Some((a, b)) if outcome(a) != outcome(b) => true,
        Some((a, b)) if question == Question::Runtime => rule(a) != rule(b),
        Some((a, b)) => compare == Compare::Times && (rule(a), a.now, a.compared) != (rule(b), b.now, b.compared),
        None => question != Question::Placement,
    };
    differs.then_some(DifferingAnswer { question, decision: Some(own), answer })
}

/// Whether both events switch away from the same task in the same state.
fn same_prev(a: &SchedEvent, b: &SchedEvent) -> bool {
    match (a.event.kind, b.event.kind) {
        (Switch { prev: p, prev_state: s, .. }, Switch { prev: q, prev_state: t, .. }) => (p, s) == (q, t),
        _ => false,
    }
}

/// The first level at which two picks differ. A pick is one decision per level of the group hierarchy, from the root
/// down.
fn pick<'a>(mismatch: &Mismatch, side: usize, logs: &'a [Vec<Decided>; 2]) -> Option<DifferingAnswer<'a>> {
    let [own, other] = [side, 1 - side].map(|side| {
        let at = mismatch.items[side].map_or(0, |item| item.event.time);
        levels(&logs[side], at)
    });
    let (a, b) = own.iter().zip(&other).find(|(a, b)| a.decision.action != b.decision.action)?;
    Some(DifferingAnswer { question: Question::Pick, decision: Some(a), answer: Some(b) })
}

/// The last pick at the time `at`, one decision per level.
fn levels(log: &[Decided], at: Nanos) -> Vec<&Decided> {
    let picks = |kept: &&Decided| {
        kept.decision.now == at && matches!(kept.decision.action, Action::Pick(_) | Action::PickGroup(_))
    };
    let all: Vec<&Decided> = log.iter().filter(picks).collect();
    let root = schedlab_policy::fair::GroupId::ROOT;
    let from = all.iter().rposition(|kept| kept.decision.queue == root).unwrap_or(0);
    all[from..].to_vec()
}

/// The decisions up to the end of the turn that the CPU's last common event left it in: an end of a turn, or a lack of
/// runtime, is decided in the turn or not at all. Other questions are asked at any time.
fn turn(log: &[Decided], cpu: CpuId, since: Nanos, action: Action) -> &[Decided] {
    let (Action::Expire(_) | Action::Leave(_) | Action::Throttle(_)) = action else { return log };
    let running = |kept: &Decided| match kept.decision.action {
        Action::Pick(task) => kept.decision.cpu == cpu && Some(task) != own_task(action),
        _ => false,
    };
    let end = log.iter().position(|kept| kept.decision.now > since && running(kept));
    &log[..end.unwrap_or(log.len())]
}

fn own_task(action: Action) -> Option<TaskId> {
    match action {
        Action::Expire(task) | Action::Leave(task) => Some(task),
        _ => None,
    }
}

/// The other run's answer to the same question: of ticks the one at the same time, otherwise the nearest in time.
fn answer<'a>(log: &'a [Decided], own: &Decision, question: Question) -> Option<&'a Decided> {
    let near = |kept: &&Decided| kept.decision.now.abs_diff(own.now);
    let about = |decision: &Decision| decision.task() == own.task();
    let same = |kept: &&'a Decided| {
        let decision = &kept.decision;
        match question {
            Question::Tick => decision.during == During::Tick && decision.now == own.now && decision.cpu == own.cpu,
            Question::PreemptCheck => {
                matches!(decision.action, Action::Preempt(_) | Action::Keep(_)) && about(decision)
            }
            Question::Accounting | Question::Hrtick | Question::Throttle | Question::Runtime => {
                decision.during == own.during && decision.action == own.action
            }
            Question::Placement => matches!(decision.action, Action::Place(..)) && about(decision),
            Question::Pick | Question::Pull | Question::DelayedWakeup | Question::Order => false,
        }
    };
    log.iter().filter(same).min_by_key(near)
}

/// What the other run's balancing decided at the same time for the same CPU: about the same task, or else what it did
/// instead: another task that it pulled, or why it did not look for any.
fn not_pulled<'a>(log: &'a [Decided], own: &Decision) -> Option<&'a Decided> {
    let here = || log.iter().filter(|kept| kept.decision.now == own.now && kept.decision.cpu == own.cpu);
    let moved = |kept: &&Decided| matches!(kept.decision.action, Action::Pull(..) | Action::Skip(..));
    let about = || here().filter(moved).filter(|kept| kept.decision.task() == own.task());
    // A later pass of the same instant may pull what an earlier one has left.
    let pulled = about().find(|kept| matches!(kept.decision.action, Action::Pull(..)));
    pulled
        .or_else(|| about().next_back())
        .or_else(|| here().find(|kept| matches!(kept.decision.action, Action::Pull(..) | Action::NoNewidle)))
}

/// The other run's placement of the task that is nearest in time.
fn placed(log: &[Decided], item: SchedEvent, at: Nanos) -> Option<&Decided> {
    let same = |kept: &&Decided| {
        matches!(kept.decision.action, Action::Place(..)) && pid_of(&kept.decision) == Some(item.pid())
    };
    log.iter().filter(same).min_by_key(|kept| kept.decision.now.abs_diff(at))
}
