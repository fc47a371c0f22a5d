//! A simulated CPU: what it does now, at which rate, and where its time went.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::cost::Dice;
use crate::task::{Task, WORK_SHIFT};

/// What a CPU does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// In an idle state from `Cpu::idle_from` on; until then, finishing the overhead of getting there.
    Idle,
    /// Leaving an idle state.
    Exiting,
    /// Running a task.
    Busy,
}

/// Why a task is on its way into schedule().
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaving {
    /// It will sleep.
    Sleeps,
    /// It has exited.
    Exits,
}

/// A timer waiting on a CPU: it may fire from `soft` on and must by `hard` (hrtimer range).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HrTimer {
    pub hard: Nanos,
    pub sequence: u64,
    pub soft: Nanos,
    pub task: TaskId,
}

/// Where a CPU's time went, in ns; the three add up to the time that passed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CpuTime {
    /// Programs, their system calls included.
    pub busy: Nanos,
    /// Scheduling: switches, wakeups, ticks, interrupts, balancing, idle exits.
    pub cost: Nanos,
    /// Idle.
    pub idle: Nanos,
}

/// A CPU.
#[derive(Clone, Debug)]
pub struct Cpu {
    pub curr: Option<TaskId>,
    pub activity: Activity,
    /// Time up to which everything is accounted.
    pub last: Nanos,
    /// Execution rate in 1/1024.
    pub rate: u32,
    /// Overhead incurred and not yet charged to a segment, ns of work at rate 1.
    pub pending: Nanos,
    pub need_resched: bool,
    /// TIF_NEED_RESCHED_LAZY.
    pub need_resched_lazy: bool,
    /// The kernel has been entered since the flag was set (interrupt, system call): a user-mode task does not notice
    /// a flag by itself.
    pub resched_seen: bool,
    /// How long after its beginning the last wakeup read the runqueue's clock.
    pub clock_read: Nanos,
    /// What schedule() takes up to the switch has been charged.
    pub schedule_paid: bool,
    /// The current task has decided to block, or has exited, and is on its way into schedule().
    pub leaving_for: Option<Leaving>,
    /// Will reschedule at the end of this instant.
    pub marked: bool,
    /// The address space last used.
    pub process: u32,
    /// Ticks fall on `tick_phase + n * TICK_NSEC`.
    pub tick_phase: Nanos,
    pub idle_state: usize,
    /// When the idle state begins: later than the switch to idle by the overhead (switch, newidle balance).
    pub idle_from: Nanos,
    /// Average length of its idle periods (weight 1/8), for the choice of the idle state.
    pub idle_average: Nanos,
    pub hrtimers: BinaryHeap<Reverse<HrTimer>>,
    /// Tasks queued on it by remote CPUs, with the waker's sync hint.
    pub wakelist: Vec<(TaskId, bool)>,
    /// Tasks that were woken while still leaving this CPU and whose wakers wait for that: task, waker's CPU, sync.
    pub leaving: Vec<(TaskId, CpuId, bool)>,
    /// Its current task may no longer run here and goes there at the next schedule().
    pub push_away: Option<(TaskId, CpuId)>,
    /// Asked to balance for the idle CPUs when it wakes.
    pub nohz_kicked: bool,
    pub dice: Dice,
    pub time: CpuTime,
}

impl Cpu {
    /// Accounts the time up to `now` to what the CPU was doing. `task` is its current task, if it has one.
    #[inline]
    pub fn progress(&mut self, now: Nanos, task: Option<&mut Task>) {
        let elapsed = now - self.last;
        self.last = now;
        match (self.activity, task) {
            (Activity::Busy, Some(task)) => {
                let done = elapsed * u64::from(self.rate);
                let cost = done.min(task.cost_left);
                task.cost_left -= cost;
                task.work_left = task.work_left.saturating_sub(done - cost);
                let cost_ns = self.cost_ns(cost, elapsed);
                self.time.cost += cost_ns;
                self.time.busy += elapsed - cost_ns;
            }
            (Activity::Idle, _) => {
                let cost = self.idle_from.saturating_sub(now - elapsed).min(elapsed);
                self.time.cost += cost;
                self.time.idle += elapsed - cost;
            }
            _ => self.time.cost += elapsed,
        }
    }

    /// Overhead of so much work as part of the elapsed time.
    #[inline]
    fn cost_ns(&self, cost: u64, elapsed: Nanos) -> Nanos {
        if self.rate == 1 << WORK_SHIFT {
            cost >> WORK_SHIFT
        } else {
            cost.div_ceil(u64::from(self.rate)).min(elapsed)
        }
    }

    /// How long the pending overhead takes at the current rate; it is spent.
    pub fn spend_pending(&mut self) -> Nanos {
        let work = std::mem::take(&mut self.pending) << WORK_SHIFT;
        self.wall(work)
    }

    /// How long this much work takes at the current rate, rounded up, ns.
    #[inline]
    pub fn wall(&self, work: u64) -> Nanos {
        if self.rate == 1 << WORK_SHIFT {
            (work + ((1 << WORK_SHIFT) - 1)) >> WORK_SHIFT
        } else {
            work.div_ceil(u64::from(self.rate))
        }
    }
}
