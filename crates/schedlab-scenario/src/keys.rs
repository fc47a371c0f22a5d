//! Every key of a scenario or machine file, one line each. The reader accepts exactly the keys that docs/scenario.md documents.

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The form of its value.
    pub form: &'static str,
    /// The default; empty if the key is required or has no default.
    pub default: &'static str,
    /// The meaning.
    pub help: &'static str,
}

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// The name in messages and on the page.
    pub name: &'static str,
    /// The keys.
    pub keys: &'static [Key],
}

impl Section {
    /// The names of its keys.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }
}

pub(crate) const fn key(name: &'static str, form: &'static str, default: &'static str, help: &'static str) -> Key {
    Key { name, form, default, help }
}

/// All sections, in the order of the page.
pub const SECTIONS: &[&Section] = &[
    &SCENARIO,
    &WORKLOAD,
    &TASK,
    &OBJECT,
    &STEP,
    &CGROUP,
    &GUEST,
    &VARIANT,
    &VARIANT_TASK,
    &VARIANT_CGROUP,
    &VARIANT_GUEST,
    &GUEST_EVENT,
    &METRIC,
    &ARM,
    &ARM_HOST,
    &ARM_VM,
    &MACHINE,
    &TOPOLOGY,
    &COSTS,
    &COST,
    &IDLE,
    &PHYSICS,
];

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
        key("noise", "boolean", "true", "whether phases, start offsets and costs are random"),
        key("workload", "tables", "", "what runs"),
        key("cgroup", "tables", "", "control groups that workloads run in"),
        key("guest", "tables", "", "virtual machines that the machine hosts; simulated only"),
        key("variant", "tables", "", "the schedulers to compare"),
        key("metric", "tables", "each workload's own", "what is judged, and the margin that matters"),
        key("arm", "table", "", "settings for real kernels; see docs/arms.md"),
    ],
};

/// `[[workload]]`.
pub const WORKLOAD: Section = Section {
    name: "[[workload]]",
    keys: &[
        key("use", "catalogue id", "", "a benchmark of the catalogue; its options are keys as well"),
        key("rt-app", "path, or list of paths", "", "an rt-app file, or several fragments to merge"),
        key("program", "steps", "", "the program of one kind of task"),
        key("task", "tables", "", "several kinds of task, each with a program"),
        key("object", "tables", "", "pipes, locks and other objects with parameters other than the default"),
        key("name", "word", "the id, or the file's name", "prefix of its metrics"),
        key("repeat", "boolean", "false", "restart it when it ends, so that it serves as background load"),
        key("count", "1 to 100000", "1", "how many tasks run the program (only with program)"),
        key("nice", "-20 to 19", "0", "nice value of its tasks"),
        key("slice", "0.1ms to 100ms", "the base slice", "custom slice of its tasks, on kernels that support it"),
        key("latency_nice", "-20 to 19", "0", "latency nice of its tasks, on kernels that support it"),
        key("policy", "normal, batch, idle, fifo:N, rr:N", "normal", "scheduling policy of its tasks"),
        key("cpus", "CPU list such as \"0-3,8\"", "all", "CPUs its tasks may use"),
        key("cgroup", "path", "the root", "control group of its tasks, declared by a [[cgroup]]"),
        key("guest", "name", "the host", "the guest that it runs in, declared by a [[guest]]"),
        key("delay", "duration", "0s", "when it starts"),
        key("timer-slack", "duration", "50us", "timer slack of its tasks"),
    ],
};

/// `[[workload.task]]`.
pub const TASK: Section = Section {
    name: "[[workload.task]]",
    keys: &[
        key("name", "word", "", "its name"),
        key("program", "steps", "", "what it does"),
        key("count", "0 to 100000", "1", "how many are started; 0: only fork creates it"),
        key("nice", "-20 to 19", "0", "nice value"),
        key("slice", "0.1ms to 100ms", "the base slice", "custom slice"),
        key("latency_nice", "-20 to 19", "0", "latency nice"),
        key("policy", "normal, batch, idle, fifo:N, rr:N", "normal", "scheduling policy"),
        key("cpus", "CPU list", "all", "CPUs it may use"),
        key("delay", "duration", "0s", "when it starts"),
        key("timer-slack", "duration", "50us", "timer slack of its tasks"),
        key("cgroup", "path", "the workload's", "control group"),
        key("process", "number", "one per workload", "tasks with equal numbers are threads of one process"),
    ],
};

