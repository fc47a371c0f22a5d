//! Why the scheduler decided what it decided: the rule, the feature, the numbers compared, the function of the kernel.

use crate::features::Feature;
use crate::{IdleRule, Policy, Resched, Rules, Series, WakeupRule};
use schedlab_model::{CpuId, Nanos, TaskId};

/// What kind of decision was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// This task runs next.
    Pick(TaskId),
    /// The woken task preempts.
    Preempt(TaskId),
    /// The woken task does not preempt.
    Keep(TaskId),
    /// The running task's turn ended at an accounting point.
    Expire(TaskId),
    /// The running task's turn goes on at a tick although others wait.
    Stay(TaskId),
    /// The task stays queued although it sleeps.
    Delay(TaskId),
    /// A waking or new task goes to the CPU.
    Place(TaskId, CpuId),
    /// The search for an idle CPU for the task may test so many; the numbers say how many.
    Search(TaskId),
    /// The balancer moves the task to the decision's CPU from another.
    Pull(TaskId, CpuId),
}

/// In which call a decision of the fair class fell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum During {
    /// The tick.
    Tick,
    /// The preemption check of a wakeup.
    Wakeup,
    /// The slice-end timer.
    Hrtick,
    /// Any other.
    #[default]
    Other,
}

/// One decision with its reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// When.
    pub now: Nanos,
    /// On which CPU's queue.
    pub cpu: CpuId,
    /// What.
    pub verdict: Verdict,
    /// In which call.
    pub during: During,
    /// What is asked of the CPU after it.
    pub asked: Resched,
    /// Which rule of fair.c decided, in words.
    pub rule: &'static str,
    /// The feature that made the difference, if one did.
    pub feature: Option<Feature>,
    /// The two numbers compared, with their names; signed differences from the queue's zero point.
    pub compared: [(&'static str, i64); 2],
}

impl Decision {
    /// A decision outside the fair class's queues: placement and balancing.
    pub(crate) fn outside(
        now: Nanos,
        cpu: CpuId,
        verdict: Verdict,
        rule: &'static str,
        feature: Option<Feature>,
        compared: [(&'static str, i64); 2],
    ) -> Self {
        Decision { now, cpu, verdict, during: During::Other, asked: Resched::No, rule, feature, compared }
    }

    /// The function of this kernel's `fair.c` that decides so.
    #[must_use]
    pub fn function(&self, series: Series, rules: &Rules) -> &'static str {
        let cfs = rules.policy == Policy::Cfs;
        match self.verdict {
            Verdict::Pick(_) if cfs => "pick_next_entity",
            Verdict::Pick(_) => "pick_eevdf",
            Verdict::Preempt(_) | Verdict::Keep(_) => match (rules.idle, rules.wakeup) {
                (_, WakeupRule::Requeue) => "wakeup_preempt_fair",
                (IdleRule::Entity, _) => "check_preempt_wakeup_fair",
                _ => "check_preempt_wakeup",
            },
            Verdict::Expire(_) | Verdict::Stay(_) if cfs || !rules.expiry_reschedules => "check_preempt_tick",
            Verdict::Expire(_) | Verdict::Stay(_) => "update_curr",
            Verdict::Delay(_) => "dequeue_entity",
            Verdict::Place(..) if self.rule.starts_with("wake_affine") => "wake_affine",
            Verdict::Place(..) if self.rule == "idlest group" => "find_idlest_cpu",
            Verdict::Place(..) => "select_idle_sibling",
            Verdict::Search(_) => "select_idle_cpu",
            Verdict::Pull(..) if series >= Series::V6_12_0 => "sched_balance_rq",
            Verdict::Pull(..) => "load_balance",
        }
    }

    /// The task it is about.
    #[must_use]
    pub fn task(&self) -> TaskId {
        match self.verdict {
            Verdict::Pick(task) | Verdict::Preempt(task) | Verdict::Keep(task) | Verdict::Expire(task) => task,
            Verdict::Stay(task) | Verdict::Delay(task) | Verdict::Search(task) => task,
            Verdict::Place(task, _) | Verdict::Pull(task, _) => task,
        }
    }
}
