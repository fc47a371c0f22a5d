//! Reads a Perfetto trace in time order.
//!
//! Recorded traces hold the CPUs' events in separate bundles, in the order in which buffers were drained. A first pass
//! notes where each bundle lies and when it begins; the second merges them, holding only those that overlap in time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;

use prost::Message;
use schedlab_model::{Nanos, Pid, MAX_CPUS};

use super::expand::{expand, Compact, Draft, Reading, Running};
use super::left_out::{LeftOut, GENERIC};
use super::message::*;
use super::packets::Packets;
use crate::error::TraceError;
use crate::input::{Bytes, Input};
use crate::item::What;
use crate::names::Names;
use crate::record::{Header, Record, TraceReader};
use crate::state::StateBits;

/// Reads a Perfetto trace.
pub struct PerfettoReader {
    packets: Packets,
    header: Header,
    names: Names,
    /// Bundles not yet opened, the earliest last.
    bundles: Vec<BundleAt>,
    /// Bundles under way: time of the next event, position in the file, slot.
    heap: BinaryHeap<Reverse<(Nanos, usize, usize)>>,
    slots: Vec<Bundle>,
    /// What runs on each CPU, for compact events, which do not say it.
    running: Vec<Option<Running>>,
    /// The pid of what runs on each CPU, which full events say too.
    current: Vec<Option<Pid>>,
    reading: Reading,
    left_out: LeftOut,
    /// The event last taken, and its bundle's offset.
    draft: Option<Draft>,
    offset: u64,
}

/// Where a bundle lies.
struct BundleAt {
    first: Nanos,
    order: usize,
    offset: u64,
    /// Which packet of a compressed one.
    inner: usize,
}

/// A bundle under way.
#[derive(Default)]
struct Bundle {
    order: usize,
    offset: u64,
    drafts: VecDeque<Draft>,
}

impl PerfettoReader {
    /// Makes the first pass. `file` is what errors call the input.
    pub fn new(input: Box<dyn Input>, file: &Path) -> Result<PerfettoReader, TraceError> {
        let mut reader = PerfettoReader {
            packets: Packets::new(Bytes::new(input, file)?),
            header: Header::default(),
            names: Names::default(),
            bundles: Vec::new(),
            heap: BinaryHeap::new(),
            slots: Vec::new(),
            running: Vec::new(),
            current: Vec::new(),
            reading: Reading::default(),
            left_out: LeftOut::default(),
            draft: None,
            offset: 0,
        };
        while let Some((offset, packets)) = reader.packets.next()? {
            for (inner, packet) in packets.into_iter().enumerate() {
                reader.learn(offset, inner, packet)?;
            }
        }
        reader.reading = Reading {
            states: reader.header.kernel.as_deref().map(StateBits::of_release).unwrap_or_default(),
            newtask_forks: !reader.left_out.forks,
        };
        reader.bundles.sort_by_key(|bundle| Reverse((bundle.first, bundle.order)));
        Ok(reader)
    }

    /// Notes what a packet says about the trace, and where it is if it holds events.
    fn learn(&mut self, offset: u64, inner: usize, packet: TracePacket) -> Result<(), TraceError> {
        if let Some(info) = packet.system_info {
            self.header.kernel = info.utsname.and_then(|name| name.release).or(self.header.kernel.take());
            self.header.nr_cpus = info.num_cpus.map(|count| count as usize).or(self.header.nr_cpus);
        }
        for process in packet.process_tree.iter().flat_map(|tree| &tree.processes) {
            if let (Some(pid), Some(name)) = (process.pid, process.cmdline.first()) {
                self.names.set(pid, name);
            }
        }
        if let Some(TrackDescriptor { uuid: Some(uuid), name: Some(name), counter: Some(counter) }) =
            packet.track_descriptor
        {
            if uuid == super::TRACK_BASE + self.header.metrics.len() as u64 {
                self.header.metrics.push((name, counter.unit_name.unwrap_or_default()));
            }
        }
        let Some(bundle) = packet.ftrace_events else { return Ok(()) };
        if bundle.cpu.unwrap_or(0) as usize >= MAX_CPUS {
            return Err(self.packets.malformed(offset, "a CPU number that no kernel has"));
        }
        for event in &bundle.event {
            let kind = Glance::of(event).kind;
            self.left_out.note(kind);
            if kind != Some(GENERIC) {
                continue;
            }
            let event = FtraceEvent::decode(&event[..]);
            let event = event.map_err(|error| self.packets.malformed(offset, format!("an event: {error}")))?;
            let generic = event.generic.filter(|generic| generic.event_name.as_deref() == Some(super::HEADER_EVENT));
            let fields = generic.into_iter().flat_map(|generic| generic.field);
            self.header.comments.extend(fields.filter_map(|field| field.str_value));
        }
        if let Some(first) = bundle.first_time() {
            self.bundles.push(BundleAt { first, order: self.bundles.len(), offset, inner });
        }
        Ok(())
    }

