//! Pulling tasks when a CPU is about to become idle (`sched_balance_newidle`; `newidle_balance` up to 6.9).
//!
//! kernel/sched/fair.c 5.2 to 7.2. Nothing is done if a wakeup is pending (5.15.148 and later), if no CPU of the
//! machine has two tasks (the root domain's overload flag), or if avg_idle is below the lowest domain's
//! max_newidle_lb_cost (up to 5.15 below migration_cost). Otherwise the CPU walks up its domains while avg_idle covers
//! the time spent so far plus the domain's most expensive pass (which decays by 1/85 per second), until tasks are
//! pulled. 6.17, 6.18 and some stable sublevels: a pass in vain makes the domain half as expensive again, up to
//! migration_cost and 200 ns. NI_RANDOM (6.1.192): a domain is skipped with the probability of its failures among the
//! last calls; NI_RATE (7.1) adds 1/1024 for each 4.2 ms that 512 calls took. The duration of a pass is the time that
//! the caller charges for it (`Sched::set_balance_cost`).

use schedlab_model::{CpuId, Nanos};

use super::CpuIdle;
use crate::core::domains::DomainState;
use crate::core::types::Moves;
use crate::decision::{Action, Decision};
use crate::fair::class::FairClass;
use crate::features::Feature;
use crate::jiffies::{Jiffies, UPTIME};

impl FairClass<'_> {
    /// `sched_balance_newidle`: the CPU is about to become idle and pulls tasks if it can. Call it between an empty
    /// pick and the switch to the idle task.
    #[inline(always)]
    pub fn sched_balance_newidle(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        self.update_misfit_status(cpu, None);
        let rq = &self.core.rqs[cpu.index()];
        if rq.nr_running > 0 || (rq.ttwu_pending && self.core.rules.newidle_minds_wakeups) {
            return Moves::default();
        }
        if !self.has_swqueue() && !self.begin_newidle(cpu, now) {
            return Moves::default();
        }
        self.pull_newidle(cpu, now)
    }

    /// The CPU's idle period begins. Whether its domains are walked before.
    #[inline(never)]
    fn begin_newidle(&mut self, cpu: CpuId, now: Nanos) -> bool {
        let rq = &mut self.core.rqs[cpu.index()];
        rq.stamp_idle(now);
        let avg_idle = rq.avg_idle;
        if self.core.domains.depth(cpu) == 0 {
            return false;
        }
        let least = match self.core.rules.newidle_by_cost {
            true => self.core.domains.state(cpu, 0).max_newidle_lb_cost,
            false => self.fair.config.knobs.migration_cost,
        };
        if self.core.domains.overload() && avg_idle >= least {
            return true;
        }
        self.explain_no_newidle(cpu, now, avg_idle, least);
        self.lower_next_balance(cpu, self.next_balance_at(cpu, 0), now);
        false
    }

    /// The queue of woken tasks and the walk of the domains.
    #[inline(never)]
    fn pull_newidle(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        if self.has_swqueue() && (self.swqueue_pick_next_task(cpu, now, &mut moves) || !self.begin_newidle(cpu, now)) {
            return moves;
        }
        let next_balance = self.walk_newidle(cpu, now, &mut moves);
        self.lower_next_balance(cpu, next_balance, now);
        if !moves.moved.is_empty() {
            self.core.rqs[cpu.index()].idle_stamp = 0;
        }
        moves
    }

    /// The CPU's next balance is due at `next_balance`, and within a second, unless it is due earlier.
    #[inline]
    fn lower_next_balance(&mut self, cpu: CpuId, next_balance: Jiffies, now: Nanos) {
        let within = self.core.jiffies(now) + u64::from(self.fair.config.hz());
        let rq = &mut self.core.rqs[cpu.index()];
        rq.next_balance = rq.next_balance.min(next_balance).min(within);
    }

    /// Records why the CPU does not look for tasks.
    #[inline]
    fn explain_no_newidle(&mut self, cpu: CpuId, now: Nanos, avg_idle: Nanos, least: Nanos) {
        if self.fair.is_recording() {
            let (rule, compared) = match self.core.domains.overload() {
                false => ("the root domain is not marked as overloaded", [("", 0); 2]),
                true => ("its idle periods are too short", [("average idle", avg_idle as i64), ("cost", least as i64)]),
            };
            self.fair.record(Decision::outside(now, cpu, Action::NoNewidle, rule, None, compared));
        }
    }

    /// The walk up the domains; returns the earliest time at which one of them is due.
    fn walk_newidle(&mut self, cpu: CpuId, now: Nanos, moves: &mut Moves) -> Jiffies {
        let avg_idle = self.core.rqs[cpu.index()].avg_idle;
        self.fair.update_blocked_averages(cpu, self.core.clock_task(cpu, now));
        let jiffies = self.core.jiffies(now);
        let (mut next_balance, mut spent) = (Jiffies::MAX, 0);
        for level in 0..self.core.domains.depth(cpu) {
            next_balance = next_balance.min(self.next_balance_at(cpu, level));
            if avg_idle < spent + self.core.domains.state(cpu, level).max_newidle_lb_cost {
                break;
            }
            let Some(weight) = self.newidle_chance(cpu, level, now) else { continue };
            let (passes, looked_at) = (moves.passes, moves.looked_at);
            let (pulled, go_on) = self.sched_balance_rq(cpu, level, CpuIdle::Newly, now, moves);
            let took = u64::from(moves.passes - passes) * self.core.balance_cost.per_pass
                + u64::from(moves.looked_at - looked_at) * self.core.balance_cost.per_cpu;
            spent += took;
            let success = if pulled > 0 { weight } else { 0 };
            let (hz, since_boot) = (u64::from(self.fair.config.hz()), self.rate_clock(now));
            let rules = &self.core.rules;
            let (in_vain, by_cost) = (rules.newidle_failure_costs && pulled == 0, rules.newidle_by_cost);
            let limit =
                if rules.newidle_failure_costs { self.fair.config.knobs.migration_cost + 200 } else { Nanos::MAX };
            let state = self.core.domains.state_mut(cpu, level);
            if by_cost {
                let cost = if in_vain { state.max_newidle_lb_cost * 3 / 2 } else { took };
                state.update_newidle_cost(cost, limit, success, since_boot, (jiffies, hz));
            } else {
                state.max_newidle_lb_cost = state.max_newidle_lb_cost.max(took);
            }
            if pulled > 0 || !go_on {
                break;
            }
        }
        let rq = &mut self.core.rqs[cpu.index()];
        rq.max_idle_balance_cost = rq.max_idle_balance_cost.max(spent);
        next_balance
    }

    /// NI_RANDOM: the weight of a success, or `None` if the domain is skipped this time.
    fn newidle_chance(&mut self, cpu: CpuId, level: usize, now: Nanos) -> Option<u32> {
        if !self.fair.config.has(Feature::NiRandom) {
            return Some(1);
        }
        let since_boot = self.rate_clock(now);
        let dice = (self.core.random[cpu.index()].next_u64() >> 32) as u32 % 1024;
        let state = self.core.domains.state_mut(cpu, level);
        let weight = 1 + state.newidle_ratio;
        if dice > weight {
            state.update_newidle_stats(0, since_boot);
            return None;
        }
        Some((1024 + weight / 2) / weight)
    }

    /// The time since boot, if NI_RATE counts the rate of the calls (`sched_clock` in `update_newidle_stats`).
    fn rate_clock(&self, now: Nanos) -> Option<Nanos> {
        self.fair.config.has(Feature::NiRate).then_some(UPTIME + now)
    }

    /// The time at which the domain is due on an idle CPU (`update_next_balance`).
    fn next_balance_at(&self, cpu: CpuId, level: usize) -> Jiffies {
        self.core.domains.state(cpu, level).last_balance + self.get_sd_balance_interval(cpu, level, false)
    }
}

