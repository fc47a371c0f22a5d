//! The trace with a bounded read-ahead: the outcome of a decision shows only in a later record.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use schedlab_model::{CpuId, Nanos, Pid, MAX_CPUS};
use schedlab_trace::{Body, Continuity, Header, Kind, TraceError, TraceReader};

use super::entry::{Entry, What};
use super::forks::Forks;
use super::lookahead::LookAhead;
use super::needs::Needs;
use super::reread::RereadStates;
use super::select::SelectFlags;
use super::wakeups::Wakeups;
use crate::answer::is_meant;

/// How many records are read ahead at most.
const AHEAD: usize = 1 << 15;

/// The current record's successors.
pub struct Window<'r> {
    reader: &'r mut dyn TraceReader,
    ahead: VecDeque<Entry>,
    looks: [Cell<Looks>; LookAhead::ALL.len()],
    entries: u64,
    ended: bool,
    lost: u64,
    /// Events were lost since the record before.
    gap: bool,
    continuity: Continuity,
    names: BTreeMap<Pid, String>,
    first: Option<Nanos>,
    last: Nanos,
    records: u64,
    shows_state: bool,
    shows_hrtick: bool,
    shows_moves: bool,
    shows_charges: bool,
    shows_updates: bool,
    shows_lazy: bool,
    needs: Needs,
    forks: Forks,
    wakeups: Wakeups,
    reread: RereadStates,
    selects: SelectFlags,
    cpus: usize,
    fixed: bool,
}

/// How often later records were consulted for one purpose.
#[derive(Clone, Copy, Default)]
struct Looks {
    /// For how many records.
    records: u64,
    /// The last of these.
    last: u64,
}

impl<'r> Window<'r> {
    pub fn new(reader: &'r mut dyn TraceReader) -> Self {
        let (reread, selects) = (RereadStates::new(reader.header()), SelectFlags::of(reader.header()));
        let wakeups = Wakeups::new(reader.header());
        Window {
            reader,
            reread,
            selects,
            ahead: VecDeque::new(),
            looks: Default::default(),
            entries: 0,
            ended: false,
            lost: 0,
            gap: false,
            continuity: Continuity::default(),
            names: BTreeMap::new(),
            first: None,
            last: 0,
            records: 0,
            shows_state: false,
            shows_hrtick: false,
            shows_moves: false,
            shows_charges: false,
            shows_updates: false,
            shows_lazy: false,
            needs: Needs::default(),
            forks: Forks::default(),
            wakeups,
            cpus: 1,
            fixed: false,
        }
    }

    /// The next record. From then on the read-ahead begins behind it.
    pub fn next(&mut self) -> Result<Option<Entry>, TraceError> {
        while !self.ended && self.ahead.len() <= AHEAD {
            self.fill()?;
        }
        self.entries += 1;
        Ok(self.ahead.pop_front())
    }

    fn fill(&mut self) -> Result<(), TraceError> {
        let machine = self.reader.header().nr_cpus.unwrap_or(1).min(MAX_CPUS).max(self.cpus);
        let Some(record) = self.reader.next_record()? else {
            self.ended = true;
            self.wakeups.end();
            self.take_complete();
            return Ok(());
        };
        for (pid, comm) in record.names() {
            match self.names.get_mut(&pid) {
                Some(known) if known == comm => {}
                Some(known) => comm.clone_into(known),
                None => drop(self.names.insert(pid, comm.to_owned())),
            }
        }
        self.needs.note(&record);
        if record.lost() > 0 {
            self.lost = self.lost.saturating_add(record.lost());
            self.gap = true;
            self.continuity.forget();
            return Ok(());
        }
        if matches!(&record.body, Body::Event(kind, _) if self.continuity.breaks(record.cpu, kind)) {
            self.lost = self.lost.saturating_add(1);
            self.gap = true;
        }
        let entries = Entry::of(&record, self.selects).map(|entry| entry.map(|entry| entry.within(machine)));
        let entries = entries.map(|entry| entry.and_then(|entry| self.forks.once(entry)));
        self.shows_lazy |= record.flags.need_resched_lazy();
        self.records += 1;
        self.first.get_or_insert(record.time);
        self.last = record.time;
        // With the context of the record that follows the gap.
        if let (true, Some(entry)) = (self.gap, entries[0]) {
            self.gap = false;
            self.wakeups.push(Entry { what: What::Lost, ..entry });
        }
        let cpus = entries.iter().flatten().map(|entry| entry.largest_cpu().index() + 1).max().unwrap_or(1);
        if cpus > self.cpus && self.fixed {
            return Ok(());
        }
        self.cpus = self.cpus.max(cpus);
        self.shows_state |= entries.iter().flatten().any(Entry::shows_state);
        self.shows_hrtick |= entries.iter().flatten().any(|entry| matches!(entry.what, What::Hrtick));
        self.shows_charges |= entries.iter().flatten().any(Entry::begins_charge);
        self.shows_updates |=
            entries.iter().flatten().any(|entry| matches!(entry.what, What::CpuAverages { updated: true, .. }));
        self.shows_moves |=
            entries.iter().flatten().any(|entry| matches!(entry.what, What::Clock { move_task: Some(_), .. }));
        entries.into_iter().flatten().for_each(|entry| self.wakeups.push(entry));
        self.take_complete();
        Ok(())
    }

