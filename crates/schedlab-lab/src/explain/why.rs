//! Why a task waits, runs or sleeps at one moment: since when, who runs instead by which decision, and what ended it.

use std::sync::atomic::AtomicBool;

use schedlab_model::{Nanos, Pid, TaskId};
use schedlab_policy::decision::{Decision, Verdict};
use schedlab_policy::fair::QueueView;
use schedlab_sim::{CpuView, RunSpec, SimError, TaskView};
use schedlab_trace::{Event, Kind};
use serde::Serialize;

use super::lane::{Lane, Shelf};
use super::told::{names, pid_of, tell, TaskNames, Told};

/// Which task is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Who {
    /// By pid.
    Pid(Pid),
    /// By `workload/program`, by either of the two alone if that names one task only.
    Name(String),
}

/// Nothing can be told.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// The run stopped.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// No task of this name or pid at that time.
    #[error("no task {name} at {at_ns} ns")]
    NoTask {
        /// What was asked for.
        name: String,
        /// When.
        at_ns: Nanos,
        /// What there is, at most a few.
        tasks: Vec<String>,
    },
    /// Several tasks have this name.
    #[error("{name} names {} tasks", pids.len())]
    Several {
        /// What was asked for.
        name: String,
        /// Theirs.
        pids: Vec<Pid>,
    },
    /// The run was over before.
    #[error("the run ends at {end_ns} ns, before {at_ns} ns")]
    Over {
        /// When it ended.
        end_ns: Nanos,
        /// When somebody asked.
        at_ns: Nanos,
    },
}

/// The answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Why {
    /// The kernel's row.
    pub kernel: &'static str,
    /// When.
    pub at_ns: Nanos,
    /// The task.
    pub pid: Pid,
    /// `running`, `waiting`, `delayed` (asleep, but queued), `sleeping`, `new`, `dead`.
    pub state: &'static str,
    /// What it sleeps on.
    pub waits_for: Option<String>,
    /// Since when it is in this state.
    pub since_ns: Option<Nanos>,
    /// When it was last woken.
    pub woken_ns: Option<Nanos>,
    /// Its CPU.
    pub cpu: u32,
    /// Who runs there; `None` = idle.
    pub runner: Option<Pid>,
    /// The CPU's queue.
    pub queue: QueueView,
    /// The pick that put the runner there, and what kept it since: checks and ticks, the oldest first.
    pub picked: Option<Told>,
    /// The last decisions that kept it.
    pub kept: Vec<Told>,
    /// How many decisions kept it altogether.
    pub kept_total: u64,
    /// TIF_NEED_RESCHED is set: `full` or `lazy`.
    pub asked: Option<&'static str>,
    /// The CPU's next tick.
    pub next_tick_ns: Option<Nanos>,
    /// What ended the state: the decisions that led to it, and when. `None` if the run ended first.
    pub ended_ns: Option<Nanos>,
    /// The decisions, the last one last.
    pub ended_by: Vec<Told>,
    /// Names of the tasks that occur.
    pub tasks: TaskNames,
}

/// Keeping decisions told.
const KEPT: usize = 3;
/// Decisions looked through for what ended a state; a longer wait is told by its last ones.
const LOOKED_THROUGH: usize = 4096;

/// What is remembered of one CPU while the run goes to the moment.
#[derive(Clone, Default)]
struct Turn {
    picked: Option<Decision>,
    kept: Vec<Decision>,
    kept_total: u64,
}

/// Runs the specification up to `at` and on until the task's state changes.
pub fn why(spec: &RunSpec, who: &Who, at: Nanos, cancel: &AtomicBool) -> Result<Why, WhyError> {
    let mut sink = Shelf::default();
    let mut lane = Lane::new(spec, &mut sink);
    let mut turns = vec![Turn::default(); lane.rows.len()];
    let mut past = Past::default();
    while !lane.over && lane.next_time() <= at {
        lane.step(cancel)?;
        lane.decided.iter().for_each(|(decision, _)| turns[decision.cpu.index()].note(decision));
        past.note(&mut lane);
    }
    if lane.over && lane.session.now() < at {
        return Err(WhyError::Over { end_ns: lane.session.now(), at_ns: at });
    }
    let task = find(&lane, who, at)?;
    let mut why = answer(spec, &lane, &task, &turns, &past, at);
    while !lane.over && why.ended_ns.is_none() {
        lane.step(cancel)?;
        let version = spec.kernel.version;
        let concerns = |decision: &&(Decision, _)| decision.0.cpu.0 == why.cpu || pid_of(&decision.0) == task.pid;
        let told: Vec<Told> =
            lane.decided.iter().filter(concerns).map(|(decision, _)| tell(decision, None, version)).collect();
        why.ended_by.extend(told);
        let keep_from = why.ended_by.len().saturating_sub(LOOKED_THROUGH);
        why.ended_by.drain(..keep_from);
        let ended = lane.rows.iter_mut().flat_map(|row| row.items.drain(..)).any(|item| ends(&item.event, &why));
        if ended {
            why.ended_ns = Some(lane.session.now());
        }
    }
    why.ended_by = match why.ended_ns {
        Some(_) => what_counts(&why),
        None => Vec::new(),
    };
    why.tasks = names(&lane.session);
    Ok(why)
}

