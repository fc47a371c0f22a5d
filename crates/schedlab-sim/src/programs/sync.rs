//! Futex-based synchronisation: the fast path in user mode, the slow path in the kernel.

use schedlab_model::{CpuId, TaskId};
use schedlab_trace::Sink;
use schedlab_workload::Op;

use super::block::{wait_and_retry, wait_once};
use super::lines::Word;
use super::objects::{Futex, Object};
use super::position::{Next, Step};
use super::running::Running;
use crate::kernel::{self, Wait};
use crate::machine::{Activity, Mode};

/// The futex word of an object, or the task's own.
fn word<'x, S: Sink>(x: &'x mut Running<S>, task: TaskId, object: Option<u32>) -> Option<&'x mut Futex> {
    match object {
        None => Some(&mut x.programs.positions[task.index()].own),
        Some(object) => match x.object(object) {
            Object::Futex(futex) => Some(futex),
            _ => None,
        },
    }
}

pub fn begin_wait<S: Sink>(x: &mut Running<S>, object: Option<u32>) -> Next {
    let task = x.task;
    let posted = word(x, task, object).is_none_or(|word| std::mem::take(&mut word.posted));
    let word = object.map_or(Word::Own(task), Word::Object);
    if posted {
        x.word_op(word);
        return Next::Done;
    }
    x.futex_wait(word)
}

pub fn begin_post<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    post_or_call(x, x.task, Some(object))
}

pub fn begin_post_peer<S: Sink>(x: &mut Running<S>, register: u8) -> Next {
    match x.peer(register) {
        Some(peer) => post_or_call(x, peer, None),
        None => Next::Done,
    }
}

/// FUTEX_WAKE is called only if a task waits; else the word alone is set.
fn post_or_call<S: Sink>(x: &mut Running<S>, of: TaskId, object: Option<u32>) -> Next {
    let Some(word) = word(x, of, object) else { return Next::Done };
    let waits = word.waiter.is_some();
    word.posted |= !waits;
    let word = object.map_or(Word::Own(of), Word::Object);
    if waits {
        return x.futex_wake(word);
    }
    x.word_op(word);
    Next::Done
}

/// FUTEX_WAIT and FUTEX_WAKE of a word.
pub fn futex_effect<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    let task = x.task;
    let (of, object) = match op {
        Op::Wait(object) | Op::Post(object) | Op::PostHere(object) => (task, Some(object)),
        Op::PostPeer(register) => match x.peer(register) {
            Some(peer) => (peer, None),
            None => return Next::Done,
        },
        _ => (task, None),
    };
    let wait = object.map_or(Wait::Own, Wait::Object);
    let Some(word) = word(x, of, object) else { return Next::Done };
    if matches!(op, Op::Post(_) | Op::PostHere(_) | Op::PostPeer(_)) {
        match word.waiter.take() {
            Some(waiter) if matches!(op, Op::PostHere(_)) => x.wake_on_current_cpu(waiter),
            Some(waiter) => x.wake(waiter, false),
            None => word.posted = true,
        }
        return Next::Done;
    }
    if std::mem::take(&mut word.posted) {
        return Next::Done;
    }
    if word.waiter.is_some() {
        return x.fail_program("wait: another task already waits on this futex word");
    }
    word.waiter = Some(task);
    wait_once(x, wait)
}

pub fn begin_lock<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    x.word_op(Word::Object(object));
    let pid = x.task().pid;
    let Object::Mutex(mutex) = x.object(object) else { return Next::Done };
    match mutex.owner {
        None => {
            mutex.owner = Some(pid);
            Next::Done
        }
        Some(_) => x.futex_wait(Word::Object(object)),
    }
}

/// `futex_wait` on a contended mutex, and the retry after a wakeup.
pub fn acquire<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let (task, pid) = (x.task, x.task().pid);
    let Object::Mutex(mutex) = x.object(object) else { return Next::Done };
    if mutex.owner.is_none() {
        mutex.owner = Some(pid);
        return Next::Done;
    }
    mutex.waiting.push_back(task);
    wait_and_retry(x, Wait::Object(object))
}

pub fn begin_unlock<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    x.word_op(Word::Object(object));
    let pid = x.task().pid;
    let Object::Mutex(mutex) = x.object(object) else { return Next::Done };
    if mutex.owner != Some(pid) {
        return x.fail_program("unlock: the task does not hold this mutex");
    }
    mutex.owner = None;
    if mutex.waiting.is_empty() {
        return Next::Done;
    }
    x.futex_wake(Word::Object(object))
}

pub fn wake_mutex_waiter<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let Object::Mutex(mutex) = x.object(object) else { return Next::Done };
    if let Some(waiter) = mutex.waiting.pop_front() {
        x.wake(waiter, false);
    }
    Next::Done
}

