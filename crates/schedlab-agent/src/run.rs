//! One run: calibrate, allocate the shared state, start the tasks, supervise them, end the run, and write the report
//! that every arm writes.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::Arc;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::thread::futex::{self, Flags};
use schedlab_model::{Nanos, MSEC, SEC};
use schedlab_spec::RunSpec;
use schedlab_workload::{ObjectSpec, Op, Workload};

use crate::burn::Speed;
use crate::clock;
use crate::counters::Counters;
use crate::error::{os, AgentError, Result};
use crate::inherited;
use crate::launch::GRACE;
use crate::memory_work;
use crate::program::rt_app::Logs;
use crate::program::RealProgram;
use crate::result::{self, Ended, Measured};
use crate::settings::Settings;
use crate::shared_state::SharedState;
use crate::start::Start;
use crate::stream;
use crate::supervise::Root;
use crate::sys;
use crate::tracing::{self, Recording};

/// The delay between the moment when all tasks are ready and the start of the run.
const START_DELAY: Nanos = 20 * MSEC;
/// The time within which all initial tasks must be ready.
const READY_TIMEOUT: Nanos = 60 * SEC;
/// The interval at which the trace buffers are drained.
const DRAIN_INTERVAL: Nanos = 250 * MSEC;

/// The same with tasks in place of clients on other machines, which this machine does not have.
fn with_local_clients(spec: &RunSpec) -> RunSpec {
    let workloads = spec.workloads.iter().cloned().map(Workload::with_local_clients).collect();
    RunSpec { workloads: Arc::new(workloads), ..spec.clone() }
}

/// Runs one specification on this machine and returns the result as JSON.
pub fn run(spec: &RunSpec, real: Vec<Option<RealProgram>>, settings: &Settings) -> Result<serde_json::Value> {
    let wall = clock::now();
    let spec = &with_local_clients(spec);
    if spec.autogroup && !autogroup_is_on() {
        let what = "autogroup = true: autogroups are disabled on this kernel";
        return Err(AgentError::cannot(what, "sysctl kernel.sched_autogroup_enabled=1"));
    }
    refuse_latency_nice(spec)?;
    refuse_kernel_sections(&own_workloads(spec, &real))?;
    refuse_cpusets(spec)?;
    refuse_hotplug(spec)?;
    refuse_memory(spec)?;
    inherited::reset()?;
    let signals = sys::signal_fd(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]).map_err(os("signalfd"))?;
    let kernel_work =
        spec.workloads.iter().flat_map(|w| &w.programs).flat_map(|p| &p.ops).any(|op| matches!(op, Op::System(_)));
    let speed = Speed::measure(kernel_work)?;
    let (_latency_limit, note) = limit_idle_latency(spec, &real);
    let shared = SharedState::new(spec, speed, allowed_cpus()?, real)?;
    let _groups = RemoveGroups(shared);
    let _logs = RemoveLogs(shared);
    let mut start = Start::plan(shared, spec)?;
    let nr_tasks = start.tasks();
    let mut root = Root::start(&mut start)?;
    wait_ready(shared, nr_tasks as u32, &signals)?;
    let mut recording = tracing::begin(settings);
    let mut counters = Counters::new(spec.warmup, recording.off_reason().is_some());
    let begin = clock::now() + START_DELAY;
    shared.control.begin.store(begin, Relaxed);
    shared.control.started.store(1, Release);
    let _ = futex::wake(&shared.control.started, Flags::empty(), i32::MAX as u32);
    let ended = watch(shared, spec, begin, &signals, &mut recording, &mut counters)?;
    let at_end = counters.finish(shared);
    recording.stop();
    wait_reports(shared, &signals)?;
    root.end();
    if let Some(error) = shared.failure() {
        return Err(error);
    }
    let after = Speed::measure(false)?;
    let wall_ns = clock::now() - wall;
    let measured = Measured { spec, shared, begin, ended, counts: at_end, after, wall_ns, note };
    result::report(&measured, recording, settings)
}

