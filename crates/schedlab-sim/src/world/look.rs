//! The checkers' periodic check of the whole state, and the consequence of a violation.

use schedlab_model::{CpuId, TaskId};
use schedlab_trace::Sink;

use super::state::World;
use super::system::{System, Systems};
use crate::check::Finding;
use crate::error::SimError;
use crate::kernel::Kernel;
use crate::machine::{Activity, Machine, Mode};
use crate::run::{Run, Source, LOOK_MAX, LOOK_MIN};

impl<S: Sink, K: Systems> World<'_, S, K> {
    /// The checkers' regular look at the whole state.
    pub(super) fn look_over(&mut self) -> Result<(), SimError> {
        self.run.pending_max = self.run.pending_max.max(self.run.pending());
        for System { machine, kernel, .. } in self.systems.all_mut() {
            look_at(&self.run, machine, kernel);
        }
        self.fail_check()
    }

    /// A look costs in proportion to CPUs and tasks: the more there are, the rarer it is.
    pub(super) fn look_interval(&self) -> u64 {
        let size: usize =
            self.systems.all().iter().map(|System { kernel, .. }| kernel.tasks.len() + kernel.cpus.len()).sum();
        (self.run.handled / 16).clamp(LOOK_MIN, LOOK_MAX).max(8 * size as u64)
    }

    /// Stops the run if a checker has found something.
    #[cold]
    #[inline(never)]
    pub(super) fn fail_check(&mut self) -> Result<(), SimError> {
        match self.systems.all_mut().iter_mut().find_map(|system| system.kernel.checks.take()) {
            None => Ok(()),
            Some((check, message)) => {
                let (at, event, seed) = (self.run.now, self.run.handled, self.seed);
                Err(SimError::Check { check, at, event, seed, message })
            }
        }
    }
}

fn look_at<S: Sink>(run: &Run<S>, machine: &mut Machine, kernel: &mut Kernel) {
    let now = run.now;
    for cpu in (0..kernel.cpus.len() as u32).map(CpuId) {
        let c = &mut machine.cpus[cpu.index()];
        c.progress(now);
        let occupied = kernel.cpus[cpu.index()].curr.is_some();
        let found = kernel.checks.accounts.look(cpu, occupied, c.time, now);
        kernel.checks.keep(found);
        let clock_task = kernel.clock_task(cpu, now);
        let found = kernel.checks.fair.look(&kernel.sched, cpu, now, clock_task);
        kernel.checks.keep(found);
        let found = stranded(run, machine, kernel, cpu);
        kernel.checks.keep(found);
    }
    let lost = lost_wakeup(kernel);
    kernel.checks.keep(lost);
}

/// A CPU that stands still with work to do: idle with tasks queued and no interrupt due, or busy with a segment
/// that has no end. A CPU at rate 0 stands still by order.
fn stranded<S: Sink>(run: &Run<S>, machine: &Machine, kernel: &Kernel, cpu: CpuId) -> Option<Finding> {
    let (c, k) = (&machine.cpus[cpu.index()], &kernel.cpus[cpu.index()]);
    let due = |source| run.due(kernel.id, source, cpu).is_some();
    let (queued, listed) = (kernel.sched.nr_running(cpu), kernel.sched.wakelist(cpu).len());
    let found = match (c.activity, k.curr) {
        _ if k.marked => format!("{cpu:?} kept its mark through an instant"),
        _ if c.rate == 0 => return None,
        _ if k.in_flight.is_some() && !due(Source::Wakeup) => format!("{cpu:?} never finishes a wakeup"),
        (Activity::Idle, _) if (queued > 0 || listed > 0) && !due(Source::Call) => {
            format!("{cpu:?} idles with {queued} tasks queued, {listed} on its wakelist and no interrupt due")
        }
        (Activity::Exiting, _) if !due(Source::IdleExit) => format!("{cpu:?} leaves its idle state for ever"),
        (Activity::Busy, Some(task)) if !due(Source::Segment) => {
            // A spinner waits for the holder of its lock.
            // The guest's own events end a stay in the guest.
            if matches!(c.segment.mode, Mode::Spin | Mode::LockSpin | Mode::PvWait | Mode::Guest)
                && c.segment.cost_left == 0
            {
                return None;
            }
            format!("{cpu:?} runs {task:?} for ever: {:?}", c.segment.mode)
        }
        _ => return None,
    };
    Some(("stranded_work", found))
}

/// A task that was woken must be on a runqueue, on a wakelist or on its way to one until it runs.
fn lost_wakeup(kernel: &Kernel) -> Option<Finding> {
    let cpus = || (0..kernel.cpus.len() as u32).map(CpuId);
    let listed = |task: &TaskId| {
        cpus().any(|cpu| {
            let in_flight = kernel.cpus[cpu.index()].in_flight;
            kernel.sched.wakelist(cpu).iter().any(|(waiting, _)| waiting == task)
                || in_flight.is_some_and(|wakeup| wakeup.task() == *task)
        })
    };
    // Searching every CPU's list comes last: nearly all tasks are where they belong.
    let queued = |task: &TaskId| {
        let cpu = kernel.sched.cpu_of(*task);
        let throttled = kernel.sched.fair.entity(*task).throttled;
        kernel.sched.on_rq(*task) || throttled || kernel.cpus[cpu.index()].curr == Some(*task) || listed(task)
    };
    let lost = kernel.checks.lives.runnable().find(|task| !queued(task))?;
    Some(("wakeup_ends_in_a_run", format!("{lost:?} was woken and is on no queue")))
}
