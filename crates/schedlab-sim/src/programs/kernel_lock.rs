//! Spinlocks of the kernel, taken within a system call.
//!
//! Preemption is disabled from the call of spin_lock() until the lock has been released, so a waiter is the current
//! task of its CPU; in a guest the CPU itself may not be executed. Follows queued_spin_lock_slowpath, virt_spin_lock
//! and kernel/locking/qspinlock_paravirt.h of 6.12.117, which tests the lock as 5.4 does; for powerpc
//! arch/powerpc/lib/qspinlock.c and simple_spinlock.h, for s390 arch_spin_lock_classic of 6.12. The transfer of the
//! lock's line between CPUs is not charged.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_trace::{Kind, Sink};

use super::block::wait_and_retry;
use super::lock_queue::{KernelLock, LockWaiter};
use super::objects::Object;
use super::position::{Next, Step};
use super::running::Running;
use crate::kernel::{Spinlocks, Wait};
use crate::machine::{Mode, WORK_SHIFT};
use crate::run::Source;

/// Work that no run ends.
const FOREVER: u64 = 1 << 60;
/// `SPIN_THRESHOLD`: looks at the lock before a waiter halts.
const SPIN_THRESHOLD: Nanos = 1 << 15;
/// `head_spins` of powerpc: looks at the lock before the first waiter forbids others to overtake it.
const HEAD_SPINS: Nanos = 1 << 8;
/// `pv_sleepy_lock_factor`: by how much longer it spins if it has seen the holder's vCPU wait for a CPU.
const SLEEPY: Nanos = 256;
/// A waiter that is not the first checks its predecessor's state once in this many iterations (`PV_PREV_CHECK_MASK` +
/// 1).
const PREV_CHECK: Nanos = 256;

/// The task tries to take the lock.
pub fn begin_kernel_lock<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let (task, cost, kind) = (x.task, x.machine.atomic_time, x.kernel.spinlocks);
    x.machine.charge(x.cpu, cost);
    if take(x, object) {
        return Next::Done;
    }
    x.position().spun = 0;
    if let Some(lock) = lock_of(x, object) {
        lock.arrive(kind, task);
    }
    if x.kernel.pv_calls.spinner_yields {
        yield_to_preempted(x, object);
    }
    wait(x, object)
}

/// A waiter looks at the lock: it was handed over, a piece of its spinning is over, or its CPU executes again.
pub fn kernel_lock<S: Sink>(x: &mut Running<S>, object: u32, metric: u16) -> Next {
    let (mode, left, task) = (x.segment().mode, x.segment().work_left, x.task);
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
    if x.kernel.spinlocks != Spinlocks::Overtaken || x.machine.cpu_relax == 0 {
        if let Some(lock) = lock_of(x, object).filter(|lock| lock.is_first(task)) {
            lock.first_spins();
        }
    }
    if x.kernel.pv_calls.spinner_yields {
        yield_to_preempted(x, object);
    }
    if mode == Mode::LockSpin && left > 0 {
        return Next::Stop;
    }
    x.position().spun += spun;
    let Some(waiter) = waiter(x, object) else { return wait(x, object) };
    waiter.spun = if mode == Mode::PvWait { 0 } else { waiter.spun + spun };
    let (spun, queued, sleepy) = (waiter.spun, waiter.queued, waiter.sleepy);
    if x.kernel.spinlocks == Spinlocks::Overtaken && spun >= head_spins(x.machine.cpu_relax, sleepy) {
        if let Some(lock) = lock_of(x, object).filter(|lock| lock.is_first(task)) {
            lock.first_spins();
        }
    }
    x.kernel.cpus[x.cpu.index()].pv_kicked = false;
    let halts = x.kernel.spinlocks == Spinlocks::Paravirt && x.machine.cpu_relax > 0;
    if halts && queued && mode == Mode::LockSpin {
        let threshold = (SPIN_THRESHOLD * x.machine.cpu_relax) << WORK_SHIFT;
        if spun >= threshold || pv_wait_early(x, object) {
            return pv_wait(x, object);
        }
    }
    let k = &mut x.kernel.cpus[x.cpu.index()];
    if mode == Mode::LockSpin && k.ple_window > 0 && spun >= k.ple_window << WORK_SHIFT {
        k.pause_loop = true;
        x.run.touch(x.kernel.id, x.cpu);
    }
    wait(x, object)
}

