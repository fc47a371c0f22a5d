//! Tasks becoming known, born, reweighted, regrouped and forgotten.

use schedlab_model::{CpuId, Nanos, Pid, TaskId, Vruntime};
use schedlab_policy::fair::{Dequeue, Enqueue, GroupId, TaskState};
use schedlab_policy::weight::calc_delta_fair;
use schedlab_policy::{FairPolicy, Resched, TaskAttr};

use super::{Member, Model};
use crate::homes::Home;
use crate::operation::{First, Flag, Group, Weight, Whereabouts};
use crate::step::Address;
use crate::tally::Kind;

impl Model {
    /// A task seen for the first time. Its state is taken from the trace here or at its first wakeup, then never again.
    pub(super) fn introduce(
        &mut self,
        (pid, group): (Pid, Option<Address>),
        weight: Weight,
        at: Whereabouts,
        first: Option<First>,
    ) {
        self.forget(pid);
        let cpu = match at {
            Whereabouts::Running(cpu) | Whereabouts::Queued(cpu) | Whereabouts::Asleep(cpu) => cpu,
        };
        let (nice, policy) = match weight {
            Weight::Nice(nice) if self.homes.idle(pid) => (nice, FairPolicy::Idle),
            Weight::Nice(nice) => (nice, FairPolicy::Normal),
            Weight::Idle => (0, FairPolicy::Idle),
        };
        let home = self.home_of(pid, group);
        let group = self.group_at(&home, self.clock(cpu));
        let id = self.add(pid, &TaskAttr { nice, policy, cpu, group, ..TaskAttr::default() });
        if let Whereabouts::Asleep(_) = at {
            // Far to the left on any queue and relative to any: its queue alone places it, as a long sleeper.
            let state = TaskState { vruntime: Vruntime(0).plus(-(1 << 40)), ..self.fair.task_state(id) };
            return self.fair.restore_task(id, state);
        }
        self.prime(cpu, id, first);
        let now = self.clock(cpu);
        self.take_lag(id, first);
        self.fair.enqueue_task(cpu, id, Enqueue::default(), now);
        if first == Some(First::Guessed) {
            self.use_slice(id);
        }
        if let (Whereabouts::Running(cpu), None) = (at, self.fair.curr(cpu)) {
            self.fair.set_next_task(cpu, id, now);
        }
        // Last: where it runs its mark of protection is the kernel's.
        self.take_over(pid, first);
    }

    /// The group that stands for a task's home of before the trace.
    fn group_at(&mut self, home: &Home, now: Nanos) -> GroupId {
        if *home == Home::Root {
            return GroupId::ROOT;
        }
        if let Some(group) = self.groups.get(home) {
            return *group;
        }
        let parent = self.group_at(&home.parent(), now);
        let group = self.fair.sched_create_group(parent);
        if let Some(shares) = self.homes.shares(home) {
            self.fair.sched_group_set_shares(group, shares, now);
        }
        self.levels.found(group, self.cpus.len());
        self.groups.insert(home.clone(), group);
        group
    }

    pub(super) fn add(&mut self, pid: Pid, attr: &TaskAttr) -> TaskId {
        let id = match self.free.pop() {
            Some(id) => {
                self.fair.recycle(id, attr);
                self.pids[id.index()] = pid;
                id
            }
            None => {
                self.pids.push(pid);
                self.fair.add_task(attr)
            }
        };
        let joined = self.next_order();
        let shown = super::show::Shown::default();
        self.members.insert(
            pid,
            Member { id, known: false, joined, printed: None, rehomed: false, moving: false, away: false, shown },
        );
        self.tally.tasks.seen += 1;
        id
    }

    /// The first task seen on a queue says about where the queue stands in virtual time.
    fn prime(&mut self, cpu: CpuId, id: TaskId, first: Option<First>) {
        let Some(vruntime) = first.map(|first| self.first_vruntime(id, first)) else { return };
        if let Some(first) = first.filter(|_| self.levels.in_use()) {
            return self.prime_levels(id, vruntime, first);
        }
        if !std::mem::replace(&mut self.cpus[cpu.index()].primed, true) {
            self.fair.restore_min_vruntime(cpu, vruntime);
        }
    }

