//! Checks the workloads, the variants and the machine against each other. Each of them has been validated by itself.

use schedlab_model::{suggest, CpuMask};
use schedlab_policy::Feature;
use schedlab_spec::{Machine, Memory};
use schedlab_workload::{ObjectSpec, Op, Policy, Program, TaskSpec, Workload};

use crate::attributes::{has_latency_nice, has_slice, no_slice};
use crate::error::{Result, ScenarioError};
use crate::workload::Draft;
use crate::{cgroup, guest, variant};

/// Refuses workloads that need what the machine or the kernel of a variant does not have.
pub(crate) fn check(
    draft: &Draft,
    variants: &[variant::Draft],
    cgroups: &[cgroup::Draft],
    nr_cpus: usize,
    memory: Option<Memory>,
) -> Result<()> {
    let nr_cpus = variants.first().map_or(nr_cpus, |variant| variant.cpus_of(draft.guest.as_deref(), nr_cpus));
    check_cgroups(draft, cgroups)?;
    check_cpus(draft, nr_cpus)?;
    check_steps_with_cgroups(draft, cgroups)?;
    if memory.is_none() && ops(&draft.workload).any(|(_, _, op)| matches!(op, Op::Stream { .. })) {
        let error = draft.table.error("the machine does not say what its memory delivers");
        return Err(error.hint("choose a machine with a [memory] table, or add one"));
    }
    check_kernels(draft, variants)?;
    let machine = CpuMask::first(nr_cpus);
    variants.iter().try_for_each(|variant| check_variant(draft, variant, &machine))
}

/// The workload and its tasks are in groups that exist.
fn check_cgroups(draft: &Draft, cgroups: &[cgroup::Draft]) -> Result<()> {
    if let Some((path, place)) = &draft.attributes.cgroup {
        cgroup::check_declared(place, path, cgroups)?;
    }
    for (path, task) in draft.workload.tasks.iter().filter_map(|task| Some((task.cgroup.as_ref()?, task))) {
        if cgroups.iter().all(|cgroup| cgroup.path != *path) {
            let error = draft.table.error(format!("task {}: unknown cgroup \"{path}\"", task.name));
            return Err(error.expected("the name of a [[cgroup]]"));
        }
    }
    Ok(())
}

/// Tasks move to groups that exist.
fn check_steps_with_cgroups(draft: &Draft, cgroups: &[cgroup::Draft]) -> Result<()> {
    let workload = &draft.workload;
    for (program, step, op) in ops(workload) {
        let Op::SetCgroup(index) = op else { continue };
        let Some(path) = workload.cgroups.get(*index as usize).filter(|path| *path != "/") else { continue };
        if cgroups.iter().all(|cgroup| cgroup.path != *path) {
            let error = at(draft, program, step, format!("unknown cgroup \"{path}\""));
            let near = suggest(path, cgroups.iter().map(|cgroup| cgroup.path.as_str()));
            return Err(error.expected("the name of a [[cgroup]]").hint(near));
        }
    }
    Ok(())
}

/// Tasks use CPUs that exist.
fn check_cpus(draft: &Draft, nr_cpus: usize) -> Result<()> {
    let (workload, machine) = (&draft.workload, CpuMask::first(nr_cpus));
    let masks = workload.tasks.iter().filter_map(|task| task.affinity.as_ref()).chain(&workload.masks);
    for mask in masks {
        if !mask.without(&machine).is_empty() {
            let message =
                format!("the workload uses CPUs {}, but the machine has CPUs 0 to {}", mask.to_list(), nr_cpus - 1);
            return Err(draft.table.error(message).hint("choose a larger machine or other cpus"));
        }
    }
    Ok(())
}

/// The kernels of all variants have what the steps of the workload use.
fn check_kernels(draft: &Draft, variants: &[variant::Draft]) -> Result<()> {
    let version_of = |variant: &variant::Draft| variant.versions().of(draft.guest.as_deref());
    let without_slice = variants.iter().find(|variant| !has_slice(version_of(variant)));
    let sets_slice = |op: &Op| matches!(op, Op::SetSlice(slice) if *slice > 0);
    if let Some((lacks, (program, step, _))) = without_slice.zip(ops(&draft.workload).find(|(_, _, op)| sets_slice(op)))
    {
        return Err(at(draft, program, step, no_slice(version_of(lacks), &lacks.name)));
    }
    if ops(&draft.workload).any(|(_, _, op)| matches!(op, Op::PostHere(_))) {
        if let Some(lacks) = variants.iter().find(|variant| !version_of(variant).placement.wakes_here) {
            let error = draft.table.error(format!("variant {}: its kernel has no WF_CURRENT_CPU", lacks.name));
            return Err(error.hint("choose a kernel from 6.6 on, or leave sync-mode out"));
        }
    }
    Ok(())
}

