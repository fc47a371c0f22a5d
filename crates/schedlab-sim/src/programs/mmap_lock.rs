//! `mmap_lock`: which operations of a thread hold it, and how the thread waits for it.
//!
//! mmap, munmap and fork hold it for writing; munmap continues as a reader once the mapping is out of the tree
//! (`mmap_write_downgrade`). A page fault holds it for reading, or the lock of its mapping instead. Every thread is
//! assumed to fault in mappings of its own, so the lock of a mapping is only contended by fork, which holds those of
//! all mappings. The lock is held from the beginning of the call to its end.

use schedlab_model::{rarely, Nanos, TaskId, SEC};
use schedlab_policy::FaultLock;
use schedlab_trace::{Lock, Sink};
use schedlab_workload::{MemoryWork, Op, TaskKind};

use super::block::block;
use super::position::Step;
use super::running::Running;
use crate::kernel::{lock_waited, Life, RwSem, Spin, Wait, Waiter};
use crate::machine::{Mode, Stall, WORK_SHIFT};
use crate::run::Source;

/// How often a spinning task tests whether the owner still runs (estimate; 1 to 50 us are reasonable). The kernel tests
/// it in every turn of its loop, but each test is an event here. A spin therefore ends up to one step too late after
/// the owner has left its CPU. That is short beside the time for which an owner is off the CPU (a slice, 0.7 ms or
/// more, or a sleep), and long beside a test. A release of the lock ends the step at once.
const SPIN_STEP: Nanos = 10_000;

/// The operation begins. False: the thread waits for the lock, and begins it again when it has been woken.
#[inline(always)]
pub fn take_mmap_lock<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    x.kernel.mmap.is_none() || !matches!(op, Op::Memory { .. } | Op::Fork { .. }) || take(x, op)
}

#[inline(never)]
fn take<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    let (task, fresh) = (x.task, x.position().fresh_mapping);
    let waited = x.position().mmap_wait;
    let process = x.task().process;
    let Some(mmap) = x.kernel.mmap.as_deref_mut() else { return true };
    let rules = mmap.rules;
    let Some(process) = mmap.shared(process) else { return true };
    if process.lock.is_held_by(task) {
        return acquired(x, op);
    }
    if waited.is_some() {
        return if process.lock.try_queued(task, x.run.now) { acquired(x, op) } else { go_on_waiting(x) };
    }
    let fault = |lock: FaultLock| match lock {
        FaultLock::Read => true,
        FaultLock::Vma => fresh || process.forks,
        FaultLock::VmaAndTry => fresh && !process.lock.is_readable() || process.forks,
    };
    let write = match op {
        Op::Memory { work: MemoryWork::Map, .. } if fault(rules.file) => false,
        Op::Memory { work: MemoryWork::Zero, .. } if fault(rules.anonymous) => false,
        Op::Memory { work: MemoryWork::Mmap | MemoryWork::Unmap | MemoryWork::CopyPageTables, .. } => true,
        Op::Fork { kind: TaskKind::Process, .. } => true,
        _ => return true,
    };
    let mut woken = Vec::new();
    let taken = process.lock.try_lock(task, write, rules.since_rewrite, &mut woken);
    wake(x, woken);
    if taken {
        return acquired(x, op);
    }
    let now = x.local_time();
    x.position().mmap_wait = Some((write, now));
    let (runs, realtime) = (writer_runs(x), is_realtime(x));
    let Some(lock) = lock_of(x) else { return true };
    if (write || rules.readers_spin) && lock.rwsem_can_spin_on_owner(realtime, runs, rules.since_rewrite) {
        lock.spin(task, write);
        return spin_step(x, op);
    }
    queue(x, op, write)
}

/// The thread has acquired the lock: charges the atomic operations of acquiring and releasing it, and records the wait.
fn acquired<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    let (cpu, now) = (x.cpu, x.local_time());
    if let Some((_, since)) = x.position().mmap_wait.take() {
        lock_waited(x.run, x.kernel, cpu, Lock::Mmap, now.saturating_sub(since));
    }
    let forks = matches!(op, Op::Fork { .. } | Op::Memory { work: MemoryWork::CopyPageTables, .. });
    let arrival = x.arrival();
    let process = x.task().process;
    let Some(process) = x.kernel.mmap.as_deref_mut().and_then(|mmap| mmap.shared(process)) else { return true };
    process.forks = forks;
    if x.machine.shares() {
        let mut stall = Stall::new(arrival);
        (0..2).for_each(|_| stall.atomic(x.machine, cpu, &mut process.count, 1));
        x.machine.charge_stall(cpu, stall.whole());
        lock_waited(x.run, x.kernel, cpu, Lock::Line, stall.waits);
    }
    true
}