    /// A task placed on a queue whose place in virtual time is not known: the trace shows where the task was placed, and
    /// placing is the same everywhere. A task that `arrives` with a relative vruntime settles it; a sleeper may have
    /// come back where it was.
    pub(super) fn align(&mut self, cpu: CpuId, id: TaskId, first: Option<First>, arrives: bool) {
        let Some(first) = first else { return };
        if self.levels.in_use() {
            return;
        }
        let (alone, queue) = (self.fair.rq(cpu).nr_running == 1, &mut self.cpus[cpu.index()]);
        let guess = !std::mem::replace(&mut queue.primed, true);
        let settles = arrives && (alone || !self.eevdf) && !std::mem::replace(&mut queue.settled, true);
        if guess || settles {
            let off = self.first_vruntime(id, first).since(self.fair.entity(id).vruntime);
            let zero = self.fair.rq(cpu).min_vruntime.plus(off);
            self.fair.restore_min_vruntime(cpu, zero);
        }
    }

    fn first_vruntime(&self, id: TaskId, first: First) -> Vruntime {
        let (vruntime, ran) = match first {
            First::Printed { vruntime, ran } => (vruntime, ran),
            First::Probed { probe, ran } => (probe.vruntime, ran),
            First::Guessed => (self.fair.entity(id).vruntime.0, 0),
        };
        Vruntime(vruntime.wrapping_sub(calc_delta_fair(ran, self.fair.entity(id).load)))
    }

    /// Overwrites the state of a queued task with what the trace shows of it.
    pub(super) fn take_over(&mut self, pid: Pid, first: Option<First>) {
        let (Some(first), Some(id)) = (first, self.id(pid)) else { return };
        if first == First::Guessed {
            self.members.entry(pid).and_modify(|member| member.known = true);
            *(if self.eevdf { &mut self.tally.tasks.solved } else { &mut self.tally.tasks.guessed }) += 1;
            return;
        }
        let mut state = self.fair.task_state(id);
        let vruntime = self.first_vruntime(id, first);
        // Where only vruntime is shown, the deadline keeps its distance.
        state.deadline = vruntime.plus(state.deadline.since(state.vruntime));
        state.vruntime = vruntime;
        if let First::Probed { probe, .. } = first {
            state.deadline = Vruntime(probe.deadline);
            state.slice = probe.slice;
            if probe.lag != 0 {
                state.vlag = probe.lag;
            }
        }
        self.fair.restore_task(id, state);
        if let First::Probed { probe, .. } = first {
            if probe.delayed {
                self.fair.mark_delayed(id);
            }
            if let Some(load) = probe.load {
                self.fair.restore_load(id, load);
            }
            self.foretell_levels(id, &probe);
        }
        if let Some(member) = self.members.get_mut(&pid) {
            member.known = true;
            self.tally.tasks.taken += 1;
        }
    }

    /// `task_fork_fair`.
    pub(super) fn fork(&mut self, cpu: CpuId, parent: Pid, child: Pid, sure: bool) {
        self.forget(child);
        let parent_member = self.members.get(&parent).cloned();
        let like = parent_member.as_ref().map(|parent| self.fair.entity(parent.id));
        let attr = TaskAttr {
            nice: like.map_or(0, |se| se.nice),
            policy: like.map_or(FairPolicy::Normal, |se| se.policy),
            slice: like.filter(|se| se.custom_slice).map(|se| se.slice),
            group: parent_member.as_ref().map_or(GroupId::ROOT, |parent| self.fair.group_of(parent.id)),
            cpu,
            ..TaskAttr::default()
        };
        let id = self.add(child, &attr);
        let now = self.clock(cpu);
        self.fair.task_fork(cpu, id, now);
        self.fair.clear_resched(cpu);
        if let (Some(parent), Some(member)) = (parent_member, self.members.get_mut(&child)) {
            member.known = parent.known && (sure || !self.fair.config.version.rules.fork_places);
            member.printed = parent.printed;
        }
    }

    /// `set_user_nice`, or a change to or from SCHED_IDLE.
    pub(super) fn reweight(&mut self, pid: Pid, weight: Weight) {
        let Some(id) = self.members.get(&pid).map(|member| member.id) else { return };
        let cpu = self.fair.entity(id).cpu;
        let now = self.clock(cpu);
        match weight {
            Weight::Nice(nice) => {
                // SCHED_BATCH shows in no record.
                if self.fair.entity(id).policy == FairPolicy::Idle {
                    self.fair.set_policy(id, FairPolicy::Normal, now);
                }
                self.fair.set_user_nice(id, nice, now);
            }
            Weight::Idle => drop(self.fair.set_policy(id, FairPolicy::Idle, now)),
        }
        self.fair.clear_resched(cpu);
    }

