//! The inputs and the output of an idle governor: the states, the timers, what ended the last stay, and the choice.

use schedlab_model::{Nanos, USEC};

/// `RESIDENCY_THRESHOLD_NS`.
pub const RESIDENCY_THRESHOLD: Nanos = 15 * USEC;

/// The parameters of an idle state that the governor uses.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Target residency, ns.
    pub target_residency: Nanos,
    /// Longest time that leaving it takes, ns.
    pub exit_latency: Nanos,
    /// The CPU executes a loop there (`CPUIDLE_FLAG_POLLING`).
    pub polling: bool,
}

/// What may wake the CPU by itself.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Time to the next timer other than the tick, ns.
    pub next_timer: Nanos,
    /// Time to the next tick; `None`: the tick is stopped.
    pub next_tick: Option<Nanos>,
    /// Period of the tick.
    pub tick: Nanos,
}

impl Timers {
    /// The tick is stopped.
    pub fn stopped(&self) -> bool {
        self.next_tick.is_none()
    }

    /// Time to the next timer, the tick included (`delta_tick`).
    pub fn next_event(&self) -> Nanos {
        self.next_tick.map_or(self.next_timer, |tick| tick.min(self.next_timer))
    }
}

/// What ended the stay in an idle state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// A task or a timer of one.
    Event,
    /// The tick, which had not been stopped.
    Tick,
    /// Polling has gone on for as long as it may.
    Limit,
}

/// The last stay in an idle state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stay {
    /// Index of the state.
    pub state: usize,
    /// Its length, ns, including the exit from the state.
    pub residency: Nanos,
    /// What ended it.
    pub woken: Woken,
}

/// What the governor decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Index of the state.
    pub state: usize,
    /// The tick stops.
    pub stops_tick: bool,
}

/// The deepest state below this one whose target residency fits, or the shallowest (`teo_find_shallower_state`, and the
/// same loop at the end of `menu_select`).
pub fn find_shallower_state(states: &[State], than: usize, duration: Nanos) -> usize {
    states[..than].iter().rposition(|state| state.target_residency <= duration).unwrap_or(0)
}

/// The tick keeps running. A state with a longer target residency than the time `left` until the next timer is not
/// entered.
pub fn keep_tick(states: &[State], found: usize, left: Nanos) -> Choice {
    let deep = found > 0 && states[found].target_residency > left;
    Choice { state: if deep { find_shallower_state(states, found, left) } else { found }, stops_tick: false }
}

/// A table of states for the tests of the governors.
#[cfg(test)]
pub mod table {
    use super::*;
    use schedlab_model::MSEC;

    /// The table of a Sapphire Rapids server (drivers/idle/intel_idle.c).
    pub const STATES: [State; 4] = [
        State { target_residency: 0, exit_latency: 0, polling: true },
        State { target_residency: USEC, exit_latency: USEC, polling: false },
        State { target_residency: 4 * USEC, exit_latency: 2 * USEC, polling: false },
        State { target_residency: 800 * USEC, exit_latency: 290 * USEC, polling: false },
    ];
    /// The period of the tick at 250 Hz.
    pub const TICK: Nanos = 4 * MSEC;

    /// The timers of a CPU whose next timer is so far away.
    pub fn timers(next_timer: Nanos, next_tick: Option<Nanos>) -> Timers {
        Timers { next_timer, next_tick, tick: TICK }
    }
}