/// One step of optimistic spinning, by the first spinner that is on a CPU (the owner of the osq): it acquires the lock,
/// continues to spin, or joins the queue.
fn spin_step<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    let (task, now) = (x.task, x.run.now);
    if first_spinner(x) != Some(task) {
        return spin(x, None);
    }
    let write = x.position().mmap_wait.is_some_and(|(write, _)| write);
    let (runs, realtime, on_readers) = (writer_runs(x), is_realtime(x), since_rewrite(x));
    let Some(lock) = lock_of(x) else { return true };
    match lock.rwsem_optimistic_spin(task, now, realtime, runs, on_readers) {
        Spin::Acquired => acquired(x, op),
        Spin::Continues(limit) => spin(x, limit),
        Spin::Stops => {
            wake_next_spinner(x);
            queue(x, op, write)
        }
    }
}

fn queue<S: Sink>(x: &mut Running<S>, op: Op, write: bool) -> bool {
    let (task, now, all) = (x.task, x.run.now, since_rewrite(x));
    let timeout = if !all {
        // There is no handoff before the rewrite.
        Nanos::MAX
    } else if write && is_realtime(x) {
        now
    } else {
        now + rwsem_wait_timeout(x.kernel.tick_nsec)
    };
    let mut woken = Vec::new();
    let Some(lock) = lock_of(x) else { return true };
    lock.queue(Waiter { task, write, timeout }, all, now, &mut woken);
    let taken = lock.is_held_by(task) || lock.try_queued(task, now);
    wake(x, woken);
    if taken {
        return acquired(x, op);
    }
    go_on_waiting(x)
}

/// A waiter that has not acquired it sleeps, or spins if it has requested the handoff and the owner runs.
fn go_on_waiting<S: Sink>(x: &mut Running<S>) -> bool {
    let (task, runs) = (x.task, writer_runs(x));
    if runs && lock_of(x).is_some_and(|lock| lock.handoff_waiter() == Some(task)) {
        return spin(x, None);
    }
    let segment = x.segment();
    (segment.mode, segment.work_left) = (Mode::Kernel, 0);
    block(x, Wait::MmapLock, Step::Fetch);
    false
}

fn spin<S: Sink>(x: &mut Running<S>, limit: Option<Nanos>) -> bool {
    let piece = limit.map_or(SPIN_STEP, |limit| limit.saturating_sub(x.run.now).clamp(1, SPIN_STEP));
    let segment = x.segment();
    (segment.mode, segment.work_left) = (Mode::Spin, piece << WORK_SHIFT);
    let position = x.position();
    position.step = Step::Effect;
    position.idle_steps = 0;
    false
}

/// Whether the segment that has ended was spent spinning for the lock.
#[inline(always)]
pub fn spins_for_mmap_lock<S: Sink>(x: &mut Running<S>) -> bool {
    rarely(x.kernel.mmap.is_some()) && x.segment().mode == Mode::Spin && x.position().mmap_wait.is_some()
}

/// A step of spinning has ended, or the lock was released. True: the interpreter stops; false: the operation begins.
pub fn spin_for_mmap_lock<S: Sink>(x: &mut Running<S>, op: Op) -> bool {
    let (task, now) = (x.task, x.run.now);
    let Some(lock) = lock_of(x) else { return false };
    let has = if lock.is_held_by(task) {
        acquired(x, op)
    } else if lock.spinners().any(|spinner| spinner == task) {
        spin_step(x, op)
    } else if lock.try_queued(task, now) {
        acquired(x, op)
    } else {
        go_on_waiting(x)
    };
    if has {
        let segment = x.segment();
        (segment.mode, segment.work_left) = (Mode::User, 0);
        x.position().step = Step::Fetch;
    }
    !has
}

/// munmap has removed the mapping from the tree, and continues as a reader (`mmap_write_downgrade`).
pub fn downgrade_mmap_lock<S: Sink>(x: &mut Running<S>) {
    let (task, all) = (x.task, since_rewrite(x));
    let process = x.task().process;
    let Some(process) = x.kernel.mmap.as_deref_mut().and_then(|mmap| mmap.shared(process)) else { return };
    let mut woken = Vec::new();
    process.lock.downgrade_write(task, all, &mut woken);
    wake(x, woken);
    wake_next_spinner(x);
}

