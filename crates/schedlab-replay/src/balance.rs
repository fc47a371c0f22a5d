//! What a row pulls in a balancing pass (`sched_balance_rq`), and from where, compared with what the kernel pulled.
//!
//! The row is asked at each recorded pass, from where the kernel looks for the busiest group. A pass that finds no
//! imbalance in the kernel and in the row is quiet and counted apart. Otherwise both must pull from the same CPU and
//! move the same tasks. Then the model is put on what the kernel did, by the migrations that follow.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_model::{CpuId, Nanos, Pid, MSEC};
use schedlab_policy::{CpuIdle, PassSituation, Placement};

use crate::count::Count;
use crate::inputs::InputKind;
use crate::model::Model;
use crate::operation::Pass;
use crate::report::BalanceMiss;
use crate::trace::TaskAverages;

/// The time after which a load average from before the trace has decayed to less than a thousandth (it halves in 32
/// ms).
const LOADS_FORGOTTEN: Nanos = 345 * MSEC;

/// The passes of one row.
pub struct Balances {
    from: Nanos,
    limit: usize,
    pub tally: BalanceTally,
}

/// The counts.
#[derive(Clone, Default, Debug)]
pub struct BalanceTally {
    /// Passes in which kernel or row found an imbalance.
    pub all: Count,
    /// Those of them with the same source.
    pub source: Count,
    /// By the state of the pulling CPU.
    pub kinds: BTreeMap<&'static str, Count>,
    /// Passes in which neither found one.
    pub quiet: u64,
    /// The followed load averages of tasks that passes looked at, within 2 of the probed ones.
    pub task_loads: Count,
    pub most_tasks: Count,
    pub never: Count,
    pub unjudged: BTreeMap<(&'static str, &'static str), u64>,
    pub warm_up: u64,
    pub misses: Vec<BalanceMiss>,
}

/// A source and the tasks that are moved from it.
type Pulled = (Option<CpuId>, BTreeSet<Pid>);

impl Balances {
    pub fn new(start: Nanos, warm_up: Nanos, limit: usize) -> Self {
        Balances { from: start + warm_up, limit, tally: BalanceTally::default() }
    }

    /// Adopts the averages of a task that the next pass looks at, and compares its load.
    pub fn take_averages(&mut self, pid: Pid, src: CpuId, shown: &TaskAverages, model: &mut Model) {
        let Some(task) = model.task(pid) else { return };
        let followed = model.fair().entity(task).avg.load_avg;
        self.tally.task_loads.add(model.now(), shown.load_avg.abs_diff(followed) <= 2);
        model.take_task_averages(task, src, shown);
    }

    /// One pass.
    pub fn pass(&mut self, pass: &Pass, now: Nanos, model: &mut Model, kernel: &mut Placement) {
        let kind = kind_name(pass.idle);
        let level = kernel.level(pass.this, pass.imbalance_pct, pass.weight);
        if let Some(level) = level {
            update_group_capacity(pass, level, model, kernel);
        }
        if now < self.from {
            self.tally.warm_up += 1;
            return;
        }
        model.take_cpu_averages();
        let Some(level) = level else {
            return self.leave("the record does not say which domain it balances", kind);
        };
        let clocks = clocks(pass, model);
        let asked = PassSituation {
            this: pass.this,
            idle: pass.idle,
            level,
            nr_balance_failed: pass.failed,
            considered: pass.considered,
            idle_cpus: pass.idle_cpus,
            others: pass.others,
            others_wait: pass.others_wait,
            clocks: &clocks,
            jiffies: pass.jiffies,
        };
        if pass.marks.iter().any(Option::is_some) {
            kernel.set_marks(pass.this, level, pass.marks);
            model.tally.inputs.take(InputKind::GroupMarks);
        }
        let answer = kernel.sched_balance_rq(&model.sched, &asked, &model.pids);
        model.sched.follow().llc_stats(&answer.llc_stats);
        if let Some(src) = pass.src.filter(|_| pass.loads) {
            model.sched.follow().update_cfs_rq_h_load(src, pass.jiffies);
        }
        let theirs: Pulled = (pass.src, pass.moved.iter().collect());
        let ours: Pulled = (answer.src, answer.moved.iter().map(|task| model.pid(*task)).collect());
        if theirs.0.is_none() && ours.0.is_none() {
            self.tally.quiet += 1;
            return;
        }
        if pass.overlapped {
            return self.leave("other CPUs changed their queues meanwhile", kind);
        }
        if pass.found && pass.src.is_none() && ours.0.is_some() && ours.1.is_empty() {
            return self.leave("no record shows the CPU that it looked at", kind);
        }
        if !model.shows_averages() && now < self.from + LOADS_FORGOTTEN {
            return self.leave("it depends on loads from before the recording", kind);
        }
        let (tally, agrees) = (&mut self.tally, theirs == ours);
        tally.all.add(now, agrees);
        tally.source.add(now, theirs.0 == ours.0);
        tally.kinds.entry(kind).or_default().add(now, agrees);
        tally.never.add(now, theirs.0.is_none());
        tally.most_tasks.add(now, theirs == most_tasks(pass, model));
        if !agrees && tally.misses.len() < self.limit {
            tally.misses.push(BalanceMiss {
                time_ns: now,
                kind,
                cpu: pass.this.0,
                kernel: in_words(&theirs),
                model: in_words(&ours),
                imbalance: answer.imbalance,
                failed: pass.failed,
                queues: (0..model.fair().config.nr_cpus as u32).map(|cpu| queue(CpuId(cpu), model)).collect(),
            });
        }
    }

