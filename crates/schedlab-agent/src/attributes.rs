//! The scheduling attributes of a thread: nice, policy, affinity, slice, timer slack, name.

use std::ffi::CString;
use std::num::NonZeroU64;

use rustix::thread::CpuSet;
use schedlab_model::Nanos;
use schedlab_workload::{Deadline, Policy};

use crate::shared_state::Failure;
use crate::sys::{sched_getattr, sched_setattr, SchedAttr};

type AttributeResult = Result<(), (Failure, i32)>;

fn failed(why: Failure) -> impl Fn(std::io::Error) -> (Failure, i32) {
    move |error| (why, error.raw_os_error().unwrap_or(0))
}

/// `setpriority` for the calling thread.
pub fn nice(nice: i8) -> AttributeResult {
    let error = |error: rustix::io::Errno| (Failure::Nice, error.raw_os_error());
    rustix::process::setpriority_process(None, i32::from(nice)).map_err(error)
}

/// `sched_setattr` for the calling thread; nice and slice are kept. Leaving SCHED_DEADLINE resets the slice.
pub fn policy(policy: Policy) -> AttributeResult {
    let now = sched_getattr().map_err(failed(Failure::Policy))?;
    let (number, priority) = numbers(policy);
    let (runtime, deadline, period) = match policy {
        Policy::Deadline(Deadline { runtime, deadline, period }) => (runtime, deadline, period),
        _ if now.policy == libc::SCHED_DEADLINE as u32 => (0, 0, 0),
        _ => (now.runtime, now.deadline, now.period),
    };
    let attr = SchedAttr { policy: number, priority, runtime, deadline, period, ..now };
    sched_setattr(&attr).map_err(failed(Failure::Policy))
}

/// The kernel's number of a policy, and its priority.
#[must_use]
pub fn numbers(policy: Policy) -> (u32, u32) {
    let (number, priority) = match policy {
        Policy::Normal => (libc::SCHED_OTHER, 0),
        Policy::Batch => (libc::SCHED_BATCH, 0),
        Policy::Idle => (libc::SCHED_IDLE, 0),
        Policy::Fifo(priority) => (libc::SCHED_FIFO, priority),
        Policy::RoundRobin(priority) => (libc::SCHED_RR, priority),
        Policy::Deadline(_) => (libc::SCHED_DEADLINE, 0),
    };
    (number as u32, u32::from(priority))
}

/// `sched_setattr` with `sched_runtime` as the custom slice, 0 for the base slice. Kernels without custom slices ignore
/// the value, so it is read back.
pub fn slice(slice: Nanos) -> AttributeResult {
    let now = sched_getattr().map_err(failed(Failure::Slice))?;
    sched_setattr(&SchedAttr { runtime: slice, ..now }).map_err(failed(Failure::Slice))?;
    let then = sched_getattr().map_err(failed(Failure::Slice))?;
    if slice > 0 && then.runtime != slice {
        return Err((Failure::Slice, 0));
    }
    Ok(())
}

/// `sched_setaffinity` for the calling thread.
pub fn affinity(cpus: &CpuSet) -> AttributeResult {
    let error = |error: rustix::io::Errno| (Failure::Affinity, error.raw_os_error());
    rustix::thread::sched_setaffinity(None, cpus).map_err(error)
}

/// `PR_SET_TIMERSLACK`. The smallest value is 1 ns, because 0 restores the default.
pub fn timer_slack(slack: Nanos) -> AttributeResult {
    let error = |error: rustix::io::Errno| (Failure::TimerSlack, error.raw_os_error());
    rustix::thread::set_current_timer_slack(NonZeroU64::new(slack.max(1))).map_err(error)
}

/// `PR_SET_NAME`; the kernel truncates to 15 bytes.
pub fn name(name: &str) {
    if let Ok(name) = CString::new(name) {
        // Cannot fail for a valid string.
        let _ = rustix::thread::set_name(&name);
    }
}
