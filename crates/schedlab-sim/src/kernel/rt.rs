//! The real-time class's timers, and its tasks that move between CPUs around a switch.

use schedlab_model::{CpuId, TaskId};
use schedlab_trace::Sink;

use super::balance::apply_moves;
use super::entry::irqentry_exit;
use super::resched::resched_curr;
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::{Run, Source};

/// Arms the timer of the real-time class after anything that may have moved it.
#[inline]
pub fn arm_rt_timer<S: Sink>(run: &mut Run<S>, kernel: &Kernel) {
    if kernel.sched.rt.in_use() {
        match kernel.sched.rt_timer() {
            Some(at) => run.set_event(kernel.id, Source::RealTime, CpuId(0), at.max(run.now)),
            None => run.cancel(kernel.id, Source::RealTime, CpuId(0)),
        }
    }
}

/// `sched_rt_period_timer`, `dl_server_timer`.
pub fn on_rt_timer<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel) {
    let moves = kernel.sched.rt_timer_expired(run.now);
    for (cpu, resched) in &moves.resched {
        machine.cpus[cpu.index()].progress(run.now);
        resched_curr(run, machine, kernel, *cpu, *resched, *cpu);
        irqentry_exit(run, machine, kernel, *cpu);
    }
    arm_rt_timer(run, kernel);
}

/// `pull_rt_task`, before a pick.
#[inline(never)]
pub fn pull_rt_task<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let pulled = kernel.sched.rt_pull(cpu, kernel.clock_task(cpu, run.now));
    apply_moves(run, machine, kernel, cpu, &pulled);
}

/// `push_rt_tasks`, after a switch.
#[inline(never)]
pub fn push_rt_tasks<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let pushed = kernel.sched.rt_push(cpu, kernel.clock_task(cpu, run.now));
    apply_moves(run, machine, kernel, cpu, &pushed);
    arm_rt_timer(run, kernel);
}

/// `task_woken_rt`, on the waker's CPU.
#[inline(never)]
pub fn task_woken_rt<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    cpu: CpuId,
    waker_cpu: CpuId,
) {
    let need_resched = kernel.cpus[cpu.index()].need_resched;
    let pushed = kernel.sched.rt_woken(task, need_resched, kernel.clock_task(cpu, run.now));
    apply_moves(run, machine, kernel, waker_cpu, &pushed);
    arm_rt_timer(run, kernel);
}
