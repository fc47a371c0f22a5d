//! Work: CPU time at a speed that is calibrated for every run, so that "1 ms" is 1 ms on an undisturbed CPU.
//!
//! User work is a chain of dependent integer steps that access no memory; their number per nanosecond is measured.
//! Because work is counted in steps, preemption and a lower clock frequency make it take longer, as in the simulator.
//! Kernel work is one `poll` that does not wait, of as many entries as it takes: `do_poll` walks them without
//! cond_resched(). They are all the same socket, because the more an entry costs, the less of the call is the copying
//! of the entries into the kernel, which has points of might_sleep().

use std::os::fd::OwnedFd;
use std::sync::mpsc::channel;

use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use schedlab_model::{Nanos, MSEC, USEC};
use serde::Serialize;

use crate::clock::now;
use crate::error::{os, Result};
use crate::sys::PollSet;

/// The calibrated speed of this machine.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Speed {
    /// Steps of user work in 1024 ns.
    pub steps_per_1024ns: f64,
    /// Entries of one poll in 1024 ns by a process with one thread, and by one with several, where each takes a
    /// reference to the file; 0 if no program has kernel work.
    pub entries_per_1024ns: [f64; 2],
    /// The interquartile range of the batch times, in percent of their median.
    pub spread_pct: f64,
    /// The fastest batch, in percent below the median.
    pub fastest_pct: f64,
    /// The slowest batch, in percent above the median.
    pub slowest_pct: f64,
    /// The number of batches.
    pub batches: usize,
}

/// The number of batches in a calibration, and the length of each.
const BATCHES: usize = 41;
const BATCH: Nanos = 250 * USEC;

impl Speed {
    /// Measures user work, about 15 ms, and kernel work if `kernel`.
    pub fn measure(kernel: bool) -> Result<Speed> {
        let mut steps = 10_000;
        while time_of(steps) < BATCH && steps < 1 << 40 {
            steps *= 2;
        }
        let steps = (steps as u128 * u128::from(BATCH) / u128::from(time_of(steps).max(1))).max(1) as u64;
        let mut times: Vec<Nanos> = (0..BATCHES).map(|_| time_of(steps).max(1)).collect();
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 4] as f64;
        let percent = |time: f64| 100.0 * (time / at(2) - 1.0).abs();
        Ok(Speed {
            // Disturbances only lengthen a batch, so the lower quartile is closest to the undisturbed speed.
            steps_per_1024ns: steps as f64 * 1024.0 / at(1),
            entries_per_1024ns: if kernel { kernel_speeds()? } else { [0.0; 2] },
            spread_pct: 100.0 * (at(3) - at(1)) / at(2),
            fastest_pct: percent(at(0)),
            slowest_pct: percent(at(4)),
            batches: BATCHES,
        })
    }

    /// Works in user mode for `work` ns at the measured speed.
    #[inline]
    pub fn run(&self, work: Nanos) {
        steps((work as f64 * self.steps_per_1024ns / 1024.0) as u64);
    }
}

fn time_of(count: u64) -> Nanos {
    let begin = now();
    steps(count);
    now() - begin
}

/// Dependent steps (xorshift), which the compiler can neither vectorise nor fold and which all take the same time.
#[inline(never)]
fn steps(count: u64) {
    let mut state = std::hint::black_box(88_172_645_463_325_252_u64);
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    std::hint::black_box(state);
}

/// Spins in user mode until the time `until`.
pub fn spin_until(until: Nanos) {
    while now() < until {
        std::hint::spin_loop();
    }
}

/// The most entries of a call: the default of fs.nr_open, which limits the limit of open files, which limits them.
const MOST_ENTRIES: u64 = 1 << 20;

/// The entries for kernel work.
#[derive(Debug)]
pub struct Kernel {
    /// Nothing is ever sent to it; the other end stays open.
    socket: (OwnedFd, OwnedFd),
    set: PollSet,
    /// The most entries of one call.
    most: usize,
}

impl Kernel {
    /// Opens the socket, and raises the limit of open files as far as this user may.
    pub fn open() -> std::io::Result<Kernel> {
        let socket = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let had = getrlimit(Resource::Nofile);
        let all = Rlimit { current: Some(MOST_ENTRIES), maximum: had.maximum.map(|most| most.max(MOST_ENTRIES)) };
        if setrlimit(Resource::Nofile, all).is_err() {
            // If even this is refused, calls are shorter.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: had.maximum, maximum: had.maximum });
        }
        let most = getrlimit(Resource::Nofile).current.unwrap_or(MOST_ENTRIES).clamp(1, MOST_ENTRIES);
        Ok(Kernel { set: PollSet::new(&socket.0, 0), socket, most: most as usize })
    }

    /// Works in kernel mode for `work` ns at the measured speed: one call, or several where it would exceed the limit
    /// of open files.
    pub fn run(&mut self, speed: &Speed, several_threads: bool, work: Nanos) {
        let entries = speed.entries_per_1024ns[usize::from(several_threads)];
        let mut left = ((work as f64 * entries / 1024.0) as usize).max(1);
        while left > 0 {
            let part = left.min(self.most);
            if self.poll(part).is_err() {
                return;
            }
            left -= part;
        }
    }

    fn poll(&mut self, entries: usize) -> std::io::Result<()> {
        if self.set.len() < entries {
            self.set = PollSet::new(&self.socket.0, entries);
        }
        self.set.poll(entries)
    }
}

fn kernel_speeds() -> Result<[f64; 2]> {
    let alone = kernel_speed()?;
    let (end, ended) = channel::<()>();
    let other = std::thread::Builder::new().stack_size(64 << 10).spawn(move || ended.recv());
    let other = other.map_err(os("a thread"))?;
    let beside = kernel_speed();
    drop(end);
    // It does not panic.
    let _ = other.join();
    Ok([alone, beside?])
}

fn kernel_speed() -> Result<f64> {
    let mut kernel = Kernel::open().map_err(os("a socket"))?;
    let most = kernel.most;
    let mut measure = |entries: usize| -> Result<Nanos> {
        let begin = now();
        kernel.poll(entries).map_err(os("poll"))?;
        Ok((now() - begin).max(1))
    };
    let mut entries = 1024.min(most);
    while measure(entries)? < MSEC / 2 && entries * 2 <= most {
        entries *= 2;
    }
    let mut speeds = Vec::new();
    for _ in 0..21 {
        speeds.push(entries as f64 * 1024.0 / measure(entries)? as f64);
    }
    speeds.sort_unstable_by(f64::total_cmp);
    Ok(speeds[speeds.len() * 3 / 4])
}
