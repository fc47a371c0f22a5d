//! The kernel's periodic threads, on a machine that has [`schedlab_spec::Mechanism::Housekeeping`].

use std::borrow::Cow;
use std::sync::Arc;

use schedlab_model::Distance;
use schedlab_policy::Release;
use schedlab_spec::RunSpec;
use schedlab_workload::housekeeping::Housekeeping;

/// Proactive compaction: commit facdaa917c4d.
const COMPACTS: Option<Release> = Release::parse("5.9");
/// `flush_memcg_stats_dwork`: commit aa48e47e3906.
const FLUSHES_MEMCG: Option<Release> = Release::parse("5.15");

/// The run with the kernel's threads behind its workloads.
pub(super) fn with_housekeeping(spec: &RunSpec) -> Cow<'_, RunSpec> {
    if !spec.machine.physics.housekeeping {
        return Cow::Borrowed(spec);
    }
    let since = |change: Option<Release>| change.is_some_and(|change| spec.kernel.version.release >= change);
    let housekeeping = Housekeeping {
        topology: &spec.machine.topology,
        // One line that the CPU itself wrote last: the differences of its counters.
        shepherd_cpu: spec.machine.costs.line_transfer[Distance::Node as usize].typical(),
        compacts: since(COMPACTS),
        flushes_memcg: since(FLUSHES_MEMCG),
    };
    let mut workloads = spec.workloads.to_vec();
    workloads.push(housekeeping.workload());
    Cow::Owned(RunSpec { workloads: Arc::new(workloads), ..spec.clone() })
}
