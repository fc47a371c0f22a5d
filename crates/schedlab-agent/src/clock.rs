//! The real clock: `CLOCK_MONOTONIC`, which the recorded tracepoints use too.

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{clock_getres, clock_gettime, ClockId, Timespec};
use schedlab_model::{Nanos, SEC};

/// The current time, in ns since boot.
#[inline]
#[must_use]
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * SEC + time.tv_nsec as u64
}

/// Sleeps until `time`, plus the thread's timer slack. Returns at once if `time` has passed.
pub fn sleep_until(time: Nanos) {
    let time = timespec(time);
    while clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
}

/// Converts a time for the kernel.
#[must_use]
pub fn timespec(time: Nanos) -> Timespec {
    Timespec { tv_sec: (time / SEC) as i64, tv_nsec: (time % SEC) as i64 }
}

/// The tick period, which is the resolution of the coarse clock.
#[must_use]
pub fn tick() -> Nanos {
    let period = clock_getres(ClockId::MonotonicCoarse);
    (period.tv_sec as u64 * SEC + period.tv_nsec as u64).max(1)
}
