//! Overrides of single keys, `--set KEY=VALUE`: each is merged into the document before anything of it is validated.
//!
//! The merged value is validated like any other, and a message about it names the override instead of a line of the file.

use std::path::Path;

use schedlab_model::suggest;
use serde_json::Value as Json;
use toml::de::{DeArray, DeString, DeTable, DeValue};
use toml::Spanned;
use toml_writer::ToTomlValue;

use crate::error::{quote, Result, ScenarioError};
use crate::keys::{SCENARIO, VARIANT};
use crate::text::Text;

/// One override.
///
/// | key | what it overrides |
/// |---|---|
/// | `duration`, `machine`, `arm.vm.memory` | a key of the scenario, at any depth |
/// | `machine.topology.cores-per-llc` | a key of the machine; a preset becomes the base of an inline machine |
/// | `workload.NAME.KEY`, likewise `guest`, `cgroup`, `variant` | a key of the table of that name |
/// | `metric.OF.KEY` | a key of every metric `OF`, which is quoted if it has a dot |
/// | `workload.KEY`, likewise `guest`, `cgroup`, `metric` | the same, if there is only one table |
/// | `variant.KEY`, or `KEY` alone: `knobs.base_slice` | a key of every variant |
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set {
    /// The name in messages: `--set KEY=VALUE` or `command line`.
    pub shown: String,
    /// The key: words separated by dots, quoted where they contain one.
    pub key: String,
    /// A value in TOML; a text that is not TOML, such as `3ms`, stands for itself.
    pub value: String,
}

/// The arrays of tables whose elements a key names.
const NAMED: [&str; 5] = ["workload", "variant", "guest", "cgroup", "metric"];

impl Set {
    /// Reads `KEY=VALUE`.
    pub fn parse(text: &str) -> Result<Set> {
        let shown = format!("--set {text}");
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Set { shown, key: key.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(ScenarioError::new(shown, "", "there is no key").expected("KEY=VALUE")),
        }
    }

    /// The override of a top-level key by a flag of its own.
    pub(crate) fn flag(key: &str, value: &Json) -> Set {
        let value = value.as_str().map_or_else(|| value.to_string(), |text| text.to_toml_value());
        Set { shown: "command line".into(), key: key.to_owned(), value }
    }

    /// The override as it is written on a command line.
    #[must_use]
    pub fn show(&self) -> String {
        format!("{}={}", self.key, self.value)
    }

    fn error(&self, message: impl Into<String>) -> Box<ScenarioError> {
        ScenarioError::new(self.shown.clone(), &self.key, message)
    }

    /// The words of the key.
    fn words(&self) -> Result<Vec<String>> {
        let (mut words, mut quoted) = (vec![String::new()], false);
        for c in self.key.chars() {
            match c {
                '"' => quoted = !quoted,
                '.' if !quoted => words.push(String::new()),
                _ => words.iter_mut().last().into_iter().for_each(|word| word.push(c)),
            }
        }
        if quoted || words.iter().any(String::is_empty) {
            return Err(self.error("not a key").expected("words separated by dots, such as knobs.base_slice"));
        }
        Ok(words)
    }

    /// The value, with spans from `start`.
    fn parsed(&self, start: usize) -> Result<Spanned<DeValue<'_>>> {
        match DeValue::parse(&self.value) {
            Ok(value) if !matches!(value.get_ref(), DeValue::Datetime(_)) => Ok(moved(value, start)),
            Err(error) if self.value.starts_with(['"', '\'', '[', '{']) => {
                Err(self.error(format!("not valid TOML: {}", error.message().replace('\n', ", "))))
            }
            _ => Ok(Spanned::new(start..start + 1, DeValue::String(DeString::Borrowed(&self.value)))),
        }
    }
}

/// Merges the overrides into a document, in their order.
pub(crate) fn apply<'a>(document: &mut DeTable<'a>, sets: &'a [Set], text: &Text<'a>) -> Result<()> {
    for (set, start) in sets.iter().zip(text.starts()) {
        let words = set.words()?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let merge = Merge { set, start, value: set.parsed(start)? };
        merge.root(document, &words)?;
    }
    Ok(())
}

struct Merge<'a> {
    set: &'a Set,
    start: usize,
    value: Spanned<DeValue<'a>>,
}

impl<'a> Merge<'a> {
    fn root(&self, document: &mut DeTable<'a>, words: &[&str]) -> Result<()> {
        let (scenario, variant) = (SCENARIO.names(), VARIANT.names());
        match words {
            [] => Ok(()),
            [first, rest @ ..] if NAMED.contains(first) && !rest.is_empty() => self.named(document, first, rest),
            [first, ..] if scenario.contains(first) => self.table(document, words),
            [first, ..] if variant.contains(first) => self.named(document, "variant", words),
            [first, rest @ ..] => {
                let error = self.set.error(format!("unknown key {}", quote(first)));
                let error = error.expected("a key of the scenario, or of every variant");
                if !rest.is_empty() && names(document, "workload").iter().any(|name| name == first) {
                    return Err(error.hint(format!("did you mean \"workload.{}\"?", self.set.key)));
                }
                Err(error.hint(suggest(first, scenario.into_iter().chain(variant))))
            }
        }
    }

