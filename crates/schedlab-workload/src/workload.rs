//! A workload as plain data: its tasks, the objects they share, the metrics they report.

use schedlab_model::{CpuMask, Nanos};
use serde::{Deserialize, Serialize};

use crate::policy::Policy;
use crate::program::is_none;
use crate::{Amount, Dist, Op, Program, ProgramId, Remote, REGISTERS};

/// An object that tasks share.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ObjectSpec {
    /// A pipe of `pages` 4 KiB buffers (default 16). Writes merge into the last page if they fit, unless `packet`.
    Pipe {
        /// Buffers.
        pages: u32,
        /// O_DIRECT: one message a page.
        packet: bool,
    },
    /// One direction of an AF_UNIX stream socket pair with this send buffer in bytes (default 212992).
    UnixStream {
        /// SO_SNDBUF.
        sndbuf: u32,
    },
    /// A futex word with one waiter.
    Futex,
    /// A mutex; with priority inheritance if `pi`.
    Mutex {
        /// PTHREAD_PRIO_INHERIT.
        pi: bool,
    },
    /// A barrier for this many tasks.
    Barrier {
        /// Parties.
        parties: u32,
    },
    /// A semaphore.
    Semaphore {
        /// Units at start.
        initial: u32,
    },
    /// A condition variable.
    Condition,
    /// A list of tasks.
    List,
    /// A gate, closed at start.
    Gate,
    /// A periodic timer, shared by the tasks that name it.
    Timer,
    /// One spin lock per CPU.
    CpuLocks,
    /// A futex word that never changes, with any number of waiters in FIFO order: the kernel's futex calls alone.
    FutexQueue,
    /// A futex word that FUTEX_LOCK_PI takes and FUTEX_UNLOCK_PI hands to the first waiter. The boost of the owner has
    /// no model; among tasks of the fair class it changes neither weight nor class.
    PiFutex,
    /// A FIFO of values in user memory with a futex for its receivers: the work queue of a thread pool.
    Queue,
    /// A spinlock of the kernel.
    KernelLock,
    /// A disk that serves this many requests at once, the others in order of arrival.
    Disk {
        /// Requests.
        depth: u32,
    },
    /// A spinlock in user space.
    SpinLock(SpinLockSpec),
}

/// How tasks wait for a spinlock in user space, and whether its holder requests time slice extensions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct SpinLockSpec {
    /// How long a task spins before it sleeps, in ns; 0: until it has the lock.
    pub spin: Nanos,
    /// How long it sleeps, in ns.
    pub sleep: Nanos,
    /// A further sleep for the same lock is longer than the last by a random factor of 1 to 2, and one that would be
    /// longer than this starts again with `sleep`, as `perform_spin_delay` of PostgreSQL does; 0: every sleep is
    /// `sleep` long.
    #[serde(default)]
    pub sleep_max: Nanos,
    /// The holder requests a time slice extension (`rseq`, kernels from 7.0 on).
    #[serde(default)]
    pub slice_extension: bool,
}

/// Unit of a metric as shown; samples are raw (ns for times).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Unit {
    /// Sampled in ns, shown in microseconds.
    Microseconds,
    /// Sampled in ns, shown in milliseconds.
    Milliseconds,
    /// Sampled in ns, shown in seconds.
    Seconds,
    /// Operations per second of simulated time.
    PerSecond,
    /// Counted 60 times, shown as operations per minute of simulated time.
    PerMinute,
    /// Operations per second, in the unit of UnixBench: loops per second.
    LoopsPerSecond,
    /// Counted 60 times, in the unit of UnixBench: loops per minute.
    LoopsPerMinute,
    /// A bare number.
    Count,
    /// Percent.
    Percent,
}

impl Unit {
    /// Its name in tables; plain numbers have none.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::Seconds => "s",
            Unit::PerSecond => "/s",
            Unit::PerMinute => "/min",
            Unit::LoopsPerSecond => "lps",
            Unit::LoopsPerMinute => "lpm",
            Unit::Count => "",
            Unit::Percent => "%",
        }
    }
}