    fn take_complete(&mut self) {
        while let Some(entry) = self.wakeups.pop() {
            self.push(entry);
        }
    }

    fn push(&mut self, entry: Entry) {
        let slept = self.reread.read(self.entries + self.ahead.len() as u64, &entry);
        self.ahead.push_back(entry);
        let slept = slept.and_then(|number| number.checked_sub(self.entries));
        if let Some(switch) = slept.and_then(|ahead| self.ahead.get_mut(ahead as usize)) {
            switch.correct_state();
        }
    }

    /// The later records, nearest first, for one purpose.
    pub fn look(&self, purpose: LookAhead) -> impl Iterator<Item = &Entry> + Clone {
        let cell = &self.looks[purpose as usize];
        let looks = cell.get();
        if looks.last != self.entries {
            cell.set(Looks { records: looks.records + 1, last: self.entries });
        }
        self.ahead.iter()
    }

    /// The next scheduler event on a CPU.
    pub fn next_event_on(&self, cpu: CpuId, purpose: LookAhead) -> Option<Kind> {
        self.look(purpose).filter(|entry| entry.cpu == cpu).find_map(Entry::kind)
    }

    /// For how many records the later ones were consulted, by purpose.
    pub fn looks(&self) -> impl Iterator<Item = (LookAhead, u64)> + '_ {
        LookAhead::ALL.into_iter().zip(self.looks.iter().map(|cell| cell.get().records))
    }

    /// Fixes the number of CPUs: that of the header, or as many as the records read so far name. Later records of other
    /// CPUs are skipped.
    pub fn fix_cpus(&mut self, header: Option<usize>) -> usize {
        self.cpus = self.cpus.max(header.unwrap_or(1).min(MAX_CPUS));
        self.fixed = true;
        self.cpus
    }

    /// Whether any record shows a task's vruntime.
    pub fn shows_state(&self) -> bool {
        self.shows_state
    }

    /// Whether a probe shows when the hrtick timer fires.
    pub fn shows_hrtick(&self) -> bool {
        self.shows_hrtick
    }

    /// Whether probes show where tasks are enqueued without a wakeup, and why.
    pub fn shows_moves(&self) -> bool {
        self.shows_moves
    }

    /// Whether probes show each charge as it begins, also where nothing is left to charge.
    pub fn shows_charges(&self) -> bool {
        self.shows_charges
    }

    /// Whether a probe shows each change of the averages of the CPUs' queues.
    pub fn shows_updates(&self) -> bool {
        self.shows_updates
    }

    /// What replay needs and the trace lacks. Complete at its end.
    pub fn missing(&self, header: &Header, unannounced: u64) -> Vec<String> {
        self.needs.missing(header, unannounced)
    }

    /// Whether any record shows the lazy need-resched flag: without it every flag is the full one.
    pub fn shows_lazy(&self) -> bool {
        self.shows_lazy
    }

    /// A task's name, as last read.
    pub fn name(&self, pid: Pid) -> &str {
        self.names.get(&pid).map_or("?", String::as_str)
    }

    /// Every task's name, as last read.
    pub fn names(&self) -> &BTreeMap<Pid, String> {
        &self.names
    }

    /// The tasks that are meant by a name, or by `NAME/PID`.
    pub fn named<'a>(&'a self, task: &'a str) -> impl Iterator<Item = Pid> + 'a {
        self.names.iter().filter(move |(pid, name)| is_meant(task, **pid, name)).map(|(pid, _)| *pid)
    }

    /// Time of the last record read.
    pub fn end(&self) -> Nanos {
        self.last
    }

    /// Records read, events lost, time from the first record to the last.
    pub fn totals(&self) -> (u64, u64, Nanos) {
        (self.records, self.lost, self.last - self.first.unwrap_or(self.last))
    }

    /// How many `sched_wakeup` the trace lacks and were placed by the records around them.
    pub fn wakeups_placed(&self) -> u64 {
        self.wakeups.added()
    }

    /// Time of the first record.
    pub fn start(&self) -> Nanos {
        self.first.unwrap_or(0)
    }
}
