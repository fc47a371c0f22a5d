//! Pipes and sockets that several CPUs use.
//!
//! A call takes its locks when it begins. Their hold time is known then: the work of the call under the lock, and the
//! lines that it has to fetch.

use schedlab_model::Nanos;
use schedlab_trace::{Lock as LockKind, Sink};

use super::block::block;
use super::call_cost::Transfer;
use super::objects::Object;
use super::position::Step;
use super::running::Running;
use super::wait_queue_head::{READERS, WRITERS};
use crate::kernel::{lock_waited, transfer_begins, Life, Wait};
use crate::machine::{touched, Arrival, Stall};

/// A read or write begins: its segment of work. True: the interpreter stops, because the segment takes time or the task
/// sleeps.
#[inline(never)]
pub fn begin_shared_io<S: Sink>(x: &mut Running<S>, object: u32, bytes: u32, write: bool) -> bool {
    let Object::Channel(channel) = &x.programs.objects[object as usize] else {
        x.position().advance();
        return false;
    };
    let socket = channel.is_socket();
    if !socket && sleeps_for_mutex(x, object) {
        return true;
    }
    let dice = &mut x.kernel.tasks[x.task.index()].dice;
    let (syscall, call) =
        Transfer::new(&x.programs.objects[object as usize], bytes, write).cost(&x.machine.costs, dice);
    let position = &mut x.programs.positions[x.task.index()];
    position.resumed = false;
    position.io_left = bytes;
    // The first half of the system call's cost is the way in; what a read or write does before it takes the mutex
    // follows.
    let before = if socket { 0 } else { x.kernel.points.transfer(socket, write, bytes).1.entry(call) };
    let at = x.arrival().after(x.machine.wall_of(x.cpu, syscall / 2 + before));
    let under_lock = if socket { 0 } else { call - before };
    let stall = touch_channel(x, object, write, at, under_lock);
    if !socket {
        x.programs.shared[object as usize].holder = Some(x.task);
    }
    let amount = syscall + call + x.machine.stall(x.cpu, stall);
    let position = &mut x.programs.positions[x.task.index()];
    let segment = &mut x.machine.cpus[x.cpu.index()].segment;
    let transfer = Transfer::new(&x.programs.objects[object as usize], bytes, write);
    let (takes, longest) = transfer.begin(&x.kernel.points, position, segment, amount);
    transfer_begins(x.run, x.machine, x.kernel, x.cpu, longest);
    takes
}

/// The call continues after it has slept: it takes its locks again.
pub fn resume_shared_io<S: Sink>(x: &mut Running<S>, object: u32, write: bool) {
    let at = x.arrival();
    let stall = touch_channel(x, object, write, at, 0);
    x.machine.charge_stall(x.cpu, stall);
}

/// The bytes have been transferred: the mutex of a pipe is free, and the first task that sleeps for it is woken.
pub fn end_shared_io<S: Sink>(x: &mut Running<S>, object: u32) {
    let task = x.task;
    let Some(shared) = x.programs.shared.get_mut(object as usize) else { return };
    if shared.holder == Some(task) {
        shared.holder = None;
    }
    if let Some(sleeper) = shared.sleepers.pop_front() {
        x.wake(sleeper, false);
    }
}

/// The mutex of a pipe is spun for while its holder runs (`mutex_spin_on_owner`). A task whose holder has been
/// preempted sleeps.
fn sleeps_for_mutex<S: Sink>(x: &mut Running<S>, object: u32) -> bool {
    if !x.machine.has_locks() {
        return false;
    }
    let Some(holder) = x.programs.shared[object as usize].holder else { return false };
    if holder == x.task || !matches!(x.kernel.tasks[holder.index()].life, Life::Runnable | Life::Waking) {
        return false;
    }
    x.programs.shared[object as usize].sleepers.push_back(x.task);
    block(x, Wait::Mutex(object), Step::Fetch);
    true
}

/// The lines and locks of a read or write that gets to them at `at` and does so much work under the lock.
fn touch_channel<S: Sink>(x: &mut Running<S>, object: u32, write: bool, at: Arrival, work: Nanos) -> Nanos {
    let cpu = x.cpu;
    let Object::Channel(channel) = &x.programs.objects[object as usize] else { return 0 };
    let (socket, writable, first) = (channel.is_socket(), channel.is_writable(), channel.first_writer());
    let threads = x.kernel.tasks[x.task.index()].thread;
    let (machine, shared) = (&mut *x.machine, &mut x.programs.shared[object as usize]);
    let mut stall = Stall::new(at);
    if threads {
        stall.atomic(machine, cpu, &mut shared.files[usize::from(write)], touched::FILE);
    }
    let queues = stall.waits;
    if socket {
        stall.atomic(machine, cpu, &mut shared.atomic, touched::SOCKET_MEMORY);
    }
    let queues = (queues, stall.waits - queues);
    if socket && write {
        stall.lines += shared.queues[READERS].look(machine, cpu);
    } else if writable {
        stall.lines += shared.queues[WRITERS].look(machine, cpu);
    }
    if let (false, Some(writer)) = (write, first) {
        let steps = if socket { touched::SOCKET_BUFFER } else { touched::PIPE_DATA };
        stall.lines += machine.read_fresh_lines(cpu, writer, steps);
        if socket {
            stall.lines += x.kernel.cpus[writer.index()].shared.buffers.free(machine, cpu, writer);
        }
    }
    if socket && write {
        stall.lines += x.kernel.cpus[cpu.index()].shared.buffers.allocate(machine, cpu);
    }
    let steps = if socket { touched::SOCKET } else { touched::PIPE };
    let before = shared.locked;
    let locked = machine.write_lines(cpu, &mut shared.locked, steps);
    let mut wait = 0;
    if machine.has_locks() {
        // A spinlock of a socket is held for no more than the lines and one operation on them.
        let work = if socket { machine.atomic_time } else { machine.wall_of(cpu, work) };
        wait = shared.lock.take_polling(stall.over(), locked + work, || machine.slows_holder(cpu, &before));
    }
    let kind = if socket { LockKind::Socket } else { LockKind::Pipe };
    lock_waited(x.run, x.kernel, cpu, LockKind::Line, queues.0 + queues.1);
    lock_waited(x.run, x.kernel, cpu, kind, wait);
    stall.whole() + locked + wait
}
