//! Work: CPU time at a speed that is calibrated for every run, so that "1 ms" is 1 ms on an undisturbed CPU.
//!
//! User work is a chain of dependent integer steps that access no memory; their number per nanosecond is measured. Because
//! work is counted in steps, preemption and a lower clock frequency make it take longer, as in the simulator. Kernel work is
//! one `readv` from /dev/urandom that fills the same buffer repeatedly; the kernel may reschedule at every page.

use std::fs::File;
use std::os::fd::OwnedFd;

use schedlab_model::{Nanos, MSEC, USEC};
use serde::Serialize;

use crate::clock::now;
use crate::error::{os, Result};
use crate::sys::read_over;

/// The calibrated speed of this machine.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Speed {
    /// Steps of user work in 1024 ns.
    pub steps_per_1024ns: f64,
    /// Bytes of kernel work in 1024 ns; 0 if no program has any.
    pub bytes_per_1024ns: f64,
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

/// The size of the buffer for kernel work.
const BUFFER: usize = 64 << 10;

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
            bytes_per_1024ns: if kernel { kernel_speed()? } else { 0.0 },
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

/// The file and the buffer for kernel work.
#[derive(Debug)]
pub struct Kernel {
    random: OwnedFd,
    buffer: Vec<u8>,
}

impl Kernel {
    /// Opens /dev/urandom.
    pub fn open() -> Result<Kernel> {
        let random = File::open("/dev/urandom").map_err(os("/dev/urandom"))?;
        Ok(Kernel { random: random.into(), buffer: vec![0; BUFFER] })
    }

    /// Works in kernel mode for `work` ns at the measured speed.
    pub fn run(&mut self, speed: &Speed, work: Nanos) {
        let mut left = ((work as f64 * speed.bytes_per_1024ns / 1024.0) as u64).max(1);
        while left > 0 {
            match read_over(&self.random, &mut self.buffer, left) {
                Ok(read) if read > 0 => left = left.saturating_sub(read),
                _ => return,
            }
        }
    }
}

fn kernel_speed() -> Result<f64> {
    let mut kernel = Kernel::open()?;
    let mut bytes = BUFFER as u64;
    let mut measure = |bytes| -> Result<(u64, Nanos)> {
        let begin = now();
        let read = read_over(&kernel.random, &mut kernel.buffer, bytes).map_err(os("/dev/urandom"))?;
        Ok((read, (now() - begin).max(1)))
    };
    while measure(bytes)?.1 < MSEC / 2 && bytes < 32 << 20 {
        bytes *= 2;
    }
    let mut speeds = Vec::new();
    for _ in 0..21 {
        let (read, time) = measure(bytes)?;
        speeds.push(read as f64 * 1024.0 / time as f64);
    }
    speeds.sort_unstable_by(f64::total_cmp);
    Ok(speeds[speeds.len() * 3 / 4])
}