/// Whether the thread holds the lock.
pub fn holds_mmap_lock<S: Sink>(x: &mut Running<S>) -> bool {
    let (task, process) = (x.task, x.task().process);
    let process = x.kernel.mmap.as_deref_mut().and_then(|mmap| mmap.shared(process));
    process.is_some_and(|process| process.lock.is_held_by(task))
}

/// The operation is over: the lock is released. A task that spins on a CPU acquires it, and the first waiter is woken.
pub fn release_mmap_lock<S: Sink>(x: &mut Running<S>, op: Op) {
    match op {
        Op::Memory { work: MemoryWork::Mmap, .. } => x.position().fresh_mapping = true,
        Op::Memory { work: MemoryWork::Zero, .. } => x.position().fresh_mapping = false,
        _ => {}
    }
    if !holds_mmap_lock(x) {
        return;
    }
    let (task, now, all) = (x.task, x.run.now, since_rewrite(x));
    let process = x.task().process;
    let Some(process) = x.kernel.mmap.as_deref_mut().and_then(|mmap| mmap.shared(process)) else { return };
    process.forks = false;
    if !process.lock.release(task) {
        return;
    }
    wake_next_spinner(x);
    let mut woken = Vec::new();
    if let Some(lock) = lock_of(x) {
        lock.rwsem_wake(all, now, &mut woken);
    }
    wake(x, woken);
}

/// The spinning task tests the lock at once, unless its CPU has pending overhead. If it can have the lock, it holds it
/// from now on.
fn wake_next_spinner<S: Sink>(x: &mut Running<S>) {
    let now = x.run.now;
    let waiter = lock_of(x).and_then(|lock| lock.handoff_waiter()).filter(|task| is_current(x, *task));
    for spinner in first_spinner(x).into_iter().chain(waiter) {
        let cpu = x.kernel.sched.cpu_of(spinner);
        let c = &mut x.machine.cpus[cpu.index()];
        c.progress(now);
        if c.segment.mode != Mode::Spin || c.segment.cost_left > 0 || c.pending > 0 || c.rate == 0 {
            continue;
        }
        if let Some(lock) = lock_of(x) {
            lock.try_spinner(spinner);
        }
        x.run.set_event(x.kernel.id, Source::Segment, cpu, now);
    }
}

/// The first spinner that is on a CPU. One that was preempted has left the osq.
fn first_spinner<S: Sink>(x: &mut Running<S>) -> Option<TaskId> {
    let spinners: Vec<TaskId> = lock_of(x)?.spinners().collect();
    spinners.into_iter().find(|task| is_current(x, *task))
}

fn is_current<S: Sink>(x: &Running<S>, task: TaskId) -> bool {
    x.kernel.cpus[x.kernel.sched.cpu_of(task).index()].curr == Some(task)
}

fn wake<S: Sink>(x: &mut Running<S>, woken: Vec<TaskId>) {
    for task in woken {
        let t = &x.kernel.tasks[task.index()];
        if t.life == Life::Sleeping && t.wait == Wait::MmapLock {
            x.wake(task, false);
        }
    }
}

/// The writer that holds the lock is on a CPU (`owner_on_cpu`).
fn writer_runs<S: Sink>(x: &mut Running<S>) -> bool {
    let writer = lock_of(x).and_then(|lock| lock.writer());
    writer.is_some_and(|writer| is_current(x, writer))
}

fn lock_of<'x, S: Sink>(x: &'x mut Running<S>) -> Option<&'x mut RwSem> {
    let process = x.kernel.tasks[x.task.index()].process;
    Some(&mut x.kernel.mmap.as_deref_mut()?.shared(process)?.lock)
}

fn is_realtime<S: Sink>(x: &mut Running<S>) -> bool {
    x.task().prio < 100
}

fn since_rewrite<S: Sink>(x: &Running<S>) -> bool {
    x.kernel.mmap.as_deref().is_none_or(|mmap| mmap.rules.since_rewrite)
}

/// `RWSEM_WAIT_TIMEOUT` in ns: DIV_ROUND_UP(HZ, 250) jiffies, which is 4 ms unless HZ is no multiple of 250.
fn rwsem_wait_timeout(tick_nsec: Nanos) -> Nanos {
    (SEC / tick_nsec).div_ceil(250) * tick_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handoff_is_requested_after_a_whole_number_of_jiffies() {
        let of_hz = |hz: u64| rwsem_wait_timeout(SEC / hz);
        assert_eq!([100, 250, 300, 1000].map(of_hz), [10_000_000, 4_000_000, 6_666_666, 4_000_000]);
    }
}