/// Which direction is an improvement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Better {
    /// Smaller is better.
    Lower,
    /// Larger is better.
    Higher,
    /// Neither: shown, never judged better or worse.
    Neither,
}

impl Better {
    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Better::Lower => "lower",
            Better::Higher => "higher",
            Better::Neither => "neither",
        }
    }
}

/// How a metric's events become numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum MetricKind {
    /// Many samples: percentiles, mean, max.
    Samples,
    /// Counted operations divided by the measured time.
    Rate,
    /// Counted operations divided by the CPU time, in ns, that the samples of the same metric add up to.
    CpuRate,
    /// Counted operations of a sample, equally many for each, divided by the shortest of the samples of the same
    /// metric, in ns.
    BestRate,
    /// Counted operations of every whole second: one sample each.
    PerSecond,
    /// Counted in the measured time, as it is.
    Total,
    /// One value per completed pass of the workload (a benchmark's elapsed time); several with `repeat`: their mean.
    Headline,
    /// What the scheduler did with the tasks that sample or count any metric of the workload.
    Tasks(OfTasks),
}

/// A reduction of the scheduler's events over some tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum OfTasks {
    /// Switches away from them per second.
    Switches,
    /// Those of them at which the task was still runnable, per second.
    InvoluntarySwitches,
    /// Their time on runqueues without running, in percent of the time in which they could run.
    RunDelay,
    /// Their CPU time in percent of the CPU time of all CPUs.
    Utilization,
}

impl MetricKind {
    /// Whether it has percentiles, mean and max.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        matches!(self, MetricKind::Samples | MetricKind::PerSecond)
    }
}

/// A metric that a workload reports.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MetricDecl {
    /// Its name within the workload, as the program prints it (`latency`, `time`, `ops_per_sec`).
    pub name: String,
    /// What it means, one line.
    pub help: String,
    /// Unit as shown.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// How it is reduced.
    pub kind: MetricKind,
    /// Statistics shown by default (`p50`, `p99`, `mean`, `max` ...); empty for `Rate` and `Headline`.
    pub default_stats: Vec<String>,
    /// Values per sample unit: a sample is divided by this before it is shown (cycles per op and such); 1 normally.
    pub divide: u64,
    /// Whether its samples are time in a queue of the workload: from the arrival of what waits there until a task takes
    /// it. Samples of that task that began at the same moment contain this time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queueing: bool,
}

/// A task that exists when the workload starts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskSpec {
    /// `comm`.
    pub name: String,
    /// What it runs.
    pub program: ProgramId,
    /// How many such tasks.
    pub count: u32,
    /// Policy.
    pub policy: Policy,
    /// Nice value, -20..=19.
    pub nice: i8,
    /// latency-nice, where the kernel has it.
    pub latency_nice: Option<i8>,
    /// Own slice (`sched_setattr`), where the kernel has it.
    pub slice: Option<Nanos>,
    /// CPUs it may use; `None` = all.
    #[serde(skip)]
    pub affinity: Option<CpuMask>,
    /// cgroup path below the root, e.g. `/web`.
    pub cgroup: Option<String>,
    /// Timer slack in ns; 50 000 by default.
    pub timer_slack: Nanos,
    /// Which timers it sleeps by.
    #[serde(default, skip_serializing_if = "Timers::is_default")]
    pub timers: Timers,
    /// Start delay after the workload's start.
    pub delay: Nanos,
    /// Its working set in KiB, the data that it uses repeatedly and that the machine's caches hold while it runs; 0:
    /// none is stated.
    #[serde(default, skip_serializing_if = "is_none")]
    pub working_set: u32,
    /// The code in KiB that it executes repeatedly, which is that of all tasks of the workload; 0: none is stated.
    #[serde(default, skip_serializing_if = "is_none")]
    pub code: u32,
    /// Its memory, where it matters on which node that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<TaskMemory>,
    /// Address space: tasks of one workload with equal numbers are threads of one process.
    pub process: u32,
    /// Initial registers.
    pub registers: [i64; REGISTERS],
    /// Whether the seed draws a small start offset for it (true for independent tasks).
    pub jitter: bool,
    /// It is the stopper of the only CPU that it may use (`sched_set_stop_task`); `policy` is only what it shows then.
    #[serde(skip)]
    pub stopper: bool,
}

