//! The reason for a decision of the scheduler: the rule, the feature, the numbers compared, the function of the kernel.

use crate::features::Feature;
use crate::group_id::GroupId;
use crate::version::choices::RtLimit;
use crate::{Algorithm, Resched, Version};
use schedlab_model::{CpuId, Nanos, TaskId};

/// The kind of decision, and its outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// This task runs next.
    Pick(TaskId),
    /// A task of this group runs next; the decision that follows names it.
    PickGroup(GroupId),
    /// The woken task preempts.
    Preempt(TaskId),
    /// The woken task does not preempt.
    Keep(TaskId),
    /// The running task's turn ended at an accounting point.
    Expire(TaskId),
    /// The running task keeps the CPU at a tick although others wait.
    Stay(TaskId),
    /// The task stays queued although it sleeps.
    Delay(TaskId),
    /// The group stays queued although all of its tasks sleep.
    DelayGroup(GroupId),
    /// The pool has nothing left for this CPU.
    Throttle(Pool),
    /// The pool has runtime again.
    Unthrottle(Pool),
    /// The task of a throttled group leaves the queue, on its way to user mode (6.18 and later).
    Leave(TaskId),
    /// A waking or new task goes to the CPU.
    Place(TaskId, CpuId),
    /// The limit on the number of CPUs that the search for an idle one may test; the numbers give it.
    Search(TaskId),
    /// The balancer moves the task to the decision's CPU from another.
    Pull(TaskId, CpuId),
    /// The balancer leaves a task on the CPU from which it was looking for tasks to move.
    Skip(TaskId, CpuId),
    /// A CPU that becomes idle does not look for tasks to pull.
    NoNewidle,
}

/// The source of CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pool {
    /// A group's quota.
    Group(GroupId),
    /// A deadline task's runtime.
    Deadline(TaskId),
    /// What a period leaves to the real-time class, or the fair class's deadline server to it.
    RealTime,
}

/// The class that decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Class {
    /// `fair_sched_class`.
    #[default]
    Fair,
    /// `stop_sched_class`.
    Stop,
    /// `rt_sched_class`.
    RealTime,
    /// `dl_sched_class`.
    Deadline,
    /// Core code: the order of the classes.
    Core,
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

/// The kernel's function that decided, where several take decisions of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Function {
    /// The usual one for such a decision.
    #[default]
    Usual,
    /// `__account_cfs_rq_runtime`.
    AccountCfsRqRuntime,
    /// `wake_affine`.
    WakeAffine,
    /// `sched_balance_find_dst_cpu`; `find_idlest_cpu` up to 6.9.
    FindDstCpu,
    /// `select_task_rq_fair` itself.
    SelectTaskRqFair,
    /// `select_idle_capacity`.
    SelectIdleCapacity,
    /// `find_energy_efficient_cpu`.
    FindEnergyEfficientCpu,
    /// `select_task_rq`.
    SelectTaskRq,
    /// `select_fallback_rq`.
    SelectFallbackRq,
    /// `push_rt_task`.
    PushRtTask,
    /// `push_dl_task`.
    PushDlTask,
    /// `detach_tasks`.
    DetachTasks,
}

