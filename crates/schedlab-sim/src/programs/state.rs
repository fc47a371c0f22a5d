//! The programs of a kernel's workloads in flat tables, their objects, and every task's position.

use std::sync::Arc;

use schedlab_model::{stream, Nanos, Pid, Stream, Table, TaskId, Ties};
use schedlab_spec::RunSpec;
use schedlab_workload::{identity, Label, Op, Program, Workload};

use super::bases::Bases;
use super::lines::{Shared, Word};
use super::objects::Object;
use super::position::Position;
use super::remotes::Remotes;

/// A task that will start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PlannedStart {
    pub time: Nanos,
    /// Order among tasks of one instant, drawn by the seed.
    pub order: u64,
    pub workload: u16,
    pub spec: u32,
    pub instance: u32,
}

/// What the tasks of a kernel execute.
#[derive(Debug)]
pub struct Programs {
    pub workloads: Arc<Vec<Workload>>,
    /// All programs, one after the other.
    pub code: Vec<Op>,
    /// Where each of them begins.
    pub entries: Vec<Label>,
    /// By workload.
    pub bases: Vec<Bases>,
    pub objects: Table<Object>,
    /// The lines and locks of the objects; empty where they cost nothing.
    pub shared: Table<Shared>,
    /// By task.
    pub positions: Table<Position>,
    /// By workload and distribution: how many values of a recorded sequence were taken.
    taken: Vec<Vec<u64>>,
    /// Tasks that will start, the next one last.
    pub starts: Vec<PlannedStart>,
    /// By workload: how much later than planned its tasks start ([`identity::start_phase`]).
    pub phases: Vec<Nanos>,
    /// Clients on other machines.
    pub remotes: Remotes,
    /// Draws the CPUs on which they start.
    pub placement: Stream,
    /// By workload: it has an end of its own and has not reached it.
    pub unfinished: Vec<bool>,
    /// The seed of every task's streams.
    pub seed: u64,
    /// In which order workloads start whose starts are not drawn and due at the same time.
    pub ties: Ties,
    /// Whether bursts, offsets and placements are drawn.
    pub noise: bool,
}

fn start_phases(spec: &RunSpec, seed: u64) -> Vec<Nanos> {
    let latest = identity::latest_phase(spec.duration);
    let phase = |index| if spec.noise { identity::start_phase(seed, &spec.workloads, index, latest) } else { 0 };
    (0..spec.workloads.len()).map(phase).collect()
}

impl Programs {
    /// Whether the task with this pid holds a spinlock of its program.
    pub fn holds_spinlock(&self, pid: Pid) -> bool {
        let held = |object: &Object| matches!(object, Object::SpinLock(lock) if lock.owner == Some(pid));
        self.objects.iter().any(held)
    }

    /// Flattens the workloads' programs and objects; operations name operations, objects and metrics by their place
    /// there.
    pub fn new(spec: &RunSpec, seed: u64) -> Self {
        let mut programs = Programs {
            workloads: Arc::clone(&spec.workloads),
            code: Vec::new(),
            entries: Vec::new(),
            bases: Vec::new(),
            objects: Table::default(),
            shared: Table::default(),
            positions: Table::default(),
            taken: spec.workloads.iter().map(|workload| vec![0; workload.dists.len()]).collect(),
            starts: Vec::new(),
            phases: start_phases(spec, seed),
            remotes: Remotes::default(),
            placement: stream(seed, "start/cpu"),
            unfinished: spec.workloads.iter().map(|workload| workload.ends).collect(),
            seed,
            ties: Ties::new(spec.ties, seed),
            noise: spec.noise,
        };
        let (mut base, mut metric) = (Bases::default(), 0);
        for workload in spec.workloads.iter() {
            programs.lay_out(workload, base, metric, spec.machine.topology.nr_cpus());
            base.program += workload.programs.len() as u32;
            base.object += workload.objects.len() as u32;
            base.process += 1 + workload.tasks.iter().map(|task| task.process).max().unwrap_or(0);
            metric += workload.metrics.len() as u16;
        }
        programs.remotes = Remotes::new(spec, &programs.bases, seed);
        let physics = spec.machine.physics;
        if physics.lines || physics.locks {
            programs.shared = vec![Shared::default(); programs.objects.len()].into();
        }
        programs
    }

    fn lay_out(&mut self, workload: &Workload, base: Bases, metric: u16, nr_cpus: usize) {
        self.bases.push(base);
        for program in &workload.programs {
            let first = self.code.len() as u32;
            self.entries.push(first);
            self.code.extend(program.ops.iter().map(|op| op.relocated(base.object, metric, first)));
            // The end of a program is an exit.
            self.code.push(Op::Exit);
        }
        self.objects.extend(workload.objects.iter().map(|spec| Object::new(spec, nr_cpus)));
    }

    /// The start of one of a workload's programs, for a task with this key.
    pub fn start_of(&self, workload: u16, program: u32, key: u64) -> Position {
        let program = self.bases[workload as usize].program + program;
        let stream = identity::work_stream(self.seed, key);
        let shared = (!self.shared.is_empty()).then(Box::default);
        Position { shared, ..Position::new(workload, program, self.entries[program as usize], key, stream) }
    }

    /// The task draws from one of its workload's distributions, which is the typical value without noise.
    #[inline(never)]
    pub fn draw(&mut self, task: TaskId, dist: u32) -> Nanos {
        let position = &mut self.positions[task.index()];
        let workload = position.workload as usize;
        let (dists, taken) = (&self.workloads[workload].dists, &mut self.taken[workload]);
        let Some((dist, taken)) = dists.get(dist as usize).zip(taken.get_mut(dist as usize)) else { return 0 };
        dist.next(taken, self.noise, &mut position.stream)
    }

    /// The lines and the lock of a futex word, where they cost something.
    pub fn word(&mut self, word: Word) -> Option<&mut Shared> {
        match word {
            Word::Object(object) => self.shared.get_mut(object as usize),
            Word::Own(task) => self.positions[task.index()].shared.as_deref_mut(),
        }
    }

    /// Whether tasks start later, or requests come from other machines.
    pub fn expects_more(&self) -> bool {
        !self.starts.is_empty() || !self.remotes.clients.is_empty()
    }

    /// Adds a task's position, in the task's place.
    pub fn add(&mut self, task: TaskId, position: Position) {
        match self.positions.get_mut(task.index()) {
            Some(place) => *place = position,
            None => self.positions.push(position),
        }
    }

    /// The workload and the program of a task.
    pub fn program_of(&self, task: TaskId) -> (&Workload, &Program) {
        let position = &self.positions[task.index()];
        let workload = &self.workloads[position.workload as usize];
        let base = self.bases[position.workload as usize].program;
        (workload, &workload.programs[(position.program - base) as usize])
    }
}
