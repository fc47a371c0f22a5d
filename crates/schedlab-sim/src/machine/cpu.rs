//! A simulated CPU: what it executes, at which rate, and where its time went.

use schedlab_model::{rarely, CpuId, Nanos};

use super::cost::Dice;
use super::refill::Refill;
use super::segment::{Segment, WORK_SHIFT};

/// A rate or speed of 1.
pub const FULL_SPEED: u32 = 1 << WORK_SHIFT;

/// What a CPU does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// In an idle state from `Cpu::idle_from` on; until then, finishing the overhead of entering it.
    Idle,
    /// Leaving an idle state.
    Exiting,
    /// Executing its segment.
    Busy,
}

/// Where a CPU's time went, in ns; the four add up to the time that passed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CpuTime {
    /// Programs, their system calls included.
    pub busy: Nanos,
    /// Scheduling: switches, wakeups, ticks, interrupts, balancing, idle exits.
    pub cost: Nanos,
    /// Idle.
    pub idle: Nanos,
    /// Time at rate 0 with something to execute.
    pub stolen: Nanos,
}

/// A CPU.
#[derive(Clone, Debug)]
pub struct Cpu {
    pub activity: Activity,
    /// Time up to which everything is accounted.
    pub last: Nanos,
    /// Execution rate in 1/1024: `core_rate`, or `memory_rate` if that is less. At rate 0 the CPU executes nothing and
    /// handles no interrupt.
    pub rate: u32,
    /// Rate of work that does not wait for memory: `smt_rate` at `speed` and `frequency`.
    pub core_rate: u32,
    /// The rate that the memory bandwidth allows, `u32::MAX` for a segment that does not wait for memory.
    pub memory_rate: u32,
    /// The rate that the busy threads of its core leave it, in 1/1024.
    pub smt_rate: u32,
    /// Speed of the hardware thread, in 1/1024.
    pub speed: u32,
    /// Its frequency, in 1/1024 of that at which the costs hold.
    pub frequency: u32,
    /// What it executes while `Busy`.
    pub segment: Segment,
    /// The refill that its task still has to do.
    pub refill: Refill,
    /// Overhead incurred and not yet charged to a segment, ns of work at rate 1.
    pub pending: Nanos,
    pub idle_state: usize,
    /// When the idle state begins: later than the switch to idle by the overhead (switch, newidle balance).
    pub idle_from: Nanos,
    /// What is left of the overhead of entering the idle state at rate 0, as work.
    pub entering_left: u64,
    /// Average length of its idle periods (weight 1/8), for the choice of the idle state.
    pub idle_average: Nanos,
    /// The CPU that woke it from its idle state last.
    pub woken_from: CpuId,
    /// Draws of costs.
    pub dice: Dice,
    pub time: CpuTime,
    /// The part of `busy` in user mode.
    pub user: Nanos,
}

impl Cpu {
    /// An idle CPU at time 0.
    pub fn new(smt_rate: u32, dice: Dice) -> Self {
        Cpu {
            activity: Activity::Idle,
            last: 0,
            rate: smt_rate,
            core_rate: smt_rate,
            memory_rate: u32::MAX,
            smt_rate,
            speed: FULL_SPEED,
            frequency: FULL_SPEED,
            segment: Segment::EMPTY,
            refill: Refill::default(),
            pending: 0,
            idle_state: 0,
            idle_from: 0,
            entering_left: 0,
            idle_average: 1_000_000,
            woken_from: CpuId(0),
            dice,
            time: CpuTime::default(),
            user: 0,
        }
    }

    /// Accounts the time up to `now` to what the CPU was doing.
    #[inline(always)]
    pub fn progress(&mut self, now: Nanos) {
        if self.last != now {
            self.account(now);
        }
    }

    #[inline(never)]
    pub fn account(&mut self, now: Nanos) {
        if self.activity != Activity::Busy {
            return self.account_idle(now);
        }
        if self.rate != FULL_SPEED || rarely(self.refill.touch != 0) {
            return self.account_at_rate(now);
        }
        let elapsed = now - self.last;
        self.last = now;
        let done = elapsed << WORK_SHIFT;
        let cost = done.min(self.segment.cost_left);
        self.segment.cost_left -= cost;
        self.segment.work_left = self.segment.work_left.saturating_sub(done - cost);
        let cost = cost >> WORK_SHIFT;
        self.time.cost += cost;
        self.work(elapsed - cost);
    }

