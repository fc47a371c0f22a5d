//! Overrides are merged into the document before anything of it is validated.
//!
//! The merged value is validated like any other, and a message about it names the override instead of a line of the
//! file.

use std::path::Path;

use schedlab_model::suggest;
use toml::de::{DeArray, DeString, DeTable, DeValue};
use toml::Spanned;

use crate::error::{quote, Result};
use crate::keys::{SCENARIO, VARIANT};
use crate::set::Set;
use crate::text::Text;

/// The arrays of tables whose elements a key names.
const NAMED: [&str; 5] = ["workload", "variant", "guest", "cgroup", "metric"];

/// Merges the overrides into a document, in their order.
pub(crate) fn apply<'a>(document: &mut DeTable<'a>, sets: &'a [Set], text: &Text<'a>) -> Result<()> {
    for (set, start) in sets.iter().zip(text.starts()) {
        let words = with_dots(document, set.words()?);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let merge = Merge { set, start, value: set.parsed(start)? };
        merge.root(document, &words)?;
    }
    Ok(())
}

/// The words, those that make up the name of a table as one word: a name with a dot need not be quoted.
fn with_dots(document: &DeTable, words: Vec<String>) -> Vec<String> {
    const MOST: usize = 8;
    let kind = words.first().filter(|kind| NAMED.contains(&kind.as_str()));
    let mut known = kind.map_or_else(Vec::new, |kind| names(document, kind));
    // Other keys name workloads too: tasks.WORKLOAD.nice.
    known.extend(names(document, "workload"));
    known.retain(|name| name.contains('.'));
    if known.is_empty() {
        return words;
    }
    let (mut found, mut rest) = (Vec::new(), &words[..]);
    while !rest.is_empty() {
        let lengths = (2..=rest.len().min(MOST)).rev();
        let length = lengths.map(|length| (length, rest[..length].join("."))).find(|(_, name)| known.contains(name));
        let (length, name) = length.unwrap_or_else(|| (1, rest[0].clone()));
        found.push(name);
        rest = &rest[length..];
    }
    found
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

    /// Merges into the table of this kind that the first word names; without a name into the only one, or into every
    /// variant.
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
pub(crate) fn names(document: &DeTable, kind: &str) -> Vec<String> {
    let tables = document.get(kind).and_then(|value| value.get_ref().as_array());
    let name = |table: &Spanned<DeValue>| {
        let table = table.get_ref();
        let keys = if kind == "metric" { ["of", "of"] } else { ["name", "use"] };
        let own = keys.iter().find_map(|key| text_of(table, key));
        own.or_else(|| Some(Path::new(&text_of(table, "rt-app")?).file_stem()?.to_string_lossy().into_owned()))
    };
    tables.map_or_else(Vec::new, |tables| tables.iter().map(|table| name(table).unwrap_or_default()).collect())
}

pub(crate) fn text_of(table: &DeValue, key: &str) -> Option<String> {
    table.as_table()?.get(key)?.get_ref().as_str().map(str::to_owned)
}
