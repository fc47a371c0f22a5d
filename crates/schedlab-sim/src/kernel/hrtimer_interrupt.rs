//! The interrupt of a CPU's clock event device (`hrtimer_interrupt`, kernel/time/hrtimer.c).

use schedlab_model::CpuId;
use schedlab_trace::Sink;

use super::hrtimer::__hrtimer_run_queues;
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::Run;

/// `hrtimer_interrupt`: runs the timers that are due and programs the device at the end. Returns whether timers of the
/// wheel were among them.
pub fn hrtimer_interrupt<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) -> bool {
    kernel.cpus[cpu.index()].in_hrtirq = true;
    let wheel = __hrtimer_run_queues(run, machine, kernel, cpu);
    end_hrtimer_interrupt(machine, kernel, cpu);
    wheel
}

/// The end of [`hrtimer_interrupt`] where the tick is among the timers that are due.
#[inline]
pub fn end_hrtimer_interrupt(machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    kernel.cpus[cpu.index()].in_hrtirq = false;
    machine.exit_to_program(cpu);
}
