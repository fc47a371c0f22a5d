//! Idle while runnable: CPU time lost on idle CPUs while tasks wait on other runqueues, and what began each loss.
//!
//! At every instant the loss is `min(free, stuck)` CPUs, where `free` counts idle CPUs with an empty runqueue and `stuck` the
//! waiting tasks beyond the one that an idle CPU is about to run itself. Affinity is not in the events: a task pinned to
//! a busy CPU counts as stuck. The kernel itself is not work-conserving, so this is a metric, never an error.

use schedlab_model::Nanos;

/// The event that made a loss begin or grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A wakeup was placed on a busy CPU although another was idle.
    Wakeup,
    /// A new task was placed on a busy CPU although another was idle.
    Fork,
    /// A CPU went idle although tasks waited elsewhere.
    Newidle,
    /// A preempted task stayed on its runqueue although another CPU was idle.
    Preempt,
    /// A migration moved a waiting task to a busy CPU.
    Migrate,
}

impl Cause {
    /// Every cause, in the order of its number, with its name in metric names.
    pub const ALL: [(Cause, &'static str); 5] = [
        (Cause::Wakeup, "wakeup"),
        (Cause::Fork, "fork"),
        (Cause::Newidle, "newidle"),
        (Cause::Preempt, "preempt"),
        (Cause::Migrate, "migrate"),
    ];
}

/// One CPU's part: whether it idles, and how many tasks wait on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Nothing runs there.
    pub idle: bool,
    /// Tasks waiting there.
    pub waiting: u32,
}

impl Queue {
    #[inline]
    fn free(self) -> i64 {
        i64::from(self.idle && self.waiting == 0)
    }

    #[inline]
    fn stuck(self) -> i64 {
        i64::from(self.waiting) - i64::from(self.idle && self.waiting > 0)
    }
}

/// The running integral.
#[derive(Clone, Debug)]
pub struct IdleWhileRunnable {
    free: i64,
    stuck: i64,
    losing: i64,
    losing_by: [i64; Cause::ALL.len()],
    lost_by: [Nanos; Cause::ALL.len()],
    last: Nanos,
}

impl IdleWhileRunnable {
    /// No CPU yet; nothing before `from` counts.
    pub fn new(from: Nanos) -> Self {
        IdleWhileRunnable { free: 0, stuck: 0, losing: 0, losing_by: [0; 5], lost_by: [0; 5], last: from }
    }

    /// Adds a CPU to the machine.
    pub fn add(&mut self, queue: Queue) {
        self.free += queue.free();
        self.stuck += queue.stuck();
    }

    /// Integrates up to `now`: before the loss changes, and at the end.
    pub fn advance(&mut self, now: Nanos) {
        let elapsed = now.saturating_sub(self.last);
        for (lost, losing) in self.lost_by.iter_mut().zip(self.losing_by) {
            *lost += elapsed * losing as u64;
        }
        self.last = self.last.max(now);
    }

    /// One CPU changed from `old` to `new`.
    #[inline]
    pub fn change(&mut self, old: Queue, new: Queue) {
        self.free += new.free() - old.free();
        self.stuck += new.stuck() - old.stuck();
    }

    /// All changes of one event at `now` are made: charges growth of the loss to `cause`, and takes a decrease off the
    /// causes in their order.
    #[inline(always)]
    pub fn settle(&mut self, cause: Cause, now: Nanos) {
        let losing = self.free.min(self.stuck);
        if losing != self.losing {
            self.set_losing(losing, cause, now);
        }
    }

    #[inline(never)]
    fn set_losing(&mut self, losing: i64, cause: Cause, now: Nanos) {
        self.advance(now);
        let mut fewer = self.losing - losing;
        self.losing = losing;
        if fewer < 0 {
            self.losing_by[cause as usize] -= fewer;
            return;
        }
        for by in &mut self.losing_by {
            let off = fewer.min(*by);
            *by -= off;
            fewer -= off;
            if fewer == 0 {
                break;
            }
        }
    }

    /// CPU time lost so far, by cause.
    pub fn lost(&self) -> [Nanos; Cause::ALL.len()] {
        self.lost_by
    }
}
