//! Which cache a process prefers (cache-aware balancing, 7.2 and later): the row's answer is compared with the kernel's
//! at each charge that shows the process, and the model goes on from the kernel's.

use schedlab_model::{CpuId, Pid};
use schedlab_policy::fair::ProcessShown;

use super::Model;

impl Model {
    /// What a charge has shown of the task's process.
    pub(super) fn process(&mut self, pid: Pid, shown: &ProcessShown) {
        let Some((id, (cpu, ran))) = self.task(pid).and_then(|id| Some((id, self.charges.remove(&id)?))) else {
            return;
        };
        if let Some(agrees) = self.sched.follow().process(cpu, id, shown, ran) {
            self.tally.preferences.add(self.now, agrees);
        }
    }

    /// `task_cache_work`.
    pub(super) fn task_cache_work(&mut self, cpu: CpuId, pid: Pid) {
        if let Some(id) = self.task(pid) {
            self.sched.follow().task_cache_work(cpu, id);
        }
    }
}
