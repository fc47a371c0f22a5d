//! How often a CPU waits for the lines of a structure that another CPU has changed: the table of
//! docs/models/physics.md.
//!
//! A core requests lines ahead of the instructions that use them. Lines of a structure therefore arrive together,
//! except where the address of one is in another (it is behind a pointer), and where several hundred instructions lie
//! between the accesses, more than the reorder buffer holds (224 on Skylake, 512 on Golden Cove). Each constant is the
//! number of such steps, with the lines of each.
//!
//! A line has 128 bytes: the size of a line on POWER, and the pair that the adjacent-line prefetcher of x86 fetches.
//! Places of members are those of 6.18 on x86-64 (BTF of such a kernel).

/// A pipe, by a read or write: `pipe_inode_info`, whose mutex, wait queues, head and tail are in one line and
/// `tmp_page` and `bufs` in the next; then the slot (`pipe_buffer`), to which `bufs` points.
pub const PIPE: u32 = 2;
/// The first line of the page that the reader copies from; later ones arrive during the copy, whose cost includes them.
pub const PIPE_DATA: u32 = 1;
/// The receiving socket, by a send or receive: `unix_sock.lock`, and `sk_receive_queue` with its lock.
pub const SOCKET: u32 = 1;
/// The line of the receiving socket in which a send looks for sleepers, and of the sending socket in which a receive
/// that leaves it writable does: `sk_wq`. A task that begins to sleep and one that wakes it change the line. The wait
/// queues of a pipe are in its first line.
pub const SOCKET_WAITERS: u32 = 1;
/// The list of all tasks, by a fork, an exit and the release of a task: `tasklist_lock`; several hundred instructions
/// later the tasks before and behind in the list.
pub const TASKLIST: u32 = 2;
/// How often the holder of a lock still changes the lock's line while the next CPU polls it: the data beside the lock
/// (`nr_running`; `head` or `tail`; `qlen` and the list; the chain of a futex bucket), and the release.
pub const POLLED: u32 = 2;
/// The line of the sending socket that a send touches, and the receive that frees the buffer (`sock_wfree`):
/// `sk_wmem_alloc`.
pub const SOCKET_MEMORY: u32 = 1;
/// A socket buffer, by the receiver: two lines of `struct sk_buff`; then its data, to which `sk_buff.data` points.
pub const SOCKET_BUFFER: u32 = 2;
/// A socket buffer, by the sender that allocates it again, where the CPU that freed it has touched it last: the two
/// lines of `struct sk_buff`; after these have been initialised and another object allocated, the first line of its
/// data.
pub const SLAB_OBJECTS: u32 = 2;
/// The slabs of a buffer's data (`skb->head`) and of its `struct sk_buff`, by a receiver on another CPU than the
/// sender's: `struct slab` of each, to whose free list the object returns (`__slab_free`), one call after the other.
pub const SLAB_FREE: u32 = 2;
/// The line of an open file shared by threads that each call touches: `f_ref`. Without threads `fdget` counts no
/// reference.
pub const FILE: u32 = 1;
/// The user's futex word.
pub const FUTEX_WORD: u32 = 1;
/// `futex_hash_bucket`.
pub const FUTEX_BUCKET: u32 = 1;
/// A task, by `try_to_wake_up`: the entry in the wait queue, on the task's stack; then, as the entry points to the
/// task, `pi_lock` and the first lines, with `__state` to `on_rq`.
pub const TASK_WAKE: u32 = 2;
/// The lines of the task itself, by the CPU that then runs it.
pub const TASK_RUN: u32 = 1;
/// Two lines of `sched_entity`, by an enqueue and a pick.
pub const TASK_ENTITY: u32 = 1;
/// A task, by the CPU that runs it: `sched_info`, `mm` and `thread`; then the top of its stack, to which `thread.sp`
/// points.
pub const TASK_BODY: u32 = 2;
/// A runqueue, by an enqueue and by `__schedule`: lock, `nr_running` and two lines of the clocks; after the clock has
/// been updated two lines of `cfs_rq`.
pub const RUNQUEUE: u32 = 2;
/// A group's queue on a CPU, at every level above a task that is enqueued, dequeued or picked: two lines of `cfs_rq`,
/// two of the group's `sched_entity`. The entity below points to both.
pub const GROUP_QUEUE: u32 = 1;
/// The line of `load_avg` in `struct task_group`, which is in no other.
pub const GROUP_LOAD: u32 = 1;
/// A CPU, by a waker that puts a task on its wakelist: `ttwu_pending`, and the head of the list.
pub const WAKELIST: u32 = 1;
