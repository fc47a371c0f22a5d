//! A run as a timeline: slices, queues, wakeups, idle time while work waits, and the slowest samples, reduced from the
//! events while the run is in progress. No trace is written.

mod lanes;
mod marks;
mod near;
mod overview;
mod reduce;
mod shared;

use schedlab_metrics::Plan;
use schedlab_model::Nanos;
use schedlab_sim::Watch;
use schedlab_spec::RunSpec;
use schedlab_trace::{Digest, Tee};

use crate::erased;
use crate::run::LabError;
use reduce::Reduction;

/// Runs a specification again and returns its timeline as JSON, with the digest and the number of events of the run:
/// `lanes (name, slices, depth, gaps), tasks, wakes, slowest, start, end, digest, events`. Columns are flat lists of
/// integers; times are ns. `slices` are (start, end, task, preempted), `depth` (time, waiting tasks), `gaps` (start,
/// end), `wakes` (time, lane of the waker, waker or -1, wakee, lane, time at which it ran), `slowest` (ns, end, pid,
/// lane, ns in a queue before the task took it).
///
/// With `around`, points of time and a number, only that many slices, changes of queues, gaps and wakeups are kept
/// before each point and as many after it, and what lasted across it: memory does not grow with the length of the run,
/// except for the names of tasks. `windows` are then the ranges around the points, their ends excluded, in which
/// nothing is missing, and each lane has `busy`, the busy ns of bins of `bin` ns from time 0 on.
pub fn timeline<W: Watch>(
    spec: &RunSpec,
    around: Option<(&[Nanos], usize)>,
    watch: &W,
) -> Result<serde_json::Value, LabError> {
    let mut reduction = Reduction::new(spec.warmup, around);
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
    erased::run(spec, &mut sink, watch)?;
    let Tee(digest, reduction) = sink;
    let mut json = reduction.finish();
    json["digest"] = digest.hex().into();
    json["events"] = digest.events().into();
    Ok(json)
}

pub(crate) fn plan(of: &RunSpec, host: &RunSpec) -> Plan {
    let groups = of.cgroups.iter().filter(|cgroup| cgroup.counted).map(|cgroup| cgroup.path.as_str());
    Plan::of(&of.workloads, of.machine.topology.nr_cpus(), host.warmup).with_groups(groups)
}
