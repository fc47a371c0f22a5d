//! A tracepoint's `format` file: its id, and where each field lies in a record.

/// The layout of one event.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Format {
    /// Its number in records (`common_type`).
    pub id: u16,
    /// The folder it lies in, such as `sched`.
    pub system: String,
    /// Its name.
    pub name: String,
    /// Its fields, the common ones first.
    pub fields: Vec<Field>,
    /// How the kernel prints it.
    pub print: String,
}

/// One field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    pub name: String,
    pub offset: usize,
    pub size: usize,
    pub signed: bool,
    pub shape: Shape,
}

/// How a field's bytes are to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A number of `size` bytes.
    Number,
    /// `char[N]`: text up to a NUL.
    Text,
    /// `__data_loc char[]`: length and offset of text elsewhere in the record.
    Located,
    /// The same, with an offset from the field's own end.
    LocatedFromHere,
    /// Anything else.
    Bytes,
}

impl Format {
    /// Reads a format file; `None` without a name and an id.
    pub fn parse(system: &str, text: &str) -> Option<Format> {
        let mut format = Format { system: system.to_owned(), ..Format::default() };
        let mut has_id = false;
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_owned();
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().ok()?;
                has_id = true;
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                format.print = print.trim().to_owned();
            } else if line.starts_with("field:") || line.starts_with("field special:") {
                format.fields.extend(Field::parse(line));
            }
        }
        (has_id && !format.name.is_empty()).then_some(format)
    }

    /// The position of a field by its name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

impl Field {
    /// `field:char prev_comm[16]; offset:8; size:16; signed:0;`
    pub fn parse(line: &str) -> Option<Field> {
        let mut parts = line.split(';').map(str::trim);
        let declaration = parts.next()?.split_once(':')?.1.trim();
        let number = |part: Option<&str>, key: &str| part?.strip_prefix(key)?.trim().parse::<usize>().ok();
        let offset = number(parts.next(), "offset:")?;
        let size = number(parts.next(), "size:")?;
        let signed = number(parts.next(), "signed:").unwrap_or(0) != 0;
        let (kind, name) = declaration.rsplit_once(char::is_whitespace)?;
        let (name, array) = name.split_once('[').map_or((name, false), |(name, _)| (name, true));
        let chars = kind.split_ascii_whitespace().any(|word| matches!(word, "char" | "char[]"));
        let shape = match size {
            4 if kind.starts_with("__data_loc") => Shape::Located,
            4 if kind.starts_with("__rel_loc") => Shape::LocatedFromHere,
            _ if array && chars => Shape::Text,
            1 | 2 | 4 | 8 if !array => Shape::Number,
            _ => Shape::Bytes,
        };
        Some(Field { name: name.to_owned(), offset, size, signed, shape })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_every_kind() {
        let cases = [
            ("field:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;", ("prev_comm", 8, 16, false, Shape::Text)),
            ("field:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;", ("prev_pid", 24, 4, true, Shape::Number)),
            ("field:unsigned long long v;\toffset:8;\tsize:8;\tsigned:0;", ("v", 8, 8, false, Shape::Number)),
            ("field:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;", ("comm", 8, 4, false, Shape::Located)),
            ("field:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;", ("args", 16, 48, false, Shape::Bytes)),
            ("field:u64 addr;\toffset:8;\tsize:8;", ("addr", 8, 8, false, Shape::Number)),
        ];
        for (line, (name, offset, size, signed, shape)) in cases {
            let want = Field { name: name.into(), offset, size, signed, shape };
            assert_eq!(Field::parse(line), Some(want), "{line}");
        }
        for bad in ["field:", "field:int x;", "field:int x; offset:a; size:4;", "field:x; offset:1; size:4;"] {
            assert_eq!(Field::parse(bad), None, "{bad}");
        }
    }
}
