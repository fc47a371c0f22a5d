//! The metrics of a guest, in addition to those of its workloads: where the time of its vCPUs went, why they left it,
//! and where its wakeups went.

use schedlab_model::Nanos;
use schedlab_workload::{Better, Unit};

use crate::Report;

/// What a run counted of a guest, warm-up included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestTotals<'g> {
    /// How long it was.
    pub time: Nanos,
    /// Of each vCPU: time on a CPU, waiting for one, and halted.
    pub vcpus: Vec<(Nanos, Nanos, Nanos)>,
    /// Exits by cause.
    pub exits: &'g [(&'static str, u64)],
    /// Where its wakeups went.
    pub wakeups: GuestWakeups,
    /// How often a vCPU lost its CPU while its task held a spinlock.
    pub holders_preempted: u64,
}

/// Where the wakeups of a guest went.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GuestWakeups {
    /// To a CPU that was idle for the guest's own scheduler.
    pub idle: u64,
    /// To one whose vCPU was halted.
    pub halted: u64,
    /// To one whose vCPU waited for a CPU of the host.
    pub preempted: u64,
}

/// A metric of a guest.
#[derive(Clone, Copy, Debug)]
pub struct GuestMetric {
    /// Its name behind the guest's.
    pub name: &'static str,
    /// The displayed unit.
    pub unit: Unit,
    /// Which direction is an improvement.
    pub better: Better,
    /// What it means, one line.
    pub help: &'static str,
    of: fn(&GuestTotals) -> f64,
}

/// Every metric of a guest.
#[must_use]
pub fn guest_metrics() -> &'static [GuestMetric] {
    &GUEST
}

const fn metric(
    name: &'static str,
    unit: Unit,
    better: Better,
    help: &'static str,
    of: fn(&GuestTotals) -> f64,
) -> GuestMetric {
    GuestMetric { name, unit, better, help, of }
}

use Better::{Lower, Neither};
use Unit::{Count, PerSecond, Percent};

#[rustfmt::skip]
static GUEST: [GuestMetric; 13] = [
    metric("run", Percent, Neither, "share of its vCPUs' time on a CPU of the host", |g| g.share(|vcpu| vcpu.0)),
    metric("steal", Percent, Lower, "share of its vCPUs' time in which they waited for a CPU of the host", |g| g.share(|vcpu| vcpu.1)),
    metric("halted", Percent, Neither, "share of its vCPUs' time in which they were blocked", |g| g.share(|vcpu| vcpu.2)),
    metric("exits.halt", PerSecond, Neither, "exits because a CPU halted", |g| g.exits("halt")),
    metric("exits.ipi", PerSecond, Neither, "exits to send or to receive an inter-processor interrupt", |g| g.exits("ipi")),
    metric("exits.timer", PerSecond, Neither, "exits to program a timer, or because it expired", |g| g.exits("timer")),
    metric("exits.host", PerSecond, Neither, "exits because of an interrupt of the host", |g| g.exits("host")),
    metric("exits.pause", PerSecond, Neither, "exits because a CPU spun for long for a spinlock of its kernel", |g| g.exits("pause")),
    metric("exits.hcall", PerSecond, Neither, "hypercalls: whether a vCPU is preempted (idle_hint = \"hcall\"), and kicks of vCPUs that wait for a spinlock", |g| g.exits("hcall")),
    metric("wakeups_to_idle", Count, Neither, "wakeups placed on an idle CPU", |g| g.wakeups.idle as f64),
    metric("wakeups_to_halted", Count, Neither, "wakeups placed on an idle CPU whose vCPU was halted", |g| g.wakeups.halted as f64),
    metric("wakeups_to_preempted", Count, Lower, "wakeups placed on a CPU whose vCPU waited for a CPU of the host", |g| g.wakeups.preempted as f64),
    metric("lock_holder_preemptions", Count, Lower, "times a vCPU lost its CPU of the host while its task held a spinlock", |g| g.holders_preempted as f64),
];

impl GuestTotals<'_> {
    fn share(&self, of: fn(&(Nanos, Nanos, Nanos)) -> Nanos) -> f64 {
        let all = self.time as f64 * self.vcpus.len() as f64;
        100.0 * self.vcpus.iter().map(of).sum::<Nanos>() as f64 / all.max(1.0)
    }

    fn exits(&self, cause: &str) -> f64 {
        let count: u64 = self.exits.iter().filter(|(name, _)| *name == cause).map(|(_, count)| count).sum();
        count as f64 * 1e9 / self.time.max(1) as f64
    }
}

impl Report {
    /// Adds the report of a guest's kernel: its workloads' metrics under their names, those of its scheduler and the
    /// guest's own behind the name of the guest, its tasks behind that name, too.
    pub fn add_guest(&mut self, name: &str, guest: Report, totals: &GuestTotals) {
        let named = |metric: String| match metric.starts_with("sched.") {
            true => format!("{name}.{metric}"),
            false => metric,
        };
        self.metrics.extend(guest.metrics.into_iter().map(|(metric, value)| (named(metric), value)));
        self.series.extend(guest.series.into_iter().map(|(metric, series)| (named(metric), series)));
        self.metrics.extend(GUEST.iter().map(|metric| (format!("{name}.{}", metric.name), Some((metric.of)(totals)))));
        for (number, vcpu) in totals.vcpus.iter().enumerate() {
            let steal = 100.0 * vcpu.1 as f64 / totals.time.max(1) as f64;
            self.metrics.push((format!("{name}.vcpu{number}.steal"), Some(steal)));
        }
        self.tasks.extend(guest.tasks.into_iter().map(|mut task| {
            task.name = format!("{name}:{}", task.name);
            task
        }));
        self.tasks_total += guest.tasks_total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_a_guest() {
        let totals = GuestTotals {
            time: 2_000_000_000,
            vcpus: vec![(1_000_000_000, 500_000_000, 500_000_000), (0, 0, 2_000_000_000)],
            exits: &[("halt", 10), ("host", 4)],
            wakeups: GuestWakeups { idle: 7, halted: 5, preempted: 1 },
            holders_preempted: 3,
        };
        let mut report = Report { metrics: vec![("a.b".into(), Some(1.0))], ..Report::default() };
        let inner =
            Report { metrics: vec![("w.x".into(), None), ("sched.forks".into(), Some(3.0))], ..Report::default() };
        report.add_guest("vm", inner, &totals);
        for (name, value) in [
            ("a.b", 1.0),
            ("vm.sched.forks", 3.0),
            ("vm.run", 25.0),
            ("vm.steal", 12.5),
            ("vm.halted", 62.5),
            ("vm.exits.halt", 5.0),
            ("vm.exits.host", 2.0),
            ("vm.exits.ipi", 0.0),
            ("vm.wakeups_to_preempted", 1.0),
            ("vm.lock_holder_preemptions", 3.0),
            ("vm.vcpu0.steal", 25.0),
        ] {
            assert_eq!(report.metric(name), Some(value), "{name}");
        }
    }
}
