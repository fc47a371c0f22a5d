//! The load that group queues have reported and the groups' sums (`tg->load_avg`).
//!
//! `calc_group_shares` reads the sum without a lock. It may see it before or after another CPU has reported, whatever the order of
//! the two CPUs' records: a dequeue is read from the record of its charge, but reports later. The weight that an operation's own
//! probe shows is that of the sum which was read.

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::fair::{Contribution, GroupId};

use super::Model;
use crate::inputs::InputKind;
use crate::operation::{Operation, QueueWeight, TgLoad};

/// How many of the latest sums are tried (chosen, not derived: with more, a sum fits a weight by chance more often).
const LATEST: usize = 4;

/// Sums that operations read.
#[derive(Clone, Default, Debug)]
pub(super) struct TgSums {
    /// The latest sums of what the group's queues on other CPUs have reported, by group and CPU, the newest last.
    others: BTreeMap<(GroupId, CpuId), Vec<i64>>,
    /// The sum that the operations of the present record read instead of the current one.
    read: Option<Read>,
}

/// See [`TgSums::read`].
#[derive(Clone, Copy, Debug)]
struct Read {
    /// Of which record: its CPU and time.
    by: (CpuId, Nanos),
    group: GroupId,
    /// The current sum less the one that is read.
    behind: i64,
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
    /// The load that a queue has reported, and the group's sum, as probes show them: inputs if the group existed before the
    /// recording.
    pub(super) fn update_tg_load(&mut self, address: u64, cpu: CpuId, next: TgLoad) {
        let Some(group) = self.groups.get(&self.group_at(address)).copied() else { return };
        match self.coverage.is_preexisting() {
            true => self.take_tg_load(group, cpu, next),
            false => self.find_sum_read(group, cpu, next),
        }
    }

    fn take_tg_load(&mut self, group: GroupId, cpu: CpuId, next: TgLoad) {
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

    /// Which sum this operation reads: the current one, or one of the latest if that one gives the weight that the operation's own
    /// probe shows.
    fn find_sum_read(&mut self, group: GroupId, cpu: CpuId, next: TgLoad) {
        self.read_current_sum();
        let current = self.others(group, cpu);
        for cpu in (0..self.cpus.len() as u32).map(CpuId) {
            let others = self.others(group, cpu);
            self.sums.note(group, cpu, others);
        }
        let Some((shown, waiting)) = next.own_weight.and_then(|shown| Some((shown, shown.waiting?))) else { return };
        let load = self.queued_weight(group, cpu, shown.next, waiting).max(shown.load as i64);
        if self.is_weight_of(group, shown, load, current) {
            return;
        }
        let read = self.sums.latest(group, cpu).find(|others| self.is_weight_of(group, shown, load, *others));
        let Some(others) = read else { return };
        let behind = current.wrapping_sub(others);
        self.shift_sum(group, behind.wrapping_neg());
        self.sums.read = Some(Read { by: (self.at, self.now), group, behind });
        self.tally.inputs.take(InputKind::TgSum);
    }

    /// The operations of a record are over: what comes next reads the current sum.
    pub(super) fn end_sum_read(&mut self, operation: &Operation) {
        let probes = matches!(operation, Operation::Probe { .. });
        if self.sums.read.is_some_and(|read| probes || read.by != (self.at, self.now)) {
            self.read_current_sum();
        }
    }

    fn read_current_sum(&mut self) {
        if let Some(Read { group, behind, .. }) = self.sums.read.take() {
            self.shift_sum(group, behind);
        }
    }

    fn shift_sum(&mut self, group: GroupId, by: i64) {
        let sum = self.fair().group(group).load.load_avg.wrapping_add(by);
        self.sched.follow().restore().group_load_sum(group, sum);
    }

    /// What the group's queues on other CPUs have reported.
    fn others(&self, group: GroupId, cpu: CpuId) -> i64 {
        let contrib = self.fair().group_rq(group, cpu).pelt.tg_load_avg_contrib;
        self.fair().group(group).load.load_avg.wrapping_sub(contrib as i64)
    }

    /// The weight of a queue's entities at a probe: those that wait, and the one that runs.
    fn queued_weight(&self, group: GroupId, cpu: CpuId, next: Option<Pid>, waiting: u64) -> i64 {
        let running = next.and_then(|pid| self.task(pid)).or(self.sched.curr(cpu));
        let running = running.filter(|id| self.fair().group_of(*id) == group);
        let weight = running.map_or(0, |id| self.fair().entity(id).load.weight >> 10);
        waiting.wrapping_add(weight) as i64
    }

    /// Whether `calc_group_shares` gives this weight to a queue with this load if the group's other queues have reported `others`.
    fn is_weight_of(&self, group: GroupId, shown: QueueWeight, load: i64, others: i64) -> bool {
        let shares = self.fair().group(group).shares as i64;
        let total = others.wrapping_add(load);
        total > 0 && (shares.wrapping_mul(load) / total).min(shares) == shown.weight as i64
    }
}
