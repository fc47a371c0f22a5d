//! One run: calibrate, lay out, start, watch, end, and reduce what was noted to the report every arm writes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::event::{poll, PollFd, PollFlags};
use rustix::thread::futex::{self, Flags};
use schedlab_model::{Nanos, MSEC, SEC};
use schedlab_sim::RunSpec;
use schedlab_workload::{identity, Op};

use crate::burn::Speed;
use crate::clock;
use crate::counters::Counters;
use crate::error::{os, AgentError, Result};
use crate::life::{self, First};
use crate::program::launch::GRACE;
use crate::program::Real;
use crate::result::{self, Measured};
use crate::supervise::{Plan, Root};
use crate::sys::{self, Forked};
use crate::tracing::{self, Recording};
use crate::world::{Failure, World};

/// What is asked beyond the scenario.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where the trace goes; the suffix chooses the format.
    pub trace: Option<PathBuf>,
    /// Whether scheduler tracepoints are recorded.
    pub tracing: bool,
    /// KiB of trace buffer for each CPU.
    pub buffer_kb: u32,
    /// What the report calls the arm.
    pub arm: String,
}

/// Everything is ready this long before the run begins.
const LEAD: Nanos = 20 * MSEC;
/// Tasks of the start must be ready within this.
const PATIENCE: Nanos = 60 * SEC;
/// How often the trace is emptied.
const DRAIN: Nanos = 250 * MSEC;

/// Runs one specification on this machine and returns the result as JSON.
pub fn run(spec: &RunSpec, real: Vec<Option<Real>>, settings: &Settings) -> Result<serde_json::Value> {
    let wall = clock::now();
    if spec.autogroup && !autogroup_is_on() {
        let what = "autogroup = true: the kernel makes no autogroups";
        return Err(AgentError::cannot(what, "sysctl kernel.sched_autogroup_enabled=1"));
    }
    let signals = sys::signal_fd(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]).map_err(os("signalfd"))?;
    let kernel_work =
        spec.workloads.iter().flat_map(|w| &w.programs).flat_map(|p| &p.ops).any(|op| matches!(op, Op::System(_)));
    let speed = Speed::measure(kernel_work)?;
    let (_awake, note) = keep_awake(spec, &real);
    let world = World::new(spec, speed, allowed_cpus()?, real)?;
    let _groups = RemoveGroups(world);
    let (autogroup, sessions, leaders) = (spec.autogroup, Vec::new(), Vec::new());
    let mut start = Start { world, groups: groups(world, spec)?, autogroup, sessions, leaders };
    let firsts = start.groups.iter().map(Vec::len).sum::<usize>();
    let mut root = Root::start(&mut start)?;
    wait_ready(world, firsts as u32, &signals)?;
    let mut recording = tracing::begin(settings);
    let mut counters = Counters::new(spec.warmup, recording.why_not().is_some());
    let begin = clock::now() + LEAD;
    world.control.begin.store(begin, Relaxed);
    world.control.started.store(1, Release);
    let _ = futex::wake(&world.control.started, Flags::empty(), i32::MAX as u32);
    let ended = watch(world, spec, begin, &signals, &mut recording, &mut counters)?;
    let at_end = counters.finish(world);
    recording.stop();
    wait_reports(world, &signals)?;
    root.end();
    if let Some(error) = world.failure() {
        return Err(error);
    }
    let after = Speed::measure(false)?;
    let wall_ns = clock::now() - wall;
    let measured = Measured { spec, world, begin, ended, counts: at_end, after, wall_ns, note };
    result::report(&measured, recording, settings)
}

fn autogroup_is_on() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|text| text.trim() == "1")
}

/// What the kernel is asked for about idle states, as cyclictest does: the file is held open for the run.
fn keep_awake(spec: &RunSpec, real: &[Option<Real>]) -> (Option<File>, Option<String>) {
    const FILE: &str = "/dev/cpu_dma_latency";
    let own = spec.workloads.iter().zip(real).filter(|(_, real)| real.is_none());
    let Some(limit) = own.filter_map(|(workload, _)| workload.idle_latency_limit).min() else { return (None, None) };
    let microseconds = i32::try_from(limit / 1000).unwrap_or(i32::MAX);
    let held = File::options().write(true).open(FILE).and_then(|mut file| {
        file.write_all(&microseconds.to_ne_bytes())?;
        Ok(file)
    });
    match held {
        Ok(file) => (Some(file), None),
        Err(error) => (None, Some(format!("{FILE}: {error}: CPUs may idle deeper than the workload asks for"))),
    }
}

