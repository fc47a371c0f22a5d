//! Balancing at ticks (`sched_balance_domains`; `rebalance_domains` up to 6.9).
//!
//! kernel/sched/fair.c 5.2 to 7.2. A domain is due every balance_interval ms, 16 times as long less one jiffy on a busy
//! CPU (32 times up to 5.9), at least one jiffy, at most HZ * CPUs / 10; the walk upwards ends at a domain that another
//! CPU balances. Not modelled: SD_SERIALIZE (two NUMA passes never overlap, since a pass takes no time here).

use schedlab_model::{CpuId, Nanos};

use super::CpuIdle;
use crate::core::types::Moves;
use crate::fair::class::FairClass;
use crate::jiffies::Jiffies;

impl FairClass<'_> {
    /// `sched_balance_domains` of one CPU; `idle`: it was idle at the tick.
    pub fn sched_balance_domains(&mut self, cpu: CpuId, idle: bool, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        self.balance_domains_of(cpu, idle, now, &mut moves);
        moves
    }

    /// The same, adding to the moves so far.
    pub(super) fn balance_domains_of(&mut self, cpu: CpuId, idle: bool, now: Nanos, moves: &mut Moves) {
        self.fair.update_blocked_averages(cpu, self.core.clock_task(cpu, now));
        let (jiffies, hz) = (self.core.jiffies(now), u64::from(self.fair.config.hz()));
        let mut idle = if idle { CpuIdle::Idle } else { CpuIdle::Not };
        let mut next_balance = None::<Jiffies>;
        let (mut go_on, mut decayed, mut max_cost) = (true, false, 0);
        for level in 0..self.core.domains.depth(cpu) {
            let state = self.core.domains.state_mut(cpu, level);
            decayed = state.decay_newidle_cost(jiffies, hz);
            max_cost += state.max_newidle_lb_cost;
            if !go_on {
                if decayed {
                    continue;
                }
                break;
            }
            let due = state.last_balance + self.get_sd_balance_interval(cpu, level, self.counts_as_busy(cpu, idle));
            if jiffies >= due {
                let (moved, upwards) = self.sched_balance_rq(cpu, level, idle, now, moves);
                if moved > 0 {
                    idle = if self.core.is_idle(cpu) { CpuIdle::Idle } else { CpuIdle::Not };
                }
                go_on = upwards;
                self.core.domains.state_mut(cpu, level).last_balance = jiffies;
            }
            let interval = self.get_sd_balance_interval(cpu, level, self.counts_as_busy(cpu, idle));
            let next = self.core.domains.state(cpu, level).last_balance + interval;
            next_balance = Some(next_balance.map_or(next, |earliest| earliest.min(next)));
        }
        let migration_cost = self.fair.config.knobs.migration_cost;
        let rq = &mut self.core.rqs[cpu.index()];
        if decayed {
            rq.max_idle_balance_cost = max_cost.max(migration_cost);
        }
        if let Some(next) = next_balance {
            rq.next_balance = next;
        }
    }

    /// The CPU runs something other than SCHED_IDLE tasks.
    fn counts_as_busy(&self, cpu: CpuId, idle: CpuIdle) -> bool {
        idle != CpuIdle::Idle && !self.core.idle.is_usable(cpu)
    }

    /// `get_sd_balance_interval`.
    pub(super) fn get_sd_balance_interval(&self, cpu: CpuId, level: usize, busy: bool) -> Jiffies {
        let hz = u64::from(self.fair.config.hz());
        let ms =
            self.core.domains.state(cpu, level).balance_interval * if busy { self.core.rules.busy_factor } else { 1 };
        // msecs_to_jiffies rounds up.
        let jiffies = (ms * hz).div_ceil(1000).saturating_sub(u64::from(busy && self.core.rules.busy_jiffy_less));
        let most = self.core.max_load_balance_interval(hz);
        jiffies.clamp(1, most)
    }
}
