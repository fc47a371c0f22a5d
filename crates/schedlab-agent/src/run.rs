//! One run: calibrate, lay out, start, watch, end, and reduce what was noted to the report every arm writes.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::event::{poll, PollFd, PollFlags};
use rustix::thread::futex::{self, Flags};
use schedlab_model::{Nanos, MSEC, SEC};
use schedlab_spec::RunSpec;
use schedlab_workload::Op;

use crate::burn::Speed;
use crate::clock;
use crate::counters::Counters;
use crate::error::{os, AgentError, Result};
use crate::inherited;
use crate::program::launch::GRACE;
use crate::program::Real;
use crate::result::{self, Ended, Measured};
use crate::settings::Settings;
use crate::start::Start;
use crate::supervise::Root;
use crate::sys;
use crate::tracing::{self, Recording};
use crate::world::World;

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
    refuse_latency_nice(spec)?;
    inherited::reset()?;
    let signals = sys::signal_fd(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]).map_err(os("signalfd"))?;
    let kernel_work =
        spec.workloads.iter().flat_map(|w| &w.programs).flat_map(|p| &p.ops).any(|op| matches!(op, Op::System(_)));
    let speed = Speed::measure(kernel_work)?;
    let (_awake, note) = keep_awake(spec, &real);
    let world = World::new(spec, speed, allowed_cpus()?, real)?;
    let _groups = RemoveGroups(world);
    let mut start = Start::plan(world, spec)?;
    let firsts = start.tasks();
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

/// What no kernel can be told must not be passed over in silence.
fn refuse_latency_nice(spec: &RunSpec) -> Result<()> {
    let tasks = spec.workloads.iter().flat_map(|w| &w.tasks).filter(|task| task.latency_nice.is_some());
    let groups = spec.cgroups.iter().filter(|group| group.latency_nice != 0);
    let whose = tasks.map(|task| format!("task {}", task.name)).chain(groups.map(|g| format!("cgroup {}", g.path)));
    let refused = |who: String| {
        let what = format!("{who}: latency nice is in no mainline kernel");
        Err(AgentError::cannot(what, "leave latency_nice out, or simulate it"))
    };
    whose.take(1).try_for_each(refused)
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
