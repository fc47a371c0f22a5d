//! The event loop: everything of one instant, then each marked CPU reschedules once.

use std::sync::atomic::{AtomicBool, Ordering};

use schedlab_model::{stream, CpuId, KernelId, Nanos};
use schedlab_spec::RunSpec;
use schedlab_trace::Sink;

use super::outcome::{Ended, Outcome};
use crate::error::SimError;
use crate::kernel::{self, Kernel};
use crate::machine::Machine;
use crate::programs::{self, Programs};
use crate::run::{Run, Source};

/// More events than this at one instant mean that time no longer moves.
const INSTANT_LIMIT: u64 = 20_000_000;

/// A run: time, and the kernels that live in it, each on a machine of its own.
pub struct World<'a, S: Sink> {
    pub(crate) run: Run<'a, S>,
    pub(crate) machines: Vec<Machine>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) programs: Vec<Programs>,
    pub(super) duration: Nanos,
    /// As reported with a failed check.
    pub(super) seed: u64,
}

/// The seed of a kernel of a run: the run's own for kernel 0, one derived from it for any other, so that no two kernels
/// draw from the same streams. A kernel draws what it would draw alone in a run with that seed.
#[must_use]
pub fn kernel_seed(seed: u64, kernel: KernelId) -> u64 {
    match kernel {
        KernelId::FIRST => seed,
        KernelId(number) => stream(seed, &format!("kernel/{number}")).next_u64(),
    }
}

impl<'a, S: Sink> World<'a, S> {
    /// A run at time 0 of one kernel for each specification, numbered in their order. It lasts as long as the longest of
    /// them allows, unless all workloads end before.
    pub fn new(specs: &[RunSpec], sink: &'a mut S) -> Self {
        let nr_cpus: Vec<usize> = specs.iter().map(|spec| spec.machine.topology.nr_cpus()).collect();
        let duration = specs.iter().map(|spec| spec.duration).max().unwrap_or(0);
        let mut world = World {
            run: Run::new(&nr_cpus, duration, sink),
            machines: Vec::new(),
            kernels: Vec::new(),
            programs: Vec::new(),
            duration,
            seed: specs.first().map_or(0, |spec| spec.seed),
        };
        for (number, spec) in specs.iter().enumerate() {
            let id = KernelId(number as u16);
            let seed = kernel_seed(spec.seed, id);
            let (mut kernel, mut programs) = (Kernel::new(id, spec, seed), Programs::new(spec, seed));
            kernel::arm_bandwidth(&mut world.run, &kernel);
            programs::boot(&mut world.run, &mut kernel, &mut programs);
            world.machines.push(Machine::new(spec, seed));
            world.kernels.push(kernel);
            world.programs.push(programs);
        }
        world
    }

