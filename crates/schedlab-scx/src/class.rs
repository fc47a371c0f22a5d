//! The functions of the class, which call the operations of the scheduler, in the order of kernel/sched/ext.c of 6.12.

use schedlab_bpf::Memory;

use crate::core::{Calling, ExitKind, Place, TaskNo};
use crate::core::{DSQ_GLOBAL, DSQ_LOCAL, ENQ_HEAD, ENQ_LAST, SLICE_DFL};
use crate::scheduler::{Scheduler, OPS_ENQ_LAST};

/// The most instructions of a run: a load of a minute takes a few millions.
const MOST_INSTRUCTIONS: u64 = 1_000_000_000;
const DEQ_SLEEP: u64 = 1;
const ENQ_WAKEUP: u64 = 1;
const KICK_IDLE: u64 = 1;
const KICK_PREEMPT: u64 = 2;
/// `SCX_DSP_MAX_LOOPS` and `SCX_DSP_DFL_MAX_BATCH`.
const DSP_MAX_LOOPS: u32 = 32;

impl Scheduler {
    pub(crate) fn set_allowed(&mut self, task: TaskNo, allowed: u64) {
        let (layout, memory) = (&self.core.layout, &mut self.machine.memory);
        let state = &mut self.core.tasks[task];
        state.allowed = allowed;
        memory.set(state.mask_region, 0, &allowed.to_le_bytes());
        if let Some((offset, size)) = layout.allowed_count {
            memory.set(state.region, offset, &u64::from(allowed.count_ones()).to_le_bytes()[..size.min(8)]);
        }
    }

    /// `select_task_rq_scx`.
    pub(crate) fn select_task_rq_scx(&mut self, task: TaskNo, wake_flags: u64) -> usize {
        let (prev, allowed) = (self.core.tasks[task].cpu, self.core.tasks[task].allowed);
        if allowed.count_ones() == 1 {
            return allowed.trailing_zeros() as usize;
        }
        let cpu = if self.has("select_cpu") {
            let args = [self.core.tasks[task].address(), prev as u64, wake_flags];
            let chosen = self.operation("select_cpu", &args, Calling::Direct { task, done: false });
            let chosen = chosen.unwrap_or(prev as u64);
            match self.core.cpu_at(chosen) {
                Ok(cpu) => cpu,
                Err(message) => {
                    self.core.error(ExitKind::Error, format!("{message} from ops.select_cpu()"));
                    prev
                }
            }
        } else {
            let (cpu, found) = self.core.select_cpu_dfl(task, prev, wake_flags);
            if found {
                self.core.set_slice(&mut self.machine.memory, task, SLICE_DFL);
                self.core.tasks[task].direct = Some((DSQ_LOCAL, 0));
            }
            cpu
        };
        // `select_fallback_rq`: a CPU outside of the mask is replaced silently.
        if self.core.allows(task, cpu) {
            cpu
        } else {
            allowed.trailing_zeros() as usize
        }
    }

    /// `try_to_wake_up` by a task or an interrupt on the CPU `from`.
    pub(crate) fn wake_up(&mut self, task: TaskNo, from: usize, sync: bool) {
        const WAKE_TTWU: u64 = 1 << 3;
        const WAKE_SYNC: u64 = 1 << 4;
        self.core.this_cpu = from;
        let cpu = self.select_task_rq_scx(task, WAKE_TTWU | if sync { WAKE_SYNC } else { 0 });
        self.core.tasks[task].cpu = cpu;
        self.enqueue_task_scx(task, ENQ_WAKEUP);
    }

    /// `enqueue_task_scx`, and the preemption check of a wakeup: an idle CPU reschedules.
    pub(crate) fn enqueue_task_scx(&mut self, task: TaskNo, flags: u64) {
        self.core.tasks[task].queued = true;
        self.set_task_runnable(task);
        self.task_operation("runnable", task, &[flags]);
        self.do_enqueue_task(task, flags);
        let cpu = self.core.tasks[task].cpu;
        self.core.cpus[cpu].need_resched |= self.core.cpus[cpu].curr.is_none();
    }

