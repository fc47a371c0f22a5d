//! Why a task waits, runs or sleeps at one moment: since when, which decision made another task run instead, and what
//! ended that state.

use std::sync::atomic::AtomicBool;

use schedlab_model::{Nanos, Pid};
use schedlab_policy::decision::{Action, Decision, Pool};
use schedlab_policy::decision_view::{ActionKind, TaskState};
use schedlab_policy::fair::{GroupId, QueueView};
use schedlab_sim::{CpuView, Decided, Detail, Life, SimError, TaskView};
use schedlab_spec::RunSpec;
use schedlab_trace::{Event, Kind, Sink};
use serde::Serialize;

use super::stepper::{seen, EventBuffer, Stepper};
use super::views::{decision_view, groups, names, pid_of, recorded_view, DecisionView, GroupNames, TaskNames};

/// Selects one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TaskSelector {
    /// By pid.
    Pid(Pid),
    /// By `workload/program`, or by either of the two alone if only one task matches.
    Name(String),
}

/// Why the question cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// The run stopped.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// No task has this name or pid at that time.
    #[error("no task {name} at {} ms", ms(*at_ns))]
    NoTask {
        /// The name or pid that was asked for.
        name: String,
        /// The time that was asked about.
        at_ns: Nanos,
        /// The names of all tasks at that time, each name once.
        tasks: Vec<String>,
    },
    /// Several tasks have this name.
    #[error("{name} names {} tasks", pids.len())]
    Several {
        /// The name or pid that was asked for.
        name: String,
        /// Their pids, runnable tasks first. Dead tasks are listed only if all are dead.
        pids: Vec<Pid>,
    },
    /// The run ended before the time that was asked about.
    #[error("the run ends at {} ms, before {} ms", ms(*end_ns), ms(*at_ns))]
    Over {
        /// When it ended.
        end_ns: Nanos,
        /// The time that was asked about.
        at_ns: Nanos,
    },
}

/// The state of one task at one moment and the decisions behind it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Why {
    /// The kernel's row.
    pub kernel: &'static str,
    /// The time that was asked about.
    pub at_ns: Nanos,
    /// The task's pid.
    pub pid: Pid,
    /// Its state.
    pub state: TaskState,
    /// What it sleeps on.
    pub waits_for: Option<String>,
    /// Since when it is in this state.
    pub since_ns: Option<Nanos>,
    /// When it was last woken.
    pub woken_ns: Option<Nanos>,
    /// The task's CPU.
    pub cpu: u32,
    /// The decision that put the task on its CPU: its last placement, or a migration by load balancing.
    pub placed: Option<DecisionView>,
    /// If the task waits: the CPUs in its affinity mask that are idle at this moment.
    pub idle_cpus: Vec<u32>,
    /// The task that runs on that CPU; `None` if the CPU is idle.
    pub runner: Option<Pid>,
    /// The runqueue of the CPU.
    pub queue: QueueView,
    /// The group whose exhausted quota keeps the task from running.
    pub throttled_by: Option<u32>,
    /// The decision that throttled that group, the deadline task, or the real-time class, on the CPU; `None` if it is
    /// not throttled now.
    pub throttle: Option<DecisionView>,
    /// The decisions that picked the running task, one per level of the group hierarchy, from the root down.
    pub picked: Vec<DecisionView>,
    /// The decisions since then that kept it running: the last preemption checks and ticks, oldest first.
    pub kept: Vec<DecisionView>,
    /// The number of all such decisions.
    pub kept_total: u64,
    /// `full` if TIF_NEED_RESCHED is set, `lazy` if only TIF_NEED_RESCHED_LAZY is.
    pub need_resched: Option<&'static str>,
    /// What the running task executes: in which mode it is, or for which lock it spins.
    pub executes: Option<String>,
    /// The CPU's next tick.
    pub next_tick_ns: Option<Nanos>,
    /// When the state ended; `None` if the run ended first.
    pub ended_ns: Option<Nanos>,
    /// The decisions that ended the state, in order of time.
    pub ended_by: Vec<DecisionView>,
    /// The names of all tasks.
    pub tasks: TaskNames,
    /// The paths of all groups.
    pub groups: GroupNames,
}

/// How many decisions that kept the running task are reported.
const KEPT_REPORTED: usize = 3;
/// How many decisions are searched for what ended a state; of a longer wait, the last ones.
const MAX_ENDED_BY: usize = 4096;

/// The decisions about the task that runs on one CPU, recorded while the run advances to the moment in question.
#[derive(Clone, Default)]
struct RunnerHistory {
    picked: Vec<Decision>,
    kept: Vec<Decision>,
    kept_total: u64,
    /// The levels of a pick in progress.
    levels: Vec<Decision>,
    /// Decisions that throttled a group or a class that is still throttled on this CPU.
    throttled: Vec<Decision>,
}

