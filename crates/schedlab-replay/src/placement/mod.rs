//! The CPU that a row selects for a task that wakes, forks or execs (`select_task_rq_fair`), compared with the
//! kernel's.
//!
//! A selection reads the state of other CPUs without their locks, and the trace does not show all of that state. The
//! selection is repeated with every value that the unknown state may have had (`unknown`). If all results are equal, it
//! is judged. If they differ and none is the kernel's, it counts as a disagreement; if one of them is, it is counted as
//! unjudged.

mod unknown;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schedlab_model::{CpuId, CpuMask, Nanos, Pid, TaskId, MSEC};
use schedlab_policy::{Feature, KernelConfig, Placed, Placement, Situation, WakeKind};

use crate::count::Count;
use crate::inputs::InputKind;
use crate::model::Model;
use crate::operation::{Input, Operation, Select, Switch};
use crate::report::PlacementMiss;
use crate::topology::Machine;

/// The time after which a load average from before the trace has decayed to less than a thousandth (it halves in 32
/// ms).
const LOADS_FORGOTTEN: Nanos = 345 * MSEC;

/// The selections of one row.
pub struct Placements {
    kernel: Placement,
    pub described: bool,
    has_limit: bool,
    /// Searches are limited by times (SIS_PROP).
    has_budget: bool,
    from: Nanos,
    limit: usize,
    /// Tasks whose `wakee_flips` and `recent_used_cpu` are known.
    flips: BTreeSet<Pid>,
    recent: BTreeSet<Pid>,
    /// Tasks of which is known when their flips were halved last.
    decays: BTreeSet<Pid>,
    loads: BTreeSet<Pid>,
    cpu_loads: CpuMask,
    /// When the newidle balancing of each CPU began that is not followed by a switch yet.
    newidle: BTreeMap<CpuId, Nanos>,
    pub tally: PlacementTally,
}

/// The counts.
#[derive(Clone, Default, Debug)]
pub struct PlacementTally {
    pub all: Count,
    /// By kind of selection.
    pub kinds: BTreeMap<&'static str, Count>,
    /// By the row's rule.
    pub rules: BTreeMap<&'static str, Count>,
    /// Wakeups for which the kernel chose another CPU than the previous one.
    pub moved: Count,
    pub prev: Count,
    pub lowest_idle: Count,
    pub waker: Count,
    pub unjudged: BTreeMap<(&'static str, &'static str), u64>,
    pub warm_up: u64,
    /// The followed wakeup histories that equal the probed ones.
    pub histories: Count,
    /// The followed load averages of tasks and CPUs that are within 2 of the probed ones.
    pub loads: Count,
    pub cpu_loads: Count,
    pub misses: Vec<PlacementMiss>,
}

impl Placements {
    pub fn new(config: &KernelConfig, machine: Machine, start: Nanos, warm_up: Nanos, limit: usize) -> Self {
        Placements {
            has_limit: config.has(Feature::SisUtil),
            has_budget: config.has(Feature::SisProp),
            kernel: Placement::new(config, Arc::new(machine.topology)),
            described: machine.described,
            from: start + warm_up,
            limit,
            flips: BTreeSet::new(),
            recent: BTreeSet::new(),
            decays: BTreeSet::new(),
            loads: BTreeSet::new(),
            cpu_loads: CpuMask::default(),
            newidle: BTreeMap::new(),
            tally: PlacementTally::default(),
        }
    }

