//! Spinlocks in user space: a task that does not get the lock burns CPU time until it does.
//!
//! The holder may be preempted, in user mode or in a page fault. The scheduler has no information that others spin for
//! the lock; the holder may request a time slice extension.

use schedlab_model::Nanos;
use schedlab_trace::{Extension, Kind, Sink};
use schedlab_workload::SpinLockSpec;

use super::objects::{Object, SpinLock};
use super::position::{Next, Step};
use super::running::Running;
use crate::kernel::{self, Wait};
use crate::machine::{Activity, Mode, WORK_SHIFT};
use crate::run::Source;

/// Work that no run ends: the longest time that a task spins.
const FOREVER: u64 = 1 << 60;

/// The task tries to take the lock.
pub fn begin_spin_lock<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    x.carry_user_op();
    let (task, pid) = (x.task, x.task().pid);
    let Some(lock) = lock_of(x, object) else { return Next::Done };
    if lock.owner == Some(pid) {
        return x.fail_program("lock: the task holds this spinlock already");
    }
    if lock.owner.is_none() {
        lock.owner = Some(pid);
        let spec = lock.spec;
        request_extension(x, spec);
        return Next::Done;
    }
    lock.spinning.push(task);
    let (budget, sleep) = (budget(lock), lock.spec.sleep);
    let position = x.position();
    (position.spun, position.sleep) = (0, sleep);
    spin(x, budget)
}

/// The lock was released, the time to spin is over, or the task is back from its sleep.
pub fn spin_lock<S: Sink>(x: &mut Running<S>, object: u32, metric: u16) -> Next {
    let (task, pid) = (x.task, x.task().pid);
    let (left, spins) = (x.segment().work_left, x.segment().mode == Mode::Spin);
    let Some(lock) = lock_of(x, object) else { return Next::Done };
    let (budget, spec) = (budget(lock), lock.spec);
    if lock.owner.is_none() || lock.owner == Some(pid) {
        lock.owner = Some(pid);
        lock.spinning.retain(|spinner| *spinner != task);
        let spun = if spins { budget - left } else { 0 };
        let value = (x.position().spun + spun) >> WORK_SHIFT;
        let segment = x.segment();
        (segment.mode, segment.work_left) = (Mode::User, 0);
        request_extension(x, spec);
        x.kernel.emit(x.run, x.cpu, Kind::Sample { pid, metric, value });
        return Next::Done;
    }
    if !spins {
        return spin(x, budget);
    }
    if left > 0 {
        return Next::Stop;
    }
    x.position().spun += budget;
    let soft = x.run.now + perform_spin_delay(x, spec);
    kernel::start_timer(x.run, x.machine, x.kernel, x.cpu, task, soft);
    super::block::wait_and_retry(x, Wait::Timer)
}

/// How long the task sleeps now, as `perform_spin_delay` of PostgreSQL 17 (src/backend/storage/lmgr/s_lock.c) chooses
/// it:
///
/// ```text
/// next = last + last * random(0, 1), and from the beginning again beyond the maximum
/// ```
fn perform_spin_delay<S: Sink>(x: &mut Running<S>, spec: SpinLockSpec) -> Nanos {
    let noise = x.programs.noise;
    let position = x.position();
    let sleep = position.sleep;
    if spec.sleep_max > 0 {
        let longer = sleep + if noise { position.stream.below(sleep) } else { sleep / 2 };
        position.sleep = if longer > spec.sleep_max { spec.sleep } else { longer };
    }
    sleep
}

/// The task has the lock: its critical section begins.
fn request_extension<S: Sink>(x: &mut Running<S>, spec: SpinLockSpec) {
    if spec.slice_extension && x.kernel.slice_extension > 0 {
        x.kernel.cpus[x.cpu.index()].slice_ctrl.request = true;
    }
}

/// Its critical section ends. A task that has been granted an extension calls rseq_slice_yield(), before whose work the
/// kernel reschedules.
fn end_extension<S: Sink>(x: &mut Running<S>) -> Next {
    let ctrl = &mut x.kernel.cpus[x.cpu.index()].slice_ctrl;
    ctrl.request = false;
    if !ctrl.granted {
        return Next::Done;
    }
    kernel::rseq_syscall_enter_work(x.run, x.machine, x.kernel, x.cpu, Extension::Yielded);
    x.kernel_call(0)
}

/// Releases the lock. A task that spins on a CPU gets it at once; without one it is free.
pub fn spin_unlock<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    x.carry_user_op();
    let pid = x.task().pid;
    let Some(lock) = lock_of(x, object) else { return Next::Done };
    if lock.owner != Some(pid) {
        return x.fail_program("unlock: the task does not hold this spinlock");
    }
    lock.owner = None;
    let extended = lock.spec.slice_extension;
    let Object::SpinLock(lock) = &mut x.programs.objects[object as usize] else { return Next::Done };
    for spinner in lock.spinning.iter().copied() {
        let cpu = x.kernel.sched.cpu_of(spinner);
        let c = &mut x.machine.cpus[cpu.index()];
        if x.kernel.cpus[cpu.index()].curr != Some(spinner) || c.activity != Activity::Busy {
            continue;
        }
        c.progress(x.run.now);
        // One that still has overhead to spend looks at the lock after it.
        if c.segment.mode == Mode::Spin && c.segment.cost_left == 0 && c.pending == 0 && c.rate > 0 {
            lock.owner = Some(x.kernel.tasks[spinner.index()].pid);
            x.run.set_event(x.kernel.id, Source::Segment, cpu, x.run.now);
            break;
        }
    }
    if extended {
        end_extension(x)
    } else {
        Next::Done
    }
}

fn lock_of<'x, S: Sink>(x: &'x mut Running<S>, object: u32) -> Option<&'x mut SpinLock> {
    match x.object(object) {
        Object::SpinLock(lock) => Some(lock),
        _ => None,
    }
}

fn budget(lock: &SpinLock) -> u64 {
    match lock.spec.spin {
        0 => FOREVER,
        spin => spin << WORK_SHIFT,
    }
}

fn spin<S: Sink>(x: &mut Running<S>, budget: u64) -> Next {
    let segment = x.segment();
    (segment.mode, segment.work_left) = (Mode::Spin, budget);
    let position = x.position();
    position.step = Step::Effect;
    position.idle_steps = 0;
    Next::Stop
}
