//! What happens to a task beside running: fork, migration, yield, and new nice value, policy or slice.

use super::entity::EntityId;
use super::task::{latency_slice, SLICE_RANGE};
use super::{Dequeue, Enqueue, Fair, WakeFlags};
use crate::weight::{calc_delta_fair, LoadWeight};
use crate::{FairPolicy, Resched, SliceSource, YieldRule};
use schedlab_model::{CpuId, Nanos, TaskId};

impl Fair {
    /// `task_fork_fair` on the forking CPU, for a child just added. CFS places the child here, relative to this queue;
    /// with child_runs_first it may swap places with the parent. EEVDF places it at its first enqueue; up to 6.6 the
    /// forking CPU still charges the parent.
    pub fn task_fork(&mut self, parent_cpu: CpuId, child: TaskId, now: Nanos) -> Resched {
        let id = EntityId::of(child);
        self.set_task_cpu(id, parent_cpu);
        if self.rules.fork_places {
            let parent = self.leaf(parent_cpu.index());
            let rq = self.se(if parent.is_some() { parent } else { id }).cfs_rq as usize;
            self.place_child(rq, id, now);
        }
        self.need_resched(parent_cpu)
    }

    fn place_child(&mut self, rq: usize, child: EntityId, now: Nanos) {
        let curr = self.rqs[rq].curr;
        if curr.is_some() {
            self.update_curr_rq(rq, now);
            self.se_mut(child).vruntime = self.se(curr).vruntime;
        }
        if self.eevdf {
            // Its first enqueue places it again, as any other.
            return;
        }
        self.place_entity_cfs(rq, child, true, now);
        if self.config.knobs.child_runs_first != 0 && curr.is_some() {
            let (parent_at, child_at) = (self.se(curr).vruntime, self.se(child).vruntime);
            if parent_at.before(child_at) {
                self.se_mut(curr).vruntime = child_at;
                self.se_mut(child).vruntime = parent_at;
                self.resched_curr(rq);
            }
        }
        self.make_relative(rq, child);
    }

    /// `migrate_task_rq_fair` and the change of CPU: the task, not queued, belongs to `to` from now on. The vruntime of a
    /// CFS sleeper becomes relative; that of a task dequeued to be moved, or never run, already is. Lag just travels.
    pub fn migrate_task_rq(&mut self, task: TaskId, from: CpuId, to: CpuId) {
        let id = EntityId::of(task);
        self.detach_load_avg(id, None);
        if !self.eevdf && self.se(id).asleep {
            self.make_relative(self.group_queue(self.group_of(task), from), id);
        }
        self.se_mut(id).asleep = false;
        self.set_task_cpu(id, to);
    }

    /// `yield_task_fair` by the current task of the CPU; the caller reschedules.
    pub fn yield_task(&mut self, cpu: CpuId, now: Nanos) {
        let curr = self.leaf(cpu.index());
        if curr.is_nil() || self.rq(cpu).h_nr_running == 1 {
            return;
        }
        let rq = self.se(curr).cfs_rq as usize;
        self.clear_buddies(rq, curr);
        if self.eevdf {
            self.update_curr_rq(rq, now);
            return self.yield_eevdf(rq, curr);
        }
        if self.se(curr).policy != FairPolicy::Batch {
            self.update_curr_rq(rq, now);
        }
        self.set_skip_buddy(curr);
    }

    fn yield_eevdf(&mut self, rq: usize, curr: EntityId) {
        if self.rules.yields == YieldRule::LaterDeadline {
            let se = self.se_mut(curr);
            se.deadline = se.deadline.plus(calc_delta_fair(se.slice, se.load) as i64);
        } else if self.entity_eligible(rq, curr) {
            let base_slice = self.config.knobs.base_slice;
            let se = self.se_mut(curr);
            se.vruntime = se.deadline;
            se.update_deadline(base_slice);
            self.update_min_vruntime(rq);
        }
    }

    /// `yield_to_task_fair`: the current task yields in favour of `target`, queued on the same CPU. Whether it could.
    pub fn yield_to_task(&mut self, cpu: CpuId, target: TaskId, now: Nanos) -> bool {
        let id = EntityId::of(target);
        if !self.se(id).on_rq || self.se(id).cpu != cpu {
            return false;
        }
        self.set_next_buddy(id);
        self.yield_task(cpu, now);
        true
    }

