//! New attributes of a task: nice value, policy, slice, allowed CPUs, class (`set_user_nice`, `__sched_setscheduler`,
//! `prio_changed_fair`, `switched_from_fair`, `switched_to_fair`).
//!
//! For every change a queued task is dequeued and enqueued again, and a running one is put and set again; the effect on
//! lag and deadline is the kernel's.

use super::entity::{Entity, EntityId};
use super::fair_sched_class::Fair;
use super::queues::Queues;
use super::sched_fork::{latency_slice, SLICE_RANGE};
use crate::flags::{Dequeue, Enqueue, WakeFlags};
use crate::weight::LoadWeight;
use crate::{FairPolicy, KernelConfig, Resched, SliceSource};
use schedlab_model::{CpuId, Nanos, TaskId};

/// What `__sched_setscheduler` is called with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedParams {
    /// The policy.
    pub policy: FairPolicy,
    /// The nice value.
    pub nice: i8,
    /// `sched_runtime`.
    pub slice: Option<Nanos>,
}

impl Fair {
    /// `set_user_nice`; values outside -20..=19 change nothing.
    pub fn set_user_nice(&mut self, task: TaskId, nice: i8, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        let (cpu, old) = (self.entity(task).cpu, self.entity(task).prio);
        if self.entity(task).nice == nice || !(-20..=19).contains(&nice) {
            return self.need_resched(cpu);
        }
        self.queues.requeue_around(id, true, now, |queues| {
            let se = &mut queues.arena.entities[id];
            (se.nice, se.prio) = (nice, nice);
            queues.set_load_weight(id);
        });
        self.prio_changed(id, old, now);
        self.need_resched(cpu)
    }

    /// Changes to another fair policy and keeps everything else. The kernel's priority stays, so nothing is preempted.
    pub fn set_policy(&mut self, task: TaskId, policy: FairPolicy, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        let cpu = self.entity(task).cpu;
        if self.entity(task).policy != policy {
            let save = !self.config.rules.setscheduler_moves;
            self.queues.requeue_around(id, save, now, |queues| {
                let se = &mut queues.arena.entities[id];
                se.policy = policy;
                // The legacy calls name no slice: a task without its own gets the present base slice.
                if !se.custom_slice && policy != FairPolicy::Idle {
                    se.slice = queues.config.knobs.base_slice;
                }
                queues.set_load_weight(id);
            });
        }
        self.need_resched(cpu)
    }

    /// `sched_setattr(sched_runtime)`: an own slice, cut to 0.1..100 ms; `None` returns to the base slice. Only NORMAL
    /// and BATCH tasks of kernels with own slices; nothing happens otherwise.
    pub fn set_slice(&mut self, task: TaskId, slice: Option<Nanos>, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        let se = self.entity(task);
        let (cpu, wanted) = (se.cpu, slice.unwrap_or(0));
        let custom = self.config.rules.slice == SliceSource::Custom;
        if custom && se.policy != FairPolicy::Idle && wanted != se.slice {
            self.queues.requeue_around(id, true, now, |queues| {
                queues.arena.entities[id].set_custom_slice(wanted, &queues.config);
                queues.set_load_weight(id);
            });
        }
        self.need_resched(cpu)
    }

    /// `__sched_setscheduler` from one fair policy to another or the same, which sets the nice value and the slice
    /// together. On rows with custom slices, a call without a slice counts as a change of it: the task is requeued
    /// although nothing changes. SCHED_IDLE is not a `fair_policy()`: its nice value sets only `prio`, and its slice
    /// has no effect.
    pub fn __sched_setscheduler(&mut self, task: TaskId, params: SchedParams, now: Nanos) -> Resched {
        let (id, se, custom) = (EntityId::of(task), self.entity(task), self.config.rules.slice == SliceSource::Custom);
        let (wanted, nice, idle) =
            (params.slice.unwrap_or(0), params.nice.clamp(-20, 19), params.policy == FairPolicy::Idle);
        let (cpu, old) = (se.cpu, se.prio);
        if se.policy == params.policy && (idle || se.nice == nice && !(custom && wanted != se.slice)) {
            return self.need_resched(cpu);
        }
        let save = nice == old && !self.config.rules.setscheduler_moves;
        self.queues.requeue_around(id, save, now, |queues| {
            let se = &mut queues.arena.entities[id];
            (se.policy, se.prio) = (params.policy, nice);
            if !idle {
                se.nice = nice;
            }
            if custom && !idle {
                se.set_custom_slice(wanted, &queues.config);
            }
            queues.set_load_weight(id);
        });
        if nice != old {
            self.prio_changed(id, old, now);
        }
        self.need_resched(cpu)
    }

