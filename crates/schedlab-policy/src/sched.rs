//! One kernel's whole scheduler, core.c's side of it: who is on which CPU, where a wakeup goes, who balances when.
//!
//! Policy without time: every call is handed `now`, nothing here knows what an action costs. Follows kernel/sched/core.c
//! of 6.1 to 6.12 (`ttwu_do_activate`, `schedule`, `scheduler_tick`). Left out: the deadline class and the ones above it, cpusets, CPU
//! hotplug, NUMA balancing, asymmetric capacities.

mod change;
mod clock;
pub(crate) mod rq;
pub(crate) mod task;
pub(crate) mod types;

use std::sync::Arc;

use schedlab_model::{stream, CpuId, Nanos, Stream, TaskId, Topology};

use crate::balance::domains::Domains;
use crate::balance::nohz::Nohz;
use crate::balance::BalanceCost;
use crate::fair::{Dequeue, Enqueue, Fair, WakeFlags};
use crate::looked::Looked;
use crate::rt::Rt;
use crate::select::idle_map::IdleMap;
use crate::select::rules::{IdleSpell, PlacementRules, SchedIdleCpu};
use crate::select::select_idle_cpu::VisitedCores;
use crate::{KernelConfig, Resched};

use rq::{Jiffies, Rq};
use task::{Task, Wakee};
pub use types::{Moves, Selection, TaskAttr, WakeKind};

/// One kernel's scheduler.
///
/// Per CPU the caller goes round: [`Sched::block`] or [`Sched::yield_current`] or a reschedule request, then
/// [`Sched::active_load_balance_cpu_stop`] and [`Sched::pick_next_task`], on `None` [`Sched::sched_balance_newidle`] and another pick, on `None` again
/// [`Sched::idle_enter`]. A wakeup is [`Sched::requeue_delayed`], else [`Sched::select_task_rq`],
/// [`Sched::set_wakee_cpu`], [`Sched::ttwu_queue_cond`], [`Sched::activate`]; then [`Sched::wakeup_preempt`].
#[derive(Clone, Debug)]
pub struct Sched {
    /// The fair class.
    pub fair: Fair,
    /// The real-time class, above it.
    pub rt: Rt,
    pub(crate) topology: Arc<Topology>,
    pub(crate) rules: PlacementRules,
    pub(crate) rqs: Vec<Rq>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) idle: IdleMap,
    pub(crate) domains: Domains,
    pub(crate) nohz: Nohz,
    pub(crate) balance_cost: BalanceCost,
    /// Wakeup history of the idle tasks, which wake from interrupts.
    pub(crate) idle_wakees: Vec<Wakee>,
    pub(crate) random: Vec<Stream>,
    pub(crate) visited_cores: VisitedCores,
    /// Per CPU, whether the last decision recorded said that the real-time class is held back.
    pub(crate) rt_limited: Vec<bool>,
    pub(crate) candidates: Vec<TaskId>,
    /// Per placement recorded, its decision's place in the log and what it looked at; if asked for.
    pub(crate) looks: Option<Vec<(usize, Vec<Looked>)>>,
    tick_nsec: Nanos,
    pub(crate) distributed: usize,
    /// Tasks ever added.
    births: u64,
}

impl Sched {
    /// A scheduler with every CPU idle since time 0. `config.nr_cpus` is set to the machine's.
    #[must_use]
    pub fn new(mut config: KernelConfig, topology: Arc<Topology>) -> Self {
        let nr_cpus = topology.nr_cpus();
        config.nr_cpus = nr_cpus;
        let (tick_nsec, migration_cost) = (config.tick_nsec(), config.knobs.migration_cost);
        let rules = config.placement;
        let mut sched = Sched {
            rules,
            rt: config.rt_class(nr_cpus),
            fair: Fair::new(config),
            rqs: vec![Rq::new(migration_cost); nr_cpus],
            tasks: Vec::new(),
            idle: IdleMap::new(&topology),
            domains: Domains::new(&topology, rules.imbalance_pct),
            nohz: Nohz::new(topology.all()),
            balance_cost: BalanceCost::default(),
            idle_wakees: vec![Wakee::default(); nr_cpus],
            random: Vec::new(),
            visited_cores: VisitedCores::default(),
            rt_limited: vec![false; nr_cpus],
            candidates: Vec::new(),
            looks: None,
            tick_nsec,
            distributed: 0,
            births: 0,
            topology,
        };
        sched.set_seed(0);
        sched
    }

