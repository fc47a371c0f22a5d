//! __schedule: which task runs next on a CPU, and what the switch costs.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_trace::{Kind, Sink, TaskState};

use super::balance::apply_moves;
use super::bandwidth::{arm_bandwidth, resume_user_mode_work};
use super::hrtick::hrtick_start_fair;
use super::idle::{enter_idle_state, switch_to_idle};
use super::percpu::Leaving;
use super::resched::resched_curr;
use super::rt::{pull_rt_task, push_rt_tasks};
use super::segment::{core_changed, mark, poll_lock, segment_end, settle};
use super::state::Kernel;
use super::task::{Life, Wait};
use super::tick::start_tick;
use super::wake::finish_deferred_wakeups;
use crate::check::OnCpu;
use crate::machine::{Activity, Machine, Mode, WORK_SHIFT};
use crate::run::{Run, Source};

/// `__schedule` on a CPU.
pub fn schedule<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    machine.cpus[cpu.index()].progress(run.now);
    let clock = kernel.sched.schedule_clock(cpu, kernel.clock_task(cpu, run.now));
    let decided = kernel.sched.decided();
    // A skipped update leaves what the last wakeup read, which was after its beginning.
    let clock = (clock + kernel.cpus[cpu.index()].clock_read).min(run.now);
    try_to_block_task(run, machine, kernel, cpu, clock);
    let c = &mut kernel.cpus[cpu.index()];
    c.marked = false;
    c.need_resched = false;
    c.need_resched_lazy = false;
    c.resched_seen = false;
    c.schedule_paid = false;
    let (prev, away) = (c.curr, c.push_away.take());
    let now = run.now;
    run.checks(kernel.id).picked(cpu, now);
    let stopped = away.is_some() || kernel.sched.active_balance_pending(cpu);
    if stopped {
        cpu_stopper_thread(run, machine, kernel, cpu, away);
    }
    if kernel.sched.rt.in_use() {
        pull_rt_task(run, machine, kernel, cpu);
    }
    // The stopper that pushed has updated the clock.
    let clock = if stopped { kernel.clock_task(cpu, now) } else { clock };
    let next = kernel.sched.pick_next_task(cpu, clock).or_else(|| newidle_balance(run, machine, kernel, cpu));
    kernel.sched.date_decisions(decided, now);
    if prev == next {
        resume_user_mode_work(run, machine, kernel, cpu);
        match next {
            Some(_) => settle(run, machine, kernel, cpu),
            None => enter_idle_state(run, machine, kernel, cpu),
        }
    } else {
        context_switch(run, machine, kernel, cpu, prev, next);
    }
    let c = &kernel.cpus[cpu.index()];
    if !c.deferred_wakeups.is_empty() || !c.wakelist.is_empty() {
        complete_wakeups(run, machine, kernel, cpu);
    }
    hrtick_start_fair(run, kernel, cpu);
    arm_bandwidth(run, kernel);
    if kernel.sched.rt.in_use() {
        push_rt_tasks(run, machine, kernel, cpu);
    }
}

/// The stopper's work on the CPU: the current task is migrated to where it may run, active balancing pushes it.
#[inline(never)]
fn cpu_stopper_thread<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    away: Option<(TaskId, CpuId)>,
) {
    if let Some((task, dest)) = away {
        migrate_task(run, machine, kernel, cpu, task, dest);
    }
    if kernel.sched.active_balance_pending(cpu) {
        let pushed = kernel.sched.active_load_balance_cpu_stop(cpu, kernel.clock_task(cpu, run.now));
        apply_moves(run, machine, kernel, cpu, &pushed);
    }
}

/// `__migrate_task` by the stopper.
fn migrate_task<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
    dest: CpuId,
) {
    let resched = kernel.sched.move_task(task, dest, kernel.clock_task(cpu, run.now));
    let (pid, prio) = kernel.name_of(task);
    run.emit(kernel.id, cpu, Kind::Migrate { pid, prio, orig_cpu: cpu, dest_cpu: dest });
    resched_curr(run, machine, kernel, dest, resched, cpu);
}

