//! Two runs side by side, up to the earliest scheduler event that has no counterpart in the other run.
//!
//! Decisions are compared as well, CPU by CPU. If no decision caused the event, the first pair of decisions that
//! disagree without an event of their own (such as searches of different width) is reported instead.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use schedlab_model::{CpuId, Nanos};
use schedlab_policy::decision::{Action, Decision};
use schedlab_sim::SimError;
use schedlab_spec::RunSpec;
use schedlab_trace::Sink;

use super::sched_event::SchedEvent;
use super::stepper::{CpuEvents, EventBuffer, Stepper};

/// The first event without a counterpart: its CPU and both sides' next events there.
pub(super) struct Mismatch {
    pub cpu: CpuId,
    pub items: [Option<SchedEvent>; 2],
    /// When each run had its last common event of the CPU.
    pub since: [Nanos; 2],
    pub common: u64,
    /// The number of decisions that agree, over all CPUs.
    pub equal: u64,
    /// The first pair of decisions that disagree, up to the mismatch.
    pub first_different: Option<[Decision; 2]>,
}

impl Mismatch {
    /// The side whose event comes first.
    pub fn first(&self) -> usize {
        let time = |side: usize| self.items[side].map_or(Nanos::MAX, |item| item.event.time);
        usize::from(time(1) < time(0))
    }

    pub fn time(&self) -> Nanos {
        self.items.iter().flatten().map(|item| item.event.time).min().unwrap_or(Nanos::MAX)
    }
}

/// The comparison of decisions so far.
#[derive(Default)]
struct Decisions {
    equal: u64,
    /// Per CPU, the first pair that disagrees. Later decisions of that CPU are not compared.
    first_different: Vec<Option<[Decision; 2]>>,
    /// Per CPU, decisions of one run that the other has not reached. Ticks that change nothing are left out.
    pending: Vec<[VecDeque<Decision>; 2]>,
}

/// Runs both specifications side by side; `None` if all scheduler events agree.
pub(super) fn first_mismatch(specs: [&RunSpec; 2], cancel: &AtomicBool) -> Result<Option<Mismatch>, SimError> {
    let [events_a, events_b] = [EventBuffer::default(), EventBuffer::default()];
    let (mut sink_a, mut sink_b) = (events_a.clone(), events_b.clone());
    let [mut sink_a, mut sink_b]: [&mut dyn Sink; 2] = [&mut sink_a, &mut sink_b];
    let mut steppers = [Stepper::new(specs[0], events_a, &mut sink_a), Stepper::new(specs[1], events_b, &mut sink_b)];
    let mut decisions = Decisions::new(steppers[0].cpus.len());
    let (mut found, mut common): (Option<Mismatch>, u64) = (None, 0);
    loop {
        let earlier = usize::from(steppers[1].next_time() < steppers[0].next_time());
        let done = steppers.iter().all(|stepper| stepper.over);
        if !done {
            steppers[earlier].step(cancel)?;
            decisions.compare(&steppers[earlier], earlier);
        }
        for cpu in cpus_to_compare(&steppers[earlier], done) {
            let (matched, mismatch) = compare(&mut steppers, cpu, done);
            common += matched;
            if let Some(mismatch) =
                mismatch.filter(|mismatch| found.as_ref().is_none_or(|known| mismatch.time() < known.time()))
            {
                found = Some(Mismatch { common, ..mismatch });
            }
        }
        if done || found.as_ref().is_some_and(|mismatch| is_earliest(&steppers, mismatch.time())) {
            return Ok(found.map(|mismatch| decisions.up_to(mismatch)));
        }
    }
}

/// The CPUs with new events; all CPUs once both runs are over.
fn cpus_to_compare(stepper: &Stepper<'_>, done: bool) -> Vec<CpuId> {
    match done {
        true => (0..stepper.cpus.len()).map(|cpu| CpuId(cpu as u32)).collect(),
        false => stepper.touched.clone(),
    }
}

/// Removes the events that both runs have and returns their number, with the mismatch if the next events differ. Once
/// both runs are over, one side may have no event left.
fn compare(steppers: &mut [Stepper<'_>; 2], cpu: CpuId, done: bool) -> (u64, Option<Mismatch>) {
    let [a, b] = steppers;
    let (a, b) = (&mut a.cpus[cpu.index()], &mut b.cpus[cpu.index()]);
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
    let differs = if done { items.iter().any(Option::is_some) } else { items.iter().all(Option::is_some) };
    let since = [a.matched, b.matched];
    (common, differs.then_some(Mismatch { cpu, items, since, common: 0, equal: 0, first_different: None }))
}

/// Whether both runs are past `time` and no earlier event still lacks its counterpart.
fn is_earliest(steppers: &[Stepper<'_>; 2], time: Nanos) -> bool {
    steppers.iter().all(|stepper| {
        let pending = |cpu: &CpuEvents| cpu.items.front().is_some_and(|item| item.event.time < time);
        stepper.known_until() >= time && !stepper.cpus.iter().any(pending)
    })
}

impl Decisions {
    fn new(cpus: usize) -> Self {
        Decisions { equal: 0, first_different: vec![None; cpus], pending: vec![Default::default(); cpus] }
    }

    /// Compares the decisions of the stepper's last instant with those of the other run.
    fn compare(&mut self, stepper: &Stepper<'_>, side: usize) {
        let counted = |d: &&Decision| !matches!(d.action, Action::Stay(_)) && !d.is_refused_move();
        for decision in stepper.decided.iter().map(|kept| &kept.decision).filter(counted) {
            let (pending, first_different) =
                (&mut self.pending[decision.cpu.index()], &mut self.first_different[decision.cpu.index()]);
            if first_different.is_some() {
                continue;
            }
            pending[side].push_back(*decision);
            let [a, b] = pending;
            if let (Some(x), Some(y)) = (a.front().copied(), b.front().copied()) {
                match equal(&x, &y) {
                    true => self.equal += 1,
                    false => *first_different = Some([x, y]),
                }
                a.pop_front();
                b.pop_front();
            }
        }
    }

    fn up_to(&self, mismatch: Mismatch) -> Mismatch {
        let before = |pair: &&[Decision; 2]| pair.iter().all(|decision| decision.now <= mismatch.time());
        let earliest = |pair: &&[Decision; 2]| pair[0].now.min(pair[1].now);
        let first_different = self.first_different.iter().flatten().filter(before).min_by_key(earliest).copied();
        Mismatch { equal: self.equal, first_different, ..mismatch }
    }
}

/// Whether both decisions have the same outcome, by whichever rule; searches must also be equally wide.
fn equal(a: &Decision, b: &Decision) -> bool {
    let as_wide = !matches!(a.action, Action::Search(_)) || a.compared[0].1 == b.compared[0].1;
    a.action == b.action && a.resched == b.resched && as_wide
}
