//! Typed access to a parsed document. Every value has its key and position, so that every error can name them.

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use schedlab_model::Nanos;
use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

use crate::error::{quote, Result, ScenarioError};
use crate::keys::Section;
use crate::text::Text;
use crate::units;
use schedlab_model::suggest;

/// A value with its key.
#[derive(Clone, Debug)]
pub(crate) struct Value<'a> {
    text: &'a Text<'a>,
    key: String,
    span: Range<usize>,
    value: &'a DeValue<'a>,
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Table<'a> {
    text: &'a Text<'a>,
    key: String,
    span: Range<usize>,
    table: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    /// The root of the document.
    pub fn root(text: &'a Text<'a>, document: &'a Spanned<DeTable<'a>>) -> Self {
        Table { text, key: String::new(), span: 0..0, table: document.get_ref() }
    }

    /// The parsed table.
    pub fn raw(&self) -> &'a DeTable<'a> {
        self.table
    }

    /// The same table with other contents, whose positions are in the same text.
    pub fn with<'b>(&'b self, contents: &'b DeTable<'a>) -> Table<'b> {
        Table { text: self.text, key: self.key.clone(), span: self.span.clone(), table: contents }
    }

    /// Refuses keys that are not in the section.
    pub fn only(self, section: &Section) -> Result<Self> {
        self.only_these(&section.names(), section.name)
    }

    /// Refuses keys other than these.
    pub fn only_these(self, valid: &[&str], what: &str) -> Result<Self> {
        for (name, _) in self.entries() {
            if !valid.contains(&name) {
                let error = self.key_error(name, format!("unknown key {}", quote(name)));
                return Err(error.expected(format!("a key of {what}")).hint(suggest(name, valid.iter().copied())));
            }
        }
        Ok(self)
    }

    /// The value of an optional key.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| self.value(name, value))
    }

    /// The value of a required key.
    pub fn require(&self, name: &str, expected: &str) -> Result<Value<'a>> {
        self.get(name).ok_or_else(|| self.error(format!("the key \"{name}\" is missing")).expected(expected))
    }

    /// The keys and values in the order of the text.
    pub fn entries(&self) -> Vec<(&'a str, Value<'a>)> {
        let mut entries: Vec<_> = self.table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries.into_iter().map(|(key, value)| (&**key.get_ref(), self.value(key.get_ref(), value))).collect()
    }

    /// The position of the key itself.
    fn key_span(&self, name: &str) -> Range<usize> {
        self.table.iter().find(|(key, _)| key.get_ref() == name).map_or(self.span.clone(), |(key, _)| key.span())
    }

    fn value(&self, name: &str, value: &'a Spanned<DeValue<'a>>) -> Value<'a> {
        let key = if self.key.is_empty() { name.to_owned() } else { format!("{}.{name}", self.key) };
        // The span of a table with a header is the header; a table of dotted keys has no span, so that of the key is
        // used.
        let span = if value.span().is_empty() { self.key_span(name) } else { value.span() };
        Value { text: self.text, key, span, value: value.get_ref() }
    }

    /// An error about the table as a whole.
    pub fn error(&self, message: impl Into<String>) -> Box<ScenarioError> {
        self.text.error(self.span.start, &self.key, message)
    }

    /// An error about a key of the table, at the position of the key.
    pub fn key_error(&self, name: &str, message: impl Into<String>) -> Box<ScenarioError> {
        let key = if self.key.is_empty() { name.to_owned() } else { format!("{}.{name}", self.key) };
        self.text.error(self.key_span(name).start, &key, message)
    }

    /// The line of its start.
    pub fn line(&self) -> u32 {
        self.text.line(&self.span)
    }

    /// The offset of its start.
    pub fn start(&self) -> usize {
        self.span.start
    }
}

