//! The TEO governor: which idle state a CPU enters, and whether its tick stops.
//!
//! drivers/cpuidle/governors/teo.c in the two forms of [`TeoForm`]. Each state has a bin, which begins at its target
//! residency. A stay that lasted about until the next timer is a hit in the bin of that time; one that was interrupted
//! so early that it falls into a shallower bin is an intercept in that bin. Both counts decay by an eighth at each
//! stay. If most of the recent stays ended before the target residency of the candidate state, the governor chooses the
//! deepest state whose target residency more than half of the intercepted stays reached. Left out: states switched off
//! in sysfs. A latency limit cuts the table of states, as for menu.

use schedlab_model::Nanos;
use schedlab_policy::TeoForm;

use super::idle_choice::{find_shallower_state, keep_tick, Choice, State, Stay, Timers, Woken, RESIDENCY_THRESHOLD};

const PULSE: u32 = 1024;
const DECAY_SHIFT: u32 = 3;
const NR_RECENT: usize = 9;
/// No limit.
const FOREVER: Nanos = Nanos::MAX;

/// `struct teo_bin`.
#[derive(Clone, Copy, Default, Debug)]
struct Bin {
    intercepts: u32,
    hits: u32,
    recent: usize,
}

/// `struct teo_cpu` of a CPU.
#[derive(Clone, Debug)]
pub struct Teo {
    form: TeoForm,
    last: Option<Stay>,
    /// The time to the next timer when the state was chosen, if it was determined.
    sleep_length: Nanos,
    bins: Vec<Bin>,
    /// Hits beyond a tick, where the deepest state begins before it.
    tick_hits: u32,
    total: u32,
    /// The bins of the last intercepts; `None`: a hit.
    recent: [Option<usize>; NR_RECENT],
    next_recent: usize,
}

impl Teo {
    /// The governor of a CPU that has just been enabled, with this number of idle states.
    pub fn new(form: TeoForm, states: usize) -> Self {
        Teo {
            form,
            last: None,
            sleep_length: FOREVER,
            bins: vec![Bin::default(); states],
            tick_hits: 0,
            total: 0,
            recent: [None; NR_RECENT],
            next_recent: 0,
        }
    }

    /// `teo_reflect`: the stay in `state` took `residency`.
    pub fn reflect(&mut self, state: usize, residency: Nanos, woken: Woken) {
        self.last = Some(Stay { state, residency, woken });
    }

    /// `teo_select` among the states that the latency requirement allows, at least two.
    pub fn select(&mut self, states: &[State], timers: &Timers) -> Choice {
        if let Some(last) = self.last.take() {
            self.update(states, timers.tick, last);
        }
        match self.form {
            TeoForm::Recent => self.select_recent(states, timers),
            TeoForm::TimersLast => self.select_timers_last(states, timers),
        }
    }

    fn select_recent(&mut self, states: &[State], timers: &Timers) -> Choice {
        self.sleep_length = timers.next_timer;
        let (mut duration, mut found) = (timers.next_timer, 0);
        let fits = |state: &&State| state.target_residency <= duration;
        let candidate = states.iter().skip(1).take_while(fits).count();
        if candidate > 0 {
            (found, duration) = self.early(states, timers, candidate);
        }
        if timers.next_tick.is_none() || !(states[found].polling || duration < timers.tick) {
            return Choice { state: found, stops_tick: true };
        }
        keep_tick(states, found, timers.next_event())
    }

    /// The candidate state, or a shallower one where the CPU is likely to be woken early, and how long the stay may be.
    fn early(&self, states: &[State], timers: &Timers, candidate: usize) -> (usize, Nanos) {
        let below = &self.bins[..candidate];
        let (intercepts, hits) = sums(below);
        let recents: usize = below.iter().map(|bin| bin.recent).sum();
        let by_metrics = 2 * intercepts > self.total.saturating_sub(hits);
        let by_recent = recents > NR_RECENT / 2;
        let mut suitable = (candidate, timers.next_timer);
        if !by_metrics && !by_recent {
            return suitable;
        }
        let time_ok = |span| timers.next_tick.is_some() || span >= timers.tick;
        let (mut intercept_sum, mut recent_sum) = (0, 0);
        for i in (0..candidate).rev() {
            intercept_sum += self.bins[i].intercepts;
            recent_sum += self.bins[i].recent;
            let span = (states[i].target_residency + states[i + 1].target_residency) / 2;
            let most = (!by_recent || 2 * recent_sum > recents) && (!by_metrics || 2 * intercept_sum > intercepts);
            match (most, time_ok(span)) {
                (true, true) => return (i, span),
                (true, false) => return suitable,
                (false, true) => suitable = (i, span),
                (false, false) if suitable.0 == candidate => break,
                (false, false) => {}
            }
        }
        (candidate, timers.next_timer)
    }

