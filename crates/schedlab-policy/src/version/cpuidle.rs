//! How the menu governor chooses an idle state, over the kernel's releases.
//!
//! Read in drivers/cpuidle/governors/{menu.c,gov.h} of 5.10.262, 6.1.192, 6.12.117 and 7.2 (all Debian). Where a change
//! lies between two trees that were read, its first release is marked `unverified`. Every release has menu as its
//! default: it is rated above TEO, and ladder is for kernels without NO_HZ.

use crate::history::release::{value_at, when, Change, Release};

/// What differs between releases in `menu_select` and `get_typical_interval`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MenuRules {
    /// The last intervals are looked at first; if they say that the CPU will be woken within 15 us, the time to the
    /// next timer is not determined. Before, it always was.
    pub intervals_first: bool,
    /// Outliers among the last intervals are left out at both ends, not only at the upper one.
    pub both_ends: bool,
    /// With the tick stopped, a short prediction stands if a timer is due within two ticks.
    pub near_timer_suffices: bool,
}

const INTERVALS_FIRST: &[Change<bool>] =
    &[Change { when: when!(from "6.6" unverified "absent from 6.1.192, present in 6.12.117"), value: true }];
const BOTH_ENDS: &[Change<bool>] =
    &[Change { when: when!(from "6.15" unverified "absent from 6.12.117, present in 7.2"), value: true }];
const NEAR_TIMER: &[Change<bool>] =
    &[Change { when: when!(from "7.1" unverified "absent from 6.12.117, present in 7.2"), value: true }];

impl MenuRules {
    pub(crate) const fn at(release: Release) -> MenuRules {
        MenuRules {
            intervals_first: value_at(false, INTERVALS_FIRST, release),
            both_ends: value_at(false, BOTH_ENDS, release),
            near_timer_suffices: value_at(false, NEAR_TIMER, release),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Version;

    #[test]
    fn rules_of_the_rows() {
        for (row, want) in [
            ("5.2", [false, false, false]),
            ("6.1", [false, false, false]),
            ("6.6", [true, false, false]),
            ("6.12.107", [true, false, false]),
            ("6.18.2", [true, true, false]),
            ("7.2", [true, true, true]),
        ] {
            let found = Version::find(row).unwrap().menu();
            assert_eq!([found.intervals_first, found.both_ends, found.near_timer_suffices], want, "{row}");
        }
    }
}
