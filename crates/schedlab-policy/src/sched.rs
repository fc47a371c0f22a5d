//! The scheduler of one kernel, the part of core.c: which task runs on which CPU, where a woken task is placed, which
//! CPU balances when.
//!
//! The policy has no time of its own: every call is passed `now`, and the costs of actions are the caller's. It follows
//! kernel/sched/core.c of 6.1 to 7.2. Core code calls the classes through [`SchedClass`](crate::class::SchedClass) and
//! names none of them.

mod balance;
mod change;
mod clock;
mod dispatch;
mod hotplug;
mod numa;
mod pick;
mod placement;
mod recorded_pass;
mod run_times;
pub(crate) mod schedule_entry;
mod select;
mod tick;
mod verbs;
mod wakeup;
pub(crate) mod wakeup_request;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use schedlab_model::{CpuId, Nanos, TaskId, Ties, Topology, FULL_CAPACITY};

use crate::class::{ClassId, ClassList, Idle};
use crate::core::balance_cost::BalanceCost;
use crate::decision::Decision;
use crate::dl::Dl;
use crate::fair::Fair;
use crate::rt::Rt;
use crate::stop::Stop;
use crate::{class_list, KernelConfig, Resched};

pub use crate::core::log::Recorded;
use crate::core::task::{Task, Wakee};
use crate::core::types::{Moves, Selection, TaskAttr, Tested, WakeKind};
use crate::core::Core;
pub use placement::{Placed, Placement, Situation, WakeHistory};
pub use recorded_pass::{Pass, PassSituation};

class_list! {
    /// The classes of a kernel.
    pub struct Classes { stop: Stop, dl: Dl, rt: Rt, fair: Fair, idle: Idle }
}

/// One kernel's scheduler. Its classes are its fields too: `sched.fair` is the fair class.
#[derive(Clone, Debug)]
pub struct Sched<L = Classes> {
    pub(crate) core: Core,
    pub(crate) classes: L,
    /// The ids of released tasks, which are reused.
    released: Vec<TaskId>,
}

impl Sched {
    /// A scheduler with every CPU idle since time 0. `config.nr_cpus` is set to the machine's.
    #[must_use]
    pub fn new(mut config: KernelConfig, topology: Arc<Topology>) -> Self {
        config.nr_cpus = topology.nr_cpus();
        let (dl, rt) = (Dl::new(&config), Rt::new(&config));
        let mut fair = Fair::new(config.clone());
        if let Some(capacities) = topology.capacities() {
            topology.all().iter().for_each(|cpu| fair.set_cpu_scale(cpu, capacities.of(cpu), FULL_CAPACITY, 0));
        }
        fair.init_sched_cache(&topology);
        let classes = Classes { stop: Stop::default(), dl, rt, fair, idle: Idle::default() };
        Sched::with_classes(classes, &config, topology)
    }
}

impl<L> Deref for Sched<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.classes
    }
}

impl<L> DerefMut for Sched<L> {
    fn deref_mut(&mut self) -> &mut L {
        &mut self.classes
    }
}

impl<L: ClassList> Sched<L> {
    /// The class that is called directly where no task of another one is runnable.
    const LOWEST: ClassId = ClassId(L::LEN.saturating_sub(2));

    /// A scheduler with these classes, made for the same kernel and machine.
    #[must_use]
    pub fn with_classes(mut classes: L, config: &KernelConfig, topology: Arc<Topology>) -> Self {
        classes.walk(&mut dispatch::Numbered);
        let core = Core::new(config, topology, ClassId(L::LEN - 1), dispatch::bare(&classes));
        Sched { core, classes, released: Vec::new() }
    }

    /// Sets the time that the caller charges for a pass over a domain and for each CPU that it examines. It replaces
    /// the kernel's own clock reads during a walk, which gate newidle balance (`max_newidle_lb_cost`).
    pub fn set_balance_cost(&mut self, per_pass: Nanos, per_cpu: Nanos) {
        self.core.balance_cost = BalanceCost { per_pass, per_cpu };
    }

    /// Sets the time that the caller charges for the test of one CPU in the search for an idle one, by its distance
    /// (same, smt, llc, node, remote). It replaces the kernel's own clock reads around `select_idle_cpu`
    /// (`avg_scan_cost`).
    pub fn set_scan_cost(&mut self, per_cpu: [Nanos; 5]) {
        self.core.scan_cost = per_cpu;
    }