/// Runs the specification up to `at`, and from there until the task's state changes.
pub fn why(spec: &RunSpec, selector: &TaskSelector, at: Nanos, cancel: &AtomicBool) -> Result<Why, WhyError> {
    let events = EventBuffer::default();
    let mut sink = events.clone();
    let mut sink: &mut dyn Sink = &mut sink;
    let mut stepper = Stepper::new(spec, events, &mut sink);
    stepper.session.record(Detail::Placements);
    let mut runners = vec![RunnerHistory::default(); stepper.cpus.len()];
    let mut history = TaskHistory::default();
    while !stepper.over && stepper.next_time() <= at {
        stepper.step(cancel)?;
        stepper.decided.iter().for_each(|kept| runners[kept.decision.cpu.index()].note(&kept.decision));
        history.note(&mut stepper);
    }
    if stepper.over && stepper.session.now() < at {
        return Err(WhyError::Over { end_ns: stepper.session.now(), at_ns: at });
    }
    let task = find(&stepper, selector, at)?;
    let mut why = answer(spec, &stepper, &task, &runners, &history, at);
    let mut decided = false;
    while !stepper.over && !decided {
        stepper.step(cancel)?;
        // It is awake now. What is decided of a task on a wakelist is decided later.
        if asleep(why.state) && why.ended_ns.is_none() && stepper.woken.contains(&task.pid) {
            why.ended_ns = Some(stepper.session.now());
        }
        let version = seen(spec).kernel.version;
        let concerns = |kept: &&Decided| kept.decision.cpu.0 == why.cpu || pid_of(&kept.decision) == Some(task.pid);
        let view: Vec<DecisionView> =
            stepper.decided.iter().filter(concerns).map(|kept| recorded_view(kept, version)).collect();
        // The task was switched in only to be dequeued by the deferred throttle; its wait goes on.
        let deferred_throttle = is_queued(why.state) && view.iter().any(|view| is_dequeued(view, task.pid));
        why.ended_by.extend(view);
        let keep_from = why.ended_by.len().saturating_sub(MAX_ENDED_BY);
        why.ended_by.drain(..keep_from);
        let ended = stepper.cpus.iter_mut().flat_map(|row| row.items.drain(..)).any(|item| ends(&item.event, &why));
        if ended && !deferred_throttle {
            why.ended_ns.get_or_insert(stepper.session.now());
            decided = true;
        }
    }
    why.ended_by = match why.ended_ns {
        Some(_) => relevant_decisions(&why, &groups_above(&stepper, &task)),
        None => Vec::new(),
    };
    why.tasks = names(&stepper.session);
    why.groups = groups(&stepper.session);
    Ok(why)
}

/// The task's group and its ancestors, innermost first, without the root.
fn groups_above(stepper: &Stepper<'_>, task: &TaskView) -> Vec<u32> {
    let fair = &stepper.session.sched().fair;
    let mut group = fair.group_of(task.task);
    let mut groups = Vec::new();
    while group != GroupId::ROOT {
        groups.push(group.0);
        group = fair.group(group).parent;
    }
    groups
}

/// Selects from the decisions up to the end of the state: what throttled a group of the task or the task itself, what
/// unthrottled it, the decision that requested a reschedule of the running task, and the last decision, which is a pick
/// (one decision per level) or a placement.
fn relevant_decisions(why: &Why, groups: &[u32]) -> Vec<DecisionView> {
    use ActionKind::{Delay, Expire, Keep, Leave, Pick, Place, Preempt, Throttle, Unthrottle};
    let pid = Some(why.pid);
    let requests_resched = |view: &&DecisionView| {
        view.cpu == why.cpu && view.need_resched.is_some() && matches!(view.action, Preempt | Expire | Leave | Throttle)
    };
    let queued = is_queued(why.state);
    // Several tasks may have run before this one. What matters is what preempted the last of them.
    let picked_another =
        |view: &DecisionView| view.cpu == why.cpu && view.action == Pick && view.pid.is_some() && view.pid != pid;
    let since = why.ended_by.iter().rposition(picked_another).filter(|_| queued).map_or(0, |last| last + 1);
    let request =
        why.ended_by[since..].iter().find(requests_resched).filter(|_| queued || why.state == TaskState::Running);
    let of_task_group = |action: ActionKind| {
        let of_task = move |view: &DecisionView| {
            let its = view.pid == pid || view.group.is_some_and(|group| groups.contains(&group));
            view.cpu == why.cpu && its && view.action == action
        };
        why.ended_by.iter().rposition(of_task).filter(|_| queued)
    };
    let unthrottled = of_task_group(Unthrottle).map(|index| &why.ended_by[index]);
    // The throttle that was in force already at the moment in question is reported as `throttle`.
    let throttled = of_task_group(Throttle).map(|index| &why.ended_by[index]);
    // A task that slept is placed on a CPU first; then the preemption check follows.
    let place = |view: &&DecisionView| view.action == Place && view.pid == pid && !queued;
    let placed = why.ended_by.iter().rev().find(place).filter(|_| why.state != TaskState::Running);
    let last = why.ended_by.iter().rposition(|view| match why.state {
        TaskState::Waiting | TaskState::Throttled => view.action == Pick && view.pid == pid,
        TaskState::Running => view.action == Pick && view.pid.is_some() || matches!(view.action, Delay | Leave),
        _ => view.pid == pid && matches!(view.action, Place | Preempt | Keep),
    });
    let above =
        |last: usize| why.ended_by[..last].iter().rev().take_while(|view| view.action == Pick && view.pid.is_none());
    let levels = last.map_or(0, |last| above(last).filter(|view| view.time_ns == why.ended_by[last].time_ns).count());
    let chain = last.map_or(&[][..], |last| &why.ended_by[last - levels..=last]);
    let request = request.filter(|request| chain.iter().all(|view| view != *request));
    let left = why.ended_by.iter().rev().find(|view| queued && is_dequeued(view, why.pid));
    let mut view: Vec<&DecisionView> =
        request.into_iter().chain(throttled).chain(left).chain(unthrottled).chain(placed).collect();
    view.retain(|view| !chain.contains(*view));
    view.sort_by_key(|view| view.time_ns);
    view.dedup();
    view.into_iter().chain(chain).cloned().collect()
}

