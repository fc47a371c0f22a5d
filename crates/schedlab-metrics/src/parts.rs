//! The metrics of the second and the last third of the measured time: whether a metric still drifts at the end.

use schedlab_model::Nanos;

use crate::catalogue::{sched_metrics, Reducer};
use crate::state::App;
use crate::{Histogram, Metrics, Stat};

/// A metric by its full name, in the second and the last third; None where there was nothing to measure.
pub type Parts = Vec<(String, [Option<f64>; 2])>;

/// The parts of a closed reduction; empty if the run ended before its time, or if that is not known. Times and rates
/// are in the units of the events: only their ratio counts.
pub(crate) fn parts(whole: &Metrics, end: Nanos) -> Parts {
    let [first, second] = &whole.thirds[..] else { return Parts::new() };
    if end < whole.plan.duration {
        return Parts::new();
    }
    let pairs = [(first, second), (second, whole)];
    let mut parts = Parts::new();
    for (index, entry) in whole.plan.metrics.iter().enumerate() {
        let name = format!("{}.{}", entry.workload, entry.decl.name);
        let of = |metrics: &'_ Metrics| -> Option<Counted> { Counted::of(&metrics.apps[index]) };
        if matches!(whole.apps[index], App::Samples(_)) {
            sampled(&name, pairs.map(|(a, b)| of_samples(&b.apps[index], &a.apps[index])), &mut parts);
        } else if of(whole).is_some() {
            let counted = pairs.map(|(a, b)| Some(of(b)?.0.abs_diff(of(a)?.0) as f64));
            parts.push((name, counted));
        }
    }
    for metric in sched_metrics() {
        let name = metric.name;
        match metric.reducer {
            Reducer::Distribution(of) => {
                sampled(name, pairs.map(|(a, b)| of(b).since(of(a))), &mut parts);
            }
            Reducer::Count(of) => {
                parts.push((name.to_owned(), pairs.map(|(a, b)| Some((of(&b.totals) - of(&a.totals)) as f64))));
            }
            Reducer::CpuTime(of) => {
                parts.push((name.to_owned(), pairs.map(|(a, b)| Some(of(b).saturating_sub(of(a)) as f64))));
            }
            Reducer::Longest(_) | Reducer::Mean(_) | Reducer::RestOfBusy(_) => {}
        }
    }
    parts
}

/// What an operation count has reached.
struct Counted(u64);

impl Counted {
    fn of(app: &App) -> Option<Counted> {
        match app {
            App::Rate { counted } | App::Total { counted } => Some(Counted(*counted)),
            _ => None,
        }
    }
}

fn of_samples(later: &App, earlier: &App) -> Histogram {
    match (later, earlier) {
        (App::Samples(later), App::Samples(earlier)) => later.since(earlier),
        _ => Histogram::default(),
    }
}

fn sampled(name: &str, thirds: [Histogram; 2], parts: &mut Parts) {
    let [second, last] = thirds.map(|third| third.stats());
    for ((stat_name, _), values) in Stat::ALL.iter().zip(second.into_iter().zip(last)) {
        parts.push((format!("{name}.{stat_name}"), [values.0, values.1]));
    }
}