    /// `set_user_nice`; values outside -20..=19 change nothing.
    pub fn set_user_nice(&mut self, task: TaskId, nice: i8, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        let (cpu, old) = (self.se(id).cpu, self.se(id).prio);
        if self.se(id).nice == nice || !(-20..=19).contains(&nice) {
            return self.need_resched(cpu);
        }
        self.requeue_around(id, true, now, |fair| {
            let se = fair.se_mut(id);
            (se.nice, se.prio) = (nice, nice);
            fair.set_load_weight(id);
        });
        self.prio_changed(id, old, now);
        self.need_resched(cpu)
    }

    /// `sched_setscheduler` to another fair policy. The kernel's priority stays, so nobody is preempted.
    pub fn set_policy(&mut self, task: TaskId, policy: FairPolicy, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        let cpu = self.se(id).cpu;
        if self.se(id).policy != policy {
            self.requeue_around(id, true, now, |fair| {
                fair.se_mut(id).policy = policy;
                fair.refresh_slice(id);
                fair.set_load_weight(id);
            });
        }
        self.need_resched(cpu)
    }

    /// `sched_setattr(sched_runtime)`: an own slice, cut to 0.1..100 ms; `None` returns to the base slice. Only NORMAL and
    /// BATCH tasks of kernels with own slices; nothing happens otherwise.
    pub fn set_slice(&mut self, task: TaskId, slice: Option<Nanos>, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        let (cpu, wanted) = (self.se(id).cpu, slice.unwrap_or(0));
        let custom = self.rules.slice == SliceSource::Custom;
        if custom && self.se(id).policy != FairPolicy::Idle && wanted != self.se(id).slice {
            let base_slice = self.config.knobs.base_slice;
            self.requeue_around(id, true, now, |fair| {
                let se = fair.se_mut(id);
                se.custom_slice = wanted > 0;
                se.slice = if wanted > 0 { wanted.clamp(SLICE_RANGE.0, SLICE_RANGE.1) } else { base_slice };
                fair.set_load_weight(id);
            });
        }
        self.need_resched(cpu)
    }

    /// `__sched_setscheduler` from one fair policy to another or the same, nice value and slice named together. Where tasks
    /// may have their own slices, a call that names none is taken to change it: the task is requeued though it keeps all.
    /// SCHED_IDLE is no `fair_policy()`: of its nice value and slice only the priority is taken, for the moment.
    pub fn __sched_setscheduler(
        &mut self,
        task: TaskId,
        (policy, nice, slice): (FairPolicy, i8, Option<Nanos>),
        now: Nanos,
    ) -> Resched {
        let (id, wanted, custom) = (EntityId::of(task), slice.unwrap_or(0), self.rules.slice == SliceSource::Custom);
        let (se, base_slice) = (self.se(id), self.config.knobs.base_slice);
        let (cpu, old, nice, idle) = (se.cpu, se.prio, nice.clamp(-20, 19), policy == FairPolicy::Idle);
        if se.policy == policy && (idle || se.nice == nice && !(custom && wanted != se.slice)) {
            return self.need_resched(cpu);
        }
        self.requeue_around(id, nice == old, now, |fair| {
            let se = fair.se_mut(id);
            (se.policy, se.prio) = (policy, nice);
            if !idle {
                se.nice = nice;
            }
            if custom && !idle {
                se.custom_slice = wanted > 0;
                se.slice = if wanted > 0 { wanted.clamp(SLICE_RANGE.0, SLICE_RANGE.1) } else { base_slice };
            }
            fair.set_load_weight(id);
        });
        if nice != old {
            self.prio_changed(id, old, now);
        }
        self.need_resched(cpu)
    }

    /// `do_set_cpus_allowed`: a task that gets another set of CPUs is requeued, wherever it is.
    pub fn do_set_cpus_allowed(&mut self, task: TaskId, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        self.requeue_around(id, true, now, |_| {});
        self.need_resched(self.se(id).cpu)
    }

    /// `sched_setattr(sched_latency_nice)`: the slice it means, from the base slice of now. Nothing happens in kernels
    /// without it, or outside -20..=19.
    pub fn set_latency_nice(&mut self, task: TaskId, latency_nice: i8, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        let cpu = self.se(id).cpu;
        let known = self.rules.slice == SliceSource::LatencyNice && (-20..=19).contains(&latency_nice);
        if known && self.se(id).latency_nice != latency_nice {
            let slice = latency_slice(self.config.knobs.base_slice, latency_nice);
            self.requeue_around(id, true, now, |fair| {
                let se = fair.se_mut(id);
                (se.latency_nice, se.slice) = (latency_nice, slice);
            });
        }
        self.need_resched(cpu)
    }

