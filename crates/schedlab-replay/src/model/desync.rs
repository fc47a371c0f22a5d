//! Where the trace has a task on another CPU or queue than the model, the model is corrected, and the correction
//! counted.

use schedlab_model::{CpuId, Pid, TaskId};
use schedlab_policy::fair::Enqueue;

use super::migrate::Moving;
use super::Model;

impl Model {
    /// The trace has a task running that the model has elsewhere.
    pub(super) fn force_running(&mut self, cpu: CpuId, pid: Pid) {
        let now = self.clock(cpu);
        let missed_switch = self.sched.curr(cpu).is_some();
        self.sched.put_prev_task(cpu, now);
        if missed_switch {
            self.invalidate_cpu(cpu, now);
        }
        self.force_queued(cpu, pid);
        if let Some(id) = self.task(pid) {
            self.sched.set_next_task(cpu, id, true, now);
        }
    }

    /// The trace has a task queued on a CPU where the model does not have it.
    pub(super) fn force_queued(&mut self, cpu: CpuId, pid: Pid) {
        self.put_on(cpu, pid);
        let Some(id) = self.task(pid) else { return };
        let now = self.clock(cpu);
        let se = self.sched.fair.entity(id);
        if se.sched_delayed {
            self.sched.enqueue_task(cpu, id, Enqueue { delayed: true, wakeup: true, ..Enqueue::default() }, now);
        } else if !se.on_rq {
            self.tally.desyncs += 1;
            let wakeup = se.asleep;
            self.sched.enqueue_task(cpu, id, Enqueue { wakeup, ..Enqueue::default() }, now);
        }
    }

    /// A task that the model has on another CPU is moved to this one, off any queue.
    pub(super) fn put_on(&mut self, cpu: CpuId, pid: Pid) {
        let Some(id) = self.task(pid) else { return };
        let (from, on_rq) = (self.sched.cpu_of(id), self.sched.on_rq(id));
        if from != cpu && on_rq {
            self.tally.desyncs += 1;
            self.detach(pid, from, cpu);
            self.tasks.modify(pid, |task| task.moving = Moving::No);
        } else if from != cpu {
            self.leave_cpu(id);
            self.sched.follow().set_task_cpu(id, from, cpu, None);
        }
    }

    /// A task that blocked no longer has its CPU, though its switch was not recorded.
    pub(super) fn leave_cpu(&mut self, id: TaskId) {
        let cpu = self.sched.cpu_of(id);
        if self.sched.curr(cpu) == Some(id) {
            self.cpus[cpu.index()].clock = self.clock(cpu);
            self.sched.put_prev_task(cpu, self.clock(cpu));
        }
    }
}
