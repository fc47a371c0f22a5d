//! Groups that existed before the recording: the state of their entities and queues is taken from the trace.
//!
//! A probe of a task also shows the entity of its group on the CPU. What is shown first is taken, and so is the load of
//! a queue. A queue is complete once the model has as many entities on it as the kernel shows: until then tasks are on
//! it that no record has named yet, and nothing that depends on it is judged.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_model::{CpuId, Nanos, Pid, TaskId, Vruntime};
use schedlab_policy::fair::{Contribution, Dequeue, GroupId, GroupState, LoadState};

use super::Model;
use crate::groups::GroupName;
use crate::inputs::InputKind;
use crate::operation::{CfsRqUpdate, First};
use crate::trace::{Address, GroupEntity, Point, Probe, QueueLoad, Sums};

/// A queue: that of a group on a CPU.
type CfsRq = (GroupId, CpuId);

/// Which groups and queues are as the kernel has them.
#[derive(Clone, Default, Debug)]
pub(super) struct Coverage {
    /// Tasks existed before the recording, and the trace shows state.
    preexisting: bool,
    /// Queues whose group entity is not the kernel's yet.
    unknown_entity: BTreeSet<CfsRq>,
    /// Queues whose load average is not.
    unknown_load: BTreeSet<CfsRq>,
    /// Queues that may have more entities than the model has.
    incomplete: BTreeSet<CfsRq>,
    /// Queues whose position in virtual time was set from a task.
    positioned: BTreeSet<CfsRq>,
    /// Queues whose zero point, entity and load average were taken from the trace before.
    was_complete: BTreeSet<CfsRq>,
    entity_taken: BTreeSet<CfsRq>,
    load_taken: BTreeSet<CfsRq>,
    /// The first probe of queues that were not empty when the recording began, and when its task was added.
    first_shown: BTreeMap<CfsRq, (Nanos, (GroupEntity, Option<QueueLoad>))>,
    /// Groups by their addresses.
    by_address: BTreeMap<u64, GroupName>,
}

impl Coverage {
    /// `preexisting`: tasks existed before the recording, and the trace shows state.
    pub(super) fn new(preexisting: bool, cpus: usize) -> Coverage {
        let mut coverage = Coverage { preexisting, ..Coverage::default() };
        coverage.add_group(GroupId::ROOT, cpus);
        coverage.unknown_entity.clear();
        coverage.unknown_load.clear();
        coverage
    }

    pub(super) fn is_preexisting(&self) -> bool {
        self.preexisting
    }

    /// A group of before the recording.
    pub(super) fn add_group(&mut self, group: GroupId, cpus: usize) {
        if self.preexisting {
            let all = (0..cpus).map(|cpu| (group, CpuId(cpu as u32)));
            self.unknown_entity.extend(all.clone());
            self.unknown_load.extend(all.clone());
            self.incomplete.extend(all);
        }
    }
}

impl Model {
    /// Whether every queue from the task's to the root is as the kernel has it.
    pub(super) fn queues_known(&self, id: TaskId) -> bool {
        if self.coverage.unknown_entity.is_empty() && self.coverage.incomplete.is_empty() {
            return true;
        }
        let cpu = self.sched.cpu_of(id);
        let mut group = self.fair().group_of(id);
        loop {
            let queue = (group, cpu);
            if self.coverage.unknown_entity.contains(&queue) || self.coverage.incomplete.contains(&queue) {
                return false;
            }
            if group == GroupId::ROOT {
                return true;
            }
            group = self.fair().group(group).parent;
        }
    }

    /// Whether the model has every entity of a queue, so that its sums can be compared.
    pub(super) fn is_complete(&self, group: GroupId, cpu: CpuId) -> bool {
        !self.coverage.incomplete.contains(&(group, cpu))
    }

    /// A probe of a task shows its group's entity and queues.
    pub(super) fn read_group_state(&mut self, id: TaskId, probe: &Probe) {
        if !matches!(probe.point, Point::Woken | Point::Next) {
            return;
        }
        let (cpu, group) = (self.sched.cpu_of(id), self.fair().group_of(id));
        if let Some(shown) = probe.group.filter(|_| group != GroupId::ROOT) {
            if self.coverage.unknown_entity.remove(&(group, cpu)) {
                self.take_group_state((group, cpu), shown, probe.queue_load);
                self.coverage.unknown_load.remove(&(group, cpu));
            }
            if let Some(sums) = shown.sums {
                self.complete_queue(self.fair().group(group).parent, cpu, sums);
            }
        }
        if let Some(sums) = probe.sums {
            self.complete_queue(self.competes_in(id), cpu, sums);
        }
    }

