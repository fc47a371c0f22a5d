//! One record of a recorded trace: an [`Event`] with what the file says beyond it, or an event unknown to the model.

use schedlab_model::{CpuId, KernelId, Nanos, Pid};

use crate::{Event, Flags, Kind, TraceError};

/// One record.
#[derive(Clone, PartialEq, Debug)]
pub struct Record<'a> {
    /// When, in ns.
    pub time: Nanos,
    /// On which CPU.
    pub cpu: CpuId,
    /// Name of the task that ran there, as the file says; `<idle>` for idle.
    pub comm: &'a str,
    /// Its pid.
    pub pid: Pid,
    /// Context flags.
    pub flags: Flags,
    /// What.
    pub body: Body<'a>,
}

/// What a record says.
#[derive(Clone, PartialEq, Debug)]
pub enum Body<'a> {
    /// An event of the model, with the strings of the record.
    Event(Kind, Words<'a>),
    /// The recorder lost this many events of the CPU before this moment; 1 where the trace does not say how many.
    Lost(u64),
    /// Any other event.
    Other {
        /// Its name, without the event system.
        name: &'a str,
        /// Its text.
        fields: Fields<'a>,
    },
}

/// The strings of an event that [`Kind`] shortens or leaves out; empty where the event has none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Words<'a> {
    /// `comm`, `prev_comm` or the parent's.
    pub comm: &'a str,
    /// `next_comm` or `child_comm`.
    pub other_comm: &'a str,
    /// `prev_state` in the kernel's letters (`R+`, `S`, `D|W`, `I` ...).
    pub prev_state: &'a str,
}

/// The text of an event, read as `key=value` words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fields<'a>(pub &'a str);

/// What a trace file says about itself.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Header {
    /// Kernel release (`uname -r`).
    pub kernel: Option<String>,
    /// CPUs of the machine.
    pub nr_cpus: Option<usize>,
    /// The metric table that `Sample` and `Count` events index: name and unit.
    pub metrics: Vec<(String, String)>,
    /// Further `key value` lines, without the leading `# `.
    pub comments: Vec<String>,
}

/// Reads a trace, record by record.
pub trait TraceReader {
    /// What the file said before its first record.
    fn header(&self) -> &Header;

    /// The next record; `None` at the end of the file.
    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError>;

    /// What the file holds and this reader leaves out, in a sentence each. Complete at the end of the file.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Writes a trace as its events come.
pub trait TraceWriter: crate::Sink + Send {
    /// Writes a record of another trace, with all of it that this format can hold.
    fn record(&mut self, record: &Record<'_>) {
        for (pid, comm) in record.names() {
            self.name(KernelId::FIRST, pid, comm);
        }
        if let Some(event) = record.event() {
            self.event(&event);
        }
    }

    /// Writes what is still buffered. The first error of any earlier write is returned here.
    fn finish(self: Box<Self>) -> Result<(), TraceError>;
}

/// Copies a whole trace.
pub fn copy(reader: &mut dyn TraceReader, mut writer: Box<dyn TraceWriter>) -> Result<(), TraceError> {
    while let Some(record) = reader.next_record()? {
        writer.record(&record);
    }
    writer.finish()
}

impl<'a> Record<'a> {
    /// The record as an event of the model, if it is one.
    #[must_use]
    pub fn event(&self) -> Option<Event> {
        match self.body {
            Body::Event(kind, _) => Some(Event::new(self.time, self.cpu, kind)),
            Body::Lost(_) | Body::Other { .. } => None,
        }
    }

    /// Events that the recorder lost before this record.
    #[must_use]
    pub fn lost(&self) -> u64 {
        match self.body {
            Body::Lost(count) => count,
            Body::Event(..) | Body::Other { .. } => 0,
        }
    }

