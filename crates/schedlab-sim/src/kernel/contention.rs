//! The cost of the scheduler's own structures when other CPUs have accessed them: lines and locks of runqueues, lines
//! of tasks.

use schedlab_model::{rarely, CpuId, Nanos, TaskId};
use schedlab_policy::fair::GroupId;
use schedlab_trace::{Kind, Lock, Sink};

use super::lines::GroupLines;
use super::state::Kernel;
use crate::machine::{touched, Arrival, Machine, Stall};
use crate::run::Run;

/// CPU `cpu` gets to a lock when it has spent what it has incurred.
#[inline]
pub fn arrival(run: &Run<impl Sink>, machine: &Machine, cpu: CpuId) -> Arrival {
    Arrival { now: run.now, at: run.now + machine.sending_delay(cpu) }
}

/// Emits the wait of a CPU for a lock, if it waited.
#[inline(always)]
pub fn lock_waited<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId, lock: Lock, wait: Nanos) {
    if wait > 0 {
        emit_lock_wait(run, kernel, cpu, lock, wait);
    }
}

#[inline(never)]
fn emit_lock_wait<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId, lock: Lock, wait: Nanos) {
    let pid = kernel.cpus[cpu.index()].curr.map_or(0, |task| kernel.tasks[task.index()].pid);
    kernel.emit(run, cpu, Kind::LockWait { pid, lock, wait });
}

/// The beginning of a wakeup on CPU `this`: `pi_lock` and the state of the task.
pub fn touch_waking(machine: &mut Machine, kernel: &mut Kernel, this: CpuId, task: TaskId) {
    let wait = machine.write_lines(this, &mut kernel.tasks[task.index()].lines.wake, touched::TASK_WAKE);
    machine.charge_stall(this, wait);
}

/// The task is put on the wakelist of `cpu`.
pub fn touch_wakelist(machine: &mut Machine, kernel: &mut Kernel, this: CpuId, cpu: CpuId) {
    let wait = machine.write_lines(this, &mut kernel.cpus[cpu.index()].shared.wakelist, touched::WAKELIST);
    machine.charge_stall(this, wait);
}

/// CPU `this` has taken the runqueue lock of `cpu` to enqueue the task.
///
/// The work under the lock is what follows the clock's reading in the cost of a wakeup, and the lines.
pub fn lock_runqueue<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    this: CpuId,
    cpu: CpuId,
    task: TaskId,
) {
    let mut lines = write_group_queues(machine, kernel, this, cpu, task);
    let (rq, entity) = (&mut kernel.cpus[cpu.index()].shared, &mut kernel.tasks[task.index()].lines.entity);
    let before = rq.lines;
    lines += machine.write_lines(this, &mut rq.lines, touched::RUNQUEUE);
    lines += machine.write_lines(this, entity, touched::TASK_ENTITY);
    let mut wait = 0;
    if machine.has_locks() {
        // The cost of the wakeup has been charged: the lock was taken before its second part.
        let Arrival { now, at } = arrival(run, machine, this);
        let arrival = Arrival { now, at: at.saturating_sub(machine.enqueue_time).max(now) };
        let slowed = || machine.slows_holder(this, &before);
        wait = rq.lock.take_polling(arrival, machine.enqueue_time + lines, slowed);
    }
    machine.charge_stall(this, wait + lines);
    lock_waited(run, kernel, this, Lock::Runqueue, wait);
}

/// `__schedule` takes its own runqueue's lock, which it holds until the switch is over.
pub fn lock_own_runqueue<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let groups = kernel.cpus[cpu.index()].curr.map(|prev| write_group_queues(machine, kernel, cpu, cpu, prev));
    let rq = &mut kernel.cpus[cpu.index()].shared;
    let before = rq.lines;
    let lines = groups.unwrap_or(0) + machine.write_lines(cpu, &mut rq.lines, touched::RUNQUEUE);
    let mut wait = 0;
    if machine.has_locks() {
        let at = arrival(run, machine, cpu);
        wait = rq.lock.take_polling(at, machine.switch_time + lines, || machine.slows_holder(cpu, &before));
    }
    machine.charge_stall(cpu, wait + lines);
    lock_waited(run, kernel, cpu, Lock::Runqueue, wait);
}

