//! The interpreter: takes the running task from one operation of its program to the next that takes time.

use schedlab_model::{rarely, CpuId, TaskId};
use schedlab_trace::{Call, Extension, Sink};
use schedlab_workload::{Amount, MemoryWork, Op};

use super::begin::begin;
use super::block::{exit_to_user, leave_call};
use super::call_cost::Transfer;
use super::effect::{effect, sleep};
use super::io::transfer;
use super::mmap_lock::{
    downgrade_mmap_lock, release_mmap_lock, spin_for_mmap_lock, spins_for_mmap_lock, take_mmap_lock,
};
use super::position::{Next, Position, Step, UNMAP_FLUSHED, UNMAP_PAGES_NEXT};
use super::running::Running;
use super::section::{begin_unmap_pages, end_section};
use super::shared::begin_shared_io;
use super::state::Programs;
use crate::error::SimError;
use crate::kernel::{self, Kernel};
use crate::machine::{CostTables, Mode, Segment};
use crate::run::Run;

/// Jumps and beginnings of work without length, in succession, after which a program counts as stuck.
const IDLE_STEPS: u32 = 1_000_000;

/// The running task's segment has ended: continues until the next segment, block or exit.
///
/// Transfers, work in user mode and jumps are most of what a run executes: they do not go through the calls for all
/// operations.
#[inline(always)]
pub fn advance<S: Sink>(x: &mut Running<S>) {
    loop {
        let step = x.programs.positions[x.task.index()].step;
        if step == Step::Effect && take_effect(x) || fetch(x) {
            return;
        }
    }
}

/// The operation at hand takes effect. True: the interpreter stops.
#[inline(always)]
fn take_effect<S: Sink>(x: &mut Running<S>) -> bool {
    let position = &mut x.programs.positions[x.task.index()];
    let Some(op) = x.programs.code.get(position.pc as usize) else { return other_effect(&mut x.reborrow(), Op::Exit) };
    match op {
        Op::Run(_) => {
            x.machine.cpus[x.cpu.index()].segment.mode = Mode::User;
            position.advance()
        }
        Op::Read { object, .. } => transfer(x, *object, false),
        Op::Write { object, .. } => transfer(x, *object, true),
        op => {
            let op = *op;
            other_effect(&mut x.reborrow(), op)
        }
    }
}

/// Begins operations, up to the first that takes time: true, or the interpreter stops for another reason. False: an
/// operation takes effect at once.
#[inline(always)]
fn fetch<S: Sink>(x: &mut Running<S>) -> bool {
    let position = &mut x.programs.positions[x.task.index()];
    let shares = x.machine.shares();
    let segment = &mut x.machine.cpus[x.cpu.index()].segment;
    loop {
        let Some(op) = x.programs.code.get(position.pc as usize) else {
            return begin_other(&mut x.reborrow(), Op::Exit);
        };
        match op {
            Op::Read { object, bytes } | Op::Write { object, bytes } if has_extension(x.kernel, x.cpu) => {
                let (object, bytes, write) = (*object, *bytes, matches!(op, Op::Write { .. }));
                return begin_io_in_extension(&mut x.reborrow(), object, bytes, write);
            }
            Op::Read { object, bytes } | Op::Write { object, bytes } if shares => {
                let (object, bytes, write) = (*object, *bytes, matches!(op, Op::Write { .. }));
                return begin_shared_io(&mut x.reborrow(), object, bytes, write);
            }
            Op::Read { object, bytes } | Op::Write { object, bytes } => {
                let object = &x.programs.objects[*object as usize];
                let transfer = Transfer::new(object, *bytes, matches!(op, Op::Write { .. }));
                let (takes, longest) = begin_own_io(&x.machine.costs, x.kernel, x.task, &transfer, position, segment);
                if let Some(longest) = longest {
                    kernel::transfer_begins(x.run, x.machine, x.kernel, x.cpu, longest);
                }
                return takes;
            }
            Op::Run(Amount::Fixed(amount)) => return position.work(segment, Mode::User, *amount),
            Op::Run(Amount::Drawn(dist)) if position.idle_steps < IDLE_STEPS => {
                let amount = x.programs.draw(x.task, *dist);
                let position = &mut x.programs.positions[x.task.index()];
                return position.work(&mut x.machine.cpus[x.cpu.index()].segment, Mode::User, amount);
            }
            Op::Jump(to) if position.idle_steps < IDLE_STEPS => {
                position.jump(*to);
            }
            Op::DecJump { reg, to } => {
                let value = position.register(*reg);
                *value = value.wrapping_sub(1);
                if *value == 0 {
                    position.advance();
                } else if position.idle_steps < IDLE_STEPS {
                    position.jump(*to);
                } else {
                    fail_livelock(&mut x.reborrow());
                    return true;
                }
            }
            op => {
                let op = *op;
                return begin_other(&mut x.reborrow(), op);
            }
        }
    }
}

