//! Scheduling attributes of tasks, as a workload, one of its tasks or a variant writes them.

use schedlab_model::{CpuMask, Nanos, MSEC, SEC, USEC};
use schedlab_policy::Version;
use schedlab_workload::verbs::Own;
use schedlab_workload::{Policy, TaskSpec};

use crate::cgroup::{path, placed};
use crate::error::Result;
use crate::value::{Table, Value};

/// What one table says; what it leaves out stays as it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes<'a> {
    /// Nice value.
    pub nice: Option<i8>,
    /// Own slice, with its place for later errors.
    pub slice: Option<(Nanos, Value<'a>)>,
    /// latency-nice, with its place for later errors.
    pub latency_nice: Option<(i8, Value<'a>)>,
    /// Policy.
    pub policy: Option<Policy>,
    /// CPUs.
    pub cpus: Option<CpuMask>,
    /// Start delay.
    pub delay: Option<Nanos>,
    /// Timer slack.
    pub timer_slack: Option<Nanos>,
    /// Control group, with its place for later errors.
    pub cgroup: Option<(String, Value<'a>)>,
}

impl<'a> Attributes<'a> {
    /// Reads those the table has; `skip` are keys that mean something else there (a program's own options).
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
            timer_slack: get("timer-slack").map(|value| value.duration(1..=SEC)).transpose()?,
        })
    }

    /// Writes them into a task.
    pub fn apply(&self, task: &mut TaskSpec) {
        task.nice = self.nice.unwrap_or(task.nice);
        task.slice = self.slice.as_ref().map(|slice| slice.0).or(task.slice);
        task.latency_nice = self.latency_nice.as_ref().map(|nice| nice.0).or(task.latency_nice);
        task.policy = self.policy.unwrap_or(task.policy);
        task.affinity = self.cpus.or(task.affinity);
        task.delay += self.delay.unwrap_or(0);
        task.cgroup = self.cgroup.as_ref().map(|cgroup| cgroup.0.clone()).or_else(|| task.cgroup.take());
        task.timer_slack = self.timer_slack.unwrap_or(task.timer_slack);
    }

    /// What a task that a step forks sets for itself.
    pub fn own(&self) -> Own {
        Own { policy: self.policy.is_some(), nice: self.nice.is_some() }
    }

    /// Refuses what the kernel of a variant does not have.
    pub fn check_kernel(&self, version: &Version, variant: &str) -> Result<()> {
        if let Some((_, place)) = self.slice.as_ref().filter(|_| !has_slice(version)) {
            return Err(place
                .error(no_slice(version, variant))
                .hint("write tasks.WORKLOAD.slice in the variants whose kernel has them"));
        }
        if let Some((_, place)) = self.latency_nice.as_ref().filter(|_| !has_latency_nice(version)) {
            let message = format!("kernel {} of variant \"{variant}\" has no latency nice", version.name);
            return Err(place.error(message).hint("from 6.12 on a shorter slice does that: tasks.WORKLOAD.slice"));
        }
        Ok(())
    }
}

/// Whether `sched_setattr` takes a slice for fair tasks (`sched_attr::sched_runtime`, 6.12).
pub(crate) fn has_slice(version: &Version) -> bool {
    version.has_slices()
}

/// The message for a slice where there is none.
pub(crate) fn no_slice(version: &Version, variant: &str) -> String {
    format!("kernel {} of variant \"{variant}\" has no slices of tasks (6.12 and later have)", version.name)
}

/// Whether tasks have a latency nice value, which only the EEVDF series of March 2023 gave them.
pub(crate) fn has_latency_nice(version: &Version) -> bool {
    version.has_latency_nice()
}

/// A nice value.
pub(crate) fn nice(value: &Value) -> Result<i8> {
    Ok(value.integer(-20..=19)? as i8)
}

/// A slice, within what `__setscheduler_params` accepts.
pub(crate) fn slice(value: &Value) -> Result<Nanos> {
    value.duration(100 * USEC..=100 * MSEC)
}

/// A policy; a real-time one carries its priority, as in `fifo:50`.
pub(crate) fn policy(value: &Value) -> Result<Policy> {
    const FAIR: &[(&str, Policy)] = &[("normal", Policy::Normal), ("batch", Policy::Batch), ("idle", Policy::Idle)];
    let text = value.as_string().unwrap_or_default();
    let (name, priority) = text.split_once(':').unwrap_or((text, ""));
    match name {
        "other" if text == "other" => Ok(Policy::Normal),
        "deadline" => Err(value.refuse("SCHED_DEADLINE is not modelled").expected(POLICY)),
        "fifo" | "rr" => match priority.parse::<u8>() {
            Ok(priority @ 1..=99) if name == "fifo" => Ok(Policy::Fifo(priority)),
            Ok(priority @ 1..=99) => Ok(Policy::RoundRobin(priority)),
            _ if priority.is_empty() => {
                let hint = format!("write \"{name}:50\" for priority 50; 99 goes first");
                Err(value.refuse("a real-time policy needs a priority").expected(POLICY).hint(hint))
            }
            _ => Err(value.refuse("no priority of the real-time class").expected(POLICY)),
        },
        _ => value.choice(FAIR),
    }
}

/// What a policy looks like.
const POLICY: &str = "normal, batch, idle, or fifo:N or rr:N with N from 1 to 99";

/// A CPU list within the machine.
pub(crate) fn cpus(value: &Value, nr_cpus: usize) -> Result<CpuMask> {
    const FORM: &str = "a CPU list such as \"0-3,8\"";
    let text = value.string(FORM)?;
    let mask = CpuMask::from_list(text).filter(|mask| !mask.is_empty());
    let mask = mask.ok_or_else(|| value.refuse("no CPU list").expected(FORM))?;
    if mask.without(&CpuMask::first(nr_cpus)).is_empty() {
        return Ok(mask);
    }
    Err(value.refuse(&format!("the machine has CPUs 0 to {}", nr_cpus - 1)))
}
