//! Every key of a scenario or machine file, one line of data each: what the reader accepts is what the page documents.

/// A key.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What its value looks like.
    pub form: &'static str,
    /// What it is when left out; empty when it must be given or simply is not there.
    pub default: &'static str,
    /// What it means.
    pub help: &'static str,
}

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// How messages and the page call it.
    pub name: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

impl Section {
    /// The names of its keys.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }
}

const fn key(name: &'static str, form: &'static str, default: &'static str, help: &'static str) -> Key {
    Key { name, form, default, help }
}

/// Every section, in the order of the page.
pub const SECTIONS: &[&Section] = &[
    &SCENARIO,
    &WORKLOAD,
    &TASK,
    &OBJECT,
    &STEP,
    &CGROUP,
    &VARIANT,
    &VARIANT_TASK,
    &VARIANT_CGROUP,
    &METRIC,
    &ARM,
    &ARM_HOST,
    &ARM_VM,
    &MACHINE,
    &TOPOLOGY,
    &COSTS,
    &COST,
    &IDLE,
];

/// The file itself.
pub const SCENARIO: Section = Section {
    name: "the scenario",
    keys: &[
        key("name", "string", "the file's name", "what reports call it"),
        key("summary", "string", "", "one line about it"),
        key("machine", "preset, path, \"host\" or table", "", "what it runs on"),
        key("duration", "duration", "10s", "limit of a run, warm-up included"),
        key("warmup", "duration", "0s", "samples before this are dropped"),
        key("seeds", "count or list", "10", "how many runs per variant, or which seeds"),
        key("noise", "boolean", "true", "whether phases, offsets and costs are drawn at all"),
        key("workload", "tables", "", "what runs"),
        key("cgroup", "tables", "", "control groups that workloads run in"),
        key("variant", "tables", "", "which schedulers are compared"),
        key("metric", "tables", "each workload's own", "what is judged, and how finely"),
        key("arm", "table", "", "how real kernels run it: docs/arms.md"),
    ],
};

/// `[[workload]]`.
pub const WORKLOAD: Section = Section {
    name: "[[workload]]",
    keys: &[
        key("use", "catalogue id", "", "a benchmark; its own options are keys too"),
        key("rt-app", "path, or list of paths", "", "an rt-app file, or the fragments that together are one"),
        key("program", "steps", "", "the steps of one kind of task"),
        key("task", "tables", "", "several kinds of task, each with a program"),
        key("object", "tables", "", "pipes, locks and so on that need more than their usual parameters"),
        key("name", "word", "the id, or the file's name", "prefix of its metrics"),
        key("repeat", "boolean", "false", "start it again when it ends: as load"),
        key("count", "1 to 100000", "1", "how many tasks run the program (only with program)"),
        key("nice", "-20 to 19", "0", "nice value of its tasks"),
        key("slice", "0.1ms to 100ms", "the base slice", "own slice of its tasks, where the kernel has that"),
        key("latency_nice", "-20 to 19", "0", "latency nice of its tasks, where the kernel has that"),
        key("policy", "normal, batch, idle, fifo:N, rr:N", "normal", "scheduling policy of its tasks"),
        key("cpus", "CPU list such as \"0-3,8\"", "all", "CPUs its tasks may use"),
        key("cgroup", "path", "the root", "control group of its tasks, declared by a [[cgroup]]"),
        key("delay", "duration", "0s", "when it starts"),
        key("timer-slack", "duration", "50us", "how late its timers may be"),
    ],
};

/// `[[workload.task]]`.
pub const TASK: Section = Section {
    name: "[[workload.task]]",
    keys: &[
        key("name", "word", "", "its name"),
        key("program", "steps", "", "what it does"),
        key("count", "0 to 100000", "1", "how many of it start; 0: only fork starts it"),
        key("nice", "-20 to 19", "0", "nice value"),
        key("slice", "0.1ms to 100ms", "the base slice", "own slice"),
        key("latency_nice", "-20 to 19", "0", "latency nice"),
        key("policy", "normal, batch, idle, fifo:N, rr:N", "normal", "scheduling policy"),
        key("cpus", "CPU list", "all", "CPUs it may use"),
        key("delay", "duration", "0s", "when it starts"),
        key("timer-slack", "duration", "50us", "how late its timers may be"),
        key("cgroup", "path", "the workload's", "control group"),
        key("process", "number", "one per workload", "tasks with equal numbers are threads of one process"),
    ],
};

