//! The wakeups of tasks, as the scheduler's procedures.

use schedlab_model::{rarely, CpuId, TaskId};
use schedlab_policy::procedure::{self, Wakeup};
use schedlab_trace::Sink;

use super::effects::Executor;
use super::entry::irqentry_exit;
use super::percpu::InFlight;
use super::segment::settle;
use super::state::Kernel;
use super::task::Life;
use crate::machine::Machine;
use crate::run::Run;

/// `try_to_wake_up` by the task that runs on CPU `waker_cpu`. `sync`: the waker is about to sleep.
pub fn try_to_wake_up<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    waker_cpu: CpuId,
    sync: bool,
) {
    wake(run, machine, kernel, Wakeup { task, waker_cpu, sync, here: false, in_task: true });
}

/// The same by an interrupt on CPU `waker_cpu`.
pub fn wake_from_interrupt<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    waker_cpu: CpuId,
) {
    wake(run, machine, kernel, Wakeup { task, waker_cpu, sync: false, here: false, in_task: false });
}

/// The same with WF_CURRENT_CPU: the task goes to the waker's CPU if it may.
pub fn wake_on_current_cpu<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    waker_cpu: CpuId,
) {
    wake(run, machine, kernel, Wakeup { task, waker_cpu, sync: false, here: true, in_task: true });
}

fn wake<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, wakeup: Wakeup) {
    let Wakeup { task, waker_cpu, .. } = wakeup;
    debug_assert_eq!(kernel.tasks[task.index()].life, Life::Sleeping);
    let k = &mut kernel.cpus[waker_cpu.index()];
    if rarely(k.in_flight.is_some()) {
        // The task is claimed (TASK_WAKING): no other wakeup takes effect.
        kernel.tasks[task.index()].life = Life::Waking;
        return k.next_wakeups.push_back(wakeup);
    }
    procedure::try_to_wake_up(&mut Executor { run, machine, kernel, cpu: waker_cpu }, wakeup);
}

/// The CPU has left `__schedule`: the wakeups that waited for it continue.
pub fn resume_wakeups<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    while let Some(wakeup) = kernel.cpus[cpu.index()].waiting_wakeups.pop() {
        let waker_cpu = wakeup.waker_cpu;
        procedure::wake_off_cpu(&mut Executor { run, machine, kernel, cpu: waker_cpu }, wakeup);
        // The waker returns from its call only now.
        irqentry_exit(run, machine, kernel, waker_cpu);
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
    procedure::wake_up_new_task(&mut Executor { run, machine, kernel, cpu: cpu_of_parent }, task, cpu_of_parent);
}

/// `sched_ttwu_pending`: enqueues everything on the CPU's wakelist.
pub fn sched_ttwu_pending<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if !kernel.sched.wakelist(cpu).is_empty() {
        procedure::sched_ttwu_pending(&mut Executor { run, machine, kernel, cpu }, cpu);
    }
}

/// The time of a search is over: `ttwu_queue`, and the next wakeup of this CPU.
pub fn on_wakeup<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, this: CpuId) {
    machine.cpus[this.index()].progress(run.now);
    if let Some(InFlight { wakeup, cpu }) = kernel.cpus[this.index()].in_flight.take() {
        procedure::ttwu_queue(&mut Executor { run, machine, kernel, cpu: this }, wakeup, cpu);
    }
    while let Some(wakeup) = next_wakeup(kernel, this) {
        procedure::try_to_wake_up(&mut Executor { run, machine, kernel, cpu: this }, wakeup);
    }
    settle(run, machine, kernel, this);
}

/// The next wakeup of the CPU, unless it is still in one.
fn next_wakeup(kernel: &mut Kernel, this: CpuId) -> Option<Wakeup> {
    let k = &mut kernel.cpus[this.index()];
    if k.in_flight.is_some() {
        return None;
    }
    k.next_wakeups.pop_front()
}
