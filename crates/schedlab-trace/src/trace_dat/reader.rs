//! Reads `trace.dat`: the CPUs' pages merged by time, one page per CPU in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use schedlab_model::{CpuId, Nanos};

use super::clock::Clock;
use super::head::Head;
use super::page::Page;
use super::pages::Pages;
use crate::error::{Fault, Place, TraceError};
use crate::input::{Bytes, Input};
use crate::item::{Item, What};
use crate::names::Names;
use crate::record::{Header, Record, TraceReader};
use crate::text::not_read;
use crate::tracepoint::{Decoder, Endian, PageLayout};
use crate::Flags;

/// Reads `trace.dat`.
pub struct TraceDatReader {
    bytes: Bytes,
    header: Header,
    names: Names,
    decoder: Decoder,
    layout: PageLayout,
    endian: Endian,
    streams: Vec<Stream>,
    /// The next event of each stream: its time and the stream.
    heap: BinaryHeap<Reverse<(Nanos, usize)>>,
    clock: Clock,
    /// Names of the buffers that are not read.
    others: Vec<String>,
    item: Option<Item>,
}

/// One CPU's events.
struct Stream {
    cpu: CpuId,
    pages: Pages,
    page: Page,
    /// Where the page lies.
    offset: u64,
    last: Nanos,
    next: Option<Item>,
}

impl TraceDatReader {
    /// Reads what precedes the events. `file` is what errors call the input.
    pub fn new(input: Box<dyn Input>, file: &Path, buffer: Option<&str>) -> Result<TraceDatReader, TraceError> {
        let mut bytes = Bytes::new(input, file)?;
        let head = Head::read(&mut bytes)?;
        let fault = |fault| TraceError { file: file.to_owned(), at: Place::File, fault };
        let (chosen, others) = head.choose(buffer).map_err(fault)?;
        let clock = head.clock(&chosen).map_err(fault)?;
        let buffers = chosen.cpus;
        let Head { endian, page_size, metadata, header, compression, .. } = head;
        let mut names = Names::default();
        metadata.names.iter().for_each(|(pid, name)| {
            names.set(*pid, name);
        });
        let stream = |buffer: &super::head::CpuBuffer| Stream {
            cpu: buffer.cpu,
            pages: Pages::new(*buffer, page_size, compression, endian),
            page: Page::default(),
            offset: buffer.offset,
            last: 0,
            next: None,
        };
        let mut reader = TraceDatReader {
            header,
            names,
            decoder: Decoder::new(metadata.formats, endian),
            layout: metadata.page,
            endian,
            streams: buffers.iter().filter(|buffer| buffer.size > 0).map(stream).collect(),
            heap: BinaryHeap::new(),
            clock,
            others,
            item: None,
            bytes,
        };
        for stream in 0..reader.streams.len() {
            reader.advance(stream)?;
        }
        Ok(reader)
    }

    /// Decodes the next event of a stream and puts it into the heap.
    fn advance(&mut self, index: usize) -> Result<(), TraceError> {
        let stream = &mut self.streams[index];
        stream.next = None;
        loop {
            let next = stream.page.next().map_err(|what| self.bytes.malformed(stream.offset, what))?;
            let Some((time, raw)) = next else {
                let Some((offset, page)) = stream.pages.next(&mut self.bytes)? else { return Ok(()) };
                stream.offset = offset;
                let page = Page::new(page, self.layout, self.endian);
                stream.page = page.map_err(|what| self.bytes.malformed(offset, what))?;
                if stream.page.lost > 0 {
                    let time = self.clock.ns(stream.page.begins()).max(stream.last);
                    let what = What::Lost(stream.page.lost);
                    stream.last = time;
                    stream.next = Some(Item { time, cpu: stream.cpu, pid: 0, flags: Flags::NONE, what });
                    self.heap.push(Reverse((time, index)));
                    return Ok(());
                }
                continue;
            };
            let time = self.clock.ns(time);
            if time < stream.last {
                return Err(self.bytes.fault(stream.offset, Fault::Backwards { before: stream.last, after: time }));
            }
            stream.last = time;
            let decoded = self.decoder.decode(raw).map_err(|what| self.bytes.malformed(stream.offset, what))?;
            if let Some((flags, pid, what)) = decoded {
                stream.next = Some(Item { time, cpu: stream.cpu, pid, flags, what });
                self.heap.push(Reverse((time, index)));
                return Ok(());
            }
        }
    }
}

impl TraceReader for TraceDatReader {
    fn header(&self) -> &Header {
        &self.header
    }

    fn notes(&self) -> Vec<String> {
        not_read(self.others.iter().map(String::as_str)).into_iter().collect()
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        let Some(Reverse((_, index))) = self.heap.pop() else { return Ok(None) };
        let (item, offset) = (self.streams[index].next.take(), self.streams[index].offset);
        self.advance(index)?;
        let Some(item) = item else { return Ok(None) };
        item.teach(&mut self.names);
        let item = self.item.insert(item);
        item.record(&self.names).map(Some).map_err(|what| self.bytes.malformed(offset, what))
    }
}
