//! The timers of the scheduling classes: of the real-time class's periods, of deadline tasks.

use schedlab_policy::procedure::Timer;
use schedlab_policy::Moves;
use schedlab_trace::Sink;

use super::balance::apply_moves;
use super::effects::program;
use super::entry::irqentry_exit;
use super::resched::resched_curr;
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::Run;

/// The timers of the classes (`sched_rt_period_timer`, `dl_server_timer`, `dl_task_timer`, `inactive_task_timer`).
pub fn on_class_timer<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel) {
    let moves = kernel.sched.timer_expired(run.now);
    for (task, from) in &moves.moved {
        let pushed = Moves { moved: vec![(*task, *from)], ..Moves::default() };
        apply_moves(run, machine, kernel, *from, &pushed);
    }
    for (cpu, resched) in &moves.resched {
        machine.cpus[cpu.index()].progress(run.now);
        resched_curr(run, machine, kernel, *cpu, *resched, *cpu);
        irqentry_exit(run, machine, kernel, *cpu);
    }
    let next = kernel.sched.next_timer();
    program(run, machine, kernel, Timer::Classes(next));
}
