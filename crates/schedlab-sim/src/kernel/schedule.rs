//! __schedule: which task runs next on a CPU, and what the switch costs.

use schedlab_model::{CpuId, TaskId};
use schedlab_policy::procedure::{self, Schedule};
use schedlab_trace::{Kind, Sink, TaskState};

use super::bandwidth::{arm_bandwidth, resume_user_mode_work};
use super::contention::{lock_own_runqueue, touch_next};
use super::effects::Executor;
use super::idle::{enter_idle_state, switch_to_idle};
use super::percpu::Leaving;
use super::segment::{core_changed, mark, poll_lock, segment_end, settle};
use super::speed::release_interrupts;
use super::state::Kernel;
use super::task::{Life, Wait};
use super::tick::start_tick;
use super::trace::Context;
use super::wake::resume_wakeups;
use crate::check::OnCpu;
use crate::machine::{Activity, Machine, Mode, WORK_SHIFT};
use crate::run::{Run, Source};

/// `__schedule` on a CPU.
pub fn schedule<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let now = run.now;
    machine.cpus[cpu.index()].progress(now);
    let leaving = begin_leaving(run, machine, kernel, cpu);
    if machine.shares() {
        lock_own_runqueue(run, machine, kernel, cpu);
    }
    let k = &mut kernel.cpus[cpu.index()];
    if run.is_trace() {
        run.context = Context::Schedule { full: k.need_resched, lazy: k.need_resched_lazy };
    }
    k.marked = false;
    k.need_resched = false;
    k.need_resched_lazy = false;
    k.resched_seen = false;
    k.schedule_paid = false;
    let found = Schedule { leaving, migrate: k.push_away.take(), clock_read: k.clock_read };
    kernel.checks.picked(cpu, now);
    procedure::schedule(&mut Executor { run, machine, kernel, cpu }, cpu, found);
    arm_bandwidth(run, kernel);
    kernel.trace_rest(run, cpu);
}

/// Newidle balancing has incurred its cost: the CPU spends it before it picks. It still counts as running what leaves, so
/// that nobody takes it for idle. Interrupts stay disabled, as in all of `__schedule`.
#[inline]
pub fn begin_newidle<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) -> bool {
    let (c, k) = (&machine.cpus[cpu.index()], &mut kernel.cpus[cpu.index()]);
    if !machine.selection_takes_time() || c.pending == 0 {
        return false;
    }
    // What the stopper has moved away runs on its new CPU already: the stopper is a task that ran in between.
    let leaves = k.curr.is_some_and(|task| kernel.tasks[task.index()].life != Life::Running);
    if !leaves {
        return false;
    }
    k.in_newidle = true;
    settle(run, machine, kernel, cpu);
    true
}

/// The time of newidle balancing is over: the rest of `__schedule`.
#[inline(never)]
pub fn end_newidle<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let k = &mut kernel.cpus[cpu.index()];
    k.in_newidle = false;
    if k.held_interrupts != 0 {
        release_interrupts(run, kernel, cpu);
    }
    let k = &mut kernel.cpus[cpu.index()];
    k.need_resched = false;
    k.need_resched_lazy = false;
    k.resched_seen = false;
    kernel.checks.picked(cpu, run.now);
    procedure::schedule_after_newidle(&mut Executor { run, machine, kernel, cpu }, cpu);
    arm_bandwidth(run, kernel);
    kernel.trace_rest(run, cpu);
}

/// The current task blocks or has exited: what it will do once it is woken.
#[inline(always)]
fn begin_leaving<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) -> Option<Leaving> {
    let k = &mut kernel.cpus[cpu.index()];
    let (leaving, task) = (k.leaving_for.take()?, k.curr?);
    let t = &mut kernel.tasks[task.index()];
    machine.cpus[cpu.index()].segment.work_left = std::mem::take(&mut t.after) << WORK_SHIFT;
    let now = run.now;
    kernel.competitors_changed(cpu, now);
    Some(leaving)
}

/// The flags are cleared after the pick: that is what a trace shows.
#[inline(always)]
fn end_pick<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId) {
    if run.is_trace() {
        kernel.trace_run_times(run, cpu);
        run.context = Context::Task;
    }
}

/// `__schedule` has picked what ran before.
#[inline(always)]
pub fn repicked<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    next: Option<TaskId>,
) {
    end_pick(run, kernel, cpu);
    resume_user_mode_work(run, machine, kernel, cpu);
    match next {
        Some(task) => {
            woken_before_it_left(kernel, task);
            settle(run, machine, kernel, cpu);
        }
        None => enter_idle_state(run, machine, kernel, cpu),
    }
    look_at_wakelist(run, machine, kernel, cpu);
}

/// A task that was woken while `__schedule` was about to switch away from it, and picked again, runs on.
#[inline(always)]
fn woken_before_it_left(kernel: &mut Kernel, task: TaskId) {
    let t = &mut kernel.tasks[task.index()];
    if t.life == Life::Runnable {
        (t.life, t.wait) = (Life::Running, Wait::Nothing);
        kernel.checks.kept(task);
    }
}

/// Wakeups that waited for the CPU to leave `__schedule` continue, and its wakelist is looked at.
#[inline(always)]
fn look_at_wakelist<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if !kernel.cpus[cpu.index()].waiting_wakeups.is_empty() || !kernel.sched.wakelist(cpu).is_empty() {
        complete_wakeups(run, machine, kernel, cpu);
    }
}

