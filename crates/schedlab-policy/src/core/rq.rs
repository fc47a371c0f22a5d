//! The state of one CPU apart from the queues of its classes (`struct rq`).

use super::class_id::{ClassId, MAX_CLASSES};
use super::idle_map::Availability;
use crate::jiffies::{Jiffies, UPTIME};
use crate::pelt::sched_avg::SchedAvg;
use crate::pelt::series::CAPACITY_SCALE;
use crate::version::placement::{PlacementRules, SchedIdleCpu};
use schedlab_model::{CpuId, Nanos, TaskId};

/// `avg_idle` of a CPU at boot; also twice the default migration cost, its ceiling.
const AVG_IDLE_AT_BOOT: Nanos = 1_000_000;

/// Per-CPU state.
#[derive(Clone, Debug)]
pub(crate) struct Rq {
    /// The running task; `None`: the idle task, or none between two picks.
    pub curr: Option<TaskId>,
    /// The task that the CPU executes (`p->on_cpu`): `curr`, or between a pick and the switch the previous task.
    pub on_cpu: Option<TaskId>,
    /// The idle task is current.
    pub idle: bool,
    /// The value of the clock when RQCF_REQ_SKIP was set; `None`: it is not set.
    pub skip: Option<Nanos>,
    /// The wakelist: tasks that other CPUs have woken and that this CPU enqueues, with the waker's sync hint.
    pub wakelist: Vec<(TaskId, bool)>,
    /// The wakelist is not empty, or a task taken from it is not yet enqueued (`ttwu_pending`).
    pub ttwu_pending: bool,
    /// The vCPU under this CPU of a guest reads as preempted (`vcpu_is_preempted`); never on bare metal.
    pub vcpu_preempted: bool,
    /// Runnable tasks, delayed ones included.
    pub nr_running: u32,
    /// The same per class.
    pub by_class: [u32; MAX_CLASSES],
    /// SCHED_IDLE tasks among them (`cfs.h_nr_idle`).
    pub sched_idle: u32,
    /// Utilisation by the real-time class (`avg_rt`).
    pub avg_rt: SchedAvg,
    /// A real-time task is running.
    pub rt_runs: bool,
    /// Utilisation by interrupts and the hypervisor (`avg_irq`).
    pub avg_irq: SchedAvg,
    /// How far `rq->clock_task` lags behind `rq->clock`.
    pub lost: Nanos,
    /// Since when the hypervisor has been taking time from the CPU; the end of time if it has not.
    pub lost_from: Nanos,
    /// When the CPU was last about to become idle, in ns since boot; 0: the idle period has been accounted.
    pub idle_stamp: Nanos,
    /// The average length of its idle periods, at most twice `max_idle_balance_cost`.
    pub avg_idle: Nanos,
    /// The same for SIS_PROP, which decays each jiffy (5.14 to 6.6).
    pub wake_avg_idle: Nanos,
    /// When `wake_avg_idle` last decayed.
    pub wake_stamp: Jiffies,
    /// The longest duration of newidle balancing on this CPU.
    pub max_idle_balance_cost: Nanos,
    /// The capacity left for the fair class, as last computed (`cpu_capacity`).
    pub cpu_capacity: u64,
    /// When the next domain of this CPU is due.
    pub next_balance: Jiffies,
    /// Its tick is stopped, according to nohz balancing.
    pub nohz_tick_stopped: bool,
    /// A nohz balance kick is on its way to it.
    pub nohz_kicked: bool,
    /// Its stopper has been asked to push a task there (`active_balance`, `push_cpu`).
    pub push_cpu: Option<CpuId>,
    /// Only a task that prefers the cache of that CPU (`LBF_ACTIVE_LB_LLC`).
    pub push_llc: bool,
}

impl Rq {
    /// A CPU that has been idle for a long time, as before the run.
    pub fn new(migration_cost: Nanos) -> Self {
        Rq {
            curr: None,
            on_cpu: None,
            idle: true,
            skip: None,
            wakelist: Vec::new(),
            ttwu_pending: false,
            vcpu_preempted: false,
            nr_running: 0,
            by_class: [0; MAX_CLASSES],
            sched_idle: 0,
            avg_rt: SchedAvg::default(),
            rt_runs: false,
            avg_irq: SchedAvg::default(),
            lost: 0,
            lost_from: Nanos::MAX,
            idle_stamp: 1,
            avg_idle: AVG_IDLE_AT_BOOT.max(2 * migration_cost),
            wake_avg_idle: AVG_IDLE_AT_BOOT / 2,
            wake_stamp: 0,
            max_idle_balance_cost: migration_cost,
            cpu_capacity: CAPACITY_SCALE,
            next_balance: 0,
            nohz_tick_stopped: true,
            nohz_kicked: false,
            push_cpu: None,
            push_llc: false,
        }
    }

    /// Whether `idle_cpu` holds: the idle task runs, nothing is queued, nothing is on the wakelist.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.idle && self.nr_running == 0 && !self.ttwu_pending
    }

    /// `sched_idle_rq`: it has SCHED_IDLE tasks and no others.
    #[inline]
    pub fn sched_idle_rq(&self) -> bool {
        self.nr_running > 0 && self.sched_idle == self.nr_running
    }

    /// The state as the search for an idle CPU sees it.
    #[inline]
    pub fn availability(&self, rules: &PlacementRules) -> Availability {
        if self.nr_running == 0 {
            return if self.is_idle() && !self.vcpu_preempted { Availability::Idle } else { Availability::Busy };
        }
        if self.sched_idle_rq() && rules.sched_idle_cpu != SchedIdleCpu::Unknown {
            return Availability::SchedIdle;
        }
        Availability::Busy
    }

    /// Sets the number of runnable tasks of a class.
    #[inline]
    pub fn set_nr_running(&mut self, class: ClassId, nr_running: u32) {
        let before = std::mem::replace(&mut self.by_class[class.index()], nr_running);
        self.nr_running = self.nr_running + nr_running - before;
    }

    /// `ttwu_do_activate`'s bookkeeping: an idle period has ended with a wakeup.
    pub fn account_idle_spell(&mut self, now: Nanos, jiffies: Jiffies) {
        if self.idle_stamp == 0 {
            return;
        }
        let spell = (UPTIME + now).saturating_sub(self.idle_stamp) as i64;
        // update_avg: an arithmetic shift of the signed difference, which rounds towards minus infinity.
        let avg = self.avg_idle as i64 + ((spell - self.avg_idle as i64) >> 3);
        self.avg_idle = (avg.max(0) as Nanos).min(2 * self.max_idle_balance_cost);
        self.wake_stamp = jiffies;
        self.wake_avg_idle = self.avg_idle / 2;
        self.idle_stamp = 0;
    }

    /// The CPU is about to become idle.
    pub fn stamp_idle(&mut self, now: Nanos) {
        self.idle_stamp = UPTIME + now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avg_idle_follows_by_an_eighth_and_is_capped() {
        let mut rq = Rq::new(500_000);
        for (stamp, now, expected) in
            [(1_000, 1_000, 875_000), (2_000, 802_000, 865_625), (5_000, 900_000_000, 1_000_000)]
        {
            rq.idle_stamp = UPTIME + stamp;
            rq.account_idle_spell(now, 7);
            assert_eq!(rq.avg_idle, expected);
            assert_eq!((rq.idle_stamp, rq.wake_avg_idle, rq.wake_stamp), (0, expected / 2, 7));
        }
        rq.account_idle_spell(1_000_000_000, 8);
        assert_eq!(rq.wake_stamp, 7, "no spell, no sample");
    }
}
