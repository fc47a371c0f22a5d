//! The task-program instruction set: what one task does, step by step, on the simulator and on real threads alike.
//!
//! A program is a flat list of operations with jumps. Operations that take no time (registers, jumps, clock reads)
//! may follow each other freely; a loop made only of those is a livelock, which the engine reports with its line.

use schedlab_model::Nanos;
use serde::{Deserialize, Serialize};

use crate::policy::Policy;

/// What a timer does after a missed period (rt-app's `mode`, and one of timerfd and cyclictest).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TimerMode {
    /// A missed expiry restarts the period from now.
    Relative,
    /// The phase is kept: expiries stay multiples of the period.
    Absolute,
    /// The phase is kept and missed expiries are left out: the next one is the first in the future.
    Skip,
}

impl TimerMode {
    /// The expiry after one that is due at `due`: that one, or a later one if it is left out.
    #[must_use]
    pub fn expiry(self, due: Nanos, period: Nanos, now: Nanos) -> Nanos {
        match self {
            TimerMode::Skip if due <= now => {
                due.saturating_add((now - due) / period.max(1) * period).saturating_add(period)
            }
            _ => due,
        }
    }
}

/// Registers of a task, each a signed 64-bit integer, all 0 at start unless the task's spec sets them.
pub const REGISTERS: usize = 8;
/// A register, `0..REGISTERS`.
pub type Reg = u8;
/// An index into [`Program::ops`].
pub type Label = u32;
/// An index into the workload's objects.
pub type ObjectId = u32;
/// An index into the workload's programs.
pub type ProgramId = u32;
/// An index into the workload's distributions.
pub type DistId = u32;

/// A duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Amount {
    /// Always the same.
    Fixed(Nanos),
    /// Drawn afresh each time.
    Drawn(DistId),
    /// The register's value; negative counts as 0.
    Reg(Reg),
}

/// Whether a forked task shares its parent's address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TaskKind {
    /// Its own address space.
    Process,
    /// The parent's.
    Thread,
    /// The parent's, and the parent sleeps, until it executes a program or exits (`vfork`, `posix_spawn`).
    Vfork,
}

/// What may interrupt a section of kernel code, and where it offers to reschedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Section {
    /// What may interrupt it.
    pub context: SectionContext,
    /// Whether its points are might_sleep(), not cond_resched().
    pub might_sleep: bool,
    /// Work between two points, in ns; the last one is at its end. 0: it has none.
    pub every: u32,
}

/// What may interrupt a section of kernel code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SectionContext {
    /// Anything: the preempt count is 0.
    Preemptible,
    /// It holds a spinlock, which sleeps under PREEMPT_RT.
    Spinlock,
    /// Preemption is disabled.
    PreemptOff,
    /// Interrupts are disabled.
    IrqOff,
}

/// Kernel work on memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum MemoryWork {
    /// One page fault that maps a page which is in memory (minor).
    Map,
    /// One page fault that allocates and clears a page (minor).
    Zero,
    /// mmap of private memory of which nothing is present; the next fault that allocates a page is the first of the
    /// mapping.
    Mmap,
    /// munmap or exit of present 4 KiB pages.
    Unmap,
    /// fork's copy of the page tables of present 4 KiB pages.
    CopyPageTables,
    /// read of a file that is in the page cache.
    ReadFile,
}

