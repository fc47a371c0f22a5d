//! Settings of the kernel that have no effect in this model.

use super::release::Release;

/// Where a setting changes nothing, and why; there it is refused.
#[derive(Debug)]
pub(crate) struct LeftOut {
    pub from: Option<Release>,
    pub until: Option<Release>,
    pub why: &'static str,
}

impl LeftOut {
    /// The reason, if it applies to a kernel of that release.
    pub fn in_release(&self, release: Release) -> Option<&'static str> {
        let contains = |change: Release| release.contains(change);
        let applies = self.from.is_none_or(contains) && !self.until.is_some_and(contains);
        applies.then_some(self.why)
    }
}

/// `left_out!()`: it acts everywhere. Else `because "reason"`, which `from "6.12"` and `until "6.18"` may limit to
/// releases.
macro_rules! left_out {
    () => {
        None
    };
    (because $why:literal) => {
        Some($crate::history::left_out::LeftOut { from: None, until: None, why: $why })
    };
    (from $from:literal because $why:literal) => {
        Some($crate::history::left_out::LeftOut {
            from: Some($crate::history::release::Release::new($from)),
            until: None,
            why: $why,
        })
    };
    (until $until:literal because $why:literal) => {
        Some($crate::history::left_out::LeftOut {
            from: None,
            until: Some($crate::history::release::Release::new($until)),
            why: $why,
        })
    };
}

pub(crate) use left_out;
