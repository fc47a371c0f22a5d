//! Balancing on behalf of CPUs whose tick is stopped (`nohz_balancer_kick`, `nohz_idle_balance`,
//! kernel/sched/fair.c 5.15 to 7.3).
//!
//! At its tick a busy CPU kicks the first idle CPU whose tick is stopped, at most once per jiffy and only when a
//! balance is due, if it has two tasks, or one task and little capacity for it, or if another CPU of its cache is busy
//! too (where capacities differ: if its task is too big for it). The kicked CPU balances on behalf of every idle CPU
//! that is due, and for itself last. The blocked load of idle CPUs is updated every 32 ms, without the interrupt that
//! the kernel sends for it. Not modelled: kicks that only recompute the next due time (it is kept up to date when a CPU
//! becomes idle), asymmetric packing.

use schedlab_model::{CpuId, Nanos, FULL_CAPACITY};

use crate::core::types::Moves;
use crate::fair::class::FairClass;
use crate::jiffies::Jiffies;

/// `LOAD_AVG_PERIOD`, in ms.
const LOAD_AVG_PERIOD: Jiffies = 32;

impl FairClass<'_> {
    /// `nohz_balancer_kick`, called at the tick of a busy CPU: the idle CPU to send an IPI to, which then calls
    /// [`FairClass::nohz_idle_balance`].
    pub fn nohz_balancer_kick(&mut self, cpu: CpuId, now: Nanos) -> Option<CpuId> {
        if self.core.rqs[cpu.index()].idle {
            return None;
        }
        self.nohz_balance_exit_idle(cpu);
        let jiffies = self.core.jiffies(now);
        self.refresh_blocked(now, jiffies);
        if self.core.nohz.count == 0 || jiffies < self.core.nohz.next_balance {
            return None;
        }
        if self.core.rqs[cpu.index()].nr_running < 2 && !self.is_pressed(cpu) && !self.others_should_help(cpu) {
            return None;
        }
        self.core.nohz.next_balance = jiffies + 1;
        let ilb = self.find_new_ilb(cpu)?;
        let already = std::mem::replace(&mut self.core.rqs[ilb.index()].nohz_kicked, true);
        (!already).then_some(ilb)
    }

    /// `find_new_ilb`: the first idle CPU; from 7.3 on one of a wholly idle core first.
    fn find_new_ilb(&self, cpu: CpuId) -> Option<CpuId> {
        let (nohz, idle) = (&self.core.nohz, &self.core.idle);
        let idle_cpus = || nohz.idle_cpus.iter().filter(|ilb| *ilb != cpu && self.core.is_idle(*ilb));
        if !self.core.rules.ilb_prefers_idle_core {
            return idle_cpus().next();
        }
        idle_cpus().find(|ilb| idle.is_core_idle(*ilb)).or_else(|| idle_cpus().next())
    }

    /// Another CPU of its cache is busy too; where capacities differ, its task is too big for it.
    fn others_should_help(&self, cpu: CpuId) -> bool {
        match &self.core.asym {
            // Up to 6.9 a task that is too big even for the biggest CPU counts only where that has lost capacity.
            Some(asym) if self.core.domains.asym_level(cpu).is_some() => {
                let helped = self.core.rules.misfit_minds_affinity
                    || self.core.topology.capacity(cpu) < FULL_CAPACITY
                    || self.is_pressed(cpu);
                asym.misfit_load(cpu) > 0 && helped
            }
            _ => self.core.idle.llc(self.core.idle.llc_of(cpu)).nr_busy > 1,
        }
    }

    /// It has a fair task and, seen from its lowest domain, little capacity for it.
    fn is_pressed(&self, cpu: CpuId) -> bool {
        self.h_nr_runnable(cpu) > 0
            && self.core.domains.depth(cpu) > 0
            && self.check_cpu_capacity(cpu, self.core.domains.at(cpu, 0).imbalance_pct)
    }

    /// NOHZ_STATS_KICK: updates the blocked load of the idle CPUs every 32 ms. In the kernel an idle CPU does it.
    fn refresh_blocked(&mut self, now: Nanos, jiffies: Jiffies) {
        if self.core.nohz.count == 0 || jiffies <= self.core.nohz.next_blocked {
            return;
        }
        self.core.nohz.next_blocked = jiffies + (LOAD_AVG_PERIOD * Jiffies::from(self.fair.config.hz())).div_ceil(1000);
        for cpu in self.core.nohz.idle_cpus.iter_from(CpuId(0)) {
            self.fair.update_blocked_averages(cpu, self.core.clock_task(cpu, now));
        }
    }

    /// `nohz_idle_balance`: `cpu` balances on behalf of every idle CPU that is due, and for itself last.
    pub fn nohz_idle_balance(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        self.core.rqs[cpu.index()].nohz_kicked = false;
        let jiffies = self.core.jiffies(now);
        let mut next_balance = None::<Jiffies>;
        let start = (cpu.index() + 1) % self.core.topology.nr_cpus();
        let idle_cpus = self.core.nohz.idle_cpus;
        for other in idle_cpus.iter_from(CpuId(start as u32)) {
            if !self.core.is_idle(other) {
                continue;
            }
            // This CPU has work of its own: the next kick continues with the rest.
            if !self.core.is_idle(cpu) {
                return moves;
            }
            if jiffies >= self.core.rqs[other.index()].next_balance {
                self.balance_domains_of(other, true, now, &mut moves);
                moves.end_stage();
            }
            let next = self.core.rqs[other.index()].next_balance;
            next_balance = Some(next_balance.map_or(next, |earliest| earliest.min(next)));
        }
        if let Some(next) = next_balance {
            self.core.nohz.next_balance = next;
        }
        moves
    }

    /// `nohz_balance_enter_idle`: the tick stops as the idle task is switched in.
    pub(crate) fn nohz_balance_enter_idle(&mut self, cpu: CpuId) {
        if !self.core.is_active(cpu) {
            return;
        }
        let rq = &mut self.core.rqs[cpu.index()];
        self.core.nohz.next_balance = self.core.nohz.next_balance.min(rq.next_balance);
        if std::mem::replace(&mut rq.nohz_tick_stopped, true) {
            return;
        }
        self.core.nohz.idle_cpus.set(cpu);
        self.core.nohz.count += 1;
        let llc = self.core.idle.llc_of(cpu);
        self.core.idle.llc_mut(llc).nr_busy -= 1;
    }

    /// `nohz_balance_exit_idle`, which the first tick of the busy CPU calls, not its wakeup.
    fn nohz_balance_exit_idle(&mut self, cpu: CpuId) {
        if !std::mem::replace(&mut self.core.rqs[cpu.index()].nohz_tick_stopped, false) {
            return;
        }
        self.core.nohz.idle_cpus.clear(cpu);
        self.core.nohz.count -= 1;
        let llc = self.core.idle.llc_of(cpu);
        self.core.idle.llc_mut(llc).nr_busy += 1;
    }
}
