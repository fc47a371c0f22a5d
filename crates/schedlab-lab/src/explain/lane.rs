//! One of the runs side by side: its scheduler events CPU by CPU, each preemption with the decision that led to it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use schedlab_model::{CpuId, Nanos};
use schedlab_policy::decision::{Decision, Verdict};
use schedlab_policy::Resched;
use schedlab_sim::{Decided, Detail, Session, SimError};
use schedlab_spec::RunSpec;
use schedlab_trace::{Event, Sink};

use super::item::{Cause, Item};

/// Keeps an instant's events until the lane takes them.
#[derive(Clone, Default)]
pub(super) struct Shelf(Rc<RefCell<Vec<Event>>>);

impl Sink for Shelf {
    fn event(&mut self, event: &Event) {
        if Item::cpu(event).is_some() {
            self.0.borrow_mut().push(*event);
        }
    }
}

/// What of a CPU's events is not compared yet.
#[derive(Default)]
pub(super) struct Row {
    /// Not yet matched.
    pub items: VecDeque<Item>,
    /// When the last matched one was.
    pub matched: Nanos,
    /// Events so far.
    count: u64,
    /// The first request to reschedule in the present turn.
    request: Option<Cause>,
    /// The same of the turn that the last pick ended.
    ended_by: Option<(Nanos, Cause)>,
}

/// A run in progress.
pub(super) struct Lane<'a> {
    pub session: Session<'a, Shelf>,
    pub rows: Vec<Row>,
    /// The CPUs that had events in the last instant.
    pub touched: Vec<CpuId>,
    /// Decisions of the last instant.
    pub decided: Vec<Decided>,
    pub over: bool,
    shelf: Shelf,
}

impl<'a> Lane<'a> {
    pub fn new(spec: &'a RunSpec, sink: &'a mut Shelf) -> Self {
        let shelf = sink.clone();
        let mut session = Session::new(spec, sink);
        session.record(Detail::Decisions);
        let rows = (0..spec.machine.topology.nr_cpus()).map(|_| Row::default()).collect();
        Lane { session, rows, touched: Vec::new(), decided: Vec::new(), over: false, shelf }
    }

    /// When it goes on; never, once it is over.
    pub fn next_time(&self) -> Nanos {
        if self.over {
            return Nanos::MAX;
        }
        // A run that has nothing left must still be told so.
        self.session.next_time().unwrap_or(self.session.now())
    }

    /// Up to when everything of it is known.
    pub fn known_until(&self) -> Nanos {
        if self.over {
            Nanos::MAX
        } else {
            self.session.now()
        }
    }

    /// Overhead of all CPUs so far.
    pub fn overhead(&self) -> Nanos {
        (0..self.rows.len() as u32).map(|cpu| self.session.cpu(CpuId(cpu)).cost).sum()
    }

    /// Goes through the next instant.
    pub fn step(&mut self, cancel: &AtomicBool) -> Result<(), SimError> {
        self.over = self.session.step(cancel)?.is_some();
        self.touched.clear();
        self.decided.clear();
        self.decided.extend(self.session.decided());
        for Decided { decision, .. } in &self.decided {
            self.rows[decision.cpu.index()].note(decision);
        }
        for event in self.shelf.0.borrow_mut().drain(..) {
            let Some(cpu) = Item::cpu(&event) else { continue };
            self.rows[cpu.index()].push(event);
            if !self.touched.contains(&cpu) {
                self.touched.push(cpu);
            }
        }
        Ok(())
    }
}

impl Row {
    /// A pick ends the turn; what was asked first in it is why.
    fn note(&mut self, decision: &Decision) {
        match decision.verdict {
            Verdict::Pick(_) | Verdict::PickGroup(_) => {
                if let Some(cause) = self.request.take() {
                    self.ended_by = Some((decision.now, cause));
                }
            }
            Verdict::Preempt(_) | Verdict::Expire(_) | Verdict::Leave(_) if decision.asked != Resched::No => {
                let cause = self.cause(decision);
                self.request.get_or_insert(cause);
            }
            _ => {}
        }
    }

    fn cause(&self, decision: &Decision) -> Cause {
        let Decision { now: time, verdict, during, asked, .. } = *decision;
        Cause { time, verdict, during, asked, position: self.count }
    }

    fn push(&mut self, event: Event) {
        self.count += 1;
        let mut item = Item { event, cause: None };
        if item.preempts() {
            let picked = self.ended_by.filter(|(picked, _)| *picked == event.time).map(|(_, cause)| cause);
            // Nobody was left to be picked.
            item.cause = picked.or_else(|| self.request.take());
        }
        self.items.push_back(item);
    }
}