    /// The same of a task that is queued when the recording begins, from the first probe that shows it.
    pub(super) fn read_initial_group_state(&mut self, id: TaskId, probe: &Probe) {
        let queue = (self.fair().group_of(id), self.sched.cpu_of(id));
        if !self.coverage.unknown_entity.contains(&queue) {
            return;
        }
        let Some(shown) = probe.group else { return };
        // Tasks that are added beside it at the same moment add to the group's weight too.
        let (when, first) = *self.coverage.first_shown.entry(queue).or_insert((self.now, (shown, probe.queue_load)));
        if when == self.now {
            self.take_group_state(queue, first.0, first.1);
        }
    }

    fn take_group_state(&mut self, (group, cpu): CfsRq, shown: GroupEntity, queue: Option<QueueLoad>) {
        let state = GroupState { state: shown.state, weight: shown.weight, exec_start: shown.exec_start };
        self.sched.follow().restore().group(group, cpu, state);
        let again = !self.coverage.entity_taken.insert((group, cpu));
        self.tally.inputs.take(if again { InputKind::GroupStateAgain } else { InputKind::GroupState });
        let Some(queue) = queue else { return };
        let contribution = Contribution {
            tg_load_avg_contrib: shown.contrib,
            last_update_tg_load_avg: queue.tg_updated_at,
            load_avg: shown.tg_load_avg,
        };
        // If the queue's load was shown before, only what it has reported to the group since is unknown.
        match self.coverage.unknown_load.contains(&(group, cpu)) {
            true => self.take_group_load((group, cpu), queue.load, contribution),
            false => self.sched.follow().restore().contribution(group, cpu, contribution),
        }
    }

    fn take_group_load(&mut self, (group, cpu): CfsRq, load: LoadState, contribution: Contribution) {
        self.sched.follow().restore().group_load(group, cpu, load);
        self.sched.follow().restore().contribution(group, cpu, contribution);
        let again = !self.coverage.load_taken.insert((group, cpu));
        self.tally.inputs.take(if again { InputKind::GroupLoadAgain } else { InputKind::GroupLoad });
    }

    /// A task that is about to be queued gives the position of its queue in virtual time, and its group that of the
    /// queue above.
    pub(super) fn position_queues(&mut self, id: TaskId, vruntime: Vruntime, first: First) {
        let (cpu, group) = (self.sched.cpu_of(id), self.fair().group_of(id));
        if group != GroupId::ROOT && self.coverage.positioned.insert((group, cpu)) {
            self.sched.follow().restore().min_vruntime(group, cpu, vruntime);
            self.tally.inputs.take(InputKind::QueuePosition);
        }
        let above = match first {
            First::Probed { probe, .. } => probe.group.and_then(|group| group.state).map(|state| state.vruntime),
            _ => None,
        };
        let root = if group == GroupId::ROOT { Some(vruntime) } else { above };
        if let Some(root) = root {
            if !std::mem::replace(&mut self.cpus[cpu.index()].primed, true) {
                self.take_position(cpu, root);
            }
        }
    }

    /// The group of a task at its first record: that of the header, or that of tasks which show the same address.
    pub(super) fn initial_group_of(&mut self, pid: Pid, shown: Option<Address>) -> GroupName {
        let shown = shown.filter(|_| self.coverage.preexisting);
        match (self.initial.find(pid).cloned(), shown) {
            (Some(group), Some(address)) => {
                self.coverage.by_address.insert(address.at, group.clone());
                self.identify_group(&group, address);
                group
            }
            (Some(group), None) => group,
            (None, Some(address)) if !address.is_root => self.group_at(address.at),
            (None, _) => GroupName::Root,
        }
    }

    pub(super) fn group_at(&self, address: u64) -> GroupName {
        self.coverage.by_address.get(&address).cloned().unwrap_or(GroupName::Probed(address))
    }

    /// A task that the header lists shows which group has an address that only probes showed so far.
    fn identify_group(&mut self, name: &GroupName, address: Address) {
        let probed = self.groups.remove(&GroupName::Probed(address.at));
        if let (Some(group), false) = (probed, self.groups.contains_key(name)) {
            self.groups.insert(name.clone(), group);
            if let Some(shares) = self.initial.shares(name) {
                self.sched.follow().restore().shares(group, shares);
            }
        }
    }

    /// The load average of a queue was updated: by the balancer's pass over all of them, or by an operation that the
    /// model does itself at the same time of the clock.
    pub(super) fn update_cfs_rq_load(&mut self, update: &CfsRqUpdate) {
        let CfsRqUpdate { cpu, at, ref state, in_task } = *update;
        let group = self.groups.get(&self.group_at(state.group.at)).copied();
        let Some(group) = group.filter(|_| self.coverage.preexisting) else { return };
        let own = in_task && self.sched.curr(cpu).is_some_and(|curr| self.fair().group_of(curr) == group);
        if self.coverage.unknown_load.remove(&(group, cpu)) {
            let contribution = Contribution {
                tg_load_avg_contrib: state.contrib,
                last_update_tg_load_avg: state.queue.tg_updated_at,
                load_avg: state.tg_load_avg,
            };
            return self.take_group_load((group, cpu), state.queue.load, contribution);
        }
        if !own {
            self.sched.follow().update_blocked_group(group, cpu, at);
        }
    }

