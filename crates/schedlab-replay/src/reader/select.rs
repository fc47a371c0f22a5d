//! `select_task_rq_fair`: its arguments by a probe, the CPU that it returns, and the CPUs that were idle then.

use schedlab_model::{CpuId, CpuMask, Nanos, USEC};
use schedlab_policy::WakeKind;
use schedlab_trace::Kind;

use super::pass::per_cpu_kthread;
use super::task::{Place, Task};
use super::Reader;
use crate::operation::{Operation, Select};
use crate::trace::{Entry, LookAhead, SelectProbe, What, Window};

/// A record shows a change that other CPUs saw up to this time before, or see up to this time later.
const SEEN_WITHIN: Nanos = 30 * USEC;

impl Reader {
    pub(super) fn select_task_rq(&mut self, entry: &Entry, probe: &SelectProbe, ahead: &Window<'_>) {
        self.saw_jiffies(probe.state.and_then(|state| state.flips_decayed), entry.time);
        let own = || ahead.look(LookAhead::Selection).filter(|next| next.cpu == entry.cpu);
        let pid = match (probe.state, probe.kind) {
            (Some(state), _) => Some(state.pid),
            (None, WakeKind::Exec) => Some(entry.pid),
            (None, WakeKind::Wakeup { .. }) => self.cpu(entry.cpu).wakes,
            (None, WakeKind::Fork) => own().find_map(|next| match next.kind() {
                Some(Kind::WakeupNew { pid, .. }) => Some(pid),
                _ => None,
            }),
        };
        let returned = own().find_map(|next| match next.what {
            What::Selected { cpu } => Some((cpu, next.time)),
            _ => None,
        });
        let (Some(pid), Some((chosen, until))) = (pid, returned) else { return };
        self.cpu(entry.cpu).selecting = Some(pid);
        let Some(task) = self.tasks.get(&pid).filter(|task| task.is_fair()) else { return };
        let dying = self.tasks.get(&entry.pid).is_some_and(|waker| waker.dying);
        let select = Select {
            pid,
            this: entry.cpu,
            prev: probe.prev,
            kind: if dying { probe.kind.without_sync() } else { probe.kind },
            kthread: per_cpu_kthread(ahead.name(entry.pid)) == Some(entry.cpu),
            in_task: entry.in_task(),
            chosen,
            jiffies: probe.jiffies.or_else(|| self.jiffies(entry.time)),
            state: probe.state,
            affinity_set: task.affinity_set,
            idle: self.idle_cpus(),
            changing: self.changing_cpus(entry, until, ahead),
            others: self.other_class_cpus(),
            others_wait: self.other_class_waits(),
        };
        if probe.marks.iter().flatten().any(Option::is_some) {
            self.push(Operation::GroupMarks { cpu: probe.prev, marks: probe.marks });
        }
        self.push(Operation::SelectTaskRq(select));
    }

    /// From here on the CPU is not idle: the task is on its wakelist or about to be queued.
    pub(super) fn selected(&mut self, entry: &Entry, cpu: CpuId) {
        let pid = self.cpu(entry.cpu).selecting.take();
        let Some(task) = pid.and_then(|pid| self.tasks.get_mut(&pid)) else { return };
        if !matches!(task.place, Place::Running(_)) {
            task.selected = Some(cpu);
            self.now = entry.time;
            self.note_idle_change(cpu);
        }
    }

    /// The CPU has got its first task, if it was idle.
    pub(super) fn note_idle_change(&mut self, cpu: CpuId) {
        let now = self.now;
        if matches!(self.current(cpu), None | Some(0)) {
            self.cpu(cpu).idle_changed = now;
        }
    }

    /// `available_idle_cpu`: the idle task runs, nothing is queued or about to be.
    pub(super) fn idle_cpus(&self) -> CpuMask {
        let mut idle = self.cpus_where(|reader, cpu| matches!(reader.current(cpu), None | Some(0)));
        let taken = |task: &Task| match task.place {
            Place::Queued(cpu) => Some(cpu),
            _ => task.selected,
        };
        self.tasks.values().filter_map(taken).for_each(|cpu| idle.clear(cpu));
        idle
    }

    /// The CPUs that run a task of another class.
    pub(super) fn other_class_cpus(&self) -> CpuMask {
        self.cpus_where(|reader, cpu| !matches!(reader.current(cpu), None | Some(0)) && !reader.current_is_fair(cpu))
    }

    /// The CPUs on which a task of another class waits, as the stopper does between its wakeup and its switch.
    pub(super) fn other_class_waits(&self) -> CpuMask {
        let waits = |task: &Task| match task.place {
            Place::Queued(cpu) if !task.is_fair() => Some(cpu),
            _ => None,
        };
        self.tasks.values().filter_map(waits).collect()
    }

    /// CPUs whose idle state changes around a selection: the records that show it are not ordered with what the
    /// selection read.
    fn changing_cpus(&self, entry: &Entry, until: Nanos, ahead: &Window<'_>) -> CpuMask {
        let since = entry.time.saturating_sub(SEEN_WITHIN);
        let mut changing = self.cpus_where(|reader, cpu| {
            reader.cpus.get(cpu.index()).is_some_and(|view| view.idle_changed > 0 && view.idle_changed >= since)
        });
        let near = |next: &&Entry| next.time <= until + SEEN_WITHIN;
        for next in ahead.look(LookAhead::IdleChanges).take_while(near).filter(|next| next.cpu != entry.cpu) {
            match next.what {
                What::Selected { cpu } if next.time <= until => changing.set(cpu),
                What::Event(Kind::Wakeup { target_cpu: cpu, .. }) if next.time <= until => changing.set(cpu),
                What::Event(Kind::Switch { prev, next: to, .. }) if prev == 0 || to == 0 => changing.set(next.cpu),
                _ => {}
            }
        }
        changing.clear(entry.cpu);
        changing
    }

    fn cpus_where(&self, test: impl Fn(&Reader, CpuId) -> bool) -> CpuMask {
        (0..self.cpus.len() as u32).map(CpuId).filter(|cpu| test(self, *cpu)).collect()
    }
}