/// One decision with its reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// When.
    pub now: Nanos,
    /// On which CPU's queue.
    pub cpu: CpuId,
    /// By which class.
    pub class: Class,
    /// The group on whose queue it was.
    pub queue: GroupId,
    /// The group whose entity stood for the task there, if the task's own queue is further down.
    pub by: Option<GroupId>,
    /// What.
    pub action: Action,
    /// In which call.
    pub during: During,
    /// By which function.
    pub decided_by: Function,
    /// The request to reschedule the CPU that follows from it.
    pub resched: Resched,
    /// Which rule of the class decided, in words.
    pub rule: &'static str,
    /// The feature that made the difference, if one did.
    pub feature: Option<Feature>,
    /// The two numbers compared, with their names; signed differences from the queue's zero point. One without a name
    /// is none.
    pub compared: [(&'static str, i64); 2],
}

impl Decision {
    /// A decision outside the fair class's queues: placement, balancing, other classes.
    pub(crate) fn outside(
        now: Nanos,
        cpu: CpuId,
        action: Action,
        rule: &'static str,
        feature: Option<Feature>,
        compared: [(&'static str, i64); 2],
    ) -> Self {
        let (class, queue, by) = (Class::Fair, GroupId::ROOT, None);
        let (during, decided_by, resched) = (During::Other, Function::Usual, Resched::No);
        Decision { now, cpu, class, queue, by, action, during, decided_by, resched, rule, feature, compared }
    }

    /// The numbers compared that there are.
    #[must_use]
    pub fn numbers(&self) -> Vec<(&'static str, i64)> {
        self.compared.into_iter().filter(|(name, _)| !name.is_empty()).collect()
    }

    /// The function of this kernel that decides so.
    #[must_use]
    pub fn function(&self, version: &Version) -> &'static str {
        match self.class {
            Class::Fair => self.fair_function(version),
            Class::RealTime => self.rt_function(version),
            Class::Deadline => self.dl_function(version),
            Class::Stop => "pick_task_stop",
            Class::Core => version.names.preempt,
        }
    }

    fn fair_function(&self, version: &Version) -> &'static str {
        match self.decided_by {
            Function::Usual => self.usual_fair_function(version),
            Function::AccountCfsRqRuntime => "__account_cfs_rq_runtime",
            Function::WakeAffine => "wake_affine",
            Function::FindDstCpu => version.names.idlest_cpu,
            Function::SelectTaskRqFair => "select_task_rq_fair",
            Function::SelectIdleCapacity => "select_idle_capacity",
            Function::FindEnergyEfficientCpu => "find_energy_efficient_cpu",
            Function::SelectTaskRq => "select_task_rq",
            Function::SelectFallbackRq => "select_fallback_rq",
            Function::PushRtTask => "push_rt_task",
            Function::PushDlTask => "push_dl_task",
            Function::DetachTasks => "detach_tasks",
        }
    }

    fn usual_fair_function(&self, version: &Version) -> &'static str {
        let (rules, names) = (&version.rules, version.names);
        let cfs = rules.algorithm == Algorithm::Cfs;
        match self.action {
            Action::Pick(_) | Action::PickGroup(_) if cfs => "pick_next_entity",
            Action::Pick(_) | Action::PickGroup(_) => "pick_eevdf",
            Action::Preempt(_) | Action::Keep(_) => names.preempt_fair,
            Action::Expire(_) if self.during == During::Hrtick => "task_tick_fair",
            Action::Expire(_) | Action::Stay(_) if cfs || !rules.expiry_reschedules => "check_preempt_tick",
            Action::Expire(_) | Action::Stay(_) => "update_curr",
            Action::Delay(_) | Action::DelayGroup(_) => "dequeue_entity",
            Action::Throttle(_) => "throttle_cfs_rq",
            Action::Unthrottle(_) => "unthrottle_cfs_rq",
            Action::Leave(_) => "throttle_cfs_rq_work",
            Action::Place(..) => "select_idle_sibling",
            Action::Search(_) => "select_idle_cpu",
            Action::Pull(..) => names.balance,
            Action::Skip(..) => "can_migrate_task",
            Action::NoNewidle => names.newidle(),
        }
    }

    fn rt_function(&self, version: &Version) -> &'static str {
        let server = version.rules.rt_limit == RtLimit::FairServer;
        match self.action {
            Action::Preempt(_) | Action::Keep(_) => version.names.preempt_rt,
            Action::Throttle(_) if server => "dl_server_timer",
            Action::Unthrottle(_) if server => "update_curr_dl_se",
            Action::Throttle(_) => "sched_rt_runtime_exceeded",
            Action::Unthrottle(_) => "do_sched_rt_period_timer",
            Action::Expire(_) | Action::Stay(_) => "task_tick_rt",
            Action::Place(..) | Action::Search(_) => "select_task_rq_rt",
            Action::Pull(..) if self.decided_by == Function::PushRtTask => "push_rt_task",
            Action::Pull(..) => "pull_rt_task",
            _ => "_pick_next_task_rt",
        }
    }

    fn dl_function(&self, version: &Version) -> &'static str {
        match self.action {
            Action::Preempt(_) | Action::Keep(_) => version.names.preempt_dl,
            Action::Throttle(_) | Action::Stay(_) => "update_curr_dl",
            Action::Unthrottle(_) => "dl_task_timer",
            Action::Place(..) => "select_task_rq_dl",
            Action::Pull(..) if self.decided_by == Function::PushDlTask => "push_dl_task",
            Action::Pull(..) => "pull_dl_task",
            _ => "pick_next_dl_entity",
        }
    }

    /// The task it is about; a decision about a group or a class has none.
    #[must_use]
    pub fn task(&self) -> Option<TaskId> {
        match self.action {
            Action::Pick(task) | Action::Preempt(task) | Action::Keep(task) | Action::Expire(task) => Some(task),
            Action::Stay(task) | Action::Delay(task) | Action::Search(task) | Action::Leave(task) => Some(task),
            Action::Place(task, _) | Action::Pull(task, _) | Action::Skip(task, _) => Some(task),
            Action::Throttle(Pool::Deadline(task)) | Action::Unthrottle(Pool::Deadline(task)) => Some(task),
            Action::PickGroup(_) | Action::DelayGroup(_) | Action::Throttle(_) | Action::Unthrottle(_) => None,
            Action::NoNewidle => None,
        }
    }

    /// Gives every task another number.
    pub fn rename(&mut self, number: impl Fn(TaskId) -> TaskId) {
        match &mut self.action {
            Action::Pick(task) | Action::Preempt(task) | Action::Keep(task) | Action::Expire(task) => {
                *task = number(*task);
            }
            Action::Stay(task) | Action::Delay(task) | Action::Search(task) | Action::Leave(task) => {
                *task = number(*task);
            }
            Action::Place(task, _) | Action::Pull(task, _) | Action::Skip(task, _) => *task = number(*task),
            Action::Throttle(Pool::Deadline(task)) | Action::Unthrottle(Pool::Deadline(task)) => *task = number(*task),
            Action::PickGroup(_) | Action::DelayGroup(_) | Action::Throttle(_) | Action::Unthrottle(_) => {}
            Action::NoNewidle => {}
        }
    }

    /// Whether it is why the balancer moves nothing, which no event shows.
    #[must_use]
    pub fn is_refused_move(&self) -> bool {
        matches!(self.action, Action::Skip(..) | Action::NoNewidle)
    }

    /// The group it is about, or whose entity stood for the task.
    #[must_use]
    pub fn group(&self) -> Option<GroupId> {
        match self.action {
            Action::PickGroup(group) | Action::DelayGroup(group) => Some(group),
            Action::Throttle(Pool::Group(group)) | Action::Unthrottle(Pool::Group(group)) => Some(group),
            _ => self.by,
        }
    }
}