/// Refuses what is not modelled on CPUs of different capacity: rows whose rules were not read, and deadline tasks,
/// whose fit to a CPU is left out.
pub(crate) fn capacities(drafts: &[Draft], variants: &[variant::Draft], machine: &Machine) -> Result<()> {
    if machine.topology.capacities().is_none() {
        return Ok(());
    }
    let hint = "choose a kernel from 6.1 on, or a machine without [[cpu-type]]";
    for draft in drafts {
        if let Some(lacks) = variants.iter().find(|variant| !variant.kernel.version.knows_capacities()) {
            let version = lacks.kernel.version.name;
            let message = format!("variant {}: {version} with CPUs of different capacity is not modelled", lacks.name);
            return Err(draft.table.error(message).hint(hint));
        }
        if draft.workload.tasks.iter().any(|task| deadline(task.policy)) {
            let message = "SCHED_DEADLINE on CPUs of different capacity is not modelled";
            return Err(draft.table.error(message).hint("choose a machine without [[cpu-type]]"));
        }
    }
    Ok(())
}

/// Refuses cpusets with CPUs that the machine does not have, and combinations that are not modelled.
pub(crate) fn cpusets(
    drafts: &[Draft],
    variants: &[variant::Draft],
    cgroups: &[cgroup::Draft],
    nr_cpus: usize,
) -> Result<()> {
    for (group, table) in cgroups.iter().filter_map(|group| Some((group, group.table.as_ref()?))) {
        group.files.check_cpus(table, nr_cpus)?;
    }
    let confines = |variant: &variant::Draft| {
        variant.cgroups.iter().any(|cgroup| cgroup.cpus.is_some() || !cgroup.cpus_later.is_empty())
    };
    let Some(variant) = variants.iter().find(|variant| confines(variant)) else { return Ok(()) };
    let machine = CpuMask::first(nr_cpus);
    let masks = variants.iter().flat_map(|variant| &variant.cgroups).flat_map(|cgroup| {
        cgroup.cpus.iter().chain(cgroup.cpus_later.iter().map(|(_, cpus)| cpus)).copied().collect::<Vec<_>>()
    });
    for draft in drafts {
        let name = &variant.name;
        if let Some(mask) = masks.clone().find(|mask| !mask.without(&machine).is_empty()) {
            let message = format!("a control group has CPUs {}, which the machine lacks", mask.to_list());
            return Err(draft.table.error(message).hint("choose a larger machine or other cpus"));
        }
        if draft.workload.tasks.iter().any(|task| deadline(task.policy)) {
            let message = format!("variant {name}: SCHED_DEADLINE together with cpusets is not modelled");
            return Err(draft.table.error(message).hint("leave cpus of the control groups out"));
        }
        if draft.guest.is_some() {
            let message = format!("variant {name}: guests together with cpusets are not modelled");
            return Err(draft.table.error(message).hint("use cpus of the [[guest]] instead"));
        }
    }
    Ok(())
}

/// Refuses CPUs that go offline in combinations that are not modelled.
pub(crate) fn hotplug(
    drafts: &[Draft],
    variants: &[variant::Draft],
    guests: &[guest::Draft],
    machine: &Machine,
) -> Result<()> {
    for variant in variants {
        let Some((_, place)) = variant.hotplug.first() else { continue };
        let of = |workload: &Workload| {
            let changes = ops(workload).any(|(_, _, op)| matches!(op, Op::SetPolicy(policy) if deadline(*policy)));
            changes || workload.tasks.iter().any(|task| deadline(task.policy))
        };
        let own = variant.tasks.iter().filter_map(|(_, attributes)| attributes.policy);
        let what = match () {
            () if machine.topology.capacities().is_some() => "on a machine with CPUs of different capacity",
            () if !guests.is_empty() => "together with guests, whose vCPU threads may be pinned,",
            () if drafts.iter().any(|draft| of(&draft.workload)) || own.into_iter().any(deadline) => {
                "together with SCHED_DEADLINE, whose bandwidth belongs to the CPUs,"
            }
            () if variant.cgroups.iter().any(|cgroup| cgroup.bandwidth.is_some()) => {
                "together with the quota of a control group"
            }
            () if variant.kernel.has(Feature::Swqueue) => "with SWQUEUE",
            () => continue,
        };
        let message = format!("variant {}: CPUs that go offline {what} are not modelled", variant.name);
        return Err(place.error(message).hint("leave out hotplug, or what conflicts with it"));
    }
    Ok(())
}