    /// Follows the records other than selections that change idle CPUs and wakeup histories.
    pub fn follow(&mut self, input: &Input, model: &Model) {
        match input.operation {
            Operation::Switch(Switch { cpu, next, .. }) => {
                let began = self.newidle.remove(&cpu).unwrap_or(input.time);
                if next == 0 {
                    self.kernel.enter_idle(cpu, began);
                }
            }
            Operation::Fork { cpu, parent, child, .. } => {
                let (Some(from), Some(to)) = (model.task(parent), model.task(child)) else { return };
                self.kernel.fork(from, parent, to, child, cpu);
                self.recent.insert(child);
                let known = self.flips.contains(&parent);
                set_known(&mut self.flips, child, known);
                let known = self.decays.contains(&parent);
                set_known(&mut self.decays, child, known);
                self.loads.insert(child);
            }
            Operation::GroupMarks { cpu, ref marks } => {
                for (above, marks) in marks.iter().enumerate() {
                    self.kernel.set_marks(cpu, above + 1, *marks);
                }
            }
            Operation::SetCpuActive { cpu, active } => self.kernel.set_cpu_active(cpu, active, input.time),
            Operation::CpuAverages { cpu, capacity, .. } => self.kernel.set_capacity(cpu, capacity),
            Operation::CpusAllowed { pid, ref allowed } => {
                if let Some(task) = model.task(pid) {
                    self.kernel.set_allowed(task, pid, allowed);
                }
            }
            Operation::Lost => {
                (self.flips, self.recent, self.decays, self.loads) = Default::default();
                self.cpu_loads = CpuMask::default();
            }
            _ => {}
        }
    }

    /// `sched_balance_newidle` sets `idle_stamp` before its first pass. An idle CPU may come there again without a
    /// switch, as where a task that was queued on it was moved away before it ran.
    pub fn note_newidle(&mut self, cpu: CpuId, was_idle: bool, now: Nanos) {
        match was_idle {
            true => self.kernel.enter_idle(cpu, now),
            false => drop(self.newidle.entry(cpu).or_insert(now)),
        }
    }

    /// The machine, with what is known of its tasks.
    pub fn kernel(&mut self) -> &mut Placement {
        &mut self.kernel
    }

    /// One selection.
    pub fn select(&mut self, select: &Select, now: Nanos, model: &mut Model) {
        let Some(task) = model.task(select.pid) else { return };
        let all = *self.kernel.topology().all();
        let allowed = select.state.and_then(|state| state.allowed).unwrap_or(all);
        let mask_unknown = match select.state {
            Some(state) => state.allowed.is_none() && state.nr_cpus_allowed < all.count(),
            None => select.affinity_set,
        };
        self.take_state(select, task, model);
        model.take_cpu_averages();
        let base = self.base(select, allowed, task, model);
        let answers = self.answers(select, &base, model);
        let placed = self.kernel.select_task_rq_fair(&mut model.sched, &base, &model.pids);
        let rule = placed.rule;
        if !rule.precedes_recent_cpu() {
            self.recent.insert(select.pid);
        }
        if allowed.count() < 2 {
            return;
        }
        let kind = kind_name(select.kind);
        let loads_known = select.state.is_some() || now >= self.from + LOADS_FORGOTTEN;
        let reason = match () {
            () if now < self.from => {
                self.tally.warm_up += 1;
                return;
            }
            () if mask_unknown => Some("the CPUs that the task may use are not recorded"),
            () if !loads_known && rule.compares_loads() => Some("it depends on loads from before the recording"),
            () if select.state.is_none() && nearly_equal(&placed) => {
                Some("two loads are nearly equal, and no probe shows them")
            }
            () if answers.len() > 1 && answers.contains(&select.chosen) => Some(self.doubt(select, &base, model)),
            () => None,
        };
        match reason {
            Some(reason) => *self.tally.unjudged.entry((reason, kind)).or_default() += 1,
            None => self.judge(select, now, placed, answers.contains(&select.chosen)),
        }
    }

    fn judge(&mut self, select: &Select, now: Nanos, placed: Placed, agrees: bool) {
        let Placed { cpu, rule, compared } = placed;
        let rule = rule.text();
        let tally = &mut self.tally;
        let lowest_idle = select.idle.lowest().unwrap_or(select.prev);
        tally.all.add(now, agrees);
        tally.kinds.entry(kind_name(select.kind)).or_default().add(now, agrees);
        tally.rules.entry(rule).or_default().add(now, agrees);
        tally.prev.add(now, select.chosen == select.prev);
        tally.lowest_idle.add(now, select.chosen == lowest_idle);
        tally.waker.add(now, select.chosen == select.this);
        if matches!(select.kind, WakeKind::Wakeup { .. }) && select.chosen != select.prev {
            tally.moved.add(now, agrees);
        }
        if !agrees && tally.misses.len() < self.limit {
            tally.misses.push(PlacementMiss {
                time_ns: now,
                pid: select.pid,
                kind: kind_name(select.kind),
                sync: matches!(select.kind, WakeKind::Wakeup { sync: true }),
                waker_cpu: select.this.0,
                prev_cpu: select.prev.0,
                idle: select.idle.to_list(),
                kernel: select.chosen.0,
                model: cpu.0,
                rule,
                compared,
            });
        }
    }

