//! The load that group queues have reported and the groups' sums (`tg->load_avg`).
//!
//! `calc_group_shares` reads the sum without a lock. It may see it before or after another CPU has reported, whatever
//! the order of the two CPUs' records: a dequeue is read from the record of its charge, but reports later. The weight
//! that an operation's own probe shows is that of the sum which was read.

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::fair::{Contribution, GroupId};

use super::Model;
use crate::inputs::InputKind;
use crate::operation::{Operation, QueueWeight, TgLoad};
use crate::trace::OthersLoad;

/// How many of the latest sums are tried (chosen, not derived: with more, a sum fits a weight by chance more often).
const LATEST: usize = 4;

/// Sums that operations read.
#[derive(Clone, Default, Debug)]
pub(super) struct TgSums {
    /// The latest sums of what the group's queues on other CPUs have reported, by group and CPU, the newest last.
    others: BTreeMap<(GroupId, CpuId), Vec<i64>>,
    /// The sums that the operations of the present record read instead of the current ones, one for each group.
    read: Vec<Read>,
}

/// See [`TgSums::read`].
#[derive(Clone, Copy, Debug)]
struct Read {
    /// Of which record: its CPU and time.
    by: (CpuId, Nanos),
    group: GroupId,
    /// The current sum less the one that is read: of loads, and of what is runnable.
    behind: (i64, i64),
}

impl TgSums {
    /// Notes what the other CPUs have reported by now.
    fn note(&mut self, group: GroupId, cpu: CpuId, others: i64) {
        let latest = self.others.entry((group, cpu)).or_default();
        if latest.last() != Some(&others) {
            if latest.len() == LATEST {
                latest.remove(0);
            }
            latest.push(others);
        }
    }

    fn latest(&self, group: GroupId, cpu: CpuId) -> impl Iterator<Item = i64> + '_ {
        self.others.get(&(group, cpu)).into_iter().flatten().rev().copied()
    }
}

impl Model {
    /// The load that a queue has reported, and the group's sum, as probes show them: inputs if the group existed before
    /// the recording.
    pub(super) fn update_tg_load(&mut self, (address, task): (u64, Option<Pid>), cpu: CpuId, next: TgLoad) {
        let known = self.groups.get(&self.group_at(address)).copied();
        let Some(group) = known.or_else(|| self.new_group_of(task?)) else { return };
        match self.coverage.is_preexisting() {
            true => self.take_tg_load(group, cpu, next),
            false => self.find_sum_read(group, cpu, next),
        }
    }

    /// The group of a task, if no probe has shown its address yet.
    fn new_group_of(&self, task: Pid) -> Option<GroupId> {
        let group = self.fair().group_of(self.task(task)?);
        Some(group).filter(|group| *group != GroupId::ROOT && !self.groups.values().any(|known| known == group))
    }

    /// What a queue has reported last. An operation that shows only the sums that others have read reports nothing.
    fn take_tg_load(&mut self, group: GroupId, cpu: CpuId, next: TgLoad) {
        if let TgLoad { contrib: None, load_avg: None, weight: None, .. } = next {
            return;
        }
        let now = self.clock(cpu);
        let contrib = next.contrib.unwrap_or(self.fair().group_rq(group, cpu).pelt.tg_load_avg_contrib);
        let before = self.fair().group(group).load.load_avg;
        let mut load_avg = next.load_avg.unwrap_or(before);
        // Another CPU may have reported in between: the weight shows which of the two sums was read.
        if let Some(weight) = next.weight {
            let queued = (self.fair().group_rq(group, cpu).load.weight >> 10) as i64;
            let loads = [weight.load as i64, queued];
            let fits = |load_avg: i64| {
                let others = load_avg.wrapping_sub(contrib as i64);
                loads.into_iter().any(|load| self.is_weight_of(group, weight, load, others))
            };
            if !fits(load_avg) && fits(before) {
                load_avg = before;
            }
        }
        let contribution = Contribution { tg_load_avg_contrib: contrib, last_update_tg_load_avg: now, load_avg };
        self.sched.follow().restore().contribution(group, cpu, contribution);
    }

