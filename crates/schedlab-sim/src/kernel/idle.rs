//! Into an idle state and out of it.

use std::cmp::Reverse;

use schedlab_model::{CpuId, Nanos};
use schedlab_trace::Sink;

use super::segment::core_changed;
use super::state::Kernel;
use crate::machine::{Activity, Machine};
use crate::run::{Run, Source};

/// The idle task was picked: the tick stops, and the CPU enters an idle state.
#[inline(never)]
pub fn switch_to_idle<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    run.cancel(kernel.id, Source::Tick, cpu);
    machine.charge_switch_to_idle(cpu);
    enter_idle_state(run, machine, kernel, cpu);
    core_changed(run, machine, kernel, cpu, false);
}

/// `cpuidle_idle_call`: the governor expects to be woken by the CPU's next timer at the latest.
pub fn enter_idle_state<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &Kernel, cpu: CpuId) {
    let next = kernel.cpus[cpu.index()].hrtimers.peek();
    let until_timer = next.map_or(Nanos::MAX, |Reverse(timer)| timer.hard.saturating_sub(run.now));
    machine.enter_idle_state(cpu, run.now, until_timer);
    plan_halt(run, machine, kernel, cpu);
}

/// The CPU of a guest halts once it has entered its idle state.
#[inline(always)]
pub fn plan_halt<S: Sink>(run: &mut Run<S>, machine: &Machine, kernel: &Kernel, cpu: CpuId) {
    if machine.exits.is_some() {
        let c = &machine.cpus[cpu.index()];
        if c.rate > 0 {
            run.set_event(kernel.id, Source::Halt, cpu, c.idle_from.max(run.now));
        }
    }
}

/// Wakes an idle CPU so that it looks at its runqueue: by an interrupt, or by the flag that it polls.
pub fn wake_idle_cpu<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &Kernel, cpu: CpuId, from: CpuId) {
    if machine.cpus[cpu.index()].activity != Activity::Idle {
        return;
    }
    let latency = match (cpu == from, machine.polls(cpu)) {
        (true, _) => 0,
        // The store that it polls comes as late as an interrupt would be sent.
        (false, true) => machine.sending_delay(from),
        (false, false) => machine.ipi_latency(cpu, from),
    };
    machine.cpus[cpu.index()].woken_from = from;
    leave_idle_state(run, machine, kernel, cpu, latency);
}

/// An interrupt reaches an idle CPU after `latency`: it starts to leave its idle state.
pub fn leave_idle_state<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &Kernel, cpu: CpuId, latency: Nanos) {
    if machine.exits.is_some() {
        run.cancel(kernel.id, Source::Halt, cpu);
    }
    let due = machine.leave_idle_state(cpu, run.now, latency);
    run.set_event(kernel.id, Source::IdleExit, cpu, due);
}
