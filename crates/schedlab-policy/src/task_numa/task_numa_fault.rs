//! Hinting faults: how the use of an inaccessible page is counted, and whether the page moves to the node of the CPU
//! (`do_numa_page`, `should_numa_migrate_memory`, `task_numa_fault`, `task_numa_group`, `task_numa_placement`,
//! `update_task_scan_period`).
//!
//! A page moves on the first fault and, early in the life of a task, on each of its own; later only if the fault before
//! came from the same node, and then on a private fault, or if the group runs there more than where the page is. The
//! scan period becomes longer if most faults are private, or shared and local, and else shorter.

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::fair::class::FairClass;
use crate::jiffies::Jiffies;
use crate::numa::access::Access;
use crate::numa::memory::CpuPid;
use crate::numa::scan::access_bit;
use crate::numa::stats::{Faults, Group, Stat, ACTIVE_NODE_FRACTION};
use crate::numa::{Node, Numa};

/// `NUMA_PERIOD_SLOTS` and `NUMA_PERIOD_THRESHOLD`.
const SLOTS: i64 = 10;
const THRESHOLD: i64 = 7;
/// `LOAD_AVG_MAX`.
const LOAD_AVG_MAX: u64 = 47_742;

/// The task whose accesses are handled, on its CPU.
#[derive(Clone, Copy)]
struct Current {
    task: TaskId,
    birth: u64,
    cpu: CpuId,
    mm: u64,
    /// It runs on, and may move to another CPU.
    may_move: bool,
    now: Nanos,
    jiffies: Jiffies,
}

/// A hinting fault.
struct Fault {
    /// The node of the page once it has been handled.
    mem_node: Node,
    /// Pages of 4 KiB.
    pages: i64,
    /// The page was on the node of the CPU.
    local: bool,
}

