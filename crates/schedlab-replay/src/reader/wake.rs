//! Wakeups and forks. `sched_wakeup` follows the preemption check and shows its outcome if the target is the CPU that
//! emits it; `sched_wakeup_new` precedes the check.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::FairPolicy;
use schedlab_trace::Kind;

use super::first::{first_state, group_ahead};
use super::flag::FlagBefore;
use super::pass::{online_at_fork, per_cpu_kthread};
use super::task::{is_fair, nice, prio, Place, Task};
use super::Reader;
use crate::operation::{Cause, First, Flag, Location, NewTask, Operation, Wakeup, Weight};
use crate::trace::Start;
use crate::trace::{fair_policy, Entry, LookAhead, What, Window};

/// The fields of a `sched_wakeup` or `sched_wakeup_new`.
#[derive(Clone, Copy)]
pub struct Wakee {
    pub pid: Pid,
    pub prio: i32,
    pub cpu: CpuId,
}

impl Reader {
    pub(super) fn waking(&mut self, pid: Pid, prio: i32, last: CpuId, ahead: &Window<'_>) {
        if pid == 0 {
            return;
        }
        if let Some(task) = self.tasks.get_mut(&pid) {
            (task.waking, task.waking_at) = (true, self.now);
            self.follow_prio(pid, prio, ahead);
            return;
        }
        let (weight, place) = (Weight::Nice(nice(prio)), Place::Off(last));
        let task = Task { waking: true, waking_at: self.now, ..Task::new(prio, weight, place) };
        self.tasks.insert(pid, task);
        if is_fair(prio) {
            let group = group_ahead(pid, ahead);
            self.push(Operation::AddTask(NewTask { pid, weight, at: Location::Asleep(last), group, first: None }));
            if let Some(cpus) = online_at_fork(ahead.name(pid)) {
                self.push(Operation::ForkedWith { pid, cpus });
            }
        }
    }

    /// No CPU is selected for a task that may use one only: from `sched_waking` on it is on that CPU's wakelist or
    /// about to be queued there.
    pub(super) fn return_to_last_cpu(&mut self, entry: &Entry, pid: Pid, last: CpuId, ahead: &Window<'_>) {
        let own = ahead.look(LookAhead::Selection).filter(|next| next.cpu == entry.cpu);
        let mut first = own.filter(|next| matches!(next.what, What::Select(_) | What::Event(_)));
        let selects = matches!(first.next().map(|next| &next.what), Some(What::Select(_)));
        let bound = per_cpu_kthread(ahead.name(pid)) == Some(last);
        let Some(task) = self.tasks.get_mut(&pid).filter(|task| matches!(task.place, Place::Off(_))) else { return };
        if bound || task.is_fair() && !selects {
            task.selected = Some(last);
            self.note_idle_change(last);
        }
    }

    pub(super) fn wakeup(&mut self, entry: &Entry, wakee: &Wakee, before: FlagBefore, ahead: &Window<'_>) {
        let Wakee { pid, prio, cpu } = *wakee;
        self.newidle_before(entry, cpu);
        if !self.tasks.get(&pid).is_some_and(|task| task.waking) {
            self.waking(pid, prio, cpu, ahead);
        }
        let flag = match self.cpu(entry.cpu).checking.take() {
            _ if cpu == entry.cpu && !entry.inferred => {
                let after = entry.has_flags().then_some(entry.flag());
                Flag { before: before.flag, before_full: before.full, after, cause: Cause::Own }
            }
            // The check came before this record, and the other CPU showed its outcome before it.
            Some((checked, false)) if checked == cpu && self.flag_of(cpu) => {
                Flag { before: false, before_full: false, after: Some(true), cause: Cause::Own }
            }
            _ => self.flag_ahead(cpu, entry.cpu, ahead),
        };
        self.wake(pid, cpu, false, flag, ahead);
    }

    pub(super) fn wakeup_new(&mut self, entry: &Entry, wakee: &Wakee, ahead: &Window<'_>) {
        let Wakee { pid, prio, cpu } = *wakee;
        self.newidle_before(entry, cpu);
        if !self.tasks.contains_key(&pid) {
            // The fork itself was not recorded.
            self.fork(entry.cpu, (entry.pid, pid), !ahead.shows_state(), ahead);
        }
        self.follow_prio(pid, prio, ahead);
        // It is queued with its parent, which is charged then.
        let charges = !self.kernel.uses_autogroup && cpu == entry.cpu && self.current_is_fair(cpu);
        self.cpu(cpu).clock_stands |= charges && !std::mem::take(&mut self.cpu(cpu).just_charged);
        let flag = self.flag_ahead(cpu, entry.cpu, ahead);
        self.wake(pid, cpu, true, flag, ahead);
    }

