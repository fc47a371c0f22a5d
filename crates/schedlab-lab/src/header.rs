//! The header of a simulated trace: the settings that `schedlab record` writes for a recorded one, in the same form.

use schedlab_metrics::Plan;
use schedlab_policy::fair::GroupShares;
use schedlab_policy::{Feature, KernelConfig, Knob, PreemptModel};
use schedlab_spec::RunSpec;
use schedlab_trace::Header;
use schedlab_workload::Op;

use crate::ENGINE;

/// The header of a run's trace file.
pub fn header(spec: &RunSpec, plan: &Plan) -> Header {
    let simulated = format!("simulated by schedlab {ENGINE}, machine {}, seed {}", spec.machine.name, spec.seed);
    let mut comments = vec![simulated, format!("hz {}", spec.kernel.hz())];
    // A kernel without CONFIG_SCHED_AUTOGROUP has no such file, and moves no exiting task.
    comments.extend(spec.autogroup.then(|| "sched_autogroup_enabled 1".to_owned()));
    comments.extend(settings(&spec.kernel));
    comments.extend(spec.cgroups.iter().map(|cgroup| match cgroup.shares {
        Some(GroupShares::Weight(weight)) => format!("cgroup {} weight {weight}", cgroup.path),
        Some(GroupShares::Nice(nice)) => format!("cgroup {} nice {nice}", cgroup.path),
        Some(GroupShares::Shares(shares)) => format!("cgroup {} shares {shares}", cgroup.path),
        None => format!("cgroup {} shares 1024", cgroup.path),
    }));
    comments.extend(plan.queueing().map(|metric| format!("queueing {metric}")));
    comments.extend(untraced(spec));
    Header {
        kernel: Some(spec.kernel.version.name.to_owned()),
        nr_cpus: Some(spec.machine.topology.nr_cpus()),
        metrics: plan.raw_units(),
        comments,
    }
}

/// Settings of groups that no record of a simulated trace shows.
fn untraced(spec: &RunSpec) -> Option<String> {
    let mut words = Vec::new();
    let mut add = |some: bool, word| words.extend(some.then_some(word));
    add(spec.cgroups.iter().any(|cgroup| cgroup.bandwidth.is_some()), "quotas");
    add(spec.cgroups.iter().any(|cgroup| cgroup.idle), "idle groups");
    add(spec.cgroups.iter().any(|cgroup| cgroup.latency_nice != 0), "latency of groups");
    let moves = |op: &Op| matches!(op, Op::SetCgroup(_));
    let programs = || spec.workloads.iter().flat_map(|workload| &workload.programs);
    add(programs().any(|program| program.ops.iter().any(moves)), "moves between groups");
    (!words.is_empty()).then(|| format!("untraced {}", words.join(", ")))
}

/// Knobs, features and preemption model as their files show them.
fn settings(kernel: &KernelConfig) -> Vec<String> {
    let knobs = Knob::all().iter().filter(|info| info.exists_in(kernel.version));
    let mut lines: Vec<String> = knobs.map(|info| format!("{} {}", info.name, kernel.knobs.get(info.knob))).collect();
    let features = Feature::all().iter().filter(|info| info.default_in(kernel.version).is_some());
    let word = |on: bool, name: &str| if on { name.to_owned() } else { format!("NO_{name}") };
    let words: Vec<String> = features.map(|info| word(kernel.has(info.feature), info.name)).collect();
    lines.push(format!("features {}", words.join(" ")));
    let chosen = |model: &PreemptModel| match *model == kernel.preempt {
        true => format!("({})", model.name()),
        false => model.name().to_owned(),
    };
    let models: Vec<String> = kernel.version.preempt_models.iter().map(chosen).collect();
    lines.push(format!("preempt {}", models.join(" ")));
    lines
}
