//! One CPU: its pending request, and the check points that its records show.

use std::collections::BTreeMap;

use schedlab_model::{Nanos, Pid};
use schedlab_policy::PreemptModel;
use schedlab_trace::{Kind, TaskState};

use super::score::{Ending, Place, Scores, Unjudged};
use crate::trace::{Entry, What};

/// What determines where a request is honoured.
#[derive(Clone, Copy)]
pub struct Checks {
    pub model: PreemptModel,
    /// The period of the tick.
    pub period: Nanos,
}

/// A request that has not ended in a switch.
#[derive(Clone, Copy)]
struct Request {
    at: Nanos,
    /// Only TIF_NEED_RESCHED_LAZY is set.
    lazy: bool,
    /// Another CPU made it.
    remote: bool,
    /// The task was in kernel mode; `None`: the trace does not show it.
    kernel: Option<bool>,
    /// The tick that upgraded it to a full one.
    upgraded: Option<Nanos>,
    /// Where the next tick is expected.
    tick: Option<Nanos>,
    /// The last check point that honours it.
    due: Option<(Nanos, Place)>,
    /// The same for a full request, which may show only in the charge by `schedule()`.
    due_if_full: Option<(Nanos, Place)>,
    /// A record was emitted in task context since.
    task_ran: bool,
}

impl Request {
    fn becomes_full(&mut self) {
        if std::mem::take(&mut self.lazy) {
            self.due = self.due.or(self.due_if_full);
        }
    }
}

/// A CPU.
#[derive(Default)]
pub struct Cpu {
    pending: Option<Request>,
    current: Pid,
    ticked: Option<Nanos>,
    /// It has been idle since, which may stop the tick.
    idled: bool,
    /// Tasks whose system calls are recorded, and whether they are in one.
    in_call: BTreeMap<Pid, bool>,
}

impl Cpu {
    /// A request that a record shows. `remote`: another CPU emitted it.
    pub fn request(&mut self, checks: Checks, entry: &Entry, remote: bool) {
        if self.pending.is_some() || self.current == 0 {
            return;
        }
        let lazy = checks.model == PreemptModel::Lazy && (remote || !entry.flags.need_resched());
        let kernel = self.in_call.get(&self.current).copied();
        let due = |lazy| (!remote).then(|| checks.due(lazy, kernel, entry, false)).flatten();
        let (due, due_if_full) = (due(lazy), due(false));
        let tick = self.ticked.map(|ticked| match ticked + checks.period {
            next if next > entry.time => next,
            // It is due in this interrupt.
            _ if !self.idled => entry.time,
            next => next + (entry.time - next).next_multiple_of(checks.period),
        });
        self.pending = Some(Request {
            at: entry.time,
            lazy,
            remote,
            kernel,
            upgraded: None,
            tick,
            due,
            due_if_full,
            task_ran: false,
        });
    }

    /// A record of this CPU.
    pub fn record(&mut self, checks: Checks, entry: &Entry, atomic: bool, scores: &mut Scores) {
        if let Some(Kind::Switch { prev, prev_state, next, .. }) = entry.kind() {
            self.switch(checks, entry, prev_state, scores);
            self.in_call.retain(|pid, _| *pid != prev || prev_state != TaskState::Dead);
            self.current = next;
            self.idled |= next == 0;
            return;
        }
        if entry.is_inside() {
            return;
        }
        if self.current == 0 && entry.pid != 0 {
            self.current = entry.pid;
        }
        if entry.flag() {
            let in_schedule = entry.in_task() && matches!(entry.kind(), Some(Kind::Runtime { .. }));
            if in_schedule && self.pending.is_none() {
                // The charge by schedule() itself is the first record that shows it.
                scores.end(entry.time, Ending::Unjudged(Unjudged::Unseen));
                return;
            }
            self.request(checks, entry, false);
            if entry.flags.need_resched() {
                self.pending.iter_mut().for_each(Request::becomes_full);
            }
        } else if entry.is_check_point() {
            self.picked_again(entry.time, scores);
        }
        let Some(request) = &mut self.pending else { return self.follow_call(entry) };
        if !entry.in_task() {
            let due = |lazy| checks.due(lazy, request.kernel, entry, atomic);
            (request.due, request.due_if_full) =
                (due(request.lazy).or(request.due), due(false).or(request.due_if_full));
            return;
        }
        // A charge may be that by schedule().
        request.task_ran |= request.at < entry.time && !matches!(entry.kind(), Some(Kind::Runtime { .. }));
        // schedule() has not begun: a record with preemption enabled shows that the check point did not lead to a
        // switch.
        if entry.is_check_point() {
            let passed = request.due.filter(|(time, _)| *time < entry.time && !request.remote);
            if let Some((_, place)) = passed {
                scores.end(request.at, Ending::Late { place, cpu: entry.cpu, lazy: request.lazy, now: entry.time });
                self.pending = None;
                return self.follow_call(entry);
            }
            request.due = match entry.what {
                What::LeaveCall => Some((entry.time, Place::Call)),
                What::ReschedPoint if !request.lazy && !checks.model.is_preemptible() => {
                    Some((entry.time, Place::Point))
                }
                _ => request.due,
            };
        }
        self.follow_call(entry);
    }

