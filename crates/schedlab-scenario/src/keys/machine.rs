//! The keys of a machine file or an inline machine, but for its costs.

use super::{key, Section};

/// A machine file, or an inline table.
pub const MACHINE: Section = Section {
    name: "the machine",
    keys: &[
        key("name", "word", "the file's name", "its name in reports"),
        key("summary", "string", "", "one-line description"),
        key("base", "preset", "", "preset that supplies every key left out here"),
        key("calibrated", "boolean", "false", "whether its costs were measured on such a machine"),
        key("hz", "100, 250, 300 or 1000", "250", "default timer frequency (CONFIG_HZ)"),
        key("topology", "table or \"host\"", "", "CPUs, caches and nodes"),
        key("cpu-type", "tables", "all CPUs are alike", "CPUs of different speed, and the power that they draw"),
        key("costs", "table", "", "cost of each action, on a CPU of the largest capacity"),
        key("idle", "tables", "", "idle states of a CPU, shallowest first"),
        key("memory", "table", "", "bandwidth of the memory"),
        key("frequency", "table", "", "frequencies at which its CPUs run"),
        key("caches", "table", "", "sizes of the caches, and how fast they are read"),
        key(
            "sections",
            "tables",
            "a measured table",
            "where system calls may reschedule, and where they hold spinlocks",
        ),
        key("physics", "table", "none", "mechanisms beyond the cost of instructions"),
    ],
};

/// `[topology]`.
pub const TOPOLOGY: Section = Section {
    name: "[topology]",
    keys: &[
        key("nodes", "1 to 1024", "1", "NUMA nodes, one socket each"),
        key("llcs-per-node", "1 to 1024", "1", "last-level caches of a node"),
        key("cores-per-llc", "1 to 1024", "", "cores under a last-level cache"),
        key(
            "cores-per-cluster",
            "a divisor of cores-per-llc",
            "1: no clusters",
            "cores that share an L2 cache or a tag of the last-level cache (CONFIG_SCHED_CLUSTER)",
        ),
        key("threads-per-core", "1 to 8", "1", "hardware threads of a core"),
        key("numbering", "threads-last, adjacent or paired-cores", "threads-last", "how CPUs are numbered"),
        key("smt-rates", "percentages", "100%", "speed of a thread by the number of busy threads of its core"),
        key("source", "string", "", "where the numbers come from"),
    ],
};

/// `[[cpu-type]]`.
pub const CPU_TYPE: Section = Section {
    name: "[[cpu-type]]",
    keys: &[
        key("name", "word", "", "its name"),
        key("cpus", "CPU list", "", "the CPUs of this type, which share one frequency"),
        key("capacity", "1 to 1024", "", "their speed; the fastest CPUs have 1024 (`cpu_capacity` in sysfs)"),
        key(
            "power-coefficient",
            "1 to 100000",
            "no energy model",
            "microwatts per MHz and squared volt (`dynamic-power-coefficient` of a device tree)",
        ),
        key("states", "tables", "no energy model", "their frequencies and voltages, slowest first"),
        key("source", "string", "", "where the numbers come from"),
    ],
};

/// A state of `[[cpu-type]]`.
pub const PERF_STATE: Section = Section {
    name: "a state of [[cpu-type]]",
    keys: &[key("mhz", "1 to 100000", "", "its frequency in MHz"), key("mv", "1 to 10000", "", "its voltage in mV")],
};

/// `[[idle]]`.
pub const IDLE: Section = Section {
    name: "[[idle]]",
    keys: &[
        key("name", "string", "", "name of the state in sysfs"),
        key("exit", "constant or quantiles", "", "exit latency: from the wake event to the first instruction"),
        key(
            "latency",
            "duration",
            "the longest `exit`",
            "exit latency that the driver's table states, which the governor uses",
        ),
        key("target-residency", "duration", "0s", "target residency: shortest idle period for which it is chosen"),
        key(
            "polling",
            "boolean",
            "false",
            "whether the CPU polls its need-resched flag, so that a wakeup needs no IPI",
        ),
        key("range", "two percentages", "", "bounds of an estimated exit latency, in percent of its value"),
        key("source", "string", "", "where the numbers come from"),
    ],
};

/// `[caches]` of a machine.
pub const CACHES: Section = Section {
    name: "[caches]",
    keys: &[
        key("l1", "cache", "", "the L1 data cache"),
        key("l2", "cache", "", "the L2 cache"),
        key("llc", "cache", "", "each last-level cache of the topology"),
        key("memory", "table with read", "", "the memory behind the caches"),
        key("front-end", "table", "", "how much code a core holds in its caches and predictors"),
        key(
            "range",
            "two percentages",
            "",
            "bounds of estimated times, in percent of their excess over the nearest cache's",
        ),
        key("source", "string", "", "where the numbers come from"),
    ],
};

