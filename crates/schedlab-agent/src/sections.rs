//! Single system calls and page faults, each after a marker in the trace: the program whose kernel sections are
//! measured.
//!
//! Before each of them the marker of tracefs gets the line `schedlab NAME KIB NR`: the name of the call, the amount of
//! memory that it works on and its number; a page fault has the number -1. In the trace, the call is the next one with
//! that number. Tracing is on from then until the call is over. Left out: calls that block, and wakeups.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;

use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
use rustix::thread::futex::{self, Flags};

use crate::error::{errno, os, AgentError, Result};
use crate::memory_work::{cached, Memory};
use crate::sys::{self, Forked, Pages, PollSet};
use crate::tracing;

/// KiB that calls on pipes, sockets and files transfer; 0 stands for one byte.
const TRANSFERS: [u64; 3] = [0, 4, 64];
/// KiB of reads of the page cache.
const READS: [u64; 4] = [4, 64, 1 << 10, 4 << 10];
/// KiB of memory that is unmapped, or that a process has at its fork or exit.
const MAPPINGS: [u64; 3] = [4, 1 << 10, 4 << 10];
/// Pages that a batch for the lists of reclaim has at most (PAGEVEC_SIZE).
const LRU_BATCH: usize = 31;
/// Entries of a poll.
const ENTRIES: [usize; 2] = [1, 1000];
/// The program that is executed.
const PROGRAM: &CStr = c"/bin/busybox";

/// Carries each call out `repeat` times.
pub fn carry_out(repeat: usize) -> Result<()> {
    let mut marker = Marker::open()?;
    for _ in 0..repeat {
        marker.announce("getppid", 0, libc::SYS_getppid);
        let _ = rustix::process::getppid();
        marker.over();
        let pipe = rustix::pipe::pipe().map_err(errno("pipe"))?;
        transfers(&mut marker, ["pipe-write", "pipe-read"], &pipe.1, &pipe.0)?;
        let (left, right) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)
            .map_err(errno("socketpair"))?;
        transfers(&mut marker, ["socket-send", "socket-receive"], &left, &right)?;
        futexes(&mut marker);
        files(&mut marker)?;
        polls(&mut marker, &pipe.0)?;
        faults(&mut marker)?;
        mappings(&mut marker)?;
        lives(&mut marker)?;
    }
    Ok(())
}

/// The files of tracefs that put a line into the trace, and that start and stop it.
struct Marker {
    line: File,
    tracing_on: File,
}

impl Marker {
    fn open() -> Result<Marker> {
        let tracefs = tracing::mounted().map_err(|why| AgentError::cannot(why, ""))?;
        let open = |name| OpenOptions::new().write(true).open(tracefs.join(name)).map_err(os(name));
        Ok(Marker { line: open("trace_marker")?, tracing_on: open("tracing_on")? })
    }

    /// The next call with this number is the one to be measured. If this fails, the call is reported as not measured.
    fn announce(&mut self, name: &str, kib: u64, number: i64) {
        let line = format!("schedlab {name} {kib} {number}");
        let _ = self.tracing_on.write(b"1");
        let _ = self.line.write(line.as_bytes());
    }

    /// The call is over.
    fn over(&mut self) {
        let _ = self.tracing_on.write(b"0");
    }
}

/// A write that finds room and a read that finds all of it.
fn transfers(marker: &mut Marker, names: [&str; 2], into: &OwnedFd, from: &OwnedFd) -> Result<()> {
    let mut buffer = vec![1; 64 << 10];
    for kib in TRANSFERS {
        let part = &mut buffer[..(kib << 10).max(1) as usize];
        marker.announce(names[0], kib, libc::SYS_write);
        rustix::io::write(into, part).map_err(errno("write"))?;
        marker.over();
        marker.announce(names[1], kib, libc::SYS_read);
        rustix::io::read(from, part).map_err(errno("read"))?;
        marker.over();
    }
    Ok(())
}

