//! When the clock event device of a CPU is programmed (`hrtimer_reprogram`, `hrtimer_force_reprogram`, kernel/time/hrtimer.c).
//!
//! The tick is a timer of the same base as those of tasks and of HRTICK. The device is programmed
//!
//! - when a timer that is started becomes the first to expire, so not for a sleep beyond the next tick;
//! - when the first one is removed, as the tick is when it stops;
//! - once at the end of every interrupt of the device, whatever was started meanwhile.
//!
//! Read in 5.10.223, 6.1.192, 6.12.107, 7.2.13 and 7.3.4 (all Debian). They differ in HRTICK only, see
//! [`program_hrtick`](super::hrtick::program_hrtick). Left out: an interrupt of 7.1 and later that leads to a reschedule programs the
//! device after `__schedule` has started HRTICK; the one that stops the device if no timer is left is one like others; the timers of
//! time slice extensions, of bandwidth control and of deadline tasks program nothing.

use schedlab_model::{CpuId, Nanos};
use schedlab_trace::Sink;

use super::state::Kernel;
use crate::machine::Machine;
use crate::run::{Run, Source};

/// `cpu_base->expires_next`, for CPUs whose programming costs something beside the call: those of a guest. `Nanos::MAX`: no timer.
#[inline]
pub fn expires_next<S: Sink>(run: &Run<S>, machine: &Machine, kernel: &Kernel, cpu: CpuId) -> Nanos {
    if machine.exits.is_none() {
        return Nanos::MAX;
    }
    let scheduler = [Source::Tick, Source::HrTick].into_iter().filter_map(|source| run.due(kernel.id, source, cpu));
    let task = kernel.cpus[cpu.index()].hrtimers.peek().map(|timer| timer.0.hard);
    scheduler.chain(task).min().unwrap_or(Nanos::MAX)
}

/// The timers of a CPU have changed, which were to expire at `before` at first: the device is programmed if that is another time now.
#[inline]
pub fn hrtimer_reprogram<S: Sink>(run: &Run<S>, machine: &mut Machine, kernel: &Kernel, cpu: CpuId, before: Nanos) {
    if machine.exits.is_some() && expires_next(run, machine, kernel, cpu) != before {
        machine.exit_to_program(cpu);
    }
}
