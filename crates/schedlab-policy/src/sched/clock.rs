//! The clock by which `schedule()` charges (`rq_clock_skip_update`, RQCF_REQ_SKIP).
//!
//! A wakeup check that leaves the running task with need-resched set has just updated the runqueue's clock, and so has
//! a yield: the next `__schedule` does not update it again. The time until then, such as the latency of an interrupt,
//! of an idle exit or of a system call that has to end first, is charged to the next task instead of the previous one,
//! whatever their classes. The time of the pick is charged to the next task as well, because `__schedule` reads the
//! clock before.
//!
//! Follows kernel/sched/core.c of 5.2 to 7.2 (`check_preempt_curr`, `wakeup_preempt`). Not modelled: up to 6.1 the
//! clock does not advance until the switch is over, newidle balancing included.

use schedlab_model::{CpuId, Nanos};

use super::{Core, Sched};
use crate::class::ClassList;
use crate::sched::schedule_entry::Schedule;

impl<L: ClassList> Sched<L> {
    /// The CPU's clock in the `__schedule` whose pick ends now. A function that used the queue after a check requested
    /// to skip the update has updated the clock itself.
    #[inline(always)]
    pub fn schedule_clock(&mut self, cpu: CpuId, now: Nanos, schedule: &Schedule) -> Nanos {
        match self.core.rqs[cpu.index()].skip.take() {
            Some(skipped) => (skipped.max(self.clock_updated(cpu)) + schedule.clock_read).min(now),
            None if schedule.began == 0 => now,
            None => now.saturating_sub(schedule.began).max(self.clock_updated(cpu)).min(now),
        }
    }

    /// Whether decisions are recorded.
    #[inline]
    pub(crate) fn is_recording(&self) -> bool {
        self.core.is_recording()
    }

    /// The number of decisions recorded so far.
    #[inline]
    #[must_use]
    pub fn decided(&self) -> usize {
        self.core.log.len()
    }

    /// Sets the time of the decisions recorded after the first `from` to `now`, whatever clock they were charged by.
    #[inline]
    pub fn date_decisions(&mut self, from: usize, now: Nanos) {
        self.core.log.set_time(from, now);
    }
}

