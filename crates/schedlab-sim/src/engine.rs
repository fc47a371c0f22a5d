//! The event loop: everything of one instant, then each marked CPU reschedules once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use schedlab_model::{CpuId, Nanos, Pid, Stream};
use schedlab_policy::fair::BandwidthStats;
use schedlab_policy::Sched;
use schedlab_spec::RunSpec;
use schedlab_trace::{Event, Kind, Sink};
use schedlab_workload::{Label, Op, Workload};

use crate::cgroup::Cgroups;
use crate::cost::{CostTable, CostTables};
use crate::cpu::{Cpu, CpuTime};
use crate::error::SimError;
use crate::objects::Object;
use crate::queue::{EventQueue, Phase};
use crate::setup::{Bases, Core};
use crate::spawn::Start;
use crate::task::Task;

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Every workload with an end of its own reached it, or every task exited.
    Completed,
    /// At the limit.
    Duration,
}

/// What a finished run tells besides its trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// Simulated time at the end.
    pub now: Nanos,
    /// Events handled by the engine.
    pub handled: u64,
    /// Context switches.
    pub switches: u64,
    /// Most events pending at once, as seen at the checkers' regular looks.
    pub pending_max: usize,
    /// Most tasks that existed at once.
    pub tasks_max: usize,
    /// Per CPU, where the time went.
    pub cpus: Vec<CpuTime>,
    /// How often each checker looked.
    pub checks: Vec<(&'static str, u64)>,
    /// Per control group with a quota, how it was used (`cpu.stat`).
    pub bandwidth: Vec<(String, BandwidthStats)>,
}

/// More events than this at one instant mean that time no longer moves.
const INSTANT_LIMIT: u64 = 20_000_000;
/// How many events pass between two looks at the cancel flag and at the whole state: few at first, so that a short run
/// is looked at often, more later.
pub(crate) const LOOK_MIN: u64 = 64;
pub(crate) const LOOK_MAX: u64 = 4096;

pub(crate) struct Engine<'a, S: Sink> {
    pub now: Nanos,
    /// Low bits of a source that hold its CPU.
    pub cpu_bits: u32,
    pub events: EventQueue,
    pub sched: Sched,
    pub cpus: Vec<Cpu>,
    pub cores: Vec<Core>,
    /// Index into `cores`, by CPU.
    pub core_of: Vec<u32>,
    pub tasks: Vec<Task>,
    pub objects: Vec<Object>,
    pub costs: CostTables,
    pub idle_exits: Vec<CostTable>,
    /// How many of the idle states, shallowest first, the workloads allow (PM QoS).
    pub idle_allowed: usize,
    /// All programs, one after the other.
    pub code: Vec<Op>,
    /// Where each of them begins.
    pub entries: Vec<Label>,
    pub bases: Vec<Bases>,
    pub workloads: Arc<Vec<Workload>>,
    /// Some group has a quota.
    pub bandwidth: bool,
    /// Their control groups.
    pub cgroups: Cgroups,
    /// Where the groups' metrics begin, after the workloads'.
    pub metrics_of_groups: u16,
    pub marked: Vec<CpuId>,
    pub starts: Vec<Start>,
    pub placement: Stream,
    pub spec: &'a RunSpec,
    pub sink: &'a mut S,
    pub tick_nsec: Nanos,
    /// The kernel can be preempted by a full resched flag.
    pub preemptible: bool,
    pub hrtick: bool,
    /// Workloads with an end of their own that have not reached it.
    pub unfinished: Vec<bool>,
    pub alive: u32,
    /// Pid of the youngest task.
    pub born: Pid,
    /// Places of tasks that are gone are given to new ones.
    pub recycles: bool,
    pub timer_sequence: u64,
    pub handled: u64,
    pub switches: u64,
    pub failure: Option<SimError>,
    pub checks: crate::check::Checks,
    pub stop: bool,
    /// Events handled at which the checkers look at the whole state again; 0 once the run stops or has failed.
    pub next_look: u64,
    /// Up to where a task may carry time on ([`Engine::runs_ahead`]); 0: every step is one instant.
    pub horizon: Nanos,
    pub pending_max: usize,
}

/// Runs one specification; every event goes to `sink`. Stops early when `cancel` becomes true.
pub fn run<S: Sink>(spec: &RunSpec, sink: &mut S, cancel: &AtomicBool) -> Result<Outcome, SimError> {
    let mut engine = Engine::new(spec, sink);
    engine.boot();
    let ended = loop {
        if let Some(ended) = engine.step(cancel)? {
            break ended;
        }
    };
    engine.finish(ended)
}

impl<'a, S: Sink> Engine<'a, S> {
    /// One instant, or several in which nothing but segments of one task ends; `Some` once the run has ended.
    #[inline(always)]
    pub fn step(&mut self, cancel: &AtomicBool) -> Result<Option<Ended>, SimError> {
        if self.events.is_empty() {
            return self.nothing_left().map(Some);
        }
        self.now = self.events.next_time();
        if self.now >= self.spec.duration {
            self.now = self.spec.duration;
            return Ok(Some(Ended::Duration));
        }
        self.instant()?;
        if self.stop {
            return Ok(Some(Ended::Completed));
        }
        if self.handled >= self.next_look {
            self.next_look = self.handled + self.look_interval();
            if cancel.load(Ordering::Relaxed) {
                return Err(SimError::Cancelled { at: self.now });
            }
            self.look_over()?;
        }
        Ok(None)
    }

