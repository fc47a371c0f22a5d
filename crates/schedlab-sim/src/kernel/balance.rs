//! Moves of tasks that balancing decided: their trace events, their costs, and the reschedules that they request.

use schedlab_model::CpuId;
use schedlab_policy::{Moves, Stage};
use schedlab_trace::{Kind, Sink};

use super::contention::{charge_group_loads, touch_moved};
use super::resched::resched_curr;
use super::state::Kernel;
use crate::machine::{Activity, Machine};
use crate::run::Run;

/// Puts into effect what a balancing pass on `cpu` decided.
#[inline(always)]
pub fn apply_moves<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, moves: &Moves) {
    if moves.passes > 0 || !moves.moved.is_empty() || !moves.resched.is_empty() {
        apply_all(run, machine, kernel, cpu, moves);
    }
    charge_group_loads(run, machine, kernel, cpu);
}

#[inline(never)]
fn apply_all<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, moves: &Moves) {
    let mut done = Stage::default();
    for stage in moves.stages.iter().copied().chain([moves.whole()]) {
        apply_stage(run, machine, kernel, cpu, moves, done, stage);
        done = stage;
    }
}

/// What lies between two stages of a walk: its cost, then what it sends to other CPUs (`attach_tasks`).
fn apply_stage<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    moves: &Moves,
    from: Stage,
    to: Stage,
) {
    machine.charge_balance(cpu, to.passes - from.passes, to.looked_at - from.looked_at);
    for (task, orig_cpu) in moves.moved.get(from.moved..to.moved).unwrap_or_default() {
        let (pid, prio) = kernel.name_of(*task);
        let dest_cpu = kernel.sched.cpu_of(*task);
        if machine.shares() {
            touch_moved(run, machine, kernel, cpu, *task, [*orig_cpu, dest_cpu]);
        }
        let now = run.now;
        kernel.competitors_changed(*orig_cpu, now);
        kernel.competitors_changed(dest_cpu, now);
        kernel.emit(run, cpu, Kind::Migrate { pid, prio, orig_cpu: *orig_cpu, dest_cpu });
        // Accounting on the source may have found that its running task has used up its slice.
        let resched = kernel.sched.fair.need_resched(*orig_cpu);
        resched_curr(run, machine, kernel, *orig_cpu, resched, cpu);
    }
    for (target, resched) in moves.resched.get(from.resched..to.resched).unwrap_or_default() {
        if *target != cpu || machine.cpus[cpu.index()].activity == Activity::Busy {
            resched_curr(run, machine, kernel, *target, *resched, cpu);
        }
    }
}
