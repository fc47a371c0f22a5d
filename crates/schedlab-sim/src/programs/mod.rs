//! The task programs of a kernel's tasks: the position of each, the objects that they share, the effects of their
//! operations.
//!
//! The interpreter takes the running task from one operation that takes time to the next; a segment of that time is
//! what its CPU executes. System calls go to the kernel.

mod attributes;
mod bases;
mod begin;
mod block;
mod call_cost;
mod channel;
mod compute;
mod describe;
mod effect;
mod exec;
mod futex_word;
mod io;
mod kernel_lock;
mod lines;
mod lock_queue;
mod mmap_lock;
mod objects;
mod on_segment;
mod pi;
mod position;
mod queue;
mod remote;
mod remotes;
mod running;
mod section;
mod shared;
mod spawn;
mod spin;
mod state;
mod sync;
mod vcpu;
mod wait_queue;
mod wait_queue_head;

pub use exec::livelock;
pub use on_segment::on_segment;
pub use remote::{handle_requests, on_network};
pub use spawn::{boot, on_start};
pub use state::Programs;
pub use vcpu::{go_on, program, Halted, Then, INDEX};