/// Refuses latency nice, which no mainline kernel supports, instead of ignoring it.
fn refuse_latency_nice(spec: &RunSpec) -> Result<()> {
    let tasks = spec.workloads.iter().flat_map(|w| &w.tasks).filter(|task| task.latency_nice.is_some());
    let groups = spec.cgroups.iter().filter(|group| group.latency_nice != 0);
    let users = tasks.map(|task| format!("task {}", task.name)).chain(groups.map(|g| format!("cgroup {}", g.path)));
    let refused = |who: String| {
        let what = format!("{who}: no mainline kernel supports latency nice");
        Err(AgentError::cannot(what, "remove latency_nice, or run the variant on the simulator"))
    };
    users.take(1).try_for_each(refused)
}

/// Refuses the CPUs of control groups, of which the agent writes no file.
fn refuse_cpusets(spec: &RunSpec) -> Result<()> {
    match spec.cgroups.iter().find(|group| group.cpus.is_some() || !group.cpus_later.is_empty()) {
        Some(group) => {
            let what = format!("cgroup {}: cpus of control groups are only simulated", group.path);
            Err(AgentError::cannot(what, "set cpus of the workloads, or run the variant on the simulator"))
        }
        None => Ok(()),
    }
}

/// Refuses CPUs that go offline: the agent does not change the machine that it measures.
fn refuse_hotplug(spec: &RunSpec) -> Result<()> {
    if spec.hotplug.is_empty() {
        return Ok(());
    }
    let what = "hotplug: CPUs go offline only in the simulator".to_owned();
    Err(AgentError::cannot(what, "leave hotplug out, or run the variant on the simulator"))
}

/// Refuses memory whose node matters: the agent's tasks execute instructions and use hardly any memory.
fn refuse_memory(spec: &RunSpec) -> Result<()> {
    let mut tasks = spec.workloads.iter().flat_map(|workload| &workload.tasks);
    match tasks.find(|task| task.memory.is_some()) {
        Some(task) => {
            let what = format!("task {}: memory is only simulated", task.name);
            Err(AgentError::cannot(what, "leave memory out, or run the variant on the simulator"))
        }
        None => Ok(()),
    }
}

/// The workloads whose tasks the agent runs itself.
fn own_workloads<'a>(spec: &'a RunSpec, real: &[Option<RealProgram>]) -> Vec<&'a Workload> {
    spec.workloads.iter().zip(real).filter(|(_, real)| real.is_none()).map(|(workload, _)| workload).collect()
}

/// Refuses steps whose effect in the kernel a program cannot bring about.
fn refuse_kernel_sections(own: &[&Workload]) -> Result<()> {
    let extends = |object: &ObjectSpec| matches!(object, ObjectSpec::SpinLock(lock) if lock.slice_extension);
    if own.iter().any(|workload| workload.objects.iter().any(extends)) {
        let what = "slice-extension exists only in the simulator".to_owned();
        return Err(AgentError::cannot(what, "run the scenario on the simulator"));
    }
    let here = |op: &Op| matches!(op, Op::PostHere(_));
    if own.iter().flat_map(|w| &w.programs).any(|program| program.ops.iter().any(here)) {
        let what = "sync-mode: a program cannot ask for WF_CURRENT_CPU with a futex".to_owned();
        return Err(AgentError::cannot(what, "leave sync-mode out, or run the real program (driver = \"program\")"));
    }
    let simulated = |op: &Op| matches!(op, Op::Call | Op::Section { .. });
    let mut programs = own.iter().flat_map(|w| &w.programs);
    match programs.find(|program| program.ops.iter().any(simulated)) {
        Some(program) => {
            let what = format!("task {}: call exists only in the simulator", program.name);
            let hint = "run the scenario on the simulator, or install the program of the workload (schedlab doctor)";
            Err(AgentError::cannot(what, hint))
        }
        None => {
            stream::check(own.iter().flat_map(|w| &w.programs))?;
            memory_work::check(own.iter().flat_map(|w| &w.programs))
        }
    }
}

fn autogroup_is_on() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|text| text.trim() == "1")
}