/// Releases the lock: one of the tasks that poll it gets it. A first waiter that has halted is kicked.
pub fn kernel_unlock<S: Sink>(x: &mut Running<S>, object: u32) {
    let (task, kind) = (x.task, x.kernel.spinlocks);
    let Some(lock) = lock_of(x, object).filter(|lock| lock.owner == Some(task)) else { return };
    lock.owner = None;
    for next in lock.candidates(kind) {
        let cpu = x.kernel.sched.cpu_of(next);
        let c = &mut x.machine.cpus[cpu.index()];
        c.progress(x.run.now);
        let looks = c.rate > 0 && c.segment.cost_left == 0 && c.pending == 0;
        let halted = c.segment.mode == Mode::PvWait;
        match kind {
            Spinlocks::Sleeping => return x.wake(next, false),
            Spinlocks::Paravirt if halted => {
                pv_kick(x, cpu);
                continue;
            }
            Spinlocks::TestAndSet if !looks => continue,
            Spinlocks::Overtaken if !looks && !lock_of(x, object).is_some_and(|lock| lock.must_queue()) => continue,
            Spinlocks::Paravirt if !looks && !lock_of(x, object).is_some_and(|lock| lock.is_first(next)) => continue,
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

/// Takes the lock if it is free for this task. The waiter that becomes the first sees it once its CPU executes.
fn take<S: Sink>(x: &mut Running<S>, object: u32) -> bool {
    let (task, kind) = (x.task, x.kernel.spinlocks);
    let Some(lock) = lock_of(x, object) else { return true };
    if !lock.is_free_for(kind, task) {
        return false;
    }
    if !lock.take(task) {
        return true;
    }
    let Some(waiter) = lock.queue.front_mut() else { return true };
    let first = waiter.task;
    if kind == Spinlocks::Overtaken {
        waiter.spun = 0;
        return true;
    }
    let c = &x.machine.cpus[x.kernel.sched.cpu_of(first).index()];
    if c.rate > 0 && c.segment.mode == Mode::LockSpin {
        if let Some(lock) = lock_of(x, object) {
            lock.first_spins();
        }
    }
    true
}

/// The task goes on waiting: it spins until the next time that it does more than that, or sleeps.
fn wait<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let (kind, window) = (x.kernel.spinlocks, x.kernel.cpus[x.cpu.index()].ple_window);
    if kind == Spinlocks::Sleeping {
        return wait_and_retry(x, Wait::Object(object));
    }
    let relax = x.machine.cpu_relax;
    let Some(waiter) = waiter(x, object) else { return Next::Stop };
    let mut piece = FOREVER;
    if window > 0 {
        piece = (window << WORK_SHIFT).saturating_sub(waiter.spun).max(window << WORK_SHIFT >> 1);
    }
    if kind == Spinlocks::Paravirt && relax > 0 {
        piece = piece.min((PREV_CHECK * relax) << WORK_SHIFT);
    }
    if kind == Spinlocks::Overtaken && relax > 0 {
        let left = head_spins(relax, waiter.sleepy).saturating_sub(waiter.spun);
        piece = piece.min(if left > 0 { left } else { FOREVER });
    }
    waiter.piece = piece;
    let segment = x.segment();
    (segment.mode, segment.work_left) = (Mode::LockSpin, piece);
    let position = x.position();
    position.step = Step::Effect;
    position.idle_steps = 0;
    Next::Stop
}

/// Work of the first waiter of powerpc before it forbids others to overtake it.
fn head_spins(relax: Nanos, sleepy: bool) -> u64 {
    (HEAD_SPINS * relax * if sleepy { SLEEPY } else { 1 }) << WORK_SHIFT
}

/// `yield_to_preempted`, `smp_yield_cpu`: a hypercall by which the vCPU of the waiter yields to that of the holder, or
/// in a queue to that of the waiter before it, if that vCPU waits for a CPU.
fn yield_to_preempted<S: Sink>(x: &mut Running<S>, object: u32) {
    let (task, queued) = (x.task, x.kernel.spinlocks == Spinlocks::Overtaken);
    let Some(lock) = lock_of(x, object) else { return };
    let place = lock.queue.iter().position(|waiter| waiter.task == task);
    let before = place.and_then(|place| place.checked_sub(1)).map(|place| lock.queue[place].task).filter(|_| queued);
    let owner = lock.owner.filter(|owner| *owner != task);
    let waits = |x: &Running<S>, other: TaskId| x.kernel.cpus[x.kernel.sched.cpu_of(other).index()].vcpu_waits;
    let holder = owner.filter(|owner| waits(x, *owner));
    let Some(target) = holder.or(before.filter(|before| waits(x, *before))) else { return };
    if let Some(waiter) = waiter(x, object) {
        waiter.sleepy |= holder.is_some();
    }
    x.machine.charge_hypercalls(x.cpu, 1);
    x.kernel.cpus[x.cpu.index()].flush.yields_to = Some(x.kernel.sched.cpu_of(target));
    x.run.touch(x.kernel.id, x.cpu);
}

/// `pv_wait`: the CPU halts.
fn pv_wait<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let task = x.task;
    if let Some(lock) = lock_of(x, object).filter(|lock| lock.is_first(task)) {
        lock.first_halts();
    }
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

/// `pv_wait_early`: the waiter before this one has halted. Up to 5.3 also: its vCPU does not run; the stable releases
/// of 5.2 and 5.3 no longer have that.
fn pv_wait_early<S: Sink>(x: &Running<S>, object: u32) -> bool {
    let Object::KernelLock(lock) = &x.programs.objects[object as usize] else { return false };
    let place = lock.queue.iter().position(|waiter| waiter.task == x.task);
    let Some(before) = place.and_then(|place| place.checked_sub(1)) else { return false };
    let cpu = x.kernel.sched.cpu_of(lock.queue[before].task);
    x.machine.cpus[cpu.index()].segment.mode == Mode::PvWait
}

fn lock_of<'x, S: Sink>(x: &'x mut Running<S>, object: u32) -> Option<&'x mut KernelLock> {
    match x.object(object) {
        Object::KernelLock(lock) => Some(lock),
        _ => None,
    }
}

fn waiter<'x, S: Sink>(x: &'x mut Running<S>, object: u32) -> Option<&'x mut LockWaiter> {
    let task: TaskId = x.task;
    lock_of(x, object)?.queue.iter_mut().find(|waiter| waiter.task == task)
}
