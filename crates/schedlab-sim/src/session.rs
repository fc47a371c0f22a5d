//! A run taken instant by instant, for whoever wants to look at the scheduler between two of them.

use std::sync::atomic::AtomicBool;

use schedlab_model::{CpuId, Nanos, Pid, TaskId};
use schedlab_policy::decision::Decision;
use schedlab_policy::fair::QueueView;
use schedlab_policy::{Looked, Sched};
use schedlab_spec::RunSpec;
use schedlab_trace::Sink;

use crate::engine::Engine;
use crate::task::{Life, Mode, Wait};
use crate::{Ended, SimError};

/// A run in progress.
pub struct Session<'a, S: Sink>(Engine<'a, S>);

/// What a task is doing, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskView {
    /// As traces print it.
    pub pid: Pid,
    /// The task, as the policy knows it.
    pub task: TaskId,
    /// `workload/program`.
    pub name: String,
    /// Its life: `new`, `runnable`, `running`, `sleeping`, `dead`.
    pub life: &'static str,
    /// What it sleeps on.
    pub waits_for: Option<String>,
    /// It runs kernel code.
    pub in_kernel: bool,
}

/// What has been asked of a CPU and not yet been done.
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

/// What is kept of every decision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Detail {
    /// Itself.
    Decisions,
    /// And what placements looked at.
    Placements,
    /// And the CPU's queue as it stood.
    Queues,
}

/// A decision taken in the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decided {
    /// The decision.
    pub decision: Decision,
    /// The CPU's queue as it stood, if asked for.
    pub queue: Option<QueueView>,
    /// Of a placement: what it looked at, if asked for.
    pub looked: Vec<Looked>,
}

impl<'a, S: Sink> Session<'a, S> {
    /// The run at time 0.
    pub fn new(spec: &'a RunSpec, sink: &'a mut S) -> Self {
        let mut engine = Engine::new(spec, sink);
        engine.horizon = 0;
        // Whoever looks asks for tasks that are gone, too, and by ids that stay theirs.
        engine.recycles = false;
        engine.boot();
        Session(engine)
    }

    /// Goes through the next instant; `Some` once the run has ended.
    pub fn step(&mut self, cancel: &AtomicBool) -> Result<Option<Ended>, SimError> {
        self.0.step(cancel)
    }

    /// When the next instant is.
    #[must_use]
    pub fn next_time(&self) -> Option<Nanos> {
        (!self.0.events.is_empty()).then(|| self.0.events.next_time())
    }

    /// The instant last gone through.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.0.now
    }

    /// From now on decisions are recorded in this detail.
    pub fn record(&mut self, detail: Detail) {
        let sched = &mut self.0.sched;
        sched.fair.decisions.get_or_insert_default();
        sched.fair.views = (detail == Detail::Queues).then(Vec::new);
        sched.record_candidates(detail != Detail::Decisions);
    }

    /// Takes what was decided since the last call.
    pub fn decided(&mut self) -> impl Iterator<Item = Decided> + '_ {
        let sched = &mut self.0.sched;
        let mut looks = sched.take_candidates().into_iter().peekable();
        let mut views = sched.fair.views.as_mut().map(std::mem::take).unwrap_or_default().into_iter();
        let decisions = sched.fair.decisions.as_mut().map(std::mem::take).unwrap_or_default();
        decisions.into_iter().enumerate().map(move |(index, decision)| {
            let queue = views.next().map(|mut view| {
                view.rename(pid);
                view
            });
            let looked = looks.next_if(|(of, _)| *of == index).map(|(_, looked)| looked).unwrap_or_default();
            Decided { decision, queue, looked }
        })
    }

    /// The scheduler.
    #[must_use]
    pub fn sched(&self) -> &Sched {
        &self.0.sched
    }

    /// A CPU's queue.
    #[must_use]
    pub fn queue(&self, cpu: CpuId) -> QueueView {
        let name = |task: TaskId| pid(task.0 as Pid);
        let real_time = self.0.sched.real_time_view(cpu, name);
        QueueView { real_time, ..self.0.sched.fair.queue_view(cpu, name) }
    }

    /// The groups but the root, by their number in views and decisions: path, or `/autogroup-WORKLOAD`.
    pub fn groups(&self) -> impl Iterator<Item = (u32, String)> + '_ {
        let workload = |index: usize| self.0.workloads.get(index).map_or("", |workload| workload.name.as_str());
        self.0.cgroups.names(workload)
    }

    /// A CPU.
    #[must_use]
    pub fn cpu(&self, cpu: CpuId) -> CpuView {
        let (c, tick) = (&self.0.cpus[cpu.index()], self.0.source(crate::engine::Source::TICK, cpu));
        CpuView {
            need_resched: c.need_resched,
            need_resched_lazy: c.need_resched_lazy,
            cost: c.time.cost,
            next_tick: self.0.events.due(tick),
        }
    }

    /// Every task so far.
    pub fn tasks(&self) -> impl Iterator<Item = TaskView> + '_ {
        self.0.tasks.iter().map(|task| {
            let base = self.0.bases[task.workload as usize];
            let workload = &self.0.workloads[task.workload as usize];
            let program = workload.programs.get((task.program - base.program) as usize);
            TaskView {
                pid: task.pid,
                task: task.id,
                name: format!("{}/{}", workload.name, program.map_or("", |program| program.name.as_str())),
                life: life(task.life),
                waits_for: (task.life == Life::Sleeping).then(|| self.waits_for(task.wait)).flatten(),
                in_kernel: task.mode == Mode::Kernel,
            }
        })
    }

    fn waits_for(&self, wait: Wait) -> Option<String> {
        Some(match wait {
            Wait::Timer => "a timer".into(),
            Wait::Object(index) => format!("a {}", self.0.objects[index as usize].kind()),
            Wait::Own => "its own futex word".into(),
            Wait::Child => "a child's exit".into(),
            Wait::Nothing => return None,
        })
    }
}

/// Traces count tasks from 1; 0 is idle.
fn pid(task: Pid) -> Pid {
    task + 1
}

fn life(life: Life) -> &'static str {
    match life {
        Life::New => "new",
        Life::Runnable => "runnable",
        Life::Running => "running",
        Life::Sleeping => "sleeping",
        Life::Dead => "dead",
    }
}
