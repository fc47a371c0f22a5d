//! Everything that the tasks of one run share, laid out before the first of them is made.

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
use crate::objects::Object;
use crate::program::Real;
use crate::sys::{shared, Arena};
use crate::task::{Mailbox, Slot, MOST_TASKS};

shared! {
    /// What tasks and the supervisor tell each other.
    #[derive(Debug)]
    pub struct Control {
        /// Tasks made so far.
        pub tasks: AtomicU32,
        /// Tasks of the start that are ready.
        pub ready: AtomicU32,
        /// 0 until the run starts; a futex.
        pub started: AtomicU32,
        /// Begin of the run on the clock.
        pub begin: AtomicU64,
        /// Tasks that have not exited.
        pub alive: AtomicU32,
        /// Workloads with an end of their own that have not reached it.
        pub unfinished: AtomicU32,
        /// Run time of the last such end, plus 1.
        pub finished: AtomicU64,
        /// Real programs that will print when they are interrupted.
        pub reporting: AtomicU32,
        /// Mailboxes given out.
        pub mailboxes: AtomicU32,
        /// 0, 1 while the first failure is written, 2 when it is.
        pub failure: AtomicU32,
        /// The task that failed.
        pub failed_task: AtomicU32,
        /// Its step.
        pub failed_step: AtomicU32,
        /// Which failure: index into [`Failure::ALL`].
        pub failed_why: AtomicU32,
        /// The system's error, 0 if it has none.
        pub failed_errno: AtomicI32,
    }
}

/// What a task may fail on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Unlock of a mutex that it does not hold.
    NotHeld,
    /// `CondWait` without the mutex.
    CondWithoutMutex,
    /// Wait on a word somebody already waits on.
    SecondWaiter,
    /// Release of a per-CPU lock it does not hold.
    NoCpuLock,
    /// Reap without a child.
    NoChild,
    /// A child was killed.
    ChildKilled,
    /// Too many tasks.
    TooManyTasks,
    /// A full mailbox.
    MailboxFull,
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
}

impl Failure {
    /// What is wrong, and the command that would help if it is about permission.
    #[must_use]
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Failure::NotHeld => ("unlock: the task does not hold this mutex", ""),
            Failure::CondWithoutMutex => ("wait: the task does not hold the mutex", ""),
            Failure::SecondWaiter => ("wait: another task already waits on this futex word", ""),
            Failure::NoCpuLock => ("cpu unlock: the task holds no per-CPU lock", ""),
            Failure::NoChild => ("reap: the task has no child left to wait for", ""),
            Failure::ChildKilled => ("reap: a child was killed", ""),
            Failure::TooManyTasks => ("fork: more tasks than one run may have", "shorten the run"),
            Failure::MailboxFull => ("mail: more values wait than a mailbox holds", "lower the rate of requests"),
            Failure::Io => ("read, write or poll", ""),
            Failure::Fork => ("fork", "raise the limits: ulimit -u, sysctl kernel.threads-max, pids.max"),
            Failure::Nice => ("nice", "run it as root, or: ulimit -e 40"),
            Failure::Policy => ("policy", "run it as root, or: ulimit -r 99"),
            Failure::Affinity => ("affinity", "taskset -p PID shows the CPUs that are allowed"),
            Failure::Slice => ("slice: this kernel takes none", "boot 6.12 or later"),
            Failure::TimerSlack => ("timer slack", ""),
            Failure::Cgroup => ("control group", "run it as root"),
            Failure::Program => ("the program cannot be started", ""),
        }
    }

    /// All of them; the order is that of their numbers.
    pub const ALL: [Failure; 17] = [
        Failure::NotHeld,
        Failure::CondWithoutMutex,
        Failure::SecondWaiter,
        Failure::NoCpuLock,
        Failure::NoChild,
        Failure::ChildKilled,
        Failure::TooManyTasks,
        Failure::MailboxFull,
        Failure::Io,
        Failure::Fork,
        Failure::Nice,
        Failure::Policy,
        Failure::Affinity,
        Failure::Slice,
        Failure::TimerSlack,
        Failure::Cgroup,
        Failure::Program,
    ];
}

/// The run as its tasks see it. It lives until the process ends.
#[derive(Debug)]
pub struct World {
    /// What runs.
    pub workloads: Arc<Vec<Workload>>,
    /// The real program that stands for a workload, by workload.
    pub real: Vec<Option<Real>>,
    /// The run's control groups.
    pub groups: Option<Groups>,
    /// Limit of the run.
    pub duration: Nanos,
    /// Objects, by workload.
    pub objects: Vec<Vec<Object>>,
    /// Where each workload's metrics begin in the run's table.
    pub metric_base: Vec<u16>,
    /// How futexes of each workload are keyed: private where all its tasks are threads of one process.
    pub flags: Vec<Flags>,
    /// Tasks by id.
    pub slots: &'static [Slot],
    /// Whether each workload has finished: 1 if so.
    pub finished: &'static [AtomicU32],
    /// Mailboxes.
    pub mail: &'static [Mailbox],
    /// Messages to the supervisor.
    pub control: &'static Control,
    /// Application events.
    pub pool: Pool,
    /// Speed of work.
    pub speed: Speed,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether anything is drawn.
    pub noise: bool,
    /// The system's numbers of the scenario's CPUs.
    pub cpus: Vec<u32>,
    /// Written to when the supervisor should look.
    pub bell: OwnedFd,
}

/// Mailboxes of one run, where programs use any.
const MAILBOXES: usize = 4096;

