//! The verbs a user's task program is written in, as a typed tree with symbolic object names.
//!
//! The scenario file and the rt-app reader both produce this tree; [`crate::lower`] turns it into a
//! [`crate::Workload`]. Objects that no one declares get the usual parameters of the first verb that names them.

use schedlab_model::{CpuMask, Nanos};

use crate::{Dist, MemoryWork, MetricDecl, ObjectSpec, Policy, Section, TaskKind, TaskSpec, TimerMode};

/// A whole user-written workload.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tree {
    /// The workload's name: prefix of its metrics.
    pub name: String,
    /// Objects with parameters of their own; the rest are made by use.
    pub objects: Vec<NamedObject>,
    /// Metrics that [`StepKind::SampleBegin`], [`StepKind::SampleEnd`] and [`StepKind::Count`] name; a metric that is
    /// sampled or counted without a declaration gets a default one.
    pub metrics: Vec<MetricDecl>,
    /// A sample of METRIC by a task is also one of TASK.METRIC, if that is declared.
    pub by_task: bool,
    /// Clients on other machines.
    pub remotes: Vec<TreeRemote>,
    /// Tasks, in the order in which they start.
    pub tasks: Vec<TreeTask>,
    /// Whether the workload has an end of its own: it is finished when all its tasks have exited. Set it for programs
    /// without an endless loop; the run then reports `time`.
    pub ends: bool,
}

/// An object declared by the user.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedObject {
    /// Line of the declaration.
    pub line: u32,
    /// Name that steps use.
    pub name: String,
    /// What it is.
    pub spec: ObjectSpec,
}

/// Clients on other machines, see [`crate::Remote`].
#[derive(Clone, PartialEq, Debug)]
pub struct TreeRemote {
    /// Line of the declaration.
    pub line: u32,
    /// What messages call them.
    pub name: String,
    /// The queue that receives their requests.
    pub queue: String,
    /// The sample that begins when a request reaches the machine and travels with it.
    pub sample: Option<String>,
    /// When they send.
    pub sends: TreeSends,
    /// The CPUs that take the interrupts; `None`: all.
    pub irq_cpus: Option<CpuMask>,
    /// The work of the softirq for a request.
    pub softirq: Length,
}

/// When clients on other machines send, see [`crate::Sends`].
#[derive(Clone, PartialEq, Debug)]
pub enum TreeSends {
    /// One request after each such time.
    Every(Length),
    /// Each client thinks, sends a request and waits for the reply.
    Closed {
        /// How many clients.
        clients: u32,
        /// From a reply to the next request.
        think: Length,
        /// From a client to the machine, and back.
        network: Length,
        /// The queue of replies.
        replies: String,
    },
}

/// One kind of task.
#[derive(Clone, PartialEq, Debug)]
pub struct TreeTask {
    /// Line of the declaration.
    pub line: u32,
    /// Name, count and attributes; `program` and `registers` are set by the lowering. `count` 0 is a template that only
    /// [`StepKind::Fork`] starts.
    pub spec: TaskSpec,
    /// What a forked one sets for itself; the rest is its parent's.
    pub own: Own,
    /// What it does; after the last step it exits.
    pub steps: Vec<Step>,
}

/// Attributes of [`TreeTask::spec`] that the file states. An affinity, a slice or a group that is present was stated.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Own {
    /// Its policy.
    pub policy: bool,
    /// Its nice value.
    pub nice: bool,
}

/// One step of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Line in the user's file, 0 if there is none.
    pub line: u32,
    /// What it does.
    pub kind: StepKind,
}

/// A duration: fixed, or drawn afresh each time.
#[derive(Clone, PartialEq, Debug)]
pub enum Length {
    /// Always the same.
    Fixed(Nanos),
    /// Drawn afresh each time.
    Drawn(Dist),
}

/// A section of a system call.
#[derive(Clone, PartialEq, Debug)]
pub struct CallSection {
    /// Its work.
    pub length: Length,
    /// What may interrupt it, and its points.
    pub section: Section,
    /// The spinlock of the kernel that it holds, if it is named.
    pub lock: Option<String>,
}

/// How often a loop's body runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Times {
    /// This often, 0 included.
    Count(u32),
    /// For ever.
    Forever,
}

