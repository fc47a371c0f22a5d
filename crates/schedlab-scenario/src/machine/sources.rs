//! Where the numbers of a machine come from: one source per group of numbers, and how far an estimate may be off.

use std::collections::BTreeMap;

use schedlab_spec::Machine;

use crate::error::Result;
use crate::value::{Table, Value};

/// The source of numbers whose table has none.
pub(super) const NO_SOURCE: &str = "no source given";
/// The largest cost that a range may reach, in percent of the cost; the smallest is its reciprocal.
const FARTHEST: f64 = 10_000.0;
const FORM: &str = "two percentages around 100% such as [\"50%\", \"200%\"]";

/// The source of each group of numbers, and the range of those that state one, by name.
#[derive(Default)]
pub(super) struct Sources {
    sources: BTreeMap<String, String>,
    ranges: BTreeMap<String, [f64; 2]>,
}

impl Sources {
    /// Those of the base.
    pub(super) fn of(base: &Machine) -> Self {
        let pair = |line: &String| line.split_once(": ").map(|(name, source)| (name.to_owned(), source.to_owned()));
        Sources { sources: base.sources.iter().filter_map(pair).collect(), ranges: base.ranges.clone() }
    }

    /// Reads the `source` and the `range` of a group of numbers; those of the base no longer hold.
    pub(super) fn read(&mut self, name: &str, table: &Table) -> Result<()> {
        let source = table.get("source").map(|value| value.string("a string").map(str::to_owned)).transpose()?;
        self.insert(name, source.unwrap_or_else(|| NO_SOURCE.to_owned()));
        if let Some(range) = table.get("range").map(|value| range(&value)).transpose()? {
            self.ranges.insert(name.to_owned(), range);
        }
        Ok(())
    }

    /// The numbers have this source.
    pub(super) fn insert(&mut self, name: &str, source: String) {
        self.ranges.remove(name);
        self.sources.insert(name.to_owned(), source);
    }

    /// None of the base's idle states is left.
    pub(super) fn drop_idle_states(&mut self) {
        self.sources.retain(|name, _| !name.starts_with("idle."));
        self.ranges.retain(|name, _| !name.starts_with("idle."));
    }

    /// One line per group of numbers, and the ranges.
    pub(super) fn finish(self) -> (Vec<String>, BTreeMap<String, [f64; 2]>) {
        (self.sources.iter().map(|(name, source)| format!("{name}: {source}")).collect(), self.ranges)
    }
}

/// The smallest and the largest factor between which an estimate may lie.
fn range(value: &Value) -> Result<[f64; 2]> {
    let [low, high] = &value.array(FORM)?[..] else { return Err(value.refuse("not a range").expected(FORM)) };
    let (from, to) = (low.percent(100.0)?, high.percent(FARTHEST)?);
    if from < 100.0 * 100.0 / FARTHEST || to < 100.0 || from >= to {
        return Err(value.refuse("out of range").expected(format!("{FORM}, from 1% to {FARTHEST}%")));
    }
    Ok([from / 100.0, to / 100.0])
}
