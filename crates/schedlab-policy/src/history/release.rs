//! Kernel releases, and when a change takes effect in them.

use std::fmt;

/// A release: of mainline (`6.12`), or of one of its stable series (`6.12.107`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Release {
    major: u16,
    minor: u16,
    sublevel: u16,
}

impl Release {
    /// The release that `text` names; a table with a number that does not parse fails to compile.
    pub(crate) const fn new(text: &str) -> Release {
        match Release::parse(text) {
            Some(release) => release,
            None => panic!("a release is MAJOR.MINOR or MAJOR.MINOR.SUBLEVEL"),
        }
    }

    /// Two or three numbers with dots between them.
    #[must_use]
    pub const fn parse(text: &str) -> Option<Release> {
        let (bytes, mut numbers, mut at, mut digits) = (text.as_bytes(), [0u32; 3], 0, 0);
        let mut index = 0;
        while index < bytes.len() {
            match bytes[index] {
                digit @ b'0'..=b'9' if digits < 5 => {
                    numbers[at] = numbers[at] * 10 + (digit - b'0') as u32;
                    digits += 1;
                }
                b'.' if digits > 0 && at < 2 => (at, digits) = (at + 1, 0),
                _ => return None,
            }
            index += 1;
        }
        let fits = numbers[0] <= u16::MAX as u32 && numbers[1] <= u16::MAX as u32 && numbers[2] <= u16::MAX as u32;
        if at == 0 || digits == 0 || !fits {
            return None;
        }
        Some(Release { major: numbers[0] as u16, minor: numbers[1] as u16, sublevel: numbers[2] as u16 })
    }

    /// The first number.
    #[must_use]
    pub const fn major(self) -> u16 {
        self.major
    }

    /// The second number.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.minor
    }

    /// All three numbers: `6.12.0`.
    #[must_use]
    pub fn whole(self) -> String {
        format!("{}.{}.{}", self.major, self.minor, self.sublevel)
    }

    /// Whether it is a release of mainline, no sublevel of a stable series.
    pub(crate) const fn is_mainline(self) -> bool {
        self.sublevel == 0
    }

    /// Whether both are of one series (6.12 and 6.12.107 are).
    #[must_use]
    pub const fn same_series(self, other: Release) -> bool {
        self.major == other.major && self.minor == other.minor
    }

    /// Whether this release contains what came in with `change`: mainline passes on to every later series, a sublevel
    /// of a stable series to the later sublevels of that series only.
    pub(crate) const fn contains(self, change: Release) -> bool {
        if !change.is_mainline() {
            return self.same_series(change) && self.sublevel >= change.sublevel;
        }
        self.major > change.major || (self.major == change.major && self.minor >= change.minor)
    }

    /// How far apart two releases are, for choosing the nearest one.
    pub(crate) fn distance(self, other: Release) -> u64 {
        let ordinal = |r: Release| u64::from(r.major) << 32 | u64::from(r.minor) << 16 | u64::from(r.sublevel);
        ordinal(self).abs_diff(ordinal(other))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.sublevel > 0 {
            write!(f, ".{}", self.sublevel)
        } else {
            Ok(())
        }
    }
}

/// The changes as text: `6.6 (147f3efaa241), 6.12 (85e511df3cec)`.
pub(crate) fn since(history: &[When]) -> String {
    history.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Where a change comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The mainline commit; a backport carries its number too.
    Commit(&'static str),
    /// No commit could be verified; what the entry rests on instead.
    Unverified(&'static str),
}

/// When a change took effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct When {
    /// The release.
    pub release: Release,
    /// Whether that is the first release with the change. If not, it is one that was read and has it; the change may be
    /// in earlier sublevels of its series.
    pub first: bool,
    /// The commit.
    pub origin: Origin,
}

impl When {
    /// Whether exactly one of the two releases contains the change.
    #[must_use]
    pub const fn lies_between(&self, a: Release, b: Release) -> bool {
        a.contains(self.release) != b.contains(self.release)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = if self.first { "" } else { "by " };
        match self.origin {
            Origin::Commit(commit) => write!(f, "{by}{} ({commit})", self.release),
            Origin::Unverified(_) => write!(f, "{by}{} (unverified)", self.release),
        }
    }
}

/// A value that took effect with a change.
#[derive(Clone, Copy, Debug)]
pub struct Change<T> {
    /// When.
    pub when: When,
    /// The value from then on.
    pub value: T,
}

/// The value in `release`: that of the last change in the list that it contains. Mainline's changes stand in the order
/// of their releases, backports after them.
pub(crate) const fn value_at<T: Copy>(first: T, changes: &[Change<T>], release: Release) -> T {
    let (mut value, mut index) = (first, 0);
    while index < changes.len() {
        if release.contains(changes[index].when.release) {
            value = changes[index].value;
        }
        index += 1;
    }
    value
}

/// `from "6.12" by "COMMIT"`, `from "6.12" unverified "what it rests on"`; `seen "6.1.192" by ...`: read there, the
/// first sublevel with it is not known.
macro_rules! when {
    (from $release:literal $origin:ident $text:literal) => {
        $crate::history::release::When {
            release: $crate::history::release::Release::new($release),
            first: true,
            origin: $crate::history::release::origin!($origin $text),
        }
    };
    (seen $release:literal $origin:ident $text:literal) => {
        $crate::history::release::When {
            release: $crate::history::release::Release::new($release),
            first: false,
            origin: $crate::history::release::origin!($origin $text),
        }
    };
}

macro_rules! origin {
    (by $commit:literal) => {
        $crate::history::release::Origin::Commit($commit)
    };
    (unverified $why:literal) => {
        $crate::history::release::Origin::Unverified($why)
    };
}

pub(crate) use {origin, when};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_two_or_three_numbers() {
        for (text, shown) in [("6.12", "6.12"), ("6.12.0", "6.12"), ("6.12.107", "6.12.107"), ("5.2.1", "5.2.1")] {
            assert_eq!(Release::parse(text).unwrap().to_string(), shown, "{text}");
        }
        for wrong in ["", "6", "6.", ".6", "6..1", "6.1.", "6.1.2.3", "6.x", "v6.1", "6.1-rc1", "6.65536", "999999.1"] {
            assert_eq!(Release::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn mainline_passes_on_and_backports_stay_in_their_series() {
        let contains = |release, change| Release::new(release).contains(Release::new(change));
        for (release, change, expected) in [
            ("6.12", "6.12", true),
            ("6.12.107", "6.12", true),
            ("6.18", "6.12", true),
            ("7.2.13", "6.19", true),
            ("6.11", "6.12", false),
            ("6.12.107", "6.12.60", true),
            ("6.12.59", "6.12.60", false),
            ("6.12", "6.12.60", false),
            ("6.18.2", "6.12.60", false),
        ] {
            assert_eq!(contains(release, change), expected, "{release} contains {change}");
        }
    }

    #[test]
    fn the_last_change_contained_decides() {
        let changes = [
            Change { when: when!(from "6.12" by "a"), value: 1 },
            Change { when: when!(from "6.19" by "b"), value: 2 },
            Change { when: when!(seen "6.12.107" by "b"), value: 2 },
        ];
        for (release, value) in [("6.6", 0), ("6.12", 1), ("6.12.106", 1), ("6.12.107", 2), ("6.18.44", 1), ("7.2", 2)]
        {
            assert_eq!(value_at(0, &changes, Release::new(release)), value, "{release}");
        }
    }
}
