//! The runqueues' clocks, where probes read them. The kernel charges and decays by these, never by the time of a
//! record.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_trace::Kind;

use super::task::Place;
use super::Reader;
use crate::operation::Operation;
use crate::trace::{Entry, LookAhead, What, Window};

impl Reader {
    /// The clock by which the kernel did what a record describes: the probe of the same event reads it.
    pub(super) fn read_clock(&mut self, entry: &Entry, kind: Kind, ahead: &Window<'_>) {
        let (pid, cpu) = match kind {
            Kind::Runtime { pid, .. } => match self.place(pid) {
                Some(Place::Running(cpu)) => (pid, cpu),
                _ => (pid, entry.cpu),
            },
            Kind::Wakeup { pid, target_cpu, .. } | Kind::WakeupNew { pid, target_cpu, .. } => (pid, target_cpu),
            Kind::Switch { prev, .. } => (prev, entry.cpu),
            // A wakeup moves its task without the lock of the previous runqueue.
            Kind::Migrate { pid, orig_cpu, .. } if !self.is_waking(pid) => (pid, orig_cpu),
            _ => return,
        };
        if let Some((_, clock)) = clock_behind(entry, ahead).filter(|(of, _)| *of == pid) {
            self.push(Operation::UpdateRqClock { cpu, clock });
        }
    }

    /// Before the first record on a CPU its clock is assumed to be where it is first read.
    pub(super) fn start_clock(&mut self, cpu: CpuId, ahead: &Window<'_>) {
        let switch = |entry: &&Entry| entry.cpu == cpu && matches!(entry.kind(), Some(Kind::Switch { .. }));
        let own = ahead.look(LookAhead::StartClock).filter(|entry| entry.cpu == cpu);
        let mut own = own.skip_while(|entry| !switch(entry)).skip(1);
        if let Some((_, clock)) = own.next().and_then(clock_of) {
            self.push(Operation::UpdateRqClock { cpu, clock });
        }
    }

    /// The balancer updates the loads of a CPU. In `sched_balance_newidle` the running task was dequeued before. Where
    /// the probe does not read the clock, the first queue that is updated shows to what time.
    pub(super) fn update_blocked_averages(
        &mut self,
        entry: &Entry,
        cpu: CpuId,
        clock: Option<Nanos>,
        ahead: &Window<'_>,
    ) {
        self.cpu(entry.cpu).updates_blocked = true;
        if let Some(clock) = clock {
            if cpu == entry.cpu && entry.in_task() {
                self.block_leaving(cpu, ahead);
            }
            self.push(Operation::UpdateRqClock { cpu, clock });
            return self.push(Operation::UpdateBlockedAverages { cpu, at: None });
        }
        let mut own = ahead.look(LookAhead::Clock).filter(|next| next.cpu == entry.cpu);
        match own.next().map(|next| next.what) {
            Some(What::CfsRqLoad { cpu: of, at, .. }) if of == cpu => {
                self.push(Operation::UpdateBlockedAverages { cpu, at: Some(at) });
            }
            _ => {}
        }
    }

    /// The clock of this CPU's queue, if a record shows it.
    pub(super) fn clock_shown_of(&self, cpu: CpuId, entry: &Entry) -> Option<Nanos> {
        if let What::RqClock { cpu: of, clock } = entry.what {
            return (of == cpu).then_some(clock);
        }
        let there = |pid| matches!(self.place(pid), Some(Place::Running(at) | Place::Queued(at)) if at == cpu);
        clock_of(entry).filter(|(pid, _)| there(*pid)).map(|(_, clock)| clock)
    }

    pub(super) fn is_waking(&self, pid: Pid) -> bool {
        self.tasks.get(&pid).is_some_and(|task| task.waking)
    }
}

/// The clock that the next record of the CPU reads, and the task whose runqueue it is of.
pub fn clock_behind(entry: &Entry, ahead: &Window<'_>) -> Option<(Pid, Nanos)> {
    ahead.look(LookAhead::Clock).find(|next| next.cpu == entry.cpu).and_then(clock_of)
}

fn clock_of(entry: &Entry) -> Option<(Pid, Nanos)> {
    match entry.what {
        What::Probe(probe) => probe.clock.map(|clock| (probe.pid, clock)),
        // With a CPU it is that of where a task is enqueued, not of where the event is.
        What::Clock { cpu: None, pid, clock, .. } => Some((pid, clock)),
        _ => None,
    }
}
