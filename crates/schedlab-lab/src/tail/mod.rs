//! Where the time of slow samples went: the samples of one metric that lie within bands of durations are divided into
//! time in a queue, on a runqueue behind other tasks, running and asleep, while the run is in progress.
//!
//! Left out: single events. `crate::timeline` has those.

mod account;
mod free;
mod history;
mod kernel;
mod load;
mod names;
mod reduce;
#[cfg(test)]
mod tests;
mod threads;

use schedlab_model::Nanos;
use schedlab_sim::Watch;
use schedlab_spec::RunSpec;
use schedlab_trace::{Digest, Tee};

use crate::run::LabError;
use crate::timeline::plan;
use reduce::Reduction;

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
/// - `bands`: for each the number of samples, their ns, and the `parts` of these; `behind` (what ran on the CPU on
///   whose runqueue a task waited), `wakers` (what ended a sleep), `threads` (what the threads did while a request was
///   queued), each in ns by name; `tasks`, `lanes` and `tenths` count samples;
/// - `tenths`: number and ns of all samples in each tenth of the time after the warm-up;
/// - `slowest`: the longest samples, one by one;
/// - `load`: for each kernel how its CPUs were used after the warm-up;
/// - `quota`: whether a control group has a quota: time in which it is throttled counts as `behind` or `waking`, since
///   no event shows it.
///
/// Memory grows with the number of living tasks and of CPUs, not with the length of the run: see `history::STAYS`,
/// `history::SLICES`, `free::CHANGES` and `threads::CHANGES`. Time before what they keep is the part `unknown`.
pub fn tail<W: Watch>(spec: &RunSpec, question: &Question, watch: &W) -> Result<serde_json::Value, LabError> {
    let mut reduction = Reduction::new(question, spec.warmup, spec.duration);
    reduction.kernel("", 0, spec.machine.topology.nr_cpus(), &plan(spec, spec));
    for guest in spec.guests.iter() {
        reduction.kernel(
            &guest.name,
            guest.host.index(),
            guest.run.machine.topology.nr_cpus(),
            &plan(&guest.run, spec),
        );
    }
    let mut sink = Tee(Digest::default(), reduction);
    let end = if spec.guests.is_empty() {
        schedlab_sim::run(spec, &mut sink, watch)?.now
    } else {
        let (outcomes, _) = schedlab_sim::run_virtual(spec, &mut sink, watch)?;
        outcomes.first().map_or(0, |host| host.now)
    };
    let Tee(digest, reduction) = sink;
    let mut json = reduction.finish(end);
    json["digest"] = digest.hex().into();
    json["events"] = digest.events().into();
    let runs = spec.guests.iter().map(|guest| &guest.run).chain([spec]);
    json["quota"] = runs.flat_map(|run| run.cgroups.iter()).any(|cgroup| cgroup.bandwidth.is_some()).into();
    Ok(json)
}