/// A wake without a waiter, and a wait for a value that has changed.
fn futexes(marker: &mut Marker) {
    let word = AtomicU32::new(0);
    marker.announce("futex-wake", 0, libc::SYS_futex);
    let _ = futex::wake(&word, Flags::PRIVATE, 1);
    marker.over();
    marker.announce("futex-wait", 0, libc::SYS_futex);
    let _ = futex::wait(&word, Flags::PRIVATE, 1, None);
    marker.over();
}

/// Opening, closing and reading files whose contents are in the page cache.
fn files(marker: &mut Marker) -> Result<()> {
    marker.announce("open", 0, libc::SYS_openat);
    let file = File::open("/").map_err(os("open"))?;
    marker.over();
    marker.announce("close", 0, libc::SYS_close);
    drop(file);
    marker.over();
    let file = cached(READS[READS.len() - 1] << 10)?;
    let mut buffer = vec![1; 64 << 10];
    for kib in READS {
        marker.announce("read-file", kib, libc::SYS_preadv);
        sys::read_over(&file, &mut buffer, 0, kib << 10).map_err(os("preadv"))?;
        marker.over();
    }
    Ok(())
}

/// A poll that does not wait; its size is that of its entries.
fn polls(marker: &mut Marker, fd: &OwnedFd) -> Result<()> {
    for entries in ENTRIES {
        let mut set = PollSet::new(fd, entries);
        marker.announce("poll", entries as u64 * 8 / 1024, libc::SYS_poll);
        set.poll(entries).map_err(os("poll"))?;
        marker.over();
    }
    Ok(())
}

/// The number of a page fault, which is no call.
const FAULT: i64 = -1;

/// A fault that maps a page of a file, and one that allocates and clears a page; page tables exist.
fn faults(marker: &mut Marker) -> Result<()> {
    let mut memory = Memory::to_measure(64)?;
    memory.map().map_err(os("mmap"))?;
    marker.announce("fault", 4, FAULT);
    memory.map().map_err(os("mmap"))?;
    marker.over();
    memory.zero().map_err(os("mmap"))?;
    marker.announce("fault-clear", 4, FAULT);
    memory.zero().map_err(os("mmap"))?;
    marker.over();
    // Any so many faults in succession fill the batch of new pages, which one of them puts on the lists of reclaim.
    for _ in 0..LRU_BATCH {
        marker.announce("fault-drain", 4, FAULT);
        memory.zero().map_err(os("mmap"))?;
        marker.over();
    }
    Ok(())
}

/// mmap of private memory, and munmap of it with all pages present.
fn mappings(marker: &mut Marker) -> Result<()> {
    for kib in MAPPINGS {
        marker.announce("mmap", kib, libc::SYS_mmap);
        let mut pages = Pages::private(kib as usize / 4).map_err(os("mmap"))?;
        marker.over();
        (0..pages.len()).for_each(|page| pages.touch(page));
        marker.announce("munmap", kib, libc::SYS_munmap);
        drop(pages);
        marker.over();
    }
    Ok(())
}

/// fork and exit of a process with memory beyond its own, and exec of another program.
fn lives(marker: &mut Marker) -> Result<()> {
    for kib in MAPPINGS {
        let mut pages = Pages::private(kib as usize / 4).map_err(os("mmap"))?;
        (0..pages.len()).for_each(|page| pages.touch(page));
        marker.announce("fork", kib, libc::SYS_clone);
        child(marker, |marker| {
            marker.over();
            // Pages of its own: those of the parent are shared until they are written.
            (0..pages.len()).for_each(|page| pages.touch(page));
            marker.announce("exit", kib, libc::SYS_exit_group);
        })?;
    }
    child(marker, |marker| {
        marker.announce("exec", 0, libc::SYS_execve);
        sys::exec(PROGRAM, c"true");
    })
}

/// Does something in a child, which then exits, and waits for it.
fn child(marker: &mut Marker, mut action: impl FnMut(&mut Marker)) -> Result<()> {
    match sys::fork().map_err(os("fork"))? {
        Forked::Parent(_) => {
            let ended = sys::wait_any(true, true).map_err(os("waitpid")).map(drop);
            marker.over();
            ended
        }
        Forked::Child => {
            action(marker);
            sys::exit_now(0)
        }
    }
}
