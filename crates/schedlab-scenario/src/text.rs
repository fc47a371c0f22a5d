//! A TOML text: parses bytes to a document and translates offsets to lines and columns.

use std::ops::Range;

use toml::de::DeTable;
use toml::Spanned;

use crate::error::{Result, ScenarioError};
use crate::set::Set;

/// The maximum size of a file; the shipped ones have 1 to 10 KiB.
const LARGEST: usize = 1 << 20;

/// A text with its name.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    /// The name of the text in messages.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
    /// The offset of each line.
    lines: Vec<usize>,
    /// The overrides. Their values have offsets beyond the end of the text, one range after the other.
    sets: &'a [Set],
}

impl<'a> Text<'a> {
    /// Reads bytes as text. Refuses files that are too large or not UTF-8.
    pub fn new(name: &'a str, bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() > LARGEST {
            let message = format!("the file has {} bytes", bytes.len());
            return Err(ScenarioError::new(name, "", message).expected(format!("at most {LARGEST}")));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Text::of(name, text)),
            Err(error) => {
                let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let start = Text::of(name, &valid);
                Err(start.error(valid.len(), "", "the file is not UTF-8 text").expected("a TOML file"))
            }
        }
    }

    fn of(name: &'a str, text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Text { name, text, lines: std::iter::once(0).chain(ends).collect(), sets: &[] }
    }

    /// The text with overrides.
    pub fn with(self, sets: &'a [Set]) -> Self {
        Text { sets, ..self }
    }

    /// The first offset of the value of each override.
    pub fn starts(&self) -> impl Iterator<Item = usize> + use<'a> {
        let first = self.text.len() + 1;
        self.sets.iter().scan(first, |next, set| Some(std::mem::replace(next, *next + set.value.len() + 1)))
    }

    /// The override from which an offset is, if it is not of the text.
    pub fn set_at(&self, offset: usize) -> Option<&'a Set> {
        self.sets.iter().zip(self.starts()).take_while(|(_, start)| *start <= offset).last().map(|(set, _)| set)
    }

    /// Whether the text has nothing but whitespace and comments.
    pub fn is_blank(&self) -> bool {
        self.text
            .trim_start_matches('\u{feff}')
            .lines()
            .all(|line| line.trim().is_empty() || line.trim().starts_with('#'))
    }

    /// Parses the text and stops at the first syntax error.
    pub fn parse(&self) -> Result<Spanned<DeTable<'a>>> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.error(at, "", format!("not valid TOML: {}", error.message().replace('\n', ", ")))
        })
    }

    /// An error at an offset.
    pub fn error(&self, offset: usize, key: &str, message: impl Into<String>) -> Box<ScenarioError> {
        if let Some(set) = self.set_at(offset) {
            return ScenarioError::new(set.shown.clone(), key, message);
        }
        let (line, column) = self.position(offset);
        ScenarioError::new(self.name, key, message).at(line, column)
    }

    /// The line and column of an offset, both from 1; a byte order mark does not count.
    pub fn position(&self, offset: usize) -> (u32, u32) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line_at(offset);
        let before = &self.text[self.lines[line as usize - 1]..offset];
        (line, before.trim_start_matches('\u{feff}').chars().count() as u32 + 1)
    }

    /// The number of the line that contains an offset. The first line starts at 0, so there always is one.
    fn line_at(&self, offset: usize) -> u32 {
        self.lines.partition_point(|start| *start <= offset) as u32
    }

    /// The line of a span's start.
    pub fn line(&self, span: &Range<usize>) -> u32 {
        self.line_at(span.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let text = Text::of("t", "a = 1\n\u{e9}\u{e9} = 2\n");
        for (offset, place) in [(0, (1, 1)), (4, (1, 5)), (6, (2, 1)), (8, (2, 2)), (9, (2, 2)), (99, (3, 1))] {
            assert_eq!(text.position(offset), place, "{offset}");
        }
    }

    #[test]
    fn other_data_than_text_is_refused() {
        assert!(Text::new("t", b"a = \"\xff\"").unwrap_err().to_string().starts_with("t:1:6: the file is not UTF-8"));
        let junk = vec![b'x'; 10_000_000];
        assert_eq!(
            Text::new("t", &junk).unwrap_err().to_string(),
            "t: the file has 10000000 bytes; expected at most 1048576"
        );
    }
}
