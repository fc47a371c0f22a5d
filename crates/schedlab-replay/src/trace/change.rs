//! Changes of a task's scheduling attributes, as a probe or a system call announces them.

use schedlab_model::{Nanos, Pid};
use schedlab_policy::FairPolicy;
use schedlab_trace::Fields;

use super::call::Call;

/// A change that is about to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedChange {
    /// `__sched_setscheduler`. The policy has its number in user space; a slice of 0 means none. `pid` may be
    /// [`UNNAMED`].
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

    /// A system call of the task `caller`.
    pub(super) fn of_call(call: &Call<'_>, caller: Pid) -> Option<SchedChange> {
        match call.name {
            "sched_setaffinity" => Some(SchedChange::Affinity { pid: target(call, "pid", caller) }),
            "sched_setscheduler" => {
                let policy = call.int("policy")? as u32 & !SCHED_RESET_ON_FORK;
                Some(SchedChange::Policy { pid: target(call, "pid", caller), policy })
            }
            // PRIO_PROCESS only.
            "setpriority" if call.int("which")? == 0 => {
                let nice = call.int("niceval")?.clamp(-20, 19) as i8;
                Some(SchedChange::Priority { pid: target(call, "who", caller), nice })
            }
            _ => None,
        }
    }
}

/// A flag that a system call sets in addition to the policy.
const SCHED_RESET_ON_FORK: u32 = 0x4000_0000;

/// SCHED_NORMAL, SCHED_BATCH or SCHED_IDLE by its number in user space.
pub fn fair_policy(number: u32) -> Option<FairPolicy> {
    match number {
        0 => Some(FairPolicy::Normal),
        3 => Some(FairPolicy::Batch),
        5 => Some(FairPolicy::Idle),
        _ => None,
    }
}

/// The task that an argument of a system call names; 0 is the caller.
pub(super) fn target(call: &Call<'_>, argument: &str, caller: Pid) -> Pid {
    call.int(argument).filter(|pid| *pid > 0).unwrap_or(caller)
}

fn probed(fields: Fields<'_>) -> Option<(Pid, i8)> {
    let nice = fields.number::<i64>("nice")?.clamp(-20, 19) as i8;
    Some((fields.number("p").unwrap_or(UNNAMED), nice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_announces_what_it_asks_for() {
        let own = 7;
        for (event, text, change) in [
            ("sys_setpriority(which", "0, who: 1f, niceval: 5)", Some(SchedChange::Priority { pid: 31, nice: 5 })),
            (
                "sys_setpriority(which",
                "0, who: 0, niceval: fffffffb)",
                Some(SchedChange::Priority { pid: own, nice: -5 }),
            ),
            (
                "sys_setpriority(which",
                "0, who: 0, niceval: ffffff00)",
                Some(SchedChange::Priority { pid: own, nice: -20 }),
            ),
            ("sys_setpriority(which", "1, who: 1f, niceval: 5)", None),
            (
                "sys_enter_setpriority",
                "which=0 who=0 niceval=4294967291",
                Some(SchedChange::Priority { pid: own, nice: -5 }),
            ),
            (
                "sys_enter_setpriority",
                "which=0 who=0 niceval=18446744073709551597",
                Some(SchedChange::Priority { pid: own, nice: -19 }),
            ),
            (
                "sys_sched_setscheduler(pid",
                "0, policy: 40000003, param: 7f)",
                Some(SchedChange::Policy { pid: own, policy: 3 }),
            ),
            (
                "sys_enter_sched_setaffinity",
                "pid: 0x0000001f, len: 0x00000008",
                Some(SchedChange::Affinity { pid: 31 }),
            ),
            ("sys_enter_setsid", "", None),
        ] {
            let call = Call::of(event, Fields(text)).unwrap();
            assert_eq!(SchedChange::of_call(&call, own), change, "{event} {text}");
        }
    }
}
