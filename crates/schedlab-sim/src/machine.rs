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
    /// `context_switch` between threads of one process.
    pub switch_thread: Dist,
    /// `context_switch` between processes (another address space).
    pub switch_process: Dist,
    /// `try_to_wake_up` on the waker's side, without the search for a CPU.
    pub wakeup: Dist,
    /// Testing one CPU in the search for an idle one, by distance from the waker.
    pub scan_cpu: [Dist; 5],
    /// From sending an inter-processor interrupt until its handler starts on a running CPU, by distance.
    pub ipi: [Dist; 5],
    /// The interrupt handler's own time (IPI, timer).
    pub irq: Dist,
    /// The scheduler tick.
    pub tick: Dist,
    /// Programming a high-resolution timer.
    pub timer_program: Dist,
    /// One pipe read or write beyond the syscall, without the copy.
    pub pipe_op: Dist,
    /// One socket send or receive beyond the syscall, without the copy.
    pub socket_op: Dist,
    /// Copying 1 KiB between user space and a pipe or socket.
    pub copy_kib: Dist,
    /// A futex operation that enters the kernel, beyond the syscall.
    pub futex_op: Dist,
    /// fork of a process, on the parent's side.
    pub fork_process: Dist,
    /// clone of a thread, on the parent's side.
    pub fork_thread: Dist,
    /// Exit of a process.
    pub exit_process: Dist,
    /// Exit of a thread.
    pub exit_thread: Dist,
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
