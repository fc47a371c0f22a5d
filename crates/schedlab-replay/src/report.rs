//! The result of a replay as plain data. Every field is part of `schedlab replay --json`.

use serde::Serialize;

use schedlab_model::{Nanos, Pid};

use crate::answer::Answer;
use crate::inputs::InputCount;
use crate::spans::UnjudgedSpan;
use crate::trace::LookAhead;

/// How well one version row decides what a recorded kernel decided.
#[derive(Clone, Serialize, Debug)]
pub struct Report {
    /// The trace.
    pub trace: TraceInfo,
    /// The version row that the trace was replayed under.
    pub row: &'static str,
    /// How much of the trace was followed, where that is bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<Tried>,
    /// The row of the recorded kernel, if it is modelled.
    pub recorded_row: Option<&'static str>,
    /// What replay needs and the trace lacks: with any of it the numbers are not reliable.
    pub missing: Vec<String>,
    /// Settings of the header that the row does not have, and whether it models another release of the series.
    pub refused: Vec<String>,
    /// Length of the warm-up, in which nothing counts.
    pub warm_up_ns: Nanos,
    /// Picks among at least two tasks.
    pub picks: Score,
    /// Decisions whether the running task is rescheduled.
    pub preemptions: Score,
    /// Both, by kind of decision.
    pub kinds: Vec<Part>,
    /// Both, by CPU.
    pub cpus: Vec<Part>,
    /// Both, by nice value of the task that was picked, woken or ticked.
    pub nice: Vec<Part>,
    /// Decisions that cannot be judged, by reason.
    pub unjudged: Vec<Unjudgeable>,
    /// Where they are, the series with most decisions first.
    pub unjudged_spans: Vec<UnjudgedSpan>,
    /// Their share of all decisions.
    pub unjudged_share: f64,
    /// Those of them that no lag explains, or that follow such a decision on their CPU: the state there is wrong.
    pub unexplained: Unexplained,
    /// Those that depend on unknown lags and were used to solve for them: any row explains them.
    pub solved: Unexplained,
    /// Preemption checks that returned at once because need-resched was set: no decisions.
    pub not_asked: u64,
    /// Decisions in the warm-up.
    pub in_warm_up: u64,
    /// Agreement of simple rules on the same decisions.
    pub baselines: Baselines,
    /// The CPUs selected for tasks that wake, fork or exec.
    pub placements: PlacementReport,
    /// What balancing passes pulled, and from where.
    pub balances: BalanceReport,
    /// Where requests to reschedule were honoured, by the recorded preemption model: the same under every row.
    pub resched: ReschedReport,
    /// The model's vruntime against the printed one.
    pub vruntime: VruntimeSteps,
    /// The model's state against probes (EEVDF rows).
    pub state: StateScores,
    /// Tasks.
    pub tasks: TaskCounts,
    /// What the model took from the trace, by kind.
    pub inputs: Vec<InputCount>,
    /// For how many records the reader consulted later ones, by purpose.
    pub look_ahead: Vec<LookCount>,
    /// How often the trace had a task on another CPU or queue than the model.
    pub desyncs: u64,
    /// The first decisions that differ.
    pub disagreements: Vec<Disagreement>,
    /// The explanation that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Answer>,
}

/// A trace.
#[derive(Clone, Serialize, Debug)]
pub struct TraceInfo {
    /// Kernel release.
    pub kernel: Option<String>,
    /// CPUs.
    pub cpus: usize,
    /// Records.
    pub records: u64,
    /// Events that the recorder lost, and one for each gap that only the switches show.
    pub lost: u64,
    /// Ends of wakeups (`sched_wakeup`) that the trace lacks and that were placed by the records around them.
    pub wakeups_placed: u64,
    /// From the first record to the last.
    pub span_ns: Nanos,
    /// Autogroups were on. Those of before the recording are known from the header alone.
    pub sessions: bool,
    /// Tasks for which the header gives a group.
    pub grouped: usize,
}

/// How much of a trace a row was tried on.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
pub struct Tried {
    /// Records that the row followed.
    pub followed: u64,
    /// Records of the parts that were read.
    pub sampled: u64,
    /// Records between these parts.
    pub left_out: u64,
    /// Whether the trace ends with the last part.
    pub to_the_end: bool,
}

