//! The kernel series that the tables of features and knobs have a column for.

/// The columns of the feature and knob tables, oldest first. A column is not yet a version: only [`Version::all`] is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Series {
    V5_2,
    V5_7,
    V5_13,
    V6_1,
    V6_3,
    EevdfRfc,
    V6_6,
    V6_12_0,
    V6_12_107,
    V6_18_2,
    V6_18_44,
    V7_2,
}
