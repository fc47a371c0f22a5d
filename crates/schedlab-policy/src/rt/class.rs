//! The real-time class as one of the classes: the methods of `rt_sched_class`.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::{Rt, RtEntity, MAX_RT_PRIO};
use crate::class::{view_pid, ClassId, SchedClass};
use crate::core::types::{Moves, Tested};
use crate::decision::Class;
use crate::flags::{Dequeue, Enqueue, WakeFlags};
use crate::queue_view::QueueView;
use crate::run_times::RunTimes;
use crate::{Core, Resched, TaskAttr, WakeKind};

impl Rt {
    /// After anything that may have changed the CPU's queue or the time that the class may run there.
    fn sync(&self, core: &mut Core, cpu: CpuId) {
        core.set_nr_running(cpu, self.class, self.nr_running(cpu));
    }

    /// `enqueue_task_rt`.
    pub(super) fn enqueue_task_rt(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, head: bool, now: Nanos) {
        self.enqueue_rt_entity(cpu, task, head, now);
        self.sync(core, cpu);
    }

    /// `dequeue_task_rt`.
    pub(super) fn dequeue_task_rt(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, now: Nanos) {
        self.update_curr_rt(cpu, now);
        self.dequeue_rt_entity(cpu, task);
        self.sync(core, cpu);
    }

    /// Whether the task, queued on the CPU, is to run there instead of the running task.
    fn outranks(&self, task: TaskId, cpu: CpuId) -> bool {
        let curr = self.curr(cpu);
        curr != Some(task) && curr.is_none_or(|curr| self.prio(task) < self.prio(curr))
    }

    /// `wakeup_preempt_rt` (`check_preempt_curr_rt`) against a running task of this class.
    fn wakeup_preempt_rt(
        &mut self,
        core: &Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        need_resched: bool,
    ) -> (Resched, &'static str) {
        let (prio, running) = (self.prio(task), self.prio(curr));
        if prio < running {
            (self.request, "better priority")
        } else if prio == running && !need_resched && self.makes_room(core, task, curr) {
            // check_preempt_equal_prio: the running one can go elsewhere, the wakee cannot.
            self.requeue_task_rt(cpu, task, true);
            (self.request, "same priority, and only the running one can go elsewhere")
        } else {
            (Resched::No, "no better priority")
        }
    }
}

impl SchedClass for Rt {
    fn id(&self) -> ClassId {
        self.class
    }

    fn set_id(&mut self, id: ClassId) {
        self.class = id;
    }

    fn takes(&self, attr: &TaskAttr) -> bool {
        attr.rt.is_some()
    }

    fn task_new(&mut self, _: &mut Core, task: TaskId, attr: &TaskAttr, _: bool) {
        if let Some(entity) = self.tasks.get_mut(task.index()) {
            *entity = RtEntity::default();
        }
        self.set_policy(task, attr.rt);
    }

    fn on_rq(&self, task: TaskId) -> bool {
        self.tasks.get(task.index()).is_some_and(|entity| entity.on_rq)
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _: Enqueue, now: Nanos) {
        self.enqueue_task_rt(core, cpu, task, false, now);
    }

