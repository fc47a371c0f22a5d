//! A process replaces its program (fs/exec.c, and `sched_exec` in kernel/sched/core.c).

use schedlab_model::{CpuId, TaskId};
use schedlab_policy::WakeKind;
use schedlab_trace::Sink;

use super::effects::charge_selection;
use super::numa::map_memory;
use super::segment::mark;
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::Run;

/// `sched_exec` of the task that runs on the CPU, before its memory is replaced: it has the least to lose by a move
/// now. True: it leaves for another CPU at the next `__schedule` (the stopper's work).
pub fn sched_exec<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    task: TaskId,
) -> bool {
    let now = kernel.clock_task(cpu, run.now);
    let selection = kernel.sched.select_task_rq(task, cpu, WakeKind::Exec, now);
    charge_selection(run, machine, kernel, cpu, task, &selection);
    if selection.cpu == cpu {
        return false;
    }
    kernel.cpus[cpu.index()].push_away = Some((task, selection.cpu));
    mark(run, kernel, cpu);
    true
}

/// `begin_new_exec`: a new address space and a new name.
pub fn begin_new_exec<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId, task: TaskId, name: &str) {
    let t = &mut kernel.tasks[task.index()];
    // Address spaces of forked and of replaced programs are numbered from the top, by task.
    t.process = u32::MAX - t.pid as u32;
    t.thread = false;
    let pid = t.pid;
    kernel.cpus[cpu.index()].process = t.process;
    let (process, now) = (u64::from(t.process), kernel.clock_task(cpu, run.now));
    kernel.sched.fair.set_mm(task, process, false, now);
    map_memory(run, kernel, cpu, task);
    run.name(kernel.id, pid, name);
}
