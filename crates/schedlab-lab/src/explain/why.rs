//! Why a task waits, runs or sleeps at one moment: since when, who runs instead by which decision, and what ended it.

use std::sync::atomic::AtomicBool;

use schedlab_model::{Nanos, Pid, TaskId};
use schedlab_policy::decision::{Decision, Pool, Verdict};
use schedlab_policy::fair::{GroupId, QueueView};
use schedlab_sim::{CpuView, Decided, Detail, SimError, TaskView};
use schedlab_spec::RunSpec;
use schedlab_trace::{Event, Kind};
use serde::Serialize;

use super::lane::{Lane, Shelf};
use super::told::{groups, names, pid_of, tell, tell_alone, DecisionView, GroupNames, TaskNames};

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
    #[error("no task {name} at {} ms", ms(*at_ns))]
    NoTask {
        /// What was asked for.
        name: String,
        /// When.
        at_ns: Nanos,
        /// What there is, each name once.
        tasks: Vec<String>,
    },
    /// Several tasks have this name.
    #[error("{name} names {} tasks", pids.len())]
    Several {
        /// What was asked for.
        name: String,
        /// Theirs, those that wait first; the dead ones are left out if others are not.
        pids: Vec<Pid>,
    },
    /// The run was over before.
    #[error("the run ends at {} ms, before {} ms", ms(*end_ns), ms(*at_ns))]
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
    /// `running`, `waiting`, `throttled` (a group above has no runtime), `delayed` (asleep, but queued), `sleeping`, `new`, `dead`.
    pub state: &'static str,
    /// What it sleeps on.
    pub waits_for: Option<String>,
    /// Since when it is in this state.
    pub since_ns: Option<Nanos>,
    /// When it was last woken.
    pub woken_ns: Option<Nanos>,
    /// Its CPU.
    pub cpu: u32,
    /// What brought it there: its last placement, or the balancer.
    pub placed: Option<DecisionView>,
    /// Of a task that waits: CPUs that it may use and that are idle at this moment.
    pub idle_cpus: Vec<u32>,
    /// Who runs there; `None` = idle.
    pub runner: Option<Pid>,
    /// The CPU's queue.
    pub queue: QueueView,
    /// The group whose quota keeps it from running.
    pub throttled_by: Option<u32>,
    /// What throttled that group, or the real-time class, on the CPU, unless it is over.
    pub throttle: Option<DecisionView>,
    /// The pick that put the runner there, level by level from the root down.
    pub picked: Vec<DecisionView>,
    /// What kept it since: the last checks and ticks, the oldest first.
    pub kept: Vec<DecisionView>,
    /// How many decisions kept it altogether.
    pub kept_total: u64,
    /// TIF_NEED_RESCHED is set: `full` or `lazy`.
    pub asked: Option<&'static str>,
    /// The CPU's next tick.
    pub next_tick_ns: Option<Nanos>,
    /// What ended the state: the decisions that led to it, and when. `None` if the run ended first.
    pub ended_ns: Option<Nanos>,
    /// The decisions, the last one last.
    pub ended_by: Vec<DecisionView>,
    /// Names of the tasks that occur.
    pub tasks: TaskNames,
    /// Paths of the groups.
    pub groups: GroupNames,
}

/// Keeping decisions told.
const KEPT: usize = 3;
/// Decisions looked through for what ended a state; a longer wait is told by its last ones.
const LOOKED_THROUGH: usize = 4096;

/// What is remembered of one CPU while the run goes to the moment.
#[derive(Clone, Default)]
struct Turn {
    picked: Vec<Decision>,
    kept: Vec<Decision>,
    kept_total: u64,
    /// Levels of a pick in progress.
    levels: Vec<Decision>,
    /// Pools that are empty here.
    throttled: Vec<Decision>,
}

/// Runs the specification up to `at` and on until the task's state changes.
pub fn why(spec: &RunSpec, who: &Who, at: Nanos, cancel: &AtomicBool) -> Result<Why, WhyError> {
    let mut sink = Shelf::default();
    let mut lane = Lane::new(spec, &mut sink);
    lane.session.record(Detail::Placements);
    let mut turns = vec![Turn::default(); lane.rows.len()];
    let mut past = Past::default();
    while !lane.over && lane.next_time() <= at {
        lane.step(cancel)?;
        lane.decided.iter().for_each(|kept| turns[kept.decision.cpu.index()].note(&kept.decision));
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
        let concerns = |kept: &&Decided| kept.decision.cpu.0 == why.cpu || pid_of(&kept.decision) == Some(task.pid);
        let told: Vec<DecisionView> = lane.decided.iter().filter(concerns).map(|kept| tell(kept, version)).collect();
        // It got the CPU to go into limbo only.
        let limbo = matches!(why.state, "waiting" | "throttled") && told.iter().any(|told| leaves(told, task.pid));
        why.ended_by.extend(told);
        let keep_from = why.ended_by.len().saturating_sub(LOOKED_THROUGH);
        why.ended_by.drain(..keep_from);
        let ended = lane.rows.iter_mut().flat_map(|row| row.items.drain(..)).any(|item| ends(&item.event, &why));
        if ended && !limbo {
            why.ended_ns = Some(lane.session.now());
        }
    }
    why.ended_by = match why.ended_ns {
        Some(_) => what_counts(&why, &groups_above(&lane, &task)),
        None => Vec::new(),
    };
    why.tasks = names(&lane.session);
    why.groups = groups(&lane.session);
    Ok(why)
}