    /// `sched_move_task` to where the task already is, as every exiting task does in kernels with autogroups: it is
    /// requeued, and from 5.6 on a running one reschedules.
    pub fn requeue_task(&mut self, task: TaskId, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        let cpu = self.se(id).cpu;
        self.requeue_around(id, false, now, |_| {});
        if self.leaf(cpu.index()) == id && self.rules.move_reschedules {
            self.resched_curr(cpu.index());
        }
        self.need_resched(cpu)
    }

    /// The frame of every attribute change: a queued task leaves (DEQUEUE_SAVE) and comes back (ENQUEUE_RESTORE), a
    /// running one is put and set again. `save`: without DEQUEUE_MOVE.
    pub(super) fn requeue_around(&mut self, id: EntityId, save: bool, now: Nanos, change: impl FnOnce(&mut Fair)) {
        let (cpu, task, queued) = (self.se(id).cpu, id.task_id(), self.se(id).on_rq || self.se(id).throttled);
        let running = self.leaf(cpu.index()) == id;
        if queued {
            self.dequeue_task(cpu, task, Dequeue { save, ..Dequeue::default() }, now);
        }
        if running {
            self.put_prev_task(cpu, now);
        }
        change(self);
        if running {
            // Its way into limbo is through the pick, even from limbo.
            self.se_mut(id).throttled = false;
        }
        if queued {
            self.enqueue_task(cpu, task, Enqueue::default(), now);
        }
        if running {
            self.set_next_task_fair(id, false, now);
            if self.se(id).on_rq {
                self.list_move_front(cpu.index(), id);
            }
        }
    }

    /// `set_load_weight` on a task off the queue.
    fn set_load_weight(&mut self, id: EntityId) {
        let se = self.se(id);
        let load = LoadWeight::of_task(se.nice, se.policy).dividing(self.rules.delta_divides);
        self.reweight_load_avg(id, load);
        self.rescale_entity(id, load);
    }

    /// `switched_from_fair` (`detach_task_cfs_rq`) of a task that is not queued: its load leaves, a CFS sleeper's vruntime
    /// becomes relative.
    pub fn switched_from(&mut self, task: TaskId, now: Nanos) {
        let id = EntityId::of(task);
        if !self.eevdf && self.se(id).asleep {
            let rq = self.se(id).cfs_rq as usize;
            self.place_entity_cfs(rq, id, false, now);
            self.make_relative(rq, id);
        }
        self.se_mut(id).asleep = false;
        self.leave_load_avg(id, now);
    }

    /// `switched_to_fair` (`attach_task_cfs_rq`) of a task that is not queued yet; one that will not be sleeps here.
    pub fn switched_to(&mut self, task: TaskId, to_be_queued: bool) {
        let id = EntityId::of(task);
        if !to_be_queued {
            if !self.eevdf {
                self.renormalise(self.se(id).cfs_rq as usize, id);
            }
            self.se_mut(id).asleep = true;
        }
    }

    /// The legacy calls name no slice: a task without its own gets the base slice of now.
    fn refresh_slice(&mut self, id: EntityId) {
        let base_slice = self.config.knobs.base_slice;
        let se = self.se_mut(id);
        if !se.custom_slice && se.policy != FairPolicy::Idle {
            se.slice = base_slice;
        }
    }

    /// `prio_changed_fair`: a running task made less important goes, a queued one may now preempt.
    fn prio_changed(&mut self, id: EntityId, old_nice: i8, now: Nanos) {
        let (cpu, on_rq, nice) = (self.se(id).cpu, self.se(id).on_rq, self.se(id).prio);
        let rq = self.se(id).cfs_rq as usize;
        // Alone on the CPU, that is, not merely in its group.
        if !on_rq || self.rq(cpu).nr_running == 1 && !self.rules.prio_changed_alone {
            return;
        }
        if self.leaf(cpu.index()) != id {
            self.wakeup_preempt(cpu, id.task_id(), WakeFlags::default(), false, now);
        } else if nice > old_nice {
            self.resched_curr(rq);
        }
    }

    pub(super) fn make_relative(&mut self, rq: usize, id: EntityId) {
        let min = self.rqs[rq].min_vruntime;
        let se = self.se_mut(id);
        se.vruntime = super::place::relative(se.vruntime, min);
    }
}
