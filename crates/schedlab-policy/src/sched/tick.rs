//! Timers: the tick (`sched_tick`), those of the classes, those of bandwidth pools (kernel/sched/core.c, fair.c).

use schedlab_model::{CpuId, Nanos, TaskId};

use super::pick::Serve;
use super::{Moves, Sched};
use crate::class::{Ask, ClassList, SchedClass};
use crate::features::Feature;
use crate::hrtick::Hrtick;
use crate::Resched;

impl<L: ClassList> Sched<L> {
    /// `sched_tick` of a CPU.
    pub fn tick(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        if self.core.is_mixed() {
            return self.tick_classes(cpu, now);
        }
        match self.core.curr(cpu) {
            Some(curr) => self.class_of(curr).task_tick(cpu, curr, now),
            None => Resched::No,
        }
    }

    #[inline(never)]
    fn tick_classes(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        self.serve(Serve::Queued, cpu, now);
        let curr = self.core.curr(cpu);
        let resched = curr.map_or(Resched::No, |curr| self.class_of(curr).task_tick(cpu, curr, now));
        let over = self.serve(Serve::Update { record: true }, cpu, now);
        self.complete_views();
        resched.max(over)
    }

    /// `hrtick_start` after a pick; `None` without the feature.
    #[inline(always)]
    #[must_use]
    pub fn hrtick_start(&self, cpu: CpuId) -> Option<Hrtick> {
        struct Start(CpuId);
        impl Ask for Start {
            type Out = Hrtick;
            fn ask<C: SchedClass>(self, class: &C) -> Hrtick {
                class.hrtick_start(self.0)
            }
        }
        let on = self.core.features.has(Feature::Hrtick);
        if self.core.has_higher() {
            let class = self.curr(cpu).map_or(Self::LOWEST, |curr| self.core.class_of(curr));
            let on = on || class < Self::LOWEST && self.core.features.has(Feature::HrtickDl);
            return on.then(|| self.classes.ask(class, Start(cpu)));
        }
        on.then(|| self.classes.ask(Self::LOWEST, Start(cpu)))
    }

    /// `hrtick_update` after a wakeup; `None`: the timer stays as it is.
    #[inline(always)]
    pub(crate) fn hrtick_update(&self, cpu: CpuId) -> Option<Hrtick> {
        struct Update(CpuId);
        impl Ask for Update {
            type Out = Option<Hrtick>;
            fn ask<C: SchedClass>(self, class: &C) -> Option<Hrtick> {
                class.hrtick_update(self.0)
            }
        }
        let on = self.core.features.has(Feature::Hrtick);
        if on && !(self.core.has_higher() && self.core.higher_runs(cpu, Self::LOWEST)) {
            self.classes.ask(Self::LOWEST, Update(cpu))
        } else {
            None
        }
    }

    /// `hrtick` of a CPU whose running task belongs to another class than the lowest and has a timer of its own: the
    /// tick (`queued`), and what the timer should do then.
    pub fn hrtick(&mut self, cpu: CpuId, now: Nanos) -> Option<(Resched, Hrtick)> {
        let curr = self.curr(cpu).filter(|curr| self.core.is_mixed() && self.core.class_of(*curr) < Self::LOWEST)?;
        let starts = matches!(self.hrtick_start(cpu), Some(Hrtick::After(_)));
        starts.then(|| {
            let resched = self.class_of(curr).task_tick(cpu, curr, now);
            self.complete_views();
            (resched, self.hrtick_start(cpu).unwrap_or(Hrtick::Off))
        })
    }

    /// The timers of the classes that are due ([`Sched::next_timer`]).
    pub fn timer_expired(&mut self, now: Nanos) -> Moves {
        self.moving(now, |sched| sched.every_class().timer_expired(now))
    }

    /// `resume_user_mode_work` of the current task; the caller picks again if the task left its queue.
    pub fn throttle_work(&mut self, task: TaskId, now: Nanos) -> bool {
        self.class_of(task).throttle_work(task, now)
    }

    /// `task_cache_work` of the current task of the CPU, about to return to user mode.
    pub fn task_cache_work(&mut self, cpu: CpuId, task: TaskId, now: Nanos) {
        self.every_class().task_cache_work(cpu, task, now);
    }

    /// The bandwidth timers that are due ([`Fair::next_bandwidth_timer`](crate::fair::Fair::next_bandwidth_timer));
    /// idle CPUs that have a task to run now.
    pub fn bandwidth_timers(&mut self, now: Nanos) -> Vec<CpuId> {
        let mut cpus = self.every_class().bandwidth_timers(now);
        cpus.retain(|cpu| self.curr(*cpu).is_none() && self.nr_running(*cpu) > 0);
        cpus
    }
}