    /// Which sums this operation reads: those that a probe shows; else the current one, or one of the latest if that
    /// one gives the weight that the operation's own probe shows.
    fn find_sum_read(&mut self, group: GroupId, cpu: CpuId, next: TgLoad) {
        self.read_current_sum(group);
        let current = self.others(group, cpu);
        if let Some(shown) = next.others {
            if shown != current {
                self.read_sum(group, current, shown);
            }
            return;
        }
        for cpu in (0..self.cpus.len() as u32).map(CpuId) {
            let others = self.others(group, cpu);
            self.sums.note(group, cpu, others.load);
        }
        let Some((shown, waiting)) = next.own_weight.and_then(|shown| Some((shown, shown.waiting?))) else { return };
        let load = self.queued_weight(group, cpu, shown.next, waiting).max(shown.load as i64);
        if self.is_weight_of(group, shown, load, current.load) {
            return;
        }
        let read = self.sums.latest(group, cpu).find(|others| self.is_weight_of(group, shown, load, *others));
        if let Some(load) = read {
            self.read_sum(group, current, OthersLoad { load, ..current });
        }
    }

    /// The operations of this record read these sums.
    fn read_sum(&mut self, group: GroupId, current: OthersLoad, read: OthersLoad) {
        let behind = (current.load.wrapping_sub(read.load), current.runnable.wrapping_sub(read.runnable));
        self.shift_sum(group, (behind.0.wrapping_neg(), behind.1.wrapping_neg()));
        self.sums.read.push(Read { by: (self.at, self.now), group, behind });
        self.tally.inputs.take(InputKind::TgSum);
    }

    /// The operations of a record are over: what comes next reads the current sum.
    pub(super) fn end_sum_read(&mut self, operation: &Operation) {
        let (by, probes) = ((self.at, self.now), matches!(operation, Operation::Probe { .. }));
        let over = |read: &Read| probes || read.by != by;
        let ended: Vec<GroupId> = self.sums.read.iter().filter(|read| over(read)).map(|read| read.group).collect();
        ended.into_iter().for_each(|group| self.read_current_sum(group));
    }

    fn read_current_sum(&mut self, group: GroupId) {
        while let Some(nth) = self.sums.read.iter().position(|read| read.group == group) {
            let Read { behind, .. } = self.sums.read.swap_remove(nth);
            self.shift_sum(group, behind);
        }
    }

    fn shift_sum(&mut self, group: GroupId, (load, runnable): (i64, i64)) {
        let sums = &self.fair().group(group).load;
        let (load, runnable) = (sums.load_avg.wrapping_add(load), sums.runnable_avg.wrapping_add(runnable));
        self.sched.follow().restore().group_sums(group, load, runnable);
    }

    /// What the group's queues on other CPUs have reported.
    fn others(&self, group: GroupId, cpu: CpuId) -> OthersLoad {
        let (own, sums) = (&self.fair().group_rq(group, cpu).pelt, &self.fair().group(group).load);
        OthersLoad {
            load: sums.load_avg.wrapping_sub(own.tg_load_avg_contrib as i64),
            runnable: sums.runnable_avg.wrapping_sub(own.tg_runnable_avg_contrib as i64),
        }
    }

    /// The weight of a queue's entities at a probe: those that wait, and the one that runs.
    fn queued_weight(&self, group: GroupId, cpu: CpuId, next: Option<Pid>, waiting: u64) -> i64 {
        let running = next.and_then(|pid| self.task(pid)).or(self.sched.curr(cpu));
        let running = running.filter(|id| self.fair().group_of(*id) == group);
        let weight = running.map_or(0, |id| self.fair().entity(id).load.weight >> 10);
        waiting.wrapping_add(weight) as i64
    }

    /// Whether `calc_group_shares` gives this weight to a queue with this load if the group's other queues have
    /// reported `others`.
    fn is_weight_of(&self, group: GroupId, shown: QueueWeight, load: i64, others: i64) -> bool {
        let (task_group, config) = (self.fair().group(group), &self.fair().config);
        let (cpus, signals) = (self.active.count() as u64, &config.rules.pelt);
        let shares = task_group.load.shares_to_divide(task_group.shares, cpus, signals) as i64;
        let total = others.wrapping_add(load);
        total > 0 && (shares.wrapping_mul(load) / total).min(shares) == shown.weight as i64
    }
}
