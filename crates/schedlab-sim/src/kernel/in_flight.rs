//! A wakeup whose selection of a CPU is over in the policy and still takes time on the waker's CPU: until then other
//! wakers do not see the choice.

use schedlab_model::CpuId;
use schedlab_policy::procedure::Wakeup;
use schedlab_trace::Sink;

use super::percpu::InFlight;
use super::state::Kernel;
use crate::machine::{Activity, Machine};
use crate::run::{Run, Source};

/// Whether the wakeup gets to the runqueue of `cpu` later, because the waker's CPU has to spend the cost of the search
/// first.
///
/// A task that stays on the waker's CPU is enqueued at once, as no other CPU can interfere. The same holds where the
/// waker's CPU is idle, as in the interrupt of a timer that ends an idle state.
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
