//! What a balancing pass costs.

use schedlab_model::Nanos;

/// The time that the caller charges for a pass; it replaces the kernel's clock reads during a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BalanceCost {
    pub per_pass: Nanos,
    pub per_cpu: Nanos,
}

impl Default for BalanceCost {
    /// The middle of the published ranges: 1-3 us a pass, 30-100 ns a CPU.
    fn default() -> Self {
        BalanceCost { per_pass: 1_500, per_cpu: 50 }
    }
}
