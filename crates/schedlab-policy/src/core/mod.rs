//! The state that the classes share: the parts of runqueues and tasks that belong to no class, and the machine (`struct
//! rq`, `struct task_struct`).

pub(crate) mod asym;
mod available_idle_cpu;
pub(crate) mod balance_cost;
pub(crate) mod class_id;
mod distribute;
pub(crate) mod dl_policy;
pub(crate) mod domains;
pub(crate) mod fits_capacity;
mod idle;
pub(crate) mod idle_map;
pub(crate) mod log;
pub(crate) mod nohz;
pub(crate) mod perf_table;
pub(crate) mod rq;
pub(crate) mod rt_policy;
pub(crate) mod swqueue;
pub(crate) mod task;
pub(crate) mod types;
pub(crate) mod visited_cores;

use std::sync::Arc;

use schedlab_model::{rarely, stream, CpuId, CpuMask, Nanos, Stream, Table, TaskId, Ties, Topology};

use crate::decision::Decision;
use crate::features::FeatureSet;
use crate::jiffies::{Jiffies, UPTIME};
use crate::numa::Numa;
use crate::pelt::signals::Signals;
use crate::version::placement::PlacementRules;
use crate::{KernelConfig, TaskAttr};
use asym::Asym;
use balance_cost::BalanceCost;
use class_id::{ClassId, IDLE_TASK};
use domains::Domains;
use idle_map::IdleMap;
use log::Log;
use nohz::Nohz;
use rq::Rq;
use swqueue::SwQueues;
use task::{Task, Wakee};
use visited_cores::VisitedCores;

/// The duration of a test until the caller sets the time that it charges ([`crate::Sched::set_scan_cost`]), in ns, for
/// the same CPU, a thread of its core, a CPU of its last-level cache, of its node, and of another node. Estimates,
/// those of the shipped presets: 15 to 30 ns under one cache, 60 to 150 ns where the lines are remote.
const DEFAULT_SCAN_COST: [Nanos; 5] = [10, 15, 20, 80, 120];

/// The part of a scheduler that belongs to core code, as the classes see it.
#[derive(Clone, Debug)]
pub struct Core {
    /// What the active CPUs share.
    pub(crate) topology: Arc<Topology>,
    /// What all CPUs share (`cpu_possible_mask`).
    pub(crate) possible: Arc<Topology>,
    pub(crate) rules: PlacementRules,
    pub(crate) features: FeatureSet,
    pub(crate) rqs: Table<Rq>,
    pub(crate) tasks: Table<Task>,
    pub(crate) idle: IdleMap,
    pub(crate) domains: Domains,
    pub(crate) nohz: Nohz,
    pub(crate) swqueues: SwQueues,
    /// Where the memory of tasks is, if that makes a difference.
    pub(crate) numa: Option<Box<Numa>>,
    /// What is kept where CPUs differ in capacity.
    pub(crate) asym: Option<Box<Asym>>,
    pub(crate) balance_cost: BalanceCost,
    /// The wakeup history of the idle tasks, on whose behalf interrupts wake tasks.
    pub(crate) idle_wakees: Vec<Wakee>,
    pub(crate) random: Vec<Stream>,
    pub(crate) visited_cores: VisitedCores,
    /// The duration of a test of one CPU in the search for an idle one, by its distance.
    pub(crate) scan_cost: [Nanos; 5],
    pub(crate) candidates: Vec<TaskId>,
    pub(crate) log: Log,
    /// CPUs for which `vcpu_is_preempted` of the guest is a hypercall (`idle_hint = "hcall"`).
    pub(crate) asks_host: Option<Box<CpuMask>>,
    tick_nsec: Nanos,
    jiffies_at_0: Jiffies,
    /// How much of the first jiffy has passed at time 0.
    pub(crate) into_jiffy: Nanos,
    /// The tick count as a trace shows it. `task_h_load` keeps a queue's part for a jiffy only where it is known: the
    /// simulator computes it anew each time.
    pub(crate) jiffies_shown: Option<Jiffies>,
    /// A trace shows the capacities of CPUs.
    pub(crate) capacities_shown: bool,
    /// The CPU that `cpumask_any_and_distribute` returned last, by executing CPU.
    pub(crate) distribute_cpu_mask_prev: Box<[usize]>,
    /// The number of tasks ever added.
    births: u64,
    /// The classes that are bare ([`SchedClass::is_bare`](crate::class::SchedClass::is_bare)), a bit each.
    bare: u32,
    /// Some task is or was of a class above the lowest one that has tasks.
    has_higher: bool,
    /// The same of a class that is not bare: from then on core code walks the classes.
    mixed: bool,
    /// Some CPU has lost time to the hypervisor.
    loses_time: bool,
    /// `clock_task` is not the same on all CPUs.
    clocks_differ: bool,
    /// The last class.
    idle_class: ClassId,
    signals: Signals,
}