/// A cache.
pub const CACHE: Section = Section {
    name: "a cache",
    keys: &[
        key("size", "size such as \"1MiB\"", "", "its capacity"),
        key("read", "duration", "", "time to read 1 KiB from it"),
        key(
            "shared-by",
            "core or llc",
            "core; llc: llc",
            "the CPUs that share it: those of a core, or of a last-level cache",
        ),
    ],
};

/// `front-end` of `[caches]`.
pub const FRONT_END: Section = Section {
    name: "front-end",
    keys: &[
        key("size", "size such as \"128KiB\"", "", "code that it holds"),
        key("warm", "duration", "", "time to execute 1 KiB of code that it holds"),
        key("cold", "duration", "", "time to execute 1 KiB of other code"),
    ],
};

/// `[physics]` of a machine.
pub const PHYSICS: Section = Section {
    name: "[physics]",
    keys: &[
        key("lines", "boolean", "whether `line-transfer` is given", "cache lines are transferred between CPUs"),
        key("locks", "boolean", "false", "tasks wait for locks of the kernel"),
        key("selection", "boolean", "false", "a search for a CPU takes time before the enqueue"),
        key("cpuidle", "boolean", "false", "a governor chooses idle states and stops the tick: menu, or TEO"),
        key("teo", "boolean", "false", "the governor is TEO; needs `cpuidle`"),
        key("core-idle", "boolean", "false", "a thread is in no deeper idle state than its whole core"),
        key("housekeeping", "boolean", "false", "the kernel's periodic threads run"),
        key("memory", "boolean", "whether `[memory]` is given", "CPUs share the bandwidth of a node's memory"),
        key(
            "warmth",
            "boolean",
            "whether `caches` is given",
            "a task refills the part of its working set that others have evicted",
        ),
        key("mmap-lock", "boolean", "false", "threads of a process wait for its `mmap_lock`"),
        key(
            "frequency",
            "boolean",
            "whether `[frequency]` is given",
            "CPUs run at the frequencies that the busy cores and the governor allow",
        ),
        key("schedutil", "boolean", "false", "the governor is schedutil, otherwise performance; needs `frequency`"),
        key("source", "string", "", "why this machine has these mechanisms"),
    ],
};

/// `[memory]` of a machine.
pub const MEMORY: Section = Section {
    name: "[memory]",
    keys: &[
        key("cpu", "1 to 10000000", "", "MB/s to one CPU alone, as STREAM counts its triad"),
        key("node", "1 to 10000000", "", "MB/s from the memory of a node to all CPUs, at least `cpu`"),
        key("remote", "1 to 10000000", "`node`", "MB/s of that to the CPUs of all other nodes, at most `node`"),
        key("latency", "duration", "none", "idle latency of a read from the CPU's node; with `remote-latency`"),
        key("remote-latency", "duration", "none", "the same from another node, for `memory` of workloads"),
        key("range", "two percentages", "", "bounds of estimated rates, in percent of their value (`--robust`)"),
        key("source", "string", "", "where the numbers come from"),
    ],
};

/// `[frequency]` of a machine.
pub const FREQUENCY: Section = Section {
    name: "[frequency]",
    keys: &[
        key("base", "1 to 100000", "", "MHz at which the costs hold"),
        key("min", "1 to 100000", "`base`", "the lowest, at least a 64th of `base`"),
        key(
            "turbo",
            "pairs of numbers",
            "`base` alone",
            "the highest, by number of busy cores of a node such as [[2, 3800], [28, 3200]]; the last holds for more cores, too",
        ),
        key("rate-limit", "duration", "1ms", "shortest time between two changes by schedutil (`rate_limit_us`)"),
        key("source", "string", "", "where the numbers come from"),
    ],
};

/// `[[sections]]` of a machine.
pub const SECTIONS_OF_CALL: Section = Section {
    name: "[[sections]]",
    keys: &[
        key("call", "name", "", "the call, as `calibrate --sections` names it"),
        key("kib", "0 to 1048576", "0", "KiB that it works on"),
        key("length", "1 to 1000000000", "", "its length in instructions, the unit of all positions"),
        key("cond-resched", "positions", "none", "points of cond_resched()"),
        key("might-sleep", "positions", "none", "points of might_sleep()"),
        key("spinlock", "pairs of positions", "none", "sections under a spinlock, interrupts enabled"),
        key("irq-off", "pairs of positions", "none", "sections under a spinlock, interrupts disabled"),
        key("page-table", "pairs of positions", "none", "loops over a page table that look at the flag at every page"),
        key("points-of", "strings", "none", "the functions that contain the points, and how many each; not read"),
        key("longest-spinlock-of", "string", "", "the function that holds a spinlock for longest; not read"),
    ],
};
