//! The functions of a scheduler that the procedures call, in whichever order the kernel calls them.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::{Schedule, Wakeup};
use crate::class::ClassList;
use crate::hrtick::Hrtick;
use crate::{Moves, Resched, Sched, Selection, WakeKind};

/// Declares the trait, and implements it for [`Sched`] by the functions of the same names.
macro_rules! scheduler {
    (
        $(#[$meta:meta])* trait $trait:ident
        required { $($(#[$doc:meta])+ fn $name:ident(self $(, $arg:ident: $ty:ty)*) $(-> $out:ty)?;)+ }
        provided { $($(#[$pdoc:meta])+ fn $pname:ident(self $(, $parg:ident: $pty:ty)*) $(-> $pout:ty)? $default:block)+ }
    ) => {
        $(#[$meta])*
        #[allow(unused_variables)]
        pub trait $trait {
            $($(#[$doc])+ fn $name(&mut self $(, $arg: $ty)*) $(-> $out)?;)+
            $($(#[$pdoc])+ fn $pname(&mut self $(, $parg: $pty)*) $(-> $pout)? $default)+
        }

        impl<L: ClassList> $trait for Sched<L> {
            $(#[inline(always)] fn $name(&mut self $(, $arg: $ty)*) $(-> $out)? { Sched::$name(self $(, $arg)*) })+
            $(#[inline(always)] fn $pname(&mut self $(, $parg: $pty)*) $(-> $pout)? { Sched::$pname(self $(, $parg)*) })+
        }
    };
}

scheduler! {
    /// The scheduler of a [`Driver`](super::Driver): a [`Sched`], which decides, or one that returns what a kernel has
    /// been recorded to decide. The provided functions are those of a scheduler without wakelists, timers and
    /// balancing.
    trait Scheduler

    required {
        /// The CPU of the task (`task_cpu`).
        fn cpu_of(self, task: TaskId) -> CpuId;
        /// What `ttwu_runnable` does with a task that is still queued: see [`Sched::requeue_delayed`].
        fn requeue_delayed(self, task: TaskId, now: Nanos) -> bool;
        /// `select_task_rq`: see [`Sched::select_task_rq`].
        fn select_task_rq(self, task: TaskId, waker_cpu: CpuId, kind: WakeKind, now: Nanos) -> Selection;
        /// The same for a wakeup with all that is known of it.
        fn select_task_rq_for(self, wakeup: Wakeup, kind: WakeKind, now: Nanos) -> Selection;
        /// `set_task_cpu` in `try_to_wake_up`: see [`Sched::set_wakee_cpu`].
        fn set_wakee_cpu(self, task: TaskId, cpu: CpuId, now: Nanos);
        /// `ttwu_do_activate` up to the enqueue: see [`Sched::activate`].
        fn activate(self, task: TaskId, cpu: CpuId, kind: WakeKind, now: Nanos);
        /// `wakeup_preempt`: see [`Sched::wakeup_preempt`].
        fn wakeup_preempt(self, cpu: CpuId, task: TaskId, kind: WakeKind, need_resched: bool, now: Nanos) -> Resched;
        /// The task that the CPU executes: see [`Sched::executes`].
        fn executes(self, cpu: CpuId) -> Option<TaskId>;
        /// `deactivate_task(DEQUEUE_SLEEP)`: see [`Sched::block`].
        fn block(self, task: TaskId, special: bool, now: Nanos) -> bool;
        /// `pick_next_task`: see [`Sched::pick_next_task`].
        fn pick_next_task(self, cpu: CpuId, now: Nanos) -> Option<TaskId>;
        /// `rq.nr_running`.
        fn nr_running(self, cpu: CpuId) -> u32;
        /// Sets the task that the CPU executes; returns the previous one.
        fn set_on_cpu(self, cpu: CpuId, task: Option<TaskId>) -> Option<TaskId>;
        /// The idle task is switched in.
        fn idle_enter(self, cpu: CpuId, now: Nanos);
    }

    provided {
        /// Whether a CPU still executes the task (`p->on_cpu`).
        fn on_cpu(self, task: TaskId) -> bool {
            false
        }
        /// `ttwu_queue_cond`: see [`Sched::ttwu_queue_cond`].
        fn ttwu_queue_cond(self, task: TaskId, waker_cpu: CpuId, cpu: CpuId, on_cpu: bool) -> bool {
            false
        }
        /// `__ttwu_queue_wakelist`; whether the list was empty.
        fn __ttwu_queue_wakelist(self, task: TaskId, cpu: CpuId, sync: bool) -> bool {
            false
        }
        /// The tasks on the CPU's wakelist, with the waker's sync hint.
        fn wakelist(self, cpu: CpuId) -> &[(TaskId, bool)] {
            &[]
        }
        /// Removes the first tasks, which the CPU has enqueued, from its wakelist.
        fn finish_wakelist(self, cpu: CpuId, enqueued: usize) {}
        /// `task_dead`.
        fn task_dead(self, task: TaskId) {}
        /// The clock that `__schedule` reads.
        fn schedule_clock(self, cpu: CpuId, now: Nanos, schedule: &Schedule) -> Nanos {
            now
        }
        /// Whether tasks of several classes exist; if not, the procedures skip what only other classes than the fair
        /// one do.
        fn is_mixed(self) -> bool {
            false
        }
        /// `task_woken`.
        fn task_woken(self, task: TaskId, need_resched: bool, now: Nanos) -> Moves {
            Moves::default()
        }
        /// `balance` of the classes.
        fn balance(self, cpu: CpuId, now: Nanos) -> Moves {
            Moves::default()
        }
        /// `sched_balance_newidle`.
        fn sched_balance_newidle(self, cpu: CpuId, now: Nanos) -> Moves {
            Moves::default()
        }
        /// Whether newidle balancing is a part of the pick: see [`Sched::newidle_repeats`].
        fn newidle_repeats(self, cpu: CpuId) -> bool {
            true
        }
        /// The balance callbacks after a switch.
        fn balance_callback(self, cpu: CpuId, now: Nanos) -> Moves {
            Moves::default()
        }
        /// Whether the CPU's stopper has been woken to push a task away.
        fn active_balance_pending(self, cpu: CpuId) -> bool {
            false
        }
        /// `move_queued_task` by the stopper: see [`Sched::move_queued_task`].
        fn move_queued_task(self, task: TaskId, to: CpuId, now: Nanos) -> Resched {
            Resched::No
        }
        /// `active_load_balance_cpu_stop`.
        fn active_load_balance_cpu_stop(self, cpu: CpuId, now: Nanos) -> Moves {
            Moves::default()
        }
        /// `hrtick_start`.
        fn hrtick_start(self, cpu: CpuId) -> Option<Hrtick> {
            None
        }
        /// `hrtick_update`.
        fn hrtick_update(self, cpu: CpuId) -> Option<Hrtick> {
            None
        }
        /// The next timer of the classes.
        fn next_timer(self) -> Option<Nanos> {
            None
        }
        /// Whether decisions are recorded.
        fn is_recording(self) -> bool {
            false
        }
        /// The number of decisions recorded so far, to be passed to `date_decisions`.
        fn decided(self) -> usize {
            0
        }
        /// Dates the decisions recorded since then by this clock.
        fn date_decisions(self, from: usize, now: Nanos) {}
    }
}
