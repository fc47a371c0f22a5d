//! The procedures of core code: [`try_to_wake_up()`], [`wake_up_new_task()`], [`sched_ttwu_pending()`],
//! [`__schedule()`].
//!
//! A procedure is the kernel's function, step by step. It passes everything that happens outside the policy to its
//! [`Driver`] as an [`Effect`], when the kernel does it: the driver carries it out and charges its cost. The order of
//! the kernel's steps is code in one place, which contains neither costs nor the passing of time. Decisions come from
//! the driver's [`Scheduler`]. The simulator's is a [`Sched`](crate::Sched); that of a replay returns what a real
//! kernel was recorded to decide.
//!
//! ```
//! use std::sync::Arc;
//! use schedlab_model::{CpuId, Topology};
//! use schedlab_policy::procedure::{__schedule, wake_up_new_task, Effect, Recorder, Schedule};
//! use schedlab_policy::{KernelConfig, Sched, TaskAttr, Version};
//!
//! let machine = Arc::new(Topology::regular(1, 1, 2, 1, true).unwrap());
//! let mut sched = Sched::new(KernelConfig::new(Version::find("6.12.0").unwrap(), 2, 250), machine);
//! let task = sched.add_task(&TaskAttr::default());
//! wake_up_new_task(&mut Recorder::new(&mut sched, 1_000_000), task, CpuId(0));
//! let mut recorder = Recorder::new(&mut sched, 1_000_000);
//! __schedule(&mut recorder, CpuId(0), Schedule::default());
//! assert_eq!(recorder.effects, [Effect::Switch { prev: None, next: Some(task) }]);
//! ```

mod activate;
mod effect;
mod recorder;
mod sched_ttwu_pending;
mod schedule;
mod scheduler;
mod try_to_wake_up;
mod wake_up_new_task;

pub use crate::sched::schedule_entry::{Leaving, Schedule};
pub use crate::sched::wakeup_request::Wakeup;
pub use effect::{Effect, Timer};
pub use recorder::Recorder;
pub use sched_ttwu_pending::sched_ttwu_pending;
pub use schedule::{__schedule, schedule_after_newidle, try_to_block_task};
pub use scheduler::Scheduler;
pub use try_to_wake_up::{try_to_wake_up, ttwu_queue, wake_off_cpu};
pub use wake_up_new_task::wake_up_new_task;

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::{Moves, Selection};

/// What a procedure runs in: the scheduler, the clocks, and whatever carries out its effects.
pub trait Driver {
    /// The type of the scheduler: a [`Sched`](crate::Sched), or one that returns recorded decisions.
    type Sched: Scheduler;

    /// The scheduler.
    fn sched(&mut self) -> &mut Self::Sched;

    /// `rq->clock`.
    fn clock(&self, cpu: CpuId) -> Nanos;

    /// `rq->clock_task`.
    fn clock_task(&self, cpu: CpuId) -> Nanos;

    /// TIF_NEED_RESCHED of what the CPU runs.
    fn need_resched(&self, cpu: CpuId) -> bool;

    /// The lock of the CPU's runqueue has been taken to enqueue the task.
    fn rq_lock(&mut self, _task: TaskId, _cpu: CpuId) {}

    /// `select_task_rq` has chosen `cpu` for a wakeup. True: the time of the search passes first, and the driver calls
    /// [`ttwu_queue`] after it.
    fn search_takes_time(&mut self, _wakeup: Wakeup, _cpu: CpuId) -> bool {
        false
    }

    /// Newidle balancing is over. True: its time passes first, and the driver calls [`schedule_after_newidle`] after
    /// it.
    fn newidle_takes_time(&mut self, _cpu: CpuId) -> bool {
        false
    }

    /// Carries out an effect.
    fn effect(&mut self, effect: Effect);

    /// A balancing pass is over and may have moved tasks: carries out their tracepoints, the reschedules that it
    /// requests and its cost.
    fn balanced(&mut self, moves: &Moves);

    /// `select_task_rq` has chosen a CPU; the cost of its search is the waker's. Returns the CPU that the task goes to.
    fn selected(&mut self, task: TaskId, selection: &Selection) -> CpuId;
}
