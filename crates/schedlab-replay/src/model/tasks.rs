//! Tasks that are added, forked, changed and released.

use schedlab_model::{CpuId, Nanos, Pid, TaskId, Vruntime};
use schedlab_policy::fair::{Dequeue, Enqueue, GroupId, SchedParams, TaskState};
use schedlab_policy::{FairPolicy, Resched, TaskAttr};

use super::migrate::Moving;
use super::show::Shown;
use super::wakeup::Waking;
use super::{Model, Task};
use crate::decision::DecisionKind;
use crate::groups::GroupName;
use crate::operation::{First, Flag, Group, Location, NewTask, Weight};
use crate::trace::fair_policy;
use crate::trace::Start;

impl Model {
    /// A task's first record. Its state is taken from the trace here or at its first wakeup.
    pub(super) fn add_task(&mut self, new: &NewTask) {
        let NewTask { pid, weight, at, group, first } = *new;
        self.release(pid);
        let (Location::Running(cpu) | Location::Queued(cpu) | Location::Asleep(cpu)) = at;
        let (nice, policy) = match weight {
            Weight::Nice(nice) if self.initial.is_sched_idle(pid) => (nice, FairPolicy::Idle),
            Weight::Nice(nice) => (nice, FairPolicy::Normal),
            Weight::Idle => (0, FairPolicy::Idle),
        };
        let name = self.initial_group_of(pid, group);
        let group = self.group_of_name(&name, self.clock(cpu));
        let id = self.allocate(pid, &TaskAttr { nice, policy, cpu, group, ..TaskAttr::default() });
        self.take_slice_of_boot(pid, id);
        if let Location::Asleep(_) = at {
            // Far to the left on any queue: its queue alone places it, as a long sleeper.
            let state = TaskState { vruntime: Vruntime(0).plus(-(1 << 40)), ..self.fair().view().task_state(id) };
            self.sched.follow().restore().task(id, state);
            // Its load has decayed, and is a part of its queue's.
            return self.sched.follow().restore().task_load_avg(id, 0);
        }
        self.prime_queue(cpu, id, first);
        let now = self.clock(cpu);
        self.take_lag(id, first);
        self.sched.enqueue_task(cpu, id, Enqueue::default(), now);
        if first == Some(First::Unknown) {
            self.guess_used_slice(id);
        }
        if let (Location::Running(cpu), None) = (at, self.sched.curr(cpu)) {
            self.sched.set_next_task(cpu, id, true, now);
        }
        // Last: if the task runs, its mark of protection is the kernel's.
        self.take_state(pid, first);
    }

    /// The group of a name, created at its first use.
    fn group_of_name(&mut self, name: &GroupName, now: Nanos) -> GroupId {
        if *name == GroupName::Root {
            return GroupId::ROOT;
        }
        if let Some(group) = self.groups.get(name) {
            return *group;
        }
        let parent = self.group_of_name(&name.parent(), now);
        let group = self.sched.fair.sched_create_group(parent);
        if let Some(shares) = self.initial.shares(name) {
            self.sched.fair.sched_group_set_shares(group, shares, now);
        }
        self.coverage.add_group(group, self.cpus.len());
        self.groups.insert(name.clone(), group);
        group
    }

    fn allocate(&mut self, pid: Pid, attr: &TaskAttr) -> TaskId {
        let id = self.sched.add_task(attr);
        match self.pids.get_mut(id.index()) {
            Some(reused) => *reused = pid,
            None => self.pids.push(pid),
        }
        let queued_at = self.next_order();
        let (known, was_known, printed, shown) = (false, false, None, Shown::default());
        let (migrated, moving, left_class) = (false, Moving::No, false);
        let task = Task {
            id,
            known,
            was_known,
            queued_at,
            printed,
            migrated,
            moving,
            left_class,
            waking: Waking::Ahead,
            shown,
        };
        self.tasks.insert(pid, task);
        self.tally.tasks.seen += 1;
        id
    }