pub fn begin_sem_wait<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    x.word_op(Word::Object(object));
    match x.object(object) {
        Object::Semaphore { units, .. } if *units > 0 => {
            *units -= 1;
            Next::Done
        }
        _ => x.futex_wait(Word::Object(object)),
    }
}

pub fn sem_try_wait<S: Sink>(x: &mut Running<S>, object: u32, none: u32) -> Next {
    x.word_op(Word::Object(object));
    match x.object(object) {
        Object::Semaphore { units, .. } if *units > 0 => {
            *units -= 1;
            Next::Done
        }
        _ => Next::Goto(none),
    }
}

pub fn begin_sem_post<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    x.word_op(Word::Object(object));
    match x.object(object) {
        Object::Semaphore { units, waiting } => {
            *units = units.saturating_add(1);
            if waiting.is_empty() {
                return Next::Done;
            }
            x.futex_wake(Word::Object(object))
        }
        _ => Next::Done,
    }
}

/// The slow paths of semaphores, barriers and condition variables.
pub fn sync_effect<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    match op {
        Op::SemWait(object) => sem_wait(x, object),
        Op::SemPost(object) => {
            let Object::Semaphore { waiting, .. } = x.object(object) else { return Next::Done };
            if let Some(waiter) = waiting.pop_front() {
                x.wake(waiter, false);
            }
            Next::Done
        }
        Op::Barrier(object) => arrive(x, object),
        Op::CondWait { object, mutex } => cond_wait(x, object, mutex),
        Op::CondSignal(object) => signal(x, object, 1),
        Op::CondBroadcast(object) => signal(x, object, usize::MAX),
        _ => Next::Done,
    }
}

fn sem_wait<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let task = x.task;
    let Object::Semaphore { units, waiting } = x.object(object) else { return Next::Done };
    if *units > 0 {
        *units -= 1;
        return Next::Done;
    }
    waiting.push_back(task);
    wait_and_retry(x, Wait::Object(object))
}

fn arrive<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let task = x.task;
    let Object::Barrier { parties, waiting } = x.object(object) else { return Next::Done };
    if waiting.len() + 1 >= *parties as usize {
        for waiter in std::mem::take(waiting) {
            x.wake(waiter, false);
        }
        return Next::Done;
    }
    waiting.push(task);
    wait_once(x, Wait::Object(object))
}

/// Releases the mutex and waits; woken, the task competes for the mutex again.
fn cond_wait<S: Sink>(x: &mut Running<S>, object: u32, mutex: u32) -> Next {
    if x.position().resumed {
        return acquire(x, mutex);
    }
    let (task, pid) = (x.task, x.task().pid);
    let Object::Mutex(lock) = x.object(mutex) else { return Next::Done };
    if lock.owner != Some(pid) {
        return x.fail_program("wait: the task does not hold the mutex");
    }
    lock.owner = None;
    if let Some(waiter) = lock.waiting.pop_front() {
        x.wake(waiter, false);
    }
    if let Object::Condition(waiting) = x.object(object) {
        waiting.push_back((task, mutex));
    }
    wait_and_retry(x, Wait::Object(object))
}

fn signal<S: Sink>(x: &mut Running<S>, object: u32, count: usize) -> Next {
    for _ in 0..count {
        let Object::Condition(waiting) = x.object(object) else { return Next::Done };
        let Some((waiter, _)) = waiting.pop_front() else { break };
        x.wake(waiter, false);
    }
    Next::Done
}

/// Tries the lock of the CPU on which the task runs; spins there until the holder releases it or the task is migrated.
pub fn try_cpu_lock<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    x.carry_user_op();
    let (cpu, task) = (x.cpu, x.task);
    let Object::CpuLocks(holders) = x.object(object) else { return Next::Done };
    let Some(holder) = holders.get_mut(cpu.index()) else { return Next::Done };
    if holder.is_none() {
        *holder = Some(task);
        x.position().cpu_lock = Some((object, cpu.index()));
        x.segment().mode = Mode::User;
        return Next::Done;
    }
    let segment = x.segment();
    segment.mode = Mode::Spin;
    segment.work_left = 0;
    let position = x.position();
    position.step = Step::Effect;
    position.idle_steps = 0;
    Next::Stop
}

pub fn cpu_unlock<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    x.carry_user_op();
    let held = x.position().cpu_lock.take();
    let Some((index, slot)) = held.filter(|(held, _)| *held == object) else {
        return x.fail_program("cpu unlock: the task holds no per-CPU lock");
    };
    if let Object::CpuLocks(holders) = x.object(index) {
        holders[slot] = None;
    }
    let c = &x.machine.cpus[slot];
    let another = x.kernel.cpus[slot].curr.is_some_and(|curr| curr != x.task);
    if another && c.activity == Activity::Busy && c.segment.mode == Mode::Spin {
        kernel::poll_lock(x.run, x.machine, x.kernel, CpuId(slot as u32));
    }
    Next::Done
}
