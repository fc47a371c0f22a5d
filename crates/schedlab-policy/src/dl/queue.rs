//! The queues of a CPU (`struct dl_rq`): its tasks in the order of their deadlines, and those that could be pushed
//! away.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::Dl;
use crate::Core;

/// Tasks sorted by deadline; of equal deadlines, the one that was added first is first (`__dl_less`).
#[derive(Clone, Default, Debug)]
pub(super) struct Tree(Vec<(Nanos, TaskId)>);

impl Tree {
    /// Adds a task (`rb_add_cached`).
    fn add(&mut self, task: TaskId, deadline: Nanos) {
        let at = self.0.partition_point(|(other, _)| *other <= deadline);
        self.0.insert(at, (deadline, task));
    }

    /// Removes the task, if it is in it (`rb_erase_cached`).
    fn erase(&mut self, task: TaskId) {
        self.0.retain(|(_, other)| *other != task);
    }

    /// The earliest deadline, and whose it is.
    pub fn first(&self) -> Option<(Nanos, TaskId)> {
        self.0.first().copied()
    }

    /// The tasks, the earliest deadline first.
    pub fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.0.iter().map(|(_, task)| *task)
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.0.len() as u32
    }
}

/// A CPU's runqueue.
#[derive(Clone, Default, Debug)]
pub(super) struct DlRq {
    /// Its tasks, the running one included.
    pub root: Tree,
    /// Those that do not run and may use other CPUs.
    pub pushable_dl_tasks: Tree,
    pub curr: Option<TaskId>,
}

impl Dl {
    /// `__enqueue_dl_entity`.
    pub(super) fn __enqueue_dl_entity(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let se = self.se(task);
        se.queued = true;
        let deadline = se.deadline;
        self.rqs[cpu.index()].root.add(task, deadline);
        self.set_earliest(cpu);
        self.sync(core, cpu);
    }

    /// `__dequeue_dl_entity`.
    pub(super) fn __dequeue_dl_entity(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        if std::mem::take(&mut self.se(task).queued) {
            self.rqs[cpu.index()].root.erase(task);
            self.set_earliest(cpu);
            self.sync(core, cpu);
        }
    }

    /// Reports the earliest deadline of the CPU (`inc_dl_deadline`, `dec_dl_deadline`).
    fn set_earliest(&mut self, cpu: CpuId) {
        match self.rqs[cpu.index()].root.first() {
            Some((deadline, _)) => self.cpudl.set(cpu, deadline),
            None => self.cpudl.clear(cpu),
        }
    }

    /// `enqueue_pushable_dl_task`, of a task that is queued, does not run and may use several CPUs.
    pub(super) fn enqueue_pushable_dl_task(&mut self, core: &Core, cpu: CpuId, task: TaskId) {
        let se = self.tasks[task.index()];
        if se.queued && !core.is_pinned(task) {
            self.rqs[cpu.index()].pushable_dl_tasks.add(task, se.deadline);
        }
    }

    /// `dequeue_pushable_dl_task`.
    pub(super) fn dequeue_pushable_dl_task(&mut self, cpu: CpuId, task: TaskId) {
        self.rqs[cpu.index()].pushable_dl_tasks.erase(task);
    }

    /// `is_leftmost`.
    pub(super) fn is_leftmost(&self, cpu: CpuId, task: TaskId) -> bool {
        self.rqs[cpu.index()].root.first().is_some_and(|(_, first)| first == task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_deadlines_keep_the_order_in_which_they_came() {
        let mut tree = Tree::default();
        for (task, deadline) in [(0, 5), (1, 3), (2, 5), (3, 3), (4, 4)] {
            tree.add(TaskId(task), deadline);
        }
        assert_eq!(tree.iter().map(|task| task.0).collect::<Vec<_>>(), [1, 3, 4, 0, 2]);
        tree.erase(TaskId(1));
        assert_eq!((tree.first(), tree.len()), (Some((3, TaskId(3))), 4));
    }
}
