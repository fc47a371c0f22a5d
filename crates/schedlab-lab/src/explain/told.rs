//! A decision and its task as plain data, for whoever prints it.

use std::collections::BTreeMap;

use schedlab_model::{Nanos, Pid};
use schedlab_policy::decision::{Decision, During, Verdict};
use schedlab_policy::fair::QueueView;
use schedlab_policy::{Resched, Version};
use schedlab_sim::Session;
use schedlab_trace::Sink;
use serde::Serialize;

/// `workload/program` by pid.
pub type TaskNames = BTreeMap<Pid, String>;

/// A decision.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Told {
    /// When.
    pub time_ns: Nanos,
    /// On which CPU's queue.
    pub cpu: u32,
    /// What: `pick`, `preempt`, `keep`, `expire`, `stay`, `delay`, `place`, `search`, `pull`.
    pub verdict: &'static str,
    /// About whom.
    pub pid: Pid,
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
    /// The numbers compared.
    pub compared: [(&'static str, i64); 2],
    /// The queue as it stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueView>,
}

impl Told {
    pub(super) fn of(decision: &Decision, queue: Option<QueueView>, version: &Version) -> Told {
        let (verdict, other) = match decision.verdict {
            Verdict::Pick(_) => ("pick", None),
            Verdict::Preempt(_) => ("preempt", None),
            Verdict::Keep(_) => ("keep", None),
            Verdict::Expire(_) => ("expire", None),
            Verdict::Stay(_) => ("stay", None),
            Verdict::Delay(_) => ("delay", None),
            Verdict::Search(_) => ("search", None),
            Verdict::Place(_, cpu) => ("place", Some(cpu.0)),
            Verdict::Pull(_, cpu) => ("pull", Some(cpu.0)),
        };
        Told {
            time_ns: decision.now,
            cpu: decision.cpu.0,
            verdict,
            pid: pid_of(decision),
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
            function: decision.function(version.series, &version.rules),
            rule: decision.rule,
            feature: decision.feature.map(|feature| feature.info().name),
            compared: decision.compared,
            queue,
        }
    }
}

/// Traces count tasks from 1.
pub(super) fn pid_of(decision: &Decision) -> Pid {
    decision.task().0 as Pid + 1
}

/// The names of every task so far.
pub(super) fn names<S: Sink>(session: &Session<'_, S>) -> TaskNames {
    session.tasks().map(|task| (task.pid, task.name)).collect()
}
