//! A wakeup whose selection of a CPU is over in the policy and still takes time on the waker's CPU: until then other wakers do
//! not see the choice.

use schedlab_model::{CpuId, TaskId};
use schedlab_policy::procedure::{self, Wakeup};
use schedlab_trace::Sink;

use super::effects::Executor;
use super::segment::settle;
use super::state::Kernel;
use crate::machine::{Activity, Machine};
use crate::run::{Run, Source};

/// A wakeup on its way to the runqueue.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    wakeup: Wakeup,
    /// The CPU selected.
    cpu: CpuId,
}

impl InFlight {
    /// The task that wakes.
    pub fn task(&self) -> TaskId {
        self.wakeup.task
    }
}

/// Whether the wakeup gets to the runqueue of `cpu` later, because the waker's CPU has to spend the cost of the search first.
///
/// A task that stays on the waker's CPU gets there at once: nobody else can interfere. So it does where the waker's CPU is
/// idle, as in the interrupt of a timer that ends an idle state.
#[inline]
pub fn takes_time<S: Sink>(
    run: &mut Run<S>,
    machine: &Machine,
    kernel: &mut Kernel,
    this: CpuId,
    wakeup: Wakeup,
    cpu: CpuId,
) -> bool {
    if !machine.selection_takes_time() || cpu == this || machine.cpus[this.index()].activity != Activity::Busy {
        return false;
    }
    let (delay, k) = (machine.sending_delay(this), &mut kernel.cpus[this.index()]);
    if delay == 0 || k.in_flight.is_some() {
        return false;
    }
    k.in_flight = Some(InFlight { wakeup, cpu });
    run.set_event(kernel.id, Source::Wakeup, this, run.now + delay);
    true
}

/// The time of a search is over: `ttwu_queue`, and the next wakeup of this CPU.
pub fn on_wakeup<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, this: CpuId) {
    machine.cpus[this.index()].progress(run.now);
    if let Some(InFlight { wakeup, cpu }) = kernel.cpus[this.index()].in_flight.take() {
        procedure::ttwu_queue(&mut Executor { run, machine, kernel, cpu: this }, wakeup, cpu);
    }
    while let Some(wakeup) = next_wakeup(kernel, this) {
        procedure::try_to_wake_up(&mut Executor { run, machine, kernel, cpu: this }, wakeup);
    }
    settle(run, machine, kernel, this);
}

/// The next wakeup of the CPU, unless it is still in one.
fn next_wakeup(kernel: &mut Kernel, this: CpuId) -> Option<Wakeup> {
    let k = &mut kernel.cpus[this.index()];
    if k.in_flight.is_some() {
        return None;
    }
    k.next_wakeups.pop_front()
}
