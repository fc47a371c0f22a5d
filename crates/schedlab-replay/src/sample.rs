//! Every row on one trace within bounds of time and memory: parts of the trace are read once and kept as operations,
//! and each row is driven through them.
//!
//! The parts are [`Bounds::part`] records each. The first is the beginning of the trace; behind each part four times as
//! many records are left out as behind the one before, so that few parts reach far into a long trace. What is left out
//! counts as lost: a row begins each part with empty queues. A row that has made its share of [`Bounds::steps`] in a
//! part goes on with the next part.

use schedlab_model::{CpuId, Nanos};
use schedlab_policy::Version;
use schedlab_trace::{Body, Flags, Header, Record, TraceError, TraceReader};

use crate::operation::{Input, Operation};
use crate::pass::{Pass, Seen, Start};
use crate::report::Tried;
use crate::{finish, Options, Report};

/// How much of a trace a row is tried on at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Records of a part.
    pub part: u64,
    /// Parts.
    pub parts: u32,
    /// Operations that the models of a row follow, those of the search for lags included.
    pub steps: u64,
    /// The effort of the search for lags is divided by this.
    pub thrift: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { part: 16_000, parts: 4, steps: 2_000_000, thrift: 4 }
    }
}

/// The parts of a trace.
pub struct Sample {
    start: Start,
    seen: Seen,
    bounds: Bounds,
    inputs: Vec<Input>,
    /// For each record the end of its operations.
    ends: Vec<usize>,
    /// Parts, and parts of parts: those between two losses.
    sections: u64,
    left_out: u64,
    to_the_end: bool,
}

impl Sample {
    /// Reads the parts.
    pub fn read(reader: &mut dyn TraceReader, options: &Options, bounds: Bounds) -> Result<Sample, TraceError> {
        let mut parts = Parts { reader, bounds, nth: 0, read: 0, left_out: 0, lost: 0, ended: false };
        let mut pass = Pass::begin(&mut parts, options)?;
        let (mut inputs, mut ends) = (Vec::new(), Vec::new());
        while let Some(entry) = pass.next()? {
            inputs.extend(pass.read(&entry));
            ends.push(inputs.len());
        }
        let (start, _, seen) = pass.end();
        let seen = Seen { lost: seen.lost.saturating_sub(parts.lost), ..seen };
        let sections = 1 + inputs.iter().filter(|input| matches!(input.operation, Operation::Lost)).count() as u64;
        let (left_out, to_the_end) = (parts.left_out, parts.ended);
        Ok(Sample { start, seen, bounds, inputs, ends, sections, left_out, to_the_end })
    }

    /// The kernel's release, if the file names it.
    #[must_use]
    pub fn kernel(&self) -> Option<&str> {
        self.start.header.kernel.as_deref()
    }

    /// Replays the parts under a row; `None` if `stops` says so.
    pub fn replay(&self, version: &'static Version, options: &Options, stops: &dyn Fn() -> bool) -> Option<Report> {
        let (mut row, refused) = self.start.row(version, options);
        row.effort = row.effort.divided(self.bounds.thrift);
        let (mut followed, mut begin, mut sections) = (0, 0, self.sections);
        let mut until = self.bounds.steps / sections;
        for end in &self.ends {
            if stops() {
                return None;
            }
            for input in &self.inputs[begin..*end] {
                if matches!(input.operation, Operation::Lost) {
                    sections = (sections - 1).max(1);
                    until = row.steps + self.bounds.steps.saturating_sub(row.steps) / sections;
                    row.tally.from = input.time + options.warm_up;
                }
                if row.steps < until {
                    row.apply(input);
                }
            }
            begin = *end;
            followed += u64::from(row.steps < until);
        }
        let (sampled, left_out, to_the_end) = (self.seen.records, self.left_out, self.to_the_end);
        let tried = Tried { followed: followed.min(sampled), sampled, left_out, to_the_end };
        Some(Report { tried: Some(tried), ..finish(row, refused, &self.start.header, &self.seen, options) })
    }
}

/// A trace of which only parts are read.
struct Parts<'r> {
    reader: &'r mut dyn TraceReader,
    bounds: Bounds,
    /// The present part, and how many of its records were read.
    nth: u32,
    read: u64,
    left_out: u64,
    /// Of those the ones that were called lost.
    lost: u64,
    ended: bool,
}

impl Parts<'_> {
    /// Skips the records behind a part; the time and CPU of the last one, unless the trace ends before.
    fn skip(&mut self) -> Result<Option<(Nanos, CpuId)>, TraceError> {
        let mut last = None;
        for _ in 0..self.bounds.part << (2 * self.nth) {
            let Some(record) = self.reader.next_record()? else { return Ok(None) };
            last = Some((record.time, record.cpu));
            self.left_out += 1;
        }
        (self.nth, self.read) = (self.nth + 1, 0);
        Ok(last)
    }
}

impl TraceReader for Parts<'_> {
    fn header(&self) -> &Header {
        self.reader.header()
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        if self.ended || (self.read == self.bounds.part && self.nth + 1 == self.bounds.parts) {
            return Ok(None);
        }
        if self.read == self.bounds.part {
            let before = self.left_out;
            let Some((time, cpu)) = self.skip()? else {
                self.ended = true;
                return Ok(None);
            };
            let count = self.left_out - before;
            self.lost += count;
            return Ok(Some(Record { time, cpu, comm: "", pid: 0, flags: Flags::NONE, body: Body::Lost(count) }));
        }
        self.read += 1;
        let next = self.reader.next_record()?;
        self.ended = next.is_none();
        Ok(next)
    }
}
