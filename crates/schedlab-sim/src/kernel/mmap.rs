//! The `mmap_lock` of each process that has several threads. A process with one thread never waits for its own.

use std::collections::BTreeMap;

use schedlab_policy::MmapLockRules;

use super::rwsem::RwSem;
use crate::machine::Changed;

/// The locks of a kernel's processes.
#[derive(Debug)]
pub struct MmapLocks {
    pub rules: MmapLockRules,
    /// By process, while it has more than one thread.
    processes: BTreeMap<u32, Process>,
}

/// A process.
#[derive(Default, Debug)]
pub struct Process {
    /// Its threads (`mm_users`).
    threads: u32,
    pub lock: RwSem,
    /// `mmap_lock.count`.
    pub count: Changed,
    /// The writer that holds the lock copies the address space, so that it holds the locks of all mappings as well.
    pub forks: bool,
}

impl MmapLocks {
    /// None yet, where tasks wait for them.
    pub fn new(on: bool, rules: MmapLockRules) -> Option<Box<MmapLocks>> {
        on.then(|| Box::new(MmapLocks { rules, processes: BTreeMap::new() }))
    }

    /// A task of a workload begins in this process.
    pub fn starts(&mut self, process: u32) {
        self.processes.entry(process).or_default().threads += 1;
    }

    /// A task of this process has created a thread.
    pub fn joins(&mut self, process: u32) {
        let found = self.processes.entry(process).or_insert_with(|| Process { threads: 1, ..Process::default() });
        found.threads += 1;
    }

    /// A task no longer uses this address space.
    pub fn leaves(&mut self, process: u32) {
        let Some(found) = self.processes.get_mut(&process) else { return };
        found.threads = found.threads.saturating_sub(1);
        if found.threads == 0 {
            self.processes.remove(&process);
        }
    }

    /// The process, if another thread of it could hold the lock.
    pub fn shared(&mut self, process: u32) -> Option<&mut Process> {
        self.processes.get_mut(&process).filter(|found| found.threads > 1 || !found.lock.is_idle())
    }
}
