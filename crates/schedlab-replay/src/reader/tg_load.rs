//! The load that group queues have reported (`tg_load_avg_contrib`) and the groups' sums (`tg->load_avg`), as the next
//! probes show them.
//!
//! A queue reports at most once in a millisecond of `sched_clock_cpu`, and reads without a lock what others reported.
//! No record shows either, so both are inputs, as clocks are.

use schedlab_model::{CpuId, Pid};
use schedlab_trace::Kind;

use super::first::group_ahead;
use super::Reader;
use crate::operation::{Operation, QueueWeight, TgLoad};
use crate::trace::OthersLoad;
use crate::trace::{Address, Entry, LookAhead, Point, What, Window};

impl Reader {
    /// The groups of the tasks that a record is about, and of the running task there.
    pub(super) fn read_tg_loads(&mut self, entry: &Entry, kind: Kind, ahead: &Window<'_>) {
        if self.shown_in.is_empty() {
            return;
        }
        let (pids, cpus) = match kind {
            Kind::Runtime { pid, .. } => ([pid, pid], [entry.cpu, entry.cpu]),
            Kind::Wakeup { pid, target_cpu, .. } | Kind::WakeupNew { pid, target_cpu, .. } => {
                ([pid, self.current(target_cpu).unwrap_or(pid)], [target_cpu, target_cpu])
            }
            Kind::Switch { prev, next, .. } => ([prev, next], [entry.cpu, entry.cpu]),
            Kind::Migrate { pid, orig_cpu, dest_cpu, .. } => ([pid, pid], [orig_cpu, dest_cpu]),
            _ => return,
        };
        let mut read: Vec<(u64, CpuId)> = Vec::new();
        for pid in pids.into_iter().filter(|pid| *pid != 0) {
            for address in self.addresses(pid, ahead) {
                for cpu in cpus {
                    if !read.contains(&(address, cpu)) {
                        read.push((address, cpu));
                        self.read_tg_load(entry, (address, Some(pid)), cpu, ahead);
                    }
                }
            }
        }
    }

    /// One group on one CPU; a task of it.
    pub(super) fn read_tg_load(
        &mut self,
        entry: &Entry,
        (group, task): (u64, Option<Pid>),
        cpu: CpuId,
        ahead: &Window<'_>,
    ) {
        let others = self.others_read(entry, group, cpu, ahead);
        let load = TgLoad { others, ..tg_load_ahead(entry, group, cpu, ahead) };
        if load != TgLoad::default() {
            self.push(Operation::UpdateTgLoad { cpu, group, task, load });
        }
    }

    /// The sums that code on CPU `by` has read to enqueue a task on another queue, before this record or behind its
    /// charge.
    pub(super) fn read_sums_of(&mut self, by: CpuId, entry: &Entry, (pid, to): (Pid, CpuId), ahead: &Window<'_>) {
        for group in self.addresses(pid, ahead) {
            let others = match by == entry.cpu {
                true => self.others_read(entry, group, to, ahead),
                false => self.others_read_before(by, group, to),
            };
            if others.is_some() {
                let load = TgLoad { others, ..TgLoad::default() };
                self.push(Operation::UpdateTgLoad { cpu: to, group, task: Some(pid), load });
            }
        }
    }

    /// The sums that code on CPU `by` has read last for a group's queue on a CPU.
    fn others_read_before(&self, by: CpuId, group: u64, cpu: CpuId) -> Option<OthersLoad> {
        self.cpus.get(by.index())?.sums_read.get(&(cpu, group)).copied()
    }

    /// The sums from which the operation of a record computes the weight of a group's queue. Code charges before it
    /// reads them, and all else that it does is recorded after.
    fn others_read(&self, entry: &Entry, group: u64, cpu: CpuId, ahead: &Window<'_>) -> Option<OthersLoad> {
        if !matches!(entry.kind(), Some(Kind::Runtime { .. })) {
            return self.others_read_before(entry.cpu, group, cpu);
        }
        let own = ahead.look(LookAhead::TgLoad).filter(|next| next.cpu == entry.cpu);
        let mut inside = own.take_while(|next| next.kind().is_none());
        inside.find_map(|next| match next.what {
            What::SumsRead { cpu: of, group: at, others } if (of, at) == (cpu, group) => Some(others),
            _ => None,
        })
    }

