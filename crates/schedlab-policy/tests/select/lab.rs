//! A machine without time costs: what the engine does around the policy, in its shortest form.

use std::sync::Arc;

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId, Topology, MSEC};
use schedlab_policy::{FairPolicy, KernelConfig, Moves, Sched, Selection, TaskAttr, Version, WakeKind};

pub const SYNC: WakeKind = WakeKind::Wakeup { sync: true };
pub const WAKE: WakeKind = WakeKind::Wakeup { sync: false };

pub struct Lab {
    pub sched: Sched,
    pub now: Nanos,
    /// Idle CPUs as the engine sees them.
    pub idle: Vec<bool>,
}

/// (nodes, caches per node, cores per cache, threads per core), siblings adjacent.
pub type Shape = (u32, u32, u32, u32);

impl Lab {
    pub fn new(version: &str, shape: Shape) -> Lab {
        Lab::configured(version, shape, |_| {})
    }

    pub fn configured(version: &str, shape: Shape, configure: impl FnOnce(&mut KernelConfig)) -> Lab {
        let (nodes, llcs, cores, threads) = shape;
        let topology = Topology::regular(nodes, llcs, cores, threads, true).expect("a possible shape");
        Lab::on(version, topology, configure)
    }

    pub fn on(version: &str, topology: Topology, configure: impl FnOnce(&mut KernelConfig)) -> Lab {
        let version = Version::find(version).expect("a modelled version");
        let mut config = KernelConfig::new(version, topology.nr_cpus(), 250);
        configure(&mut config);
        let idle = vec![true; topology.nr_cpus()];
        Lab { sched: Sched::new(config, Arc::new(topology)), now: 10 * MSEC, idle }
    }

    pub fn cpus(&self) -> impl Iterator<Item = CpuId> {
        (0..self.idle.len() as u32).map(CpuId)
    }

    pub fn task_on(&mut self, cpu: u32) -> TaskId {
        self.sched.add_task(&TaskAttr { cpu: CpuId(cpu), ..TaskAttr::default() })
    }

    pub fn pinned(&mut self, cpu: u32, mask: &str) -> TaskId {
        let affinity = CpuMask::from_list(mask);
        self.sched.add_task(&TaskAttr { cpu: CpuId(cpu), affinity, ..TaskAttr::default() })
    }

    pub fn idle_policy_on(&mut self, cpu: u32) -> TaskId {
        self.sched.add_task(&TaskAttr { cpu: CpuId(cpu), policy: FairPolicy::Idle, ..TaskAttr::default() })
    }

    /// Enqueues where it is, without a search.
    pub fn enqueue(&mut self, task: TaskId) {
        let cpu = self.sched.cpu_of(task);
        self.sched.activate(task, cpu, WakeKind::Fork, self.now);
    }

    /// A new task that runs on the CPU now.
    pub fn running(&mut self, cpu: u32) -> TaskId {
        let task = self.task_on(cpu);
        self.enqueue(task);
        self.schedule(CpuId(cpu));
        task
    }

    /// `schedule()` of the CPU, newidle balance included.
    pub fn schedule(&mut self, cpu: CpuId) -> Option<TaskId> {
        let pushed = self.sched.active_load_balance_cpu_stop(cpu, self.now);
        let mut next = self.sched.pick_next_task(cpu, self.now);
        self.settle(&pushed);
        if next.is_none() {
            self.sched.sched_balance_newidle(cpu, self.now);
            next = self.sched.pick_next_task(cpu, self.now);
        }
        if next.is_none() {
            self.sched.idle_enter(cpu, self.now);
        }
        self.idle[cpu.index()] = next.is_none();
        next
    }

    /// Blocks the CPU's current task and schedules.
    pub fn block(&mut self, cpu: CpuId) -> Option<TaskId> {
        let task = self.sched.curr(cpu)?;
        self.sched.block(task, false, self.now);
        self.schedule(cpu);
        Some(task)
    }

    /// Selects, without enqueueing.
    pub fn select(&mut self, task: TaskId, waker: u32, kind: WakeKind) -> Selection {
        self.sched.select_task_rq(task, CpuId(waker), kind, self.now)
    }

    /// Wakes a sleeping task as `try_to_wake_up` does, and schedules an idle target.
    pub fn wake(&mut self, task: TaskId, waker: CpuId, kind: WakeKind) -> Option<Selection> {
        if self.sched.requeue_delayed(task, self.now) {
            return None;
        }
        let selection = self.sched.select_task_rq(task, waker, kind, self.now);
        self.sched.activate(task, selection.cpu, kind, self.now);
        self.sched.wakeup_preempt(selection.cpu, task, kind, false, self.now);
        if self.idle[selection.cpu.index()] {
            self.schedule(selection.cpu);
        }
        Some(selection)
    }

    /// What follows a balance: idle CPUs that got work schedule.
    pub fn settle(&mut self, moves: &Moves) {
        for (task, _) in &moves.moved {
            let cpu = self.sched.cpu_of(*task);
            if self.idle[cpu.index()] {
                self.schedule(cpu);
            }
        }
    }

    /// The engine's tick of a busy CPU.
    pub fn tick(&mut self, cpu: CpuId) -> Moves {
        let mut moves = Moves::default();
        if self.idle[cpu.index()] {
            return moves;
        }
        self.sched.tick(cpu, self.now);
        if let Some(curr) = self.sched.curr(cpu).filter(|curr| self.sched.fair.has_cache_work(*curr)) {
            self.sched.task_cache_work(cpu, curr, self.now);
        }
        if self.sched.balance_due(cpu, self.now) {
            moves = self.sched.sched_balance_domains(cpu, false, self.now);
            self.settle(&moves);
        }
        if let Some(helper) = self.sched.nohz_balancer_kick(cpu, self.now) {
            let more = self.sched.nohz_idle_balance(helper, self.now);
            self.settle(&more);
            moves.moved.extend(more.moved);
        }
        moves
    }

    /// Tasks per CPU.
    pub fn counts(&self) -> Vec<u32> {
        self.cpus().map(|cpu| self.sched.nr_running(cpu)).collect()
    }
}
