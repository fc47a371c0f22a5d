//! The costs of NUMA balancing and of memory on another node, composed of those of the machine, each the typical one.
//!
//! - a hinting fault: a fault that maps a page which is in memory (`fault`);
//! - a page that moves: reading it on the other node and writing it on the own one
//!   ([`Memory::page`](schedlab_spec::Memory::page)), and unmapping and freeing the old one (`zap-page`, `unmap-page`);
//!   other CPUs' TLBs hold no entry of an inaccessible page (`ptep_clear_flush`). Estimate; range: to 5 times, for
//!   locks, the isolation of the page and the walk to its mappings;
//! - the scan: each entry of the page tables as a cleared one (`zap-page`, or `copy-page-table` on a machine whose
//!   `unmap-page` contains it);
//! - the use of a page on another node: [`Memory::remote_page`](schedlab_spec::Memory::remote_page).

use schedlab_model::Nanos;
use schedlab_policy::NumaAccess;
use schedlab_spec::RunSpec;

/// In ns.
#[derive(Clone, Copy, Debug)]
pub struct NumaCosts {
    /// A hinting fault.
    fault: Nanos,
    /// Moving a page of 4 KiB.
    migration: Nanos,
    /// Scanning an entry of the page tables.
    pub entry: Nanos,
    /// How much longer the use of 4 KiB on another node takes.
    remote_page: Nanos,
}

impl NumaCosts {
    /// Those of the machine.
    pub fn new(spec: &RunSpec) -> NumaCosts {
        let costs = &spec.machine.costs;
        let zap = costs.zap_page.typical();
        let (page, remote_page) = spec.machine.memory.map_or((0, 0), |memory| (memory.page(), memory.remote_page()));
        NumaCosts {
            fault: costs.fault.typical(),
            migration: 2 * page + remote_page + zap + costs.unmap_page.typical(),
            entry: if zap > 0 { zap } else { costs.copy_page_table.typical() },
            remote_page,
        }
    }

    /// What the faults and migrations took.
    pub fn of(&self, access: &NumaAccess) -> Nanos {
        u64::from(access.faults) * self.fault + access.migrated * self.migration
    }

    /// How much longer the task's work took because pages were on another node.
    pub fn remote(&self, access: &NumaAccess) -> Nanos {
        access.remote * self.remote_page
    }
}
