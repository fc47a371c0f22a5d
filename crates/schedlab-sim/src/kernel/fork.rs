//! Tasks begin: forked by a task, or started from outside.

use schedlab_model::{stream, CpuId, Nanos, Pid, TaskId};
use schedlab_policy::{NumaMemory, TaskAttr};
use schedlab_trace::{Kind, Sink};
use schedlab_workload::{TaskKind, Timers};

use super::contention::lock_tasklist;
use super::entry::irqentry_exit;
use super::lines::TaskLines;
use super::numa::map_memory;
use super::resched::resched_curr;
use super::state::Kernel;
use super::syscalls::{policy_number, SCHED_DEADLINE, SCHED_FIFO};
use super::task::{Handle, Life, Task, Wait};
use super::wake::wake_up_new_task;
use crate::machine::{Code, Dice, Machine, Segment, WORK_SHIFT};
use crate::run::Run;

/// A task of a workload that starts on its own.
#[derive(Debug)]
pub struct Start<'a> {
    pub attr: TaskAttr,
    /// Its name in traces.
    pub name: &'a str,
    pub prio: i32,
    /// Address space.
    pub process: u32,
    pub timer_slack: Nanos,
    pub timers: Timers,
    /// In KiB.
    pub working_set: u32,
    pub code: Code,
    pub memory: Option<NumaMemory>,
    /// Seed of its draws of costs.
    pub seed: u64,
}

/// A shell on the task's first CPU forks it. The shell is not simulated, so what its wakeup costs is not charged.
pub fn start_task<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, start: &Start) -> TaskId {
    let id = add_new(run, kernel, start);
    let cpu = start.attr.cpu;
    machine.cpus[cpu.index()].progress(run.now);
    let child = kernel.tasks[id.index()].pid;
    let resched = kernel.sched.task_fork(id, cpu, kernel.clock_task(cpu, run.now));
    kernel.trace_only(run, cpu, Kind::Fork { parent: 0, child });
    resched_curr(run, machine, kernel, cpu, resched, cpu);
    wake_up_new_task(run, machine, kernel, id, cpu);
    machine.cpus[cpu.index()].pending = 0;
    irqentry_exit(run, machine, kernel, cpu);
    id
}

/// A task that is older than the run and sleeps until a timer that the caller starts.
pub fn add_sleeping<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, start: &Start) -> TaskId {
    let id = add_new(run, kernel, start);
    kernel.sched.fair.forget_load(id);
    let task = &mut kernel.tasks[id.index()];
    task.life = Life::Sleeping;
    task.wait = Wait::Timer;
    id
}

fn add_new<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, start: &Start) -> TaskId {
    let asked = start.attr.affinity;
    let attr = TaskAttr { affinity: kernel.cpus_in_group(start.attr.group, asked), ..start.attr.clone() };
    let id = kernel.sched.add_task(&attr);
    kernel.remember_cpus(id, asked, None);
    if !start.attr.kthread {
        kernel.sched.fair.set_mm(id, u64::from(start.process), false, run.now);
    }
    let pid = if start.attr.kthread { kernel.pids.next_thread() } else { kernel.pids.next() };
    let mut task = new_task(pid, id, start.seed);
    task.prio = start.prio;
    task.process = start.process;
    if let Some(mmap) = kernel.mmap.as_deref_mut().filter(|_| !start.attr.kthread) {
        mmap.starts(start.process);
    }
    task.timer_slack = start.timer_slack;
    task.timers = start.timers;
    task.working_set = start.working_set;
    task.code = start.code;
    task.memory = start.memory;
    add(run, kernel, task, start.name);
    map_memory(run, kernel, start.attr.cpu, id);
    let child = kernel.tasks[id.index()].pid;
    kernel.note(run, start.attr.cpu, "start", |_| describe(child, &start.attr));
    id
}

