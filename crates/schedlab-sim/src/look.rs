//! The checkers' regular look at the whole state, and what a finding does.

use schedlab_model::{CpuId, TaskId};
use schedlab_trace::Sink;

use crate::check::Finding;
use crate::cpu::Activity;
use crate::engine::{Engine, Source, LOOK_MAX, LOOK_MIN};
use crate::error::SimError;
use crate::task::Mode;

impl<S: Sink> Engine<'_, S> {
    /// The checkers' regular look at the whole state.
    pub fn look_over(&mut self) -> Result<(), SimError> {
        self.pending_max = self.pending_max.max(self.events.len());
        for cpu in 0..self.cpus.len() {
            let cpu = CpuId(cpu as u32);
            self.progress(cpu);
            let c = &self.cpus[cpu.index()];
            let found = self.checks.accounts.look(cpu, c.curr.is_some(), c.time, self.now);
            self.checks.keep(found);
            let found = self.checks.fair.look(&self.sched, cpu, self.now);
            self.checks.keep(found);
            let found = self.stranded(cpu);
            self.checks.keep(found);
        }
        let found = self.lost_wakeup();
        self.checks.keep(found);
        self.fail_on_finding()
    }

    /// A look costs in proportion to CPUs and tasks: the more there are, the rarer it is.
    pub fn look_interval(&self) -> u64 {
        let size = 8 * (self.tasks.len() + self.cpus.len()) as u64;
        (self.handled / 16).clamp(LOOK_MIN, LOOK_MAX).max(size)
    }

    /// A CPU that stands still with work to do: idle with tasks queued and no interrupt due, or busy with a segment
    /// that has no end.
    fn stranded(&self, cpu: CpuId) -> Option<Finding> {
        let c = &self.cpus[cpu.index()];
        let due = |kind| self.events.due(self.source(kind, cpu)).is_some();
        let (queued, listed) = (self.sched.nr_running(cpu), c.wakelist.len());
        let found = match (c.activity, c.curr) {
            _ if c.marked => format!("{cpu:?} kept its mark through an instant"),
            (Activity::Idle, _) if (queued > 0 || listed > 0) && !due(Source::CALL) => {
                format!("{cpu:?} idles with {queued} tasks queued, {listed} on its wakelist and no interrupt due")
            }
            (Activity::Exiting, _) if !due(Source::IDLE_EXIT) => format!("{cpu:?} leaves its idle state for ever"),
            (Activity::Busy, Some(task)) if !due(Source::SEGMENT) => {
                let t = &self.tasks[task.index()];
                // A spinner waits for the holder of its lock.
                if t.mode == Mode::Spin && t.cost_left == 0 {
                    return None;
                }
                format!("{cpu:?} runs {task:?} for ever: {:?}", t.mode)
            }
            _ => return None,
        };
        Some(("stranded_work", found))
    }

    /// A task that was woken must be on a runqueue or on a wakelist until it runs.
    fn lost_wakeup(&self) -> Option<Finding> {
        let listed = |task: &TaskId| self.cpus.iter().any(|c| c.wakelist.iter().any(|(waiting, _)| waiting == task));
        // Looking through every CPU's list comes last: nearly all tasks are where they belong.
        let queued = |task: &TaskId| {
            let cpu = self.sched.cpu_of(*task);
            let throttled = self.sched.fair.entity(*task).throttled;
            self.sched.on_rq(*task) || throttled || self.cpus[cpu.index()].curr == Some(*task) || listed(task)
        };
        let lost = self.checks.lives.runnable().find(|task| !queued(task))?;
        Some(("wakeup_ends_in_a_run", format!("{lost:?} was woken and is on no queue")))
    }

    #[inline(always)]
    pub fn fail_on_finding(&mut self) -> Result<(), SimError> {
        if self.checks.found() {
            return self.fail_check();
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn fail_check(&mut self) -> Result<(), SimError> {
        match self.checks.take() {
            None => Ok(()),
            Some((check, message)) => {
                let (at, event, seed) = (self.now, self.handled, self.spec.seed);
                Err(SimError::Check { check, at, event, seed, message })
            }
        }
    }
}
