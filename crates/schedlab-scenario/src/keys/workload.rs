//! The keys of `[[workload]]` and of its tasks and objects.

use super::{key, Section};

/// `[[workload]]`.
pub const WORKLOAD: Section = Section {
    name: "[[workload]]",
    keys: &[
        key("use", "catalogue id", "", "a benchmark of the catalogue; its options are keys as well"),
        key("rt-app", "path, or list of paths", "", "an rt-app file, or several fragments to merge"),
        key("program", "steps", "", "the program of one kind of task"),
        key("task", "tables", "", "several kinds of task, each with a program"),
        key("object", "tables", "", "pipes, locks and other objects with parameters other than the default"),
        key("remote", "tables", "", "clients on other machines that send requests to its tasks"),
        key("name", "word", "the id, or the file's name", "prefix of its metrics"),
        key("repeat", "boolean", "false", "restart it when it ends, so that it serves as background load"),
        key("count", "1 to 100000", "1", "how many tasks run the program (only with program)"),
        key("nice", "-20 to 19", "0", "nice value of its tasks"),
        key("slice", "0.1ms to 100ms", "the base slice", "custom slice of its tasks, on kernels that support it"),
        key("latency_nice", "-20 to 19", "0", "latency nice of its tasks, on kernels that support it"),
        key("policy", "normal, batch, idle, fifo:N, rr:N, deadline:R/P", "normal", "scheduling policy of its tasks"),
        key("cpus", "CPU list such as \"0-3,8\"", "all", "CPUs its tasks may use"),
        key("cgroup", "path", "the root", "control group of its tasks, declared by a [[cgroup]]"),
        key("guest", "name", "the host", "the guest that it runs in, declared by a [[guest]]"),
        key("delay", "duration", "0s", "when it starts"),
        key("timer-slack", "duration", "50us", "timer slack of its tasks"),
        key(
            "working-set",
            "size such as \"256KiB\"",
            "none",
            "data that each of its tasks uses repeatedly, for `warmth`",
        ),
        key("code", "size such as \"64KiB\"", "none", "code that its tasks execute repeatedly, for `warmth`"),
        key("memory", "table", "none", "memory of each of its tasks, where its node matters (only with program)"),
    ],
};

/// `memory` of a workload or task.
pub const TASK_MEMORY: Section = Section {
    name: "memory of a task",
    keys: &[
        key("private", "size such as \"64MiB\"", "none", "what only the task uses"),
        key("shared", "size such as \"1GiB\"", "none", "what all tasks of its process use, one size in a process"),
        key("pass", "1ms to 1h", "", "the time in user mode in which it uses all of it once"),
        key("node", "node number", "that of the CPU that uses a page first", "the node on which it is at the start"),
        key("huge", "boolean", "false", "whether its pages have 2 MiB instead of 4 KiB"),
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
        key("policy", "normal, batch, idle, fifo:N, rr:N, deadline:R/P", "normal", "scheduling policy"),
        key("cpus", "CPU list", "all", "CPUs it may use"),
        key("delay", "duration", "0s", "when it starts"),
        key("timer-slack", "duration", "50us", "timer slack of its tasks"),
        key("working-set", "size such as \"256KiB\"", "none", "data that it uses repeatedly, for `warmth`"),
        key("code", "size such as \"64KiB\"", "none", "code that it executes repeatedly, for `warmth`"),
        key("memory", "table", "none", "its memory, where its node matters"),
        key("cgroup", "path", "the workload's", "control group"),
        key("process", "number", "one per workload", "tasks with equal numbers are threads of one process"),
    ],
};

/// `[[workload.remote]]`.
pub const REMOTE: Section = Section {
    name: "[[workload.remote]]",
    keys: &[
        key("name", "word", "remote", "what messages call the clients"),
        key("send", "queue", "", "the queue to which each request appends an entry"),
        key(
            "sample",
            "metric",
            "none",
            "a sample that begins when a request reaches the machine; its receiver takes it",
        ),
        key("rate", "0.001 to 100000000", "", "requests per second at random times (Poisson); an open loop"),
        key("every", "length", "", "the time between two requests, instead of rate; 0s counts as 1ns"),
        key("clients", "1 to 100000", "", "clients that each wait for a reply, instead of rate: a closed loop"),
        key("receive", "queue", "", "the queue of replies; only with clients"),
        key("think", "length", "0s", "from a reply to the next request of that client; only with clients"),
        key("network", "length", "0s", "the way from a client to the machine, and the same back; only with clients"),
        key("irq-cpus", "CPU list", "all", "the CPUs that take the interrupts, at random"),
        key("softirq", "length", "", "work of the softirq for a request, before a receiver is woken"),
    ],
};

/// `[[workload.object]]`.
pub const OBJECT: Section = Section {
    name: "[[workload.object]]",
    keys: &[
        key("name", "word", "", "its name in steps"),
        key("kind", "pipe, socket, mutex, barrier, semaphore, spinlock, disk", "", "what it is"),
        key("pages", "1 to 65536", "16", "buffers of a pipe, 4 KiB each"),
        key("packet", "boolean", "false", "whether each write fills a buffer of its own (O_DIRECT)"),
        key("sndbuf", "bytes", "212992", "send buffer of a socket"),
        key("pi", "boolean", "false", "priority inheritance"),
        key("parties", "1 to 100000", "", "number of waiters that release a barrier; default: the tasks that use it"),
        key("initial", "0 to 1000000", "0", "initial value of a semaphore"),
        key("depth", "1 to 1024", "", "requests that a disk serves at once; the others wait in order of arrival"),
        key(
            "spin",
            "duration",
            "",
            "how long a task spins for a spinlock before it sleeps; default: until it has the lock",
        ),
        key("sleep", "duration", "", "how long it sleeps before it spins again"),
        key(
            "sleep-max",
            "duration",
            "sleep",
            "limit of the sleeps, each longer by a random factor of 1 to 2; beyond it the next one is sleep again",
        ),
        key(
            "slice-extension",
            "boolean",
            "false",
            "whether the holder of a spinlock requests a time slice extension (7.0)",
        ),
    ],
};
