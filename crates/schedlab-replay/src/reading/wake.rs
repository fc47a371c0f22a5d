//! Wakeups and forks. `sched_wakeup` follows the preempt check and shows its outcome when the target is the CPU that
//! emitted it; `sched_wakeup_new` precedes it.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_trace::Kind;

use super::ahead::{first_state, group_ahead};
use super::{is_fair, nice, Place, Reading, Task};
use crate::operation::{First, Flag, Operation, Weight, Whereabouts};
use crate::step::Step;
use crate::window::Window;

impl Reading {
    pub(super) fn waking(&mut self, pid: Pid, prio: i32, last: CpuId, ahead: &Window<'_>) {
        if pid == 0 {
            return;
        }
        if let Some(task) = self.tasks.get_mut(&pid) {
            (task.waking, task.asked) = (true, self.now);
            self.follow_prio(pid, prio, ahead);
            return;
        }
        let (weight, place) = (Weight::Nice(nice(prio)), Place::Off(last));
        let task = Task { waking: true, asked: self.now, ..Task::new(prio, weight, place) };
        self.tasks.insert(pid, task);
        if is_fair(prio) {
            let group = group_ahead(pid, ahead);
            self.push(Operation::Introduce { pid, weight, at: Whereabouts::Asleep(last), group, first: None });
        }
    }

    pub(super) fn wakeup(
        &mut self,
        step: &Step,
        (pid, prio, cpu): (Pid, i32, CpuId),
        before: bool,
        ahead: &Window<'_>,
    ) {
        if !self.tasks.get(&pid).is_some_and(|task| task.waking) {
            self.waking(pid, prio, cpu, ahead);
        }
        let flag = match self.cpu(step.cpu).checking.take() {
            _ if cpu == step.cpu => Flag { before, after: step.has_flags().then_some(step.flag()), shared: false },
            // The check came before this record, and the other CPU showed its outcome before it.
            Some((checked, false)) if checked == cpu && self.flag_of(cpu) => {
                Flag { before: false, after: Some(true), shared: false }
            }
            _ => self.flag_ahead(cpu, ahead),
        };
        self.wake(pid, cpu, false, flag, ahead);
    }

    pub(super) fn wakeup_new(&mut self, step: &Step, (pid, prio, cpu): (Pid, i32, CpuId), ahead: &Window<'_>) {
        if !self.tasks.contains_key(&pid) {
            // The fork itself was not recorded.
            self.fork(step.cpu, step.pid, pid, !ahead.shows_state());
        }
        self.follow_prio(pid, prio, ahead);
        // It is queued beside its parent, which is charged then.
        let charges = !self.sessions && cpu == step.cpu && self.current_is_fair(cpu);
        self.cpu(cpu).stands |= charges && !std::mem::take(&mut self.cpu(cpu).just_charged);
        let flag = self.flag_ahead(cpu, ahead);
        self.wake(pid, cpu, true, flag, ahead);
    }

    fn wake(&mut self, pid: Pid, cpu: CpuId, new: bool, flag: Flag, ahead: &Window<'_>) {
        let primed = self.cpu(cpu).primed;
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        // Whoever brings a vruntime relative to the queue shows where the queue stands.
        let arrives = new || std::mem::take(&mut task.moved);
        let wanted = !task.taken || arrives && !primed;
        let first: Option<First> = if wanted { first_state(pid, None, ahead) } else { None };
        task.taken |= first.is_some();
        self.cpu(cpu).primed |= arrives && first.is_some();
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.waking = false;
        match task.place {
            Place::Off(_) => task.place = Place::Queued(cpu),
            Place::Running(_) => task.woken = true,
            Place::Queued(_) => {}
        }
        let (fair, asked) = (task.is_fair(), if new { self.now } else { task.asked });
        if !flag.shared {
            self.cpu(cpu).flag = flag.before || flag.after == Some(true);
        }
        if fair {
            let left = if self.sessions { self.next_charge(cpu, ahead) } else { 0 };
            self.push(Operation::Wake { cpu, pid, new, asked, left, first, flag });
        }
    }

    /// What the running task of a CPU is charged next.
    fn next_charge(&self, cpu: CpuId, ahead: &Window<'_>) -> Nanos {
        let current = self.current(cpu);
        let next = ahead.ahead().find_map(|step| match step.kind()? {
            Kind::Runtime { pid, runtime, .. } if Some(pid) == current => Some(runtime),
            Kind::Switch { .. } if step.cpu == cpu => Some(0),
            _ => None,
        });
        next.unwrap_or(0)
    }

    /// `task_fork_fair`: at the parent's accounting, or where `sched_process_fork` says that it was.
    /// Without a charge (the clock stood still) and after interrupts it is not `sure` when that was.
    pub(super) fn fork(&mut self, cpu: CpuId, parent: Pid, child: Pid, sure: bool) {
        if child == 0 {
            return;
        }
        if self.tasks.get(&child).is_some_and(|task| matches!(task.place, Place::Off(_)) && !task.exiting) {
            return;
        }
        let place = Place::Off(cpu);
        let like = self.tasks.get(&parent).filter(|parent| parent.is_fair());
        let task = like.map_or(Task::new(120, Weight::Nice(0), place), |parent| Task {
            taken: parent.taken,
            ..Task::new(parent.prio, parent.weight, place)
        });
        // It is as good as waking: its first wakeup may take it to another CPU.
        let task = Task { waking: true, ..task };
        self.tasks.insert(child, task);
        self.push(Operation::Fork { cpu, parent, child, sure });
    }
}