/// The memory that a task uses, all of it again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TaskMemory {
    /// What only it uses, in pages of 4 KiB.
    pub private: u32,
    /// What all tasks of its process use, in pages of 4 KiB.
    pub shared: u32,
    /// The time in user mode in which it uses all of it once.
    pub pass: Nanos,
    /// The node on which it is at the start; `None`: each page is on the node of the CPU that uses it first.
    pub node: Option<u32>,
    /// Whether its pages have 2 MiB.
    pub huge: bool,
}

/// By which timers a task sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Timers {
    /// hrtimers, late by at most the timer slack of the task (`schedule_hrtimeout_range`).
    #[default]
    Hrtimer,
    /// The timer wheel (`schedule_timeout`): expired by a tick. Simplified to be late by at most one, as in level 0 of
    /// the wheel. An idle CPU programs its next tick for them, as kernels up to 6.8 do.
    Wheel,
    /// Deferrable timers of the wheel (`TIMER_DEFERRABLE`): expired by a tick, which an idle CPU does not program for
    /// them.
    Deferrable,
}

impl Timers {
    fn is_default(&self) -> bool {
        *self == Timers::default()
    }
}

/// A workload, ready to run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Workload {
    /// Its name in the scenario: prefix of its metrics.
    pub name: String,
    /// Programs.
    pub programs: Vec<Program>,
    /// Tasks at start.
    pub tasks: Vec<TaskSpec>,
    /// Clients on other machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remotes: Vec<Remote>,
    /// Shared objects.
    pub objects: Vec<ObjectSpec>,
    /// What messages call each object; as long as `objects`, or empty.
    pub object_names: Vec<String>,
    /// Distributions.
    pub dists: Vec<Dist>,
    /// Affinity masks named by [`crate::Op::SetAffinity`].
    #[serde(skip)]
    pub masks: Vec<CpuMask>,
    /// Paths of control groups named by [`crate::Op::SetCgroup`]; `/` is the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cgroups: Vec<String>,
    /// Metrics it reports.
    pub metrics: Vec<MetricDecl>,
    /// PM QoS (`/dev/cpu_dma_latency`): while it runs, no CPU enters an idle state with a longer exit latency, ns.
    pub idle_latency_limit: Option<Nanos>,
    /// Whether it reaches an end of its own ([`crate::Op::Finish`]).
    pub ends: bool,
    /// Its tasks are threads of the kernel: outside of all groups, never counted as alive, started on their own CPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel_threads: bool,
}

impl Default for TaskSpec {
    fn default() -> Self {
        TaskSpec {
            name: String::new(),
            program: 0,
            count: 1,
            policy: Policy::Normal,
            nice: 0,
            latency_nice: None,
            slice: None,
            affinity: None,
            cgroup: None,
            timer_slack: 50_000,
            timers: Timers::Hrtimer,
            delay: 0,
            working_set: 0,
            code: 0,
            memory: None,
            process: 0,
            registers: [0; REGISTERS],
            jitter: true,
            stopper: false,
        }
    }
}

impl Workload {
    /// The longest period of the timers of its programs, by the typical value where periods are drawn; 0 without
    /// timers.
    #[must_use]
    pub fn longest_period(&self) -> Nanos {
        let period = |op: &Op| match *op {
            Op::Timer { period: Amount::Fixed(period), .. } => period,
            Op::Timer { period: Amount::Drawn(dist), .. } => {
                self.dists.get(dist as usize).map_or(0, |dist| dist.typical())
            }
            _ => 0,
        };
        self.programs.iter().flat_map(|program| &program.ops).map(period).max().unwrap_or(0)
    }
}
