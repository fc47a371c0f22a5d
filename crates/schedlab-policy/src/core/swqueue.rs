//! The queues of SWQUEUE.

use std::collections::VecDeque;

use schedlab_model::{CpuId, TaskId};

/// The `struct swqueue` of every cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct SwQueues {
    /// By the lowest CPU of the cache.
    pub queues: Vec<VecDeque<TaskId>>,
    /// The queue that a task is in (`swqueue_node`), by task.
    pub place: Vec<Option<u32>>,
}

impl SwQueues {
    /// A task joins the tail of a cache's queue, unless it is in one.
    pub fn add(&mut self, llc: CpuId, task: TaskId) {
        if self.queues.len() <= llc.index() {
            self.queues.resize_with(llc.index() + 1, VecDeque::new);
        }
        if self.place.len() <= task.index() {
            self.place.resize(task.index() + 1, None);
        }
        if self.place[task.index()].replace(llc.0).is_none() {
            self.queues[llc.index()].push_back(task);
        }
    }

    /// A task leaves the queue that it is in.
    pub fn remove(&mut self, task: TaskId) {
        if let Some(llc) = self.place.get_mut(task.index()).and_then(Option::take) {
            self.queues[llc as usize].retain(|queued| *queued != task);
        }
    }

    /// The head of a cache's queue leaves it.
    pub fn pop(&mut self, llc: CpuId) -> Option<TaskId> {
        let task = self.queues.get_mut(llc.index())?.pop_front()?;
        self.place[task.index()] = None;
        Some(task)
    }
}
