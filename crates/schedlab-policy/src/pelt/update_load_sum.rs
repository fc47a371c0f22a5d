//! How sums and averages follow time (`___update_load_sum`, `___update_load_avg`, kernel/sched/pelt.c).
//!
//! An update within 1024 ns of the last does nothing. Inside a segment, time is added to the sums; nothing decays and
//! no average changes. Across segments, all sums decay and then the averages follow: `avg = weight * sum /
//! (LOAD_AVG_MAX - 1024 + period_contrib)`.

use super::sched_avg::{SchedAvg, State};
use super::series::{__accumulate_pelt_segments, decay_load, CAPACITY_SHIFT};
use crate::pelt::signals::Signals;
use crate::weight::LoadWeight;
use schedlab_model::Nanos;

impl SchedAvg {
    /// `___update_load_sum`: accounts up to `now`. Whether a segment ended, so that averages are due.
    #[inline(always)]
    pub fn ___update_load_sum(&mut self, now: Nanos, state: State) -> bool {
        let delta = now.wrapping_sub(self.last_update_time);
        if delta < 1024 {
            return false;
        }
        if (delta as i64) < 0 {
            self.last_update_time = now;
            return false;
        }
        self.last_update_time += delta & !1023;
        let units = delta >> 10;
        let position = u64::from(self.period_contrib) + units;
        if position >= 1024 {
            self.accumulate_sum(position, state);
            return true;
        }
        self.period_contrib = position as u32;
        if state.load > 0 {
            self.add(units, state);
        }
        false
    }

    /// `___update_load_sum` where no segment ends, as in most updates. False: one ends, or the time is not after the
    /// last update's, and nothing has been done.
    #[inline(always)]
    pub fn add_within_segment(&mut self, now: Nanos, state: State) -> bool {
        let units = now.wrapping_sub(self.last_update_time) >> 10;
        let position = u64::from(self.period_contrib) + units;
        if position >= 1024 {
            return false;
        }
        self.last_update_time += units << 10;
        self.period_contrib = position as u32;
        if state.load > 0 {
            self.add(units, state);
        }
        true
    }

    /// `accumulate_sum` where at least one segment ends.
    #[inline(never)]
    fn accumulate_sum(&mut self, position: u64, state: State) {
        let (segments, current) = (position / 1024, position % 1024);
        self.load_sum = decay_load(self.load_sum, segments);
        self.runnable_sum = decay_load(self.runnable_sum, segments);
        self.util_sum = decay_load(u64::from(self.util_sum), segments) as u32;
        let rest_of_first = 1024 - u64::from(self.period_contrib);
        self.period_contrib = current as u32;
        if state.load > 0 {
            self.add(__accumulate_pelt_segments(segments, rest_of_first, current), state);
        }
    }

    /// What `contrib` units of this state add; without load nothing runs either, whatever `curr` says, and it is not
    /// called.
    #[inline]
    fn add(&mut self, contrib: u64, state: State) {
        self.load_sum = self.load_sum.wrapping_add(state.load.wrapping_mul(contrib));
        self.runnable_sum += state.runnable * contrib;
        if state.running {
            self.util_sum = self.util_sum.wrapping_add((contrib << CAPACITY_SHIFT) as u32);
        }
    }

    /// `___update_load_avg`; 5.2 weights the second signal too, with `runnable`.
    #[inline(never)]
    pub fn ___update_load_avg(&mut self, weight: u64, runnable: u64, signals: &Signals) {
        let divider = self.get_pelt_divider();
        self.load_avg = weight.wrapping_mul(self.load_sum) / divider;
        let weighted = if signals.runnable_load { runnable } else { 1 };
        self.runnable_avg = weighted.wrapping_mul(self.runnable_sum) / divider;
        self.util_avg = (u64::from(self.util_sum) / divider) as u32;
    }

    /// `__update_load_avg_se`: `runnable` is whether a task is (or how many of a group's are) runnable, or (5.2) the
    /// entity's runnable weight, scaled down. Whether the averages changed.
    #[inline(always)]
    pub fn __update_load_avg_se(
        &mut self,
        now: Nanos,
        weight: LoadWeight,
        on_rq: bool,
        runnable: u64,
        running: bool,
        signals: &Signals,
    ) -> bool {
        let state = if signals.runnable_load { u64::from(on_rq) } else { runnable << CAPACITY_SHIFT };
        let state = State { load: u64::from(on_rq), runnable: state, running };
        let changed = self.___update_load_sum(now, state);
        if changed {
            self.___update_load_avg(weight.scaled(), runnable, signals);
            signals.util_est.cfs_se_util_change(self);
        }
        changed
    }

    /// `__update_load_avg_blocked_se`.
    #[inline]
    pub fn __update_load_avg_blocked_se(&mut self, now: Nanos, weight: u64, signals: &Signals) -> bool {
        let changed = self.___update_load_sum(now, State::default());
        if changed {
            self.___update_load_avg(weight, weight, signals);
        }
        changed
    }

