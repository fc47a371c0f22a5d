//! Why a recorded task waits at a moment: its queue in the model, the running task, and the decisions that let it run.
//!
//! The numbers are the model's, the events the kernel's. Where the model would have picked another task, the answer has
//! both.

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::decision::{Action, Decision};
use schedlab_policy::decision_view::{ActionKind, DecisionView, TaskState};
use schedlab_policy::fair::{EntityState, QueueView};

use crate::answer::{Answer, Question, Why};
use crate::model::Model;
use crate::operation::{Input, Operation, Switch, Wakeup};
use crate::trace::Window;

/// How many of the decisions that let the running task run on are listed.
const KEPT: usize = 4;

/// The turn of a CPU's running task.
#[derive(Clone, Default)]
struct Turn {
    runner: Pid,
    picked: Vec<DecisionView>,
    kept: Vec<DecisionView>,
    kept_total: u64,
}

/// The last changes of a task.
#[derive(Clone, Copy, Default)]
struct LastChange {
    since: Option<Nanos>,
    woken: Option<Nanos>,
}

/// A question while the trace is replayed.
pub struct Asking {
    question: Question,
    turns: BTreeMap<CpuId, Turn>,
    changes: BTreeMap<Pid, LastChange>,
    answer: Option<Answer>,
}

impl Asking {
    pub fn new(question: Question) -> Self {
        Asking { question, turns: BTreeMap::new(), changes: BTreeMap::new(), answer: None }
    }

    /// Before a record of this time is replayed.
    pub fn reach(&mut self, model: &Model, time: Nanos, window: &Window<'_>) {
        if self.answer.is_none() && time > self.question.at {
            self.answer = Some(self.now(model, window));
        }
    }

    fn now(&self, model: &Model, window: &Window<'_>) -> Answer {
        let tasks: Vec<Pid> = match self.question.task.parse() {
            Ok(pid) => model.cpu_of(pid).map(|_| pid).into_iter().collect(),
            Err(_) => window.named(&self.question.task).filter(|pid| model.cpu_of(*pid).is_some()).collect(),
        };
        match (self.question.at < window.start(), tasks.as_slice()) {
            (true, _) => Answer::Outside(window.start(), window.end()),
            (false, [pid]) => self.why(model, *pid),
            (false, _) => Answer::Tasks(tasks),
        }
    }

    fn why(&self, model: &Model, pid: Pid) -> Answer {
        let Some((cpu, queue)) = model.cpu_of(pid).map(|cpu| (cpu, model.queue_view(cpu))) else {
            return Answer::Tasks(Vec::new());
        };
        let change = self.changes.get(&pid).copied().unwrap_or_default();
        let runner = queue
            .entities
            .iter()
            .find(|entity| entity.group.is_none() && entity.state == EntityState::Running)
            .map(|entity| entity.pid);
        let turn = self.turns.get(&cpu).filter(|turn| Some(turn.runner) == runner).cloned().unwrap_or_default();
        let picked_pid = turn.picked.last().and_then(|made| made.pid);
        Answer::Why(Box::new(Why {
            tasks: BTreeMap::new(),
            groups: BTreeMap::new(),
            kernel: model.fair().config.version.name,
            at_ns: self.question.at,
            cpu: cpu.0,
            pid,
            state: state(&queue, pid),
            since_ns: change.since,
            woken_ns: change.woken,
            waits_for: None,
            runner,
            agrees: picked_pid.map(|picked| Some(picked) == runner),
            picked: turn.picked,
            kept: turn.kept,
            kept_total: turn.kept_total,
            need_resched: None,
            next_tick_ns: None,
            queue,
            ended_ns: None,
            ended_by: Vec::new(),
        }))
    }

    /// After an operation, with the decisions that the model made in it.
    pub fn follow(&mut self, model: &Model, input: &Input) {
        let time = input.time;
        let made: Vec<DecisionView> = model.decisions_made(time);
        self.finish_wait(&input.operation, time, &made);
        match input.operation {
            Operation::Wakeup(Wakeup { pid, .. }) => {
                let change = self.changes.entry(pid).or_default();
                (change.since, change.woken) = (Some(time), Some(time));
            }
            Operation::Switch(Switch { cpu, prev, next, .. }) => {
                for pid in [prev, next] {
                    self.changes.entry(pid).or_default().since = Some(time);
                }
                let picked = last_pick(made);
                self.turns.insert(cpu, Turn { runner: next, picked, ..Turn::default() });
            }
            _ => made.into_iter().for_each(|made| self.keep(made)),
        }
    }

