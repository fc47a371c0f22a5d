//! Where tasks come from: the workloads' own at the start, forks later.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

use schedlab_model::{stream, CpuId, Nanos, TaskId};
use schedlab_policy::TaskAttr;
use schedlab_trace::{Kind, Sink};
use schedlab_workload::{identity, TaskKind, TaskSpec};

use crate::cost::Dice;
use crate::effect::{fair_policy, prio, rt_policy};
use crate::engine::{Engine, Source};
use crate::exec::{register, Next};
use crate::objects::{Futex, Object};
use crate::task::{Handle, Life, Mode, Step, Task, Wait, WORK_SHIFT};

/// First register a child inherits from its parent.
const INHERITED: usize = 4;

/// A task that will start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Start {
    pub time: Nanos,
    /// Order among tasks of one instant, drawn by the seed.
    pub order: u64,
    pub workload: u16,
    pub spec: u32,
    pub instance: u32,
}

impl<S: Sink> Engine<'_, S> {
    /// Plans the start of every workload's own tasks.
    pub fn boot(&mut self) {
        let workloads = Arc::clone(&self.workloads);
        for (w, workload) in workloads.iter().enumerate() {
            for (s, spec) in workload.tasks.iter().enumerate() {
                for instance in 0..spec.count {
                    let start = self.plan(w as u16, s as u32, spec, instance);
                    self.starts.push(start);
                    self.alive += 1;
                }
            }
        }
        // Taken from the end.
        self.starts.sort_unstable_by_key(|start| Reverse(*start));
        self.arm_start();
    }

    fn plan(&self, workload: u16, spec_index: u32, spec: &TaskSpec, instance: u32) -> Start {
        let mut time = spec.delay;
        let mut order = self.starts.len() as u64;
        if self.spec.noise && spec.jitter {
            let name = &self.workloads[workload as usize].name;
            let (late, rank) = identity::start_jitter(self.spec.seed, name, &spec.name, instance);
            (time, order) = (time + late, rank);
        }
        Start { time, order, workload, spec: spec_index, instance }
    }

    fn arm_start(&mut self) {
        if let Some(next) = self.starts.last().map(|start| start.time) {
            self.set_event(Source::START, CpuId(0), next.max(self.now));
        }
    }

    /// Starts every task whose time has come. The parent (a shell) is on a CPU that the seed draws.
    pub fn on_start(&mut self) {
        let workloads = Arc::clone(&self.workloads);
        while let Some(start) = self.starts.last().copied().filter(|start| start.time <= self.now) {
            self.starts.pop();
            let workload = &workloads[start.workload as usize];
            let spec = &workload.tasks[start.spec as usize];
            let nr_cpus = self.cpus.len() as u64;
            let mut cpu = CpuId(if self.spec.noise { self.placement.below(nr_cpus) as u32 } else { 0 });
            if let Some(mask) = spec.affinity.filter(|mask| !mask.has(cpu)) {
                cpu = mask.iter_from(cpu).next().filter(|c| c.index() < self.cpus.len()).unwrap_or(cpu);
            }
            let attr = TaskAttr {
                nice: spec.nice,
                policy: fair_policy(spec.policy).unwrap_or_default(),
                rt: rt_policy(spec.policy),
                latency_nice: spec.latency_nice.unwrap_or(0),
                slice: spec.slice,
                affinity: spec.affinity,
                cpu,
                group: self.cgroups.of(spec.cgroup.as_deref(), start.workload as usize),
            };
            let id = self.sched.add_task(&attr);
            let key = identity::first_key(&workload.name, &spec.name, start.instance);
            let base = self.bases[start.workload as usize];
            let mut task = self.new_task(id, key);
            task.prio = prio(spec.policy, spec.nice);
            task.workload = start.workload;
            task.program = base.program + spec.program;
            task.pc = self.entries[task.program as usize];
            task.process = base.process + spec.process;
            task.timer_slack = spec.timer_slack;
            task.registers = spec.registers;
            self.add(task, &spec.name);
            self.progress(cpu);
            if self.sched.rt.policy(id).is_none() {
                let wish = self.sched.fair.task_fork(cpu, id, self.now);
                self.request_resched(cpu, wish, cpu);
            }
            self.wake_new(id, cpu);
            // The shell is not simulated: what its wakeup costs is not charged to anybody.
            self.cpus[cpu.index()].pending = 0;
            self.interrupted(cpu);
        }
        self.arm_start();
    }

    pub fn fork(&mut self, cpu: CpuId, parent: TaskId, program: u32, kind: TaskKind, into: u8) -> Next {
        let (id, wish) = self.sched.fork(parent, self.now);
        let p = &mut self.tasks[parent.index()];
        p.forked += 1;
        p.children += 1;
        let key = identity::child_key(p.key, p.forked);
        let p = self.tasks[parent.index()].clone_identity();
        let mut task = self.new_task(id, key);
        task.prio = p.prio;
        task.workload = p.workload;
        task.program = self.bases[p.workload as usize].program + program;
        task.pc = self.entries[task.program as usize];
        task.thread = kind == TaskKind::Thread;
        // Forked address spaces are numbered from the top, by task.
        task.process = if task.thread { p.process } else { u32::MAX - task.pid as u32 };
        task.timer_slack = p.timer_slack;
        task.registers[INHERITED..].copy_from_slice(&p.registers[INHERITED..]);
        task.parent = Some(Handle { task: parent, pid: p.pid });
        let (child_pid, parent_pid) = (task.pid, p.pid);
        *register(&mut self.tasks[parent.index()], into) = task.handle().to_register();
        let workloads = Arc::clone(&self.workloads);
        let name = workloads[p.workload as usize].programs.get(program as usize).map_or("", |p| p.name.as_str());
        let start = if task.thread { &self.costs.start_thread } else { &self.costs.start_process };
        task.work_left = start.draw_any(&mut task.dice) << WORK_SHIFT;
        self.add(task, name);
        self.alive += 1;
        self.emit(cpu, Kind::Fork { parent: parent_pid, child: child_pid });
        self.request_resched(cpu, wish, cpu);
        self.wake_new(id, cpu);
        Next::Done
    }

    fn add(&mut self, task: Task, name: &str) {
        self.born = task.pid;
        self.sink.name(task.pid, name);
        self.checks.born(task.id);
        match self.tasks.get_mut(task.id.index()) {
            Some(place) => *place = task,
            None => self.tasks.push(task),
        }
    }

    /// `finish_task_switch` of a dead task: nothing refers to it any more, its place is the next one's.
    pub fn release(&mut self, task: TaskId) {
        if self.recycles {
            self.sched.release_task(task);
        }
    }

    fn new_task(&self, id: TaskId, key: u64) -> Task {
        let seed = self.spec.seed;
        Task {
            id,
            pid: self.born + 1,
            prio: 120,
            workload: 0,
            program: 0,
            pc: 0,
            step: Step::Fetch,
            life: Life::New,
            mode: Mode::User,
            cost_left: 0,
            work_left: 0,
            after: 0,
            carry: 0,
            until: 0,
            io_left: 0,
            resumed: false,
            wait: Wait::Nothing,
            registers: Default::default(),
            own: Futex::default(),
            stack: Vec::new(),
            mail: VecDeque::new(),
            parent: None,
            thread: false,
            children: 0,
            zombies: 0,
            process: 0,
            timer_slack: 0,
            dice: Dice::new(stream(seed ^ key, "cost")),
            stream: identity::work_stream(seed, key),
            key,
            forked: 0,
            idle_steps: 0,
            cpu_lock: None,
        }
    }

    /// Who waits on what, for the report of a deadlock.
    pub fn describe_waits(&self) -> Vec<String> {
        const SHOWN: usize = 8;
        let sleeping: Vec<&Task> = self.tasks.iter().filter(|task| task.life == Life::Sleeping).collect();
        let mut phrases: Vec<String> = sleeping.iter().take(SHOWN).map(|task| self.describe_wait(task)).collect();
        if sleeping.len() > SHOWN {
            phrases.push(format!("and {} more", sleeping.len() - SHOWN));
        }
        phrases
    }

    fn describe_wait(&self, task: &Task) -> String {
        let base = self.bases[task.workload as usize];
        let workload = &self.workloads[task.workload as usize];
        let program = &workload.programs[(task.program - base.program) as usize];
        let step = match task.step {
            Step::Fetch => task.pc.saturating_sub(1),
            Step::Effect => task.pc,
        };
        let step = step.saturating_sub(self.entries[task.program as usize]);
        let line = program.line(step).map_or(String::new(), |line| format!(" (line {line})"));
        let what = match task.wait {
            Wait::Object(index) => {
                let local = index - base.object;
                let holder = match &self.objects[index as usize] {
                    Object::Mutex(mutex) => mutex.owner,
                    _ => None,
                };
                let held = holder.map_or(String::new(), |task| format!(", held by task {task}"));
                let name = workload.object_names.get(local as usize).filter(|name| !name.is_empty());
                let name = name.map_or_else(|| local.to_string(), |name| format!("\"{name}\""));
                format!("{} {name}{held}", self.objects[index as usize].kind())
            }
            Wait::Own => "its own futex word".into(),
            Wait::Child => "a child's exit".into(),
            Wait::Timer | Wait::Nothing => "nothing that can come".into(),
        };
        format!("{}/{} (task {}) waits on {what}{line}", workload.name, program.name, task.pid)
    }
}

impl Task {
    /// What a child takes from its parent.
    fn clone_identity(&self) -> Identity {
        Identity {
            prio: self.prio,
            pid: self.pid,
            workload: self.workload,
            process: self.process,
            timer_slack: self.timer_slack,
            registers: self.registers,
        }
    }
}

struct Identity {
    prio: i32,
    pid: i32,
    workload: u16,
    process: u32,
    timer_slack: Nanos,
    registers: [i64; schedlab_workload::REGISTERS],
}
