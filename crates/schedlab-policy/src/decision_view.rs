//! A decision and its task as plain data, to be printed: by the simulator's `explain` and by the replay's.

use schedlab_model::{Nanos, Pid};
use serde::Serialize;

use crate::decision::{Action, Class, Decision, During};
use crate::queue_view::QueueView;
use crate::{CandidateView, Resched, Version};

/// What was decided, without the task, group or CPU that it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// A task, or a task of a group, runs next.
    Pick,
    /// A task that was woken preempts.
    Preempt,
    /// It does not preempt.
    Keep,
    /// The slice of the running task is over.
    Expire,
    /// The running task continues although others wait.
    Stay,
    /// A task or group that sleeps stays queued.
    Delay,
    /// A quota or runtime is used up.
    Throttle,
    /// There is runtime again.
    Unthrottle,
    /// A task of a throttled group leaves the queue.
    Leave,
    /// The CPU of a task that wakes.
    Place,
    /// The limit of a search for an idle CPU.
    Search,
    /// The balancer moves a task.
    Pull,
    /// The balancer leaves a task where it is.
    Skip,
    /// A CPU that becomes idle does not balance.
    NoNewidle,
}

impl ActionKind {
    /// The name in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ActionKind::Pick => "pick",
            ActionKind::Preempt => "preempt",
            ActionKind::Keep => "keep",
            ActionKind::Expire => "expire",
            ActionKind::Stay => "stay",
            ActionKind::Delay => "delay",
            ActionKind::Throttle => "throttle",
            ActionKind::Unthrottle => "unthrottle",
            ActionKind::Leave => "leave",
            ActionKind::Place => "place",
            ActionKind::Search => "search",
            ActionKind::Pull => "pull",
            ActionKind::Skip => "skip",
            ActionKind::NoNewidle => "no_newidle",
        }
    }
}

/// The state of a task at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Created, and never woken.
    New,
    /// It runs.
    Running,
    /// It is queued.
    Waiting,
    /// It cannot run, because a group above it or, if it is a deadline task, itself is out of runtime.
    Throttled,
    /// It sleeps, and is still queued.
    Delayed,
    /// It sleeps.
    Sleeping,
    /// It has exited.
    Dead,
}

/// A decision.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DecisionView {
    /// When.
    pub time_ns: Nanos,
    /// On which CPU's queue.
    pub cpu: u32,
    /// What.
    pub action: ActionKind,
    /// About which task; none: about a group or a class.
    pub pid: Option<Pid>,
    /// About which group, or whose entity stood for the task.
    pub group: Option<u32>,
    /// The class that decided: `fair`, `rt`, `dl`, `core`.
    pub class: &'static str,
    /// The CPU it goes to or comes from.
    pub other_cpu: Option<u32>,
    /// In which call: `tick`, `wakeup`, `hrtick`, `other`.
    pub during: &'static str,
    /// The request to reschedule that it made: `full`, `lazy` or none.
    pub need_resched: Option<&'static str>,
    /// The kernel's function.
    pub function: &'static str,
    /// The rule.
    pub rule: &'static str,
    /// The feature that made the difference.
    pub feature: Option<&'static str>,
    /// The numbers compared, with their names.
    pub compared: Vec<(&'static str, i64)>,
    /// The queue as it stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueView>,
    /// Of a placement: the CPUs that it tested, in order, up to the one that it selected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateView>,
}

impl DecisionView {
    /// `pid` names the task it is about, if it is about one.
    #[must_use]
    pub fn of(decision: &Decision, pid: Option<Pid>, queue: Option<QueueView>, version: &Version) -> DecisionView {
        let (action, other) = match decision.action {
            Action::Pick(_) | Action::PickGroup(_) => (ActionKind::Pick, None),
            Action::Preempt(_) => (ActionKind::Preempt, None),
            Action::Keep(_) => (ActionKind::Keep, None),
            Action::Expire(_) => (ActionKind::Expire, None),
            Action::Stay(_) => (ActionKind::Stay, None),
            Action::Delay(_) | Action::DelayGroup(_) => (ActionKind::Delay, None),
            Action::Throttle(_) => (ActionKind::Throttle, None),
            Action::Unthrottle(_) => (ActionKind::Unthrottle, None),
            Action::Leave(_) => (ActionKind::Leave, None),
            Action::Search(_) => (ActionKind::Search, None),
            Action::Place(_, cpu) => (ActionKind::Place, Some(cpu.0)),
            Action::Pull(_, cpu) => (ActionKind::Pull, Some(cpu.0)),
            Action::Skip(_, cpu) => (ActionKind::Skip, Some(cpu.0)),
            Action::NoNewidle => (ActionKind::NoNewidle, None),
        };
        DecisionView {
            time_ns: decision.now,
            cpu: decision.cpu.0,
            action,
            pid,
            group: decision.group().map(|group| group.0),
            class: match decision.class {
                Class::Fair => "fair",
                Class::RealTime => "rt",
                Class::Deadline => "dl",
                Class::Stop => "stop",
                Class::Core => "core",
            },
            other_cpu: other,
            during: match decision.during {
                During::Tick => "tick",
                During::Wakeup => "wakeup",
                During::Hrtick => "hrtick",
                During::Other => "other",
            },
            need_resched: match decision.resched {
                Resched::No => None,
                Resched::Lazy => Some("lazy"),
                Resched::Full => Some("full"),
            },
            function: decision.function(version),
            rule: decision.rule,
            feature: decision.feature.map(|feature| feature.info().name),
            compared: decision.numbers(),
            queue,
            candidates: Vec::new(),
        }
    }
}
