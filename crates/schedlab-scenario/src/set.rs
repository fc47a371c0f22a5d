//! Overrides of single keys, `--set KEY=VALUE`.

use serde_json::Value as Json;
use toml::de::{DeString, DeValue};
use toml::Spanned;
use toml_writer::ToTomlValue;

use crate::error::{Result, ScenarioError};

/// One override.
///
/// | key | what it overrides |
/// |---|---|
/// | `duration`, `machine`, `arm.vm.memory` | a key of the scenario, at any depth |
/// | `machine.topology.cores-per-llc` | a key of the machine; a preset becomes the base of an inline machine |
/// | `workload.NAME.KEY`, likewise `guest`, `cgroup`, `variant` | a key of the table of that name |
/// | `metric.OF.KEY` | a key of every metric `OF` |
/// | `workload.KEY`, likewise `guest`, `cgroup`, `metric` | the same, if there is only one table |
/// | `variant.KEY`, or `KEY` alone: `knobs.base_slice` | a key of every variant |
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set {
    /// The name in messages: `--set KEY=VALUE` or `command line`.
    pub shown: String,
    /// The key: words separated by dots, quoted where they contain one and are not the name of a table.
    pub key: String,
    /// A value in TOML; a text that is not TOML, such as `3ms`, stands for itself.
    pub value: String,
}

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

    pub(crate) fn error(&self, message: impl Into<String>) -> Box<ScenarioError> {
        ScenarioError::new(self.shown.clone(), &self.key, message)
    }

    /// The words of the key.
    pub(crate) fn words(&self) -> Result<Vec<String>> {
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

    fn is_kernel(&self) -> bool {
        self.key == "kernel" || self.key.ends_with(".kernel")
    }

    /// The value, with spans from `start`.
    pub(crate) fn parsed(&self, start: usize) -> Result<Spanned<DeValue<'_>>> {
        match DeValue::parse(&self.value) {
            // A version such as 6.1 is text though it looks like a number.
            Ok(value) if self.is_kernel() && matches!(value.get_ref(), DeValue::Float(_) | DeValue::Integer(_)) => {
                Ok(Spanned::new(start..start + 1, DeValue::String(DeString::Borrowed(&self.value))))
            }
            Ok(value) if !matches!(value.get_ref(), DeValue::Datetime(_)) => Ok(moved(value, start)),
            Err(error) if self.value.starts_with(['"', '\'', '[', '{']) => {
                Err(self.error(format!("not valid TOML: {}", error.message().replace('\n', ", "))))
            }
            _ => Ok(Spanned::new(start..start + 1, DeValue::String(DeString::Borrowed(&self.value)))),
        }
    }
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
