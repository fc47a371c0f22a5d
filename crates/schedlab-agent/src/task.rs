//! What tasks share about themselves: registers, own futex word, mailbox, and how they ended.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64};

use schedlab_workload::REGISTERS;

use crate::log::Log;
use crate::sys::shared;
use crate::words::Futex;

/// Tasks of one run; ids are never reused.
pub const MOST_TASKS: usize = 1 << 20;

shared! {
    /// One task.
    #[derive(Debug)]
    pub struct Slot {
        /// Registers; other tasks may set them.
        pub registers: [AtomicI64; REGISTERS],
        /// The own futex word.
        pub own: Futex,
        /// The task below on a list, plus 1.
        pub below: AtomicU32,
        /// The thread id, 0 before it runs.
        pub tid: AtomicI32,
        /// The process id.
        pub pid: AtomicI32,
        /// Workload and program, for names: `workload << 32 | program`.
        pub runs: AtomicU64,
        /// Entry of the workload's tasks plus 1, 0 for a forked one.
        pub spec: AtomicU32,
        /// Children that have exited; the futex on which a parent waits for them.
        pub exited: AtomicU32,
        /// Whether the task waits on `exited`.
        pub reaping: AtomicU32,
        /// Mailbox plus 1, 0 for none.
        pub mailbox: AtomicU32,
        /// 1 once it has exited; the counts below are final then.
        pub dead: AtomicU32,
        /// CPU time at its end.
        pub cpu_ns: AtomicU64,
        /// Waiting time on runqueues at its end.
        pub wait_ns: AtomicU64,
        /// Voluntary switches at its end.
        pub voluntary: AtomicU64,
        /// Involuntary switches at its end.
        pub involuntary: AtomicU64,
        /// Application events.
        pub log: Log,
    }
}

impl Slot {
    /// A register; a number beyond the last wraps round, as in the simulator.
    #[inline]
    #[must_use]
    pub fn register(&self, reg: u8) -> i64 {
        self.registers[reg as usize % REGISTERS].load(Relaxed)
    }

    /// Sets a register.
    #[inline]
    pub fn set(&self, reg: u8, value: i64) {
        self.registers[reg as usize % REGISTERS].store(value, Relaxed);
    }
}

/// Values that a mailbox holds.
const MAIL: usize = 1 << 14;

shared! {
    /// Values for a task, oldest first; any task adds, the owner takes (Vyukov's bounded queue).
    #[derive(Debug)]
    pub struct Mailbox {
        tail: AtomicU64,
        head: AtomicU64,
        cells: [Cell; MAIL],
    }
}

shared! {
    #[derive(Debug)]
    pub struct Cell {
        /// `round * 2` when empty for that round, `+ 1` when full.
        turn: AtomicU64,
        value: AtomicI64,
    }
}

impl Mailbox {
    /// Adds a value; false when it is full.
    pub fn push(&self, value: i64) -> bool {
        loop {
            let tail = self.tail.load(Relaxed);
            let cell = &self.cells[tail as usize % MAIL];
            let round = tail / MAIL as u64 * 2;
            match cell.turn.load(Acquire) {
                turn if turn < round => return false,
                turn if turn > round => {}
                _ => {
                    if self.tail.compare_exchange_weak(tail, tail + 1, AcqRel, Relaxed).is_ok() {
                        cell.value.store(value, Relaxed);
                        cell.turn.store(round + 1, Release);
                        return true;
                    }
                }
            }
        }
    }

    /// Takes the oldest value.
    pub fn pop(&self) -> Option<i64> {
        let head = self.head.load(Relaxed);
        let cell = &self.cells[head as usize % MAIL];
        let round = head / MAIL as u64 * 2;
        (cell.turn.load(Acquire) == round + 1).then(|| {
            let value = cell.value.load(Relaxed);
            cell.turn.store(round + 2, Release);
            self.head.store(head + 1, Relaxed);
            value
        })
    }
}

shared! {
    /// A list of tasks: the id on top plus 1. Push and take-all only, so that an id cannot come back unseen.
    #[derive(Debug)]
    pub struct TaskList {
        top: AtomicU32,
    }
}

impl TaskList {
    /// Puts a task on top.
    pub fn push(&self, id: u32, slot: &Slot) {
        let mut top = self.top.load(Relaxed);
        loop {
            slot.below.store(top, Relaxed);
            match self.top.compare_exchange_weak(top, id + 1, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Takes the whole list: the id on top plus 1, the rest follows [`Slot::below`].
    #[must_use]
    pub fn take(&self) -> u32 {
        self.top.swap(0, AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Arena;

    #[test]
    fn mail_arrives_in_order_and_a_full_box_says_so() {
        let mut arena = Arena::new(8 << 20).unwrap();
        let mail: &Mailbox = arena.one().unwrap();
        assert_eq!(mail.pop(), None);
        for round in 0..3 {
            assert!((0..MAIL as i64).all(|value| mail.push(value)), "round {round}");
            assert!(!mail.push(1));
            assert!((0..MAIL as i64).all(|value| mail.pop() == Some(value)));
            assert_eq!(mail.pop(), None);
        }
        std::thread::scope(|scope| {
            for sender in 0..3 {
                scope.spawn(move || (0..1000).for_each(|i| assert!(mail.push(sender * 1000 + i))));
            }
            let mut last = [-1; 3];
            for _ in 0..3000 {
                let value = std::iter::repeat_with(|| mail.pop()).flatten().next().unwrap();
                let sender = (value / 1000) as usize;
                assert!(value % 1000 > last[sender]);
                last[sender] = value % 1000;
            }
        });
    }
}
