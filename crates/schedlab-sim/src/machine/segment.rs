//! A segment: what a CPU executes until the next point at which something has to be decided.

use schedlab_model::Nanos;

/// Work is kept in ns on a CPU of rate 1, shifted left by this, so that rates in 1/1024 divide nothing.
pub const WORK_SHIFT: u32 = 10;

/// What a segment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Work in user mode.
    User,
    /// Work in kernel mode.
    Kernel,
    /// User mode until the wall clock reaches `Segment::until`.
    Wall,
    /// User mode until another task releases the lock that this one spins on.
    Spin,
}

/// What is left of a segment. A task that is not on a CPU keeps its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Overhead to be spent before the work continues.
    pub cost_left: u64,
    /// Work left.
    pub work_left: u64,
    /// When it ends, in [`Mode::Wall`].
    pub until: Nanos,
    /// What it is.
    pub mode: Mode,
}

impl Segment {
    /// Nothing to do, in user mode.
    pub const EMPTY: Segment = Segment { cost_left: 0, work_left: 0, until: 0, mode: Mode::User };

    /// Whether nothing is left but what other tasks decide.
    #[inline]
    pub fn is_done(&self, now: Nanos) -> bool {
        self.cost_left == 0
            && match self.mode {
                Mode::User | Mode::Kernel => self.work_left == 0,
                Mode::Wall => now >= self.until,
                Mode::Spin => false,
            }
    }
}