/// One step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Op {
    // --- CPU and time
    /// Consume this much work in user mode: ns on a CPU of rate 1.
    Run(Amount),
    /// Busy in user mode until the wall clock has moved this much; time lost to preemption counts as done.
    RunWall(Amount),
    /// Consume this much work in kernel mode (one syscall).
    System(Amount),
    /// Enter the kernel for the [`Op::Section`]s that follow.
    Call,
    /// Consume this much work of a system call under the section's conditions.
    Section {
        /// The work.
        amount: Amount,
        /// Its conditions.
        section: Section,
        /// Whether the call returns to user mode after it.
        last: bool,
    },
    /// Acquire a spinlock of the kernel within a call; preemption stays disabled until it is released.
    KernelLock {
        /// The lock.
        object: ObjectId,
        /// Index into the workload's metrics: samples the time spun by a task that did not get the lock at once.
        metric: u16,
    },
    /// Release a spinlock of the kernel held by this task.
    KernelUnlock {
        /// The lock.
        object: ObjectId,
        /// Whether the call returns to user mode after it.
        last: bool,
    },
    /// Kernel work on memory, whose length follows from the machine and the size.
    Memory {
        /// What is done.
        work: MemoryWork,
        /// To how much, in KiB.
        kib: u32,
    },
    /// Move this many bytes, read and written, between the CPU and memory, sequentially and without reuse, in user
    /// mode. They are on the node on which the task moved its first bytes.
    Stream {
        /// Bytes.
        bytes: u32,
    },
    /// One page fault of 4 KiB that reads the page from a disk (major).
    MajorFault {
        /// The disk.
        object: ObjectId,
        /// How long the disk takes once it has begun.
        service: Amount,
    },
    /// Sleep this long (relative timer, with the task's timer slack).
    Sleep(Amount),
    /// Sleep until the absolute time in the register; returns at once when it has passed.
    SleepUntil(Reg),
    /// Wait for the next period of a timer object; see [`TimerMode`].
    Timer {
        /// The timer object.
        object: ObjectId,
        /// Its period.
        period: Amount,
        /// What happens after a miss.
        mode: TimerMode,
    },
    /// Register := the expiry that the last [`Op::Timer`] on this timer waited for, whenever the task ran after it.
    TimerDue {
        /// The timer object.
        object: ObjectId,
        /// Receives the time.
        into: Reg,
    },
    /// `sched_yield`.
    Yield,

    // --- virtual machines (in simulated hosts only)
    /// KVM_RUN: the CPU executes the guest until it halts.
    VcpuRun,
    /// `kvm_vcpu_halt`: poll for as long as the register says, then block until an interrupt for the vCPU arrives.
    VcpuHalt(Reg),

    // --- channels
    /// Read exactly `bytes` from a pipe or socket; blocks while it is empty.
    Read {
        /// The channel.
        object: ObjectId,
        /// Bytes, above 0.
        bytes: u32,
    },
    /// Write `bytes` as one message; blocks while it is full.
    Write {
        /// The channel.
        object: ObjectId,
        /// Bytes, above 0.
        bytes: u32,
    },

    // --- waiting and waking
    /// Wait on a futex word: returns at once (no syscall) and clears it if it was posted, else blocks.
    Wait(ObjectId),
    /// Post a futex word: wakes its waiter, or leaves it set if there is none (then no syscall).
    Post(ObjectId),
    /// [`Op::Post`] whose wakeup requests the CPU of the waker (WF_CURRENT_CPU, 6.6 and later).
    PostHere(ObjectId),
    /// [`Op::Wait`] on the task's own futex word.
    WaitOwn,
    /// [`Op::Post`] on the own futex word of the task whose id is in the register.
    PostPeer(Reg),
    /// Block while the gate is closed (poll on a level-triggered descriptor).
    GateWait(ObjectId),
    /// Open the gate: every waiter wakes (non-exclusive).
    GateOpen(ObjectId),
    /// Close the gate.
    GateClose(ObjectId),
    /// Acquire a mutex; blocks in FIFO order.
    Lock(ObjectId),
    /// Release a mutex held by this task.
    Unlock(ObjectId),
    /// Spin in user mode for the lock owned by the CPU the task is on, re-read after a migration (schbench 1.0).
    CpuLock(ObjectId),
    /// Release the per-CPU lock this task holds.
    CpuUnlock(ObjectId),
    /// Acquire a spinlock, spinning in user mode.
    SpinLock {
        /// The spinlock.
        object: ObjectId,
        /// Index into the workload's metrics: samples the time spun by a task that did not get the lock at once.
        metric: u16,
    },
    /// Release a spinlock held by this task.
    SpinUnlock(ObjectId),
    /// Wait until all parties of the barrier have arrived.
    Barrier(ObjectId),
    /// Take one unit of a semaphore; blocks at 0.
    SemWait(ObjectId),
    /// Take one unit of a semaphore, or jump if there is none (`sem_trywait`, no system call).
    SemTryWait {
        /// The semaphore.
        object: ObjectId,
        /// Where to go if there is no unit.
        none: Label,
    },
    /// Give one unit.
    SemPost(ObjectId),
    /// Release `mutex`, wait on the condition, acquire `mutex` again.
    CondWait {
        /// The condition.
        object: ObjectId,
        /// The mutex held.
        mutex: ObjectId,
    },
    /// Wake one waiter of a condition.
    CondSignal(ObjectId),
    /// Wake all waiters of a condition.
    CondBroadcast(ObjectId),
    /// FUTEX_WAIT on a [`crate::ObjectSpec::FutexQueue`]: blocks until a wake, or jumps when the timeout expires first.
    FutexWait {
        /// The queue.
        object: ObjectId,
        /// Holds the relative timeout in ns (with the task's timer slack); below 0 there is none.
        timeout: Reg,
        /// Where to go when it has expired.
        expired: Label,
    },
    /// FUTEX_WAKE: always a system call, and lost if no task waits.
    FutexWake {
        /// The queue.
        object: ObjectId,
        /// The most waiters to wake, oldest first.
        count: u32,
        /// Receives how many were woken.
        into: Reg,
    },
    /// FUTEX_REQUEUE: moves waiters to another queue without waking them.
    FutexRequeue {
        /// The queue they leave.
        object: ObjectId,
        /// The queue they join.
        to: ObjectId,
        /// The most waiters to move, oldest first.
        count: u32,
        /// Receives how many were moved.
        into: Reg,
    },
    /// FUTEX_WAIT with a value that the word of a [`crate::ObjectSpec::FutexQueue`] does not hold: EAGAIN, no wait.
    FutexMismatch(ObjectId),
    /// FUTEX_LOCK_PI on a [`crate::ObjectSpec::PiFutex`]: always a system call; blocks while another task holds it.
    FutexLockPi(ObjectId),
    /// FUTEX_UNLOCK_PI: always a system call; the first waiter holds it from then on.
    FutexUnlockPi(ObjectId),
    /// Append a value to a queue and wake one receiver if any waits.
    Send {
        /// The queue.
        object: ObjectId,
        /// Holds the value.
        from: Reg,
    },
    /// Take the oldest value of a queue; blocks while it is empty.
    Receive {
        /// The queue.
        object: ObjectId,
        /// Receives the value.
        into: Reg,
    },

    /// Take the oldest value of a queue, or jump if it is empty.
    TryReceive {
        /// The queue.
        object: ObjectId,
        /// Receives the value.
        into: Reg,
        /// Where to go when empty.
        empty: Label,
    },

    // --- lists of tasks (schbench's waiting list)
    /// Push this task on a list (lock-free, LIFO, no syscall).
    ListPush(ObjectId),
    /// Move a whole list to this task's private stack, replacing it.
    ListTake(ObjectId),
    /// Pop the private stack into a register (the task's id), or jump when it is empty. Last pushed comes first.
    ListPop {
        /// Receives the id.
        into: Reg,
        /// Where to go when empty.
        empty: Label,
    },
    /// Set a register of the task whose id is in `peer`.
    SetPeer {
        /// Holds the task's id.
        peer: Reg,
        /// The other task's register.
        register: Reg,
        /// This task's register with the value.
        from: Reg,
    },
    /// Append a value to the mailbox of the task whose id is in `peer` (no wakeup).
    MailPeer {
        /// Holds the task's id.
        peer: Reg,
        /// This task's register with the value.
        from: Reg,
    },
    /// Take the oldest value of the own mailbox, or jump when it is empty.
    MailTake {
        /// Receives the value.
        into: Reg,
        /// Where to go when empty.
        empty: Label,
    },

    // --- tasks
    /// Create a task that runs `program`; its id goes to `into`. It inherits nice, policy, affinity, slice and the
    /// parent's registers 4..8.
    Fork {
        /// What the child runs.
        program: ProgramId,
        /// Process or thread.
        kind: TaskKind,
        /// Receives the child's id.
        into: Reg,
    },
    /// Wait until one child has exited; returns at once if one already has. An error to have no child.
    Reap,
    /// `execve`: the process continues at the start of another program with a new address space. Its registers stay,
    /// as arguments do. The kernel balances here (`sched_exec`).
    Exec(ProgramId),
    /// Exit.
    Exit,
    /// `setpriority` on itself, -20..=19.
    SetNice(i8),
    /// `sched_setscheduler` on itself.
    SetPolicy(Policy),
    /// `sched_setaffinity` on itself: index into the workload's masks.
    SetAffinity(u32),
    /// Move to another control group: index into the workload's groups.
    SetCgroup(u32),
    /// `sched_setattr` with `sched_runtime` on itself: the own slice, 0 = back to the base slice.
    SetSlice(Nanos),

    // --- registers and measurement; no time passes
    /// Register := constant.
    Set(Reg, i64),
    /// Register := register.
    Copy {
        /// Destination.
        into: Reg,
        /// Source.
        from: Reg,
    },
    /// Register += constant.
    AddConst(Reg, i64),
    /// Register += register.
    AddReg {
        /// Destination.
        into: Reg,
        /// What is added.
        from: Reg,
    },
    /// Register -= register.
    SubReg {
        /// Destination.
        into: Reg,
        /// What is subtracted.
        from: Reg,
    },
    /// Register *= register, wrapping.
    MulReg {
        /// Destination.
        into: Reg,
        /// The factor.
        by: Reg,
    },
    /// Register /= register, towards 0; divided by 0 it is the largest value.
    DivReg {
        /// Destination.
        into: Reg,
        /// The divisor.
        by: Reg,
    },
    /// Register := a fresh draw.
    Draw(Reg, DistId),
    /// Register := the current time in ns (clock_gettime, vDSO).
    Clock(Reg),
    /// Register := CPU time in ns of the task and of all child processes that it has reaped (`getrusage`).
    CpuTime(Reg),
    /// Register := the part of it in user mode (`ru_utime`).
    UserTime(Reg),
    /// Register := time in ns that all CPUs together have been idle since boot (a read of `/proc/stat`).
    IdleTime(Reg),
    /// Register := how often the task has been switched out while it was runnable (`ru_nivcsw`).
    Preemptions(Reg),
    /// Continue at the label.
    Jump(Label),
    /// Jump when the register is below the constant.
    JumpBelow {
        /// Compared.
        reg: Reg,
        /// With.
        than: i64,
        /// Where to.
        to: Label,
    },
    /// Subtract 1 from the register; jump unless it has become 0.
    DecJump {
        /// The counter.
        reg: Reg,
        /// Where to.
        to: Label,
    },
    /// Report the register's value as one sample of a metric; negative counts as 0.
    Sample {
        /// Index into the workload's metrics.
        metric: u16,
        /// Holds the value.
        reg: Reg,
    },
    /// Report completed operations of a metric.
    Count {
        /// Index into the workload's metrics.
        metric: u16,
        /// How many.
        count: u32,
    },
    /// The workload has reached its own end (its headline is reported); the run ends when every such workload has.
    Finish,
}

/// A task's program.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Program {
    /// Its name: the task's `comm`.
    pub name: String,
    /// The steps; running past the last one is [`Op::Exit`].
    pub ops: Vec<Op>,
    /// Source line of each step in the user's file, 0 where there is none; same length as `ops` or empty.
    pub lines: Vec<u32>,
    /// Working set in KiB of the tasks that start with it; 0: that of the parent.
    #[serde(default, skip_serializing_if = "is_none")]
    pub working_set: u32,
}

/// Whether no working set is stated.
pub(crate) fn is_none(kib: &u32) -> bool {
    *kib == 0
}

impl Program {
    /// The source line of a step, if it came from a user's file.
    #[must_use]
    pub fn line(&self, step: Label) -> Option<u32> {
        self.lines.get(step as usize).copied().filter(|line| *line > 0)
    }
}
