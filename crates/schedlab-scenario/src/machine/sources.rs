//! The sources of a machine's numbers: one per group of numbers.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::value::Table;

/// The source of each group of numbers, by its name.
pub(super) type Sources = BTreeMap<String, String>;

/// The source of numbers whose table has none.
pub(super) const NO_SOURCE: &str = "no source given";

/// The `source` of a table.
pub(super) fn source(table: &Table) -> Result<String> {
    Ok(match table.get("source") {
        Some(value) => value.string("a string")?.to_owned(),
        None => NO_SOURCE.to_owned(),
    })
}

/// The lines `NAME: SOURCE` of a machine as a map.
pub(super) fn split(lines: &[String]) -> Sources {
    let pair = |line: &String| line.split_once(": ").map(|(name, source)| (name.to_owned(), source.to_owned()));
    lines.iter().filter_map(pair).collect()
}
