//! What perf.data's TRACING_DATA and the head of trace.dat say: format files and names of tasks.

use schedlab_model::Pid;

use super::{Cursor, Endian, Field, Format};

/// The magic both begin with.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The parts of the metadata that matter here.
#[derive(Clone, Default, Debug)]
pub struct Metadata {
    /// The formats of all events.
    pub formats: Vec<Format>,
    /// Names of tasks.
    pub names: Vec<(Pid, String)>,
    /// Where a ring-buffer page keeps its size, how wide that is, and where its events begin.
    pub page: PageLayout,
}

/// The head of a ring-buffer page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageLayout {
    pub commit_offset: usize,
    pub commit_size: usize,
    pub data_offset: usize,
}

impl Default for PageLayout {
    fn default() -> Self {
        PageLayout { commit_offset: 8, commit_size: 8, data_offset: 16 }
    }
}

/// What the first bytes say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preamble {
    /// `6`, `7`, or perf's `0.6`.
    pub version: String,
    pub endian: Endian,
    /// Size of a ring-buffer page.
    pub page_size: u32,
}

impl Preamble {
    /// Reads it and sets the cursor's byte order. The error names the part that is missing.
    pub fn parse(cursor: &mut Cursor<'_>) -> Result<Preamble, &'static str> {
        if !cursor.skip(MAGIC) {
            return Err("the magic of the tracing data");
        }
        let version = cursor.text().ok_or("the version")?;
        let endian = if cursor.u8().ok_or("the byte order")? == 0 { Endian::Little } else { Endian::Big };
        cursor.set_endian(endian);
        cursor.u8().ok_or("the size of a long")?;
        let page_size = cursor.u32().ok_or("the page size")?;
        Ok(Preamble { version, endian, page_size })
    }
}

impl Metadata {
    /// Reads all parts in the order of version 6 and of perf.
    pub fn parse(cursor: &mut Cursor<'_>) -> Result<Metadata, &'static str> {
        let mut metadata = Metadata::default();
        metadata.header_info(cursor).ok_or("the header of the ring buffer")?;
        metadata.ftrace_formats(cursor).ok_or("the ftrace formats")?;
        metadata.event_formats(cursor).ok_or("the event formats")?;
        sized32(cursor).ok_or("kallsyms")?;
        sized32(cursor).ok_or("the printk formats")?;
        // perf wrote none before version 0.6 of its data.
        metadata.saved_names(cursor).unwrap_or_default();
        Ok(metadata)
    }

    /// `header_page` and `header_event`.
    pub fn header_info(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let page = cursor.skip(b"header_page\0").then(|| cursor.u64()).flatten()?;
        let page = String::from_utf8_lossy(cursor.take(page)?).into_owned();
        let event = cursor.skip(b"header_event\0").then(|| cursor.u64()).flatten()?;
        cursor.take(event)?;
        let field = |name| page.lines().filter_map(|line| Field::parse(line.trim())).find(|field| field.name == name);
        if let (Some(commit), Some(data)) = (field("commit"), field("data")) {
            if matches!(commit.size, 4 | 8) && commit.offset <= 64 && data.offset <= 128 {
                let (commit_offset, commit_size) = (commit.offset, commit.size);
                self.page = PageLayout { commit_offset, commit_size, data_offset: data.offset };
            }
        }
        Some(())
    }

    /// The formats of ftrace's own events.
    pub fn ftrace_formats(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let count = cursor.u32()?;
        self.some_formats("ftrace", count, cursor)
    }

    /// The formats of all tracepoints, by system.
    pub fn event_formats(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        for _ in 0..cursor.u32()? {
            let system = cursor.text()?;
            let count = cursor.u32()?;
            self.some_formats(&system, count, cursor)?;
        }
        Some(())
    }

    /// `pid name` lines.
    pub fn saved_names(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let length = cursor.u64()?;
        let text = String::from_utf8_lossy(cursor.take(length)?).into_owned();
        let pair = |line: &str| line.split_once(' ').and_then(|(pid, name)| Some((pid.parse().ok()?, name.to_owned())));
        self.names.extend(text.lines().filter_map(pair));
        Some(())
    }

    fn some_formats(&mut self, system: &str, count: u32, cursor: &mut Cursor<'_>) -> Option<()> {
        for _ in 0..count {
            let length = cursor.u64()?;
            let text = String::from_utf8_lossy(cursor.take(length)?);
            self.formats.extend(Format::parse(system, &text));
        }
        Some(())
    }
}

/// A part with its size before it in 32 bits.
fn sized32<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let length = cursor.u32()?;
    cursor.take(u64::from(length))
}
