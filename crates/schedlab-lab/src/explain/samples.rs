//! The samples of a metric in one run, and the waits on the critical path of some of them with their decisions.
//!
//! The counterpart of a sample in the other run is the one that begins at the same moment, as requests do that arrive
//! whether or not earlier ones are done; or else the one of the same task whose beginning is nearest.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use schedlab_model::{KernelId, Nanos, Pid};
use schedlab_policy::decision::{Action, Decision};
use schedlab_sim::{Detail, SimError};
use schedlab_spec::RunSpec;
use schedlab_trace::{Event, Flags, Kind, Sink};

use super::stepper::seen;
use super::waits::{waits, Wait};
use crate::erased::ErasedSession;
use crate::tail::{changes_runtime, note_throttling, Kernel, Names};
use crate::timeline::plan;

/// How many decisions are kept at most while a run advances.
const MAX_DECISIONS: usize = 1 << 20;
/// A request to reschedule may be this much older than the switch that follows.
const REQUEST_AGE: Nanos = 20_000_000;

/// A sample: the task, and how many samples of the metric it has had before.
pub(super) type SampleId = (Pid, u32);

/// One sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sample {
    pub id: SampleId,
    /// When it ended.
    pub at: Nanos,
    pub ns: Nanos,
}

impl Sample {
    pub fn begin(&self) -> Nanos {
        self.at.saturating_sub(self.ns)
    }
}

/// The samples of a run, to look up counterparts.
pub(super) struct Counterparts {
    by_begin: BTreeMap<Nanos, Vec<Sample>>,
    of_task: BTreeMap<Pid, BTreeMap<Nanos, Sample>>,
}

impl Counterparts {
    pub fn new(samples: &[Sample]) -> Self {
        let (mut by_begin, mut of_task) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, BTreeMap<_, _>>::new());
        for sample in samples {
            by_begin.entry(sample.begin()).or_default().push(*sample);
            of_task.entry(sample.id.0).or_default().insert(sample.begin(), *sample);
        }
        Counterparts { by_begin, of_task }
    }

    /// The counterpart of a sample of the other run, and whether both begin at the same moment.
    pub fn of(&self, sample: &Sample) -> Option<(Sample, bool)> {
        let begin = sample.begin();
        let own = self.of_task.get(&sample.id.0);
        if let Some(same) = own.and_then(|own| own.get(&begin)) {
            return Some((*same, true));
        }
        if let Some([only]) = self.by_begin.get(&begin).map(Vec::as_slice) {
            return Some((*only, true));
        }
        let (before, after) = (own?.range(..begin).next_back(), own?.range(begin..).next());
        let nearest = before.into_iter().chain(after).min_by_key(|(at, _)| at.abs_diff(begin))?;
        Some((*nearest.1, false))
    }
}

/// What is measured.
#[derive(Clone, Copy)]
enum Measure {
    /// The metric of this number.
    Metric(u16),
    /// From `sched_waking` to the switch.
    Wakeups,
}

fn measure(spec: &RunSpec, metric: &str) -> Option<Measure> {
    let name = spec.guests.first().map(|guest| format!("{}.", guest.name)).unwrap_or_default();
    if metric.strip_prefix(name.as_str()) == Some("sched.wakeup_latency") {
        return Some(Measure::Wakeups);
    }
    let plan = plan(seen(spec), spec);
    let of = |entry: &schedlab_metrics::MetricEntry| format!("{}.{}", entry.workload, entry.decl.name) == metric;
    plan.metrics.iter().position(of).and_then(|index| u16::try_from(index).ok()).map(Measure::Metric)
}

/// Follows the tasks of one kernel and its samples.
struct Follower {
    id: KernelId,
    measure: Measure,
    tasks: Kernel,
    numbers: BTreeMap<Pid, u32>,
    ended: Vec<Sample>,
    interrupt: bool,
}

impl Follower {
    fn sample(&mut self, at: Nanos, pid: Pid, ns: Nanos) {
        let number = self.numbers.entry(pid).or_default();
        self.ended.push(Sample { id: (pid, *number), at, ns });
        *number += 1;
    }
}

#[derive(Clone)]
struct Shared(Rc<RefCell<Follower>>);

