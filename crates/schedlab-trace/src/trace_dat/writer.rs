//! Writes `trace.dat` version 6.
//!
//! The format keeps each CPU's pages together, and events come in the order of time: full pages go to a scratch file,
//! from which they are gathered at the end. One page per CPU is in memory.

use std::io::{Read, Seek, SeekFrom, Write};

use schedlab_model::{Nanos, Pid};

use super::head::FLYRECORD;
use super::page::{MISSED_EVENTS, MISSED_STORED};
use crate::error::TraceError;
use crate::names::Names;
use crate::output::Output;
use crate::record::{Body, Header, Record};
use crate::tracepoint::{encode, tracing_data};
use crate::writer::RecordWriter;

/// Bytes of a page, of its head, and of its events.
const PAGE: usize = 4096;
const HEAD: usize = 16;
/// Longest data whose length fits into `type_len`, in bytes.
const SHORT: usize = 28 * 4;
/// Time differences from here on need an event of their own.
const DELTA_LIMIT: Nanos = 1 << 27;
const TIME_EXTEND: u32 = 30;
/// Time differences from here on need a new page.
const EXTEND_LIMIT: Nanos = 1 << 59;

/// Where full pages wait for the end.
pub trait Scratch: Read + Write + Seek + Send {}

impl<T: Read + Write + Seek + Send> Scratch for T {}

/// Writes `trace.dat`.
pub struct TraceDatWriter {
    out: Output,
    header: Header,
    scratch: Box<dyn Scratch>,
    /// Pages in the scratch file.
    pages: u32,
    cpus: Vec<CpuPages>,
    /// Pids seen, for the table of names.
    named: Vec<Pid>,
    raw: Vec<u8>,
}

/// One CPU's page under way, and its full ones by their number in the scratch file.
#[derive(Default)]
struct CpuPages {
    page: Vec<u8>,
    last: Nanos,
    /// Events that were lost before the page.
    lost: u64,
    full: Vec<u32>,
}

impl TraceDatWriter {
    /// `scratch` should be empty.
    pub fn new(out: Output, header: &Header, scratch: Box<dyn Scratch>) -> TraceDatWriter {
        TraceDatWriter {
            out,
            header: header.clone(),
            scratch,
            pages: 0,
            cpus: Vec::new(),
            named: Vec::new(),
            raw: Vec::new(),
        }
    }

    fn flush_page(&mut self, cpu: usize) {
        let pages = &mut self.cpus[cpu];
        let lost = std::mem::take(&mut pages.lost);
        if pages.page.len() <= HEAD && lost == 0 {
            return;
        }
        let mut length = (pages.page.len() - HEAD) as u64;
        if lost > 0 {
            length |= MISSED_EVENTS | MISSED_STORED;
            pages.page.extend_from_slice(&lost.to_le_bytes());
        }
        pages.page[8..16].copy_from_slice(&length.to_le_bytes());
        pages.page.resize(PAGE, 0);
        pages.full.push(self.pages);
        self.pages += 1;
        let (page, scratch) = (&pages.page, &mut self.scratch);
        self.out.keep(|_| scratch.write_all(page));
        pages.page.clear();
    }

    /// Events were lost: only the beginning of a page can say so.
    fn lose(&mut self, cpu: usize, time: Nanos, count: u64) {
        let before = self.cpus[cpu].page.len() <= HEAD;
        let count = if before { count.saturating_add(self.cpus[cpu].lost) } else { count };
        if !before {
            self.flush_page(cpu);
        }
        let pages = &mut self.cpus[cpu];
        if pages.page.is_empty() {
            pages.begin(time.max(pages.last));
        }
        pages.lost = count;
    }

