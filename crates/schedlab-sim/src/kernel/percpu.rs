//! What a kernel keeps per CPU, apart from its classes' runqueues.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_policy::procedure::Wakeup;
use schedlab_trace::Section;

use super::clock::RqClock;
use super::lines::RunqueueLines;
use super::longest::Longest;
use super::tlb_flush::TlbFlush;

pub use schedlab_policy::procedure::Leaving;

/// The state of an interrupt of a host's CPU that wakes threads of vCPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakesVcpus {
    /// There is none.
    None,
    /// It is pending: the CPU is in an idle state, or is a vCPU that does not execute.
    Pending,
    /// It is being handled.
    Handled,
}

/// A timer pending on a CPU: it may fire from `soft` on and must by `hard` (hrtimer range).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HrTimer {
    pub hard: Nanos,
    pub sequence: u64,
    pub soft: Nanos,
    pub task: TaskId,
}

/// A wakeup on its way to the runqueue.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    pub wakeup: Wakeup,
    /// The CPU selected.
    pub cpu: CpuId,
}

impl InFlight {
    /// The task that wakes.
    pub fn task(&self) -> TaskId {
        self.wakeup.task
    }
}

/// `struct rseq_slice_ctrl` of the task that runs on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SliceCtrl {
    /// It has requested an extension of its critical section.
    pub request: bool,
    /// It has been granted one.
    pub granted: bool,
}

/// One CPU of a kernel.
#[derive(Clone, Debug)]
pub struct PerCpu {
    /// `rq->curr`; `None` = the idle task.
    pub curr: Option<TaskId>,
    pub clocks: RqClock,
    /// TIF_NEED_RESCHED.
    pub need_resched: bool,
    /// TIF_NEED_RESCHED_LAZY.
    pub need_resched_lazy: bool,
    /// When the first of the flags was set, and what the current task executed then.
    pub requested: Option<(Nanos, Section)>,
    /// The kernel has been entered since the flag was set (interrupt, system call): a user-mode task does not notice
    /// a flag by itself.
    pub resched_seen: bool,
    /// The time slice extension that the current task has requested or been granted (`struct rseq_slice_ctrl`).
    pub slice_ctrl: SliceCtrl,
    /// How long after its beginning the last wakeup read the runqueue's clock.
    pub clock_read: Nanos,
    /// What `__schedule` up to the switch costs, as ns of work, once it has been charged.
    pub schedule_paid: Option<Nanos>,
    /// The current task has decided to block, or has exited, and is on its way into `__schedule`.
    pub leaving_for: Option<Leaving>,
    /// Reschedules at the end of this instant.
    pub marked: bool,
    /// The address space last used.
    pub process: u32,
    /// The CPU's time in user mode when the current task got it.
    pub user_before: Nanos,
    /// The longest section of kernel code that could not be preempted.
    pub longest: Longest,
    /// New pages that are not yet on a list of reclaim (`cpu_fbatches.lru_add`).
    pub lru_add: u32,
    /// Ticks fall on `tick_phase + n * TICK_NSEC`.
    pub tick_phase: Nanos,
    /// The next of these times. It is computed anew once it has passed.
    pub next_tick: Nanos,
    pub hrtimers: BinaryHeap<Reverse<HrTimer>>,
    /// The CPU handles an interrupt of its clock event device (`cpu_base->in_hrtirq`).
    pub in_hrtirq: bool,
    /// Deferrable timers, by expiry (`timer_bases[BASE_DEF]`).
    pub deferrable: BinaryHeap<Reverse<HrTimer>>,
    /// Wakeups of tasks that are still leaving this CPU; the wakers' CPUs wait meanwhile.
    pub waiting_wakeups: Vec<Wakeup>,
    /// Its current task may no longer run here and is migrated there at the next `__schedule`.
    pub push_away: Option<(TaskId, CpuId)>,
    /// Asked to balance for the idle CPUs when it wakes.
    pub nohz_kicked: bool,
    /// Its tick has woken it from an idle state.
    pub idle_tick: bool,
    /// Interrupts that came while the CPU's rate was 0, one bit per kind of event source.
    pub held_interrupts: u32,
    /// An interrupt of a CPU whose kernel hosts guests, which wakes threads of vCPUs.
    pub wakes_vcpus: WakesVcpus,
    /// Its vCPU waits for a CPU of the host.
    pub vcpu_waits: bool,
    /// What was left of leaving the idle state when its rate became 0.
    pub held_idle_exit: Option<Nanos>,
    /// The wakeup that it executes.
    pub in_flight: Option<InFlight>,
    /// The wakeups that come after it.
    pub next_wakeups: VecDeque<Wakeup>,
    /// How long it may spin for a spinlock of the kernel before its vCPU leaves the guest (`ple_window`); 0: for ever.
    pub ple_window: Nanos,
    /// It has spun for that long.
    pub pause_loop: bool,
    /// The holder of the spinlock for which it has halted has released it (`pv_kick`).
    pub pv_kicked: bool,
    /// TLB flushes for which it waits, and those that other CPUs request.
    pub flush: TlbFlush,
    /// In newidle balancing, inside `__schedule`.
    pub in_newidle: bool,
    /// Its runqueue as other CPUs use it.
    pub shared: RunqueueLines,
}

impl PerCpu {
    /// Whether the current task goes on to the end of its segment: nothing requests a reschedule, and it is not inside
    /// `__schedule`.
    #[inline(always)]
    pub fn goes_on(&self) -> bool {
        !(self.need_resched | self.resched_seen | self.marked | self.in_newidle)
    }

    /// An idle CPU at time 0.
    pub fn new(tick_phase: Nanos) -> Self {
        PerCpu {
            curr: None,
            clocks: RqClock::default(),
            need_resched: false,
            need_resched_lazy: false,
            requested: None,
            resched_seen: false,
            slice_ctrl: SliceCtrl::default(),
            clock_read: 0,
            schedule_paid: None,
            leaving_for: None,
            marked: false,
            process: u32::MAX,
            user_before: 0,
            longest: Longest::default(),
            lru_add: 0,
            tick_phase,
            next_tick: tick_phase,
            hrtimers: BinaryHeap::new(),
            in_hrtirq: false,
            deferrable: BinaryHeap::new(),
            waiting_wakeups: Vec::new(),
            push_away: None,
            nohz_kicked: false,
            idle_tick: false,
            held_interrupts: 0,
            wakes_vcpus: WakesVcpus::None,
            vcpu_waits: false,
            held_idle_exit: None,
            in_flight: None,
            next_wakeups: VecDeque::new(),
            ple_window: 0,
            pause_loop: false,
            pv_kicked: false,
            flush: TlbFlush::default(),
            in_newidle: false,
            shared: RunqueueLines::default(),
        }
    }
}
