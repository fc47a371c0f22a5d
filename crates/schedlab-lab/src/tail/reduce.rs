//! The sink: passes the events to their kernels, and divides the samples of the requested metrics.

use std::collections::BTreeMap;

use schedlab_metrics::Plan;
use schedlab_model::{KernelId, Nanos, Pid};
use schedlab_trace::{Event, Flags, Kind, Sink};

use super::account::Account;
use super::kept::Kept;
use super::kernel::{vcpu_of, Kernel};
use super::names::Names;
use super::path::{Ended, Host};
use super::samples::Samples;
use super::slow::Slow;

const WAKEUP_LATENCY: &str = "sched.wakeup_latency";
/// Tasks of the fair class have this priority or a greater one (`MAX_RT_PRIO`).
const MAX_RT_PRIO: i32 = 100;

/// All kernels of a run, and the samples of the metrics.
pub struct Reduction {
    from: Nanos,
    kernels: Vec<Kernel>,
    names: Names,
    /// Which kernel hosts each of them.
    hosts: Vec<usize>,
    /// The guest, and the CPU of it, that a task of its host executes.
    vcpus: BTreeMap<(usize, Pid), (usize, usize)>,
    metrics: Vec<Samples>,
    /// A task of the real-time or the deadline class ran.
    not_fair: bool,
    interrupt: bool,
}

impl Reduction {
    /// Samples of these metrics count that end at `from` or later.
    pub fn new(metrics: Vec<Samples>, from: Nanos) -> Self {
        Reduction {
            from,
            kernels: Vec::new(),
            hosts: Vec::new(),
            names: Names::new(),
            vcpus: BTreeMap::new(),
            metrics,
            not_fair: false,
            interrupt: false,
        }
    }

    /// One more kernel, hosted by the kernel of that number; "" is that of the machine, which comes first.
    pub fn kernel(&mut self, name: &str, host: usize, cpus: usize, plan: &Plan) {
        self.hosts.push(host);
        // The host's wakeups are called so without a prefix, those of a guest with its name.
        let wakeups = if name.is_empty() { WAKEUP_LATENCY.to_owned() } else { format!("{name}.{WAKEUP_LATENCY}") };
        for samples in self.metrics.iter_mut().filter(|samples| samples.metric == wakeups) {
            samples.wakeups_of = Some(self.kernels.len());
        }
        self.kernels.push(Kernel::new(name, cpus, plan, self.from));
    }

    /// Sets whether the kernel of that number is asked which tasks were enqueued ([`Kernel::take_enqueued`]).
    pub fn watch_throttling(&mut self, kernel: usize) {
        self.kernels[kernel].watches_throttling = true;
    }

    /// The kernel of that number, and the names of everything.
    pub fn kernel_and_names(&mut self, kernel: usize) -> (&mut Kernel, &mut Names) {
        (&mut self.kernels[kernel], &mut self.names)
    }

    /// What is kept of the run, which ended at `end`.
    pub fn finish(self, end: Nanos) -> Kept {
        let Reduction { kernels, names, metrics, not_fair, .. } = self;
        let (kernels, load) =
            kernels.into_iter().map(|Kernel { name, load, .. }| (name.clone(), load.finish(&name, end))).unzip();
        Kept { kernels, load, names, metrics, not_fair }
    }

    /// A sample of the metric of this number ended.
    fn take(&mut self, metric: usize, ended: Ended, kernel: usize, cpu: usize) {
        if ended.at < self.from || !self.metrics[metric].counts(ended.at, ended.ns) {
            return;
        }
        let account = self.divide(kernel, ended);
        let program = self.kernels[kernel].program(ended.pid);
        self.metrics[metric].add(Slow { ended, kernel, cpu, program, account });
    }

    fn divide(&self, kernel: usize, ended: Ended) -> Account {
        let own = self.vcpus.iter().filter(|(_, (guest, _))| *guest == kernel);
        let threads: BTreeMap<usize, Pid> = own.map(|((_, thread), (_, vcpu))| (*vcpu, *thread)).collect();
        let host = Host { kernel: &self.kernels[self.hosts[kernel]], threads };
        self.kernels[kernel].divide(ended, (kernel != 0).then_some(&host))
    }

    fn sample(&mut self, now: Nanos, kernel: usize, cpu: usize, pid: Pid, metric: u16, ns: Nanos) {
        let metric = usize::from(metric);
        let queued = self.kernels[kernel].queued(now, pid, metric, ns);
        let name = self.kernels[kernel].metrics.get(metric).map(|(name, _)| name);
        let Some(number) = self.metrics.iter().position(|samples| Some(&samples.metric) == name) else { return };
        // One that began in another task before the last one of this task ended was in a queue until then.
        let before = self.metrics[number].last.insert((kernel, pid), now).unwrap_or_default();
        let queued = queued.max(before.saturating_sub(now.saturating_sub(ns)));
        self.take(number, Ended { at: now, pid, ns, queued }, kernel, cpu);
    }
}

impl Sink for Reduction {
    fn event(&mut self, event: &Event) {
        let (now, cpu, kernel) = (event.time, event.cpu.index(), event.kernel.index());
        let interrupt = std::mem::take(&mut self.interrupt);
        let own = &mut self.kernels[kernel];
        match event.kind {
            Kind::Switch { prev, prev_state, next, next_prio, .. } => {
                self.not_fair |= next != 0 && next_prio < MAX_RT_PRIO;
                if let Some(ns) = own.switch(now, cpu, prev, prev_state, next) {
                    let of_kernel = |samples: &Samples| samples.wakeups_of == Some(kernel);
                    if let Some(number) = self.metrics.iter().position(of_kernel) {
                        self.take(number, Ended { at: now, pid: next, ns, queued: 0 }, kernel, cpu);
                    }
                }
            }
            Kind::Waking { pid, .. } => own.waking(now, cpu, interrupt, pid),
            Kind::Wakeup { pid, target_cpu, .. } => own.wakeup(now, pid, target_cpu.index(), false),
            Kind::WakeupNew { pid, target_cpu, .. } => own.wakeup(now, pid, target_cpu.index(), true),
            Kind::Migrate { pid, dest_cpu, .. } => own.migrate(now, pid, dest_cpu.index()),
            Kind::Sample { pid, metric, value } => self.sample(now, kernel, cpu, pid, metric, value),
            _ => {}
        }
    }

    fn name(&mut self, kernel: KernelId, pid: Pid, name: &str) {
        let host = kernel.index();
        if let Some(vcpu) = vcpu_of(name, &self.kernels).filter(|(guest, _)| self.hosts[*guest] == host) {
            self.vcpus.insert((host, pid), vcpu);
        }
        let program = self.names.program(name);
        self.kernels[kernel.index()].rename(pid, program);
    }

    /// The context of events is needed: it says whether an interrupt woke a task.
    fn is_trace(&self) -> bool {
        true
    }

    fn takes_trace_only(&self) -> bool {
        false
    }

    fn flags(&mut self, flags: Flags) {
        self.interrupt = flags.in_interrupt();
    }
}
