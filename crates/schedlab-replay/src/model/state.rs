//! State that probes show, compared to the nanosecond: an entity's vruntime, deadline and lag, its queue's sums.
//!
//! A queue is compared once everyone on it is known; its zero point, which no rule tells where a recording begins, is
//! taken over once, then. `sched_waking` comes without the queue's lock: it shows sleepers only.

use schedlab_model::{CpuId, Pid, TaskId, Vruntime};
use schedlab_policy::fair::GroupId;

use super::show::Shown;
use super::Model;
use crate::operation::First;
use crate::report::StateMiss;
use crate::step::{InGroup, Point, Probe, Sums};
use crate::tally::Field;

/// The model's state where an accounting began or ended.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    pid: Pid,
    vruntime: i64,
    deadline: i64,
    lag: i64,
    sums: Option<Sums>,
}

impl Model {
    /// A probe. What a task carries from its sleep is taken over once; anything later is compared.
    pub(super) fn show(&mut self, probe: &Probe, charged: bool) {
        let Some(member) = self.members.get_mut(&probe.pid) else { return self.show_idle(probe) };
        member.shown = Shown { vruntime: Some(probe.vruntime), deadline: Some(probe.deadline) };
        let (id, known) = (member.id, member.known);
        let on_rq = self.fair.entity(id).on_rq;
        if let Some(address) = probe.address {
            self.show_address(id, address);
        }
        if known && probe.point != Point::Runtime {
            self.show_levels(id, probe);
        }
        match probe.point {
            Point::Waking if !known && !probe.queued && !on_rq => {
                let mut state = self.fair.task_state(id);
                (state.vlag, state.slice) = (probe.lag, probe.slice);
                self.fair.restore_task(id, state);
                if let Some(load) = probe.load {
                    self.fair.restore_load(id, load);
                }
            }
            Point::Woken | Point::Next if !known => {
                self.take_over(probe.pid, Some(First::Probed { probe: *probe, ran: 0 }));
                self.show_levels(id, probe);
            }
            _ if known && self.eevdf => self.compare_state(id, probe, charged),
            _ => {}
        }
    }

    fn compare_state(&mut self, id: TaskId, probe: &Probe, charged: bool) {
        let cpu = self.fair.entity(id).cpu;
        let snapshot = match probe.point {
            // It may still be on its way off its queue.
            Point::Waking if self.fair.curr(cpu) == Some(id) && self.at != cpu => return,
            Point::Waking if !probe.queued => Snapshot { sums: None, ..self.snapshot(cpu, id) },
            Point::Woken | Point::Next | Point::Prev => {
                if self.fair.group_of(id) == GroupId::ROOT {
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
            self.count(cpu, probe, &snapshot);
        }
    }

    fn count(&mut self, cpu: CpuId, probe: &Probe, model: &Snapshot) {
        let mut fields = vec![
            (Field::Vruntime, probe.vruntime as i64, model.vruntime),
            (Field::Deadline, probe.deadline as i64, model.deadline),
            (Field::Lag, probe.lag, model.lag),
        ];
        fields.extend(probe.sums.zip(model.sums).into_iter().flat_map(|(kernel, model)| sums(kernel, model)));
        // Those above are charged behind this record.
        let group = probe.group.filter(|_| probe.point != Point::Runtime);
        if let (Some(kernel), Some(id)) = (group, self.id(probe.pid)) {
            self.compare_group(cpu, id, &kernel, &mut fields);
        }
        self.tally.state(at(self.now, cpu, probe), &fields);
    }

    /// The entity that stands for a task's group, the queue it is on, and the loads that make its weight.
    fn compare_group(&self, cpu: CpuId, id: TaskId, kernel: &InGroup, fields: &mut Vec<(Field, i64, i64)>) {
        let group = self.fair.group_of(id);
        let Some(se) = self.fair.group_entity(group, cpu) else { return };
        fields.extend([
            (Field::GroupVruntime, kernel.vruntime as i64, se.vruntime.0 as i64),
            (Field::GroupDeadline, kernel.deadline as i64, se.deadline.0 as i64),
            (Field::GroupLag, kernel.lag, se.vlag),
            (Field::GroupWeight, kernel.weight as i64, se.load.weight as i64),
        ]);
        let above = self.fair.group(group).parent;
        if let Some((kernel, model)) = kernel.sums.zip(self.sums_of(cpu, above)) {
            let names = [Field::AboveZero, Field::AboveSum, Field::AboveWeight, Field::AboveCount];
            fields.extend(sums(kernel, model).into_iter().zip(names).map(|((_, k, m), name)| (name, k, m)));
        }
        // With one CPU the weight is the group's shares, whatever the loads are.
        if self.cpus.len() > 1 {
            let queue = &self.fair.group_rq(group, cpu).pelt;
            fields.push((Field::Load, kernel.load as i64, queue.avg.load_avg as i64));
            // On a machine in use these are inputs.
            let computed = [
                (Field::Told, kernel.told as i64, queue.tg_load_avg_contrib as i64),
                (Field::LoadOfAll, kernel.all, self.fair.group(group).load.load_avg),
            ];
            fields.extend(computed.into_iter().filter(|_| !self.levels.in_use()));
        }
    }

    /// `sched_switch` to idle shows the queue that is left.
    fn show_idle(&mut self, probe: &Probe) {
        let cpu = self.at;
        if probe.pid != 0 || probe.point != Point::Next || !self.eevdf {
            return;
        }
        self.take_zero(cpu, probe);
        let fields: Vec<_> =
            probe.sums.zip(self.sums(cpu)).map(|(kernel, model)| sums(kernel, model)).into_iter().flatten().collect();
        self.tally.state(at(self.now, cpu, probe), &fields);
    }

    pub(super) fn snapshot(&self, cpu: CpuId, id: TaskId) -> Snapshot {
        let se = self.fair.entity(id);
        Snapshot {
            pid: self.pid(id),
            vruntime: se.vruntime.0 as i64,
            deadline: se.deadline.0 as i64,
            lag: se.vlag,
            sums: self.sums_of(cpu, self.fair.group_of(id)),
        }
    }

    /// A CPU's own queue's sums, once they follow from what was shown.
    fn sums(&self, cpu: CpuId) -> Option<Sums> {
        self.sums_of(cpu, GroupId::ROOT)
    }

    /// The same of any group's queue; those of sessions begin within the trace.
    fn sums_of(&self, cpu: CpuId, group: GroupId) -> Option<Sums> {
        if group == GroupId::ROOT && !self.cpus[cpu.index()].zero_taken || !self.is_whole(group, cpu) {
            return None;
        }
        let (sums, zero) = (self.fair.group_sums(group, cpu), self.fair.group_rq(group, cpu).min_vruntime.0);
        Some(Sums { zero, sum: sums.avg_vruntime, weight: sums.avg_load as u64, count: sums.nr_running })
    }

    fn take_zero(&mut self, cpu: CpuId, probe: &Probe) {
        let wanted = !self.cpus[cpu.index()].zero_taken && self.is_whole(GroupId::ROOT, cpu);
        let Some(sums) = probe.sums.filter(|_| wanted) else { return };
        let known = self.fair.curr(cpu).into_iter().chain(self.fair.queued(cpu)).all(|id| self.known(id));
        if known {
            self.fair.restore_min_vruntime(cpu, Vruntime(sums.zero));
            let queue = &mut self.cpus[cpu.index()];
            (queue.zero_taken, queue.primed, queue.settled) = (true, true, true);
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