    fn wake(&mut self, pid: Pid, cpu: CpuId, new: bool, flag: Flag, ahead: &Window<'_>) {
        let primed = self.cpu(cpu).primed;
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        // A task with a vruntime relative to the queue shows the queue's position.
        let arrives = new || std::mem::take(&mut task.migrated);
        let wanted = !self.kernel.simulated && (!task.taken || arrives && !primed);
        let first: Option<First> = if wanted { first_state(pid, None, ahead) } else { None };
        task.taken |= first.is_some();
        self.cpu(cpu).primed |= arrives && first.is_some();
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        (task.waking, task.selected) = (false, None);
        match task.place {
            Place::Off(_) => task.place = Place::Queued(cpu),
            Place::Running(_) => task.woken = true,
            Place::Queued(_) => {}
        }
        self.note_idle_change(cpu);
        let Some(task) = self.tasks.get(&pid) else { return };
        let (fair, waking_at) = (task.is_fair(), if new { self.now } else { task.waking_at });
        self.note_outcome(cpu, &flag);
        if fair {
            let next_charge = if self.kernel.uses_autogroup { self.next_charge(cpu, ahead) } else { 0 };
            // A simulated wakeup happens at the time of its record; a kernel reads its clock before.
            let clock = self.kernel.simulated.then_some(self.now);
            self.push(Operation::Wakeup(Wakeup { cpu, pid, new, waking_at, next_charge, clock, first, flag }));
        }
    }

    /// The next run time of a CPU's running task.
    fn next_charge(&self, cpu: CpuId, ahead: &Window<'_>) -> Nanos {
        let current = self.current(cpu);
        let next = ahead.look(LookAhead::NextRunTime).find_map(|entry| match entry.kind()? {
            Kind::Runtime { pid, runtime, .. } if Some(pid) == current => Some(runtime),
            Kind::Switch { .. } if entry.cpu == cpu => Some(0),
            _ => None,
        });
        next.unwrap_or(0)
    }

    /// A task of a simulated trace that has no parent.
    fn start_task(&mut self, cpu: CpuId, start: Start) {
        let weight = match fair_policy(start.policy) {
            Some(FairPolicy::Idle) => Weight::Idle,
            _ => Weight::Nice(start.nice),
        };
        let fair = fair_policy(start.policy).is_some();
        // A real-time priority, whichever: its wakeup shows it.
        let prio = if fair { prio(start.nice) } else { 0 };
        let task = Task { taken: true, waking: true, ..Task::new(prio, weight, Place::Off(cpu)) };
        self.tasks.insert(start.pid, task);
        if fair {
            self.push(Operation::Start { cpu, start });
        }
    }

    /// `task_fork_fair`: at the parent's charge, or where `sched_process_fork` shows that it has been. Without a charge
    /// (the clock stood still) and after interrupts it is not `certain` when it was. A child of a real-time task is
    /// outside of the fair class from the beginning; its first wakeup shows that.
    pub(super) fn fork(&mut self, cpu: CpuId, (parent, child): (Pid, Pid), certain: bool, ahead: &Window<'_>) {
        if child == 0 {
            return;
        }
        if self.tasks.get(&child).is_some_and(|task| matches!(task.place, Place::Off(_)) && !task.exiting) {
            return;
        }
        let place = Place::Off(cpu);
        if let Some(start) = self.starting.take().filter(|start| start.pid == child) {
            return self.start_task(cpu, start);
        }
        if let Some(prio) = prio_at_first_wakeup(child, ahead).filter(|prio| !is_fair(*prio)) {
            self.tasks.insert(child, Task { waking: true, ..Task::new(prio, Weight::Nice(0), place) });
            return self.push(Operation::Release { pid: child });
        }
        let like = self.tasks.get(&parent).filter(|parent| parent.is_fair());
        let task = like.map_or(Task::new(120, Weight::Nice(0), place), |parent| Task {
            taken: parent.taken,
            affinity_set: parent.affinity_set,
            ..Task::new(parent.prio, parent.weight, place)
        });
        // Like a waking task: its first wakeup may place it on another CPU.
        let task = Task { waking: true, ..task };
        self.tasks.insert(child, task);
        self.push(Operation::Fork { cpu, parent, child, certain });
    }
}

/// The priority of a new task in its `sched_wakeup_new`.
fn prio_at_first_wakeup(child: Pid, ahead: &Window<'_>) -> Option<i32> {
    ahead.look(LookAhead::Class).find_map(|next| match next.kind()? {
        Kind::WakeupNew { pid, prio, .. } if pid == child => Some(prio),
        _ => None,
    })
}
