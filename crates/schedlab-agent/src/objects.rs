//! The objects that tasks share and wait on: pipes, sockets, futex words, descriptors to poll.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::event::{poll, PollFd, PollFlags};
use rustix::net::sockopt::{set_socket_send_buffer_size, set_socket_send_buffer_size_force, socket_send_buffer_size};
use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, PipeFlags};
use schedlab_workload::{ObjectSpec, SpinLockSpec};

use crate::error::{errno, AgentError, Result};
use crate::sync::{Barrier, Condition, Futex, Mutex, Semaphore};
use crate::sys::Arena;
use crate::task::{Mailbox, TaskList};

/// One object.
#[derive(Debug)]
pub enum Object {
    /// Pipe or socket: the read end and the write end.
    Channel(OwnedFd, OwnedFd),
    /// Futex word.
    Futex(&'static Futex),
    /// Mutex, and whether it has priority inheritance.
    Mutex(&'static Mutex, bool),
    /// Barrier and its number of parties.
    Barrier(&'static Barrier, u32),
    /// Semaphore.
    Semaphore(&'static Semaphore),
    /// Condition variable.
    Condition(&'static Condition),
    /// List of tasks.
    List(&'static TaskList),
    /// A pipe that is polled by the waiting tasks. The gate is open while the pipe holds a byte, which no task reads.
    Gate(OwnedFd, OwnedFd),
    /// The last expiry of a periodic timer in run time, plus 1; 0 before the first.
    Timer(&'static AtomicU64),
    /// Spin locks, by CPU: the holder's id plus 1.
    CpuLocks(&'static [AtomicU32]),
    /// A futex word that stays 0.
    FutexQueue(&'static AtomicU32),
    /// A futex word of FUTEX_LOCK_PI: the thread id of the owner.
    PiFutex(&'static AtomicU32),
    /// Values, and a semaphore that counts them.
    Queue(&'static Mailbox, &'static Semaphore),
    /// Spinlock: the holder's id plus 1, and how it is waited for.
    SpinLock(&'static AtomicU32, SpinLockSpec),
}

const PAGE: usize = 4096;

impl Object {
    /// Creates the object.
    pub fn new(spec: &ObjectSpec, arena: &mut Arena, nr_cpus: usize) -> Result<Object> {
        let memory = |error: io::Error| AgentError::failed(format!("shared memory: {error}"), "");
        Ok(match *spec {
            ObjectSpec::Pipe { pages, packet } => pipe(pages, packet)?,
            ObjectSpec::UnixStream { sndbuf } => socket(sndbuf)?,
            // Only the simulator takes spinlocks of the kernel and reads from a disk.
            ObjectSpec::Futex | ObjectSpec::KernelLock | ObjectSpec::Disk { .. } => {
                Object::Futex(arena.one().map_err(memory)?)
            }
            ObjectSpec::Mutex { pi } => Object::Mutex(arena.one().map_err(memory)?, pi),
            ObjectSpec::Barrier { parties } => Object::Barrier(arena.one().map_err(memory)?, parties),
            ObjectSpec::Semaphore { initial } => {
                let semaphore: &Semaphore = arena.one().map_err(memory)?;
                semaphore.set(initial);
                Object::Semaphore(semaphore)
            }
            ObjectSpec::Condition => Object::Condition(arena.one().map_err(memory)?),
            ObjectSpec::List => Object::List(arena.one().map_err(memory)?),
            ObjectSpec::Gate => {
                let (read, write) = pipe_with(PipeFlags::NONBLOCK).map_err(descriptors)?;
                Object::Gate(read, write)
            }
            ObjectSpec::Timer => Object::Timer(arena.one().map_err(memory)?),
            ObjectSpec::SpinLock(spec) => Object::SpinLock(arena.one().map_err(memory)?, spec),
            ObjectSpec::CpuLocks => Object::CpuLocks(arena.slice(nr_cpus).map_err(memory)?),
            ObjectSpec::FutexQueue => Object::FutexQueue(arena.one().map_err(memory)?),
            ObjectSpec::PiFutex => Object::PiFutex(arena.one().map_err(memory)?),
            ObjectSpec::Queue => Object::Queue(arena.one().map_err(memory)?, arena.one().map_err(memory)?),
        })
    }

    /// The shared memory that an object needs, at most.
    #[must_use]
    pub fn memory(spec: &ObjectSpec, nr_cpus: usize) -> usize {
        match spec {
            ObjectSpec::Queue => std::mem::size_of::<Mailbox>() + 256,
            _ => 128 + 4 * nr_cpus,
        }
    }

    /// The number of file descriptors that an object needs.
    #[must_use]
    pub fn descriptors(spec: &ObjectSpec) -> u64 {
        match spec {
            ObjectSpec::Pipe { .. } | ObjectSpec::UnixStream { .. } | ObjectSpec::Gate => 2,
            _ => 0,
        }
    }
}

fn descriptors(error: rustix::io::Errno) -> AgentError {
    AgentError::cannot(format!("cannot create a pipe or socket of the workload: {error}"), "ulimit -n $(ulimit -Hn)")
}

fn pipe(pages: u32, packet: bool) -> Result<Object> {
    let flags = if packet { PipeFlags::DIRECT } else { PipeFlags::empty() };
    let (read, write) = pipe_with(flags).map_err(descriptors)?;
    let size = pages as usize * PAGE;
    if fcntl_getpipe_size(&write).map_err(errno("F_GETPIPE_SZ"))? != size {
        let given = fcntl_setpipe_size(&write, size).map_err(|error| {
            let hint = format!("sysctl fs.pipe-max-size={size} fs.pipe-user-pages-soft=0");
            AgentError::cannot(format!("a pipe of {pages} pages: {error}"), hint)
        })?;
        if given != size {
            let what = format!("a pipe of {pages} pages: the kernel sets it to {}", given / PAGE);
            return Err(AgentError::cannot(what, "choose a number of pages that is a power of two"));
        }
    }
    Ok(Object::Channel(read, write))
}

fn socket(sndbuf: u32) -> Result<Object> {
    let (write, read) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None).map_err(descriptors)?;
    let size = || socket_send_buffer_size(&write).map_err(errno("SO_SNDBUF"));
    if size()? != sndbuf as usize {
        // The kernel doubles the value.
        let half = sndbuf as usize / 2;
        let set = set_socket_send_buffer_size(&write, half).map_err(errno("SO_SNDBUF"));
        set?;
        if size()? != sndbuf as usize {
            // Values above net.core.wmem_max need CAP_NET_ADMIN.
            let _ = set_socket_send_buffer_size_force(&write, half);
        }
        let given = size()?;
        if given != sndbuf as usize {
            let hint = format!("sysctl net.core.wmem_max={half}");
            return Err(AgentError::cannot(
                format!("a send buffer of {sndbuf} bytes: the kernel sets it to {given}"),
                hint,
            ));
        }
    }
    Ok(Object::Channel(read, write))
}

/// Blocks until the gate is open.
pub fn wait_open(read: &OwnedFd) {
    let mut fds = [PollFd::new(read, PollFlags::IN)];
    while poll(&mut fds, None).is_err() {}
}
