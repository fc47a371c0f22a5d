//! The tasks of a model, by pid and by id.

use std::collections::BTreeMap;

use schedlab_model::{Pid, TaskId};

use super::Task;

/// Ids are small numbers that are used again, so that a task is found by its id without a search.
#[derive(Clone, Default, Debug)]
pub(super) struct Tasks {
    ids: BTreeMap<Pid, TaskId>,
    tasks: Vec<Option<Task>>,
}

impl Tasks {
    pub(super) fn get(&self, pid: &Pid) -> Option<&Task> {
        self.of(*self.ids.get(pid)?)
    }

    pub(super) fn get_mut(&mut self, pid: &Pid) -> Option<&mut Task> {
        self.tasks.get_mut(self.ids.get(pid)?.index())?.as_mut()
    }

    /// Changes a task, if there is one of this pid.
    pub(super) fn modify(&mut self, pid: Pid, change: impl FnOnce(&mut Task)) {
        if let Some(task) = self.get_mut(&pid) {
            change(task);
        }
    }

    /// The task of an id.
    pub(super) fn of(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(id.index())?.as_ref()
    }

    pub(super) fn insert(&mut self, pid: Pid, task: Task) {
        let at = task.id.index();
        if self.tasks.len() <= at {
            self.tasks.resize(at + 1, None);
        }
        self.ids.insert(pid, task.id);
        self.tasks[at] = Some(task);
    }

    pub(super) fn remove(&mut self, pid: &Pid) -> Option<Task> {
        let id = self.ids.remove(pid)?;
        self.tasks.get_mut(id.index())?.take()
    }

    /// In the order of their ids.
    pub(super) fn values(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().flatten()
    }

    /// In the order of their ids.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        self.tasks.iter_mut().flatten()
    }

    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.tasks.clear();
    }
}