/// Begins a read or write whose lines and locks cost nothing. Returns whether it takes any time, and its longest part
/// in which no request is honoured, if transfers have such parts.
#[inline(always)]
fn begin_own_io(
    costs: &CostTables,
    kernel: &mut Kernel,
    task: TaskId,
    transfer: &Transfer,
    position: &mut Position,
    segment: &mut Segment,
) -> (bool, Option<(u64, Option<Call>)>) {
    position.resumed = false;
    position.io_left = transfer.bytes;
    let (syscall, call) = transfer.cost(costs, &mut kernel.tasks[task.index()].dice);
    if !kernel.points.has_transfers() {
        return (position.work(segment, Mode::Kernel, syscall + call), None);
    }
    let (takes, longest) = transfer.begin(&kernel.points, position, segment, syscall + call);
    (takes, Some(longest))
}

/// The system call of a sleep begins, which programs a timer. The costs are drawn in the order in which `begin` draws
/// them.
#[inline(never)]
fn begin_sleep<S: Sink>(x: &mut Running<S>) -> bool {
    let (costs, dice) = (&x.machine.costs, &mut x.kernel.tasks[x.task.index()].dice);
    let amount = costs.timer_program.draw(dice) + costs.syscall.draw(dice);
    let position = &mut x.programs.positions[x.task.index()];
    position.resumed = false;
    let takes = position.work(&mut x.machine.cpus[x.cpu.index()].segment, Mode::Kernel, amount);
    if takes {
        kernel::call_begins(x.run, x.machine, x.kernel, x.cpu);
    }
    takes
}

/// Whether the running task of the CPU has a time slice extension.
#[inline(always)]
fn has_extension(kernel: &Kernel, cpu: CpuId) -> bool {
    rarely(kernel.slice_extension > 0) && kernel.cpus[cpu.index()].slice_ctrl.granted
}

/// A read or write ends a time slice extension, as any call does.
#[cold]
fn begin_io_in_extension<S: Sink>(x: &mut Running<S>, object: u32, bytes: u32, write: bool) -> bool {
    kernel::rseq_syscall_enter_work(x.run, x.machine, x.kernel, x.cpu, Extension::Aborted);
    if x.machine.shares() {
        return begin_shared_io(x, object, bytes, write);
    }
    let position = &mut x.programs.positions[x.task.index()];
    let segment = &mut x.machine.cpus[x.cpu.index()].segment;
    let transfer = Transfer::new(&x.programs.objects[object as usize], bytes, write);
    begin_own_io(&x.machine.costs, x.kernel, x.task, &transfer, position, segment).0
}

/// Any other operation begins. Sleeps, which are frequent, have a path of their own.
#[inline(never)]
fn begin_other<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    if matches!(op, Op::Sleep(_)) && x.position().idle_steps < IDLE_STEPS && !has_extension(x.kernel, x.cpu) {
        begin_sleep(x)
    } else {
        begin_rare(x, op)
    }
}

/// Any operation begins that has no path of its own.
#[inline(never)]
fn begin_rare<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    x.position().resumed = false;
    if !take_mmap_lock(x, op) {
        return true;
    }
    let next = begin(x, op);
    if has_extension(x.kernel, x.cpu) {
        end_extension_by_call(x, op, &next);
    }
    let position = &mut x.programs.positions[x.task.index()];
    if position.idle_steps >= IDLE_STEPS {
        fail_livelock(x);
        return true;
    }
    let stops = position.follow(&mut x.machine.cpus[x.cpu.index()].segment, next);
    match op {
        Op::Stream { .. } if stops => kernel::begin_stream(x.run, x.machine, x.kernel, x.cpu, x.task),
        Op::Call => kernel::section_begins(x.run, x.machine, x.kernel, x.cpu, true),
        Op::Section { .. } => kernel::section_begins(x.run, x.machine, x.kernel, x.cpu, false),
        _ if stops => kernel::call_begins(x.run, x.machine, x.kernel, x.cpu),
        _ => {}
    }
    stops
}

/// A system call begins, which ends a time slice extension. The release of the lock calls rseq_slice_yield() itself.
#[cold]
fn end_extension_by_call<S: Sink>(x: &mut Running<S>, op: Op, next: &Next) {
    let fault = matches!(op, Op::MajorFault { .. } | Op::Memory { work: MemoryWork::Map | MemoryWork::Zero, .. });
    let calls = matches!(next, Next::Call(..)) || matches!(next, Next::Work(mode, _) if mode.is_kernel());
    if calls && !fault {
        kernel::rseq_syscall_enter_work(x.run, x.machine, x.kernel, x.cpu, Extension::Aborted);
    }
}

/// Any other operation takes effect. Sleeps have a path of their own.
#[inline(never)]
fn other_effect<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    match op {
        Op::Sleep(amount) => {
            sleep(x, amount);
            true
        }
        _ => rare_effect(x, op),
    }
}