/// `[[workload.object]]`.
pub const OBJECT: Section = Section {
    name: "[[workload.object]]",
    keys: &[
        key("name", "word", "", "how steps call it"),
        key("kind", "pipe, socket, mutex, barrier, semaphore", "", "what it is"),
        key("pages", "1 to 65536", "16", "buffers of a pipe, 4 KiB each"),
        key("packet", "boolean", "false", "a pipe with one message a page"),
        key("sndbuf", "bytes", "212992", "send buffer of a socket"),
        key("pi", "boolean", "false", "a mutex with priority inheritance"),
        key("parties", "1 to 100000", "", "parties of a barrier; undeclared, the tasks that name it"),
        key("initial", "0 to 1000000", "0", "units of a semaphore at start"),
    ],
};

/// A step that is a table; the first key is its verb.
pub const STEP: Section = Section {
    name: "a step",
    keys: &[
        key("run", "length", "", "consume CPU time in user mode"),
        key("runtime", "length", "", "stay busy until the wall clock has moved this much"),
        key("system", "length", "", "consume CPU time in kernel mode"),
        key("sleep", "length", "", "sleep"),
        key("timer", "name", "", "wait for the next expiry; with period and mode"),
        key("period", "length", "", "period of timer"),
        key("mode", "relative or absolute", "relative", "whether a missed expiry moves the later ones"),
        key("read", "channel", "", "read bytes from a pipe or socket"),
        key("write", "channel", "", "write bytes to a pipe or socket"),
        key("bytes", "1 to 1048576", "1", "size of read and write"),
        key("wait", "name", "", "wait on a futex word"),
        key("post", "name", "", "wake its waiter, or the next one to come"),
        key("lock", "mutex", "", "acquire a mutex"),
        key("unlock", "mutex", "", "release it"),
        key("barrier", "name", "", "wait until all parties are there"),
        key("sem-wait", "semaphore", "", "take a unit"),
        key("sem-post", "semaphore", "", "give a unit"),
        key("cond-wait", "condition", "", "wait on a condition; with mutex"),
        key("mutex", "mutex", "", "the mutex of cond-wait"),
        key("signal", "condition", "", "wake one waiter"),
        key("broadcast", "condition", "", "wake all waiters"),
        key("fork", "task", "", "start a task; with as"),
        key("as", "process or thread", "process", "kind of the forked task"),
        key("nice", "-20 to 19", "", "change the own nice value"),
        key("policy", "normal, batch, idle, fifo:N, rr:N", "", "change the own policy"),
        key("cpus", "CPU list", "", "change the own affinity"),
        key("slice", "0s, or 0.1ms to 100ms", "", "change the own slice; 0s: back to the base slice"),
        key("cgroup", "path, \"/\" for the root", "", "move to another control group, declared by a [[cgroup]]"),
        key("loop", "count or \"forever\"", "", "repeat steps; with do"),
        key("do", "steps", "", "body of loop"),
        key("begin", "metric", "", "start the clock of a metric"),
        key("end", "metric", "", "report the time since begin as one sample"),
        key("count", "metric", "", "report completed operations; with by"),
        key("by", "1 to 1000000", "1", "how many operations"),
    ],
};

/// `[[variant]]`.
pub const VARIANT: Section = Section {
    name: "[[variant]]",
    keys: &[
        key("name", "word", "", "what tables call it"),
        key("kernel", "version or \"running\"", "", "the kernel whose scheduler decides; running: this machine's"),
        key("features", "table of booleans", "the kernel's", "feature switches, under their kernel names"),
        key("knobs", "table", "the kernel's", "tunables, under their kernel names"),
        key("hz", "100, 250, 300 or 1000", "the machine's", "timer frequency"),
        key("preempt", "none, voluntary, full or lazy", "the kernel's", "preemption model"),
        key("tasks", "table", "", "tasks.WORKLOAD: what is different for that workload's tasks"),
        key("cgroups", "table", "", "cgroups.GROUP: what is different in that group's files"),
        key("autogroup", "boolean", "false", "each workload is a session: its tasks outside cgroups share a group"),
        key("sysctl", "table", "the machine's", "sysctls by their full name; real kernels only"),
    ],
};

/// `[[cgroup]]`.
pub const CGROUP: Section = Section {
    name: "[[cgroup]]",
    keys: &[
        key("name", "path such as web/fast", "", "how workloads call it; those above it exist, too"),
        key("weight", "1 to 10000", "100", "weight against its siblings (cpu.weight)"),
        key("weight-nice", "-20 to 19", "0", "the same as a nice value (cpu.weight.nice)"),
        key("shares", "2 to 262144", "1024", "the same as cgroup v1 has it (cpu.shares)"),
        key("idle", "boolean", "false", "run only when nobody else wants to (cpu.idle, 5.15 and later)"),
        key("latency_nice", "-20 to 19", "0", "latency nice of the group (cpu.latency.nice, eevdf-rfc)"),
        key("quota", "1ms to 1000s", "unlimited", "CPU time per period, over all CPUs (cpu.max)"),
        key("period", "1ms to 1s", "100ms", "what the quota is for; only with quota"),
        key(
            "burst",
            "duration, at most quota",
            "0s",
            "unused quota that may be saved up (cpu.max.burst, 5.14 and later)",
        ),
    ],
};

