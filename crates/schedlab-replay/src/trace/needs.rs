//! What replay needs of a trace, and which of it a trace lacks.

use std::collections::BTreeSet;

use schedlab_model::Pid;
use schedlab_trace::{Body, Flags, Header, Kind, Record};

/// One run in so many may lack its run time: the clock may have stood still.
const SPARE: u64 = 20;

/// Counts, over a whole trace, the records without which decisions cannot be followed.
#[derive(Default)]
pub struct Needs {
    switches: u64,
    wakings: u64,
    wakeups: u64,
    /// Some event shows context flags.
    flags: bool,
    /// Runs of fair tasks that ended, and those without any run time.
    runs: u64,
    unaccounted: u64,
    accounted: BTreeSet<Pid>,
}

impl Needs {
    pub fn note(&mut self, record: &Record<'_>) {
        let Body::Event(kind, _) = record.body else { return };
        self.flags |= record.flags != Flags::NONE;
        match kind {
            Kind::Runtime { pid, .. } => drop(self.accounted.insert(pid)),
            Kind::Waking { .. } => self.wakings += 1,
            Kind::Wakeup { .. } => self.wakeups += 1,
            Kind::Switch { prev, prev_prio, .. } => {
                self.switches += 1;
                let accounted = self.accounted.remove(&prev);
                if prev != 0 && (100..140).contains(&prev_prio) {
                    self.runs += 1;
                    self.unaccounted += u64::from(!accounted);
                }
            }
            _ => {}
        }
    }

    /// What the trace lacks, in words.
    pub fn missing(&self, header: &Header) -> Vec<String> {
        let mut missing = Vec::new();
        let mut lacks = |lacks: bool, what: &str| missing.extend(lacks.then(|| what.to_owned()));
        lacks(self.switches == 0, "switches (sched_switch)");
        lacks(self.runs > 0 && self.unaccounted == self.runs, "run times (sched_stat_runtime)");
        lacks(self.wakeups > 0 && self.wakings == 0, "the beginnings of wakeups (sched_waking)");
        lacks(self.switches > 0 && !self.flags, "the context of events (need-resched, interrupts)");
        if (1..self.runs).contains(&self.unaccounted) && self.unaccounted * SPARE > self.runs {
            missing.push(format!("the run times of {} of {} runs (sched_stat_runtime)", self.unaccounted, self.runs));
        }
        let no_settings =
            !header.comments.iter().any(|line| line.starts_with("features ") || line.starts_with("sched_"));
        if no_settings && header.get("simulated").is_none() {
            missing.push("the settings of the kernel (features, autogroup) in its header".to_owned());
        }
        missing.extend(header.get("untraced").map(str::to_owned));
        missing
    }
}
