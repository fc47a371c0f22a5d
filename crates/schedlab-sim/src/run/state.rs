//! What all parts of a run share: the clock, the event queue, the sink, and what stops the run.

use schedlab_model::{rarely, CpuId, KernelId, Nanos, Ties};
use schedlab_trace::{Event, Flags, Kind, Sink};

use super::context::Context;
use super::order::Phase;
use super::queue::EventQueue;
use super::source::{Source, Sources};
use crate::error::SimError;

/// Events between two checks of the cancel flag and of the whole state: few at first, so that a short run is checked
/// often, more later.
pub const LOOK_MIN: u64 = 64;
pub const LOOK_MAX: u64 = 4096;

/// The shared part of a run. Kernels and programs get it in addition to their own state.
pub struct Run<'a, S: Sink> {
    pub now: Nanos,
    events: EventQueue,
    sources: Sources,
    /// By kernel: what breaks the ties between CPUs; empty if all are broken by number.
    ties: Vec<Ties>,
    /// By kernel: within an instant, events of a lower stage come first; empty if no kernel hosts another.
    stages: Vec<u16>,
    /// The stage of the kernels that host none, and the bits that a stage takes.
    last_stage: u16,
    stage_bits: u32,
    sink: &'a mut S,
    /// CPUs that reschedule at the end of this instant.
    pub marked: Vec<(KernelId, CpuId)>,
    /// CPUs of hosts and guests whose state has changed in a way that the other side has to follow.
    touched: Vec<(KernelId, CpuId)>,
    /// The horizon, while CPUs are touched: until the other side has followed, no task advances the time.
    held_horizon: Option<Nanos>,
    /// Events handled.
    pub handled: u64,
    /// Events handled at which the checkers look at the whole state again; 0 once the run stops or has failed.
    pub next_look: u64,
    /// Up to where a task may advance the time ([`Run::is_next`]); 0: every step is one instant.
    pub horizon: Nanos,
    /// Workloads with an end of their own that have not reached it.
    pub unfinished: u32,
    /// The last of them has reached it.
    pub stop: bool,
    pub failure: Option<SimError>,
    pub pending_max: usize,
    /// What trace files show of the code that runs.
    pub context: Context,
}

impl<'a, S: Sink> Run<'a, S> {
    /// A run at time 0 of kernels with these ties and at most so many CPUs.
    pub fn new(ties: Vec<Ties>, nr_cpus: usize, horizon: Nanos, sink: &'a mut S) -> Self {
        let (sources, kernels) = (Sources::new(nr_cpus), ties.len());
        Run {
            now: 0,
            events: EventQueue::new(sources.count(kernels)),
            sources,
            ties: if ties.iter().all(|ties| ties.is_fixed()) { Vec::new() } else { ties },
            stages: Vec::new(),
            last_stage: 0,
            stage_bits: 0,
            sink,
            marked: Vec::with_capacity(kernels * nr_cpus),
            touched: Vec::new(),
            held_horizon: None,
            handled: 0,
            next_look: LOOK_MIN,
            horizon,
            unfinished: 0,
            stop: false,
            failure: None,
            pending_max: 0,
            context: Context::default(),
        }
    }

    /// A run of kernels of which some host others: in each instant those of a lower stage act first.
    pub fn hosted(ties: Vec<Ties>, stages: Vec<u16>, nr_cpus: usize, horizon: Nanos, sink: &'a mut S) -> Self {
        let last = stages.iter().copied().max().unwrap_or(0);
        let run = Self::new(ties.clone(), nr_cpus, horizon, sink);
        Run { ties, stages, last_stage: last, stage_bits: u16::BITS - last.leading_zeros(), ..run }
    }

    /// The stage of a kernel; 0 if no kernel hosts another.
    pub fn stage(&self, kernel: KernelId) -> u16 {
        self.stages.get(kernel.index()).copied().unwrap_or(0)
    }

    /// The stage of the kernels that host none.
    pub fn last_stage(&self) -> u16 {
        self.last_stage
    }

    /// Sends an event of the kernel to the sink.
    #[inline(always)]
    pub fn emit(&mut self, kernel: KernelId, cpu: CpuId, kind: Kind) {
        self.sink.event(&Event { time: self.now, kernel, cpu, kind });
    }

    /// Whether the sink takes what only trace files contain. Known when a run is compiled, unless it is traced.
    #[inline(always)]
    pub fn is_trace(&self) -> bool {
        self.sink.is_trace()
    }

    /// Whether the sink takes the events that only trace files contain, too.
    #[inline(always)]
    pub fn takes_trace_only(&self) -> bool {
        self.sink.takes_trace_only()
    }

    /// Does something in another context. Traces alone show it.
    #[inline(always)]
    pub fn in_context(&mut self, context: Context, what: impl FnOnce(&mut Self)) {
        if self.is_trace() {
            let before = std::mem::replace(&mut self.context, context);
            what(self);
            self.context = before;
        }
    }