    /// Accounts the time up to `now`, at which the segment's overhead and its work are done.
    #[inline(always)]
    pub fn end_segment(&mut self, now: Nanos) {
        if self.rate != FULL_SPEED || rarely(self.refill.touch != 0) {
            return self.account_at_rate(now);
        }
        let elapsed = now - self.last;
        self.last = now;
        let cost = std::mem::take(&mut self.segment.cost_left) >> WORK_SHIFT;
        self.segment.work_left = 0;
        self.time.cost += cost;
        self.work(elapsed - cost);
    }

    /// The CPU has worked on its segment for so long.
    #[inline(always)]
    fn work(&mut self, elapsed: Nanos) {
        self.time.busy += elapsed;
        self.user += if self.segment.mode.is_kernel() { 0 } else { elapsed };
    }

    /// Accounts the time up to `now` of a CPU that executes nothing, or is leaving an idle state.
    #[inline(always)]
    pub fn account_idle(&mut self, now: Nanos) {
        let elapsed = now - self.last;
        if self.activity == Activity::Idle {
            let cost = self.idle_from.saturating_sub(self.last).min(elapsed);
            self.time.cost += cost;
            self.time.idle += elapsed - cost;
        } else if self.rate == 0 {
            self.time.stolen += elapsed;
        } else {
            self.time.cost += elapsed;
        }
        self.last = now;
    }

    /// Accounts the time up to `now` of a CPU that executes a segment at another rate, or refills a working set.
    #[inline(never)]
    fn account_at_rate(&mut self, now: Nanos) {
        let elapsed = now - self.last;
        self.last = now;
        let done = elapsed * u64::from(self.rate);
        let cost = done.min(self.segment.cost_left);
        self.segment.cost_left -= cost;
        let mut worked = done - cost;
        if self.refill.touch != 0 && self.segment.mode.is_plain() {
            worked = self.refill.progress(worked, self.segment.work_left);
        }
        self.segment.work_left = self.segment.work_left.saturating_sub(worked);
        let cost_ns = match self.rate {
            FULL_SPEED => cost >> WORK_SHIFT,
            0 => {
                self.time.stolen += elapsed;
                return;
            }
            rate => cost.div_ceil(u64::from(rate)).min(elapsed),
        };
        self.time.cost += cost_ns;
        self.work(elapsed - cost_ns);
    }

    /// How long it has been idle.
    pub fn idle_at(&self, now: Nanos) -> Nanos {
        let since = match self.activity {
            Activity::Idle => now.saturating_sub(self.last.max(self.idle_from)),
            Activity::Exiting | Activity::Busy => 0,
        };
        self.time.idle + since
    }

    /// How long this much work takes at the current rate, rounded up, ns; `None` at rate 0.
    #[inline]
    pub fn wall(&self, work: u64) -> Option<Nanos> {
        wall_at(self.rate, work)
    }

    /// How long the overhead and then this much of the work of its segment take, including the task's refill,
    /// ns; `None` at rate 0.
    #[inline(always)]
    pub fn wall_with(&self, cost: u64, work: u64) -> Option<Nanos> {
        let refill = if rarely(self.refill.touch != 0) { self.refill.of(work) } else { 0 };
        self.wall(cost + work + refill)
    }

    /// How long this much work that does not wait for memory takes, rounded up, ns; `None` at rate 0.
    #[inline]
    pub fn core_wall(&self, work: u64) -> Option<Nanos> {
        wall_at(self.core_rate, work)
    }

    /// How long the pending overhead takes; `None` at rate 0.
    #[inline]
    pub fn pending_wall(&self) -> Option<Nanos> {
        self.core_wall(self.pending << WORK_SHIFT)
    }

    /// Spends the pending overhead outside of a segment: how long that takes. At rate 0 it stays pending: `None`.
    pub fn spend_pending(&mut self) -> Option<Nanos> {
        let wall = self.pending_wall()?;
        self.pending = 0;
        Some(wall)
    }

