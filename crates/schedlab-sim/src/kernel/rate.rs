//! CPUs whose rate depends on others: the threads of a core, and CPUs that wait for memory. A new rate moves the end of
//! what they execute.

use schedlab_model::{rarely, CpuId, TaskId};
use schedlab_trace::Sink;

use super::cpufreq::frequency_changed;
use super::segment::settle;
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::Run;

/// The task on the CPU waits for memory from now on: for that of the node on which it first waited.
pub fn begin_stream<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, task: TaskId) {
    let home = *kernel.tasks[task.index()].memory_home.get_or_insert(cpu);
    if machine.begin_stream(cpu, home) {
        share_memory(run, machine, kernel, cpu);
    }
}

/// The task on the CPU no longer waits for memory.
pub fn end_stream<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if machine.end_stream(cpu) {
        share_memory(run, machine, kernel, cpu);
    }
}

/// Divides the bandwidth anew. The caller computes the new end of what `cpu` itself executes.
#[inline(never)]
pub fn share_memory<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let mut changed = Vec::new();
    machine.share_memory(run.now, &mut changed);
    for other in changed.into_iter().filter(|changed| *changed != cpu) {
        settle(run, machine, kernel, other);
    }
}

/// The CPU became busy or idle, which changes the rate of its core's other threads, too.
#[inline(always)]
pub fn core_changed<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, busy: bool) {
    if !machine.has_linked_rates() {
        return;
    }
    if machine.core_changed(cpu, busy, run.now) {
        settle_others(run, machine, kernel, cpu);
        if machine.waits_for_memory() {
            share_memory(run, machine, kernel, cpu);
        }
    }
    if rarely(machine.frequency.is_some()) {
        let mut changed = Vec::new();
        machine.core_frequency(cpu, busy, run.now, &mut changed);
        frequency_changed(run, machine, kernel, cpu, changed);
    }
}

#[inline(never)]
fn settle_others<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    for thread in 0..machine.threads_of(cpu).len() {
        let thread = machine.threads_of(cpu)[thread];
        if thread != cpu {
            settle(run, machine, kernel, thread);
        }
    }
}
