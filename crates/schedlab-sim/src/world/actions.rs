//! Guests that are paused, resumed and killed while they run.
//!
//! The threads of a paused guest leave it and block, as those of QEMU do after `stop`; an interrupt that arrives in the
//! meantime is handled when they are resumed. The clock of the guest continues. The threads of a guest that is killed
//! exit.

use schedlab_model::{CpuId, KernelId};
use schedlab_spec::GuestAction;
use schedlab_trace::Sink;

use super::power::Power;
use super::system::System;
use super::vcpu::Asked;
use super::virtual_systems::VirtualSystems;
use crate::kernel::{self, Life, WakesVcpus};
use crate::machine::Exit;
use crate::programs::{self, Halted, Then};
use crate::run::{Run, Source};

impl VirtualSystems {
    /// Carries out what is due.
    pub(super) fn act<S: Sink>(&mut self, run: &mut Run<S>, vm: usize) {
        while let Some(action) = self.actions[vm].take_due(run.now) {
            let power = self.actions[vm].power;
            match (action, power) {
                (GuestAction::Pause, Power::On) => self.pause(run, vm),
                (GuestAction::Resume, Power::Paused) => self.resume(run, vm),
                (GuestAction::Kill, Power::On | Power::Paused) => self.kill(run, vm),
                _ => {}
            }
            self.actions[vm].plan(run, vm);
        }
    }

    fn pause<S: Sink>(&mut self, run: &mut Run<S>, vm: usize) {
        self.actions[vm].power = Power::Paused;
        for vcpu in self.vcpus_of(vm).filter(|vcpu| self.vcpus[*vcpu].in_guest).collect::<Vec<_>>() {
            let cpu = self.vcpus[vcpu].host_cpu;
            self.expel(run, vcpu, cpu);
        }
    }

    /// Those that ran run again, and those that were halted if an interrupt has come.
    fn resume<S: Sink>(&mut self, run: &mut Run<S>, vm: usize) {
        self.actions[vm].power = Power::On;
        for vcpu in self.vcpus_of(vm) {
            let v = &mut self.vcpus[vcpu];
            let k = &self.systems[vm + 1].kernel.cpus[v.cpu.index()];
            if v.asked == Asked::Run || k.held_interrupts != 0 || k.wakes_vcpus != WakesVcpus::None {
                v.kicked = false;
                self.kvm_vcpu_kick(run, vcpu, vcpu);
            }
        }
    }

    fn kill<S: Sink>(&mut self, run: &mut Run<S>, vm: usize) {
        self.power_off(run, vm);
        for vcpu in self.vcpus_of(vm) {
            self.kill_thread(run, vcpu);
        }
    }

    /// The guest and those in it are gone. The threads of the inner ones do not run again: their kernel is gone, too.
    fn power_off<S: Sink>(&mut self, run: &mut Run<S>, vm: usize) {
        self.actions[vm].power = Power::Off;
        for source in [Source::Start, Source::Bandwidth, Source::Classes] {
            run.cancel(KernelId(vm as u16 + 1), source, CpuId(0));
        }
        for unfinished in &mut self.systems[vm + 1].programs.unfinished {
            if std::mem::take(unfinished) {
                run.finished_one();
            }
        }
        let inside: Vec<usize> = self.vcpus.iter().filter(|v| v.host == vm + 1).map(|v| v.vm).collect();
        for inner in inside {
            if self.actions[inner].power != Power::Off {
                self.power_off(run, inner);
            }
        }
    }

    /// The thread exits; one that sleeps is woken to do so.
    fn kill_thread<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize) {
        let Some(task) = self.vcpus[vcpu].task else { return };
        if self.vcpus[vcpu].in_guest {
            let cpu = self.vcpus[vcpu].host_cpu;
            return self.expel(run, vcpu, cpu);
        }
        let by = self.vcpus[vcpu].host_cpu;
        let System { machine, kernel, programs } = &mut self.systems[self.vcpus[vcpu].host];
        let cpu = kernel.sched.cpu_of(task);
        machine.cpus[cpu.index()].progress(run.now);
        programs::go_on(machine, kernel, programs, task, Then::Exit);
        if kernel.tasks[task.index()].life == Life::Sleeping {
            self.wake_thread(run, vcpu, by);
        } else if kernel.cpus[cpu.index()].curr == Some(task) {
            kernel::settle(run, machine, kernel, cpu);
        }
    }

    /// The thread, which is about to enter the guest or in it, blocks or exits instead.
    pub(super) fn expel<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize, cpu: CpuId) {
        let Some(task) = self.vcpus[vcpu].task else { return };
        if self.vcpus[vcpu].in_guest {
            self.leave_guest(run, vcpu);
            self.count_exit(vcpu, Exit::Host);
        }
        let power = self.actions[self.vcpus[vcpu].vm].power;
        let System { machine, kernel, programs } = &mut self.systems[self.vcpus[vcpu].host];
        machine.cpus[cpu.index()].progress(run.now);
        match power {
            Power::Off => programs::go_on(machine, kernel, programs, task, Then::Exit),
            _ => Halted { cpu, task, window: 0 }.begin(machine, programs),
        }
        let exit = machine.draw_exit(cpu).div_ceil(2);
        machine.charge(cpu, exit);
        kernel::settle(run, machine, kernel, cpu);
    }
}