    /// What the caller will charge for a domain pass and for each CPU it looks at. It stands for the kernel's own
    /// clock reads during a walk, which gate newidle balance (`max_newidle_lb_cost`).
    pub fn set_balance_cost(&mut self, per_pass: Nanos, per_cpu: Nanos) {
        self.balance_cost = BalanceCost { per_pass, per_cpu };
    }

    /// Seeds the kernel's own random numbers (`sched_rng`, NI_RANDOM).
    pub fn set_seed(&mut self, seed: u64) {
        let cpus = self.topology.nr_cpus();
        self.random = (0..cpus).map(|cpu| stream(seed, &format!("sched_rng/{cpu}"))).collect();
    }

    /// A task that exists but does not run. Its first enqueue is [`WakeKind::Fork`].
    pub fn add_task(&mut self, attr: &TaskAttr) -> TaskId {
        let mut state = Task::new(attr, &self.topology);
        state.set_affinity(attr.affinity.as_ref(), &self.topology);
        self.add(state)
    }

    /// The task is gone for good, reaped or not: it must be neither queued nor current. Its id is given to a later task.
    pub fn release_task(&mut self, task: TaskId) {
        self.fair.release_task(task);
    }

    fn add(&mut self, mut state: Task) -> TaskId {
        self.births += 1;
        state.birth = self.births;
        let task = self.fair.add_task(&state.attr);
        self.rt.add_task(task, state.attr.rt);
        match self.tasks.get_mut(task.index()) {
            Some(place) => *place = state,
            None => self.tasks.push(state),
        }
        task
    }

    /// `sched_fork`: a child with the parent's attributes on the parent's CPU, not yet queued. [`Resched`] is for the
    /// parent's CPU (`child_runs_first`). Next: [`Sched::select_task_rq`], [`Sched::activate`], [`Sched::wakeup_preempt`].
    pub fn fork(&mut self, parent: TaskId, now: Nanos) -> (TaskId, Resched) {
        let mut state = self.tasks[parent.index()].clone();
        let cpu = state.cpu;
        state.attr.cpu = cpu;
        state.wakee = Wakee::default();
        state.recent_used_cpu = cpu;
        let real_time = state.attr.rt.is_some();
        let child = self.add(state);
        if real_time {
            return (child, Resched::No);
        }
        (child, self.fair.task_fork(cpu, child, now))
    }

    /// Something is (or is no longer) on the CPU's wakelist (`rq.ttwu_pending`): it does not look idle meanwhile.
    pub fn set_ttwu_pending(&mut self, cpu: CpuId, pending: bool) {
        self.rqs[cpu.index()].ttwu_pending = pending;
        self.refresh_idle(cpu);
    }

    /// `set_task_cpu` in `try_to_wake_up`: the wakee belongs to the CPU selected for it from here on, whoever enqueues it,
    /// and when. [`Sched::activate`] does the same where no time passes between the two.
    pub fn set_wakee_cpu(&mut self, task: TaskId, cpu: CpuId, now: Nanos) {
        let migrated = self.set_task_cpu(task, cpu, now);
        self.tasks[task.index()].wake_migrated |= migrated;
    }

    /// `ttwu_do_activate` up to the enqueue: re-homes the task if the CPU is not its last one and enqueues it.
    pub fn activate(&mut self, task: TaskId, cpu: CpuId, kind: WakeKind, now: Nanos) {
        let wakeup = matches!(kind, WakeKind::Wakeup { .. });
        let rehomed = std::mem::take(&mut self.tasks[task.index()].wake_migrated);
        let migrated = (self.set_task_cpu(task, cpu, now) || rehomed) && wakeup;
        if self.rt.policy(task).is_some() {
            self.rt.enqueue(cpu, task, false, now);
        } else {
            let flags = Enqueue { wakeup, migrated, initial: !wakeup, delayed: false };
            self.fair.enqueue_task(cpu, task, flags, now);
            if self.rt.in_use() {
                self.rt.fair_queued(cpu, true, now);
            }
        }
        self.sync(cpu);
        if wakeup && self.rules.idle_spell == IdleSpell::Wakeup {
            let jiffies = self.jiffies(now);
            self.rqs[cpu.index()].account_idle_spell(now, jiffies);
        }
    }

