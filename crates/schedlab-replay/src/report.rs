//! The result of a replay as plain data.

use serde::Serialize;

use schedlab_model::{Nanos, Pid};

use crate::explain::Answer;
use crate::tally::{Count, Field, Kind, Tally, Unjudged};

/// How well one version row decides what a recorded kernel decided.
#[derive(Clone, Serialize, Debug)]
pub struct Report {
    /// The trace.
    pub trace: TraceInfo,
    /// The version row that was asked.
    pub row: &'static str,
    /// The row of the kernel that was recorded, if it is modelled.
    pub recorded_row: Option<&'static str>,
    /// What of the trace's header the row does not follow: settings it does not have, another release of its series.
    pub refused: Vec<String>,
    /// Nothing in the first so many ns counts.
    pub warm_up_ns: Nanos,
    /// Picks among at least two tasks.
    pub picks: Score,
    /// Decisions whether the running task must go.
    pub preemptions: Score,
    /// Both, by kind of decision.
    pub kinds: Vec<Part>,
    /// Both, by CPU.
    pub cpus: Vec<Part>,
    /// Both, by class of the task picked, woken or ticked.
    pub classes: Vec<Part>,
    /// Decisions that could not be judged, and why.
    pub unjudged: Vec<Unjudgeable>,
    /// Their share of all decisions.
    pub unjudged_share: f64,
    /// Preempt checks that the kernel left at once because need-resched was set; they are no decisions.
    pub not_asked: u64,
    /// Decisions before the end of the warm-up.
    pub in_warm_up: u64,
    /// What simple rules reach on the same decisions.
    pub baselines: Baselines,
    /// vruntime against the printed one.
    pub vruntime: VruntimeSteps,
    /// vruntime and deadline against probes, under EEVDF rows.
    pub state: StateScores,
    /// Tasks.
    pub tasks: TaskCounts,
    /// Times the trace had a task where the model had not.
    pub out_of_step: u64,
    /// The first decisions that differ.
    pub disagreements: Vec<Disagreement>,
    /// The moment that was asked about.
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
    /// Events that the recorder lost.
    pub lost: u64,
    /// From the first record to the last.
    pub span_ns: Nanos,
    /// Sessions are groups; those that began before the trace are known by its header alone.
    pub sessions: bool,
    /// Tasks that the header places in their groups.
    pub placed: usize,
}