/// `[[workload.object]]`.
pub const OBJECT: Section = Section {
    name: "[[workload.object]]",
    keys: &[
        key("name", "word", "", "its name in steps"),
        key("kind", "pipe, socket, mutex, barrier, semaphore, spinlock", "", "what it is"),
        key("pages", "1 to 65536", "16", "buffers of a pipe, 4 KiB each"),
        key("packet", "boolean", "false", "whether each write fills a buffer of its own (O_DIRECT)"),
        key("sndbuf", "bytes", "212992", "send buffer of a socket"),
        key("pi", "boolean", "false", "priority inheritance"),
        key("parties", "1 to 100000", "", "number of waiters that release a barrier; default: the tasks that use it"),
        key("initial", "0 to 1000000", "0", "initial value of a semaphore"),
        key("spin", "duration", "", "how long a task spins for a spinlock before it sleeps; default: until it has it"),
        key("sleep", "duration", "", "how long it sleeps before it spins again"),
    ],
};

/// A step that is a table; the first key is its verb.
pub const STEP: Section = Section {
    name: "a step",
    keys: &[
        key("run", "length", "", "consume CPU time in user mode"),
        key("runtime", "length", "", "stay busy for this much wall-clock time"),
        key("system", "length", "", "consume CPU time in kernel mode"),
        key("call", "array of sections", "", "one system call, section by section"),
        key("fault", "1 to 1000000", "", "so many minor page faults; with page and clear"),
        key("page", "4KiB or 2MiB", "4KiB", "size of the pages"),
        key("clear", "boolean", "false", "whether each page is allocated and cleared, not only mapped"),
        key("munmap", "size", "", "free memory that is present in pages of 4 KiB, as exit does too"),
        key("read-file", "size", "", "read so much of a file that is in the page cache"),
        key("sleep", "length", "", "sleep"),
        key("timer", "name", "", "wait for the next expiry of a periodic timer; with period and mode"),
        key("period", "length", "", "period of the timer"),
        key("mode", "relative or absolute", "relative", "relative: a missed expiry delays the later ones"),
        key("read", "channel", "", "read bytes from a pipe or socket"),
        key("write", "channel", "", "write bytes to a pipe or socket"),
        key("bytes", "1 to 1048576", "1", "number of bytes to read or write"),
        key("wait", "name", "", "wait on a futex word"),
        key("post", "name", "", "wake the waiter, or the next task that waits"),
        key("lock", "mutex or spinlock", "", "acquire it"),
        key("unlock", "mutex or spinlock", "", "release it"),
        key("barrier", "name", "", "wait until all parties have arrived"),
        key("sem-wait", "semaphore", "", "decrement, wait while it is 0"),
        key("sem-post", "semaphore", "", "increment, wake a waiter"),
        key("cond-wait", "condition", "", "wait on a condition; with mutex"),
        key("mutex", "mutex", "", "the mutex of cond-wait"),
        key("signal", "condition", "", "wake one waiter"),
        key("broadcast", "condition", "", "wake all waiters"),
        key("fork", "task", "", "start a task; with as and memory"),
        key("as", "process or thread", "process", "kind of the forked task"),
        key("memory", "size", "", "present memory in pages of 4 KiB whose page tables fork copies"),
        key("nice", "-20 to 19", "", "change the task's nice value"),
        key("policy", "normal, batch, idle, fifo:N, rr:N", "", "change the task's scheduling policy"),
        key("cpus", "CPU list", "", "change the task's CPU affinity"),
        key("slice", "0s, or 0.1ms to 100ms", "", "change the task's slice; 0s restores the default"),
        key("cgroup", "path, \"/\" for the root", "", "move to another control group, declared by a [[cgroup]]"),
        key("loop", "count or \"forever\"", "", "repeat steps; with do"),
        key("do", "steps", "", "body of loop"),
        key("begin", "metric", "", "start the clock of a metric"),
        key("at", "timer", "now", "begin when this timer's expiry was due, not when the task ran after it"),
        key("end", "metric", "", "report the time since begin as one sample"),
        key("send", "queue", "", "append an entry to a queue and wake one receiver; with sample"),
        key("receive", "queue", "", "take the oldest entry of a queue, wait while it is empty; with sample"),
        key("sample", "metric", "none", "sample that travels with the entry: the receiver ends it or sends it on"),
        key("count", "metric", "", "report completed operations; with by"),
        key("by", "1 to 1000000", "1", "how many operations"),
    ],
};