/// Limits the exit latency of idle states as cyclictest does: the request is in force while the file is open.
fn limit_idle_latency(spec: &RunSpec, real: &[Option<RealProgram>]) -> (Option<File>, Option<String>) {
    const FILE: &str = "/dev/cpu_dma_latency";
    let own = own_workloads(spec, real);
    let Some(limit) = own.iter().filter_map(|workload| workload.idle_latency_limit).min() else { return (None, None) };
    let microseconds = i32::try_from(limit / 1000).unwrap_or(i32::MAX);
    let held = File::options().write(true).open(FILE).and_then(|mut file| {
        file.write_all(&microseconds.to_ne_bytes())?;
        Ok(file)
    });
    match held {
        Ok(file) => (Some(file), None),
        Err(error) => {
            (None, Some(format!("{FILE}: {error}: CPUs may enter deeper idle states than the workload allows")))
        }
    }
}

/// Removes the control groups when dropped. Groups that the root process has removed already are skipped.
struct RemoveGroups(&'static SharedState);

impl Drop for RemoveGroups {
    fn drop(&mut self) {
        if let Some(groups) = &self.0.groups {
            groups.remove();
        }
    }
}

/// Removes the directories of rt-app's logs when dropped, as the shared state is never freed.
struct RemoveLogs(&'static SharedState);

impl Drop for RemoveLogs {
    fn drop(&mut self) {
        self.0.real.iter().flatten().filter_map(|real| real.logs.as_ref()).for_each(Logs::remove);
    }
}

fn watch(
    shared: &SharedState,
    spec: &RunSpec,
    begin: Nanos,
    signals: &std::os::fd::OwnedFd,
    recording: &mut Recording,
    counters: &mut Counters,
) -> Result<Ended> {
    let control = shared.control;
    loop {
        let now = clock::now().saturating_sub(begin);
        counters.tick(shared, now);
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
        let next = (clock::now() + DRAIN_INTERVAL).min(end).min(counters.next(begin));
        if wait_for_event(shared, signals, next.saturating_sub(clock::now()))? {
            return Err(AgentError::Interrupted);
        }
    }
}

/// Waits for the wakeup descriptor, a signal or the timeout. Returns true if a signal arrived.
fn wait_for_event(shared: &SharedState, signals: &std::os::fd::OwnedFd, length: Nanos) -> Result<bool> {
    let mut fds = [PollFd::new(&shared.wakeup_fd, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
    let _ = poll(&mut fds, Some(&clock::timespec(length)));
    let woken = !fds[0].revents().is_empty();
    if woken {
        let _ = rustix::io::read(&shared.wakeup_fd, &mut [0u8; 8]);
    }
    Ok(sys::take_signal(signals).is_some())
}

fn wait_ready(shared: &SharedState, nr_tasks: u32, signals: &std::os::fd::OwnedFd) -> Result<()> {
    let until = clock::now() + READY_TIMEOUT;
    while shared.control.ready.load(Acquire) < nr_tasks {
        if let Some(error) = shared.failure() {
            return Err(error);
        }
        if wait_for_event(shared, signals, 100 * MSEC)? {
            return Err(AgentError::Interrupted);
        }
        if clock::now() > until {
            let ready = shared.control.ready.load(Acquire);
            let what = format!("only {ready} of {nr_tasks} tasks were ready after {} s", READY_TIMEOUT / SEC);
            return Err(AgentError::failed(what, "use fewer tasks, or reduce the load of the machine"));
        }
    }
    shared.failure().map_or(Ok(()), Err)
}

/// Waits until the interrupted programs have printed their results.
fn wait_reports(shared: &SharedState, signals: &std::os::fd::OwnedFd) -> Result<()> {
    let until = clock::now() + GRACE;
    while shared.control.reporting.load(Acquire) > 0
        && shared.control.failure.load(Acquire) == 0
        && clock::now() < until
    {
        if wait_for_event(shared, signals, 100 * MSEC)? {
            return Err(AgentError::Interrupted);
        }
    }
    Ok(())
}

/// The numbers of the CPUs that this process may use.
pub fn allowed_cpus() -> Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(None).map_err(crate::error::errno("sched_getaffinity"))?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}
