//! What a wakeup and a switch took on the recorded kernel, the recorder's probes included.
//!
//! Measured where nothing else happened: a wakeup on a CPU, the record that the task is on the runqueue, and the switch
//! to it on the same CPU, without another wakeup or switch in between.

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_trace::{Event, Kind};
use serde::Serialize;

/// Costs, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Costs {
    /// From `sched_waking` to `sched_wakeup`.
    pub wakeup: Nanos,
    /// From `sched_wakeup` to `sched_switch`.
    pub switch: Nanos,
}

impl Costs {
    /// Of so many wakeups and switches.
    #[must_use]
    pub fn of(self, wakeups: u32, switches: u32) -> Nanos {
        u64::from(wakeups) * self.wakeup + u64::from(switches) * self.switch
    }
}

/// Collects the undelayed wakeups.
#[derive(Clone, Debug, Default)]
pub struct Undelayed {
    pending: BTreeMap<CpuId, Pending>,
    wakeups: Vec<Nanos>,
    switches: Vec<Nanos>,
}

/// A wakeup on a CPU that has not led to a switch yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    pid: Pid,
    waking: Nanos,
    woken: Option<Nanos>,
}

/// Fewer samples are no measurement.
const FEWEST: usize = 10;

impl Undelayed {
    /// Takes an event.
    pub fn event(&mut self, event: &Event) {
        match event.kind {
            Kind::Waking { pid, .. } => {
                // Of several wakeups one after the other, none is undelayed.
                match self.pending.remove(&event.cpu) {
                    Some(_) => {}
                    None => drop(self.pending.insert(event.cpu, Pending { pid, waking: event.time, woken: None })),
                }
            }
            Kind::Wakeup { pid, target_cpu, .. } => {
                if let Some(pending) = self.pending.get_mut(&event.cpu) {
                    if pending.pid == pid && target_cpu == event.cpu {
                        pending.woken = Some(event.time);
                    } else {
                        self.pending.remove(&event.cpu);
                    }
                }
            }
            Kind::Switch { next, .. } => {
                if let Some(Pending { pid, waking, woken: Some(woken) }) = self.pending.remove(&event.cpu) {
                    if pid == next {
                        self.wakeups.push(woken - waking);
                        self.switches.push(event.time - woken);
                    }
                }
            }
            _ => {}
        }
    }

    /// The lower quartiles: the rest is delayed by interrupts and sections without preemption.
    pub fn costs(&self) -> Costs {
        let quartile = |samples: &[Nanos]| {
            let mut sorted = samples.to_vec();
            sorted.sort_unstable();
            sorted.get(sorted.len() / 4).copied().filter(|_| sorted.len() >= FEWEST).unwrap_or(0)
        };
        Costs { wakeup: quartile(&self.wakeups), switch: quartile(&self.switches) }
    }
}