#[cold]
fn complete_wakeups<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    resume_wakeups(run, machine, kernel, cpu);
    let waiting = !kernel.sched.wakelist(cpu).is_empty();
    if waiting && run.due(kernel.id, Source::Call, cpu).is_none() {
        run.set_event(kernel.id, Source::Call, cpu, run.now);
    }
}

/// `context_switch`.
#[inline(always)]
pub fn context_switch<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    prev: Option<TaskId>,
    next: Option<TaskId>,
) {
    end_pick(run, kernel, cpu);
    kernel.switches += 1;
    let (prev_pid, prev_prio, prev_state) = match prev {
        Some(task) => switch_out(run, machine, kernel, cpu, task),
        None => (0, 120, TaskState::Running),
    };
    let left = prev.map(|task| (task, how(prev_state)));
    if prev_state == TaskState::Running {
        report_resched(run, kernel, cpu, prev_pid);
    }
    let now = run.now;
    kernel.checks.switched(cpu, left, next, now);
    if let (Some(task), TaskState::Dead) = (prev, prev_state) {
        kernel.release(task);
    }
    kernel.cpus[cpu.index()].curr = next;
    if kernel.is_host {
        run.touch(kernel.id, cpu);
    }
    let (next_pid, next_prio) = next.map_or((0, 120), |task| kernel.name_of(task));
    kernel.emit(run, cpu, Kind::Switch { prev: prev_pid, prev_prio, prev_state, next: next_pid, next_prio });
    match next {
        Some(task) => switch_in(run, machine, kernel, cpu, task, prev.is_none()),
        None => switch_to_idle(run, machine, kernel, cpu),
    }
    look_at_wakelist(run, machine, kernel, cpu);
}

/// A request to reschedule has been honoured.
#[inline(never)]
fn report_resched<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId, pid: i32) {
    if let Some((at, section)) = kernel.cpus[cpu.index()].requested.take().filter(|_| pid != 0) {
        kernel.emit(run, cpu, Kind::Resched { pid, waited: run.now - at, section });
    }
}

/// The task's segment leaves the CPU with it. A task that was woken after it had blocked, while its CPU was still inside
/// `__schedule`, leaves as a sleeper: `__schedule` has read the state before (`prev_state`), counts a voluntary switch
/// (`nvcsw`), and from 5.18 on `sched_switch` shows what it has read. Earlier kernels show the state of the moment, R, which
/// is not modelled.
#[inline(always)]
fn switch_out<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
) -> (i32, i32, TaskState) {
    run.cancel(kernel.id, Source::Segment, cpu);
    let c = &mut machine.cpus[cpu.index()];
    let t = &mut kernel.tasks[task.index()];
    let state = match t.life {
        Life::Running => {
            t.life = Life::Runnable;
            t.nivcsw += 1;
            TaskState::Running
        }
        Life::Dead => TaskState::Dead,
        _ => TaskState::Sleeping,
    };
    if state != TaskState::Running {
        // Overhead that the task incurred before it blocked is the CPU's to finish.
        c.pending += std::mem::take(&mut c.segment.cost_left) >> WORK_SHIFT;
    }
    t.segment = c.segment;
    (t.pid, t.prio, state)
}

/// The task's segment continues on the CPU, after the cost of the switch.
#[inline(always)]
fn switch_in<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
    from_idle: bool,
) {
    let (c, k) = (&mut machine.cpus[cpu.index()], &mut kernel.cpus[cpu.index()]);
    let t = &mut kernel.tasks[task.index()];
    t.life = Life::Running;
    t.wait = Wait::Nothing;
    c.segment = t.segment;
    let same_process = k.process == t.process;
    k.process = t.process;
    let table = if same_process { &machine.costs.switch_thread } else { &machine.costs.switch_process };
    c.pending += table.draw(&mut t.dice);
    if machine.shares() {
        touch_next(machine, kernel, cpu, task);
    }
    let c = &mut machine.cpus[cpu.index()];
    if c.activity != Activity::Busy {
        c.activity = Activity::Busy;
        core_changed(run, machine, kernel, cpu, true);
    }
    if from_idle {
        start_tick(run, kernel, cpu);
    }
    resume_user_mode_work(run, machine, kernel, cpu);
    if let Some(end) = segment_end(run, machine, kernel, cpu) {
        run.set_event(kernel.id, Source::Segment, cpu, end);
    }
    if machine.cpus[cpu.index()].segment.mode == Mode::Spin {
        poll_lock(run, machine, kernel, cpu);
    }
}

/// The current task blocks or has exited: first it gets into `__schedule`, which takes time in which it counts as
/// running.
#[inline(always)]
pub fn begin_block<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, why: Leaving) {
    let (c, k) = (&mut machine.cpus[cpu.index()], &mut kernel.cpus[cpu.index()]);
    k.leaving_for = Some(why);
    if why == Leaving::Sleeps {
        c.segment.mode = Mode::Kernel;
        c.segment.work_left = 0;
    }
    if !machine.costs.schedule.is_nothing() && !std::mem::replace(&mut k.schedule_paid, true) {
        c.segment.cost_left += machine.costs.schedule.draw(&mut c.dice) << WORK_SHIFT;
    } else if k.in_flight.is_none() {
        // With a wakeup under way it gets there when that is over.
        mark(run, kernel, cpu);
    }
}

fn how(state: TaskState) -> OnCpu {
    match state {
        TaskState::Running => OnCpu::Preempted,
        TaskState::Dead => OnCpu::Exited,
        _ => OnCpu::Blocked,
    }
}