impl FairClass<'_> {
    /// The task has run on the CPU in user mode for `user` ns and has used the next part of its memory.
    pub(crate) fn numa_access(&mut self, cpu: CpuId, task: TaskId, user: Nanos, may_move: bool, now: Nanos) -> Access {
        let Some(mut numa) = self.core.numa.take() else { return Access::default() };
        let (birth, jiffies) = (self.core.tasks[task.index()].birth, self.core.jiffies(now));
        let mm = numa.task(task).and_then(|state| state.mm);
        let access = mm.map(|mm| {
            let by = Current { task, birth, cpu, mm, may_move, now, jiffies };
            self.use_memory(&mut numa, by, user)
        });
        self.core.numa = Some(numa);
        access.unwrap_or_default()
    }

    fn use_memory(&mut self, numa: &mut Numa, by: Current, user: Nanos) -> Access {
        let (mut access, mm) = (Access::default(), by.mm);
        let Some(mut uses) = numa.task_mut(by.task).uses.take() else { return access };
        access.pages = uses.advance(user);
        let (remote, all) = numa.mms.get(&mm).map_or((0, 1), |mm| uses.remote(mm, numa.node(by.cpu)));
        access.remote = (u128::from(access.pages) * u128::from(remote) / u128::from(all.max(1))) as u64;
        let mut left = access.pages.min(uses.total as u64) as usize;
        'all: while left > 0 {
            let (mut place, mut part) = (uses.at, None);
            for &vma in &uses.vmas {
                let len = numa.mms.get(&mm).map_or(0, |mm| mm.vmas[vma].len());
                if place < len {
                    part = Some((vma, len));
                    break;
                }
                place -= len;
            }
            let Some((vma, len)) = part else { break };
            let length = left.min(len - place);
            let space = numa.mms.get(&mm).map(|mm| (mm.vmas[vma].may_fault(), mm.vmas[vma].per));
            if let Some((true, per)) = space {
                for page in place / per..(place + length).div_ceil(per) {
                    self.use_page(numa, by, vma, page, &mut access);
                    if access.moves.is_some() {
                        break 'all;
                    }
                }
            }
            uses.at = (uses.at + length) % uses.total;
            left -= length;
        }
        numa.task_mut(by.task).uses = Some(uses);
        access
    }

    /// The first use of a page, or `do_numa_page`, if it is either. The page is the one of number `index` in the
    /// mapping `area`.
    fn use_page(&mut self, numa: &mut Numa, by: Current, area: usize, index: usize, access: &mut Access) {
        let dst = numa.node(by.cpu);
        let Some(vma) = numa.mms.get_mut(&by.mm).map(|mm| &mut mm.vmas[area]) else { return };
        let page = vma.pages[index];
        let Some(src) = page.node() else { return vma.touch(index, dst) };
        if !page.protnone {
            return;
        }
        vma.clear_protnone(index);
        if let Some(numab) = &mut vma.numab {
            numab.pids_active[1] |= access_bit(by.birth);
        }
        let (last, pages) = (page.folio_last_cpupid(), vma.per);
        vma.pages[index].folio_xchg_last_cpupid(CpuPid { cpu: by.cpu, birth: by.birth });
        let settled = self.core.tasks[by.task.index()].preferred_node.is_some();
        let migrates = src != dst && numa.should_numa_migrate_memory(by, last, settled, src, dst);
        if migrates {
            if let Some(mm) = numa.mms.get_mut(&by.mm) {
                mm.vmas[area].migrate(index, dst);
            }
            access.migrations += 1;
            access.migrated += pages as u64;
        }
        access.faults += 1;
        access.local += u32::from(src == dst);
        let node = if migrates { dst } else { src };
        self.task_numa_fault(numa, by, last, Fault { mem_node: node, pages: pages as i64, local: src == dst }, access);
    }

    /// `task_numa_fault`.
    fn task_numa_fault(
        &mut self,
        numa: &mut Numa,
        by: Current,
        last: Option<CpuPid>,
        fault: Fault,
        access: &mut Access,
    ) {
        let Fault { mem_node, pages, mut local } = fault;
        let nodes = numa.nodes;
        numa.task_mut(by.task).faults.get_or_insert_with(|| Faults::new(nodes));
        let private = last.is_none_or(|last| last.birth == by.birth);
        if let Some(last) = last.filter(|_| !private) {
            let curr = self.core.curr(last.cpu).filter(|curr| self.core.tasks[curr.index()].birth == last.birth);
            numa.task_numa_group(by, curr);
        }
        let cpu_node = numa.node(by.cpu);
        if let Some(group) = numa.group(by.task).filter(|group| !private && !local && group.active_nodes > 1) {
            local = group.numa_is_active_node(cpu_node) && group.numa_is_active_node(mem_node);
        }
        if by.jiffies > numa.task_mut(by.task).migrate_retry {
            self.task_numa_placement(numa, by);
            if by.may_move {
                self.numa_migrate_preferred(numa, by, access);
            }
        }
        if let Some(faults) = &mut numa.task_mut(by.task).faults {
            *faults.at(Stat::MemBuf, mem_node, private) += pages;
            *faults.at(Stat::CpuBuf, cpu_node, private) += pages;
            faults.locality[usize::from(local)] += pages;
        }
    }

    /// `numa_migrate_preferred`.
    fn numa_migrate_preferred(&mut self, numa: &mut Numa, by: Current, access: &mut Access) {
        let Some(preferred) = self.core.tasks[by.task.index()].preferred_node.map(|node| node as Node) else { return };
        let period = numa.task_mut(by.task).scan_period;
        let interval = numa.msecs_to_jiffies(1000).min(numa.msecs_to_jiffies(period) / 16);
        numa.task_mut(by.task).migrate_retry = by.jiffies + interval;
        if numa.node(by.cpu) != preferred {
            (access.moves, access.looked_at) = self.task_numa_migrate(numa, by.task, preferred, by.now);
        }
    }

    /// `task_numa_placement`: after each pass over the address space the averages are computed and the preferred node
    /// is set.
    fn task_numa_placement(&mut self, numa: &mut Numa, by: Current) {
        let Some(seq) = numa.mms.get(&by.mm).map(|mm| mm.scan_seq) else { return };
        if numa.task_mut(by.task).scan_seq == seq {
            return;
        }
        let group = numa.task_mut(by.task).group;
        let scan_max = numa.task_scan_max(Some(by.mm), group);
        let (runtime, period) = self.numa_get_avg_runtime(numa, by.task);
        let weight = (i128::from(runtime) << 16) / (i128::from(period) + 1);
        let state = numa.task_mut(by.task);
        state.scan_seq = seq;
        let Some(mut faults) = state.faults.take() else { return };
        let total = i128::from(faults.locality[0] + faults.locality[1]);
        let (mut most, mut kinds) = (None::<(i64, Node)>, [0; 2]);
        for node in 0..numa.nodes {
            let mut of_node = 0;
            for private in [false, true] {
                let buffered = std::mem::take(faults.at(Stat::MemBuf, node, private));
                let by_cpu = std::mem::take(faults.at(Stat::CpuBuf, node, private));
                let diff = buffered - faults.get(Stat::Mem, node, private) / 2;
                let weighted = (weight * i128::from(by_cpu) / (total + 1)) as i64;
                let cpu_diff = weighted - faults.get(Stat::Cpu, node, private) / 2;
                kinds[usize::from(private)] += buffered;
                *faults.at(Stat::Mem, node, private) += diff;
                *faults.at(Stat::Cpu, node, private) += cpu_diff;
                faults.total += diff;
                if let Some(group) = group {
                    let group = &mut numa.groups[group];
                    *group.at(Stat::Mem, node, private) += diff;
                    *group.at(Stat::Cpu, node, private) += cpu_diff;
                    group.total += diff;
                }
            }
            of_node += group.map_or_else(|| faults.task_faults(node), |group| numa.groups[group].group_faults(node));
            if of_node > most.map_or(0, |(faults, _)| faults) {
                most = Some((of_node, node));
            }
        }
        if let Some(group) = group {
            numa.groups[group].numa_group_count_active_nodes();
        }
        if let Some((_, node)) = most {
            self.sched_setnuma(by.task, node);
        }
        numa.task_mut(by.task).faults = Some(faults);
        let [shared, private] = kinds;
        numa.update_task_scan_period(by, shared, private, scan_max);
    }

    /// `sched_setnuma`.
    pub(crate) fn sched_setnuma(&mut self, task: TaskId, node: Node) {
        self.core.tasks[task.index()].preferred_node = Some(node as u32);
    }

    /// `numa_get_avg_runtime`: run time and period since the last placement.
    fn numa_get_avg_runtime(&self, numa: &mut Numa, task: TaskId) -> (Nanos, Nanos) {
        let entity = self.fair.entity(task);
        let (now, runtime) = (entity.exec_start, entity.sum_exec_runtime);
        let state = numa.task_mut(task);
        let result = match state.last_placement {
            0 => (entity.avg.load_sum, LOAD_AVG_MAX),
            last => (runtime.saturating_sub(state.last_runtime), now.saturating_sub(last)),
        };
        (state.last_placement, state.last_runtime) = (now, runtime);
        result
    }
}

