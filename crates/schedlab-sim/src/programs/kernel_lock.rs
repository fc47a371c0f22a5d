//! Spinlocks of the kernel, taken within a system call.
//!
//! Preemption is disabled from the moment at which a task wants the lock until it has released it, so a waiter is the current
//! task of its CPU; in a guest the CPU itself may not be executed. Follows queued_spin_lock_slowpath, virt_spin_lock and
//! kernel/locking/qspinlock_paravirt.h as they are described, not checked against a release. The transfer of the lock's line between CPUs is not charged.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_trace::{Kind, Sink};

use super::block::wait_and_retry;
use super::objects::{KernelLock, LockWaiter, Object};
use super::position::{Next, Step};
use super::running::Running;
use crate::kernel::{Kernel, Spinlocks, Wait};
use crate::machine::{Machine, Mode, WORK_SHIFT};
use crate::run::Source;

/// Work that no run ends.
const FOREVER: u64 = 1 << 60;
/// `cpu_relax` in ns: PAUSE takes 140 cycles on server processors since Skylake, here at 2.5 GHz. Before Skylake it took
/// about 10 cycles, on Zen 2 about 65.
const CPU_RELAX: Nanos = 56;
/// `SPIN_THRESHOLD`: looks at the lock before a waiter halts.
const SPIN_THRESHOLD: Nanos = 1 << 15;
/// A waiter that is not the first looks at its predecessor's vCPU this often (`PV_PREV_CHECK_MASK` + 1).
const PREV_CHECK: Nanos = 256;

/// The task wants the lock.
pub fn begin_kernel_lock<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let (task, cost) = (x.task, x.machine.atomic_time);
    x.machine.charge(x.cpu, cost);
    if take(x, object) {
        return Next::Done;
    }
    x.position().spun = 0;
    if let Some(lock) = lock_of(x, object) {
        lock.queue.push_back(LockWaiter { task, spun: 0, piece: 0 });
    }
    wait(x, object)
}

/// A waiter looks at the lock: it was handed over, a piece of its spinning is over, or its CPU executes again.
pub fn kernel_lock<S: Sink>(x: &mut Running<S>, object: u32, metric: u16) -> Next {
    let (mode, left) = (x.segment().mode, x.segment().work_left);
    let spun = waiter(x, object).map_or(0, |waiter| waiter.piece);
    let spun = if mode == Mode::LockSpin { spun.saturating_sub(left) } else { 0 };
    if take(x, object) {
        let pid = x.task().pid;
        let value = (x.position().spun + spun) >> WORK_SHIFT;
        let segment = x.segment();
        (segment.mode, segment.work_left) = (Mode::Kernel, 0);
        x.kernel.emit(x.run, x.cpu, Kind::Sample { pid, metric, value });
        return Next::Done;
    }
    if mode == Mode::LockSpin && left > 0 {
        return Next::Stop;
    }
    x.position().spun += spun;
    let Some(waiter) = waiter(x, object) else { return wait(x, object) };
    waiter.spun = if mode == Mode::PvWait { 0 } else { waiter.spun + spun };
    let spun = waiter.spun;
    x.kernel.cpus[x.cpu.index()].pv_kicked = false;
    if x.kernel.spinlocks == Spinlocks::Paravirt && mode == Mode::LockSpin {
        let threshold = (SPIN_THRESHOLD * CPU_RELAX) << WORK_SHIFT;
        if spun >= threshold || predecessor_is_preempted(x, object) {
            return pv_wait(x);
        }
    }
    let k = &mut x.kernel.cpus[x.cpu.index()];
    if mode == Mode::LockSpin && k.ple_window > 0 && spun >= k.ple_window << WORK_SHIFT {
        k.pause_loop = true;
        x.run.touch(x.kernel.id, x.cpu);
    }
    wait(x, object)
}

/// Releases the lock: the first waiter gets it, or is kicked to take it.
pub fn kernel_unlock<S: Sink>(x: &mut Running<S>, object: u32) {
    let (task, kind) = (x.task, x.kernel.spinlocks);
    let Some(lock) = lock_of(x, object).filter(|lock| lock.owner == Some(task)) else { return };
    lock.owner = None;
    let queue: Vec<TaskId> = match kind {
        Spinlocks::TestAndSet => lock.queue.iter().map(|waiter| waiter.task).collect(),
        _ => lock.queue.front().map(|waiter| waiter.task).into_iter().collect(),
    };
    for next in queue {
        let cpu = x.kernel.sched.cpu_of(next);
        let c = &mut x.machine.cpus[cpu.index()];
        c.progress(x.run.now);
        let looks = c.rate > 0 && c.segment.cost_left == 0 && c.pending == 0;
        match kind {
            Spinlocks::Sleeping => return x.wake(next, false),
            Spinlocks::TestAndSet if !looks => continue,
            Spinlocks::Paravirt if c.segment.mode == Mode::PvWait => return pv_kick(x, cpu),
            // From now on it is the owner, wherever its CPU is.
            _ => {}
        }
        if let Some(lock) = lock_of(x, object) {
            lock.owner = Some(next);
        }
        if looks {
            x.run.set_event(x.kernel.id, Source::Segment, cpu, x.run.now);
        }
        return;
    }
}

