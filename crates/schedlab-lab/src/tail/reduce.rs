//! The sink: passes the events to their kernels, and divides the samples of the requested metric.

use std::collections::BTreeMap;

use schedlab_metrics::Plan;
use schedlab_model::{KernelId, Nanos, Pid};
use schedlab_trace::{Event, Flags, Kind, Sink};
use serde_json::json;

use super::account::{Account, Band};
use super::kernel::{vcpu_of, Kernel};
use super::names::{Name, Names};
use super::path::{Ended, Host};
use super::Question;

/// How many of the longest samples are kept one by one.
const SLOWEST: usize = 8;
const WAKEUP_LATENCY: &str = "sched.wakeup_latency";

/// One of the longest samples.
struct Slow {
    ns: Nanos,
    at: Nanos,
    pid: Pid,
    kernel: usize,
    cpu: usize,
    program: Name,
    account: Account,
}

/// All kernels of a run, and the samples of the metric.
pub struct Reduction {
    question: Question,
    from: Nanos,
    until: Nanos,
    kernels: Vec<Kernel>,
    names: Names,
    /// Which kernel hosts each of them.
    hosts: Vec<usize>,
    /// The guest, and the CPU of it, that a task of its host executes.
    vcpus: BTreeMap<(usize, Pid), (usize, usize)>,
    bands: Vec<Band>,
    tenths: [(u64, u128); 10],
    slowest: Vec<Slow>,
    /// When the last sample of the metric ended in each task.
    last: BTreeMap<(usize, Pid), Nanos>,
    /// The kernel whose wakeups are the metric.
    wakeups_of: Option<usize>,
    interrupt: bool,
}

impl Reduction {
    /// Samples count that end at `from` or later; the run ends at `until` at the latest.
    pub fn new(question: &Question, from: Nanos, until: Nanos) -> Self {
        Reduction {
            question: question.clone(),
            from,
            until,
            kernels: Vec::new(),
            hosts: Vec::new(),
            names: Names::new(),
            vcpus: BTreeMap::new(),
            bands: question.bands.iter().map(|_| Band::default()).collect(),
            tenths: [(0, 0); 10],
            slowest: Vec::new(),
            last: BTreeMap::new(),
            wakeups_of: None,
            interrupt: false,
        }
    }

    /// One more kernel, hosted by the kernel of that number; "" is that of the machine, which comes first.
    pub fn kernel(&mut self, name: &str, host: usize, cpus: usize, plan: &Plan) {
        self.hosts.push(host);
        // The host's wakeups are called so without a prefix, those of a guest with its name.
        let wakeups = if name.is_empty() { WAKEUP_LATENCY.to_owned() } else { format!("{name}.{WAKEUP_LATENCY}") };
        if self.question.metric == wakeups {
            self.wakeups_of = Some(self.kernels.len());
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

    /// Everything as JSON; the run ended at `end`.
    pub fn finish(self, end: Nanos) -> serde_json::Value {
        let Reduction { kernels, names, bands, tenths, slowest, .. } = self;
        let bands: Vec<_> = bands.iter().map(|band| band.json(&names)).collect();
        let slowest: Vec<_> = slowest
            .iter()
            .map(|slow| {
                let mut json = slow.account.json(&names);
                json["ns"] = slow.ns.into();
                json["at"] = slow.at.into();
                json["pid"] = slow.pid.into();
                json["task"] = names.of(slow.program).into();
                json["lane"] = lane(&kernels[slow.kernel].name, slow.cpu).into();
                json
            })
            .collect();
        let tenths: Vec<_> = tenths.iter().map(|(count, ns)| json!([count, *ns as f64])).collect();
        let load: Vec<_> = kernels
            .into_iter()
            .map(|kernel| {
                let Kernel { name, load, .. } = kernel;
                load.finish(&name, end)
            })
            .collect();
        json!({ "bands": bands, "tenths": tenths, "slowest": slowest, "load": load })
    }

    /// A sample of the metric ended.
    fn take(&mut self, at: Nanos, kernel: usize, cpu: usize, pid: Pid, ns: Nanos, queued: Nanos) {
        if at < self.from {
            return;
        }
        let measured = self.until.saturating_sub(self.from).max(1);
        let tenth = ((u128::from(at - self.from) * 10 / u128::from(measured)) as usize).min(9);
        self.tenths[tenth].0 += 1;
        self.tenths[tenth].1 += u128::from(ns);
        let inside = |band: &(Nanos, Nanos)| (band.0..=band.1).contains(&ns);
        let longest = self.slowest.len() < SLOWEST || self.slowest.last().is_some_and(|least| ns > least.ns);
        if !longest && !self.question.bands.iter().any(inside) {
            return;
        }
        let account = self.divide(at, kernel, pid, ns, queued);
        let program = self.kernels[kernel].program(pid);
        for (band, _) in self.bands.iter_mut().zip(&self.question.bands).filter(|(_, range)| inside(range)) {
            band.count += 1;
            band.ns += u128::from(ns);
            band.account.add(&account);
            *band.tasks.entry(program).or_default() += 1;
            *band.lanes.entry(lane(&self.kernels[kernel].name, cpu)).or_default() += 1;
            band.tenths[tenth] += 1;
        }
        if longest {
            let place = self.slowest.partition_point(|known| known.ns >= ns);
            self.slowest.insert(place, Slow { ns, at, pid, kernel, cpu, program, account });
            self.slowest.truncate(SLOWEST);
        }
    }

    fn divide(&self, at: Nanos, kernel: usize, pid: Pid, ns: Nanos, queued: Nanos) -> Account {
        let own = self.vcpus.iter().filter(|(_, (guest, _))| *guest == kernel);
        let threads: BTreeMap<usize, Pid> = own.map(|((_, thread), (_, vcpu))| (*vcpu, *thread)).collect();
        let host = Host { kernel: &self.kernels[self.hosts[kernel]], threads };
        self.kernels[kernel].divide(Ended { at, pid, ns, queued }, (kernel != 0).then_some(&host))
    }

    fn sample(&mut self, now: Nanos, kernel: usize, cpu: usize, pid: Pid, metric: u16, ns: Nanos) {
        let metric = usize::from(metric);
        let queued = self.kernels[kernel].queued(now, pid, metric, ns);
        let name = self.kernels[kernel].metrics.get(metric).map(|(name, _)| name);
        if name == Some(&self.question.metric) {
            // One that began in another task before the last one of this task ended was in a queue until then.
            let before = self.last.insert((kernel, pid), now).unwrap_or_default();
            let queued = queued.max(before.saturating_sub(now.saturating_sub(ns)));
            self.take(now, kernel, cpu, pid, ns, queued);
        }
    }
}

/// The name of a lane, as timelines have it.
fn lane(kernel: &str, cpu: usize) -> String {
    match kernel {
        "" => format!("CPU {cpu}"),
        _ => format!("{kernel} CPU {cpu}"),
    }
}

impl Sink for Reduction {
    fn event(&mut self, event: &Event) {
        let (now, cpu, kernel) = (event.time, event.cpu.index(), event.kernel.index());
        let interrupt = std::mem::take(&mut self.interrupt);
        let own = &mut self.kernels[kernel];
        match event.kind {
            Kind::Switch { prev, prev_state, next, .. } => {
                let latency = own.switch(now, cpu, prev, prev_state, next);
                if let Some(ns) = latency.filter(|_| self.wakeups_of == Some(kernel)) {
                    self.take(now, kernel, cpu, next, ns, 0);
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

    fn flags(&mut self, flags: Flags) {
        self.interrupt = flags.in_interrupt();
    }
}
