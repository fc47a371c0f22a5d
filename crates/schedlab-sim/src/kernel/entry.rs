//! The end of an interrupt.

use schedlab_model::CpuId;
use schedlab_trace::Sink;

use super::bandwidth::resume_user_mode_work;
use super::segment::settle;
use super::state::Kernel;
use crate::machine::{Machine, Mode};
use crate::run::Run;

/// `irqentry_exit` on a busy CPU: a resched flag set by now is seen.
pub fn irqentry_exit<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    resume_user_mode_work(run, machine, kernel, cpu);
    let in_user = machine.cpus[cpu.index()].segment.mode != Mode::Kernel;
    let c = &mut kernel.cpus[cpu.index()];
    c.resched_seen = c.need_resched || c.need_resched_lazy && in_user && c.curr.is_some();
    settle(run, machine, kernel, cpu);
}
