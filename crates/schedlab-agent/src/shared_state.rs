//! The state that all tasks of one run share, allocated before the first task is created.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};
use std::sync::Arc;

use rustix::event::{eventfd, EventfdFlags};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use rustix::thread::futex::Flags;
use schedlab_model::{CpuMask, Nanos};
use schedlab_spec::RunSpec;
use schedlab_workload::{Op, TaskKind, Workload};

use crate::burn::Speed;
use crate::cgroups::Groups;
use crate::error::{errno, os, AgentError, Result};
use crate::log::{Chunk, Pool};
use crate::memory::available_kib;
use crate::memory_work::Files;
use crate::objects::Object;
use crate::program::RealProgram;
use crate::sys::{shared, Arena};
use crate::task::{Mailbox, Slot, MAX_TASKS};

shared! {
    /// The part of the shared state through which tasks and the supervisor communicate.
    #[derive(Debug)]
    pub struct Control {
        /// The number of tasks created so far.
        pub tasks: AtomicU32,
        /// The number of initial tasks that are ready.
        pub ready: AtomicU32,
        /// 0 until the run starts; a futex.
        pub started: AtomicU32,
        /// The start of the run, on the monotonic clock.
        pub begin: AtomicU64,
        /// The number of tasks that have not exited.
        pub alive: AtomicU32,
        /// The number of workloads that end by themselves and have not ended yet.
        pub unfinished: AtomicU32,
        /// The run time at which the last of them ended, plus 1.
        pub finished: AtomicU64,
        /// The number of real programs that print their results when they are interrupted and have not exited yet.
        pub reporting: AtomicU32,
        /// The number of mailboxes in use.
        pub mailboxes: AtomicU32,
        /// 0 if no task has failed, 1 while the first failure is being written, 2 once it is complete.
        pub failure: AtomicU32,
        /// The task that failed.
        pub failed_task: AtomicU32,
        /// The step at which it failed.
        pub failed_step: AtomicU32,
        /// The failure, as an index into [`Failure::ALL`].
        pub failed_why: AtomicU32,
        /// The errno, 0 if there is none.
        pub failed_errno: AtomicI32,
    }
}

/// The ways in which a task may fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Unlock of a mutex that the task does not hold.
    NotHeld,
    /// `CondWait` without the mutex.
    CondWithoutMutex,
    /// Wait on a futex word that already has a waiter.
    SecondWaiter,
    /// Release of a per-CPU lock that the task does not hold.
    NoCpuLock,
    /// Reap without a child.
    NoChild,
    /// A child was killed.
    ChildKilled,
    /// Too many tasks.
    TooManyTasks,
    /// A full mailbox or queue.
    MailboxFull,
    /// exec, which the agent does not carry out.
    Exec,
    /// Read, write or poll.
    Io,
    /// fork or thread creation.
    Fork,
    /// setpriority.
    Nice,
    /// sched_setscheduler.
    Policy,
    /// sched_setaffinity.
    Affinity,
    /// sched_setattr.
    Slice,
    /// PR_SET_TIMERSLACK.
    TimerSlack,
    /// Entry into a control group.
    Cgroup,
    /// Start of a real program.
    Program,
    /// mmap, or a read of the page cache.
    Memory,
}

impl Failure {
    /// The message and the hint of the failure.
    #[must_use]
    pub fn description(self) -> (&'static str, &'static str) {
        match self {
            Failure::NotHeld => ("unlock: the task does not hold this mutex", ""),
            Failure::CondWithoutMutex => ("wait: the task does not hold the mutex", ""),
            Failure::SecondWaiter => ("wait: another task already waits on this futex word", ""),
            Failure::NoCpuLock => ("cpu unlock: the task holds no per-CPU lock", ""),
            Failure::NoChild => ("reap: the task has no child left to wait for", ""),
            Failure::ChildKilled => ("reap: a child was killed", ""),
            Failure::TooManyTasks => ("fork: too many tasks in one run", "shorten the run"),
            Failure::MailboxFull => ("mail or send: the mailbox or queue is full", "lower the rate of requests"),
            Failure::Exec => ("exec: real tasks are threads of the agent and cannot exec", "run it with --arm sim"),
            Failure::Io => ("read, write or poll", ""),
            Failure::Fork => ("fork", "raise the limits: ulimit -u, sysctl kernel.threads-max, pids.max"),
            Failure::Nice => ("nice", "run it as root, or: ulimit -e 40"),
            Failure::Policy => {
                ("policy", "run it as root, or: ulimit -r 99; EBUSY: too little bandwidth for a deadline task")
            }
            Failure::Affinity => ("affinity", "taskset -p PID shows the CPUs that are allowed"),
            Failure::Slice => ("slice: this kernel has no custom slices", "boot 6.12 or later"),
            Failure::TimerSlack => ("timer slack", ""),
            Failure::Cgroup => ("control group", "run it as root"),
            Failure::Program => ("the program cannot be started", ""),
            Failure::Memory => ("fault, munmap or read-file", "run it on a machine with more memory"),
        }
    }

