//! System calls by which a task changes its own scheduling attributes, or yields the CPU.

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};
use schedlab_policy::dl::DlPolicy;
use schedlab_policy::fair::GroupId;
use schedlab_policy::procedure::Timer;
use schedlab_policy::rt::RtPolicy;
use schedlab_policy::{FairPolicy, Resched};
use schedlab_trace::Sink;
use schedlab_workload::{Deadline, Policy};

use super::effects::program;
use super::resched::resched_curr;
use super::segment::mark;
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::{Context, Run};

/// An attribute of the calling task.
#[derive(Clone, Copy, Debug)]
pub enum Attribute {
    /// `set_user_nice`.
    Nice(i8),
    /// `sched_setscheduler`.
    Policy(Policy),
    /// `sched_setattr`'s `sched_runtime` of a fair task; 0 = the default slice.
    Slice(Nanos),
    /// `sched_move_task`.
    Group(GroupId),
}

/// Changes an attribute of the task that runs on the CPU.
pub fn change_attribute<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
    attribute: Attribute,
) {
    let (now, clock) = (run.now, kernel.clock_task(cpu, run.now));
    announce(run, kernel, cpu, task, attribute);
    kernel.competitors_changed(cpu, now);
    let was_deadline = kernel.sched.dl.policy(task).is_some();
    let resched = match attribute {
        Attribute::Nice(nice) => kernel.sched.set_user_nice(task, nice, clock),
        Attribute::Policy(policy) => match (fair_policy(policy), rt_policy(policy), dl_policy(policy)) {
            (Some(policy), ..) => kernel.sched.set_policy(task, policy, clock),
            (_, Some(policy), _) => kernel.sched.set_rt_policy(task, policy, clock),
            (.., Some(policy)) => kernel.sched.set_dl_policy(task, policy, clock),
            (None, None, None) => Resched::No,
        },
        Attribute::Slice(slice) => kernel.sched.set_slice(task, (slice > 0).then_some(slice), clock),
        Attribute::Group(group) if kernel.sched.fair.group_of(task) == group => return,
        Attribute::Group(group) => kernel.sched.sched_move_task(task, group, clock),
    };
    kernel.tasks[task.index()].prio = kernel.sched.prio(task);
    kernel.trace_run_times(run, cpu);
    resched_curr(run, machine, kernel, cpu, resched, cpu);
    if was_deadline {
        // It may have started or cancelled the timer of its 0-lag time.
        let timer = kernel.sched.next_timer();
        program(run, machine, kernel, Timer::Classes(timer));
    }
}

/// What a probe of `set_user_nice` or `__sched_setscheduler` would show.
#[inline(always)]
fn announce<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId, task: TaskId, attribute: Attribute) {
    let name = match attribute {
        Attribute::Nice(_) => "ni",
        Attribute::Policy(_) | Attribute::Slice(_) => "sa",
        Attribute::Group(_) => return,
    };
    kernel.note(run, cpu, name, |kernel| {
        let (pid, se) = (kernel.tasks[task.index()].pid, kernel.sched.fair.entity(task));
        let own = if se.custom_slice { se.slice } else { 0 };
        let (policy, nice, slice) = match attribute {
            Attribute::Nice(nice) => (policy_number(se.policy), nice, own),
            Attribute::Slice(slice) => (policy_number(se.policy), se.nice, slice),
            Attribute::Policy(policy) => {
                let rt = rt_policy(policy).map(|policy| SCHED_FIFO + u32::from(policy.round_robin));
                let dl = dl_policy(policy).map(|_| SCHED_DEADLINE);
                let fair = || policy_number(fair_policy(policy).unwrap_or_default());
                (rt.or(dl).unwrap_or_else(fair), se.nice, own)
            }
            Attribute::Group(_) => (policy_number(se.policy), se.nice, own),
        };
        format!("p={pid} policy={policy} nice={nice} slice={slice}")
    });
}

/// The number of the policy in user space; that of SCHED_RR is the next one.
pub const SCHED_FIFO: u32 = 1;

/// The number of the deadline policy in user space.
pub const SCHED_DEADLINE: u32 = 6;

/// The number of a fair policy in user space.
pub fn policy_number(policy: FairPolicy) -> u32 {
    match policy {
        FairPolicy::Normal => 0,
        FairPolicy::Batch => 3,
        FairPolicy::Idle => 5,
    }
}

/// `sched_setaffinity` of the task that runs on the CPU. True: it may no longer run there and leaves at the CPU's next
/// `__schedule` (the stopper's work).
pub fn set_affinity<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId, task: TaskId, mask: CpuMask) -> bool {
    // The caller has refused what leaves no CPU.
    let Some(mask) = kernel.cpus_of_affinity(task, mask) else { return false };
    kernel.note(run, cpu, "sys_sched_setaffinity(pid", |kernel| {
        format!("{:x}, len: 8, user_mask_ptr: 0)", kernel.tasks[task.index()].pid)
    });
    confine_current(run, kernel, cpu, task, mask)
}

/// The task that runs on the CPU gets this affinity. True: it leaves.
pub fn confine_current<S: Sink>(
    run: &mut Run<S>,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
    mask: CpuMask,
) -> bool {
    let now = run.now;
    kernel.competitors_changed(cpu, now);
    let Some(dest) = kernel.sched.set_affinity(task, Some(mask), cpu, kernel.clock_task(cpu, now)) else {
        return false;
    };
    kernel.cpus[cpu.index()].push_away = Some((task, dest));
    mark(run, kernel, cpu);
    true
}

/// `do_sched_yield`.
pub fn do_sched_yield<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId) {
    kernel.sched.yield_current(cpu, kernel.clock_task(cpu, run.now));
    run.in_context(Context::Yield, |run| kernel.trace_run_times(run, cpu));
    kernel.cpus[cpu.index()].need_resched = true;
}

/// The real-time class's name of a policy.
pub fn rt_policy(policy: Policy) -> Option<RtPolicy> {
    match policy {
        Policy::Fifo(priority) => Some(RtPolicy { priority, round_robin: false }),
        Policy::RoundRobin(priority) => Some(RtPolicy { priority, round_robin: true }),
        Policy::Normal | Policy::Batch | Policy::Idle | Policy::Deadline(_) => None,
    }
}

/// The deadline class's name of a policy.
pub fn dl_policy(policy: Policy) -> Option<DlPolicy> {
    let Policy::Deadline(Deadline { runtime, deadline, period }) = policy else { return None };
    Some(DlPolicy { runtime, deadline, period })
}

/// `task_struct.prio`, as trace events show it.
pub fn prio(policy: Policy, nice: i8) -> i32 {
    if matches!(policy, Policy::Deadline(_)) {
        return -1;
    }
    rt_policy(policy).map_or(120 + i32::from(nice), |policy| i32::from(policy.prio()))
}

/// The fair class's name of a policy; `None` for real-time and deadline ones.
pub fn fair_policy(policy: Policy) -> Option<FairPolicy> {
    match policy {
        Policy::Normal => Some(FairPolicy::Normal),
        Policy::Batch => Some(FairPolicy::Batch),
        Policy::Idle => Some(FairPolicy::Idle),
        Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Deadline(_) => None,
    }
}
