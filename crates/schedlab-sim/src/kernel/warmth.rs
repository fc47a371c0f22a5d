//! A stay of a task with a working set or code on a CPU.

use schedlab_model::{CpuId, TaskId};
use schedlab_trace::{Kind, Sink};

use super::state::Kernel;
use crate::machine::Machine;
use crate::run::Run;

/// The CPU switches to the task.
pub fn begin_stay(machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, task: TaskId) {
    let t = &mut kernel.tasks[task.index()];
    if t.working_set > 0 || t.code.kib > 0 {
        let first = !std::mem::replace(&mut t.has_run, true);
        machine.begin_stay(cpu, t.pid, t.working_set, t.code, first);
    }
}

/// The CPU switches away from the task; everything up to now must be accounted.
pub fn end_stay<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId, task: TaskId) {
    if let Some(refilled) = machine.end_stay(cpu) {
        let pid = kernel.tasks[task.index()].pid;
        kernel.emit(run, cpu, Kind::Refill { pid, kib: refilled.kib as u32, time: refilled.time });
    }
}
