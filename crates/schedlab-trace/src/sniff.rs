//! What a file is, by its first bytes: a format that is read, or one that is not, and how to get what can be read.

use prost::Message;

use crate::error::Fault;
use crate::perf_data;
use crate::perfetto::TracePacket;
use crate::tracepoint;

/// The formats that are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    Gzip,
    Perfetto,
    TraceDat,
    PerfData,
    /// Text behind the line `TRACE:`, compressed with zlib (`atrace -z`).
    Atrace,
    Text,
}

/// `atrace -z`.
pub const ATRACE: &[u8] = b"TRACE:\n";

/// A kind of file that is not read.
struct Foreign {
    begins: &'static [u8],
    what: &'static str,
    hint: &'static str,
}

const RECORD: &str = "record with perf sched record, trace-cmd record -e sched or schedlab record";
const CTF: &str = "a stream or the metadata of a CTF trace (LTTng, babeltrace), which is not read";
const COMPRESSED: &str = "a compressed file; only gzip is read directly";

const FOREIGN: [Foreign; 16] = [
    Foreign { begins: b"PK\x03\x04", what: "a zip archive", hint: "unpack it with unzip and name the trace in it" },
    Foreign { begins: b"\x28\xb5\x2f\xfd", what: COMPRESSED, hint: "unpack it with zstd -d" },
    Foreign { begins: b"\xfd7zXZ\0", what: COMPRESSED, hint: "unpack it with xz -d" },
    Foreign { begins: b"BZh", what: COMPRESSED, hint: "unpack it with bunzip2" },
    Foreign { begins: b"\x04\x22\x4d\x18", what: COMPRESSED, hint: "unpack it with lz4 -d" },
    Foreign { begins: b"\xc1\x1f\xfc\xc1", what: CTF, hint: RECORD },
    Foreign { begins: b"\xc1\xfc\x1f\xc1", what: CTF, hint: RECORD },
    Foreign { begins: b"\x57\x1d\xd1\x75", what: CTF, hint: RECORD },
    Foreign { begins: b"\x75\xd1\x1d\x57", what: CTF, hint: RECORD },
    Foreign { begins: b"/* CTF", what: CTF, hint: RECORD },
    Foreign { begins: b"\x9f\xeb", what: "type information of BPF (BTF), not a trace", hint: RECORD },
    Foreign { begins: b"#version", what: "a Best Trace Format file (BTF of AUTOSAR), which is not read", hint: RECORD },
    Foreign {
        begins: b"SIMPLEPERF",
        what: "a report of simpleperf, which holds samples and no scheduler events",
        hint:
            "record the scheduler on Android with Perfetto (data source linux.ftrace, events sched/*) or atrace sched",
    },
    Foreign {
        begins: b"PERFFILE",
        what: "a perf.data of version 1 (perf before 2.6.38), which is not read",
        hint: "print it as text with that perf: perf script",
    },
    Foreign { begins: b"\x7fELF", what: "an ELF file, not a trace", hint: RECORD },
    Foreign {
        begins: b"SQLite format 3\0",
        what: "an SQLite database, not a trace",
        hint: "name the .pftrace file that it was made from",
    },
];

impl Content {
    /// The format of a file that begins like this; the fault says what another file is.
    pub fn of(start: &[u8]) -> Result<Content, Fault> {
        if let Some(Foreign { what, hint, .. }) = FOREIGN.iter().find(|foreign| start.starts_with(foreign.begins)) {
            return Err(Fault::foreign(*what, *hint));
        }
        Ok(match start {
            [] => return Err(Fault::foreign("the file is empty", RECORD)),
            [0x1f, 0x8b, ..] => Content::Gzip,
            start if start.starts_with(tracepoint::MAGIC) => Content::TraceDat,
            start if start.starts_with(perf_data::MAGIC) || start.starts_with(b"2ELIFREP") => Content::PerfData,
            start if start.starts_with(ATRACE) && start.get(ATRACE.len()) == Some(&0x78) => Content::Atrace,
            start if is_perfetto(start) => Content::Perfetto,
            start if is_json(start) => {
                let what = "JSON, not a trace of the scheduler: the Chrome format holds slices of programs only";
                return Err(Fault::foreign(what, "name the .pftrace or ftrace file that it was made from"));
            }
            _ => Content::Text,
        })
    }
}

