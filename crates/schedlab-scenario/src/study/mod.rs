//! A study: a published comparison in one file, from which the scenario of every case is built.
//!
//! The file describes what was run and under which conditions. The published figures are in a CSV file next to it and
//! are judged elsewhere. A case is a scenario with the machine, the variants and the conditions of the study; an error
//! in it has a position in the study file.

mod case;
mod keys;
mod parts;
mod shipped;

use std::path::Path;
use std::sync::Arc;

use serde_json::{json, Value as Json};

use crate::error::{quote, Result, ScenarioError};
use crate::overrides::{Overrides, Seeds};
use crate::scenario::Scenario;
use crate::source::{read, FileText};
use crate::text::Text;
use crate::value::Table;
use schedlab_model::suggest;

use keys::STUDY;
pub use keys::STUDY_SECTIONS;
use parts::{Condition, Experiment, Variant};
pub(crate) use shipped::listing;

/// A validated study.
#[derive(Clone, Debug)]
pub struct Study {
    description: Json,
    scenarios: Vec<Arc<Scenario>>,
}

/// The default number of units per variant.
const USUAL_UNITS: u64 = 6;

/// Options for reading a study.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StudyOptions {
    /// Whether to use the short form, for tests.
    pub short: bool,
    /// The number of units per variant.
    pub units: u64,
}

impl Default for StudyOptions {
    fn default() -> Self {
        StudyOptions { short: false, units: USUAL_UNITS }
    }
}

impl Study {
    /// Reads a shipped study by its id, or a file.
    pub fn load(name: &str, options: &StudyOptions) -> Result<Study> {
        if let Some((toml, csv)) = shipped::text_of(name) {
            let figures = |path: &str| Ok((format!("studies/{path}"), csv.to_owned()));
            return Study::parse(toml, &format!("studies/{name}.toml"), options, figures);
        }
        let path = Path::new(name);
        if !name.ends_with(".toml") && !name.contains('/') {
            let error = ScenarioError::new("command line", "study", format!("unknown study {}", quote(name)));
            let error = error.expected("a study listed by `schedlab list studies`, or a path that ends in .toml");
            return Err(error.hint(suggest(name, shipped::ids())));
        }
        let FileText { name, bytes } = read(path).map_err(|reason| ScenarioError::new(name, "", reason))?;
        let dir = path.parent().unwrap_or(Path::new(""));
        build(&name, &bytes, dir, options, |file| {
            let path = dir.join(file);
            let found = read(&path).map_err(|reason| format!("{}: {reason}", path.display()))?;
            let text = String::from_utf8(found.bytes).map_err(|_| format!("{} is not UTF-8 text", path.display()))?;
            Ok((path.display().to_string(), text))
        })
    }

    /// Reads a study from a text that is called `name` in messages. `figures` returns the name and text of a file of
    /// figures.
    pub fn parse(
        text: &str,
        name: &str,
        options: &StudyOptions,
        figures: impl Fn(&str) -> std::result::Result<(String, String), String>,
    ) -> Result<Study> {
        build(name, text.as_bytes(), Path::new(""), options, figures)
    }

    /// The whole study as JSON. A case refers to its scenario by number.
    #[must_use]
    pub fn describe(&self) -> &Json {
        &self.description
    }

    /// The scenario with that number.
    #[must_use]
    pub fn scenario(&self, number: usize) -> Option<&Arc<Scenario>> {
        self.scenarios.get(number)
    }
}

/// What all cases of a study have in common.
struct Context<'a> {
    text: &'a Text<'a>,
    root: Table<'a>,
    name: String,
    dir: &'a Path,
    short: bool,
    overrides: Overrides,
    conditions: Vec<Condition<'a>>,
    variants: Vec<Variant<'a>>,
}

fn build(
    file: &str,
    bytes: &[u8],
    dir: &Path,
    options: &StudyOptions,
    figures: impl Fn(&str) -> std::result::Result<(String, String), String>,
) -> Result<Study> {
    let text = Text::new(file, bytes)?;
    if text.is_blank() {
        let error = text.error(0, "", "the file is empty");
        return Err(error.expected("a study; docs/studies/format.md lists all of its keys"));
    }
    let document = text.parse()?;
    let root = Table::root(&text, &document).only(&STUDY)?;
    let stem = Path::new(file).file_stem().map_or_else(|| file.into(), |stem| stem.to_string_lossy());
    let name = parts::string(&root, "name")?.unwrap_or_else(|| stem.into_owned());
    let conditions = parts::conditions(&root)?;
    let variants = parts::variants(&root)?;
    let overrides = Overrides { seeds: Some(Seeds::Count(options.units)), ..Overrides::default() };
    let context =
        Context { text: &text, name, dir, short: options.short, overrides, conditions, variants, root: root.clone() };
    let experiments = parts::experiments(&context)?;
    let (figures_file, figures_text) = figures_of(&root, &context.name, figures)?;
    let mut scenarios = Vec::new();
    let mut cases = Vec::new();
    for experiment in &experiments {
        cases.extend(case::cases(&context, experiment, &mut scenarios)?);
    }
    let description = json!({
        "name": context.name,
        "summary": parts::string(&root, "summary")?.unwrap_or_default(),
        "file": file,
        "source": parts::required(&root, "source", "the publication that the figures are from")?,
        "missing": parts::string(&root, "missing")?,
        "short": options.short,
        "units": options.units,
        "figures": { "file": figures_file, "text": figures_text },
        "conditions": context.conditions.iter().map(Condition::describe).collect::<Vec<_>>(),
        "variants": context.variants.iter().map(Variant::describe).collect::<Vec<_>>(),
        "experiments": experiments.iter().map(Experiment::describe).collect::<Vec<_>>(),
        "cases": cases,
        "gaps": parts::gaps(&root, &experiments)?,
    });
    Ok(Study { description, scenarios })
}

fn figures_of(
    root: &Table,
    name: &str,
    figures: impl Fn(&str) -> std::result::Result<(String, String), String>,
) -> Result<(String, String)> {
    let usual = format!("{name}.csv");
    match root.get("figures") {
        Some(value) => figures(value.string("a path")?).map_err(|why| value.error(why)),
        None => figures(&usual).map_err(|why| root.error(why).hint(format!("write the figures to {usual}"))),
    }
}
