//! The lines and locks of pipes, sockets and futexes.

use std::collections::VecDeque;

use schedlab_model::TaskId;

use super::wait_queue_head::WaitQueue;
use crate::machine::{Changed, Lines, Lock};

/// The lines and locks of an object, or of a task's own futex word.
#[derive(Clone, Default, Debug)]
pub struct Shared {
    /// The pipe, the receiving socket, or the futex bucket: what the lock protects.
    pub locked: Lines,
    pub lock: Lock,
    /// `sk_wmem_alloc` of the sending socket, or the futex word: changed by atomic operations.
    pub atomic: Changed,
    /// Its wait queues: that of readers, or of all waiters, and that of writers.
    pub queues: [WaitQueue; 2],
    /// `f_ref` of the reading and of the writing end.
    pub files: [Changed; 2],
    /// The task that has last taken the mutex of the pipe, until its call is over.
    pub holder: Option<TaskId>,
    /// Tasks that sleep until the mutex is free.
    pub sleepers: VecDeque<TaskId>,
}

/// A futex word.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    /// That of an object: a futex, mutex, semaphore, barrier or condition variable.
    Object(u32),
    /// A task's own.
    Own(TaskId),
}
