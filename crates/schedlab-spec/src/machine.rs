//! A machine preset: topology, execution rates, and what each kernel action costs, with its spread.

use std::collections::BTreeMap;
use std::sync::Arc;

use schedlab_model::{Nanos, Topology};
use schedlab_workload::Dist;

use crate::{Caches, CallSections, Frequency, Physics};

/// What each action costs, in ns of CPU time on a CPU of rate 1. Arrays are indexed by [`schedlab_model::Distance`]
/// (same, smt, llc, node, remote).
#[derive(Clone, PartialEq, Debug)]
pub struct Costs {
    /// Entering and leaving the kernel once.
    pub syscall: Dist,
    /// `__schedule` up to `sched_switch`: the path to it from the return to user mode or from a blocking call, and the
    /// pick. The runqueue's clock is read at its beginning.
    pub schedule: Dist,
    /// From `sched_switch` until the next task, which had been preempted, is in user mode: a thread of the same
    /// process.
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
    /// For how long sending an interrupt to another CPU keeps the sender busy. In a virtual machine this is a VM exit.
    pub ipi_send: Dist,
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
    /// exec: from the call until the new program's first step (loading, page faults, dynamic linking).
    pub exec: Dist,
    /// Exit of a process.
    pub exit_process: Dist,
    /// Exit of a thread.
    pub exit_thread: Dist,
    /// Waiting for a child up to schedule(), beyond the syscall.
    pub reap_wait: Dist,
    /// Collecting a child that has exited, beyond the syscall.
    pub reap: Dist,
    /// One load-balance pass over one domain, without the CPUs it reads.
    pub balance_pass: Dist,
    /// Each CPU that a load-balance pass reads.
    pub balance_cpu: Dist,
    /// A page fault that maps a page which is in memory, exception entry and exit included.
    pub fault: Dist,
    /// Clearing 1 KiB of memory.
    pub clear_kib: Dist,
    /// Reading 1 KiB of a file that is in the page cache.
    pub read_kib: Dist,
    /// mmap of private memory, beyond the syscall.
    pub mmap: Dist,
    /// munmap, beyond the syscall and the pages: finding, splitting and removing the mapping.
    pub munmap: Dist,
    /// munmap or exit: clearing the page-table entry of each 4 KiB page that is present, where `unmap_page` does not
    /// contain it.
    pub zap_page: Dist,
    /// munmap or exit: freeing each 4 KiB page that is present.
    pub unmap_page: Dist,
    /// fork: each 4 KiB page whose page-table entry is copied.
    pub copy_page_table: Dist,
    /// A user-mode atomic operation or vDSO clock read.
    pub user_op: Dist,
    /// A VM exit that the host handles in the kernel, and the entry after it.
    pub vm_exit: Dist,
    /// The same of a guest in a guest: the exit and the entry of the inner guest, with all exits of the outer one on
    /// the way.
    pub vm_exit_nested: Dist,
    /// Visiting one vCPU in the host's walk over all of them (`idle_hint = "vpa"`).
    pub idle_hint: Dist,
    /// Flushing pages from the TLB of a CPU, its own or that of a CPU that is interrupted for this, without the
    /// interrupt. 0: the hardware broadcasts flushes.
    pub tlb_flush: Dist,
    /// One iteration of a loop that waits for a spinlock of the kernel: a read of the lock and `cpu_relax` (PAUSE). 0:
    /// waiters never halt.
    pub cpu_relax: Dist,
    /// The longest time for which a guest's kernel spins before a VM exit (`ple_window`). 0: unlimited.
    pub ple_window: Dist,
    /// Fetching a cache line whose latest copy another CPU has, by the distance of that CPU.
    pub line_transfer: [Dist; 5],
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
            ipi_send,
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
            exec,
            exit_process,
            exit_thread,
            reap_wait,
            reap,
            balance_pass,
            balance_cpu,
            fault,
            clear_kib,
            read_kib,
            mmap,
            munmap,
            zap_page,
            unmap_page,
            copy_page_table,
            user_op,
            vm_exit,
            vm_exit_nested,
            idle_hint,
            tlb_flush,
            cpu_relax,
            ple_window,
            line_transfer,
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
            ("ipi-send", std::slice::from_mut(ipi_send)),
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
            ("exec", std::slice::from_mut(exec)),
            ("exit-process", std::slice::from_mut(exit_process)),
            ("exit-thread", std::slice::from_mut(exit_thread)),
            ("reap-wait", std::slice::from_mut(reap_wait)),
            ("reap", std::slice::from_mut(reap)),
            ("balance-pass", std::slice::from_mut(balance_pass)),
            ("balance-cpu", std::slice::from_mut(balance_cpu)),
            ("fault", std::slice::from_mut(fault)),
            ("clear-kib", std::slice::from_mut(clear_kib)),
            ("read-kib", std::slice::from_mut(read_kib)),
            ("mmap", std::slice::from_mut(mmap)),
            ("munmap", std::slice::from_mut(munmap)),
            ("zap-page", std::slice::from_mut(zap_page)),
            ("unmap-page", std::slice::from_mut(unmap_page)),
            ("copy-page-table", std::slice::from_mut(copy_page_table)),
            ("user-op", std::slice::from_mut(user_op)),
            ("vm-exit", std::slice::from_mut(vm_exit)),
            ("vm-exit-nested", std::slice::from_mut(vm_exit_nested)),
            ("idle-hint", std::slice::from_mut(idle_hint)),
            ("tlb-flush", std::slice::from_mut(tlb_flush)),
            ("cpu-relax", std::slice::from_mut(cpu_relax)),
            ("ple-window", std::slice::from_mut(ple_window)),
            ("line-transfer", line_transfer),
        ]
    }
}