    /// The situation as far as the trace shows it.
    fn base(&self, select: &Select, allowed: CpuMask, task: TaskId, model: &Model) -> Situation {
        let size = self.kernel.topology().llc(select.prev).count() as u32;
        let state = select.state;
        Situation {
            task,
            pid: select.pid,
            prev: select.prev,
            this: select.this,
            kind: select.kind,
            idle: select.idle,
            others: select.others,
            others_wait: select.others_wait,
            allowed,
            nr_idle_scan: state.filter(|_| !self.has_budget).map_or(size, |state| state.nr_idle_scan),
            has_idle_cores: state.map_or(self.kernel.has_idle_cores(select.prev), |state| state.has_idle_cores),
            preferred_node: state.and_then(|state| state.preferred_node),
            kthread: select.kthread,
            in_task: select.in_task,
            now: model.clock_of(select.this),
            jiffies: select.jiffies,
        }
    }

    /// Adopts probed values that are not known yet, and compares the wakeup history.
    fn take_state(&mut self, select: &Select, task: TaskId, model: &mut Model) {
        let Some(state) = select.state else { return };
        model.tally.inputs.take(InputKind::SearchLimit);
        let pid = select.pid;
        let followed = self.kernel.history(task, pid);
        let known = self.flips.contains(&pid) && self.recent.contains(&pid);
        if known {
            self.tally.histories.add(model.now(), followed == Some(state.history));
        }
        if followed != Some(state.history) || !known {
            self.kernel.set_history(task, pid, state.history, model.clock_of(select.this));
            model.tally.inputs.take(InputKind::WakeHistory);
        }
        self.flips.insert(pid);
        self.recent.insert(pid);
        // It is a tick count, which nothing can be compared with where no probe shows the present one.
        if let (Some(jiffies), Some(_)) = (state.flips_decayed, select.jiffies) {
            self.kernel.set_flips_decayed(task, pid, jiffies);
            self.decays.insert(pid);
        }
        if self.loads.insert(pid) {
            model.take_task_load(task, state.load);
            model.take_slice(task, state.slice);
        }
        if !self.cpu_loads.has(select.prev) {
            self.cpu_loads.set(select.prev);
            model.take_cpu_load(select.prev, state.prev_load);
        }
        model.correct_cpu_averages(select.prev, &state);
        self.tally.loads.add(model.now(), state.load.abs_diff(model.fair().entity(task).avg.load_avg) <= 2);
        self.tally.cpu_loads.add(model.now(), state.prev_load.abs_diff(model.fair().cpu_load(select.prev)) <= 2);
    }
}

fn set_known(known: &mut BTreeSet<Pid>, pid: Pid, is_known: bool) {
    match is_known {
        true => known.insert(pid),
        false => known.remove(&pid),
    };
}

fn kind_name(kind: WakeKind) -> &'static str {
    match kind {
        WakeKind::Wakeup { .. } => "wakeup",
        WakeKind::Fork => "fork",
        WakeKind::Exec => "exec",
    }
}

/// Whether the loads that decided (`wake_affine_weight`) differ by less than a tenth.
fn nearly_equal(placed: &Placed) -> bool {
    let load = |of: &str| placed.compared.iter().find(|(name, _)| *name == of).map(|(_, load)| *load);
    let loads = load("waker's").zip(load("previous"));
    loads.is_some_and(|(here, there)| 10 * here.abs_diff(there) < here.max(there).unsigned_abs())
}
