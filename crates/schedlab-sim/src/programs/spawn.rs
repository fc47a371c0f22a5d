//! The creation of tasks: those of the workloads at the start, forks later.

use std::cmp::Reverse;
use std::sync::Arc;

use schedlab_model::{CpuId, Nanos};
use schedlab_policy::fair::GroupId;
use schedlab_policy::{NumaMemory, TaskAttr};
use schedlab_trace::{Call, Sink};
use schedlab_workload::{identity, Amount, Op, TaskKind, TaskSpec, Workload};

use super::block::wait_once;
use super::position::{Next, Position};
use super::remote::boot_remotes;
use super::running::Running;
use super::state::{PlannedStart, Programs};
use crate::error::SimError;
use crate::kernel::{self, Kernel, Wait};
use crate::machine::{Code, Machine};
use crate::run::{Run, Source};

/// The most tasks of a kernel that are alive at a time: memory that a fork bomb cannot exceed, about 300 MB. The
/// default of the kernel's own limit, `pid_max`, is 32,768.
pub const TASKS_MAX: u32 = 1 << 18;
/// First register that a child inherits from its parent.
const INHERITED: usize = 4;

/// Plans the start of every workload's own tasks.
pub fn boot<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, programs: &mut Programs) {
    let workloads = Arc::clone(&programs.workloads);
    let tasks: usize = workloads.iter().flat_map(|workload| &workload.tasks).map(|spec| spec.count as usize).sum();
    if tasks > TASKS_MAX as usize {
        return run.fail(SimError::TooManyAtStart { tasks, limit: TASKS_MAX });
    }
    for (w, workload) in workloads.iter().enumerate() {
        for (s, spec) in workload.tasks.iter().enumerate() {
            for instance in 0..spec.count {
                let (time, order) = when(programs, w, spec, instance);
                programs.starts.push(PlannedStart { time, order, workload: w as u16, spec: s as u32, instance });
                kernel.alive += u32::from(!workload.kernel_threads);
            }
        }
    }
    if workloads.iter().any(|workload| workload.kernel_threads) {
        kernel.pids.keep(kernel.alive, kernel.cpus.len());
    }
    // The next one is the last.
    programs.starts.sort_unstable_by_key(|start| Reverse(*start));
    boot_remotes(run, kernel, programs);
    run.unfinished += programs.unfinished.iter().filter(|unfinished| **unfinished).count() as u32;
    arm_start(run, kernel, programs);
}

fn when(programs: &Programs, workload: usize, spec: &TaskSpec, instance: u32) -> (Nanos, u64) {
    let delay = spec.delay + programs.phases[workload];
    if programs.noise && spec.jitter {
        let name = &programs.workloads[workload].name;
        let (late, rank) = identity::start_jitter(programs.seed, name, &spec.name, instance);
        return (delay + late, rank);
    }
    let rank = u64::from(programs.ties.rank(delay, workload as u32));
    (delay, rank << 32 | programs.starts.len() as u64)
}

fn arm_start<S: Sink>(run: &mut Run<S>, kernel: &Kernel, programs: &Programs) {
    if let Some(next) = programs.starts.last().map(|start| start.time) {
        run.set_event(kernel.id, Source::Start, CpuId(0), next.max(run.now));
    }
}

/// Starts every task whose time has come.
pub fn on_start<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, programs: &mut Programs) {
    while let Some(start) = programs.starts.last().copied().filter(|start| start.time <= run.now) {
        programs.starts.pop();
        start_task(run, machine, kernel, programs, start);
    }
    arm_start(run, kernel, programs);
}

fn start_task<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    programs: &mut Programs,
    start: PlannedStart,
) {
    let workloads = Arc::clone(&programs.workloads);
    let workload = &workloads[start.workload as usize];
    let spec = &workload.tasks[start.spec as usize];
    let base = programs.bases[start.workload as usize];
    let key = identity::first_key(&workload.name, &spec.name, start.instance);
    let attr = TaskAttr {
        nice: spec.nice,
        policy: kernel::fair_policy(spec.policy).unwrap_or_default(),
        rt: kernel::rt_policy(spec.policy).filter(|_| !spec.stopper),
        stop: spec.stopper,
        dl: kernel::dl_policy(spec.policy),
        latency_nice: spec.latency_nice.unwrap_or(0),
        slice: spec.slice,
        affinity: spec.affinity,
        cpu: first_cpu(programs, workload, spec, kernel),
        kthread: workload.kernel_threads,
        group: if workload.kernel_threads {
            GroupId::ROOT
        } else {
            kernel.cgroups.of(spec.cgroup.as_deref(), start.workload as usize)
        },
        ..TaskAttr::default()
    };
    if let Some(dl) = attr.dl {
        if let Some(message) = kernel::refused(kernel, None, attr.affinity.as_ref(), dl) {
            return run.fail(SimError::Deadline { at: run.now, task: spec.name.clone(), line: None, message });
        }
    }
    let new = kernel::Start {
        attr,
        name: &spec.name,
        prio: kernel::prio(spec.policy, spec.nice),
        process: base.process + spec.process,
        timer_slack: spec.timer_slack,
        timers: spec.timers,
        working_set: spec.working_set,
        code: Code { kib: spec.code, of: start.workload.into() },
        memory: spec.memory.map(|memory| NumaMemory {
            private: memory.private,
            shared: memory.shared,
            pass: memory.pass,
            node: memory.node,
            huge: memory.huge,
        }),
        seed: programs.seed ^ key,
    };
    let mut position = programs.start_of(start.workload, spec.program, key);
    position.registers = spec.registers;
    if workload.kernel_threads {
        return add_thread(run, machine, kernel, programs, &new, position);
    }
    let id = kernel::start_task(run, machine, kernel, &new);
    programs.add(id, position);
}