impl Core {
    /// Every CPU idle since time 0.
    pub(crate) fn new(config: &KernelConfig, topology: Arc<Topology>, idle_class: ClassId, bare: u32) -> Self {
        let (nr_cpus, rules) = (topology.nr_cpus(), config.placement);
        let sees_clusters = rules.cluster_domains || !topology.has_clusters();
        let topology = if sees_clusters { topology } else { Arc::new(topology.without_clusters()) };
        let mut core = Core {
            rules,
            features: config.features,
            rqs: vec![Rq::new(config.knobs.migration_cost); nr_cpus].into(),
            tasks: Table::default(),
            idle: IdleMap::new(&topology),
            domains: Domains::new(&topology, rules.imbalance_pct),
            nohz: Nohz::new(topology.all()),
            swqueues: SwQueues::default(),
            numa: None,
            asym: Asym::new(&topology),
            balance_cost: BalanceCost::default(),
            idle_wakees: vec![Wakee::default(); nr_cpus],
            random: Vec::new(),
            visited_cores: VisitedCores::default(),
            scan_cost: DEFAULT_SCAN_COST,
            candidates: Vec::new(),
            log: Log::default(),
            asks_host: None,
            tick_nsec: config.tick_nsec(),
            jiffies_at_0: UPTIME / config.tick_nsec(),
            into_jiffy: 0,
            jiffies_shown: None,
            capacities_shown: false,
            distribute_cpu_mask_prev: vec![0; nr_cpus].into(),
            births: 0,
            bare,
            has_higher: false,
            mixed: false,
            loses_time: false,
            clocks_differ: false,
            idle_class,
            signals: config.rules.pelt,
            possible: Arc::clone(&topology),
            topology,
        };
        for cpu in core.topology.all().iter() {
            core.rqs[cpu.index()].cpu_capacity = u64::from(core.topology.capacity(cpu));
        }
        core.set_seed(0);
        core
    }

    /// Whether decisions are recorded.
    #[inline]
    #[must_use]
    pub fn is_recording(&self) -> bool {
        rarely(self.log.is_on())
    }

    /// Records a decision made outside the queues of the fair class.
    pub fn record(&mut self, decision: Decision) {
        if self.log.is_on() {
            self.log.push(decision, None);
        }
    }

    /// Seeds the kernel's own random numbers (`sched_rng`, NI_RANDOM).
    pub(crate) fn set_seed(&mut self, seed: u64) {
        let cpus = self.topology.nr_cpus();
        self.random = (0..cpus).map(|cpu| stream(seed, &format!("sched_rng/{cpu}"))).collect();
    }

    /// The count of ticks rises at `tick` and whole ticks later.
    pub(crate) fn set_jiffy(&mut self, tick: Nanos) {
        self.into_jiffy = (self.tick_nsec - tick % self.tick_nsec) % self.tick_nsec;
    }

    /// Sets the rotors at time 0.
    pub(crate) fn set_ties(&mut self, ties: Ties) {
        let cpus = self.topology.nr_cpus();
        let start = |cpu| ties.start(&format!("distribute_cpu_mask_prev/{cpu}"), cpus);
        self.distribute_cpu_mask_prev = (0..cpus).map(start).collect();
    }

    /// Adds a task of this class, with this id.
    pub(crate) fn add(&mut self, task: TaskId, mut state: Task, class: ClassId) {
        self.births += 1;
        state.birth = self.births;
        match self.tasks.get_mut(task.index()) {
            Some(place) => *place = state,
            None => self.tasks.push(state),
        }
        self.set_class(task, class);
    }

