//! The procedures of core code as values that are resumed: [`TryToWakeUp`], [`WakeUpNewTask`], [`SchedTtwuPending`], [`Schedule`].
//!
//! A procedure runs until the next thing that the world has to know of, does, or pays for, and yields that as an
//! [`Effect`]; its driver carries the effect out, lets as much time pass as it takes, and resumes the procedure. So the order
//! of the kernel's steps is code in one place, and neither costs nor the passing of time are known here. A driver may also
//! answer: [`TryToWakeUp::place_on`] puts a task where a real kernel put it.
//!
//! ```
//! use std::sync::Arc;
//! use schedlab_model::{CpuId, Topology};
//! use schedlab_policy::procedure::{At, Effect, Procedure, Schedule, WakeUpNewTask};
//! use schedlab_policy::{KernelConfig, Sched, TaskAttr, Version};
//!
//! let machine = Arc::new(Topology::regular(1, 1, 2, 1, true).unwrap());
//! let mut sched = Sched::new(KernelConfig::new(Version::find("6.12.0").unwrap(), 2, 250), machine);
//! let task = sched.add_task(&TaskAttr::default());
//! let (now, cpu) = (At(1_000_000), CpuId(0));
//! let mut wakeup = WakeUpNewTask::new(task, cpu);
//! while wakeup.resume(&mut sched, &now) != Effect::Done {}
//! let mut schedule = Schedule::new(cpu);
//! assert_eq!(schedule.resume(&mut sched, &now), Effect::Switch { prev: None, next: Some(task) });
//! ```

mod activate;
mod effect;
mod sched_ttwu_pending;
mod schedule;
mod try_to_wake_up;
mod wake_up_new_task;

pub use effect::{Effect, Timer};
pub use sched_ttwu_pending::SchedTtwuPending;
pub use schedule::{Leaving, Schedule};
pub use try_to_wake_up::TryToWakeUp;
pub use wake_up_new_task::WakeUpNewTask;

use schedlab_model::{CpuId, Nanos};

use crate::class::ClassList;
use crate::Sched;

/// What a procedure reads of the world when it is resumed.
pub trait Context {
    /// `rq->clock`.
    fn clock(&self, cpu: CpuId) -> Nanos;

    /// `rq->clock_task`.
    fn clock_task(&self, cpu: CpuId) -> Nanos;

    /// TIF_NEED_RESCHED of what the CPU runs.
    fn need_resched(&self, cpu: CpuId) -> bool;
}

/// A moment at which every clock shows the same time and no flag is set.
#[derive(Clone, Copy, Debug)]
pub struct At(pub Nanos);

impl Context for At {
    fn clock(&self, _: CpuId) -> Nanos {
        self.0
    }

    fn clock_task(&self, _: CpuId) -> Nanos {
        self.0
    }

    fn need_resched(&self, _: CpuId) -> bool {
        false
    }
}

/// A procedure of core code.
pub trait Procedure {
    /// Runs to the next effect. After [`Effect::Done`] it has nothing more to do.
    fn resume<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect;
}
