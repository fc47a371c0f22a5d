//! Idle hints of a powerpc host to its guests: a word in the memory of each vCPU, or the result of a hypercall.

use schedlab_model::CpuId;
use schedlab_trace::Sink;

use super::system::System;
use super::vcpu::Rules;
use super::virtual_systems::VirtualSystems;
use crate::kernel;
use crate::run::Run;

impl VirtualSystems {
    /// What the host answers about the vCPUs whose threads were on this CPU last, after a change of what the CPU runs.
    pub(super) fn update_answers(&mut self, cpu: CpuId) {
        if !self.rules.iter().any(Rules::has_hypercall) {
            return;
        }
        for vcpu in 0..self.vcpus.len() {
            let Some(task) = self.vcpus[vcpu].task else { continue };
            if self.rules[self.vcpus[vcpu].vm].has_hypercall() && self.systems[0].kernel.sched.cpu_of(task) == cpu {
                self.show(vcpu);
            }
        }
    }

    /// H_IDLE_HINT: the CPU of the vCPU's thread is idle, or runs only tasks with SCHED_IDLE.
    pub(super) fn answer(&self, vcpu: usize) -> bool {
        let sched = &self.systems[0].kernel.sched;
        self.vcpus[vcpu]
            .task
            .map(|task| sched.cpu_of(task))
            .is_some_and(|cpu| sched.available_idle_cpu(cpu) || sched.sched_idle_cpu(cpu))
    }

    /// `do_idle` with idle hints: when the CPU becomes idle or busy, the hint of every vCPU whose thread last ran there
    /// is written, which requires a walk over the vCPUs of all guests.
    pub(super) fn write_hints<S: Sink>(&mut self, run: &mut Run<S>, cpu: CpuId, idle: bool) {
        if self.hinted[cpu.index()] == idle || !self.rules.iter().any(Rules::writes_hints) {
            return;
        }
        self.hinted[cpu.index()] = idle;
        for vcpu in 0..self.vcpus.len() {
            let Some(task) = self.vcpus[vcpu].task else { continue };
            let written = self.rules[self.vcpus[vcpu].vm].writes_hints();
            if written && self.systems[0].kernel.sched.cpu_of(task) == cpu {
                self.vcpus[vcpu].hint = idle;
                self.show(vcpu);
            }
        }
        let System { machine, kernel, .. } = &mut self.systems[0];
        machine.charge_idle_hints(cpu, self.vcpus.len() as u64);
        kernel::settle(run, machine, kernel, cpu);
    }
}