    /// Changes the class of a task.
    pub(crate) fn set_class(&mut self, task: TaskId, class: ClassId) {
        self.tasks[task.index()].class = class;
        let higher = class.0 + 1 < self.idle_class.0;
        self.has_higher |= higher;
        self.mixed |= higher && self.bare & 1 << class.0 == 0;
    }

    /// Whether any task is or was of a class above the lowest one that has tasks.
    #[inline(always)]
    #[must_use]
    pub fn has_higher(&self) -> bool {
        self.has_higher
    }

    /// Whether the CPU has, or has just run, tasks of a class above this lowest one that has tasks (`rq->nr_running !=
    /// cfs.h_nr_queued || sched_class_above(prev->sched_class, &fair_sched_class)`).
    #[inline]
    #[must_use]
    pub(crate) fn is_mixed_on(&self, cpu: CpuId, lowest: ClassId) -> bool {
        let rq = &self.rqs[cpu.index()];
        rq.nr_running != rq.by_class[lowest.index()] || rq.curr.is_some_and(|curr| self.class_of(curr) < lowest)
    }

    /// Whether any task is or was of a class above the lowest one that has tasks and is not bare.
    #[inline(always)]
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        rarely(self.mixed)
    }

    /// Whether a CPU may have less than its whole capacity for the fair class.
    #[inline(always)]
    pub(crate) fn has_pressed_cpus(&self) -> bool {
        self.mixed || self.capacities_shown
    }

    /// The task's class.
    #[inline]
    #[must_use]
    pub fn class_of(&self, task: TaskId) -> ClassId {
        if task == IDLE_TASK {
            return self.idle_class;
        }
        self.tasks[task.index()].class
    }

    /// The running task of the CPU (`rq->curr`); `None` while idle and between a pick that found nothing and the next.
    /// A task that blocked is current until the pick.
    #[inline]
    #[must_use]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.rqs[cpu.index()].curr
    }

    #[inline]
    pub(crate) fn set_curr(&mut self, cpu: CpuId, task: Option<TaskId>) {
        self.rqs[cpu.index()].curr = task;
    }

    /// The task's CPU (`task_cpu`): where it is queued, or last was.
    #[inline]
    #[must_use]
    pub fn cpu_of(&self, task: TaskId) -> CpuId {
        self.tasks[task.index()].cpu
    }

    /// Whether the task may run on the CPU.
    #[must_use]
    pub fn allows(&self, task: TaskId, cpu: CpuId) -> bool {
        self.tasks[task.index()].allows(cpu)
    }

    /// Whether tasks may be placed on the CPU (`cpu_active`).
    #[inline]
    #[must_use]
    pub fn is_active(&self, cpu: CpuId) -> bool {
        self.topology.all().has(cpu)
    }

    /// `is_cpu_allowed`: the task may run on the CPU, which is active.
    #[must_use]
    pub(crate) fn is_cpu_allowed(&self, task: TaskId, cpu: CpuId) -> bool {
        self.allows(task, cpu) && self.is_active(cpu)
    }

    /// Whether the task may run on a single CPU (`nr_cpus_allowed == 1`).
    #[must_use]
    pub fn is_pinned(&self, task: TaskId) -> bool {
        self.tasks[task.index()].affinity.as_ref().is_some_and(|mask| mask.count() == 1)
    }

    /// `is_per_cpu_kthread`: a thread of the kernel that belongs to a single CPU.
    #[must_use]
    pub fn is_per_cpu_kthread(&self, task: TaskId) -> bool {
        self.tasks[task.index()].attr.kthread && self.is_pinned(task)
    }

    /// The task's attributes, as last set.
    #[must_use]
    pub fn attr(&self, task: TaskId) -> &TaskAttr {
        &self.tasks[task.index()].attr
    }

    /// The machine.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// Tasks on the CPU, current and delayed ones included (`rq.nr_running`).
    #[inline]
    #[must_use]
    pub fn nr_running(&self, cpu: CpuId) -> u32 {
        self.rqs[cpu.index()].nr_running
    }

    /// With placement by energy a group counts as overloaded only if one of its CPUs is overutilized (7.2 and later).
    #[inline]
    pub(crate) fn overload_needs_energy(&self) -> bool {
        self.rules.overload_minds_energy && self.asym.as_ref().is_some_and(|asym| asym.sched_energy_enabled())
    }

    /// Whether the search for an idle CPU distinguishes clusters (`sched_cluster_active`, 6.7 and later).
    #[inline]
    pub(crate) fn scans_clusters(&self) -> bool {
        self.topology.has_clusters() && self.rules.cluster_scan
    }

    /// Whether the groups of the target's cache are clusters (SD_CLUSTER of `sd_llc->groups`).
    #[inline]
    pub(crate) fn has_cluster_group(&self, target: CpuId) -> bool {
        self.scans_clusters() && {
            let of_cluster = self.topology.cluster(target).count();
            of_cluster > self.topology.smt(target).count() && of_cluster < self.topology.llc(target).count()
        }
    }

    /// Sets the number of runnable tasks of a class on the CPU (`add_nr_running`, `sub_nr_running`).
    pub fn set_nr_running(&mut self, cpu: CpuId, class: ClassId, nr_running: u32) {
        let of_class = self.rqs[cpu.index()].by_class[class.index()];
        if of_class != nr_running {
            self.change_nr_running(cpu, |rq| rq.set_nr_running(class, nr_running));
        }
    }

    /// The same of the fair class: its tasks, and the SCHED_IDLE tasks among them (`cfs.h_nr_queued`, `cfs.h_nr_idle`).
    #[inline(never)]
    pub(crate) fn set_h_nr(&mut self, cpu: CpuId, class: ClassId, queued: u32, idle: u32) {
        self.change_nr_running(cpu, |rq| {
            rq.sched_idle = idle;
            rq.set_nr_running(class, queued);
        });
    }

    /// Adds runnable tasks of a class that is not modelled.
    pub(crate) fn add_nr_running(&mut self, cpu: CpuId, count: u32) {
        self.change_nr_running(cpu, |rq| rq.nr_running += count);
    }

    #[inline(always)]
    fn change_nr_running(&mut self, cpu: CpuId, change: impl FnOnce(&mut Rq)) {
        let (before, after) = self.change_rq(cpu, |rq| {
            let before = rq.nr_running;
            change(rq);
            (before, rq.nr_running)
        });
        let overloaded = after >= 2;
        if (before >= 2) != overloaded {
            self.domains.count_overloaded(cpu, overloaded);
        }
    }

    /// Whether a class below this one has runnable tasks on the CPU.
    #[must_use]
    pub fn lower_queued(&self, cpu: CpuId, class: ClassId) -> bool {
        self.rqs[cpu.index()].by_class[class.index() + 1..].iter().any(|nr_running| *nr_running > 0)
    }

    /// Whether a class above this one has runnable tasks on the CPU.
    #[must_use]
    pub fn higher_queued(&self, cpu: CpuId, class: ClassId) -> bool {
        self.rqs[cpu.index()].by_class[..class.index()].iter().any(|nr_running| *nr_running > 0)
    }

    /// Whether a task of a class above this one runs on the CPU.
    #[must_use]
    pub fn higher_runs(&self, cpu: CpuId, class: ClassId) -> bool {
        self.curr(cpu).is_some_and(|curr| self.class_of(curr) < class)
    }

    /// Whether a task of a class below this one runs on the CPU.
    #[must_use]
    pub fn lower_runs(&self, cpu: CpuId, class: ClassId) -> bool {
        self.curr(cpu).is_some_and(|curr| self.class_of(curr) > class)
    }

    /// Moves a task that is not queued to another CPU; whether it was on another. The class that calls this does for
    /// itself what [`SchedClass::migrate_task_rq`](crate::class::SchedClass::migrate_task_rq) does.
    #[inline]
    pub fn set_task_cpu(&mut self, task: TaskId, cpu: CpuId) -> Option<CpuId> {
        let state = &mut self.tasks[task.index()];
        if state.cpu == cpu {
            return None;
        }
        let from = std::mem::replace(&mut state.cpu, cpu);
        if let Some(numa) = &mut self.numa {
            numa.update_scan_period(task, state.preferred_node, from, cpu);
            numa.migrated(state.birth);
        }
        Some(from)
    }

    /// `update_rt_rq_load_avg`: a class above the fair one has run on the CPU since the last call, or not; `runs` from
    /// now on.
    pub fn update_rt_rq_load_avg(&mut self, cpu: CpuId, runs: bool, now: Nanos) {
        let rq = &mut self.rqs[cpu.index()];
        rq.avg_rt.update_rt_rq_load_avg(now, rq.rt_runs, &self.signals);
        rq.rt_runs = runs;
    }

    /// `cpu_util_rt`: the CPU's utilisation by the classes above the fair one, as of now.
    pub(crate) fn cpu_util_rt(&mut self, cpu: CpuId, now: Nanos) -> u64 {
        let runs = self.rqs[cpu.index()].rt_runs;
        self.update_rt_rq_load_avg(cpu, runs, now);
        u64::from(self.rqs[cpu.index()].avg_rt.util_avg)
    }

    /// `update_irq_load_avg` in `update_rq_clock_task` (CONFIG_PARAVIRT_TIME_ACCOUNTING): the hypervisor took this many
    /// ns from the CPU just before `now`.
    pub(crate) fn lost_time(&mut self, cpu: CpuId, now: Nanos, lost: Nanos) {
        let rq = &mut self.rqs[cpu.index()];
        rq.avg_irq.update_irq_load_avg(now, lost, &self.signals);
        (rq.lost, rq.lost_from) = (rq.lost + lost, Nanos::MAX);
    }

    /// The hypervisor takes time from the CPU from `now` on.
    pub(crate) fn loses_time_from(&mut self, cpu: CpuId, now: Nanos) {
        (self.loses_time, self.clocks_differ) = (true, true);
        self.rqs[cpu.index()].lost_from = now;
    }

    /// Each CPU has the `rq_clock_task` that a trace shows; the latest of them is where all clocks are.
    pub(crate) fn show_clocks(&mut self, clocks: &[Nanos]) -> Nanos {
        let now = clocks.iter().copied().max().unwrap_or(0);
        for (rq, clock) in self.rqs.iter_mut().zip(clocks) {
            (rq.lost, rq.lost_from) = (now - clock, Nanos::MAX);
        }
        self.clocks_differ = true;
        now
    }

    /// `rq_clock_task` of a CPU when the clocks of all runqueues (`rq->clock`) are at `now`.
    #[inline]
    pub(crate) fn clock_task(&self, cpu: CpuId, now: Nanos) -> Nanos {
        if rarely(self.clocks_differ) {
            let rq = &self.rqs[cpu.index()];
            return now.min(rq.lost_from) - rq.lost;
        }
        now
    }

    /// `rq_clock` of a CPU whose `rq_clock_task` is `now`.
    pub(crate) fn rq_clock(&self, cpu: CpuId, now: Nanos) -> Nanos {
        if self.loses_time {
            now + self.rqs[cpu.index()].lost
        } else {
            now
        }
    }

    /// `cpu_util_irq`: the CPU's utilisation by the hypervisor, as of now.
    pub(crate) fn cpu_util_irq(&mut self, cpu: CpuId, now: Nanos) -> u64 {
        if !self.loses_time {
            return 0;
        }
        let avg = &mut self.rqs[cpu.index()].avg_irq;
        avg.update_irq_load_avg(now, 0, &self.signals);
        u64::from(avg.util_avg)
    }

    /// Whether a CPU may have less than its full capacity for the fair class.
    #[inline(always)]
    pub(crate) fn capacity_varies(&self) -> bool {
        self.mixed || self.loses_time
    }

    /// The kernel's tick count. At time 0 the machine has been up and idle for [`UPTIME`], and its count rises with the
    /// ticks of the CPU that keeps it.
    #[inline]
    pub(crate) fn jiffies(&self, now: Nanos) -> Jiffies {
        self.jiffies_shown.unwrap_or(self.jiffies_at_0 + (now + self.into_jiffy) / self.tick_nsec)
    }

    /// `max_load_balance_interval` in jiffies (`update_max_interval`).
    pub(crate) fn max_load_balance_interval(&self, hz: u64) -> Jiffies {
        (hz * self.topology.all().count() as u64 / 10).max(1)
    }
}