/// A task that starts on its own, as a trace shows it: attributes, and the number of its group.
fn describe(pid: Pid, attr: &TaskAttr) -> String {
    let policy = match (attr.dl, attr.rt, attr.policy) {
        (Some(_), ..) => SCHED_DEADLINE,
        (_, Some(rt), _) => SCHED_FIFO + u32::from(rt.round_robin),
        // What user space sees of a stopper.
        (None, None, _) if attr.stop => SCHED_FIFO,
        (None, None, policy) => policy_number(policy),
    };
    let (nice, latency, group) = (attr.nice, attr.latency_nice, attr.group.0);
    let slice = attr.slice.unwrap_or(0);
    format!("p={pid} policy={policy} nice={nice} slice={slice} latency={latency} group={group}")
}

/// A child of the running task.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    pub kind: TaskKind,
    /// Its name in traces.
    pub name: &'a str,
    /// In KiB; 0: that of the parent.
    pub working_set: u32,
    /// Seed of its draws of costs.
    pub seed: u64,
}

/// `kernel_clone` by the task that runs on the CPU.
pub fn kernel_clone<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    parent: TaskId,
    child: Child,
) -> Handle {
    let (id, resched) = kernel.sched.sched_fork(parent, kernel.clock_task(cpu, run.now));
    let mut task = new_task(kernel.pids.next(), id, child.seed);
    let p = &mut kernel.tasks[parent.index()];
    p.children += 1;
    task.prio = p.prio;
    task.thread = child.kind == TaskKind::Thread;
    // Forked address spaces are numbered from the top, by task.
    task.process = if child.kind == TaskKind::Process { u32::MAX - task.pid as u32 } else { p.process };
    task.vfork_done = child.kind == TaskKind::Vfork;
    let (process, vforked) = (task.process, task.vfork_done);
    if let Some(mmap) = kernel.mmap.as_deref_mut().filter(|_| child.kind == TaskKind::Thread) {
        mmap.joins(process);
    }
    task.timer_slack = p.timer_slack;
    task.timers = p.timers;
    task.code = p.code;
    task.working_set = if child.working_set > 0 { child.working_set } else { p.working_set };
    task.parent = Some(p.handle());
    let (handle, parent_pid) = (task.handle(), p.pid);
    let now = kernel.clock_task(cpu, run.now);
    kernel.sched.fair.set_mm(id, u64::from(process), vforked, now);
    if child.kind == TaskKind::Process {
        kernel.sched.forget_preferred_nid(id);
    }
    let start = match child.kind {
        TaskKind::Process => &machine.costs.start_process,
        TaskKind::Thread | TaskKind::Vfork => &machine.costs.start_thread,
    };
    task.segment.work_left = start.draw_any(&mut task.dice) << WORK_SHIFT;
    add(run, kernel, task, child.name);
    kernel.remember_cpus(id, None, Some(parent));
    kernel.alive += 1;
    lock_tasklist(run, machine, kernel, cpu);
    kernel.emit(run, cpu, Kind::Fork { parent: parent_pid, child: handle.pid });
    resched_curr(run, machine, kernel, cpu, resched, cpu);
    wake_up_new_task(run, machine, kernel, id, cpu);
    handle
}

fn new_task(pid: Pid, id: TaskId, seed: u64) -> Task {
    Task {
        id,
        pid,
        prio: 120,
        life: Life::New,
        wait: Wait::Nothing,
        blocked_at: 0,
        segment: Segment::EMPTY,
        after: 0,
        parent: None,
        thread: false,
        vfork_done: false,
        children: 0,
        zombies: 0,
        nivcsw: 0,
        children_time: 0,
        utime: 0,
        children_utime: 0,
        process: 0,
        timer_slack: 0,
        timers: Timers::Hrtimer,
        memory_home: None,
        in_iowait: false,
        working_set: 0,
        code: Code::default(),
        has_run: false,
        memory: None,
        memory_used: 0,
        dice: Dice::new(stream(seed, "cost")),
        lines: TaskLines::default(),
    }
}

/// Adds the task, in a new place or in that of a dead task.
fn add<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, task: Task, name: &str) {
    run.name(kernel.id, task.pid, name);
    kernel.checks.created(task.id);
    match kernel.tasks.get_mut(task.id.index()) {
        Some(place) => *place = task,
        None => kernel.tasks.push(task),
    }
}