/// Unjudged decisions by the side that they belong to.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
pub struct Unexplained {
    /// Picks.
    pub picks: u64,
    /// All other decisions.
    pub preemptions: u64,
}

/// Agreement, with a 95% interval that allows for the dependence of decisions within 10 ms of each other.
#[derive(Clone, Copy, Default, Serialize, Debug)]
pub struct Score {
    /// Judged decisions.
    pub decisions: u64,
    /// Those in which model and kernel agree.
    pub agreed: u64,
    /// Their share; 1 if no decision was judged.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A part of the decisions.
#[derive(Clone, Serialize, Debug)]
pub struct Part {
    /// Kind, CPU or range of nice values.
    pub name: String,
    /// `pick` or `preemption`.
    pub of: &'static str,
    /// Their agreement.
    pub score: Score,
}

/// Decisions that cannot be judged for one reason.
#[derive(Clone, Serialize, Debug)]
pub struct Unjudgeable {
    /// The reason.
    pub reason: &'static str,
    /// The kind of decision.
    pub kind: &'static str,
    /// How many.
    pub count: u64,
}

/// Rules that use no scheduling state.
#[derive(Clone, Copy, Serialize, Debug)]
pub struct Baselines {
    /// Picks: the task that has waited longest; the running task comes last.
    pub fifo: Score,
    /// Picks: the task queued last; the running task comes last.
    pub lifo: Score,
    /// Picks: the running task if it is runnable, else the one that has waited longest.
    pub keep_running: Score,
    /// Picks: the lowest pid.
    pub lowest_pid: Score,
    /// Preemptions: no task is ever preempted.
    pub never_preempts: Score,
}

/// Selections of a CPU (`select_task_rq_fair`) for tasks that may use several.
#[derive(Clone, Default, Serialize, Debug)]
pub struct PlacementReport {
    /// Those that could be judged.
    #[serde(flatten)]
    pub all: Score,
    /// The header describes the topology; otherwise each CPU is taken for a core under one cache.
    pub topology_recorded: bool,
    /// By kind: wakeup, fork, exec.
    pub kinds: Vec<Part>,
    /// By the rule that decided in the model.
    pub rules: Vec<Part>,
    /// Wakeups for which the kernel chose another CPU than the previous one.
    pub moved: Score,
    /// Simple rules on the same selections.
    pub baselines: PlacementBaselines,
    /// Selections that cannot be judged, by reason.
    pub unjudged: Vec<Unjudgeable>,
    /// Selections in the warm-up.
    pub in_warm_up: u64,
    /// Histories of wakeups (`wakee_flips`, `recent_used_cpu`), as followed, equal to the probed ones.
    pub histories: Score,
    /// Load averages of the placed tasks, as followed, within 2 of the probed ones.
    pub task_loads: Score,
    /// The same of their previous CPUs.
    pub cpu_loads: Score,
    /// The first that differ.
    pub disagreements: Vec<PlacementMiss>,
}

/// Rules that look at nothing but which CPUs are idle.
#[derive(Clone, Copy, Default, Serialize, Debug)]
pub struct PlacementBaselines {
    /// The previous CPU.
    pub prev: Score,
    /// The lowest idle CPU; the previous one if none is idle.
    pub lowest_idle: Score,
    /// The CPU of the waker or parent.
    pub waker: Score,
}

/// A selection that differs.
#[derive(Clone, Serialize, Debug)]
pub struct PlacementMiss {
    /// When.
    pub time_ns: Nanos,
    /// The task.
    pub pid: Pid,
    /// wakeup, fork or exec.
    pub kind: &'static str,
    /// WF_SYNC.
    pub sync: bool,
    /// The CPU that selected.
    pub waker_cpu: u32,
    /// The task's previous CPU.
    pub prev_cpu: u32,
    /// The CPUs that were idle, as a list.
    pub idle: String,
    /// The kernel's choice.
    pub kernel: u32,
    /// The model's.
    pub model: u32,
    /// The model's rule.
    pub rule: &'static str,
    /// The numbers that the model compared.
    pub compared: Vec<(&'static str, i64)>,
}

/// Balancing passes (`sched_balance_rq`) in which the kernel or the row found an imbalance. Both must pull from the
/// same CPU and move the same tasks.
#[derive(Clone, Default, Serialize, Debug)]
pub struct BalanceReport {
    /// Those that could be judged.
    #[serde(flatten)]
    pub all: Score,
    /// The same CPU, whatever was moved.
    pub source: Score,
    /// By the state of the pulling CPU: newidle, idle, busy.
    pub kinds: Vec<Part>,
    /// Passes in which neither found an imbalance: not among the decisions.
    pub quiet: u64,
    /// Load averages of the tasks that passes looked at, as followed, within 2 of the probed ones.
    pub task_loads: Score,
    /// The caches that charged tasks and their processes prefer (7.2 and later), where kernel or row changed one since
    /// the task's last charge.
    pub preferences: Score,
    /// Simple rules on the same passes.
    pub baselines: BalanceBaselines,
    /// Passes that cannot be judged, by reason.
    pub unjudged: Vec<Unjudgeable>,
    /// Passes in the warm-up.
    pub in_warm_up: u64,
    /// The first that differ.
    pub disagreements: Vec<BalanceMiss>,
}

/// Rules that look at nothing but the number of tasks.
#[derive(Clone, Copy, Default, Serialize, Debug)]
pub struct BalanceBaselines {
    /// One task of the CPU with most tasks, the one that ran least recently.
    pub most_tasks: Score,
    /// Nothing is pulled.
    pub never: Score,
}

/// A balancing pass that differs.
#[derive(Clone, Serialize, Debug)]
pub struct BalanceMiss {
    /// When.
    pub time_ns: Nanos,
    /// newidle, idle or busy.
    pub kind: &'static str,
    /// The CPU that pulls.
    pub cpu: u32,
    /// What the kernel pulled.
    pub kernel: String,
    /// What the row pulls.
    pub model: String,
    /// The unit of the row's imbalance, and what was left of it.
    pub imbalance: Option<(&'static str, u64)>,
    /// `nr_balance_failed`.
    pub failed: u32,
    /// The tasks of each CPU, the least recently run first, with its averages.
    pub queues: Vec<String>,
}

/// Requests to reschedule, each from its first record to its switch. Both are judged by the preemption model of the
/// recorded kernel.
#[derive(Clone, Default, Serialize, Debug)]
pub struct ReschedReport {
    /// Those that ended where the model says, among all that could be judged.
    #[serde(flatten)]
    pub all: Score,
    /// The model; without one nothing is judged.
    pub model: Option<&'static str>,
    /// The trace shows the entries and returns of system calls.
    pub calls_recorded: bool,
    /// By the check point that honours them.
    pub places: Vec<ReschedPlace>,
    /// Requests that cannot be judged, by reason.
    pub unjudged: Vec<Unjudgeable>,
    /// Requests in the warm-up.
    pub in_warm_up: u64,
    /// The first that differ.
    pub disagreements: Vec<ReschedMiss>,
}

/// Requests that one kind of check point honours.
#[derive(Clone, Serialize, Debug)]
pub struct ReschedPlace {
    /// The check point.
    pub name: &'static str,
    /// How many ended there.
    pub score: Score,
    /// From the request to the check point, where a record or the tick's period shows that.
    pub predicted: Option<Delays>,
    /// From the request to the switch.
    pub recorded: Option<Delays>,
}

/// Nearest-rank quantiles of a time.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
pub struct Delays {
    /// How many.
    pub count: u64,
    /// The median.
    pub p50_ns: Nanos,
    /// The 99% quantile.
    pub p99_ns: Nanos,
    /// The longest.
    pub max_ns: Nanos,
}

/// A request that did not end where the model says.
#[derive(Clone, Serialize, Debug)]
pub struct ReschedMiss {
    /// When that showed.
    pub time_ns: Nanos,
    /// Where.
    pub cpu: u32,
    /// When it was made.
    pub requested_ns: Nanos,
    /// It was a lazy one.
    pub lazy: bool,
    /// What the kernel did.
    pub kernel: String,
    /// What the model says.
    pub model: String,
}

/// Growth of vruntime between two records of a task.
#[derive(Clone, Serialize, Debug)]
pub struct VruntimeSteps {
    /// Compared.
    pub compared: u64,
    /// Equal to the nanosecond.
    pub equal: u64,
    /// Values, not only growth, equal to the nanosecond.
    pub absolute: u64,
    /// The first that differ.
    pub first: Vec<StepMiss>,
}

/// Growth of a vruntime.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
pub struct StepMiss {
    /// Time of the later record.
    pub time_ns: Nanos,
    /// The task.
    pub pid: Pid,
    /// The kernel's.
    pub kernel_step: i64,
    /// The model's.
    pub model_step: i64,
}

/// The model's state against probes, at every event that shows it.
#[derive(Clone, Serialize, Debug)]
pub struct StateScores {
    /// Events at which everything is equal.
    pub events: Score,
    /// vruntime.
    pub vruntime: Score,
    /// Deadline.
    pub deadline: Score,
    /// Lag (`vlag`); while the task runs, what the kernel keeps in its place.
    pub lag: Score,
    /// `zero_vruntime` of the queue.
    pub zero: Score,
    /// The queue's weighted sum of vruntimes.
    pub sum: Score,
    /// The queue's sum of weights.
    pub weight: Score,
    /// The queue's number of entities.
    pub count: Score,
    /// The first that differ.
    pub first: Vec<StateMiss>,
}

/// A piece of state that differs.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
pub struct StateMiss {
    /// When.
    pub time_ns: Nanos,
    /// CPU of the queue.
    pub cpu: u32,
    /// The task.
    pub pid: Pid,
    /// The event that shows it.
    pub event: &'static str,
    /// The field: vruntime, deadline, lag, zero, sum, weight, count.
    pub what: &'static str,
    /// The kernel's number.
    pub kernel: i64,
    /// The model's.
    pub model: i64,
}

/// Tasks of the fair class.
#[derive(Clone, Copy, Serialize, Debug)]
pub struct TaskCounts {
    /// Tasks in the trace.
    pub seen: u64,
    /// State taken from the trace at the first record; the others were forked in the trace or never ran.
    pub taken: u64,
    /// Assumed to be long sleepers, in a trace that shows no task's state, under a CFS row.
    pub guessed: u64,
    /// Lags that the trace does not show, solved for from the kernel's decisions.
    pub solved: u64,
}

/// How often later records were consulted for one purpose.
#[derive(Clone, Copy, Serialize, Debug)]
pub struct LookCount {
    /// The purpose.
    pub purpose: LookAhead,
    /// The purpose in words.
    pub name: &'static str,
    /// For how many records.
    pub records: u64,
}

/// A decision that differs.
#[derive(Clone, Serialize, Debug)]
pub struct Disagreement {
    /// When.
    pub time_ns: Nanos,
    /// Where.
    pub cpu: u32,
    /// Kind: pick, wakeup, fork, tick, update, balance, move.
    pub kind: &'static str,
    /// The kernel's decision.
    pub kernel: String,
    /// The model's.
    pub model: String,
    /// The model's rule.
    pub rule: Option<&'static str>,
    /// The feature behind the rule.
    pub feature: Option<&'static str>,
    /// The numbers the rule compared.
    pub compared: Vec<(&'static str, i64)>,
    /// `min_vruntime` or `zero_vruntime` of the queue.
    pub min_vruntime: u64,
    /// V, the weighted average vruntime (EEVDF rows).
    pub avg_vruntime: Option<u64>,
    /// The runqueue, the running task first: the model's numbers, and the kernel's where the trace shows them.
    pub queue: Vec<Queued>,
}

/// A task of a runqueue.
#[derive(Clone, Serialize, Debug)]
pub struct Queued {
    /// Pid.
    pub pid: Pid,
    /// Name.
    pub name: String,
    /// Nice value.
    pub nice: i8,
    /// It is the running task.
    pub running: bool,
    /// Its dequeue is delayed, or it is blocking.
    pub asleep: bool,
    /// Its state follows from the trace.
    pub known: bool,
    /// vruntime.
    pub vruntime: u64,
    /// vruntime relative to `min_vruntime`.
    pub key: i64,
    /// Virtual lag (EEVDF rows).
    pub lag: Option<i64>,
    /// Deadline (EEVDF rows).
    pub deadline: Option<u64>,
    /// Slice.
    pub slice: Nanos,
    /// Time run since it was picked.
    pub ran: Nanos,
    /// vruntime as the trace last showed it.
    pub kernel_vruntime: Option<u64>,
    /// Deadline as the trace last showed it.
    pub kernel_deadline: Option<u64>,
}
