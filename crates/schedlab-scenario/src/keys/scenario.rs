//! The keys of the file itself.

use super::{key, Section};

/// The file itself.
pub const SCENARIO: Section = Section {
    name: "the scenario",
    keys: &[
        key("name", "string", "the file's name", "its name in reports"),
        key("summary", "string", "", "one-line description"),
        key("machine", "preset, path, \"host\" or table", "", "what it runs on"),
        key("duration", "duration", "10s", "limit of a run, warm-up included"),
        key("warmup", "duration", "0s", "samples before this time are dropped"),
        key("seeds", "count or list", "10", "number of runs per variant, or the list of seeds"),
        key("check-groups", "0 to 100", "0", "seeds that are run again with the other grouping of the tasks"),
        key("noise", "boolean", "true", "whether phases, start offsets and costs are random"),
        key("workload", "tables", "", "what runs"),
        key("cgroup", "tables", "", "control groups that workloads run in"),
        key("guest", "tables", "", "virtual machines that the machine hosts; simulated only"),
        key("hotplug", "tables", "none", "when CPUs go offline and come back; simulated only"),
        key("variant", "tables", "", "the schedulers to compare"),
        key("metric", "tables", "each workload's own", "what is judged, and the margin that matters"),
        key("arm", "table", "", "settings for real kernels; see docs/arms.md"),
    ],
};

/// An event of `hotplug`.
pub const HOTPLUG: Section = Section {
    name: "hotplug",
    keys: &[
        key("at", "duration", "", "time since the start of the run"),
        key("offline", "CPU list", "", "CPUs that go offline then"),
        key("online", "CPU list", "", "CPUs that come back then"),
    ],
};
