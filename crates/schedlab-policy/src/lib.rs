//! The kernel's scheduling decisions and nothing else: handed the clock, returns decisions, never fails.
//!
//! Driven through one interface ([`Sched`], or [`fair::Fair`] alone) by the simulator and by the replay of real traces.

mod balance;
pub mod class;
mod config;
mod config_error;
pub mod decision;
pub mod decision_view;
pub mod fair;
mod features;
mod flags;
mod group_id;
mod hrtick;
mod knobs;
mod looked;
mod mechanism;
pub mod pelt;
mod preempt_model;
pub mod procedure;
mod queue_view;
pub mod rt;
mod run_times;
mod sched;
mod select;
mod version;
pub mod weight;

pub use config::KernelConfig;
pub use config_error::ConfigError;
pub use features::{Feature, FeatureInfo, FeatureSet};
pub use knobs::{Knob, KnobInfo, KnobUnit, Knobs};
pub use looked::Looked;
pub use mechanism::{Kind, Mechanism};
pub use preempt_model::PreemptModel;
pub use run_times::RunTime;
pub use sched::{Classes, Core, Counts, Moves, Recorded, Scans, Sched, Selection, TaskAttr, Tested, WakeKind};
pub use version::catalogue::RuleView;
pub use version::choices::{
    Algorithm, Averaging, DelayedLag, GroupSlice, HrtickRule, IdleRule, LagLimit, Protection, Reweight, SearchRule,
    SliceSource, Throttling, TreeKey, WakeupRule, YieldRule, ZeroPoint,
};
pub use version::fair::Rules;
pub use version::placement::PlacementRules;
pub use version::release::{Origin, Release, When};
pub use version::{Names, Version, VersionError};

/// Scheduling policy of a task (`unsigned int policy`), as far as the fair class knows them.
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
