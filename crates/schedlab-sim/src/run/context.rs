//! What calls the code that emits an event: only trace files show it.

use super::source::Source;

/// What the code that emits an event was called by.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Context {
    /// A task, in the kernel.
    #[default]
    Task,
    /// `sched_yield`, which holds nothing but the lock of the runqueue.
    Yield,
    /// `__schedule` before it clears the flags that the CPU had: TIF_NEED_RESCHED, and the lazy one.
    Schedule { full: bool, lazy: bool },
    /// An interrupt.
    Interrupt,
    /// A softirq.
    Softirq,
}

impl Context {
    /// Of the code that handles an event.
    pub fn of(source: Source) -> Context {
        match source {
            Source::Segment | Source::Start | Source::Wakeup => Context::Task,
            _ => Context::Interrupt,
        }
    }
}
