//! A run that is advanced instant by instant; the state of its scheduler can be read in between.

use schedlab_model::{CpuId, KernelId, Nanos, Pid, TaskId};
use schedlab_policy::decision::Decision;
use schedlab_policy::fair::QueueView;
use schedlab_policy::{CandidateView, Sched};
use schedlab_spec::RunSpec;
use schedlab_trace::Sink;

use crate::error::SimError;
use crate::kernel::{Kernel, Life};
use crate::programs::Programs;
use crate::run::{Source, Watch};
use crate::world::{Ended, System, Systems, VirtualSystems, World};

/// A run in progress, seen as one kernel does: the only one, or that of the first guest.
pub struct Session<'a, S: Sink>(Worlds<'a, S>);

enum Worlds<'a, S: Sink> {
    Bare(Box<World<'a, S>>),
    Hosted(Box<World<'a, S, VirtualSystems>>),
}

/// The kernel of the first guest.
const GUEST: KernelId = KernelId(1);

/// What a task is doing, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskView {
    /// As traces print it.
    pub pid: Pid,
    /// The task's id in the policy.
    pub task: TaskId,
    /// `workload/program`.
    pub name: String,
    /// Its life.
    pub life: Life,
    /// What it sleeps on.
    pub waits_for: Option<String>,
    /// It runs kernel code.
    pub in_kernel: bool,
}

/// A CPU's pending requests and overhead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuView {
    /// TIF_NEED_RESCHED.
    pub need_resched: bool,
    /// TIF_NEED_RESCHED_LAZY.
    pub need_resched_lazy: bool,
    /// Time spent on overhead so far.
    pub cost: Nanos,
    /// Its next tick, unless it is stopped.
    pub next_tick: Option<Nanos>,
}

/// How much is recorded of every decision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Detail {
    /// The decision.
    Decisions,
    /// And the candidates that placements looked at.
    Placements,
    /// And the CPU's queue as it stood.
    Queues,
}

/// A decision of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decided {
    /// The decision.
    pub decision: Decision,
    /// The CPU's queue as it stood, if asked for.
    pub queue: Option<QueueView>,
    /// Of a placement: what it looked at, if asked for.
    pub candidates: Vec<CandidateView>,
}

impl<'a, S: Sink> Session<'a, S> {
    /// The run at time 0.
    pub fn new(spec: &RunSpec, sink: &'a mut S) -> Self {
        let mut session = if spec.guests.is_empty() {
            let mut world = World::new(spec, sink);
            world.run.horizon = 0;
            Session(Worlds::Bare(Box::new(world)))
        } else {
            let mut world = World::hosted(spec, sink);
            world.run.horizon = 0;
            Session(Worlds::Hosted(Box::new(world)))
        };
        // Dead tasks can be looked at, too, by ids that stay theirs.
        session.system_mut().kernel.recycles = false;
        session
    }

    /// Handles the next instant; `Some` once the run has ended.
    pub fn step<W: Watch>(&mut self, watch: &W) -> Result<Option<Ended>, SimError> {
        match &mut self.0 {
            Worlds::Bare(world) => world.step(watch),
            Worlds::Hosted(world) => world.step(watch),
        }
    }

    /// When the next instant is.
    #[must_use]
    pub fn next_time(&mut self) -> Option<Nanos> {
        match &mut self.0 {
            Worlds::Bare(world) => world.next_time(),
            Worlds::Hosted(world) => world.next_time(),
        }
    }

    /// The time of the instant last handled.
    #[must_use]
    pub fn now(&self) -> Nanos {
        match &self.0 {
            Worlds::Bare(world) => world.now(),
            Worlds::Hosted(world) => world.now(),
        }
    }

    fn system(&self) -> &System {
        match &self.0 {
            Worlds::Bare(world) => &world.systems,
            Worlds::Hosted(world) => &world.systems.all()[GUEST.index()],
        }
    }

    fn system_mut(&mut self) -> &mut System {
        match &mut self.0 {
            Worlds::Bare(world) => &mut world.systems,
            Worlds::Hosted(world) => world.systems.get_mut(GUEST),
        }
    }

    /// Which kernel it shows.
    #[must_use]
    pub fn kernel_id(&self) -> KernelId {
        self.kernel().id
    }

    fn kernel(&self) -> &Kernel {
        &self.system().kernel
    }

