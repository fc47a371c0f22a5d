//! Tasks use their memory: NUMA hinting faults, pages that move, and what that costs. Tasks that move to their pages:
//! [`super::numa_tick`].
//!
//! A task uses pages while it runs in user mode. What it has used since the last time is counted at each tick and when
//! it leaves the CPU, so that faults are at most a tick late. The costs are those of `machine::numa`; the search for a
//! CPU on the preferred node costs a pass of load balancing over the CPUs that it examines.
//!
//! Left out: the flush of the TLBs after a scan, the bandwidth of memory, the first use of a page, which is a step of
//! programs.

use schedlab_model::{CpuId, TaskId};
use schedlab_policy::NumaAccess;
use schedlab_trace::{Kind, Sink};

use super::state::Kernel;
use crate::machine::{Machine, WORK_SHIFT};
use crate::run::Run;

/// The task begins with its memory, in a new address space or in that of its process.
pub fn map_memory<S: Sink>(run: &Run<S>, kernel: &mut Kernel, cpu: CpuId, task: TaskId) {
    let t = &kernel.tasks[task.index()];
    let Some(memory) = t.memory.filter(|_| kernel.numa) else { return };
    let (process, now) = (u64::from(t.process), kernel.clock_task(cpu, run.now));
    kernel.sched.init_numa_balancing(task, process, &memory, now);
}

/// `task_numa_work` of the task that runs on the CPU.
pub fn task_numa_work<S: Sink>(run: &Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, task: TaskId) {
    let per_entry = machine.numa.entry;
    let entries = kernel.sched.task_numa_work(task, per_entry, kernel.clock_task(cpu, run.now));
    machine.charge(cpu, entries * per_entry);
}

/// What a task that leaves the CPU has used.
#[inline(never)]
pub fn use_memory_before_switch<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
) {
    let Some(access) = use_memory(run, machine, kernel, cpu, task, false) else { return };
    let stall = machine.stall(cpu, machine.numa.remote(&access));
    let cost = machine.numa.of(&access) + stall;
    machine.cpus[cpu.index()].segment.cost_left += cost << WORK_SHIFT;
}

/// What the task on the CPU has used since the last time; nothing if it states no memory.
pub fn use_memory<S: Sink>(
    run: &mut Run<S>,
    machine: &Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
    may_move: bool,
) -> Option<NumaAccess> {
    let t = &mut kernel.tasks[task.index()];
    t.memory?;
    let user = t.utime + machine.cpus[cpu.index()].user - kernel.cpus[cpu.index()].user_before;
    let used = user - std::mem::replace(&mut t.memory_used, user);
    let pid = t.pid;
    let access = kernel.sched.numa_access(cpu, task, used, may_move, kernel.clock_task(cpu, run.now));
    if access.faults > 0 || access.remote > 0 {
        let (faults, local, migrated) = (access.faults, access.local, access.migrated as u32);
        kernel.emit(run, cpu, Kind::Numa { pid, faults, local, migrated, time: machine.numa.remote(&access) });
    }
    Some(access)
}