/// The groups that the task is in, its own first.
fn groups_above(lane: &Lane<'_>, task: &TaskView) -> Vec<u32> {
    let fair = &lane.session.sched().fair;
    let mut group = fair.group_of(task.task);
    let mut groups = Vec::new();
    while group != GroupId::ROOT {
        groups.push(group.0);
        group = fair.group(group).parent;
    }
    groups
}

/// Of the decisions up to the end: what throttled a group of the task meanwhile and the task itself, what gave them runtime
/// again, the decision that asked the runner to go, and the last one, a pick (level by level) or a placement.
fn what_counts(why: &Why, groups: &[u32]) -> Vec<DecisionView> {
    let pid = Some(why.pid);
    let asks = |told: &&DecisionView| {
        told.cpu == why.cpu
            && told.asked.is_some()
            && matches!(told.verdict, "preempt" | "expire" | "leave" | "throttle")
    };
    let queued = matches!(why.state, "waiting" | "throttled");
    // Others may have run before the task did: what counts is what ended the last turn of another.
    let of_others =
        |told: &DecisionView| told.cpu == why.cpu && told.verdict == "pick" && told.pid.is_some() && told.pid != pid;
    let since = why.ended_by.iter().rposition(of_others).filter(|_| queued).map_or(0, |last| last + 1);
    let first = why.ended_by[since..].iter().find(asks).filter(|_| queued || why.state == "running");
    let held = |verdict: &'static str| {
        let of_task = move |told: &DecisionView| {
            told.cpu == why.cpu && told.group.is_some_and(|group| groups.contains(&group)) && told.verdict == verdict
        };
        why.ended_by.iter().rposition(of_task).filter(|_| queued)
    };
    let given = held("unthrottle").map(|given| &why.ended_by[given]);
    // The one that the task was waiting for already is told with the wait.
    let taken = held("throttle").map(|taken| &why.ended_by[taken]);
    // A task that slept is placed, then checked.
    let place = |told: &&DecisionView| told.verdict == "place" && told.pid == pid && !queued;
    let placed = why.ended_by.iter().rev().find(place).filter(|_| why.state != "running");
    let last = why.ended_by.iter().rposition(|told| match why.state {
        "waiting" | "throttled" => told.verdict == "pick" && told.pid == pid,
        "running" => told.verdict == "pick" && told.pid.is_some() || matches!(told.verdict, "delay" | "leave"),
        _ => told.pid == pid && matches!(told.verdict, "place" | "preempt" | "keep"),
    });
    let above =
        |last: usize| why.ended_by[..last].iter().rev().take_while(|told| told.verdict == "pick" && told.pid.is_none());
    let levels = last.map_or(0, |last| above(last).filter(|told| told.time_ns == why.ended_by[last].time_ns).count());
    let chain = last.map_or(&[][..], |last| &why.ended_by[last - levels..=last]);
    let first = first.filter(|first| chain.iter().all(|told| told != *first));
    let left = why.ended_by.iter().rev().find(|told| queued && leaves(told, why.pid));
    let mut told: Vec<&DecisionView> = first.into_iter().chain(taken).chain(left).chain(given).chain(placed).collect();
    told.retain(|told| !chain.contains(*told));
    told.sort_by_key(|told| told.time_ns);
    told.dedup();
    told.into_iter().chain(chain).cloned().collect()
}

/// Whether the task left its queue, throttled.
fn leaves(told: &DecisionView, pid: Pid) -> bool {
    told.verdict == "leave" && told.pid == Some(pid)
}

/// Whether the event ends the state that the task was in.
fn ends(event: &Event, why: &Why) -> bool {
    match (event.kind, why.state) {
        (Kind::Switch { next, .. }, "waiting" | "throttled") => next == why.pid,
        (Kind::Switch { prev, .. }, "running") => prev == why.pid,
        (Kind::Wakeup { pid, .. } | Kind::WakeupNew { pid, .. }, "sleeping" | "delayed" | "new") => pid == why.pid,
        _ => false,
    }
}

impl Turn {
    fn note(&mut self, decision: &Decision) {
        match decision.verdict {
            Verdict::PickGroup(_) => {
                if decision.queue == GroupId::ROOT {
                    self.levels.clear();
                }
                self.levels.push(*decision);
            }
            Verdict::Pick(task) => {
                let above = decision.queue != GroupId::ROOT;
                let mut picked = if above { std::mem::take(&mut self.levels) } else { Vec::new() };
                picked.push(*decision);
                let same = self.picked.last().is_some_and(|before| before.task() == Some(task));
                // Somebody else was picked, or nobody had been: a new turn.
                match same {
                    true => picked.iter().for_each(|decision| self.keep(decision)),
                    false => *self = Turn { picked, throttled: std::mem::take(&mut self.throttled), ..Turn::default() },
                }
            }
            Verdict::Keep(_) | Verdict::Stay(_) => self.keep(decision),
            Verdict::Throttle(_) => self.throttled.push(*decision),
            Verdict::Unthrottle(pool) => self.throttled.retain(|other| other.verdict != Verdict::Throttle(pool)),
            _ => {}
        }
    }