    pub(crate) fn set_task_runnable(&mut self, task: TaskNo) {
        let now = self.core.now;
        self.core.tasks[task].runnable_at.get_or_insert(now);
    }

    /// `do_enqueue_task`.
    pub(crate) fn do_enqueue_task(&mut self, task: TaskNo, flags: u64) {
        if self.core.tasks[task].direct.is_none() {
            if !self.has("enqueue") {
                self.core.set_slice(&mut self.machine.memory, task, SLICE_DFL);
                return self.core.dispatch_enqueue(&mut self.machine.memory, DSQ_GLOBAL, task, flags);
            }
            self.core.tasks[task].qseq += 1;
            let args = [self.core.tasks[task].address(), flags];
            self.operation("enqueue", &args, Calling::Direct { task, done: false });
        }
        match self.core.tasks[task].direct.take() {
            Some((dsq, its)) => self.core.dispatch_enqueue(&mut self.machine.memory, dsq, task, flags | its),
            None => self.core.tasks[task].place = Place::Bpf,
        }
    }

    /// `dequeue_task_scx`. A running task stops.
    pub(crate) fn dequeue_task_scx(&mut self, task: TaskNo, flags: u64) {
        let cpu = self.core.tasks[task].cpu;
        if self.core.tasks[task].place == Place::Bpf {
            self.task_operation("dequeue", task, &[flags]);
        }
        self.core.dispatch_dequeue(task);
        self.core.tasks[task].direct = None;
        if self.core.cpus[cpu].curr == Some(task) {
            self.update_curr_scx(cpu);
            self.task_operation("stopping", task, &[0]);
        }
        self.task_operation("quiescent", task, &[flags]);
        self.core.tasks[task].queued = false;
        self.core.tasks[task].runnable_at = None;
    }

    /// The running task of a CPU sleeps.
    pub(crate) fn block(&mut self, cpu: usize) {
        self.core.this_cpu = cpu;
        if let Some(task) = self.core.cpus[cpu].curr {
            self.dequeue_task_scx(task, DEQ_SLEEP);
            self.core.cpus[cpu].need_resched = true;
        }
    }

    /// `yield_task_scx` of a scheduler without `yield`.
    pub(crate) fn yield_task(&mut self, cpu: usize) {
        self.core.this_cpu = cpu;
        if let Some(task) = self.core.cpus[cpu].curr {
            if self.has("yield") {
                let args = [self.core.tasks[task].address(), 0];
                self.operation("yield", &args, Calling::Other);
            } else {
                self.core.set_slice(&mut self.machine.memory, task, 0);
            }
            self.core.cpus[cpu].need_resched = true;
        }
    }

    /// `set_cpus_allowed_scx`, of a task in any state.
    pub(crate) fn set_cpus_allowed(&mut self, task: TaskNo, allowed: u64) {
        let cpu = self.core.tasks[task].cpu;
        let (queued, running) = (self.core.tasks[task].queued, self.core.cpus[cpu].curr == Some(task));
        self.core.this_cpu = cpu;
        if queued {
            self.dequeue_task_scx(task, 0);
        }
        self.set_allowed(task, allowed & self.core.every_cpu());
        let mask = Memory::address(self.core.tasks[task].mask_region, 0);
        self.task_operation("set_cpumask", task, &[mask]);
        if !self.core.allows(task, cpu) {
            self.core.tasks[task].cpu = self.core.tasks[task].allowed.trailing_zeros() as usize;
            if running {
                self.core.cpus[cpu].curr = None;
                self.core.cpus[cpu].need_resched = true;
            }
        }
        if !queued {
            return;
        }
        self.core.tasks[task].queued = true;
        self.task_operation("runnable", task, &[0]);
        if running && self.core.allows(task, cpu) {
            self.core.cpus[cpu].exec_start = self.core.now;
            self.task_operation("running", task, &[]);
        } else {
            self.set_task_runnable(task);
            self.do_enqueue_task(task, 0);
            let cpu = self.core.tasks[task].cpu;
            self.core.cpus[cpu].need_resched |= self.core.cpus[cpu].curr.is_none();
        }
    }

