//! Slices follow the number of CPUs online (`rq_online_fair` and `rq_offline_fair`, kernel/sched/fair.c, which
//! `rq_attach_root` calls for every CPU whose scheduling domains are built anew).
//!
//! The defaults are multiplied by a factor that grows with that number, of which at most 8 count
//! (`get_update_sysctl_factor`). Up to 6.9 a work item builds the domains when the CPU is offline already; from 6.10 on
//! `sched_cpu_deactivate` does, while the CPU is still online, so that the slices follow only at the next change.
//! Values that were written to debugfs are lost, because only the defaults are multiplied. Up to 5.12 they are sysctls,
//! and a write sets the defaults too.

use std::sync::Arc;

use super::Fair;
use crate::config::KernelConfig;

impl Fair {
    /// `rq_online_fair` of all CPUs, `active` of which are active now; `leaves`: one of them became inactive.
    pub(crate) fn rq_online(&mut self, active: usize, leaves: bool) {
        let mut config = KernelConfig::clone(&self.config);
        config.domains_rebuilt(active, leaves);
        self.config = Arc::new(config);
        self.queues.config = Arc::clone(&self.config);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schedlab_model::{CpuId, Topology};

    use crate::{KernelConfig, Sched, Version};

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

    #[test]
    fn a_slice_written_to_debugfs_is_lost_and_a_sysctl_scaled() {
        let away_and_back = [(7, false), (7, true)];
        // 5.10.262, 6.1.192, 6.12.118 and 7.3.4 in QEMU; 5.10.262 had 6.75 times the default of one CPU.
        for (row, found) in [("5.10.262", [9, 6, 9]), ("6.1", [9, 3, 4]), ("6.12.107", [9, 4, 4]), ("7.3", [9, 4, 4])] {
            assert_eq!(factors(row, &away_and_back, true), found, "{row}");
        }
    }
}
