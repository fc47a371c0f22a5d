//! The CPUs of one kernel: every event moves a task and a CPU through their states and leaves slices, queues and
//! wakeups.

use std::collections::BTreeMap;

use schedlab_metrics::Plan;
use schedlab_model::{Nanos, Pid};
use schedlab_trace::TaskState;

use super::marks::{Waited, Wake};
use super::shared::Shared;

const WAKEUP_LATENCY: &str = "sched.wakeup_latency";

/// A CPU during the run.
#[derive(Clone, Default)]
struct Cpu {
    running: Pid,
    since: Nanos,
    waiting: u32,
    /// Tasks that wait here and that this CPU is not about to run.
    stuck: u32,
    gap: Option<Nanos>,
    /// Whether its slices end where the vCPU loses the host's CPU, and whether it has it.
    hosted: bool,
    granted: bool,
}

/// All CPUs of one kernel.
pub struct Lanes {
    pub first: Option<Nanos>,
    pub last: Nanos,
    name: String,
    base: usize,
    cpus: Vec<Cpu>,
    /// Names of sampled metrics that are durations, empty for others; and whether the samples are time in a queue.
    metrics: Vec<(String, bool)>,
    latency: String,
    names: BTreeMap<Pid, String>,
    task_of: BTreeMap<Pid, usize>,
    /// The CPU on whose runqueue a task waits.
    queued: BTreeMap<Pid, usize>,
    /// When, on which CPU and by which task a task was woken.
    woken: BTreeMap<Pid, (Nanos, usize, Pid)>,
    /// Begin and end of the last sample of time in a queue of a task.
    queueing: BTreeMap<Pid, (Nanos, Nanos)>,
    stuck: u32,
    losing: bool,
}

impl Lanes {
    pub fn new(shared: &mut Shared, name: &str, cpus: usize, plan: &Plan) -> Self {
        let base = shared.lanes();
        let title = |cpu| if name.is_empty() { format!("CPU {cpu}") } else { format!("{name} CPU {cpu}") };
        (0..cpus).for_each(|cpu| shared.lane(title(cpu)));
        let own = |metric: &str| if name.is_empty() { metric.to_owned() } else { format!("{name}.{metric}") };
        let durations = |(metric, unit): (String, String)| if unit == "ns" { own(&metric) } else { String::new() };
        let names = plan.raw_units().into_iter().map(durations);
        Lanes {
            first: None,
            last: 0,
            name: name.to_owned(),
            base,
            cpus: vec![Cpu::default(); cpus],
            metrics: names.zip(plan.metrics.iter().map(|entry| entry.decl.queueing)).collect(),
            latency: own(WAKEUP_LATENCY),
            names: BTreeMap::new(),
            task_of: BTreeMap::new(),
            queued: BTreeMap::new(),
            woken: BTreeMap::new(),
            queueing: BTreeMap::new(),
            stuck: 0,
            losing: false,
        }
    }

    /// The name of the kernel.
    pub fn named(&self) -> &str {
        &self.name
    }

    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Its CPUs are threads of a host: nothing runs on them before they have a CPU there.
    pub fn hosted(&mut self) {
        self.cpus.iter_mut().for_each(|cpu| cpu.hosted = true);
    }

    /// A vCPU gains or loses a CPU of the host: the task on it continues, or its slice ends for now.
    pub fn granted(&mut self, shared: &mut Shared, now: Nanos, cpu: usize, runs: bool) {
        if self.cpus[cpu].granted == runs {
            return;
        }
        if !runs {
            self.end_slice(shared, now, cpu, false);
        }
        let state = &mut self.cpus[cpu];
        (state.granted, state.since) = (runs, now);
    }

    /// Whether the vCPU has a CPU.
    pub fn is_granted(&self, cpu: usize) -> bool {
        self.cpus[cpu].granted
    }

    pub fn name(&mut self, shared: &mut Shared, pid: Pid, name: &str) {
        if let Some(task) = self.task_of.get(&pid) {
            name.clone_into(&mut shared.tasks[*task].1);
        }
        self.names.insert(pid, name.to_owned());
    }

    pub fn switch(&mut self, shared: &mut Shared, now: Nanos, cpu: usize, prev: Pid, state: TaskState, next: Pid) {
        self.clock(now);
        if prev != 0 {
            let preempted = state == TaskState::Running;
            if self.cpus[cpu].running == 0 && !self.queued.contains_key(&prev) {
                // It ran before the first event.
                self.cpus[cpu].since = self.cpus[cpu].since.max(self.first.unwrap_or(0));
            }
            self.cpus[cpu].running = prev;
            self.end_slice(shared, now, cpu, preempted);
            self.leave_queue(shared, now, prev);
            if preempted {
                self.queue(shared, now, prev, cpu);
            }
        }
        let mut waited = None;
        if next != 0 {
            waited = self.leave_queue(shared, now, next);
            self.ran(shared, now, cpu, next);
        }
        (self.cpus[cpu].running, self.cpus[cpu].since) = (next, now);
        self.gaps(shared, now, [Some(cpu), waited.filter(|other| *other != cpu)]);
    }

    /// `sched_waking`, on the waker's CPU.
    pub fn waking(&mut self, now: Nanos, cpu: usize, pid: Pid) {
        self.clock(now);
        let by = self.cpus[cpu].running;
        self.woken.entry(pid).or_insert((now, cpu, by));
    }