impl Numa {
    /// `should_numa_migrate_memory`, with the page on node `src` and the fault on a CPU of node `dst`. `settled`: the
    /// task prefers a node.
    fn should_numa_migrate_memory(
        &self,
        by: Current,
        last: Option<CpuPid>,
        settled: bool,
        src: Node,
        dst: Node,
    ) -> bool {
        let Some(state) = self.task(by.task) else { return false };
        let own = last.is_some_and(|last| last.birth == by.birth);
        if (!settled || state.scan_seq <= 4) && (last.is_none() || own) {
            return true;
        }
        if last.is_some_and(|last| self.node(last.cpu) != dst) {
            return false;
        }
        let Some(group) = self.group(by.task).filter(|_| !own) else { return true };
        if group.group_faults_cpu(dst) > group.group_faults_cpu(src) * ACTIVE_NODE_FRACTION {
            return true;
        }
        group.group_faults_cpu(dst) * group.group_faults(src) * 3
            > group.group_faults_cpu(src) * group.group_faults(dst) * 4
    }

    /// `task_numa_group`: the task joins the group of `curr`, the last user of the page, if it runs now and its group
    /// is no smaller.
    fn task_numa_group(&mut self, by: Current, curr: Option<TaskId>) {
        let Some(state) = self.tasks.get_mut(by.task.index()) else { return };
        let Some(faults) = &state.faults else { return };
        let mine = *state.group.get_or_insert_with(|| {
            self.groups.push(Group::of(faults));
            self.groups.len() - 1
        });
        let Some(theirs) = curr.and_then(|curr| self.task(curr)?.group).filter(|theirs| *theirs != mine) else {
            return;
        };
        let sizes = (self.groups[mine].nr_tasks, self.groups[theirs].nr_tasks);
        // Between groups of one size the kernel decides by their addresses.
        if sizes.0 > sizes.1 || sizes.0 == sizes.1 && mine > theirs {
            return;
        }
        let state = &mut self.tasks[by.task.index()];
        state.group = Some(theirs);
        if let Some(faults) = &state.faults {
            self.groups[mine].leave(faults);
            self.groups[theirs].join(faults);
        }
    }

