//! The runqueues' clocks, where probes read them. The kernel charges and ages by these, never by the time of a record.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_trace::Kind;

use super::{Place, Reading};
use crate::operation::Operation;
use crate::step::{Step, What};
use crate::window::Window;

impl Reading {
    /// The clock by which the kernel did what a record tells: the probe at the same place reads it.
    pub(super) fn tell_clock(&mut self, step: &Step, kind: Kind, ahead: &Window<'_>) {
        let (pid, cpu) = match kind {
            Kind::Runtime { pid, .. } => match self.place(pid) {
                Some(Place::Running(cpu)) => (pid, cpu),
                _ => (pid, step.cpu),
            },
            Kind::Wakeup { pid, target_cpu, .. } | Kind::WakeupNew { pid, target_cpu, .. } => (pid, target_cpu),
            Kind::Switch { prev, .. } => (prev, step.cpu),
            // A wakeup moves its task without the lock of the queue it comes from.
            Kind::Migrate { pid, orig_cpu, .. } if !self.is_waking(pid) => (pid, orig_cpu),
            _ => return,
        };
        if let Some((_, clock)) = clock_behind(step, ahead).filter(|(of, _)| *of == pid) {
            self.push(Operation::Clock { cpu, clock });
        }
    }

    /// Before the first record on a CPU its clock is taken to stand where it is read first.
    pub(super) fn start_clock(&mut self, cpu: CpuId, ahead: &Window<'_>) {
        let switch = |step: &&Step| step.cpu == cpu && matches!(step.kind(), Some(Kind::Switch { .. }));
        let mut own = ahead.ahead().filter(|step| step.cpu == cpu).skip_while(|step| !switch(step)).skip(1);
        if let Some((_, clock)) = own.next().and_then(read) {
            self.push(Operation::Clock { cpu, clock });
        }
    }

    /// The balancer looks at the loads of a CPU: the first queue that it brings up to date tells when.
    pub(super) fn age(&mut self, step: &Step, cpu: CpuId, ahead: &Window<'_>) {
        let mut own = ahead.ahead().filter(|next| next.cpu == step.cpu);
        match own.next().map(|next| next.what) {
            Some(What::Aged { cpu: of, at, .. }) if of == cpu => self.push(Operation::Age { cpu, at }),
            _ => {}
        }
    }

    fn is_waking(&self, pid: Pid) -> bool {
        self.tasks.get(&pid).is_some_and(|task| task.waking)
    }
}

/// The clock that the record behind this one on its CPU reads, and whose.
pub(super) fn clock_behind(step: &Step, ahead: &Window<'_>) -> Option<(Pid, Nanos)> {
    ahead.ahead().find(|next| next.cpu == step.cpu).and_then(read)
}

/// Whose clock a record reads.
fn read(step: &Step) -> Option<(Pid, Nanos)> {
    match step.what {
        What::Probe(probe) => probe.clock.map(|clock| (probe.pid, clock)),
        What::Clock { pid, clock, .. } => Some((pid, clock)),
        _ => None,
    }
}