    /// The task is on a runqueue.
    pub fn wakeup(&mut self, shared: &mut Shared, now: Nanos, pid: Pid, cpu: usize) {
        self.clock(now);
        self.task(shared, pid);
        if !self.queued.contains_key(&pid) && self.cpus[cpu].running != pid {
            self.queue(shared, now, pid, cpu);
            self.gaps(shared, now, [Some(cpu), None]);
        }
    }

    /// It concerns a queue only if the task waits on one.
    pub fn migrate(&mut self, shared: &mut Shared, now: Nanos, pid: Pid, to: usize) {
        self.clock(now);
        if let Some(left) = self.leave_queue(shared, now, pid) {
            self.queue(shared, now, pid, to);
            self.gaps(shared, now, [Some(left), Some(to).filter(|to| *to != left)]);
        }
    }

    /// A program reported a duration that ends now.
    pub fn sample(&mut self, shared: &mut Shared, now: Nanos, cpu: usize, pid: Pid, metric: usize, ns: Nanos) {
        if let Some((name, queueing)) = self.metrics.get(metric).filter(|(name, _)| !name.is_empty()) {
            let begin = now.saturating_sub(ns);
            let before = self.queueing.get(&pid).filter(|(since, until)| *since == begin && *until < now);
            let queued = before.map_or(0, |(_, end)| end - begin);
            if *queueing {
                self.queueing.insert(pid, (begin, now));
            }
            shared.slow(name, Waited { ns, at: now, pid, lane: self.base + cpu, queued });
        }
    }

    /// The last slices end with the run.
    pub fn close(&mut self, shared: &mut Shared, end: Nanos) {
        for cpu in 0..self.cpus.len() {
            self.end_slice(shared, end, cpu, false);
            self.close_gap(shared, end, cpu);
        }
    }

    fn clock(&mut self, now: Nanos) {
        self.first.get_or_insert(now);
        self.last = self.last.max(now);
    }

    fn task(&mut self, shared: &mut Shared, pid: Pid) -> usize {
        let names = &self.names;
        *self.task_of.entry(pid).or_insert_with(|| {
            shared.tasks.push((pid, names.get(&pid).cloned().unwrap_or_default()));
            shared.tasks.len() - 1
        })
    }

    fn end_slice(&mut self, shared: &mut Shared, now: Nanos, cpu: usize, preempted: bool) {
        let Cpu { running, since, hosted, granted, .. } = self.cpus[cpu];
        if running != 0 && (!hosted || granted && since < now) {
            let task = self.task(shared, running);
            shared.slice(self.base + cpu, since, now, task, preempted);
        }
    }

    fn queue(&mut self, shared: &mut Shared, now: Nanos, pid: Pid, cpu: usize) {
        self.queued.insert(pid, cpu);
        self.cpus[cpu].waiting += 1;
        self.depth(shared, now, cpu);
    }

    /// The CPU on which the task waited.
    fn leave_queue(&mut self, shared: &mut Shared, now: Nanos, pid: Pid) -> Option<usize> {
        let cpu = self.queued.remove(&pid)?;
        self.cpus[cpu].waiting -= 1;
        self.depth(shared, now, cpu);
        Some(cpu)
    }

    fn depth(&self, shared: &mut Shared, now: Nanos, cpu: usize) {
        shared.depth(self.base + cpu, now, self.cpus[cpu].waiting);
    }

    fn ran(&mut self, shared: &mut Shared, now: Nanos, cpu: usize, pid: Pid) {
        let Some((at, on, by)) = self.woken.remove(&pid) else { return };
        let by = (by != 0).then(|| self.task(shared, by));
        let (task, ran_lane) = (self.task(shared, pid), self.base + cpu);
        shared.wake(Wake { at, lane: self.base + on, by, task, ran_lane, ran_at: now });
        shared.slow(&self.latency, Waited { ns: now - at, at: now, pid, lane: ran_lane, queued: 0 });
    }

    /// Opens and closes the intervals in which a CPU idles while a task waits that no idle CPU is about to run. Only
    /// `cpus` changed, unless whether a task waits at all did.
    fn gaps(&mut self, shared: &mut Shared, now: Nanos, cpus: [Option<usize>; 2]) {
        for cpu in cpus.into_iter().flatten() {
            let state = &mut self.cpus[cpu];
            let stuck = state.waiting - u32::from(state.running == 0 && state.waiting > 0);
            self.stuck = self.stuck + stuck - state.stuck;
            state.stuck = stuck;
        }
        let losing = self.stuck > 0;
        if losing == self.losing {
            cpus.into_iter().flatten().for_each(|cpu| self.gap(shared, now, cpu, losing));
        } else {
            (0..self.cpus.len()).for_each(|cpu| self.gap(shared, now, cpu, losing));
        }
        self.losing = losing;
    }

    fn gap(&mut self, shared: &mut Shared, now: Nanos, cpu: usize, losing: bool) {
        let state = &mut self.cpus[cpu];
        if losing && state.running == 0 && state.waiting == 0 {
            state.gap.get_or_insert(now);
        } else {
            self.close_gap(shared, now, cpu);
        }
    }

    fn close_gap(&mut self, shared: &mut Shared, now: Nanos, cpu: usize) {
        if let Some(since) = self.cpus[cpu].gap.take().filter(|since| now > *since) {
            shared.gap(self.base + cpu, since, now);
        }
    }
}
