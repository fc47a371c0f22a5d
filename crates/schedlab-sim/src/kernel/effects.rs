//! Carries out the effects of the scheduler's procedures: trace events, costs, interrupts, timers.

use schedlab_model::{rarely, CpuId, Nanos, TaskId};
use schedlab_policy::procedure::{Driver, Effect, Timer, Wakeup};
use schedlab_policy::{Counts, Moves, Resched, Scans, Sched, Selection};
use schedlab_trace::{Kind, ScanTimes, Sink};

use super::balance::apply_moves;
use super::contention::{charge_group_loads, lock_runqueue, touch_wakelist, touch_waking};
use super::context_switch::{context_switch, repicked};
use super::hrtick::program_hrtick;
use super::idle::wake_idle_cpu;
use super::in_flight::takes_time;
use super::newidle::begin_newidle;
use super::resched::{__resched_curr, resched_curr, ReschedOpt};
use super::state::Kernel;
use super::task::Life;
use crate::machine::{Activity, Machine, Mode};
use crate::run::{Run, Source};

/// A CPU that executes the scheduler's procedures.
pub struct Executor<'a, 's, S: Sink> {
    pub run: &'a mut Run<'s, S>,
    pub machine: &'a mut Machine,
    pub kernel: &'a mut Kernel,
    pub cpu: CpuId,
}

impl<S: Sink> Driver for Executor<'_, '_, S> {
    type Sched = Sched;

    #[inline(always)]
    fn sched(&mut self) -> &mut Sched {
        &mut self.kernel.sched
    }

    #[inline(always)]
    fn clock(&self, cpu: CpuId) -> Nanos {
        self.kernel.clock(cpu, self.run.now)
    }

    #[inline(always)]
    fn clock_task(&self, cpu: CpuId) -> Nanos {
        self.kernel.clock_task(cpu, self.run.now)
    }

    #[inline(always)]
    fn need_resched(&self, cpu: CpuId) -> bool {
        self.kernel.cpus[cpu.index()].need_resched
    }

    // Inlined where the effect is a constant, so that what is left is the one arm.
    #[inline(always)]
    fn effect(&mut self, effect: Effect) {
        carry_out(self.run, self.machine, self.kernel, self.cpu, effect);
    }

    #[inline(always)]
    fn balanced(&mut self, moves: &Moves) {
        apply_moves(self.run, self.machine, self.kernel, self.cpu, moves);
    }

    #[inline(always)]
    fn selected(&mut self, task: TaskId, selection: &Selection) -> CpuId {
        if rarely(self.kernel.is_guest) {
            count_placement(self.machine, self.kernel, selection.cpu);
        }
        charge_selection(self.run, self.machine, self.kernel, self.cpu, task, selection);
        selection.cpu
    }

    #[inline(always)]
    fn search_takes_time(&mut self, wakeup: Wakeup, cpu: CpuId) -> bool {
        takes_time(self.run, self.machine, self.kernel, self.cpu, wakeup, cpu)
    }

    #[inline(always)]
    fn newidle_takes_time(&mut self, cpu: CpuId) -> bool {
        begin_newidle(self.run, self.machine, self.kernel, cpu)
    }

    #[inline(always)]
    fn rq_lock(&mut self, task: TaskId, cpu: CpuId) {
        if self.machine.shares() {
            lock_runqueue(self.run, self.machine, self.kernel, self.cpu, cpu, task);
        }
    }
}

/// Counts a wakeup of a guest by what its CPU's vCPU does.
#[cold]
fn count_placement(machine: &Machine, kernel: &mut Kernel, cpu: CpuId) {
    let (idle, waits) = (kernel.sched.is_idle(cpu), kernel.cpus[cpu.index()].vcpu_waits);
    let halted = idle && !waits && machine.cpus[cpu.index()].rate == 0;
    let wakeups = &mut kernel.wakeups;
    wakeups.idle += u64::from(idle);
    wakeups.halted += u64::from(halted);
    wakeups.preempted += u64::from(waits);
}

/// Carries out an effect of a procedure that CPU `this` executes.
#[inline(always)]
fn carry_out<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, this: CpuId, effect: Effect) {
    match effect {
        Effect::Waking { task, cpu } => waking(run, machine, kernel, this, task, cpu),
        Effect::WaitOnCpu { wakeup, cpu } => kernel.cpus[cpu.index()].waiting_wakeups.push(wakeup),
        Effect::Migrate { task, from, to } => {
            let (pid, prio) = kernel.name_of(task);
            kernel.emit(run, this, Kind::Migrate { pid, prio, orig_cpu: from, dest_cpu: to });
        }
        Effect::WakelistQueued { task, cpu, first } => {
            if machine.shares() {
                touch_wakelist(machine, kernel, this, cpu);
            }
            if first {
                send_call_ipi(run, machine, kernel, this, task, cpu);
            }
        }
        Effect::Wakeup { task, cpu, new } => {
            let (pid, prio) = kernel.name_of(task);
            let kind = match new {
                true => Kind::WakeupNew { pid, prio, target_cpu: cpu },
                false => Kind::Wakeup { pid, prio, target_cpu: cpu },
            };
            kernel.emit(run, this, kind);
        }
        Effect::Preempt { cpu, resched } => preempt(run, machine, kernel, this, cpu, resched),
        Effect::Resched { cpu, resched } => resched_curr(run, machine, kernel, cpu, resched, this),
        Effect::Program(timer) => program(run, machine, kernel, timer),
        Effect::Switch { prev, next } => context_switch(run, machine, kernel, this, prev, next),
        Effect::Repicked { next } => repicked(run, machine, kernel, this, next),
    }
}

