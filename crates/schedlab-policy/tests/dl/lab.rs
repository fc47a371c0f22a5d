//! CPUs without any overhead that execute deadline tasks: exact times of wakeups, completions, timers and ticks.

use std::sync::Arc;

use schedlab_model::{CpuId, Nanos, TaskId, Topology, MSEC};
use schedlab_policy::dl::DlPolicy;
use schedlab_policy::fair::Hrtick;
use schedlab_policy::{KernelConfig, Moves, Resched, Sched, TaskAttr, Version, WakeKind};

const WAKE: WakeKind = WakeKind::Wakeup { sync: false };

/// One task: jobs of `work` every `period`, the first at `first`.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub dl: Option<DlPolicy>,
    pub first: Nanos,
    pub every: Nanos,
    pub work: Nanos,
}

/// A task of the lab.
#[derive(Clone, Debug)]
pub struct Task {
    pub id: TaskId,
    pub job: Job,
    /// What is left of the present job; 0: it sleeps.
    pub left: Nanos,
    pub released: Nanos,
    pub ran: Nanos,
    /// How long each job took from its release on.
    pub responses: Vec<Nanos>,
}

/// The machine.
pub struct Lab {
    pub sched: Sched,
    pub now: Nanos,
    pub tasks: Vec<Task>,
    next_release: Vec<Nanos>,
    hrtick: Vec<Option<Nanos>>,
    tick: Nanos,
    pub cpus: u32,
}

/// A kernel with a tick of 1 ms.
pub fn config(version: &str, cpus: u32, set: impl Fn(&mut KernelConfig)) -> KernelConfig {
    let mut config = KernelConfig::new(Version::find(version).unwrap(), cpus as usize, 1000);
    set(&mut config);
    config
}

impl Lab {
    pub fn new(config: KernelConfig) -> Lab {
        let cpus = config.nr_cpus as u32;
        let topology = Arc::new(Topology::regular(1, 1, cpus, 1, true).unwrap());
        let hrtick = vec![None; cpus as usize];
        let (tasks, next_release) = (Vec::new(), Vec::new());
        Lab { sched: Sched::new(config, topology), now: MSEC, tasks, next_release, hrtick, tick: 2 * MSEC, cpus }
    }

    /// Adds a task; None: it is not admitted.
    pub fn add(&mut self, job: Job) -> Option<usize> {
        if job.dl.is_some_and(|dl| self.sched.dl.sched_dl_overflow(None, dl).is_some()) {
            return None;
        }
        let id = self.sched.add_task(&TaskAttr { dl: job.dl, ..TaskAttr::default() });
        let (ran, left, released, responses) = (0, 0, 0, Vec::new());
        self.tasks.push(Task { id, job, left, released, ran, responses });
        self.next_release.push(self.now + job.first);
        Some(self.tasks.len() - 1)
    }

    fn at(&self, id: TaskId) -> usize {
        self.tasks.iter().position(|task| task.id == id).unwrap()
    }

    pub fn all(&self) -> impl Iterator<Item = CpuId> {
        (0..self.cpus).map(CpuId)
    }

    fn wake(&mut self, index: usize) {
        let task = &mut self.tasks[index];
        (task.left, task.released) = (task.job.work, self.now);
        let id = task.id;
        if self.sched.requeue_delayed(id, self.now) {
            let cpu = self.sched.cpu_of(id);
            let resched = self.sched.wakeup_preempt(cpu, id, WAKE, false, self.now);
            return self.ask(cpu, resched);
        }
        let cpu = self.sched.select_task_rq(id, CpuId(0), WAKE, self.now).cpu;
        self.sched.activate(id, cpu, WAKE, self.now);
        let idle = self.sched.curr(cpu).is_none() && self.sched.nr_running(cpu) > 0;
        let resched = self.sched.wakeup_preempt(cpu, id, WAKE, false, self.now);
        let moves = self.sched.task_woken(id, resched != Resched::No, self.now);
        self.ask(cpu, if idle { Resched::Full } else { resched });
        self.carry_out(&moves);
    }

