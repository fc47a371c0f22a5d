//! The event loop: all events of one instant are handled, then each marked CPU reschedules once.

use std::sync::atomic::AtomicBool;

use schedlab_model::{rarely, CpuId, KernelId, Nanos};
use schedlab_spec::RunSpec;
use schedlab_trace::Sink;

use super::host_side::stages;
use super::outcome::{Ended, Outcome};
use super::system::{ties, System, Systems};
use super::virtual_systems::{GuestReport, VirtualSystems};
use crate::error::SimError;
use crate::kernel;
use crate::programs;
use crate::run::{Run, Source, Watch};

/// More events than this at one instant mean that time no longer moves.
const INSTANT_LIMIT: u64 = 20_000_000;

/// A run: time, and the kernels that live in it, each on a machine of its own. `K` is [`System`] for one kernel, a
/// vector of them for several.
pub struct World<'a, S: Sink, K: Systems = System> {
    pub(crate) run: Run<'a, S>,
    pub(crate) systems: K,
    duration: Nanos,
    /// As reported with a failed check.
    pub(super) seed: u64,
}

impl<'a, S: Sink> World<'a, S> {
    /// A run of one kernel at time 0.
    pub fn new(spec: &RunSpec, sink: &'a mut S) -> Self {
        let mut run = Run::new(vec![ties(spec, KernelId::FIRST)], spec.machine.topology.nr_cpus(), spec.duration, sink);
        let systems = System::new(&mut run, spec, KernelId::FIRST);
        World { run, systems, duration: spec.duration, seed: spec.seed }
    }
}

impl<'a, S: Sink> World<'a, S, Vec<System>> {
    /// A run at time 0 of one kernel per specification, numbered in their order. It lasts as long as the longest of
    /// them allows, unless all workloads end before.
    pub fn of(specs: &[RunSpec], sink: &'a mut S) -> Self {
        let nr_cpus = specs.iter().map(|spec| spec.machine.topology.nr_cpus()).max().unwrap_or(1);
        let duration = specs.iter().map(|spec| spec.duration).max().unwrap_or(0);
        let ids = (0..).map(KernelId);
        let ties = ids.clone().zip(specs).map(|(id, spec)| ties(spec, id)).collect();
        let mut run = Run::new(ties, nr_cpus, duration, sink);
        let systems = ids.zip(specs).map(|(id, spec)| System::new(&mut run, spec, id)).collect();
        World { run, systems, duration, seed: specs.first().map_or(0, |spec| spec.seed) }
    }
}

impl<'a, S: Sink> World<'a, S, VirtualSystems> {
    /// A run at time 0 of a host with its guests, which are the kernels from 1 on in their order, those in other guests
    /// included.
    pub fn hosted(spec: &RunSpec, sink: &'a mut S) -> Self {
        let cpus = |spec: &RunSpec| spec.machine.topology.nr_cpus();
        let nr_cpus = spec.guests.iter().map(|guest| cpus(&guest.run)).fold(cpus(spec), usize::max);
        let guests = (1..).map(KernelId).zip(spec.guests.iter()).map(|(id, guest)| ties(&guest.run, id));
        let ties = std::iter::once(ties(spec, KernelId::FIRST)).chain(guests).collect();
        let mut run = Run::hosted(ties, stages(&spec.guests), nr_cpus, spec.duration, sink);
        let systems = VirtualSystems::new(&mut run, spec);
        World { run, systems, duration: spec.duration, seed: spec.seed }
    }

    /// What the run reports so far of the guests' vCPUs.
    #[must_use]
    pub fn guests(&self) -> Vec<GuestReport> {
        self.systems.report(self.run.now)
    }
}

