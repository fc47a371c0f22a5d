//! The runqueue of the class: one list per priority and a bitmap of those that are not empty (`struct rt_prio_array`).

use schedlab_model::TaskId;

use crate::core::rt_policy::MAX_RT_PRIO;

const NIL: u32 = u32::MAX;

/// A task's neighbours in its list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    next: u32,
    prev: u32,
}

impl Default for Link {
    fn default() -> Self {
        Link { next: NIL, prev: NIL }
    }
}

/// First and last of one list.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

/// The lists of one CPU; they are allocated with the first task.
#[derive(Clone, Default, Debug)]
pub(super) struct PrioArray {
    bitmap: u128,
    lists: Vec<List>,
}

impl PrioArray {
    /// Adds a task at the head or the tail of its priority's list.
    pub fn add(&mut self, links: &mut [Link], task: TaskId, prio: u8, head: bool) {
        if self.lists.is_empty() {
            self.lists = vec![List { first: NIL, last: NIL }; usize::from(MAX_RT_PRIO)];
        }
        let list = &mut self.lists[usize::from(prio)];
        let me = task.0;
        if list.first == NIL {
            (list.first, list.last) = (me, me);
            links[task.index()] = Link::default();
        } else if head {
            links[list.first as usize].prev = me;
            links[task.index()] = Link { next: list.first, prev: NIL };
            list.first = me;
        } else {
            links[list.last as usize].next = me;
            links[task.index()] = Link { next: NIL, prev: list.last };
            list.last = me;
        }
        self.bitmap |= 1 << prio;
    }

    /// Takes a task out.
    pub fn remove(&mut self, links: &mut [Link], task: TaskId, prio: u8) {
        let list = &mut self.lists[usize::from(prio)];
        let Link { next, prev } = std::mem::take(&mut links[task.index()]);
        match prev {
            NIL => list.first = next,
            prev => links[prev as usize].next = next,
        }
        match next {
            NIL => list.last = prev,
            next => links[next as usize].prev = prev,
        }
        if list.first == NIL {
            self.bitmap &= !(1 << prio);
        }
    }

    /// The best priority queued; [`MAX_RT_PRIO`] if none is.
    #[inline]
    pub fn highest(&self) -> u8 {
        (self.bitmap.trailing_zeros() as u8).min(MAX_RT_PRIO)
    }

    /// The first task of the best priority.
    pub fn first(&self) -> Option<TaskId> {
        let list = self.lists.get(usize::from(self.highest()))?;
        Some(TaskId(list.first))
    }

    /// Whether the task is alone in its list.
    pub fn alone(&self, prio: u8) -> bool {
        let list = self.lists[usize::from(prio)];
        list.first == list.last
    }

    /// Every queued task, best first.
    pub fn iter<'a>(&'a self, links: &'a [Link]) -> impl Iterator<Item = TaskId> + 'a {
        let lists = (0..MAX_RT_PRIO).filter(|prio| self.bitmap >> prio & 1 == 1);
        lists.flat_map(|prio| {
            let first = self.lists[usize::from(prio)].first;
            std::iter::successors(Some(first), |at| Some(links[*at as usize].next).filter(|next| *next != NIL))
                .map(TaskId)
        })
    }
}