    /// The running task sleeps or exits.
    fn leave(&mut self, cpu: CpuId, exits: bool) {
        let id = self.sched.curr(cpu).unwrap();
        self.sched.block(id, exits, self.now);
        if exits {
            self.sched.task_dead(id);
        }
        self.schedule(cpu);
    }

    /// The task exits where it runs.
    pub fn exit(&mut self, index: usize) {
        let id = self.tasks[index].id;
        self.leave(self.sched.cpu_of(id), true);
        self.sched.release_task(id);
        self.next_release[index] = Nanos::MAX;
        self.tasks[index].id = TaskId(1_000_000 + index as u32);
    }

    fn ask(&mut self, cpu: CpuId, resched: Resched) {
        if resched != Resched::No {
            self.schedule(cpu);
        }
    }

    fn carry_out(&mut self, moves: &Moves) {
        moves.resched.iter().for_each(|(cpu, resched)| self.ask(*cpu, *resched));
    }

    pub fn schedule(&mut self, cpu: CpuId) {
        let pulled = self.sched.balance(cpu, self.now);
        if self.sched.pick_next_task(cpu, self.now).is_none() {
            self.sched.idle_enter(cpu, self.now);
        }
        self.arm(cpu);
        let pushed = self.sched.balance_callback(cpu, self.now);
        self.carry_out(&pulled);
        self.carry_out(&pushed);
    }

    /// `hrtick_start`.
    fn arm(&mut self, cpu: CpuId) {
        self.hrtick[cpu.index()] = match self.sched.hrtick_start(cpu) {
            Some(Hrtick::After(left)) => Some(self.now + left),
            _ => None,
        };
    }

    /// The next time at which anything happens.
    fn next(&self, end: Nanos) -> Nanos {
        let running = self.all().filter_map(|cpu| self.sched.curr(cpu)).map(|id| self.tasks[self.at(id)].left);
        let completion = running.map(|left| self.now + left).min();
        let release = self.next_release.iter().copied().min();
        let hrtick = self.hrtick.iter().flatten().copied().min();
        let times = [completion, release, hrtick, self.sched.next_timer(), Some(self.tick), Some(end)];
        times.into_iter().flatten().min().unwrap().max(self.now)
    }

    /// Handles the events of one instant.
    fn step(&mut self, end: Nanos) {
        let next = self.next(end);
        for cpu in self.all() {
            if let Some(id) = self.sched.curr(cpu) {
                let (at, ran) = (self.at(id), next - self.now);
                self.tasks[at].left -= ran;
                self.tasks[at].ran += ran;
            }
        }
        self.now = next;
        for cpu in self.all() {
            let done = self.sched.curr(cpu).map(|id| self.at(id)).filter(|at| self.tasks[*at].left == 0);
            if let Some(at) = done {
                let response = self.now - self.tasks[at].released;
                self.tasks[at].responses.push(response);
                self.leave(cpu, false);
            }
        }
        if self.sched.next_timer().is_some_and(|at| at <= self.now) {
            let moves = self.sched.timer_expired(self.now);
            self.carry_out(&moves);
        }
        for cpu in self.all() {
            if self.hrtick[cpu.index()].is_some_and(|at| at <= self.now) {
                self.hrtick[cpu.index()] = None;
                if let Some((resched, _)) = self.sched.hrtick(cpu, self.now) {
                    self.arm(cpu);
                    self.ask(cpu, resched);
                }
            }
        }
        for index in 0..self.tasks.len() {
            if self.next_release[index] <= self.now {
                self.next_release[index] += self.tasks[index].job.every;
                if self.tasks[index].left == 0 {
                    self.wake(index);
                }
            }
        }
        if self.tick <= self.now {
            self.tick += MSEC;
            for cpu in self.all().filter(|cpu| self.sched.curr(*cpu).is_some()).collect::<Vec<_>>() {
                let resched = self.sched.tick(cpu, self.now);
                self.ask(cpu, resched);
            }
        }
    }

    /// Runs for so long; `each` looks at the machine after every instant.
    pub fn run(&mut self, length: Nanos, mut each: impl FnMut(&Lab)) {
        let end = self.now + length;
        while self.now < end {
            let before = self.now;
            self.step(end);
            if self.now > before {
                each(self);
            }
        }
    }
}