    fn keep(&mut self, made: DecisionView) {
        if !matches!(made.action, ActionKind::Keep | ActionKind::Stay | ActionKind::Pick) {
            return;
        }
        let Some(turn) = self.turns.get_mut(&CpuId(made.cpu)) else { return };
        turn.kept_total += 1;
        if turn.kept.len() == KEPT {
            turn.kept.remove(0);
        }
        turn.kept.push(made);
    }

    fn finish_wait(&mut self, operation: &Operation, time: Nanos, made: &[DecisionView]) {
        let Some(Answer::Why(why)) = &mut self.answer else { return };
        if why.ended_ns.is_some() {
            return;
        }
        let ends = match *operation {
            Operation::Switch(Switch { prev, next, .. }) => match why.state {
                TaskState::Running => prev == why.pid,
                TaskState::Waiting => next == why.pid,
                _ => false,
            },
            Operation::Wakeup(Wakeup { pid, .. }) => {
                pid == why.pid && !matches!(why.state, TaskState::Running | TaskState::Waiting)
            }
            _ => false,
        };
        if ends {
            (why.ended_ns, why.ended_by) = (Some(time), made.to_vec());
        }
    }

    /// The answer, at the end of the trace.
    pub fn end(mut self, window: &Window<'_>) -> Answer {
        let outside = Answer::Outside(window.start(), window.end());
        let mut answer = self.answer.take().unwrap_or(outside);
        if let Answer::Why(why) = &mut answer {
            let made = why.picked.iter().chain(&why.kept).chain(&why.ended_by);
            let decisions = made.filter_map(|made| made.pid);
            let entities = why.queue.entities.iter().map(|entity| entity.pid);
            let pids: Vec<Pid> = decisions.chain(entities).chain([why.pid]).collect();
            why.tasks = pids.into_iter().map(|pid| (pid, window.name(pid).to_owned())).collect();
        }
        answer
    }
}

/// The levels of the last pick, that of the task last.
fn last_pick(mut made: Vec<DecisionView>) -> Vec<DecisionView> {
    made.retain(|made| made.action == ActionKind::Pick);
    let before = made.iter().rev().skip(1).position(|made| made.pid.is_some());
    let from = before.map_or(0, |back| made.len() - 1 - back);
    made.split_off(from)
}

fn state(queue: &QueueView, pid: Pid) -> TaskState {
    match queue.entities.iter().find(|entity| entity.pid == pid).map(|entity| entity.state) {
        Some(EntityState::Running) => TaskState::Running,
        Some(EntityState::Waiting) => TaskState::Waiting,
        Some(EntityState::Delayed) => TaskState::Delayed,
        Some(EntityState::Leaving) | None => TaskState::Sleeping,
    }
}

impl Model {
    /// The CPU a task of the fair class is on or was last on.
    fn cpu_of(&self, pid: Pid) -> Option<CpuId> {
        self.task(pid).map(|id| self.sched.cpu_of(id))
    }

    /// Without the model's clock, which is no time of the trace.
    fn queue_view(&self, cpu: CpuId) -> QueueView {
        QueueView { accounted_ns: None, ..self.fair().view().queue_view(cpu, |id| self.pid(id)) }
    }

    /// The row's decisions in the last operation.
    fn decisions_made(&self, time: Nanos) -> Vec<DecisionView> {
        let decisions = self.sched.decisions().iter();
        let version = self.fair().config.version;
        let pid = |decision: &Decision| decision.task().map(|task| self.pid(task));
        let moves = |d: &Decision| matches!(d.action, Action::Place(..) | Action::Pull(..)) || d.is_refused_move();
        let fair = decisions.filter(|decision| !moves(decision));
        fair.map(|decision| DecisionView { time_ns: time, ..DecisionView::of(decision, pid(decision), None, version) })
            .collect()
    }
}
