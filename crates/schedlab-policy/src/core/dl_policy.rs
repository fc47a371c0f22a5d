//! The parameters of a deadline task (`struct sched_attr`), and the fixed-point fractions in which bandwidth is stored.

use schedlab_model::Nanos;

/// Bandwidths are fractions with this many binary places (`BW_SHIFT`).
pub(crate) const BW_SHIFT: u32 = 20;
/// Binary places that products of times leave out, about a microsecond (`DL_SCALE`).
pub(crate) const DL_SCALE: u32 = 10;

/// Parameters of a task of the class, all in ns: runtime <= deadline <= period, as `__checkparam_dl` has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DlPolicy {
    /// `sched_runtime`: what the task may run in each period.
    pub runtime: Nanos,
    /// `sched_deadline`, from a wakeup on.
    pub deadline: Nanos,
    /// `sched_period`.
    pub period: Nanos,
}

impl DlPolicy {
    /// `dl_bw`: runtime / period.
    #[must_use]
    pub fn dl_bw(self) -> u64 {
        to_ratio(self.period, self.runtime)
    }

    /// `dl_density`: runtime / deadline.
    pub(crate) fn dl_density(self) -> u64 {
        to_ratio(self.deadline, self.runtime)
    }

    /// `dl_is_implicit`: the deadline is the end of the period.
    pub(crate) fn dl_is_implicit(self) -> bool {
        self.deadline == self.period
    }
}

/// `to_ratio`: a share of a period with [`BW_SHIFT`] binary places.
pub(crate) fn to_ratio(period: Nanos, runtime: Nanos) -> u64 {
    ((u128::from(runtime) << BW_SHIFT) / u128::from(period.max(1))) as u64
}
