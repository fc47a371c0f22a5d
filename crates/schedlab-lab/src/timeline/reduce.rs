//! The sink: passes the events of each kernel to its lanes, and to the lanes of guests the times at which their vCPUs
//! run. A vCPU of a guest in a guest runs while its thread is on a vCPU of the outer guest that runs itself.

use std::collections::BTreeMap;

use schedlab_metrics::Plan;
use schedlab_model::{KernelId, Nanos, Pid};
use schedlab_trace::{Event, Kind, Sink};

use super::lanes::Lanes;
use super::shared::Shared;

/// The timelines of a host and of its guests.
pub struct Reduction {
    shared: Shared,
    kernels: Vec<Lanes>,
    /// Which kernel hosts each of them.
    hosts: Vec<usize>,
    /// The guest kernel, and the CPU of it, that a task of a host executes.
    vcpus: BTreeMap<(usize, Pid), Vcpu>,
    /// The vCPU on a CPU of a host.
    loaded: BTreeMap<(usize, usize), Vcpu>,
}

/// A guest kernel, and a CPU of it.
type Vcpu = (usize, usize);

impl Reduction {
    /// Samples count that end at `from` or later; `around` is for [`Shared::new`].
    pub fn new(from: Nanos, around: Option<(&[Nanos], usize)>) -> Self {
        let shared = Shared::new(from, around);
        Reduction { shared, kernels: Vec::new(), hosts: Vec::new(), vcpus: BTreeMap::new(), loaded: BTreeMap::new() }
    }

    /// One more kernel with its CPUs and its metrics; "" is that of the machine, which comes first. `host`: the number
    /// of the kernel that hosts it.
    pub fn kernel(&mut self, name: &str, host: usize, cpus: usize, plan: &Plan) {
        self.kernels.push(Lanes::new(&mut self.shared, name, cpus, plan));
        self.hosts.push(host);
    }

    /// Everything as JSON, with what is still open closed at the last event of any kernel.
    pub fn finish(mut self) -> serde_json::Value {
        let end = self.kernels.iter().map(|kernel| kernel.last).max().unwrap_or(0);
        let start = self.kernels.iter().filter_map(|kernel| kernel.first).min().unwrap_or(0);
        for kernel in &mut self.kernels {
            kernel.close(&mut self.shared, end);
        }
        self.shared.finish(start, end)
    }

    /// The vCPUs among the tasks of a switch of a host gain or lose their CPU.
    fn host_switched(&mut self, now: Nanos, host: usize, cpu: usize, prev: Pid, next: Pid) {
        if self.vcpus.is_empty() {
            return;
        }
        if let Some(vcpu) = self.vcpus.get(&(host, prev)).copied() {
            self.loaded.remove(&(host, cpu));
            self.grant(now, vcpu, false);
        }
        if let Some(vcpu) = self.vcpus.get(&(host, next)).copied() {
            self.loaded.insert((host, cpu), vcpu);
            let runs = host == 0 || self.kernels[host].is_granted(cpu);
            self.grant(now, vcpu, runs);
        }
    }

    /// A vCPU starts or stops running, and with it the vCPU of an inner guest that it executes.
    fn grant(&mut self, now: Nanos, vcpu: Vcpu, runs: bool) {
        let mut next = Some(vcpu);
        while let Some((kernel, cpu)) = next {
            self.kernels[kernel].granted(&mut self.shared, now, cpu, runs);
            next = self.loaded.get(&(kernel, cpu)).copied();
        }
    }
}

impl Sink for Reduction {
    fn event(&mut self, event: &Event) {
        let (now, cpu, kernel) = (event.time, event.cpu.index(), event.kernel.index());
        let (lanes, shared) = (&mut self.kernels[kernel], &mut self.shared);
        match event.kind {
            Kind::Switch { prev, prev_state, next, .. } => {
                lanes.switch(shared, now, cpu, prev, prev_state, next);
                self.host_switched(now, kernel, cpu, prev, next);
            }
            Kind::Waking { pid, .. } => lanes.waking(now, cpu, pid),
            Kind::Wakeup { pid, target_cpu, .. } | Kind::WakeupNew { pid, target_cpu, .. } => {
                lanes.wakeup(shared, now, pid, target_cpu.index());
            }
            Kind::Migrate { pid, dest_cpu, .. } => lanes.migrate(shared, now, pid, dest_cpu.index()),
            Kind::Sample { pid, metric, value } => lanes.sample(shared, now, cpu, pid, usize::from(metric), value),
            _ => {}
        }
    }

