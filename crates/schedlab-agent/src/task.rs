//! The per-task state in shared memory: registers, futex word, mailbox, and statistics after exit.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64};

use schedlab_workload::REGISTERS;

use crate::log::Log;
use crate::sync::Futex;
use crate::sys::shared;

/// The maximum number of tasks in one run. Ids are never reused.
pub const MAX_TASKS: usize = 1 << 20;

shared! {
    /// One task.
    #[derive(Debug)]
    pub struct Slot {
        /// Registers; other tasks may set them.
        pub registers: [AtomicI64; REGISTERS],
        /// The task's own futex word.
        pub own: Futex,
        /// The next task on a list, plus 1.
        pub next: AtomicU32,
        /// The thread id, 0 before it runs.
        pub tid: AtomicI32,
        /// The process id.
        pub pid: AtomicI32,
        /// Workload and program, for names: `workload << 32 | program`.
        pub runs: AtomicU64,
        /// Index into the workload's tasks, plus 1; 0 for a forked task.
        pub spec: AtomicU32,
        /// The number of children that have exited; also the futex on which the task waits for them.
        pub exited: AtomicU32,
        /// Whether the task waits on `exited`.
        pub reaping: AtomicU32,
        /// Index of the mailbox plus 1; 0 for none.
        pub mailbox: AtomicU32,
        /// 1 once the task has exited; from then on the statistics below are final.
        pub dead: AtomicU32,
        /// CPU time at exit.
        pub cpu_ns: AtomicU64,
        /// Time spent waiting on runqueues, at exit.
        pub wait_ns: AtomicU64,
        /// Voluntary context switches at exit.
        pub voluntary: AtomicU64,
        /// Involuntary context switches at exit.
        pub involuntary: AtomicU64,
        /// The log of application events.
        pub log: Log,
    }
}

impl Slot {
    /// Returns a register. Register numbers wrap around, as in the simulator.
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

/// The capacity of a mailbox.
const MAILBOX_SIZE: usize = 1 << 14;

shared! {
    /// A queue of values, oldest first. Any task may push and pop (Vyukov's bounded queue).
    #[derive(Debug)]
    pub struct Mailbox {
        tail: AtomicU64,
        head: AtomicU64,
        cells: [Cell; MAILBOX_SIZE],
    }
}

shared! {
    #[derive(Debug)]
    pub struct Cell {
        /// `round * 2` if empty in that round, `round * 2 + 1` if full.
        sequence: AtomicU64,
        value: AtomicI64,
    }
}

impl Mailbox {
    /// Adds a value. Returns false if the mailbox is full.
    pub fn push(&self, value: i64) -> bool {
        loop {
            let tail = self.tail.load(Relaxed);
            let cell = &self.cells[tail as usize % MAILBOX_SIZE];
            let round = tail / MAILBOX_SIZE as u64 * 2;
            match cell.sequence.load(Acquire) {
                sequence if sequence < round => return false,
                sequence if sequence > round => {}
                _ => {
                    if self.tail.compare_exchange_weak(tail, tail + 1, AcqRel, Relaxed).is_ok() {
                        cell.value.store(value, Relaxed);
                        cell.sequence.store(round + 1, Release);
                        return true;
                    }
                }
            }
        }
    }

    /// Removes the oldest value.
    pub fn pop(&self) -> Option<i64> {
        loop {
            let head = self.head.load(Relaxed);
            let cell = &self.cells[head as usize % MAILBOX_SIZE];
            let full = head / MAILBOX_SIZE as u64 * 2 + 1;
            match cell.sequence.load(Acquire) {
                sequence if sequence < full => return None,
                sequence if sequence > full => {}
                _ => {
                    if self.head.compare_exchange_weak(head, head + 1, AcqRel, Relaxed).is_ok() {
                        let value = cell.value.load(Relaxed);
                        cell.sequence.store(full + 1, Release);
                        return Some(value);
                    }
                }
            }
        }
    }

    /// Removes the oldest value, of which a semaphore says that there is one; its sender may not have stored it yet.
    pub fn pop_counted(&self) -> i64 {
        loop {
            if let Some(value) = self.pop() {
                return value;
            }
            std::hint::spin_loop();
        }
    }
}

shared! {
    /// A list of tasks: the id of the first task plus 1. Only push and take-all are supported, which avoids the ABA
    /// problem.
    #[derive(Debug)]
    pub struct TaskList {
        top: AtomicU32,
    }
}

impl TaskList {
    /// Pushes a task to the front.
    pub fn push(&self, id: u32, slot: &Slot) {
        let mut top = self.top.load(Relaxed);
        loop {
            slot.next.store(top, Relaxed);
            match self.top.compare_exchange_weak(top, id + 1, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Removes the whole list. Returns the id of the first task plus 1; the others follow by [`Slot::next`].
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
    fn values_arrive_in_order_and_a_full_mailbox_refuses_more() {
        let mut arena = Arena::new(8 << 20).unwrap();
        let mail: &Mailbox = arena.one().unwrap();
        assert_eq!(mail.pop(), None);
        for round in 0..3 {
            assert!((0..MAILBOX_SIZE as i64).all(|value| mail.push(value)), "round {round}");
            assert!(!mail.push(1));
            assert!((0..MAILBOX_SIZE as i64).all(|value| mail.pop() == Some(value)));
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
