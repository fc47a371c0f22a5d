//! What a Perfetto trace holds and the reader leaves out, or cannot know.

use std::collections::BTreeMap;

/// Field numbers of the kinds of events that are read (protos/perfetto/trace/ftrace/ftrace_event.proto).
const READ: [u32; 9] = [4, 17, 20, 114, 235, 238, FORK, GENERIC, 491];
const FORK: u32 = 239;
/// An event without a message of its own.
pub const GENERIC: u32 = 327;

/// Names of frequent kinds that are not read.
const NAMES: [(u32, &str); 7] = [
    (3, "print"),
    (11, "cpu_frequency"),
    (13, "cpu_idle"),
    (18, "sched_blocked_reason"),
    (236, "task_rename"),
    (237, "sched_process_exec"),
    (113, "suspend_resume"),
];
/// So many kinds are named.
const NAMED: usize = 5;

/// Counts of what is left out.
#[derive(Default)]
pub struct LeftOut {
    kinds: BTreeMap<u32, u64>,
    /// `sched_process_fork` was recorded.
    pub forks: bool,
    /// Compact switches that do not say what ran before.
    pub first_switches: u64,
    /// Compact wakeups before it is known what runs on their CPU.
    pub wakers: u64,
}

impl LeftOut {
    /// Notes an event by the field that holds its message.
    pub fn note(&mut self, kind: Option<u32>) {
        self.forks |= kind == Some(FORK);
        if let Some(kind) = kind.filter(|kind| !READ.contains(kind)) {
            *self.kinds.entry(kind).or_default() += 1;
        }
    }

    /// A sentence for each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let all: u64 = self.kinds.values().sum();
        if all > 0 {
            let mut kinds: Vec<(u32, u64)> = self.kinds.iter().map(|(kind, count)| (*kind, *count)).collect();
            kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
            let name = |kind: u32| match NAMES.iter().find(|(number, _)| *number == kind) {
                Some((_, name)) => (*name).to_owned(),
                None => format!("field {kind}"),
            };
            let mut named: Vec<String> =
                kinds.iter().take(NAMED).map(|(kind, count)| format!("{count} {}", name(*kind))).collect();
            if kinds.len() > NAMED {
                named.push(format!("{} further kinds", kinds.len() - NAMED));
            }
            notes.push(format!("{all} ftrace events of other kinds were not read: {}", named.join(", ")));
        }
        if self.first_switches > 0 {
            notes.push(format!(
                "{} compact switches were left out: the first of a CPU, and the first after a loss, do not say what ran before",
                self.first_switches
            ));
        }
        if self.wakers > 0 {
            notes.push(format!(
                "{} wakeups precede the first switch of their CPU: their waker is not known, and idle stands for it",
                self.wakers
            ));
        }
        notes
    }
}