    /// `sched_fork`, up to 6.5 with `task_fork_fair`.
    pub(super) fn fork(&mut self, cpu: CpuId, parent: Pid, child: Pid, certain: bool) {
        self.release(child);
        let parent_task = self.tasks.get(&parent).cloned();
        let like = parent_task.as_ref().map(|parent| self.fair().entity(parent.id));
        let attr = TaskAttr {
            nice: like.map_or(0, |se| se.nice),
            policy: like.map_or(FairPolicy::Normal, |se| se.policy),
            slice: like.filter(|se| se.custom_slice).map(|se| se.slice),
            group: parent_task.as_ref().map_or(GroupId::ROOT, |parent| self.fair().group_of(parent.id)),
            cpu,
            ..TaskAttr::default()
        };
        let id = self.allocate(child, &attr);
        let now = self.clock(cpu);
        self.sched.task_fork(id, cpu, now);
        self.sched.clear_resched(cpu);
        if let (Some(parent), Some(task)) = (parent_task, self.tasks.get_mut(&child)) {
            task.known = parent.known && (certain || !self.sched.fair.config.version.rules.fork_places);
            task.was_known = task.known;
            task.printed = parent.printed;
        }
        self.tasks.modify(child, |task| task.waking = Waking::New);
    }

    /// The same for a task that a simulated trace starts without a parent.
    pub(super) fn start(&mut self, cpu: CpuId, start: &Start) {
        self.release(start.pid);
        let now = self.clock(cpu);
        let group = self.group_of_name(&self.initial.numbered(start.group), now);
        let attr = TaskAttr {
            nice: start.nice,
            policy: fair_policy(start.policy).unwrap_or_default(),
            slice: Some(start.slice).filter(|slice| *slice > 0),
            latency_nice: start.latency_nice,
            group,
            cpu,
            ..TaskAttr::default()
        };
        let id = self.allocate(start.pid, &attr);
        self.sched.task_fork(id, cpu, now);
        self.sched.clear_resched(cpu);
        self.tasks.modify(start.pid, |task| {
            (task.known, task.was_known, task.waking) = (true, true, Waking::New);
        });
    }

    /// `set_user_nice`, or a change to or from SCHED_IDLE.
    pub(super) fn reweight(&mut self, pid: Pid, weight: Weight) {
        let Some(id) = self.tasks.get(&pid).map(|task| task.id) else { return };
        let cpu = self.sched.cpu_of(id);
        let now = self.clock(cpu);
        match weight {
            Weight::Nice(nice) => {
                // SCHED_BATCH shows in no record.
                if self.fair().entity(id).policy == FairPolicy::Idle {
                    self.sched.set_policy(id, FairPolicy::Normal, now);
                }
                self.sched.set_user_nice(id, nice, now);
            }
            Weight::Idle => drop(self.sched.set_policy(id, FairPolicy::Idle, now)),
        }
        self.sched.clear_resched(cpu);
    }

    /// `set_user_nice`.
    pub(super) fn set_nice(&mut self, pid: Pid, nice: i8) {
        let Some(id) = self.tasks.get(&pid).map(|task| task.id) else { return };
        let cpu = self.sched.cpu_of(id);
        self.sched.set_user_nice(id, nice, self.clock(cpu));
        self.sched.clear_resched(cpu);
    }

    /// `__sched_setscheduler`.
    pub(super) fn set_scheduler(&mut self, pid: Pid, params: SchedParams) {
        let Some((id, left_class)) = self.tasks.get(&pid).map(|task| (task.id, task.left_class)) else { return };
        if left_class {
            return self.sched.follow().set_params_outside(id, params);
        }
        let cpu = self.sched.cpu_of(id);
        let now = self.clock(cpu);
        self.sched.follow().sched_setscheduler(id, params, now);
        self.sched.clear_resched(cpu);
    }

    /// `_sched_setscheduler`.
    pub(super) fn set_policy(&mut self, pid: Pid, policy: FairPolicy) {
        let Some(se) = self.tasks.get(&pid).map(|task| self.fair().entity(task.id)) else { return };
        let slice = se.custom_slice.then_some(se.slice);
        self.set_scheduler(pid, SchedParams { policy, nice: se.nice, slice });
    }

