//! The time of a CPU's next tick.

use schedlab_model::CpuId;
use schedlab_trace::Sink;

use super::state::Kernel;
use crate::run::{Run, Source};

/// Programs the next tick of a CPU: of one that has just become busy (NO_HZ idle: none before), or after a tick, which may
/// have come late (`hrtimer_forward`).
#[inline]
pub fn start_tick<S: Sink>(run: &mut Run<S>, kernel: &Kernel, cpu: CpuId) {
    let phase = kernel.cpus[cpu.index()].tick_phase;
    let since = run.now.saturating_sub(phase);
    let next = if run.now < phase { phase } else { phase + (since / kernel.tick_nsec + 1) * kernel.tick_nsec };
    run.set_event(kernel.id, Source::Tick, cpu, next);
}
