//! How many lines of each structure a call touches: the table of docs/models/physics.md.
//!
//! A line counts 128 bytes: the size of a line on POWER, and the pair that the adjacent-line prefetcher of x86 fetches. Places
//! of members are those of 6.18 on x86-64 (BTF of such a kernel).

/// Lines of a pipe that a read or write touches: `pipe_inode_info` with mutex, wait queues, head and tail in one line, `tmp_page` and `bufs`
/// in the next, and the slot (`pipe_buffer`).
pub const PIPE: u32 = 3;
/// The first line of the page that the reader copies from; later ones arrive during the copy, whose cost includes them.
pub const PIPE_DATA: u32 = 1;
/// Lines of the receiving socket that a send or receive touches: `unix_sock.lock`, and `sk_receive_queue` with its lock.
pub const SOCKET: u32 = 2;
/// The line of the receiving socket in which a send looks for sleepers, and of the sending socket in which a receive that leaves
/// it writable does: `sk_wq`. A task that begins to sleep and one that wakes it change the line. The wait queues of a pipe are
/// in its first line.
pub const SOCKET_WAITERS: u32 = 1;
/// Lines of the list of all tasks that a fork, an exit and the release of a task touch: `tasklist_lock`, and the tasks before and
/// behind in the list.
pub const TASKLIST: u32 = 3;
/// How often the holder of a lock still changes the lock's line while the next CPU polls it: the data beside the lock
/// (`nr_running`; `head` or `tail`; `qlen` and the list; the chain of a futex bucket), and the release.
pub const POLLED: u32 = 2;
/// The line of the sending socket that a send touches, and the receive that frees the buffer (`sock_wfree`): `sk_wmem_alloc`.
pub const SOCKET_MEMORY: u32 = 1;
/// Lines of a socket buffer that the receiver touches: two of `struct sk_buff`, one of its data.
pub const SOCKET_BUFFER: u32 = 3;
/// Lines of a socket buffer that the sender touches when it allocates the buffer again: the two of `struct sk_buff` and the first
/// of its data, which the CPU that freed it has touched last.
pub const SLAB_OBJECTS: u32 = 3;
/// Lines of the slabs of its head and its data that a receiver on another CPU than the sender's touches: `struct slab` of each,
/// to whose free list the object returns (`__slab_free`).
pub const SLAB_FREE: u32 = 2;
/// The line of an open file shared by threads that each call touches: `f_ref`. Without threads `fdget` counts no reference.
pub const FILE: u32 = 1;
/// The user's futex word.
pub const FUTEX_WORD: u32 = 1;
/// `futex_hash_bucket`.
pub const FUTEX_BUCKET: u32 = 1;
/// Lines of a task that `try_to_wake_up` touches: `pi_lock`, the first lines with `__state` to `on_rq`, and the entry in the wait queue on
/// the task's stack.
pub const TASK_WAKE: u32 = 3;
/// Those of them that the CPU touches that then runs the task.
pub const TASK_RUN: u32 = 2;
/// Lines of `sched_entity` that an enqueue touches, and a pick.
pub const TASK_ENTITY: u32 = 2;
/// Lines of a task that the CPU touches that runs it: `sched_info`, `mm`, `thread`, and the top of its stack.
pub const TASK_BODY: u32 = 4;
/// Lines of a runqueue that an enqueue touches, and `__schedule`: lock and `nr_running`, two of `cfs_rq`, two of the clocks.
pub const RUNQUEUE: u32 = 5;
/// Lines of a group's queue on a CPU, touched at every level above a task that is enqueued, dequeued or picked: two of `cfs_rq`,
/// two of the group's `sched_entity`.
pub const GROUP_QUEUE: u32 = 4;
/// The line of `load_avg` in `struct task_group`, which is in no other.
pub const GROUP_LOAD: u32 = 1;
/// Lines of a CPU that a waker touches when it puts a task on the wakelist: `ttwu_pending`, and the head of the list.
pub const WAKELIST: u32 = 2;