fn deadline(policy: Policy) -> bool {
    matches!(policy, Policy::Deadline(_))
}

/// The first workload of a variant in which real-time or deadline tasks use locks with priority inheritance. Only a
/// real kernel boosts their holders.
pub(crate) fn boosted(drafts: &[Draft], variant: &variant::Draft) -> Option<Box<ScenarioError>> {
    let real_time = |policy: &Policy| matches!(policy, Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Deadline(_));
    let found = drafts.iter().find(|draft| {
        let workload = &draft.workload;
        let inherits = |object: &ObjectSpec| matches!(object, ObjectSpec::Mutex { pi: true } | ObjectSpec::PiFutex);
        let own = variant.tasks.iter().find(|(name, _)| *name == workload.name);
        let policy = own.and_then(|(_, attributes)| attributes.policy);
        let of_task = |task: &TaskSpec| real_time(&policy.unwrap_or(task.policy));
        let changes = |(_, _, op): (&Program, u32, &Op)| matches!(op, Op::SetPolicy(policy) if real_time(policy));
        workload.objects.iter().any(inherits) && (workload.tasks.iter().any(of_task) || ops(workload).any(changes))
    })?;
    let error =
        found.table.error("real-time or deadline tasks use a lock with priority inheritance, which is not simulated");
    Some(error.hint("use --arm host or --arm vm, or a lock without priority inheritance"))
}

fn check_variant(draft: &Draft, variant: &variant::Draft, machine: &CpuMask) -> Result<()> {
    check_deadline(draft, variant, machine)?;
    let version = variant.versions().of(draft.guest.as_deref());
    let extends = |object: &ObjectSpec| matches!(object, ObjectSpec::SpinLock(lock) if lock.slice_extension);
    if version.slice_extension() == 0 && draft.workload.objects.iter().any(extends) {
        let message = format!("variant {}: kernel {} has no time slice extension", variant.name, version.name);
        return Err(draft.table.error(message).hint("choose a kernel from 7.0 on, or leave slice-extension out"));
    }
    draft.attributes.check_kernel(version, &variant.name)?;
    for task in &draft.workload.tasks {
        if task.slice.is_some_and(|slice| slice > 0) && !has_slice(version) {
            return Err(draft.table.error(format!("task {}: {}", task.name, no_slice(version, &variant.name))));
        }
        if task.latency_nice.is_some() && !has_latency_nice(version) {
            let message = format!("task {}: kernel {} has no latency nice", task.name, version.name);
            return Err(draft.table.error(message));
        }
    }
    Ok(())
}

/// Refuses deadline tasks with attributes that the kernel does not let them have.
fn check_deadline(draft: &Draft, variant: &variant::Draft, machine: &CpuMask) -> Result<()> {
    let own = variant.tasks.iter().find(|(name, _)| *name == draft.workload.name).map(|(_, attributes)| attributes);
    for task in &draft.workload.tasks {
        let policy = own.and_then(|own| own.policy).unwrap_or(task.policy);
        if !deadline(policy) {
            continue;
        }
        let refuse = |why: &str, hint: &str| {
            Err(draft.table.error(format!("task {}, variant {}: {why}", task.name, variant.name)).hint(hint))
        };
        if task.affinity.is_some_and(|mask| !machine.without(&mask).is_empty()) {
            return refuse("the kernel refuses SCHED_DEADLINE to a task that may not use every CPU", "leave cpus out");
        }
        let slice = own.and_then(|own| own.slice.as_ref()).map(|slice| slice.0).or(task.slice);
        if slice.is_some_and(|slice| slice > 0) {
            return refuse("a SCHED_DEADLINE task has a runtime instead of a slice", "leave slice out");
        }
    }
    Ok(())
}

fn ops(workload: &Workload) -> impl Iterator<Item = (&Program, u32, &Op)> {
    let programs = workload.programs.iter();
    programs.flat_map(|program| program.ops.iter().enumerate().map(move |(step, op)| (program, step as u32, op)))
}

/// An error at the line of a step, if it has one.
fn at(draft: &Draft, program: &Program, step: u32, message: String) -> Box<ScenarioError> {
    let error = draft.table.error(message);
    let Some(line) = program.line(step) else { return error };
    let mut error = error.at(line, 1);
    if draft.file.is_some() {
        error.file.clone_from(&draft.file);
    }
    error
}