impl DomainState {
    /// `update_newidle_cost` after a pass of this cost; `limit`: the most that a domain may cost.
    fn update_newidle_cost(
        &mut self,
        cost: Nanos,
        limit: Nanos,
        success: u32,
        since_boot: Option<Nanos>,
        (jiffies, hz): (Jiffies, Jiffies),
    ) {
        if cost > 0 {
            self.update_newidle_stats(success, since_boot);
        }
        if cost > self.max_newidle_lb_cost {
            self.max_newidle_lb_cost = cost.min(limit);
            self.last_decay = jiffies;
        } else {
            self.decay_newidle_cost(jiffies, hz);
        }
    }

    /// The decay of `update_newidle_cost`; true if it happened.
    pub(super) fn decay_newidle_cost(&mut self, jiffies: Jiffies, hz: Jiffies) -> bool {
        let due = jiffies > self.last_decay + hz;
        if due {
            self.max_newidle_lb_cost = self.max_newidle_lb_cost * 253 / 256;
            self.last_decay = jiffies;
        }
        due
    }

    /// `update_newidle_stats`; with NI_RATE the time that the calls took is counted as success too.
    fn update_newidle_stats(&mut self, success: u32, since_boot: Option<Nanos>) {
        self.newidle_call += 1;
        self.newidle_success += success;
        if self.newidle_call >= 1024 {
            self.newidle_ratio = self.newidle_success;
            if let Some(now) = since_boot {
                let rate = (now - std::mem::replace(&mut self.newidle_stamp, now)) >> 22;
                self.newidle_ratio = u32::try_from(rate).unwrap_or(1024).saturating_add(self.newidle_success).min(1024);
            }
            self.newidle_call /= 2;
            self.newidle_success /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::MSEC;

    /// The success ratio after 512 calls in vain that took this long each; NI_RATE counts 1 of 1,024 for each 4.19 ms.
    fn ratio_after(each: Nanos, rate: bool) -> u32 {
        let mut state = DomainState { newidle_call: 512, newidle_success: 0, ..DomainState::new(2) };
        for call in 1..=512 {
            state.update_newidle_stats(0, rate.then_some(call * each));
        }
        state.newidle_ratio
    }

    #[test]
    fn rare_calls_are_tried_more_often_than_they_succeed() {
        for (each, rate, expected) in
            [(MSEC, false, 0), (MSEC, true, 122), (4 * MSEC, true, 488), (100 * MSEC, true, 1024), (1000, true, 0)]
        {
            assert_eq!(ratio_after(each, rate), expected, "{each} ns");
        }
    }
}