    fn dequeue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: Dequeue, now: Nanos) -> bool {
        self.dequeue_task_rt(core, cpu, task, now);
        if flags.sleep {
            self.note_limit(core, cpu, Resched::No, now);
        }
        true
    }

    fn yield_task(&mut self, _: &mut Core, cpu: CpuId, _: Nanos) {
        if let Some(curr) = self.curr(cpu) {
            self.requeue_task_rt(cpu, curr, false);
        }
    }

    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        _: WakeFlags,
        need_resched: bool,
        now: Nanos,
    ) -> Resched {
        let Some(curr) = self.curr(cpu) else { return core.preempts_lower(cpu, task, now) };
        let (resched, rule) = self.wakeup_preempt_rt(core, cpu, task, curr, need_resched);
        core.explain_preempt(cpu, task, Class::RealTime, rule, resched, now);
        resched
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        kind: WakeKind,
        tested: &mut Tested,
        _: Nanos,
    ) -> (CpuId, &'static str) {
        // For anything but wakeups and forks it is the task's CPU.
        if kind == WakeKind::Exec {
            return (core.cpu_of(task), "exec");
        }
        self.select_task_rq_rt(core, task, tested.from())
    }

    fn balance(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        self.balance_rt(core, cpu, now)
    }

    fn pick_task(&mut self, _: &mut Core, cpu: CpuId, _: Nanos) -> Option<TaskId> {
        self.pick_task_rt(cpu)
    }

    fn pick_next_task(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        let next = self.pick_task_rt(cpu);
        self.set_curr(core, cpu, next, now);
        self.sync(core, cpu);
        if let Some(next) = next {
            self.explain_pick(core, cpu, next, now);
        }
        next
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, _: TaskId, now: Nanos) {
        self.set_curr(core, cpu, None, now);
        self.sync(core, cpu);
    }

    fn set_next_task(&mut self, core: &mut Core, cpu: CpuId, next: TaskId, first: bool, now: Nanos) {
        self.set_curr(core, cpu, Some(next), now);
        self.sync(core, cpu);
        if first {
            self.explain_pick(core, cpu, next, now);
        }
    }

    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        match self.curr(cpu) {
            Some(_) => self.push_rt_tasks(core, cpu, now),
            None => Moves::default(),
        }
    }

    fn task_woken(&mut self, core: &mut Core, task: TaskId, need_resched: bool, now: Nanos) -> Moves {
        self.task_woken_rt(core, task, need_resched, now)
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId, now: Nanos) -> Resched {
        let over = self.update_curr_rt(cpu, now);
        core.update_rt_rq_load_avg(cpu, true, now);
        let expired = self.tick_slice(cpu, curr);
        self.sync(core, cpu);
        let resched = if over || expired { Resched::Full } else { Resched::No };
        self.explain_tick(core, cpu, curr, resched, now);
        self.note_limit(core, cpu, resched, now);
        resched
    }

    fn update_curr(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) {
        self.update_curr_rt(cpu, now);
        self.sync(core, cpu);
    }

    fn set_cpus_allowed(&mut self, core: &mut Core, task: TaskId, _: Nanos) {
        // The kernel dequeues and enqueues a queued task: it keeps its place on the runqueue, but not in
        // `pushable_tasks`.
        if self.on_rq(task) && self.curr(core.cpu_of(task)) != Some(task) {
            self.enqueue_pushable_task(task);
        }
    }

    fn switched_from(&mut self, _: &mut Core, task: TaskId, _: Nanos) {
        self.set_policy(task, None);
    }

    fn switching_to(&mut self, _: &mut Core, task: TaskId, attr: &TaskAttr, _: bool, _: Nanos) {
        self.set_policy(task, attr.rt);
    }

    fn switched_to(&mut self, _: &mut Core, cpu: CpuId, task: TaskId, running: bool, _: Nanos) -> Resched {
        if !running && self.outranks(task, cpu) {
            Resched::Full
        } else {
            Resched::No
        }
    }

    fn prio_changed(&mut self, core: &mut Core, task: TaskId, _: &TaskAttr, attr: &TaskAttr, now: Nanos) -> Resched {
        let (cpu, queued, old) = (core.cpu_of(task), self.on_rq(task), self.prio(task));
        let prio = attr.rt.map_or(MAX_RT_PRIO, super::RtPolicy::prio);
        if queued {
            self.dequeue_task_rt(core, cpu, task, now);
        }
        self.set_policy(task, attr.rt);
        if queued {
            // A task that gives up priority goes to the head of its new list.
            self.enqueue_task_rt(core, cpu, task, prio > old, now);
        }
        let outranked = self.curr(cpu) == Some(task) && prio > self.highest_prio(cpu);
        if outranked || queued && self.outranks(task, cpu) {
            Resched::Full
        } else {
            Resched::No
        }
    }

    fn defers(&self, cpu: CpuId) -> bool {
        self.rqs[cpu.index()].server.is_active()
    }

    fn server_queued(&mut self, _: &mut Core, cpu: CpuId, queued: bool, now: Nanos) {
        self.start_server(cpu, queued, now);
    }

    fn dl_server_update(&mut self, core: &mut Core, cpu: CpuId, runs: bool, record: bool, now: Nanos) -> Resched {
        let resched = self.update_server(cpu, runs, now);
        if record {
            self.note_limit(core, cpu, resched, now);
        }
        resched
    }

    fn clock_updated(&self, cpu: CpuId) -> Nanos {
        let rq = &self.rqs[cpu.index()];
        let charged = rq.curr.map_or(0, |curr| self.tasks[curr.index()].exec_start);
        charged.max(rq.server.charged_to())
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.next_limit_timer()
    }

    fn timer_expired(&mut self, core: &mut Core, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        let cpus = (0..self.rqs.len() as u32).map(CpuId);
        for cpu in cpus.clone() {
            let resched = self.update_server(cpu, core.lower_runs(cpu, self.class), now);
            moves.ask(cpu, resched);
        }
        self.limit_timer_expired(now, &mut moves.resched);
        for cpu in cpus {
            self.sync(core, cpu);
            let asked = moves.resched.iter().find(|(asked, _)| *asked == cpu);
            self.note_limit(core, cpu, asked.map_or(Resched::No, |(_, resched)| *resched), now);
        }
        moves
    }

    fn view(&self, _: &Core, view: &mut QueueView) {
        view.real_time = self.real_time_view(CpuId(view.cpu), view_pid);
    }

    fn is_precise(&self) -> bool {
        true
    }

    fn run_time_log(&mut self) -> Option<&mut RunTimes> {
        Some(self.run_times())
    }
}
