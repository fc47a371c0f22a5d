//! The kernel's state: its scheduler, its CPUs, its tasks and groups.

use std::sync::Arc;

use schedlab_model::{rarely, stream, CpuId, KernelId, Nanos, Pid, Table, TaskId, Ties};
use schedlab_policy::{PreemptModel, RunTime, Sched};
use schedlab_spec::RunSpec;
use schedlab_workload::Dist;

use super::cgroup::Cgroups;
use super::cpusets::Cpusets;
use super::hotplug_state::Hotplug;
use super::lines::{GroupLines, Tasklist};
use super::mmap::MmapLocks;
use super::percpu::PerCpu;
use super::pids::Pids;
use super::points::Points;
use super::spinlocks::Spinlocks;
use super::sugov::Sugov;
use super::task::{Handle, Life, Task};
use super::tlb_flush::PvCalls;
use crate::check::Checks;

/// Where the wakeups of a guest went.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Placements {
    /// To a CPU that was idle for the guest's own scheduler.
    pub idle: u64,
    /// To one whose vCPU was halted.
    pub halted: u64,
    /// To one whose vCPU waited for a CPU of the host.
    pub preempted: u64,
}

/// One kernel: a host's or a guest's.
#[derive(Debug)]
pub struct Kernel {
    pub id: KernelId,
    /// Scheduling classes and runqueues.
    pub sched: Sched,
    pub cpus: Table<PerCpu>,
    pub tasks: Table<Task>,
    pub cgroups: Cgroups,
    /// The CPUs that control groups leave their tasks, if any states them.
    pub cpusets: Option<Box<Cpusets>>,
    /// CPUs that go offline and come back, if the run has any.
    pub hotplug: Option<Box<Hotplug>>,
    /// By group; empty where lines and locks cost nothing or no task is in a group.
    pub group_lines: Vec<GroupLines>,
    /// `tasklist_lock`.
    pub tasklist: Tasklist,
    /// The `mmap_lock` of processes with several threads, where tasks wait for it.
    pub mmap: Option<Box<MmapLocks>>,
    /// The governor of each CPU's frequency; empty if that is not schedutil.
    pub sugov: Vec<Sugov>,
    /// The checkers of the kernel, which keep records of their own.
    pub checks: Checks,
    /// Some group has a quota.
    pub bandwidth: bool,
    /// Some tasks have memory whose node matters, and there are several nodes.
    pub numa: bool,
    /// Its tasks may have work of the scheduler to do when they return to user mode (`task_work_run`).
    pub task_work: bool,
    /// CPUs that execute with interrupts disabled.
    pub irqs_off: u32,
    pub tick_nsec: Nanos,
    /// Where a request to reschedule is honoured.
    pub points: Points,
    /// Folios of the page cache that a read copies between two points.
    pub folio_batch: u32,
    /// After how many tasks `__wake_up` releases the lock of a wait queue for a moment; `None`: not before the last
    /// one.
    pub wait_queue_break: Option<u32>,
    /// How long a time slice extension lasts, ns; 0: it has none.
    pub slice_extension: Nanos,
    /// A time slice extension delays full requests, too.
    pub extends_full_requests: bool,
    /// How its spinlocks are waited for.
    pub spinlocks: Spinlocks,
    /// Its hypercalls for vCPUs that do not run.
    pub pv_calls: PvCalls,
    /// PREEMPT_AUTO, if most of its requests are lazy.
    pub auto_lazy: Option<PreemptModel>,
    pub timer_sequence: u64,
    /// Context switches.
    pub switches: u64,
    /// Tasks that have not exited, those that will start later included.
    pub alive: u32,
    pub pids: Pids,
    /// Places of dead tasks are given to new ones.
    pub recycles: bool,
    /// Some of its tasks are the vCPUs of guests.
    pub is_host: bool,
    /// Its CPUs are vCPUs.
    pub is_guest: bool,
    /// Where its wakeups went, in a guest.
    pub wakeups: Placements,
    /// Memory for run times on their way into a trace.
    pub run_times: Vec<RunTime>,
}

/// The CPU's ticks fall on this time and whole ticks later.
fn tick_phase(spec: &RunSpec, seed: u64, cpu: usize) -> Nanos {
    if spec.noise {
        stream(seed, &format!("tick/{cpu}")).below(spec.kernel.tick_nsec())
    } else {
        0
    }
}

/// The scheduler of a run at time 0.
fn scheduler(spec: &RunSpec, seed: u64) -> Sched {
    let mut sched = Sched::new(spec.kernel.clone(), Arc::clone(&spec.machine.topology));
    sched.set_seed(if spec.noise { seed } else { 0 });
    if spec.noise {
        // The CPU whose ticks the kernel counts is the one that booted.
        sched.set_jiffy(tick_phase(spec, seed, 0));
        sched.fair.set_quota_phases(seed);
    }
    sched.set_ties(Ties::new(spec.ties, seed));
    sched.fair.set_ties(Ties::new(spec.ties, seed));
    let costs = &spec.machine.costs;
    sched.set_balance_cost(costs.balance_pass.typical(), costs.balance_cpu.typical());
    sched.set_scan_cost(costs.scan_cpu.each_ref().map(Dist::typical));
    sched
}

