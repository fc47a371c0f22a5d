//! Tasks use their memory: NUMA hinting faults, pages that move, tasks that move to their pages, and what all that costs.
//!
//! A task uses pages while it runs in user mode. What it has used since the last time is counted at each tick and when it leaves the CPU,
//! so that faults are at most a tick late. The costs are those of `machine::numa`; the search for a CPU on the preferred
//! node costs a pass of load balancing over the CPUs that it examines.
//!
//! Left out: the flush of the TLBs after a scan, the bandwidth of memory, the first use of a page, which is a step of programs.

use schedlab_model::{CpuId, TaskId};
use schedlab_policy::{NumaAccess, NumaMove, Resched};
use schedlab_trace::{Kind, Sink};

use super::cpuset::leave_cpu;
use super::resched::resched_curr;
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

/// What the running task has used by its tick.
#[inline(never)]
pub fn use_memory_at_tick<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let k = &kernel.cpus[cpu.index()];
    let Some(task) = k.curr.filter(|_| k.leaving_for.is_none()) else { return };
    let may_move = k.push_away.is_none();
    let Some(access) = use_memory(run, machine, kernel, cpu, task, may_move) else { return };
    machine.charge(cpu, machine.numa.of(&access));
    machine.charge_stall(cpu, machine.numa.remote(&access));
    if access.looked_at > 0 {
        machine.charge_balance(cpu, 1, access.looked_at);
    }
    if let Some(moves) = access.moves {
        migrate_task(run, machine, kernel, cpu, moves);
    }
}

/// What the task has used that leaves the CPU.
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

fn use_memory<S: Sink>(
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

/// `migrate_task_to` or `migrate_swap`: the stoppers of the CPUs move the tasks at once.
fn migrate_task<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, moves: NumaMove) {
    let NumaMove { task, dest, swap } = moves;
    kernel.cpus[cpu.index()].push_away = Some((task, dest));
    resched_curr(run, machine, kernel, cpu, Resched::Full, cpu);
    let Some(swap) = swap else { return };
    let k = &kernel.cpus[dest.index()];
    if k.curr == Some(swap) && k.push_away.is_none() && k.leaving_for.is_none() {
        leave_cpu(run, machine, kernel, swap, dest, cpu);
    }
}