    /// `set_user_nice`.
    pub(super) fn set_nice(&mut self, pid: Pid, nice: i8) {
        let Some(id) = self.members.get(&pid).map(|member| member.id) else { return };
        let cpu = self.fair.entity(id).cpu;
        self.fair.set_user_nice(id, nice, self.clock(cpu));
        self.fair.clear_resched(cpu);
    }

    /// `__sched_setscheduler`.
    pub(super) fn set_scheduler(&mut self, pid: Pid, attr: (FairPolicy, i8, Option<Nanos>)) {
        let Some(id) = self.id(pid) else { return };
        let cpu = self.fair.entity(id).cpu;
        self.fair.__sched_setscheduler(id, attr, self.clock(cpu));
        self.fair.clear_resched(cpu);
    }

    /// `_sched_setscheduler`.
    pub(super) fn set_policy(&mut self, pid: Pid, policy: FairPolicy) {
        let Some(se) = self.id(pid).map(|id| self.fair.entity(id)) else { return };
        self.set_scheduler(pid, (policy, se.nice, se.custom_slice.then_some(se.slice)));
    }

    /// `do_set_cpus_allowed`.
    pub(super) fn set_affinity(&mut self, pid: Pid) {
        let Some(id) = self.id(pid) else { return };
        let cpu = self.fair.entity(id).cpu;
        self.fair.do_set_cpus_allowed(id, self.clock(cpu));
        self.fair.clear_resched(cpu);
    }

    /// `sched_move_task`.
    pub(super) fn regroup(&mut self, cpu: CpuId, pid: Pid, to: Group, flag: Flag) {
        let Some(id) = self.id(pid) else { return };
        let now = self.clock(cpu);
        let resched = match to {
            Group::Same => self.fair.requeue_task(id, now),
            // A control group is kept to the end.
            Group::Root if matches!(self.homes.home(pid), Home::Control(_)) => self.fair.requeue_task(id, now),
            Group::Root => self.fair.sched_move_task(id, GroupId::ROOT, now),
            Group::New => {
                let group = self.fair.sched_create_group(GroupId::ROOT);
                self.fair.sched_move_task(id, group, now)
            }
        };
        if self.rivals(cpu).len() > 1 {
            self.judge_preemption(Kind::Move, cpu, id, resched != Resched::No, flag);
        }
        self.fair.clear_resched(cpu);
    }

    /// `switched_from_fair`: the task leaves its queue with a relative vruntime. A sleeper is placed first.
    pub(super) fn leave_class(&mut self, pid: Pid) {
        let Some(id) = self.id(pid) else { return };
        let cpu = self.fair.entity(id).cpu;
        let now = self.clock(cpu);
        self.fair.finish_delayed(id);
        if !self.fair.entity(id).on_rq {
            self.fair.enqueue_task(cpu, id, Enqueue { wakeup: true, ..Enqueue::default() }, now);
        }
        self.fair.dequeue_task(cpu, id, Dequeue::default(), now);
        if self.fair.curr(cpu) == Some(id) {
            self.cpus[cpu.index()].clock = now;
            self.fair.put_prev_task(cpu, now);
        }
        self.members.entry(pid).and_modify(|member| member.away = true);
    }

    /// `switched_to_fair`.
    pub(super) fn return_to_class(&mut self, pid: Pid, at: Whereabouts) {
        let Some(member) = self.members.get_mut(&pid).filter(|member| member.away) else { return };
        member.away = false;
        let id = member.id;
        let (cpu, runs) = match at {
            Whereabouts::Running(cpu) => (cpu, true),
            Whereabouts::Queued(cpu) => (cpu, false),
            Whereabouts::Asleep(_) => return,
        };
        self.leave_cpu(id);
        self.fair.migrate_task_rq(id, self.fair.entity(id).cpu, cpu);
        let now = self.clock(cpu);
        self.fair.enqueue_task(cpu, id, Enqueue::default(), now);
        if runs && self.fair.curr(cpu).is_none() {
            self.fair.set_next_task(cpu, id, now);
        }
        self.fair.clear_resched(cpu);
    }

    pub(super) fn forget(&mut self, pid: Pid) {
        let Some(member) = self.members.remove(&pid) else { return };
        let (id, cpu) = (member.id, self.fair.entity(member.id).cpu);
        let now = self.clock(cpu);
        self.fair.finish_delayed(id);
        if self.fair.entity(id).on_rq {
            self.fair.dequeue_task(cpu, id, Dequeue { sleep: true, special: true, ..Dequeue::default() }, now);
        }
        if self.fair.curr(cpu) == Some(id) {
            self.fair.put_prev_task(cpu, now);
        }
        self.free.push(id);
    }
}