/// The beginning of a wakeup, and the fixed part of its cost.
#[inline(always)]
fn waking<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    this: CpuId,
    task: TaskId,
    target_cpu: CpuId,
) {
    let t = &mut kernel.tasks[task.index()];
    let (pid, prio) = (t.pid, t.prio);
    t.life = Life::Runnable;
    let cost = machine.costs.wakeup.draw(&mut t.dice);
    kernel.emit(run, this, Kind::Waking { pid, prio, target_cpu });
    let now = run.now;
    kernel.checks.woken(task, now);
    machine.charge(this, cost);
    if machine.shares() {
        touch_waking(machine, kernel, this, task);
    }
}

/// The cost of a search for a CPU.
#[inline(always)]
pub(super) fn charge_selection<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    this: CpuId,
    task: TaskId,
    selection: &Selection,
) {
    if rarely(selection.hypercalls > 0) {
        machine.charge_hypercalls(this, selection.hypercalls);
    }
    let tested: u32 = selection.tested.iter().sum();
    if tested == 0 {
        return;
    }
    let t = &mut kernel.tasks[task.index()];
    let (mut per_cpu, mut cost) = ([0; 5], 0);
    for (distance, table) in machine.costs.scan_cpu.iter().enumerate() {
        let count = selection.tested[distance];
        if count > 0 {
            per_cpu[distance] = table.draw(&mut t.dice);
            cost += per_cpu[distance] * u64::from(count);
        }
    }
    let functions = scan_times(&per_cpu, &selection.scans);
    let pid = t.pid;
    machine.charge(this, cost);
    kernel.emit(run, this, Kind::Scan { pid, tested, cost, functions });
}

/// The time of a search: per distance the CPUs tested, times what a test costs there.
#[inline(always)]
fn scan_time(per_cpu: &[Nanos; 5], tested: &Counts) -> Nanos {
    per_cpu.iter().zip(tested).map(|(cost, count)| cost * u64::from(*count)).sum()
}

/// The share of each function of the search.
#[inline(always)]
fn scan_times(per_cpu: &[Nanos; 5], scans: &Scans) -> ScanTimes {
    let time = |tested: &Option<Counts>| {
        tested.as_ref().map_or(0, |tested| u32::try_from(scan_time(per_cpu, tested)).unwrap_or(u32::MAX))
    };
    ScanTimes { sibling: scans.sibling, core: time(&scans.core), cpu: time(&scans.cpu), smt: time(&scans.smt) }
}

/// The interrupt that makes a CPU look at its wakelist, unless it polls or is about to look anyway.
#[inline(always)]
fn send_call_ipi<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    this: CpuId,
    task: TaskId,
    cpu: CpuId,
) {
    match machine.cpus[cpu.index()].activity {
        Activity::Idle => wake_idle_cpu(run, machine, kernel, cpu, this),
        Activity::Exiting => {}
        Activity::Busy => interrupt_busy(run, machine, kernel, this, task, cpu),
    }
}

#[inline(never)]
fn interrupt_busy<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    this: CpuId,
    task: TaskId,
    cpu: CpuId,
) {
    // A CPU that is about to switch away from the task looks at its list right after.
    if kernel.cpus[cpu.index()].curr != Some(task) {
        let arrival = run.now + machine.ipi_latency(cpu, this);
        run.set_event(kernel.id, Source::Call, cpu, arrival);
    }
}

/// The end of a wakeup's check on a CPU, whose queue it has changed.
#[inline(always)]
fn preempt<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    this: CpuId,
    cpu: CpuId,
    resched: Resched,
) {
    charge_group_loads(run, machine, kernel, this);
    let now = run.now;
    let c = &mut machine.cpus[cpu.index()];
    c.progress(now);
    let polls = c.segment.mode == Mode::Poll;
    kernel.competitors_changed(cpu, now);
    if rarely(polls) {
        // kvm_vcpu_halt() polls while it is alone on its runqueue.
        run.touch(kernel.id, cpu);
    }
    __resched_curr(run, machine, kernel, cpu, resched, ReschedOpt::Wakeup, this);
    kernel.cpus[cpu.index()].clock_read = machine.wakeup_clock(cpu);
}

/// Programs a timer of the scheduler.
#[inline(never)]
pub fn program<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, timer: Timer) {
    match timer {
        Timer::Hrtick { cpu, hrtick, update } => {
            let over = program_hrtick(run, machine, kernel, cpu, hrtick);
            if over && update {
                resched_curr(run, machine, kernel, cpu, Resched::Full, cpu);
            }
        }
        Timer::Classes(Some(at)) => run.set_event(kernel.id, Source::Classes, CpuId(0), at.max(run.now)),
        Timer::Classes(None) => run.cancel(kernel.id, Source::Classes, CpuId(0)),
    }
}
