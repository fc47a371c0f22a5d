//! Where the parts of each workload are in the tables of all workloads.

/// Where a workload's programs, objects and processes begin in the flat tables.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bases {
    pub program: u32,
    pub object: u32,
    pub process: u32,
}