    fn follow_call(&mut self, entry: &Entry) {
        let in_call = match entry.what {
            What::EnterCall => true,
            What::LeaveCall => false,
            _ => return,
        };
        self.in_call.insert(entry.pid, in_call);
        if let Some(request) = &mut self.pending {
            request.kernel = Some(in_call);
        }
    }

    /// The tick, which upgrades a lazy request to a full one.
    pub fn tick(&mut self, checks: Checks, entry: &Entry, scores: &mut Scores) {
        (self.ticked, self.idled) = (Some(entry.time), false);
        if checks.model != PreemptModel::Lazy {
            return;
        }
        let Some(request) = self.pending.as_mut().filter(|request| request.at < entry.time) else { return };
        if request.upgraded.is_some() {
            return;
        }
        if entry.flags.need_resched() && entry.flags.need_resched_lazy() || request.lazy && entry.flags.need_resched() {
            request.upgraded = Some(entry.time);
            request.lazy = false;
            request.due = Some((entry.time, Place::Tick));
        } else if request.lazy && entry.flags.need_resched_lazy() {
            scores.end(request.at, Ending::NotUpgraded { cpu: entry.cpu, now: entry.time });
            self.pending = None;
        }
    }

    /// `schedule()` picked the running task again: no record shows when.
    pub fn picked_again(&mut self, now: Nanos, scores: &mut Scores) {
        if let Some(request) = self.pending.take_if(|request| request.at < now) {
            scores.end(request.at, Ending::Unjudged(Unjudged::PickedAgain));
        }
    }

    fn switch(&mut self, checks: Checks, entry: &Entry, prev_state: TaskState, scores: &mut Scores) {
        let Some(request) = self.pending.take() else { return };
        let recorded = entry.time - request.at;
        let ending = if prev_state != TaskState::Running {
            Ending::Unjudged(Unjudged::Blocked)
        } else if request.lazy && entry.preempts {
            Ending::Early { cpu: entry.cpu, lazy: true, now: entry.time }
        } else if let Some(ticked) = request.upgraded {
            let predicted = request.tick.unwrap_or(ticked).saturating_sub(request.at);
            Ending::Honoured { place: Place::Tick, predicted: Some(predicted), recorded }
        } else if let Some((time, place)) = request.due {
            // Preemption was enabled again after the interrupt.
            let section = place == Place::Interrupt && request.task_ran;
            let place = if section { Place::Section } else { place };
            Ending::Honoured { place, predicted: (!section).then(|| time - request.at), recorded }
        } else if checks.model.is_preemptible() && !request.lazy {
            let place = if request.remote { Place::Interrupt } else { Place::Section };
            Ending::Honoured { place, predicted: None, recorded }
        } else {
            Ending::Unjudged(if request.kernel.is_none() { Unjudged::Context } else { Unjudged::NoCheckPoint })
        };
        scores.end(request.at, ending);
    }
}

impl Checks {
    /// The check point at the end of an interrupt, if it honours the request.
    fn due(self, lazy: bool, kernel: Option<bool>, entry: &Entry, atomic: bool) -> Option<(Nanos, Place)> {
        if entry.in_task() {
            return None;
        }
        let preempts = !lazy && self.model.is_preemptible();
        match kernel {
            _ if atomic => preempts.then_some((entry.time, Place::Section)),
            Some(false) => Some((entry.time, Place::Interrupt)),
            _ => preempts.then_some((entry.time, Place::Interrupt)),
        }
    }
}