    /// The first probe of one of its tasks shows the address of a group that began within the trace.
    pub(super) fn read_address(&mut self, id: TaskId, address: Address) {
        let group = self.fair().group_of(id);
        if address.is_root || group == GroupId::ROOT {
            return;
        }
        if self.groups.get(&self.group_at(address.at)) != Some(&group) {
            let probed = GroupName::Probed(address.at);
            self.coverage.by_address.insert(address.at, probed.clone());
            self.groups.insert(probed, group);
        }
    }

    /// A record is missing: nothing on the CPU is known to be as the kernel has it until probes show it again.
    pub(super) fn invalidate_cpu(&mut self, cpu: CpuId, now: Nanos) {
        if !self.coverage.preexisting {
            return;
        }
        for group in self.groups.values().copied() {
            self.coverage.unknown_entity.insert((group, cpu));
            self.coverage.unknown_load.insert((group, cpu));
            self.coverage.incomplete.insert((group, cpu));
        }
        self.coverage.incomplete.insert((GroupId::ROOT, cpu));
        for task in self.tasks.values_mut().filter(|task| self.sched.cpu_of(task.id) == cpu) {
            task.known = false;
        }
        for id in self.fair().cfs_tasks(cpu).collect::<Vec<_>>() {
            let special = Dequeue { sleep: true, special: true, ..Dequeue::default() };
            self.sched.dequeue_task(cpu, id, special, now);
        }
    }

    /// A task is about to be enqueued on a queue that is not complete: where it is placed will show, and where its
    /// group is.
    pub(super) fn enqueued_on_incomplete(&mut self, id: TaskId, cpu: CpuId) {
        if !self.coverage.preexisting {
            return;
        }
        let mut group = self.fair().group_of(id);
        if self.coverage.incomplete.contains(&(group, cpu)) {
            self.tasks.modify(self.pid(id), |task| task.known = false);
        }
        while group != GroupId::ROOT {
            let above = self.fair().group(group).parent;
            let placed = self.fair().group_entity(group, cpu).is_some_and(|se| !se.on_rq);
            if placed && self.coverage.incomplete.contains(&(above, cpu)) {
                self.coverage.unknown_entity.insert((group, cpu));
            }
            group = above;
        }
    }

    /// A task went to sleep on a queue that is not complete: its lag, and its group's, are not the kernel's.
    pub(super) fn dequeued_from_incomplete(&mut self, id: TaskId) {
        if !self.coverage.preexisting {
            return;
        }
        let (cpu, mut group) = (self.sched.cpu_of(id), self.fair().group_of(id));
        self.tasks.modify(self.pid(id), |task| task.known = false);
        while group != GroupId::ROOT {
            let left = self.fair().group_entity(group, cpu).is_some_and(|se| !se.on_rq || se.sched_delayed);
            if left && self.coverage.incomplete.contains(&(self.fair().group(group).parent, cpu)) {
                self.coverage.unknown_entity.insert((group, cpu));
            }
            group = self.fair().group(group).parent;
        }
    }

    /// Whether every entity on a queue is as the kernel has it.
    fn all_entities_known(&self, group: GroupId, cpu: CpuId) -> bool {
        let mut tasks = self.fair().cfs_tasks(cpu).filter(|id| self.fair().group_of(*id) == group);
        let below = |(of, on): &&CfsRq| *on == cpu && *of != group && self.fair().group(*of).parent == group;
        let queued = |(of, on): &CfsRq| self.fair().group_entity(*of, *on).is_some_and(|se| se.on_rq);
        tasks.all(|id| self.tasks.of(id).is_some_and(|task| task.known))
            && !self.coverage.unknown_entity.iter().filter(below).any(queued)
    }

    fn complete_queue(&mut self, group: GroupId, cpu: CpuId, sums: Sums) {
        let all = self.fair().group_rq(group, cpu).nr_competing(&self.fair().config) == sums.count;
        if all && self.all_entities_known(group, cpu) && self.coverage.incomplete.remove(&(group, cpu)) {
            let again = !self.coverage.was_complete.insert((group, cpu));
            self.sched.follow().restore().min_vruntime(group, cpu, Vruntime(sums.zero));
            self.tally.inputs.take(if again { InputKind::QueuePositionAgain } else { InputKind::QueuePosition });
            if group == GroupId::ROOT {
                self.note_zero_taken(cpu);
            }
        }
    }
}
