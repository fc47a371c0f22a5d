//! Idle while runnable: CPU time lost on idle CPUs while tasks wait on other runqueues, and what began each loss.
//!
//! At every instant the loss is `min(free, stuck)` CPUs, where `free` counts idle CPUs with an empty runqueue and
//! `stuck` the waiting tasks beyond the one that an idle CPU is about to run itself. Affinity is not in the events: a
//! task pinned to a busy CPU counts as stuck. The kernel itself is not work-conserving, so this is a metric, never an
//! error.

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
    /// The sum of `change * time` over all changes of `losing_by`. The time lost is `losing_by * last` less this. Both
    /// wrap around.
    changed_by: [Nanos; Cause::ALL.len()],
    last: Nanos,
}

impl IdleWhileRunnable {
    /// No CPU yet; nothing before `from` counts.
    pub fn new(from: Nanos) -> Self {
        IdleWhileRunnable { free: 0, stuck: 0, losing: 0, losing_by: [0; 5], changed_by: [0; 5], last: from }
    }

    /// Adds a CPU to the machine.
    pub fn add(&mut self, queue: Queue) {
        self.free += queue.free();
        self.stuck += queue.stuck();
    }

    /// Time has passed up to `now`, with the same loss.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
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
            return self.change_by(cause as usize, -fewer);
        }
        for by in 0..Cause::ALL.len() {
            let off = fewer.min(self.losing_by[by]);
            if off > 0 {
                self.change_by(by, -off);
            }
            fewer -= off;
            if fewer == 0 {
                break;
            }
        }
    }

    /// The loss by one cause changes at `last`.
    #[inline]
    fn change_by(&mut self, cause: usize, change: i64) {
        self.losing_by[cause] += change;
        self.changed_by[cause] = self.changed_by[cause].wrapping_add(self.last.wrapping_mul(change as u64));
    }

    /// CPU time lost so far, by cause.
    pub fn lost(&self) -> [Nanos; Cause::ALL.len()] {
        std::array::from_fn(|by| self.last.wrapping_mul(self.losing_by[by] as u64).wrapping_sub(self.changed_by[by]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the integral taken at every event.
        #[test]
        fn the_loss_of_every_cause_is_its_integral(
            events in prop::collection::vec((0u64..50, 0u32..4, any::<bool>(), 0usize..5), 1..60),
            from in 0u64..300,
        ) {
            let mut idle = IdleWhileRunnable::new(from);
            let mut queues = [Queue { idle: true, waiting: 0 }; 3];
            queues.iter().for_each(|queue| idle.add(*queue));
            let (mut now, mut lost) = (0, [0; Cause::ALL.len()]);
            for (at, (step, waiting, busy, cause)) in events.into_iter().enumerate() {
                let losing = idle.losing_by;
                let elapsed = (now + step).saturating_sub(from.max(now));
                lost.iter_mut().zip(losing).for_each(|(lost, losing)| *lost += elapsed * losing as u64);
                now += step;
                let new = Queue { idle: !busy, waiting };
                idle.change(std::mem::replace(&mut queues[at % 3], new), new);
                idle.settle(Cause::ALL[cause].0, now);
                idle.advance(now);
                prop_assert_eq!(idle.lost(), lost);
            }
        }
    }
}