    /// All failures, in the order of their discriminants.
    pub const ALL: [Failure; 19] = [
        Failure::NotHeld,
        Failure::CondWithoutMutex,
        Failure::SecondWaiter,
        Failure::NoCpuLock,
        Failure::NoChild,
        Failure::ChildKilled,
        Failure::TooManyTasks,
        Failure::MailboxFull,
        Failure::Exec,
        Failure::Io,
        Failure::Fork,
        Failure::Nice,
        Failure::Policy,
        Failure::Affinity,
        Failure::Slice,
        Failure::TimerSlack,
        Failure::Cgroup,
        Failure::Program,
        Failure::Memory,
    ];
}

/// The state that all tasks of one run share. It is never freed.
#[derive(Debug)]
pub struct SharedState {
    /// The workloads of the run.
    pub workloads: Arc<Vec<Workload>>,
    /// The real program that runs in place of each workload's model, if any.
    pub real: Vec<Option<RealProgram>>,
    /// The run's control groups.
    pub groups: Option<Groups>,
    /// The maximum duration of the run.
    pub duration: Nanos,
    /// The objects of each workload.
    pub objects: Vec<Vec<Object>>,
    /// The index of each workload's first metric in the table of the run.
    pub metric_base: Vec<u16>,
    /// The futex flags of each workload: private if all its tasks are threads of one process.
    pub flags: Vec<Flags>,
    /// The state of each task, by id.
    pub slots: &'static [Slot],
    /// 1 for each workload that has ended.
    pub finished: &'static [AtomicU32],
    /// By workload and distribution: how many values of a recorded sequence were taken.
    pub taken: Vec<&'static [AtomicU32]>,
    /// The mailboxes.
    pub mail: &'static [Mailbox],
    /// Communication with the supervisor.
    pub control: &'static Control,
    /// The application events.
    pub pool: Pool,
    /// The files of steps that work on memory.
    pub memory: Option<Files>,
    /// The calibrated speed of work.
    pub speed: Speed,
    /// The seed of all random streams.
    pub seed: u64,
    /// Whether random noise is enabled.
    pub noise: bool,
    /// The system's number of each CPU of the scenario.
    pub cpus: Vec<u32>,
    /// The eventfd that wakes the supervisor.
    pub wakeup_fd: OwnedFd,
}

/// The number of mailboxes of a run whose programs use them.
const MAILBOXES: usize = 4096;

/// The bytes of all that the processes of a run share, with a margin of 64 KiB for alignment.
fn arena_size(workloads: &[Workload], chunks: usize, mailboxes: usize, cpus: usize) -> usize {
    let objects = workloads.iter().flat_map(|w| &w.objects);
    let objects: usize = objects.map(|spec| Object::memory(spec, cpus)).sum();
    MAX_TASKS * std::mem::size_of::<Slot>()
        + chunks * std::mem::size_of::<Chunk>()
        + mailboxes * std::mem::size_of::<Mailbox>()
        + objects
        + workloads.iter().map(|w| 128 + 4 * w.dists.len()).sum::<usize>()
        + (1 << 16)
}