/// `[[variant]]`.
pub const VARIANT: Section = Section {
    name: "[[variant]]",
    keys: &[
        key("name", "word", "", "its name in tables"),
        key(
            "kernel",
            "version or \"running\"",
            "",
            "the kernel version; \"running\": the row of this machine's kernel",
        ),
        key("features", "table of booleans", "the kernel's", "scheduler features, by their kernel names"),
        key("knobs", "table", "the kernel's", "tunables, by their kernel names"),
        key("hz", "100, 250, 300 or 1000", "the machine's", "timer frequency"),
        key(
            "preempt",
            "none, voluntary, full, lazy, auto-none, auto-voluntary, auto-full or rt",
            "the kernel's",
            "preemption model",
        ),
        key("tasks", "table", "", "tasks.WORKLOAD: attributes that override those of the workload's tasks"),
        key("cgroups", "table", "", "cgroups.GROUP: values that override those of the group"),
        key("guests", "table", "", "guests.NAME: values that override those of the guest"),
        key(
            "autogroup",
            "boolean",
            "false",
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
        key("quota", "1ms to 1000s", "unlimited", "CPU time per period, over all CPUs (cpu.max)"),
        key("period", "1ms to 1s", "100ms", "period of the quota; only with quota"),
        key(
            "burst",
            "duration, at most quota",
            "0s",
            "unused quota that may accumulate (cpu.max.burst, 5.14 and later)",
        ),
    ],
};

/// `[[guest]]`.
pub const GUEST: Section = Section {
    name: "[[guest]]",
    keys: &[
        key("name", "word", "", "its name in tables"),
        key("vcpus", "1 to 1024", "the topology's", "number of its CPUs; without a topology they share one cache"),
        key("topology", "table", "", "its CPUs as it sees them: counts as those of a machine"),
        key(
            "platform",
            "x86-kvm, arm64-kvm, arm64-kvm-pvsched, powerpc-kvm, powervm, s390",
            "",
            "hypervisor and architecture",
        ),
        key("kernel", "version", "the variant's", "its kernel"),
        key("features", "table of booleans", "the kernel's", "its scheduler features, and VCPU_IS_PREEMPTED"),
        key("knobs", "table", "the kernel's", "its tunables"),
        key("hz", "100, 250, 300 or 1000", "the machine's", "its timer frequency"),
        key("preempt", "none, full or lazy", "the kernel's", "its preemption model"),
        key("cpus", "CPU list", "all", "CPUs of the host that its vCPUs may use"),
        key("pinned", "boolean", "false", "pin each vCPU to one of these CPUs, in their order"),
        key("cgroup", "path", "the root", "control group of the host for its vCPUs, declared by a [[cgroup]]"),
        key("nice", "-20 to 19", "0", "nice value of its vCPUs"),
        key("idle_hint", "off or vpa", "off", "whether the host tells it on which CPUs ceded vCPUs would run at once"),
        key("paravirt_time_accounting", "boolean", "false", "leave stolen time out of its tasks' clocks"),
        key("halt_poll_ns", "duration", "the platform's", "longest time for which the host polls for a halted vCPU"),
        key("events", "tables", "none", "when it is paused, resumed and killed"),
    ],
};

/// `guest.events`.
pub const GUEST_EVENT: Section = Section {
    name: "guest.events",
    keys: &[
        key("at", "duration", "", "when, from the start of the run on"),
        key("action", "pause, resume or kill", "", "what is done to the guest"),
    ],
};

/// `variant.guests.NAME`.
pub const VARIANT_GUEST: Section = Section {
    name: "variant.guests.NAME",
    keys: &[
        key(
            "platform",
            "x86-kvm, arm64-kvm, arm64-kvm-pvsched, powerpc-kvm, powervm, s390",
            "the guest's",
            "hypervisor",
        ),
        key("kernel", "version", "the guest's", "its kernel"),
        key("features", "table of booleans", "the guest's", "features, besides those of the guest"),
        key("knobs", "table", "the guest's", "tunables, besides those of the guest"),
        key("hz", "100, 250, 300 or 1000", "the guest's", "its timer frequency"),
        key("preempt", "none, full or lazy", "the guest's", "its preemption model"),
        key("cpus", "CPU list", "the guest's", "CPUs of the host that its vCPUs may use"),
        key("pinned", "boolean", "the guest's", "pin each vCPU to one of these CPUs"),
        key("cgroup", "path", "the guest's", "control group of the host for its vCPUs"),
        key("nice", "-20 to 19", "the guest's", "nice value of its vCPUs"),
        key("idle_hint", "off or vpa", "the guest's", "idle hints of the host"),
        key("paravirt_time_accounting", "boolean", "the guest's", "leave stolen time out of its tasks' clocks"),
        key("halt_poll_ns", "duration", "the guest's", "longest time for which the host polls"),
        key("events", "tables", "the guest's", "when it is paused, resumed and killed"),
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
    ],
};

/// `variant.tasks.WORKLOAD`.
pub const VARIANT_TASK: Section = Section {
    name: "variant.tasks.WORKLOAD",
    keys: &[
        key("nice", "-20 to 19", "the workload's", "nice value"),
        key("slice", "0.1ms to 100ms", "the workload's", "custom slice"),
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
            "p20 p50 p75 p90 p95 p99 p99.5 p99.9 p99.95 p99.99 mean min max count",
            "",
            "statistic, for a metric with samples",
        ),
        key("margin", "percentage", "2%", "smallest difference that matters"),
        key("better", "lower, higher or neither", "the metric's", "which direction is an improvement"),
        key("unit", "us, ms or s", "the metric's", "unit in which a time is shown"),
        key(
            "at-least",
            "number, in the unit",
            "",
            "lower bound for a correct scheduler; checked by the tests of scenarios/bugs",
        ),
        key("at-most", "number, in the unit", "", "upper bound for a correct scheduler, likewise"),
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
        key("time-limit", "duration", "60s plus 10 times the scenario's", "a run that takes longer has failed"),
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
        key("time-limit", "duration", "300s plus 30 times the scenario's", "a guest that takes longer has failed"),
    ],
};

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
        key("costs", "table", "", "cost of each action"),
        key("idle", "tables", "", "idle states of a CPU, shallowest first"),
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
        key("threads-per-core", "1 to 8", "1", "hardware threads of a core"),
        key("numbering", "threads-last, adjacent or paired-cores", "threads-last", "how CPUs are numbered"),
        key("smt-rates", "percentages", "100%", "speed of a thread by the number of busy threads of its core"),
        key("source", "string", "", "where the numbers come from"),
    ],
};