    /// `update_curr_scx`.
    pub(crate) fn update_curr_scx(&mut self, cpu: usize) {
        let Some(task) = self.core.cpus[cpu].curr else { return };
        let delta = self.core.now - self.core.cpus[cpu].exec_start;
        self.core.cpus[cpu].exec_start = self.core.now;
        let slice = self.core.slice(&self.machine.memory, task);
        if slice != u64::MAX {
            self.core.set_slice(&mut self.machine.memory, task, slice.saturating_sub(delta));
        }
    }

    /// `task_tick_scx`.
    pub(crate) fn task_tick_scx(&mut self, cpu: usize) {
        let Some(task) = self.core.cpus[cpu].curr else { return };
        self.core.this_cpu = cpu;
        self.update_curr_scx(cpu);
        self.task_operation("tick", task, &[]);
        self.core.cpus[cpu].need_resched |= self.core.slice(&self.machine.memory, task) == 0;
    }

    /// `balance_one`: whether the running task is to be kept.
    pub(crate) fn balance_one(&mut self, cpu: usize) -> bool {
        let prev = self.core.cpus[cpu].curr;
        let runnable = prev.filter(|task| self.core.tasks[*task].queued);
        self.update_curr_scx(cpu);
        let keeps = |s: &Scheduler| runnable.is_some_and(|task| s.core.slice(&s.machine.memory, task) > 0);
        if keeps(self) {
            return true;
        }
        if self.has_tasks(cpu) {
            return false;
        }
        if self.has("dispatch") {
            for turn in 1..=DSP_MAX_LOOPS {
                let address = prev.map_or(0, |task| self.core.tasks[task].address());
                self.operation("dispatch", &[cpu as u64, address], Calling::Dispatch { cpu });
                let dispatched = self.core.flush_dispatch_buf(&mut self.machine.memory, cpu);
                if keeps(self) {
                    return true;
                }
                if self.has_tasks(cpu) {
                    return false;
                }
                if dispatched == 0 || self.core.exit.is_some() {
                    break;
                }
                if turn == DSP_MAX_LOOPS {
                    self.core.kicks.push((cpu, 0));
                }
            }
        }
        runnable.is_some() && self.flags & OPS_ENQ_LAST == 0
    }

    pub(crate) fn has_tasks(&mut self, cpu: usize) -> bool {
        !self.core.cpus[cpu].local.tasks.is_empty()
            || self.core.consume_dispatch_q(&mut self.machine.memory, cpu, DSQ_GLOBAL)
    }

    /// `__schedule` with `balance_scx`, `pick_task_scx`, `put_prev_task_scx` and `set_next_task_scx`.
    pub(crate) fn schedule(&mut self, cpu: usize) {
        self.core.this_cpu = cpu;
        self.core.cpus[cpu].need_resched = false;
        let prev = self.core.cpus[cpu].curr;
        let keep = self.balance_one(cpu);
        let next = match prev.filter(|_| keep) {
            Some(prev) => {
                if self.core.slice(&self.machine.memory, prev) == 0 {
                    self.core.set_slice(&mut self.machine.memory, prev, SLICE_DFL);
                }
                Some(prev)
            }
            None => self.core.cpus[cpu].local.tasks.first().map(|(task, _)| *task),
        };
        if let Some(next) = next {
            if self.core.slice(&self.machine.memory, next) == 0 {
                self.core.set_slice(&mut self.machine.memory, next, SLICE_DFL);
            }
        }
        if prev == next && prev.is_some() {
            return;
        }
        if let Some(prev) = prev {
            self.put_prev_task_scx(cpu, prev, next.is_none());
        }
        self.core.cpus[cpu].curr = next;
        match next {
            Some(next) => self.set_next_task_scx(cpu, next),
            None => self.update_idle(cpu, true),
        }
    }

