//! The keys of `[[variant]]` and of the tasks that it overrides.

use super::{key, Section};

/// `[[variant]]`.
pub const VARIANT: Section = Section {
    name: "[[variant]]",
    keys: &[
        key("name", "word", "", "its name in tables"),
        key(
            "kernel",
            "version, distribution, release or \"running\"",
            "",
            "a row such as 6.1; debian-12 or the `uname -r` of its kernel: also its configuration; \"running\": the row of this machine's kernel",
        ),
        key("config", "distribution", "the kernel's, or Kconfig's defaults", "the distribution whose configuration the kernel has"),
        key("features", "table of booleans", "the kernel's", "scheduler features, by their kernel names"),
        key("knobs", "table", "the kernel's", "tunables, by their kernel names"),
        key("hz", "100, 250, 300 or 1000", "the distribution's, or the machine's", "timer frequency"),
        key(
            "preempt",
            "none, voluntary, full, lazy, auto-none, auto-voluntary, auto-full or rt",
            "the distribution's, or the kernel's",
            "preemption model",
        ),
        key("tasks", "table", "", "tasks.WORKLOAD: attributes that override those of the workload's tasks"),
        key(
            "workloads",
            "table",
            "",
            "workloads.WORKLOAD: options that override those of the workload, such as its number of threads",
        ),
        key("cgroups", "table", "", "cgroups.GROUP: values that override those of the group"),
        key("hotplug", "tables", "the scenario's", "when CPUs go offline and come back"),
        key("guests", "table", "", "guests.NAME: values that override those of the guest"),
        key(
            "autogroup",
            "boolean",
            "the distribution's, or false",
            "treat each workload as a session: its tasks outside control groups share an autogroup",
        ),
        key(
            "physics",
            "table of booleans",
            "the machine's",
            "mechanisms of the simulation, by their names in [physics]",
        ),
        key("sysctl", "table", "the machine's", "sysctls by their full names; real kernels only"),
    ],
};

/// `variant.tasks.WORKLOAD`.
pub const VARIANT_TASK: Section = Section {
    name: "variant.tasks.WORKLOAD",
    keys: &[
        key("nice", "-20 to 19", "the workload's", "nice value"),
        key("slice", "0.1ms to 100ms", "the workload's", "custom slice"),
        key("latency_nice", "-20 to 19", "the workload's", "latency nice"),
        key("policy", "normal, batch, idle, fifo:N, rr:N, deadline:R/P", "the workload's", "scheduling policy"),
    ],
};