    fn select_timers_last(&mut self, states: &[State], timers: &Timers) -> Choice {
        self.sleep_length = FOREVER;
        let deepest = states.len() - 1;
        let (intercepts, hits) = sums(&self.bins[..deepest]);
        let before_tick = intercepts + self.bins[deepest].intercepts;
        let mut found = deepest;
        if 2 * intercepts > self.total.saturating_sub(hits) {
            found = self.intercepted(states, timers, deepest, intercepts);
        }
        let retained = |state| Choice { state, stops_tick: timers.next_tick.is_none() };
        if found == 0 {
            self.sleep_length = timers.next_timer;
            return retained(0);
        }
        if states[0].polling && states[found].target_residency < RESIDENCY_THRESHOLD {
            return retained(found);
        }
        self.sleep_length = timers.next_timer;
        let mut duration = timers.next_timer;
        if states[found].target_residency > duration {
            found = find_shallower_state(states, found, duration);
        }
        if states[found].target_residency < timers.tick && before_tick > self.total / 2 + self.total / 8 {
            duration = timers.tick / 2;
        }
        if timers.next_tick.is_none() || !states[found].polling && duration >= timers.tick {
            return Choice { state: found, stops_tick: true };
        }
        keep_tick(states, found, timers.next_event())
    }

    /// The deepest state whose residency over half of the intercepts exceeded; with the tick stopped none that is
    /// shorter than a tick.
    fn intercepted(&self, states: &[State], timers: &Timers, deepest: usize, intercepts: u32) -> usize {
        let state_ok = |i: usize| timers.next_tick.is_some() || states[i].target_residency >= timers.tick;
        let (mut suitable, mut sum) = (deepest, 0);
        for i in (0..deepest).rev() {
            sum += self.bins[i].intercepts;
            match (2 * sum > intercepts, state_ok(i)) {
                (true, true) => return i,
                (true, false) => return suitable,
                (false, true) => suitable = i,
                (false, false) if suitable == deepest => break,
                (false, false) => {}
            }
        }
        deepest
    }

    /// `teo_update`: counts the last stay.
    fn update(&mut self, states: &[State], tick: Nanos, last: Stay) {
        let Stay { state, residency, woken } = last;
        let by_net = woken == Woken::Limit || woken == Woken::Tick && self.sleep_length > tick;
        let latency = states.get(state).map_or(0, |state| state.exit_latency);
        let measured = match residency {
            _ if by_net || residency >= self.sleep_length => FOREVER,
            _ if residency >= latency => residency - latency / 2,
            _ => residency / 2,
        };
        let (mut timer, mut duration) = (0, 0);
        self.total = 0;
        for (i, (bin, state)) in self.bins.iter_mut().zip(states).enumerate() {
            bin.hits -= bin.hits >> DECAY_SHIFT;
            bin.intercepts -= bin.intercepts >> DECAY_SHIFT;
            self.total += bin.hits + bin.intercepts;
            if state.target_residency <= self.sleep_length {
                timer = i;
                if state.target_residency <= measured {
                    duration = i;
                }
            }
        }
        self.total += PULSE;
        if self.form == TeoForm::TimersLast && states.last().is_some_and(|deepest| deepest.target_residency < tick) {
            self.tick_hits -= self.tick_hits >> DECAY_SHIFT;
            self.total += self.tick_hits;
            if tick <= self.sleep_length {
                timer = states.len();
                if tick <= measured {
                    self.tick_hits += PULSE;
                    return;
                }
            }
        }
        match timer == duration {
            true => self.bins[timer].hits += PULSE,
            false => self.bins[duration].intercepts += PULSE,
        }
        self.remember((timer != duration).then_some(duration));
    }

    /// Records whether the last stay was an intercept, and in which bin; only [`TeoForm::Recent`] uses these records.
    fn remember(&mut self, intercept: Option<usize>) {
        let oldest = std::mem::replace(&mut self.recent[self.next_recent], intercept);
        self.next_recent = (self.next_recent + 1) % NR_RECENT;
        if let Some(oldest) = oldest {
            self.bins[oldest].recent -= 1;
        }
        if let Some(bin) = intercept {
            self.bins[bin].recent += 1;
        }
    }
}