impl World {
    /// Lays it out. `cpus` are the system's CPU numbers.
    pub fn new(spec: &RunSpec, speed: Speed, cpus: Vec<u32>, real: Vec<Option<Real>>) -> Result<&'static World> {
        let workloads = Arc::clone(&spec.workloads);
        raise_descriptors(&workloads)?;
        let chunks = log_chunks();
        let uses_mail = workloads.iter().flat_map(ops).any(|op| matches!(op, Op::MailPeer { .. }));
        let mailboxes = if uses_mail { MAILBOXES } else { 0 };
        let shared_objects: usize = workloads.iter().map(|w| w.objects.len()).sum();
        let size = MOST_TASKS * std::mem::size_of::<Slot>()
            + chunks * std::mem::size_of::<Chunk>()
            + mailboxes * std::mem::size_of::<Mailbox>()
            + shared_objects * (128 + 4 * cpus.len())
            + workloads.len() * 8
            + (1 << 16);
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
        let mut world = World {
            flags: workloads.iter().map(|w| if one_process(w) { Flags::PRIVATE } else { Flags::empty() }).collect(),
            objects,
            duration: spec.duration,
            groups: None,
            metric_base: metric_base.collect(),
            slots: arena.slice(MOST_TASKS).map_err(memory())?,
            finished: arena.slice(workloads.len()).map_err(memory())?,
            mail: arena.slice(mailboxes).map_err(memory())?,
            control,
            pool,
            speed,
            seed: spec.seed,
            noise: spec.noise,
            real,
            cpus,
            bell: eventfd(0, EventfdFlags::NONBLOCK).map_err(errno("eventfd"))?,
            workloads,
        };
        // Last, for whoever fails after this must remove them.
        world.groups = Groups::make(&spec.cgroups)?;
        Ok(Box::leak(Box::new(world)))
    }

    /// Time since the run's begin.
    #[inline]
    #[must_use]
    pub fn time(&self) -> Nanos {
        crate::clock::now().saturating_sub(self.control.begin.load(Relaxed))
    }

    /// A new task's id, or `None` when there are too many.
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

    /// A workload has reached its end.
    pub fn finish(&self, workload: usize) {
        if !self.workloads[workload].ends || self.finished[workload].swap(1, AcqRel) != 0 {
            return;
        }
        self.control.finished.fetch_max(self.time() + 1, AcqRel);
        if self.control.unfinished.fetch_sub(1, AcqRel) == 1 {
            self.ring();
        }
    }

    /// A task has exited.
    pub fn gone(&self) {
        if self.control.alive.fetch_sub(1, AcqRel) == 1 {
            self.ring();
        }
    }

    /// Keeps the first failure of the run.
    pub fn fail(&self, task: u32, step: u32, why: Failure, errno: i32) {
        let control = self.control;
        if control.failure.compare_exchange(0, 1, AcqRel, Relaxed).is_ok() {
            control.failed_task.store(task, Relaxed);
            control.failed_step.store(step, Relaxed);
            control.failed_why.store(why as u32, Relaxed);
            control.failed_errno.store(errno, Relaxed);
            control.failure.store(2, Release);
        }
        self.ring();
    }

    /// The failure as an error, if there is one.
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
        let (words, hint) = why.words();
        let system = if errno == 0 { String::new() } else { format!(": {}", std::io::Error::from_raw_os_error(errno)) };
        let message = format!("task \"{name}\", step {step}{line}: {words}{system}");
        let cannot = matches!(errno, libc::EPERM | libc::EACCES) || why == Failure::Slice;
        Some(if cannot { AgentError::cannot(message, hint) } else { AgentError::failed(message, hint) })
    }

    /// Wakes the supervisor.
    pub fn ring(&self) {
        // It can only fail when the counter is full, and then the bell rings already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// The scenario's CPUs as the system numbers them.
    #[must_use]
    pub fn cpu_set(&self, mask: &CpuMask) -> rustix::thread::CpuSet {
        let mut set = rustix::thread::CpuSet::new();
        mask.iter().filter_map(|cpu| self.cpus.get(cpu.index())).for_each(|cpu| set.set(*cpu as usize));
        set
    }
}

impl Slot {
    /// Workload and program.
    #[must_use]
    pub fn runs(&self) -> (usize, usize) {
        let runs = self.runs.load(Relaxed);
        ((runs >> 32) as usize, runs as u32 as usize)
    }
}

fn ops(workload: &Workload) -> impl Iterator<Item = &Op> {
    workload.programs.iter().flat_map(|program| &program.ops)
}

/// Whether all tasks of a workload are threads of one process, for ever.
fn one_process(workload: &Workload) -> bool {
    let forks = ops(workload).any(|op| matches!(op, Op::Fork { kind: TaskKind::Process, .. }));
    let first = workload.tasks.first().map(|task| task.process);
    !forks && workload.tasks.iter().all(|task| Some(task.process) == first)
}

/// Chunks that the log may grow to: a quarter of the memory that is free, 2 GiB at most.
fn log_chunks() -> usize {
    let bytes = ((available_kib() as usize) << 10) / 4;
    bytes.min(2 << 30) / std::mem::size_of::<Chunk>()
}

/// Objects need descriptors: the soft limit is raised as far as the hard one allows.
fn raise_descriptors(workloads: &[Workload]) -> Result<()> {
    const OWN: u64 = 64;
    let needed = OWN + workloads.iter().flat_map(|w| &w.objects).map(Object::descriptors).sum::<u64>();
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed.max(limit.current.unwrap_or(0))), maximum: limit.maximum };
    let raised = match limit.maximum {
        // Root may raise the hard limit, too.
        Some(maximum) if maximum < needed => Rlimit { current: Some(needed), maximum: Some(needed) },
        _ => raised,
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        let what = format!("the workload needs {needed} descriptors, {:?} are allowed: {error}", limit.maximum);
        AgentError::cannot(what, format!("ulimit -Hn {needed}"))
    })
}
