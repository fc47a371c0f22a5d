//! Changes of a task's scheduling attributes, as a probe or a system call announces them.

use schedlab_model::{Nanos, Pid};
use schedlab_policy::FairPolicy;
use schedlab_trace::Fields;

/// A change that is about to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedChange {
    /// `__sched_setscheduler`. The policy has its number in user space; a slice of 0 means none. `pid` may be [`UNNAMED`].
    Scheduler { pid: Pid, policy: u32, nice: i8, slice: Nanos },
    /// System call `sched_setscheduler`: nice value and slice stay. It may fail.
    Policy { pid: Pid, policy: u32 },
    /// `set_user_nice`.
    Nice { pid: Pid, nice: i8 },
    /// System call `setpriority` for one process. It may fail.
    Priority { pid: Pid, nice: i8 },
    /// System call `sched_setaffinity`. The mask may be the one that the task has.
    Affinity { pid: Pid },
}

/// Stands for the pid where the probe cannot read it; the preceding system call names the task.
pub const UNNAMED: Pid = 0;

impl SchedChange {
    pub fn pid(self) -> Pid {
        match self {
            SchedChange::Scheduler { pid, .. } | SchedChange::Policy { pid, .. } | SchedChange::Affinity { pid } => pid,
            SchedChange::Nice { pid, .. } | SchedChange::Priority { pid, .. } => pid,
        }
    }

    /// Whether this is the entry of a system call, which may fail or change nothing, and not the kernel's own function.
    pub fn may_change_nothing(self) -> bool {
        matches!(self, SchedChange::Affinity { .. } | SchedChange::Policy { .. } | SchedChange::Priority { .. })
    }

    /// Whether the task is in the fair class afterwards, whatever it was before.
    pub fn enters_fair_class(self) -> bool {
        self.policy().is_some_and(|policy| fair_policy(policy).is_some())
    }

    /// Whether the task is in another class afterwards, whatever it was before.
    pub fn leaves_fair_class(self) -> bool {
        self.policy().is_some_and(|policy| fair_policy(policy).is_none())
    }

    fn policy(self) -> Option<u32> {
        match self {
            SchedChange::Scheduler { policy, .. } | SchedChange::Policy { policy, .. } => Some(policy),
            SchedChange::Nice { .. } | SchedChange::Priority { .. } | SchedChange::Affinity { .. } => None,
        }
    }

    /// Probe at `__sched_setscheduler`.
    pub(super) fn of_setscheduler_probe(fields: Fields<'_>) -> Option<SchedChange> {
        let (pid, nice) = probed(fields)?;
        Some(SchedChange::Scheduler { pid, policy: fields.number("policy")?, nice, slice: fields.number("slice")? })
    }

    /// Probe at `set_user_nice`.
    pub(super) fn of_nice_probe(fields: Fields<'_>) -> Option<SchedChange> {
        let (pid, nice) = probed(fields)?;
        Some(SchedChange::Nice { pid, nice })
    }

    pub(super) fn of_setaffinity(arguments: &str, caller: Pid) -> SchedChange {
        SchedChange::Affinity { pid: target(arguments, caller) }
    }

    pub(super) fn of_setscheduler(arguments: &str, caller: Pid) -> Option<SchedChange> {
        let policy = number(after(arguments, "policy: ")?)? as u32;
        Some(SchedChange::Policy { pid: target(arguments, caller), policy })
    }

    /// PRIO_PROCESS only. The nice value is an `int`, which some kernels print with its sign extended to 64 bits.
    pub(super) fn of_setpriority(arguments: &str, caller: Pid) -> Option<SchedChange> {
        let process = number(arguments)? == 0;
        let pid = number(after(arguments, "who: ")?)?;
        let digits = after(arguments, "niceval: ")?.split([',', ')']).next()?.trim();
        let nice = u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok()? as i32;
        let pid = if pid > 0 { pid } else { caller };
        process.then_some(SchedChange::Priority { pid, nice: nice.clamp(-20, 19) as i8 })
    }
}

/// SCHED_NORMAL, SCHED_BATCH or SCHED_IDLE by its number in user space.
pub fn fair_policy(number: u32) -> Option<FairPolicy> {
    match number {
        0 => Some(FairPolicy::Normal),
        3 => Some(FairPolicy::Batch),
        5 => Some(FairPolicy::Idle),
        _ => None,
    }
}

/// The task that a system call's first argument names; 0 is the caller.
pub(super) fn target(arguments: &str, caller: Pid) -> Pid {
    number(arguments).filter(|pid| *pid > 0).unwrap_or(caller)
}

fn probed(fields: Fields<'_>) -> Option<(Pid, i8)> {
    let nice = fields.number::<i64>("nice")?.clamp(-20, 19) as i8;
    Some((fields.number("p").unwrap_or(UNNAMED), nice))
}

fn after<'a>(arguments: &'a str, name: &str) -> Option<&'a str> {
    arguments.split_once(name).map(|(_, rest)| rest)
}

/// A system call's next argument; the kernel prints them in base 16.
fn number(arguments: &str) -> Option<Pid> {
    let digits = arguments.split([',', ')']).next()?.trim();
    Pid::from_str_radix(digits.trim_start_matches("0x"), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nice_value_is_read_whatever_its_width() {
        for (printed, nice) in
            [("5", 5), ("0x13", 19), ("fffffffb", -5), ("fffffffffffffffb", -5), ("ffffffffffffff00", -20)]
        {
            let arguments = format!("0, who: 1f, niceval: {printed})");
            let change = SchedChange::of_setpriority(&arguments, 7);
            assert_eq!(change, Some(SchedChange::Priority { pid: 31, nice }), "{printed}");
        }
        assert_eq!(SchedChange::of_setpriority("1, who: 1f, niceval: 5)", 7), None, "a process group");
    }
}
