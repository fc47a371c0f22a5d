//! Reads and writes of pipes and sockets.

use schedlab_trace::Sink;

use super::block::{block_for, leave_call};
use super::channel::Wake;
use super::objects::Object;
use super::position::Step;
use super::running::Running;
use super::shared::{end_shared_io, resume_shared_io};
use super::wait_queue::Queue;
use crate::kernel::Wait;
use crate::machine::Mode;

/// The bytes of a read or write are transferred. True: the interpreter stops, because the task blocks or reschedules on
/// its way out of the call.
#[inline(always)]
pub fn transfer<S: Sink>(x: &mut Running<S>, object: u32, write: bool) -> bool {
    let position = &mut x.programs.positions[x.task.index()];
    // A call is over unless it blocks again: back in user mode.
    let mode = &mut x.machine.cpus[x.cpu.index()].segment.mode;
    *mode = Mode::User;
    let Object::Channel(channel) = &mut x.programs.objects[object as usize] else { return position.advance() };
    let socket = channel.is_socket();
    let resumed = std::mem::take(&mut position.resumed);
    let bytes = position.io_left;
    let outcome = if write { channel.write(x.cpu, bytes, resumed) } else { channel.read(bytes, resumed) };
    position.io_left = outcome.left;
    if outcome.left > 0 {
        if write {
            channel.writers.push_back(x.task);
        } else {
            channel.readers.push_back(x.task);
        }
    }
    let wakes_readers = outcome.wake_readers != Wake::None && !channel.readers.is_empty();
    let wakes_writers = outcome.wake_writers != Wake::None && !channel.writers.is_empty();
    if x.machine.shares() {
        settle_shared(&mut x.reborrow(), object, write, resumed);
    }
    if wakes_readers {
        wake_channel(&mut x.reborrow(), object, outcome.wake_readers, false);
    }
    if wakes_writers {
        wake_channel(&mut x.reborrow(), object, outcome.wake_writers, true);
    }
    if outcome.left > 0 {
        if x.machine.shares() {
            x.reborrow().change_wait_queue(Queue { object, side: usize::from(write) });
        }
        let costs = &x.machine.costs;
        let resume = if socket { &costs.socket_resume } else { &costs.pipe_resume };
        let after = resume.draw_any(&mut x.kernel.tasks[x.task.index()].dice);
        block_for(x, Wait::Object(object), Step::Effect, after);
        return true;
    }
    leave_call(x, true)
}

/// The lines and locks of a call that has been woken, and the end of every call's hold on them.
#[inline(never)]
fn settle_shared<S: Sink>(x: &mut Running<S>, object: u32, write: bool, resumed: bool) {
    if resumed {
        resume_shared_io(x, object, write);
    }
    end_shared_io(x, object);
}

/// Wakes readers or writers of a channel, but not the running task, which may just have queued itself.
#[inline(never)]
fn wake_channel<S: Sink>(x: &mut Running<S>, object: u32, wake: Wake, writers: bool) {
    let caller = x.task;
    let Object::Channel(channel) = &mut x.programs.objects[object as usize] else { return };
    let queue = if writers { &mut channel.writers } else { &mut channel.readers };
    match wake {
        Wake::None => {}
        Wake::One => {
            let Some(waiter) = queue.front().copied().filter(|waiter| *waiter != caller) else { return };
            queue.pop_front();
            if x.machine.shares() {
                x.lock_wait_queue(Queue { object, side: usize::from(writers) }, &[waiter]);
            }
            x.wake(waiter, true);
            charge_wake(x, object);
        }
        Wake::All if queue.is_empty() => {}
        Wake::All => {
            let mut waiting = std::mem::take(queue);
            if waiting.contains(&caller) {
                waiting.retain(|waiter| *waiter != caller);
                queue.push_back(caller);
            }
            if x.machine.shares() {
                x.lock_wait_queue(Queue { object, side: usize::from(writers) }, waiting.make_contiguous());
            }
            // prepare_to_wait puts waiters that are not exclusive before the others: the last to come is first.
            for waiter in waiting.iter().rev() {
                x.wake(*waiter, true);
            }
            charge_wake(x, object);
        }
    }
}

/// What waking the other side adds to a call.
#[inline(always)]
fn charge_wake<S: Sink>(x: &mut Running<S>, object: u32) {
    let socket = x.programs.objects[object as usize].is_socket();
    x.machine.charge_channel_wake(x.cpu, socket);
}
