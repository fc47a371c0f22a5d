//! The reason why a CPU was selected.

use schedlab_model::CpuId;

use crate::decision::Function;
use crate::features::Feature;

/// The step of a selection that decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SelectRule {
    /// `select_task_rq_fair`: the previous CPU.
    Previous,
    /// The waker's CPU (WF_CURRENT_CPU).
    CurrentCpu,
    /// The CPU has no domain.
    NoDomain,
    /// The idlest group, of a fork or exec.
    IdlestGroup,
    /// `wake_affine`: waker's and previous CPU are idle.
    BothIdle,
    /// The waker's is.
    ThisIdle,
    /// The waker is about to sleep.
    Sync,
    /// The previous CPU is idle.
    PrevIdleAffine,
    /// The waker's CPU has less load.
    Lighter,
    /// It does not.
    NotLighter,
    /// `select_idle_sibling`: the target is idle.
    TargetIdle,
    /// The previous CPU is.
    PrevIdle,
    /// The waker is a kernel thread of the previous CPU, and no other task is there.
    WithKthread,
    /// The recently used one is.
    RecentlyUsedIdle,
    /// The previous CPU is, in another cluster than the target.
    PrevIdleInOtherCluster,
    /// The recently used one is, in another cluster.
    RecentlyUsedIdleInOtherCluster,
    /// An SMT sibling of the previous CPU is.
    SiblingOfPrev,
    /// One of the target is.
    SiblingOfTarget,
    /// An idle core was found.
    IdleCore,
    /// An idle CPU was found.
    IdleCpu,
    /// `select_idle_capacity`: an idle CPU whose capacity fits the task.
    IdleThatFits,
    /// The idle CPU of the largest capacity.
    BiggestIdle,
    /// `find_energy_efficient_cpu`: the task has no utilisation.
    NoUtilisation,
    /// The CPU of the least energy.
    LeastEnergy,
    /// The previous CPU, because no other saves energy.
    PrevEnergy,
}

/// A CPU and the rule that selected it.
pub(crate) type Selected = (CpuId, SelectRule);

impl SelectRule {
    /// The rule as records show it.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            SelectRule::Previous => "previous CPU",
            SelectRule::CurrentCpu => "WF_CURRENT_CPU: the waker's CPU",
            SelectRule::NoDomain => "no domain",
            SelectRule::IdlestGroup => "idlest group",
            SelectRule::BothIdle => "wake_affine: both idle",
            SelectRule::ThisIdle => "wake_affine: this idle",
            SelectRule::Sync => "wake_affine: sync",
            SelectRule::PrevIdleAffine => "wake_affine: prev idle",
            SelectRule::Lighter => "wake_affine: lighter",
            SelectRule::NotLighter => "wake_affine: prev",
            SelectRule::TargetIdle => "target idle",
            SelectRule::PrevIdle => "prev idle",
            SelectRule::WithKthread => "prev, with the per-CPU kthread that wakes",
            SelectRule::RecentlyUsedIdle => "recently used idle",
            SelectRule::PrevIdleInOtherCluster => "prev idle in another cluster",
            SelectRule::RecentlyUsedIdleInOtherCluster => "recently used idle in another cluster",
            SelectRule::SiblingOfPrev => "sibling of prev idle",
            SelectRule::SiblingOfTarget => "sibling of target idle",
            SelectRule::IdleCore => "idle core search",
            SelectRule::IdleCpu => "idle CPU search",
            SelectRule::IdleThatFits => "idle and big enough",
            SelectRule::BiggestIdle => "the biggest idle CPU",
            SelectRule::NoUtilisation => "previous CPU, as the task uses nothing",
            SelectRule::LeastEnergy => "least energy",
            SelectRule::PrevEnergy => "previous CPU, as no other costs less energy",
        }
    }

    /// Whether the rule compares loads.
    #[must_use]
    pub fn compares_loads(self) -> bool {
        matches!(self, SelectRule::Lighter | SelectRule::NotLighter | SelectRule::IdlestGroup)
    }

    /// Whether `select_idle_sibling` has returned before it reads and sets `recent_used_cpu`.
    #[must_use]
    pub fn precedes_recent_cpu(self) -> bool {
        matches!(self, SelectRule::TargetIdle | SelectRule::PrevIdle | SelectRule::WithKthread)
    }

    /// The function that decided.
    pub(crate) fn function(self) -> Function {
        match self {
            SelectRule::Previous | SelectRule::CurrentCpu | SelectRule::NoDomain => Function::SelectTaskRqFair,
            SelectRule::IdlestGroup => Function::FindDstCpu,
            SelectRule::IdleThatFits | SelectRule::BiggestIdle => Function::SelectIdleCapacity,
            SelectRule::NoUtilisation | SelectRule::LeastEnergy | SelectRule::PrevEnergy => {
                Function::FindEnergyEfficientCpu
            }
            SelectRule::BothIdle
            | SelectRule::ThisIdle
            | SelectRule::Sync
            | SelectRule::PrevIdleAffine
            | SelectRule::Lighter
            | SelectRule::NotLighter => Function::WakeAffine,
            _ => Function::Usual,
        }
    }

    /// The feature by which `wake_affine` decided.
    pub(crate) fn feature(self) -> Option<Feature> {
        match self {
            SelectRule::Lighter | SelectRule::NotLighter => Some(Feature::WaWeight),
            SelectRule::BothIdle | SelectRule::ThisIdle | SelectRule::Sync | SelectRule::PrevIdleAffine => {
                Some(Feature::WaIdle)
            }
            _ => None,
        }
    }
}
