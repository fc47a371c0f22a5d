//! When what a CPU executes ends: pending overhead, resched flags and the segment's own rest.

use std::sync::Arc;

use schedlab_model::{CpuId, Nanos};
use schedlab_trace::Sink;

use super::state::Kernel;
use crate::machine::{Activity, Machine, Mode, WORK_SHIFT};
use crate::run::{Run, Source};

/// The CPU reschedules at the end of this instant.
#[inline]
pub fn mark<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId) {
    let c = &mut kernel.cpus[cpu.index()];
    if !c.marked {
        c.marked = true;
        run.marked.push((kernel.id, cpu));
    }
}

/// Puts what has changed on a CPU into effect: pending overhead joins the segment, and its end is scheduled anew.
pub fn settle<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if let Some(end) = segment_end(run, machine, kernel, cpu) {
        run.set_event(kernel.id, Source::Segment, cpu, end);
    }
}

/// When the segment of the running task ends, pending overhead included; `None` if no time alone ends it.
#[inline(always)]
pub fn segment_end<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) -> Option<Nanos> {
    let (c, k) = (&mut machine.cpus[cpu.index()], &mut kernel.cpus[cpu.index()]);
    if k.marked || c.activity != Activity::Busy {
        return None;
    }
    c.take_pending();
    if k.leaving_for.is_some() {
        return Some(run.now + c.wall(c.segment.cost_left)?);
    }
    if k.resched_seen && (kernel.preemptible || c.segment.mode != Mode::Kernel) {
        if !std::mem::replace(&mut k.schedule_paid, true) {
            c.segment.cost_left += machine.costs.schedule.draw_any(&mut c.dice) << WORK_SHIFT;
        }
        let end = run.now + c.wall(c.segment.cost_left)?;
        if c.segment.cost_left == 0 {
            mark(run, kernel, cpu);
            return None;
        }
        return Some(end);
    }
    let segment = &c.segment;
    match segment.mode {
        Mode::User | Mode::Kernel => Some(run.now + c.wall(segment.cost_left + segment.work_left)?),
        Mode::Wall => Some((run.now + c.wall(segment.cost_left)?).max(segment.until)),
        // With no overhead left it continues when the lock's holder releases the lock.
        Mode::Spin if segment.cost_left == 0 => None,
        Mode::Spin => Some(run.now + c.wall(segment.cost_left)?),
    }
}

/// A spinning task looks at its lock again as soon as its overhead is spent.
pub fn poll_lock<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &Kernel, cpu: CpuId) {
    let c = &mut machine.cpus[cpu.index()];
    c.progress(run.now);
    if let Some(cost) = c.wall(c.segment.cost_left) {
        run.set_event(kernel.id, Source::Segment, cpu, run.now + cost);
    }
}

/// The CPU became busy or idle, which changes the rate of its core's other threads, too.
pub fn core_changed<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, busy: bool) {
    if let Some(threads) = machine.core_changed(cpu, busy, run.now) {
        settle_others(run, machine, kernel, cpu, threads);
    }
}

#[inline(never)]
fn settle_others<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    threads: Arc<[CpuId]>,
) {
    for thread in threads.iter().copied().filter(|thread| *thread != cpu) {
        settle(run, machine, kernel, thread);
    }
}