/// An operation takes effect that has no path of its own.
#[inline(never)]
fn rare_effect<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    match op {
        Op::Call | Op::Section { .. } | Op::Memory { .. } | Op::KernelUnlock { .. } | Op::Fork { .. } => {
            if let Some(stops) = goes_on(x, op) {
                return stops;
            }
        }
        Op::SpinLock { .. } | Op::KernelLock { .. } => return spin_effect(x, op),
        Op::Stream { .. } => kernel::end_stream(x.run, x.machine, x.kernel, x.cpu),
        _ => {}
    }
    // A call is over unless it blocks again: back in user mode.
    let called = std::mem::replace(&mut x.segment().mode, Mode::User).is_kernel();
    match effect(x, op) {
        Next::Done => {
            if called && matches!(op, Op::Memory { work: MemoryWork::Map | MemoryWork::Zero, .. }) {
                leave_fault(x);
            }
            leave_call(x, called)
        }
        Next::Goto(label) => {
            let seen = exit_to_user(x, called);
            x.position().jump(label) || seen
        }
        next => {
            let position = &mut x.programs.positions[x.task.index()];
            let stops = position.follow(&mut x.machine.cpus[x.cpu.index()].segment, next);
            kernel::call_begins(x.run, x.machine, x.kernel, x.cpu);
            stops
        }
    }
}

/// Whether a call with several parts goes on after the one that has ended, and if so, whether the interpreter stops.
fn goes_on<S: Sink>(x: &mut Running<S>, op: Op) -> Option<bool> {
    if spins_for_mmap_lock(x) {
        return Some(spin_for_mmap_lock(x, op));
    }
    if rarely(x.kernel.mmap.is_some()) && unmaps_pages_next(x, op) && begins_pages(x, op) {
        return Some(true);
    }
    if x.machine.shoots_down && flushes(x, op) {
        return Some(true);
    }
    if !matches!(op, Op::Fork { .. }) && !end_section(x, op) {
        // On to its next section, still in the kernel.
        x.segment().mode = Mode::Kernel;
        if rarely(x.kernel.mmap.is_some()) && !forks_next(x) {
            release_mmap_lock(x, op);
        }
        return Some(x.position().advance());
    }
    if rarely(x.kernel.mmap.is_some()) && matches!(op, Op::Memory { .. } | Op::Fork { .. }) {
        release_mmap_lock(x, op);
    }
    None
}

/// Whether the first part of a munmap by a thread is over, in which it held `mmap_lock` for writing.
fn unmaps_pages_next<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    let next = matches!(op, Op::Memory { work: MemoryWork::Unmap, .. }) && x.position().phase == UNMAP_PAGES_NEXT;
    if next {
        x.position().phase = 0;
    }
    next
}

/// The rest of that munmap, in which it holds the lock for reading. False: it takes no time and is over at once.
fn begins_pages<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    let Op::Memory { kib, .. } = op else { return false };
    downgrade_mmap_lock(x);
    let next = begin_unmap_pages(x, u64::from(kib));
    let position = &mut x.programs.positions[x.task.index()];
    let stops = position.follow(&mut x.machine.cpus[x.cpu.index()].segment, next);
    kernel::call_begins(x.run, x.machine, x.kernel, x.cpu);
    stops
}

/// Whether the next operation is the fork to which the copy of page tables belongs.
fn forks_next<S: Sink>(x: &mut Running<S>) -> bool {
    let next = x.position().pc as usize + 1;
    matches!(x.programs.code.get(next), Some(Op::Fork { .. }))
}

/// munmap flushes the TLBs of the CPUs that run the process, this one among them. True: that takes time.
fn flushes<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    let Op::Memory { work: MemoryWork::Unmap, .. } = op else { return false };
    if x.segment().mode == Mode::LockSpin {
        return kernel::csd_lock_wait(x.run, x.machine, x.kernel, x.cpu);
    }
    if std::mem::take(&mut x.position().phase) == UNMAP_FLUSHED {
        return false;
    }
    match kernel::flush_tlb_mm_range(x.run, x.machine, x.kernel, x.cpu, x.task) {
        None => true,
        Some(0) => false,
        Some(own) => {
            let segment = &mut x.machine.cpus[x.cpu.index()].segment;
            // The check points of the munmap are over.
            (segment.every, segment.every_before) = (0, 0);
            let position = &mut x.programs.positions[x.task.index()];
            position.phase = UNMAP_FLUSHED;
            position.work(segment, Mode::Kernel, own)
        }
    }
}

/// A page fault returns to user mode as an interrupt does, not as a system call.
fn leave_fault<S: Sink>(x: &mut Running<S>) {
    let k = &x.kernel.cpus[x.cpu.index()];
    if k.need_resched || k.need_resched_lazy {
        kernel::rseq_grant_slice_extension(x.run, x.machine, x.kernel, x.cpu);
    }
}

/// The lock at hand decides whether the task continues to spin, so its mode stays what it is.
fn spin_effect<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    let next = effect(x, op);
    let position = &mut x.programs.positions[x.task.index()];
    position.follow(&mut x.machine.cpus[x.cpu.index()].segment, next)
}

#[cold]
#[inline(never)]
fn fail_livelock<S: Sink>(x: &mut Running<S>) {
    let error = livelock(x.run, x.programs, x.task);
    x.run.fail(error);
}

/// Time no longer moves for this task.
pub fn livelock<S: Sink>(run: &Run<S>, programs: &Programs, task: TaskId) -> SimError {
    let (task, step, line) = programs.where_is(task);
    SimError::Livelock { at: run.now, task, step, line }
}