    /// Seeds the kernel's own random numbers (`sched_rng`, NI_RANDOM).
    pub fn set_seed(&mut self, seed: u64) {
        self.core.set_seed(seed);
    }

    /// The count of ticks (jiffies) rises at this time and whole ticks later; without it from time 0 on.
    pub fn set_jiffy(&mut self, at: Nanos) {
        self.core.set_jiffy(at);
    }

    /// Sets the rotors whose values the kernel keeps from before the run (`distribute_cpu_mask_prev`).
    pub fn set_ties(&mut self, ties: Ties) {
        self.core.set_ties(ties);
    }

    /// Adds a task that does not run yet. Its first enqueue is [`WakeKind::Fork`].
    pub fn add_task(&mut self, attr: &TaskAttr) -> TaskId {
        let mut state = Task::new(attr, &self.core.topology);
        state.set_affinity(attr.affinity.as_ref(), &self.core.possible);
        self.add(state)
    }

    /// Releases a task that has exited: it must be neither queued nor current. Its id is reused by a later task.
    pub fn release_task(&mut self, task: TaskId) {
        if !self.on_rq(task) {
            self.released.push(task);
        }
    }

    fn add(&mut self, state: Task) -> TaskId {
        let class = self.class_for(&state.attr);
        let task = self.released.pop().unwrap_or(TaskId(self.core.tasks.len() as u32));
        let attr = state.attr.clone();
        self.core.add(task, state, class);
        self.every_class().task_new(task, &attr, class);
        task
    }

    /// `sched_fork`: a child with the parent's attributes on the parent's CPU, not yet queued. [`Resched`] is for the
    /// parent's CPU (`child_runs_first`). [`wake_up_new_task`](crate::procedure::wake_up_new_task()) follows.
    pub fn sched_fork(&mut self, parent: TaskId, now: Nanos) -> (TaskId, Resched) {
        let mut state = self.core.tasks[parent.index()].clone();
        let cpu = state.cpu;
        state.attr.cpu = cpu;
        state.wakee = Wakee::default();
        state.recent_used_cpu = cpu;
        state.exiting = false;
        let child = self.add(state);
        (child, self.task_fork(child, cpu, now))
    }

    /// `task_fork`: the new task is a child of the task that runs on the CPU. The request is for that CPU.
    pub fn task_fork(&mut self, child: TaskId, cpu: CpuId, now: Nanos) -> Resched {
        self.class_of(child).task_fork(cpu, child, now)
    }

    /// The task is exiting (`exit_signals` has set PF_EXITING), so its wakeups are not synchronous.
    pub fn set_exiting(&mut self, task: TaskId) {
        self.core.tasks[task.index()].exiting = true;
    }

    /// `task_dead`: the task has exited and no longer runs.
    pub fn task_dead(&mut self, task: TaskId) {
        self.class_of(task).task_dead(task);
    }