/// Of the decisions up to the end: the one that asked the runner to go, and the last one, a pick or a placement.
fn what_counts(why: &Why) -> Vec<Told> {
    let asks =
        |told: &&Told| told.cpu == why.cpu && told.asked.is_some() && matches!(told.verdict, "preempt" | "expire");
    let on_cpu = matches!(why.state, "waiting" | "running");
    // Others may have run before the task did: what counts is what ended the last turn of another.
    let of_others = |told: &Told| told.cpu == why.cpu && told.verdict == "pick" && told.pid != why.pid;
    let since = why.ended_by.iter().rposition(of_others).filter(|_| why.state == "waiting").unwrap_or(0);
    let first = why.ended_by[since..].iter().find(asks).filter(|_| on_cpu);
    let last = why.ended_by.iter().rev().find(|told| match why.state {
        "waiting" => told.verdict == "pick" && told.pid == why.pid,
        "running" => matches!(told.verdict, "pick" | "delay"),
        _ => told.pid == why.pid && matches!(told.verdict, "place" | "preempt" | "keep"),
    });
    first.into_iter().chain(last).cloned().collect()
}

/// Whether the event ends the state that the task was in.
fn ends(event: &Event, why: &Why) -> bool {
    match (event.kind, why.state) {
        (Kind::Switch { next, .. }, "waiting") => next == why.pid,
        (Kind::Switch { prev, .. }, "running") => prev == why.pid,
        (Kind::Wakeup { pid, .. } | Kind::WakeupNew { pid, .. }, "sleeping" | "delayed" | "new") => pid == why.pid,
        _ => false,
    }
}

impl Turn {
    fn note(&mut self, decision: &Decision) {
        match decision.verdict {
            // Somebody else was picked, or nobody had been: a new turn.
            Verdict::Pick(task) if self.picked.is_none_or(|picked| picked.task() != task) => {
                *self = Turn { picked: Some(*decision), ..Turn::default() };
            }
            Verdict::Pick(_) | Verdict::Keep(_) | Verdict::Stay(_) => {
                self.kept_total += 1;
                self.kept.push(*decision);
                let from = self.kept.len().saturating_sub(KEPT);
                self.kept.drain(..from);
            }
            _ => {}
        }
    }
}

/// Per task, when it last changed its state and when it was last woken.
#[derive(Default)]
struct Past {
    changed: Vec<Option<Nanos>>,
    woken: Vec<Option<Nanos>>,
}

impl Past {
    fn note(&mut self, lane: &mut Lane<'_>) {
        for item in lane.rows.iter_mut().flat_map(|row| row.items.drain(..)) {
            let time = item.event.time;
            match item.event.kind {
                Kind::Switch { prev, next, .. } => {
                    put(&mut self.changed, prev, time);
                    put(&mut self.changed, next, time);
                }
                Kind::Wakeup { pid, .. } | Kind::WakeupNew { pid, .. } => {
                    put(&mut self.changed, pid, time);
                    put(&mut self.woken, pid, time);
                }
                _ => {}
            }
        }
    }
}

fn put(times: &mut Vec<Option<Nanos>>, pid: Pid, time: Nanos) {
    let Ok(index) = usize::try_from(pid) else { return };
    if times.len() <= index {
        times.resize(index + 1, None);
    }
    times[index] = Some(time);
}

fn find(lane: &Lane<'_>, who: &Who, at: Nanos) -> Result<TaskView, WhyError> {
    let all: Vec<TaskView> = lane.session.tasks().collect();
    let matches = |task: &&TaskView| match who {
        Who::Pid(pid) => task.pid == *pid,
        Who::Name(name) => task.name == *name || task.name.split_once('/').is_some_and(|(w, p)| w == name || p == name),
    };
    let found: Vec<&TaskView> = all.iter().filter(matches).collect();
    let name = match who {
        Who::Pid(pid) => format!("with pid {pid}"),
        Who::Name(name) => format!("\"{name}\""),
    };
    match found[..] {
        [task] => Ok(task.clone()),
        [] => {
            let mut tasks: Vec<String> = all.into_iter().map(|task| task.name).collect();
            tasks.dedup();
            Err(WhyError::NoTask { name, at_ns: at, tasks })
        }
        ref several => Err(WhyError::Several { name, pids: several.iter().map(|task| task.pid).collect() }),
    }
}

fn answer(spec: &RunSpec, lane: &Lane<'_>, task: &TaskView, turns: &[Turn], past: &Past, at: Nanos) -> Why {
    let sched = lane.session.sched();
    let cpu = sched.cpu_of(task.task);
    let (turn, flags) = (&turns[cpu.index()], lane.session.cpu(cpu));
    let of = |times: &[Option<Nanos>]| times.get(usize::try_from(task.pid).unwrap_or(usize::MAX)).copied().flatten();
    let told = |decision: &Decision| tell(decision, None, spec.kernel.version);
    Why {
        kernel: spec.kernel.version.name,
        at_ns: at,
        pid: task.pid,
        state: state(task, sched.fair.entity(task.task).sched_delayed),
        waits_for: task.waits_for.clone(),
        since_ns: of(&past.changed),
        woken_ns: of(&past.woken),
        cpu: cpu.0,
        runner: sched.curr(cpu).map(|task: TaskId| task.0 as Pid + 1),
        queue: lane.session.queue(cpu),
        picked: sched.curr(cpu).and(turn.picked.as_ref()).map(told),
        kept: turn.kept.iter().map(told).collect(),
        kept_total: turn.kept_total,
        asked: asked(flags),
        next_tick_ns: flags.next_tick,
        ended_ns: None,
        ended_by: Vec::new(),
        tasks: TaskNames::new(),
    }
}

fn state(task: &TaskView, delayed: bool) -> &'static str {
    match task.life {
        "runnable" => "waiting",
        "sleeping" if delayed => "delayed",
        other => other,
    }
}

fn asked(cpu: CpuView) -> Option<&'static str> {
    match (cpu.need_resched, cpu.need_resched_lazy) {
        (true, _) => Some("full"),
        (false, true) => Some("lazy"),
        (false, false) => None,
    }
}
