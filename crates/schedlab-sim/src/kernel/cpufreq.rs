//! schedutil, and what a change of frequency does to the CPUs.
//!
//! Follows kernel/sched/cpufreq_schedutil.c and `effective_cpu_util` of 6.12.117, with fast switching and a policy for
//! each CPU:
//!
//! ```text
//! next frequency = min(max, 1.25 * util) * max / 1024
//! ```
//!
//! util is that of the fair class (with `runnable_boost` at least the time that tasks ran or waited) and of the classes
//! above it, scaled by the frequency at which it was measured. The kernel calls the governor when the averages of a
//! queue change; here it is called at each tick and each switch to a task, on the CPU itself. Left out: utilization
//! clamping, the bandwidth of SCHED_DEADLINE, and requests by other CPUs.

use schedlab_model::CpuId;
use schedlab_trace::Sink;

use super::segment::settle;
use super::state::Kernel;
use super::sugov::SCALE;
use crate::machine::Machine;
use crate::run::Run;

/// `sugov_update_single_freq` on the CPU; `iowait`: the task that it switches to comes from a wait for a disk.
#[inline(never)]
pub fn cpufreq_update_util<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    iowait: bool,
) {
    let Some(frequencies) = &machine.frequency else { return };
    let (spec, idle_calls) = (&frequencies.spec, frequencies.idle_calls(cpu));
    let (now, tick, max) = (run.now, kernel.tick_nsec, u64::from(spec.max()));
    let sugov = &mut kernel.sugov[cpu.index()];
    sugov.sugov_iowait_boost(now, tick, iowait);
    sugov.last_update = now;
    if sugov.last_freq_update_time.is_some_and(|last| now - last < spec.rate_limit) {
        return;
    }
    let boost = sugov.sugov_iowait_apply(now, tick);
    let clock = kernel.clock_task(cpu, now);
    let util = kernel.sched.effective_cpu_util(cpu, clock).max(boost);
    let sugov = &mut kernel.sugov[cpu.index()];
    // map_util_perf
    let perf = (util + (util >> 2)).min(SCALE);
    let mut next = ((max * perf / SCALE) as u32).max(spec.min);
    if sugov.sugov_hold_freq(idle_calls) {
        next = next.max(sugov.next_freq);
    }
    if next == sugov.next_freq {
        return;
    }
    (sugov.next_freq, sugov.last_freq_update_time) = (next, Some(now));
    let mut changed = Vec::new();
    machine.request_frequency(cpu, next, now, &mut changed);
    frequency_changed(run, machine, kernel, cpu, changed);
}

/// The rate of these CPUs has changed. The caller computes the new end of what `cpu` itself executes.
pub fn frequency_changed<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    changed: Vec<CpuId>,
) {
    for other in changed {
        let clock = kernel.clock_task(other, run.now);
        kernel.sched.fair.set_cpu_scale(other, SCALE as u32, machine.scale_freq(other), clock);
        if other != cpu {
            settle(run, machine, kernel, other);
        }
    }
}