    /// `update_rt_rq_load_avg`, `update_dl_rq_load_avg`: the time since the last call belonged to that class, or not.
    #[inline]
    pub fn update_rt_rq_load_avg(&mut self, now: Nanos, running: bool, signals: &Signals) -> bool {
        let on = u64::from(running);
        let state = State { load: on, runnable: on << signals.runnable_shift(), running };
        let changed = self.___update_load_sum(now, state);
        if changed {
            self.___update_load_avg(1, 1, signals);
        }
        changed
    }

    /// `update_irq_load_avg`: `running` ns of interrupts, scaled to capacity, count as just before `now`.
    pub fn update_irq_load_avg(&mut self, now: Nanos, running: Nanos, signals: &Signals) -> bool {
        let before = self.___update_load_sum(now.wrapping_sub(running), State::default());
        let state = State { load: 1, runnable: 1 << signals.runnable_shift(), running: true };
        let within = self.___update_load_sum(now, state);
        if before || within {
            self.___update_load_avg(1, 1, signals);
        }
        before || within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNALS: &Signals = &Signals::of("6.1");
    const RUNNING: State = State { load: 1, runnable: 1024, running: true };

    #[test]
    fn golden_utilisation_of_one_that_always_runs() {
        let mut avg = SchedAvg::default();
        let golden = [(4, 81), (8, 156), (16, 288), (32, 495), (64, 751), (128, 951), (256, 1019)];
        let mut golden = golden.iter().peekable();
        for ms in 1..=256u64 {
            if avg.___update_load_sum(ms * 1_000_000, RUNNING) {
                avg.___update_load_avg(1024, 1024, SIGNALS);
            }
            if let Some((_, util)) = golden.next_if(|(at, _)| *at == ms) {
                assert_eq!(avg.util_avg, *util, "after {ms} ms");
            }
        }
        assert!(golden.next().is_none());
    }

    #[test]
    fn time_below_a_unit_waits_and_time_backwards_only_resets() {
        let mut avg = SchedAvg { last_update_time: 5000, ..SchedAvg::default() };
        assert!(!avg.___update_load_sum(6023, RUNNING));
        assert_eq!((avg.last_update_time, avg.load_sum), (5000, 0));
        assert!(!avg.___update_load_sum(6024, RUNNING));
        assert_eq!((avg.last_update_time, avg.load_sum, avg.util_sum), (6024, 1, 1024));
        assert!(!avg.___update_load_sum(17, RUNNING));
        assert_eq!((avg.last_update_time, avg.load_sum), (17, 1));
    }

    #[test]
    fn an_update_within_a_segment_is_the_same_update() {
        let at = |position| SchedAvg { last_update_time: 5000, period_contrib: position, ..SchedAvg::default() };
        for (position, now, within) in [
            (0, 5000, true),
            (7, 6023, true),
            (7, 6024, true),
            (1000, 5000 + (23 << 10), true),
            (1000, 5000 + (24 << 10), false),
            (7, 4000, false),
        ] {
            let (mut fast, mut usual) = (at(position), at(position));
            assert_eq!(fast.add_within_segment(now, RUNNING), within, "{position} {now}");
            let changed = usual.___update_load_sum(now, RUNNING);
            assert!(!(within && changed), "{position} {now}");
            assert_eq!(fast, if within { usual } else { at(position) }, "{position} {now}");
        }
    }

    #[test]
    fn the_flags_of_a_queue_without_weight_do_not_count() {
        let mut avg = SchedAvg::default();
        avg.___update_load_sum(500 << 10, State { load: 0, runnable: 3 << 10, running: true });
        avg.___update_load_sum(5000 << 10, State { load: 0, runnable: 3 << 10, running: true });
        assert_eq!((avg.load_sum, avg.runnable_sum, avg.util_sum), (0, 0, 0));
    }

    #[test]
    fn interrupts_lie_before_the_update() {
        let (mut irq, now) = (SchedAvg::default(), (1u64 << 30) + (500 << 10));
        irq.update_irq_load_avg(now, 300 << 10, SIGNALS);
        assert_eq!((irq.util_sum, irq.last_update_time), (300 << 10, now));
    }

    #[test]
    fn old_kernels_weight_what_is_runnable() {
        let mut avg = SchedAvg::default();
        for ms in 1..=1000 {
            avg.__update_load_avg_se(ms << 20, LoadWeight::of_sum(2048 << 10), true, 2048, false, &Signals::of("5.2"));
        }
        assert_eq!((avg.load_avg, avg.runnable_avg), (2047, 2047));
        let mut avg = SchedAvg::default();
        for ms in 1..=1000 {
            avg.__update_load_avg_se(ms << 20, LoadWeight::of_sum(2048 << 10), true, 1, false, SIGNALS);
        }
        assert_eq!((avg.load_avg, avg.runnable_avg, avg.util_avg), (2047, 1024, 0));
    }
}
