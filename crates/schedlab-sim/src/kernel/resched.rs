//! `resched_curr`: a CPU is asked to reschedule.

use schedlab_model::CpuId;
use schedlab_policy::Resched;
use schedlab_trace::Sink;

use super::idle::wake_idle_cpu;
use super::state::Kernel;
use crate::machine::{Activity, Machine};
use crate::run::{Run, Source};

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
    if resched != Resched::No {
        set_need_resched(run, machine, kernel, cpu, resched, from);
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