impl<'a> Value<'a> {
    /// The parsed value.
    pub fn raw(&self) -> Spanned<DeValue<'a>> {
        Spanned::new(self.span.clone(), self.value.clone())
    }

    /// An error at this value.
    pub fn error(&self, message: impl Into<String>) -> Box<ScenarioError> {
        self.text.error(self.span.start, &self.key, message)
    }

    /// An error that quotes the value, with the reason why it is invalid.
    pub fn refuse(&self, why: &str) -> Box<ScenarioError> {
        let shown = match self.value {
            DeValue::String(string) => quote(string),
            DeValue::Integer(integer) => integer.to_string(),
            DeValue::Float(float) => float.to_string(),
            DeValue::Boolean(boolean) => boolean.to_string(),
            DeValue::Datetime(_) => "a date".into(),
            DeValue::Array(_) => "an array".into(),
            DeValue::Table(_) => "a table".into(),
        };
        self.error(if why.is_empty() { format!("{shown} is not valid here") } else { format!("{shown}: {why}") })
    }

    /// The value as JSON. A date, which is not valid for any key, becomes its text.
    pub fn json(&self) -> Json {
        match self.value {
            DeValue::String(text) => (&**text).into(),
            DeValue::Integer(integer) => self.as_integer().map_or_else(|| integer.to_string().into(), Json::from),
            DeValue::Float(float) => float.as_str().parse::<f64>().map_or(Json::Null, Json::from),
            DeValue::Boolean(boolean) => (*boolean).into(),
            DeValue::Datetime(date) => date.to_string().into(),
            DeValue::Array(_) => self.as_array().unwrap_or_default().iter().map(Value::json).collect(),
            DeValue::Table(_) => {
                let entries = self.as_table().map(|table| table.entries()).unwrap_or_default();
                entries
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), value.json()))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            }
        }
    }

    /// The value as a string.
    pub fn string(&self, expected: &str) -> Result<&'a str> {
        match self.value {
            DeValue::String(string) => Ok(string),
            _ => Err(self.refuse("").expected(expected)),
        }
    }

    /// The value, if it is a string.
    pub fn as_string(&self) -> Option<&'a str> {
        match self.value {
            DeValue::String(string) => Some(string),
            _ => None,
        }
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Result<bool> {
        match self.value {
            DeValue::Boolean(boolean) => Ok(*boolean),
            DeValue::String(text) if matches!(&**text, "true" | "false") => {
                Err(self.refuse("").expected("true or false").hint("remove the quotes"))
            }
            _ => Err(self.refuse("").expected("true or false")),
        }
    }

    /// The value as a whole number within a range.
    pub fn integer(&self, range: RangeInclusive<i64>) -> Result<i64> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        match self.value {
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .ok()
                .filter(|number| range.contains(number))
                .ok_or_else(|| self.refuse("out of range").expected(expected)),
            DeValue::String(text) if text.parse::<i64>().is_ok() => {
                Err(self.refuse("").expected(expected).hint("remove the quotes"))
            }
            _ => Err(self.refuse("").expected(expected)),
        }
    }

    /// The value, if it is a whole number that fits.
    pub fn as_integer(&self) -> Option<i64> {
        match self.value {
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix()).ok(),
            _ => None,
        }
    }

    /// The value as a whole or decimal number within a range.
    pub fn number(&self, range: RangeInclusive<f64>) -> Result<f64> {
        let parsed = match self.value {
            DeValue::Integer(_) => self.as_integer().map(|integer| integer as f64),
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            _ => None,
        };
        let expected = format!("a number from {} to {}", range.start(), range.end());
        parsed.filter(|number| range.contains(number)).ok_or_else(|| self.refuse("").expected(expected))
    }

    /// The value as a duration within a range.
    pub fn duration(&self, range: RangeInclusive<Nanos>) -> Result<Nanos> {
        let text = match self.value {
            DeValue::String(text) => text,
            DeValue::Integer(_) | DeValue::Float(_) => {
                let error = self.refuse("the unit is missing").expected(units::DURATION);
                return Err(error.hint("write the number and its unit in one string"));
            }
            _ => return Err(self.refuse("").expected(units::DURATION)),
        };
        let ns = units::duration(text).map_err(|(why, hint)| self.refuse(&why).expected(units::DURATION).hint(hint))?;
        if range.contains(&ns) {
            return Ok(ns);
        }
        let (low, high) = (units::show_duration(*range.start()), units::show_duration(*range.end()));
        Err(self.refuse("out of range").expected(format!("a duration from {low} to {high}")))
    }

    /// The value as a percentage within 0..=most.
    pub fn percent(&self, most: f64) -> Result<f64> {
        let text = match self.value {
            DeValue::String(text) => text,
            DeValue::Integer(_) | DeValue::Float(_) => {
                return Err(self.refuse("the % sign is missing").expected(units::PERCENT).hint("write it as a string"))
            }
            _ => return Err(self.refuse("").expected(units::PERCENT)),
        };
        let value =
            units::percent(text).map_err(|(why, hint)| self.refuse(&why).expected(units::PERCENT).hint(hint))?;
        if value > most {
            return Err(self.refuse("out of range").expected(format!("at most {most}%")));
        }
        Ok(value)
    }

    /// The value as one of several words; returns what the word stands for.
    pub fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Result<T> {
        let names = || words.iter().map(|(word, _)| *word);
        let expected = format!("one of {}", names().collect::<Vec<_>>().join(", "));
        let given = self.string(&expected)?;
        match words.iter().find(|(word, _)| *word == given) {
            Some((_, meaning)) => Ok(*meaning),
            None => Err(self.unknown("value", given, names())),
        }
    }

    /// The error for an unknown name.
    pub fn unknown<'n>(&self, what: &str, given: &str, valid: impl IntoIterator<Item = &'n str>) -> Box<ScenarioError> {
        self.error(format!("unknown {what} {}", quote(given))).hint(suggest(given, valid))
    }

    /// The directory to which a path is relative: `dir`, or the current directory if an override sets the value.
    pub fn dir<'d>(&self, dir: &'d Path) -> &'d Path {
        if self.is_set() {
            Path::new("")
        } else {
            dir
        }
    }

    /// Whether an override sets the value.
    pub fn is_set(&self) -> bool {
        self.text.set_at(self.span.start).is_some()
    }

    /// The elements of an array; their key is that of the array.
    pub fn array(&self, expected: &str) -> Result<Vec<Value<'a>>> {
        self.as_array().ok_or_else(|| self.refuse("").expected(expected))
    }

    /// The elements, if the value is an array.
    pub fn as_array(&self) -> Option<Vec<Value<'a>>> {
        let DeValue::Array(array) = self.value else { return None };
        let value = |item: &'a Spanned<DeValue<'a>>| Value { span: item.span(), value: item.get_ref(), ..self.clone() };
        Some(array.iter().map(value).collect())
    }

    /// The value as a table with any keys.
    pub fn table(&self, expected: &str) -> Result<Table<'a>> {
        self.as_table().ok_or_else(|| self.refuse("").expected(expected))
    }

    /// The value, if it is a table.
    pub fn as_table(&self) -> Option<Table<'a>> {
        let DeValue::Table(table) = self.value else { return None };
        Some(Table { text: self.text, key: self.key.clone(), span: self.span.clone(), table })
    }

    /// The line and column of the value.
    pub fn position(&self) -> (u32, u32) {
        self.text.position(self.span.start)
    }

    /// The line of its start.
    pub fn line(&self) -> u32 {
        self.text.line(&self.span)
    }
}
