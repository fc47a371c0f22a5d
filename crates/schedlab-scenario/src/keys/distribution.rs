//! The keys of a distribution's kernel, in `distributions/*.toml`.

use super::{key, Section};

/// A file of `distributions`.
pub const DISTRIBUTION: Section = Section {
    name: "a distribution",
    keys: &[
        key("summary", "string", "", "the release and its architecture"),
        key("row", "version", "", "the row of its kernel"),
        key("no-row", "string", "", "instead of row: why no row follows its kernel"),
        key("releases", "strings", "", "patterns of `uname -r`: # is a number, * anything"),
        key("preempt", "as in a variant", "", "the preemption model that it boots with"),
        key("hz", "100, 250, 300 or 1000", "", "CONFIG_HZ"),
        key("autogroup", "boolean", "", "CONFIG_SCHED_AUTOGROUP, which boots enabled"),
        key("features", "table of booleans", "none", "features that differ from the row's"),
        key("knobs", "table of numbers", "none", "knobs that differ from the row's, times in ns"),
        key("source", "string", "", "the package and the options that say so"),
    ],
};
