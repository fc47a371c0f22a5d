//! The scheduler tick, and the balancing softirq that it raises.

use schedlab_model::{rarely, CpuId};
use schedlab_trace::Sink;

use super::balance::apply_moves;
use super::contention::charge_group_loads;
use super::cpufreq::cpufreq_update_util;
use super::entry::irqentry_exit;
use super::hrtimer::{__hrtimer_run_queues, run_deferrable_timers};
use super::hrtimer_interrupt::{end_hrtimer_interrupt, hrtimer_interrupt};
use super::idle::{on_idle_tick, wake_idle_cpu};
use super::numa_tick::use_memory_at_tick;
use super::resched::{__resched_curr, ReschedOpt};
use super::state::Kernel;
use super::tick_sched::start_tick;
use crate::machine::{Activity, Machine};
use crate::run::Run;

/// The rest of the tick of a CPU that was idle: `sched_tick` of the idle task does nothing, and the CPU balances as an
/// idle one.
pub fn finish_idle_tick<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    machine.charge_tick(cpu);
    hrtimer_interrupt(run, machine, kernel, cpu);
    run_deferrable_timers(run, machine, kernel, cpu);
    if kernel.sched.balance_due(cpu, kernel.clock(cpu, run.now)) {
        let moves = kernel.sched.sched_balance_domains(cpu, true, kernel.clock(cpu, run.now));
        apply_moves(run, machine, kernel, cpu, &moves);
    }
}

/// The tick (`tick_sched_timer`): the timers that may fire now, `sched_tick`, then the softirqs of deferrable timers
/// and of balancing.
pub fn on_tick<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if machine.has_cpuidle() && machine.cpus[cpu.index()].activity != Activity::Busy {
        start_tick(run, kernel, cpu);
        return on_idle_tick(run, machine, kernel, cpu);
    }
    machine.cpus[cpu.index()].progress(run.now);
    machine.charge_tick(cpu);
    kernel.cpus[cpu.index()].in_hrtirq = true;
    __hrtimer_run_queues(run, machine, kernel, cpu);
    kernel.trace_run_times(run, cpu);
    let c = &mut kernel.cpus[cpu.index()];
    c.clock_read = 0;
    c.longest.forget(run.now);
    // sched_tick first makes a pending lazy request a full one; under PREEMPT_AUTO only one that it makes itself.
    if kernel.auto_lazy.is_none() {
        c.need_resched |= std::mem::take(&mut c.need_resched_lazy);
    }
    let resched = kernel.sched.tick(cpu, kernel.clock_task(cpu, run.now));
    charge_group_loads(run, machine, kernel, cpu);
    if rarely(!kernel.sugov.is_empty()) {
        cpufreq_update_util(run, machine, kernel, cpu, false);
    }
    if rarely(kernel.numa) {
        use_memory_at_tick(run, machine, kernel, cpu);
    }
    __resched_curr(run, machine, kernel, cpu, resched, ReschedOpt::Tick, cpu);
    end_hrtimer_interrupt(machine, kernel, cpu);
    run_deferrable_timers(run, machine, kernel, cpu);
    if kernel.sched.balance_due(cpu, kernel.clock(cpu, run.now)) {
        let moves = kernel.sched.sched_balance_domains(cpu, false, kernel.clock(cpu, run.now));
        apply_moves(run, machine, kernel, cpu, &moves);
    }
    if let Some(idle) = kernel.sched.nohz_balancer_kick(cpu, kernel.clock(cpu, run.now)) {
        kernel.cpus[idle.index()].nohz_kicked = true;
        wake_idle_cpu(run, machine, kernel, idle, cpu);
    }
    start_tick(run, kernel, cpu);
    irqentry_exit(run, machine, kernel, cpu);
}
