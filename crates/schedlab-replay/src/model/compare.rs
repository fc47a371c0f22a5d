//! vruntime against what the kernel prints, step by step.

use schedlab_model::{Pid, Vruntime};

use super::Model;
use crate::report::StepMiss;

impl Model {
    /// The kernel printed a vruntime. A task's first one is taken if nothing was known of it; any later one is compared:
    /// the step from the record before, so that one error is counted once.
    pub(super) fn compare_vruntime(&mut self, pid: Pid, printed: u64) {
        let now = self.now;
        let Some(member) = self.members.get_mut(&pid) else { return };
        let id = member.id;
        member.shown.vruntime = Some(printed);
        if !member.known {
            let mut state = self.fair.task_state(id);
            state.deadline = Vruntime(printed).plus(state.deadline.since(state.vruntime));
            state.vruntime = Vruntime(printed);
            member.known = true;
            member.printed = Some((printed, printed));
            self.tally.tasks.taken += 1;
            return self.fair.restore_task(id, state);
        }
        let model = self.fair.entity(id).vruntime.0;
        if let Some((printed_before, model_before)) = member.printed {
            let kernel_step = printed.wrapping_sub(printed_before) as i64;
            let model_step = model.wrapping_sub(model_before) as i64;
            let miss = StepMiss { time_ns: now, pid, kernel_step, model_step };
            self.tally.vruntime_step(now, miss, model == printed);
        }
        member.printed = Some((printed, model));
    }
}
