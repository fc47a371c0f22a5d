//! A decision and its task as plain data, to be printed: by the simulator's `explain` and by the replay's.

use schedlab_model::{Nanos, Pid};
use serde::Serialize;

use crate::decision::{Class, Decision, During, Verdict};
use crate::queue_view::QueueView;
use crate::{Looked, Resched, Version};

/// A decision.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DecisionView {
    /// When.
    pub time_ns: Nanos,
    /// On which CPU's queue.
    pub cpu: u32,
    /// What: `pick`, `preempt`, `keep`, `expire`, `stay`, `delay`, `throttle`, `unthrottle`, `leave`, `place`,
    /// `search`, `pull`, `skip` (a task that the balancer leaves where it is), `no_newidle`.
    pub verdict: &'static str,
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
    /// What it asked of the CPU: `full`, `lazy` or nothing.
    pub asked: Option<&'static str>,
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
    /// Of a placement: the CPUs it asked about, in its order, up to the one that it took.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub looked: Vec<Looked>,
}

impl DecisionView {
    /// `pid` names the task it is about, if it is about one.
    #[must_use]
    pub fn of(decision: &Decision, pid: Option<Pid>, queue: Option<QueueView>, version: &Version) -> DecisionView {
        let (verdict, other) = match decision.verdict {
            Verdict::Pick(_) | Verdict::PickGroup(_) => ("pick", None),
            Verdict::Preempt(_) => ("preempt", None),
            Verdict::Keep(_) => ("keep", None),
            Verdict::Expire(_) => ("expire", None),
            Verdict::Stay(_) => ("stay", None),
            Verdict::Delay(_) | Verdict::DelayGroup(_) => ("delay", None),
            Verdict::Throttle(_) => ("throttle", None),
            Verdict::Unthrottle(_) => ("unthrottle", None),
            Verdict::Leave(_) => ("leave", None),
            Verdict::Search(_) => ("search", None),
            Verdict::Place(_, cpu) => ("place", Some(cpu.0)),
            Verdict::Pull(_, cpu) => ("pull", Some(cpu.0)),
            Verdict::Skip(_, cpu) => ("skip", Some(cpu.0)),
            Verdict::NoNewidle => ("no_newidle", None),
        };
        DecisionView {
            time_ns: decision.now,
            cpu: decision.cpu.0,
            verdict,
            pid,
            group: decision.group().map(|group| group.0),
            class: match decision.class {
                Class::Fair => "fair",
                Class::RealTime => "rt",
                Class::Deadline => "dl",
                Class::Core => "core",
            },
            other_cpu: other,
            during: match decision.during {
                During::Tick => "tick",
                During::Wakeup => "wakeup",
                During::Hrtick => "hrtick",
                During::Other => "other",
            },
            asked: match decision.asked {
                Resched::No => None,
                Resched::Lazy => Some("lazy"),
                Resched::Full => Some("full"),
            },
            function: decision.function(version),
            rule: decision.rule,
            feature: decision.feature.map(|feature| feature.info().name),
            compared: decision.numbers(),
            queue,
            looked: Vec::new(),
        }
    }
}
