//! Selects the machine of a scenario: a shipped preset, a file, the running machine, or an inline table.

mod caches;
mod capacities;
mod costs;
mod draft;
mod frequency;
mod host;
mod memory;
mod physics;
mod presets;
mod sections;
mod sources;
mod topology;

use std::path::Path;

use schedlab_spec::Machine;

use crate::error::{Result, ScenarioError};
use crate::source::{read, FileText};
use crate::text::Text;
use crate::value::{Table, Value};
use schedlab_model::suggest;

pub(crate) use costs::DEAREST;
pub(crate) use draft::hz;
pub(crate) use host::release;
pub(crate) use physics::switches;
pub(crate) use presets::{preset_ids, HOST};
pub(crate) use topology::counted;

/// Reads the `machine` key of a scenario. Paths are relative to `dir`.
pub(crate) fn of_value(value: &Value, dir: &Path) -> Result<Machine> {
    if let Some(table) = value.as_table() {
        return draft::machine(table, "inline");
    }
    let name = value.string("a preset, a path, \"host\" or a table")?;
    named(name, value.dir(dir), |message| value.error(message))
}

/// A preset or `host`, by id.
#[must_use]
pub fn preset(id: &str) -> Option<Result<Machine>> {
    presets::text_of(id).map(|text| parse(&format!("machines/{id}.toml"), text.as_bytes(), id))
}

fn named(name: &str, dir: &Path, error: impl Fn(String) -> Box<ScenarioError>) -> Result<Machine> {
    if let Some(machine) = preset(name) {
        return machine;
    }
    if !name.ends_with(".toml") && !name.contains('/') {
        let known = preset_ids().into_iter().chain([HOST]);
        let error = error(format!("unknown machine {}", crate::error::quote(name)));
        return Err(error.expected("a preset, \"host\" or a path that ends in .toml").hint(suggest(name, known)));
    }
    let path = dir.join(name);
    let FileText { name: shown, bytes } =
        read(&path).map_err(|reason| error(format!("machine file {name}: {reason}")))?;
    let stem = path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
    parse(&shown, &bytes, &stem)
}

fn parse(file: &str, bytes: &[u8], name: &str) -> Result<Machine> {
    let text = Text::new(file, bytes)?;
    let document = text.parse()?;
    draft::machine(Table::root(&text, &document), name)
}

#[cfg(test)]
mod tests;
