//! When what a CPU executes ends: pending overhead, resched flags and the segment's own rest.

use schedlab_model::{CpuId, KernelId, Nanos};
use schedlab_trace::Sink;

use super::percpu::PerCpu;
use super::state::Kernel;
use crate::machine::{Activity, Cpu, Machine, Mode};
use crate::run::{Run, Source};

/// The CPU reschedules at the end of this instant.
#[inline]
pub fn mark<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId) {
    mark_in(run, kernel.id, cpu, &mut kernel.cpus[cpu.index()]);
}

/// The same where the CPU's state is at hand.
#[inline(always)]
pub fn mark_in<S: Sink>(run: &mut Run<S>, kernel: KernelId, cpu: CpuId, k: &mut PerCpu) {
    if !k.marked {
        k.marked = true;
        run.marked.push((kernel, cpu));
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
    match plain_end(run.now, &mut machine.cpus[cpu.index()], &kernel.cpus[cpu.index()]) {
        Some(plain) => Some(plain.at),
        None => special_end(run, machine, kernel, cpu),
    }
}

/// The end of a segment that ends with its work, as nearly all do.
pub struct PlainEnd {
    /// When it ends.
    pub at: Nanos,
    /// The task then enters `__schedule`.
    pub leaves: bool,
}

/// When a segment ends that ends with its work; `None`: it is another one.
#[inline(always)]
pub fn plain_end(now: Nanos, c: &mut Cpu, k: &PerCpu) -> Option<PlainEnd> {
    if c.activity != Activity::Busy || !c.segment.mode.is_plain() || !k.goes_on() {
        return None;
    }
    c.take_pending();
    let at = now + c.wall_with(c.segment.cost_left, c.segment.work_left)?;
    Some(PlainEnd { at, leaves: k.leaving_for.is_some() })
}

/// When the segment of any CPU ends: also of one that has a request to reschedule, is in newidle balancing, polls or
/// waits. `None`: no time alone ends it.
#[inline(always)]
pub fn special_end<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) -> Option<Nanos> {
    if kernel.cpus[cpu.index()].marked || machine.cpus[cpu.index()].activity != Activity::Busy {
        return None;
    }
    end_of_busy(run, machine, kernel, cpu)
}

#[inline(never)]
fn end_of_busy<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) -> Option<Nanos> {
    let (c, k) = (&mut machine.cpus[cpu.index()], &mut kernel.cpus[cpu.index()]);
    c.take_pending();
    if matches!(c.segment.mode, Mode::Guest | Mode::Poll) {
        run.touch(kernel.id, cpu);
    }
    if k.leaving_for.is_some() || k.in_newidle {
        return Some(run.now + c.wall(c.segment.cost_left)?);
    }
    // kvm_vcpu_halt() polls until need_resched(), and then blocks.
    if kernel.points.switches_now(k, &c.segment) {
        if k.schedule_paid.is_none() {
            let cost = machine.costs.schedule.draw_any(&mut c.dice);
            k.schedule_paid = Some(cost);
            c.pending += cost;
            c.take_pending();
        }
        let end = run.now + c.wall(c.segment.cost_left)?;
        if c.segment.cost_left == 0 {
            mark(run, kernel, cpu);
            return None;
        }
        return Some(end);
    }
    let segment = &c.segment;
    if let Some(until) = kernel.points.until_honoured(k, segment) {
        return Some(run.now + c.wall_with(segment.cost_left, until)?);
    }
    match segment.mode {
        Mode::User | Mode::Stream | Mode::Kernel | Mode::Locked | Mode::PreemptOff | Mode::IrqOff => {
            Some(run.now + c.wall_with(segment.cost_left, segment.work_left)?)
        }
        Mode::Wall | Mode::Poll => Some((run.now + c.wall(segment.cost_left)?).max(segment.until)),
        // With no overhead left it continues when the lock's holder releases the lock, or when it has spun for long
        // enough.
        Mode::PvWait if segment.cost_left == 0 => None,
        Mode::Spin | Mode::LockSpin | Mode::Guest if segment.cost_left == 0 && segment.work_left == 0 => None,
        Mode::Spin | Mode::LockSpin if segment.cost_left == 0 => Some(run.now + c.wall(segment.work_left)?),
        Mode::Spin | Mode::LockSpin | Mode::PvWait | Mode::Guest => Some(run.now + c.wall(segment.cost_left)?),
    }
}

/// Tasks that spin for a spinlock of the kernel look at it: the vCPU of its holder may have lost its CPU.
pub fn spinners_look<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &Kernel) {
    for cpu in (0..machine.cpus.len() as u32).map(CpuId) {
        let c = &machine.cpus[cpu.index()];
        if c.rate > 0 && c.activity == Activity::Busy && c.segment.mode == Mode::LockSpin {
            poll_lock(run, machine, kernel, cpu);
        }
    }
}

/// A spinning task tests its lock again as soon as its overhead is spent.
pub fn poll_lock<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &Kernel, cpu: CpuId) {
    let c = &mut machine.cpus[cpu.index()];
    c.progress(run.now);
    if let Some(cost) = c.wall(c.segment.cost_left) {
        run.set_event(kernel.id, Source::Segment, cpu, run.now + cost);
    }
}
