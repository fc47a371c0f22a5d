//! Reads numbers and strings from bytes in the byte order of the recording machine; `None` past the end.

/// A byte order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Endian {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// An unsigned number of 1 to 8 bytes.
    pub fn number(self, bytes: &[u8]) -> u64 {
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        match self {
            Endian::Little => bytes.iter().rev().fold(0, add),
            Endian::Big => bytes.iter().fold(0, add),
        }
    }
}

/// A position in some bytes.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
    endian: Endian,
}

impl<'a> Cursor<'a> {
    pub fn new(data: &'a [u8], endian: Endian) -> Cursor<'a> {
        Cursor { data, at: 0, endian }
    }

    /// How far it has come.
    pub fn position(&self) -> usize {
        self.at
    }

    pub fn set_endian(&mut self, endian: Endian) {
        self.endian = endian;
    }

    pub fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let end = self.at.checked_add(usize::try_from(length).ok()?)?;
        let taken = self.data.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| self.endian.number(bytes) as u16)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| self.endian.number(bytes) as u32)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| self.endian.number(bytes))
    }

    /// A string up to its NUL, which is taken too.
    pub fn text(&mut self) -> Option<String> {
        let length = self.data.get(self.at..)?.iter().position(|byte| *byte == 0)?;
        let text = String::from_utf8_lossy(self.take(length as u64)?).into_owned();
        self.u8()?;
        Some(text)
    }

    /// Whether it stands before these bytes; takes them if so.
    pub fn skip(&mut self, expected: &[u8]) -> bool {
        let here = self.data.get(self.at..).is_some_and(|rest| rest.starts_with(expected));
        if here {
            self.at += expected.len();
        }
        here
    }
}
