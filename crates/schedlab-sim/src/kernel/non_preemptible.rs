//! How long kernel code cannot be preempted, for `sched.longest_section`.
//!
//! The length of a section follows from the program and the costs when it begins, so it is known whether or not a
//! request to reschedule comes in it. As the kernel's preemptoff tracer, a CPU reports a section only if it is the
//! longest so far, here of its kind in the current second: a run has few such events, and the longest section of any
//! part of it is among them.

use schedlab_model::CpuId;
use schedlab_trace::{Call, Kind, Section, Sink};

use super::state::Kernel;
use crate::machine::{Machine, Mode};
use crate::run::Run;

/// The running task begins a segment of kernel code that is a whole call, or the work of one between two sleeps.
#[inline(always)]
pub fn call_begins<S: Sink>(run: &mut Run<S>, machine: &Machine, kernel: &mut Kernel, cpu: CpuId) {
    let segment = &machine.cpus[cpu.index()].segment;
    let (work, call) = kernel.points.longest_closed(segment);
    if kernel.cpus[cpu.index()].longest.record(call, segment.mode.section(), work) {
        report(run, machine, kernel, cpu, work);
    }
}

/// The same for a read or write, where the caller has `Points::longest_closed` already.
#[inline(always)]
pub fn transfer_begins<S: Sink>(
    run: &mut Run<S>,
    machine: &Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    (work, call): (u64, Option<Call>),
) {
    if kernel.cpus[cpu.index()].longest.record(call, Section::Kernel, work) {
        report(run, machine, kernel, cpu, work);
    }
}

/// It begins the next section of a call, whose first has `first`. Without kernel preemption only check points end what
/// cannot be preempted, not the end of a section.
pub fn section_begins<S: Sink>(run: &mut Run<S>, machine: &Machine, kernel: &mut Kernel, cpu: CpuId, first: bool) {
    let (points, segment) = (&kernel.points, &machine.cpus[cpu.index()].segment);
    if points.preempts(Mode::Kernel) {
        return call_begins(run, machine, kernel, cpu);
    }
    let longest = &mut kernel.cpus[cpu.index()].longest;
    let before = if first { 0 } else { longest.unbroken };
    let broken = segment.mode == Mode::Kernel && points.has_points(segment);
    let head = if broken { segment.until_point() } else { segment.work_left };
    longest.unbroken = if broken { 0 } else { before + head };
    let work = points.longest_closed(segment).0.max(before + head);
    if longest.record(None, segment.mode.section(), work) {
        report(run, machine, kernel, cpu, work);
    }
}

#[cold]
#[inline(never)]
fn report<S: Sink>(run: &mut Run<S>, machine: &Machine, kernel: &mut Kernel, cpu: CpuId, work: u64) {
    let c = &machine.cpus[cpu.index()];
    let Some(task) = kernel.cpus[cpu.index()].curr else { return };
    let call = kernel.points.call_of(&c.segment);
    let preemptible = kernel.points.preempts(Mode::Kernel);
    let section = if call.is_some() && preemptible { Section::Spinlock } else { c.segment.mode.section() };
    let (pid, _) = kernel.name_of(task);
    let time = c.wall(work).unwrap_or(0);
    kernel.emit(run, cpu, Kind::NonPreemptible { pid, time, section, call });
}
