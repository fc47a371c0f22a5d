//! The running task of a CPU, with the parts of the run that its operations work on.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_trace::{Call, Sink};
use schedlab_workload::{Amount, Workload};

use super::objects::Object;
use super::position::{Next, Position, AMOUNT_MAX};
use super::state::Programs;
use crate::error::SimError;
use crate::kernel::{self, arrival, Handle, Kernel, Task};
use crate::machine::{Arrival, Machine, Mode, Segment, WORK_SHIFT};
use crate::run::Run;

/// What an operation of the running task gets.
pub struct Running<'c, 'r, S: Sink> {
    pub run: &'c mut Run<'r, S>,
    pub machine: &'c mut Machine,
    pub kernel: &'c mut Kernel,
    pub programs: &'c mut Programs,
    pub cpu: CpuId,
    pub task: TaskId,
}

impl<'r, S: Sink> Running<'_, 'r, S> {
    /// The same again, for a call that is not inlined: what such a call gets a reference to has to live in memory, and
    /// the interpreter's own copy is to stay in registers.
    #[inline(always)]
    pub fn reborrow(&mut self) -> Running<'_, 'r, S> {
        Running {
            run: &mut *self.run,
            machine: &mut *self.machine,
            kernel: &mut *self.kernel,
            programs: &mut *self.programs,
            cpu: self.cpu,
            task: self.task,
        }
    }

    /// The task's index in the kernel.
    #[inline]
    pub fn task(&mut self) -> &mut Task {
        &mut self.kernel.tasks[self.task.index()]
    }

    /// Where it stands in its program.
    #[inline]
    pub fn position(&mut self) -> &mut Position {
        &mut self.programs.positions[self.task.index()]
    }

    /// The segment that its CPU executes.
    #[inline]
    pub fn segment(&mut self) -> &mut Segment {
        &mut self.machine.cpus[self.cpu.index()].segment
    }

    /// A register of the task.
    #[inline]
    pub fn register(&mut self, register: u8) -> &mut i64 {
        self.position().register(register)
    }

    pub fn object(&mut self, object: u32) -> &mut Object {
        &mut self.programs.objects[object as usize]
    }

    /// Its workload.
    pub fn workload(&self) -> &Workload {
        &self.programs.workloads[self.programs.positions[self.task.index()].workload as usize]
    }

    /// The living task whose handle is in the register.
    pub fn peer(&mut self, register: u8) -> Option<TaskId> {
        let handle = Handle::from_register(*self.register(register));
        self.kernel.living(handle)
    }

    /// An amount of time, 0 to [`AMOUNT_MAX`].
    pub fn amount(&mut self, amount: Amount) -> Nanos {
        let ns = match amount {
            Amount::Fixed(ns) => ns,
            Amount::Drawn(dist) => self.draw(dist),
            Amount::Reg(register) => (*self.register(register)).max(0) as Nanos,
        };
        ns.min(AMOUNT_MAX)
    }

    /// A draw from one of the workload's distributions.
    pub fn draw(&mut self, dist: u32) -> Nanos {
        self.programs.draw(self.task, dist)
    }

    /// A system call that costs `beyond` more than entering and leaving the kernel.
    pub fn kernel_call(&mut self, beyond: Nanos) -> Next {
        let dice = &mut self.kernel.tasks[self.task.index()].dice;
        Next::Work(Mode::Kernel, self.machine.costs.syscall.draw(dice) + beyond)
    }

    /// The same of a call whose sections were measured.
    pub fn measured_call(&mut self, call: Call, beyond: Nanos) -> Next {
        let dice = &mut self.kernel.tasks[self.task.index()].dice;
        Next::Call(self.kernel.points.call(call, 0), self.machine.costs.syscall.draw(dice) + beyond)
    }

    /// The time at which the CPU is through with the overhead that it has incurred at this instant.
    pub fn local_time(&self) -> Nanos {
        self.arrival().at
    }

    /// The task gets to a lock when its CPU has spent what it has incurred.
    pub fn arrival(&self) -> Arrival {
        arrival(self.run, self.machine, self.cpu)
    }

    /// `try_to_wake_up` with WF_CURRENT_CPU (`wake_up_poll_on_current_cpu`, `complete_on_current_cpu`).
    pub fn wake_on_current_cpu(&mut self, task: TaskId) {
        kernel::wake_on_current_cpu(self.run, self.machine, self.kernel, task, self.cpu);
    }

    /// A user-mode operation: its time joins the next segment.
    pub fn carry_user_op(&mut self) {
        let dice = &mut self.kernel.tasks[self.task.index()].dice;
        self.programs.positions[self.task.index()].carry += self.machine.costs.user_op.draw(dice) << WORK_SHIFT;
    }

    /// The running task calls `try_to_wake_up`.
    pub fn wake(&mut self, task: TaskId, sync: bool) {
        kernel::try_to_wake_up(self.run, self.machine, self.kernel, task, self.cpu, sync);
    }

    /// Ends the run: the task's program did what the kernel refuses.
    pub fn fail_program(&mut self, message: &str) -> Next {
        let (task, step, line) = self.programs.where_is(self.task);
        self.run.fail(SimError::Program { task, step, line, message: message.into() });
        Next::Stop
    }
}
