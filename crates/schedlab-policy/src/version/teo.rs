//! Which form of the TEO governor a release has.
//!
//! Read in drivers/cpuidle/governors/teo.c of 6.1.192 and 6.12.117. Up to 5.13 TEO counts something else, from 6.3 to
//! 6.11 it also looks at the utilization of the CPU, and what followed 6.12 was not read: none of these is modelled.

use crate::history::release::{value_at, when, Change, Release};

/// A form of `teo_select` and `teo_update`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TeoForm {
    /// The time to the next timer is always determined, and the last nine wakeups count in addition to the metrics.
    Recent,
    /// The metrics alone propose a state, and the time to the next timer is determined only for a deep one.
    TimersLast,
}

pub(crate) const fn teo_at(release: Release) -> Option<TeoForm> {
    const CHANGES: &[Change<Option<TeoForm>>] = &[
        Change { when: when!(from "5.14" unverified "present in 6.1.192"), value: Some(TeoForm::Recent) },
        Change { when: when!(from "6.3" by "9ce0f7c4bc64"), value: None },
        Change { when: when!(from "6.12" unverified "present in 6.12.117"), value: Some(TeoForm::TimersLast) },
        Change { when: when!(from "6.13" unverified "not read"), value: None },
    ];
    value_at(None, CHANGES, release)
}

#[cfg(test)]
mod tests {
    use super::TeoForm;
    use crate::Version;

    #[test]
    fn forms_of_the_rows() {
        for (row, want) in [
            ("5.10", None),
            ("5.15", Some(TeoForm::Recent)),
            ("6.1", Some(TeoForm::Recent)),
            ("6.3", None),
            ("6.8", None),
            ("6.12.0", Some(TeoForm::TimersLast)),
            ("6.12.107", Some(TeoForm::TimersLast)),
            ("6.16", None),
            ("7.2", None),
        ] {
            assert_eq!(Version::find(row).unwrap().teo(), want, "{row}");
        }
    }
}
