//! A task exits, and its parent is notified.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_policy::fair::GroupId;
use schedlab_trace::{Kind, Sink};

use super::contention::lock_tasklist;
use super::percpu::Leaving;
use super::schedule::begin_block;
use super::state::Kernel;
use super::task::{Handle, Life, Wait};
use super::wake::try_to_wake_up;
use crate::machine::Machine;
use crate::run::Run;

/// `do_exit` of the task that runs on the CPU.
pub fn do_exit<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, task: TaskId) {
    let time = cpu_time(run, kernel, cpu, task);
    let utime = user_time(machine, kernel, cpu, task);
    mm_release(run, machine, kernel, cpu, task);
    lock_tasklist(run, machine, kernel, cpu);
    let t = &mut kernel.tasks[task.index()];
    let (pid, prio, parent, thread) = (t.pid, t.prio, t.parent, t.thread);
    t.life = Life::Dead;
    kernel.sched.set_exiting(task);
    kernel.sched.fair.exit_mm(task);
    kernel.sched.task_numa_free(task);
    kernel.tasks[task.index()].memory = None;
    kernel.emit(run, cpu, Kind::Exit { pid, prio });
    kernel.alive -= 1;
    if let Some(parent) = parent {
        let p = &mut kernel.tasks[parent.task.index()];
        if p.pid == parent.pid && !thread {
            p.children_time += time;
            p.children_utime += utime;
        }
        do_notify_parent(run, machine, kernel, cpu, parent, thread);
    }
    let now = run.now;
    kernel.competitors_changed(cpu, now);
    if kernel.cgroups.is_autogroup(kernel.sched.fair.group_of(task)) {
        // sched_autogroup_exit_task: the rest of the exit runs in the root group.
        kernel.sched.sched_move_task(task, GroupId::ROOT, kernel.clock_task(cpu, now));
    }
    begin_block(run, machine, kernel, cpu, Leaving::Exits);
}

/// `mm_release` of the task that runs on the CPU: it no longer uses the memory of a parent that waits for that in
/// vfork.
pub fn mm_release<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, task: TaskId) {
    let t = &mut kernel.tasks[task.index()];
    if let Some(mmap) = kernel.mmap.as_deref_mut().filter(|_| !t.vfork_done) {
        mmap.leaves(t.process);
    }
    let Some(parent) = t.parent.filter(|_| std::mem::take(&mut t.vfork_done)) else { return };
    let p = &mut kernel.tasks[parent.task.index()];
    if p.pid == parent.pid && p.life == Life::Sleeping && p.wait == Wait::Vfork {
        p.wait = Wait::Nothing;
        try_to_wake_up(run, machine, kernel, parent.task, cpu, false);
    }
}

/// `getrusage` of the task that runs on the CPU: its own CPU time and that of its child processes that have exited.
pub fn cpu_time<S: Sink>(run: &Run<S>, kernel: &Kernel, cpu: CpuId, task: TaskId) -> Nanos {
    let (sched, now) = (&kernel.sched, kernel.clock_task(cpu, run.now));
    let entity = sched.fair.entity(task);
    let pending = if sched.fair.curr(cpu) == Some(task) { now.saturating_sub(entity.exec_start) } else { 0 };
    let own = entity.sum_exec_runtime + pending + sched.rt.runtime(cpu, task, now) + sched.dl.runtime(cpu, task, now);
    own + kernel.tasks[task.index()].children_time
}

/// The part of it in user mode. Interrupts and what the kernel does at a switch are not part of it.
pub fn user_time(machine: &Machine, kernel: &Kernel, cpu: CpuId, task: TaskId) -> Nanos {
    let t = &kernel.tasks[task.index()];
    t.utime + t.children_utime + machine.cpus[cpu.index()].user - kernel.cpus[cpu.index()].user_before
}

/// `do_notify_parent`, unless the parent has exited before.
fn do_notify_parent<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    parent: Handle,
    thread: bool,
) {
    let p = &mut kernel.tasks[parent.task.index()];
    if p.pid != parent.pid {
        return;
    }
    p.children -= 1;
    p.zombies += 1;
    if p.life == Life::Sleeping && p.wait == Wait::Child {
        p.wait = Wait::Nothing;
        // A process wakes its parent by signal, synchronously; a thread its joiner by futex.
        try_to_wake_up(run, machine, kernel, parent.task, cpu, !thread);
    }
}
