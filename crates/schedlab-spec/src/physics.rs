//! Mechanisms beyond the cost of instructions, each of which a machine has or does not have.

/// A mechanism.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// A cache line that another CPU has touched last is transferred ([`crate::Costs::line_transfer`]).
    Lines,
    /// Locks are waited for.
    Locks,
    /// A search for a CPU and the wakeup path take their time before the enqueue, newidle balancing before the pick.
    Selection,
}

impl Mechanism {
    /// All of them, in the order in which they were built.
    pub const ALL: [Mechanism; 3] = [Mechanism::Lines, Mechanism::Locks, Mechanism::Selection];

    /// Its key in machine files and variants.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Lines => "lines",
            Mechanism::Locks => "locks",
            Mechanism::Selection => "selection",
        }
    }
}

/// Which mechanisms are on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Physics {
    /// [`Mechanism::Lines`].
    pub lines: bool,
    /// [`Mechanism::Locks`].
    pub locks: bool,
    /// [`Mechanism::Selection`].
    pub selection: bool,
}

impl Physics {
    /// Whether a mechanism is on.
    #[must_use]
    pub fn has(&self, mechanism: Mechanism) -> bool {
        match mechanism {
            Mechanism::Lines => self.lines,
            Mechanism::Locks => self.locks,
            Mechanism::Selection => self.selection,
        }
    }

    /// Switches a mechanism.
    pub fn set(&mut self, mechanism: Mechanism, on: bool) {
        match mechanism {
            Mechanism::Lines => self.lines = on,
            Mechanism::Locks => self.locks = on,
            Mechanism::Selection => self.selection = on,
        }
    }
}
