//! The keys of `[arm]`: how real kernels run a scenario.

use super::{key, Section};

/// `[arm]`.
pub const ARM: Section = Section {
    name: "[arm]",
    keys: &[
        key(
            "driver",
            "program or agent",
            "program where installed",
            "what runs a benchmark: the real program, or the agent's model of it",
        ),
        key("host", "table", "", "the running kernel"),
        key("vm", "table", "", "another kernel in QEMU"),
    ],
};

/// `[arm.host]`.
pub const ARM_HOST: Section = Section {
    name: "[arm.host]",
    keys: &[
        key("order", "abba or blocks", "abba", "order of the variants: alternating, or drawn for each seed"),
        key(
            "noise-limit",
            "percentage",
            "5%",
            "limit of foreign load, steal and throttling; nothing is judged above it",
        ),
        key("time-limit", "duration", "60s plus 10 times the scenario's", "a run that takes longer fails"),
    ],
};

/// `[arm.vm]`.
pub const ARM_VM: Section = Section {
    name: "[arm.vm]",
    keys: &[
        key(
            "image",
            "path, or table of paths",
            "Debian's image of the row",
            "kernel image of all variants, or by variant",
        ),
        key("repeatable", "boolean", "false", "one CPU whose clock counts instructions (-icount)"),
        key("memory", "64 to 65536", "1024", "memory of the guest in MiB"),
        key("cgroup", "v1 or v2", "v2", "cgroup interface of the guest"),
        key("append", "string", "", "parameters added to the kernel command line"),
        key("time-limit", "duration", "300s plus 30 times the scenario's", "a guest that takes longer fails"),
    ],
};