    pub(crate) fn put_prev_task_scx(&mut self, cpu: usize, prev: TaskNo, idle_follows: bool) {
        if !self.core.tasks[prev].queued {
            return;
        }
        self.update_curr_scx(cpu);
        self.task_operation("stopping", prev, &[1]);
        self.set_task_runnable(prev);
        if self.core.slice(&self.machine.memory, prev) > 0 {
            self.core.dispatch_to_local_dsq(&mut self.machine.memory, cpu, prev, ENQ_HEAD);
        } else {
            self.do_enqueue_task(prev, if idle_follows { ENQ_LAST } else { 0 });
            let on_local = self.core.tasks[prev].place == Place::Local(cpu);
            self.core.cpus[cpu].need_resched |= idle_follows && on_local;
        }
    }

    pub(crate) fn set_next_task_scx(&mut self, cpu: usize, next: TaskNo) {
        self.core.dispatch_dequeue(next);
        self.core.cpus[cpu].exec_start = self.core.now;
        self.task_operation("running", next, &[]);
        self.core.tasks[next].runnable_at = None;
        self.update_idle(cpu, false);
    }

    /// `__scx_update_idle`.
    pub(crate) fn update_idle(&mut self, cpu: usize, idle: bool) {
        let state = &mut self.core.cpus[cpu];
        let changes = state.is_idle != idle;
        (state.idle, state.is_idle) = (idle, idle);
        if changes {
            self.operation("update_idle", &[cpu as u64, u64::from(idle)], Calling::Other);
        }
    }

    /// Carries out kicks and reschedules until none is left.
    ///
    /// After a number of rounds within one instant a livelock is an error of the scheduler.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            for (cpu, flags) in std::mem::take(&mut self.core.kicks) {
                self.kick(cpu, flags);
            }
            let Some(cpu) = self.core.cpus.iter().position(|cpu| cpu.need_resched) else { return };
            if self.machine.executed() > MOST_INSTRUCTIONS {
                let message = format!("the scheduler has executed more than {MOST_INSTRUCTIONS} instructions");
                self.core.error(ExitKind::Error, message);
            }
            if self.core.exit.is_some() {
                return;
            }
            self.schedule(cpu);
        }
        let message = "the CPUs reschedule without end: kicks or dispatches follow each other within one instant";
        self.core.error(ExitKind::Error, message.to_owned());
    }

    /// `kick_one_cpu`.
    pub(crate) fn kick(&mut self, cpu: usize, flags: u64) {
        if flags & KICK_IDLE != 0 && !self.core.cpus[cpu].is_idle {
            return;
        }
        if flags & KICK_PREEMPT != 0 {
            if let Some(task) = self.core.cpus[cpu].curr {
                self.core.set_slice(&mut self.machine.memory, task, 0);
            }
        }
        self.core.cpus[cpu].need_resched = true;
    }

    /// `check_rq_for_timeouts` of every CPU.
    pub(crate) fn check_for_timeouts(&mut self) {
        let (now, timeout) = (self.core.now, self.timeout);
        let late = self.core.tasks.iter().position(|task| task.runnable_at.is_some_and(|since| now - since > timeout));
        if let Some(task) = late {
            let waited = (now - self.core.tasks[task].runnable_at.unwrap_or(now)) / 1_000_000;
            let place = match self.core.tasks[task].place {
                Place::Bpf => "no queue: the scheduler has inserted it nowhere",
                Place::Local(_) => "the local queue of its CPU",
                Place::Dsq(DSQ_GLOBAL) => "the global queue",
                Place::Dsq(_) => "a queue of the scheduler",
                Place::Nowhere => "no queue",
            };
            let (name, seconds, rest) = (self.core.named(task), waited / 1000, waited % 1000);
            let message = format!("{name} failed to run for {seconds}.{rest:03}s; it is on {place}");
            self.core.error(ExitKind::ErrorStall, message);
        }
    }
}
