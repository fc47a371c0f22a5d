//! State that probes show, compared to the nanosecond: an entity's vruntime, deadline and lag, and its queue's sums.
//!
//! A queue is compared once all tasks on it are known; its zero point, which nothing determines at the beginning of a
//! recording, is taken from the trace then. `sched_waking` is emitted without the runqueue's lock: of that event only
//! sleeping tasks count.

use schedlab_model::{CpuId, Nanos, Pid, TaskId, Vruntime};
use schedlab_policy::fair::{GroupId, TaskState};
use schedlab_policy::{KernelConfig, SliceSource};

use super::show::Shown;
use super::Model;
use crate::inputs::InputKind;
use crate::operation::First;
use crate::report::StateMiss;
use crate::tally::Field;
use crate::trace::{GroupEntity, Point, Probe, Sums};

/// The model's state before or after a charge.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    pid: Pid,
    vruntime: i64,
    deadline: i64,
    lag: i64,
    sums: Option<Sums>,
}

impl Model {
    /// A probe. A sleeping task's state is taken once; after that, state is compared.
    pub(super) fn probe(&mut self, probe: &Probe, charged: bool) {
        let Some(task) = self.tasks.get_mut(&probe.pid) else { return self.probe_idle(probe) };
        task.shown = Shown { vruntime: Some(probe.vruntime), deadline: Some(probe.deadline) };
        let (id, known) = (task.id, task.known);
        let on_rq = self.sched.on_rq(id);
        if let Some(address) = probe.address {
            self.read_address(id, address);
        }
        if known && probe.point != Point::Runtime {
            self.read_group_state(id, probe);
        }
        match probe.point {
            Point::Waking if !known && !probe.queued && !on_rq => {
                let mut state = self.fair().view().task_state(id);
                (state.vlag, state.slice) = (probe.lag, probe.slice);
                self.sched.follow().restore().task(id, state);
                self.tally.inputs.take(InputKind::SleepingState);
                if let Some(load) = probe.load {
                    self.sched.follow().restore().load(id, load);
                    self.tally.inputs.take(InputKind::TaskLoad);
                }
            }
            Point::Woken | Point::Next if !known => {
                self.take_state(probe.pid, Some(First::Probed { probe: *probe, ran: 0 }));
                self.read_group_state(id, probe);
            }
            _ if known && self.eevdf => self.compare_state(id, probe, charged),
            _ => {}
        }
    }

    /// The slice of a task that is about to be placed, where slices are set by the fork. A task that was forked before
    /// all CPUs were online has that of fewer CPUs; if there was one CPU, so has every task with a lower pid, forked
    /// before it.
    pub(crate) fn take_slice(&mut self, id: TaskId, slice: Option<Nanos>) {
        if !self.slices_are_set_by_fork() {
            return;
        }
        let Some(slice) = slice.filter(|slice| *slice != self.fair().view().task_state(id).slice) else { return };
        self.set_slice(id, slice);
        if slice == self.base_slice(1) {
            self.booted = self.booted.max(Some(self.pid(id)));
            let earlier = self.tasks.values().map(|task| task.id).filter(|other| self.pid(*other) < self.pid(id));
            let before: Vec<TaskId> = earlier.collect();
            before.into_iter().for_each(|id| self.set_slice(id, slice));
        }
    }

    /// The slice of a task that no selection has shown yet: if it was forked during boot, that of one CPU.
    pub(super) fn take_slice_of_boot(&mut self, pid: Pid, id: TaskId) {
        if self.booted.is_some_and(|last| pid < last) {
            self.set_slice(id, self.base_slice(1));
        }
    }

    /// The task was forked while `cpus` CPUs were online; the slice follows where it is set by the fork.
    pub(super) fn forked_with(&mut self, pid: Pid, cpus: usize) {
        if let Some(id) = self.task(pid).filter(|_| self.slices_are_set_by_fork()) {
            self.set_slice(id, self.base_slice(cpus));
        }
    }

    fn slices_are_set_by_fork(&self) -> bool {
        self.fair().config.rules.slice == SliceSource::LatencyNice
    }

    fn base_slice(&self, cpus: usize) -> Nanos {
        let config = &self.fair().config;
        KernelConfig::new(config.version, cpus, config.hz()).knobs.base_slice
    }

