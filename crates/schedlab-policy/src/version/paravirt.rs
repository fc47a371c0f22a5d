//! The rules of a kernel as the host or the guest of a hypervisor, over the kernel's releases.
//!
//! Read in virt/kvm/kvm_main.c, arch/x86/kvm/x86.c and arch/powerpc/include/asm/{spinlock,paravirt}.h of 5.2, 5.7,
//! 5.10.262, 5.15.135, 6.1.192, 6.6, 6.12.107 and 7.2. Where a change lies between two trees that were read, its first
//! release is from memory and marked `unverified`.

use crate::history::release::{value_at, when, Change, Release};

/// When an x86 host marks a vCPU as preempted (`kvm_arch_vcpu_put`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreemptedByte {
    /// Whenever its thread is switched out, blocked or not.
    EveryPut,
    /// Only if its thread was still runnable when it was switched out.
    RunnableThread,
}

/// Which vCPUs a powerpc guest takes for preempted by the parity of `yield_count`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum YieldCount {
    /// All that are not dispatched, ceded ones included.
    Odd,
    /// Those that are not dispatched and have not ceded (`lppaca.idle`).
    OddUnlessIdle,
}

/// How a guest of powerpc waits for a spinlock of its kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PowerpcSpinlocks {
    /// `simple_spinlock.h`: the first waiter that executes gets the lock; waiters yield to the holder.
    Simple,
    /// The queued spinlocks of all architectures; their waiters yield to no vCPU in particular, which KVM ignores.
    Generic,
    /// `arch/powerpc/lib/qspinlock.c`: a queue that may be overtaken; waiters yield to the holder.
    Own,
}

/// What a kernel does as a host or as a guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paravirt {
    /// As an x86 host.
    pub preempted_byte: PreemptedByte,
    /// As a powerpc guest.
    pub yield_count: YieldCount,
    /// What a KVM host divides a halt-polling window by to shrink it; 0: the window becomes 0 (`halt_poll_ns_shrink`).
    pub halt_poll_shrink: u64,
    /// As a guest: it has the haltpoll governor (2cffe9f6b96f).
    pub haltpoll: bool,
    /// As a guest with that governor: a window that shrinks below its first value becomes 0.
    pub haltpoll_resets: bool,
    /// As an x86 guest and as its host: the hypercall by which the sender of an interrupt to several vCPUs yields to
    /// one of them (KVM_HC_SCHED_YIELD).
    pub sched_yield: bool,
    /// As an x86 guest: it yields only to vCPUs that are not idle.
    pub yields_to_busy: bool,
    /// As an x86 host: it does not yield where only the sender runs (`single_task_running`).
    pub yields_only_if_shared: bool,
    /// As a powerpc guest.
    pub powerpc_spinlocks: PowerpcSpinlocks,
    /// As an x86 host: it can let vCPUs send interrupts without an exit (`enable_ipiv` of kvm_intel).
    pub ipiv: bool,
}

const PREEMPTED_BYTE: &[Change<PreemptedByte>] = &[
    Change {
        when: when!(from "5.19" unverified "set at every put in 5.7, for runnable threads only in 6.1"),
        value: PreemptedByte::RunnableThread,
    },
    Change { when: when!(seen "5.10.262" unverified "read there"), value: PreemptedByte::RunnableThread },
    Change { when: when!(seen "5.15.135" unverified "read there"), value: PreemptedByte::RunnableThread },
];

const YIELD_COUNT: &[Change<YieldCount>] = &[Change {
    when: when!(from "6.8" unverified "absent from 6.6, present in 6.12.107"),
    value: YieldCount::OddUnlessIdle,
}];

const HALT_POLL_SHRINK: &[Change<u64>] = &[Change {
    when: when!(from "6.11" unverified "0 in 6.6, 2 in 6.12.107 and 7.2; the release is from memory"),
    value: 2,
}];

const HALTPOLL: &[Change<bool>] = &[Change { when: when!(from "5.4" by "2cffe9f6b96f"), value: true }];

const HALTPOLL_RESETS: &[Change<bool>] = &[Change {
    when: when!(from "6.9" unverified "posted in January 2024 (lore:20240111135950.17016-1-parshuram.sangle@intel.com)"),
    value: true,
}];

const SCHED_YIELD: &[Change<bool>] =
    &[Change { when: when!(from "5.3" unverified "posted in June 2019; absent from 5.2"), value: true }];

const YIELDS_TO_BUSY: &[Change<bool>] =
    &[Change { when: when!(from "5.18" unverified "in 6.12.117; posted in early 2022"), value: true }];

const YIELDS_ONLY_IF_SHARED: &[Change<bool>] =
    &[Change { when: when!(from "5.14" unverified "in 6.12.117; posted in spring 2021"), value: true }];

const POWERPC_SPINLOCKS: &[Change<PowerpcSpinlocks>] = &[
    Change {
        when: when!(from "5.9" unverified "from memory; in 6.1.192 (the default of PPC_BOOK3S_64)"),
        value: PowerpcSpinlocks::Generic,
    },
    Change {
        when: when!(from "6.2" unverified "from memory; absent from 6.1.192, in 6.12.117"),
        value: PowerpcSpinlocks::Own,
    },
];

const IPIV: &[Change<bool>] = &[Change {
    when: when!(from "6.0" unverified "posted in April 2022, in 6.1.192; absent from 5.15.135"),
    value: true,
}];

impl Paravirt {
    pub(crate) const fn at(release: Release) -> Paravirt {
        Paravirt {
            preempted_byte: value_at(PreemptedByte::EveryPut, PREEMPTED_BYTE, release),
            yield_count: value_at(YieldCount::Odd, YIELD_COUNT, release),
            halt_poll_shrink: value_at(0, HALT_POLL_SHRINK, release),
            haltpoll: value_at(false, HALTPOLL, release),
            haltpoll_resets: value_at(false, HALTPOLL_RESETS, release),
            sched_yield: value_at(false, SCHED_YIELD, release),
            yields_to_busy: value_at(false, YIELDS_TO_BUSY, release),
            yields_only_if_shared: value_at(false, YIELDS_ONLY_IF_SHARED, release),
            powerpc_spinlocks: value_at(PowerpcSpinlocks::Simple, POWERPC_SPINLOCKS, release),
            ipiv: value_at(false, IPIV, release),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    #[test]
    fn rules_of_the_rows() {
        use {PreemptedByte::*, YieldCount::*};
        for (row, want) in [
            ("5.2", (EveryPut, Odd, 0, [false; 5])),
            ("5.7", (EveryPut, Odd, 0, [true, false, true, false, false])),
            ("5.13", (EveryPut, Odd, 0, [true, false, true, false, false])),
            ("6.1", (RunnableThread, Odd, 0, [true, false, true, true, true])),
            ("6.6", (RunnableThread, Odd, 0, [true, false, true, true, true])),
            ("6.12.0", (RunnableThread, OddUnlessIdle, 2, [true; 5])),
            ("7.2", (RunnableThread, OddUnlessIdle, 2, [true; 5])),
        ] {
            let found = Version::find(row).unwrap().paravirt();
            let polls = [found.haltpoll, found.haltpoll_resets];
            let yields = [found.sched_yield, found.yields_to_busy, found.yields_only_if_shared];
            let flags = [polls[0], polls[1], yields[0], yields[1], yields[2]];
            assert_eq!((found.preempted_byte, found.yield_count, found.halt_poll_shrink, flags), want, "{row}");
        }
    }
}
