//! try_to_wake_up and wake_up_new_task: where the wakee is placed, which CPU enqueues it, what the waker pays.

use schedlab_model::{CpuId, TaskId};
use schedlab_policy::WakeKind;
use schedlab_trace::{Kind, Sink};

use super::entry::irqentry_exit;
use super::hrtick::hrtick_update;
use super::idle::wake_idle_cpu;
use super::percpu::DeferredWakeup;
use super::resched::resched_curr;
use super::rt::task_woken_rt;
use super::state::Kernel;
use super::task::Life;
use crate::machine::{Activity, Machine};
use crate::run::{Run, Source};

/// `try_to_wake_up`, executed on CPU `waker_cpu`. `sync`: the waker is about to sleep.
pub fn try_to_wake_up<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    waker_cpu: CpuId,
    sync: bool,
) {
    let t = &mut kernel.tasks[task.index()];
    debug_assert_eq!(t.life, Life::Sleeping);
    let (pid, prio) = (t.pid, t.prio);
    t.life = Life::Runnable;
    let cost = machine.costs.wakeup.draw(&mut t.dice);
    let last = kernel.sched.cpu_of(task);
    run.emit(kernel.id, waker_cpu, Kind::Waking { pid, prio, target_cpu: last });
    let now = run.now;
    run.checks(kernel.id).woken(task, now);
    machine.charge(waker_cpu, cost);
    if kernel.cpus[last.index()].curr == Some(task) {
        // It is still inside schedule() there (p->on_cpu): its CPU enqueues it when it is through, or the waker
        // waits until then.
        if kernel.sched.ttwu_queue_cond(task, waker_cpu, last, true) {
            ttwu_queue_wakelist(run, machine, kernel, task, last, waker_cpu, sync);
        } else {
            kernel.cpus[last.index()].deferred_wakeups.push(DeferredWakeup { task, waker_cpu, sync });
        }
    } else {
        wake_off_cpu(run, machine, kernel, task, last, waker_cpu, sync);
    }
}

/// The rest of `try_to_wake_up`, of a task that is not on a CPU (any more).
fn wake_off_cpu<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    last: CpuId,
    waker_cpu: CpuId,
    sync: bool,
) {
    let kind = WakeKind::Wakeup { sync };
    if kernel.sched.requeue_delayed(task, kernel.clock_task(last, run.now)) {
        return ttwu_do_wakeup(run, machine, kernel, task, last, waker_cpu, kind);
    }
    let cpu = select_task_rq(run, machine, kernel, task, last, waker_cpu, kind);
    kernel.sched.set_wakee_cpu(task, cpu, kernel.clock_task(last, run.now));
    if kernel.sched.ttwu_queue_cond(task, waker_cpu, cpu, false) {
        ttwu_queue_wakelist(run, machine, kernel, task, cpu, waker_cpu, sync);
    } else {
        kernel.sched.activate(task, cpu, kind, kernel.clock_task(cpu, run.now));
        ttwu_do_wakeup(run, machine, kernel, task, cpu, waker_cpu, kind);
    }
}

/// The CPU is through `__schedule`: wakeups that waited for a task to leave it are completed.
pub fn finish_deferred_wakeups<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    while let Some(DeferredWakeup { task, waker_cpu, sync }) = kernel.cpus[cpu.index()].deferred_wakeups.pop() {
        wake_off_cpu(run, machine, kernel, task, cpu, waker_cpu, sync);
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
    run.checks(kernel.id).woken(task, now);
    let kind = WakeKind::Fork;
    let last = kernel.sched.cpu_of(task);
    let cpu = select_task_rq(run, machine, kernel, task, last, cpu_of_parent, kind);
    kernel.sched.activate(task, cpu, kind, kernel.clock_task(cpu, run.now));
    let (pid, prio) = kernel.name_of(task);
    run.emit(kernel.id, cpu_of_parent, Kind::WakeupNew { pid, prio, target_cpu: cpu });
    wakeup_preempt(run, machine, kernel, task, cpu, cpu_of_parent, kind);
}