/// Removes the control groups on every way out; what the root has removed already is skipped.
struct RemoveGroups(&'static World);

impl Drop for RemoveGroups {
    fn drop(&mut self) {
        if let Some(groups) = &self.0.groups {
            groups.remove();
        }
    }
}

/// How a run ended, and at which run time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Run time.
    pub at: Nanos,
    /// Whether the workloads ended by themselves.
    pub completed: bool,
}

fn watch(
    world: &World,
    spec: &RunSpec,
    begin: Nanos,
    signals: &std::os::fd::OwnedFd,
    recording: &mut Recording,
    counters: &mut Counters,
) -> Result<Ended> {
    let control = world.control;
    loop {
        let now = clock::now().saturating_sub(begin);
        counters.tick(world, now);
        recording.drain();
        if control.failure.load(Acquire) == 2 {
            return Ok(Ended { at: now, completed: false });
        }
        let ends = spec.workloads.iter().any(|w| w.ends);
        if ends && control.unfinished.load(Acquire) == 0 {
            let at = control.finished.load(Acquire).saturating_sub(1);
            return Ok(Ended { at: at.min(spec.duration), completed: true });
        }
        if control.alive.load(Acquire) == 0 {
            return Ok(Ended { at: now.min(spec.duration), completed: true });
        }
        if now >= spec.duration && clock::now() >= begin {
            return Ok(Ended { at: spec.duration, completed: false });
        }
        let end = begin + spec.duration;
        let next = (clock::now() + DRAIN).min(end).min(counters.next(begin));
        if rest(world, signals, next.saturating_sub(clock::now()))? {
            return Err(AgentError::Interrupted);
        }
    }
}

