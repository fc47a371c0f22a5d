//! What reaches a CPU from outside its task: ticks, timers, inter-processor interrupts, the end of an idle state.

use std::cmp::Reverse;

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_policy::fair::Hrtick;
use schedlab_policy::Resched;
use schedlab_trace::Sink;

use crate::cpu::{Activity, HrTimer};
use crate::engine::{Engine, Source};
use crate::task::Mode;

impl<S: Sink> Engine<'_, S> {
    /// The tick of a CPU that has just become busy (NO_HZ idle: none before).
    pub fn start_tick(&mut self, cpu: CpuId) {
        let phase = self.cpus[cpu.index()].tick_phase;
        let since = self.now.saturating_sub(phase);
        let next = if self.now < phase { phase } else { phase + (since / self.tick_nsec + 1) * self.tick_nsec };
        self.set_event(Source::TICK, cpu, next);
    }

    /// `tick_sched_timer`: the timers that may fire now, `scheduler_tick`, then the balancing softirq.
    pub fn on_tick(&mut self, cpu: CpuId) {
        self.progress(cpu);
        let cost = self.costs.tick.draw(&mut self.cpus[cpu.index()].dice);
        self.charge(cpu, cost);
        self.run_hrtimers(cpu);
        self.cpus[cpu.index()].clock_read = 0;
        // sched_tick first makes a pending lazy request a full one.
        let c = &mut self.cpus[cpu.index()];
        c.need_resched |= std::mem::take(&mut c.need_resched_lazy);
        let wish = self.sched.tick(cpu, self.now);
        self.request_resched(cpu, wish, cpu);
        if self.sched.balance_due(cpu, self.now) {
            let moves = self.sched.sched_balance_domains(cpu, false, self.now);
            self.apply_moves(cpu, &moves);
        }
        if let Some(idle) = self.sched.nohz_balancer_kick(cpu, self.now) {
            self.cpus[idle.index()].nohz_kicked = true;
            self.kick_idle(idle, cpu);
        }
        self.set_event(Source::TICK, cpu, self.now + self.tick_nsec);
        self.interrupted(cpu);
    }

    /// `hrtimer_interrupt`; an idle CPU has to leave its idle state first.
    pub fn on_hrtimer(&mut self, cpu: CpuId) {
        match self.cpus[cpu.index()].activity {
            Activity::Idle => self.leave_idle_state(cpu, 0),
            Activity::Exiting => {}
            Activity::Busy => {
                self.progress(cpu);
                self.charge_irq(cpu);
                self.run_hrtimers(cpu);
                self.interrupted(cpu);
            }
        }
    }

    pub fn on_resched_ipi(&mut self, cpu: CpuId) {
        if self.cpus[cpu.index()].activity == Activity::Busy {
            self.progress(cpu);
            self.charge_irq(cpu);
            self.interrupted(cpu);
        }
    }

    /// The wakelist's interrupt (`sched_ttwu_pending`).
    pub fn on_call_ipi(&mut self, cpu: CpuId) {
        match self.cpus[cpu.index()].activity {
            Activity::Idle => self.leave_idle_state(cpu, 0),
            Activity::Exiting => {}
            Activity::Busy => {
                self.progress(cpu);
                self.charge_irq(cpu);
                self.drain_wakelist(cpu);
                self.interrupted(cpu);
            }
        }
    }

    /// An idle CPU executes again.
    pub fn on_idle_exit(&mut self, cpu: CpuId) {
        self.progress(cpu);
        self.drain_wakelist(cpu);
        let due = self.cpus[cpu.index()].hrtimers.peek().is_some_and(|timer| timer.0.hard <= self.now);
        if due {
            self.charge_irq(cpu);
            self.run_hrtimers(cpu);
        }
        if std::mem::take(&mut self.cpus[cpu.index()].nohz_kicked) {
            let moves = self.sched.nohz_idle_balance(cpu, self.now);
            self.apply_moves(cpu, &moves);
        }
        let c = &mut self.cpus[cpu.index()];
        if self.sched.nr_running(cpu) == 0 && c.wakelist.is_empty() {
            return self.rest(cpu);
        }
        // Interrupt, wakeups and the pick come before the switch, as on a busy CPU.
        if !std::mem::replace(&mut c.schedule_paid, true) {
            c.pending += self.costs.schedule.draw_any(&mut c.dice);
        }
        let overhead = c.spend_pending();
        if overhead > 0 {
            self.set_event(Source::IDLE_EXIT, cpu, self.now + overhead);
        } else {
            self.mark(cpu);
        }
    }

    /// The end of an interrupt on a busy CPU (`irqentry_exit`): a resched flag set by now is seen.
    pub fn interrupted(&mut self, cpu: CpuId) {
        self.resume_user_mode(cpu);
        let c = &mut self.cpus[cpu.index()];
        let in_user = c.curr.is_some_and(|task| self.tasks[task.index()].mode != Mode::Kernel);
        c.resched_seen = c.need_resched || c.need_resched_lazy && in_user;
        self.settle(cpu);
    }

    /// `hrtick_update`: the slice-end timer of a CPU after its queue has changed.
    #[inline(always)]
    pub fn arm_hrtick(&mut self, cpu: CpuId) {
        if self.hrtick {
            self.update_hrtick(cpu);
        }
    }

    #[inline(never)]
    fn update_hrtick(&mut self, cpu: CpuId) {
        let timer = self.sched.fair.hrtick_update(cpu);
        if timer.is_some_and(|timer| self.set_hrtick(cpu, timer)) {
            self.request_resched(cpu, Resched::Full, cpu);
        }
    }

    /// `hrtick_start_fair`; true: the slice is over already. A pick of a task whose slice is over stands, since its wish
    /// is cleared with all others at the end of the pick.
    #[inline(always)]
    pub fn start_hrtick(&mut self, cpu: CpuId) -> bool {
        self.hrtick && self.restart_hrtick(cpu)
    }

    #[inline(never)]
    fn restart_hrtick(&mut self, cpu: CpuId) -> bool {
        let timer = self.sched.fair.hrtick_start(cpu);
        self.set_hrtick(cpu, timer)
    }

    fn set_hrtick(&mut self, cpu: CpuId, timer: Hrtick) -> bool {
        match timer {
            // 7.x arms nothing for a task alone and cancels in idle only: an old timer may still fire.
            Hrtick::Off if self.spec.kernel.rules.hrtick_stays && self.cpus[cpu.index()].curr.is_some() => {}
            Hrtick::Off => {
                self.events.cancel(self.source(Source::HRTICK, cpu));
                self.sched.fair.set_hrtick_active(cpu, false);
            }
            Hrtick::Now => return true,
            Hrtick::After(left) => {
                self.set_event(Source::HRTICK, cpu, self.now + left);
                self.sched.fair.set_hrtick_active(cpu, true);
            }
        }
        false
    }

    /// `hrtick`: the slice has ended.
    pub fn on_hrtick(&mut self, cpu: CpuId) {
        if self.cpus[cpu.index()].activity == Activity::Busy {
            self.progress(cpu);
            self.charge_irq(cpu);
            self.sched.fair.set_hrtick_active(cpu, false);
            let wish = self.sched.fair.hrtick_expired(cpu, self.now);
            self.request_resched(cpu, wish, cpu);
            self.interrupted(cpu);
        }
    }

    /// Arms the timer of the real-time class after anything that may have moved it.
    #[inline]
    pub fn arm_rt_timer(&mut self) {
        if self.sched.rt.in_use() {
            match self.sched.rt_timer() {
                Some(at) => self.set_event(Source::RT, CpuId(0), at.max(self.now)),
                None => self.events.cancel(self.source(Source::RT, CpuId(0))),
            }
        }
    }

    /// `sched_rt_period_timer`, `dl_server_timer`.
    pub fn on_rt_timer(&mut self) {
        let moves = self.sched.rt_timer_expired(self.now);
        for (cpu, wish) in &moves.resched {
            self.progress(*cpu);
            self.request_resched(*cpu, *wish, *cpu);
            self.interrupted(*cpu);
        }
        self.arm_rt_timer();
    }

    fn charge_irq(&mut self, cpu: CpuId) {
        let cost = self.costs.irq.draw(&mut self.cpus[cpu.index()].dice);
        self.charge(cpu, cost);
    }

    /// Starts a timer of the task on the CPU: it may fire from `soft` on and must by `soft` + the task's timer slack.
    pub fn start_timer(&mut self, cpu: CpuId, task: TaskId, soft: Nanos) {
        self.timer_sequence += 1;
        // schedule_hrtimeout_range: real-time tasks have no slack.
        let slack = if self.sched.rt.policy(task).is_some() { 0 } else { self.tasks[task.index()].timer_slack };
        let timer = HrTimer { hard: soft.saturating_add(slack), sequence: self.timer_sequence, soft, task };
        self.cpus[cpu.index()].hrtimers.push(Reverse(timer));
        self.program_timer(cpu);
    }

    /// `__hrtimer_run_queues`: in order of their latest time, every timer whose earliest time has come.
    fn run_hrtimers(&mut self, cpu: CpuId) {
        while let Some(Reverse(timer)) = self.cpus[cpu.index()].hrtimers.peek().copied() {
            if timer.soft > self.now {
                break;
            }
            self.cpus[cpu.index()].hrtimers.pop();
            self.wake(timer.task, cpu, false);
        }
        self.program_timer(cpu);
    }

    fn program_timer(&mut self, cpu: CpuId) {
        match self.cpus[cpu.index()].hrtimers.peek().map(|timer| timer.0.hard) {
            Some(hard) => {
                let entry = self.costs.irq_entry.draw_any(&mut self.cpus[cpu.index()].dice);
                self.set_event(Source::HRTIMER, cpu, hard.max(self.now) + entry);
            }
            None => self.events.cancel(self.source(Source::HRTIMER, cpu)),
        }
    }
}