    /// `ttwu_runnable`: true if the task was still queued (its dequeue was delayed) and is now runnable in place. Then
    /// no CPU is selected; [`Sched::wakeup_preempt`] follows unless the task is the running one.
    pub fn requeue_delayed(&mut self, task: TaskId, now: Nanos) -> bool {
        if !self.fair.entity(task).on_rq {
            return false;
        }
        let cpu = self.tasks[task.index()].cpu;
        self.fair.enqueue_task(cpu, task, Enqueue { wakeup: true, delayed: true, ..Enqueue::default() }, now);
        true
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
        if self.rt.in_use() {
            if let Some(wish) = self.preempt_by_class(cpu, task, need_resched, now) {
                return wish;
            }
        }
        let flags = WakeFlags { sync: matches!(kind, WakeKind::Wakeup { sync: true }), fork: kind == WakeKind::Fork };
        let wish = self.fair.wakeup_preempt(cpu, task, flags, need_resched, now);
        // Delayed tasks that the check came across may have left (7.x).
        self.sync(cpu);
        self.skip_after_check(cpu, need_resched, wish, now);
        wish
    }

    /// `deactivate_task(DEQUEUE_SLEEP)` of the current task of its CPU; `special` = dead, parked or frozen. False: its
    /// dequeue is delayed, it stays queued. Either way [`Sched::pick_next_task`] must follow on that CPU.
    pub fn block(&mut self, task: TaskId, special: bool, now: Nanos) -> bool {
        let cpu = self.tasks[task.index()].cpu;
        if self.rt.on_rq(task) {
            self.rt.dequeue(cpu, task, now);
            self.sync(cpu);
            self.note_rt_limit(cpu, Resched::No, now);
            return true;
        }
        let before = self.only_idle_policy(cpu);
        let gone = self.fair.dequeue_task(cpu, task, Dequeue { sleep: true, special, ..Dequeue::default() }, now);
        self.sync(cpu);
        if !before && self.idle.is_usable(cpu) && self.only_idle_policy(cpu) {
            // Pull something better soon.
            self.rqs[cpu.index()].next_balance = self.jiffies(now);
        }
        gone
    }

    /// The next task of the CPU, which becomes current. `None`: nothing is queued; try [`Sched::sched_balance_newidle`],
    /// then pick again or call [`Sched::idle_enter`].
    #[inline(always)]
    pub fn pick_next_task(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        if self.rt.in_use() {
            return self.pick_among_classes(cpu, now);
        }
        let picked = self.fair.pick_next_task(cpu, now);
        self.sync(cpu);
        if picked.is_some() {
            self.idle_exit(cpu, now);
        }
        picked
    }

    /// `scheduler_tick` of a CPU.
    pub fn tick(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        if self.rt.in_use() {
            return self.tick_classes(cpu, now);
        }
        match self.fair.curr(cpu) {
            Some(_) => self.fair.task_tick(cpu, now),
            None => Resched::No,
        }
    }

    /// The bandwidth timers that are due ([`Fair::next_bandwidth_timer`]); idle CPUs that have somebody to run now.
    pub fn bandwidth_timers(&mut self, now: Nanos) -> Vec<CpuId> {
        let mut cpus = self.fair.bandwidth_timers(now);
        cpus.iter().for_each(|cpu| self.sync(*cpu));
        cpus.retain(|cpu| self.curr(*cpu).is_none() && self.nr_running(*cpu) > 0);
        cpus
    }

    /// [`Fair::throttle_cfs_rq_work`] of the current task; the caller picks again if it left.
    pub fn throttle_work(&mut self, task: TaskId, now: Nanos) -> bool {
        let left = self.fair.throttle_cfs_rq_work(task, now);
        self.sync(self.cpu_of(task));
        left
    }

    /// `sched_yield` by the current task of the CPU; the caller reschedules.
    pub fn yield_current(&mut self, cpu: CpuId, now: Nanos) {
        match self.rt.curr(cpu) {
            Some(curr) => self.rt.yield_task(cpu, curr),
            None => {
                self.fair.yield_task(cpu, now);
                if self.fair.rq(cpu).h_nr_running > 1 {
                    self.skip_update(cpu, now);
                }
            }
        }
    }

    /// The idle task is switched in (and the tick stops).
    pub fn idle_enter(&mut self, cpu: CpuId, now: Nanos) {
        self.rqs[cpu.index()].idle = true;
        self.refresh_idle(cpu);
        self.fair.enter_idle(cpu, now);
        self.idle.__update_idle_core(cpu);
        self.nohz_balance_enter_idle(cpu);
    }

    /// The idle task is switched out. A pick that finds a task implies it.
    #[inline(always)]
    pub fn idle_exit(&mut self, cpu: CpuId, now: Nanos) {
        if self.rqs[cpu.index()].idle {
            self.idle_is_over(cpu, now);
        }
    }