impl Sink for Shared {
    fn event(&mut self, event: &Event) {
        let mut own = self.0.borrow_mut();
        let interrupt = std::mem::take(&mut own.interrupt);
        if event.kernel != own.id {
            return;
        }
        let (now, cpu) = (event.time, event.cpu.index());
        match event.kind {
            Kind::Switch { prev, prev_state, next, .. } => {
                let latency = own.tasks.switch(now, cpu, prev, prev_state, next);
                if let (Some(ns), Measure::Wakeups) = (latency, own.measure) {
                    own.sample(now, next, ns);
                }
            }
            Kind::Waking { pid, .. } => own.tasks.waking(now, cpu, interrupt, pid),
            Kind::Wakeup { pid, target_cpu, .. } => own.tasks.wakeup(now, pid, target_cpu.index(), false),
            Kind::WakeupNew { pid, target_cpu, .. } => own.tasks.wakeup(now, pid, target_cpu.index(), true),
            Kind::Migrate { pid, dest_cpu, .. } => own.tasks.migrate(now, pid, dest_cpu.index()),
            Kind::Sample { pid, metric, value } if matches!(own.measure, Measure::Metric(of) if of == metric) => {
                own.sample(now, pid, value);
            }
            _ => {}
        }
    }

    /// The context of events says whether an interrupt woke a task.
    fn is_trace(&self) -> bool {
        true
    }

    fn takes_trace_only(&self) -> bool {
        false
    }

    fn flags(&mut self, flags: Flags) {
        self.0.borrow_mut().interrupt = flags.in_interrupt();
    }
}

/// All samples; `None` if the run has no such metric.
pub(super) fn samples(spec: &RunSpec, metric: &str, cancel: &AtomicBool) -> Result<Option<Vec<Sample>>, SimError> {
    let Some(measure) = measure(spec, metric) else { return Ok(None) };
    let mut all = Vec::new();
    walk(spec, measure, false, cancel, |_, ended, _| all.extend(ended))?;
    Ok(Some(all))
}

/// The waits on the paths of the samples that are wanted.
pub(super) fn paths(
    spec: &RunSpec,
    metric: &str,
    wanted: &BTreeMap<SampleId, Nanos>,
    cancel: &AtomicBool,
) -> Result<BTreeMap<SampleId, Vec<Wait>>, SimError> {
    let Some(measure) = measure(spec, metric) else { return Ok(BTreeMap::new()) };
    let horizon = wanted.values().max().copied().unwrap_or(0) + REQUEST_AGE;
    let (mut found, mut recent) = (BTreeMap::new(), VecDeque::<Decision>::new());
    walk(spec, measure, true, cancel, |tasks, ended, decided| {
        recent.extend(decided);
        let now = recent.back().map_or(0, |decision| decision.now);
        while recent.len() > MAX_DECISIONS || recent.front().is_some_and(|decision| decision.now + horizon < now) {
            recent.pop_front();
        }
        for sample in ended.into_iter().filter(|sample| wanted.contains_key(&sample.id)) {
            let path = tasks.path(sample.id.0, sample.at.saturating_sub(sample.ns), sample.at, sample.at);
            found.insert(sample.id, waits(&path, sample.id.0, recent.make_contiguous()));
        }
    })?;
    Ok(found)
}

/// Runs the specification; `look` sees after each instant the tasks, the samples that ended in it, and its decisions.
fn walk(
    spec: &RunSpec,
    measure: Measure,
    decisions: bool,
    cancel: &AtomicBool,
    mut look: impl FnMut(&Kernel, Vec<Sample>, Vec<Decision>),
) -> Result<(), SimError> {
    let own = seen(spec);
    let mut tasks = Kernel::new("", own.machine.topology.nr_cpus(), &plan(own, spec), spec.warmup);
    tasks.watches_throttling = decisions;
    let id = KernelId(u16::from(!spec.guests.is_empty()));
    let follower = Follower { id, measure, tasks, numbers: BTreeMap::new(), ended: Vec::new(), interrupt: false };
    let shared = Shared(Rc::new(RefCell::new(follower)));
    let (mut sink, mut names) = (shared.clone(), Names::new());
    let mut sink: &mut dyn Sink = &mut sink;
    let mut session = ErasedSession::new(spec, &mut sink);
    if decisions {
        session.record(Detail::Decisions);
    }
    let mut over = false;
    while !over {
        over = session.step(cancel)?.is_some();
        let decided: Vec<Decision> = session.decided().map(|kept| kept.decision).collect();
        let mut own = shared.0.borrow_mut();
        if decisions {
            let changed = decided.iter().any(|decision| changes_runtime(decision.action));
            note_throttling(&session, changed, &mut own.tasks, &mut names);
        }
        let ended = std::mem::take(&mut own.ended);
        // Ticks that change nothing are many and no answer.
        let counted = |decision: &Decision| !matches!(decision.action, Action::Stay(_) | Action::Search(_));
        look(&own.tasks, ended, decided.into_iter().filter(counted).collect());
    }
    Ok(())
}

/// The slowest samples, the longest first: one in a hundred, but ten if there are as many.
pub(super) fn slowest(samples: &[Sample]) -> Vec<Sample> {
    let mut sorted = samples.to_vec();
    sorted.sort_by_key(|sample| (std::cmp::Reverse(sample.ns), sample.at));
    sorted.truncate((samples.len() / 100).max(10));
    sorted
}
