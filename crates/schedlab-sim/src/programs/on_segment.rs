//! The segments of the running task, executed one after the other as long as nothing else happens in between.

use schedlab_model::{rarely, CpuId, TaskId};
use schedlab_trace::Sink;

use super::exec::advance;
use super::position::Step;
use super::running::Running;
use super::state::Programs;
use crate::kernel::{self, Kernel, PlainEnd};
use crate::machine::{Machine, Mode};
use crate::run::{Run, Source};

/// A segment of the running task has ended, or its overhead before a preemption. The segments that follow are executed
/// here, as long as the end of each is the next event of the run.
#[inline(always)]
pub fn on_segment<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    programs: &mut Programs,
    cpu: CpuId,
) {
    let (c, k) = (&mut machine.cpus[cpu.index()], &kernel.cpus[cpu.index()]);
    c.progress(run.now);
    let Some(task) = k.curr else { return };
    let plain = c.segment.mode.is_plain() && k.goes_on() && k.leaving_for.is_none() && !rarely(kernel.bandwidth);
    let mut progress = if plain {
        Progress::of(c.segment.is_done(run.now))
    } else {
        progress_in_general(run, machine, kernel, programs, cpu, task)
    };
    while progress != Progress::Left {
        if progress == Progress::Over {
            advance(&mut Running { run, machine, kernel, programs, cpu, task });
        }
        progress = execute_next(run, machine, kernel, programs, cpu, task);
    }
}

/// Executes the next segment up to its end if that is the next event of the run; else the end is put into the queue.
#[inline(always)]
fn execute_next<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    programs: &Programs,
    cpu: CpuId,
    task: TaskId,
) -> Progress {
    let (c, k) = (&mut machine.cpus[cpu.index()], &mut kernel.cpus[cpu.index()]);
    let plain = kernel::plain_end(run.now, c, k).filter(|_| !rarely(kernel.bandwidth));
    let Some(PlainEnd { at, leaves }) = plain else {
        if k.marked {
            return Progress::Left;
        }
        return execute_next_in_general(run, machine, kernel, programs, cpu, task);
    };
    if !run.is_next(at) {
        run.set_event(kernel.id, Source::Segment, cpu, at);
        return Progress::Left;
    }
    run.handled += 1;
    run.now = at;
    c.end_segment(at);
    if leaves {
        kernel::mark_in(run, kernel.id, cpu, k);
        return Progress::Left;
    }
    Progress::Over
}

/// The same for any segment.
#[inline(never)]
fn execute_next_in_general<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    programs: &Programs,
    cpu: CpuId,
    task: TaskId,
) -> Progress {
    let Some(end) = kernel::segment_end(run, machine, kernel, cpu) else { return Progress::Left };
    if !run.is_next(end) {
        run.set_event(kernel.id, Source::Segment, cpu, end);
        return Progress::Left;
    }
    run.handled += 1;
    run.now = end;
    machine.cpus[cpu.index()].progress(end);
    progress_in_general(run, machine, kernel, programs, cpu, task)
}

/// How far the operation at hand is when a segment has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It is over.
    Over,
    /// It has work left.
    Within,
    /// The CPU enters `__schedule`, or newidle balancing continues.
    Left,
}

impl Progress {
    #[inline(always)]
    fn of(over: bool) -> Self {
        if over {
            Progress::Over
        } else {
            Progress::Within
        }
    }
}

/// The progress of any operation, also of one that a request to reschedule, a block or newidle balancing interrupts.
#[inline(never)]
fn progress_in_general<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    programs: &Programs,
    cpu: CpuId,
    task: TaskId,
) -> Progress {
    let (segment, k) = (&mut machine.cpus[cpu.index()].segment, &kernel.cpus[cpu.index()]);
    let paid = segment.cost_left == 0;
    if k.in_newidle {
        if paid {
            kernel::end_newidle(run, machine, kernel, cpu);
        } else {
            kernel::settle(run, machine, kernel, cpu);
        }
        return Progress::Left;
    }
    if k.leaving_for.is_some() && paid {
        kernel::mark(run, kernel, cpu);
        return Progress::Left;
    }
    let slept = programs.positions[task.index()].step == Step::Fetch;
    if kernel.bandwidth && slept && segment.mode.is_kernel() && segment.is_done(run.now) {
        // The call was over when it slept.
        segment.mode = Mode::User;
        kernel::resume_user_mode_work(run, machine, kernel, cpu);
    }
    let (segment, k) = (&machine.cpus[cpu.index()].segment, &kernel.cpus[cpu.index()]);
    if kernel.points.switches_now(k, segment) && paid {
        if k.schedule_paid.is_some() {
            kernel::mark(run, kernel, cpu);
            return Progress::Left;
        }
        // At a check point the way into `__schedule` is still to be paid: see `end_of_busy`.
        return Progress::Within;
    }
    Progress::of(k.leaving_for.is_none() && segment.is_done(run.now) || segment.mode == Mode::Spin)
}
