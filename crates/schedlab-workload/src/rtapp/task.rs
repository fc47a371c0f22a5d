//! The tasks section: tasks, phases and loops as a tree of verbs.
//!
//! A task repeats its phases `loop` times, by default forever; a phase repeats its events `loop` times. A task without
//! phases is one phase whose `loop` applies to both, as in versions after 1.0. A negative number of loops, and 0 for a
//! phase, means forever, because rt-app counts up and compares.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_model::{CpuMask, Nanos, USEC};

use super::event::Event;
use super::global::Global;
use super::json::{short, At, Member};
use super::merge::Sections;
use super::parsed::{Phase, Task};
use super::props::Machine;
use super::read::read_task;
use super::{locks, metrics, Calibration, RtAppError};
use crate::verbs::{Length, NamedObject, Own, Step, StepKind, Times, Tree, TreeTask};
use crate::{ObjectSpec, TaskKind, TaskSpec};
use schedlab_model::closest;

/// Most tasks of one file.
const MAX_TASKS: u64 = 200_000;
/// Timers whose wakeups can be followed in one task: what the registers of a program leave.
const MAX_FOLLOWED: usize = 2;

/// Reads the tasks of a file.
pub(super) fn read(sections: &Sections, machine: Machine) -> Result<Vec<Task>, RtAppError> {
    let read = |member: &Member| read_task(member, machine).map_err(|error| error.within(&member.key).within("tasks"));
    sections.tasks.iter().map(read).collect()
}

/// The tree of the whole file, whose section of tasks is at `first`, and for each task the timers that its metrics
/// follow.
pub(super) fn tree<'t>(
    name: &str,
    tasks: &'t [Task],
    first: At,
    global: &Global,
    nr_cpus: usize,
) -> Result<(Tree, Vec<Vec<&'t str>>), RtAppError> {
    let total: u64 = tasks.iter().map(|task| u64::from(task.instances)).sum();
    if total == 0 {
        return Err(RtAppError::at(first, "tasks", "no task is started").hint("a task with instance 1 or more"));
    }
    if total > MAX_TASKS {
        return Err(RtAppError::at(first, "tasks", format!("{total} tasks, which is more than {MAX_TASKS}")));
    }
    check_forks(tasks)?;
    let context = Context { global, nr_cpus, shared: shared_timers(tasks) };
    let followed: Vec<Vec<&str>> = tasks.iter().map(|task| context.followed(task)).collect();
    let timers = tasks.iter().zip(&followed).map(|(task, timers)| (task.name.as_str(), !timers.is_empty()));
    let tree = Tree {
        name: name.to_string(),
        objects: objects(tasks, global),
        metrics: metrics::declarations(&timers.collect::<Vec<_>>()),
        by_task: true,
        remotes: Vec::new(),
        tasks: tasks.iter().map(|task| task.verbs(&context)).collect::<Result<_, _>>()?,
        // With a duration rt-app's main thread sleeps until then, whatever the tasks do.
        ends: global.duration.is_none() && tasks.iter().all(|task| !task.endless()),
    };
    Ok((tree, followed))
}

/// Every fork must name a task of the file.
fn check_forks(tasks: &[Task]) -> Result<(), RtAppError> {
    let names: BTreeSet<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    for task in tasks {
        for (at, event) in task.events() {
            let Event::Fork(name) = event else { continue };
            if !names.contains(name.as_str()) {
                let error = RtAppError::at(*at, &task.name, format!("there is no task `{}`", short(name)));
                let near = closest(name, names.iter().copied());
                let hint = near
                    .map_or("fork names a task of the file".to_string(), |near| format!("did you mean \"{near}\"?"));
                return Err(error.hint(hint).within("tasks"));
            }
        }
    }
    Ok(())
}

/// What every task needs from the file.
struct Context<'a> {
    global: &'a Global,
    nr_cpus: usize,
    /// Timers that several threads use.
    shared: BTreeSet<String>,
}

impl Context<'_> {
    /// The timers of a task that its own registers keep.
    fn followed<'t>(&self, task: &'t Task) -> Vec<&'t str> {
        let mut own = task.timers();
        own.retain(|name| !self.shared.contains(*name));
        own.truncate(MAX_FOLLOWED);
        own
    }
}

