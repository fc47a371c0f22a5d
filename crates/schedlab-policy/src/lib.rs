//! The scheduling decisions of the kernel and nothing else. The caller passes the clock; no call fails.
//!
//! The simulator and the replay of real traces use one interface, [`Sched`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use schedlab_model::{CpuId, Topology, MSEC};
//! use schedlab_policy::procedure::{__schedule, wake_up_new_task, Recorder, Schedule};
//! use schedlab_policy::{KernelConfig, Sched, TaskAttr, Version};
//!
//! // The scheduler of 6.12.0 with HZ=250 on one CPU.
//! let topology = Topology::regular(1, 1, 1, 1, true)?;
//! let config = KernelConfig::new(Version::find("6.12.0")?, topology.nr_cpus(), 250);
//! let mut sched = Sched::new(config, Arc::new(topology));
//!
//! // Two tasks are forked; the first one runs.
//! let cpu = CpuId(0);
//! let tasks = [(); 2].map(|()| sched.add_task(&TaskAttr::default()));
//! let mut driver = Recorder::new(&mut sched, MSEC);
//! for task in tasks {
//!     wake_up_new_task(&mut driver, task, cpu);
//! }
//! __schedule(&mut driver, cpu, Schedule::default());
//! assert!(!driver.effects.is_empty(), "tracepoints, preemption checks and a context switch");
//! assert_eq!(sched.curr(cpu), Some(tasks[0]));
//! assert_eq!(sched.nr_running(cpu), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod asym;
mod balance;
mod candidate;
pub mod class;
mod config;
mod config_error;
mod core;
pub mod decision;
pub mod decision_view;
pub mod dl;
pub mod fair;
mod features;
mod flags;
mod follow;
mod group_id;
mod history;
mod hrtick;
mod jiffies;
mod knobs;
mod mechanism;
mod numa;
pub mod pelt;
mod preempt_model;
pub mod procedure;
mod queue_view;
pub mod rt;
mod run_times;
mod sched;
mod sched_cache;
mod select;
mod stop;
mod task_numa;
mod version;
pub mod weight;

pub use self::core::types::{Counts, Moves, Scans, Selection, Stage, TaskAttr, Tested, WakeKind};
pub use self::core::Core;
pub use balance::CpuIdle;
pub use candidate::CandidateView;
pub use config::KernelConfig;
pub use config_error::ConfigError;
pub use features::{Feature, FeatureInfo, FeatureSet};
pub use follow::Follow;
pub use history::release::{Origin, Release, When};
pub use knobs::{Knob, KnobInfo, KnobUnit, Knobs};
pub use mechanism::{Kind, Mechanism};
pub use numa::{Access as NumaAccess, NumaMemory, NumaMove};
pub use preempt_model::PreemptModel;
pub use run_times::{RunTime, RunTimes};
pub use sched::{Classes, Pass, PassSituation, Placed, Placement, Recorded, Sched, Situation, WakeHistory};
pub use select::{SelectRule, LEAST_OF_SIS_PROP};
pub use version::catalogue::RuleView;
pub use version::choices::{
    Algorithm, Averaging, DelayedLag, GroupSlice, HrtickRule, IdleRule, LagLimit, Protection, Reweight, SearchRule,
    SliceSource, Throttling, TreeKey, WakeupRule, YieldRule, ZeroPoint,
};
pub use version::cpuidle::MenuRules;
pub use version::fair::Rules;
pub use version::paravirt::{Paravirt, PowerpcSpinlocks, PreemptedByte, YieldCount};
pub use version::placement::PlacementRules;
pub use version::{commits, Commit, FaultLock, MmapLockRules, Names, TeoForm, Verdict, Version, VersionError};

/// Scheduling policy of a task (`unsigned int policy`), of the fair class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FairPolicy {
    /// SCHED_NORMAL.
    #[default]
    Normal,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
}

/// A request to reschedule a CPU (`resched_curr`, `resched_curr_lazy`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Resched {
    /// Keep running.
    #[default]
    No,
    /// TIF_NEED_RESCHED_LAZY where the preemption model has it.
    Lazy,
    /// TIF_NEED_RESCHED.
    Full,
}
