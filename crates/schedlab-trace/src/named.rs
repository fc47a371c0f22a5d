//! What events and results name: each of these has a number and a name.

/// Declares an enum whose variants are numbered in their order, each with its name.
macro_rules! named {
    ($(#[$of:meta])* enum $Enum:ident { $($(#[$doc:meta])* $Variant:ident = $name:literal,)+ }) => {
        $(#[$of])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum $Enum { $($(#[$doc])* $Variant,)+ }

        impl $Enum {
            /// All, in the order of their numbers.
            pub const ALL: [$Enum; [$($name),+].len()] = [$($Enum::$Variant),+];

            /// Its name in files, traces and results.
            #[must_use]
            pub fn name(self) -> &'static str {
                [$($name),+][self as usize]
            }

            /// The one of this name.
            #[must_use]
            pub fn parse(name: &str) -> Option<$Enum> {
                $Enum::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}

named! {
    /// What a task executes, as far as that decides when it can be preempted.
    enum Section {
        /// User mode.
        User = "user",
        /// Kernel mode with a preempt count of 0.
        Kernel = "kernel",
        /// Kernel mode under a spinlock.
        Spinlock = "spinlock",
        /// Kernel mode with preemption disabled.
        PreemptOff = "preempt-off",
        /// Kernel mode with interrupts disabled.
        IrqOff = "irq-off",
    }
}

named! {
    /// A system call or fault whose sections `calibrate --sections` measures and the simulator uses.
    enum Call {
        /// A read of a pipe.
        PipeRead = "pipe-read",
        /// A write to a pipe.
        PipeWrite = "pipe-write",
        /// A read of a stream socket.
        SocketReceive = "socket-receive",
        /// A write to a stream socket.
        SocketSend = "socket-send",
        /// FUTEX_WAKE.
        FutexWake = "futex-wake",
        /// FUTEX_WAIT up to its sleep.
        FutexWait = "futex-wait",
        /// A minor fault of a page that is in memory.
        Fault = "fault",
        /// A fault that allocates and clears a page.
        FaultClear = "fault-clear",
        /// fork of a process.
        Fork = "fork",
        /// execve.
        Exec = "exec",
        /// The exit of a process.
        Exit = "exit",
        /// A fault that allocates and clears a page, and puts a batch of new pages on the lists of reclaim.
        FaultDrain = "fault-drain",
        /// The freeing of a batch of pages of 4 KiB, a part of munmap.
        FreeBatch = "free-batch",
    }
}

named! {
    /// What happens to a time slice extension: it is granted, and ends in one of four ways.
    enum Extension {
        /// The kernel granted it instead of a switch.
        Granted = "granted",
        /// The task ended its critical section and called rseq_slice_yield().
        Yielded = "yielded",
        /// Its time is over.
        Expired = "expired",
        /// Another request to reschedule ended it.
        Revoked = "revoked",
        /// Another system call of the task ended it.
        Aborted = "aborted",
    }
}

named! {
    /// A kind of lock.
    enum Lock {
        /// The lock of a runqueue (`rq->__lock`).
        Runqueue = "rq",
        /// The mutex of a pipe.
        Pipe = "pipe",
        /// The locks of a socket: its state and its receive queue.
        Socket = "socket",
        /// The lock of a futex bucket.
        Futex = "futex",
        /// Not a lock, but a cache line that several CPUs change by atomic operations: counters of references and of
        /// memory.
        Line = "line",
        /// The lock of a wait queue (`wait_queue_head.lock`).
        WaitQueue = "waitqueue",
        /// `tasklist_lock`.
        Tasklist = "tasklist",
        /// `mmap_lock` of a process: its waits include the time asleep.
        Mmap = "mmap",
    }
}

impl Lock {
    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: usize) -> Option<Lock> {
        Lock::ALL.get(number).copied()
    }
}
