//! A switch of a CPU from one task to another, and what it costs.

use schedlab_model::{rarely, CpuId, TaskId};
use schedlab_trace::{Kind, Sink, TaskState};

use super::bandwidth::resume_user_mode_work;
use super::contention::{charge_group_loads, touch_next};
use super::cpufreq::cpufreq_update_util;
use super::idle::{enter_idle_state, switch_to_idle};
use super::numa::use_memory_before_switch;
use super::rate::{begin_stream, core_changed, end_stream};
use super::rseq::rseq_sched_switch_event;
use super::segment::{poll_lock, segment_end, settle};
use super::state::Kernel;
use super::task::{Life, Wait};
use super::tick_sched::tick_nohz_idle_exit;
use super::warmth::{begin_stay, end_stay};
use crate::check::OnCpu;
use crate::machine::{Activity, Machine, Mode, WORK_SHIFT};
use crate::run::{Context, Run, Source};

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
    charge_group_loads(run, machine, kernel, cpu);
    kernel.switches += 1;
    let (prev_pid, prev_prio, prev_state) = match prev {
        Some(task) => switch_out(run, machine, kernel, cpu, task),
        None => (0, 120, TaskState::Running),
    };
    let left = prev.map(|task| (task, how(prev_state)));
    match prev {
        None => kernel.cpus[cpu.index()].requested = None,
        Some(_) if prev_state == TaskState::Running => report_resched(run, kernel, cpu, prev_pid),
        Some(_) => {}
    }
    let now = run.now;
    kernel.checks.switched(cpu, left, next, now);
    if let (Some(task), TaskState::Dead) = (prev, prev_state) {
        kernel.release(task);
    }
    kernel.cpus[cpu.index()].curr = next;
    if rarely(kernel.is_host) {
        run.touch(kernel.id, cpu);
    }
    let (next_pid, next_prio) = next.map_or((0, 120), |task| kernel.name_of(task));
    kernel.emit(run, cpu, Kind::Switch { prev: prev_pid, prev_prio, prev_state, next: next_pid, next_prio });
    match next {
        Some(task) => switch_in(run, machine, kernel, cpu, task, prev.is_none()),
        None => switch_to_idle(run, machine, kernel, cpu),
    }
}

/// A request to reschedule has been honoured.
#[inline(never)]
fn report_resched<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId, pid: i32) {
    if let Some((at, section)) = kernel.cpus[cpu.index()].requested.take() {
        kernel.emit(run, cpu, Kind::Resched { pid, waited: run.now - at, section });
    }
}

/// The task's segment leaves the CPU with it. A task that was woken after it had blocked, while its CPU was still
/// inside `__schedule`, leaves as a sleeper: `__schedule` has read the state before (`prev_state`), counts a voluntary
/// switch (`nvcsw`), and from 5.18 on `sched_switch` shows what it has read. Earlier kernels show the state of the
/// moment, R, which is not modelled.
#[inline(always)]
fn switch_out<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
) -> (i32, i32, TaskState) {
    run.cancel(kernel.id, Source::Segment, cpu);
    if machine.waits_for_memory() && machine.cpus[cpu.index()].segment.mode == Mode::Stream {
        end_stream(run, machine, kernel, cpu);
    }
    if machine.has_warmth() {
        end_stay(run, machine, kernel, cpu, task);
    }
    if rarely(kernel.slice_extension > 0) {
        rseq_sched_switch_event(run, kernel, cpu);
    }
    if rarely(kernel.numa) {
        use_memory_before_switch(run, machine, kernel, cpu, task);
    }
    let c = &mut machine.cpus[cpu.index()];
    let t = &mut kernel.tasks[task.index()];
    t.utime += c.user - kernel.cpus[cpu.index()].user_before;
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
    let (mode, was_idle) = (c.segment.mode, c.activity != Activity::Busy);
    k.user_before = c.user;
    k.longest.forget(run.now);
    let same_process = k.process == t.process;
    k.process = t.process;
    let table = if same_process { &machine.costs.switch_thread } else { &machine.costs.switch_process };
    c.pending += table.draw(&mut t.dice);
    if machine.shares() {
        touch_next(machine, kernel, cpu, task);
    }
    if machine.has_warmth() {
        begin_stay(machine, kernel, cpu, task);
    }
    if was_idle {
        machine.cpus[cpu.index()].activity = Activity::Busy;
        core_changed(run, machine, kernel, cpu, true);
    }
    if from_idle {
        tick_nohz_idle_exit(run, machine, kernel, cpu);
    }
    if rarely(!kernel.sugov.is_empty()) {
        let iowait = std::mem::take(&mut kernel.tasks[task.index()].in_iowait);
        cpufreq_update_util(run, machine, kernel, cpu, iowait);
    }
    if rarely(mode == Mode::Stream) {
        begin_stream(run, machine, kernel, cpu, task);
    }
    resume_user_mode_work(run, machine, kernel, cpu);
    if let Some(end) = segment_end(run, machine, kernel, cpu) {
        run.set_event(kernel.id, Source::Segment, cpu, end);
    }
    if rarely(mode == Mode::Spin) {
        poll_lock(run, machine, kernel, cpu);
    }
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
    charge_group_loads(run, machine, kernel, cpu);
    resume_user_mode_work(run, machine, kernel, cpu);
    match next {
        Some(task) => {
            woken_before_it_left(kernel, task);
            settle(run, machine, kernel, cpu);
        }
        None => enter_idle_state(run, machine, kernel, cpu),
    }
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

fn how(state: TaskState) -> OnCpu {
    match state {
        TaskState::Running => OnCpu::Preempted,
        TaskState::Dead => OnCpu::Exited,
        _ => OnCpu::Blocked,
    }
}