    /// The time of the instant last handled.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.run.now
    }

    /// When the next instant is.
    #[must_use]
    pub fn next_time(&self) -> Option<Nanos> {
        (self.run.pending() > 0).then(|| self.run.next_time())
    }

    /// One instant, or several in which nothing but segments of one task ends; `Some` once the run has ended. Fails when
    /// `cancel` becomes true.
    #[inline(always)]
    pub fn step(&mut self, cancel: &AtomicBool) -> Result<Option<Ended>, SimError> {
        if self.run.pending() == 0 {
            return self.nothing_left().map(Some);
        }
        self.run.now = self.run.next_time();
        if self.run.now >= self.duration {
            self.run.now = self.duration;
            return Ok(Some(Ended::Duration));
        }
        self.instant()?;
        if self.run.stop {
            return Ok(Some(Ended::Completed));
        }
        if self.run.handled >= self.run.next_look {
            self.run.next_look = self.run.handled + self.look_interval();
            if cancel.load(Ordering::Relaxed) {
                return Err(SimError::Cancelled { at: self.run.now });
            }
            self.look_over()?;
        }
        Ok(None)
    }

    /// Handles everything due now: events first, then one reschedule per marked CPU, until neither is left. A task that
    /// is alone with the next moments advances the time through them ([`Run::is_next`]).
    #[inline]
    fn instant(&mut self) -> Result<(), SimError> {
        let begun = self.run.handled;
        loop {
            while let Some((kernel, source, cpu)) = self.run.pop() {
                self.run.handled += 1;
                self.handle(kernel, source, cpu);
                if self.run.failure.is_some() {
                    return self.run.failure.take().map_or(Ok(()), Err);
                }
            }
            if self.run.marked.is_empty() {
                return Ok(());
            }
            if self.run.handled - begun > INSTANT_LIMIT {
                return Err(self.livelock());
            }
            self.reschedule_marked()?;
        }
    }

    /// One `__schedule` per marked CPU, lowest first. It may mark further CPUs: those are for the next round, after the
    /// events it made due.
    #[inline]
    fn reschedule_marked(&mut self) -> Result<(), SimError> {
        if let [(kernel, cpu)] = self.run.marked[..] {
            self.schedule(kernel, cpu);
            self.run.marked.swap_remove(0);
        } else {
            self.run.marked.sort_unstable();
            let round = self.run.marked.len();
            for i in 0..round {
                let (kernel, cpu) = self.run.marked[i];
                self.schedule(kernel, cpu);
            }
            self.run.marked.drain(..round);
        }
        self.fail_on_finding()
    }

    #[inline]
    fn schedule(&mut self, kernel: KernelId, cpu: CpuId) {
        let (machine, kernel) = (&mut self.machines[kernel.index()], &mut self.kernels[kernel.index()]);
        kernel::schedule(&mut self.run, machine, kernel, cpu);
    }

    #[inline(always)]
    fn handle(&mut self, kernel: KernelId, source: Source, cpu: CpuId) {
        let run = &mut self.run;
        let programs = &mut self.programs[kernel.index()];
        let (machine, kernel) = (&mut self.machines[kernel.index()], &mut self.kernels[kernel.index()]);
        if machine.cpus[cpu.index()].rate == 0 && source.needs_cpu() {
            return kernel::hold_interrupt(kernel, source, cpu);
        }
        match source {
            Source::Segment => programs::on_segment(run, machine, kernel, programs, cpu),
            Source::Tick => kernel::on_tick(run, machine, kernel, cpu),
            Source::Resched => kernel::on_resched_ipi(run, machine, kernel, cpu),
            Source::Call => kernel::on_call_ipi(run, machine, kernel, cpu),
            Source::IdleExit => kernel::on_idle_exit(run, machine, kernel, cpu),
            Source::HrTimer => kernel::on_hrtimer(run, machine, kernel, cpu),
            Source::HrTick => kernel::on_hrtick(run, machine, kernel, cpu),
            Source::Bandwidth => kernel::on_bandwidth(run, machine, kernel),
            Source::Classes => kernel::on_class_timer(run, machine, kernel),
            Source::Start => programs::on_start(run, machine, kernel, programs),
        }
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

    /// Changes the speed of the hardware thread under a kernel's CPU, in 1/1024. At 0 it executes nothing and handles no
    /// interrupt until its speed is back.
    pub fn set_speed(&mut self, kernel: KernelId, cpu: CpuId, speed: u32) {
        let (machine, kernel) = (&mut self.machines[kernel.index()], &mut self.kernels[kernel.index()]);
        kernel::set_speed(&mut self.run, machine, kernel, cpu, speed);
    }

    /// No event is pending: everything has exited, or a CPU is stopped, or the rest waits for ever.
    fn nothing_left(&mut self) -> Result<Ended, SimError> {
        if self.kernels.iter().all(|kernel| kernel.alive == 0) {
            return Ok(Ended::Completed);
        }
        if self.machines.iter().any(|machine| machine.cpus.iter().any(|cpu| cpu.rate == 0)) {
            self.run.now = self.duration;
            return Ok(Ended::Duration);
        }
        let kernels = self.kernels.iter().zip(&self.programs);
        let waits = kernels.flat_map(|(kernel, programs)| programs.describe_waits(kernel)).collect();
        Err(SimError::Deadlock { at: self.run.now, waits })
    }

    /// Time no longer moves although every step takes its time: name a task that runs.
    fn livelock(&self) -> SimError {
        let running = |kernel: &Kernel| kernel.cpus.iter().find_map(|cpu| cpu.curr);
        let found =
            self.kernels.iter().zip(&self.programs).find_map(|(kernel, programs)| Some((programs, running(kernel)?)));
        match found {
            Some((programs, task)) => programs::livelock(&self.run, programs, task),
            None => SimError::Livelock { at: self.run.now, task: "idle".into(), step: 0, line: None },
        }
    }

    /// Ends the run after a last look: what it reports of each kernel.
    pub fn finish(mut self, ended: Ended) -> Result<Vec<Outcome>, SimError> {
        self.look_over()?;
        Ok((0..self.kernels.len()).map(|number| self.outcome(number, ended)).collect())
    }

    fn outcome(&mut self, number: usize, ended: Ended) -> Outcome {
        let (machine, kernel) = (&self.machines[number], &self.kernels[number]);
        Outcome {
            ended,
            now: self.run.now,
            handled: self.run.handled,
            switches: kernel.switches,
            pending_max: self.run.pending_max,
            tasks_max: kernel.tasks.len(),
            cpus: machine.cpus.iter().map(|cpu| cpu.time).collect(),
            checks: self.run.checks(kernel.id).counts(),
            bandwidth: kernel.cgroups.bandwidth(&kernel.sched.fair),
        }
    }
}

/// Runs one specification; every event goes to `sink`. Stops early when `cancel` becomes true.
pub fn run<S: Sink>(spec: &RunSpec, sink: &mut S, cancel: &AtomicBool) -> Result<Outcome, SimError> {
    let mut world = World::new(std::slice::from_ref(spec), sink);
    let ended = loop {
        if let Some(ended) = world.step(cancel)? {
            break ended;
        }
    };
    world.finish(ended).map(|mut outcomes| outcomes.swap_remove(0))
}
