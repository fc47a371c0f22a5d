//! Reads trace text in the formats in use, recognised line by line:
//!
//! - ftrace, as `/sys/kernel/tracing/trace` prints it: `comm-pid (tgid) [cpu] flags seconds.fraction: event: fields`,
//!   also with the option latency-format, and as systrace and atrace pack it
//! - `trace-cmd report`: the same, without flags, with the name of an instance before it
//! - `perf script`: `comm pid/tid [cpu] seconds.fraction: system:event: fields`

use std::collections::VecDeque;
use std::io::BufRead;
use std::ops::Range;
use std::path::Path;

use schedlab_model::{CpuId, Nanos, Pid};

use super::body;
use super::buffers::Buffers;
use super::columns::Columns;
use super::lines::Lines;
use super::marks::{
    is_call_chain, is_chatter, is_free_text, is_stack, lost_events, perf_lost, perf_record, without_place,
};
use super::options::{not_an_event, not_its_fields};
use super::prefix::{prefix, Prefix};
use crate::error::{Fault, TraceError};
use crate::record::{Body, Header, Record, TraceReader};
use crate::Flags;

/// Input with more comment lines than this in a row is not a trace.
const COMMENTS_MAX: usize = 10_000;
/// How many lines are searched for an event of the top buffer.
const LINES_AHEAD: usize = 10_000;

/// Reads a trace in text form.
pub struct TextReader {
    lines: Lines,
    header: Header,
    columns: Columns,
    buffers: Buffers,
    /// Whether the current line is an event that the header's reading ran into.
    pending: bool,
    /// Whether it is the output of trace-cmd report.
    trace_cmd: bool,
    /// The trace is a part of an HTML page.
    html: bool,
    /// A mark of lost events named this buffer; the line below it does not repeat the name.
    marked: Option<String>,
    /// Some line was an event.
    any: bool,
    last: Nanos,
    /// Losses that the next event follows.
    losses: VecDeque<(CpuId, u64)>,
    /// What may follow the event before.
    follows: Follows,
    line: String,
    found: Option<Found>,
}

/// Which lines belong to the event before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    Stack,
    /// The text of a program, which may have several lines.
    FreeText,
    /// A call chain with further indented lines, such as those of sources.
    Indented,
}

/// Where the parts of an event lie in its line.
struct Found {
    comm: Range<usize>,
    pid: Pid,
    cpu: CpuId,
    flags: Flags,
    time: Nanos,
    name: Range<usize>,
    body: Range<usize>,
    /// It is a mark of so many lost events.
    lost: Option<u64>,
}

impl TextReader {
    /// Reads the header. `file` is what errors call the input; `buffer` is the name of the buffer to read.
    pub fn new(input: Box<dyn BufRead + Send>, file: &Path, buffer: Option<&str>) -> Result<TextReader, TraceError> {
        let lines = Lines::new(input, file);
        let mut reader = TextReader {
            lines,
            header: Header::default(),
            columns: Columns::default(),
            buffers: Buffers::default(),
            pending: false,
            trace_cmd: false,
            html: false,
            marked: None,
            any: false,
            last: 0,
            losses: VecDeque::new(),
            follows: Follows::Stack,
            line: String::new(),
            found: None,
        };
        reader.read_header()?;
        reader.choose_buffer(buffer)?;
        Ok(reader)
    }

    fn read_header(&mut self) -> Result<(), TraceError> {
        for _ in 0..COMMENTS_MAX {
            if !self.lines.advance()? {
                return Ok(());
            }
            let line = self.lines.line().into_owned();
            if let Some(comment) = line.strip_prefix('#') {
                self.comment(comment);
            } else if !self.html && is_html(&line) {
                self.find_in_html()?;
            } else if !self.is_preamble(line.trim()) {
                self.pending = true;
                return Ok(());
            }
        }
        Err(self.lines.malformed(format!("{COMMENTS_MAX} comment lines and no event: not a trace")))
    }

