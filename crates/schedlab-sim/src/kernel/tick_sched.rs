//! The time of a CPU's next tick, and the tick that stops while the CPU is idle.

use schedlab_model::CpuId;
use schedlab_trace::Sink;

use super::clock_event::{expires_next, first_timer_changed, hrtimer_reprogram};
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::{Run, Source};

/// A CPU leaves the idle task: a tick that was stopped starts again, and one that was not keeps its time.
pub fn tick_nohz_idle_exit<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let before = expires_next(run, machine, kernel, cpu);
    start_tick(run, kernel, cpu);
    hrtimer_reprogram(run, machine, kernel, cpu, before);
}

/// The tick of a CPU that becomes idle is stopped.
pub fn tick_nohz_stop_tick<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &Kernel, cpu: CpuId) {
    let before = expires_next(run, machine, kernel, cpu);
    run.cancel(kernel.id, Source::Tick, cpu);
    if first_timer_changed(run, machine, kernel, cpu, before) {
        machine.exit_to_program_before_idle(cpu);
    }
}

/// Starts the next tick after a tick, which may have come late (`hrtimer_forward`).
#[inline]
pub fn start_tick<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId) {
    let (k, tick_nsec) = (&mut kernel.cpus[cpu.index()], kernel.tick_nsec);
    if run.now >= k.next_tick {
        k.next_tick = k.tick_phase + ((run.now - k.tick_phase) / tick_nsec + 1) * tick_nsec;
    }
    run.set_event(kernel.id, Source::Tick, cpu, k.next_tick);
}
