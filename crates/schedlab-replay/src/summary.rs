//! From counts to a report.

use schedlab_model::Nanos;

use crate::decision::{DecisionKind, Unjudged};
use crate::report::{Baselines, Part, Report, Score, StateScores, TaskCounts, TraceInfo, Unjudgeable, VruntimeSteps};
use crate::tally::{Count, Field, Tally};

impl Score {
    /// A count as a score.
    pub fn of(count: Count) -> Score {
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
    pub fn new(
        trace: TraceInfo,
        row: &'static str,
        recorded_row: Option<&'static str>,
        refused: Vec<String>,
        warm_up_ns: Nanos,
        tally: Tally,
    ) -> Report {
        let side = |pick: bool| if pick { "pick" } else { "preemption" };
        let part = |name: String, pick: bool, count: &Count| Part { name, of: side(pick), score: Score::of(*count) };
        let kinds =
            tally.kinds.iter().map(|(kind, count)| part(kind.name().into(), *kind == DecisionKind::Pick, count));
        let cpus = tally.cpus.iter().map(|((cpu, pick), count)| part(format!("cpu{cpu}"), *pick, count));
        let nice = tally.nice.iter().map(|((range, pick), count)| part((*range).into(), *pick, count));
        let (picks, preemptions) = (tally.total(true), tally.total(false));
        let field = |field| Score::of(tally.states.get(&field).copied().unwrap_or_default());
        let unjudged: u64 = tally.unjudged.values().sum();
        let all = picks.decisions + preemptions.decisions + unjudged;
        let baselines = Baselines {
            fifo: Score::of(tally.fifo),
            lifo: Score::of(tally.lifo),
            keep_running: Score::of(tally.keep),
            lowest_pid: Score::of(tally.lowest_pid),
            never_preempts: Score::of(tally.never_preempts),
        };
        Report {
            trace,
            row,
            recorded_row,
            missing: Vec::new(),
            refused,
            warm_up_ns,
            picks: Score::of(picks),
            preemptions: Score::of(preemptions),
            kinds: kinds.collect(),
            cpus: cpus.collect(),
            nice: nice.collect(),
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
            inputs: tally.inputs.counts(),
            look_ahead: Vec::new(),
            desyncs: tally.desyncs,
            disagreements: tally.disagreements,
            explanation: None,
        }
    }
}

fn unjudgeable(why: Unjudged, kind: DecisionKind, count: u64) -> Unjudgeable {
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