    /// Opens every bundle that begins no later than the next event.
    fn open_due(&mut self) -> Result<(), TraceError> {
        while let Some(at) = self.bundles.last() {
            if self.heap.peek().is_some_and(|Reverse((next, _, _))| *next < at.first) {
                break;
            }
            let BundleAt { order, offset, inner, .. } = *at;
            self.bundles.pop();
            let bundle = self.packets.at(offset, inner)?.ftrace_events.unwrap_or_default();
            let drafts = expand(bundle, &self.reading).map_err(|what| self.packets.malformed(offset, what))?;
            if let Some(what) = drafts.iter().find_map(|draft| draft.item.what.impossible()) {
                return Err(self.packets.malformed(offset, what));
            }
            if let Some(first) = drafts.front().map(|draft| draft.item.time) {
                let slot = self.free_slot();
                self.slots[slot] = Bundle { order, offset, drafts };
                self.heap.push(Reverse((first, order, slot)));
            }
        }
        Ok(())
    }

    fn free_slot(&mut self) -> usize {
        match self.slots.iter().position(|bundle| bundle.drafts.is_empty()) {
            Some(slot) => slot,
            None => {
                self.slots.push(Bundle::default());
                self.slots.len() - 1
            }
        }
    }

    /// Takes the next event of all bundles.
    fn take(&mut self) -> Result<Option<Draft>, TraceError> {
        self.open_due()?;
        let Some(Reverse((time, _, slot))) = self.heap.pop() else { return Ok(None) };
        let bundle = &mut self.slots[slot];
        self.offset = bundle.offset;
        let draft = bundle.drafts.pop_front();
        if let Some(next) = bundle.drafts.front() {
            self.heap.push(Reverse((next.item.time.max(time), bundle.order, slot)));
        }
        Ok(draft)
    }

    /// Completes a compact switch with what ran before it. False if that is not known: such an event is left out.
    fn complete(&mut self, draft: &mut Draft) -> bool {
        let cpu = draft.item.cpu.index();
        if self.running.len() <= cpu {
            self.running.resize(cpu + 1, None);
            self.current.resize(cpu + 1, None);
        }
        let (running, current) = (&mut self.running[cpu], &mut self.current[cpu]);
        if matches!(draft.item.what, What::Lost(_)) {
            (*running, *current) = (None, None);
            return true;
        }
        let known = draft.complete(running.as_ref(), &self.reading.states);
        match (&draft.compact, *current) {
            (Compact::No, _) => *current = Some(draft.item.pid),
            (Compact::Waking, Some(waker)) => draft.item.pid = waker,
            (Compact::Waking, None) => self.left_out.wakers += 1,
            (Compact::Switch(..), _) => self.left_out.first_switches += u64::from(!known),
        }
        if let Some(next) = draft.switched_to() {
            *current = Some(next.pid);
            *running = Some(next);
        }
        draft.item.teach(&mut self.names);
        known
    }
}

impl TraceReader for PerfettoReader {
    fn header(&self) -> &Header {
        &self.header
    }

    fn notes(&self) -> Vec<String> {
        self.left_out.notes()
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        while let Some(mut draft) = self.take()? {
            if self.complete(&mut draft) {
                let draft = self.draft.insert(draft);
                let record = draft.item.record(&self.names);
                return record.map(Some).map_err(|what| self.packets.malformed(self.offset, what));
            }
        }
        Ok(None)
    }
}
