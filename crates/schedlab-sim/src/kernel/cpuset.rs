//! The CPUs that control groups allow their tasks (`cpuset.cpus`), and changes of them while tasks run.
//!
//! kernel/cgroup/cpuset.c and `__set_cpus_allowed_ptr` of 6.1.192, 6.12.117 and 7.2.13. A group has its own CPUs within
//! its parent's, or its parent's if it has none of them (`effective_cpus`); of these only active CPUs count. A task may
//! use those CPUs of its group that it requested, or all of them if none remains; up to 6.1 a change of the group's
//! CPUs replaces the requests of its tasks. A task that runs on a CPU that is no longer allowed is moved by the stopper
//! at once, a queued task directly, a sleeping one when it wakes (`select_task_rq`, `select_fallback_rq`). The task
//! that writes the file is not simulated, so a change costs nothing. Left out: partitions (`cpuset.cpus.partition`),
//! which rebuild the domains, memory nodes, and deadline tasks.

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId, USEC};
use schedlab_policy::fair::GroupId;
use schedlab_trace::Sink;

use super::leave_cpu::leave_cpu;
use super::state::Kernel;
use super::syscalls::confine_current;
use super::task::Life;
use crate::machine::Machine;
use crate::run::Run;

/// A task that is being moved is tried again after this time, in which no cost is charged; in the kernel the writer
/// waits for it.
pub const AGAIN: Nanos = 10 * USEC;

impl Kernel {
    /// The initial affinity of a task of the group that requests these CPUs.
    pub fn cpus_in_group(&self, group: GroupId, asked: Option<CpuMask>) -> Option<CpuMask> {
        match &self.cpusets {
            Some(sets) => Some(sets.allowed(group, asked.as_ref())),
            None => asked,
        }
    }

    /// Records the affinity that a new task requested; a forked task inherits the request of its parent.
    pub fn remember_cpus(&mut self, task: TaskId, asked: Option<CpuMask>, parent: Option<TaskId>) {
        if let Some(sets) = &mut self.cpusets {
            let asked = parent.map_or(asked, |parent| sets.asked(parent));
            sets.ask(task, asked);
        }
    }

    /// The CPUs that `sched_setaffinity` leaves a task; `None`: the kernel refuses it (EINVAL).
    pub fn cpus_of_affinity(&mut self, task: TaskId, wanted: CpuMask) -> Option<CpuMask> {
        let group = self.sched.fair.group_of(task);
        if wanted.and(self.sched.active_cpus()).is_empty() {
            return None;
        }
        let Some(sets) = &mut self.cpusets else { return Some(wanted) };
        let mask = wanted.and(&sets.effective(group));
        (!mask.is_empty()).then(|| {
            sets.ask(task, Some(wanted));
            mask
        })
    }
}

/// `cpuset_attach` of the task that runs on the CPU and has moved to another group. True: it leaves, as after
/// [`set_affinity`](super::set_affinity).
pub fn attach_current<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId, task: TaskId) -> bool {
    let group = kernel.sched.fair.group_of(task);
    let Some(sets) = &mut kernel.cpusets else { return false };
    if !sets.keeps_asked {
        sets.ask(task, None);
    }
    let mask = sets.allowed(group, sets.asked(task).as_ref());
    confine_current(run, kernel, cpu, task, mask)
}

/// When the next change is due.
pub fn next_cpuset(kernel: &Kernel, now: Nanos) -> Option<Nanos> {
    let sets = kernel.cpusets.as_ref()?;
    let next = sets.later.last().map(|(at, ..)| *at);
    let again = (!sets.waiting.is_empty()).then_some(now + AGAIN);
    next.into_iter().chain(again).min()
}

/// `cpuset_update_active_cpus`: the tasks of the groups whose CPUs change with the active ones.
pub fn cpuset_update_active_cpus<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel) {
    let active = *kernel.sched.active_cpus();
    let Some(sets) = &mut kernel.cpusets else { return };
    let changed = sets.set_active(active);
    for task in kernel.tasks.iter().filter(|task| task.life != Life::Dead) {
        if changed.contains(&kernel.sched.fair.group_of(task.id)) && !sets.waiting.contains(&task.id) {
            sets.waiting.push(task.id);
            if !sets.keeps_asked {
                sets.ask(task.id, None);
            }
        }
    }
    on_cpuset(run, machine, kernel);
}

/// `cpuset.cpus` of some groups is written (`update_tasks_cpumask`).
pub fn on_cpuset<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel) {
    let Some(mut sets) = kernel.cpusets.take() else { return };
    let mut tasks = std::mem::take(&mut sets.waiting);
    while sets.later.last().is_some_and(|(at, ..)| *at <= run.now) {
        let Some((_, group, cpus)) = sets.later.pop() else { break };
        sets.own.insert(group, cpus);
        for index in 0..kernel.tasks.len() {
            let task = &kernel.tasks[index];
            let lives = !matches!(task.life, Life::Dead);
            if lives && sets.is_within(kernel.sched.fair.group_of(task.id), group) && !tasks.contains(&task.id) {
                tasks.push(task.id);
                if !sets.keeps_asked {
                    sets.ask(task.id, None);
                }
            }
        }
    }
    sets.count_cpus(&mut kernel.sched.fair);
    kernel.cpusets = Some(sets);
    // In the order of pids, since the indices of dead tasks are reused in an arbitrary order.
    tasks.sort_by_key(|task| kernel.tasks[task.index()].pid);
    for task in tasks {
        attach(run, machine, kernel, task);
    }
}

/// Gives the task the affinity that its group allows.
fn attach<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, task: TaskId) {
    let group = kernel.sched.fair.group_of(task);
    let Some(sets) = &mut kernel.cpusets else { return };
    let mask = sets.allowed(group, sets.asked(task).as_ref());
    let cpu = kernel.sched.cpu_of(task);
    let runs = kernel.cpus[cpu.index()].curr == Some(task);
    // Between two CPUs: woken and not yet enqueued, or about to be moved already.
    let busy = kernel.tasks[task.index()].life == Life::Waking
        || runs && kernel.cpus[cpu.index()].push_away.is_some()
        || !runs && kernel.sched.curr(cpu) == Some(task);
    if busy {
        sets.waiting.push(task);
        return;
    }
    let clock = kernel.clock_task(cpu, run.now);
    kernel.competitors_changed(cpu, run.now);
    // The writer is no task of the simulation; it is assumed to run on the first CPU.
    let writer = kernel.sched.active_cpus().lowest().unwrap_or_default();
    if let Some(dest) = kernel.sched.set_affinity(task, Some(mask), writer, clock) {
        leave_cpu(run, machine, kernel, task, cpu, dest);
    }
}
