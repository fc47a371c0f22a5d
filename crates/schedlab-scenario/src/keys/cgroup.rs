//! The keys of `[[cgroup]]`, and those that a variant overrides.

use super::{key, Section};

/// `[[cgroup]]`.
pub const CGROUP: Section = Section {
    name: "[[cgroup]]",
    keys: &[
        key("name", "path such as web/fast", "", "its path; parent groups are created"),
        key("weight", "1 to 10000", "100", "weight against its siblings (cpu.weight)"),
        key("weight-nice", "-20 to 19", "0", "weight as a nice value (cpu.weight.nice)"),
        key("shares", "2 to 262144", "1024", "weight in the units of cgroup v1 (cpu.shares)"),
        key("idle", "boolean", "false", "SCHED_IDLE for the whole group (cpu.idle, 5.15 and later)"),
        key("latency_nice", "-20 to 19", "0", "latency nice of the group (cpu.latency.nice, eevdf-rfc)"),
        key("quota", "1ms to 1000s, or \"max\"", "max", "CPU time per period, over all CPUs (cpu.max)"),
        key("period", "1ms to 1s", "100ms", "period of the quota; only with quota"),
        key(
            "burst",
            "duration, at most quota",
            "0s",
            "unused quota that may accumulate (cpu.max.burst, 5.14 and later)",
        ),
        key("cpus", "CPU list", "the parent's", "CPUs that its tasks may use (cpuset.cpus); simulated only"),
        key("events", "tables", "none", "when its CPUs change; simulated only"),
        key("partition", "refused", "", "cpuset.cpus.partition, which is not modelled"),
    ],
};

/// `cgroup.events`.
pub const CGROUP_EVENT: Section = Section {
    name: "cgroup.events",
    keys: &[
        key("at", "duration", "", "time since the start of the run"),
        key("cpus", "CPU list", "", "CPUs that its tasks may use from then on"),
    ],
};

/// `variant.cgroups.GROUP`.
pub const VARIANT_CGROUP: Section = Section {
    name: "variant.cgroups.GROUP",
    keys: &[
        key("weight", "1 to 10000", "the group's", "weight (cpu.weight)"),
        key("weight-nice", "-20 to 19", "the group's", "weight as a nice value"),
        key("shares", "2 to 262144", "the group's", "weight in the units of cgroup v1"),
        key("idle", "boolean", "the group's", "SCHED_IDLE for the whole group"),
        key("latency_nice", "-20 to 19", "the group's", "latency nice"),
        key("quota", "1ms to 1000s", "the group's", "CPU time per period"),
        key("period", "1ms to 1s", "the group's", "period of the quota"),
        key("burst", "duration, at most quota", "the group's", "unused quota that may accumulate"),
        key("cpus", "CPU list", "the group's", "CPUs that its tasks may use"),
        key("events", "tables", "the group's", "when its CPUs change"),
        key("partition", "refused", "", "cpuset.cpus.partition, which is not modelled"),
    ],
};
