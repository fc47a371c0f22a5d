//! SWQUEUE: a queue of woken tasks per last-level cache, from which a CPU about to become idle pulls.
//!
//! The series of 13 June 2023 on 6.3 ("sched: Implement shared wakequeue in CFS",
//! 20230613052004.2836135-1-void@manifault.com), not merged. A task joins the tail when it is woken on the CPU on which
//! it slept; not if select_task_rq moved it, and not if it may run on one CPU only. It leaves when it is dequeued or
//! picked. Before newidle balancing, a CPU that finds nothing to run takes the head off the queue and, if that task is
//! still waiting somewhere and may run here, moves it here. The figures that were reported in April 2023 are of an
//! earlier form of it; with one cache there is one queue in either. Left out: the lock of the queue.

use schedlab_model::{rarely, CpuId, Nanos, TaskId};

use crate::core::types::Moves;
use crate::decision::{Action, Decision};
use crate::fair::class::FairClass;
use crate::features::Feature;
use crate::flags::{Dequeue, Enqueue};

impl FairClass<'_> {
    #[inline(always)]
    pub(super) fn has_swqueue(&self) -> bool {
        rarely(self.core.features.has(Feature::Swqueue))
    }

    /// The first CPU of the cache stands for it.
    fn swqueue_of(&self, cpu: CpuId) -> CpuId {
        self.core.topology.llc(cpu).lowest().unwrap_or(cpu)
    }

    /// `swqueue_enqueue`, after an enqueue.
    #[inline(always)]
    pub(crate) fn swqueue_enqueue(&mut self, cpu: CpuId, task: TaskId, flags: Enqueue) {
        if self.has_swqueue() && flags.wakeup && !flags.migrated {
            let pinned = self.core.tasks[task.index()].affinity.as_ref().is_some_and(|mask| mask.count() == 1);
            if !pinned && self.core.topology.nr_cpus() > 1 {
                let llc = self.swqueue_of(cpu);
                self.core.swqueues.add(llc, task);
            }
        }
    }

    /// `swqueue_remove_task`: the task is dequeued or picked.
    #[inline(always)]
    pub(crate) fn swqueue_remove_task(&mut self, task: TaskId) {
        if self.has_swqueue() {
            self.core.swqueues.remove(task);
        }
    }

    /// `swqueue_pick_next_task`, with SWQUEUE only: whether a task was moved to the CPU.
    pub(super) fn swqueue_pick_next_task(&mut self, cpu: CpuId, now: Nanos, moves: &mut Moves) -> bool {
        let llc = self.swqueue_of(cpu);
        let Some(task) = self.core.swqueues.pop(llc) else { return false };
        let src = self.core.cpu_of(task);
        moves.looked_at += 1;
        let waits = self.fair.entity(task).on_rq && self.fair.curr(src) != Some(task);
        if src == cpu || !waits || !self.core.tasks[task.index()].allows(cpu) {
            return false;
        }
        let asked_before = self.fair.need_resched(src);
        self.fair.dequeue_task(src, task, Dequeue { migrating: true, ..Dequeue::default() }, now);
        self.sync(src);
        self.set_task_cpu(task, cpu, now);
        self.fair.run_times().detached();
        moves.moved.push((task, src));
        let asked = self.fair.need_resched(src);
        if asked > asked_before {
            moves.ask(src, asked);
        }
        self.fair.enqueue_task(cpu, task, Enqueue { migrated: true, ..Enqueue::default() }, now);
        self.sync(cpu);
        if self.fair.is_recording() {
            let left = i64::from(self.core.rqs[src.index()].nr_running);
            let compared = [("tasks left there", left), ("CPU that was woken on", i64::from(src.0))];
            let action = Action::Pull(task, src);
            self.fair.record(Decision::outside(
                now,
                cpu,
                action,
                "head of the shared wakequeue",
                Some(Feature::Swqueue),
                compared,
            ));
        }
        true
    }
}
