//! `resched_curr`: requests a reschedule of a CPU.

use schedlab_model::{rarely, CpuId};
use schedlab_policy::{PreemptModel, Resched};
use schedlab_trace::Sink;

use super::idle::wake_idle_cpu;
use super::state::Kernel;
use crate::machine::{Activity, Machine};
use crate::run::{Run, Source};

/// The origin of a request to reschedule, as far as PREEMPT_AUTO distinguishes it (`enum resched_opt`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReschedOpt {
    /// RESCHED_DEFAULT.
    Default,
    /// The check of a wakeup: a full request there is one by a higher class (RESCHED_PRIORITY).
    Wakeup,
    /// RESCHED_TICK.
    Tick,
}

/// `resched_curr` and `resched_curr_lazy`, called on CPU `from`.
#[inline(always)]
pub fn resched_curr<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    resched: Resched,
    from: CpuId,
) {
    __resched_curr(run, machine, kernel, cpu, resched, ReschedOpt::Default, from);
}

/// `__resched_curr` of PREEMPT_AUTO, whose argument says what requests the reschedule.
#[inline(always)]
pub fn __resched_curr<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    resched: Resched,
    opt: ReschedOpt,
    from: CpuId,
) {
    if resched != Resched::No {
        let resched =
            if rarely(kernel.auto_lazy.is_some()) { resched_opt_translate(kernel, cpu, resched, opt) } else { resched };
        set_need_resched(run, machine, kernel, cpu, resched, from);
    }
}

/// `resched_opt_translate` of PREEMPT_AUTO with policy none or voluntary, for a CPU that is not idle.
#[cold]
fn resched_opt_translate(kernel: &Kernel, cpu: CpuId, resched: Resched, opt: ReschedOpt) -> Resched {
    let by_higher_class = opt == ReschedOpt::Wakeup && resched == Resched::Full;
    let again = opt == ReschedOpt::Tick && kernel.cpus[cpu.index()].need_resched_lazy;
    if again || by_higher_class && kernel.auto_lazy == Some(PreemptModel::AutoVoluntary) {
        Resched::Full
    } else {
        Resched::Lazy
    }
}

#[inline(never)]
fn set_need_resched<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    resched: Resched,
    from: CpuId,
) {
    kernel.trace_run_times(run, from);
    let c = &mut kernel.cpus[cpu.index()];
    // How long the idle task takes to honour a request is not reported.
    if c.curr.is_some() && !c.need_resched && !c.need_resched_lazy {
        let target = &mut machine.cpus[cpu.index()];
        if target.segment.call != 0 {
            target.progress(run.now);
        }
        c.requested = Some((run.now, kernel.points.section(&target.segment)));
    }
    match machine.cpus[cpu.index()].activity {
        Activity::Idle => wake_idle_cpu(run, machine, kernel, cpu, from),
        Activity::Exiting => {}
        Activity::Busy if c.need_resched => {}
        // No interrupt: noticed at the next return to user mode, or made a full request by the next tick.
        Activity::Busy if resched == Resched::Lazy => c.need_resched_lazy = true,
        Activity::Busy => {
            c.need_resched = true;
            if cpu != from {
                let arrival = run.now + machine.ipi_latency(cpu, from);
                run.set_event(kernel.id, Source::Resched, cpu, arrival);
            }
        }
    }
}
