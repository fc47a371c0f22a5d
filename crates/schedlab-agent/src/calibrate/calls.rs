//! Costs of system calls in one thread: entry, pipe, socket, futex, timer, clock, copying, and refilling the cache.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;

use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
use rustix::thread::futex::{self, Flags};
use rustix::time::{
    timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
};
use schedlab_model::{Nanos, SEC};

use super::{median, Cost, Effort, Entry};
use crate::clock::now;
use crate::error::{errno, Result};

/// The number of operations between two clock reads; a sample is their mean.
const BATCH: u64 = 32;

/// The number of messages that fill a pipe or socket: less than the 277 small messages that fit into a send buffer.
const DEPTH: u64 = 200;

/// Samples the mean time of an operation.
fn time<T>(samples: usize, mut operation: impl FnMut() -> T) -> Vec<Nanos> {
    let one = |_| {
        let begin = now();
        (0..BATCH).for_each(|_| drop(std::hint::black_box(operation())));
        (now() - begin) / BATCH
    };
    (0..samples).map(one).collect()
}

/// Measures these costs.
pub fn measure(
    effort: Effort,
    costs: &mut BTreeMap<&'static str, Entry>,
    other: &mut BTreeMap<&'static str, Cost>,
) -> Result<()> {
    let mut put = |key, samples: Vec<Nanos>, part: Nanos, how: &str| {
        let how = format!("{how}; means of {BATCH}");
        if let Some(cost) = Cost::of(samples, how) {
            costs.insert(key, Entry::One(cost.less(part)));
        }
        median(costs, key)
    };
    let many = effort.many;
    put("user-op", time(many, now), 0, "clock_gettime(CLOCK_MONOTONIC)");
    let call = put("syscall", time(many, rustix::process::getppid), 0, "getppid()");
    let word = AtomicU32::new(0);
    let wake = || futex::wake(&word, Flags::PRIVATE, 1);
    put("futex-wake", time(many, wake), call, "futex(FUTEX_WAKE) without a waiter, less syscall");
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty()).map_err(errno("timerfd_create"))?;
    let far = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec { tv_sec: (now() / SEC) as i64 + 3600, tv_nsec: 0 },
    };
    let arm = || timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &far);
    put("timer-program", time(many, arm), call, "timerfd_settime() an hour ahead, less syscall");
    let pipe = rustix::pipe::pipe().map_err(errno("pipe"))?;
    let (left, right) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None).map_err(errno("socketpair"))?;
    let (writes, reads) = both_ways(many / 5, &pipe.0, &pipe.1);
    put("pipe-write", writes, call, "write() of 1 byte into a pipe that has no waiting reader, less syscall");
    put("pipe-read", reads, call, "read() of 1 byte that a pipe holds, less syscall");
    let (sends, receives) = both_ways(many / 5, &right, &left);
    put(
        "socket-send",
        sends,
        call,
        "write() of 1 byte into an AF_UNIX stream that has no waiting reader, less syscall",
    );
    put("socket-receive", receives, call, "read() of 1 byte that an AF_UNIX stream holds, less syscall");
    let small = time(many, || pass(&pipe.0, &pipe.1, 1));
    let small = Cost::of(small, "").map_or(0, |cost| cost.p50);
    const KIB: u64 = 16;
    let large: Vec<Nanos> = time(effort.few, || pass(&pipe.0, &pipe.1, KIB as usize * 1024))
        .into_iter()
        .map(|pair| pair.saturating_sub(small) / (2 * KIB))
        .collect();
    put("copy-kib", large, 0, "16 KiB instead of 1 byte through a pipe, a 32nd of the difference");
    for (name, bytes) in
        [("cache-refill-32k", 32 << 10), ("cache-refill-256k", 256 << 10), ("cache-refill-2m", 2 << 20)]
    {
        let how =
            format!("reading every line of {} KiB after 64 MiB of other memory, less the same when warm", bytes >> 10);
        if let Some(cost) = Cost::of(refill(bytes, (effort.few / 40).clamp(10, 50)), how) {
            other.insert(name, cost);
        }
    }
    Ok(())
}

/// Samples the mean time of a one-byte write and of a one-byte read, on a queue that is filled and then emptied.
fn both_ways(samples: usize, read: &OwnedFd, write: &OwnedFd) -> (Vec<Nanos>, Vec<Nanos>) {
    let mut byte = [1];
    let mut one = |_| {
        let begin = now();
        for _ in 0..DEPTH {
            let _ = rustix::io::write(write, &byte);
        }
        let written = now();
        for _ in 0..DEPTH {
            let _ = rustix::io::read(read, &mut byte);
        }
        ((written - begin) / DEPTH, (now() - written) / DEPTH)
    };
    (0..samples).map(&mut one).unzip()
}

/// Writes and then reads `bytes` bytes, which fit into the kernel's buffer.
fn pass(read: &OwnedFd, write: &OwnedFd, bytes: usize) {
    let mut buffer = [0; 16 * 1024];
    let _ = rustix::io::write(write, &buffer[..bytes.min(buffer.len())]);
    let _ = rustix::io::read(read, &mut buffer);
}

/// The cost of reading a working set that has been evicted from the caches.
fn refill(bytes: usize, samples: usize) -> Vec<Nanos> {
    const LINE: usize = 64;
    const OTHER: usize = 64 << 20;
    let set = vec![1u8; bytes];
    let other = vec![1u8; OTHER];
    let walk = |memory: &[u8]| {
        let begin = now();
        let sum: u64 = memory.iter().step_by(LINE).map(|byte| u64::from(*byte)).sum();
        std::hint::black_box(sum);
        now() - begin
    };
    let one = |_| {
        walk(&set);
        let warm = walk(&set);
        walk(&other);
        walk(&set).saturating_sub(warm)
    };
    (0..samples).map(one).collect()
}
