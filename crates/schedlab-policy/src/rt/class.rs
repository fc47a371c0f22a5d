//! The classes together, from the moment a task is of the real-time class: who goes first, who preempts whom, how a task
//! changes class (`__schedule`, `wakeup_preempt`, `__sched_setscheduler`, kernel/sched/core.c).

use super::RtPolicy;
use crate::decision::Class;
use crate::fair::{Dequeue, Enqueue, WakeFlags};
use crate::sched::types::Moves;
use crate::{FairPolicy, Resched, Sched};
use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};

impl Sched {
    /// `pick_next_task` over the classes; a fair task that was running is put back.
    #[inline(never)]
    pub(crate) fn pick_among_classes(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        self.rt.update_curr(cpu, now);
        self.rt.fair_queued(cpu, self.fair.rq(cpu).h_nr_running > 0, now);
        let charged = self.fair.curr(cpu).is_some();
        self.rt.fair_runs(cpu, charged, now);
        self.note_rt_limit(cpu, Resched::No, now);
        let real_time = self.rt.pick(cpu);
        let mut picked = None;
        if real_time.is_none() || self.rt.fair_first(cpu) {
            self.rt.set_curr(cpu, None, now);
            picked = self.fair.pick_next_task(cpu, now);
        }
        if let (None, Some(task)) = (picked, real_time) {
            self.fair.put_prev_task(cpu, now);
            self.fair.clear_resched(cpu);
            self.rt.set_curr(cpu, Some(task), now);
            picked = real_time;
            if self.fair.decisions.is_some() {
                self.explain_rt_pick(cpu, task, now);
            }
        }
        let fair = self.fair.curr(cpu).is_some();
        self.rt.fair_runs(cpu, fair, now);
        self.sync(cpu);
        self.rt.fair_queued(cpu, self.fair.rq(cpu).h_nr_running > 0, now);
        if picked.is_some() {
            self.idle_exit(cpu, now);
        }
        picked
    }

    /// `task_tick` of whichever class runs.
    #[inline(never)]
    pub(crate) fn tick_classes(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        self.rt.fair_queued(cpu, self.fair.rq(cpu).h_nr_running > 0, now);
        if let Some(curr) = self.rt.curr(cpu) {
            let wish = self.rt.tick(cpu, now);
            self.sync(cpu);
            if self.fair.decisions.is_some() {
                self.explain_rt_tick(cpu, curr, wish, now);
                self.note_rt_limit(cpu, wish, now);
            }
            return wish;
        }
        let runs = self.fair.curr(cpu).is_some();
        let wish = if runs { self.fair.task_tick(cpu, now) } else { Resched::No };
        let over = self.rt.fair_runs(cpu, runs, now);
        self.note_rt_limit(cpu, over, now);
        wish.max(over)
    }

    /// `wakeup_preempt` where the answer follows from the classes; `None`: both are fair.
    pub(crate) fn preempt_by_class(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        need_resched: bool,
        now: Nanos,
    ) -> Option<Resched> {
        let (class, wish, rule) = match (self.rt.policy(task), self.rt.curr(cpu)) {
            (None, None) => return None,
            (None, Some(_)) => (Class::Core, Resched::No, "a real-time task runs"),
            (Some(_), None) => (Class::Core, Resched::Full, "real-time goes first"),
            (Some(policy), Some(curr)) => {
                let (wish, rule) = self.preempts_rt(cpu, (task, policy), curr, need_resched);
                (Class::RealTime, wish, rule)
            }
        };
        if self.fair.decisions.is_some() {
            self.explain_rt_preempt(cpu, task, (class, rule), wish, now);
        }
        Some(wish)
    }

    /// `wakeup_preempt_rt` (`check_preempt_curr_rt`).
    fn preempts_rt(
        &mut self,
        cpu: CpuId,
        (task, policy): (TaskId, RtPolicy),
        curr: TaskId,
        need_resched: bool,
    ) -> (Resched, &'static str) {
        let (prio, running) = (policy.prio(), self.rt.prio(curr));
        if prio < running {
            (Resched::Full, "better priority")
        } else if prio == running && !need_resched && self.makes_room(task, curr) {
            // check_preempt_equal_prio: the running one can go elsewhere, the wakee cannot.
            self.rt.requeue(cpu, task, true);
            (Resched::Full, "same priority, and only the running one can go elsewhere")
        } else {
            (Resched::No, "no better priority")
        }
    }

    /// `sched_setscheduler` to a policy of the real-time class. [`Resched`] is for the task's CPU.
    pub fn set_rt_policy(&mut self, task: TaskId, policy: RtPolicy, now: Nanos) -> Resched {
        self.tasks[task.index()].attr.rt = Some(policy);
        match self.rt.policy(task) {
            Some(old) => self.change_rt_priority(task, old, policy, now),
            None => self.enter_rt(task, policy, now),
        }
    }

