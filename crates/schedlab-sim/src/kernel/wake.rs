//! The wakeups of tasks: the scheduler's procedures, driven.

use schedlab_model::{CpuId, TaskId};
use schedlab_policy::procedure::{Effect, Procedure, SchedTtwuPending, TryToWakeUp, WakeUpNewTask};
use schedlab_trace::Sink;

use super::effects::{carry_out, Now};
use super::entry::irqentry_exit;
use super::state::Kernel;
use super::task::Life;
use crate::machine::Machine;
use crate::run::Run;

/// `try_to_wake_up`, executed on CPU `waker_cpu`. `sync`: the waker is about to sleep.
pub fn try_to_wake_up<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    waker_cpu: CpuId,
    sync: bool,
) {
    debug_assert_eq!(kernel.tasks[task.index()].life, Life::Sleeping);
    wake(run, machine, kernel, TryToWakeUp::new(task, waker_cpu, sync));
}

/// Drives a wakeup to its end, or to where it has to wait until the task has left its CPU.
fn wake<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, mut wakeup: TryToWakeUp) {
    let this = wakeup.waker_cpu();
    loop {
        let context = Now { now: run.now, cpus: &kernel.cpus };
        match wakeup.resume(&mut kernel.sched, &context) {
            Effect::Done => return,
            Effect::WaitOnCpu { cpu, .. } => return kernel.cpus[cpu.index()].waiting_wakeups.push(wakeup),
            effect => carry_out(run, machine, kernel, this, effect),
        }
    }
}

/// The CPU has left `__schedule`: wakeups that waited for it go on.
pub fn resume_wakeups<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    while let Some(wakeup) = kernel.cpus[cpu.index()].waiting_wakeups.pop() {
        wake(run, machine, kernel, wakeup);
        // The waker returns from its call only now.
        irqentry_exit(run, machine, kernel, wakeup.waker_cpu());
    }
}

/// `wake_up_new_task`, executed on the parent's CPU.
pub fn wake_up_new_task<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    cpu_of_parent: CpuId,
) {
    kernel.tasks[task.index()].life = Life::Runnable;
    let now = run.now;
    kernel.checks.woken(task, now);
    drive(run, machine, kernel, cpu_of_parent, WakeUpNewTask::new(task, cpu_of_parent));
}

/// `sched_ttwu_pending`: enqueues everything on the CPU's wakelist.
pub fn sched_ttwu_pending<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if !kernel.sched.wakelist(cpu).is_empty() {
        drive(run, machine, kernel, cpu, SchedTtwuPending::new(cpu));
    }
}

/// Drives a procedure that never waits to its end.
#[inline]
pub fn drive<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    this: CpuId,
    mut procedure: impl Procedure,
) {
    loop {
        let context = Now { now: run.now, cpus: &kernel.cpus };
        match procedure.resume(&mut kernel.sched, &context) {
            Effect::Done => return,
            effect => carry_out(run, machine, kernel, this, effect),
        }
    }
}