    /// `update_task_scan_period`, for the shared and private faults of a pass.
    fn update_task_scan_period(&mut self, by: Current, shared: i64, private: i64, scan_max: u64) {
        let group = self.task_mut(by.task).group;
        let scan_min = self.task_scan_min(Some(by.mm));
        let resets = self.rules.numa_quiet_pass_resets;
        let state = self.task_mut(by.task);
        let Some(faults) = &mut state.faults else { return };
        let [remote, local] = faults.locality;
        if local + shared == 0 {
            if resets {
                faults.locality = [0; 2];
            }
            let period = scan_max.min(state.scan_period << 1);
            state.scan_period = period;
            let next = by.jiffies + self.msecs_to_jiffies(period);
            if let Some(mm) = self.mms.get_mut(&by.mm) {
                mm.next_scan = next;
            }
            return;
        }
        let slot = state.scan_period.div_ceil(SLOTS as u64) as i64;
        let local_ratio = local * SLOTS / (local + remote).max(1);
        let private_ratio = private * SLOTS / (private + shared).max(1);
        let slots = if private_ratio >= THRESHOLD {
            (private_ratio - THRESHOLD).max(1)
        } else if local_ratio >= THRESHOLD {
            (local_ratio - THRESHOLD).max(1)
        } else {
            -(THRESHOLD - local_ratio.max(private_ratio))
        };
        faults.locality = [0; 2];
        let period = (state.scan_period as i64 + slots * slot).max(0) as u64;
        let most = self.task_scan_max(Some(by.mm), group);
        self.task_mut(by.task).scan_period = period.clamp(scan_min, most.max(scan_min));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use schedlab_model::{Topology, MSEC, SEC};

    use super::*;
    use crate::numa::NumaMemory;
    use crate::{KernelConfig, Sched, TaskAttr, Version};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// After each pass the preferred node is the one with most faults, which count half as much a pass later.
        #[test]
        fn the_preferred_node_is_that_of_the_most_faults(
            passes in prop::collection::vec(prop::collection::vec((0i64..10_000, 0i64..10_000), 4), 1..6),
        ) {
            let mut config = KernelConfig::new(Version::find("6.12.107").unwrap(), 4, 250);
            config.knobs.numa_balancing = 1;
            let mut sched = Sched::new(config.clone(), Arc::new(Topology::regular(4, 1, 1, 1, true).unwrap()));
            prop_assert!(sched.init_numa(&config));
            let task = sched.add_task(&TaskAttr::default());
            let memory = NumaMemory { private: 8, pass: MSEC, ..NumaMemory::default() };
            sched.init_numa_balancing(task, 1, &memory, 0);
            let mut numa = sched.core.numa.take().unwrap();
            numa.task_mut(task).faults = Some(Faults::new(4));
            let (mut averages, mut expected) = ([[0i64; 2]; 4], None);
            for (pass, counts) in passes.iter().enumerate() {
                let faults = numa.task_mut(task).faults.as_mut().unwrap();
                for (node, (shared, private)) in counts.iter().enumerate() {
                    *faults.at(Stat::MemBuf, node, false) = *shared;
                    *faults.at(Stat::MemBuf, node, true) = *private;
                    for (average, new) in averages[node].iter_mut().zip([*shared, *private]) {
                        *average = *average - *average / 2 + new;
                    }
                }
                let sums = averages.map(|average| average.iter().sum::<i64>());
                let most = sums.iter().max().filter(|most| **most > 0);
                expected = most.and_then(|most| sums.iter().position(|sum| sum == most)).or(expected);
                numa.mms.get_mut(&1).unwrap().scan_seq = pass as u64 + 1;
                let (cpu, now) = (CpuId(0), SEC);
                let by = Current { task, birth: 1, cpu, mm: 1, may_move: true, now, jiffies: 1 };
                let Sched { core, classes, .. } = &mut sched;
                classes.fair.with(core).task_numa_placement(&mut numa, by);
                prop_assert_eq!(sched.numa_preferred_nid(task).map(|node| node as usize), expected);
                let faults = numa.task_mut(task).faults.as_ref().unwrap();
                prop_assert_eq!(faults.total, sums.iter().sum::<i64>());
            }
        }
    }
}
