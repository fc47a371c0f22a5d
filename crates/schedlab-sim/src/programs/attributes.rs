//! System calls by which a task changes its own attributes.

use schedlab_model::CpuMask;
use schedlab_trace::Sink;
use schedlab_workload::{Op, Policy};

use super::position::{Next, Step};
use super::running::Running;
use crate::error::SimError;
use crate::kernel::{self, Attribute};

/// The effect of such a call.
pub fn change<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    let attribute = match op {
        Op::SetNice(nice) => Attribute::Nice(nice),
        Op::SetPolicy(policy) => {
            if let Some(message) = refused(x, policy) {
                return message;
            }
            Attribute::Policy(policy)
        }
        Op::SetSlice(slice) if x.kernel.sched.dl.policy(x.task).is_none() => Attribute::Slice(slice),
        Op::SetSlice(_) => return x.fail_program("a SCHED_DEADLINE task has a runtime instead of a slice"),
        Op::SetCgroup(index) => {
            let path = x.workload().cgroups.get(index as usize).filter(|path| *path != "/");
            let number = x.programs.positions[x.task.index()].workload as usize;
            Attribute::Group(x.kernel.cgroups.of(path.map(String::as_str), number))
        }
        Op::SetAffinity(mask) => return set_affinity(x, mask),
        _ => return Next::Done,
    };
    kernel::change_attribute(x.run, x.machine, x.kernel, x.cpu, x.task, attribute);
    if matches!(attribute, Attribute::Group(_)) && kernel::attach_current(x.run, x.kernel, x.cpu, x.task) {
        return leave(x);
    }
    Next::Done
}

/// The call is over, and the task leaves its CPU.
fn leave<S: Sink>(x: &mut Running<S>) -> Next {
    let position = x.position();
    position.pc += 1;
    position.step = Step::Fetch;
    Next::Stop
}

/// Ends the run if the kernel refuses the policy.
fn refused<S: Sink>(x: &mut Running<S>, policy: Policy) -> Option<Next> {
    let message = kernel::refused(x.kernel, Some(x.task), None, kernel::dl_policy(policy)?)?;
    let (task, _, line) = x.programs.where_is(x.task);
    x.run.fail(SimError::Deadline { at: x.run.now, task, line, message });
    Some(Next::Stop)
}

fn set_affinity<S: Sink>(x: &mut Running<S>, mask: u32) -> Next {
    let Some(mask) = x.workload().masks.get(mask as usize).copied() else { return Next::Done };
    let all = CpuMask::first(x.kernel.cpus.len());
    if x.kernel.sched.dl.policy(x.task).is_some() && !all.without(&mask).is_empty() {
        // dl_task_check_affinity.
        return x.fail_program("the kernel refuses an affinity to less than all CPUs to a SCHED_DEADLINE task (EBUSY)");
    }
    if x.kernel.cpus_of_affinity(x.task, mask).is_none() {
        return x.fail_program("the kernel refuses an affinity to CPUs outside of the task's cpuset (EINVAL)");
    }
    if !kernel::set_affinity(x.run, x.kernel, x.cpu, x.task, mask) {
        return Next::Done;
    }
    leave(x)
}
