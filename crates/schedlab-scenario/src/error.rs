//! The error of this crate: the place in a file, what is wrong, what was expected, and a hint.

use std::fmt;

/// The result type of this crate. The error is boxed because it is much larger than most results.
pub type Result<T> = std::result::Result<T, Box<ScenarioError>>;

/// Why a scenario or machine file cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScenarioError {
    /// The file as the user named it, or `command line`.
    pub file: Option<String>,
    /// The line, from 1, if the error has a position in a text.
    pub line: Option<u32>,
    /// The column in characters, from 1, if the error has a position in a text.
    pub column: Option<u32>,
    /// The dotted key that the error is about, if any.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What was expected, unless the message says so.
    pub expected: Option<String>,
    /// What to do about it, usually the nearest valid name.
    pub hint: Option<String>,
}

impl ScenarioError {
    /// An error about a key of a file, or about the whole file if the key is empty.
    #[must_use]
    pub fn new(file: impl Into<String>, key: &str, message: impl Into<String>) -> Box<Self> {
        let (file, message) = (Some(file.into()), message.into());
        Box::new(ScenarioError { file, key: some(key), message, ..Default::default() })
    }

    /// The exit code of a command that fails with this error: bad input.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        2
    }

    /// What is wrong and what was expected, on one line, without the position.
    #[must_use]
    pub fn bare(&self) -> String {
        let mut parts: Vec<String> = self.key.iter().cloned().collect();
        parts.push(self.message.clone());
        let expected = self.expected.as_ref().map_or_else(String::new, |expected| format!("; expected {expected}"));
        one_line(&(parts.join(": ") + &expected))
    }

    /// Adds a position.
    #[must_use]
    pub fn at(mut self: Box<Self>, line: u32, column: u32) -> Box<Self> {
        (self.line, self.column) = (Some(line), Some(column));
        self
    }

    /// Adds what was expected.
    #[must_use]
    pub fn expected(mut self: Box<Self>, expected: impl Into<String>) -> Box<Self> {
        self.expected = some(expected);
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.hint = some(hint);
        self
    }
}

fn some(text: impl Into<String>) -> Option<String> {
    Some(text.into()).filter(|text| !text.is_empty())
}

/// `file:line:column: key: message; expected ...`, always on one line and without the hint.
impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            f.write_str(&one_line(file))?;
            if let (Some(line), Some(column)) = (self.line, self.column) {
                write!(f, ":{line}:{column}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.bare())
    }
}

impl std::error::Error for ScenarioError {}

/// Quotes input for a message: control characters are escaped and long text is truncated.
pub(crate) fn quote(given: &str) -> String {
    const LONGEST: usize = 60;
    let shown: String = if given.chars().count() > LONGEST {
        given.chars().take(LONGEST - 3).chain("...".chars()).collect()
    } else {
        given.to_owned()
    };
    format!("\"{}\"", one_line(&shown))
}

fn one_line(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_displayed_on_one_line() {
        let bare = ScenarioError::new("a.toml", "", "the file is empty");
        assert_eq!(bare.to_string(), "a.toml: the file is empty");
        let placed = ScenarioError::new("a.toml", "seeds", "a\nb").expected("a number").at(3, 9);
        assert_eq!(placed.to_string(), "a.toml:3:9: seeds: a\\nb; expected a number");
        assert_eq!(placed.bare(), "seeds: a\\nb; expected a number");
        assert_eq!(placed.exit_code(), 2);
    }

    #[test]
    fn quotations_are_short() {
        assert_eq!(quote("a\tb"), "\"a\\tb\"");
        assert_eq!(quote(&"x".repeat(1000)).len(), 62);
    }
}