    fn comment(&mut self, comment: &str) {
        self.columns.learn(comment);
        // The legend of the columns is indented by more than one space.
        match comment.strip_prefix(' ') {
            Some(words) if !words.starts_with(' ') => self.header.learn(words.trim_end()),
            _ => {}
        }
    }

    /// A line above the events that is neither comment nor event.
    fn is_preamble(&mut self, text: &str) -> bool {
        // The first line of trace-cmd report, behind the file's name if it prints several files.
        let cpus = text.rsplit_once("cpus=").filter(|(file, _)| file.is_empty() || file.ends_with(": "));
        if let Some((_, count)) = cpus {
            self.header.nr_cpus = self.header.nr_cpus.or(count.trim().parse().ok());
            self.trace_cmd = true;
            return true;
        }
        text.is_empty() || is_chatter(text)
    }

    /// Goes to the trace in a page of systrace, which is the text of a script element.
    fn find_in_html(&mut self) -> Result<(), TraceError> {
        let none = "an HTML page without a trace of systrace or atrace (an element of the class trace-data)";
        while self.lines.skip_to("class=\"trace-data\"")? {
            let first =
                self.lines.look_ahead(3, |line| Some(line.trim().to_owned()).filter(|line| !line.is_empty()))?;
            if first.is_some_and(|line| line.starts_with('#') || line == "TRACE:") {
                self.html = true;
                return Ok(());
            }
        }
        Err(self.lines.fault(Fault::UnknownFormat(none.to_owned())))
    }

    /// The top buffer, or the first one if there is no event of the top one.
    fn choose_buffer(&mut self, buffer: Option<&str>) -> Result<(), TraceError> {
        let line = self.lines.line().into_owned();
        let chosen = match (buffer, instance(line.trim_start()).0) {
            (Some(named), _) => named.to_owned(),
            (None, first) if !self.trace_cmd || !self.pending || first.is_empty() => String::new(),
            (None, first) => {
                let is_top = |line: &str| {
                    let text = line.trim_start();
                    let event = !text.is_empty() && !is_stack(text) && !is_chatter(text) && !text.starts_with("CPU:");
                    (event && instance(text).0.is_empty() && prefix(text, &self.columns).is_ok()).then_some(())
                };
                match self.lines.look_ahead(LINES_AHEAD, is_top)? {
                    Some(()) => String::new(),
                    None => first.to_owned(),
                }
            }
        };
        self.buffers = Buffers::new(&chosen);
        Ok(())
    }

    /// Moves to the next line that is an event or a mark of losses with a time.
    fn find_event(&mut self) -> Result<Option<Found>, TraceError> {
        let mut comments = 0;
        while comments < COMMENTS_MAX {
            if !std::mem::take(&mut self.pending) && !self.lines.advance()? {
                return Ok(None);
            }
            let line = self.lines.line();
            let text = line.trim_start();
            if text.is_empty() || line.starts_with('#') || is_stack(text) {
                comments += usize::from(!is_stack(text));
                continue;
            }
            if self.html && text.starts_with("</script>") {
                return Ok(None);
            }
            let (buffer, rest) = if self.trace_cmd { instance(text) } else { ("", &*line) };
            let event = rest.trim_start();
            if let Some(loss) = lost_events(event) {
                let buffer = buffer.to_owned();
                if self.buffers.reads(&buffer) {
                    self.losses.push_back(loss);
                }
                self.marked = self.trace_cmd.then_some(buffer);
                continue;
            }
            if is_chatter(event) {
                continue;
            }
            let buffer = self.marked.take().filter(|_| buffer.is_empty()).unwrap_or_else(|| buffer.to_owned());
            self.line.clear();
            self.line.push_str(if self.trace_cmd { without_place(rest) } else { rest });
            match prefix(&self.line, &self.columns) {
                Ok(prefix) => {
                    self.any = true;
                    if !self.buffers.reads(&buffer) {
                        continue;
                    }
                    let found = Found::of(&prefix, &self.line);
                    let other = found.lost.is_none() && is_perf_record(&prefix);
                    self.follows = Follows::after(&prefix);
                    if !other {
                        return Ok(Some(found));
                    }
                }
                Err(_) if self.belongs_to_event(&line) => {}
                // The first line says whether it is a trace at all.
                Err(what) if !self.any => return Err(self.lines.fault(not_an_event(&line, what))),
                Err(what) => return Err(self.lines.malformed(what)),
            }
        }
        Err(self.lines.malformed(format!("{COMMENTS_MAX} lines without an event: not a trace")))
    }