/// `newidle_balance`: what the CPU runs now that it had nothing to run.
#[inline(never)]
fn newidle_balance<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
) -> Option<TaskId> {
    if !kernel.cpus[cpu.index()].wakelist.is_empty() {
        return None;
    }
    let moves = kernel.sched.sched_balance_newidle(cpu, kernel.clock(cpu, run.now));
    apply_moves(run, machine, kernel, cpu, &moves);
    let came = moves.moved.iter().any(|(task, _)| kernel.sched.cpu_of(*task) == cpu);
    if came {
        return kernel.sched.pick_next_task(cpu, kernel.clock_task(cpu, run.now));
    }
    None
}

/// The CPU is through `__schedule`: wakeups that waited for it are completed, and its wakelist is looked at.
#[cold]
fn complete_wakeups<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    finish_deferred_wakeups(run, machine, kernel, cpu);
    let waiting = !kernel.cpus[cpu.index()].wakelist.is_empty();
    if waiting && run.due(kernel.id, Source::Call, cpu).is_none() {
        run.set_event(kernel.id, Source::Call, cpu, run.now);
    }
}

/// `context_switch`.
#[inline(always)]
fn context_switch<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    prev: Option<TaskId>,
    next: Option<TaskId>,
) {
    kernel.switches += 1;
    let (prev_pid, prev_prio, prev_state) = match prev {
        Some(task) => switch_out(run, machine, kernel, cpu, task),
        None => (0, 120, TaskState::Running),
    };
    let left = prev.map(|task| (task, how(prev_state)));
    let now = run.now;
    run.checks(kernel.id).switched(cpu, left, next, now);
    if let (Some(task), TaskState::Dead) = (prev, prev_state) {
        kernel.release(task);
    }
    kernel.cpus[cpu.index()].curr = next;
    let (next_pid, next_prio) = next.map_or((0, 120), |task| kernel.name_of(task));
    run.emit(kernel.id, cpu, Kind::Switch { prev: prev_pid, prev_prio, prev_state, next: next_pid, next_prio });
    match next {
        Some(task) => switch_in(run, machine, kernel, cpu, task, prev.is_none()),
        None => switch_to_idle(run, machine, kernel, cpu),
    }
}

/// The task's segment leaves the CPU with it.
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
            TaskState::Running
        }
        Life::Dead => TaskState::Dead,
        Life::Runnable => TaskState::Running,
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
    if c.activity != Activity::Busy {
        c.activity = Activity::Busy;
        core_changed(run, machine, kernel, cpu, true);
    }
    if from_idle {
        kernel.sched.idle_exit(cpu, kernel.clock_task(cpu, run.now));
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
    if machine.costs.schedule.is_nothing() || std::mem::replace(&mut k.schedule_paid, true) {
        return mark(run, kernel, cpu);
    }
    c.segment.cost_left += machine.costs.schedule.draw(&mut c.dice) << WORK_SHIFT;
}

/// `try_to_block_task`, of a current task that blocks or has exited.
fn try_to_block_task<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, clock: Nanos) {
    let k = &mut kernel.cpus[cpu.index()];
    let (Some(why), Some(task)) = (k.leaving_for.take(), k.curr) else { return };
    let t = &mut kernel.tasks[task.index()];
    machine.cpus[cpu.index()].segment.work_left = std::mem::take(&mut t.after) << WORK_SHIFT;
    let now = run.now;
    run.checks(kernel.id).fair.changed(cpu, now);
    kernel.sched.block(task, why == Leaving::Exits, clock);
    if why == Leaving::Exits {
        kernel.sched.fair.task_dead(task);
    }
}

fn how(state: TaskState) -> OnCpu {
    match state {
        TaskState::Running => OnCpu::Preempted,
        TaskState::Dead => OnCpu::Exited,
        _ => OnCpu::Blocked,
    }
}