    fn programs(&self) -> &Programs {
        &self.system().programs
    }

    /// Records decisions from now on, in this detail.
    pub fn record(&mut self, detail: Detail) {
        self.system_mut().kernel.sched.record(detail == Detail::Queues, detail != Detail::Decisions);
    }

    /// The decisions since the last call. They name a task by its pid less 1.
    pub fn decided(&mut self) -> impl Iterator<Item = Decided> + '_ {
        let recorded = self.system_mut().kernel.sched.take_decisions();
        recorded.into_iter().map(|recorded| {
            let queue = recorded.queue.map(|view| self.with_pids(view));
            let mut decision = recorded.decision;
            decision.rename(|task| TaskId(self.pid_of(task).unsigned_abs().saturating_sub(1)));
            Decided { decision, queue, candidates: recorded.candidates }
        })
    }

    /// The pid of a task; 0: the idle task.
    #[must_use]
    pub fn pid_of(&self, task: TaskId) -> Pid {
        self.kernel().tasks.get(task.index()).map_or(0, |task| task.pid)
    }

    /// The task with this pid.
    #[must_use]
    pub fn task_of(&self, pid: Pid) -> Option<TaskId> {
        // Sessions do not use the places of tasks again.
        let tasks = &self.kernel().tasks;
        let found = self.kernel().pids.order(pid).and_then(|place| tasks.get(place)).filter(|task| task.pid == pid);
        found.or_else(|| tasks.iter().find(|task| task.pid == pid)).map(|task| task.id)
    }

    fn with_pids(&self, mut view: QueueView) -> QueueView {
        view.rename(|task| u32::try_from(task).map_or(0, |task| self.pid_of(TaskId(task))));
        view
    }

    /// The scheduler.
    #[must_use]
    pub fn sched(&self) -> &Sched {
        &self.kernel().sched
    }

    /// A CPU's queue.
    #[must_use]
    pub fn queue(&self, cpu: CpuId) -> QueueView {
        self.with_pids(self.kernel().sched.queue_view(cpu))
    }

    /// The groups but the root, by their number in views and decisions: path, or `/autogroup-WORKLOAD`.
    pub fn groups(&self) -> impl Iterator<Item = (u32, String)> + '_ {
        let workloads = &self.programs().workloads;
        let workload = |index: usize| workloads.get(index).map_or("", |workload| workload.name.as_str());
        self.kernel().cgroups.names(workload)
    }

    /// A CPU.
    #[must_use]
    pub fn cpu(&self, cpu: CpuId) -> CpuView {
        let c = &self.kernel().cpus[cpu.index()];
        CpuView {
            need_resched: c.need_resched,
            need_resched_lazy: c.need_resched_lazy,
            cost: self.system().machine.cpus[cpu.index()].time.cost,
            next_tick: match &self.0 {
                Worlds::Bare(world) => world.run.due(self.kernel().id, Source::Tick, cpu),
                Worlds::Hosted(world) => world.run.due(self.kernel().id, Source::Tick, cpu),
            },
        }
    }

    /// What the running task of a CPU executes, as far as that decides when it can be preempted: `is in user mode`,
    /// `spins for "lock", held by task 7, which was preempted`.
    #[must_use]
    pub fn executes(&self, cpu: CpuId) -> Option<String> {
        let task = self.kernel().cpus[cpu.index()].curr?;
        let segment = &self.system().machine.cpus[cpu.index()].segment;
        Some(self.programs().executes(self.kernel(), task, segment))
    }

    /// Every task so far.
    pub fn tasks(&self) -> impl Iterator<Item = TaskView> + '_ {
        self.kernel().tasks.iter().map(|task| TaskView {
            pid: task.pid,
            task: task.id,
            name: self.programs().name_of(task.id),
            life: task.life,
            waits_for: (task.life == Life::Sleeping).then(|| self.programs().waits_for(task.wait)).flatten(),
            in_kernel: self.in_kernel(task.id),
        })
    }

    fn in_kernel(&self, task: TaskId) -> bool {
        let cpu = self.kernel().sched.cpu_of(task);
        let running = self.kernel().cpus[cpu.index()].curr == Some(task);
        let segment = if running {
            &self.system().machine.cpus[cpu.index()].segment
        } else {
            &self.kernel().tasks[task.index()].segment
        };
        segment.mode.is_kernel()
    }
}