    fn finish(&mut self, ended: Ended) -> Result<Outcome, SimError> {
        self.look_over()?;
        Ok(Outcome {
            ended,
            now: self.now,
            handled: self.handled,
            switches: self.switches,
            pending_max: self.pending_max,
            tasks_max: self.tasks.len(),
            cpus: self.cpus.iter().map(|cpu| cpu.time).collect(),
            checks: self.checks.counts(),
            bandwidth: self.cgroups.bandwidth(&self.sched.fair),
        })
    }

    /// Handles everything due now: events first, then one reschedule per marked CPU, until neither is left. A task that
    /// is alone with the next moments carries time on with it ([`Engine::runs_ahead`]).
    #[inline]
    fn instant(&mut self) -> Result<(), SimError> {
        let begun = self.handled;
        loop {
            while let Some(source) = self.events.pop_at(self.now) {
                self.handled += 1;
                self.handle(source);
                if self.failure.is_some() {
                    return self.failure.take().map_or(Ok(()), Err);
                }
            }
            if self.marked.is_empty() {
                return Ok(());
            }
            if self.handled - begun > INSTANT_LIMIT {
                return Err(self.livelock());
            }
            self.reschedule_marked()?;
        }
    }

    /// One `schedule()` per marked CPU, lowest first. It may mark further CPUs: those are for the next round, after the
    /// events it made due.
    #[inline]
    fn reschedule_marked(&mut self) -> Result<(), SimError> {
        if let [only] = self.marked[..] {
            self.schedule(only);
            self.marked.swap_remove(0);
        } else {
            self.marked.sort_unstable();
            let round = self.marked.len();
            for i in 0..round {
                let cpu = self.marked[i];
                self.schedule(cpu);
            }
            self.marked.drain(..round);
        }
        self.fail_on_finding()
    }

    /// Whether a segment that the engine holds in hand and that ends at `end` is what happens next: then it is handled
    /// at once instead of going through the queue. Ends of segments come last within an instant, so any other event
    /// at `end` is earlier.
    #[inline]
    pub fn runs_ahead(&self, end: Nanos) -> bool {
        end < self.events.next_time()
            && end > self.now
            && end < self.horizon
            && self.handled < self.next_look
            && self.marked.is_empty()
    }

    #[inline(always)]
    fn handle(&mut self, source: u32) {
        let cpu = CpuId(source & ((1 << self.cpu_bits) - 1));
        match source >> self.cpu_bits {
            Source::SEGMENT => self.on_segment(cpu),
            Source::TICK => self.on_tick(cpu),
            Source::RESCHED => self.on_resched_ipi(cpu),
            Source::CALL => self.on_call_ipi(cpu),
            Source::IDLE_EXIT => self.on_idle_exit(cpu),
            Source::HRTIMER => self.on_hrtimer(cpu),
            Source::HRTICK => self.on_hrtick(cpu),
            Source::BANDWIDTH => self.on_bandwidth(),
            Source::RT => self.on_rt_timer(),
            _ => self.on_start(),
        }
    }

    /// No event is pending: everything has exited, or the rest waits for ever.
    fn nothing_left(&mut self) -> Result<Ended, SimError> {
        if self.alive == 0 {
            return Ok(Ended::Completed);
        }
        Err(SimError::Deadlock { at: self.now, waits: self.describe_waits() })
    }

    #[inline(always)]
    pub fn emit(&mut self, cpu: CpuId, kind: Kind) {
        self.sink.event(&Event { time: self.now, cpu, kind });
    }

    /// Charges overhead to what the CPU does next.
    #[inline]
    pub fn charge(&mut self, cpu: CpuId, cost: Nanos) {
        self.cpus[cpu.index()].pending += cost;
    }

    /// Accounts a CPU's time up to now.
    #[inline(always)]
    pub fn progress(&mut self, cpu: CpuId) {
        if self.cpus[cpu.index()].last != self.now {
            self.account(cpu);
        }
    }

    #[inline(never)]
    fn account(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu.index()];
        match c.curr {
            Some(task) => c.progress(self.now, Some(&mut self.tasks[task.index()])),
            None => c.progress(self.now, None),
        }
    }

    /// The CPU reschedules at the end of this instant.
    #[inline]
    pub fn mark(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu.index()];
        if !c.marked {
            c.marked = true;
            self.marked.push(cpu);
        }
    }

    #[inline]
    pub fn source(&self, kind: u32, cpu: CpuId) -> u32 {
        (kind << self.cpu_bits) | cpu.0
    }

    #[inline]
    pub fn set_event(&mut self, kind: u32, cpu: CpuId, time: Nanos) {
        let phase = match kind {
            Source::SEGMENT => Phase::Segment,
            Source::TICK => Phase::Tick,
            Source::RESCHED | Source::CALL => Phase::Ipi,
            Source::IDLE_EXIT => Phase::IdleExit,
            Source::HRTIMER | Source::HRTICK | Source::RT => Phase::Timer,
            _ => Phase::Control,
        };
        let source = self.source(kind, cpu);
        self.events.set(source, time, phase);
    }
}

/// The kinds of event source, each one per CPU, and after them one of task starts, one of bandwidth timers and one of
/// the real-time class.
pub(crate) struct Source;

impl Source {
    pub const SEGMENT: u32 = 0;
    pub const TICK: u32 = 1;
    pub const RESCHED: u32 = 2;
    pub const CALL: u32 = 3;
    pub const IDLE_EXIT: u32 = 4;
    pub const HRTIMER: u32 = 5;
    pub const HRTICK: u32 = 6;
    pub const START: u32 = 7;
    pub const BANDWIDTH: u32 = 8;
    /// The real-time class's periods and servers.
    pub const RT: u32 = 9;

    pub fn count(cpu_bits: u32) -> usize {
        ((Source::RT as usize) << cpu_bits) + 1
    }
}
