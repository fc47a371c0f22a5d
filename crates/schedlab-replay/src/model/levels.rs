//! Groups that were there before the recording: the state of their entities and queues, taken from the trace once.
//!
//! A probe of a task shows the entity that stands for its group on the CPU as well. What it shows first is taken over, and so is a
//! queue's load. A queue is whole once the model has as many entities on it as the kernel shows: until then somebody
//! is on it whom no record has named yet, and nothing that depends on it is judged.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_model::{CpuId, Nanos, Pid, TaskId, Vruntime};
use schedlab_policy::fair::{Dequeue, GroupId, TaskState};

use super::Model;
use crate::homes::Home;
use crate::operation::{First, Told};
use crate::step::{Address, AgedState, InGroup, Point, Probe, QueueLoad, Sums};

/// A queue: of a group on a CPU.
type Level = (GroupId, CpuId);

/// What is known of groups.
#[derive(Clone, Default, Debug)]
pub(super) struct Levels {
    /// The machine was in use when the recording began, and the trace shows state.
    in_use: bool,
    /// Their entity is not the kernel's yet.
    unknown: BTreeSet<Level>,
    /// Their queue's load is not.
    unloaded: BTreeSet<Level>,
    /// There may be more on the queue than the model has.
    partial: BTreeSet<Level>,
    /// Somebody has shown where the queue is in virtual time.
    primed: BTreeSet<Level>,
    /// What probes will show first of levels whose tasks were queued when the recording began, and when that was.
    foretold: BTreeMap<Level, (Nanos, (InGroup, Option<QueueLoad>))>,
    /// Groups by their addresses.
    homes: BTreeMap<u64, Home>,
}

impl Levels {
    /// `in_use`: tasks were there before the recording, and the trace shows state.
    pub(super) fn new(in_use: bool, cpus: usize) -> Levels {
        let mut levels = Levels { in_use, ..Levels::default() };
        levels.found(GroupId::ROOT, cpus);
        levels.unknown.clear();
        levels.unloaded.clear();
        levels
    }

    pub(super) fn in_use(&self) -> bool {
        self.in_use
    }

    /// A group of before the recording.
    pub(super) fn found(&mut self, group: GroupId, cpus: usize) {
        if self.in_use {
            let all = (0..cpus).map(|cpu| (group, CpuId(cpu as u32)));
            self.unknown.extend(all.clone());
            self.unloaded.extend(all.clone());
            self.partial.extend(all);
        }
    }
}

impl Model {
    /// Whether the state of everything that a task competes by is the kernel's.
    pub(super) fn level_known(&self, id: TaskId) -> bool {
        let cpu = self.fair.entity(id).cpu;
        let mut group = self.fair.group_of(id);
        loop {
            if self.levels.unknown.contains(&(group, cpu)) || self.levels.partial.contains(&(group, cpu)) {
                return false;
            }
            if group == GroupId::ROOT {
                return true;
            }
            group = self.fair.group(group).parent;
        }
    }

    /// The queue's sums begin to be compared, its zero point being the kernel's.
    pub(super) fn is_whole(&self, group: GroupId, cpu: CpuId) -> bool {
        !self.levels.partial.contains(&(group, cpu))
    }

    /// A probe of a task shows its group's entity and queues.
    pub(super) fn show_levels(&mut self, id: TaskId, probe: &Probe) {
        if !matches!(probe.point, Point::Woken | Point::Next) {
            return;
        }
        let (cpu, group) = (self.fair.entity(id).cpu, self.fair.group_of(id));
        if let Some(shown) = probe.group.filter(|_| group != GroupId::ROOT) {
            if self.levels.unknown.remove(&(group, cpu)) {
                self.take_group((group, cpu), shown, probe.queue_load);
                self.levels.unloaded.remove(&(group, cpu));
            }
            if let Some(sums) = shown.sums {
                self.complete(self.fair.group(group).parent, cpu, sums);
            }
        }
        if let Some(sums) = probe.sums {
            self.complete(group, cpu, sums);
        }
    }

    /// The same of a task that is on its queue when the recording begins, from the first probe that will show it.
    pub(super) fn foretell_levels(&mut self, id: TaskId, probe: &Probe) {
        let level = (self.fair.group_of(id), self.fair.entity(id).cpu);
        if !self.levels.unknown.contains(&level) {
            return;
        }
        let Some(shown) = probe.group else { return };
        // Whoever is queued beside it at the same moment weighs in it too.
        let (when, first) = *self.levels.foretold.entry(level).or_insert((self.now, (shown, probe.queue_load)));
        if when == self.now {
            self.take_group(level, first.0, first.1);
        }
    }

