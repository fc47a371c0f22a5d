//! `haltpoll`, the governor of a guest's idle CPUs: poll for a while, then halt (drivers/cpuidle/governors/haltpoll.c,
//! read in 5.7 and in the series that changed it; module parameters at their defaults).
//!
//! A CPU polls whenever its window is not 0, and halts once it has polled to the window's end. The window doubles after
//! a halt that was longer than it and no longer than the longest window, and halves after a halt longer than that.

use schedlab_model::{Nanos, USEC};
use schedlab_policy::Paravirt;

use super::idle_choice::Choice;

/// `guest_halt_poll_ns`: the longest window.
const LONGEST: Nanos = 200 * USEC;
/// `guest_halt_poll_grow_start`.
const GROW_START: Nanos = 50 * USEC;
/// `guest_halt_poll_grow`.
const GROW: Nanos = 2;
/// `guest_halt_poll_shrink`.
const SHRINK: Nanos = 2;

/// The states of the driver: `poll_idle`, and the halt.
const POLL: usize = 0;
pub const HALT: usize = 1;

/// The governor of one CPU.
#[derive(Clone, Debug)]
pub struct Haltpoll {
    /// `poll_limit_ns`.
    window: Nanos,
    /// The last state, and whether polling went on to the end of the window.
    last: usize,
    to_the_limit: bool,
    /// A window that shrinks below its first value becomes 0.
    resets: bool,
}

impl Haltpoll {
    /// The state after `haltpoll_enable_device`: the first idle period is a halt.
    pub fn new(rules: Paravirt) -> Self {
        Haltpoll { window: 0, last: POLL, to_the_limit: false, resets: rules.haltpoll_resets }
    }

    /// `haltpoll_select`, and the window.
    pub fn select(&self) -> (Choice, Nanos) {
        let halts = self.window == 0 || self.last == POLL && self.to_the_limit;
        (Choice { state: if halts { HALT } else { POLL }, stops_tick: halts }, self.window)
    }

    /// The CPU has polled, to the end of the window or until it was woken.
    pub fn polled(&mut self, to_the_limit: bool) {
        (self.last, self.to_the_limit) = (POLL, to_the_limit);
    }

    /// `adjust_poll_limit` after a halt of this length.
    pub fn halted(&mut self, length: Nanos) {
        self.last = HALT;
        if length > self.window && length <= LONGEST {
            self.window = (self.window * GROW).clamp(GROW_START, LONGEST);
        } else if length > LONGEST {
            let shrunk = self.window / SHRINK;
            self.window = if self.resets && shrunk < GROW_START { 0 } else { shrunk };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_policy::Version;

    fn governor(row: &str) -> Haltpoll {
        Haltpoll::new(Version::find(row).unwrap().paravirt())
    }

    #[test]
    fn windows_of_adjust_poll_limit() {
        // (row, window, halted) -> window; in us
        for (row, window, halted, next) in [
            ("6.1", 0, 5, 50),
            ("6.1", 0, 200, 50),
            ("6.1", 50, 50, 50),
            ("6.1", 50, 51, 100),
            ("6.1", 150, 190, 200),
            ("6.1", 200, 200, 200),
            ("6.1", 200, 201, 100),
            ("6.1", 50, 201, 25),
            ("6.12.0", 200, 201, 100),
            ("6.12.0", 50, 201, 0),
            ("6.12.0", 0, 300, 0),
        ] {
            let mut found = Haltpoll { window: window * USEC, ..governor(row) };
            found.halted(halted * USEC);
            assert_eq!(found.window, next * USEC, "{row} {window} {halted}");
        }
    }

    #[test]
    fn a_cpu_halts_after_it_has_polled_in_vain() {
        let mut found = governor("6.1");
        let state = |governor: &Haltpoll| governor.select().0.state;
        assert_eq!(state(&found), HALT, "there is no window yet");
        found.halted(100 * USEC);
        assert_eq!((state(&found), found.select().1), (POLL, 50 * USEC));
        found.polled(false);
        assert_eq!(state(&found), POLL, "it was woken while it polled");
        found.polled(true);
        assert_eq!(state(&found), HALT);
        found.halted(10 * USEC);
        assert_eq!(state(&found), POLL);
    }
}
