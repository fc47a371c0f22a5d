//! try_to_wake_up and wake_up_new_task: where the wakee goes, who enqueues it, what the waker pays.

use schedlab_model::{CpuId, TaskId};
use schedlab_policy::WakeKind;
use schedlab_trace::{Kind, Sink};

use crate::cpu::{Activity, Leaving};
use crate::engine::{Engine, Source};
use crate::objects::Object;
use crate::task::{Life, Step, Wait};

impl<S: Sink> Engine<'_, S> {
    /// `try_to_wake_up`, executed on CPU `waker_cpu`. `sync`: the waker is about to sleep.
    pub fn wake(&mut self, task: TaskId, waker_cpu: CpuId, sync: bool) {
        let t = &mut self.tasks[task.index()];
        debug_assert_eq!(t.life, Life::Sleeping);
        let (pid, prio) = (t.pid, t.prio);
        t.life = Life::Runnable;
        let cost = self.costs.wakeup.draw(&mut t.dice);
        let last = self.sched.cpu_of(task);
        self.emit(waker_cpu, Kind::Waking { pid, prio, target_cpu: last });
        self.checks.woken(task, self.now);
        self.charge(waker_cpu, cost);
        let kind = WakeKind::Wakeup { sync };
        if self.cpus[last.index()].curr == Some(task) {
            // It is still inside schedule() there (p->on_cpu): its CPU enqueues it when it is through, or the waker
            // waits until then.
            if self.sched.ttwu_queue_cond(task, waker_cpu, last, true) {
                self.put_on_wakelist(task, last, waker_cpu, sync);
            } else {
                self.cpus[last.index()].leaving.push((task, waker_cpu, sync));
            }
        } else if self.sched.requeue_delayed(task, self.now) {
            self.finish_wakeup(task, last, waker_cpu, kind);
        } else {
            self.place_and_enqueue(task, last, waker_cpu, sync);
        }
    }

    fn place_and_enqueue(&mut self, task: TaskId, last: CpuId, waker_cpu: CpuId, sync: bool) {
        let kind = WakeKind::Wakeup { sync };
        let cpu = self.place(task, last, waker_cpu, kind);
        self.sched.set_wakee_cpu(task, cpu, self.now);
        if self.sched.ttwu_queue_cond(task, waker_cpu, cpu, false) {
            self.put_on_wakelist(task, cpu, waker_cpu, sync);
        } else {
            self.sched.activate(task, cpu, kind, self.now);
            self.finish_wakeup(task, cpu, waker_cpu, kind);
        }
    }

    /// The CPU is through schedule(): wakers that waited for a task to leave it go on.
    pub fn place_those_who_left(&mut self, cpu: CpuId) {
        while let Some((task, waker_cpu, sync)) = self.cpus[cpu.index()].leaving.pop() {
            if self.sched.requeue_delayed(task, self.now) {
                self.finish_wakeup(task, cpu, waker_cpu, WakeKind::Wakeup { sync });
            } else {
                self.place_and_enqueue(task, cpu, waker_cpu, sync);
            }
            // The waker returns from its call only now.
            self.interrupted(waker_cpu);
        }
    }

    /// `wake_up_new_task`, executed on the parent's CPU.
    pub fn wake_new(&mut self, task: TaskId, cpu_of_parent: CpuId) {
        self.tasks[task.index()].life = Life::Runnable;
        self.checks.woken(task, self.now);
        let kind = WakeKind::Fork;
        let last = self.sched.cpu_of(task);
        let cpu = self.place(task, last, cpu_of_parent, kind);
        self.sched.activate(task, cpu, kind, self.now);
        let t = &self.tasks[task.index()];
        let (pid, prio) = (t.pid, t.prio);
        self.emit(cpu_of_parent, Kind::WakeupNew { pid, prio, target_cpu: cpu });
        self.preempt_check(task, cpu, cpu_of_parent, kind);
    }

    /// `select_task_rq`, with its costs.
    fn place(&mut self, task: TaskId, last: CpuId, waker_cpu: CpuId, kind: WakeKind) -> CpuId {
        let waker_exits = self.cpus[waker_cpu.index()].curr.is_some_and(|t| self.tasks[t.index()].life == Life::Dead);
        let choice = if waker_exits { kind.without_sync() } else { kind };
        let selection = self.sched.select_task_rq(task, waker_cpu, choice, self.now);
        let tested: u32 = selection.tested.iter().sum();
        let t = &mut self.tasks[task.index()];
        let (pid, prio) = (t.pid, t.prio);
        if tested > 0 {
            let mut cost = 0;
            for (table, count) in self.costs.scan_cpu.iter().zip(selection.tested) {
                if count > 0 {
                    cost += table.draw(&mut t.dice) * u64::from(count);
                }
            }
            self.charge(waker_cpu, cost);
            self.emit(waker_cpu, Kind::Scan { pid, tested, cost });
        }
        if selection.cpu != last {
            self.emit(waker_cpu, Kind::Migrate { pid, prio, orig_cpu: last, dest_cpu: selection.cpu });
        }
        selection.cpu
    }

    /// `ttwu_do_wakeup` and the preemption check.
    fn finish_wakeup(&mut self, task: TaskId, cpu: CpuId, waker_cpu: CpuId, kind: WakeKind) {
        let t = &self.tasks[task.index()];
        let (pid, prio) = (t.pid, t.prio);
        self.emit(waker_cpu, Kind::Wakeup { pid, prio, target_cpu: cpu });
        self.preempt_check(task, cpu, waker_cpu, kind);
    }

    #[inline(always)]
    fn preempt_check(&mut self, task: TaskId, cpu: CpuId, waker_cpu: CpuId, kind: WakeKind) {
        self.progress(cpu);
        self.checks.fair.changed(cpu, self.now);
        let need_resched = self.cpus[cpu.index()].need_resched;
        let wish = self.sched.wakeup_preempt(cpu, task, kind, need_resched, self.now);
        self.request_resched(cpu, wish, waker_cpu);
        let c = &mut self.cpus[cpu.index()];
        c.clock_read = self.costs.wakeup_clock.draw_any(&mut c.dice);
        self.arm_hrtick(cpu);
        if self.sched.rt.in_use() {
            let need_resched = self.cpus[cpu.index()].need_resched;
            let pushed = self.sched.rt_woken(task, need_resched, self.now);
            self.apply_moves(waker_cpu, &pushed);
            self.arm_rt_timer();
        }
    }

    /// `ttwu_queue_wakelist`: the target enqueues it itself, after an interrupt unless it polls.
    fn put_on_wakelist(&mut self, task: TaskId, cpu: CpuId, waker_cpu: CpuId, sync: bool) {
        let c = &mut self.cpus[cpu.index()];
        let first = c.wakelist.is_empty();
        c.wakelist.push((task, sync));
        let (activity, curr) = (c.activity, c.curr);
        self.sched.set_ttwu_pending(cpu, true);
        if !first {
            return;
        }
        match activity {
            Activity::Idle => self.kick_idle(cpu, waker_cpu),
            Activity::Exiting => {}
            Activity::Busy => {
                // A CPU inside schedule() looks at its list as soon as it is through.
                if curr != Some(task) {
                    let arrival = self.now + self.ipi_latency(cpu, waker_cpu);
                    self.set_event(Source::CALL, cpu, arrival);
                }
            }
        }
    }

    /// `sched_ttwu_pending`: enqueues everything on the CPU's wakelist.
    pub fn drain_wakelist(&mut self, cpu: CpuId) {
        let list = std::mem::take(&mut self.cpus[cpu.index()].wakelist);
        if list.is_empty() {
            return;
        }
        for (task, sync) in &list {
            let kind = WakeKind::Wakeup { sync: *sync };
            if !self.sched.requeue_delayed(*task, self.now) {
                self.sched.activate(*task, cpu, kind, self.now);
            }
            self.finish_wakeup(*task, cpu, cpu, kind);
        }
        self.sched.set_ttwu_pending(cpu, false);
        // Keep the allocation.
        let mut list = list;
        list.clear();
        self.cpus[cpu.index()].wakelist = list;
    }

    /// The current task of the CPU stops running until it is woken (or for ever, when it exits). It goes on with
    /// `step` of its operation.
    pub fn block(&mut self, cpu: CpuId, task: TaskId, wait: Wait, step: Step) {
        let t = &mut self.tasks[task.index()];
        let after = match wait {
            Wait::Nothing => None,
            Wait::Timer => Some(&self.costs.timer_resume),
            Wait::Child => Some(&self.costs.reap),
            Wait::Own => Some(&self.costs.futex_resume),
            Wait::Object(object) => match &self.objects[object as usize] {
                Object::Channel(channel) if channel.is_socket() => Some(&self.costs.socket_resume),
                Object::Channel(_) => Some(&self.costs.pipe_resume),
                Object::Gate { .. } => None,
                _ => Some(&self.costs.futex_resume),
            },
        };
        t.after = after.map_or(0, |cost| cost.draw_any(&mut t.dice));
        t.life = Life::Sleeping;
        t.wait = wait;
        t.step = step;
        t.resumed = true;
        t.mode = crate::task::Mode::Kernel;
        t.work_left = 0;
        self.go(cpu, task, Leaving::Sleeps);
    }
}