/// `select_task_rq`, with its costs.
fn select_task_rq<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    last: CpuId,
    waker_cpu: CpuId,
    kind: WakeKind,
) -> CpuId {
    let waker = kernel.cpus[waker_cpu.index()].curr;
    let waker_exits = waker.is_some_and(|waker| kernel.tasks[waker.index()].life == Life::Dead);
    let choice = if waker_exits { kind.without_sync() } else { kind };
    let selection = kernel.sched.select_task_rq(task, waker_cpu, choice, kernel.clock_task(waker_cpu, run.now));
    let tested: u32 = selection.tested.iter().sum();
    let t = &mut kernel.tasks[task.index()];
    let (pid, prio) = (t.pid, t.prio);
    if tested > 0 {
        let mut cost = 0;
        for (table, count) in machine.costs.scan_cpu.iter().zip(selection.tested) {
            if count > 0 {
                cost += table.draw(&mut t.dice) * u64::from(count);
            }
        }
        machine.charge(waker_cpu, cost);
        run.emit(kernel.id, waker_cpu, Kind::Scan { pid, tested, cost });
    }
    if selection.cpu != last {
        run.emit(kernel.id, waker_cpu, Kind::Migrate { pid, prio, orig_cpu: last, dest_cpu: selection.cpu });
    }
    selection.cpu
}

/// `ttwu_do_wakeup`: the event, then the preemption check.
fn ttwu_do_wakeup<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    cpu: CpuId,
    waker_cpu: CpuId,
    kind: WakeKind,
) {
    let (pid, prio) = kernel.name_of(task);
    run.emit(kernel.id, waker_cpu, Kind::Wakeup { pid, prio, target_cpu: cpu });
    wakeup_preempt(run, machine, kernel, task, cpu, waker_cpu, kind);
}

#[inline(always)]
fn wakeup_preempt<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    cpu: CpuId,
    waker_cpu: CpuId,
    kind: WakeKind,
) {
    let now = run.now;
    machine.cpus[cpu.index()].progress(now);
    run.checks(kernel.id).fair.changed(cpu, now);
    let need_resched = kernel.cpus[cpu.index()].need_resched;
    let resched = kernel.sched.wakeup_preempt(cpu, task, kind, need_resched, kernel.clock_task(cpu, now));
    resched_curr(run, machine, kernel, cpu, resched, waker_cpu);
    kernel.cpus[cpu.index()].clock_read = machine.wakeup_clock(cpu);
    hrtick_update(run, machine, kernel, cpu);
    if kernel.sched.rt.in_use() {
        task_woken_rt(run, machine, kernel, task, cpu, waker_cpu);
    }
}

/// `ttwu_queue_wakelist`: the target enqueues it itself, after an interrupt unless it polls.
fn ttwu_queue_wakelist<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    cpu: CpuId,
    waker_cpu: CpuId,
    sync: bool,
) {
    let c = &mut kernel.cpus[cpu.index()];
    let first = c.wakelist.is_empty();
    c.wakelist.push((task, sync));
    let curr = c.curr;
    kernel.sched.set_ttwu_pending(cpu, true);
    if !first {
        return;
    }
    match machine.cpus[cpu.index()].activity {
        Activity::Idle => wake_idle_cpu(run, machine, kernel, cpu, waker_cpu),
        Activity::Exiting => {}
        Activity::Busy => {
            // A CPU inside schedule() looks at its list as soon as it is through.
            if curr != Some(task) {
                let arrival = run.now + machine.ipi_latency(cpu, waker_cpu);
                run.set_event(kernel.id, Source::Call, cpu, arrival);
            }
        }
    }
}

/// `sched_ttwu_pending`: enqueues everything on the CPU's wakelist.
pub fn sched_ttwu_pending<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let mut list = std::mem::take(&mut kernel.cpus[cpu.index()].wakelist);
    if list.is_empty() {
        return;
    }
    for (task, sync) in list.drain(..) {
        let kind = WakeKind::Wakeup { sync };
        let clock = kernel.clock_task(cpu, run.now);
        if !kernel.sched.requeue_delayed(task, clock) {
            kernel.sched.activate(task, cpu, kind, clock);
        }
        ttwu_do_wakeup(run, machine, kernel, task, cpu, cpu, kind);
    }
    kernel.sched.set_ttwu_pending(cpu, false);
    // Keeps the allocation.
    kernel.cpus[cpu.index()].wakelist = list;
}