/// `[costs]`.
pub const COSTS: Section = Section {
    name: "[costs]",
    keys: &[
        key("syscall", "cost", "", "entering and leaving the kernel once"),
        key("schedule", "cost", "0: part of the switch", "from the decision to leave a CPU until `sched_switch`"),
        key(
            "switch-thread",
            "cost",
            "",
            "from `sched_switch` until the next task is in user mode: a thread of the same process",
        ),
        key("switch-process", "cost", "", "the same, for another process"),
        key("wakeup", "cost", "", "waking a task, on the waker's side, without the search for a CPU"),
        key("wakeup-clock", "cost", "0", "the part of it before the runqueue clock is read"),
        key("scan-cpu", "cost by distance", "", "testing one CPU in the search for an idle one"),
        key("ipi", "cost by distance", "", "from sending an interrupt to a CPU until its handler starts"),
        key("irq-entry", "cost", "0", "from a timer's expiry until its handler starts"),
        key("irq", "cost", "", "an interrupt handler's own time"),
        key("tick", "cost", "", "the scheduler tick"),
        key("timer-program", "cost", "", "programming a timer, up to the sleep"),
        key("timer-resume", "cost", "0", "the rest of that call after the sleep"),
        key("pipe-read", "cost", "", "reading from a pipe that holds data: without the system call and the copy"),
        key("pipe-write", "cost", "", "writing to a pipe with room, likewise"),
        key("pipe-wake", "cost", "0", "what waking the other side adds to the wakeup"),
        key("pipe-wait", "cost", "pipe-read", "a call that blocks: up to the sleep, without the system call"),
        key("pipe-resume", "cost", "0", "the rest of that call after the sleep"),
        key("socket-receive", "cost", "", "as pipe-read, of a stream socket"),
        key("socket-send", "cost", "", "as pipe-write"),
        key("socket-wake", "cost", "0", "as pipe-wake"),
        key("socket-wait", "cost", "socket-receive", "as pipe-wait"),
        key("socket-resume", "cost", "0", "as pipe-resume"),
        key("copy-kib", "cost", "", "copying 1 KiB between user space and a channel"),
        key("futex-wake", "cost", "", "FUTEX_WAKE up to the wakeup, without the system call"),
        key("futex-wait", "cost", "futex-wake", "FUTEX_WAIT up to the sleep, without the system call"),
        key("futex-resume", "cost", "0", "the rest of that call after the sleep"),
        key("fork-process", "cost", "", "fork of a process, on the parent's side"),
        key("fork-thread", "cost", "", "clone of a thread, on the parent's side"),
        key("start-process", "cost", "0", "a new process before its first step"),
        key("start-thread", "cost", "0", "a new thread before its first step"),
        key("exec", "cost", "", "exec: from the call until the new program's first step"),
        key("exit-process", "cost", "", "exit of a process"),
        key("exit-thread", "cost", "", "exit of a thread"),
        key("reap-wait", "cost", "0", "waiting for a child: up to the sleep, without the system call"),
        key("reap", "cost", "0", "reaping a child, without the system call"),
        key("balance-pass", "cost", "", "a load-balance pass, without the CPUs it looks at"),
        key("balance-cpu", "cost", "", "each CPU that such a pass reads"),
        key("fault", "cost", "", "a page fault that maps a page in memory, exception entry and exit included"),
        key("clear-kib", "cost", "", "clearing 1 KiB of memory"),
        key("read-kib", "cost", "", "reading 1 KiB of a file that is in the page cache"),
        key("unmap-page", "cost", "", "munmap or exit: each 4 KiB page that is present"),
        key("copy-page-table", "cost", "", "fork: each 4 KiB page whose page-table entry is copied"),
        key("user-op", "cost", "", "a user-mode atomic operation or clock read"),
        key("vm-exit", "cost", "0ns", "a VM exit that the host's kernel handles, and the entry after it"),
        key("idle-hint", "cost", "0ns", "visiting one vCPU in the host's walk over all vCPUs (idle_hint = \"vpa\")"),
        key("line-transfer", "cost by distance", "0", "fetching a cache line that another CPU has touched last"),
    ],
};

