//! The trace with a bounded look ahead: a flag set by a decision shows only in a later record.

use std::collections::{BTreeMap, VecDeque};

use schedlab_model::{CpuId, Nanos, Pid, MAX_CPUS};
use schedlab_trace::{Kind, TraceError, TraceReader};

use crate::step::{Step, What};

/// How many records are read ahead at most.
const AHEAD: usize = 1 << 15;

/// The records to come.
pub struct Window<'r> {
    reader: &'r mut dyn TraceReader,
    ahead: VecDeque<Step>,
    ended: bool,
    lost: u64,
    names: BTreeMap<Pid, String>,
    first: Option<Nanos>,
    last: Nanos,
    records: u64,
    shows_state: bool,
    shows_hrtick: bool,
    shows_moves: bool,
    cpus: usize,
    fixed: bool,
}

impl<'r> Window<'r> {
    pub fn new(reader: &'r mut dyn TraceReader) -> Self {
        Window {
            reader,
            ahead: VecDeque::new(),
            ended: false,
            lost: 0,
            names: BTreeMap::new(),
            first: None,
            last: 0,
            records: 0,
            shows_state: false,
            shows_hrtick: false,
            shows_moves: false,
            cpus: 1,
            fixed: false,
        }
    }

    /// The next record; afterwards the look ahead begins behind it.
    pub fn next(&mut self) -> Result<Option<Step>, TraceError> {
        while !self.ended && self.ahead.len() <= AHEAD {
            self.fill()?;
        }
        Ok(self.ahead.pop_front())
    }

    fn fill(&mut self) -> Result<(), TraceError> {
        let lost = self.reader.lost();
        let Some(record) = self.reader.next_record()? else {
            self.ended = true;
            return Ok(());
        };
        for (pid, comm) in record.names() {
            match self.names.get_mut(&pid) {
                Some(known) if known == comm => {}
                Some(known) => comm.clone_into(known),
                None => drop(self.names.insert(pid, comm.to_owned())),
            }
        }
        let steps = Step::of(&record);
        self.records += 1;
        self.first.get_or_insert(record.time);
        self.last = record.time;
        if self.reader.lost() > self.lost.max(lost) {
            self.lost = self.reader.lost();
            self.ahead.extend(steps[0].map(|step| Step { what: What::Lost, ..step }));
        }
        let cpus = steps.iter().flatten().map(|step| step.largest_cpu().index() + 1).max().unwrap_or(1);
        if cpus > self.cpus && self.fixed {
            return Ok(());
        }
        self.cpus = self.cpus.max(cpus);
        self.shows_state |= steps.iter().flatten().any(Step::shows_state);
        self.shows_hrtick |= steps.iter().flatten().any(|step| matches!(step.what, What::Hrtick));
        self.shows_moves |=
            steps.iter().flatten().any(|step| matches!(step.what, What::Clock { regroups: Some(_), .. }));
        self.ahead.extend(steps.into_iter().flatten());
        Ok(())
    }

    /// The records ahead, nearest first.
    pub fn ahead(&self) -> impl Iterator<Item = &Step> + Clone {
        self.ahead.iter()
    }

    /// The next scheduler event on a CPU.
    pub fn next_event_on(&self, cpu: CpuId) -> Option<Kind> {
        self.ahead.iter().filter(|step| step.cpu == cpu).find_map(Step::kind)
    }

    /// How many CPUs there are: as the header says, or as many as the records read so far name. Later records that name
    /// more are passed over.
    pub fn fix_cpus(&mut self, header: Option<usize>) -> usize {
        self.cpus = self.cpus.max(header.unwrap_or(1).min(MAX_CPUS));
        self.fixed = true;
        self.cpus
    }

    /// Whether any record shows a task's vruntime.
    pub fn shows_state(&self) -> bool {
        self.shows_state
    }

    /// Whether a probe tells when the timer of a slice fires.
    pub fn shows_hrtick(&self) -> bool {
        self.shows_hrtick
    }

    /// Whether probes show where tasks are queued without being woken, and why.
    pub fn shows_moves(&self) -> bool {
        self.shows_moves
    }

    /// The name a task goes by, as last read.
    pub fn name(&self, pid: Pid) -> &str {
        self.names.get(&pid).map_or("?", String::as_str)
    }

    /// The tasks that go by a name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Pid> + 'a {
        self.names.iter().filter(move |(_, known)| *known == name).map(|(pid, _)| *pid)
    }

    /// Time of the last record read.
    pub fn end(&self) -> Nanos {
        self.last
    }

    /// Records read, events lost, time from first to last.
    pub fn totals(&self) -> (u64, u64, Nanos) {
        (self.records, self.reader.lost(), self.last - self.first.unwrap_or(self.last))
    }

    /// Time of the first record.
    pub fn start(&self) -> Nanos {
        self.first.unwrap_or(0)
    }
}
