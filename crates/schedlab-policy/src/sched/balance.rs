//! The calls of core code into load balancing: before and after a pick, by the stopper, at ticks, for idle CPUs.

use schedlab_model::{CpuId, Nanos};

use super::{Moves, Sched};
use crate::class::ClassList;

impl<L: ClassList> Sched<L> {
    /// `balance` of the classes, before a pick (`put_prev_task_balance`).
    pub fn balance(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        if !self.core.is_mixed() {
            return Moves::default();
        }
        self.moving(now, |sched| sched.every_class().balance(cpu, now))
    }

    /// `sched_balance_newidle`: the CPU is about to become idle and pulls tasks if it can. Call it between an empty
    /// pick and [`Sched::idle_enter`].
    #[inline(always)]
    pub fn sched_balance_newidle(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        if !self.core.is_mixed() {
            let moves = self.class(Self::LOWEST).sched_balance_newidle(cpu, now);
            self.complete_views();
            return moves;
        }
        self.moving(now, |sched| sched.every_class().sched_balance_newidle(cpu, now))
    }

    /// Balance callbacks, after a switch (`balance_callback`).
    pub fn balance_callback(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        if !self.core.is_mixed() {
            return Moves::default();
        }
        self.moving(now, |sched| sched.every_class().balance_callback(cpu, now))
    }

    /// Whether the stopper of `cpu` has work. Checked at every reschedule, before [`Sched::pick_next_task`].
    #[inline]
    #[must_use]
    pub fn active_balance_pending(&self, cpu: CpuId) -> bool {
        self.core.rqs[cpu.index()].push_cpu.is_some()
    }

    /// The stopper's work, if there is any: it pushes one task to the CPU that requested it. The stopper is switched in
    /// for this, so the running task is put first, whatever its class.
    pub fn active_load_balance_cpu_stop(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        let Some(dest) = self.core.rqs[cpu.index()].push_cpu.take() else { return Moves::default() };
        self.put_prev_task(cpu, self.core.clock_task(cpu, now));
        self.moving(now, |sched| sched.every_class().active_load_balance_cpu_stop(cpu, dest, now))
    }

    /// Whether any task is or was of a class above the lowest one that has tasks.
    #[inline(always)]
    pub(crate) fn is_mixed(&self) -> bool {
        self.core.is_mixed()
    }

    /// Whether the CPU's next periodic balance is due (`time_after_eq(jiffies, rq.next_balance)`), checked at its tick.
    #[must_use]
    pub fn balance_due(&self, cpu: CpuId, now: Nanos) -> bool {
        self.core.domains.depth(cpu) > 0 && self.core.jiffies(now) >= self.core.rqs[cpu.index()].next_balance
    }

    /// `sched_balance_domains` of one CPU; `idle`: it was idle at the tick.
    pub fn sched_balance_domains(&mut self, cpu: CpuId, idle: bool, now: Nanos) -> Moves {
        self.moving(now, |sched| sched.every_class().sched_balance_domains(cpu, idle, now))
    }

    /// `nohz_balancer_kick`, called at the tick of a busy CPU: the idle CPU to send an IPI to, which then calls
    /// [`Sched::nohz_idle_balance`].
    pub fn nohz_balancer_kick(&mut self, cpu: CpuId, now: Nanos) -> Option<CpuId> {
        self.every_class().nohz_balancer_kick(cpu, now)
    }

    /// `nohz_idle_balance`: `cpu` balances on behalf of every idle CPU that is due, and for itself last.
    pub fn nohz_idle_balance(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        self.moving(now, |sched| sched.every_class().nohz_idle_balance(cpu, now))
    }

    /// Runs a call in which a class may move tasks, and reports the moves to the other classes.
    #[inline]
    pub(super) fn moving(&mut self, now: Nanos, call: impl FnOnce(&mut Self) -> Moves) -> Moves {
        let moves = call(self);
        if !moves.moved.is_empty() {
            self.tasks_moved(&moves, now);
        }
        self.complete_views();
        moves
    }

    #[inline(never)]
    fn tasks_moved(&mut self, moves: &Moves, now: Nanos) {
        for (task, from) in &moves.moved {
            let (to, class) = (self.cpu_of(*task), self.core.class_of(*task));
            self.other_classes(class).migrate_task_rq(*task, *from, to, now);
        }
    }
}
