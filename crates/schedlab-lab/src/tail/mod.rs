//! Where the time of slow samples went: the samples of one metric that lie within bands of durations are divided into
//! time in a queue, throttled, on a runqueue behind other tasks, running and asleep, along the critical path of each
//! sample, while the run is in progress.
//!
//! Left out: single events. `crate::timeline` has those.

mod account;
mod band;
mod free;
mod history;
mod kept;
mod kernel;
mod load;
mod names;
mod path;
mod reduce;
mod samples;
mod slow;
#[cfg(test)]
mod tests;
mod threads;
mod throttle;

use schedlab_model::Nanos;
use schedlab_sim::Watch;
use schedlab_spec::RunSpec;
use schedlab_trace::{Digest, Tee};

use crate::run::LabError;
use crate::timeline::plan;
pub(crate) use history::{Stay, What};
pub use kept::Kept;
pub(crate) use kernel::Kernel;
pub(crate) use names::Names;
pub(crate) use path::Step;
pub(crate) use reduce::Reduction;
use samples::{By, Samples};
pub(crate) use throttle::{changes_runtime, note_throttling};

/// The question about a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// A sampled duration: `WORKLOAD.METRIC`, `sched.wakeup_latency`, or `GUEST.sched.wakeup_latency`.
    pub metric: String,
    /// Bands of durations, first and last value in ns.
    pub bands: Vec<(Nanos, Nanos)>,
}

/// Runs a specification again and divides the samples of each band. The JSON has `digest`, `events`, and
///
/// - `bands`: for each the number of samples, their ns, and the `parts` of these; `pools` (what was out of runtime
///   while throttled), `before` (what ran on the CPU on whose runqueue a task waited), `waiters` (what waited),
///   `servers` (what ran while the task of the sample slept and then woke it), `wakers` (what ended a sleep), each in
///   ns by name; `in_queue` (time in a queue of the workload) and `threads` (what the threads did meanwhile); `tasks`,
///   `lanes` and `tenths` count samples;
/// - `tenths`: number and ns of all samples in each tenth of the time after the warm-up;
/// - `slowest`: the longest samples, one by one;
/// - `load`: for each kernel how its CPUs were used after the warm-up;
/// - `quota`: whether a control group has a quota in a kernel whose throttling is not known: of a run with guests,
///   every kernel but that of the first guest. There it counts as `behind` or `waking`.
///
/// Memory grows with the number of living tasks and of CPUs, not with the length of the run: see `history::STAYS`,
/// `history::SLICES`, `free::CHANGES` and `threads::CHANGES`. Time before what they keep is the part `unknown`.
pub fn tail<W: Watch>(spec: &RunSpec, question: &Question, watch: &W) -> Result<serde_json::Value, LabError> {
    let by = By::Bands(question.bands.clone());
    let reduction = reduction(spec, vec![Samples::new(&question.metric, by, spec.warmup, spec.duration)]);
    let (Tee(digest, reduction), end) = throttle::run(spec, Tee(Digest::default(), reduction), watch)?;
    let mut json = reduction.finish(end).answer(question).unwrap_or_default();
    json["digest"] = digest.hex().into();
    json["events"] = digest.events().into();
    let unseen = spec.guests.iter().skip(1).map(|guest| &guest.run).chain((!spec.guests.is_empty()).then_some(spec));
    json["quota"] = unseen.into_iter().any(has_quota).into();
    Ok(json)
}

/// A sink that keeps the samples of some metrics, so that questions about them need no second run: see [`Kept::tail`].
pub(crate) fn keeper(spec: &RunSpec, metrics: &[String]) -> Reduction {
    let samples = |metric: &String| Samples::new(metric, By::Buckets, spec.warmup, spec.duration);
    reduction(spec, metrics.iter().map(samples).collect())
}

fn reduction(spec: &RunSpec, metrics: Vec<Samples>) -> Reduction {
    let mut reduction = Reduction::new(metrics, spec.warmup);
    reduction.kernel("", 0, spec.machine.topology.nr_cpus(), &plan(spec, spec));
    for guest in spec.guests.iter() {
        reduction.kernel(
            &guest.name,
            guest.host.index(),
            guest.run.machine.topology.nr_cpus(),
            &plan(&guest.run, spec),
        );
    }
    reduction
}

/// Whether a control group of the kernel has a quota.
fn has_quota(spec: &RunSpec) -> bool {
    spec.cgroups.iter().any(|cgroup| cgroup.bandwidth.is_some())
}
