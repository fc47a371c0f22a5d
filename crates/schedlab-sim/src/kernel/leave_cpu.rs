//! A task moves to another CPU although nothing it does leads there: its affinity has changed, its CPU goes offline, or
//! NUMA balancing moves it.

use schedlab_model::{CpuId, TaskId};
use schedlab_policy::{Moves, Resched};
use schedlab_trace::Sink;

use super::balance::apply_moves;
use super::entry::irqentry_exit;
use super::resched::resched_curr;
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::Run;

/// A running task leaves its CPU by the stopper, a queued one at once.
pub fn leave_cpu<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    task: TaskId,
    cpu: CpuId,
    dest: CpuId,
) {
    machine.cpus[cpu.index()].progress(run.now);
    if kernel.cpus[cpu.index()].curr == Some(task) {
        kernel.cpus[cpu.index()].push_away = Some((task, dest));
        resched_curr(run, machine, kernel, cpu, Resched::Full, cpu);
    } else {
        let clock = kernel.clock_task(cpu, run.now);
        let resched = kernel.sched.move_queued_task(task, dest, clock);
        let moves = Moves { moved: vec![(task, cpu)], ..Moves::default() };
        apply_moves(run, machine, kernel, cpu, &moves);
        machine.cpus[dest.index()].progress(run.now);
        resched_curr(run, machine, kernel, dest, resched, dest);
        irqentry_exit(run, machine, kernel, dest);
    }
    irqentry_exit(run, machine, kernel, cpu);
}
