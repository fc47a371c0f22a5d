//! The part of a model's state that its later decisions depend on, as numbers by which two models can be compared.

use schedlab_model::CpuId;
use schedlab_policy::fair::GroupId;

use super::Model;

impl Model {
    /// The position of every entity relative to V of its queue, and the lag of those on no queue. EEVDF only.
    pub fn signature(&self) -> Vec<i64> {
        let mut state = Vec::with_capacity(6 * self.pids.len());
        for task in self.tasks.values() {
            let (group, se) = (self.fair().group_of(task.id), self.fair().entity(task.id));
            let own = self.fair().view().avg_vruntime(group, se.cpu);
            state.push(i64::from(self.pid(task.id)));
            if se.on_rq {
                state.extend([se.vruntime.since(own), se.deadline.since(own), se.h_load.weight as i64]);
                state.extend([
                    i64::from(se.sched_delayed),
                    self.fair().view().vprot(se).since(own),
                    i64::from(se.vlag == se.deadline.0 as i64),
                ]);
            } else {
                state.extend([se.vlag, if se.rel_deadline { se.deadline.0 as i64 } else { 0 }]);
            }
        }
        for nth in 1..self.fair().nr_groups() {
            let group = GroupId(nth as u32);
            for cpu in 0..self.cpus.len() {
                let cpu = CpuId(cpu as u32);
                let Some(se) = self.fair().group_entity(group, cpu) else { continue };
                if self.fair().config.rules.flat_hierarchy {
                    // Only its weight counts.
                    state.push(se.load.weight as i64);
                    continue;
                }
                let own = self.fair().view().avg_vruntime(self.fair().group(group).parent, cpu);
                match se.on_rq {
                    true => state.extend([se.vruntime.since(own), se.deadline.since(own), se.load.weight as i64]),
                    false => state.push(se.vlag),
                }
            }
        }
        state.extend(self.cpus.iter().map(|cpu| cpu.preempted as i64 + 4 * i64::from(cpu.pending.is_some())));
        state
    }
}
