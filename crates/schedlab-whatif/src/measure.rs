//! The metrics that a recording and its simulation are compared by, computed in the same way from the events of both.

use std::collections::BTreeMap;

use schedlab_model::{KernelId, Nanos, Pid};
use schedlab_trace::{Event, Kind, Sink};
use serde::Serialize;

use crate::costs::{Costs, Undelayed};

/// Samples of each task.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    tasks: Vec<Samples>,
    names: Vec<String>,
    by_pid: BTreeMap<Pid, usize>,
    undelayed: Undelayed,
    from: Nanos,
    to: Nanos,
}

/// What one task, or a pool of tasks, got.
#[derive(Clone, Debug, Default)]
struct Samples {
    /// The wakeup that has not led to a switch yet.
    woken: Option<Nanos>,
    latencies: Vec<Nanos>,
    cpu: Nanos,
    /// On a CPU since, and whether a record showed the run time.
    running: Option<(Nanos, bool)>,
    switches: u64,
}

/// The metrics of a pool.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Metrics {
    /// How many wakeups led to a switch to the task.
    pub wakeups: u64,
    /// Median time from a wakeup until the task runs, ns.
    pub latency_p50: Option<Nanos>,
    /// 99th percentile of it.
    pub latency_p99: Option<Nanos>,
    /// CPU time, ns.
    pub cpu: Nanos,
    /// Switches away from the task.
    pub switches: u64,
    /// The time in which this was counted, ns.
    pub span: Nanos,
}

impl Measure {
    /// The measurement begins.
    pub fn start(&mut self, time: Nanos) {
        self.from = time;
    }

    /// It ends.
    pub fn end(&mut self, time: Nanos) {
        self.to = time;
        for samples in &mut self.tasks {
            samples.stop(time);
        }
    }

    /// Takes an event of a recording, whose tasks are found by this table.
    pub fn take(&mut self, event: &Event, by_pid: &BTreeMap<Pid, usize>) {
        let of = |pid: Pid| by_pid.get(&pid).copied();
        self.undelayed.event(event);
        self.kind(event.time, event.kind, of);
    }

    fn kind(&mut self, time: Nanos, kind: Kind, of: impl Fn(Pid) -> Option<usize>) {
        match kind {
            Kind::Waking { pid, .. } | Kind::Wakeup { pid, .. } => {
                if let Some(samples) = self.samples(of(pid)) {
                    // A wakeup of a running task leads to no switch.
                    if samples.running.is_none() {
                        samples.woken.get_or_insert(time);
                    }
                }
            }
            Kind::Switch { prev, next, .. } => {
                if let Some(samples) = self.samples(of(prev)) {
                    samples.switches += 1;
                    samples.stop(time);
                }
                if let Some(samples) = self.samples(of(next)) {
                    samples.running = Some((time, false));
                    let woken = samples.woken.take();
                    samples.latencies.extend(woken.map(|woken| time - woken));
                }
            }
            Kind::Runtime { pid, runtime, .. } => {
                let from = self.from;
                if let Some(samples) = self.samples(of(pid)) {
                    samples.cpu += runtime.min(time - from);
                    samples.running = Some((time, true));
                }
            }
            _ => {}
        }
    }

    fn samples(&mut self, task: Option<usize>) -> Option<&mut Samples> {
        let task = task?;
        if task >= self.tasks.len() {
            self.tasks.resize_with(task + 1, Samples::default);
        }
        self.tasks.get_mut(task)
    }

    /// What a wakeup and a switch took where nothing else happened.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.undelayed.costs()
    }

    /// The metrics of each pool. `pool` names the pool of a task, by its place and its name.
    pub fn pools(&self, mut pool: impl FnMut(usize, &str) -> Option<String>) -> Vec<(String, Metrics)> {
        let mut pools: Vec<(String, Samples)> = Vec::new();
        for (task, samples) in self.tasks.iter().enumerate() {
            let name = self.names.get(task).map_or("", String::as_str);
            let Some(name) = pool(task, name) else { continue };
            let at = pools.iter().position(|(known, _)| *known == name).unwrap_or(pools.len());
            if at == pools.len() {
                pools.push((name, Samples::default()));
            }
            let sum = &mut pools[at].1;
            sum.latencies.extend(&samples.latencies);
            sum.cpu += samples.cpu;
            sum.switches += samples.switches;
        }
        pools.into_iter().map(|(name, samples)| (name, samples.metrics(self.to - self.from))).collect()
    }
}

impl Samples {
    fn stop(&mut self, time: Nanos) {
        if let Some((since, false)) = self.running.take() {
            self.cpu += time - since;
        }
    }

    fn metrics(mut self, span: Nanos) -> Metrics {
        self.latencies.sort_unstable();
        let rank = |percent: usize| {
            let nth = (self.latencies.len() * percent).div_ceil(100).saturating_sub(1);
            self.latencies.get(nth).copied()
        };
        Metrics {
            wakeups: self.latencies.len() as u64,
            latency_p50: rank(50),
            latency_p99: rank(99),
            cpu: self.cpu,
            switches: self.switches,
            span,
        }
    }
}

/// In a simulation, tasks are found by the names of their programs.
impl Sink for Measure {
    fn event(&mut self, event: &Event) {
        self.to = self.to.max(event.time);
        let by_pid = std::mem::take(&mut self.by_pid);
        self.take(event, &by_pid);
        self.by_pid = by_pid;
    }

    fn name(&mut self, _kernel: KernelId, pid: Pid, name: &str) {
        let task = match self.by_pid.get(&pid) {
            Some(task) if self.names[*task] == name => return,
            _ => self.names.len(),
        };
        self.by_pid.insert(pid, task);
        self.names.push(name.to_owned());
        self.samples(Some(task));
    }
}
