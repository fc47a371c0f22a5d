//! Every queue of the class with everything that an operation on one of them may change: entities, groups, load
//! tracking, pools of runtime, the record of decisions.
//!
//! The other files of this folder add the operations on entities, level by level: [`update_curr`](super::update_curr),
//! [`enqueue_entity`](super::enqueue_entity), [`dequeue_entity`](super::dequeue_entity),
//! [`pick_next_entity`](super::pick_next_entity), [`update_cfs_group`](super::update_cfs_group),
//! [`throttle_cfs_rq`](super::bandwidth). The class on top of them ([`Fair`](super::Fair)) deals with tasks, wakeups
//! and ticks.

use std::sync::Arc;

use super::arena::Arena;
use super::decision_log::DecisionLog;
use super::pools::Pools;
use super::view::View;
use crate::preempt_model::PreemptModel;
use crate::run_times::RunTimes;
use crate::sched_cache::SchedCache;
use crate::{KernelConfig, Resched};

/// The queues of one kernel.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    pub config: Arc<KernelConfig>,
    pub arena: Arena,
    pub pools: Pools,
    pub log: DecisionLog,
    pub run_times: RunTimes,
    /// Cache-aware balancing, where it is active.
    pub sched_cache: Option<Box<SchedCache>>,
}

impl Queues {
    pub fn new(config: Arc<KernelConfig>) -> Queues {
        Queues {
            arena: Arena::new(&config),
            pools: Pools::default(),
            log: DecisionLog::default(),
            run_times: RunTimes::default(),
            sched_cache: None,
            config,
        }
    }

    /// The state to be read.
    pub fn view(&self) -> View<'_> {
        View { arena: &self.arena, config: &self.config, pools: &self.pools }
    }

    /// `resched_curr` of the CPU a queue belongs to.
    #[inline]
    pub fn resched_curr(&mut self, rq: usize) {
        let root = self.arena.root_of(rq);
        let lazy = self.config.preempt.is_auto_lazy() && self.arena.leaf(root).is_some();
        let request = if lazy { Resched::Lazy } else { Resched::Full };
        let asked = &mut self.arena.rqs[root].resched;
        *asked = request.max(*asked);
    }

    /// `resched_curr_lazy`; kernels without it reschedule as `resched_curr` does.
    #[inline]
    pub fn resched_curr_lazy(&mut self, rq: usize) {
        if self.config.preempt.is_auto_lazy() {
            return self.resched_curr(rq);
        }
        let lazy = self.config.rules.lazy && self.config.preempt == PreemptModel::Lazy;
        let request = if lazy { Resched::Lazy } else { Resched::Full };
        let root = self.arena.root_of(rq);
        let asked = &mut self.arena.rqs[root].resched;
        *asked = request.max(*asked);
    }
}
