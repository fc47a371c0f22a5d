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

impl Costs {
    /// Every cost under its name in machine files; a cost by distance has five distributions.
    pub fn each_mut(&mut self) -> Vec<(&'static str, &mut [Dist])> {
        let Costs {
            syscall,
            schedule,
            switch_thread,
            switch_process,
            wakeup,
            wakeup_clock,
            scan_cpu,
            ipi,
            irq_entry,
            irq,
            tick,
            timer_program,
            timer_resume,
            pipe_read,
            pipe_write,
            pipe_wake,
            pipe_wait,
            pipe_resume,
            socket_receive,
            socket_send,
            socket_wake,
            socket_wait,
            socket_resume,
            copy_kib,
            futex_wake,
            futex_wait,
            futex_resume,
            fork_process,
            fork_thread,
            start_process,
            start_thread,
            exit_process,
            exit_thread,
            reap_wait,
            reap,
            balance_pass,
            balance_cpu,
            user_op,
        } = self;
        vec![
            ("syscall", std::slice::from_mut(syscall)),
            ("schedule", std::slice::from_mut(schedule)),
            ("switch-thread", std::slice::from_mut(switch_thread)),
            ("switch-process", std::slice::from_mut(switch_process)),
            ("wakeup", std::slice::from_mut(wakeup)),
            ("wakeup-clock", std::slice::from_mut(wakeup_clock)),
            ("scan-cpu", scan_cpu),
            ("ipi", ipi),
            ("irq-entry", std::slice::from_mut(irq_entry)),
            ("irq", std::slice::from_mut(irq)),
            ("tick", std::slice::from_mut(tick)),
            ("timer-program", std::slice::from_mut(timer_program)),
            ("timer-resume", std::slice::from_mut(timer_resume)),
            ("pipe-read", std::slice::from_mut(pipe_read)),
            ("pipe-write", std::slice::from_mut(pipe_write)),
            ("pipe-wake", std::slice::from_mut(pipe_wake)),
            ("pipe-wait", std::slice::from_mut(pipe_wait)),
            ("pipe-resume", std::slice::from_mut(pipe_resume)),
            ("socket-receive", std::slice::from_mut(socket_receive)),
            ("socket-send", std::slice::from_mut(socket_send)),
            ("socket-wake", std::slice::from_mut(socket_wake)),
            ("socket-wait", std::slice::from_mut(socket_wait)),
            ("socket-resume", std::slice::from_mut(socket_resume)),
            ("copy-kib", std::slice::from_mut(copy_kib)),
            ("futex-wake", std::slice::from_mut(futex_wake)),
            ("futex-wait", std::slice::from_mut(futex_wait)),
            ("futex-resume", std::slice::from_mut(futex_resume)),
            ("fork-process", std::slice::from_mut(fork_process)),
            ("fork-thread", std::slice::from_mut(fork_thread)),
            ("start-process", std::slice::from_mut(start_process)),
            ("start-thread", std::slice::from_mut(start_thread)),
            ("exit-process", std::slice::from_mut(exit_process)),
            ("exit-thread", std::slice::from_mut(exit_thread)),
            ("reap-wait", std::slice::from_mut(reap_wait)),
            ("reap", std::slice::from_mut(reap)),
            ("balance-pass", std::slice::from_mut(balance_pass)),
            ("balance-cpu", std::slice::from_mut(balance_cpu)),
            ("user-op", std::slice::from_mut(user_op)),
        ]
    }
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

impl Machine {
    /// Multiplies a cost, named as in machine files, or the exit latency of `idle.NAME`; `false` if there is none of
    /// that name. Nothing gets longer than `longest`.
    pub fn scale(&mut self, name: &str, factor: f64, longest: Nanos) -> bool {
        let found: Vec<&mut Dist> = match name.strip_prefix("idle.") {
            Some(state) => self.idle_states.iter_mut().filter(|s| s.name == state).map(|s| &mut s.exit).collect(),
            None => {
                let each = self.costs.each_mut().into_iter().filter(|(known, _)| *known == name);
                each.flat_map(|(_, costs)| costs).collect()
            }
        };
        let known = !found.is_empty();
        for cost in found {
            *cost = cost.scaled(factor, longest);
        }
        known
    }
}