    fn keep(&mut self, decision: &Decision) {
        self.kept_total += 1;
        self.kept.push(*decision);
        let from = self.kept.len().saturating_sub(KEPT);
        self.kept.drain(..from);
    }

    /// What keeps the group, or the whole class, from running.
    fn throttle(&self, pool: Pool) -> Option<&Decision> {
        self.throttled.iter().find(|decision| decision.verdict == Verdict::Throttle(pool))
    }
}

/// Per task, when it last changed its state and when it was last woken.
#[derive(Default)]
struct Past {
    changed: Vec<Option<Nanos>>,
    woken: Vec<Option<Nanos>>,
    placed: Vec<Option<Decided>>,
}

impl Past {
    fn note(&mut self, lane: &mut Lane<'_>) {
        let brings = |kept: &Decided| matches!(kept.decision.verdict, Verdict::Place(..) | Verdict::Pull(..));
        for kept in lane.decided.drain(..).filter(brings) {
            if let Some(pid) = pid_of(&kept.decision) {
                put(&mut self.placed, pid, kept);
            }
        }
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

fn put<T: Clone>(of: &mut Vec<Option<T>>, pid: Pid, what: T) {
    let Ok(index) = usize::try_from(pid) else { return };
    if of.len() <= index {
        of.resize(index + 1, None);
    }
    of[index] = Some(what);
}

fn get<T: Clone>(of: &[Option<T>], pid: Pid) -> Option<T> {
    usize::try_from(pid).ok().and_then(|index| of.get(index).cloned()).flatten()
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
            tasks.sort_unstable();
            tasks.dedup();
            Err(WhyError::NoTask { name, at_ns: at, tasks })
        }
        ref several => {
            let mut alive: Vec<&TaskView> = several.iter().copied().filter(|task| task.life != "dead").collect();
            alive.sort_by_key(|task| (task.life != "runnable", task.pid));
            let of = |tasks: &[&TaskView]| tasks.iter().map(|task| task.pid).collect();
            match alive[..] {
                [] => Err(WhyError::Several { name, pids: of(several) }),
                [task] => Ok(task.clone()),
                _ => Err(WhyError::Several { name, pids: of(&alive) }),
            }
        }
    }
}

/// Milliseconds, exact to the nanosecond.
fn ms(ns: Nanos) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}

fn answer(spec: &RunSpec, lane: &Lane<'_>, task: &TaskView, turns: &[Turn], past: &Past, at: Nanos) -> Why {
    let sched = lane.session.sched();
    let cpu = sched.cpu_of(task.task);
    let (turn, flags) = (&turns[cpu.index()], lane.session.cpu(cpu));
    let told = |decision: &Decision| tell_alone(decision, spec.kernel.version);
    let fair = &sched.fair;
    let state = state(task, fair.entity(task.task).sched_delayed, fair.view().throttled_by(task.task).is_some());
    let throttled_by = fair.view().throttled_by(task.task).filter(|_| state == "throttled");
    let real_time = sched.rt.policy(task.task).map(|_| Pool::RealTime);
    let pool = throttled_by.map(Pool::Group).or(real_time);
    let ran = sched.curr(cpu).map(|_| turn.picked.iter().map(told).collect());
    Why {
        kernel: spec.kernel.version.name,
        at_ns: at,
        pid: task.pid,
        state,
        waits_for: task.waits_for.clone(),
        since_ns: get(&past.changed, task.pid),
        woken_ns: get(&past.woken, task.pid),
        cpu: cpu.0,
        placed: get(&past.placed, task.pid).map(|kept| tell(&kept, spec.kernel.version)),
        idle_cpus: if state == "waiting" { sched.idle_cpus_for(task.task).map(|cpu| cpu.0).collect() } else { vec![] },
        runner: sched.curr(cpu).map(|task: TaskId| task.0 as Pid + 1),
        queue: lane.session.queue(cpu),
        throttled_by: throttled_by.map(|group| group.0),
        throttle: pool.and_then(|pool| turn.throttle(pool)).map(told),
        picked: ran.unwrap_or_default(),
        kept: turn.kept.iter().map(told).collect(),
        kept_total: turn.kept_total,
        asked: asked(flags),
        next_tick_ns: flags.next_tick,
        ended_ns: None,
        ended_by: Vec::new(),
        tasks: TaskNames::new(),
        groups: GroupNames::new(),
    }
}

fn state(task: &TaskView, delayed: bool, throttled: bool) -> &'static str {
    match task.life {
        "runnable" if throttled => "throttled",
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
