//! A driver that records the effects of procedures, at a moment at which every clock shows the same time.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::{Driver, Effect};
use crate::class::ClassList;
use crate::sched::Classes;
use crate::{Moves, Sched, Selection};

/// Records the effects of procedures. No CPU has need-resched set, and every task goes where the scheduler puts it.
#[derive(Debug)]
pub struct Recorder<'a, L = Classes> {
    sched: &'a mut Sched<L>,
    now: Nanos,
    /// The effects so far.
    pub effects: Vec<Effect>,
    /// What each balancing pass has moved so far.
    pub moves: Vec<Moves>,
}

impl<'a, L> Recorder<'a, L> {
    /// Of this scheduler at this time.
    #[must_use]
    pub fn new(sched: &'a mut Sched<L>, now: Nanos) -> Self {
        Recorder { sched, now, effects: Vec::new(), moves: Vec::new() }
    }
}

impl<L: ClassList> Driver for Recorder<'_, L> {
    type Sched = Sched<L>;

    fn sched(&mut self) -> &mut Sched<L> {
        self.sched
    }

    fn clock(&self, _: CpuId) -> Nanos {
        self.now
    }

    fn clock_task(&self, _: CpuId) -> Nanos {
        self.now
    }

    fn need_resched(&self, _: CpuId) -> bool {
        false
    }

    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn balanced(&mut self, moves: &Moves) {
        self.moves.push(moves.clone());
    }

    fn selected(&mut self, _: TaskId, selection: &Selection) -> CpuId {
        selection.cpu
    }
}