/// Whether a wakeup ends the state.
fn asleep(state: TaskState) -> bool {
    matches!(state, TaskState::Sleeping | TaskState::Delayed)
}

/// Whether a switch to the task ends the state.
fn is_queued(state: TaskState) -> bool {
    matches!(state, TaskState::Waiting | TaskState::Throttled)
}

/// Whether the task itself was dequeued because its group is throttled.
fn is_dequeued(view: &DecisionView, pid: Pid) -> bool {
    view.action == ActionKind::Leave && view.pid == Some(pid)
}

/// Whether the event ends the state that the task was in.
fn ends(event: &Event, why: &Why) -> bool {
    match (event.kind, why.state) {
        (Kind::Switch { next, .. }, state) if is_queued(state) => next == why.pid,
        (Kind::Switch { prev, .. }, TaskState::Running) => prev == why.pid,
        (Kind::Wakeup { pid, .. } | Kind::WakeupNew { pid, .. }, state) if asleep(state) || state == TaskState::New => {
            pid == why.pid
        }
        _ => false,
    }
}

impl RunnerHistory {
    fn note(&mut self, decision: &Decision) {
        match decision.action {
            Action::PickGroup(_) => {
                if decision.queue == GroupId::ROOT {
                    self.levels.clear();
                }
                self.levels.push(*decision);
            }
            Action::Pick(task) => {
                let above = decision.queue != GroupId::ROOT;
                let mut picked = if above { std::mem::take(&mut self.levels) } else { Vec::new() };
                picked.push(*decision);
                let same = self.picked.last().is_some_and(|before| before.task() == Some(task));
                // Another task than before was picked: its history starts here.
                match same {
                    true => picked.iter().for_each(|decision| self.keep(decision)),
                    false => {
                        *self = RunnerHistory {
                            picked,
                            throttled: std::mem::take(&mut self.throttled),
                            ..RunnerHistory::default()
                        }
                    }
                }
            }
            Action::Keep(_) | Action::Stay(_) => self.keep(decision),
            Action::Throttle(_) => self.throttled.push(*decision),
            Action::Unthrottle(pool) => self.throttled.retain(|other| other.action != Action::Throttle(pool)),
            _ => {}
        }
    }

    fn keep(&mut self, decision: &Decision) {
        self.kept_total += 1;
        self.kept.push(*decision);
        let from = self.kept.len().saturating_sub(KEPT_REPORTED);
        self.kept.drain(..from);
    }

    /// The decision that keeps the group, the deadline task, or the whole real-time class, from running.
    fn throttle(&self, pool: Pool) -> Option<&Decision> {
        self.throttled.iter().find(|decision| decision.action == Action::Throttle(pool))
    }
}

/// Per task, when its state last changed, when it was last woken and which decision put it on its CPU.
#[derive(Default)]
struct TaskHistory {
    changed: Vec<Option<Nanos>>,
    woken: Vec<Option<Nanos>>,
    placed: Vec<Option<Decided>>,
}