    fn leave(&mut self, reason: &'static str, kind: &'static str) {
        *self.tally.unjudged.entry((reason, kind)).or_default() += 1;
    }
}

/// A newidle pass renews capacities only if the interval of the domain has passed: in the lowest domain a new capacity
/// of the CPU shows that, above it nothing does.
fn update_group_capacity(pass: &Pass, level: usize, model: &mut Model, kernel: &mut Placement) {
    if let Some(capacity) = pass.capacity.filter(|_| level == 0) {
        kernel.set_capacity(pass.this, capacity);
        model.tally.inputs.take(InputKind::PassCapacity);
    }
    if level == 0 || pass.idle != CpuIdle::Newly {
        kernel.update_group_capacity(pass.this, level);
    }
}

/// The clocks of all CPUs as the pass reads them: that of the CPU which it pulls from when it has taken the queue's
/// lock.
fn clocks(pass: &Pass, model: &mut Model) -> Vec<Nanos> {
    let waits = pass.locked_at.saturating_sub(model.now());
    let clock = |cpu| match (pass.src == Some(cpu), pass.src_clock) {
        (true, Some(shown)) => shown,
        (true, None) => model.clock_of(cpu) + waits,
        (false, _) => model.clock_of(cpu),
    };
    let clocks = (0..model.fair().config.nr_cpus as u32).map(|cpu| clock(CpuId(cpu))).collect();
    if pass.src_clock.is_some() {
        model.tally.inputs.take(InputKind::Clock);
    }
    clocks
}

/// A source and its tasks in words.
fn in_words((src, tasks): &Pulled) -> String {
    let tasks: Vec<String> = tasks.iter().map(Pid::to_string).collect();
    match src {
        None => "nothing".to_owned(),
        Some(src) if tasks.is_empty() => format!("none of cpu{}", src.0),
        Some(src) => format!("{} of cpu{}", tasks.join(", "), src.0),
    }
}

/// The simple rule: one task of the CPU with most tasks, if it has two, the one that ran least recently.
fn most_tasks(pass: &Pass, model: &Model) -> Pulled {
    let others = (0..model.fair().config.nr_cpus as u32).map(CpuId).filter(|cpu| *cpu != pass.this);
    let count = |cpu: &CpuId| (model.fair().rq(*cpu).h_nr_running, std::cmp::Reverse(*cpu));
    let Some(src) = others.max_by_key(count).filter(|cpu| model.fair().rq(*cpu).h_nr_running > 1) else {
        return (None, BTreeSet::new());
    };
    let waits = model.fair().cfs_tasks(src).find(|task| model.sched.curr(src) != Some(*task));
    (Some(src), waits.map(|task| model.pid(task)).into_iter().collect())
}

/// A CPU's tasks and averages.
fn queue(cpu: CpuId, model: &Model) -> String {
    let tasks: Vec<String> = model.fair().cfs_tasks(cpu).map(|task| model.pid(task).to_string()).collect();
    let load = model.fair().cpu_load(cpu);
    format!("cpu{}: {} (load {load}, util {})", cpu.0, tasks.join(" "), model.fair().cpu_util_cfs(cpu))
}

fn kind_name(idle: CpuIdle) -> &'static str {
    match idle {
        CpuIdle::Newly => "newidle",
        CpuIdle::Idle => "idle",
        CpuIdle::Not => "busy",
    }
}
