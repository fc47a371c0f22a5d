//! The interface between core code and a scheduling class (`struct sched_class`, kernel/sched/sched.h).
//!
//! A class has its own runqueues and task state and accesses the rest of the scheduler as a [`Core`]. Core code walks
//! the classes from the highest to the lowest ([`ClassList`]) and names none of them. Calls are dispatched statically;
//! a class that no task has ever belonged to costs a branch. `idle` is the last class of every list. As the running or
//! the next task, `None` is the idle task.

mod idle;
mod list;

pub use crate::core::class_id::{ClassId, IDLE_TASK, MAX_CLASSES};
pub use idle::Idle;
pub use list::{Ask, AskEach, ClassList, EachClass, Visit};

use schedlab_model::{CpuId, Nanos, Pid, TaskId};

use crate::core::types::Tested;
use crate::flags::{Dequeue, Enqueue, WakeFlags};
use crate::group_id::GroupId;
use crate::hrtick::Hrtick;
use crate::numa::Access;
use crate::queue_view::QueueView;
use crate::run_times::RunTimes;
use crate::{Core, Moves, Resched, TaskAttr, WakeKind};

/// A scheduling class. The verbs are the kernel's; `cpu` is the runqueue, locked and with its clock at `now`.
///
/// Every class is informed of every task by [`SchedClass::task_new`], whichever class the task belongs to. A class
/// reports the number of its runnable tasks to [`Core::set_nr_running`] whenever that may have changed.
#[allow(unused_variables)]
pub trait SchedClass {
    /// The place of the class in its list.
    fn id(&self) -> ClassId;

    /// Sets the place of the class in its list.
    fn set_id(&mut self, id: ClassId);

    /// Whether a task with these attributes may belong to this class. It belongs to the highest class that returns
    /// true.
    fn takes(&self, attr: &TaskAttr) -> bool;

    /// Whether the class does nothing but run its tasks on their CPUs: no balancing, no timers, no server, no effect on
    /// a CPU's capacity. Core code then does not walk the classes on a CPU where none of its tasks is runnable.
    fn is_bare(&self) -> bool {
        false
    }

    /// A task is created (`__sched_fork`), possibly with the id of a released one. `mine`: it belongs to this class.
    fn task_new(&mut self, core: &mut Core, task: TaskId, attr: &TaskAttr, mine: bool) {}

    /// `task_fork`: the task is a child of the task that runs on `cpu`. The request is for that CPU.
    fn task_fork(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, now: Nanos) -> Resched {
        Resched::No
    }

    /// `task_dead`: a task of this class has exited and no longer runs.
    fn task_dead(&mut self, core: &mut Core, task: TaskId) {}

    /// Whether the task is queued or running in this class, or still queued because its dequeue is delayed.
    fn on_rq(&self, task: TaskId) -> bool;

