//! TLB flushes: a CPU that has unmapped pages interrupts the other CPUs that run tasks of the process, flushes its own
//! TLB meanwhile, and waits for them.
//!
//! Follows flush_tlb_mm_range and native_flush_tlb_multi (arch/x86/mm/tlb.c), smp_call_function_many_cond
//! (kernel/smp.c), and in guests kvm_flush_tlb_multi and kvm_smp_send_call_func_ipi (arch/x86/kernel/kvm.c) of
//! 6.12.117. Machines whose TLBs are flushed by hardware broadcasts (arm64, POWER, s390) state no cost and have no
//! shootdowns. Left out: broadcasts by INVLPGB (AMD, from 6.15 on); that a CPU has interrupts disabled while it flushes
//! its own TLB; and CPUs that are idle with the page tables still loaded, which are interrupted if tables are freed.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_trace::Sink;

use super::entry::irqentry_exit;
use super::state::Kernel;
use crate::machine::{Activity, Machine, Mode, WORK_SHIFT};
use crate::run::{Run, Source};

/// Work that no run ends.
const FOREVER: u64 = 1 << 60;

/// `flush_tlb_mm_range` on the CPU of the task: the time of its own flush, or `None` if it waits for other CPUs, with
/// preemption disabled, until they and itself have flushed.
pub fn flush_tlb_mm_range<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
) -> Option<Nanos> {
    let targets = flush_tlb_multi(kernel, cpu, kernel.tasks[task.index()].process);
    let own = machine.tlb_flush(cpu);
    if targets.is_empty() {
        return Some(own);
    }
    kernel.cpus[cpu.index()].flush.waits = targets.len() as u32;
    kernel.cpus[cpu.index()].flush.until = run.now + own;
    smp_call_function_many_cond(run, machine, kernel, cpu, &targets);
    spin(machine, kernel, cpu);
    None
}

/// The CPUs that are interrupted: those that run a task of the process. In a guest with deferred flushes not those
/// whose vCPU does not run (`kvm_flush_tlb_multi`).
fn flush_tlb_multi(kernel: &mut Kernel, cpu: CpuId, process: u32) -> Vec<CpuId> {
    let mut targets = Vec::new();
    for other in (0..kernel.cpus.len() as u32).map(CpuId).filter(|other| *other != cpu) {
        let c = &mut kernel.cpus[other.index()];
        if c.curr.is_none() || c.process != process {
            continue;
        }
        if kernel.pv_calls.tlb_flush && kernel.sched.vcpu_is_preempted(other) {
            c.flush.on_enter = true;
        } else {
            targets.push(other);
        }
    }
    targets
}

/// `smp_call_function_many_cond`: a CPU whose queue is not empty has its interrupt already.
fn smp_call_function_many_cond<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    targets: &[CpuId],
) {
    let mut interrupted = Vec::new();
    for target in targets {
        let senders = &mut kernel.cpus[target.index()].flush.senders;
        if senders.is_empty() {
            interrupted.push(*target);
        }
        senders.push(cpu);
    }
    let many = interrupted.len() > 1;
    let one_call = many && kernel.pv_calls.send_ipi;
    if one_call {
        machine.charge_hypercalls(cpu, 1);
    }
    for target in &interrupted {
        let flight = if one_call { machine.ipi_flight(*target, cpu) } else { machine.ipi_latency(*target, cpu) };
        machine.cpus[target.index()].woken_from = cpu;
        run.set_event(kernel.id, Source::Flush, *target, run.now + flight);
    }
    if many && kernel.pv_calls.sched_yield {
        kvm_smp_send_call_func_ipi(run, machine, kernel, cpu, &interrupted);
    }
}

/// Yields to the first target whose vCPU does not run.
fn kvm_smp_send_call_func_ipi<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    targets: &[CpuId],
) {
    let waits = |target: &CpuId| {
        let busy = kernel.cpus[target.index()].curr.is_some() || !kernel.pv_calls.yields_to_busy;
        busy && kernel.sched.vcpu_is_preempted(*target)
    };
    if let Some(target) = targets.iter().copied().find(waits) {
        machine.charge_hypercalls(cpu, 1);
        kernel.cpus[cpu.index()].flush.yields_to = Some(target);
        run.touch(kernel.id, cpu);
    }
}

/// The waiting CPU checks again (`csd_lock_wait`). True: it continues to wait.
pub fn csd_lock_wait<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) -> bool {
    let segment = &mut machine.cpus[cpu.index()].segment;
    let k = &mut kernel.cpus[cpu.index()];
    if segment.work_left > 0 {
        return true;
    }
    if !k.flush.waits() {
        segment.mode = Mode::Kernel;
        return false;
    }
    if k.ple_window > 0 {
        k.pause_loop = true;
        run.touch(kernel.id, cpu);
    }
    spin(machine, kernel, cpu);
    true
}

/// Spins until all have flushed, or until a loop of PAUSE has lasted for `ple_window`.
fn spin(machine: &mut Machine, kernel: &Kernel, cpu: CpuId) {
    let segment = &mut machine.cpus[cpu.index()].segment;
    let window = kernel.cpus[cpu.index()].ple_window;
    // The check points of the munmap are over.
    (segment.every, segment.every_before) = (0, 0);
    (segment.mode, segment.work_left) = (Mode::LockSpin, if window > 0 { window << WORK_SHIFT } else { FOREVER });
}

/// `flush_tlb_func` of every sender, in the interrupt.
pub fn on_flush_ipi<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let senders = std::mem::take(&mut kernel.cpus[cpu.index()].flush.senders);
    let busy = machine.cpus[cpu.index()].activity == Activity::Busy;
    let mut work = 0;
    for _ in &senders {
        work += machine.tlb_flush(cpu);
    }
    let done = if busy {
        machine.cpus[cpu.index()].progress(run.now);
        machine.charge_ipi(cpu);
        machine.charge(cpu, work);
        run.now + machine.sending_delay(cpu)
    } else {
        // It is idle by now: the interrupt does not end its idle loop.
        run.now + machine.irq_time(cpu) + work
    };
    for sender in senders {
        acknowledge(run, machine, kernel, sender, done);
    }
    if busy {
        irqentry_exit(run, machine, kernel, cpu);
    }
}

/// A CPU has flushed, or will have by `done`. After the last one the sender continues.
fn acknowledge<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, sender: CpuId, done: Nanos) {
    let flush = &mut kernel.cpus[sender.index()].flush;
    flush.waits = flush.waits.saturating_sub(1);
    flush.until = flush.until.max(done);
    if flush.waits > 0 {
        return;
    }
    let left = flush.until - run.now;
    let c = &mut machine.cpus[sender.index()];
    c.progress(run.now);
    // Its CPU may not be executing: it checks when it does.
    c.segment.work_left = left * u64::from(c.rate);
    if let Some(end) = c.wall(c.segment.cost_left + c.segment.work_left) {
        run.set_event(kernel.id, Source::Segment, sender, run.now + end);
    }
}
