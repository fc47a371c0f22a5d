//! High-resolution timers of sleeping tasks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_trace::Sink;
use schedlab_workload::Timers;

use super::clock_event::{expires_next, hrtimer_reprogram};
use super::percpu::HrTimer;
use super::state::Kernel;
use super::wake::wake_from_interrupt;
use crate::machine::Machine;
use crate::run::{Run, Source};

impl Kernel {
    /// Whether a timer or a device will wake the task.
    #[must_use]
    pub fn has_timer(&self, task: TaskId) -> bool {
        let mut timers = self.cpus.iter().flat_map(|cpu| cpu.hrtimers.iter().chain(&cpu.deferrable));
        timers.any(|timer| timer.0.task == task)
    }
}

/// Starts a timer of the task on the CPU (`schedule_hrtimeout_range`), which may fire from `soft` on and must by `soft`
/// plus the task's timer slack. Real-time tasks have no slack. A timer of the wheel fires within a tick (simplified). A
/// deferrable one fires at a tick of the CPU and wakes no idle one.
pub fn start_timer<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
    soft: Nanos,
) {
    kernel.timer_sequence += 1;
    let slack = match kernel.tasks[task.index()].timers {
        Timers::Deferrable => {
            let timer = HrTimer { hard: soft, sequence: kernel.timer_sequence, soft, task };
            return kernel.cpus[cpu.index()].deferrable.push(Reverse(timer));
        }
        Timers::Wheel => kernel.tick_nsec,
        Timers::Hrtimer if kernel.sched.is_precise(task) => 0,
        Timers::Hrtimer => kernel.tasks[task.index()].timer_slack,
    };
    let timer = HrTimer { hard: soft.saturating_add(slack), sequence: kernel.timer_sequence, soft, task };
    hrtimer_start_range_ns(run, machine, kernel, cpu, timer);
}

/// A device wakes the task at `done` by an interrupt of the CPU.
pub fn start_device<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
    done: Nanos,
) {
    kernel.timer_sequence += 1;
    let timer = HrTimer { hard: done, sequence: kernel.timer_sequence, soft: done, task };
    hrtimer_start_range_ns(run, machine, kernel, cpu, timer);
}

/// `hrtimer_start_range_ns`: the timer is programmed if it becomes the first.
fn hrtimer_start_range_ns<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    timer: HrTimer,
) {
    let before = expires_next(run, machine, kernel, cpu);
    kernel.cpus[cpu.index()].hrtimers.push(Reverse(timer));
    hrtimer_update_next_event(run, machine, kernel, cpu);
    hrtimer_reprogram(run, machine, kernel, cpu, before);
}

/// `hrtimer_cancel` of the task's timer on CPU `cpu`, and programs that CPU's device if the timer was the first to
/// expire. Simplified: in the kernel the task does so when it runs again, and if that is on another CPU, the interrupt
/// comes all the same (`remove_hrtimer`).
pub fn cancel_timer<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, task: TaskId) {
    let waits = |cpu: &CpuId| kernel.cpus[cpu.index()].hrtimers.iter().any(|timer| timer.0.task == task);
    // Timers of a CPU that goes offline move to another one.
    let moved = kernel.hotplug.as_ref().and_then(|_| (0..kernel.cpus.len() as u32).map(CpuId).find(waits));
    let cpu = moved.unwrap_or(cpu);
    let before = expires_next(run, machine, kernel, cpu);
    kernel.cpus[cpu.index()].hrtimers.retain(|timer| timer.0.task != task);
    hrtimer_update_next_event(run, machine, kernel, cpu);
    hrtimer_reprogram(run, machine, kernel, cpu, before);
}

/// `__hrtimer_run_queues`: in order of their latest time, every timer whose earliest time has come. Whether the wheel's
/// were among them.
pub fn __hrtimer_run_queues<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) -> bool {
    let mut wheel = false;
    let now = run.now;
    while let Some(timer) = pop_if(&mut kernel.cpus[cpu.index()].hrtimers, |timer| timer.soft <= now) {
        wheel |= kernel.tasks[timer.task.index()].timers == Timers::Wheel;
        wake_from_interrupt(run, machine, kernel, timer.task, cpu);
    }
    hrtimer_update_next_event(run, machine, kernel, cpu);
    wheel
}

/// Takes the first timer of a queue if it is due.
#[inline]
fn pop_if(queue: &mut BinaryHeap<Reverse<HrTimer>>, is_due: impl FnOnce(&HrTimer) -> bool) -> Option<HrTimer> {
    is_due(&queue.peek()?.0).then(|| queue.pop())?.map(|first| first.0)
}

/// Runs the deferrable timers that are due, after the tick (`run_timer_softirq`).
#[inline]
pub fn run_deferrable_timers<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let now = run.now;
    while let Some(timer) = pop_if(&mut kernel.cpus[cpu.index()].deferrable, |timer| timer.hard <= now) {
        wake_from_interrupt(run, machine, kernel, timer.task, cpu);
    }
}

/// Moves timers (`migrate_hrtimer_list`), also deferrable ones (`timers_dead_cpu`): what a CPU that goes offline leaves
/// to `to`, which programs its device anew (`retrigger_next_event`). Those of its own kernel threads, which are parked,
/// are returned.
pub fn migrate_timers<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    from: CpuId,
    to: CpuId,
) -> Vec<(HrTimer, bool)> {
    let left = &mut kernel.cpus[from.index()];
    let (precise, deferrable) = (std::mem::take(&mut left.hrtimers), std::mem::take(&mut left.deferrable));
    let all =
        precise.into_iter().map(|timer| (timer.0, false)).chain(deferrable.into_iter().map(|timer| (timer.0, true)));
    let (parked, moved): (Vec<_>, Vec<_>) = all.partition(|(timer, _)| kernel.sched.is_per_cpu_kthread(timer.task));
    add_timers(run, machine, kernel, to, moved);
    machine.exit_to_program(to);
    hrtimer_update_next_event(run, machine, kernel, from);
    parked
}

/// Adds timers to a CPU.
pub fn add_timers<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    timers: impl IntoIterator<Item = (HrTimer, bool)>,
) {
    for (timer, deferrable) in timers {
        let k = &mut kernel.cpus[cpu.index()];
        let queue = if deferrable { &mut k.deferrable } else { &mut k.hrtimers };
        queue.push(Reverse(timer));
    }
    hrtimer_update_next_event(run, machine, kernel, cpu);
}

/// The CPU's next interrupt is that of its first timer (`hrtimer_update_next_event`); how late its handler starts is
/// drawn anew.
fn hrtimer_update_next_event<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &Kernel, cpu: CpuId) {
    match kernel.cpus[cpu.index()].hrtimers.peek().map(|timer| timer.0.hard) {
        Some(hard) => {
            let due = hard.max(run.now) + machine.timer_latency(cpu);
            run.set_event(kernel.id, Source::HrTimer, cpu, due);
        }
        None => run.cancel(kernel.id, Source::HrTimer, cpu),
    }
}