    fn set_slice(&mut self, id: TaskId, slice: Nanos) {
        let state = self.fair().view().task_state(id);
        self.sched.follow().restore().task(id, TaskState { slice, ..state });
        self.tally.inputs.take(InputKind::SleepingState);
    }

    fn compare_state(&mut self, id: TaskId, probe: &Probe, charged: bool) {
        let left_class = self.tasks.get(&probe.pid).is_some_and(|task| task.left_class);
        // The model does not follow a task of another class from CPU to CPU.
        let cpu = if left_class { self.at } else { self.sched.cpu_of(id) };
        let snapshot = match probe.point {
            // It may still be blocking.
            Point::Waking if self.sched.curr(cpu) == Some(id) && self.at != cpu => return,
            Point::Waking if !probe.queued => Snapshot { sums: None, ..self.snapshot(cpu, id) },
            Point::Woken if left_class => Snapshot { sums: None, ..self.snapshot(cpu, id) },
            Point::Woken | Point::Next | Point::Prev => {
                if self.competes_in(id) == GroupId::ROOT {
                    self.take_zero(cpu, probe);
                }
                self.snapshot(cpu, id)
            }
            Point::Runtime => {
                let Some((before, after)) = self.cpus[cpu.index()].charge.take() else { return };
                if charged {
                    after
                } else {
                    before
                }
            }
            Point::Waking | Point::Other => return,
        };
        if snapshot.pid == probe.pid {
            self.count_state(cpu, probe, &snapshot);
        }
    }

    fn count_state(&mut self, cpu: CpuId, probe: &Probe, model: &Snapshot) {
        let mut fields = vec![
            (Field::Vruntime, probe.vruntime as i64, model.vruntime),
            (Field::Deadline, probe.deadline as i64, model.deadline),
            (Field::Lag, probe.lag, model.lag),
        ];
        // The weight by which a task competes. At a charge it has that of before the tick, the pick or the enqueue
        // around it.
        let weight = probe.weight.filter(|_| probe.point != Point::Runtime);
        if let (Some(kernel), Some(id)) = (weight, self.task(probe.pid)) {
            fields.push((Field::HWeight, kernel as i64, self.fair().entity(id).h_load.weight as i64));
        }
        fields.extend(probe.sums.zip(model.sums).into_iter().flat_map(|(kernel, model)| sums(kernel, model)));
        // The levels above are charged after this record.
        let group = probe.group.filter(|_| probe.point != Point::Runtime);
        if let (Some(kernel), Some(id)) = (group, self.task(probe.pid)) {
            self.compare_group(cpu, id, &kernel, &mut fields);
        }
        self.tally.state(at(self.now, cpu, probe), &fields);
    }

    /// The entity of a task's group, the queue that it is on, and the loads that its weight is made of.
    fn compare_group(&self, cpu: CpuId, id: TaskId, kernel: &GroupEntity, fields: &mut Vec<(Field, i64, i64)>) {
        let group = self.fair().group_of(id);
        let Some(se) = self.fair().group_entity(group, cpu) else { return };
        if let Some(state) = kernel.state {
            fields.extend([
                (Field::GroupVruntime, state.vruntime.0 as i64, se.vruntime.0 as i64),
                (Field::GroupDeadline, state.deadline.0 as i64, se.deadline.0 as i64),
                (Field::GroupLag, state.vlag, se.vlag),
            ]);
        }
        fields.push((Field::GroupWeight, kernel.weight as i64, se.load.weight as i64));
        let above = self.fair().group(group).parent;
        if let Some((kernel, model)) = kernel.sums.zip(self.sums_of(cpu, above)) {
            let names = [Field::ParentZero, Field::ParentSum, Field::ParentWeight, Field::ParentCount];
            fields.extend(sums(kernel, model).into_iter().zip(names).map(|((_, k, m), name)| (name, k, m)));
        }
        // With one CPU the weight is the group's shares, whatever the loads are.
        if self.cpus.len() > 1 {
            let queue = &self.fair().group_rq(group, cpu).pelt;
            fields.push((Field::Load, kernel.load as i64, queue.avg.load_avg as i64));
            // With groups of before the recording these are inputs.
            let computed = [
                (Field::TgLoadContrib, kernel.contrib as i64, queue.tg_load_avg_contrib as i64),
                (Field::TgLoad, kernel.tg_load_avg, self.fair().group(group).load.load_avg),
            ];
            let runnable = kernel.runnable.into_iter().flat_map(|kernel| {
                let sum = self.fair().group(group).load.runnable_avg;
                [
                    (Field::Runnable, kernel.own as i64, queue.avg.runnable_avg as i64),
                    (Field::TgRunnableContrib, kernel.contrib as i64, queue.tg_runnable_avg_contrib as i64),
                    (Field::TgRunnable, kernel.tg_runnable_avg, sum),
                ]
            });
            fields.extend(computed.into_iter().chain(runnable).filter(|_| !self.coverage.is_preexisting()));
        }
    }

