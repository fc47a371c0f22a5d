//! From counts to a report.

use std::collections::BTreeMap;

use schedlab_model::Nanos;

use crate::balance::Balances;
use crate::count::Count;
use crate::decision::DecisionKind;
use crate::placement::Placements;
use crate::report::{
    BalanceBaselines, BalanceReport, Baselines, Part, PlacementBaselines, PlacementReport, Report, ReschedReport,
    Score, StateScores, TaskCounts, TraceInfo, Unexplained, Unjudgeable, VruntimeSteps,
};
use crate::tally::{Field, Tally};
use crate::unjudged::Unjudged;

impl Score {
    /// A count as a score.
    pub fn of(count: Count) -> Score {
        let (share, low, high) = count.interval();
        Score { decisions: count.decisions, agreed: count.agreed, share, low, high }
    }
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
        let part = |name: String, pick: bool, count: &Count| Part {
            name,
            of: if pick { "pick" } else { "preemption" },
            score: Score::of(*count),
        };
        let kinds =
            tally.kinds.iter().map(|(kind, count)| part(kind.name().into(), *kind == DecisionKind::Pick, count));
        let cpus = tally.cpus.iter().map(|((cpu, pick), count)| part(format!("cpu{cpu}"), *pick, count));
        let nice = tally.nice.iter().map(|((range, pick), count)| part((*range).into(), *pick, count));
        let (picks, preemptions) = (tally.picks, tally.preemptions);
        let by_side = |(picks, preemptions)| Unexplained { picks, preemptions };
        let (unexplained, solved) = (by_side(tally.unexplained()), by_side(tally.solved()));
        let unjudged: u64 = tally.unjudged.values().sum();
        let all = picks.decisions + preemptions.decisions + unjudged;
        Report {
            trace,
            row,
            tried: None,
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
            unjudged_spans: tally.spans.largest(),
            unjudged_share: if all == 0 { 0.0 } else { unjudged as f64 / all as f64 },
            unexplained,
            solved,
            not_asked: tally.not_asked,
            in_warm_up: tally.warm_up,
            baselines: baselines(&tally),
            placements: PlacementReport::default(),
            balances: BalanceReport::default(),
            resched: ReschedReport::default(),
            state: state(&tally),
            vruntime: VruntimeSteps {
                compared: tally.steps.compared,
                equal: tally.steps.equal,
                absolute: tally.steps.absolute,
                first: tally.steps.first,
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

/// What simple rules would agree with.
fn baselines(tally: &Tally) -> Baselines {
    Baselines {
        fifo: Score::of(tally.fifo),
        lifo: Score::of(tally.lifo),
        keep_running: Score::of(tally.keep),
        lowest_pid: Score::of(tally.lowest_pid),
        never_preempts: Score::of(tally.never_preempts),
    }
}

/// The state that probes show, by field.
fn state(tally: &Tally) -> StateScores {
    let field = |field| Score::of(tally.states.get(&field).copied().unwrap_or_default());
    StateScores {
        events: Score::of(tally.shown),
        vruntime: field(Field::Vruntime),
        deadline: field(Field::Deadline),
        lag: field(Field::Lag),
        zero: field(Field::Zero),
        sum: field(Field::Sum),
        weight: field(Field::Weight),
        count: field(Field::Count),
        first: tally.state_misses.clone(),
    }
}

/// Reasons and kinds with their number.
type Reasons = BTreeMap<(&'static str, &'static str), u64>;

fn parts(of: &'static str, counts: &BTreeMap<&'static str, Count>) -> Vec<Part> {
    counts.iter().map(|(name, count)| Part { name: (*name).into(), of, score: Score::of(*count) }).collect()
}

fn unjudged(reasons: &Reasons) -> Vec<Unjudgeable> {
    reasons.iter().map(|((reason, kind), count)| Unjudgeable { reason, kind, count: *count }).collect()
}

impl Balances {
    /// What was counted.
    pub fn report(&self) -> BalanceReport {
        let tally = &self.tally;
        BalanceReport {
            all: Score::of(tally.all),
            source: Score::of(tally.source),
            kinds: parts("balance", &tally.kinds),
            quiet: tally.quiet,
            task_loads: Score::of(tally.task_loads),
            preferences: Score::default(),
            baselines: BalanceBaselines { most_tasks: Score::of(tally.most_tasks), never: Score::of(tally.never) },
            unjudged: unjudged(&tally.unjudged),
            in_warm_up: tally.warm_up,
            disagreements: tally.misses.clone(),
        }
    }
}

impl Placements {
    /// What was counted.
    pub fn report(&self) -> PlacementReport {
        let tally = &self.tally;
        PlacementReport {
            all: Score::of(tally.all),
            topology_recorded: self.described,
            kinds: parts("placement", &tally.kinds),
            rules: parts("placement", &tally.rules),
            moved: Score::of(tally.moved),
            baselines: PlacementBaselines {
                prev: Score::of(tally.prev),
                lowest_idle: Score::of(tally.lowest_idle),
                waker: Score::of(tally.waker),
            },
            unjudged: unjudged(&tally.unjudged),
            in_warm_up: tally.warm_up,
            histories: Score::of(tally.histories),
            task_loads: Score::of(tally.loads),
            cpu_loads: Score::of(tally.cpu_loads),
            disagreements: tally.misses.clone(),
        }
    }
}

fn unjudgeable(why: Unjudged, kind: DecisionKind, count: u64) -> Unjudgeable {
    Unjudgeable { reason: why.reason(), kind: kind.name(), count }
}