    #[inline(never)]
    fn idle_is_over(&mut self, cpu: CpuId, now: Nanos) {
        self.rqs[cpu.index()].idle = false;
        if self.rules.idle_spell == IdleSpell::SwitchOut {
            let jiffies = self.jiffies(now);
            self.rqs[cpu.index()].account_idle_spell(now, jiffies);
        }
        self.fair.exit_idle(cpu, now);
        self.refresh_idle(cpu);
    }

    /// The current task; `None` while idle and between a pick that found nothing and the next. A task that blocked is
    /// current until the pick.
    #[inline]
    #[must_use]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.rt.curr(cpu).or_else(|| self.fair.curr(cpu))
    }

    /// The task's CPU (`task_cpu`): where it is queued, or last was.
    #[inline]
    #[must_use]
    pub fn cpu_of(&self, task: TaskId) -> CpuId {
        self.tasks[task.index()].cpu
    }

    /// Tasks on the CPU, current and delayed ones included (`rq.nr_running`).
    #[inline]
    #[must_use]
    pub fn nr_running(&self, cpu: CpuId) -> u32 {
        self.rqs[cpu.index()].nr_running
    }

    /// `idle_cpu`: the idle task runs, nothing is queued, nothing is on its wakelist.
    #[inline]
    #[must_use]
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        self.idle.is_idle(cpu)
    }

    /// `available_idle_cpu`: idle and, in a guest, its vCPU not preempted.
    #[inline]
    #[must_use]
    pub fn available_idle(&self, cpu: CpuId) -> bool {
        self.is_idle(cpu)
    }

    /// Whether the task may run on the CPU.
    #[must_use]
    pub fn allows(&self, task: TaskId, cpu: CpuId) -> bool {
        self.tasks[task.index()].allows(cpu)
    }

    /// The root domain's overload flag: true whenever a CPU has two tasks, and possibly for a while after.
    #[must_use]
    pub fn overloaded(&self) -> bool {
        self.domains.overload()
    }

    /// The machine.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The kernel's tick count.
    #[inline]
    pub(crate) fn jiffies(&self, now: Nanos) -> Jiffies {
        now / self.tick_nsec
    }

    /// `set_task_cpu` of a task that is not queued; whether the CPU changed.
    pub(crate) fn set_task_cpu(&mut self, task: TaskId, cpu: CpuId, now: Nanos) -> bool {
        let from = std::mem::replace(&mut self.tasks[task.index()].cpu, cpu);
        if from == cpu {
            return false;
        }
        self.fair.migrate_load_avg(task, now);
        self.fair.migrate_task_rq(task, from, cpu);
        true
    }

    /// Takes over the fair class's count of the CPU's tasks, after anything that may have changed it
    /// (`add_nr_running`, `sub_nr_running`).
    #[inline(always)]
    pub(crate) fn sync(&mut self, cpu: CpuId) {
        let mut nr_running = self.fair.rq(cpu).h_nr_running;
        if self.rt.in_use() {
            nr_running += self.rt.nr_running(cpu);
        }
        let before = std::mem::replace(&mut self.rqs[cpu.index()].nr_running, nr_running);
        if before != nr_running {
            self.count_changed(cpu, before, nr_running);
        }
    }

    #[inline(never)]
    fn count_changed(&mut self, cpu: CpuId, before: u32, nr_running: u32) {
        if (before >= 2) != (nr_running >= 2) {
            self.domains.count_overloaded(cpu, nr_running >= 2);
        }
        self.refresh_idle(cpu);
    }

    /// Tells the idle masks how the CPU looks now.
    #[inline]
    fn refresh_idle(&mut self, cpu: CpuId) {
        let rq = &self.rqs[cpu.index()];
        let idle = rq.idle && rq.nr_running == 0 && !rq.ttwu_pending;
        let usable = idle || (self.rules.sched_idle_cpu != SchedIdleCpu::Unknown && self.only_idle_policy(cpu));
        self.idle.set(cpu, idle, usable);
    }

    /// `sched_idle_rq`.
    #[inline]
    fn only_idle_policy(&self, cpu: CpuId) -> bool {
        let rq = self.fair.rq(cpu);
        let real_time = self.rt.in_use() && self.rt.nr_running(cpu) > 0;
        rq.h_nr_running > 0 && rq.idle_h_nr_running == rq.h_nr_running && !real_time
    }
}