/// Waits for the bell, a signal or the time; true if a signal came.
fn rest(world: &World, signals: &std::os::fd::OwnedFd, length: Nanos) -> Result<bool> {
    let mut fds = [PollFd::new(&world.bell, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
    let _ = poll(&mut fds, Some(&clock::timespec(length)));
    let rung = !fds[0].revents().is_empty();
    if rung {
        let _ = rustix::io::read(&world.bell, &mut [0u8; 8]);
    }
    Ok(sys::take_signal(signals).is_some())
}

fn wait_ready(world: &World, firsts: u32, signals: &std::os::fd::OwnedFd) -> Result<()> {
    let until = clock::now() + PATIENCE;
    while world.control.ready.load(Acquire) < firsts {
        if let Some(error) = world.failure() {
            return Err(error);
        }
        if rest(world, signals, 100 * MSEC)? {
            return Err(AgentError::Interrupted);
        }
        if clock::now() > until {
            let ready = world.control.ready.load(Acquire);
            let what = format!("only {ready} of {firsts} tasks were ready after {} s", PATIENCE / SEC);
            return Err(AgentError::failed(what, "fewer tasks, or a machine with less load"));
        }
    }
    world.failure().map_or(Ok(()), Err)
}

/// Programs that were interrupted print what they have measured.
fn wait_reports(world: &World, signals: &std::os::fd::OwnedFd) -> Result<()> {
    let until = clock::now() + GRACE;
    while world.control.reporting.load(Acquire) > 0 && world.control.failure.load(Acquire) == 0 && clock::now() < until
    {
        if rest(world, signals, 100 * MSEC)? {
            return Err(AgentError::Interrupted);
        }
    }
    Ok(())
}

/// The CPUs that this process may use, by number.
pub fn allowed_cpus() -> Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(None).map_err(crate::error::errno("sched_getaffinity"))?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

/// The tasks of the start by process, in the order in which they start.
fn groups(world: &World, spec: &RunSpec) -> Result<Vec<Vec<First>>> {
    let mut planned = Vec::new();
    for (w, workload) in spec.workloads.iter().enumerate() {
        // A real program makes its own tasks.
        let real = world.real[w].is_some();
        for (s, task) in workload.tasks.iter().enumerate().take(if real { 1 } else { usize::MAX }) {
            for instance in 0..if real { 1 } else { task.count } {
                let jitter = spec.noise && task.jitter;
                let rank = planned.len() as u64;
                let (late, rank) = match jitter {
                    true => identity::start_jitter(spec.seed, &workload.name, &task.name, instance),
                    false => (0, rank),
                };
                let key = identity::first_key(&workload.name, &task.name, instance);
                planned.push((task.delay + late, rank, w, s, key));
            }
        }
    }
    planned.sort_unstable();
    let mut groups: Vec<Vec<First>> = Vec::new();
    let mut of_process = BTreeMap::new();
    for (at, _, w, s, key) in planned {
        let task = &spec.workloads[w].tasks[s];
        let id = world.new_task().ok_or_else(|| AgentError::input("too many tasks", "lower the counts"))?;
        let slot = &world.slots[id as usize];
        slot.runs.store((w as u64) << 32 | u64::from(task.program), Relaxed);
        slot.spec.store(s as u32 + 1, Relaxed);
        task.registers.iter().zip(0..).for_each(|(value, reg)| slot.set(reg, *value));
        let first = First { id, key, at };
        let group = *of_process.entry((w, task.process)).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(first);
    }
    Ok(groups)
}

/// What the root starts: a process for every group of tasks; with autogroup, in a session for every workload.
struct Start {
    world: &'static World,
    groups: Vec<Vec<First>>,
    autogroup: bool,
    sessions: Vec<i32>,
    leaders: Vec<(i32, u32)>,
}

impl Start {
    fn fork(&self, first: u32) -> Option<Forked> {
        let forked = sys::fork();
        if let Err(error) = &forked {
            self.world.fail(first, 0, Failure::Fork, error.raw_os_error().unwrap_or(0));
        }
        if matches!(forked, Ok(Forked::Child)) {
            sys::unblock_signals();
            let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        }
        forked.ok()
    }

    /// Starts the processes of these groups as children of the caller.
    fn start_leaders(&mut self, groups: &[Vec<First>]) {
        for tasks in groups {
            let first = tasks.first().map_or(0, |task| task.id);
            match self.fork(first) {
                Some(Forked::Child) => life::first_process(self.world, tasks),
                Some(Forked::Parent(pid)) => self.leaders.push((pid, first)),
                None => return,
            }
        }
    }

    /// Starts a process that leads a session, and the workload's processes as its children: they share an autogroup.
    fn start_session(&mut self, groups: &[Vec<First>]) {
        let first = groups.first().and_then(|tasks| tasks.first()).map_or(0, |task| task.id);
        match self.fork(first) {
            Some(Forked::Child) => {
                let _ = rustix::process::setsid();
                self.leaders.clear();
                self.start_leaders(groups);
                while let Ok(Some((pid, status))) = sys::wait_any(true, false) {
                    self.ended(pid, status);
                }
                sys::exit_now(0);
            }
            Some(Forked::Parent(pid)) => {
                self.sessions.push(pid);
                self.leaders.push((pid, first));
            }
            None => {}
        }
    }
}

impl Plan for Start {
    fn start(&mut self) {
        let groups = std::mem::take(&mut self.groups);
        if !self.autogroup {
            return self.start_leaders(&groups);
        }
        let workload_of = |tasks: &[First]| tasks.first().map(|task| self.world.slots[task.id as usize].runs().0);
        let mut by_workload: BTreeMap<Option<usize>, Vec<Vec<First>>> = BTreeMap::new();
        for tasks in groups {
            by_workload.entry(workload_of(&tasks)).or_default().push(tasks);
        }
        by_workload.values().for_each(|groups| self.start_session(groups));
    }

    fn ended(&mut self, pid: i32, status: i32) {
        if let (Some(_), Some((_, first))) =
            (sys::ended_badly(status), self.leaders.iter().find(|(leader, _)| *leader == pid))
        {
            self.world.fail(*first, 0, Failure::ChildKilled, 0);
        }
    }

    fn sessions(&self) -> &[i32] {
        &self.sessions
    }

    fn clean(&mut self) {
        if let Some(groups) = &self.world.groups {
            groups.remove();
        }
    }
}