/// Takes the lock if it is free for this task.
fn take<S: Sink>(x: &mut Running<S>, object: u32) -> bool {
    let task = x.task;
    let Object::KernelLock(lock) = &x.programs.objects[object as usize] else { return true };
    let first = lock.queue.front().map(|waiter| waiter.task);
    let free = match lock.owner {
        Some(owner) => owner == task,
        None => match x.kernel.spinlocks {
            Spinlocks::TestAndSet => true,
            Spinlocks::Queued | Spinlocks::Sleeping => first.is_none_or(|first| first == task),
            // A lock whose first waiter has halted may be stolen (pv_hybrid_queued_unfair_trylock).
            Spinlocks::Paravirt => first.is_none_or(|first| first == task || has_halted(x.machine, x.kernel, first)),
        },
    };
    if let Some(lock) = lock_of(x, object).filter(|_| free) {
        lock.owner = Some(task);
        lock.queue.retain(|waiter| waiter.task != task);
    }
    free
}

/// The task goes on waiting: it spins until the next time that it does more than that, or sleeps.
fn wait<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let (kind, window) = (x.kernel.spinlocks, x.kernel.cpus[x.cpu.index()].ple_window);
    if kind == Spinlocks::Sleeping {
        return wait_and_retry(x, Wait::Object(object));
    }
    let Some(waiter) = waiter(x, object) else { return Next::Stop };
    let mut piece = FOREVER;
    if window > 0 {
        piece = (window << WORK_SHIFT).saturating_sub(waiter.spun).max(window << WORK_SHIFT >> 1);
    }
    if kind == Spinlocks::Paravirt {
        piece = piece.min((PREV_CHECK * CPU_RELAX) << WORK_SHIFT);
    }
    waiter.piece = piece;
    let segment = x.segment();
    (segment.mode, segment.work_left) = (Mode::LockSpin, piece);
    let position = x.position();
    position.step = Step::Effect;
    position.idle_steps = 0;
    Next::Stop
}

/// `pv_wait`: the CPU halts.
fn pv_wait<S: Sink>(x: &mut Running<S>) -> Next {
    let segment = x.segment();
    (segment.mode, segment.work_left) = (Mode::PvWait, 0);
    x.run.touch(x.kernel.id, x.cpu);
    Next::Stop
}

/// `pv_kick`: a hypercall wakes the CPU that has halted.
fn pv_kick<S: Sink>(x: &mut Running<S>, cpu: CpuId) {
    x.machine.charge_hypercalls(x.cpu, 1);
    x.kernel.cpus[cpu.index()].pv_kicked = true;
    let c = &mut x.machine.cpus[cpu.index()];
    c.woken_from = x.cpu;
    if c.rate > 0 {
        return x.run.set_event(x.kernel.id, Source::Segment, cpu, x.run.now);
    }
    x.run.touch(x.kernel.id, cpu);
}

/// `pv_wait_early`: the waiter before this one does not run.
fn predecessor_is_preempted<S: Sink>(x: &Running<S>, object: u32) -> bool {
    let Object::KernelLock(lock) = &x.programs.objects[object as usize] else { return false };
    let place = lock.queue.iter().position(|waiter| waiter.task == x.task);
    let Some(before) = place.and_then(|place| place.checked_sub(1)) else { return false };
    let cpu = x.kernel.sched.cpu_of(lock.queue[before].task);
    x.kernel.sched.vcpu_is_preempted(cpu) || x.machine.cpus[cpu.index()].segment.mode == Mode::PvWait
}

fn has_halted(machine: &Machine, kernel: &Kernel, task: TaskId) -> bool {
    machine.cpus[kernel.sched.cpu_of(task).index()].segment.mode == Mode::PvWait
}

fn lock_of<'x, S: Sink>(x: &'x mut Running<S>, object: u32) -> Option<&'x mut KernelLock> {
    match x.object(object) {
        Object::KernelLock(lock) => Some(lock),
        _ => None,
    }
}

fn waiter<'x, S: Sink>(x: &'x mut Running<S>, object: u32) -> Option<&'x mut LockWaiter> {
    let task = x.task;
    lock_of(x, object)?.queue.iter_mut().find(|waiter| waiter.task == task)
}