    /// `enqueue_task`.
    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: Enqueue, now: Nanos);

    /// `dequeue_task`. False: the task sleeps but stays queued.
    fn dequeue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: Dequeue, now: Nanos) -> bool;

    /// `yield_task` of the running task.
    fn yield_task(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) {}

    /// `yield_to_task`: the running task of `cpu` yields in favour of another of this class, which may be queued on any
    /// CPU. Whether it did.
    fn yield_to_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, now: Nanos) -> bool {
        false
    }

    /// `wakeup_preempt`: whether a task of this class that has just been queued preempts the running one, which belongs
    /// to this class too or is the idle task. `need_resched`: TIF_NEED_RESCHED is set already.
    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: WakeFlags,
        need_resched: bool,
        now: Nanos,
    ) -> Resched;

    /// `select_task_rq`: the CPU for a task that may use several CPUs, and the rule that selected it. `tested.from()`
    /// is the CPU that executes the search.
    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        kind: WakeKind,
        tested: &mut Tested,
        now: Nanos,
    ) -> (CpuId, &'static str) {
        (core.cpu_of(task), "last CPU")
    }

    /// `migrate_task_rq` and `set_task_rq`: the task now belongs to another CPU. Called for every class except one that
    /// has moved the task itself.
    fn migrate_task_rq(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId, now: Nanos) {}

    /// `balance` of a class whose last task is leaving the CPU, before the pick: pulls tasks from other CPUs.
    fn balance(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        Moves::default()
    }

    /// The same after every class has found nothing to run (`sched_balance_newidle`).
    fn sched_balance_newidle(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        Moves::default()
    }

    /// `pick_task`: the task of this class that would run.
    fn pick_task(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Option<TaskId>;

    /// `pick_next_task` where the running task, if any, is of this class: picks the next task, puts the running one and
    /// sets the next.
    fn pick_next_task(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        let (prev, next) = (core.curr(cpu), self.pick_task(core, cpu, now));
        if prev != next {
            if let Some(prev) = prev {
                self.put_prev_task(core, cpu, prev, now);
            }
            if let Some(next) = next {
                self.set_next_task(core, cpu, next, true, now);
            }
        }
        next
    }

    /// `put_prev_task`: the running task leaves the CPU and returns to the queue if it is still runnable.
    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, prev: TaskId, now: Nanos);

    /// `set_next_task`: the task becomes the running one. `first`: it was picked, not requeued while running.
    fn set_next_task(&mut self, core: &mut Core, cpu: CpuId, next: TaskId, first: bool, now: Nanos);

    /// The balance callback that a pick of this class has queued (`rt_queue_push_tasks`).
    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        Moves::default()
    }

    /// `task_woken`, after the preemption check of a wakeup.
    fn task_woken(&mut self, core: &mut Core, task: TaskId, need_resched: bool, now: Nanos) -> Moves {
        Moves::default()
    }

    /// `task_tick`, for the running task.
    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId, now: Nanos) -> Resched {
        Resched::No
    }

    /// `update_curr`: charges the running task.
    fn update_curr(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) {}

    /// `switching_from`, the first step of a change of class: completes a delayed dequeue.
    fn switching_from(&mut self, core: &mut Core, task: TaskId, now: Nanos) {}

    /// `switched_from`: the task, off the queue, leaves the class.
    fn switched_from(&mut self, core: &mut Core, task: TaskId, now: Nanos) {}

    /// `switching_to`: the task, off the queue, joins this class. `queued`: it will be enqueued immediately.
    fn switching_to(&mut self, core: &mut Core, task: TaskId, attr: &TaskAttr, queued: bool, now: Nanos) {}

    /// `switched_to`: the request to reschedule for a task that is queued or running in its new class.
    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, running: bool, now: Nanos) -> Resched;

    /// `__sched_setscheduler` within the class, `prio_changed` included.
    fn prio_changed(&mut self, core: &mut Core, task: TaskId, old: &TaskAttr, attr: &TaskAttr, now: Nanos) -> Resched {
        Resched::No
    }

    /// `reweight_task`, for `set_user_nice`; called for every class.
    fn reweight_task(&mut self, core: &mut Core, task: TaskId, nice: i8, now: Nanos) -> Resched {
        Resched::No
    }

    /// `sched_setattr(sched_runtime)`; called for every class.
    fn set_slice(&mut self, core: &mut Core, task: TaskId, slice: Option<Nanos>, now: Nanos) -> Resched {
        Resched::No
    }

    /// `task_change_group`; called for every class.
    fn task_change_group(&mut self, core: &mut Core, task: TaskId, group: GroupId, now: Nanos) -> Resched {
        Resched::No
    }

    /// `set_cpus_allowed`.
    fn set_cpus_allowed(&mut self, core: &mut Core, task: TaskId, now: Nanos) {}

    /// Whether the classes below run first on the CPU at present (`dl_server`). If they have no task to run, this class
    /// runs.
    fn defers(&self, cpu: CpuId) -> bool {
        false
    }

    /// Whether the classes below have anything queued on the CPU (`dl_server_start`, `dl_server_stop`).
    fn server_queued(&mut self, core: &mut Core, cpu: CpuId, queued: bool, now: Nanos) {}

    /// `dl_server_update`: charges the server of the classes below for what ran; `runs`: one of them runs from now on.
    /// `record`: at a tick or before a pick, where a change of [`SchedClass::defers`] is recorded.
    fn dl_server_update(&mut self, core: &mut Core, cpu: CpuId, runs: bool, record: bool, now: Nanos) -> Resched {
        Resched::No
    }

    /// Clears the request to reschedule after a pick, as `clear_tsk_need_resched` does.
    fn clear_resched(&mut self, core: &mut Core, cpu: CpuId) {}

    /// When the class last updated the runqueue's clock on the CPU.
    fn clock_updated(&self, cpu: CpuId) -> Nanos {
        0
    }

    /// The idle task is switched in or out; called for every class.
    fn idle_changed(&mut self, core: &mut Core, cpu: CpuId, idle: bool, now: Nanos) {}

    /// `hrtick_start`: the timer of the running task's slice after a pick.
    fn hrtick_start(&self, cpu: CpuId) -> Hrtick {
        Hrtick::Off
    }

    /// `hrtick_update`: the same after a wakeup; `None`: the timer stays as it is.
    fn hrtick_update(&self, cpu: CpuId) -> Option<Hrtick> {
        None
    }

    /// When [`SchedClass::timer_expired`] is to be called next.
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// Runs the expired timers of the class.
    fn timer_expired(&mut self, core: &mut Core, now: Nanos) -> Moves {
        Moves::default()
    }

    /// Runs the expired bandwidth timers; returns the CPUs on which that has enqueued tasks.
    fn bandwidth_timers(&mut self, core: &mut Core, now: Nanos) -> Vec<CpuId> {
        Vec::new()
    }

    /// The task work of a running task whose group is throttled; returns whether the task has left its queue
    /// (`throttle_cfs_rq_work`).
    fn throttle_work(&mut self, core: &mut Core, task: TaskId, now: Nanos) -> bool {
        false
    }

    /// `task_cache_work` of the task that runs on the CPU, about to return to user mode.
    fn task_cache_work(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, now: Nanos) {}

    /// The task has run on its CPU in user mode for so long, and has used the next part of its memory. `may_move`: it
    /// may move to the node that it prefers.
    fn numa_access(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        user: Nanos,
        may_move: bool,
        now: Nanos,
    ) -> Access {
        Access::default()
    }

    /// The scheduling domains were built anew for the CPUs that are active now (`rq_online` of each of them); `leaves`:
    /// a CPU became inactive.
    fn domains_rebuilt(&mut self, core: &mut Core, leaves: bool, now: Nanos) {}

    /// `active_load_balance_cpu_stop`: the stopper of `cpu` pushes a task to `dest`.
    fn active_load_balance_cpu_stop(&mut self, core: &mut Core, cpu: CpuId, dest: CpuId, now: Nanos) -> Moves {
        Moves::default()
    }

    /// `sched_balance_domains` (`rebalance_domains`), after the tick; `idle`: the CPU was idle at the tick.
    fn sched_balance_domains(&mut self, core: &mut Core, cpu: CpuId, idle: bool, now: Nanos) -> Moves {
        Moves::default()
    }

    /// `nohz_balancer_kick`, at the tick of a busy CPU: the idle CPU that balances for the others.
    fn nohz_balancer_kick(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Option<CpuId> {
        None
    }

    /// `nohz_idle_balance`: `cpu` balances for every idle CPU that is due.
    fn nohz_idle_balance(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        Moves::default()
    }

    /// Moves the decisions that the class has recorded itself to the log.
    fn drain_log(&mut self, core: &mut Core) {}

    /// Starts or stops recording; `views`: with its queue.
    fn set_log(&mut self, core: &mut Core, on: bool, views: bool) {}

    /// Adds the tasks that the class has queued on the CPU to a view of the runqueue. Tasks are named by their ids.
    fn view(&self, core: &Core, view: &mut QueueView) {}

    /// The run times that the class has accounted (`sched_stat_runtime`), if it can record them.
    fn run_time_log(&mut self) -> Option<&mut RunTimes> {
        None
    }

    /// Whether the timers of the task have no slack (`rt_or_dl_task_policy`).
    fn is_precise(&self) -> bool {
        false
    }
}

/// The pid by which a view names a task until it is renamed.
pub(crate) fn view_pid(task: TaskId) -> Pid {
    task.0 as Pid
}
