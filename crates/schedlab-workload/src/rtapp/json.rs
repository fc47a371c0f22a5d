//! The JSON that rt-app and workgen read: with comments, trailing commas, bare keys, keys without a value, and repeated
//! keys, which are kept in order. Every value has its position in the file.

use std::cell::Cell;

use super::RtAppError;

/// A place in one of the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct At {
    /// Index of the file.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Json {
    /// A key that stands alone: workgen fills in the value.
    Absent,
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

/// A value with its place.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Node {
    pub at: At,
    pub json: Json,
}

/// A key with its value.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Member {
    pub key: String,
    pub at: At,
    pub value: Node,
}

impl Json {
    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Json::Absent => "nothing",
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Int(_) => "a whole number",
            Json::Float(_) => "a number with a fraction",
            Json::Text(_) => "a string",
            Json::Array(_) => "an array",
            Json::Object(_) => "an object",
        }
    }
}

/// Deepest nesting, that of the library rt-app reads with.
const MAX_DEPTH: usize = 32;
/// Most values of one file.
const MAX_NODES: usize = 1_000_000;

/// Reads one file.
pub(super) fn parse(file: u32, bytes: &[u8]) -> Result<Node, RtAppError> {
    let start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut parser = Parser { bytes, pos: start, file, line: 1, column: Cell::new((start, 1)), nodes: 0 };
    parser.skip()?;
    if parser.peek().is_none() {
        return Err(parser.error("the file is empty").hint("an object with \"tasks\" and, if wanted, \"global\""));
    }
    let node = parser.value(0)?;
    parser.skip()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.error(format!("{} after the end of the file's value", parser.found()))),
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    pos: usize,
    file: u32,
    line: u32,
    /// A position of this line and its column; moved forwards whenever a column is asked for.
    column: Cell<(usize, u32)>,
    nodes: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    fn at(&self) -> At {
        let (from, column) = self.column.get();
        // Characters, not bytes: continuation bytes of UTF-8 do not count.
        let passed = self.bytes[from..self.pos].iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        let column = column.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
        self.column.set((self.pos, column));
        At { file: self.file, line: self.line, column }
    }

    fn error(&self, what: impl Into<String>) -> RtAppError {
        RtAppError::at(self.at(), "", what)
    }

    /// The next character, for messages.
    fn found(&self) -> String {
        let rest = &self.bytes[self.pos..self.bytes.len().min(self.pos + 4)];
        let text = match std::str::from_utf8(rest) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
        };
        match (text.chars().next(), rest.first()) {
            (Some(c), _) => format!("{c:?}"),
            (None, Some(byte)) => format!("byte {byte:#04x}, which is not UTF-8,"),
            (None, None) => "the end of the file".to_string(),
        }
    }

    fn bump(&mut self) {
        if self.bytes[self.pos] == b'\n' {
            self.line = self.line.saturating_add(1);
            self.column.set((self.pos + 1, 1));
        }
        self.pos += 1;
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), RtAppError> {
        while let Some(byte) = self.peek() {
            let next = self.bytes.get(self.pos + 1).copied();
            match (byte, next) {
                (b' ' | b'\t' | b'\r' | b'\n', _) => self.bump(),
                (b'/', Some(b'/')) => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.pos += 1;
                    }
                }
                (b'/', Some(b'*')) => self.block_comment()?,
                _ => break,
            }
        }
        Ok(())
    }

    fn block_comment(&mut self) -> Result<(), RtAppError> {
        let start = self.error("an unterminated comment").hint("*/");
        self.pos += 2;
        while self.pos < self.bytes.len() {
            if self.bytes[self.pos..].starts_with(b"*/") {
                self.pos += 2;
                return Ok(());
            }
            self.bump();
        }
        Err(start)
    }

    fn value(&mut self, depth: usize) -> Result<Node, RtAppError> {
        let at = self.at();
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.error(format!("more than {MAX_NODES} values in one file")));
        }
        if depth > MAX_DEPTH {
            return Err(self.error(format!("nested more than {MAX_DEPTH} deep")));
        }
        let json = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(quote @ (b'"' | b'\'')) => Json::Text(self.string(quote)?),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => self.number()?,
            Some(byte) if is_word(byte) => self.word_value()?,
            _ => return Err(self.error(format!("{} where a value was expected", self.found()))),
        };
        Ok(Node { at, json })
    }

    fn object(&mut self, depth: usize) -> Result<Json, RtAppError> {
        self.pos += 1;
        let mut members = Vec::new();
        loop {
            self.skip()?;
            match self.peek() {
                Some(b'}') => {
                    self.pos += 1;
                    return Ok(Json::Object(members));
                }
                None => return Err(self.error("the file ends inside an object").hint("}")),
                _ => members.push(self.member(depth)?),
            }
            self.separator(b'}')?;
        }
    }

    fn member(&mut self, depth: usize) -> Result<Member, RtAppError> {
        let at = self.at();
        let key = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.string(quote)?,
            Some(byte) if is_word(byte) => self.word(),
            _ => return Err(self.error(format!("{} where a key was expected", self.found())).hint("\"name\" : value")),
        };
        self.skip()?;
        let value = match self.peek() {
            Some(b':') => {
                self.pos += 1;
                self.skip()?;
                self.value(depth + 1)?
            }
            Some(b',' | b'}') => Node { at, json: Json::Absent },
            _ => return Err(self.error(format!("{} after the key \"{}\"", self.found(), short(&key))).hint(":")),
        };
        Ok(Member { key, at, value })
    }

    fn array(&mut self, depth: usize) -> Result<Json, RtAppError> {
        self.pos += 1;
        let mut items = Vec::new();
        loop {
            self.skip()?;
            match self.peek() {
                Some(b']') => {
                    self.pos += 1;
                    return Ok(Json::Array(items));
                }
                None => return Err(self.error("the file ends inside an array").hint("]")),
                _ => items.push(self.value(depth + 1)?),
            }
            self.separator(b']')?;
        }
    }

    /// A comma, or the closing bracket without taking it.
    fn separator(&mut self, close: u8) -> Result<(), RtAppError> {
        self.skip()?;
        match self.peek() {
            Some(b',') => {
                self.pos += 1;
                Ok(())
            }
            Some(byte) if byte == close => Ok(()),
            _ => {
                Err(self.error(format!("{} between two values", self.found())).hint(format!(", or {}", close as char)))
            }
        }
    }

    fn string(&mut self, quote: u8) -> Result<String, RtAppError> {
        let open = self.error("an unterminated string").hint((quote as char).to_string());
        self.pos += 1;
        let mut bytes = Vec::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => return Err(open),
                b'\\' => {
                    self.pos += 1;
                    self.escape(&mut bytes)?;
                }
                byte if byte == quote => {
                    self.pos += 1;
                    return String::from_utf8(bytes).map_err(|_| open_utf8(open));
                }
                byte => {
                    bytes.push(byte);
                    self.pos += 1;
                }
            }
        }
        Err(open)
    }

    fn escape(&mut self, into: &mut Vec<u8>) -> Result<(), RtAppError> {
        let byte = self.peek().unwrap_or(b'\n');
        let plain = match byte {
            b'"' | b'\'' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode_escape(into),
            _ => return Err(self.error(format!("{} after a backslash", self.found()))),
        };
        into.push(plain);
        self.pos += 1;
        Ok(())
    }

    fn unicode_escape(&mut self, into: &mut Vec<u8>) -> Result<(), RtAppError> {
        let digits = self.bytes.get(self.pos + 1..self.pos + 5).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        // A half of a surrogate pair has no character: it becomes the replacement character.
        let Some(code) = code else { return Err(self.error("\\u without four hexadecimal digits")) };
        let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        into.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        self.pos += 5;
        Ok(())
    }

    fn word(&mut self) -> String {
        let start = self.pos;
        while self.peek().is_some_and(|byte| is_word(byte) || matches!(byte, b'0'..=b'9' | b'-' | b'.' | b'/')) {
            if self.bytes[self.pos..].starts_with(b"//") || self.bytes[self.pos..].starts_with(b"/*") {
                break;
            }
            self.pos += 1;
        }
        // Only ASCII bytes were taken.
        String::from_utf8_lossy(&self.bytes[start..self.pos]).into_owned()
    }

    fn word_value(&mut self) -> Result<Json, RtAppError> {
        let (pos, unknown) = (self.pos, self.error(""));
        let word = self.word();
        match word.to_ascii_lowercase().as_str() {
            "true" => Ok(Json::Bool(true)),
            "false" => Ok(Json::Bool(false)),
            "null" => Ok(Json::Null),
            _ => {
                self.pos = pos;
                let what = format!("`{}` is not a value", short(&word));
                Err(RtAppError { what, ..unknown }
                    .hint("a string in quotes, a number, true, false, null, [..] or {..}"))
            }
        }
    }

    fn number(&mut self) -> Result<Json, RtAppError> {
        let start = self.pos;
        let wrong = self.error("");
        while self.peek().is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) {
            self.pos += 1;
        }
        // Only ASCII bytes were taken.
        let text = String::from_utf8_lossy(&self.bytes[start..self.pos]).into_owned();
        if let Ok(number) = text.parse::<i64>() {
            return Ok(Json::Int(number));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && text.contains(['.', 'e', 'E']) => Ok(Json::Float(number)),
            _ => Err(RtAppError { what: format!("`{}` is not a number in range", short(&text)), ..wrong }),
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// At most 40 characters of a text, for messages.
pub(super) fn short(text: &str) -> String {
    let mut cut: String = text.chars().take(40).collect();
    if cut.len() < text.len() {
        cut.push_str("..");
    }
    cut
}

fn open_utf8(error: RtAppError) -> RtAppError {
    RtAppError { what: "a string that is not UTF-8".to_string(), hint: None, ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<(String, u32, u32)> {
        match parse(0, text.as_bytes()).unwrap().json {
            Json::Object(members) => members.into_iter().map(|m| (m.key, m.at.line, m.at.column)).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_dialect_is_read_with_places() {
        let text = "\u{feff}/* a */ { // b\n  bare : 1,\n\t\"quoted\" : [1, 2,],\n  run : 1, run : 2, \"suspend\",\n 'é' : true, \"x\": -1.5e3,}\n";
        let want = [
            ("bare", 2, 3),
            ("quoted", 3, 2),
            ("run", 4, 3),
            ("run", 4, 12),
            ("suspend", 4, 21),
            ("é", 5, 2),
            ("x", 5, 14),
        ];
        assert_eq!(keys(text), want.map(|(key, line, column)| (key.to_string(), line, column)));
    }

    #[test]
    fn errors_have_a_position() {
        let deep = "[".repeat(100);
        let cases: &[(&str, &str, (u32, u32))] = &[
            ("", "empty", (1, 1)),
            ("  // only a comment\n", "empty", (2, 1)),
            ("{", "ends inside an object", (1, 2)),
            ("[1", "end of the file between", (1, 3)),
            ("{} x", "after the end", (1, 4)),
            ("{\"a\" 1}", "after the key \"a\"", (1, 6)),
            ("{\"a\":}", "where a value was expected", (1, 6)),
            ("{\"a\":1 \"b\":2}", "between two values", (1, 8)),
            ("{:1}", "where a key was expected", (1, 2)),
            ("{\"a\":\"x\n\"}", "an unterminated string", (1, 6)),
            ("/* never", "an unterminated comment", (1, 1)),
            ("{\"a\": yes}", "`yes` is not a value", (1, 7)),
            ("{\"a\": 99999999999999999999}", "not a number in range", (1, 7)),
            ("{\"a\": 1-2}", "not a number", (1, 7)),
            ("{\"a\": \"\\q\"}", "after a backslash", (1, 9)),
            ("{\"a\": \"\\u12\"}", "four hexadecimal", (1, 9)),
            (&deep, "nested more than", (1, 34)),
            ("\u{1}", "where a value was expected", (1, 1)),
        ];
        for (text, want, place) in cases {
            let error = parse(0, text.as_bytes()).unwrap_err();
            assert!(error.what.contains(want), "{text:?}: {}", error.what);
            assert_eq!((error.line, error.column), *place, "{text:?}: {}", error.what);
        }
        assert!(parse(0, b"{\"\xff\":1}").unwrap_err().what.contains("not UTF-8"));
        assert!(parse(0, b"\xff").unwrap_err().what.contains("byte 0xff"));
    }
}