impl<S: Sink, K: Systems> World<'_, S, K> {
    /// The time of the instant last handled.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.run.now
    }

    /// When the next instant is.
    #[must_use]
    pub fn next_time(&mut self) -> Option<Nanos> {
        if self.run.pending() == 0 {
            return None;
        }
        Some(self.run.next_time())
    }

    /// One instant, or several in which nothing but segments of one task ends; `Some` once the run has ended. Fails
    /// when `watch` stops it.
    #[inline(always)]
    pub fn step<W: Watch>(&mut self, watch: &W) -> Result<Option<Ended>, SimError> {
        let next = self.run.next_time();
        if rarely(next >= self.duration) {
            return self.nothing_until_the_end().map(Some);
        }
        self.run.now = next;
        self.instant()?;
        if rarely(self.run.handled >= self.run.next_look) {
            return self.look_around(watch);
        }
        Ok(None)
    }

    /// No event is due before the end of the run. Timers of the kernel's own threads, which do nothing for a program,
    /// may still be pending.
    #[cold]
    fn nothing_until_the_end(&mut self) -> Result<Ended, SimError> {
        if self.run.pending() == 0 || !K::HAS_HOST && self.systems.all().iter().all(System::is_over) {
            return self.nothing_left();
        }
        self.run.now = self.duration;
        Ok(Ended::Duration)
    }

    /// Called at intervals and once the run stops: ends a run that is complete or cancelled, and lets the checkers look
    /// at the whole state.
    #[inline(never)]
    fn look_around<W: Watch>(&mut self, watch: &W) -> Result<Option<Ended>, SimError> {
        if self.run.stop {
            return Ok(Some(Ended::Completed));
        }
        self.run.next_look = self.run.handled + self.look_interval();
        if watch.stops(self.run.now) {
            return Err(SimError::Cancelled { at: self.run.now });
        }
        self.look_over().map(|()| None)
    }

    /// Handles everything due now: events first, then one reschedule per marked CPU, until neither is left. A task that
    /// is alone with the next moments advances the time through them ([`Run::is_next`]).
    #[inline(always)]
    fn instant(&mut self) -> Result<(), SimError> {
        let begun = self.run.handled;
        loop {
            while let Some((kernel, source, cpu)) = self.run.pop() {
                if K::HAS_HOST {
                    self.handle_hosted(kernel, source, cpu, begun)?;
                    if self.run.stage(kernel) < self.run.last_stage() {
                        self.hosts_act(self.run.last_stage(), begun)?;
                    }
                } else {
                    self.handle(kernel, source, cpu);
                }
                if rarely(self.run.failure.is_some()) {
                    return self.run.failure.take().map_or(Ok(()), Err);
                }
            }
            if self.run.marked.is_empty() {
                return Ok(());
            }
            if rarely(self.run.handled - begun > INSTANT_LIMIT) {
                return Err(self.livelock());
            }
            self.reschedule_marked()?;
        }
    }

    #[inline(always)]
    fn handle(&mut self, kernel: KernelId, source: Source, cpu: CpuId) {
        self.run.handled += 1;
        self.systems.get_mut(kernel).handle(&mut self.run, source, cpu);
        self.systems.follow(&mut self.run);
    }

    /// Handles an event where kernels host others. What it makes due on the hosts in this instant comes before the next
    /// event of a guest, so that a halted vCPU which its host runs at once handles the interrupt when its turn is.
    #[inline(never)]
    fn handle_hosted(&mut self, kernel: KernelId, source: Source, cpu: CpuId, begun: u64) -> Result<(), SimError> {
        let holds = source.needs_cpu() && self.systems.get_mut(kernel).machine.cpus[cpu.index()].rate == 0;
        let stage = self.run.stage(kernel);
        self.handle(kernel, source, cpu);
        self.hosts_act(stage, begun)?;
        if holds && self.run.due(kernel, source, cpu) == Some(self.run.now) {
            self.run.cancel(kernel, source, cpu);
            self.handle(kernel, source, cpu);
            self.hosts_act(stage, begun)?;
        }
        Ok(())
    }

    /// Handles what is due on hosts of a stage before `end`, outermost first: their events, then one reschedule per
    /// marked CPU, until neither is left.
    fn hosts_act(&mut self, end: u16, begun: u64) -> Result<(), SimError> {
        let mut stage = 0;
        while stage < end {
            if let Some((kernel, source, cpu)) = self.run.pop_stage(stage) {
                self.handle_hosted(kernel, source, cpu, begun)?;
                if self.run.failure.is_some() {
                    return Ok(());
                }
                continue;
            }
            if self.reschedule_stage(stage)? {
                if rarely(self.run.handled - begun > INSTANT_LIMIT) {
                    return Err(self.livelock());
                }
                stage = 0;
            } else {
                stage += 1;
            }
        }
        Ok(())
    }

    /// One `__schedule` per marked CPU of this stage or a lower one. Whether there was one.
    fn reschedule_stage(&mut self, stage: u16) -> Result<bool, SimError> {
        let acts = |(kernel, _): &(KernelId, CpuId)| self.run.stage(*kernel) <= stage;
        if !self.run.marked.iter().any(acts) {
            return Ok(false);
        }
        let (marked, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.run.marked).into_iter().partition(|(kernel, _)| self.run.stage(*kernel) <= stage);
        self.run.marked = marked;
        let rescheduled = self.reschedule_marked();
        self.run.marked.extend(others);
        rescheduled.map(|()| true)
    }

    /// One `__schedule` per marked CPU, in the order of [`Run::sort_marked`]. It may mark further CPUs: those are for
    /// the next round, after the events it made due.
    #[inline]
    fn reschedule_marked(&mut self) -> Result<(), SimError> {
        if let [(kernel, cpu)] = self.run.marked[..] {
            self.run.marked.clear();
            self.schedule(kernel, cpu)?;
        } else {
            self.run.sort_marked();
            let round = self.run.marked.len();
            for i in 0..round {
                let (kernel, cpu) = self.run.marked[i];
                self.schedule(kernel, cpu)?;
            }
            self.run.marked.drain(..round);
        }
        Ok(())
    }

    #[inline]
    fn schedule(&mut self, kernel: KernelId, cpu: CpuId) -> Result<(), SimError> {
        let System { machine, kernel, .. } = self.systems.get_mut(kernel);
        kernel::schedule(&mut self.run, machine, kernel, cpu);
        let found = kernel.checks.found();
        self.systems.follow(&mut self.run);
        if rarely(found) {
            return self.fail_check();
        }
        Ok(())
    }

    /// Handles every instant up to and including `time`; `Some` if the run ended before.
    pub fn run_until(&mut self, time: Nanos, cancel: &AtomicBool) -> Result<Option<Ended>, SimError> {
        let horizon = self.run.horizon;
        self.run.horizon = horizon.min(time);
        let mut ended = None;
        while ended.is_none() && self.run.pending() > 0 && self.run.next_time() <= time {
            ended = self.step(cancel)?;
        }
        self.run.horizon = horizon;
        if ended.is_none() {
            self.run.now = time.min(self.duration).max(self.run.now);
        }
        Ok(ended)
    }

    /// Changes the speed of the hardware thread under a kernel's CPU, in 1/1024. At 0 it executes nothing and handles
    /// no interrupt until its speed is back.
    pub fn set_speed(&mut self, kernel: KernelId, cpu: CpuId, speed: u32) {
        let System { machine, kernel, .. } = self.systems.get_mut(kernel);
        kernel::set_speed(&mut self.run, machine, kernel, cpu, speed);
    }

    /// No event is pending: the run could not start, everything has exited, a CPU is stopped, or the rest waits for
    /// ever.
    fn nothing_left(&mut self) -> Result<Ended, SimError> {
        if let Some(failure) = self.run.failure.take() {
            return Err(failure);
        }
        if self.systems.alive() == 0 {
            return Ok(Ended::Completed);
        }
        if self.systems.stands_still() {
            self.run.now = self.duration;
            return Ok(Ended::Duration);
        }
        let waits =
            self.systems.all().iter().flat_map(|system| system.programs.describe_waits(&system.kernel)).collect();
        let blocked = self.systems.all().iter().filter_map(|system| system.programs.last_blocked(&system.kernel)).max();
        Err(SimError::Deadlock { at: blocked.unwrap_or(self.run.now), waits })
    }

    /// Time no longer moves although every step takes its time: name a task that runs.
    fn livelock(&self) -> SimError {
        let running = |system: &'_ System| system.kernel.cpus.iter().find_map(|cpu| cpu.curr);
        match self.systems.all().iter().find_map(|system| Some((system, running(system)?))) {
            Some((system, task)) => programs::livelock(&self.run, &system.programs, task),
            None => SimError::Livelock { at: self.run.now, task: "idle".into(), step: 0, line: None },
        }
    }

    /// Ends the run after a last look: what it reports of each kernel.
    pub fn finish(mut self, ended: Ended) -> Result<Vec<Outcome>, SimError> {
        self.look_over()?;
        Ok(self.systems.all().iter().map(|system| system.outcome(&self.run, ended)).collect())
    }
}

/// Runs a host and its guests: the outcome of each kernel, the host first, and what is reported of the guests' vCPUs.
pub fn run_virtual<S: Sink, W: Watch>(
    spec: &RunSpec,
    sink: &mut S,
    watch: &W,
) -> Result<(Vec<Outcome>, Vec<GuestReport>), SimError> {
    let mut world = World::hosted(spec, sink);
    let ended = loop {
        if let Some(ended) = world.step(watch)? {
            break ended;
        }
    };
    let guests = world.guests();
    world.finish(ended).map(|outcomes| (outcomes, guests))
}

/// Runs one specification without guests; every event goes to `sink`. `watch` may stop it early.
pub fn run<S: Sink, W: Watch>(spec: &RunSpec, sink: &mut S, watch: &W) -> Result<Outcome, SimError> {
    let mut world = World::new(spec, sink);
    let ended = loop {
        if let Some(ended) = world.step(watch)? {
            break ended;
        }
    };
    world.finish(ended).map(|mut outcomes| outcomes.swap_remove(0))
}
