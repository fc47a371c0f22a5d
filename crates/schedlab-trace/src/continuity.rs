//! Whether the records of each CPU follow on one another: the check of completeness that every reader of a trace uses.
//!
//! A recorder that loses records usually says so. A filter, a full buffer that is read too late or a kernel that does
//! not emit every `sched_switch` leaves no such mark, but the next switch of that CPU is from a task to which the CPU
//! had not switched. What lies before it is unknown, so no interval may be measured across it.

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Pid};

use crate::Kind;

/// The task that each CPU switched to last.
#[derive(Clone, Default, Debug)]
pub struct Continuity {
    running: BTreeMap<CpuId, Pid>,
}

impl Continuity {
    /// Takes the next event of a CPU. `true`: records of this CPU are missing before it.
    pub fn breaks(&mut self, cpu: CpuId, kind: &Kind) -> bool {
        match *kind {
            Kind::Switch { prev, next, .. } => self.running.insert(cpu, next).is_some_and(|running| running != prev),
            _ => false,
        }
    }

    /// The recorder has marked a loss: which tasks run is unknown, and the mark counts, not the next switch.
    pub fn forget(&mut self) {
        self.running.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskState;

    /// Which of the switches (CPU, previous task, next task) breaks.
    fn check(switches: &[(u32, Pid, Pid)], breaks: &[bool]) {
        let mut continuity = Continuity::default();
        let found: Vec<bool> = switches
            .iter()
            .map(|(cpu, prev, next)| {
                let (prev, next) = (*prev, *next);
                let kind = Kind::Switch { prev, prev_prio: 120, prev_state: TaskState::Sleeping, next, next_prio: 120 };
                continuity.breaks(CpuId(*cpu), &kind)
            })
            .collect();
        assert_eq!(found, breaks, "{switches:?}");
    }

    #[test]
    fn a_switch_from_another_task_than_the_last_one_breaks() {
        check(&[(0, 1, 2), (0, 2, 0), (0, 0, 3)], &[false; 3]);
        check(&[(0, 1, 2), (0, 3, 0), (0, 0, 3)], &[false, true, false]);
        check(&[(0, 1, 2), (1, 3, 0), (0, 2, 0), (1, 0, 2)], &[false; 4]);
        check(&[(0, 1, 0), (0, 1, 0), (0, 1, 0)], &[false, true, true]);
    }

    #[test]
    fn after_a_marked_loss_any_task_may_run() {
        let mut continuity = Continuity::default();
        let switch =
            |prev, next| Kind::Switch { prev, prev_prio: 120, prev_state: TaskState::Running, next, next_prio: 120 };
        assert!(!continuity.breaks(CpuId(0), &switch(1, 2)));
        continuity.forget();
        assert!(!continuity.breaks(CpuId(0), &switch(5, 6)));
        assert!(continuity.breaks(CpuId(0), &switch(5, 6)));
    }
}
