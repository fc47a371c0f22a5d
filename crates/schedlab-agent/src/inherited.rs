//! Scheduling attributes that the agent inherits from its caller. All tasks of a run would inherit them too, so they
//! are reset to the kernel's defaults before anything starts. If this user may not do that, the run is refused.

use rustix::thread::CpuSet;
use schedlab_model::{Nanos, USEC};

use crate::attributes;
use crate::error::{AgentError, Result};
use crate::sys::{sched_getattr, sched_setattr, SchedAttr};

/// The default `timer_slack_ns` (`init_task`).
const TIMER_SLACK: Nanos = 50 * USEC;

/// Resets policy, nice value, slice, affinity and timer slack of the calling thread to the kernel's defaults. The
/// restriction by its cpuset remains.
pub fn reset() -> Result<()> {
    let inherited = sched_getattr().map_err(crate::error::os("sched_getattr"))?;
    // SCHED_OTHER with nice 0; runtime 0 selects the default slice.
    sched_setattr(&SchedAttr::default()).map_err(|error| refused(&inherited, &error))?;
    let mut every = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| every.set(cpu));
    attributes::affinity(&every).map_err(|(_, errno)| {
        let error = std::io::Error::from_raw_os_error(errno);
        AgentError::cannot(format!("cannot reset the inherited CPU affinity: {error}"), "start it without taskset")
    })?;
    attributes::timer_slack(TIMER_SLACK)
        .map_err(|(_, errno)| AgentError::cannot(format!("timer slack: error {errno}"), ""))
}

fn refused(inherited: &SchedAttr, error: &std::io::Error) -> AgentError {
    let SchedAttr { policy, nice, flags, .. } = inherited;
    let what = format!(
        "every task would inherit policy {policy}, nice {nice} and flags {flags:#x} of the caller, and this user may \
        not reset them to the defaults: {error}"
    );
    AgentError::cannot(what, "start it without nice or chrt, as root, or after: ulimit -e 20")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{self, Forked};
    use schedlab_workload::Policy;

    /// Runs `body` in a child process, so that it does not change the attributes of the test.
    fn in_child(body: impl FnOnce() -> i32) -> Option<String> {
        match sys::fork().unwrap() {
            Forked::Child => sys::exit_now(body()),
            Forked::Parent(pid) => loop {
                if let Some((ended, status)) = sys::wait_any(true, true).unwrap() {
                    assert_eq!(ended, pid);
                    return sys::ended_badly(status);
                }
            },
        }
    }

    #[test]
    fn inherited_attributes_are_reset_or_refused() {
        let ended = in_child(|| {
            let mut one = CpuSet::new();
            one.set(crate::run::allowed_cpus().unwrap()[0] as usize);
            let _ = attributes::affinity(&one);
            let _ = attributes::slice(3 * schedlab_model::MSEC);
            let _ = attributes::timer_slack(1);
            let _ = attributes::policy(Policy::Batch);
            let _ = attributes::nice(7);
            let custom = sched_getattr().unwrap();
            match reset() {
                Err(AgentError::Cannot { message, .. }) if message.contains("nice 7") => i32::from(is_root()),
                Err(_) => 2,
                Ok(()) => {
                    let now = sched_getattr().unwrap();
                    let same_slice = now.runtime == custom.runtime && now.runtime != 0;
                    let narrow = rustix::thread::sched_getaffinity(None).unwrap() == one && cpus() > 1;
                    let slack = rustix::thread::current_timer_slack().unwrap();
                    let wrong = [now.policy != 0, now.nice != 0, same_slice, narrow, slack != TIMER_SLACK];
                    wrong.iter().enumerate().map(|(bit, wrong)| i32::from(*wrong) << (bit + 2)).sum()
                }
            }
        });
        assert_eq!(ended, None);
    }

    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    fn cpus() -> usize {
        std::fs::read_dir("/sys/devices/system/cpu/cpu1").map_or(1, |_| 2)
    }
}
