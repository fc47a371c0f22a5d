//! The waits of a critical path with the decisions behind each, and in which decision two such waits differ.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::decision::{Action, Decision, During};
use schedlab_policy::fair::GroupId;
use schedlab_policy::Resched;

use super::question::Question;
use super::views::pid_of;
use crate::tail::{Step, What};

/// A task waits for a CPU, from when it was woken or preempted until it runs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Wait {
    pub pid: Pid,
    /// It is the task of the sample.
    own: bool,
    pub cpu: CpuId,
    pub from: Nanos,
    pub until: Nanos,
    /// It was throttled for most of the time.
    throttled: bool,
    /// It was woken; else it was preempted.
    woken: bool,
    /// Where the woken task was placed.
    place: Option<Decision>,
    /// Whether it preempted at its wakeup.
    check: Option<Decision>,
    /// The first pick of another task meanwhile, level by level.
    passed_over: Vec<Decision>,
    /// The pick that ended the wait, level by level.
    picked: Vec<Decision>,
    /// What requested the reschedule that ended the wait.
    ended: Option<Decision>,
    /// What requested the reschedule that began it, if it was preempted.
    began: Option<Decision>,
    /// What took the runtime away.
    throttle: Option<Decision>,
}

/// A decision, and the other run's on the same question.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Differing {
    pub question: Question,
    pub own: Decision,
    /// `None`: the question did not come up on the path of the sample.
    pub other: Option<Decision>,
}

impl Wait {
    pub fn ns(&self) -> Nanos {
        self.until - self.from
    }

    /// Whether both are waits of one task, or of the tasks of the samples, for the same reason.
    pub fn same_kind(&self, other: &Wait) -> bool {
        self.woken == other.woken && (self.own && other.own || self.pid == other.pid)
    }
}

/// The waits of a path whose last interval comes first, in order of time. `decisions` are in order of time.
pub(super) fn waits(path: &[Step], of: Pid, decisions: &[Decision]) -> Vec<Wait> {
    let mut found = Vec::new();
    let mut steps = path.iter().rev().peekable();
    let mut before: Option<&Step> = None;
    while let Some(first) = steps.next() {
        let mut stays = vec![first.stay];
        if is_wait(first) {
            while let Some(more) = steps.next_if(|step| step.pid == first.pid && is_wait(step)) {
                stays.push(more.stay);
            }
            let preempted = before.is_some_and(|step| step.pid == first.pid && matches!(step.stay.what, What::Ran(_)));
            let wait = wait(first.pid, &stays, !preempted, decisions);
            found.extend(wait.map(|wait| Wait { own: first.pid == of, ..wait }));
        }
        before = Some(first);
    }
    found
}

fn is_wait(step: &Step) -> bool {
    matches!(step.stay.what, What::Waited(_) | What::Throttled(_))
}

fn wait(pid: Pid, stays: &[crate::tail::Stay], woken: bool, decisions: &[Decision]) -> Option<Wait> {
    let cpus = stays.iter().filter_map(|stay| match stay.what {
        What::Waited(cpu) => Some((stay.until - stay.from, cpu)),
        _ => None,
    });
    let cpu = CpuId(u32::try_from(cpus.max()?.1).ok()?);
    let (from, until) = (stays.first()?.from, stays.last()?.until);
    let throttled: Nanos =
        stays.iter().filter(|stay| matches!(stay.what, What::Throttled(_))).map(|stay| stay.until - stay.from).sum();
    let near = &decisions[..decisions.partition_point(|decision| decision.now <= until)];
    let inside = &near[near.partition_point(|decision| decision.now < from)..];
    // It may have been woken before the path reached it, but after it last ran, and is not woken again while it waits.
    let of_task = |decision: &&Decision| woken && pid_of(decision) == Some(pid);
    let ran = |decision: &&Decision| decision.now < from && matches!(decision.action, Action::Pick(_));
    let ran = near.iter().rev().filter(of_task).find(ran).map(|decision| decision.now);
    let since = |decision: &&Decision| ran.is_none_or(|ran| decision.now > ran);
    let last = |wanted: &dyn Fn(&Action) -> bool| {
        near.iter().rev().filter(of_task).filter(since).find(|d| wanted(&d.action)).copied()
    };
    let here = |decision: &&Decision| decision.cpu == cpu;
    let other = inside.iter().filter(here).find(|decision| {
        matches!(decision.action, Action::Pick(_)) && pid_of(decision) != Some(pid) && decision.now < until
    });
    let before = &near[..near.partition_point(|decision| decision.now <= from)];
    Some(Wait {
        pid,
        own: false,
        cpu,
        from,
        until,
        throttled: 2 * throttled > until - from,
        woken,
        place: last(&|action| matches!(action, Action::Place(..))),
        check: last(&|action| matches!(action, Action::Preempt(_) | Action::Keep(_))),
        passed_over: other.map(|pick| levels(inside, cpu, pick.now)).unwrap_or_default(),
        picked: levels(inside, cpu, until),
        ended: inside.iter().rev().filter(here).find(requests).copied(),
        began: before.iter().rev().filter(here).find(requests).copied().filter(|_| !woken),
        throttle: near.iter().rev().find(|d| d.cpu == cpu && matches!(d.action, Action::Throttle(_))).copied(),
    })
}

/// Whether it requests a reschedule of its CPU.
fn requests(decision: &&Decision) -> bool {
    let action =
        matches!(decision.action, Action::Preempt(_) | Action::Expire(_) | Action::Leave(_) | Action::Throttle(_));
    action && decision.resched != Resched::No
}

