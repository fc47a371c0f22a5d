//! How the thread of a vCPU is woken: by an interrupt for the vCPU, which another vCPU or a timer sends, on KVM for
//! POWER9 by an escalation interrupt.

use schedlab_model::CpuId;
use schedlab_trace::Sink;

use super::power::Power;
use super::system::System;
use super::vcpu::Thread;
use super::virtual_systems::VirtualSystems;
use crate::kernel::{self, Life, WakesVcpus};
use crate::machine::Activity;
use crate::programs::{self, Then};
use crate::run::Run;

impl VirtualSystems {
    /// `kvm_vcpu_kick`, `kvm_vcpu_wake_up`: by the vCPU `sender`, or by a timer if that is the vCPU itself.
    pub(super) fn kvm_vcpu_kick<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize, sender: usize) {
        let Some(task) = self.vcpus[vcpu].task.filter(|_| !self.vcpus[vcpu].kicked) else { return };
        if self.actions[self.vcpus[vcpu].vm].power != Power::On {
            return;
        }
        self.vcpus[vcpu].kicked = true;
        let by = match self.vcpus[sender].thread {
            Thread::Loaded => self.vcpus[sender].host_cpu,
            _ => self.vcpus[vcpu].host_cpu,
        };
        let System { machine, kernel, programs } = &mut self.systems[self.vcpus[vcpu].host];
        if kernel.tasks[task.index()].life != Life::Sleeping {
            // It has not blocked yet.
            let cpu = kernel.sched.cpu_of(task);
            machine.cpus[cpu.index()].progress(run.now);
            programs::go_on(machine, kernel, programs, task, Then::Enter);
            if kernel.cpus[cpu.index()].curr == Some(task) {
                kernel::settle(run, machine, kernel, cpu);
            }
            return;
        }
        if self.rules[self.vcpus[vcpu].vm].escalates && sender != vcpu {
            return self.xive_esc_irq(run, vcpu);
        }
        self.wake_thread(run, vcpu, by);
    }

    /// `xive_esc_irq`: an interrupt for a vCPU that is not dispatched becomes one of the host, which wakes the thread.
    /// The host CPU that handles it was chosen when the vCPU was created, each time the next one
    /// (`xive_pick_irq_target`).
    fn xive_esc_irq<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize) {
        let host = self.vcpus[vcpu].host;
        let System { machine, kernel, .. } = &mut self.systems[host];
        let cpu = CpuId((vcpu % machine.cpus.len()) as u32);
        self.vcpus[vcpu].wakes_on = Some(cpu);
        kernel.cpus[cpu.index()].wakes_vcpus = WakesVcpus::Pending;
        match machine.cpus[cpu.index()].activity {
            Activity::Idle => kernel::wake_idle_cpu(run, machine, kernel, cpu, cpu),
            Activity::Exiting => {}
            Activity::Busy => {
                machine.cpus[cpu.index()].progress(run.now);
                machine.charge_irq(cpu);
                self.wake_those_held(run, host, cpu);
            }
        }
    }

    /// Wakes the thread of a vCPU, which sleeps, on a CPU of its host. If that is a vCPU itself and does not execute,
    /// the timer that wakes the thread is an interrupt that waits for it.
    pub(super) fn wake_thread<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize, by: CpuId) {
        let (host, Some(task)) = (self.vcpus[vcpu].host, self.vcpus[vcpu].task) else { return };
        let System { machine, kernel, .. } = &mut self.systems[host];
        if host != 0 && machine.cpus[by.index()].rate == 0 {
            self.vcpus[vcpu].wakes_on = Some(by);
            kernel.cpus[by.index()].wakes_vcpus = WakesVcpus::Pending;
            return run.touch(kernel.id, by);
        }
        machine.cpus[by.index()].progress(run.now);
        kernel::wake_from_interrupt(run, machine, kernel, task, by);
        kernel::irqentry_exit(run, machine, kernel, by);
        if self.vcpus[vcpu].thread == Thread::Blocked {
            self.vcpus[vcpu].moved(Thread::Runnable, run.now);
            self.stop_clock(run.now, vcpu);
            self.show(vcpu);
        }
    }

    /// A CPU of a host executes again: it wakes the threads of vCPUs whose timers it could not handle.
    pub(super) fn wake_those_held<S: Sink>(&mut self, run: &mut Run<S>, host: usize, cpu: CpuId) {
        let System { machine, kernel, .. } = &mut self.systems[host];
        let (c, k) = (&machine.cpus[cpu.index()], &mut kernel.cpus[cpu.index()]);
        let executes = c.rate > 0 && c.activity != Activity::Exiting;
        if k.wakes_vcpus == WakesVcpus::None || k.wakes_vcpus == WakesVcpus::Pending && !executes {
            return;
        }
        k.wakes_vcpus = WakesVcpus::None;
        for vcpu in 0..self.vcpus.len() {
            let v = &mut self.vcpus[vcpu];
            if v.host != host || v.wakes_on != Some(cpu) {
                continue;
            }
            v.wakes_on = None;
            let life = v.task.map(|task| self.systems[host].kernel.tasks[task.index()].life);
            if life == Some(Life::Sleeping) {
                self.wake_thread(run, vcpu, cpu);
            }
        }
    }
}
