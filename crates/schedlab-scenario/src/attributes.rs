//! Scheduling attributes of tasks, from the table of a workload, a task or a variant.

use schedlab_model::{CpuMask, Nanos, SEC};
use schedlab_policy::Version;
use schedlab_workload::verbs::Own;
use schedlab_workload::{Policy, TaskSpec, Workload};

use crate::attribute_values::{cpus, nice, policy, slice};
use crate::cgroup::{path, placed};
use crate::error::Result;
use crate::kernel_sections::kib;
use crate::value::{Table, Value};

/// The attributes in one table; `None` where the table does not set them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes<'a> {
    /// Nice value.
    pub nice: Option<i8>,
    /// Custom slice, with its position for later errors.
    pub slice: Option<(Nanos, Value<'a>)>,
    /// Latency nice, with its position for later errors.
    pub latency_nice: Option<(i8, Value<'a>)>,
    /// Policy.
    pub policy: Option<Policy>,
    /// CPUs.
    pub cpus: Option<CpuMask>,
    /// Start delay.
    pub delay: Option<Nanos>,
    /// Timer slack.
    pub timer_slack: Option<Nanos>,
    /// Working set, in KiB.
    pub working_set: Option<u32>,
    /// In KiB.
    pub code: Option<u32>,
    /// Control group, with its position for later errors.
    pub cgroup: Option<(String, Value<'a>)>,
}

impl<'a> Attributes<'a> {
    /// Reads the attributes of a table. `skip` are keys with another meaning there (options of the program).
    pub fn read(table: &Table<'a>, skip: &[&str], nr_cpus: usize) -> Result<Self> {
        let get = |key: &str| table.get(key).filter(|_| !skip.contains(&key));
        let placed_slice = |value: Value<'a>| -> Result<_> { Ok((slice(&value)?, value)) };
        let placed_nice = |value: Value<'a>| -> Result<_> { Ok((nice(&value)?, value)) };
        Ok(Attributes {
            nice: get("nice").map(|value| nice(&value)).transpose()?,
            slice: get("slice").map(placed_slice).transpose()?,
            latency_nice: get("latency_nice").map(placed_nice).transpose()?,
            policy: get("policy").map(|value| policy(&value)).transpose()?,
            cpus: get("cpus").map(|value| cpus(&value, nr_cpus)).transpose()?,
            delay: get("delay").map(|value| value.duration(0..=24 * 3600 * SEC)).transpose()?,
            cgroup: placed(get("cgroup"), |value| path(value))?,
            working_set: get("working-set").map(|value| kib(&value)).transpose()?,
            code: get("code").map(|value| kib(&value)).transpose()?,
            timer_slack: get("timer-slack").map(|value| value.duration(1..=SEC)).transpose()?,
        })
    }

    /// Applies the attributes to all tasks of a workload. A working set replaces those of its programs.
    pub fn apply_to(&self, workload: &mut Workload) {
        workload.tasks.iter_mut().for_each(|task| self.apply(task));
        if self.working_set.is_some() {
            workload.programs.iter_mut().for_each(|program| program.working_set = 0);
        }
    }

    /// Applies the attributes to a task.
    pub fn apply(&self, task: &mut TaskSpec) {
        task.nice = self.nice.unwrap_or(task.nice);
        task.slice = self.slice.as_ref().map(|slice| slice.0).or(task.slice);
        task.latency_nice = self.latency_nice.as_ref().map(|nice| nice.0).or(task.latency_nice);
        task.policy = self.policy.unwrap_or(task.policy);
        task.affinity = self.cpus.or(task.affinity);
        task.delay += self.delay.unwrap_or(0);
        task.cgroup = self.cgroup.as_ref().map(|cgroup| cgroup.0.clone()).or_else(|| task.cgroup.take());
        task.working_set = self.working_set.unwrap_or(task.working_set);
        task.code = self.code.unwrap_or(task.code);
        task.timer_slack = self.timer_slack.unwrap_or(task.timer_slack);
    }

    /// The attributes that a forked task sets for itself.
    pub fn own(&self) -> Own {
        Own { policy: self.policy.is_some(), nice: self.nice.is_some() }
    }

    /// Refuses attributes that the kernel of a variant does not support.
    pub fn check_kernel(&self, version: &Version, variant: &str) -> Result<()> {
        if let Some((_, place)) = self.slice.as_ref().filter(|_| !has_slice(version)) {
            return Err(place
                .error(no_slice(version, variant))
                .hint("set tasks.WORKLOAD.slice in the variants whose kernel supports it"));
        }
        if let Some((_, place)) = self.latency_nice.as_ref().filter(|_| !has_latency_nice(version)) {
            let message = format!("kernel {} of variant \"{variant}\" has no latency nice", version.name);
            return Err(place.error(message).hint("since 6.12 a shorter slice has this effect: tasks.WORKLOAD.slice"));
        }
        Ok(())
    }
}

/// Whether `sched_setattr` accepts a slice for fair tasks (`sched_attr::sched_runtime`, 6.12).
pub(crate) fn has_slice(version: &Version) -> bool {
    version.has_slices()
}

/// The message for a custom slice on a kernel without support.
pub(crate) fn no_slice(version: &Version, variant: &str) -> String {
    format!("kernel {} of variant \"{variant}\" has no custom slices (available since 6.12)", version.name)
}

/// Whether tasks have a latency nice value, which only the EEVDF series of March 2023 had.
pub(crate) fn has_latency_nice(version: &Version) -> bool {
    version.has_latency_nice()
}
