//! The memory that a task has used by its tick, after which the task may move to the node of its pages.

use schedlab_model::CpuId;
use schedlab_policy::{NumaMove, Resched};
use schedlab_trace::Sink;

use super::leave_cpu::leave_cpu;
use super::numa::use_memory;
use super::resched::resched_curr;
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::Run;

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