    /// A `sched_switch` to idle shows the queue that is left.
    fn probe_idle(&mut self, probe: &Probe) {
        let cpu = self.at;
        if probe.pid != 0 || probe.point != Point::Next || !self.eevdf {
            return;
        }
        self.take_zero(cpu, probe);
        let both = probe.sums.zip(self.sums_of(cpu, GroupId::ROOT));
        let fields: Vec<_> = both.map(|(kernel, model)| sums(kernel, model)).into_iter().flatten().collect();
        self.tally.state(at(self.now, cpu, probe), &fields);
    }

    pub(super) fn snapshot(&self, cpu: CpuId, id: TaskId) -> Snapshot {
        let se = self.fair().entity(id);
        Snapshot {
            pid: self.pid(id),
            vruntime: se.vruntime.0 as i64,
            deadline: se.deadline.0 as i64,
            lag: se.vlag,
            sums: self.sums_of(cpu, self.competes_in(id)),
        }
    }

    /// The group on whose queue a task competes: from 7.3 on the root for every task.
    pub(super) fn competes_in(&self, id: TaskId) -> GroupId {
        match self.fair().config.rules.flat_hierarchy {
            true => GroupId::ROOT,
            false => self.fair().group_of(id),
        }
    }

    /// A queue's sums, once they follow from what was shown. Queues of autogroups begin within the trace.
    fn sums_of(&self, cpu: CpuId, group: GroupId) -> Option<Sums> {
        if group == GroupId::ROOT && !self.cpus[cpu.index()].zero_taken || !self.is_complete(group, cpu) {
            return None;
        }
        let (sums, zero) = (self.fair().view().sums(group, cpu), self.fair().group_rq(group, cpu).min_vruntime.0);
        let count = self.fair().group_rq(group, cpu).nr_competing(&self.fair().config);
        Some(Sums { zero, sum: sums.avg_vruntime, weight: sums.avg_load as u64, count })
    }

    fn take_zero(&mut self, cpu: CpuId, probe: &Probe) {
        let wanted = !self.cpus[cpu.index()].zero_taken && self.is_complete(GroupId::ROOT, cpu);
        let Some(sums) = probe.sums.filter(|_| wanted) else { return };
        let known = self.sched.curr(cpu).into_iter().chain(self.fair().view().queued(cpu)).all(|id| self.known(id));
        if known {
            self.take_position(cpu, Vruntime(sums.zero));
            self.note_zero_taken(cpu);
        }
    }
}

fn sums(kernel: Sums, model: Sums) -> [(Field, i64, i64); 4] {
    [
        (Field::Zero, kernel.zero as i64, model.zero as i64),
        (Field::Sum, kernel.sum, model.sum),
        (Field::Weight, kernel.weight as i64, model.weight as i64),
        (Field::Count, i64::from(kernel.count), i64::from(model.count)),
    ]
}

fn at(time_ns: u64, cpu: CpuId, probe: &Probe) -> StateMiss {
    let event = match probe.point {
        Point::Waking => "sched_waking",
        Point::Woken => "sched_wakeup",
        Point::Runtime => "sched_stat_runtime",
        Point::Next | Point::Prev | Point::Other => "sched_switch",
    };
    StateMiss { time_ns, cpu: cpu.0, pid: probe.pid, event, what: "", kernel: 0, model: 0 }
}
