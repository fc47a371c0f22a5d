//! Newidle balancing takes time inside `__schedule`.

use schedlab_model::CpuId;
use schedlab_trace::Sink;

use super::segment::settle;
use super::state::Kernel;
use super::task::Life;
use crate::machine::Machine;
use crate::run::Run;

/// Newidle balancing has incurred its cost: the CPU spends it before it picks. Until then it counts as
/// running the task that leaves, so it is not idle for other CPUs. Interrupts stay disabled, as in all of `__schedule`.
#[inline]
pub fn begin_newidle<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) -> bool {
    let (c, k) = (&machine.cpus[cpu.index()], &mut kernel.cpus[cpu.index()]);
    if !machine.selection_takes_time() || c.pending == 0 {
        return false;
    }
    // What the stopper has moved away runs on its new CPU already: the stopper is a task that ran in between.
    let leaves = k.curr.is_some_and(|task| kernel.tasks[task.index()].life != Life::Running);
    if !leaves {
        return false;
    }
    k.in_newidle = true;
    settle(run, machine, kernel, cpu);
    true
}
