//! Forks: `sched_process_fork`, or `task_newtask` where only that is recorded, as on Android.

use std::collections::BTreeSet;

use schedlab_model::Pid;
use schedlab_trace::Kind;

use super::entry::{Entry, What};

/// More children are not remembered: their second record follows within microseconds.
const MOST: usize = 64;

/// Children that `task_newtask` has named already.
#[derive(Default)]
pub struct Forks {
    named: BTreeSet<Pid>,
}

impl Forks {
    /// The entry, unless it is the second record of a fork.
    pub fn once(&mut self, entry: Entry) -> Option<Entry> {
        match entry.what {
            What::NewTask { child } => {
                if self.named.len() >= MOST {
                    self.named.clear();
                }
                self.named.insert(child);
                Some(Entry { what: What::Event(Kind::Fork { parent: entry.pid, child }), ..entry })
            }
            What::Event(Kind::Fork { child, .. }) if self.named.remove(&child) => {
                Some(Entry { what: What::Other, ..entry })
            }
            _ => Some(entry),
        }
    }
}