    /// The group that a task was last shown in, and the one that it is shown in next.
    fn addresses(&self, pid: Pid, ahead: &Window<'_>) -> Vec<u64> {
        let is_group = |address: &Address| !address.is_root;
        let both = self.shown_in.get(&pid).copied().into_iter().chain(group_ahead(pid, ahead));
        let mut found: Vec<u64> = both.filter(is_group).map(|address| address.at).collect();
        found.dedup();
        found
    }
}

/// What a group's queue on a CPU has reported, and the group's sum, once the operation of this record is over.
fn tg_load_ahead(entry: &Entry, group: u64, cpu: CpuId, ahead: &Window<'_>) -> TgLoad {
    let (mut found, mut over) = (TgLoad::default(), false);
    // `schedule()` charges a task, dequeues it and switches.
    let (mut own, mut schedules) = (true, matches!(entry.kind(), Some(Kind::Runtime { .. })));
    let mut woken = woken_on(entry);
    for next in ahead.look(LookAhead::TgLoad) {
        if next.cpu == entry.cpu && !next.is_inside() {
            over = true;
            own &= std::mem::take(&mut schedules) && matches!(next.kind(), Some(Kind::Switch { .. }));
        }
        woken = woken_on(next).or(woken);
        let Some(shown) = shown_by(next, woken).filter(|shown| shown.group == group) else { continue };
        // Within the operation it is read before it is reported; code on another CPU that has the queue comes after.
        let after = if next.cpu == entry.cpu { ends_operation(next) } else { shown.cpu == Some(cpu) };
        if !(over || after) {
            continue;
        }
        if shown.cpu == Some(cpu) {
            found.contrib.get_or_insert(shown.contrib);
            found.weight = weight_shown(next);
            found.own_weight = found.weight.filter(|_| own && next.cpu == entry.cpu);
        }
        found.load_avg.get_or_insert(shown.load_avg);
        if found.weight.is_some() {
            break;
        }
    }
    found
}

fn weight_shown(entry: &Entry) -> Option<QueueWeight> {
    match entry.what {
        What::Probe(probe) => {
            let group = probe.group?;
            let waiting = probe.sums.map(|sums| sums.weight);
            let next = (probe.point == Point::Next).then_some(probe.pid);
            Some(QueueWeight { load: group.load, weight: group.weight, waiting, next })
        }
        _ => None,
    }
}

fn ends_operation(entry: &Entry) -> bool {
    matches!(entry.what, What::Probe(probe) if matches!(probe.point, Point::Woken | Point::Next))
}

/// What a record shows of a group.
struct Shown {
    group: u64,
    /// The CPU of the queue, if it is known.
    cpu: Option<CpuId>,
    contrib: u64,
    load_avg: i64,
}

fn shown_by(entry: &Entry, woken: Option<(Pid, CpuId)>) -> Option<Shown> {
    match entry.what {
        What::CfsRqLoad { cpu, state: Some(state), .. } => {
            let (contrib, load_avg) = (state.contrib, state.tg_load_avg);
            Some(Shown { group: state.group.at, cpu: Some(cpu), contrib, load_avg })
        }
        What::Probe(probe) => {
            let (address, group) = (probe.address?, probe.group?);
            let cpu = match probe.point {
                Point::Woken => woken.filter(|(pid, _)| *pid == probe.pid).map(|(_, cpu)| cpu),
                Point::Next => Some(entry.cpu),
                _ => (entry.pid == probe.pid).then_some(entry.cpu),
            };
            Some(Shown { group: address.at, cpu, contrib: group.contrib, load_avg: group.tg_load_avg })
        }
        _ => None,
    }
}

fn woken_on(entry: &Entry) -> Option<(Pid, CpuId)> {
    match entry.kind()? {
        Kind::Wakeup { pid, target_cpu, .. } | Kind::WakeupNew { pid, target_cpu, .. } => Some((pid, target_cpu)),
        _ => None,
    }
}
