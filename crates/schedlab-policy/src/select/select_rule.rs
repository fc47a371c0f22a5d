//! The reason why a CPU was selected.

use schedlab_model::CpuId;

use crate::decision::Function;
use crate::features::Feature;

/// The step of a selection that decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SelectRule {
    // `select_task_rq_fair`.
    Previous,
    CurrentCpu,
    NoDomain,
    IdlestGroup,
    // `wake_affine`.
    BothIdle,
    ThisIdle,
    Sync,
    PrevIdleAffine,
    Lighter,
    NotLighter,
    // `select_idle_sibling`.
    TargetIdle,
    PrevIdle,
    RecentlyUsedIdle,
    PrevIdleInOtherCluster,
    RecentlyUsedIdleInOtherCluster,
    SiblingOfPrev,
    SiblingOfTarget,
    IdleCore,
    IdleCpu,
    // `select_idle_capacity`.
    IdleThatFits,
    BiggestIdle,
    // `find_energy_efficient_cpu`.
    NoUtilisation,
    LeastEnergy,
    PrevEnergy,
}

/// A CPU and the rule that selected it.
pub(crate) type Selected = (CpuId, SelectRule);

impl SelectRule {
    /// The rule as records show it.
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

    /// The function that decided.
    pub fn function(self) -> Function {
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
    pub fn feature(self) -> Option<Feature> {
        match self {
            SelectRule::Lighter | SelectRule::NotLighter => Some(Feature::WaWeight),
            SelectRule::BothIdle | SelectRule::ThisIdle | SelectRule::Sync | SelectRule::PrevIdleAffine => {
                Some(Feature::WaIdle)
            }
            _ => None,
        }
    }
}
