//! `__schedule`, as the kernel's procedure in the parts that a trace shows.

use schedlab_model::{CpuId, Nanos, Pid, TaskId};
use schedlab_policy::fair::Dequeue;
use schedlab_policy::procedure::{__schedule, schedule_after_newidle, try_to_block_task, Leaving, Schedule};

use super::driver::{Pick, Recorded, Replay};
use super::Model;
use crate::operation::{PrevState, Switch};

impl Model {
    /// `__schedule` up to the dequeue of the running task.
    pub(super) fn block(&mut self, cpu: CpuId, special: bool) {
        let (leaving, clock) = (leaving(special), self.clock(cpu));
        try_to_block_task(&mut Replay::new(self, Recorded::Blocked), cpu, leaving, clock);
    }

    /// `__schedule` up to `sched_balance_newidle`.
    pub(super) fn newidle_balance(&mut self, cpu: CpuId) {
        self.cpus[cpu.index()].in_newidle = true;
        __schedule(&mut Replay::new(self, Recorded::Newidle), cpu, Schedule::default());
    }

    /// The rest of `__schedule`.
    pub(super) fn switch(&mut self, switch: &Switch) {
        let Switch { cpu, prev, prev_state, next, next_is_fair } = *switch;
        if let Some(id) = self.task(prev).filter(|id| self.sched.curr(cpu) != Some(*id)) {
            self.tally.desyncs += u64::from(self.sched.curr(cpu).is_some() || self.sched.on_rq(id));
            self.force_running(cpu, prev);
        }
        let leaves = prev_state != PrevState::Runnable && self.task(prev).is_some();
        let pick = match next {
            0 => Pick::Idle,
            pid if next_is_fair => Pick::Fair { pid, certain: true },
            pid => Pick::Other { pid },
        };
        self.schedule(cpu, leaves.then(|| leaving(prev_state == PrevState::Special)), prev, pick);
    }

    /// `__schedule` that picked the running task again.
    pub(super) fn repick(&mut self, cpu: CpuId, certain: bool) {
        if let Some(pid) = self.sched.curr(cpu).map(|curr| self.pid(curr)) {
            self.schedule(cpu, None, pid, Pick::Fair { pid, certain });
        }
    }

    fn schedule(&mut self, cpu: CpuId, leaving: Option<Leaving>, prev: Pid, pick: Pick) {
        let in_newidle = std::mem::take(&mut self.cpus[cpu.index()].in_newidle);
        let driver = &mut Replay::new(self, Recorded::Switched { cpu, prev, pick: Some(pick) });
        match in_newidle {
            true => schedule_after_newidle(driver, cpu),
            false => __schedule(driver, cpu, Schedule { leaving, ..Schedule::default() }),
        }
    }

    /// `deactivate_task` of the running task, unless it was dequeued before.
    pub(super) fn deactivate_curr(&mut self, cpu: CpuId, special: bool) {
        let awake = |curr: &TaskId| self.sched.on_rq(*curr) && !self.fair().entity(*curr).sched_delayed;
        if let Some(curr) = self.sched.curr(cpu).filter(awake) {
            let complete = self.queues_known(curr);
            self.sched.dequeue_task(cpu, curr, Dequeue { sleep: true, special, ..Dequeue::default() }, self.clock(cpu));
            if !complete {
                self.dequeued_from_incomplete(curr);
            }
        }
    }

    /// A pick that found nothing to run has dequeued the tasks whose dequeue was delayed.
    pub(super) fn pick_nothing(&mut self, cpu: CpuId) {
        if self.runnable(cpu).is_empty() {
            self.sched.pick_task(cpu, self.clock(cpu));
        }
    }

    /// `pick_next_task`, compared with the kernel's pick, which runs from then on. The clock of the switch.
    pub(super) fn pick_next_task(&mut self, cpu: CpuId, prev: Pid, pick: Pick) -> Nanos {
        let again = matches!(pick, Pick::Fair { pid, .. } if pid == prev);
        let mut next = None;
        match pick {
            Pick::Fair { pid, certain } => {
                if !again {
                    self.force_queued(cpu, pid);
                }
                self.judge_pick(cpu, pid, certain);
                next = self.task(pid);
            }
            Pick::Other { .. } => {}
            Pick::Idle => {
                // The fair class was called and found at most tasks whose dequeue is delayed; it dequeues them.
                let runnable = self.sched.pick_task(cpu, self.clock(cpu));
                self.tally.desyncs += u64::from(runnable.is_some());
            }
        }
        let now = self.clock(cpu);
        if !again {
            let curr = self.sched.curr(cpu);
            let queue = &mut self.cpus[cpu.index()];
            queue.clock = now;
            if curr.is_none() {
                queue.charged_at = self.now;
            }
        }
        self.sched.follow().pick(cpu, next, now);
        now
    }

    /// The end of `__schedule`: need-resched is clear.
    pub(super) fn end_schedule(&mut self, cpu: CpuId) {
        self.sched.clear_resched(cpu);
        self.end_series(cpu);
    }
}

/// `special`: dead, parked or stopped. A trace shows the death itself later.
fn leaving(special: bool) -> Leaving {
    match special {
        true => Leaving::Exits,
        false => Leaving::Sleeps,
    }
}
