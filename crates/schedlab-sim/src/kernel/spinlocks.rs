//! How a kernel waits for its spinlocks.

use schedlab_policy::PreemptModel;

/// How a spinlock that is held is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spinlocks {
    /// `queued_spin_lock_slowpath`: waiters spin and get the lock in the order in which they came.
    Queued,
    /// `virt_spin_lock`: the first waiter that executes when it is free gets it. A guest of KVM on x86 without
    /// paravirtual spinlocks.
    TestAndSet,
    /// `__pv_queued_spin_lock_slowpath`: waiters that have spun for long halt until they are kicked. A guest of KVM on
    /// x86.
    Paravirt,
    /// `queued_spin_lock_slowpath` of powerpc from 6.2 on: a queue that tasks which are not in it may overtake until
    /// its first waiter has spun for long.
    Overtaken,
    /// rt: waiters sleep. Neither the boost of the holder nor the time that a waiter spins for a running one is
    /// modelled.
    Sleeping,
}

impl Spinlocks {
    /// Those of a kernel on hardware.
    pub fn of(model: PreemptModel) -> Spinlocks {
        if model.has_sleeping_locks() {
            Spinlocks::Sleeping
        } else {
            Spinlocks::Queued
        }
    }
}