    fn name(&mut self, kernel: KernelId, pid: Pid, name: &str) {
        let hosted = self.hosts.iter().enumerate().skip(1).filter(|(_, host)| **host == kernel.index());
        let vcpu = hosted.into_iter().find_map(|(index, _)| {
            let lanes = &self.kernels[index];
            let cpu = name.strip_prefix(lanes.named())?.strip_prefix('/')?.parse().ok()?;
            (cpu < lanes.cpus()).then_some((index, cpu))
        });
        if let Some(vcpu) = vcpu {
            self.vcpus.insert((kernel.index(), pid), vcpu);
            self.kernels[vcpu.0].hosted();
        }
        self.kernels[kernel.index()].name(&mut self.shared, pid, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::MetricEntry;
    use schedlab_model::CpuId;
    use schedlab_trace::TaskState;
    use schedlab_workload::{Better, MetricDecl, MetricKind, Unit};
    use serde_json::json;

    fn switch(time: Nanos, kernel: u16, cpu: u32, prev: Pid, next: Pid) -> Event {
        let prev_state = TaskState::Sleeping;
        let kind = Kind::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 };
        Event { time, kernel: KernelId(kernel), cpu: CpuId(cpu), kind }
    }

    #[test]
    fn slices_of_a_guest_are_only_where_its_vcpu_runs() {
        let mut reduction = Reduction::new(0, None);
        reduction.kernel("", 0, 1, &Plan::default());
        reduction.kernel("vm", 0, 1, &Plan::default());
        reduction.name(KernelId(0), 5, "vm/0");
        let events = [
            switch(10, 0, 0, 0, 5),
            switch(20, 1, 0, 0, 7),
            switch(30, 0, 0, 5, 6),
            switch(50, 0, 0, 6, 5),
            switch(60, 1, 0, 7, 0),
            switch(70, 0, 0, 5, 0),
        ];
        events.iter().for_each(|event| reduction.event(event));
        let found = reduction.finish();
        let guest: Vec<i64> = serde_json::from_value(found["lanes"][1]["slices"].clone()).unwrap_or_default();
        let times: Vec<(i64, i64)> = guest.chunks(4).map(|slice| (slice[0], slice[1])).collect();
        assert_eq!(times, [(20, 30), (50, 60)]);
    }

    /// The host takes the CPU of the outer guest away from 30 to 50, while that executes the inner one.
    #[test]
    fn slices_of_an_inner_guest_are_only_where_the_outer_vcpu_runs_too() {
        let mut reduction = Reduction::new(0, None);
        reduction.kernel("", 0, 1, &Plan::default());
        reduction.kernel("outer", 0, 1, &Plan::default());
        reduction.kernel("inner", 1, 1, &Plan::default());
        reduction.name(KernelId(0), 5, "outer/0");
        reduction.name(KernelId(1), 5, "inner/0");
        let events = [
            switch(10, 0, 0, 0, 5),
            switch(15, 1, 0, 0, 5),
            switch(20, 2, 0, 0, 7),
            switch(30, 0, 0, 5, 6),
            switch(50, 0, 0, 6, 5),
            switch(60, 1, 0, 5, 8),
            switch(70, 0, 0, 5, 0),
        ];
        events.iter().for_each(|event| reduction.event(event));
        let found = reduction.finish();
        let times = |lane: usize| -> Vec<(i64, i64)> {
            let slices: Vec<i64> = serde_json::from_value(found["lanes"][lane]["slices"].clone()).unwrap_or_default();
            slices.chunks(4).map(|slice| (slice[0], slice[1])).collect()
        };
        assert_eq!(times(1), [(15, 30), (50, 60), (60, 70)]);
        assert_eq!(times(2), [(20, 30), (50, 60)]);
    }

    fn sampled(name: &str, queueing: bool) -> MetricEntry {
        let decl = MetricDecl {
            name: name.into(),
            help: String::new(),
            unit: Unit::Microseconds,
            better: Better::Lower,
            kind: MetricKind::Samples,
            default_stats: vec![],
            divide: 1,
            queueing,
        };
        MetricEntry { workload: "web".into(), decl }
    }

    /// Both samples begin at 100 and a part of each ends at 400. Whether no task worked on that part is a property of
    /// its metric, whatever its name.
    #[test]
    fn only_a_declared_queue_is_time_before_the_task_took_it() {
        for (part, queueing, queued) in [("queueing", false, 0), ("until_taken", true, 300)] {
            let mut reduction = Reduction::new(0, None);
            let metrics = vec![sampled(part, queueing), sampled("latency", false)];
            reduction.kernel("", 0, 1, &Plan { metrics, ..Plan::default() });
            let part = format!("web.{part}");
            for (time, metric, value) in [(400, 0, 300), (600, 1, 500)] {
                let kind = Kind::Sample { pid: 5, metric, value };
                reduction.event(&Event { time, kernel: KernelId(0), cpu: CpuId(0), kind });
            }
            let found = reduction.finish();
            assert_eq!(found["slowest"]["web.latency"][0], json!([500, 600, 5, 0, queued]), "{part}");
            assert_eq!(found["slowest"][part.as_str()][0], json!([300, 400, 5, 0, 0]), "{part}");
        }
    }
}