/// Timers that more than one thread uses. Those called `unique..` belong to each thread alone.
fn shared_timers(tasks: &[Task]) -> BTreeSet<String> {
    let mut users: BTreeMap<&str, u64> = BTreeMap::new();
    for task in tasks {
        for name in task.timers().into_iter().filter(|name| !name.starts_with("unique")) {
            // A template may be forked many times.
            *users.entry(name).or_insert(0) += if task.instances == 1 { 1 } else { 2 };
        }
    }
    users.into_iter().filter(|(_, threads)| *threads > 1).map(|(name, _)| name.to_string()).collect()
}

impl Task {
    fn endless(&self) -> bool {
        self.times == Times::Forever || self.phases.iter().any(|phase| phase.times == Times::Forever)
    }

    /// Names of its timers, each once, in order.
    fn timers(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let names = self.events().filter_map(|(_, event)| match event {
            Event::Timer { name, .. } => Some(name.as_str()),
            _ => None,
        });
        names.filter(|name| seen.insert(*name)).collect()
    }

    fn verbs(&self, context: &Context<'_>) -> Result<TreeTask, RtAppError> {
        locks::check(self)?;
        let spec = TaskSpec {
            name: self.name.clone(),
            count: self.instances,
            policy: self.props.policy.unwrap_or(context.global.policy),
            nice: self.props.nice.unwrap_or(0),
            slice: self.props.slice,
            affinity: self.phases.first().and_then(|phase| self.affinity(phase)),
            delay: self.delay,
            ..TaskSpec::default()
        };
        let followed = context.followed(self);
        let mut body = Vec::new();
        // It stays in a group until a phase names another, so only the first time round begins in the task's own.
        let mut steps: Vec<Step> = self.props.taskgroup.iter().map(|path| self.enter(self.at.line, path)).collect();
        let mut before = if self.times == Times::Count(1) { None } else { self.phases.last() };
        for phase in &self.phases {
            self.set_props(phase, before, context, &mut body);
            let events = self.phase_steps(phase, context, &followed)?;
            match phase.times {
                Times::Count(1) => body.extend(events),
                times => body.push(Step::new(phase.at.line, StepKind::Loop { times, body: events })),
            }
            before = Some(phase);
        }
        match self.times {
            Times::Count(1) => steps.extend(body),
            times => steps.push(Step::new(self.at.line, StepKind::Loop { times, body })),
        }
        // rt-app sets both for every thread it creates.
        let own = Own { policy: true, nice: true };
        Ok(TreeTask { line: self.at.line, spec, own, steps })
    }

    /// CPUs of a phase: its own, else the task's.
    fn affinity(&self, phase: &Phase) -> Option<CpuMask> {
        phase.props.cpus.or(self.props.cpus)
    }

    /// What a phase changes at its begin. Policy and priority stay as the phase before left them; CPUs do not.
    fn set_props(&self, phase: &Phase, before: Option<&Phase>, context: &Context<'_>, into: &mut Vec<Step>) {
        let line = phase.at.line;
        let cpus = self.affinity(phase);
        if before.is_some_and(|before| self.affinity(before) != cpus) {
            let mask = cpus.unwrap_or_else(|| CpuMask::first(context.nr_cpus));
            into.push(Step::new(line, StepKind::Affinity(mask)));
        }
        into.extend(phase.props.policy.map(|policy| Step::new(line, StepKind::Policy(policy))));
        into.extend(phase.props.nice.map(|nice| Step::new(line, StepKind::Nice(nice))));
        into.extend(phase.props.taskgroup.iter().map(|path| self.enter(line, path)));
        into.extend(phase.props.slice.map(|slice| Step::new(line, StepKind::Slice(slice))));
    }

    fn enter(&self, line: u32, path: &str) -> Step {
        Step::new(line, StepKind::Cgroup(path.to_owned()))
    }