/// `variant.cgroups.GROUP`.
pub const VARIANT_CGROUP: Section = Section {
    name: "variant.cgroups.GROUP",
    keys: &[
        key("weight", "1 to 10000", "the group's", "weight (cpu.weight)"),
        key("weight-nice", "-20 to 19", "the group's", "weight as a nice value"),
        key("shares", "2 to 262144", "the group's", "weight as cgroup v1 has it"),
        key("idle", "boolean", "the group's", "run only when nobody else wants to"),
        key("latency_nice", "-20 to 19", "the group's", "latency nice"),
        key("quota", "1ms to 1000s", "the group's", "CPU time per period"),
        key("period", "1ms to 1s", "100ms", "what the quota is for; only with quota"),
        key("burst", "duration, at most quota", "0s", "unused quota that may be saved up; only with quota"),
    ],
};

/// `variant.tasks.WORKLOAD`.
pub const VARIANT_TASK: Section = Section {
    name: "variant.tasks.WORKLOAD",
    keys: &[
        key("nice", "-20 to 19", "the workload's", "nice value"),
        key("slice", "0.1ms to 100ms", "the workload's", "own slice"),
        key("latency_nice", "-20 to 19", "the workload's", "latency nice"),
        key("policy", "normal, batch, idle, fifo:N, rr:N", "the workload's", "scheduling policy"),
    ],
};

/// `[[metric]]`.
pub const METRIC: Section = Section {
    name: "[[metric]]",
    keys: &[
        key("of", "WORKLOAD.METRIC, /GROUP.METRIC or sched.METRIC", "", "what is measured"),
        key(
            "stat",
            "p20 p50 p75 p90 p95 p99 p99.5 p99.9 mean min max count",
            "",
            "statistic of a metric with many samples",
        ),
        key("margin", "percentage", "2%", "smallest difference that matters"),
        key("better", "lower, higher or neither", "the metric's", "which direction is an improvement"),
        key("unit", "us, ms or s", "the metric's", "unit of a time as shown"),
        key(
            "at-least",
            "number, in the unit",
            "",
            "what a correct scheduler reaches; the tests of scenarios/bugs hold it",
        ),
        key("at-most", "number, in the unit", "", "what a correct scheduler stays below, likewise"),
    ],
};

/// `[arm]`.
pub const ARM: Section = Section {
    name: "[arm]",
    keys: &[
        key(
            "driver",
            "program or agent",
            "program where installed",
            "who runs a benchmark: the real program, or the agent",
        ),
        key("host", "table", "", "the running kernel"),
        key("vm", "table", "", "another kernel in QEMU"),
    ],
};

/// `[arm.host]`.
pub const ARM_HOST: Section = Section {
    name: "[arm.host]",
    keys: &[
        key("order", "abba or blocks", "abba", "order of variants: to and fro, or drawn anew for each seed"),
        key("noise-limit", "percentage", "5%", "foreign load, steal and throttling above which nothing is judged"),
        key("time-limit", "duration", "ten times the scenario's, and 60s", "after which a run is taken to hang"),
    ],
};

/// `[arm.vm]`.
pub const ARM_VM: Section = Section {
    name: "[arm.vm]",
    keys: &[
        key("image", "path", "the variant's kernel, from Debian", "kernel image that every variant boots"),
        key("repeatable", "boolean", "false", "one CPU whose time counts instructions (-icount)"),
        key("memory", "64 to 65536", "1024", "memory of the guest in MiB"),
        key("cgroup", "v1 or v2", "v2", "which interface the guest's control groups have"),
        key("append", "string", "", "more words for the kernel's command line"),
        key("time-limit", "duration", "thirty times the scenario's, and 300s", "after which a guest is taken to hang"),
    ],
};

/// A machine file, or an inline table.
pub const MACHINE: Section = Section {
    name: "the machine",
    keys: &[
        key("name", "word", "the file's name", "what reports call it"),
        key("summary", "string", "", "one line about it"),
        key("base", "preset", "", "a machine that gives whatever is not said here"),
        key("calibrated", "boolean", "false", "whether its costs were measured on such a machine"),
        key("hz", "100, 250, 300 or 1000", "250", "timer frequency of its kernel"),
        key("topology", "table or \"host\"", "", "its CPUs and what they share"),
        key("costs", "table", "", "what each action costs"),
        key("idle", "tables", "", "idle states of a CPU, shallowest first"),
    ],
};

