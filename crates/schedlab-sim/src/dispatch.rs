//! schedule(): who runs next on a CPU, what the switch costs, when the CPU is asked again.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_policy::{Moves, Resched};
use schedlab_trace::{Kind, Sink, TaskState};

use crate::check::OnCpu;
use crate::cpu::{Activity, Leaving};
use crate::engine::{Engine, Source};
use crate::task::{Life, Mode, Step, WORK_SHIFT};

impl<S: Sink> Engine<'_, S> {
    /// `__schedule` on a CPU.
    pub fn schedule(&mut self, cpu: CpuId) {
        self.progress(cpu);
        let (clock, decided) = (self.sched.schedule_clock(cpu, self.now), self.sched.decided());
        // A skipped update leaves what the last wakeup read, which was after its beginning.
        let clock = (clock + self.cpus[cpu.index()].clock_read).min(self.now);
        self.gone(cpu, clock);
        let c = &mut self.cpus[cpu.index()];
        c.marked = false;
        c.need_resched = false;
        c.need_resched_lazy = false;
        c.resched_seen = false;
        c.schedule_paid = false;
        let (prev, away) = (c.curr, c.push_away.take());
        self.checks.picked(cpu, self.now);
        let stopped = away.is_some() || self.sched.active_balance_pending(cpu);
        if stopped {
            self.stopper(cpu, away);
        }
        if self.sched.rt.in_use() {
            self.pull_real_time(cpu);
        }
        // The stopper that pushed has updated the clock.
        let clock = if stopped { self.now } else { clock };
        let next = self.sched.pick_next_task(cpu, clock).or_else(|| self.pull(cpu));
        self.sched.date_decisions(decided, self.now);
        if prev == next {
            self.resume_user_mode(cpu);
            match next {
                Some(_) => self.settle(cpu),
                None => self.rest(cpu),
            }
        } else {
            self.switch(cpu, prev, next);
        }
        let c = &self.cpus[cpu.index()];
        if !c.leaving.is_empty() || !c.wakelist.is_empty() {
            self.let_wakers_go_on(cpu);
        }
        self.start_hrtick(cpu);
        self.arm_bandwidth();
        if self.sched.rt.in_use() {
            self.push_real_time(cpu);
        }
    }

    /// The stopper's work on the CPU: the current task leaves for where it may run, balancing pushes it.
    #[inline(never)]
    fn stopper(&mut self, cpu: CpuId, away: Option<(TaskId, CpuId)>) {
        if let Some((task, dest)) = away {
            self.push_away(cpu, task, dest);
        }
        if self.sched.active_balance_pending(cpu) {
            let pushed = self.sched.active_load_balance_cpu_stop(cpu, self.now);
            self.apply_moves(cpu, &pushed);
        }
    }

    #[inline(never)]
    fn pull_real_time(&mut self, cpu: CpuId) {
        let pulled = self.sched.rt_pull(cpu, self.now);
        self.apply_moves(cpu, &pulled);
    }

    #[inline(never)]
    fn push_real_time(&mut self, cpu: CpuId) {
        let pushed = self.sched.rt_push(cpu, self.now);
        self.apply_moves(cpu, &pushed);
        self.arm_rt_timer();
    }

    /// `newidle_balance`: what the CPU runs now that it had nothing to run.
    #[inline(never)]
    pub fn pull(&mut self, cpu: CpuId) -> Option<TaskId> {
        if !self.cpus[cpu.index()].wakelist.is_empty() {
            return None;
        }
        let moves = self.sched.sched_balance_newidle(cpu, self.now);
        self.apply_moves(cpu, &moves);
        let came = moves.moved.iter().any(|(task, _)| self.sched.cpu_of(*task) == cpu);
        if came {
            return self.sched.pick_next_task(cpu, self.now);
        }
        None
    }

    /// The CPU is through: whoever waited for a task to leave it goes on, and its wakelist is looked at.
    #[cold]
    fn let_wakers_go_on(&mut self, cpu: CpuId) {
        self.place_those_who_left(cpu);
        if !self.cpus[cpu.index()].wakelist.is_empty() && self.events.due(self.source(Source::CALL, cpu)).is_none() {
            self.set_event(Source::CALL, cpu, self.now);
        }
    }

    /// `__migrate_task` by the stopper.
    fn push_away(&mut self, cpu: CpuId, task: TaskId, dest: CpuId) {
        let wish = self.sched.move_task(task, dest, self.now);
        let (pid, prio) = (self.tasks[task.index()].pid, self.tasks[task.index()].prio);
        self.emit(cpu, Kind::Migrate { pid, prio, orig_cpu: cpu, dest_cpu: dest });
        self.request_resched(dest, wish, cpu);
    }

    /// `context_switch`.
    #[inline(always)]
    fn switch(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        self.switches += 1;
        let (prev_pid, prev_prio, prev_state) = match prev {
            Some(task) => self.leave(cpu, task),
            None => (0, 120, TaskState::Running),
        };
        let left = prev.map(|task| (task, how(prev_state)));
        self.checks.switched(cpu, left, next, self.now);
        if let (Some(task), TaskState::Dead) = (prev, prev_state) {
            self.release(task);
        }
        self.cpus[cpu.index()].curr = next;
        let (next_pid, next_prio) = match next {
            Some(task) => {
                let t = &self.tasks[task.index()];
                (t.pid, t.prio)
            }
            None => (0, 120),
        };
        self.emit(cpu, Kind::Switch { prev: prev_pid, prev_prio, prev_state, next: next_pid, next_prio });
        match next {
            Some(task) => self.enter(cpu, task, prev.is_none()),
            None => self.go_idle(cpu),
        }
    }

    #[inline(always)]
    fn leave(&mut self, cpu: CpuId, task: TaskId) -> (i32, i32, TaskState) {
        self.events.cancel(self.source(Source::SEGMENT, cpu));
        let c = &mut self.cpus[cpu.index()];
        let t = &mut self.tasks[task.index()];
        let state = match t.life {
            Life::Running => {
                t.life = Life::Runnable;
                TaskState::Running
            }
            Life::Dead => TaskState::Dead,
            Life::Runnable => TaskState::Running,
            _ => TaskState::Sleeping,
        };
        if state != TaskState::Running {
            // Overhead the task incurred before it blocked is the CPU's to finish.
            c.pending += std::mem::take(&mut t.cost_left) >> WORK_SHIFT;
        }
        (t.pid, t.prio, state)
    }

    #[inline(always)]
    fn enter(&mut self, cpu: CpuId, task: TaskId, from_idle: bool) {
        let c = &mut self.cpus[cpu.index()];
        let t = &mut self.tasks[task.index()];
        t.life = Life::Running;
        t.wait = crate::task::Wait::Nothing;
        let same_process = c.process == t.process;
        c.process = t.process;
        let table = if same_process { &self.costs.switch_thread } else { &self.costs.switch_process };
        c.pending += table.draw(&mut t.dice);
        if c.activity != Activity::Busy {
            c.activity = Activity::Busy;
            self.core_changed(cpu, true);
        }
        if from_idle {
            self.sched.idle_exit(cpu, self.now);
            self.start_tick(cpu);
        }
        self.resume_user_mode(cpu);
        if let Some(end) = self.segment_end(cpu) {
            self.set_event(Source::SEGMENT, cpu, end);
        }
        if self.tasks[task.index()].mode == Mode::Spin {
            let cost = self.cpus[cpu.index()].wall(self.tasks[task.index()].cost_left);
            self.set_event(Source::SEGMENT, cpu, self.now + cost);
        }
    }

    /// Brings what changed on a CPU into effect: pending overhead joins the segment, its end is scheduled anew.
    pub fn settle(&mut self, cpu: CpuId) {
        if let Some(end) = self.segment_end(cpu) {
            self.set_event(Source::SEGMENT, cpu, end);
        }
    }

    /// When the running task's segment ends, pending overhead included; `None` if there is no such time.
    #[inline(always)]
    fn segment_end(&mut self, cpu: CpuId) -> Option<Nanos> {
        let c = &mut self.cpus[cpu.index()];
        if c.marked || c.activity != Activity::Busy {
            return None;
        }
        let t = &mut self.tasks[c.curr?.index()];
        t.cost_left += std::mem::take(&mut c.pending) << WORK_SHIFT;
        if c.leaving_for.is_some() {
            return Some(self.now + c.wall(t.cost_left));
        }
        if c.resched_seen && (self.preemptible || t.mode != Mode::Kernel) {
            if !std::mem::replace(&mut c.schedule_paid, true) {
                t.cost_left += self.costs.schedule.draw_any(&mut c.dice) << WORK_SHIFT;
            }
            if t.cost_left == 0 {
                self.mark(cpu);
                return None;
            }
            return Some(self.now + c.wall(t.cost_left));
        }
        match t.mode {
            Mode::User | Mode::Kernel => Some(self.now + c.wall(t.cost_left + t.work_left)),
            Mode::Wall => Some((self.now + c.wall(t.cost_left)).max(t.until)),
            // With no overhead left it goes on when the lock's holder says so.
            Mode::Spin => (t.cost_left > 0).then(|| self.now + c.wall(t.cost_left)),
        }
    }

    /// The running task's segment has ended, or its overhead before a preemption. What follows is handled here for as
    /// long as it is what happens next anyway.
    pub fn on_segment(&mut self, cpu: CpuId) {
        loop {
            let c = &mut self.cpus[cpu.index()];
            let Some(task) = c.curr else { return self.progress(cpu) };
            let t = &mut self.tasks[task.index()];
            if c.last != self.now {
                c.progress(self.now, Some(t));
            }
            if c.leaving_for.is_some() && t.cost_left == 0 {
                return self.mark(cpu);
            }
            if self.bandwidth && t.mode == Mode::Kernel && t.step == Step::Fetch && t.segment_done(self.now) {
                // The call was over when it slept.
                t.mode = Mode::User;
                self.resume_user_mode(cpu);
                continue;
            }
            if c.resched_seen && t.cost_left == 0 && (self.preemptible || t.mode != Mode::Kernel) {
                return self.mark(cpu);
            }
            if c.leaving_for.is_none() && t.segment_done(self.now) || t.mode == Mode::Spin {
                self.advance(cpu, task);
            }
            let Some(end) = self.segment_end(cpu) else { return };
            if !self.runs_ahead(end) {
                return self.set_event(Source::SEGMENT, cpu, end);
            }
            self.handled += 1;
            self.now = end;
        }
    }

    /// The current task blocks or has exited: first it gets into schedule(), which takes time in which it counts as
    /// running.
    #[inline(always)]
    pub fn go(&mut self, cpu: CpuId, task: TaskId, why: Leaving) {
        let c = &mut self.cpus[cpu.index()];
        c.leaving_for = Some(why);
        if self.costs.schedule.is_nothing() || std::mem::replace(&mut c.schedule_paid, true) {
            return self.mark(cpu);
        }
        let t = &mut self.tasks[task.index()];
        t.cost_left += self.costs.schedule.draw(&mut c.dice) << WORK_SHIFT;
    }

    /// `deactivate_task` in `__schedule`, of a task that blocks or has exited.
    fn gone(&mut self, cpu: CpuId, clock: Nanos) {
        let c = &mut self.cpus[cpu.index()];
        let (Some(why), Some(task)) = (c.leaving_for.take(), c.curr) else { return };
        let t = &mut self.tasks[task.index()];
        t.work_left = std::mem::take(&mut t.after) << WORK_SHIFT;
        self.checks.fair.changed(cpu, self.now);
        self.sched.block(task, why == Leaving::Exits, clock);
        if why == Leaving::Exits {
            self.sched.fair.task_dead(task);
        }
    }

    /// `resched_curr`, called on CPU `from`.
    #[inline(always)]
    pub fn request_resched(&mut self, cpu: CpuId, wish: Resched, from: CpuId) {
        if wish != Resched::No {
            self.pass_on_wish(cpu, wish, from);
        }
    }

    #[inline(never)]
    fn pass_on_wish(&mut self, cpu: CpuId, wish: Resched, from: CpuId) {
        let c = &mut self.cpus[cpu.index()];
        match c.activity {
            Activity::Idle => self.kick_idle(cpu, from),
            Activity::Exiting => {}
            Activity::Busy if c.need_resched => {}
            // No interrupt: noticed at the next return to user mode, or made a full request by the next tick.
            Activity::Busy if wish == Resched::Lazy => c.need_resched_lazy = true,
            Activity::Busy => {
                c.need_resched = true;
                if cpu != from {
                    let arrival = self.now + self.ipi_latency(cpu, from);
                    self.set_event(Source::RESCHED, cpu, arrival);
                }
            }
        }
    }

    /// Wakes an idle CPU so that it looks at its runqueue.
    pub fn kick_idle(&mut self, cpu: CpuId, from: CpuId) {
        let c = &self.cpus[cpu.index()];
        if c.activity != Activity::Idle {
            return;
        }
        let polling = self.spec.machine.idle_states[c.idle_state].polling;
        let latency = match (cpu == from, polling) {
            (true, _) => 0,
            // The store that it polls comes as late as an interrupt would be sent.
            (false, true) => self.sending_delay(from),
            (false, false) => self.ipi_latency(cpu, from),
        };
        self.leave_idle_state(cpu, latency);
    }

    /// Starts leaving the idle state after `latency`.
    pub fn leave_idle_state(&mut self, cpu: CpuId, latency: Nanos) {
        self.progress(cpu);
        let c = &mut self.cpus[cpu.index()];
        c.activity = Activity::Exiting;
        let mut due = self.now + latency;
        match self.now.checked_sub(c.idle_from) {
            // Still on its way into the idle state: it sees the request when it gets there.
            None => due = due.max(c.idle_from),
            Some(slept) => {
                c.idle_average = (c.idle_average * 7 + slept) / 8;
                due += self.idle_exits[c.idle_state].draw(&mut c.dice);
            }
        }
        self.set_event(Source::IDLE_EXIT, cpu, due);
    }

    /// From now until an interrupt that CPU `from` sends arrives: first `from` spends what it has incurred at this
    /// instant, so the last of many wakeups is sent last.
    pub fn ipi_latency(&mut self, cpu: CpuId, from: CpuId) -> Nanos {
        let distance = self.spec.machine.topology.distance(from, cpu) as usize;
        let c = &mut self.cpus[from.index()];
        c.wall(c.pending << WORK_SHIFT) + self.costs.ipi[distance].draw(&mut c.dice)
    }

    /// How long the CPU is still busy with what it has incurred at this instant.
    fn sending_delay(&self, from: CpuId) -> Nanos {
        let c = &self.cpus[from.index()];
        c.wall(c.pending << WORK_SHIFT)
    }

    #[inline(never)]
    fn go_idle(&mut self, cpu: CpuId) {
        self.events.cancel(self.source(Source::TICK, cpu));
        // The idle task borrows the address space it finds (lazy TLB).
        let c = &mut self.cpus[cpu.index()];
        c.pending += self.costs.switch_thread.draw(&mut c.dice);
        self.sched.idle_enter(cpu, self.now);
        self.rest(cpu);
        self.core_changed(cpu, false);
    }

    /// Pending overhead first, then into an idle state: the deepest that pays for the time expected until the next
    /// timer or, if earlier, for the CPU's average idle period (a first-order menu governor).
    pub fn rest(&mut self, cpu: CpuId) {
        let now = self.now;
        let c = &mut self.cpus[cpu.index()];
        c.activity = Activity::Idle;
        c.idle_from = now + c.spend_pending();
        let timer = c.hrtimers.peek().map_or(Nanos::MAX, |timer| timer.0.hard.saturating_sub(now));
        let expected = timer.min(c.idle_average);
        let states = &self.spec.machine.idle_states[..self.idle_allowed];
        c.idle_state = states.iter().rposition(|state| state.target_residency <= expected).unwrap_or(0);
    }

    /// Where balancing put tasks: their trace events, its costs, and the reschedules it asks for.
    #[inline]
    pub fn apply_moves(&mut self, cpu: CpuId, moves: &Moves) {
        if moves.passes > 0 || !moves.moved.is_empty() || !moves.resched.is_empty() {
            self.carry_out(cpu, moves);
        }
    }

    fn carry_out(&mut self, cpu: CpuId, moves: &Moves) {
        for _ in 0..moves.passes {
            let cost = self.costs.balance_pass.draw(&mut self.cpus[cpu.index()].dice);
            self.charge(cpu, cost);
        }
        if moves.looked_at > 0 {
            let each = self.costs.balance_cpu.draw(&mut self.cpus[cpu.index()].dice);
            self.charge(cpu, each * u64::from(moves.looked_at));
        }
        for (task, orig_cpu) in &moves.moved {
            let (pid, prio) = (self.tasks[task.index()].pid, self.tasks[task.index()].prio);
            let dest_cpu = self.sched.cpu_of(*task);
            self.checks.fair.changed(*orig_cpu, self.now);
            self.checks.fair.changed(dest_cpu, self.now);
            self.emit(cpu, Kind::Migrate { pid, prio, orig_cpu: *orig_cpu, dest_cpu });
            // Accounting on the source may have found its running task's slice used up.
            let wish = self.sched.fair.need_resched(*orig_cpu);
            self.request_resched(*orig_cpu, wish, cpu);
        }
        for (target, wish) in &moves.resched {
            if *target != cpu || self.cpus[cpu.index()].activity == Activity::Busy {
                self.request_resched(*target, *wish, cpu);
            }
        }
    }

    /// Threads of a core share its execution resources: when one becomes busy or idle, the rate of all changes.
    fn core_changed(&mut self, cpu: CpuId, busy: bool) {
        let core = &mut self.cores[self.core_of[cpu.index()] as usize];
        core.busy = if busy { core.busy + 1 } else { core.busy - 1 };
        if core.threads.len() < 2 {
            return;
        }
        let rates = &self.spec.machine.smt_rates;
        let rate = rates[(core.busy as usize).saturating_sub(1).min(rates.len() - 1)].max(1);
        if self.cpus[cpu.index()].rate != rate {
            self.set_rate(cpu, rate);
        }
    }

    /// All threads of the CPU's core go on at another rate.
    #[inline(never)]
    fn set_rate(&mut self, cpu: CpuId, rate: u32) {
        let core = &self.cores[self.core_of[cpu.index()] as usize];
        for thread in std::sync::Arc::clone(&core.threads).iter().copied() {
            self.progress(thread);
            self.cpus[thread.index()].rate = rate;
            if thread != cpu {
                self.settle(thread);
            }
        }
    }
}

fn how(state: TaskState) -> OnCpu {
    match state {
        TaskState::Running => OnCpu::Preempted,
        TaskState::Dead => OnCpu::Exited,
        _ => OnCpu::Blocked,
    }
}
