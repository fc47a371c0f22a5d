//! Writes a document as TOML, in the order of its text: the scenario that a file and its overrides make together.

use std::fmt::Write as _;

use toml::de::{DeTable, DeValue};
use toml::Spanned;
use toml_writer::{ToTomlKey, ToTomlValue};

/// The widest line on which an array of tables, such as the steps of a program, is written.
const WIDEST: usize = 110;

/// A document as text: values first, then `[[tables]]`, whose own tables are written inline.
pub(crate) fn document(root: &DeTable) -> String {
    let mut text = String::new();
    let (tables, values): (Vec<_>, Vec<_>) = entries(root).into_iter().partition(|(_, value)| is_tables(value));
    lines(&mut text, &values);
    for (key, value) in tables {
        for table in value.as_array().into_iter().flatten() {
            let entries = table.get_ref().as_table().map(entries).unwrap_or_default();
            line(&mut text, &format!("\n[[{}]]", key.to_toml_key()));
            lines(&mut text, &entries);
        }
    }
    text
}

type Entry<'t, 'a> = (&'t str, &'t DeValue<'a>);

/// Keys and values in the order of the text.
fn entries<'t, 'a>(table: &'t DeTable<'a>) -> Vec<Entry<'t, 'a>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter().map(|(key, value)| (&**key.get_ref(), value.get_ref())).collect()
}

fn is_tables(value: &DeValue) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(|item| item.get_ref().is_table()))
}

fn lines(text: &mut String, entries: &[Entry]) {
    for (key, value) in entries {
        let start = format!("{} = ", key.to_toml_key());
        line(text, &(start.clone() + &laid_out(value, start.len(), 0)));
    }
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

/// A value on one line, or an array with one element per line if it is too wide for that.
fn laid_out(value: &DeValue, used: usize, depth: usize) -> String {
    let short = inline(value);
    match value {
        DeValue::Array(items) if used + short.len() > WIDEST && !items.is_empty() => {
            let margin = "  ".repeat(depth + 1);
            let items = items.iter().map(|item| {
                let shown = laid_out(item.get_ref(), margin.len(), depth + 1);
                format!("{margin}{shown},\n")
            });
            format!("[\n{}{}]", items.collect::<String>(), "  ".repeat(depth))
        }
        _ => short,
    }
}

fn inline(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => text.to_toml_value(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(boolean) => boolean.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(items) => format!("[{}]", joined(items.iter().map(Spanned::get_ref).map(inline))),
        DeValue::Table(table) => {
            let pair = |(key, value): Entry| format!("{} = {}", key.to_toml_key(), inline(value));
            match joined(entries(table).into_iter().map(pair)) {
                empty if empty.is_empty() => "{}".into(),
                pairs => format!("{{ {pairs} }}"),
            }
        }
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