/// Takes `tasklist_lock` for writing: `copy_process`, `exit_notify` and `release_task` do. A thread that nobody waits
/// for takes it once for both of the last.
pub fn lock_tasklist<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if !machine.shares() {
        return;
    }
    let tasklist = &mut kernel.tasklist;
    let before = tasklist.lines;
    let lines = machine.write_lines(cpu, &mut tasklist.lines, touched::TASKLIST);
    let mut wait = 0;
    if machine.has_locks() {
        let at = arrival(run, machine, cpu);
        wait = tasklist.lock.take_polling(at, lines + machine.atomic_time, || machine.slows_holder(cpu, &before));
    }
    machine.charge_stall(cpu, wait + lines);
    lock_waited(run, kernel, cpu, Lock::Tasklist, wait);
}

/// The lines of the task that a CPU switches to.
pub fn touch_next(machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, task: TaskId) {
    let mut wait = write_group_queues(machine, kernel, cpu, cpu, task);
    let lines = &mut kernel.tasks[task.index()].lines;
    wait += machine.write_lines(cpu, &mut lines.wake, touched::TASK_RUN);
    wait += machine.write_lines(cpu, &mut lines.entity, touched::TASK_ENTITY);
    wait += machine.write_lines(cpu, &mut lines.body, touched::TASK_BODY);
    machine.charge_stall(cpu, wait);
}

/// A balancing pass on CPU `this` has taken a task from the runqueue of `from` and put it on that of `to`.
pub fn touch_moved<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    this: CpuId,
    task: TaskId,
    [from, to]: [CpuId; 2],
) {
    let mut lines = write_group_queues(machine, kernel, this, from, task);
    lines += write_group_queues(machine, kernel, this, to, task);
    let entity = &mut kernel.tasks[task.index()].lines.entity;
    lines += machine.write_lines(this, entity, touched::TASK_ENTITY);
    lines += machine.write_lines(this, &mut kernel.cpus[to.index()].shared.lines, touched::RUNQUEUE);
    let rq = &mut kernel.cpus[from.index()].shared;
    let before = rq.lines;
    lines += machine.write_lines(this, &mut rq.lines, touched::RUNQUEUE);
    let mut wait = 0;
    if machine.has_locks() {
        let at = arrival(run, machine, this);
        wait = rq.lock.take_polling(at, lines, || machine.slows_holder(this, &before));
    }
    machine.charge_stall(this, wait + lines);
    lock_waited(run, kernel, this, Lock::Runqueue, wait);
}

/// CPU `this` has read or changed the sums of groups (`update_cfs_group`, `update_tg_load_avg`), as the scheduler has
/// recorded since the last call: charges the time.
#[inline(always)]
pub fn charge_group_loads<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, this: CpuId) {
    if rarely(!kernel.group_lines.is_empty()) {
        charge_recorded_loads(run, machine, kernel, this);
    }
}

#[inline(never)]
fn charge_recorded_loads<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, this: CpuId) {
    let Kernel { sched, group_lines, .. } = kernel;
    let Some(accesses) = sched.fair.group_loads().drain() else { return };
    let mut stall = Stall::new(arrival(run, machine, this));
    for access in accesses {
        let Some(GroupLines { load_avg, .. }) = group_lines.get_mut(access.group.index()) else { continue };
        if access.write {
            stall.atomic(machine, this, load_avg, touched::GROUP_LOAD);
        } else {
            stall.read(machine, this, load_avg, touched::GROUP_LOAD);
        }
    }
    machine.charge_stall(this, stall.whole());
    lock_waited(run, kernel, this, Lock::Line, stall.waits);
}

/// CPU `this` operates on a task of `cpu`: the time for the lines of the groups' queues above the task, in ns.
#[inline]
fn write_group_queues(machine: &mut Machine, kernel: &mut Kernel, this: CpuId, cpu: CpuId, task: TaskId) -> Nanos {
    if kernel.group_lines.is_empty() {
        return 0;
    }
    let mut time = 0;
    let mut group = kernel.sched.fair.group_of(task);
    while group != GroupId::ROOT {
        if let Some(lines) = kernel.group_lines.get_mut(group.index()) {
            time += machine.write_lines(this, &mut lines.queues[cpu.index()], touched::GROUP_QUEUE);
        }
        group = kernel.sched.fair.group(group).parent;
    }
    time
}
