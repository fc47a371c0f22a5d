//! The objects that tasks share and wait on.

use std::collections::VecDeque;

use schedlab_model::{CpuId, Nanos, Pid, TaskId};
use schedlab_workload::{ObjectSpec, SpinLockSpec};

use super::channel::Channel;
use super::lock_queue::KernelLock;
use crate::kernel::Handle;

/// A shared object's state.
#[derive(Clone, Debug)]
pub enum Object {
    /// Pipe or socket.
    Channel(Channel),
    /// Futex word.
    Futex(Futex),
    /// Mutex.
    Mutex(Mutex),
    /// Barrier.
    Barrier {
        /// Parties it waits for.
        parties: u32,
        /// Tasks that have arrived.
        waiting: Vec<TaskId>,
    },
    /// Semaphore.
    Semaphore {
        /// Units.
        units: u32,
        /// Waiting tasks.
        waiting: VecDeque<TaskId>,
    },
    /// Condition variable: each waiter with the mutex it released.
    Condition(VecDeque<(TaskId, u32)>),
    /// List of tasks.
    List(Vec<Handle>),
    /// Gate.
    Gate {
        /// Whether tasks pass it without waiting.
        open: bool,
        /// Waiting tasks.
        waiting: Vec<TaskId>,
    },
    /// Periodic timer: its next expiry, once started.
    Timer(Option<Nanos>),
    /// Per-CPU spin locks: holder by CPU.
    CpuLocks(Vec<Option<TaskId>>),
    /// Waiters of futex calls, in order.
    FutexQueue(VecDeque<Waiter>),
    /// Futex word with priority inheritance: it is handed over, unlike a mutex.
    PiFutex(Mutex),
    /// Values, and the tasks that wait for one.
    Queue {
        /// Values, oldest first.
        values: VecDeque<i64>,
        /// Waiting receivers, in order.
        waiting: VecDeque<TaskId>,
    },
    /// Spinlock in user space.
    SpinLock(SpinLock),
    /// Spinlock of the kernel.
    KernelLock(KernelLock),
    /// Disk: when each of the requests in service is done.
    Disk(Vec<Nanos>),
}

impl Object {
    /// Whether it is a socket, not a pipe.
    pub fn is_socket(&self) -> bool {
        matches!(self, Object::Channel(channel) if channel.is_socket())
    }
}

/// A test-and-set lock. Of the tasks that spin on a CPU when it is released, the one that began first gets it.
#[derive(Clone, Default, Debug)]
pub struct SpinLock {
    /// Holder; it may have exited with the lock.
    pub owner: Option<Pid>,
    /// Tasks that wait for it, in the order in which they began to spin. Those that were preempted or sleep are among
    /// them.
    pub spinning: Vec<TaskId>,
    /// How tasks wait for it.
    pub spec: SpinLockSpec,
}

/// A task in a futex queue.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    /// The task.
    pub task: TaskId,
    /// The CPU of its timer, if it has a timeout.
    pub timer: Option<CpuId>,
}

/// A futex word with at most one waiter.
#[derive(Clone, Default, Debug)]
pub struct Futex {
    /// Posted and not yet consumed.
    pub posted: bool,
    /// The waiting task.
    pub waiter: Option<TaskId>,
}

/// A futex-based mutex. Releasing it does not hand it over: the first waiter is woken and competes for it. Only a PI
/// futex is handed over.
#[derive(Clone, Default, Debug)]
pub struct Mutex {
    /// Holder; it may have exited with the lock.
    pub owner: Option<Pid>,
    /// Waiting tasks, in order.
    pub waiting: VecDeque<TaskId>,
}

impl Object {
    /// The object at the start of a run.
    #[must_use]
    pub fn new(spec: &ObjectSpec, nr_cpus: usize) -> Self {
        match *spec {
            ObjectSpec::Pipe { pages, packet } => Object::Channel(Channel::pipe(pages, packet)),
            ObjectSpec::UnixStream { sndbuf } => Object::Channel(Channel::unix_stream(sndbuf)),
            ObjectSpec::Futex => Object::Futex(Futex::default()),
            ObjectSpec::Mutex { .. } => Object::Mutex(Mutex::default()),
            ObjectSpec::Barrier { parties } => Object::Barrier { parties, waiting: Vec::new() },
            ObjectSpec::Semaphore { initial } => Object::Semaphore { units: initial, waiting: VecDeque::new() },
            ObjectSpec::Condition => Object::Condition(VecDeque::new()),
            ObjectSpec::List => Object::List(Vec::new()),
            ObjectSpec::Gate => Object::Gate { open: false, waiting: Vec::new() },
            ObjectSpec::Timer => Object::Timer(None),
            ObjectSpec::SpinLock(spec) => Object::SpinLock(SpinLock { spec, ..SpinLock::default() }),
            ObjectSpec::Disk { depth } => Object::Disk(vec![0; depth as usize]),
            ObjectSpec::KernelLock => Object::KernelLock(KernelLock::default()),
            ObjectSpec::CpuLocks => Object::CpuLocks(vec![None; nr_cpus]),
            ObjectSpec::FutexQueue => Object::FutexQueue(VecDeque::new()),
            ObjectSpec::PiFutex => Object::PiFutex(Mutex::default()),
            ObjectSpec::Queue => Object::Queue { values: VecDeque::new(), waiting: VecDeque::new() },
        }
    }

    /// What kind of object, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Object::Channel(channel) if channel.is_socket() => "socket",
            Object::Channel(_) => "pipe",
            Object::Futex(_) => "futex",
            Object::Mutex(_) => "mutex",
            Object::Barrier { .. } => "barrier",
            Object::Semaphore { .. } => "semaphore",
            Object::Condition(_) => "condition",
            Object::List(_) => "list",
            Object::Gate { .. } => "gate",
            Object::Timer(_) => "timer",
            Object::CpuLocks(_) => "per-CPU lock",
            Object::FutexQueue(_) => "futex queue",
            Object::PiFutex(_) => "PI futex",
            Object::Queue { .. } => "queue",
            Object::SpinLock(_) => "spinlock",
            Object::KernelLock(_) => "spinlock of the kernel",
            Object::Disk(_) => "disk",
        }
    }
}