/// One idle state of a CPU, shallowest first.
#[derive(Clone, PartialEq, Debug)]
pub struct IdleState {
    /// Its name (`POLL`, `C1`, `snooze` ...).
    pub name: String,
    /// From the wake event until the CPU executes instructions again.
    pub exit: Dist,
    /// What the driver's table states as exit latency; `None`: the longest of `exit`.
    pub latency: Option<Nanos>,
    /// Shortest idle period for which the governor chooses it.
    pub target_residency: Nanos,
    /// Whether the CPU watches its need-resched flag there, so that a waker needs no IPI.
    pub polling: bool,
}

/// The bandwidth of a machine's memory, in MB/s (10^6 bytes) as STREAM counts its triad: bytes read and written,
/// without the read of a line that a write allocates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Of one CPU alone.
    pub cpu: u32,
    /// From the memory of one node to all CPUs; `u32::MAX` is no limit.
    pub node: u32,
    /// Of that, to the CPUs of all other nodes together; `u32::MAX` is no limit.
    pub remote: u32,
    /// Of a read from the memory of the CPU's own node and of another one, where they are stated.
    pub latency: Option<[Nanos; 2]>,
}

impl Memory {
    /// All rates times `factor`; what has no limit keeps none.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Memory {
        let rate = |rate: u32| match rate {
            u32::MAX => rate,
            rate => ((f64::from(rate) * factor) as u32).clamp(1, u32::MAX - 1),
        };
        Memory { cpu: rate(self.cpu), node: rate(self.node), remote: rate(self.remote), ..self }
    }

    /// How long a CPU reads or writes a page of 4 KiB on its own node, ns.
    #[must_use]
    pub fn page(self) -> Nanos {
        4_096_000 / u64::from(self.cpu.max(1))
    }

    /// How much longer the use of a page of 4 KiB takes if it is on another node, ns.
    ///
    /// A CPU has a fixed number of lines outstanding, so that the rate of what it reads is inverse to the latency: at
    /// `cpu` MB/s a page takes 4096 / cpu us, and remote / local times as long from another node.
    #[must_use]
    pub fn remote_page(self) -> Nanos {
        let Some([local, remote]) = self.latency else { return 0 };
        4_096_000 * remote.saturating_sub(local) / (u64::from(self.cpu) * local.max(1)).max(1)
    }
}

/// A machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// Preset name.
    pub name: String,
    /// One line about it.
    pub summary: String,
    /// Where its numbers come from, one line each.
    pub sources: Vec<String>,
    /// The bounds of estimates, as factors of their values, by the name of the cost, where the machine states them.
    pub ranges: BTreeMap<String, [f64; 2]>,
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
    /// The bandwidth of its memory, if known.
    pub memory: Option<Memory>,
    /// Its frequencies, if it states any but that of the costs.
    pub frequency: Option<Frequency>,
    /// Its caches, if it states their sizes.
    pub caches: Option<Caches>,
    /// The sections of its kernel's system calls.
    pub sections: Arc<Vec<CallSections>>,
    /// The mechanisms it has.
    pub physics: Physics,
    /// Timer frequency of its kernel unless a variant says otherwise.
    pub hz: u32,
}

impl Machine {
    /// The machine that a guest with these CPUs has on this one: the same processor, whose idle state is a VM exit and
    /// whose threads compete on the host's cores. The bandwidth of the memory is not shared between guests.
    #[must_use]
    pub fn guest(&self, topology: Arc<Topology>) -> Machine {
        let halt = IdleState {
            name: "halt".into(),
            exit: Dist::Constant(0),
            latency: None,
            target_residency: 0,
            polling: false,
        };
        let memory = self.memory.map(|memory| Memory { node: u32::MAX, remote: u32::MAX, ..memory });
        Machine { topology, smt_rates: vec![1024], idle_states: vec![halt], memory, frequency: None, ..self.clone() }
    }

    /// The machine that a guest with these CPUs has in a guest whose machine is this one: its exits are nested ones.
    #[must_use]
    pub fn nested_guest(&self, topology: Arc<Topology>) -> Machine {
        let mut machine = self.guest(topology);
        machine.costs.vm_exit = machine.costs.vm_exit_nested.clone();
        machine
    }

    /// Multiplies a cost, named as in machine files, the exit latency of `idle.NAME`, or what `caches` take longer than
    /// the nearest of them; `false` if there is none of that name. No cost exceeds `longest`.
    pub fn scale(&mut self, name: &str, factor: f64, longest: Nanos) -> bool {
        if name == "caches" {
            self.caches = self.caches.as_ref().map(|caches| caches.scaled(factor));
            return self.caches.is_some();
        }
        if name == "memory" {
            self.memory = self.memory.map(|memory| memory.scaled(factor));
            return self.memory.is_some();
        }
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
