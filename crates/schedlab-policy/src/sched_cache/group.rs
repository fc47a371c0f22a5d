//! Which tasks share an address space, and the state of each space and task (`struct sched_cache_group` and the fields
//! of `struct task_struct`).
//!
//! Address spaces are numbered by the caller ([`Fair::set_mm`](crate::fair::Fair::set_mm)). A task without one, as the
//! kernel's own, is in no group. The thread group of a task is its address space, except that of a child of vfork,
//! which has one of its own.

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos, TaskId};

use super::epoch::{CacheTime, CpuEpoch};
use super::{LlcId, SchedCache};
use crate::jiffies::Jiffies;

/// An address space.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Its number.
    mm: u64,
    /// Its tasks.
    users: u32,
    /// Those that are threads of one thread group.
    pub nr_threads: u64,
    /// Its run time by CPU, in the order of CPUs; only CPUs on which it has run.
    times: Vec<(CpuId, CacheTime)>,
    /// The epoch of its last tick.
    pub epoch: u64,
    /// The CPU in whose cache it prefers to run.
    pub cpu: Option<CpuId>,
    /// When it is examined next.
    pub next_scan: Jiffies,
    /// The average of its running threads.
    pub nr_running_avg: u64,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CacheTask {
    /// Index of its group (`sched_cache_grp`).
    pub group: Option<u32>,
    /// Whether it is the child of a vfork.
    alone: bool,
    pub preferred_llc: Option<LlcId>,
    /// `cache_work` is pending.
    pub work: bool,
    /// What a trace showed last: the caches that its process and itself prefer.
    pub shown: (Option<LlcId>, Option<LlcId>),
}

/// Every group and task.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
    /// Groups without a task, which are used again.
    free: Vec<u32>,
    by_mm: BTreeMap<u64, u32>,
    tasks: Vec<CacheTask>,
}

impl Group {
    /// `pcpu_sched` of a CPU where it runs.
    pub fn time_on(&mut self, cpu: CpuId, epoch: &CpuEpoch) -> &mut CacheTime {
        let at = self.times.binary_search_by_key(&cpu, |(cpu, _)| *cpu).unwrap_or_else(|at| {
            self.times.insert(at, (cpu, CacheTime { runtime: 0, epoch: epoch.epoch }));
            at
        });
        &mut self.times[at].1
    }

    /// The share of the CPU that it has had (`fraction_mm_sched`).
    pub fn fraction_on(&mut self, cpu: CpuId, epoch: &CpuEpoch) -> u64 {
        let Ok(at) = self.times.binary_search_by_key(&cpu, |(cpu, _)| *cpu) else { return 0 };
        let time = &mut self.times[at].1;
        time.follow(epoch);
        time.fraction_mm_sched(epoch)
    }
}

impl Groups {
    /// The state of the task.
    #[inline]
    pub fn task(&self, task: TaskId) -> CacheTask {
        self.tasks.get(task.index()).copied().unwrap_or_default()
    }

    pub fn task_mut(&mut self, task: TaskId) -> &mut CacheTask {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, CacheTask::default());
        }
        &mut self.tasks[task.index()]
    }

    pub fn group(&self, group: u32) -> &Group {
        &self.groups[group as usize]
    }

    pub fn group_mut(&mut self, group: u32) -> &mut Group {
        &mut self.groups[group as usize]
    }

    /// `get_nr_threads`.
    pub fn get_nr_threads(&self, task: CacheTask) -> u64 {
        match task.group {
            Some(group) if !task.alone => self.group(group).nr_threads,
            _ => 1,
        }
    }

    /// `sched_cache_group_get`, with the group `new` if no task uses the address space yet.
    fn sched_cache_group_get(&mut self, task: TaskId, mm: u64, alone: bool, new: Group) {
        let group = match self.by_mm.get(&mm) {
            Some(group) => *group,
            None => {
                let group = self.free.pop().unwrap_or(self.groups.len() as u32);
                match self.groups.get_mut(group as usize) {
                    Some(place) => *place = new,
                    None => self.groups.push(new),
                }
                self.by_mm.insert(mm, group);
                group
            }
        };
        let state = &mut self.groups[group as usize];
        state.users += 1;
        state.nr_threads += u64::from(!alone);
        let task = self.task_mut(task);
        (task.group, task.alone) = (Some(group), alone);
    }

    /// `sched_cache_group_put`.
    fn sched_cache_group_put(&mut self, task: TaskId) {
        let CacheTask { group, alone, .. } = self.task(task);
        let Some(group) = group else { return };
        self.task_mut(task).group = None;
        let state = &mut self.groups[group as usize];
        state.users -= 1;
        // What a trace shows may be less than what it has shown of the threads so far.
        state.nr_threads = state.nr_threads.saturating_sub(u64::from(!alone));
        if state.users == 0 {
            self.by_mm.remove(&state.mm);
            self.free.push(group);
        }
    }
}

impl SchedCache {
    /// `init_sched_mm`: a new task, which prefers no cache and has no address space yet.
    pub fn init_sched_mm(&mut self, task: TaskId) {
        self.groups.sched_cache_group_put(task);
        *self.groups.task_mut(task) = CacheTask::default();
    }

    /// The task uses this address space from now on (`sched_cache_fork`, `sched_cache_exec_mmap`).
    pub fn set_mm(&mut self, task: TaskId, mm: u64, vforked: bool, now: Nanos) {
        self.groups.sched_cache_group_put(task);
        // mm_init_sched leaves the epoch that it read last, that of the last CPU.
        let epoch = self.cpus.last().map_or(0, |cpu| cpu.epoch);
        let new = Group { mm, epoch, next_scan: self.jiffies(now), ..Group::default() };
        self.groups.sched_cache_group_get(task, mm, vforked, new);
    }

    /// Whether the task was last known in this address space.
    pub(super) fn is_in(&self, task: TaskId, mm: u64) -> bool {
        self.groups.task(task).group.is_some_and(|group| self.groups.group(group).mm == mm)
    }

    /// `sched_cache_exit_mm`. What the exiting task prefers still counts while it is queued.
    pub fn sched_cache_exit_mm(&mut self, task: TaskId) {
        self.groups.sched_cache_group_put(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted_by_address_space() {
        let mut groups = Groups::default();
        let tasks = [0, 1, 2, 3].map(TaskId);
        for (task, mm, vforked) in [(0, 7, false), (1, 7, false), (2, 7, true), (3, 9, false)] {
            groups.sched_cache_group_get(tasks[task], mm, vforked, Group { mm, ..Group::default() });
        }
        let counts = |groups: &Groups| tasks.map(|task| groups.get_nr_threads(groups.task(task)));
        assert_eq!(counts(&groups), [2, 2, 1, 1]);
        groups.sched_cache_group_put(tasks[1]);
        assert_eq!(counts(&groups), [1, 1, 1, 1]);
        groups.sched_cache_group_put(tasks[3]);
        groups.sched_cache_group_get(tasks[1], 11, false, Group { mm: 11, ..Group::default() });
        assert_eq!(
            (groups.groups.len(), groups.task(tasks[1]).group),
            (2, Some(1)),
            "the place of space 9 is used again"
        );
        assert_ne!(groups.task(tasks[0]).group, groups.task(tasks[1]).group);
    }
}
