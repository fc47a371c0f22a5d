//! Futex queues (the kernel's futex calls alone) and queues of values.
//!
//! Follows futex_wait, futex_wake and futex_requeue (kernel/futex, 6.1): a waiter whose timeout has expired stays
//! queued until it runs, so a wake that finds it there still counts for it. A waiter with a timeout is queued before
//! its timer is started (`futex_queue`): a wake that comes meanwhile makes it return without a switch.

use schedlab_model::rarely;
use schedlab_trace::Sink;
use schedlab_workload::Op;

use super::block::{block, wait_and_retry};
use super::lines::Word;
use super::objects::{Object, Waiter};
use super::position::{Next, Step};
use super::remote::reply;
use super::running::Running;
use crate::kernel::{self, Life, Wait};
use crate::machine::Mode;

/// FUTEX_WAIT, up to where it queues itself.
pub fn begin_futex_wait<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    x.position().phase = UNQUEUED;
    x.futex_wait(Word::Object(object))
}

/// Phases of a FUTEX_WAIT with a timeout that has not slept yet.
const UNQUEUED: u8 = 0;
const QUEUED: u8 = 1;
const WOKEN: u8 = 2;
const CANCELLED: u8 = 3;

/// The effect of the futex calls.
pub fn futex_queue_effect<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    match op {
        Op::FutexWait { object, timeout, expired } => futex_wait(x, object, timeout, expired),
        Op::FutexWake { object, count, into } => futex_wake(x, object, count, into),
        Op::FutexRequeue { object, to, count, into } => futex_requeue(x, object, to, count, into),
        _ => Next::Done,
    }
}

fn futex_wait<S: Sink>(x: &mut Running<S>, object: u32, timeout: u8, expired: u32) -> Next {
    let (task, cpu) = (x.task, x.cpu);
    let timeout = *x.register(timeout);
    if x.position().resumed {
        let Object::FutexQueue(waiting) = x.object(object) else { return Next::Done };
        // Still queued: it has not been woken, its timer has expired (futex_unqueue). It may have been requeued
        // meanwhile.
        let queued = waiting.iter().position(|waiter| waiter.task == task);
        return match queued.and_then(|at| waiting.remove(at)) {
            Some(_) => Next::Goto(expired),
            None => Next::Done,
        };
    }
    let timer = (timeout >= 0).then_some(cpu);
    let phase = x.position().phase;
    if phase == CANCELLED {
        return Next::Done;
    }
    if phase == WOKEN {
        // hrtimer_cancel() programs the hardware for the next timer.
        x.position().phase = CANCELLED;
        let dice = &mut x.kernel.tasks[task.index()].dice;
        return Next::Work(Mode::Kernel, x.machine.costs.timer_program.draw(dice));
    }
    if phase == UNQUEUED {
        let Object::FutexQueue(waiting) = x.object(object) else { return Next::Done };
        waiting.push_back(Waiter { task, timer });
    }
    if phase == UNQUEUED && timer.is_some() {
        x.position().phase = QUEUED;
        let dice = &mut x.kernel.tasks[task.index()].dice;
        return Next::Work(Mode::Kernel, x.machine.costs.timer_program.draw(dice));
    }
    if timer.is_some() {
        let soft = x.run.now + timeout.unsigned_abs().min(super::position::AMOUNT_MAX);
        kernel::start_timer(x.run, x.machine, x.kernel, cpu, task, soft);
    }
    block(x, Wait::Object(object), Step::Effect);
    Next::Stop
}

fn futex_wake<S: Sink>(x: &mut Running<S>, object: u32, count: u32, into: u8) -> Next {
    let mut woken = 0;
    while woken < i64::from(count) {
        let Object::FutexQueue(waiting) = x.object(object) else { break };
        let Some(waiter) = waiting.pop_front() else { break };
        woken += 1;
        if x.kernel.tasks[waiter.task.index()].life == Life::Sleeping {
            if let Some(cpu) = waiter.timer {
                kernel::cancel_timer(x.run, x.machine, x.kernel, cpu, waiter.task);
            }
            x.wake(waiter.task, false);
        } else if x.programs.positions[waiter.task.index()].phase == QUEUED {
            // It runs and goes on running (`ttwu_runnable`).
            x.programs.positions[waiter.task.index()].phase = WOKEN;
            let cost = x.machine.costs.wakeup.draw(&mut x.kernel.tasks[waiter.task.index()].dice);
            x.machine.charge(x.cpu, cost);
        }
    }
    *x.register(into) = woken;
    Next::Done
}

fn futex_requeue<S: Sink>(x: &mut Running<S>, object: u32, to: u32, count: u32, into: u8) -> Next {
    let Object::FutexQueue(waiting) = x.object(object) else { return Next::Done };
    let moved: Vec<Waiter> = waiting.drain(..waiting.len().min(count as usize)).collect();
    *x.register(into) = moved.len() as i64;
    if let Object::FutexQueue(waiting) = x.object(to) {
        waiting.extend(moved);
    }
    Next::Done
}

/// Appends a value; a system call only if a receiver waits.
pub fn begin_send<S: Sink>(x: &mut Running<S>, object: u32, from: u8) -> Next {
    x.word_op(Word::Object(object));
    let value = *x.register(from);
    let Object::Queue { values, waiting } = x.object(object) else { return Next::Done };
    values.push_back(value);
    if !waiting.is_empty() {
        return x.futex_wake(Word::Object(object));
    }
    if rarely(x.programs.remotes.takes_replies()) && reply(x, object) {
        let dice = &mut x.kernel.tasks[x.task.index()].dice;
        let sends = x.machine.costs.socket_send.draw(dice);
        return x.kernel_call(sends);
    }
    Next::Done
}

pub fn wake_receiver<S: Sink>(x: &mut Running<S>, object: u32) -> Next {
    let Object::Queue { waiting, .. } = x.object(object) else { return Next::Done };
    if let Some(waiter) = waiting.pop_front() {
        x.wake(waiter, false);
    }
    Next::Done
}

pub fn begin_receive<S: Sink>(x: &mut Running<S>, object: u32, into: u8) -> Next {
    x.word_op(Word::Object(object));
    match take(x, object, into) {
        true => Next::Done,
        false => x.futex_wait(Word::Object(object)),
    }
}

pub fn try_receive<S: Sink>(x: &mut Running<S>, object: u32, into: u8, empty: u32) -> Next {
    x.word_op(Word::Object(object));
    match take(x, object, into) {
        true => Next::Done,
        false => Next::Goto(empty),
    }
}

/// The slow path, and the retry after a wakeup: another receiver may have been faster.
pub fn receive<S: Sink>(x: &mut Running<S>, object: u32, into: u8) -> Next {
    if take(x, object, into) {
        return Next::Done;
    }
    let task = x.task;
    if let Object::Queue { waiting, .. } = x.object(object) {
        waiting.push_back(task);
    }
    wait_and_retry(x, Wait::Object(object))
}

fn take<S: Sink>(x: &mut Running<S>, object: u32, into: u8) -> bool {
    let Object::Queue { values, .. } = x.object(object) else { return true };
    let Some(value) = values.pop_front() else { return false };
    *x.register(into) = value;
    true
}
