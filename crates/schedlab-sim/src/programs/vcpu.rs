//! The program of a vCPU's thread: run the guest, and when it halts, poll and then block.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_trace::Sink;
use schedlab_workload::{Op, Reg};

use super::position::{Next, Step};
use super::running::Running;
use super::state::Programs;
use crate::kernel::Kernel;
use crate::machine::{Machine, Mode};

/// The register with the length of the halt-polling window.
pub const POLL: Reg = 0;
/// The register with the vCPU's number among those of all guests.
pub const INDEX: Reg = 1;

/// The steps of the program.
const HALT: u32 = 1;
const AGAIN: u32 = 2;
const EXIT: u32 = 3;

/// The program of a vCPU's thread.
pub fn program() -> Vec<Op> {
    vec![Op::VcpuRun, Op::VcpuHalt(POLL), Op::Jump(0), Op::Exit]
}

/// A vCPU's thread leaves the guest for a halt.
pub struct Halted {
    pub cpu: CpuId,
    pub task: TaskId,
    /// How long it polls before it blocks.
    pub window: Nanos,
}

impl Halted {
    /// The thread continues with the halt once its overhead is spent.
    pub fn begin(&self, machine: &mut Machine, programs: &mut Programs) {
        *programs.positions[self.task.index()].register(POLL) = self.window as i64;
        continue_at(programs, self.task, HALT);
        let segment = &mut machine.cpus[self.cpu.index()].segment;
        segment.mode = Mode::Kernel;
        segment.work_left = 0;
    }
}

/// Where a thread that is not in the guest goes on.
#[derive(Clone, Copy, Debug)]
pub enum Then {
    /// It enters the guest.
    Enter,
    /// It exits.
    Exit,
}

/// The thread goes on there once its overhead is spent. If it sleeps, it does so once it is woken.
pub fn go_on(machine: &mut Machine, kernel: &mut Kernel, programs: &mut Programs, task: TaskId, then: Then) {
    let step = match then {
        Then::Enter => AGAIN,
        Then::Exit => EXIT,
    };
    continue_at(programs, task, step);
    let cpu = kernel.sched.cpu_of(task);
    let segment = match kernel.cpus[cpu.index()].curr {
        Some(curr) if curr == task => &mut machine.cpus[cpu.index()].segment,
        _ => &mut kernel.tasks[task.index()].segment,
    };
    segment.mode = Mode::Kernel;
    segment.work_left = 0;
}

fn continue_at(programs: &mut Programs, task: TaskId, step: u32) {
    let position = &mut programs.positions[task.index()];
    position.pc = programs.entries[position.program as usize] + step;
    position.step = Step::Fetch;
}

/// KVM_RUN: half of an exit and entry is the entry.
pub fn begin_run<S: Sink>(x: &mut Running<S>) -> Next {
    let entry = x.machine.draw_entry(&mut x.kernel.tasks[x.task.index()].dice);
    x.machine.charge(x.cpu, entry);
    let segment = x.segment();
    segment.mode = Mode::Guest;
    segment.work_left = 0;
    let position = x.position();
    position.idle_steps = 0;
    position.carry = 0;
    Next::Stop
}

/// `kvm_vcpu_halt` polls while the thread is alone on its runqueue.
pub fn begin_halt<S: Sink>(x: &mut Running<S>, register: Reg) -> Next {
    let k = &x.kernel.cpus[x.cpu.index()];
    let alone = x.kernel.sched.nr_running(x.cpu) <= 1 && !k.need_resched;
    let window = if alone { (*x.register(register)).max(0) as Nanos } else { 0 };
    let until = x.run.now + x.machine.sending_delay(x.cpu) + window;
    let position = x.position();
    position.step = Step::Effect;
    if window == 0 {
        return Next::Work(Mode::Kernel, 0);
    }
    position.idle_steps = 0;
    let segment = x.segment();
    segment.mode = Mode::Poll;
    segment.until = until;
    segment.work_left = 0;
    Next::Stop
}