    /// `do_set_cpus_allowed`.
    pub(super) fn set_affinity(&mut self, pid: Pid) {
        let Some(id) = self.task(pid) else { return };
        let cpu = self.sched.cpu_of(id);
        let now = self.clock(cpu);
        self.sched.follow().set_cpus_allowed(id, now);
        self.sched.clear_resched(cpu);
    }

    /// A task whose dequeue is delayed leaves its queue.
    pub(super) fn finish_delayed(&mut self, pid: Pid) {
        if let Some(id) = self.task(pid) {
            self.sched.follow().finish_delayed(id);
        }
    }

    /// `sched_move_task`.
    pub(super) fn move_task(&mut self, cpu: CpuId, pid: Pid, to: Group, flag: Flag) {
        let Some(id) = self.task(pid) else { return };
        let now = self.clock(cpu);
        let resched = match to {
            Group::Same => self.sched.follow().requeue_task(id, now),
            // A control group is left only by a write to a file.
            Group::Root if matches!(self.initial.group_of(pid), GroupName::Cgroup(_)) => {
                self.sched.follow().requeue_task(id, now)
            }
            Group::Root => self.sched.sched_move_task(id, GroupId::ROOT, now),
            Group::New => {
                let group = self.sched.fair.sched_create_group(GroupId::ROOT);
                self.sched.sched_move_task(id, group, now)
            }
        };
        if self.runnable(cpu).len() > 1 {
            self.judge_preemption(DecisionKind::Move, cpu, id, resched != Resched::No, flag);
        }
        self.sched.clear_resched(cpu);
    }

    /// `switched_from_fair`: the task leaves its queue with a relative vruntime. A sleeping task is placed first.
    pub(super) fn switched_from(&mut self, pid: Pid) {
        let Some(id) = self.task(pid) else { return };
        let cpu = self.sched.cpu_of(id);
        let now = self.clock(cpu);
        self.sched.follow().finish_delayed(id);
        if !self.sched.on_rq(id) {
            self.sched.enqueue_task(cpu, id, Enqueue { wakeup: true, ..Enqueue::default() }, now);
        }
        self.sched.dequeue_task(cpu, id, Dequeue::default(), now);
        if self.sched.curr(cpu) == Some(id) {
            self.cpus[cpu.index()].clock = now;
            self.sched.put_prev_task(cpu, now);
        }
        self.sched.follow().switched_from(id, now);
        self.tasks.modify(pid, |task| task.left_class = true);
    }

    /// `switched_to_fair`.
    pub(super) fn switched_to(&mut self, pid: Pid, at: Location) {
        let Some(task) = self.tasks.get_mut(&pid).filter(|task| task.left_class) else { return };
        task.left_class = false;
        let id = task.id;
        let (cpu, runs) = match at {
            Location::Running(cpu) => (cpu, true),
            Location::Queued(cpu) => (cpu, false),
            Location::Asleep(_) => return,
        };
        self.leave_cpu(id);
        let from = self.sched.cpu_of(id);
        self.sched.follow().set_task_cpu(id, from, cpu, None);
        let now = self.clock(cpu);
        self.sched.enqueue_task(cpu, id, Enqueue::default(), now);
        if runs && self.sched.curr(cpu).is_none() {
            self.sched.set_next_task(cpu, id, false, now);
        }
        self.sched.clear_resched(cpu);
    }

    /// A task has exited and left its CPU.
    pub(super) fn release(&mut self, pid: Pid) {
        let Some(task) = self.tasks.remove(&pid) else { return };
        let (id, cpu) = (task.id, self.sched.cpu_of(task.id));
        let now = self.clock(cpu);
        self.sched.follow().finish_delayed(id);
        if self.sched.on_rq(id) {
            self.sched.dequeue_task(cpu, id, Dequeue { sleep: true, special: true, ..Dequeue::default() }, now);
        }
        if self.sched.curr(cpu) == Some(id) {
            self.sched.put_prev_task(cpu, now);
        }
        self.sched.task_dead(id);
        self.sched.release_task(id);
    }
}