    /// `do_set_cpus_allowed`: a task that gets another set of CPUs is requeued, wherever it is.
    pub fn do_set_cpus_allowed(&mut self, task: TaskId, now: Nanos) -> Resched {
        self.queues.requeue_around(EntityId::of(task), true, now, |_| {});
        self.need_resched(self.entity(task).cpu)
    }

    /// `sched_setattr(sched_latency_nice)`: the slice it means, from the present base slice. Nothing happens in kernels
    /// without it, or outside -20..=19.
    pub fn set_latency_nice(&mut self, task: TaskId, latency_nice: i8, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        let known = self.config.rules.slice == SliceSource::LatencyNice && (-20..=19).contains(&latency_nice);
        if known && self.entity(task).latency_nice != latency_nice {
            let slice = latency_slice(self.config.knobs.base_slice, latency_nice);
            self.queues.requeue_around(id, true, now, |queues| {
                let se = &mut queues.arena.entities[id];
                (se.latency_nice, se.slice) = (latency_nice, slice);
            });
        }
        self.need_resched(self.entity(task).cpu)
    }

    /// `sched_move_task` to the group that the task is in, as every exiting task does in kernels with autogroups: it is
    /// requeued, and from 5.6 on a running one reschedules.
    pub fn requeue_task(&mut self, task: TaskId, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        self.queues.requeue_around(id, false, now, |_| {});
        self.moved_group(id)
    }

    /// The end of `sched_move_task`: from 5.6 on a running task reschedules.
    pub(super) fn moved_group(&mut self, id: EntityId) -> Resched {
        let cpu = self.queues.arena.entities[id].cpu;
        if self.queues.arena.leaf(cpu.index()) == id && self.config.rules.move_reschedules {
            self.queues.resched_curr(cpu.index());
        }
        self.need_resched(cpu)
    }

    /// `__setscheduler_params` of a task that another class has: only the fair class reweights, so the load changes,
    /// and a lag kept from before does not.
    pub fn set_params_outside(&mut self, task: TaskId, params: SchedParams) {
        let idle = params.policy == FairPolicy::Idle;
        let custom = self.config.rules.slice == SliceSource::Custom;
        let (config, se) = (&self.queues.config, &mut self.queues.arena.entities[EntityId::of(task)]);
        (se.policy, se.prio) = (params.policy, params.nice);
        if !idle {
            se.nice = params.nice;
        }
        if custom && !idle {
            se.set_custom_slice(params.slice.unwrap_or(0), config);
        }
        let load = LoadWeight::of_task(se.nice, se.policy).dividing(config.rules.delta_divides);
        match config.rules.flat_hierarchy {
            true => se.load = load,
            false => se.set_load(load),
        }
    }

    /// `switched_from_fair` (`detach_task_cfs_rq`) of a task that is not queued: its load leaves, a CFS sleeper's
    /// vruntime becomes relative. A SCHED_IDLE task has been reweighted to its nice value by then
    /// (`__setscheduler_params`).
    pub fn switched_from(&mut self, task: TaskId, now: Nanos) {
        let id = EntityId::of(task);
        let (config, se) = (&self.queues.config, &mut self.queues.arena.entities[id]);
        if se.policy == FairPolicy::Idle {
            let load = LoadWeight::of_task(se.nice, FairPolicy::Normal).dividing(config.rules.delta_divides);
            se.reweight_task(config, load);
        }
        self.queues.place_sleeper_relative(id, now);
        self.queues.arena.entities[id].asleep = false;
        self.queues.arena.detach_entity_cfs_rq(&self.config.rules.pelt, id, now);
    }

