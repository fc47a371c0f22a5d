//! What a read or write of a pipe or socket costs, and how it begins.

use schedlab_model::Nanos;
use schedlab_trace::Call;

use super::objects::Object;
use super::position::Position;
use crate::kernel::Points;
use crate::machine::{CostTables, Dice, Segment};

/// A read or write of a task.
pub struct Transfer<'a> {
    pub object: &'a Object,
    pub socket: bool,
    pub bytes: u32,
    pub write: bool,
}

impl<'a> Transfer<'a> {
    #[inline(always)]
    pub fn new(object: &'a Object, bytes: u32, write: bool) -> Self {
        Transfer { object, socket: object.is_socket(), bytes, write }
    }

    /// What it costs: the system call, and what it does there.
    #[inline(always)]
    pub fn cost(&self, costs: &CostTables, dice: &mut Dice) -> (Nanos, Nanos) {
        let waits = match self.object {
            Object::Channel(channel) if self.write => !channel.has_room(),
            Object::Channel(channel) => channel.is_empty(),
            _ => false,
        };
        let call = match (self.socket, waits, self.write) {
            (true, true, _) => &costs.socket_wait,
            (true, false, true) => &costs.socket_send,
            (true, false, false) => &costs.socket_receive,
            (false, true, _) => &costs.pipe_wait,
            (false, false, true) => &costs.pipe_write,
            (false, false, false) => &costs.pipe_read,
        };
        let copy = costs.copy_kib.draw(dice) * u64::from(self.bytes) / 1024;
        let syscall = costs.syscall.draw(dice);
        (syscall, call.draw(dice) + copy)
    }

    /// Begins the transfer. Returns whether it takes any time, and its longest part in which no request is honoured
    /// (see [`Points::longest_closed`]).
    #[inline(always)]
    pub fn begin(
        &self,
        points: &Points,
        position: &mut Position,
        segment: &mut Segment,
        amount: Nanos,
    ) -> (bool, (u64, Option<Call>)) {
        let (call, size) = points.transfer(self.socket, self.write, self.bytes);
        let takes = position.call(segment, size.number, amount);
        if size.number == 0 {
            return (takes, points.longest_closed(segment));
        }
        (takes, (size.longest_closed(segment.measured()), Some(call)))
    }
}
