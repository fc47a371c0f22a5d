//! System calls that no safe library offers, and shared memory. All `unsafe` code of the agent is in this file.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64};

/// Types for which any bytes are a valid value and whose fields are all atomic, so that processes may share them.
///
/// # Safety
/// The implementor has no padding that matters, no pointer, and no field that is not atomic.
pub unsafe trait Shared: Sync + 'static {}

// SAFETY: atomics of plain integers.
unsafe impl Shared for AtomicU32 {}
// SAFETY: as above.
unsafe impl Shared for AtomicI32 {}
// SAFETY: as above.
unsafe impl Shared for AtomicU64 {}
// SAFETY: as above.
unsafe impl Shared for AtomicI64 {}

/// Declares a struct that consists of `Shared` fields only.
macro_rules! shared {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[repr(C)]
        $vis struct $name { $($(#[$field_meta])* $field_vis $field: $type,)* }
        const _: () = {
            const fn only_shared<T: $crate::sys::Shared>() {}
            $(only_shared::<$type>();)*
        };
        // SAFETY: every field is itself shared, checked above.
        #[allow(unsafe_code)]
        unsafe impl $crate::sys::Shared for $name {}
    };
}
pub(crate) use shared;

// SAFETY: an array of shared values.
unsafe impl<T: Shared, const N: usize> Shared for [T; N] {}

/// Zeroed memory that this process shares with all its descendants. It is never freed.
#[derive(Debug)]
pub struct Arena {
    base: *mut u8,
    size: usize,
    used: usize,
}

impl Arena {
    /// Reserves `size` bytes of address space; memory is allocated on first access.
    pub fn new(size: usize) -> io::Result<Arena> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping, which overlaps nothing.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Arena { base: base.cast(), size, used: 0 })
    }

    /// Allocates `count` zeroed values. Fails if the arena is exhausted.
    pub fn slice<T: Shared>(&mut self, count: usize) -> io::Result<&'static [T]> {
        let start = self.used.next_multiple_of(std::mem::align_of::<T>().max(64));
        let bytes = count.checked_mul(std::mem::size_of::<T>());
        let end = bytes.and_then(|bytes| start.checked_add(bytes)).filter(|end| *end <= self.size);
        self.used = end.ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: inside the mapping, which is never unmapped; aligned; handed out once; zero bytes are a value of `T`
        // and every access to it is atomic (`Shared`).
        Ok(unsafe { std::slice::from_raw_parts(self.base.add(start).cast::<T>(), count) })
    }

    /// Allocates one zeroed value.
    pub fn one<T: Shared>(&mut self) -> io::Result<&'static T> {
        Ok(&self.slice(1)?[0])
    }
}

/// The process that returns from [`fork`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forked {
    /// The child.
    Child,
    /// The parent, with the child's pid.
    Parent(i32),
}

/// `fork`. The child has only the calling thread; glibc keeps its allocator usable there.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: the child touches no lock of another thread: glibc's fork handlers reset the allocator's, and the agent's
    // own state is in atomics.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// `_exit`: ends the process without running exit handlers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: no memory is involved.
    unsafe { libc::_exit(code) }
}

/// `execv` with the name of the program as its only argument. It returns only if the program cannot be executed.
pub fn exec(path: &std::ffi::CStr, name: &std::ffi::CStr) {
    let arguments = [name.as_ptr(), std::ptr::null()];
    // SAFETY: both strings end with a zero, and the array with a null pointer.
    unsafe { libc::execv(path.as_ptr(), arguments.as_ptr()) };
}

/// `waitpid(-1)`, only for children of this thread if `own_thread`. Returns `None` if no child has exited and `block`
/// is false.
pub fn wait_any(block: bool, own_thread: bool) -> io::Result<Option<(i32, i32)>> {
    let mut status = 0;
    let options = if block { 0 } else { libc::WNOHANG } | if own_thread { libc::__WNOTHREAD } else { 0 };
    loop {
        // SAFETY: `status` outlives the call.
        match unsafe { libc::waitpid(-1, &mut status, options) } {
            0 => return Ok(None),
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            pid => return Ok(Some((pid, status))),
        }
    }
}

/// A description of how a process ended; `None` if it exited with 0.
#[must_use]
pub fn ended_badly(status: i32) -> Option<String> {
    if libc::WIFSIGNALED(status) {
        return Some(format!("killed by signal {}", libc::WTERMSIG(status)));
    }
    let code = libc::WEXITSTATUS(status);
    (code != 0).then(|| format!("exit code {code}"))
}

