//! A machine preset: topology, execution rates, and what each kernel action costs, with its spread.

use std::sync::Arc;

use schedlab_model::{Nanos, Topology};
use schedlab_workload::Dist;

/// What each action costs, in ns of CPU time on a CPU of rate 1. Arrays are indexed by [`schedlab_model::Distance`]
/// (same, smt, llc, node, remote).
#[derive(Clone, Debug)]
pub struct Costs {
    /// Entering and leaving the kernel once.
    pub syscall: Dist,
    /// `__schedule` up to `sched_switch`: the way there from the return to user mode or from a blocking call, and the pick.
    pub schedule: Dist,
    /// From `sched_switch` until the next task, which had been preempted, is in user mode: a thread of the same process.
    pub switch_thread: Dist,
    /// The same for another address space.
    pub switch_process: Dist,
    /// `try_to_wake_up` from `sched_waking` on, on the waker's side, without the search for a CPU.
    pub wakeup: Dist,
    /// From `sched_waking` until the runqueue's clock is read, part of `wakeup`.
    pub wakeup_clock: Dist,
    /// Testing one CPU in the search for an idle one, by distance from the waker.
    pub scan_cpu: [Dist; 5],
    /// From sending an inter-processor interrupt until its handler starts on a running CPU, by distance.
    pub ipi: [Dist; 5],
    /// From a timer's expiry until its handler starts.
    pub irq_entry: Dist,
    /// The interrupt handler's own time (IPI, timer).
    pub irq: Dist,
    /// The scheduler tick.
    pub tick: Dist,
    /// Programming a high-resolution timer and what else comes before the sleep.
    pub timer_program: Dist,
    /// What comes after the sleep.
    pub timer_resume: Dist,
    /// Reading what a pipe holds, beyond the syscall and without the copy.
    pub pipe_read: Dist,
    /// Writing into a pipe with room, likewise.
    pub pipe_write: Dist,
    /// What waking the other side adds to that, beyond the wakeup.
    pub pipe_wake: Dist,
    /// A read or write that has to wait: up to schedule(), beyond the syscall.
    pub pipe_wait: Dist,
    /// The rest of that call once it has been woken.
    pub pipe_resume: Dist,
    /// Receiving what a socket holds, as `pipe_read`.
    pub socket_receive: Dist,
    /// Sending, as `pipe_write`.
    pub socket_send: Dist,
    /// As `pipe_wake`.
    pub socket_wake: Dist,
    /// As `pipe_wait`.
    pub socket_wait: Dist,
    /// As `pipe_resume`.
    pub socket_resume: Dist,
    /// Copying 1 KiB between user space and a pipe or socket.
    pub copy_kib: Dist,
    /// FUTEX_WAKE up to the wakeup, beyond the syscall.
    pub futex_wake: Dist,
    /// FUTEX_WAIT up to schedule(), beyond the syscall.
    pub futex_wait: Dist,
    /// The rest of it once it has been woken.
    pub futex_resume: Dist,
    /// fork of a process, on the parent's side.
    pub fork_process: Dist,
    /// clone of a thread, on the parent's side.
    pub fork_thread: Dist,
    /// What a new process does before its program's first step (`ret_from_fork`, page faults).
    pub start_process: Dist,
    /// What a new thread does before that.
    pub start_thread: Dist,
    /// Exit of a process.
    pub exit_process: Dist,
    /// Exit of a thread.
    pub exit_thread: Dist,
    /// Waiting for a child up to schedule(), beyond the syscall.
    pub reap_wait: Dist,
    /// Collecting a child that has exited, beyond the syscall.
    pub reap: Dist,
    /// One load-balance pass over one domain, without the CPUs it looks at.
    pub balance_pass: Dist,
    /// Each CPU that a load-balance pass looks at.
    pub balance_cpu: Dist,
    /// A user-mode atomic operation or vDSO clock read.
    pub user_op: Dist,
}

/// One idle state of a CPU, shallowest first.
#[derive(Clone, Debug)]
pub struct IdleState {
    /// Its name (`POLL`, `C1`, `snooze` ...).
    pub name: String,
    /// From the wake event until the CPU executes instructions again.
    pub exit: Dist,
    /// Shortest stay for which the governor chooses it.
    pub target_residency: Nanos,
    /// Whether the CPU watches its need-resched flag there, so that a waker needs no IPI.
    pub polling: bool,
}

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Preset name.
    pub name: String,
    /// One line about it.
    pub summary: String,
    /// Where its numbers come from, one line each.
    pub sources: Vec<String>,
    /// Whether the costs were measured on such a machine.
    pub calibrated: bool,
    /// Its CPUs.
    pub topology: Arc<Topology>,
    /// Execution rate of a thread, in 1/1024, by the number of busy threads of its core (index 0: one busy).
    pub smt_rates: Vec<u32>,
    /// Costs.
    pub costs: Costs,
    /// Idle states, at least one.
    pub idle_states: Vec<IdleState>,
    /// Timer frequency of its kernel unless a variant says otherwise.
    pub hz: u32,
}