    fn take_group(&mut self, (group, cpu): Level, shown: InGroup, queue: Option<QueueLoad>) {
        let (vruntime, deadline) = (Vruntime(shown.vruntime), Vruntime(shown.deadline));
        let state = TaskState { vruntime, deadline, vlag: shown.lag, slice: shown.slice };
        self.fair.restore_group(group, cpu, state, (shown.weight, shown.exec_start));
        let Some(queue) = queue else { return };
        let told = (shown.told, queue.told_at);
        // Where the queue's load was shown before, that goes on; whether its group was told of it just then did not show.
        match self.levels.unloaded.contains(&(group, cpu)) {
            true => self.fair.restore_group_load(group, cpu, queue.load, told, shown.all),
            false => self.fair.restore_told(group, cpu, told, shown.all),
        }
    }

    /// A task about to be queued says where its queue stands in virtual time, and its group where the one above does.
    pub(super) fn prime_levels(&mut self, id: TaskId, vruntime: Vruntime, first: First) {
        let (cpu, group) = (self.fair.entity(id).cpu, self.fair.group_of(id));
        if group != GroupId::ROOT && self.levels.primed.insert((group, cpu)) {
            self.fair.restore_group_zero(group, cpu, vruntime);
        }
        let above = match first {
            First::Probed { probe, .. } => probe.group.map(|group| Vruntime(group.vruntime)),
            _ => None,
        };
        let root = if group == GroupId::ROOT { Some(vruntime) } else { above };
        if let Some(root) = root {
            if !std::mem::replace(&mut self.cpus[cpu.index()].primed, true) {
                self.fair.restore_min_vruntime(cpu, root);
            }
        }
    }

    /// Where a task is when it is first seen: as the header says, or with those who show the same group.
    pub(super) fn home_of(&mut self, pid: Pid, shown: Option<Address>) -> Home {
        let shown = shown.filter(|_| self.levels.in_use);
        match (self.homes.find(pid).cloned(), shown) {
            (Some(home), Some(address)) => {
                self.levels.homes.insert(address.at, home.clone());
                self.name_group(&home, address);
                home
            }
            (Some(home), None) => home,
            (None, Some(address)) if !address.is_root => {
                self.levels.homes.get(&address.at).cloned().unwrap_or(Home::Shown(address.at))
            }
            (None, _) => Home::Root,
        }
    }

    /// A task that the header knows shows whose group one was that only probes told of.
    fn name_group(&mut self, home: &Home, address: Address) {
        if let (Some(group), false) = (self.groups.remove(&Home::Shown(address.at)), self.groups.contains_key(home)) {
            self.groups.insert(home.clone(), group);
            if let Some(shares) = self.homes.shares(home) {
                self.fair.restore_shares(group, shares);
            }
        }
    }

    /// The load of a queue was brought up to date: on its CPU's way through all of them, or by an operation that the model
    /// does itself, at the same time of the clock.
    pub(super) fn age_one(&mut self, cpu: CpuId, at: Nanos, state: &AgedState, (tells, in_task): (bool, bool)) {
        let home = self.levels.homes.get(&state.group.at).cloned().unwrap_or(Home::Shown(state.group.at));
        let Some(group) = self.groups.get(&home).copied() else { return };
        let own = in_task && self.fair.curr(cpu).is_some_and(|curr| self.fair.group_of(curr) == group);
        if self.levels.unloaded.remove(&(group, cpu)) {
            let (load, told) = (state.queue.load, (state.told, state.queue.told_at));
            return self.fair.restore_group_load(group, cpu, load, told, state.all);
        }
        if (tells || self.levels.in_use) && !own {
            self.fair.update_blocked_group(group, cpu, at);
        }
    }

    /// What the queue told its group, and the group's load: inputs, where probes show them.
    pub(super) fn be_told(&mut self, address: u64, cpu: CpuId, next: Told) {
        let home = self.levels.homes.get(&address).cloned().unwrap_or(Home::Shown(address));
        let Some(group) = self.groups.get(&home).copied().filter(|_| self.levels.in_use) else { return };
        let now = self.clock(cpu);
        let told = next.told.unwrap_or(self.fair.group_rq(group, cpu).pelt.tg_load_avg_contrib);
        let before = self.fair.group(group).load.load_avg;
        let mut all = next.all.unwrap_or(before);
        // Another CPU may have told in between: the weight shows which of both was read.
        if let Some((load, weight)) = next.weighs {
            let shares = self.fair.group(group).shares as i64;
            let queued = (self.fair.group_rq(group, cpu).load.weight >> 10) as i64;
            let weighs = |all: i64, load: i64| {
                let total = all - told as i64 + load;
                (total > 0).then(|| (shares.wrapping_mul(load) / total).min(shares)) == Some(weight as i64)
            };
            let fits = |all: i64| [load as i64, queued].into_iter().any(|load| weighs(all, load));
            if !fits(all) && fits(before) {
                all = before;
            }
        }
        self.fair.restore_told(group, cpu, (told, now), all);
    }

