//! CPUs that go offline and come back (`rq_online_fair` and `rq_offline_fair`, kernel/sched/fair.c, which
//! `rq_attach_root` calls for every CPU whose scheduling domains are built anew): slices follow their number, and from
//! 6.8 on the sums of groups begin anew. Left out: throttled groups, which the scenario refuses together with hotplug.
//!
//! The defaults are multiplied by a factor that grows with that number, of which at most 8 count
//! (`get_update_sysctl_factor`). Up to 6.9 a work item builds the domains when the CPU is offline already; from 6.10 on
//! `sched_cpu_deactivate` does, while the CPU is still online, so that the slices follow only at the next change.
//! Values that were written to debugfs are lost, because only the defaults are multiplied. Up to 5.12 they are sysctls,
//! and a write sets the defaults too.

use std::sync::Arc;

use schedlab_model::{CpuMask, Nanos};

use super::{Fair, GroupId};
use crate::config::KernelConfig;

impl Fair {
    /// `rq_offline_fair` and `rq_online_fair` of all CPUs, of which these are active now; `leaves`: one of them became
    /// inactive.
    pub(crate) fn rq_online(&mut self, active: &CpuMask, leaves: bool, now: Nanos) {
        let mut config = KernelConfig::clone(&self.config);
        config.domains_rebuilt(active.count(), leaves);
        self.config = Arc::new(config);
        self.queues.config = Arc::clone(&self.config);
        self.queues.arena.active = *active;
        if self.config.rules.pelt.offline_leaves_groups {
            self.queues.arena.clear_tg_offline_cfs_rqs(now);
        }
    }

    /// The number of CPUs in the group's cpuset.
    pub fn set_cpuset_num_cpus(&mut self, group: GroupId, cpus: usize) {
        self.queues.arena.groups[group.index()].cpus = Some(cpus);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schedlab_model::{CpuId, Topology, MSEC};

    use super::GroupId;
    use crate::{KernelConfig, Sched, TaskAttr, Version, WakeKind};

    /// The factor of the slices on eight CPUs, after each change of a CPU.
    fn factors(row: &str, changes: &[(u32, bool)], written: bool) -> Vec<u64> {
        let mut config = KernelConfig::new(Version::find(row).unwrap(), 8, 250);
        let slice = |config: &KernelConfig| config.knobs.base_slice.max(config.knobs.min_granularity);
        let one = slice(&KernelConfig::new(config.version, 1, 250));
        if written {
            let name = if config.is_eevdf() { "base_slice_ns" } else { "min_granularity_ns" };
            config.set_knob(name, 9 * one).unwrap();
        }
        let mut sched = Sched::new(config, Arc::new(Topology::regular(2, 1, 2, 2, true).unwrap()));
        let mut factors = vec![slice(&sched.fair.config) / one];
        for (at, (cpu, active)) in changes.iter().enumerate() {
            sched.set_cpu_active(CpuId(*cpu), *active, 1_000_000 * (at as u64 + 1));
            assert!(Arc::ptr_eq(&sched.fair.config, &sched.fair.queues.config), "one configuration");
            factors.push(slice(&sched.fair.config) / one);
        }
        factors
    }

    #[test]
    fn slices_follow_the_cpus_online() {
        // CPUs 7 to 4 go offline and come back. 5.10.262, 6.1.192, 6.12.118, 7.2.13 and 7.3.4 had these slices in QEMU.
        let away = [7, 6, 5, 4].map(|cpu| (cpu, false));
        let back = [4, 5, 6, 7].map(|cpu| (cpu, true));
        let changes = [away, back].concat();
        for row in ["5.2", "5.10.262", "6.1", "6.6", "6.8"] {
            assert_eq!(factors(row, &changes, false), [4, 3, 3, 3, 3, 3, 3, 3, 4], "{row}");
        }
        // A CPU that leaves is still online when the domains are built.
        for row in ["6.12.0", "6.12.107", "7.2", "7.3"] {
            assert_eq!(factors(row, &changes, false), [4, 4, 3, 3, 3, 3, 3, 3, 4], "{row}");
        }
    }

    /// A group with a task on each of CPUs 6 and 7 of eight.
    fn with_group(row: &str) -> (Sched, GroupId) {
        let config = KernelConfig::new(Version::find(row).unwrap(), 8, 250);
        let mut sched = Sched::new(config, Arc::new(Topology::regular(2, 1, 2, 2, true).unwrap()));
        let group = sched.fair.sched_create_group(GroupId::ROOT);
        for cpu in [CpuId(6), CpuId(7)] {
            let task = sched.add_task(&TaskAttr { cpu, group, ..TaskAttr::default() });
            sched.activate(task, cpu, WakeKind::Fork, 10 * MSEC);
            sched.pick_next_task(cpu, 10 * MSEC);
            sched.tick(cpu, 40 * MSEC);
        }
        (sched, group)
    }

    #[test]
    fn a_cpu_that_is_offline_contributes_nothing_to_groups() {
        for (row, follows) in [("5.10", false), ("6.1", false), ("6.8", true), ("6.12.107", true), ("7.3", true)] {
            let (mut sched, group) = with_group(row);
            let load = |sched: &Sched| sched.fair.group(group).load.load_avg;
            let before = load(&sched);
            assert!(before > 0, "{row}");
            sched.set_cpu_active(CpuId(7), false, 41 * MSEC);
            assert_eq!(load(&sched), if follows { 0 } else { before }, "{row}");
            let mut reports = |cpu, at| {
                sched.tick(CpuId(cpu), at);
                load(&sched)
            };
            if follows {
                // With CPU 7 the sum would have grown to about 1.4 times the one before.
                assert_eq!(reports(7, 60 * MSEC), 0, "{row}");
                let own = reports(6, 60 * MSEC);
                assert!(own > 0 && own < before + before / 4, "{row}: {own} of {before}");
            }
        }
    }

    #[test]
    fn the_shares_of_a_group_grow_up_to_its_number_of_cpus() {
        let (mut sched, group) = with_group("7.3");
        let shares = |sched: &mut Sched| {
            let signals = sched.fair.config.rules.pelt;
            let arena = &mut sched.fair.queues.arena;
            arena.groups[group.index()].load.runnable_avg = 100 << 10;
            let (shares, rq) = (arena.groups[group.index()].shares, arena.group_queue(group, CpuId(6)));
            // The load of the CPU is all of the load that the group has.
            arena.groups[group.index()].load.load_avg = arena.rqs[rq].pelt.tg_load_avg_contrib as i64;
            arena.calc_group_shares(&signals, rq) / shares
        };
        assert_eq!(shares(&mut sched), 8);
        sched.set_cpu_active(CpuId(7), false, 41 * MSEC);
        assert_eq!(shares(&mut sched), 7, "num_online_cpus");
        sched.fair.set_cpuset_num_cpus(group, 2);
        assert_eq!(shares(&mut sched), 2, "cpuset_num_cpus");
    }

    #[test]
    fn a_slice_written_to_debugfs_is_lost_and_a_sysctl_scaled() {
        let away_and_back = [(7, false), (7, true)];
        // 5.10.262, 6.1.192, 6.12.118 and 7.3.4 in QEMU; 5.10.262 had 6.75 times the default of one CPU.
        for (row, found) in [("5.10.262", [9, 6, 9]), ("6.1", [9, 3, 4]), ("6.12.107", [9, 4, 4]), ("7.3", [9, 4, 4])] {
            assert_eq!(factors(row, &away_and_back, true), found, "{row}");
        }
    }
}