/// Blocks these signals and returns a signalfd for them. Child processes inherit the mask and call [`unblock_signals`].
pub fn signal_fd(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: `set` is initialised by sigemptyset before it is read; the descriptor is new and has no other owner.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        signals.iter().for_each(|signal| {
            libc::sigaddset(&mut set, *signal);
        });
        if libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// Reads a pending signal from a descriptor of [`signal_fd`].
#[must_use]
pub fn take_signal(fd: &OwnedFd) -> Option<i32> {
    // SAFETY: the kernel writes at most the size of `info`, which is plain data.
    unsafe {
        let mut info: libc::signalfd_siginfo = std::mem::zeroed();
        let size = std::mem::size_of_val(&info);
        let read = libc::read(fd.as_raw_fd(), (&raw mut info).cast(), size);
        (read == size as isize).then_some(info.ssi_signo as i32)
    }
}

/// Unblocks all signals, as programs expect it.
pub fn unblock_signals() {
    // SAFETY: `set` is initialised by sigemptyset.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}

/// `struct sched_attr` (include/uapi/linux/sched/types.h), first version.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct SchedAttr {
    /// Bytes of this struct.
    pub size: u32,
    /// `SCHED_*`.
    pub policy: u32,
    /// Flags.
    pub flags: u64,
    /// Nice value of the fair policies.
    pub nice: i32,
    /// Priority of the real-time ones.
    pub priority: u32,
    /// Slice of the fair policies (6.12 and later), in ns.
    pub runtime: u64,
    /// Deadline policy only.
    pub deadline: u64,
    /// Deadline policy only.
    pub period: u64,
}

/// `sched_getattr` of the calling thread.
pub fn sched_getattr() -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    let size = std::mem::size_of::<SchedAttr>();
    // SAFETY: the kernel writes at most `size` bytes into `attr`.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size, 0) };
    if result == 0 {
        Ok(attr)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// `sched_setattr` of the calling thread.
pub fn sched_setattr(attr: &SchedAttr) -> io::Result<()> {
    let attr = SchedAttr { size: std::mem::size_of::<SchedAttr>() as u32, ..*attr };
    // SAFETY: the kernel reads `size` bytes of `attr`.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The CPU that this thread runs on (read from the rseq area, without a system call).
#[inline]
#[must_use]
pub fn current_cpu() -> u32 {
    // SAFETY: no memory is involved.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// The kernel's statistics of the calling thread.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    /// CPU time in ns, user and system.
    pub cpu_ns: u64,
    /// The part of it in user mode.
    pub user_ns: u64,
    /// Voluntary context switches.
    pub voluntary: u64,
    /// Involuntary context switches.
    pub involuntary: u64,
}

/// The statistics of the calling thread.
#[must_use]
pub fn thread_usage() -> Usage {
    usage(libc::RUSAGE_THREAD)
}

/// CPU time in ns of the calling thread and of the child processes that its process has reaped.
#[must_use]
pub fn cpu_time() -> u64 {
    thread_usage().cpu_ns + usage(libc::RUSAGE_CHILDREN).cpu_ns
}

/// The part of it in user mode.
#[must_use]
pub fn user_time() -> u64 {
    thread_usage().user_ns + usage(libc::RUSAGE_CHILDREN).user_ns
}

/// Time in ns that all CPUs together have been idle since boot, as `/proc/stat` counts it (in 1/100 s); 0 if it cannot
/// be read.
#[must_use]
pub fn idle_time() -> u64 {
    const TICK: u64 = 10_000_000;
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let idle = stat.lines().next().and_then(|line| line.split_whitespace().nth(4)?.parse::<u64>().ok());
    idle.unwrap_or(0) * TICK
}

/// The minor page faults of the calling thread.
#[cfg(test)]
pub fn faults() -> u64 {
    rusage(libc::RUSAGE_THREAD).ru_minflt as u64
}

fn rusage(of: libc::c_int) -> libc::rusage {
    // SAFETY: the kernel fills `usage`, plain data.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(of, &mut usage);
        usage
    }
}

fn usage(of: libc::c_int) -> Usage {
    let usage = rusage(of);
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Usage {
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        user_ns: ns(usage.ru_utime),
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
    }
}

/// One `preadv` of at most `bytes` from `offset` on that fills the same buffer repeatedly.
pub fn read_over(fd: &OwnedFd, buffer: &mut [u8], offset: u64, bytes: u64) -> io::Result<u64> {
    const MOST: u64 = 1024;
    let (base, size) = (buffer.as_mut_ptr(), buffer.len() as u64);
    let whole = (bytes / size).min(MOST - 1);
    let part = (bytes - whole * size).min(size);
    let entry = |length: u64| libc::iovec { iov_base: base.cast(), iov_len: length as usize };
    let mut vector = vec![entry(size); whole as usize];
    vector.push(entry(part));
    // SAFETY: every entry lies within `buffer`, which is exclusively borrowed; what it holds is of no interest.
    let read = unsafe { libc::preadv(fd.as_raw_fd(), vector.as_ptr(), vector.len() as i32, offset as i64) };
    u64::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Entries for `poll`, all of the same file.
#[derive(Debug)]
pub struct PollSet(Vec<libc::pollfd>);

impl PollSet {
    /// `count` entries.
    #[must_use]
    pub fn new(fd: &OwnedFd, count: usize) -> PollSet {
        PollSet(vec![libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }; count])
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// One `poll` of the first `count` entries that does not wait.
    pub fn poll(&mut self, count: usize) -> io::Result<()> {
        let count = count.min(self.0.len());
        // SAFETY: the first `count` entries belong to this set, which is exclusively borrowed.
        match unsafe { libc::poll(self.0.as_mut_ptr(), count as libc::nfds_t, 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// Pages of 4 KiB, which are not present until they are written to; unmapped when dropped.
#[derive(Debug)]
pub struct Pages {
    base: *mut u8,
    pages: usize,
}

/// Pages of 4 KiB in a huge page of x86-64.
const HUGE_PAGE: usize = 512;

impl Pages {
    /// Private pages. The kernel may not use huge pages for them; fewer than those of a huge page need no advice.
    pub fn private(pages: usize) -> io::Result<Pages> {
        let mapped = Pages::map(pages, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)?;
        if pages < HUGE_PAGE {
            return Ok(mapped);
        }
        mapped.advise(libc::MADV_NOHUGEPAGE).or_else(|error| match error.raw_os_error() {
            // The kernel is built without huge pages.
            Some(libc::EINVAL) => Ok(()),
            _ => Err(error),
        })?;
        Ok(mapped)
    }

    /// The first pages of a file, shared with it.
    pub fn of_file(file: &OwnedFd, pages: usize) -> io::Result<Pages> {
        Pages::map(pages, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn map(pages: usize, flags: i32, fd: i32) -> io::Result<Pages> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which overlaps nothing.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), pages << 12, protection, flags, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Pages { base: base.cast(), pages })
    }

    /// The number of pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages
    }

    /// Writes one byte to a page. Pages beyond the end are ignored.
    pub fn touch(&mut self, page: usize) {
        if page < self.pages {
            // SAFETY: inside the mapping, which only this value uses.
            unsafe { self.base.add(page << 12).write_volatile(1) }
        }
    }

    /// Reads one byte of a page: of a private page that nobody has written, the kernel maps the page of zeros. Pages
    /// beyond the end are ignored.
    pub fn read(&self, page: usize) {
        if page < self.pages {
            // SAFETY: inside the mapping, which only this value uses.
            unsafe { self.base.add(page << 12).read_volatile() };
        }
    }

    /// Removes all pages from the page table: shared ones stay in their file.
    pub fn forget(&mut self) -> io::Result<()> {
        self.advise(libc::MADV_DONTNEED)
    }

    /// Puts references to these pages, which have to be present, into a pipe; how many it took.
    pub fn splice(&self, from: usize, pages: usize, into: &OwnedFd) -> io::Result<usize> {
        let pages = pages.min(self.pages.saturating_sub(from));
        // SAFETY: inside the mapping, whose pages nobody reads through the pipe.
        let spliced = unsafe {
            let part = libc::iovec { iov_base: self.base.add(from << 12).cast(), iov_len: pages << 12 };
            libc::vmsplice(into.as_raw_fd(), &raw const part, 1, libc::SPLICE_F_NONBLOCK)
        };
        usize::try_from(spliced).map(|bytes| bytes >> 12).map_err(|_| io::Error::last_os_error())
    }

    fn advise(&self, advice: i32) -> io::Result<()> {
        // SAFETY: the whole mapping, of which no reference is handed out.
        match unsafe { libc::madvise(self.base.cast(), self.pages << 12, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Unmaps the pages from this one on.
    pub fn truncate(&mut self, pages: usize) {
        if pages < self.pages {
            // SAFETY: the end of the mapping, of which no reference is handed out and which is not used any more.
            unsafe { libc::munmap(self.base.add(pages << 12).cast(), (self.pages - pages) << 12) };
            self.pages = pages;
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.truncate(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn memory_is_shared_with_a_child() {
        let mut arena = Arena::new(1 << 20).unwrap();
        let words: &[AtomicU32] = arena.slice(4).unwrap();
        let other: &AtomicU64 = arena.one().unwrap();
        assert_eq!(other.load(Relaxed), 0);
        match fork().unwrap() {
            Forked::Child => {
                words[3].store(7, Relaxed);
                exit_now(5);
            }
            Forked::Parent(pid) => {
                let (dead, status) = wait_any(true, true).unwrap().unwrap();
                assert_eq!((dead, ended_badly(status)), (pid, Some("exit code 5".into())));
            }
        }
        assert_eq!(words[3].load(Relaxed), 7);
        assert!(arena.slice::<AtomicU64>(1 << 20).is_err());
    }
}
