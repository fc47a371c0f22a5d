//! The cache lines of task groups: the sum that all CPUs share, and each CPU's own queue of the group.
//!
//! An operation on a task in a group touches, at every level, the group's queue on that CPU and the entity that stands for
//! it. `update_cfs_group` also reads the group's sum (`tg->load_avg`), and `update_tg_load_avg` changes it by an atomic
//! operation, at a place that the scheduler records.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_policy::fair::GroupId;
use schedlab_trace::{Lock, Sink};

use super::contention::lock_waited;
use super::state::Kernel;
use crate::machine::{touched, Changed, Lines, Machine, Stall};
use crate::run::Run;

/// The lines of one group.
#[derive(Clone, Debug)]
pub struct GroupLines {
    load_avg: Changed,
    /// By CPU.
    queues: Vec<Lines>,
}

impl GroupLines {
    /// Lines that no CPU has touched, of every group.
    pub fn of_all(nr_groups: usize, nr_cpus: usize) -> Vec<GroupLines> {
        vec![GroupLines { load_avg: Changed::default(), queues: vec![Lines::default(); nr_cpus] }; nr_groups]
    }
}

/// CPU `this` reads or changes the sums of groups, as the scheduler has done since the last call: charges the time.
#[inline]
pub fn charge_group_loads<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, this: CpuId) {
    let Kernel { sched, group_lines, .. } = kernel;
    let Some(accesses) = sched.fair.group_loads().drain() else { return };
    let at = run.now + machine.sending_delay(this);
    let mut stall = Stall::default();
    for access in accesses {
        let Some(GroupLines { load_avg, .. }) = group_lines.get_mut(access.group.index()) else { continue };
        if access.write {
            stall.atomic(machine, this, load_avg, at, touched::GROUP_LOAD);
        } else {
            stall.read(machine, this, load_avg, at, touched::GROUP_LOAD);
        }
    }
    machine.charge_stall(this, stall.whole());
    lock_waited(run, kernel, this, Lock::Line, stall.waits);
}

/// CPU `this` operates on a task of `cpu`: the time for the lines of the queues above the task, in ns.
#[inline]
pub fn write_group_queues(machine: &mut Machine, kernel: &mut Kernel, this: CpuId, cpu: CpuId, task: TaskId) -> Nanos {
    if kernel.group_lines.is_empty() {
        return 0;
    }
    let mut time = 0;
    let mut group = kernel.sched.fair.group_of(task);
    while group != GroupId::ROOT {
        if let Some(lines) = kernel.group_lines.get_mut(group.index()) {
            time += machine.write_lines(this, &mut lines.queues[cpu.index()], touched::GROUP_QUEUE);
        }
        group = kernel.sched.fair.group(group).parent;
    }
    time
}
