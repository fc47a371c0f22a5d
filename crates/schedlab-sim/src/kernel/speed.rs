//! A CPU whose speed changes: at rate 0 it handles no interrupt; those that arrive meanwhile are handled afterwards.

use schedlab_model::CpuId;
use schedlab_trace::Sink;

use super::idle::{plan_halt, resume_poll};
use super::percpu::WakesVcpus;
use super::rate::share_memory;
use super::segment::{poll_lock, settle};
use super::state::Kernel;
use crate::machine::{Activity, Machine};
use crate::run::{Run, Source};

/// Holds an interrupt that reaches a CPU at rate 0 or with interrupts disabled.
pub fn hold_interrupt<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, source: Source, cpu: CpuId) {
    kernel.cpus[cpu.index()].held_interrupts |= 1 << source as u32;
    if kernel.is_guest {
        run.touch(kernel.id, cpu);
    }
}

/// The CPU handles interrupts again: those that were held are due.
pub fn release_interrupts<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId) {
    let held = std::mem::take(&mut kernel.cpus[cpu.index()].held_interrupts);
    for source in Source::on_cpus().filter(|source| held & 1 << *source as u32 != 0) {
        run.set_event(kernel.id, source, cpu, run.now);
    }
}

/// Changes the speed of the hardware thread under the CPU, in 1/1024.
pub fn set_speed<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, speed: u32) {
    let before = machine.cpus[cpu.index()].rate;
    machine.set_speed(cpu, speed, run.now);
    if machine.waits_for_memory() {
        share_memory(run, machine, kernel, cpu);
    }
    match (before, machine.cpus[cpu.index()].rate) {
        (0, 0) => {}
        (_, 0) => stop(run, machine, kernel, cpu),
        (0, _) => resume(run, machine, kernel, cpu),
        _ => settle(run, machine, kernel, cpu),
    }
}

/// The segment has no end until the rate is back.
fn stop<S: Sink>(run: &mut Run<S>, machine: &Machine, kernel: &mut Kernel, cpu: CpuId) {
    run.cancel(kernel.id, Source::Segment, cpu);
    if kernel.is_host {
        run.touch(kernel.id, cpu);
    }
    if machine.exits.is_some() {
        run.cancel(kernel.id, Source::Halt, cpu);
    }
    if let Some(due) = run.due(kernel.id, Source::IdleExit, cpu) {
        run.cancel(kernel.id, Source::IdleExit, cpu);
        kernel.cpus[cpu.index()].held_idle_exit = Some(due - run.now);
    }
}

fn resume<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if let Some(left) = kernel.cpus[cpu.index()].held_idle_exit.take() {
        run.set_event(kernel.id, Source::IdleExit, cpu, run.now + left);
    }
    release_interrupts(run, kernel, cpu);
    // Only then: an idle CPU that has just been released would halt before its interrupts are handled.
    if kernel.cpus[cpu.index()].wakes_vcpus != WakesVcpus::None {
        run.touch(kernel.id, cpu);
    }
    let c = &machine.cpus[cpu.index()];
    match c.activity {
        Activity::Busy if c.segment.mode.polls_lock() => poll_lock(run, machine, kernel, cpu),
        Activity::Idle if machine.polls(cpu) => resume_poll(run, machine, kernel, cpu),
        Activity::Idle => plan_halt(run, machine, kernel, cpu),
        _ => settle(run, machine, kernel, cpu),
    }
}
