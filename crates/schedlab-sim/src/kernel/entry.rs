//! The end of an interrupt, and interrupts that are disabled.

use schedlab_model::CpuId;
use schedlab_trace::Sink;

use super::bandwidth::resume_user_mode_work;
use super::rseq::rseq_grant_slice_extension;
use super::segment::settle;
use super::speed::release_interrupts;
use super::state::Kernel;
use crate::machine::{Activity, Machine, Mode};
use crate::run::Run;

/// `irqentry_exit` on a busy CPU: a resched flag set by now is seen.
pub fn irqentry_exit<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    resume_user_mode_work(run, machine, kernel, cpu);
    let in_user = !machine.cpus[cpu.index()].segment.mode.is_kernel();
    let c = &mut kernel.cpus[cpu.index()];
    c.resched_seen = c.need_resched || c.need_resched_lazy && in_user && c.curr.is_some();
    if c.resched_seen && in_user {
        rseq_grant_slice_extension(run, machine, kernel, cpu);
    }
    settle(run, machine, kernel, cpu);
}

/// `local_irq_disable`: interrupts that reach the CPU wait.
pub fn local_irq_disable(kernel: &mut Kernel) {
    kernel.irqs_off += 1;
}

/// `local_irq_enable`: what has come meanwhile is handled now.
pub fn local_irq_enable<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId) {
    kernel.irqs_off -= 1;
    release_interrupts(run, kernel, cpu);
}

/// Whether the CPU executes with interrupts disabled.
#[cold]
pub fn irqs_disabled(machine: &Machine, cpu: CpuId) -> bool {
    let c = &machine.cpus[cpu.index()];
    c.activity == Activity::Busy && c.segment.mode == Mode::IrqOff
}