impl SharedState {
    /// Allocates the shared state. `cpus` are the system's CPU numbers.
    pub fn new(
        spec: &RunSpec,
        speed: Speed,
        cpus: Vec<u32>,
        real: Vec<Option<RealProgram>>,
    ) -> Result<&'static SharedState> {
        let workloads = Arc::clone(&spec.workloads);
        raise_descriptors(&workloads)?;
        let chunks = log_chunks();
        let uses_mail = workloads.iter().flat_map(ops).any(|op| matches!(op, Op::MailPeer { .. }));
        let mailboxes = if uses_mail { MAILBOXES } else { 0 };
        let size = arena_size(&workloads, chunks, mailboxes, cpus.len());
        let memory = os("shared memory");
        let mut arena = Arena::new(size).map_err(memory)?;
        let memory = || os("shared memory");
        let object = |spec, arena: &mut Arena| Object::new(spec, arena, cpus.len());
        let objects: Vec<Vec<Object>> = workloads
            .iter()
            .map(|w| w.objects.iter().map(|spec| object(spec, &mut arena)).collect())
            .collect::<Result<_>>()?;
        let metric_base = workloads.iter().scan(0, |next, w| {
            let base = *next;
            *next += w.metrics.len() as u16;
            Some(base)
        });
        let control: &Control = arena.one().map_err(memory())?;
        control.unfinished.store(workloads.iter().filter(|w| w.ends).count() as u32, Relaxed);
        let reporting = real.iter().flatten().filter(|real| real.interrupt).count();
        control.reporting.store(reporting as u32, Relaxed);
        let pool = Pool {
            chunks: arena.slice(chunks).map_err(memory())?,
            state: arena.one().map_err(memory())?,
            warmup: spec.warmup,
        };
        let mut shared = SharedState {
            flags: workloads.iter().map(|w| if one_process(w) { Flags::PRIVATE } else { Flags::empty() }).collect(),
            objects,
            duration: spec.duration,
            groups: None,
            metric_base: metric_base.collect(),
            slots: arena.slice(MAX_TASKS).map_err(memory())?,
            finished: arena.slice(workloads.len()).map_err(memory())?,
            taken: workloads
                .iter()
                .map(|w| arena.slice(w.dists.len()))
                .collect::<std::io::Result<_>>()
                .map_err(memory())?,
            mail: arena.slice(mailboxes).map_err(memory())?,
            control,
            pool,
            memory: Files::of(workloads.iter().flat_map(|w| &w.programs))?,
            speed,
            seed: spec.seed,
            noise: spec.noise,
            real,
            cpus,
            wakeup_fd: eventfd(0, EventfdFlags::NONBLOCK).map_err(errno("eventfd"))?,
            workloads,
        };
        // Created last, because errors after this point would have to remove the groups.
        shared.groups = Groups::create(&spec.cgroups)?;
        Ok(Box::leak(Box::new(shared)))
    }

    /// The time since the start of the run.
    #[inline]
    #[must_use]
    pub fn time(&self) -> Nanos {
        crate::clock::now().saturating_sub(self.control.begin.load(Relaxed))
    }

    /// Allocates a task id; `None` if there are too many tasks.
    #[must_use]
    pub fn new_task(&self) -> Option<u32> {
        let id = self.control.tasks.fetch_add(1, AcqRel);
        if id as usize >= self.slots.len() {
            self.control.tasks.fetch_sub(1, AcqRel);
            return None;
        }
        self.control.alive.fetch_add(1, AcqRel);
        if !self.mail.is_empty() {
            let mailbox = self.control.mailboxes.fetch_add(1, AcqRel) + 1;
            self.slots[id as usize].mailbox.store(mailbox, Relaxed);
        }
        Some(id)
    }

    /// The mailbox of a task.
    #[must_use]
    pub fn mailbox(&self, slot: &Slot) -> Option<&Mailbox> {
        let number = slot.mailbox.load(Relaxed) as usize;
        number.checked_sub(1).and_then(|index| self.mail.get(index))
    }

    /// Marks a workload as ended.
    pub fn finish(&self, workload: usize) {
        if !self.workloads[workload].ends || self.finished[workload].swap(1, AcqRel) != 0 {
            return;
        }
        self.control.finished.fetch_max(self.time() + 1, AcqRel);
        if self.control.unfinished.fetch_sub(1, AcqRel) == 1 {
            self.wake_supervisor();
        }
    }

    /// Accounts for a task that has exited.
    pub fn task_exited(&self) {
        if self.control.alive.fetch_sub(1, AcqRel) == 1 {
            self.wake_supervisor();
        }
    }

    /// Records a failure, unless one has been recorded already.
    pub fn fail(&self, task: u32, step: u32, why: Failure, errno: i32) {
        let control = self.control;
        if control.failure.compare_exchange(0, 1, AcqRel, Relaxed).is_ok() {
            control.failed_task.store(task, Relaxed);
            control.failed_step.store(step, Relaxed);
            control.failed_why.store(why as u32, Relaxed);
            control.failed_errno.store(errno, Relaxed);
            control.failure.store(2, Release);
        }
        self.wake_supervisor();
    }

    /// The recorded failure as an error.
    #[must_use]
    pub fn failure(&self) -> Option<AgentError> {
        let control = self.control;
        if control.failure.load(Acquire) != 2 {
            return None;
        }
        let (task, step) = (control.failed_task.load(Relaxed), control.failed_step.load(Relaxed));
        let why = Failure::ALL.get(control.failed_why.load(Relaxed) as usize).copied().unwrap_or(Failure::Io);
        let errno = control.failed_errno.load(Relaxed);
        let slot = &self.slots[task as usize % self.slots.len()];
        let (workload, program) = slot.runs();
        let program = self.workloads.get(workload).and_then(|w| w.programs.get(program));
        let name = program.map_or("?", |program| program.name.as_str());
        let line =
            program.and_then(|program| program.line(step)).map_or(String::new(), |line| format!(" (line {line})"));
        let (description, hint) = why.description();
        let system = if errno == 0 { String::new() } else { format!(": {}", std::io::Error::from_raw_os_error(errno)) };
        let message = format!("task \"{name}\", step {step}{line}: {description}{system}");
        let cannot = matches!(errno, libc::EPERM | libc::EACCES) || why == Failure::Slice;
        Some(if cannot { AgentError::cannot(message, hint) } else { AgentError::failed(message, hint) })
    }

    /// Wakes the supervisor.
    pub fn wake_supervisor(&self) {
        // Fails only if the counter is at its maximum, and then the supervisor is woken anyway.
        let _ = rustix::io::write(&self.wakeup_fd, &1u64.to_ne_bytes());
    }

    /// Translates CPUs of the scenario to the system's numbers.
    #[must_use]
    pub fn cpu_set(&self, mask: &CpuMask) -> rustix::thread::CpuSet {
        let mut set = rustix::thread::CpuSet::new();
        mask.iter().filter_map(|cpu| self.cpus.get(cpu.index())).for_each(|cpu| set.set(*cpu as usize));
        set
    }
}

