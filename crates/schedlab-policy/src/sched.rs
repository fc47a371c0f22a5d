//! One kernel's whole scheduler, core.c's side of it: who is on which CPU, where a wakeup goes, who balances when.
//!
//! Policy without time: every call is handed `now`, nothing here knows what an action costs. Left out for now: other
//! classes than fair, cpusets, CPU hotplug, active balance, NUMA balancing, asymmetric capacities.

use std::sync::Arc;

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId, Topology};

use crate::fair::Fair;
use crate::{FairPolicy, KernelConfig, Resched};

/// What a task is born with (`struct sched_attr` and its affinity).
#[derive(Clone, Debug, Default)]
pub struct TaskAttr {
    /// Nice value, -20..=19.
    pub nice: i8,
    /// Policy.
    pub policy: FairPolicy,
    /// latency-nice, -20..=19; ignored by kernels without it.
    pub latency_nice: i8,
    /// Own slice (`sched_attr.sched_runtime`); `None` = base slice. Ignored by kernels without it.
    pub slice: Option<Nanos>,
    /// CPUs it may use (`cpus_ptr`); `None` = all.
    pub affinity: Option<CpuMask>,
    /// The CPU it starts from (`task_cpu`).
    pub cpu: CpuId,
}

/// Why a CPU is being chosen for a task (`WF_TTWU`, `WF_FORK`, `WF_EXEC`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeKind {
    /// `try_to_wake_up`.
    Wakeup {
        /// The waker is about to sleep (`WF_SYNC`).
        sync: bool,
    },
    /// `wake_up_new_task`.
    Fork,
    /// `sched_exec`.
    Exec,
}

/// Where a task goes and what finding out took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection {
    /// The CPU.
    pub cpu: CpuId,
    /// CPUs tested on the way, by [`schedlab_model::Distance`] from the CPU that searched (same, smt, llc, node, remote).
    pub tested: [u32; 5],
    /// Which rule decided.
    pub rule: &'static str,
}

/// What a load-balance call did. Empty vectors own no memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Moves {
    /// Tasks that changed CPU and where they came from; where they went is [`Sched::cpu_of`].
    pub moved: Vec<(TaskId, CpuId)>,
    /// CPUs that got work and whether it asks them to reschedule (`attach_tasks`).
    pub resched: Vec<(CpuId, Resched)>,
    /// Domains walked (`load_balance` calls).
    pub passes: u32,
    /// CPUs whose state was read.
    pub looked_at: u32,
}

/// One kernel's scheduler.
pub struct Sched {
    /// The fair class.
    pub fair: Fair,
    topology: Arc<Topology>,
}

impl Sched {
    /// A scheduler with every CPU idle since time 0.
    #[must_use]
    pub fn new(config: KernelConfig, topology: Arc<Topology>) -> Self {
        Sched { fair: Fair::new(config), topology }
    }

    /// A task that exists but does not run (asleep on `attr.cpu`).
    pub fn add_task(&mut self, attr: &TaskAttr) -> TaskId {
        todo!("{attr:?}")
    }

    /// `sched_fork`: a child with the parent's attributes on the parent's CPU, not yet queued. [`Resched`] is for the
    /// parent's CPU (`child_runs_first`). Next: [`Sched::select_task_rq`], [`Sched::activate`], [`Sched::wakeup_preempt`].
    pub fn fork(&mut self, parent: TaskId, now: Nanos) -> (TaskId, Resched) {
        todo!("{parent} {now}")
    }

    /// `select_task_rq`: where `task` goes. `waker_cpu` is the CPU that executes the call.
    pub fn select_task_rq(&mut self, task: TaskId, waker_cpu: CpuId, kind: WakeKind, now: Nanos) -> Selection {
        todo!("{task} {waker_cpu} {kind:?} {now}")
    }

    /// `ttwu_queue_cond`: whether the wakeup goes through the target's wakelist (and an IPI), so that the target
    /// enqueues it itself.
    #[must_use]
    pub fn queue_remote(&self, task: TaskId, waker_cpu: CpuId, target: CpuId) -> bool {
        todo!("{task} {waker_cpu} {target}")
    }

    /// Something is (or is no longer) on the CPU's wakelist (`rq.ttwu_pending`): it does not look idle meanwhile.
    pub fn set_ttwu_pending(&mut self, cpu: CpuId, pending: bool) {
        todo!("{cpu} {pending}")
    }

    /// `ttwu_do_activate` up to the enqueue: re-homes the task if the CPU is not its last one and enqueues it.
    pub fn activate(&mut self, task: TaskId, cpu: CpuId, kind: WakeKind, now: Nanos) {
        todo!("{task} {cpu} {kind:?} {now}")
    }

    /// `ttwu_runnable`: true if the task was still queued (its dequeue was delayed) and is now runnable in place. Then
    /// no CPU is selected; [`Sched::wakeup_preempt`] follows.
    pub fn requeue_delayed(&mut self, task: TaskId, now: Nanos) -> bool {
        todo!("{task} {now}")
    }

    /// `wakeup_preempt`: whether the task just queued on `cpu` asks for a reschedule there.
    pub fn wakeup_preempt(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        kind: WakeKind,
        need_resched: bool,
        now: Nanos,
    ) -> Resched {
        todo!("{cpu} {task} {kind:?} {need_resched} {now}")
    }

