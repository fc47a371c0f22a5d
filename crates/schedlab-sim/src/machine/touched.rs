//! How many lines of each structure a call touches: the table of docs/models/physics.md.
//!
//! A line counts 128 bytes: the size of a line on POWER, and the pair that the adjacent-line prefetcher of x86 fetches. Places
//! of members are those of 6.18 on x86-64 (BTF of such a kernel).

/// Of a pipe, by a read or write: `pipe_inode_info` with mutex, wait queues, head and tail in one line, `tmp_page` and `bufs`
/// in the next, and the slot (`pipe_buffer`).
pub const PIPE: u32 = 3;
/// Of the page that the reader copies from, to its first line: later ones arrive during the copy, whose cost has them.
pub const PIPE_DATA: u32 = 1;
/// Of the receiving socket, by a send or receive: `unix_sock.lock`, and `sk_receive_queue` with its lock.
pub const SOCKET: u32 = 2;
/// Of the receiving socket, read by a send: `sk_wq`, to see whether anyone sleeps.
pub const SOCKET_WAITERS: u32 = 1;
/// Of the sending socket, by a send, and by the receive that frees the buffer (`sock_wfree`): `sk_wmem_alloc`.
pub const SOCKET_MEMORY: u32 = 1;
/// Of a socket buffer, by the receiver: two of `struct sk_buff`, one of its data.
pub const SOCKET_BUFFER: u32 = 3;
/// Of an open file that threads share, by each call: `f_ref`. Without threads `fdget` counts no reference.
pub const FILE: u32 = 1;
/// The user's futex word.
pub const FUTEX_WORD: u32 = 1;
/// `futex_hash_bucket`.
pub const FUTEX_BUCKET: u32 = 1;
/// Of a task, by `try_to_wake_up`: `pi_lock`, the first lines with `__state` to `on_rq`, and the entry in the wait queue on
/// the task's stack.
pub const TASK_WAKE: u32 = 3;
/// Of these, by the CPU that then runs the task.
pub const TASK_RUN: u32 = 2;
/// Of `sched_entity`, by an enqueue and by a pick.
pub const TASK_ENTITY: u32 = 2;
/// Of a task, by the CPU that runs it: `sched_info`, `mm`, `thread`, and the top of its stack.
pub const TASK_BODY: u32 = 4;
/// Of a runqueue, by an enqueue and by `__schedule`: lock and `nr_running`, two of `cfs_rq`, two of the clocks.
pub const RUNQUEUE: u32 = 5;
/// Of a group's queue on a CPU, at every level above a task that is enqueued, dequeued or picked: two of `cfs_rq`, two of the
/// `sched_entity` that stands for it.
pub const GROUP_QUEUE: u32 = 4;
/// Of `struct task_group`: `load_avg`, which has a line of its own.
pub const GROUP_LOAD: u32 = 1;
/// Of a CPU, by who puts a task on its wakelist: `ttwu_pending`, and the head of the list.
pub const WAKELIST: u32 = 2;