    /// The running task; `None` while idle and between a pick that found nothing and the next. A task that blocked is
    /// current until the pick.
    #[inline]
    #[must_use]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.core.curr(cpu)
    }

    /// The task's CPU (`task_cpu`): where it is queued, or last was.
    #[inline]
    #[must_use]
    pub fn cpu_of(&self, task: TaskId) -> CpuId {
        self.core.cpu_of(task)
    }

    /// Tasks on the CPU, current and delayed ones included (`rq.nr_running`).
    #[inline]
    #[must_use]
    pub fn nr_running(&self, cpu: CpuId) -> u32 {
        self.core.nr_running(cpu)
    }

    /// Whether `idle_cpu` holds: the idle task runs, nothing is queued, nothing is on its wakelist.
    #[inline]
    #[must_use]
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        self.core.is_idle(cpu)
    }

    /// `available_idle_cpu`: idle and, in a guest, its vCPU not preempted.
    #[inline]
    #[must_use]
    pub fn available_idle_cpu(&self, cpu: CpuId) -> bool {
        self.core.available_idle_cpu(cpu)
    }

    /// `vcpu_is_preempted`; never on bare metal.
    #[inline]
    #[must_use]
    pub fn vcpu_is_preempted(&self, cpu: CpuId) -> bool {
        self.core.vcpu_is_preempted(cpu)
    }

    /// The vCPU under the CPU reads as preempted from now on, or no longer does.
    pub fn set_vcpu_preempted(&mut self, cpu: CpuId, preempted: bool) {
        if self.core.vcpu_is_preempted(cpu) != preempted {
            self.core.set_vcpu_preempted(cpu, preempted);
        }
    }

    /// Whether `vcpu_is_preempted` of the CPU is a hypercall; every search counts its hypercalls.
    pub fn set_asks_host(&mut self, cpu: CpuId, asks: bool) {
        self.core.set_asks_host(cpu, asks);
    }

    /// `sched_idle_cpu`: nothing but tasks with SCHED_IDLE is on the CPU.
    #[must_use]
    pub fn sched_idle_cpu(&self, cpu: CpuId) -> bool {
        self.core.rqs[cpu.index()].sched_idle_rq()
    }

    /// The hypervisor takes time from the CPU from `now` on, and its `rq->clock_task` stands.
    pub fn loses_time_from(&mut self, cpu: CpuId, now: Nanos) {
        self.core.loses_time_from(cpu, now);
    }

    /// The hypervisor took this many ns from the CPU just before `now`. `rq->clock_task` leaves them out, and the
    /// balancer lowers the capacity of the CPU accordingly (`update_irq_load_avg`).
    pub fn lost_time(&mut self, cpu: CpuId, now: Nanos, lost: Nanos) {
        self.core.lost_time(cpu, now, lost);
    }

    /// The capacity left for the fair class, as last computed (`capacity_of`), of 1024.
    #[must_use]
    pub fn capacity_of(&self, cpu: CpuId) -> u64 {
        self.core.rqs[cpu.index()].cpu_capacity
    }

    /// `task_struct.prio`, as trace events show it: -1 deadline, 0 to 98 real-time, 100 to 139 by nice value.
    #[must_use]
    pub fn prio(&self, task: TaskId) -> i32 {
        let attr = self.core.attr(task);
        if attr.dl.is_some() {
            return -1;
        }
        attr.rt.map_or(120 + i32::from(attr.nice), |policy| i32::from(policy.prio()))
    }

    /// Whether the task may run on the CPU.
    #[must_use]
    pub fn allows(&self, task: TaskId, cpu: CpuId) -> bool {
        self.core.allows(task, cpu)
    }

    /// Whether there are CPUs that the task may not use.
    #[must_use]
    pub fn is_restricted(&self, task: TaskId) -> bool {
        self.core.tasks[task.index()].affinity.is_some()
    }

    /// The idle CPUs that the task may use.
    pub fn idle_cpus_for(&self, task: TaskId) -> impl Iterator<Item = CpuId> + '_ {
        let (core, task) = (&self.core, &self.core.tasks[task.index()]);
        core.topology.all().iter().filter(move |cpu| task.allows(*cpu) && core.idle.is_idle(*cpu))
    }

    /// The root domain's overload flag: true whenever a CPU has two tasks, and possibly for a while after.
    #[must_use]
    pub fn overloaded(&self) -> bool {
        self.core.domains.overload()
    }

    /// The active CPUs of the machine.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.core.topology
    }

    /// Starts recording decisions; `views`: with the queues, `candidates`: with the CPUs that placements examined.
    pub fn record(&mut self, views: bool, candidates: bool) {
        self.core.log.switch_on(views, candidates);
        self.every_class().set_log(true, views);
    }

    /// Takes the decisions recorded since the last call.
    pub fn take_decisions(&mut self) -> Vec<Recorded> {
        self.every_class().drain_log();
        self.core.log.take()
    }

    /// The decisions recorded since the last call of [`Sched::take_decisions`] or [`Sched::clear_decisions`].
    #[must_use]
    pub fn decisions(&self) -> &[Decision] {
        self.core.log.decisions()
    }

    /// Forgets the decisions recorded so far.
    pub fn clear_decisions(&mut self) {
        self.core.log.clear();
    }

    /// Completes the views of the decisions just recorded.
    #[inline(always)]
    pub(crate) fn complete_views(&mut self) {
        if self.core.is_recording() {
            self.complete();
        }
    }

    #[cold]
    fn complete(&mut self) {
        self.every_class().drain_log();
        for (at, cpu) in self.core.log.incomplete() {
            let view = self.queue_view(cpu);
            self.core.log.complete(at, view);
        }
    }
}