/// `[topology]`.
pub const TOPOLOGY: Section = Section {
    name: "[topology]",
    keys: &[
        key("nodes", "1 to 1024", "1", "NUMA nodes, one socket each"),
        key("llcs-per-node", "1 to 1024", "1", "last-level caches of a node"),
        key("cores-per-llc", "1 to 1024", "", "cores under a last-level cache"),
        key("threads-per-core", "1 to 8", "1", "hardware threads of a core"),
        key("numbering", "threads-last, adjacent or paired-cores", "threads-last", "how CPUs are numbered"),
        key("smt-rates", "percentages", "100%", "speed of one thread by how many of its core are busy"),
        key("source", "string", "", "where this comes from"),
    ],
};

/// `[costs]`.
pub const COSTS: Section = Section {
    name: "[costs]",
    keys: &[
        key("syscall", "cost", "", "entering and leaving the kernel once"),
        key("schedule", "cost", "0: part of the switch", "from the decision to leave a CPU until `sched_switch`"),
        key("switch-thread", "cost", "", "from there until the next runs, a thread of the same process"),
        key("switch-process", "cost", "", "the same, another process"),
        key("wakeup", "cost", "", "waking a task, on the waker's side, without the search for a CPU"),
        key("wakeup-clock", "cost", "0", "how much of that comes before the runqueue's clock is read"),
        key("scan-cpu", "cost by distance", "", "testing one CPU in the search for an idle one"),
        key("ipi", "cost by distance", "", "from sending an interrupt to a CPU until its handler starts"),
        key("irq-entry", "cost", "0", "from a timer's expiry until its handler starts"),
        key("irq", "cost", "", "an interrupt handler's own time"),
        key("tick", "cost", "", "the scheduler tick"),
        key("timer-program", "cost", "", "programming a timer, up to the sleep"),
        key("timer-resume", "cost", "0", "the rest of that call after the sleep"),
        key("pipe-read", "cost", "", "reading what a pipe holds, beyond the syscall, without the copy"),
        key("pipe-write", "cost", "", "writing into a pipe with room, likewise"),
        key("pipe-wake", "cost", "0", "what waking the other side adds, beyond the wakeup"),
        key("pipe-wait", "cost", "pipe-read", "a call that must wait, up to the sleep, beyond the syscall"),
        key("pipe-resume", "cost", "0", "the rest of that call after the sleep"),
        key("socket-receive", "cost", "", "as pipe-read, of a stream socket"),
        key("socket-send", "cost", "", "as pipe-write"),
        key("socket-wake", "cost", "0", "as pipe-wake"),
        key("socket-wait", "cost", "socket-receive", "as pipe-wait"),
        key("socket-resume", "cost", "0", "as pipe-resume"),
        key("copy-kib", "cost", "", "copying 1 KiB between user space and a channel"),
        key("futex-wake", "cost", "", "waking by futex, up to the wakeup, beyond the syscall"),
        key("futex-wait", "cost", "futex-wake", "waiting on a futex, up to the sleep, beyond the syscall"),
        key("futex-resume", "cost", "0", "the rest of that call after the sleep"),
        key("fork-process", "cost", "", "fork of a process, on the parent's side"),
        key("fork-thread", "cost", "", "clone of a thread, on the parent's side"),
        key("start-process", "cost", "0", "what a new process does before its program"),
        key("start-thread", "cost", "0", "what a new thread does before its program"),
        key("exit-process", "cost", "", "exit of a process"),
        key("exit-thread", "cost", "", "exit of a thread"),
        key("reap-wait", "cost", "0", "waiting for a child, up to the sleep, beyond the syscall"),
        key("reap", "cost", "0", "collecting a child, beyond the syscall"),
        key("balance-pass", "cost", "", "a load-balance pass, without the CPUs it looks at"),
        key("balance-cpu", "cost", "", "each CPU that such a pass looks at"),
        key("user-op", "cost", "", "a user-mode atomic operation or clock read"),
    ],
};

/// A cost.
pub const COST: Section = Section {
    name: "a cost",
    keys: &[
        key("constant", "duration", "", "always the same"),
        key("quantiles", "table p0 to p100 of durations", "", "its spread: linear between the given quantiles"),
        key("source", "string", "", "where it comes from"),
        key("same", "constant or quantiles", "", "within the CPU (a cost by distance)"),
        key("smt", "constant or quantiles", "", "to another thread of the core"),
        key("llc", "constant or quantiles", "", "to another core under the last-level cache"),
        key("node", "constant or quantiles", "", "to another cache of the node"),
        key("remote", "constant or quantiles", "", "to another node"),
    ],
};

/// `[[idle]]`.
pub const IDLE: Section = Section {
    name: "[[idle]]",
    keys: &[
        key("name", "string", "", "the kernel's name of the state"),
        key("exit", "constant or quantiles", "", "from the wake event until instructions run again"),
        key("target-residency", "duration", "0s", "shortest stay for which it is chosen"),
        key("polling", "boolean", "false", "whether the CPU watches its own flag, so that a waker needs no interrupt"),
        key("source", "string", "", "where this comes from"),
    ],
};
