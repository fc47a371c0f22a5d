//! The clock that averages follow (`clock_pelt`): time scaled to the work done in it (`update_rq_clock_pelt`).
//!
//! While a CPU runs something its clock advances by `delta * capacity * frequency`, both parts of 1024; the time it
//! falls behind is idle time stolen by slowness, and is given back when the CPU goes idle. A CPU that was always busy
//! had no idle time to steal: what it lost stays lost (`lost_idle_time`).

use super::series::{CAPACITY_SHIFT, LOAD_AVG_MAX, PELT_MIN_DIVIDER};
use schedlab_model::Nanos;

/// One CPU's clock. At full capacity and frequency it is the task clock and costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeltClock {
    scale: u64,
    freq: u64,
    /// Some scale was below 1024 once: from then on the clock is kept, before it is the task clock.
    kept: bool,
    idle: bool,
    task: Nanos,
    pelt: Nanos,
    lost_idle_time: Nanos,
}

impl Default for PeltClock {
    fn default() -> Self {
        PeltClock { scale: 1024, freq: 1024, kept: false, idle: true, task: 0, pelt: 0, lost_idle_time: 0 }
    }
}

impl PeltClock {
    /// `rq_clock_pelt` at task time `now`.
    #[inline]
    pub fn rq_clock_pelt(&mut self, now: Nanos) -> Nanos {
        if !self.kept {
            return now;
        }
        self.update_rq_clock_pelt(now);
        self.pelt - self.lost_idle_time
    }

    /// `update_rq_clock_pelt`.
    fn update_rq_clock_pelt(&mut self, now: Nanos) {
        let delta = now.saturating_sub(self.task);
        self.task = self.task.max(now);
        if self.idle {
            self.pelt = self.task;
        } else {
            let delta = (delta * self.scale) >> CAPACITY_SHIFT;
            self.pelt += (delta * self.freq) >> CAPACITY_SHIFT;
        }
    }

    /// From `now` on the CPU has this part of the largest capacity and runs at this part of its own largest frequency
    /// (`arch_scale_cpu_capacity`, `arch_scale_freq_capacity`), 1..=1024.
    pub fn set_scale(&mut self, now: Nanos, capacity: u32, frequency: u32) {
        if self.kept {
            self.update_rq_clock_pelt(now);
        } else if (capacity, frequency) != (1024, 1024) {
            (self.kept, self.task, self.pelt) = (true, now, now);
        }
        self.scale = u64::from(capacity.clamp(1, 1024));
        self.freq = u64::from(frequency.clamp(1, 1024));
    }

    /// `update_idle_rq_clock_pelt`: the CPU goes idle at `now` with this sum over its classes' `util_sum`.
    pub fn update_idle_rq_clock_pelt(&mut self, now: Nanos, util_sum: u64) {
        if std::mem::replace(&mut self.idle, true) || !self.kept {
            return;
        }
        self.idle = false;
        self.update_rq_clock_pelt(now);
        self.idle = true;
        if util_sum >= (PELT_MIN_DIVIDER << CAPACITY_SHIFT) - LOAD_AVG_MAX {
            self.lost_idle_time += self.task - self.pelt;
        }
        self.pelt = self.task;
    }

    /// The CPU runs something from `now` on.
    #[inline]
    pub fn exit_idle(&mut self, now: Nanos) {
        if self.kept {
            self.update_rq_clock_pelt(now);
        }
        self.idle = false;
    }

    /// The CPU's part of the largest capacity (`arch_scale_cpu_capacity`).
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.scale
    }

    /// Whether it is idle.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// Running time scaled to the work done in it (`cap_scale` twice), for signals that do not follow this clock.
    #[must_use]
    pub fn scaled(&self, running: Nanos) -> Nanos {
        let by_freq = (running * self.freq) >> CAPACITY_SHIFT;
        (by_freq * self.scale) >> CAPACITY_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pelt::sched_avg::{SchedAvg, State};
    use crate::pelt::signals::Signals;

    const RUNNING: State = State { load: 1, runnable: 1024, running: true };
    const MS: Nanos = 1_000_000;

    #[test]
    fn at_full_scale_it_is_the_task_clock() {
        let mut clock = PeltClock::default();
        clock.set_scale(3, 1024, 1024);
        clock.exit_idle(4);
        for now in [5, 900, 7_000_000] {
            assert_eq!(clock.rq_clock_pelt(now), now);
        }
        assert_eq!(clock.scaled(12_345), 12_345);
    }

    #[test]
    fn half_the_capacity_is_half_the_time_until_idle() {
        let mut clock = PeltClock::default();
        clock.set_scale(0, 512, 1024);
        clock.exit_idle(2 * MS);
        // The example of pelt.h: busy from 2 to 6, twice as long as at full capacity.
        assert_eq!(clock.rq_clock_pelt(6 * MS), 4 * MS);
        clock.update_idle_rq_clock_pelt(6 * MS, 0);
        assert_eq!(clock.rq_clock_pelt(7 * MS), 7 * MS);
        clock.set_scale(7 * MS, 512, 512);
        clock.exit_idle(7 * MS);
        assert_eq!(clock.rq_clock_pelt(11 * MS), 8 * MS);
        assert_eq!(clock.scaled(4 * MS), MS);
    }

    #[test]
    fn an_always_busy_cpu_has_no_idle_time_to_give_back() {
        let (mut clock, mut avg) = (PeltClock::default(), SchedAvg::default());
        clock.set_scale(0, 256, 1024);
        clock.exit_idle(0);
        for ms in 1..=8000 {
            let now = clock.rq_clock_pelt(ms * MS);
            avg.___update_load_sum(now, RUNNING);
        }
        clock.update_idle_rq_clock_pelt(8000 * MS, u64::from(avg.util_sum));
        assert_eq!(clock.rq_clock_pelt(8001 * MS), 2001 * MS, "6000 ms were lost");
    }

    #[test]
    fn utilisation_does_not_depend_on_speed() {
        // 4 ms of work every 16 ms at full speed; at half speed it takes 8 ms.
        let util = |capacity: u32, busy: u64| {
            let (mut clock, mut avg) = (PeltClock::default(), SchedAvg::default());
            clock.set_scale(0, capacity, 1024);
            let mut now = 0;
            for _ in 0..100 {
                clock.exit_idle(now);
                for ms in 1..=16 {
                    now += MS;
                    let on = ms <= busy;
                    let state = if on { RUNNING } else { State::default() };
                    let at = clock.rq_clock_pelt(now);
                    if avg.___update_load_sum(at, state) {
                        avg.___update_load_avg(1024, 1024, &Signals::of("6.1"));
                    }
                    if ms == busy {
                        clock.update_idle_rq_clock_pelt(now, u64::from(avg.util_sum));
                    }
                }
            }
            avg.util_avg
        };
        let full = util(1024, 4);
        assert!((180..=320).contains(&full), "{full}");
        assert!(full.abs_diff(util(512, 8)) <= 4, "{full} {}", util(512, 8));
    }
}