impl Slot {
    /// The indices of the task's workload and program.
    #[must_use]
    pub fn runs(&self) -> (usize, usize) {
        let runs = self.runs.load(Relaxed);
        ((runs >> 32) as usize, runs as u32 as usize)
    }
}

fn ops(workload: &Workload) -> impl Iterator<Item = &Op> {
    workload.programs.iter().flat_map(|program| &program.ops)
}

/// Whether all tasks of a workload are threads of one process during the whole run.
fn one_process(workload: &Workload) -> bool {
    let forks = ops(workload).any(|op| matches!(op, Op::Fork { kind: TaskKind::Process | TaskKind::Vfork, .. }));
    let first = workload.tasks.first().map(|task| task.process);
    !forks && workload.tasks.iter().all(|task| Some(task.process) == first)
}

/// The maximum number of log chunks: a quarter of the available memory, at most 2 GiB.
fn log_chunks() -> usize {
    let bytes = ((available_kib() as usize) << 10) / 4;
    bytes.min(2 << 30) / std::mem::size_of::<Chunk>()
}

/// Raises the limit of open files to what the objects need, as far as the hard limit or root privileges allow.
fn raise_descriptors(workloads: &[Workload]) -> Result<()> {
    const OWN: u64 = 64;
    let needed = OWN + workloads.iter().flat_map(|w| &w.objects).map(Object::descriptors).sum::<u64>();
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed.max(limit.current.unwrap_or(0))), maximum: limit.maximum };
    let raised = match limit.maximum {
        // Root may also raise the hard limit.
        Some(maximum) if maximum < needed => Rlimit { current: Some(needed), maximum: Some(needed) },
        _ => raised,
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        let what =
            format!("the workload needs {needed} file descriptors, but the limit is {:?}: {error}", limit.maximum);
        AgentError::cannot(what, format!("ulimit -Hn {needed}"))
    })
}
