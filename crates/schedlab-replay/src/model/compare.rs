//! vruntime against what the kernel prints.

use schedlab_model::{Pid, Vruntime};

use super::Model;
use crate::report::StepMiss;

impl Model {
    /// The kernel printed a vruntime. A task's first one is taken if its state is unknown; later ones are compared by
    /// their growth since the record before, so that one error counts once.
    pub(super) fn compare_vruntime(&mut self, pid: Pid, printed: u64) {
        let now = self.now;
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let id = task.id;
        task.shown.vruntime = Some(printed);
        if !task.known {
            let mut state = self.sched.fair.view().task_state(id);
            state.deadline = Vruntime(printed).plus(state.deadline.since(state.vruntime));
            state.vruntime = Vruntime(printed);
            task.printed = Some((printed, printed));
            self.sched.follow().restore().task(id, state);
            return self.note_state_taken(pid);
        }
        let model = self.sched.fair.entity(id).vruntime.0;
        if let Some((printed_before, model_before)) = task.printed {
            let kernel_step = printed.wrapping_sub(printed_before) as i64;
            let model_step = model.wrapping_sub(model_before) as i64;
            let miss = StepMiss { time_ns: now, pid, kernel_step, model_step };
            self.tally.vruntime_step(now, miss, model == printed);
        }
        task.printed = Some((printed, model));
    }
}