impl Core {
    /// `rq_clock_skip_update`, right after an update.
    pub fn rq_clock_skip_update(&mut self, cpu: CpuId, now: Nanos) {
        self.rqs[cpu.index()].skip = Some(now);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use std::sync::Arc;

    use super::*;
    use crate::preempt_model::PreemptModel;
    use crate::rt::RtPolicy;
    use crate::{KernelConfig, Resched, TaskAttr, Version, WakeKind};
    use schedlab_model::{TaskId, Topology, MSEC, USEC};

    const CPU: CpuId = CpuId(0);
    const WAKE: WakeKind = WakeKind::Wakeup { sync: false };

    fn one_cpu(row: &str, preempt: PreemptModel) -> Sched {
        let mut config = KernelConfig::new(Version::find(row).unwrap(), 1, 250);
        config.set_preempt(preempt).unwrap();
        Sched::new(config, Arc::new(Topology::regular(1, 1, 1, 1, true).unwrap()))
    }

    fn clock_at(sched: &mut Sched, now: Nanos) -> Nanos {
        sched.schedule_clock(CPU, now, &Schedule::default())
    }

    #[test]
    fn the_pick_is_the_next_tasks() {
        let mut sched = one_cpu("6.18.12", PreemptModel::Lazy);
        let (_, _) = wake(&mut sched, MSEC);
        let clock = clock_at(&mut sched, MSEC);
        sched.pick_next_task(CPU, clock);
        let schedule = Schedule { began: 5 * USEC, clock_read: 2 * USEC, ..Schedule::default() };
        assert_eq!(sched.schedule_clock(CPU, 9 * MSEC, &schedule), 9 * MSEC - 5 * USEC);
        sched.tick(CPU, 12 * MSEC);
        let clock = sched.schedule_clock(CPU, 12 * MSEC + USEC, &schedule);
        assert_eq!(clock, 12 * MSEC, "the tick has read the clock since");
    }

    fn wake(sched: &mut Sched, now: Nanos) -> (TaskId, Resched) {
        let task = sched.add_task(&TaskAttr::default());
        sched.activate(task, CPU, WAKE, now);
        (task, sched.wakeup_preempt(CPU, task, WAKE, false, now))
    }

    #[test]
    fn what_passes_after_a_check_that_preempts_is_the_next_tasks() {
        for row in ["5.2", "6.1", "6.6", "6.12.107", "6.18.2", "6.18.44", "7.2"] {
            let mut sched = one_cpu(row, PreemptModel::Full);
            let (hog, _) = wake(&mut sched, MSEC);
            let clock = clock_at(&mut sched, MSEC + 50 * USEC);
            assert_eq!(clock, MSEC, "{row}: an idle CPU's way out of idle is charged to the wakee");
            assert_eq!(sched.pick_next_task(CPU, clock), Some(hog));
            (2..40).for_each(|ms| _ = sched.tick(CPU, ms * MSEC));
            let asked = 40 * MSEC;
            let wakee = sched.add_task(&TaskAttr::default());
            sched.activate(wakee, CPU, WAKE, asked);
            sched.wakeup_preempt(CPU, wakee, WAKE, true, asked);
            let clock = clock_at(&mut sched, asked + 9 * USEC);
            assert_eq!(clock, asked, "{row}");
            let next = sched.pick_next_task(CPU, clock).unwrap();
            let ran = |sched: &Sched, task| sched.fair.entity(task).sum_exec_runtime;
            assert_eq!(ran(&sched, hog), asked - MSEC, "{row}: prev is not charged for the time until schedule()");
            let before = ran(&sched, next);
            sched.tick(CPU, asked + 100 * USEC);
            assert_eq!(ran(&sched, next) - before, 100 * USEC, "{row}: next is");
            assert_eq!(clock_at(&mut sched, 50 * MSEC), 50 * MSEC, "{row}: it is skipped once");
        }
    }

    #[test]
    fn the_class_of_who_comes_or_goes_makes_no_difference() {
        let request = 40 * MSEC;
        // The priorities of the running task and of the wakee; 0: the fair class.
        for (row, runs, wakes) in [("6.1", 0, 50), ("6.12.107", 0, 50), ("6.18.12", 0, 50), ("7.2", 10, 50)] {
            let mut sched = one_cpu(row, PreemptModel::Full);
            let task = |sched: &mut Sched, priority| {
                let rt = (priority > 0).then_some(RtPolicy { priority, round_robin: false });
                sched.add_task(&TaskAttr { rt, ..TaskAttr::default() })
            };
            let hog = task(&mut sched, runs);
            sched.activate(hog, CPU, WAKE, MSEC);
            sched.wakeup_preempt(CPU, hog, WAKE, false, MSEC);
            let clock = clock_at(&mut sched, MSEC);
            assert_eq!(sched.pick_next_task(CPU, clock), Some(hog), "{row}");
            let wakee = task(&mut sched, wakes);
            sched.activate(wakee, CPU, WAKE, request);
            assert_eq!(sched.wakeup_preempt(CPU, wakee, WAKE, false, request), Resched::Full, "{row}");
            let clock = clock_at(&mut sched, request + 50 * USEC);
            assert_eq!(clock, request, "{row}: the call that delays the switch is charged to the wakee");
            assert_eq!(sched.pick_next_task(CPU, clock), Some(wakee), "{row}");
            assert_eq!(sched.rt.runtime(CPU, wakee, request + 60 * USEC), 60 * USEC, "{row}");
        }
    }

    #[test]
    fn a_tick_in_between_updates_the_clock() {
        let mut sched = one_cpu("6.1", PreemptModel::Full);
        let (_, _) = wake(&mut sched, MSEC);
        let clock = clock_at(&mut sched, MSEC);
        sched.pick_next_task(CPU, clock);
        (2..40).for_each(|ms| _ = sched.tick(CPU, ms * MSEC));
        let (_, resched) = wake(&mut sched, 40 * MSEC);
        assert_eq!(resched, Resched::Full);
        sched.tick(CPU, 44 * MSEC);
        assert_eq!(clock_at(&mut sched, 44 * MSEC + USEC), 44 * MSEC);
    }

    #[test]
    fn a_lazy_request_does_not_stop_the_clock() {
        let mut sched = one_cpu("7.2", PreemptModel::Lazy);
        wake(&mut sched, MSEC);
        let clock = clock_at(&mut sched, MSEC);
        sched.pick_next_task(CPU, clock);
        (2..40).for_each(|ms| _ = sched.tick(CPU, ms * MSEC));
        sched.fair.clear_resched(CPU);
        let (_, resched) = wake(&mut sched, 40 * MSEC);
        assert_eq!(resched, Resched::Lazy);
        assert_eq!(clock_at(&mut sched, 40 * MSEC + USEC), 40 * MSEC + USEC);
    }
}