/// A Perfetto trace begins with the key of its first packet, a line feed, and its length. Text may begin with empty
/// lines; then what follows is no packet.
fn is_perfetto(start: &[u8]) -> bool {
    match start {
        [b'\n', length, rest @ ..] if matches!(length, b'\n' | b'\r' | b' ' | b'#') => {
            let length = usize::from(*length);
            let ends = rest.get(length).is_none_or(|next| *next == b'\n');
            ends && rest.get(..length).is_some_and(|packet| TracePacket::decode(packet).is_ok())
        }
        [b'\n', length, ..] => {
            !matches!(length, b'\t' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'<') || {
                // A letter or digit at the beginning of the second line of text, or a packet of that length.
                let rest = &start[2..];
                rest.get(..usize::from(*length)).is_some_and(|packet| TracePacket::decode(packet).is_ok())
            }
        }
        _ => false,
    }
}

fn is_json(start: &[u8]) -> bool {
    let mut text = start.iter().filter(|byte| !byte.is_ascii_whitespace());
    matches!((text.next(), text.next()), (Some(b'{'), Some(b'"' | b'}')) | (Some(b'['), Some(b'{' | b']')))
}

/// What a directory is, by the names in it.
pub fn directory(path: &std::path::Path) -> Fault {
    let has = |name: &str| path.join(name).exists();
    if has("header") && (has("data") || has("data.0")) || has("data.0") {
        let hint = "print it as text: perf script -i DIRECTORY > trace.txt, or record without --threads";
        return Fault::foreign("a directory of perf record --threads, which is not read", hint);
    }
    if has("metadata") || has("kernel") {
        return Fault::foreign("a directory of a CTF trace (LTTng), which is not read", RECORD);
    }
    Fault::foreign("this is a directory, not a trace", "name the file in it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_beginning() {
        let packet = |length: u8| {
            let mut bytes = vec![b'\n', length, 0x18, 0, 0xea, 0x02, length - 5];
            bytes.push(0x22);
            bytes.push(length - 7);
            bytes.extend(vec![b'm'; usize::from(length) - 7]);
            bytes
        };
        for length in [10, 13, 32, 35, b'a', b'0'] {
            let bytes = [packet(length), packet(20)].concat();
            assert_eq!(Content::of(&bytes).ok(), Some(Content::Perfetto), "{length}");
        }
        for text in
            ["\n\n# tracer: nop\n", "\r\n# tracer: nop", "\n# tracer: nop\n#\n#                 _-----=>", "\n a-1 [0"]
        {
            assert_eq!(Content::of(text.as_bytes()).ok(), Some(Content::Text), "{text:?}");
        }
        for text in ["\ncpus=2\n   a-1 [000]", "\nTRACE:\n# tracer: nop\n", "# tracer: nop", "hello", "[000] x"] {
            assert_eq!(Content::of(text.as_bytes()).ok(), Some(Content::Text), "{text:?}");
        }
        let foreign: [(&[u8], &str); 6] = [
            (b"PK\x03\x04", "zip"),
            (b"{\"traceEvents\": []}", "JSON"),
            (b"[\n {\"ph\": 1}]", "JSON"),
            (b"\xc1\x1f\xfc\xc1", "CTF"),
            (b"/* CTF 1.8 */", "CTF"),
            (b"", "empty"),
        ];
        for (bytes, want) in foreign {
            let said = Content::of(bytes).unwrap_err().to_string();
            assert!(said.contains(want), "{said}");
        }
    }
}
