//! The sections of a system call of the kernel: where it may reschedule, and what it does under spinlocks.

/// A call with its sections. Positions are instructions from its beginning, in order; only their shares of its length
/// matter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallSections {
    /// Its name, as `calibrate --sections` has it.
    pub call: String,
    /// KiB that it works on; 0: one byte, or no size.
    pub kib: u32,
    /// Its length; positive.
    pub length: u32,
    /// Points of cond_resched().
    pub cond_resched: Vec<u32>,
    /// Points of might_sleep().
    pub might_sleep: Vec<u32>,
    /// Beginnings and ends of sections under a spinlock.
    pub spinlock: Vec<(u32, u32)>,
    /// Those of them with interrupts disabled.
    pub irq_off: Vec<(u32, u32)>,
    /// Loops under the lock of a page table, which leave it as soon as they find the flag set.
    pub page_table: Vec<(u32, u32)>,
}