    /// The CPU enters an idle state: the pending overhead comes first, at rate 0 once the rate is back.
    pub fn begin_entering(&mut self, now: Nanos) {
        self.entering_left = std::mem::take(&mut self.pending) << WORK_SHIFT;
        self.idle_from = now;
        self.go_on_entering(now);
    }

    /// It enters the idle state at its rate; at rate 0 it has to wait.
    pub fn go_on_entering(&mut self, now: Nanos) {
        if let Some(left) = self.core_wall(self.entering_left).filter(|left| *left > 0) {
            self.entering_left = 0;
            self.idle_from = now + left;
        }
    }

    /// The rate becomes 0 while it enters the idle state; `rate` is what it was.
    pub fn stop_entering(&mut self, rate: u32, now: Nanos) {
        if self.idle_from > now {
            self.entering_left = (self.idle_from - now) * u64::from(rate);
            self.idle_from = now;
        }
    }

    /// The pending overhead joins the segment: it is spent before the segment's work continues. It does not wait for
    /// memory, so beside a segment that does it counts as the work that is done in its time.
    #[inline(always)]
    pub fn take_pending(&mut self) {
        if self.pending == 0 {
            return;
        }
        let work = std::mem::take(&mut self.pending) << WORK_SHIFT;
        self.segment.cost_left += if self.rate == self.core_rate { work } else { self.beside_memory(work) };
    }

    #[cold]
    fn beside_memory(&self, work: u64) -> u64 {
        self.core_wall(work).unwrap_or(0) * u64::from(self.rate)
    }

    /// Sets the rate anew after `smt_rate`, `speed`, `frequency` or `memory_rate` has changed; everything up to now
    /// must be accounted.
    pub fn update_rate(&mut self) {
        self.core_rate = ((u64::from(self.smt_rate) * u64::from(self.speed)) >> WORK_SHIFT) as u32;
        if rarely(self.frequency != FULL_SPEED) {
            let rate = (u64::from(self.core_rate) * u64::from(self.frequency)) >> WORK_SHIFT;
            self.core_rate = (rate as u32).max(self.core_rate.min(1));
        }
        self.rate = self.core_rate.min(self.memory_rate);
    }
}

/// How long this much work takes at a rate, rounded up, ns; `None` at rate 0.
#[inline(always)]
fn wall_at(rate: u32, work: u64) -> Option<Nanos> {
    if rate == FULL_SPEED {
        return Some((work + ((1 << WORK_SHIFT) - 1)) >> WORK_SHIFT);
    }
    divided(rate, work)
}

#[inline(never)]
fn divided(rate: u32, work: u64) -> Option<Nanos> {
    (rate > 0).then(|| work.div_ceil(u64::from(rate)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Mode;
    use schedlab_model::stream;

    fn busy(work: Nanos) -> Cpu {
        let mut cpu = Cpu::new(FULL_SPEED, Dice::new(stream(1, "cpu")));
        cpu.activity = Activity::Busy;
        cpu.segment = Segment { work_left: work << WORK_SHIFT, mode: Mode::User, ..Segment::EMPTY };
        cpu
    }

    fn set_speed(cpu: &mut Cpu, speed: u32, now: Nanos) {
        cpu.progress(now);
        cpu.speed = speed;
        cpu.update_rate();
    }

    #[test]
    fn a_segment_has_no_end_at_rate_0() {
        let mut cpu = busy(100);
        set_speed(&mut cpu, 0, 40);
        assert_eq!(cpu.wall(cpu.segment.work_left), None);
        set_speed(&mut cpu, FULL_SPEED / 2, 1_000);
        assert_eq!(cpu.wall(cpu.segment.work_left), Some(120));
        assert_eq!(cpu.time, CpuTime { busy: 40, stolen: 960, ..CpuTime::default() });
    }

    #[test]
    fn overhead_stays_pending_at_rate_0() {
        let mut cpu = busy(100);
        cpu.pending = 7;
        set_speed(&mut cpu, 0, 0);
        assert_eq!((cpu.spend_pending(), cpu.pending), (None, 7));
        set_speed(&mut cpu, FULL_SPEED, 0);
        assert_eq!((cpu.spend_pending(), cpu.pending), (Some(7), 0));
    }
}
