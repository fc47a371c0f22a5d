//! The timers of the scheduling classes.

use schedlab_policy::procedure::Timer;
use schedlab_trace::Sink;

use super::effects::program;
use super::entry::irqentry_exit;
use super::resched::resched_curr;
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::Run;

/// `sched_rt_period_timer`, `dl_server_timer`.
pub fn on_class_timer<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel) {
    let moves = kernel.sched.timer_expired(run.now);
    for (cpu, resched) in &moves.resched {
        machine.cpus[cpu.index()].progress(run.now);
        resched_curr(run, machine, kernel, *cpu, *resched, *cpu);
        irqentry_exit(run, machine, kernel, *cpu);
    }
    let next = kernel.sched.next_timer();
    program(run, machine, kernel, Timer::Classes(next));
}