/// A thread of the kernel is older than the run: the sleep with which its program begins is under way.
fn add_thread<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    programs: &mut Programs,
    new: &kernel::Start,
    mut position: Position,
) {
    let first = programs.code.get(position.pc as usize).copied();
    position.pc += 1;
    position.resumed = true;
    let id = kernel::add_sleeping(run, kernel, new);
    programs.add(id, position);
    let sleep = match first {
        Some(Op::Sleep(Amount::Fixed(sleep))) => sleep,
        Some(Op::Sleep(Amount::Drawn(dist))) => programs.draw(id, dist),
        _ => 0,
    };
    kernel::start_timer(run, machine, kernel, new.attr.cpu, id, run.now + sleep);
    machine.cpus[new.attr.cpu.index()].pending = 0;
}

/// The parent, a shell, is on a CPU that the seed draws. A thread of the kernel starts on its first one.
fn first_cpu(programs: &mut Programs, workload: &Workload, spec: &TaskSpec, kernel: &Kernel) -> CpuId {
    let (nr_cpus, active) = (kernel.cpus.len(), kernel.sched.active_cpus());
    if workload.kernel_threads {
        return spec.affinity.and_then(|mask| mask.lowest()).unwrap_or_default();
    }
    let cpu = CpuId(if programs.noise { programs.placement.below(nr_cpus as u64) as u32 } else { 0 });
    let allowed = spec.affinity.map_or(*active, |mask| mask.and(active));
    if allowed.has(cpu) {
        return cpu;
    }
    let next = allowed.iter_from(cpu).next();
    next.or_else(|| active.lowest()).unwrap_or(cpu)
}

/// fork or clone by the running task; its register `into` gets the child's handle.
pub fn fork<S: Sink>(x: &mut Running<S>, program: u32, kind: TaskKind, into: u8) -> Next {
    if x.kernel.alive >= TASKS_MAX {
        let (at, (task, step, line)) = (x.run.now, x.programs.where_is(x.task));
        x.run.fail(SimError::TooManyTasks { at, task, step, line, limit: TASKS_MAX });
        return Next::Stop;
    }
    if x.kernel.sched.dl.policy(x.task).is_some() {
        return x.fail_program("the kernel refuses fork to a SCHED_DEADLINE task (EAGAIN)");
    }
    let parent = x.position();
    parent.forked += 1;
    let (workload, key) = (parent.workload, identity::child_key(parent.key, parent.forked));
    let inherited: [i64; schedlab_workload::REGISTERS] = parent.registers;
    let list = &x.programs.workloads[workload as usize].programs;
    let (name, working_set) =
        list.get(program as usize).map_or(("", 0), |program| (program.name.as_str(), program.working_set));
    let child = kernel::Child { kind, name, working_set, seed: x.programs.seed ^ key };
    let handle = kernel::kernel_clone(x.run, x.machine, x.kernel, x.cpu, x.task, child);
    let mut position: Position = x.programs.start_of(workload, program, key);
    position.registers[INHERITED..].copy_from_slice(&inherited[INHERITED..]);
    x.programs.add(handle.task, position);
    *x.register(into) = handle.to_register();
    match kind {
        TaskKind::Vfork => wait_once(x, Wait::Vfork),
        TaskKind::Process | TaskKind::Thread => Next::Done,
    }
}

/// `execve` by the running task: it is balanced (`sched_exec`), loads the program, and continues at its start.
pub fn exec<S: Sink>(x: &mut Running<S>, program: u32) -> Next {
    let phase = x.position().phase;
    x.position().phase = phase + 1;
    if phase == 0 && kernel::sched_exec(x.run, x.machine, x.kernel, x.cpu, x.task) {
        // The rest of the call follows on the other CPU.
        return Next::Stop;
    }
    if phase <= 1 {
        x.position().phase = 2;
        // exec_mmap() comes when the program has been opened, which is the smaller part of the cost.
        kernel::mm_release(x.run, x.machine, x.kernel, x.cpu, x.task);
        let dice = &mut x.kernel.tasks[x.task.index()].dice;
        let load = x.machine.costs.exec.draw_any(dice);
        if load > 0 {
            return Next::Call(x.kernel.points.call(Call::Exec, 0), load);
        }
    }
    let workload = x.programs.positions[x.task.index()].workload as usize;
    let workloads = Arc::clone(&x.programs.workloads);
    let name = workloads[workload].programs.get(program as usize).map_or("", |program| program.name.as_str());
    kernel::begin_new_exec(x.run, x.kernel, x.cpu, x.task, name);
    let program = x.programs.bases[workload].program + program;
    let entry = x.programs.entries[program as usize];
    x.position().program = program;
    Next::Goto(entry)
}