impl TaskHistory {
    fn note(&mut self, stepper: &mut Stepper<'_>) {
        let places = |kept: &Decided| matches!(kept.decision.action, Action::Place(..) | Action::Pull(..));
        for kept in stepper.decided.drain(..).filter(places) {
            if let Some(pid) = pid_of(&kept.decision) {
                put(&mut self.placed, pid, kept);
            }
        }
        let now = stepper.session.now();
        // The task is runnable from sched_waking on. Its sched_wakeup comes later if the task is put on a wakelist.
        for pid in stepper.woken.iter().copied() {
            put(&mut self.changed, pid, now);
            put(&mut self.woken, pid, now);
        }
        for item in stepper.cpus.iter_mut().flat_map(|row| row.items.drain(..)) {
            let time = item.event.time;
            match item.event.kind {
                Kind::Switch { prev, next, .. } => {
                    put(&mut self.changed, prev, time);
                    put(&mut self.changed, next, time);
                }
                Kind::WakeupNew { pid, .. } => {
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

fn find(stepper: &Stepper<'_>, selector: &TaskSelector, at: Nanos) -> Result<TaskView, WhyError> {
    let all: Vec<TaskView> = stepper.session.tasks().collect();
    let matches = |task: &&TaskView| match selector {
        TaskSelector::Pid(pid) => task.pid == *pid,
        TaskSelector::Name(name) => {
            task.name == *name || task.name.split_once('/').is_some_and(|(w, p)| w == name || p == name)
        }
    };
    let found: Vec<&TaskView> = all.iter().filter(matches).collect();
    let name = match selector {
        TaskSelector::Pid(pid) => format!("with pid {pid}"),
        TaskSelector::Name(name) => format!("\"{name}\""),
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
            let mut alive: Vec<&TaskView> = several.iter().copied().filter(|task| task.life != Life::Dead).collect();
            alive.sort_by_key(|task| (task.life != Life::Runnable, task.pid));
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

fn answer(
    spec: &RunSpec,
    stepper: &Stepper<'_>,
    task: &TaskView,
    runners: &[RunnerHistory],
    history: &TaskHistory,
    at: Nanos,
) -> Why {
    let sched = stepper.session.sched();
    let cpu = sched.cpu_of(task.task);
    let (turn, flags) = (&runners[cpu.index()], stepper.session.cpu(cpu));
    let view = |decision: &Decision| decision_view(decision, seen(spec).kernel.version);
    let fair = &sched.fair;
    let throttled = fair.view().throttled_by(task.task).is_some() || sched.dl.is_throttled(task.task);
    let state = state(task, fair.entity(task.task).sched_delayed, throttled);
    let throttled_by = fair.view().throttled_by(task.task).filter(|_| state == TaskState::Throttled);
    let real_time = sched.rt.policy(task.task).map(|_| Pool::RealTime);
    let deadline = sched.dl.policy(task.task).map(|_| Pool::Deadline(task.task));
    let pool = throttled_by.map(Pool::Group).or(real_time).or(deadline);
    let ran = sched.curr(cpu).map(|_| turn.picked.iter().map(view).collect());
    Why {
        kernel: seen(spec).kernel.version.name,
        at_ns: at,
        pid: task.pid,
        state,
        waits_for: task.waits_for.clone(),
        since_ns: get(&history.changed, task.pid),
        woken_ns: get(&history.woken, task.pid),
        cpu: cpu.0,
        placed: get(&history.placed, task.pid).map(|kept| recorded_view(&kept, seen(spec).kernel.version)),
        idle_cpus: if state == TaskState::Waiting {
            sched.idle_cpus_for(task.task).map(|cpu| cpu.0).collect()
        } else {
            vec![]
        },
        runner: sched.curr(cpu).map(|task| stepper.session.pid_of(task)),
        queue: stepper.session.queue(cpu),
        throttled_by: throttled_by.map(|group| group.0),
        throttle: pool.and_then(|pool| turn.throttle(pool)).map(view),
        picked: ran.unwrap_or_default(),
        kept: turn.kept.iter().map(view).collect(),
        kept_total: turn.kept_total,
        need_resched: resched(flags),
        executes: stepper.session.executes(cpu),
        next_tick_ns: flags.next_tick,
        ended_ns: None,
        ended_by: Vec::new(),
        tasks: TaskNames::new(),
        groups: GroupNames::new(),
    }
}

fn state(task: &TaskView, delayed: bool, throttled: bool) -> TaskState {
    match task.life {
        Life::New => TaskState::New,
        Life::Running => TaskState::Running,
        Life::Runnable if throttled => TaskState::Throttled,
        Life::Runnable => TaskState::Waiting,
        Life::Sleeping if delayed => TaskState::Delayed,
        Life::Sleeping | Life::Waking => TaskState::Sleeping,
        Life::Dead => TaskState::Dead,
    }
}

fn resched(cpu: CpuView) -> Option<&'static str> {
    match (cpu.need_resched, cpu.need_resched_lazy) {
        (true, _) => Some("full"),
        (false, true) => Some("lazy"),
        (false, false) => None,
    }
}
