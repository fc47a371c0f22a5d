//! `wait_queue_head`: its lock, and the walk over its tasks during which a waker holds the lock.

use schedlab_model::{CpuId, Nanos};

use crate::machine::{touched, Arrival, Lines, Lock, Machine};

/// The readers of a channel, or the only queue of a gate.
pub const READERS: usize = 0;
/// The writers of a channel.
pub const WRITERS: usize = 1;

/// `wait_queue_head`.
#[derive(Clone, Default, Debug)]
pub struct WaitQueue {
    /// A socket's `sk_wq`; never touched for a pipe, whose queues are in its own first line.
    pub lines: Lines,
    lock: Lock,
    walk: Walk,
}

/// The last walk over the tasks of a queue.
#[derive(Clone, Copy, Default, Debug)]
struct Walk {
    /// The waking CPU, which does not wait for its own walk.
    cpu: Option<CpuId>,
    from: Nanos,
    until: Nanos,
    /// After this time the waker drops the lock once, and CPUs that wait for it take it first.
    step: Nanos,
}

impl Walk {
    /// When a CPU that requests the lock at `at` can take it with regard to the walk.
    fn pauses_after(&self, cpu: CpuId, at: Nanos) -> Nanos {
        if at < self.from || at >= self.until || self.step == 0 || self.cpu == Some(cpu) {
            return at;
        }
        let steps = (at - self.from) / self.step + 1;
        self.until.min(self.from + steps * self.step)
    }
}

impl WaitQueue {
    /// The time of reading whether a task sleeps (`skwq_has_sleeper`).
    #[inline]
    pub fn look(&mut self, machine: &mut Machine, cpu: CpuId) -> Nanos {
        machine.read_lines(cpu, &mut self.lines, touched::SOCKET_WAITERS)
    }

    /// Takes the lock for `hold`; returns how long the CPU waits for it.
    pub fn take(&mut self, cpu: CpuId, arrival: Arrival, hold: Nanos, slowed: impl FnOnce() -> Nanos) -> Nanos {
        let pause = self.walk.pauses_after(cpu, arrival.at) - arrival.at;
        pause + self.lock.take_polling(arrival.after(pause), hold, slowed)
    }

    /// Takes the lock for a walk over `tasks` of `each` ns; returns how long the CPU waits for it.
    pub fn take_to_walk(
        &mut self,
        cpu: CpuId,
        arrival: Arrival,
        tasks: usize,
        each: Nanos,
        pause: Option<u32>,
    ) -> Nanos {
        let at = arrival.at;
        let free = if self.walk.cpu == Some(cpu) { at } else { self.walk.until.max(at) };
        let from = free + self.lock.free_after(free);
        let step = each * pause.map_or(tasks as u64, u64::from);
        self.walk = Walk { cpu: Some(cpu), from, until: from + each * tasks as u64, step };
        from - at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(at: Nanos) -> Arrival {
        Arrival { now: at, at }
    }

    #[test]
    fn one_who_wants_the_lock_waits_for_the_end_of_a_walk_or_its_next_pause() {
        for (pause, waits) in [(None, [1_000, 600, 0]), (Some(4), [400, 400, 0])] {
            let mut queue = WaitQueue::default();
            assert_eq!(queue.take_to_walk(CpuId(0), at(5_000), 10, 100, pause), 0);
            let found = [5_000, 5_400, 6_000].map(|now| queue.clone().take(CpuId(1), at(now), 10, || 0));
            assert_eq!(found, waits, "{pause:?}");
            let another = |cpu| queue.clone().take_to_walk(CpuId(cpu), at(5_500), 1, 100, pause);
            assert_eq!([another(1), another(0)], [500, 0], "another walk begins after this one");
        }
    }

    proptest! {
        /// The lock is taken at the walk's next pause at the earliest, and by one CPU after the other.
        #[test]
        fn takers_queue(
            (tasks, each, pause) in (1..100usize, 1..500u64, prop::option::of(1..70u32)),
            gaps in prop::collection::vec(0..2_000u64, 1..40),
        ) {
            let mut queue = WaitQueue::default();
            queue.take_to_walk(CpuId(0), at(10_000), tasks, each, pause);
            let (walk, mut now, mut free) = (queue.walk, 10_000, 0);
            for gap in gaps {
                now += gap;
                let got = now + queue.take(CpuId(1), at(now), 50, || 0);
                prop_assert!(got >= free && (got > now || now >= walk.until));
                if got > free {
                    let pauses = got == walk.until || (got - walk.from) % walk.step == 0;
                    prop_assert!(got - now <= walk.step && (pauses || now >= walk.until && got == now));
                }
                free = got + 50;
            }
        }
    }
}
