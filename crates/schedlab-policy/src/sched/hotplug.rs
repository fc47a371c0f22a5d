//! CPUs that become inactive and active again (`sched_cpu_deactivate`, `sched_cpu_activate`, kernel/sched/core.c).
//!
//! A CPU that is not active has no scheduling domain and is selected for no task: `select_fallback_rq` takes another
//! one. The domains of the others are built anew (`partition_sched_domains`), so every domain begins as `sd_init`
//! leaves it. What is queued on the CPU is moved by the caller, as `balance_push` does. Not modelled: deadline tasks,
//! throttled groups, CPUs of different capacity, SWQUEUE.

use std::sync::Arc;

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};

use super::{Core, Sched};
use crate::class::ClassList;
use crate::core::domains::Domains;
use crate::core::idle_map::IdleMap;

impl<L: ClassList> Sched<L> {
    /// `set_cpu_active`, and the domains of the active CPUs.
    pub fn set_cpu_active(&mut self, cpu: CpuId, active: bool, now: Nanos) {
        self.core.leave_nohz(cpu);
        self.core.set_cpu_active(cpu, active, now);
        self.every_class().domains_rebuilt(!active, now);
        if active && self.core.rqs[cpu.index()].is_idle() {
            self.core.join_nohz(cpu);
        }
    }

    /// `is_per_cpu_kthread`: such a task is parked while its CPU is offline.
    #[must_use]
    pub fn is_per_cpu_kthread(&self, task: TaskId) -> bool {
        self.core.is_per_cpu_kthread(task)
    }

    /// Whether the task is a thread of the kernel (PF_KTHREAD).
    #[must_use]
    pub fn is_kthread(&self, task: TaskId) -> bool {
        self.core.attr(task).kthread
    }

    /// The CPUs on which tasks may be placed (`cpu_active_mask`).
    #[must_use]
    pub fn active_cpus(&self) -> &CpuMask {
        self.core.topology.all()
    }
}

impl Core {
    /// The domains of the active CPUs, now that this one is active or not.
    pub(super) fn set_cpu_active(&mut self, cpu: CpuId, active: bool, now: Nanos) {
        let mut cpus = *self.topology.all();
        if active {
            cpus.set(cpu);
        } else {
            cpus.clear(cpu);
        }
        self.rebuild_sched_domains(&cpus, now);
    }

    /// `partition_sched_domains` with these CPUs.
    fn rebuild_sched_domains(&mut self, active: &CpuMask, now: Nanos) {
        self.topology = Arc::new(self.possible.with_active(active));
        self.domains = Domains::rebuilt(&self.topology, self.rules.imbalance_pct, self.jiffies(now));
        self.idle = IdleMap::rebuilt(&self.topology);
        let topology = Arc::clone(&self.topology);
        for cpu in topology.cpus() {
            self.refresh_idle(cpu);
            let rq = &self.rqs[cpu.index()];
            if rq.nr_running >= 2 {
                self.domains.count_overloaded(cpu, true);
            }
            if !self.rqs[cpu.index()].nohz_tick_stopped {
                let llc = self.idle.llc_of(cpu);
                self.idle.llc_mut(llc).nr_busy += 1;
            }
        }
        // The flag is one of the root domain, which is a new one.
        self.domains.set_overload(false);
    }

    /// `nohz_balance_exit_idle` of a CPU that is about to leave: nobody balances on its behalf.
    fn leave_nohz(&mut self, cpu: CpuId) {
        let rq = &mut self.rqs[cpu.index()];
        if std::mem::replace(&mut rq.nohz_tick_stopped, false) {
            self.nohz.idle_cpus.clear(cpu);
            self.nohz.count -= 1;
        }
        rq.nohz_kicked = false;
    }

    /// `nohz_balance_enter_idle` of a CPU that has come back and is idle.
    fn join_nohz(&mut self, cpu: CpuId) {
        self.rqs[cpu.index()].nohz_tick_stopped = true;
        self.nohz.idle_cpus.set(cpu);
        self.nohz.count += 1;
        let llc = self.idle.llc_of(cpu);
        self.idle.llc_mut(llc).nr_busy -= 1;
    }
}

#[cfg(test)]
mod tests {
    use schedlab_model::{Topology, MSEC};

    use super::*;
    use crate::{KernelConfig, TaskAttr, Version, WakeKind};

    #[test]
    fn an_affinity_without_an_active_cpu_is_lost_for_good() {
        const WAKE: WakeKind = WakeKind::Wakeup { sync: false };
        for (row, affinity, away, while_away, restricted) in [
            ("5.10.262", "3", "3", 0, false),
            ("7.2.13", "3", "3", 0, false),
            // Its node comes first, then any CPU that it may use.
            ("6.12.107", "1-3", "3", 2, true),
            ("6.12.107", "1,3", "2-3", 1, true),
        ] {
            let config = KernelConfig::new(Version::find(row).unwrap(), 4, 250);
            let mut sched = Sched::new(config, Arc::new(Topology::regular(2, 1, 2, 1, true).unwrap()));
            let (cpu, affinity) = (CpuId(3), CpuMask::from_list(affinity));
            let task = sched.add_task(&TaskAttr { cpu, affinity, ..TaskAttr::default() });
            for cpu in CpuMask::from_list(away).unwrap().iter() {
                sched.set_cpu_active(cpu, false, MSEC);
            }
            let chosen = sched.select_task_rq(task, CpuId(0), WAKE, MSEC).cpu;
            assert_eq!((chosen.0, sched.is_restricted(task)), (while_away, restricted), "{row} {away}");
            sched.set_cpu_active(cpu, true, 2 * MSEC);
            assert_eq!((sched.allows(task, cpu), sched.is_restricted(task)), (true, restricted), "{row} {away}");
        }
    }
}