    /// `switched_to_fair` (`attach_task_cfs_rq`) of a task that is not queued yet; one that will not be sleeps here.
    pub fn switched_to(&mut self, task: TaskId, to_be_queued: bool) {
        let se = &mut self.queues.arena.entities[EntityId::of(task)];
        if !to_be_queued {
            if !self.config.is_eevdf() {
                self.queues.arena.rqs[se.rq()].make_absolute(se);
            }
            se.asleep = true;
        }
    }

    /// `prio_changed_fair`: a running task made less important reschedules, a queued one may now preempt.
    fn prio_changed(&mut self, id: EntityId, old_nice: i8, now: Nanos) {
        let se = &self.queues.arena.entities[id];
        let (cpu, rq, nice) = (se.cpu, se.rq(), se.prio);
        // Alone on the CPU, that is, not merely in its group.
        if !se.on_rq || self.rq(cpu).nr_competing(&self.config) == 1 && !self.config.rules.prio_changed_alone {
            return;
        }
        if self.queues.arena.leaf(cpu.index()) != id {
            self.wakeup_preempt(cpu, id.task_id(), WakeFlags::default(), false, now);
        } else if nice > old_nice {
            self.queues.resched_curr(rq);
        }
    }
}

impl Queues {
    /// The frame of every attribute change: a queued task leaves (DEQUEUE_SAVE) and comes back (ENQUEUE_RESTORE), a
    /// running one is put and set again. `save`: without DEQUEUE_MOVE.
    pub fn requeue_around(&mut self, id: EntityId, save: bool, now: Nanos, change: impl FnOnce(&mut Queues)) {
        let se = &self.arena.entities[id];
        let (cpu, queued) = (se.cpu, se.on_rq || se.throttled);
        let running = self.arena.leaf(cpu.index()) == id;
        if queued {
            self.dequeue_task_fair(cpu, id, Dequeue { save, ..Dequeue::default() }, now);
        }
        if running {
            self.put_prev_task(cpu, now);
        }
        change(self);
        if running {
            // A running task gets into limbo through the pick only, even from limbo.
            self.arena.entities[id].throttled = false;
        }
        if queued {
            self.enqueue_task_fair(cpu, id, Enqueue::default(), now);
        }
        if running {
            self.set_next_task_fair(id, false, now);
            self.move_to_list_front(cpu, id);
        }
    }

    /// `set_load_weight` on a task off the queue.
    fn set_load_weight(&mut self, id: EntityId) {
        let se = &self.arena.entities[id];
        let load = LoadWeight::of_task(se.nice, se.policy).dividing(self.config.rules.delta_divides);
        if se.policy == FairPolicy::Idle && !self.config.rules.idle_reweights {
            return self.arena.entities[id].set_load(load);
        }
        self.arena.reweight_load_avg(&self.config.rules.pelt, id, load);
        self.arena.entities[id].reweight_task(&self.config, load);
    }

    /// `put_prev_task_fair`.
    pub fn put_prev_task(&mut self, cpu: CpuId, now: Nanos) {
        let curr = self.arena.leaf(cpu.index());
        self.switch(cpu.index(), curr, EntityId::NIL, now);
    }

    /// A task that runs now and is queued goes to the front of its CPU's list.
    pub fn move_to_list_front(&mut self, cpu: CpuId, id: EntityId) {
        if self.arena.entities[id].on_rq {
            self.arena.rqs[cpu.index()].list_move(&mut self.arena.entities.neighbours, id);
        }
    }

    /// A CFS sleeper about to leave its queue for good is placed on it as if it woke, and keeps the distance to the
    /// queue's minimum. Whether the task is one.
    pub fn place_sleeper_relative(&mut self, id: EntityId, now: Nanos) -> bool {
        let se = &mut self.arena.entities[id];
        let sleeper = !self.config.is_eevdf() && se.asleep;
        if sleeper {
            let q = &self.arena.rqs[se.rq()];
            q.place_entity_cfs(se, &self.config, None, now);
            q.make_relative(se);
        }
        sleeper
    }
}

impl Entity {
    fn set_custom_slice(&mut self, wanted: Nanos, config: &KernelConfig) {
        self.custom_slice = wanted > 0;
        self.slice = if wanted > 0 { wanted.clamp(SLICE_RANGE.0, SLICE_RANGE.1) } else { config.knobs.base_slice };
    }
}
