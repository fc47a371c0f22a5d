//! The entry into an idle state and the exit from it.

use std::cmp::Reverse;

use schedlab_model::{CpuId, Nanos};
use schedlab_trace::Sink;

use super::rate::core_changed;
use super::state::Kernel;
use super::tick_sched::tick_nohz_stop_tick;
use crate::machine::{Activity, Machine};
use crate::run::{Run, Source};

/// The idle task was picked: the CPU enters an idle state. The tick stops, unless a governor decides about it.
#[inline(never)]
pub fn switch_to_idle<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if !machine.has_cpuidle() {
        tick_nohz_stop_tick(run, machine, kernel, cpu);
    }
    machine.charge_switch_to_idle(cpu);
    enter_idle_state(run, machine, kernel, cpu);
    core_changed(run, machine, kernel, cpu, false);
}

/// Enters the idle state that the governor selects (`cpuidle_idle_call`), which expects to be woken by the CPU's next
/// timer at the latest.
pub fn enter_idle_state<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &Kernel, cpu: CpuId) {
    let next = kernel.cpus[cpu.index()].hrtimers.peek();
    if machine.has_cpuidle() {
        let timer = next.map(|Reverse(timer)| timer.hard.saturating_sub(run.now));
        return cpuidle_idle_call(run, machine, kernel, cpu, timer);
    }
    let until_timer = next.map_or(Nanos::MAX, |Reverse(timer)| timer.hard.saturating_sub(run.now));
    machine.enter_idle_state(cpu, run.now, until_timer);
    plan_halt(run, machine, kernel, cpu);
}

/// The governor chooses a state and decides about the tick (`idle_call_stop_or_retain_tick`); a tick that has stopped
/// stays so until the CPU is busy.
fn cpuidle_idle_call<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &Kernel,
    cpu: CpuId,
    timer: Option<Nanos>,
) {
    let tick = run.due(kernel.id, Source::Tick, cpu).map(|due| due.saturating_sub(run.now));
    let entered = machine.cpuidle_select(cpu, run.now, timer, tick);
    if entered.stops_tick {
        tick_nohz_stop_tick(run, machine, kernel, cpu);
    }
    match entered.polls_until {
        Some(until) => run.set_event(kernel.id, Source::PollLimit, cpu, until),
        None => {
            run.cancel(kernel.id, Source::PollLimit, cpu);
            plan_halt(run, machine, kernel, cpu);
        }
    }
}

/// An idle CPU has polled for as long as it may: it chooses a state anew.
pub fn on_poll_limit<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let c = &machine.cpus[cpu.index()];
    // A vCPU that is off its host's CPUs reads the clock when it is back.
    if c.activity == Activity::Idle && c.rate > 0 {
        machine.polled_to_the_limit(cpu, run.now);
        enter_idle_state(run, machine, kernel, cpu);
    }
}

/// The tick of an idle CPU that did not stop it wakes the CPU; the rest of it follows when the CPU executes again.
pub fn on_idle_tick<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    kernel.cpus[cpu.index()].idle_tick = true;
    if machine.cpus[cpu.index()].activity == Activity::Idle {
        machine.idle_tick(cpu);
        wake_idle_cpu(run, machine, kernel, cpu, cpu);
    }
}

/// The CPU of a guest that polls is executed again: it polls up to its limit.
pub fn resume_poll<S: Sink>(run: &mut Run<S>, machine: &Machine, kernel: &Kernel, cpu: CpuId) {
    if let Some(until) = machine.polls_until(cpu) {
        run.set_event(kernel.id, Source::PollLimit, cpu, until.max(run.now));
    }
}

/// The CPU of a guest halts once it has entered its idle state, unless that is the one that polls.
#[inline(always)]
pub fn plan_halt<S: Sink>(run: &mut Run<S>, machine: &Machine, kernel: &Kernel, cpu: CpuId) {
    if machine.exits.is_some() {
        let c = &machine.cpus[cpu.index()];
        if c.rate > 0 && !machine.polls(cpu) {
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
    if machine.has_cpuidle() {
        run.cancel(kernel.id, Source::PollLimit, cpu);
    }
    let due = machine.leave_idle_state(cpu, run.now, latency);
    run.set_event(kernel.id, Source::IdleExit, cpu, due);
}