    /// Whether a line that is no event continues the event before, or is one of perf's records that has no time.
    fn belongs_to_event(&self, line: &str) -> bool {
        let follows = match self.follows {
            Follows::Stack => false,
            Follows::FreeText => true,
            Follows::Indented => line.starts_with([' ', '\t']),
        };
        follows || is_call_chain(line) || perf_record(line).is_some()
    }
}

impl Follows {
    fn after(prefix: &Prefix<'_>) -> Follows {
        match prefix {
            Prefix { perf: true, .. } => Follows::Indented,
            Prefix { name, .. } if is_free_text(name) => Follows::FreeText,
            _ => Follows::Stack,
        }
    }
}

impl Found {
    fn of(prefix: &Prefix<'_>, line: &str) -> Found {
        let range = |part: &str| {
            let start = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize).min(line.len());
            start..(start + part.len()).min(line.len())
        };
        let Prefix { comm, pid, cpu, flags, time, name, body, .. } = *prefix;
        let record = if name.is_empty() { perf_record(body) } else { Some((name, body)) };
        let lost = record.filter(|_| is_perf_record(prefix)).and_then(perf_lost);
        Found { comm: range(comm), pid, cpu, flags, time, name: range(name), body: range(body), lost }
    }
}

fn is_perf_record(prefix: &Prefix<'_>) -> bool {
    prefix.name.starts_with("PERF_RECORD_") || prefix.name.is_empty() && prefix.body.starts_with("PERF_RECORD_")
}

fn is_html(line: &str) -> bool {
    let start = line.trim_start().get(..9).unwrap_or(line.trim()).to_ascii_lowercase();
    start.starts_with("<!doctype") || start.starts_with("<html")
}

/// `instance:   comm-pid ...`: the name of an instance stands before the task, and the rest.
fn instance(line: &str) -> (&str, &str) {
    match line.split_once(':') {
        Some((instance, rest)) if !instance.contains(char::is_whitespace) && rest.starts_with("  ") => (instance, rest),
        _ => ("", line),
    }
}

impl TraceReader for TextReader {
    fn header(&self) -> &Header {
        &self.header
    }

    fn notes(&self) -> Vec<String> {
        self.buffers.note().into_iter().collect()
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        if self.found.is_none() {
            let found = self.find_event()?;
            if let (None, Some(what)) = (&found, self.buffers.absent()) {
                return Err(self.lines.malformed(what));
            }
            self.found = found;
            let time = self.found.as_ref().map_or(self.last, |found| found.time);
            let before = std::mem::replace(&mut self.last, time);
            if time < before {
                return Err(self.lines.fault(Fault::Backwards { before, after: time }));
            }
        }
        if let Some((cpu, count)) = self.losses.pop_front() {
            let body = Body::Lost(count);
            return Ok(Some(Record { time: self.last, cpu, comm: "", pid: 0, flags: Flags::NONE, body }));
        }
        let Some(Found { comm, pid, cpu, flags, time, name, body, lost }) = self.found.take() else { return Ok(None) };
        let body = match lost {
            Some(count) => Body::Lost(count),
            None => {
                let fields = body.clone();
                let parsed = body::parse(&self.line[name], &self.line[body]);
                parsed.map_err(|what| self.lines.fault(not_its_fields(&self.line[fields], what)))?
            }
        };
        Ok(Some(Record { time, cpu, comm: &self.line[comm], pid, flags, body }))
    }
}
