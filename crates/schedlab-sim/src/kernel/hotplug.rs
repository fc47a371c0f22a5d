//! CPUs that go offline and come back (`cpu_down`, `cpu_up`, kernel/cpu.c; `sched_cpu_deactivate`,
//! kernel/sched/core.c).
//!
//! The CPU is no longer active from the write on: the domains are built anew, cpusets lose it, and it is selected for
//! no task. Its tasks then leave: the running one by the stopper (`balance_push`), queued ones at once, each to the CPU
//! of `select_fallback_rq`; a task whose affinity has no active CPU left may use every CPU from then on, also after the
//! CPU has come back. Sleeping tasks are placed elsewhere when they wake. Once nothing is left, its timers move to the
//! first active CPU (`hrtimers_cpu_dying`), its own kernel threads are parked, and it idles. Left out: what the kernel
//! does meanwhile (`stop_machine`, threads `cpuhp/N`), and that tasks of 5.11 and later leave one after the other as
//! they are picked.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_spec::CpuChange;
use schedlab_trace::Sink;

use super::cpuset::{cpuset_update_active_cpus, next_cpuset, on_cpuset, AGAIN};
use super::hrtimer::{add_timers, migrate_timers};
use super::leave_cpu::leave_cpu;
use super::state::Kernel;
use super::task::Life;
use crate::machine::Machine;
use crate::run::{Run, Source};

impl Kernel {
    /// Whether the CPUs that tasks may use change during the run.
    pub fn has_actions(&self) -> bool {
        self.cpusets.is_some() || self.hotplug.is_some()
    }
}

/// Arms the event of the next change of CPUs or cpusets.
pub fn arm_actions<S: Sink>(run: &mut Run<S>, kernel: &Kernel) {
    let plug = kernel.hotplug.as_ref().and_then(|plug| {
        let again = (!plug.leaving.is_empty()).then_some(run.now + AGAIN);
        plug.later.last().map(|change| change.at).into_iter().chain(again).min()
    });
    if let Some(at) = next_cpuset(kernel, run.now).into_iter().chain(plug).min() {
        run.set_event(kernel.id, Source::Action, CpuId(0), at.max(run.now));
    }
}

/// A cpuset or the state of a CPU is written.
pub fn on_action<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel) {
    on_cpuset(run, machine, kernel);
    if let Some(mut plug) = kernel.hotplug.take() {
        let first_due = plug.later.partition_point(|change| change.at > run.now);
        let due: Vec<CpuChange> = plug.later.split_off(first_due).into_iter().rev().collect();
        kernel.hotplug = Some(plug);
        due.into_iter().for_each(|change| apply(run, machine, kernel, change));
        empty_leaving(run, machine, kernel);
    }
    arm_actions(run, kernel);
}

/// `sched_cpu_deactivate` or `sched_cpu_activate` of some CPUs.
fn apply<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, change: CpuChange) {
    for cpu in change.cpus.iter() {
        let now = kernel.clock(cpu, run.now);
        kernel.sched.set_cpu_active(cpu, change.online, now);
    }
    cpuset_update_active_cpus(run, machine, kernel);
    let Some(plug) = &mut kernel.hotplug else { return };
    if !change.online {
        return plug.leaving.extend(change.cpus.iter());
    }
    plug.leaving.retain(|cpu| !change.cpus.has(*cpu));
    let (back, parked): (Vec<_>, Vec<_>) = plug.parked.drain(..).partition(|(cpu, ..)| change.cpus.has(*cpu));
    plug.parked = parked;
    for cpu in change.cpus.iter() {
        let own = back.iter().filter(|(of, ..)| *of == cpu).map(|(_, timer, deferrable)| (*timer, *deferrable));
        machine.cpus[cpu.index()].progress(run.now);
        add_timers(run, machine, kernel, cpu, own);
    }
}

/// Moves what is left on the CPUs that are no longer active; a CPU without anything is offline.
fn empty_leaving<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel) {
    let leaving = kernel.hotplug.as_ref().map_or_else(Vec::new, |plug| plug.leaving.clone());
    for cpu in leaving {
        push_tasks(run, machine, kernel, cpu);
        if !is_empty(kernel, cpu) {
            continue;
        }
        let to = kernel.sched.active_cpus().lowest().unwrap_or_default();
        let parked = migrate_timers(run, machine, kernel, cpu, to);
        if let Some(plug) = &mut kernel.hotplug {
            plug.leaving.retain(|other| *other != cpu);
            plug.parked.extend(parked.into_iter().map(|(timer, deferrable)| (cpu, timer, deferrable)));
        }
    }
}

/// Whether no task is on the CPU or on its way to it.
fn is_empty(kernel: &Kernel, cpu: CpuId) -> bool {
    let k = &kernel.cpus[cpu.index()];
    let comes = kernel.cpus.iter().any(|other| {
        other.in_flight.is_some_and(|wakeup| wakeup.cpu == cpu) || other.push_away.is_some_and(|(_, dest)| dest == cpu)
    });
    let quiet = k.curr.is_none() && !k.marked && !k.in_newidle && k.in_flight.is_none();
    let waits = k.next_wakeups.is_empty() && k.waiting_wakeups.is_empty() && kernel.sched.wakelist(cpu).is_empty();
    quiet && waits && !comes && kernel.sched.nr_running(cpu) == 0
}

/// Pushes every task that runs or waits on the CPU (`balance_push`), except its own kernel threads, which are waited
/// for.
fn push_tasks<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let here = |task: TaskId| kernel.sched.cpu_of(task) == cpu && !kernel.sched.is_per_cpu_kthread(task);
    let awake = kernel.tasks.iter().filter(|task| matches!(task.life, Life::Runnable | Life::Running) && here(task.id));
    let mut tasks: Vec<(i32, TaskId)> = awake.map(|task| (task.pid, task.id)).collect();
    tasks.sort_unstable();
    for (_, task) in tasks {
        let runs = kernel.cpus[cpu.index()].curr == Some(task);
        let between = match runs {
            true => kernel.cpus[cpu.index()].push_away.is_some(),
            false => kernel.sched.curr(cpu) == Some(task) || !kernel.sched.on_rq(task),
        };
        if between {
            continue;
        }
        let clock: Nanos = kernel.clock_task(cpu, run.now);
        kernel.competitors_changed(cpu, run.now);
        let dest = kernel.sched.select_fallback_rq(task, clock);
        leave_cpu(run, machine, kernel, task, cpu, dest);
    }
}