    /// Everything before the pages; their places follow from its own length.
    fn head(&self, names: &Names) -> Vec<u8> {
        let line = |pid: &Pid| format!("{pid} {}\n", names.get(*pid));
        let mut head = tracing_data("6", PAGE as u32, &self.named.iter().map(line).collect::<String>());
        head.extend_from_slice(&(self.cpus.len() as u32).to_le_bytes());
        head.extend_from_slice(b"options  \0");
        let kernel = self.header.kernel.as_deref().unwrap_or("unknown");
        let mut said = "schedlab\n".to_owned();
        self.header.lines().for_each(|line| said += &(line + "\n"));
        let count = (self.cpus.len() as u32).to_le_bytes();
        let options = [
            (super::head::UNAME, format!("Linux schedlab {kernel} x86_64\0").into_bytes()),
            (super::head::CPUCOUNT, count.to_vec()),
            (super::head::VERSION, (said + "\0").into_bytes()),
        ];
        for (id, data) in options {
            head.extend_from_slice(&id.to_le_bytes());
            head.extend_from_slice(&(data.len() as u32).to_le_bytes());
            head.extend_from_slice(&data);
        }
        head.extend_from_slice(&[0; 2]);
        head.extend_from_slice(FLYRECORD);
        let mut offset = (head.len() + 16 * self.cpus.len()).next_multiple_of(PAGE) as u64;
        for cpu in &self.cpus {
            let size = (cpu.full.len() * PAGE) as u64;
            head.extend_from_slice(&offset.to_le_bytes());
            head.extend_from_slice(&size.to_le_bytes());
            offset += size;
        }
        head.resize(head.len().next_multiple_of(PAGE), 0);
        head
    }
}

impl CpuPages {
    /// Bytes the event takes, with the time event it may need before it; `None` if it needs a new page.
    fn room(&self, time: Nanos, raw: &[u8]) -> Option<usize> {
        let delta = time - self.last;
        let extend = if delta < DELTA_LIMIT { 0 } else { 8 };
        let needed = extend + 4 + if raw.len() > SHORT { 4 } else { 0 } + raw.len();
        // The number of lost events stands behind the events.
        let end = if self.lost > 0 { PAGE - 8 } else { PAGE };
        let fits = !self.page.is_empty() && delta < EXTEND_LIMIT && self.page.len() + needed <= end;
        fits.then_some(needed)
    }

    fn begin(&mut self, time: Nanos) {
        self.page.extend_from_slice(&time.to_le_bytes());
        self.page.extend_from_slice(&[0; 8]);
        self.last = time;
    }

    /// Appends an event that fits; its length is a multiple of 4.
    fn push(&mut self, time: Nanos, raw: &[u8]) {
        let mut delta = time - self.last;
        if delta >= DELTA_LIMIT {
            self.word(((delta & (DELTA_LIMIT - 1)) as u32) << 5 | TIME_EXTEND);
            self.word((delta >> 27) as u32);
            delta = 0;
        }
        if raw.len() > SHORT {
            self.word((delta as u32) << 5);
            self.word(raw.len() as u32 + 4);
        } else {
            self.word(((delta as u32) << 5) | (raw.len() as u32 / 4));
        }
        self.page.extend_from_slice(raw);
        self.last = time;
    }

    fn word(&mut self, word: u32) {
        self.page.extend_from_slice(&word.to_le_bytes());
    }
}

impl RecordWriter for TraceDatWriter {
    fn write(&mut self, record: &Record<'_>) {
        let cpu = record.cpu.index();
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, CpuPages::default);
        }
        if let Body::Lost(count) = record.body {
            return self.lose(cpu, record.time, count);
        }
        let mut raw = std::mem::take(&mut self.raw);
        encode(&record.body, record.flags, record.pid, &mut raw);
        // The ring buffer cannot say that time went back.
        let time = record.time.max(self.cpus[cpu].last);
        if self.cpus[cpu].room(time, &raw).is_none() {
            self.flush_page(cpu);
            self.cpus[cpu].begin(time);
        }
        self.cpus[cpu].push(time, &raw);
        self.raw = raw;
    }

    fn named(&mut self, pid: Pid, _name: &str) {
        self.named.push(pid);
    }

    fn finish(mut self, names: &Names) -> Result<(), TraceError> {
        let cpus = self.header.nr_cpus.unwrap_or(0).min(schedlab_model::MAX_CPUS).max(self.cpus.len());
        self.cpus.resize_with(cpus, CpuPages::default);
        (0..cpus).for_each(|cpu| self.flush_page(cpu));
        self.named.sort_unstable();
        self.named.dedup();
        let head = self.head(names);
        self.out.keep(|out| out.write_all(&head));
        let mut page = vec![0; PAGE];
        for number in self.cpus.iter().flat_map(|cpu| &cpu.full) {
            let scratch = &mut self.scratch;
            self.out.keep(|out| {
                scratch.seek(SeekFrom::Start(u64::from(*number) * PAGE as u64))?;
                scratch.read_exact(&mut page)?;
                out.write_all(&page)
            });
        }
        self.out.finish()
    }
}