    fn change_rt_priority(&mut self, task: TaskId, old: RtPolicy, policy: RtPolicy, now: Nanos) -> Resched {
        let (cpu, queued) = (self.cpu_of(task), self.rt.on_rq(task));
        if queued {
            self.rt.dequeue(cpu, task, now);
        }
        self.rt.set_policy(task, Some(policy));
        if queued {
            // Whoever gives up priority goes to the head of the new one's list.
            self.rt.enqueue(cpu, task, policy.prio() > old.prio(), now);
        }
        let outranked = self.rt.curr(cpu) == Some(task) && policy.prio() > self.rt.highest_prio(cpu);
        if outranked || queued && self.outranks(task, cpu) {
            Resched::Full
        } else {
            Resched::No
        }
    }

    /// `switched_from_fair`, `switched_to_rt`.
    fn enter_rt(&mut self, task: TaskId, policy: RtPolicy, now: Nanos) -> Resched {
        let cpu = self.cpu_of(task);
        if self.fair.entity(task).sched_delayed {
            self.fair.end_delay(task, now);
        }
        let (queued, running) = (self.fair.entity(task).on_rq, self.fair.curr(cpu) == Some(task));
        if queued {
            self.fair.dequeue_task(cpu, task, Dequeue { save: true, ..Dequeue::default() }, now);
        }
        if running {
            self.fair.put_prev_task(cpu, now);
        }
        self.fair.switched_from(task, now);
        self.rt.set_policy(task, Some(policy));
        if queued {
            self.rt.enqueue(cpu, task, false, now);
        }
        if running {
            self.rt.fair_runs(cpu, false, now);
            self.rt.set_curr(cpu, Some(task), now);
        }
        self.sync(cpu);
        if queued && !running && self.outranks(task, cpu) {
            Resched::Full
        } else {
            Resched::No
        }
    }

    /// `switched_from_rt`, `switched_to_fair`.
    pub(crate) fn leave_rt(&mut self, task: TaskId, policy: FairPolicy, now: Nanos) -> Resched {
        let cpu = self.cpu_of(task);
        let (queued, running) = (self.rt.on_rq(task), self.rt.curr(cpu) == Some(task));
        if queued {
            self.rt.dequeue(cpu, task, now);
        }
        if running {
            self.rt.set_curr(cpu, None, now);
        }
        self.rt.set_policy(task, None);
        self.tasks[task.index()].attr.rt = None;
        self.fair.set_policy(task, policy, now);
        self.fair.switched_to(task, queued);
        if queued {
            self.fair.enqueue_task(cpu, task, Enqueue::default(), now);
        }
        if running {
            self.fair.set_next_task(cpu, task, now);
            self.rt.fair_runs(cpu, true, now);
        }
        self.sync(cpu);
        match (queued, running) {
            (true, true) => Resched::Full,
            (true, false) if self.rt.curr(cpu).is_none() => {
                self.fair.wakeup_preempt(cpu, task, WakeFlags::default(), false, now)
            }
            _ => Resched::No,
        }
    }

    fn outranks(&self, task: TaskId, cpu: CpuId) -> bool {
        let curr = self.rt.curr(cpu);
        curr != Some(task) && curr.is_none_or(|curr| self.rt.prio(task) < self.rt.prio(curr))
    }

    /// Whether the task is queued or running in any class.
    #[inline]
    #[must_use]
    pub fn on_rq(&self, task: TaskId) -> bool {
        self.fair.entity(task).on_rq || self.rt.on_rq(task)
    }

    /// The timers of the real-time class: when [`Sched::rt_timer_expired`] is to be called next.
    #[inline]
    #[must_use]
    pub fn rt_timer(&self) -> Option<Nanos> {
        if self.rt.in_use() {
            self.rt.next_timer()
        } else {
            None
        }
    }

    /// A timer of the real-time class fires.
    pub fn rt_timer_expired(&mut self, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        for cpu in (0..self.topology.nr_cpus() as u32).map(CpuId) {
            let runs = self.fair.curr(cpu).is_some();
            let wish = self.rt.fair_runs(cpu, runs, now);
            moves.ask(cpu, wish);
        }
        self.rt.timer_expired(now, &mut moves.resched);
        for cpu in (0..self.topology.nr_cpus() as u32).map(CpuId) {
            self.sync(cpu);
            let asked = moves.resched.iter().find(|(asked, _)| *asked == cpu).map_or(Resched::No, |(_, wish)| *wish);
            self.note_rt_limit(cpu, asked, now);
        }
        moves
    }

    /// `cpumask_any_and_distribute`: the next CPU after the one handed out last.
    pub(crate) fn any_and_distribute(&mut self, wanted: &CpuMask) -> Option<CpuId> {
        let next = wanted.next_from(self.distributed).or_else(|| wanted.lowest())?;
        self.distributed = next.index() + 1;
        Some(next)
    }
}
