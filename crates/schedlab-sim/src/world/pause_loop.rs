//! Pause-loop exits: a vCPU that spins for a spinlock of its kernel leaves the guest and yields to another vCPU of it.
//!
//! Follows handle_pause and grow_ple_window (arch/x86/kvm/vmx/vmx.c), kvm_vcpu_on_spin and yield_to of 6.12.117. Left
//! out: AMD's count of PAUSE instructions.

use schedlab_model::Nanos;
use schedlab_policy::Resched;
use schedlab_trace::Sink;

use super::system::System;
use super::vcpu::{Asked, Thread};
use super::virtual_systems::VirtualSystems;
use crate::kernel;
use crate::machine::Exit;
use crate::run::Run;

/// Attempts to yield that fail before the vCPU goes on (`try` in kvm_vcpu_on_spin).
const TRIES: u32 = 3;
/// `ple_window_grow`.
const GROW: Nanos = 2;
/// The ratio of the longest window to the first: UINT_MAX cycles over KVM_VMX_DEFAULT_PLE_WINDOW (4,096).
const LONGEST: Nanos = u32::MAX as Nanos / 4096;

impl VirtualSystems {
    /// The vCPU leaves the guest, and the guest's window grows until the thread of the vCPU is next put on a CPU.
    pub(super) fn exit_for_pause<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize) {
        let v = &self.vcpus[vcpu];
        let (vm, host, own, cpu) = (v.vm, v.host, v.cpu, v.host_cpu);
        let k = &mut self.systems[vm + 1].kernel.cpus[own.index()];
        k.pause_loop = false;
        k.ple_window = (k.ple_window * GROW).min(self.rules[vm].ple_window * LONGEST);
        self.leave_guest(run, vcpu);
        self.count_exit(vcpu, Exit::Pause);
        let yields = self.kvm_vcpu_on_spin(run, vcpu);
        let System { machine, kernel, .. } = &mut self.systems[host];
        machine.cpus[cpu.index()].progress(run.now);
        let exit = machine.draw_exit(cpu);
        machine.charge(cpu, exit);
        if yields {
            self.vcpus[vcpu].in_spin_loop = true;
            let k = &mut kernel.cpus[cpu.index()];
            (k.need_resched, k.resched_seen) = (true, true);
        }
        kernel::settle(run, machine, kernel, cpu);
    }

    /// The hypercalls KVM_HC_SCHED_YIELD (`kvm_sched_yield`) and H_CONFER, and diagnose 0x9c: the thread of the vCPU
    /// yields to that of another one, if that waits for a CPU.
    pub(super) fn exit_to_yield(&mut self, run: &mut Run<impl Sink>, vcpu: usize) {
        let v = &self.vcpus[vcpu];
        let (vm, host, own, cpu) = (v.vm, v.host, v.cpu, v.host_cpu);
        let Some(target) = self.systems[vm + 1].kernel.cpus[own.index()].flush.yields_to.take() else { return };
        let other = self.vcpus_of(vm).start + target.index();
        let alone = self.rules[vm].yields_only_if_shared && self.systems[host].kernel.sched.nr_running(cpu) <= 1;
        let ready = self.vcpus[other].thread == Thread::Runnable && !alone;
        if ready && self.yield_to(run, vcpu, other) == Some(true) {
            self.leave_guest(run, vcpu);
            let System { machine, kernel, .. } = &mut self.systems[host];
            machine.cpus[cpu.index()].progress(run.now);
            let k = &mut kernel.cpus[cpu.index()];
            (k.need_resched, k.resched_seen) = (true, true);
            kernel::settle(run, machine, kernel, cpu);
        }
    }

    /// Looks for a vCPU of the guest that waits for a CPU, in kernel mode or woken, from the one after the last boosted
    /// on.
    fn kvm_vcpu_on_spin<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize) -> bool {
        let vm = self.vcpus[vcpu].vm;
        let all = self.vcpus_of(vm);
        let after = (self.last_boosted[vm] + 1).clamp(all.start, all.end);
        let mut tries = TRIES;
        for other in (after..all.end).chain(all.start..after) {
            if other == vcpu || !self.is_ready(other) || !self.vcpus[other].kvm_vcpu_eligible_for_directed_yield() {
                continue;
            }
            match self.yield_to(run, vcpu, other) {
                Some(true) => {
                    self.last_boosted[vm] = other;
                    return true;
                }
                Some(false) => {}
                None => {
                    tries -= 1;
                    if tries == 0 {
                        return false;
                    }
                }
            }
        }
        false
    }

    /// `vcpu->ready`; a thread that was preempted (`vcpu->preempted`), not woken, in the guest's kernel
    /// (`kvm_arch_vcpu_preempted_in_kernel`).
    fn is_ready(&self, vcpu: usize) -> bool {
        let v = &self.vcpus[vcpu];
        let segment = &self.systems[v.vm + 1].machine.cpus[v.cpu.index()].segment;
        v.thread == Thread::Runnable && (v.asked == Asked::Halt || segment.mode.is_kernel())
    }

    /// `yield_to` the thread of another vCPU. `None`: -ESRCH.
    fn yield_to<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize, other: usize) -> Option<bool> {
        let (cpu, task) = (self.vcpus[vcpu].host_cpu, self.vcpus[other].task?);
        let System { machine, kernel, .. } = &mut self.systems[self.vcpus[vcpu].host];
        let now = kernel.clock_task(cpu, run.now);
        let yields = kernel.sched.yield_to(cpu, task, now)?;
        let its_cpu = kernel.sched.cpu_of(task);
        if yields && its_cpu != cpu {
            machine.cpus[its_cpu.index()].progress(run.now);
            kernel::resched_curr(run, machine, kernel, its_cpu, Resched::Full, cpu);
        }
        Some(yields)
    }
}
