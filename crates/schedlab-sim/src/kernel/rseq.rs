//! Time slice extensions of restartable sequences (kernel/rseq.c, include/linux/rseq_entry.h and kernel/entry/common.c,
//! 7.0).
//!
//! A task requests an extension before a critical section in user space. If a reschedule is pending when an interrupt
//! or a page fault returns to user mode, it is then delayed once. The extension ends with rseq_slice_yield() at the end
//! of the section, with any other system call, with another request to reschedule, or when its time is over; each of
//! these leads to `__schedule`. A task that is switched out loses its request: the rest of its critical section has no
//! extension.
//!
//! Left out: other work that is pending at the return to user mode (signals, a throttled group), which denies an
//! extension; the cost of the stores in user space; the interrupt of a timer whose extension a switch has ended.

use schedlab_model::CpuId;
use schedlab_trace::{Extension, Kind, Sink};

use super::percpu::SliceCtrl;
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::{Run, Source};

/// `rseq_grant_slice_extension`, when an interrupt or a fault is about to return to user mode with a resched flag set.
#[inline(always)]
pub fn rseq_grant_slice_extension<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if kernel.cpus[cpu.index()].slice_ctrl != SliceCtrl::default() {
        decide(run, machine, kernel, cpu);
    }
}

#[cold]
fn decide<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let k = &mut kernel.cpus[cpu.index()];
    let denied = k.need_resched && !kernel.extends_full_requests;
    if k.slice_ctrl.granted || denied {
        return end(run, kernel, cpu, Extension::Revoked);
    }
    // It is about to call __schedule already.
    if k.schedule_paid.is_some() || k.marked || !(k.need_resched || k.need_resched_lazy) {
        return;
    }
    (k.need_resched, k.need_resched_lazy, k.resched_seen) = (false, false, false);
    k.slice_ctrl = SliceCtrl { request: false, granted: true };
    note(run, kernel, cpu, Extension::Granted);
    charge_timer(machine, kernel, cpu);
    let expires = run.now + machine.sending_delay(cpu) + kernel.slice_extension;
    run.set_event(kernel.id, Source::SliceTimer, cpu, expires);
}

/// The time of an extension is over: a full request.
pub fn expire<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId) {
    end(run, kernel, cpu, Extension::Expired);
    kernel.cpus[cpu.index()].need_resched = true;
}

/// `rseq_syscall_enter_work`: a system call ends an extension, and the kernel reschedules before it carries out the
/// call.
#[cold]
pub fn rseq_syscall_enter_work<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    what: Extension,
) {
    charge_timer(machine, kernel, cpu);
    end(run, kernel, cpu, what);
    let k = &mut kernel.cpus[cpu.index()];
    (k.need_resched, k.resched_seen) = (true, true);
}

/// The current task is switched out: its request and its extension are cleared.
#[inline(never)]
pub fn rseq_sched_switch_event<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId) {
    if kernel.cpus[cpu.index()].slice_ctrl.granted {
        end(run, kernel, cpu, Extension::Revoked);
    }
    kernel.cpus[cpu.index()].slice_ctrl = SliceCtrl::default();
}

fn end<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId, how: Extension) {
    if std::mem::take(&mut kernel.cpus[cpu.index()].slice_ctrl).granted {
        run.cancel(kernel.id, Source::SliceTimer, cpu);
        note(run, kernel, cpu, how);
    }
}

fn note<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId, what: Extension) {
    let Some(task) = kernel.cpus[cpu.index()].curr else { return };
    let pid = kernel.tasks[task.index()].pid;
    kernel.emit(run, cpu, Kind::Extension { pid, what });
}

/// The extension's timer is started or cancelled.
fn charge_timer(machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if let Some(task) = kernel.cpus[cpu.index()].curr {
        let cost = machine.costs.timer_program.draw(&mut kernel.tasks[task.index()].dice);
        machine.charge(cpu, cost);
    }
}
