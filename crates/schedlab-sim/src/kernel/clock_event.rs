//! When the clock event device of a CPU is programmed (`hrtimer_reprogram`, `hrtimer_force_reprogram`,
//! kernel/time/hrtimer.c).
//!
//! The tick is a timer of the same base as those of tasks and of HRTICK. The device is programmed
//!
//! - when a timer that is started becomes the first to expire, so not for a sleep beyond the next tick;
//! - when the first one is removed, as the tick is when it stops;
//! - once at the end of every interrupt of the device, whatever was started meanwhile.
//!
//! Read in 5.10.223, 6.1.192, 6.12.107, 7.2.13 and 7.3.4 (all Debian), which differ in HRTICK only, see
//! [`program_hrtick`](super::hrtick::program_hrtick). Left out: from 7.1 on, an interrupt that leads to a reschedule
//! programs the device only after `__schedule` has started HRTICK; where no timer is left, the interrupt stops the
//! device, which costs as much as to program it here; the timers of time slice extensions, bandwidth control and
//! deadline tasks program nothing.

use schedlab_model::{CpuId, Nanos};
use schedlab_trace::Sink;

use super::state::Kernel;
use crate::machine::Machine;
use crate::run::{Run, Source};

/// `cpu_base->expires_next` of a vCPU, in ns. `Nanos::MAX`: no timer is pending, or the CPU is not one of a guest with
/// exits: programming its device then costs nothing more than the call.
#[inline]
pub fn expires_next<S: Sink>(run: &Run<S>, machine: &Machine, kernel: &Kernel, cpu: CpuId) -> Nanos {
    if machine.exits.is_none() {
        return Nanos::MAX;
    }
    let scheduler = [Source::Tick, Source::HrTick].into_iter().filter_map(|source| run.due(kernel.id, source, cpu));
    let task = kernel.cpus[cpu.index()].hrtimers.peek().map(|timer| timer.0.hard);
    scheduler.chain(task).min().unwrap_or(Nanos::MAX)
}

/// Programs the device of a CPU whose timers have changed, if the first of them no longer expires at `before`. The
/// handler of its interrupt does so at its end instead.
#[inline]
pub fn hrtimer_reprogram<S: Sink>(run: &Run<S>, machine: &mut Machine, kernel: &Kernel, cpu: CpuId, before: Nanos) {
    if machine.exits.is_some()
        && !kernel.cpus[cpu.index()].in_hrtirq
        && first_timer_changed(run, machine, kernel, cpu, before)
    {
        machine.exit_to_program(cpu);
    }
}

/// Whether the first timer of the CPU no longer expires at `before`.
#[inline]
pub fn first_timer_changed<S: Sink>(
    run: &Run<S>,
    machine: &Machine,
    kernel: &Kernel,
    cpu: CpuId,
    before: Nanos,
) -> bool {
    expires_next(run, machine, kernel, cpu) != before
}
