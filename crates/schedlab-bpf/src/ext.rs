//! The `.BTF.ext` section: the source lines of instructions, and their CO-RE relocations.

use crate::{BpfError, Btf};

/// A record about an instruction: the name of its section, its byte offset there, and the record's other words.
pub(crate) struct Info<const N: usize> {
    pub section: String,
    pub offset: u32,
    pub words: [u32; N],
}

/// The records of `.BTF.ext`.
#[derive(Default)]
pub(crate) struct Ext {
    /// File name, line, and line and column (`struct bpf_line_info`).
    pub lines: Vec<Info<3>>,
    /// Type, access string, kind (`struct bpf_core_relo`).
    pub core: Vec<Info<3>>,
}

impl Ext {
    pub fn parse(data: &[u8], btf: &Btf) -> Result<Ext, BpfError> {
        let read = || {
            let word = |at: usize| Some(u32::from_le_bytes(data.get(at..at + 4)?.try_into().ok()?) as usize);
            let start = word(4)?;
            let part = |off: usize, len: usize| {
                let from = start.checked_add(off)?;
                data.get(from..from.checked_add(len)?)
            };
            let lines = records(part(word(16)?, word(20)?)?, btf)?;
            let core = if start >= 32 { records(part(word(24)?, word(28)?)?, btf)? } else { Vec::new() };
            Some(Ext { lines, core })
        };
        read().ok_or_else(|| BpfError::new("the BPF object is damaged: .BTF.ext"))
    }
}

fn records<const N: usize>(data: &[u8], btf: &Btf) -> Option<Vec<Info<N>>> {
    let word = |at: usize| Some(u32::from_le_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let mut out = Vec::new();
    if data.is_empty() {
        return Some(out);
    }
    let size = word(0)? as usize;
    let mut at = 4;
    while at < data.len() {
        let (section, count) = (btf.string(word(at)?).to_owned(), word(at + 4)?);
        at += 8;
        for _ in 0..count {
            let mut words = [0; N];
            for (n, value) in words.iter_mut().enumerate() {
                *value = word(at + 4 + 4 * n)?;
            }
            out.push(Info { section: section.clone(), offset: word(at)?, words });
            at = at.checked_add(size.max(4))?;
        }
    }
    Some(out)
}