impl Kernel {
    /// The kernel of a run at time 0, without tasks.
    pub fn new(id: KernelId, spec: &RunSpec, seed: u64) -> Self {
        let nr_cpus = spec.machine.topology.nr_cpus();
        let mut sched = scheduler(spec, seed);
        let cgroups = Cgroups::new(&mut sched.fair, spec);
        let cpusets = Cpusets::new(spec, &cgroups);
        if let Some(sets) = &cpusets {
            sets.count_cpus(&mut sched.fair);
        }
        let physics = &spec.machine.physics;
        let mut group_lines = Vec::new();
        if (physics.lines || physics.locks) && sched.fair.nr_groups() > 1 {
            sched.fair.group_loads().record();
            group_lines = GroupLines::of_all(sched.fair.nr_groups(), nr_cpus);
        }
        let numa = spec.workloads.iter().any(|workload| workload.tasks.iter().any(|task| task.memory.is_some()))
            && sched.init_numa(&spec.kernel);
        let bandwidth = spec.cgroups.iter().any(|cgroup| cgroup.bandwidth.is_some());
        let task_work = bandwidth || numa || sched.fair.has_sched_cache();
        let tick_nsec = spec.kernel.tick_nsec();
        Kernel {
            id,
            sched,
            cpus: (0..nr_cpus).map(|cpu| PerCpu::new(tick_phase(spec, seed, cpu))).collect(),
            tasks: Table::default(),
            cgroups,
            cpusets,
            hotplug: Hotplug::new(&spec.hotplug),
            group_lines,
            tasklist: Tasklist::default(),
            mmap: MmapLocks::new(physics.mmap_lock, spec.kernel.version.mmap_lock()),
            sugov: vec![Sugov::default(); if physics.schedutil && physics.frequency { nr_cpus } else { 0 }],
            checks: Checks::new(nr_cpus),
            bandwidth,
            numa,
            task_work,
            irqs_off: 0,
            tick_nsec,
            points: Points::of(spec.kernel.preempt, &spec.machine.sections),
            folio_batch: spec.kernel.version.folio_batch(),
            wait_queue_break: spec.kernel.version.wait_queue_break(),
            slice_extension: spec.kernel.version.slice_extension(),
            extends_full_requests: spec.kernel.preempt.extends_full_requests(),
            spinlocks: Spinlocks::of(spec.kernel.preempt),
            pv_calls: PvCalls::default(),
            auto_lazy: Some(spec.kernel.preempt).filter(|model| model.is_auto_lazy()),
            timer_sequence: 0,
            switches: 0,
            alive: 0,
            pids: Pids::default(),
            recycles: true,
            is_host: !spec.guests.is_empty(),
            is_guest: false,
            wakeups: Placements::default(),
            run_times: Vec::new(),
        }
    }

    /// `finish_task_switch` of a dead task: nothing refers to it any more, its place is the next one's.
    pub fn release(&mut self, task: TaskId) {
        if self.recycles {
            self.sched.release_task(task);
        }
    }

    /// `rq->clock` of a CPU.
    #[inline]
    pub fn clock(&self, cpu: CpuId, now: Nanos) -> Nanos {
        self.cpus[cpu.index()].clocks.clock(now)
    }

    /// `rq->clock_task` of a CPU. Only a guest's lags behind: time is stolen from no other kernel.
    #[inline(always)]
    pub fn clock_task(&self, cpu: CpuId, now: Nanos) -> Nanos {
        if rarely(self.is_guest) {
            return self.clock_task_of_guest(cpu, now);
        }
        now
    }

    #[inline(never)]
    fn clock_task_of_guest(&self, cpu: CpuId, now: Nanos) -> Nanos {
        self.cpus[cpu.index()].clocks.clock_task(now)
    }

    /// Tells the checkers that the tasks which compete on the CPU, or their weights or slices, have changed.
    #[inline]
    pub fn competitors_changed(&mut self, cpu: CpuId, now: Nanos) {
        let clock_task = self.clock_task(cpu, now);
        self.checks.fair.changed(cpu, clock_task);
    }

    /// The task's pid and priority, as trace events name it.
    #[inline]
    pub fn name_of(&self, task: TaskId) -> (Pid, i32) {
        let t = &self.tasks[task.index()];
        (t.pid, t.prio)
    }

    /// The task with this handle, if it lives.
    pub fn living(&self, handle: Handle) -> Option<TaskId> {
        let task = self.tasks.get(handle.task.index())?;
        (task.pid == handle.pid && task.life != Life::Dead).then_some(handle.task)
    }
}