    /// Merges into the table of this kind that the first word names; without a name into the only one, or into every variant.
    fn named(&self, document: &mut DeTable<'a>, kind: &str, words: &[&str]) -> Result<()> {
        let known = names(document, kind);
        let tables = document.get_mut(kind).map(Spanned::get_mut);
        let Some(DeValue::Array(tables)) = tables else {
            return Err(self.set.error(format!("the scenario has no {kind}")).expected(format!("a [[{kind}]] table")));
        };
        let all = kind == "variant" || tables.len() == 1;
        let (found, words): (Vec<bool>, _) = match words {
            [name, rest @ ..] if known.iter().any(|known| known == name) => {
                (known.iter().map(|known| known == name).collect(), rest)
            }
            [first, ..] if all && (kind != "variant" || VARIANT.names().contains(first)) => {
                (vec![true; known.len()], words)
            }
            [first, ..] => {
                let error = self.set.error(format!("unknown {kind} {}", quote(first)));
                let keys = if kind == "variant" { VARIANT.names() } else { Vec::new() };
                let hint = suggest(first, known.iter().map(String::as_str).chain(keys));
                return Err(error.expected(format!("one of {}", known.join(", "))).hint(hint));
            }
            [] => return Err(self.set.error("the name of a key is missing")),
        };
        if words.is_empty() {
            return Err(self.set.error("this is a whole table").expected(format!("{kind}.NAME.KEY")));
        }
        let chosen = tables.iter_mut().zip(found).filter(|(_, found)| *found);
        chosen.map(|(table, _)| table).try_for_each(|table| self.within(table.get_mut(), words))
    }

    fn within(&self, value: &mut DeValue<'a>, words: &[&str]) -> Result<()> {
        match value {
            DeValue::Table(table) => self.table(table, words),
            DeValue::Array(items) => self.array(items, words),
            _ => Err(self.set.error(format!("what contains {} is not a table", quote(words[0])))),
        }
    }

    /// Merges into the element of an array that the first word names.
    fn array(&self, items: &mut DeArray<'a>, words: &[&str]) -> Result<()> {
        let known: Vec<String> = items.iter().filter_map(|item| text_of(item.get_ref(), "name")).collect();
        let found = items.iter_mut().find(|item| text_of(item.get_ref(), "name").as_deref() == Some(words[0]));
        match (found, words) {
            (Some(item), [_, rest @ ..]) if !rest.is_empty() => self.within(item.get_mut(), rest),
            (Some(_), _) => Err(self.set.error("this is a whole table").expected("a key of it")),
            (None, _) => {
                let error = self.set.error(format!("unknown element {}", quote(words[0])));
                Err(error.hint(suggest(words[0], known.iter().map(String::as_str))))
            }
        }
    }

    fn table(&self, table: &mut DeTable<'a>, words: &[&str]) -> Result<()> {
        let [first, rest @ ..] = words else { return Ok(()) };
        if rest.is_empty() {
            self.put(table, first, self.value.clone());
            return Ok(());
        }
        let preset = table.get(*first).filter(|value| *first == "machine" && value.get_ref().is_str()).cloned();
        if preset.is_some() || table.get(*first).is_none() {
            let mut own = DeTable::new();
            if let Some(preset) = preset {
                own.insert(Spanned::new(preset.span(), "base".into()), preset);
            }
            self.put(table, first, Spanned::new(self.start..self.start + 1, DeValue::Table(own)));
        }
        match table.get_mut(*first) {
            Some(value) => self.within(value.get_mut(), rest),
            None => Ok(()),
        }
    }

    /// A table keeps the position of an existing key, so the old key is removed first.
    fn put(&self, table: &mut DeTable<'a>, key: &str, value: Spanned<DeValue<'a>>) {
        table.remove(key);
        table.insert(Spanned::new(self.start..self.start + 1, DeString::Owned(key.to_owned())), value);
    }
}

/// What the tables of an array go by in an override: a name, or what stands for one that is left out.
fn names(document: &DeTable, kind: &str) -> Vec<String> {
    let tables = document.get(kind).and_then(|value| value.get_ref().as_array());
    let name = |table: &Spanned<DeValue>| {
        let table = table.get_ref();
        let keys = if kind == "metric" { ["of", "of"] } else { ["name", "use"] };
        let own = keys.iter().find_map(|key| text_of(table, key));
        own.or_else(|| Some(Path::new(&text_of(table, "rt-app")?).file_stem()?.to_string_lossy().into_owned()))
    };
    tables.map_or_else(Vec::new, |tables| tables.iter().map(|table| name(table).unwrap_or_default()).collect())
}

fn text_of(table: &DeValue, key: &str) -> Option<String> {
    table.as_table()?.get(key)?.get_ref().as_str().map(str::to_owned)
}

/// The value with all of its spans moved.
fn moved(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = value.span().start + by..value.span().end.max(value.span().start + 1) + by;
    let inner = match value.into_inner() {
        DeValue::Array(items) => DeValue::Array(items.into_iter().map(|item| moved(item, by)).collect()),
        DeValue::Table(table) => {
            let key = |key: Spanned<_>| Spanned::new(key.span().start + by..key.span().end + by, key.into_inner());
            DeValue::Table(table.into_iter().map(|(name, value)| (key(name), moved(value, by))).collect())
        }
        other => other,
    };
    Spanned::new(span, inner)
}
