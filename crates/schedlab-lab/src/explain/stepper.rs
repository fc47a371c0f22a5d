//! A run that is advanced instant by instant: its scheduler events per CPU, each preemption with the decision that
//! requested it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::decision::{Action, Decision};
use schedlab_policy::Resched;
use schedlab_sim::{Decided, Detail, SimError};
use schedlab_spec::RunSpec;
use schedlab_trace::{Event, Kind, Sink};

use crate::erased::ErasedSession;

use super::sched_event::{Cause, SchedEvent};

/// Holds the scheduler events of one instant until the stepper collects them.
#[derive(Clone, Default)]
pub(super) struct EventBuffer(Rc<RefCell<Vec<Event>>>);

impl Sink for EventBuffer {
    fn event(&mut self, event: &Event) {
        if SchedEvent::cpu(event).is_some() || matches!(event.kind, Kind::Waking { .. }) {
            self.0.borrow_mut().push(*event);
        }
    }
}

/// The scheduler events of one CPU that have not been compared yet.
#[derive(Default)]
pub(super) struct CpuEvents {
    /// Events without a counterpart so far.
    pub items: VecDeque<SchedEvent>,
    /// The time of the last event that had a counterpart.
    pub matched: Nanos,
    /// The number of events so far.
    count: u64,
    /// The first reschedule request since the current task was picked.
    request: Option<Cause>,
    /// The time of the last pick and the first reschedule request before it.
    ended_by: Option<(Nanos, Cause)>,
}

/// What the run whose decisions are explained is: the specification itself, or that of the first guest.
pub(super) fn seen(spec: &RunSpec) -> &RunSpec {
    spec.guests.first().map_or(spec, |guest| &guest.run)
}

/// A run in progress, advanced by [`Stepper::step`].
pub(super) struct Stepper<'a> {
    pub session: ErasedSession<'a>,
    pub cpus: Vec<CpuEvents>,
    /// The CPUs that had scheduler events in the last instant.
    pub touched: Vec<CpuId>,
    /// The decisions of the last instant.
    pub decided: Vec<Decided>,
    /// The tasks that were woken in the last instant (`sched_waking`).
    pub woken: Vec<Pid>,
    pub over: bool,
    buffer: EventBuffer,
}

impl<'a> Stepper<'a> {
    /// `sink` is the sink of `buffer`.
    pub fn new(spec: &RunSpec, buffer: EventBuffer, sink: &'a mut &'a mut dyn Sink) -> Self {
        let mut session = ErasedSession::new(spec, sink);
        session.record(Detail::Decisions);
        let cpus = (0..seen(spec).machine.topology.nr_cpus()).map(|_| CpuEvents::default()).collect();
        Stepper { session, cpus, touched: Vec::new(), decided: Vec::new(), woken: Vec::new(), over: false, buffer }
    }

    /// The time of the next instant; [`Nanos::MAX`] once the run is over.
    pub fn next_time(&mut self) -> Nanos {
        if self.over {
            return Nanos::MAX;
        }
        // One more step ends a run that has no event left.
        self.session.next_time().unwrap_or(self.session.now())
    }

    /// The time up to which all events of the run are known.
    pub fn known_until(&self) -> Nanos {
        if self.over {
            Nanos::MAX
        } else {
            self.session.now()
        }
    }

    /// The overhead of all CPUs so far.
    pub fn overhead(&self) -> Nanos {
        (0..self.cpus.len() as u32).map(|cpu| self.session.cpu(CpuId(cpu)).cost).sum()
    }

    /// Handles the next instant.
    pub fn step(&mut self, cancel: &AtomicBool) -> Result<(), SimError> {
        self.over = self.session.step(cancel)?.is_some();
        self.touched.clear();
        self.woken.clear();
        self.decided.clear();
        self.decided.extend(self.session.decided());
        for Decided { decision, .. } in &self.decided {
            self.cpus[decision.cpu.index()].note(decision);
        }
        let kernel = self.session.kernel_id();
        for event in self.buffer.0.borrow_mut().drain(..) {
            if event.kernel != kernel {
                continue;
            }
            if let Kind::Waking { pid, .. } = event.kind {
                self.woken.push(pid);
            }
            let Some(cpu) = SchedEvent::cpu(&event) else { continue };
            self.cpus[cpu.index()].push(event);
            if !self.touched.contains(&cpu) {
                self.touched.push(cpu);
            }
        }
        Ok(())
    }
}

impl CpuEvents {
    /// Records reschedule requests. The first one since the last pick is the reason for the next pick.
    fn note(&mut self, decision: &Decision) {
        match decision.action {
            Action::Pick(_) | Action::PickGroup(_) => {
                if let Some(cause) = self.request.take() {
                    self.ended_by = Some((decision.now, cause));
                }
            }
            Action::Preempt(_) | Action::Expire(_) | Action::Leave(_) | Action::Throttle(_)
                if decision.resched != Resched::No =>
            {
                let cause = self.cause(decision);
                self.request.get_or_insert(cause);
            }
            _ => {}
        }
    }

    fn cause(&self, decision: &Decision) -> Cause {
        let Decision { now: time, action, during, resched, .. } = *decision;
        Cause { time, action, during, resched, position: self.count }
    }

    fn push(&mut self, event: Event) {
        self.count += 1;
        let mut item = SchedEvent { event, cause: None };
        if item.preempts() {
            let picked = self.ended_by.filter(|(picked, _)| *picked == event.time).map(|(_, cause)| cause);
            // There was no pick because no task was left in the queue.
            item.cause = picked.or_else(|| self.request.take());
        }
        self.items.push_back(item);
    }
}