    /// Sends the context flags of the next event to the sink.
    pub fn flags(&mut self, kernel: KernelId, flags: Flags) {
        self.sink.kernel(kernel);
        self.sink.flags(flags);
    }

    /// Sends an event that only trace files contain to the sink.
    pub fn trace_only(&mut self, event: &Event) {
        self.sink.trace_only(event);
    }

    /// Sends a note to the sink, which only trace files contain.
    pub fn note(&mut self, cpu: CpuId, name: &str, fields: &str) {
        self.sink.note(self.now, cpu, name, fields);
    }

    /// Sends a task's name to the sink.
    pub fn name(&mut self, kernel: KernelId, pid: i32, name: &str) {
        self.sink.name(kernel, pid, name);
    }

    /// Schedules the event at `time`, in place of the pending one of this source.
    #[inline]
    pub fn set_event(&mut self, kernel: KernelId, source: Source, cpu: CpuId, time: Nanos) {
        let rank = if source.phase() == Phase::Control { 0 } else { self.rank(kernel, cpu, time) };
        self.events.set(self.sources.pack(kernel, source, cpu), time, rank, source.phase());
    }

    /// The place of a CPU among those for which something happens at `time`.
    #[inline]
    fn rank(&self, kernel: KernelId, cpu: CpuId, time: Nanos) -> u16 {
        if rarely(!self.ties.is_empty()) {
            return self.rank_by_ties(kernel, cpu, time);
        }
        0
    }

    #[inline(never)]
    fn rank_by_ties(&self, kernel: KernelId, cpu: CpuId, time: Nanos) -> u16 {
        let rank = self.ties[kernel.index()].rank(time, cpu.0);
        if self.stages.is_empty() {
            return rank;
        }
        self.stage(kernel) << (Ties::BITS - self.stage_bits) | rank >> self.stage_bits
    }

    /// Puts the marked CPUs into the order in which they reschedule: lowest first, or in the order drawn for this
    /// instant.
    pub fn sort_marked(&mut self) {
        let mut marked = std::mem::take(&mut self.marked);
        marked.sort_unstable_by_key(|(kernel, cpu)| (self.rank(*kernel, *cpu, self.now), *kernel, *cpu));
        self.marked = marked;
    }

    #[inline]
    pub fn cancel(&mut self, kernel: KernelId, source: Source, cpu: CpuId) {
        self.events.cancel(self.sources.pack(kernel, source, cpu));
    }

    /// When the event is due, if it is pending.
    pub fn due(&self, kernel: KernelId, source: Source, cpu: CpuId) -> Option<Nanos> {
        self.events.due(self.sources.pack(kernel, source, cpu))
    }

    /// Takes the next event of this instant.
    #[inline]
    pub fn pop(&mut self) -> Option<(KernelId, Source, CpuId)> {
        self.events.pop_at(self.now).map(|source| self.sources.unpack(source))
    }

    /// Takes the next event of this instant if it is one of a kernel of this stage or a lower one.
    pub fn pop_stage(&mut self, stage: u16) -> Option<(KernelId, Source, CpuId)> {
        let (kernel, ..) = self.sources.unpack(self.events.peek_at(self.now)?);
        if self.stage(kernel) <= stage {
            self.pop()
        } else {
            None
        }
    }

    /// When the next event is due; the end of time if nothing is pending.
    #[inline]
    pub fn next_time(&mut self) -> Nanos {
        self.events.next_time()
    }

    /// Number of pending events.
    pub fn pending(&self) -> usize {
        self.events.len()
    }

    /// Whether the end of a segment at `end` is what happens next: then it is handled at once instead of going through
    /// the queue. Ends of segments come last within an instant, so any other event at `end` is earlier.
    #[inline]
    pub fn is_next(&mut self, end: Nanos) -> bool {
        end < self.events.next_time()
            && end > self.now
            && end < self.horizon
            && self.handled < self.next_look
            && self.marked.is_empty()
    }

    /// The CPU of a host or of a guest has changed in a way that the other side has to follow before time passes.
    #[cold]
    pub fn touch(&mut self, kernel: KernelId, cpu: CpuId) {
        let horizon = std::mem::replace(&mut self.horizon, 0);
        self.held_horizon.get_or_insert(horizon);
        self.touched.push((kernel, cpu));
    }

    /// Takes the next CPU that was touched; `None` once all have been followed.
    pub fn take_touched(&mut self) -> Option<(KernelId, CpuId)> {
        let touched = self.touched.pop();
        if touched.is_none() {
            self.horizon = self.held_horizon.take().unwrap_or(self.horizon);
        }
        touched
    }

    /// Ends the run; the first failure is the one that is reported.
    pub fn fail(&mut self, error: SimError) {
        self.failure.get_or_insert(error);
        self.next_look = 0;
    }

    /// A workload with an end of its own has reached it.
    pub fn finished_one(&mut self) {
        self.unfinished -= 1;
        if self.unfinished == 0 {
            self.stop = true;
            self.next_look = 0;
        }
    }
}