    /// A session that began within the trace is known by its address from the first probe of one of its tasks.
    pub(super) fn show_address(&mut self, id: TaskId, address: Address) {
        let group = self.fair.group_of(id);
        if !self.levels.in_use || address.is_root || group == GroupId::ROOT {
            return;
        }
        let shown = Home::Shown(address.at);
        let home = self.levels.homes.get(&address.at).unwrap_or(&shown);
        if self.groups.get(home) != Some(&group) {
            self.levels.homes.insert(address.at, shown.clone());
            self.groups.insert(shown, group);
        }
    }

    /// A record is missing: nothing on the CPU is as the kernel has it until probes show it again.
    pub(super) fn take_again(&mut self, cpu: CpuId, now: Nanos) {
        if !self.levels.in_use {
            return;
        }
        for group in self.groups.values().copied() {
            self.levels.unknown.insert((group, cpu));
            self.levels.unloaded.insert((group, cpu));
            self.levels.partial.insert((group, cpu));
        }
        self.levels.partial.insert((GroupId::ROOT, cpu));
        for member in self.members.values_mut().filter(|member| self.fair.entity(member.id).cpu == cpu) {
            member.known = false;
        }
        for id in self.fair.cfs_tasks(cpu).collect::<Vec<_>>() {
            let gone = Dequeue { sleep: true, special: true, ..Dequeue::default() };
            self.fair.dequeue_task(cpu, id, gone, now);
        }
    }

    /// A task is about to be queued where nobody knows where the queue stands: where it is placed, and its group, will show.
    pub(super) fn arrives_unknown(&mut self, id: TaskId, cpu: CpuId) {
        if !self.levels.in_use {
            return;
        }
        let mut group = self.fair.group_of(id);
        if self.levels.partial.contains(&(group, cpu)) {
            self.members.entry(self.pid(id)).and_modify(|member| member.known = false);
        }
        while group != GroupId::ROOT {
            let above = self.fair.group(group).parent;
            let placed = self.fair.group_entity(group, cpu).is_some_and(|se| !se.on_rq);
            if placed && self.levels.partial.contains(&(above, cpu)) {
                self.levels.unknown.insert((group, cpu));
            }
            group = above;
        }
    }

    /// A task fell asleep on a queue that was not whole: the lag it takes along, and its group's, are not the kernel's.
    pub(super) fn left_unknown(&mut self, id: TaskId) {
        if !self.levels.in_use {
            return;
        }
        let (cpu, mut group) = (self.fair.entity(id).cpu, self.fair.group_of(id));
        self.members.entry(self.pid(id)).and_modify(|member| member.known = false);
        while group != GroupId::ROOT {
            let left = self.fair.group_entity(group, cpu).is_some_and(|se| !se.on_rq || se.sched_delayed);
            if left && self.levels.partial.contains(&(self.fair.group(group).parent, cpu)) {
                self.levels.unknown.insert((group, cpu));
            }
            group = self.fair.group(group).parent;
        }
    }

    /// Whether everyone on a queue is as the kernel showed.
    fn all_shown(&self, group: GroupId, cpu: CpuId) -> bool {
        let mut known = self.fair.cfs_tasks(cpu).filter(|id| self.fair.group_of(*id) == group);
        let below = |(of, on): &&Level| *on == cpu && *of != group && self.fair.group(*of).parent == group;
        let queued = |(of, on): &Level| self.fair.group_entity(*of, *on).is_some_and(|se| se.on_rq);
        known.all(|id| self.members.get(&self.pid(id)).is_some_and(|member| member.known))
            && !self.levels.unknown.iter().filter(below).any(queued)
    }

    fn complete(&mut self, group: GroupId, cpu: CpuId, sums: Sums) {
        let all = self.fair.group_rq(group, cpu).nr_running == sums.count;
        if all && self.all_shown(group, cpu) && self.levels.partial.remove(&(group, cpu)) {
            self.fair.restore_group_zero(group, cpu, Vruntime(sums.zero));
            if group == GroupId::ROOT {
                let queue = &mut self.cpus[cpu.index()];
                (queue.zero_taken, queue.primed, queue.settled) = (true, true, true);
            }
        }
    }
}
