//! One pass over a trace: its records as operations, and what remains of it afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use schedlab_model::{Nanos, Pid};
use schedlab_policy::Version;
use schedlab_trace::{Header, TraceError, TraceReader};

use crate::balance::Balances;
use crate::groups::InitialGroups;
use crate::header::{kernel, settings, Settings};
use crate::lags::Row;
use crate::model::Model;
use crate::operation::Input;
use crate::placement::Placements;
use crate::reader::Reader;
use crate::report::{LookCount, ReschedReport};
use crate::resched::Resched;
use crate::tally::Tally;
use crate::topology::Machine;
use crate::trace::{Entry, Window};
use crate::Options;

/// A trace being read.
pub struct Pass<'r> {
    pub start: Start,
    pub window: Window<'r>,
    reader: Reader,
    resched: Resched,
    first: Option<Entry>,
}

/// What is known before the first record is followed: enough to set up a row.
pub struct Start {
    pub header: Header,
    begins: Nanos,
    shows_state: bool,
    groups: Arc<InitialGroups>,
}

/// What remains of a trace that was read to its end.
pub struct Seen {
    pub records: u64,
    pub lost: u64,
    pub wakeups_placed: u64,
    pub span_ns: Nanos,
    pub missing: Vec<String>,
    pub look_ahead: Vec<LookCount>,
    pub resched: ReschedReport,
    pub names: BTreeMap<Pid, String>,
}

impl<'r> Pass<'r> {
    /// Reads the header and the first records.
    pub fn begin(reader: &'r mut dyn TraceReader, options: &Options) -> Result<Pass<'r>, TraceError> {
        let mut header = reader.header().clone();
        let mut window = Window::new(reader);
        let first = window.next()?;
        header.nr_cpus = Some(window.fix_cpus(header.nr_cpus));
        let (begins, shows_state) = (window.start(), window.shows_state());
        let resched = Resched::new(&header, begins + options.warm_up, options.disagreements);
        let groups = Arc::new(InitialGroups::of(&header));
        let reader = Reader::new(kernel(&header));
        Ok(Pass { start: Start { header, begins, shows_state, groups }, window, reader, resched, first })
    }

    /// The next record.
    pub fn next(&mut self) -> Result<Option<Entry>, TraceError> {
        match self.first.take() {
            Some(entry) => Ok(Some(entry)),
            None => self.window.next(),
        }
    }

    /// The operations that it stands for or completes.
    pub fn read<'p>(&'p mut self, entry: &'p Entry) -> impl Iterator<Item = Input> + use<'p, 'r> {
        self.resched.record(entry, &self.reader);
        let resched = &mut self.resched;
        self.reader.read(entry, &self.window).map(move |operation| {
            resched.operation(entry, &operation);
            Input { time: entry.time, cpu: entry.cpu, operation }
        })
    }

    /// What remains of it at its end.
    pub fn end(self) -> (Start, Window<'r>, Seen) {
        let Pass { start, window, reader, resched, .. } = self;
        let (records, lost, span_ns) = window.totals();
        let looks = window.looks().filter(|(_, records)| *records > 0);
        let seen = Seen {
            records,
            lost,
            wakeups_placed: window.wakeups_placed(),
            span_ns,
            missing: window.missing(&start.header, reader.unannounced()),
            look_ahead: looks.map(|(purpose, records)| LookCount { purpose, name: purpose.name(), records }).collect(),
            resched: resched.report(),
            names: window.names().clone(),
        };
        (start, window, seen)
    }
}

impl Start {
    /// A row at the beginning of the trace, and the settings of the header that it refuses.
    pub fn row(&self, version: &'static Version, options: &Options) -> (Row, Vec<String>) {
        let Settings { config, refused } = settings(&self.header, version);
        let tally = Tally { from: self.begins + options.warm_up, limit: options.disagreements, ..Tally::default() };
        let machine = Machine::of(&self.header, config.nr_cpus);
        let topology = Arc::new(machine.topology.clone());
        let placements = Placements::new(&config, machine, self.begins, options.warm_up, options.disagreements);
        let model = Model::new(config, topology, Tally::default(), self.groups.clone(), self.shows_state);
        let balances = Balances::new(self.begins, options.warm_up, options.disagreements);
        (Row::new(model, tally, placements, balances), refused)
    }
}

impl Seen {
    /// A task's name, as last read.
    pub fn name(&self, pid: Pid) -> &str {
        self.names.get(&pid).map_or("?", String::as_str)
    }
}
