//! Interrupts other than the tick: timers, inter-processor interrupts, the end of an idle state.

use schedlab_model::{rarely, CpuId};
use schedlab_trace::Sink;

use super::balance::apply_moves;
use super::entry::irqentry_exit;
use super::hrtimer::{__hrtimer_run_queues, run_deferrable_timers};
use super::hrtimer_interrupt::hrtimer_interrupt;
use super::idle::{enter_idle_state, wake_idle_cpu};
use super::percpu::WakesVcpus;
use super::rseq::expire;
use super::segment::mark_in;
use super::speed::hold_interrupt;
use super::state::Kernel;
use super::tick::finish_idle_tick;
use super::wake::sched_ttwu_pending;
use crate::machine::{Activity, Machine};
use crate::run::{Run, Source};

/// `hrtimer_interrupt`; an idle CPU has to leave its idle state first.
pub fn on_hrtimer<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    match machine.cpus[cpu.index()].activity {
        Activity::Idle => wake_idle_cpu(run, machine, kernel, cpu, cpu),
        Activity::Exiting => {}
        Activity::Busy => {
            machine.cpus[cpu.index()].progress(run.now);
            machine.charge_irq(cpu);
            hrtimer_interrupt(run, machine, kernel, cpu);
            irqentry_exit(run, machine, kernel, cpu);
        }
    }
}

/// `rseq_slice_expired` (kernel/rseq.c, 7.0): the timer of a time slice extension.
pub fn rseq_slice_expired<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if machine.cpus[cpu.index()].activity == Activity::Busy && kernel.cpus[cpu.index()].slice_ctrl.granted {
        machine.cpus[cpu.index()].progress(run.now);
        machine.charge_irq(cpu);
        expire(run, kernel, cpu);
        irqentry_exit(run, machine, kernel, cpu);
    }
}

/// The interrupt to reschedule (`sysvec_reschedule_ipi`).
pub fn on_resched_ipi<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let c = &mut machine.cpus[cpu.index()];
    if c.activity == Activity::Busy {
        c.progress(run.now);
        machine.charge_ipi(cpu);
        irqentry_exit(run, machine, kernel, cpu);
    }
}

/// The wakelist's interrupt (`sched_ttwu_pending`).
pub fn on_call_ipi<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    match machine.cpus[cpu.index()].activity {
        Activity::Idle => wake_idle_cpu(run, machine, kernel, cpu, cpu),
        Activity::Exiting => {}
        Activity::Busy => {
            machine.cpus[cpu.index()].progress(run.now);
            machine.charge_ipi(cpu);
            if !lists_its_own(kernel, cpu) {
                sched_ttwu_pending(run, machine, kernel, cpu);
            }
            irqentry_exit(run, machine, kernel, cpu);
        }
    }
}

/// Whether the wakelist holds the task that the CPU is about to switch away from (WF_ON_CPU). `__schedule` runs with
/// interrupts disabled, so the list is processed after the switch.
#[inline]
fn lists_its_own(kernel: &Kernel, cpu: CpuId) -> bool {
    let k = &kernel.cpus[cpu.index()];
    let own = |task| kernel.sched.wakelist(cpu).iter().any(|(woken, _)| *woken == task);
    k.leaving_for.is_some() && k.curr.is_some_and(own)
}

/// A device's interrupt: whether the CPU handles it now. An idle CPU has to leave its idle state first, and handles it
/// then.
pub fn device_interrupt<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) -> bool {
    match machine.cpus[cpu.index()].activity {
        Activity::Idle => wake_idle_cpu(run, machine, kernel, cpu, cpu),
        Activity::Exiting => {}
        Activity::Busy => machine.cpus[cpu.index()].progress(run.now),
    }
    machine.cpus[cpu.index()].activity == Activity::Busy
}

/// An idle CPU executes again; `devices` handles their interrupts.
pub fn on_idle_exit<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    devices: impl FnOnce(&mut Run<S>, &mut Machine, &mut Kernel),
) {
    machine.cpus[cpu.index()].progress(run.now);
    machine.idle_exited(cpu, run.now);
    sched_ttwu_pending(run, machine, kernel, cpu);
    devices(run, machine, kernel);
    let k = &kernel.cpus[cpu.index()];
    let (idle_tick, nohz_kicked) = (k.idle_tick, k.nohz_kicked);
    if k.hrtimers.peek().is_some_and(|timer| timer.0.hard <= run.now) {
        machine.charge_irq(cpu);
        // Up to 6.8 an idle CPU without a tick programs it for the timers of the wheel (`tick_nohz_stop_tick`), and
        // that tick expires those that are deferrable, too (`run_timer_softirq`). Migration of such timers (6.9) is
        // left out.
        let wheel = match idle_tick {
            // The tick is due, too: `finish_idle_tick` ends the interrupt.
            true => {
                kernel.cpus[cpu.index()].in_hrtirq = true;
                __hrtimer_run_queues(run, machine, kernel, cpu)
            }
            false => hrtimer_interrupt(run, machine, kernel, cpu),
        };
        if wheel {
            run_deferrable_timers(run, machine, kernel, cpu);
        }
    }
    if rarely(idle_tick | nohz_kicked | (kernel.cpus[cpu.index()].wakes_vcpus == WakesVcpus::Pending)) {
        finish_idle_exit(run, machine, kernel, cpu);
    }
    if kernel.sched.nr_running(cpu) == 0 && kernel.sched.wakelist(cpu).is_empty() {
        return enter_idle_state(run, machine, kernel, cpu);
    }
    let (c, k) = (&mut machine.cpus[cpu.index()], &mut kernel.cpus[cpu.index()]);
    // Interrupt, wakeups and the pick come before the switch, as on a busy CPU.
    if k.schedule_paid.is_none() {
        let cost = machine.costs.schedule.draw_any(&mut c.dice);
        c.pending += cost;
        k.schedule_paid = Some(cost);
    }
    match c.spend_pending() {
        Some(0) => mark_in(run, kernel.id, cpu, k),
        Some(overhead) => run.set_event(kernel.id, Source::IdleExit, cpu, run.now + overhead),
        None => hold_interrupt(run, kernel, Source::IdleExit, cpu),
    }
}

/// Handles the other reasons for the wakeup: vCPUs to wake, the tick, nohz idle balancing.
#[inline(never)]
fn finish_idle_exit<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let k = &mut kernel.cpus[cpu.index()];
    let (nohz_kicked, idle_tick) = (std::mem::take(&mut k.nohz_kicked), std::mem::take(&mut k.idle_tick));
    if k.wakes_vcpus == WakesVcpus::Pending {
        machine.charge_irq(cpu);
        k.wakes_vcpus = WakesVcpus::Handled;
        run.touch(kernel.id, cpu);
    }
    if idle_tick {
        finish_idle_tick(run, machine, kernel, cpu);
    }
    if nohz_kicked {
        let moves = kernel.sched.nohz_idle_balance(cpu, kernel.clock(cpu, run.now));
        apply_moves(run, machine, kernel, cpu, &moves);
    }
}