/// `[physics]` of a machine.
pub const PHYSICS: Section = Section {
    name: "[physics]",
    keys: &[
        key("lines", "boolean", "whether `line-transfer` is given", "cache lines are transferred between CPUs"),
        key("locks", "boolean", "false", "locks of the kernel are waited for"),
        key("selection", "boolean", "false", "a search for a CPU takes its time before the enqueue"),
        key("cpuidle", "boolean", "false", "the menu governor chooses idle states and stops the tick"),
        key("core-idle", "boolean", "false", "a thread leaves an idle state that its whole core has reached"),
        key("source", "string", "", "why this machine has them"),
    ],
};

/// A cost.
pub const COST: Section = Section {
    name: "a cost",
    keys: &[
        key("constant", "duration", "", "no spread"),
        key("quantiles", "table p0 to p100 of durations", "", "distribution, linear between the given quantiles"),
        key("range", "two percentages", "", "between which parts of its value an estimate may lie (`--robust`)"),
        key("source", "string", "", "where the number comes from"),
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
        key("name", "string", "", "name of the state in sysfs"),
        key("exit", "constant or quantiles", "", "exit latency: from the wake event to the first instruction"),
        key("target-residency", "duration", "0s", "target residency: shortest stay for which it is chosen"),
        key(
            "polling",
            "boolean",
            "false",
            "whether the CPU polls its need-resched flag, so that a wakeup needs no IPI",
        ),
        key("range", "two percentages", "", "between which parts of its value an estimated exit latency may lie"),
        key("source", "string", "", "where the numbers come from"),
    ],
};
