//! PI futexes: FUTEX_LOCK_PI and FUTEX_UNLOCK_PI.
//!
//! Follows futex_lock_pi and futex_unlock_pi (kernel/futex/pi.c, 6.1) with the rt_mutex behind them: a release hands
//! the lock to the first waiter, whether it runs or not (wake_futex_pi). Waiters of equal priority queue in FIFO order,
//! and all tasks of the fair class have the same priority there (__waiter_prio). Left out: the boost, which changes
//! neither the weight nor the class of a fair task; the spinning of the first waiter while the owner is on a CPU
//! (rtmutex_spin_on_owner).

use schedlab_trace::Sink;

use super::block::wait_once;
use super::lines::Word;
use super::objects::Object;
use super::position::Next;
use super::running::Running;
use crate::kernel::Wait;

/// A lock that is free costs what a call without effect does; one that is held costs the queueing too.
pub fn begin_lock<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let Object::PiFutex(lock) = x.object(object) else { return Next::Done };
    match lock.owner {
        None => x.futex_wake(Word::Object(object)),
        Some(_) => x.futex_wait(Word::Object(object)),
    }
}

pub fn lock<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let (task, pid) = (x.task, x.task().pid);
    let Object::PiFutex(lock) = x.object(object) else { return Next::Done };
    match lock.owner {
        None => {
            lock.owner = Some(pid);
            Next::Done
        }
        Some(owner) if owner == pid => x.fail_program("lock: the task holds this PI futex already"),
        Some(_) => {
            lock.waiting.push_back(task);
            wait_once(x, Wait::Object(object))
        }
    }
}

pub fn unlock<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let pid = x.task().pid;
    let Object::PiFutex(lock) = x.object(object) else { return Next::Done };
    if lock.owner != Some(pid) {
        return x.fail_program("unlock: the task does not hold this PI futex");
    }
    let next = lock.waiting.pop_front();
    let owner = next.map(|task| x.kernel.tasks[task.index()].pid);
    let Object::PiFutex(lock) = x.object(object) else { return Next::Done };
    lock.owner = owner;
    if let Some(task) = next {
        x.wake(task, false);
    }
    Next::Done
}