/// Agreement, with its 95% Wilson interval.
#[derive(Clone, Copy, Serialize, Debug)]
pub struct Score {
    /// How many decisions were judged.
    pub decisions: u64,
    /// How many were the kernel's.
    pub agreed: u64,
    /// Their share; 1 if there were none.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A part of the decisions.
#[derive(Clone, Serialize, Debug)]
pub struct Part {
    /// Which.
    pub name: String,
    /// `pick` or `preemption`.
    pub of: &'static str,
    /// How they scored.
    pub score: Score,
}

/// Decisions that could not be judged for one reason.
#[derive(Clone, Serialize, Debug)]
pub struct Unjudgeable {
    /// The reason.
    pub reason: &'static str,
    /// The kind of decision.
    pub kind: &'static str,
    /// How many.
    pub count: u64,
}

/// Rules without a scheduler.
#[derive(Clone, Copy, Serialize, Debug)]
pub struct Baselines {
    /// Picks: who waited longest; the running task counts as last.
    pub fifo: Score,
    /// Picks: the lowest pid.
    pub lowest_pid: Score,
    /// Preemptions: nobody ever preempts.
    pub never_preempts: Score,
}

/// Steps of vruntime between two records of a task.
#[derive(Clone, Serialize, Debug)]
pub struct VruntimeSteps {
    /// How many were compared.
    pub compared: u64,
    /// How many were equal to the nanosecond.
    pub equal: u64,
    /// How many values were equal, not only steps.
    pub absolute: u64,
    /// The first that differ.
    pub first: Vec<StepMiss>,
}

/// A step of vruntime.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
pub struct StepMiss {
    /// When it ended.
    pub time_ns: Nanos,
    /// Whose.
    pub pid: Pid,
    /// The kernel's.
    pub kernel_step: i64,
    /// The model's.
    pub model_step: i64,
}

/// State against probes, at every event that shows it.
#[derive(Clone, Serialize, Debug)]
pub struct StateScores {
    /// Events with everything equal.
    pub events: Score,
    /// vruntime.
    pub vruntime: Score,
    /// Deadline.
    pub deadline: Score,
    /// Lag, while the entity has one of its own; while it runs, the protection marker.
    pub lag: Score,
    /// The queue's zero point.
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
    /// On whose queue.
    pub cpu: u32,
    /// Whose.
    pub pid: Pid,
    /// The event that shows it.
    pub event: &'static str,
    /// What: vruntime, deadline, lag, zero, sum, weight, count.
    pub what: &'static str,
    /// The kernel's number.
    pub kernel: i64,
    /// The model's.
    pub model: i64,
}

/// Tasks of the fair class.
#[derive(Clone, Copy, Serialize, Debug)]
pub struct TaskCounts {
    /// Seen.
    pub seen: u64,
    /// State taken from the trace at first sight; the others were forked in the trace or never ran.
    pub taken: u64,
    /// Taken for long sleepers, in a trace that shows no task's state, under a row of CFS.
    pub guessed: u64,
    /// Lags unknown at first sight, solved for from the kernel's decisions.
    pub solved: u64,
}

/// A decision that differs.
#[derive(Clone, Serialize, Debug)]
pub struct Disagreement {
    /// When.
    pub time_ns: Nanos,
    /// Where.
    pub cpu: u32,
    /// What was decided: pick, wakeup, fork, tick, update, balance.
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
    /// The queue's zero point.
    pub min_vruntime: u64,
    /// V, under EEVDF rows.
    pub avg_vruntime: Option<u64>,
    /// The runqueue, the running task first: the model's numbers and the kernel's where they were shown.
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
    /// It has the CPU.
    pub running: bool,
    /// It sleeps in the queue, or is just leaving.
    pub asleep: bool,
    /// Its state follows from the trace.
    pub known: bool,
    /// vruntime.
    pub vruntime: u64,
    /// The same from the queue's zero point.
    pub key: i64,
    /// Virtual lag, under EEVDF rows.
    pub lag: Option<i64>,
    /// Deadline, under EEVDF rows.
    pub deadline: Option<u64>,
    /// Slice now.
    pub slice: Nanos,
    /// Time run since it got the CPU last.
    pub ran: Nanos,
    /// vruntime as the kernel showed it last.
    pub kernel_vruntime: Option<u64>,
    /// Deadline likewise.
    pub kernel_deadline: Option<u64>,
}

impl Score {
    /// A count as a score.
    pub(crate) fn of(count: Count) -> Score {
        let (share, low, high) = wilson(count.agreed, count.decisions);
        Score { decisions: count.decisions, agreed: count.agreed, share, low, high }
    }
}

/// Share and 95% Wilson interval of `agreed` among `all`.
fn wilson(agreed: u64, all: u64) -> (f64, f64, f64) {
    if all == 0 {
        return (1.0, 0.0, 1.0);
    }
    let (n, z) = (all as f64, 1.959_963_984_540_054_f64);
    let p = agreed as f64 / n;
    let (z2, scale) = (z * z, 1.0 + z * z / n);
    let centre = (p + z2 / (2.0 * n)) / scale;
    let half = z / scale * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    (p, (centre - half).max(0.0), (centre + half).min(1.0))
}

impl Report {
    /// A tally as a report.
    pub(crate) fn new(
        trace: TraceInfo,
        row: &'static str,
        recorded_row: Option<&'static str>,
        refused: Vec<String>,
        warm_up_ns: Nanos,
        tally: Tally,
    ) -> Report {
        let side = |pick: bool| if pick { "pick" } else { "preemption" };
        let part = |name: String, pick: bool, count: &Count| Part { name, of: side(pick), score: Score::of(*count) };
        let kinds = tally.kinds.iter().map(|(kind, count)| part(kind.name().into(), *kind == Kind::Pick, count));
        let cpus = tally.cpus.iter().map(|((cpu, pick), count)| part(format!("cpu{cpu}"), *pick, count));
        let classes = tally.classes.iter().map(|((class, pick), count)| part((*class).into(), *pick, count));
        let (picks, preemptions) = (tally.total(true), tally.total(false));
        let field = |field| Score::of(tally.states.get(&field).copied().unwrap_or_default());
        let unjudged: u64 = tally.unjudged.values().sum();
        let all = picks.decisions + preemptions.decisions + unjudged;
        let baselines = Baselines {
            fifo: Score::of(tally.fifo),
            lowest_pid: Score::of(tally.lowest_pid),
            never_preempts: Score::of(tally.never),
        };
        Report {
            trace,
            row,
            recorded_row,
            refused,
            warm_up_ns,
            picks: Score::of(picks),
            preemptions: Score::of(preemptions),
            kinds: kinds.collect(),
            cpus: cpus.collect(),
            classes: classes.collect(),
            unjudged: tally.unjudged.iter().map(|((why, kind), count)| unjudgeable(*why, *kind, *count)).collect(),
            unjudged_share: if all == 0 { 0.0 } else { unjudged as f64 / all as f64 },
            not_asked: tally.not_asked,
            in_warm_up: tally.warm_up,
            baselines,
            vruntime: VruntimeSteps {
                compared: tally.steps.compared,
                equal: tally.steps.equal,
                absolute: tally.steps.absolute,
                first: tally.steps.first,
            },
            state: StateScores {
                events: Score::of(tally.shown),
                vruntime: field(Field::Vruntime),
                deadline: field(Field::Deadline),
                lag: field(Field::Lag),
                zero: field(Field::Zero),
                sum: field(Field::Sum),
                weight: field(Field::Weight),
                count: field(Field::Count),
                first: tally.state_misses,
            },
            tasks: TaskCounts {
                seen: tally.tasks.seen,
                taken: tally.tasks.taken,
                guessed: tally.tasks.guessed,
                solved: tally.tasks.solved,
            },
            out_of_step: tally.out_of_step,
            disagreements: tally.disagreements,
            explanation: None,
        }
    }
}

fn unjudgeable(why: Unjudged, kind: Kind, count: u64) -> Unjudgeable {
    Unjudgeable { reason: why.reason(), kind: kind.name(), count }
}

#[cfg(test)]
mod tests {
    use super::wilson;

    #[test]
    fn wilson_intervals() {
        // Reference values: Newcombe 1998, 81 of 263 and 0 of 20.
        let (share, low, high) = wilson(81, 263);
        assert!((share - 0.3080).abs() < 1e-4 && (low - 0.2553).abs() < 1e-4 && (high - 0.3662).abs() < 1e-4);
        let (_, low, high) = wilson(0, 20);
        assert!(low < 1e-12 && (high - 0.1611).abs() < 1e-4);
        assert_eq!(wilson(0, 0), (1.0, 0.0, 1.0));
    }
}