/// Intercepts and hits of the bins.
fn sums(bins: &[Bin]) -> (u32, u32) {
    bins.iter().fold((0, 0), |(intercepts, hits), bin| (intercepts + bin.intercepts, hits + bin.hits))
}

#[cfg(test)]
mod tests {
    use super::super::idle_choice::table::{timers, STATES, TICK};
    use super::*;
    use proptest::prelude::*;
    use schedlab_model::{MSEC, USEC};

    /// The governor after this number of idle periods of this length, each ended by a wakeup.
    fn after(form: TeoForm, stays: usize, length: Nanos) -> Teo {
        let mut teo = Teo::new(form, STATES.len());
        for _ in 0..stays {
            let choice = teo.select(&STATES, &timers(100 * MSEC, Some(2 * MSEC)));
            teo.reflect(choice.state, length, Woken::Event);
        }
        teo
    }

    #[test]
    fn what_it_chooses() {
        use TeoForm::{Recent, TimersLast};
        // (form, stays before, their length, next timer, next tick, state, whether the tick stops)
        let cases = [
            // Nothing but a timer is expected.
            (Recent, 0, 0, 100 * MSEC, Some(MSEC), 3, true),
            (TimersLast, 0, 0, 100 * MSEC, Some(MSEC), 3, true),
            (Recent, 0, 0, 300 * USEC, Some(MSEC), 2, false),
            (TimersLast, 0, 0, 300 * USEC, Some(MSEC), 2, false),
            (Recent, 0, 0, 500, Some(MSEC), 0, false),
            (TimersLast, 0, 0, 500, Some(MSEC), 0, false),
            // Always intercepted after 100 us.
            (Recent, 16, 102 * USEC, 100 * MSEC, Some(2 * MSEC), 2, false),
            (TimersLast, 16, 102 * USEC, 100 * MSEC, Some(2 * MSEC), 2, false),
            // Always woken after half a microsecond: both poll.
            (Recent, 16, 500, 100 * MSEC, Some(2 * MSEC), 0, false),
            (TimersLast, 16, 500, 100 * MSEC, Some(2 * MSEC), 0, false),
            // With the tick stopped a shallower state must have a target residency of at least a tick, which none has.
            (Recent, 16, 102 * USEC, 100 * MSEC, None, 3, true),
            (TimersLast, 16, 102 * USEC, 100 * MSEC, None, 3, true),
        ];
        for case in cases {
            let (form, stays, length, next_timer, next_tick, state, stops_tick) = case;
            let found = after(form, stays, length).select(&STATES, &timers(next_timer, next_tick));
            assert_eq!(found, Choice { state, stops_tick }, "{case:?}");
        }
    }

    #[test]
    fn after_stays_that_the_tick_ends_the_deepest_state_is_chosen_again() {
        for form in [TeoForm::Recent, TeoForm::TimersLast] {
            let mut teo = after(form, 16, 102 * USEC);
            let mut stays = 0;
            loop {
                let choice = teo.select(&STATES, &timers(10 * MSEC, Some(TICK)));
                if choice.state == 3 {
                    break;
                }
                stays += 1;
                teo.reflect(choice.state, TICK, Woken::Tick);
            }
            assert!((1..=12).contains(&stays), "{form:?}: {stays}");
        }
    }

    proptest! {
        /// The counts neither overflow nor become negative, and while the tick runs, the state that is chosen is no
        /// deeper than the time to the tick allows.
        #[test]
        fn counts_add_up(
            later in any::<bool>(),
            stays in prop::collection::vec((0..20 * MSEC, 1..20 * MSEC, prop::option::of(1..TICK), 0..3u8), 1..200),
        ) {
            let form = if later { TeoForm::TimersLast } else { TeoForm::Recent };
            let mut teo = Teo::new(form, STATES.len());
            for (length, next_timer, next_tick, woken) in stays {
                let choice = teo.select(&STATES, &timers(next_timer, next_tick));
                let known: u32 = teo.bins.iter().map(|bin| bin.hits + bin.intercepts).sum();
                prop_assert!(known <= teo.total && teo.total <= 10 * PULSE);
                prop_assert_eq!(teo.bins.iter().map(|bin| bin.recent).sum::<usize>(), teo.recent.iter().flatten().count());
                if let (false, Some(tick)) = (choice.stops_tick, next_tick) {
                    let short = STATES[choice.state].target_residency < RESIDENCY_THRESHOLD;
                    prop_assert!(short || STATES[choice.state].target_residency <= tick);
                }
                let woken = [Woken::Event, Woken::Tick, Woken::Limit][usize::from(woken)];
                teo.reflect(choice.state, length, woken);
            }
        }
    }
}