/// What a step does. Strings are names of objects, tasks or metrics of the same [`Tree`].
#[derive(Clone, PartialEq, Debug)]
pub enum StepKind {
    /// Consume this much work in user mode.
    Run(Length),
    /// Busy until the wall clock has moved this much.
    Runtime(Length),
    /// Consume this much work in kernel mode.
    System(Length),
    /// One system call, section by section.
    Call(Vec<CallSection>),
    /// Kernel work on so many KiB of memory, per call.
    Memory {
        /// What is done.
        work: MemoryWork,
        /// To how much.
        kib: u32,
        /// How many page faults; 1 for other work.
        times: u32,
    },
    /// Page faults that read the page from a disk.
    MajorFault {
        /// The disk.
        disk: String,
        /// How long the disk takes once it has begun.
        service: Length,
        /// How many.
        times: u32,
    },
    /// Sleep.
    Sleep(Length),
    /// Wait for the next expiry of a periodic timer.
    Timer {
        /// The timer; tasks that name the same one share it.
        timer: String,
        /// Its period.
        period: Length,
        /// What happens after a miss.
        mode: TimerMode,
    },
    /// Wait for the next expiry of a timer of this task alone, counted from the start of the run, and report on it.
    Period {
        /// The timer's name within the task.
        timer: String,
        /// Its period.
        period: Nanos,
        /// What happens after a miss.
        mode: TimerMode,
        /// Metric that samples how long after the expiry the task ran.
        latency: Option<String>,
        /// Metric that samples how much of the period was left; a miss counts as 0.
        slack: Option<String>,
        /// Metric that counts expiries that had passed already.
        misses: Option<String>,
    },
    /// Read from a pipe or socket.
    Read {
        /// The channel.
        channel: String,
        /// Bytes, above 0.
        bytes: u32,
    },
    /// Write one message to a pipe or socket.
    Write {
        /// The channel.
        channel: String,
        /// Bytes, above 0.
        bytes: u32,
    },
    /// Wait on a futex word.
    Wait(String),
    /// Post a futex word.
    Post(String),
    /// Acquire a mutex.
    Lock(String),
    /// Release a mutex.
    Unlock(String),
    /// Wait until all parties have arrived; undeclared, the parties are all tasks whose steps name it.
    Barrier(String),
    /// Take one unit of a semaphore (0 units at start if undeclared).
    SemWait(String),
    /// Give one unit of a semaphore.
    SemPost(String),
    /// Wait on a condition, releasing the mutex meanwhile.
    CondWait {
        /// The condition.
        condition: String,
        /// The mutex held.
        mutex: String,
    },
    /// Wake one waiter of a condition.
    Signal(String),
    /// Wake all waiters of a condition.
    Broadcast(String),
    /// `sched_yield`.
    Yield,
    /// Start a task of this name.
    Fork {
        /// A task of the tree.
        task: String,
        /// Process or thread.
        kind: TaskKind,
        /// KiB of the parent's memory whose page tables the kernel copies.
        memory: u32,
    },
    /// Exit.
    Exit,
    /// Wait for one child to exit.
    Reap,
    /// Change the own nice value.
    Nice(i8),
    /// Change the own affinity.
    Affinity(CpuMask),
    /// Change the own slice; 0 returns to the base slice.
    Slice(Nanos),
    /// Change the own policy.
    Policy(Policy),
    /// Move to the control group of this path; `/` is the root.
    Cgroup(String),
    /// Repeat a body.
    Loop {
        /// How often.
        times: Times,
        /// The body; it must not be empty.
        body: Vec<Step>,
    },
    /// Start the clock of a sampled metric.
    SampleBegin {
        /// The metric.
        metric: String,
        /// Start it at the expiry that this timer's last wait was for instead of now: an arrival counts from when it
        /// was due, however late the task that makes it ran.
        at: Option<String>,
    },
    /// Report the time since the metric's [`StepKind::SampleBegin`] as one sample. It began in this task, or in the one
    /// that sent it.
    SampleEnd(String),
    /// Append an entry to a queue and wake one receiver.
    Send {
        /// The queue.
        queue: String,
        /// The sample that travels with the entry: its receiver may end it.
        sample: Option<String>,
    },
    /// Take the oldest entry of a queue; block while it is empty.
    Receive {
        /// The queue.
        queue: String,
        /// The sample that came with the entry.
        sample: Option<String>,
    },
    /// Report completed operations of a metric.
    Count {
        /// The metric.
        metric: String,
        /// How many.
        count: u32,
    },
}

impl Step {
    /// A step at a line.
    #[must_use]
    pub fn new(line: u32, kind: StepKind) -> Self {
        Step { line, kind }
    }
}

/// Why a tree is no workload.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct LowerError {
    /// Line of the step or declaration.
    pub line: u32,
    /// What is wrong, with the name concerned.
    pub what: String,
    /// What would be right, or the nearest valid name.
    pub hint: Option<String>,
}

impl LowerError {
    pub(crate) fn new(line: u32, what: impl Into<String>) -> Self {
        LowerError { line, what: what.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