/// The last pick of a CPU at a moment, from the root down.
fn levels(decisions: &[Decision], cpu: CpuId, at: Nanos) -> Vec<Decision> {
    let picks =
        |d: &&Decision| d.now == at && d.cpu == cpu && matches!(d.action, Action::Pick(_) | Action::PickGroup(_));
    let all: Vec<Decision> = decisions.iter().filter(picks).copied().collect();
    let from = all.iter().rposition(|decision| decision.queue == GroupId::ROOT).unwrap_or(0);
    all[from..].to_vec()
}

/// The first decision behind a wait that the other run makes differently. `other` is the wait of the same task for the
/// same reason, if there is one.
pub(super) fn differing(own: &Wait, other: Option<&Wait>) -> Option<Differing> {
    if own.throttled {
        let other = other.filter(|wait| wait.throttled).and_then(|wait| wait.throttle);
        return own.throttle.map(|own| Differing { question: Question::Runtime, own, other });
    }
    let Some(other) = other else {
        let own = own.began.or(own.check)?;
        return Some(Differing { question: question(&own), own, other: None });
    };
    let both = |question, a: Option<Decision>, b: Option<Decision>, differ: &dyn Fn(&Decision, &Decision) -> bool| {
        let (own, answer) = (a?, b?);
        differ(&own, &answer).then_some(Differing { question, own, other: Some(answer) })
    };
    let outcome = |a: &Decision, b: &Decision| !same_kind_of_action(a, b) || a.resched != b.resched;
    // Different tasks have different previous CPUs.
    let elsewhere = |a: &Decision, b: &Decision| target(a) != target(b) && (own.pid == other.pid || a.rule != b.rule);
    let place = both(Question::Placement, own.place, other.place, &elsewhere);
    place
        .or_else(|| both(Question::PreemptCheck, own.check, other.check, &outcome))
        .or_else(|| picks(own, other))
        .or_else(|| began(own, other))
        .or_else(|| {
            // Both are kept, or neither has to be: what ended the turn of the task that ran.
            let ended = own.ended.filter(|_| own.ns() > other.ns())?;
            let rules = |a: &Decision, b: &Decision| (a.rule, a.compared, a.now) != (b.rule, b.compared, b.now);
            both(question(&ended), Some(ended), other.ended, &rules)
        })
        .or_else(|| {
            let own = own.check.filter(|_| other.check.is_none())?;
            Some(Differing { question: Question::PreemptCheck, own, other: None })
        })
}

/// Another task was picked while this one waited; in the other run this one was picked first.
fn picks(own: &Wait, other: &Wait) -> Option<Differing> {
    if own.passed_over.is_empty() || !other.passed_over.is_empty() {
        return None;
    }
    let (a, b) = own.passed_over.iter().zip(&other.picked).find(|(a, b)| a.action != b.action)?;
    Some(Differing { question: Question::Pick, own: *a, other: Some(*b) })
}

/// Both were preempted, by different decisions.
fn began(own: &Wait, other: &Wait) -> Option<Differing> {
    let (own, answer) = (own.began?, other.began?);
    let differ = !same_kind_of_action(&own, &answer) || own.rule != answer.rule;
    differ.then_some(Differing { question: question(&own), own, other: Some(answer) })
}

/// Whether both decide the same, of whichever tasks.
fn same_kind_of_action(a: &Decision, b: &Decision) -> bool {
    std::mem::discriminant(&a.action) == std::mem::discriminant(&b.action)
}

/// The CPU that a placement selects.
fn target(decision: &Decision) -> Option<CpuId> {
    match decision.action {
        Action::Place(_, cpu) => Some(cpu),
        _ => None,
    }
}

fn question(decision: &Decision) -> Question {
    match (decision.during, decision.action) {
        (During::Tick, _) => Question::Tick,
        (During::Hrtick, _) => Question::Hrtick,
        (_, Action::Preempt(_) | Action::Keep(_)) => Question::PreemptCheck,
        (_, Action::Leave(_)) => Question::Throttle,
        (_, Action::Throttle(_)) => Question::Runtime,
        (_, Action::Place(..)) => Question::Placement,
        (_, Action::Pick(_) | Action::PickGroup(_)) => Question::Pick,
        _ => Question::Accounting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tail::Stay;
    use schedlab_model::TaskId;
    use schedlab_policy::decision::{Class, Function};

    fn decision(now: Nanos, action: Action) -> Decision {
        Decision {
            now,
            cpu: CpuId(0),
            class: Class::Fair,
            queue: GroupId::ROOT,
            by: None,
            action,
            during: During::Wakeup,
            decided_by: Function::Usual,
            resched: Resched::No,
            rule: "",
            feature: None,
            compared: [("", 0); 2],
        }
    }

    #[test]
    fn the_preemption_check_of_an_earlier_wakeup_is_not_that_of_this_one() {
        let task = TaskId(6);
        let earlier = [decision(10, Action::Preempt(task)), decision(11, Action::Pick(task))];
        let stays = [Stay { from: 50, until: 52, what: What::Waited(0) }];
        // It is woken on an idle CPU: nothing is decided.
        assert_eq!(wait(7, &stays, true, &earlier).unwrap().check, None);
        let own = decision(49, Action::Keep(task));
        let all = [earlier[0], earlier[1], own];
        assert_eq!(wait(7, &stays, true, &all).unwrap().check, Some(own));
    }
}
