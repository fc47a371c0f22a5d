//! `__schedule`: which task runs next on a CPU.

use schedlab_model::CpuId;
use schedlab_policy::procedure::{self, Schedule};
use schedlab_trace::Sink;

use super::bandwidth::arm_bandwidth;
use super::contention::lock_own_runqueue;
use super::effects::Executor;
use super::percpu::Leaving;
use super::segment::mark_in;
use super::speed::release_interrupts;
use super::state::Kernel;
use super::wake::resume_wakeups;
use crate::machine::{Machine, Mode, WORK_SHIFT};
use crate::run::{Context, Run, Source};

/// `__schedule` on a CPU.
pub fn schedule<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let now = run.now;
    machine.cpus[cpu.index()].progress(now);
    let leaving = begin_leaving(run, machine, kernel, cpu);
    if machine.shares() {
        lock_own_runqueue(run, machine, kernel, cpu);
    }
    let k = &mut kernel.cpus[cpu.index()];
    if run.is_trace() {
        run.context = Context::Schedule { full: k.need_resched, lazy: k.need_resched_lazy };
    }
    k.marked = false;
    k.need_resched = false;
    k.need_resched_lazy = false;
    k.resched_seen = false;
    let began = match k.schedule_paid.take() {
        None | Some(0) => 0,
        Some(cost) => machine.cpus[cpu.index()].core_wall(cost << WORK_SHIFT).unwrap_or(0),
    };
    let found = Schedule { leaving, migrate: k.push_away.take(), clock_read: k.clock_read, began };
    kernel.checks.picked(cpu, now);
    procedure::__schedule(&mut Executor { run, machine, kernel, cpu }, cpu, found);
    finish_schedule(run, machine, kernel, cpu);
}

/// The time of newidle balancing is over: the rest of `__schedule`.
#[inline(never)]
pub fn end_newidle<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let k = &mut kernel.cpus[cpu.index()];
    k.in_newidle = false;
    if k.held_interrupts != 0 {
        release_interrupts(run, kernel, cpu);
    }
    let k = &mut kernel.cpus[cpu.index()];
    k.need_resched = false;
    k.need_resched_lazy = false;
    k.resched_seen = false;
    kernel.checks.picked(cpu, run.now);
    procedure::schedule_after_newidle(&mut Executor { run, machine, kernel, cpu }, cpu);
    finish_schedule(run, machine, kernel, cpu);
}

/// The current task blocks or has exited: what it will do once it is woken.
#[inline(always)]
fn begin_leaving<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) -> Option<Leaving> {
    let k = &mut kernel.cpus[cpu.index()];
    let (leaving, task) = (k.leaving_for.take()?, k.curr?);
    let t = &mut kernel.tasks[task.index()];
    machine.cpus[cpu.index()].segment.work_left = std::mem::take(&mut t.after) << WORK_SHIFT;
    let now = run.now;
    kernel.competitors_changed(cpu, now);
    Some(leaving)
}

/// The switch is over, unless newidle balancing still takes its time.
#[inline(always)]
fn finish_schedule<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if !kernel.cpus[cpu.index()].in_newidle {
        look_at_wakelist(run, machine, kernel, cpu);
    }
    arm_bandwidth(run, kernel);
    kernel.trace_rest(run, cpu);
}

/// Wakeups that waited for the CPU to leave `__schedule` continue, and its wakelist is looked at.
#[inline(always)]
fn look_at_wakelist<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if !kernel.cpus[cpu.index()].waiting_wakeups.is_empty() || !kernel.sched.wakelist(cpu).is_empty() {
        complete_wakeups(run, machine, kernel, cpu);
    }
}

#[cold]
fn complete_wakeups<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    resume_wakeups(run, machine, kernel, cpu);
    let waiting = !kernel.sched.wakelist(cpu).is_empty();
    if waiting && run.due(kernel.id, Source::Call, cpu).is_none() {
        run.set_event(kernel.id, Source::Call, cpu, run.now);
    }
}

/// The current task blocks or has exited: first it gets into `__schedule`, which takes time in which it counts as
/// running.
#[inline(always)]
pub fn begin_block<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, why: Leaving) {
    let (c, k) = (&mut machine.cpus[cpu.index()], &mut kernel.cpus[cpu.index()]);
    k.leaving_for = Some(why);
    if why == Leaving::Sleeps {
        c.segment.mode = Mode::Kernel;
        c.segment.call = 0;
    }
    // Nothing is left but the way into `__schedule`: `plain_end` relies on it.
    c.segment.work_left = 0;
    if !machine.costs.schedule.is_nothing() && k.schedule_paid.is_none() {
        let cost = machine.costs.schedule.draw(&mut c.dice);
        k.schedule_paid = Some(cost);
        c.segment.cost_left += cost << WORK_SHIFT;
    } else if k.in_flight.is_none() {
        // With a wakeup under way it gets there when that is over.
        mark_in(run, kernel.id, cpu, k);
    }
}