    /// The tasks the event names, idle left out.
    pub fn names(&self) -> impl Iterator<Item = (Pid, &'a str)> {
        let (pids, words) = match &self.body {
            Body::Event(kind, words) => (pids(kind), *words),
            Body::Lost(_) | Body::Other { .. } => ([0, 0], Words::default()),
        };
        pids.into_iter().zip([words.comm, words.other_comm]).filter(|(pid, comm)| *pid != 0 && !comm.is_empty())
    }
}

/// The pids whose names an event carries.
pub(crate) fn pids(kind: &Kind) -> [Pid; 2] {
    match *kind {
        Kind::Switch { prev, next, .. } => [prev, next],
        Kind::Fork { parent, child } => [parent, child],
        Kind::Waking { pid, .. }
        | Kind::Wakeup { pid, .. }
        | Kind::WakeupNew { pid, .. }
        | Kind::Migrate { pid, .. }
        | Kind::Exit { pid, .. }
        | Kind::Runtime { pid, .. } => [pid, 0],
        Kind::Sample { .. }
        | Kind::Count { .. }
        | Kind::Scan { .. }
        | Kind::Fault { .. }
        | Kind::Resched { .. }
        | Kind::NonPreemptible { .. }
        | Kind::Extension { .. }
        | Kind::Refill { .. }
        | Kind::Numa { .. }
        | Kind::LockWait { .. } => [0, 0],
    }
}

impl<'a> Fields<'a> {
    /// Every `key=value` word in order; values end at white space.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.split_ascii_whitespace().filter_map(|word| word.split_once('='))
    }

    /// The value of the first word with that key.
    #[must_use]
    pub fn get(self, key: &str) -> Option<&'a str> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// A value as a number: decimal, or hexadecimal after `0x`.
    #[must_use]
    pub fn number<T: TryFrom<i128>>(self, key: &str) -> Option<T> {
        let value = self.get(key)?;
        let parsed = match value.strip_prefix("0x") {
            Some(hex) => i128::from(u64::from_str_radix(hex, 16).ok()?),
            None => value.parse().ok()?,
        };
        T::try_from(parsed).ok()
    }
}

impl Header {
    /// The rest of the first comment line that begins with the word `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.comments.iter().find_map(|line| match line.split_once(' ') {
            Some((word, rest)) if word == key => Some(rest.trim()),
            None if line == key => Some(""),
            _ => None,
        })
    }

    /// What it says as lines of `key value`, those of the metric table included; [`Header::learn`] reads them.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let named = self.comments.iter().any(|line| line.starts_with("kernel "));
        let cpus = self.nr_cpus.unwrap_or(1);
        let kernel =
            self.kernel.iter().filter(move |_| !named).map(move |kernel| format!("kernel {kernel} cpus {cpus}"));
        let metrics = self.metrics.iter().enumerate().map(|(i, (name, unit))| format!("metric {i} {name} {unit}"));
        kernel.chain(self.comments.iter().cloned()).chain(metrics)
    }

    /// A comment line that is not part of the legend: the tracer's own, or `key value`.
    pub(crate) fn learn(&mut self, comment: &str) {
        let mut words = comment.split_ascii_whitespace();
        match words.next() {
            Some("tracer:") | None => return,
            // entries-in-buffer/entries-written: 1/1   #P:2
            Some("entries-in-buffer/entries-written:") => {
                let count = comment.rsplit_once("#P:").and_then(|(_, count)| count.trim().parse().ok());
                self.nr_cpus = self.nr_cpus.or(count);
                return;
            }
            Some("metric") => {
                let name_and_unit = words.nth(1).zip(words.next());
                self.metrics.extend(name_and_unit.map(|(name, unit)| (name.to_owned(), unit.to_owned())));
                return;
            }
            Some("kernel") => {
                self.kernel = words.next().map(str::to_owned);
                if words.next() == Some("cpus") {
                    self.nr_cpus = words.next().and_then(|count| count.parse().ok());
                }
            }
            // nop latency trace v1.1.5 on 6.12.0: the header of the option latency-format
            Some(_) if comment.contains(" latency trace v") => {
                self.kernel = comment.rsplit_once(" on ").map(|(_, release)| release.trim().to_owned());
                return;
            }
            Some("latency:") => {
                let count = comment.rsplit_once("#P:").and_then(|(_, count)| count.trim_end_matches(')').parse().ok());
                self.nr_cpus = self.nr_cpus.or(count);
                return;
            }
            Some(_) => {}
        }
        self.comments.push(comment.to_owned());
    }
}
