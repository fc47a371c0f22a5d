//! Every key of a scenario or machine file, one line each and one file per kind of table. The reader accepts exactly
//! the keys that docs/scenario.md documents.

mod arm;
mod cgroup;
mod costs;
mod distribution;
mod guest;
mod machine;
mod metric;
mod scenario;
mod step;
mod variant;
mod workload;

pub use arm::{ARM, ARM_HOST, ARM_VM};
pub use cgroup::{CGROUP, CGROUP_EVENT, VARIANT_CGROUP};
pub use costs::{COST, COSTS};
pub use distribution::DISTRIBUTION;
pub use guest::{GUEST, GUEST_EVENT, VARIANT_GUEST};
pub use machine::{
    CACHE, CACHES, CPU_TYPE, FREQUENCY, FRONT_END, IDLE, MACHINE, MEMORY, PERF_STATE, PHYSICS, SECTIONS_OF_CALL,
    TOPOLOGY,
};
pub use metric::METRIC;
pub use scenario::{HOTPLUG, SCENARIO};
pub use step::STEP;
pub use variant::{VARIANT, VARIANT_TASK};
pub use workload::{OBJECT, REMOTE, TASK, TASK_MEMORY, WORKLOAD};

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The form of its value.
    pub form: &'static str,
    /// The default; empty if the key is required or has no default.
    pub default: &'static str,
    /// The meaning.
    pub help: &'static str,
}

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// The name in messages and on the page.
    pub name: &'static str,
    /// The keys.
    pub keys: &'static [Key],
}

impl Section {
    /// The names of its keys.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }
}

pub(crate) const fn key(name: &'static str, form: &'static str, default: &'static str, help: &'static str) -> Key {
    Key { name, form, default, help }
}

/// All sections, in the order of the page.
pub const SECTIONS: &[&Section] = &[
    &SCENARIO,
    &WORKLOAD,
    &TASK,
    &REMOTE,
    &OBJECT,
    &STEP,
    &CGROUP,
    &CGROUP_EVENT,
    &GUEST,
    &HOTPLUG,
    &VARIANT,
    &VARIANT_TASK,
    &VARIANT_CGROUP,
    &VARIANT_GUEST,
    &GUEST_EVENT,
    &METRIC,
    &ARM,
    &ARM_HOST,
    &ARM_VM,
    &MACHINE,
    &TOPOLOGY,
    &COSTS,
    &COST,
    &IDLE,
    &CPU_TYPE,
    &PERF_STATE,
    &MEMORY,
    &FREQUENCY,
    &CACHES,
    &CACHE,
    &FRONT_END,
    &TASK_MEMORY,
    &SECTIONS_OF_CALL,
    &PHYSICS,
];