    fn phase_steps(&self, phase: &Phase, context: &Context<'_>, followed: &[&str]) -> Result<Vec<Step>, RtAppError> {
        let mut steps =
            vec![Step::new(phase.at.line, StepKind::SampleBegin { metric: metrics::PERIOD.to_string(), at: None })];
        for (at, event) in &phase.events {
            let kinds = match event {
                Event::Steps(kinds) => kinds.clone(),
                Event::Run(time) => measured(StepKind::Run(Length::Fixed(work(*time, context.global.calibration)))),
                Event::Runtime(time) => measured(StepKind::Runtime(Length::Fixed(wall(*time)))),
                Event::Timer { name, period, mode } if followed.contains(&name.as_str()) => vec![StepKind::Period {
                    timer: name.clone(),
                    period: *period,
                    mode: *mode,
                    latency: Some(metrics::WU_LAT.to_string()),
                    slack: Some(metrics::SLACK.to_string()),
                    misses: Some(metrics::MISSES.to_string()),
                }],
                Event::Timer { name, period, mode } => {
                    let timer = self.timer_object(name, *at, context)?;
                    vec![StepKind::Timer { timer, period: Length::Fixed(*period), mode: *mode }]
                }
                Event::Barrier(name) => vec![StepKind::Barrier(format!("barrier {name}"))],
                Event::Fork(task) => vec![StepKind::Fork { task: task.clone(), kind: TaskKind::Thread, memory: 0 }],
            };
            steps.extend(kinds.into_iter().map(|kind| Step::new(at.line, kind)));
        }
        steps.push(Step::new(phase.at.line, StepKind::SampleEnd(metrics::PERIOD.to_string())));
        Ok(steps)
    }

    /// The object of a timer that no register keeps.
    fn timer_object(&self, name: &str, at: At, context: &Context<'_>) -> Result<String, RtAppError> {
        if context.shared.contains(name) {
            return Ok(format!("timer {name}"));
        }
        if self.instances == 1 {
            return Ok(format!("timer {name} of {}", self.name));
        }
        let what = format!("more than {MAX_FOLLOWED} timers for each instance of one task");
        Err(RtAppError::at(at, &self.name, what).hint("split the task, or give it one instance").within("tasks"))
    }
}

fn measured(kind: StepKind) -> Vec<StepKind> {
    let metric = || metrics::RUN.to_string();
    vec![StepKind::SampleBegin { metric: metric(), at: None }, kind, StepKind::SampleEnd(metric())]
}

/// Work of a `run` event: whole loops of the calibrated length, counted per second.
fn work(time: Nanos, calibration: Calibration) -> Nanos {
    let Calibration::NsPerLoop(each) = calibration else { return time };
    let second = 1_000_000 * USEC;
    let whole = |time: Nanos| time / each * each;
    time / second * whole(second) + whole(time % second)
}

/// Time of a `runtime` event: rt-app looks at the clock after every 32 us of work.
fn wall(time: Nanos) -> Nanos {
    let chunk = 32 * USEC;
    time.div_ceil(chunk).max(1) * chunk
}

/// Objects whose parameters differ from the usual ones.
fn objects(tasks: &[Task], global: &Global) -> Vec<NamedObject> {
    let mut barriers: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    let mut mutexes: BTreeMap<&str, u32> = BTreeMap::new();
    for task in tasks {
        for (at, event) in task.events() {
            match event {
                // Every event that names a barrier adds its task's instances to the parties.
                Event::Barrier(name) => {
                    let entry = barriers.entry(name).or_insert((at.line, 0));
                    entry.1 = entry.1.saturating_add(task.instances);
                }
                Event::Steps(kinds) => kinds.iter().for_each(|kind| {
                    if let StepKind::Lock(name) = kind {
                        mutexes.entry(name).or_insert(at.line);
                    }
                }),
                _ => {}
            }
        }
    }
    let barrier = |(name, (line, parties)): (&str, (u32, u32))| NamedObject {
        line,
        name: format!("barrier {name}"),
        spec: ObjectSpec::Barrier { parties },
    };
    let mutex =
        |(name, line): (&str, u32)| NamedObject { line, name: name.to_string(), spec: ObjectSpec::Mutex { pi: true } };
    let inheriting = if global.pi { mutexes } else { BTreeMap::new() };
    barriers.into_iter().map(barrier).chain(inheriting.into_iter().map(mutex)).collect()
}