    /// `deactivate_task(DEQUEUE_SLEEP)` of the current task of its CPU; `special` = dead, parked or frozen. False: its
    /// dequeue is delayed, it stays queued. Either way [`Sched::pick_next_task`] must follow on that CPU.
    pub fn block(&mut self, task: TaskId, special: bool, now: Nanos) -> bool {
        todo!("{task} {special} {now}")
    }

    /// The next task of the CPU, which becomes current. `None`: nothing is queued; try [`Sched::newidle_balance`],
    /// then pick again or call [`Sched::idle_enter`].
    pub fn pick_next_task(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        todo!("{cpu} {now}")
    }

    /// `scheduler_tick` of a CPU.
    pub fn tick(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        todo!("{cpu} {now}")
    }

    /// `sched_yield` by the current task of the CPU; the caller reschedules.
    pub fn yield_current(&mut self, cpu: CpuId, now: Nanos) {
        todo!("{cpu} {now}")
    }

    /// The idle task is switched in.
    pub fn idle_enter(&mut self, cpu: CpuId, now: Nanos) {
        todo!("{cpu} {now}")
    }

    /// The idle task is switched out.
    pub fn idle_exit(&mut self, cpu: CpuId, now: Nanos) {
        todo!("{cpu} {now}")
    }

    /// The current task; `None` while idle and between a pick that found nothing and the next.
    #[must_use]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        todo!("{cpu}")
    }

    /// The task's CPU (`task_cpu`): where it is queued, or last was.
    #[must_use]
    pub fn cpu_of(&self, task: TaskId) -> CpuId {
        todo!("{task}")
    }

    /// Tasks on the CPU, current and delayed ones included (`rq.nr_running`).
    #[must_use]
    pub fn nr_running(&self, cpu: CpuId) -> u32 {
        todo!("{cpu}")
    }

    /// `idle_cpu`: the idle task runs, nothing is queued, nothing is on its wakelist.
    #[must_use]
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        todo!("{cpu}")
    }

    /// `available_idle_cpu`: idle and, in a guest, its vCPU not preempted.
    #[must_use]
    pub fn available_idle(&self, cpu: CpuId) -> bool {
        self.is_idle(cpu)
    }

    /// `newidle_balance`: the CPU is about to go idle; pulls work if it can. Call between an empty pick and
    /// [`Sched::idle_enter`].
    pub fn newidle_balance(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        todo!("{cpu} {now}")
    }

    /// Whether the CPU's next periodic balance is due (`time_after_eq(jiffies, rq.next_balance)`), asked at its tick.
    #[must_use]
    pub fn balance_due(&self, cpu: CpuId, now: Nanos) -> bool {
        todo!("{cpu} {now}")
    }

    /// `rebalance_domains` of one CPU; `idle` = it has been idle at the tick.
    pub fn periodic_balance(&mut self, cpu: CpuId, idle: bool, now: Nanos) -> Moves {
        todo!("{cpu} {idle} {now}")
    }

    /// `nohz_balancer_kick`, asked at a busy CPU's tick: the idle CPU to send an IPI to, which then calls
    /// [`Sched::nohz_balance`].
    pub fn nohz_kick(&mut self, cpu: CpuId, now: Nanos) -> Option<CpuId> {
        todo!("{cpu} {now}")
    }

    /// `nohz_idle_balance`: `cpu` balances on behalf of every idle CPU whose turn has come, itself last.
    pub fn nohz_balance(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        todo!("{cpu} {now}")
    }

    /// What the caller will charge for a domain pass and for each CPU it looks at. It stands for the kernel's own
    /// clock reads during a walk, which gate newidle balance (`max_newidle_lb_cost`).
    pub fn set_balance_cost(&mut self, per_pass: Nanos, per_cpu: Nanos) {
        todo!("{per_pass} {per_cpu}")
    }

    /// Seeds the kernel's own random numbers (`sched_rng`, NI_RANDOM).
    pub fn set_seed(&mut self, seed: u64) {
        todo!("{seed}")
    }

    /// `set_user_nice`. [`Resched`] is for the task's CPU, here and below.
    pub fn set_nice(&mut self, task: TaskId, nice: i8, now: Nanos) -> Resched {
        todo!("{task} {nice} {now}")
    }

    /// `sched_setscheduler` within the fair class.
    pub fn set_policy(&mut self, task: TaskId, policy: FairPolicy, now: Nanos) -> Resched {
        todo!("{task} {policy:?} {now}")
    }

    /// `sched_setattr(sched_runtime)`; `None` = back to the base slice.
    pub fn set_slice(&mut self, task: TaskId, slice: Option<Nanos>, now: Nanos) -> Resched {
        todo!("{task} {slice:?} {now}")
    }

    /// `sched_setaffinity`. `Some(cpu)`: the task is queued or running where it no longer may; the caller moves it
    /// there with [`Sched::move_task`] (the kernel's stopper).
    pub fn set_affinity(&mut self, task: TaskId, affinity: Option<CpuMask>, now: Nanos) -> Option<CpuId> {
        todo!("{task} {affinity:?} {now}")
    }

    /// `move_queued_task`: moves a queued task, taking it off its CPU first if it is running (the caller then picks on
    /// the old CPU). [`Resched`] is for the new CPU.
    pub fn move_task(&mut self, task: TaskId, cpu: CpuId, now: Nanos) -> Resched {
        todo!("{task} {cpu} {now}")
    }

    /// The machine.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }
}
