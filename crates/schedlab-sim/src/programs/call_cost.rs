//! What a read or write of a pipe or socket costs, and how it begins.

use schedlab_model::Nanos;
use schedlab_trace::{Call, Sink};

use super::objects::Object;
use super::position::Position;
use super::running::Running;
use crate::kernel::{call_begins, measured_call_begins, Size};
use crate::machine::{CostTables, Dice};

/// What a transfer takes before its bytes are there.
#[inline(always)]
pub fn begin_io(
    costs: &CostTables,
    dice: &mut Dice,
    object: &Object,
    position: &mut Position,
    bytes: u32,
    write: bool,
) -> Nanos {
    position.resumed = false;
    position.io_left = bytes;
    let (syscall, call) = call_cost(costs, dice, object, bytes, write);
    syscall + call
}

/// What a transfer costs: the system call, and what it does there.
#[inline(always)]
pub fn call_cost(costs: &CostTables, dice: &mut Dice, object: &Object, bytes: u32, write: bool) -> (Nanos, Nanos) {
    let (socket, waits) = match object {
        Object::Channel(channel) => (channel.is_socket(), if write { !channel.has_room() } else { channel.is_empty() }),
        _ => (false, false),
    };
    let call = match (socket, waits, write) {
        (true, true, _) => &costs.socket_wait,
        (true, false, true) => &costs.socket_send,
        (true, false, false) => &costs.socket_receive,
        (false, true, _) => &costs.pipe_wait,
        (false, false, true) => &costs.pipe_write,
        (false, false, false) => &costs.pipe_read,
    };
    let copy = costs.copy_kib.draw(dice) * u64::from(bytes) / 1024;
    let syscall = costs.syscall.draw(dice);
    (syscall, call.draw(dice) + copy)
}

/// A read or write begins that takes so long, and is `call` of this size among the measured calls; whether it takes any time.
#[inline(always)]
pub fn begin_transfer<S: Sink>(x: &mut Running<S>, call: Call, size: Size, amount: Nanos) -> bool {
    let position = &mut x.programs.positions[x.task.index()];
    let segment = &mut x.machine.cpus[x.cpu.index()].segment;
    let takes = position.call(segment, size.number, amount);
    if size.number == 0 {
        call_begins(x.run, x.machine, x.kernel, x.cpu);
    } else {
        let work = size.longest_closed(segment.measured());
        measured_call_begins(x.run, x.machine, x.kernel, x.cpu, call, work);
    }
    takes
}
