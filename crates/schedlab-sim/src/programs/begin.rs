//! An operation begins: how long it takes, and in which mode.

use schedlab_trace::{Call, Sink};
use schedlab_workload::{Amount, Op, TaskKind};

use super::compute::compute;
use super::kernel_lock::begin_kernel_lock;
use super::lines::Word;
use super::pi;
use super::position::{Next, Step};
use super::queue;
use super::running::Running;
use super::section::begin_section;
use super::vcpu;
use super::{spin, sync};
use crate::machine::Mode;

/// What the operation needs.
pub fn begin<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    match op {
        Op::Run(amount) => Next::Work(Mode::User, x.amount(amount)),
        Op::Jump(to) => Next::Goto(to),
        Op::System(amount) => {
            let work = x.amount(amount);
            x.kernel_call(work)
        }
        Op::RunWall(amount) => begin_wall(x, amount),
        Op::Stream { bytes } => begin_stream(x, bytes),
        Op::Wait(object) => sync::begin_wait(x, Some(object)),
        Op::WaitOwn => sync::begin_wait(x, None),
        Op::Post(object) | Op::PostHere(object) => sync::begin_post(x, object),
        Op::PostPeer(register) => sync::begin_post_peer(x, register),
        Op::Lock(object) => sync::begin_lock(x, object),
        Op::Unlock(object) => sync::begin_unlock(x, object),
        Op::SemWait(object) => sync::begin_sem_wait(x, object),
        Op::SemTryWait { object, none } => sync::sem_try_wait(x, object, none),
        Op::SemPost(object) => sync::begin_sem_post(x, object),
        Op::CpuLock(object) => sync::try_cpu_lock(x, object),
        Op::CpuUnlock(object) => sync::cpu_unlock(x, object),
        Op::GateOpen(_) | Op::GateClose(_) | Op::GateWait(_) | Op::Yield => x.kernel_call(0),
        Op::SpinLock { object, .. } => spin::begin_spin_lock(x, object),
        Op::SpinUnlock(object) => spin::spin_unlock(x, object),
        Op::KernelLock { object, .. } => begin_kernel_lock(x, object),
        Op::KernelUnlock { .. } => Next::Work(Mode::Locked, 0),
        Op::MajorFault { .. } => x.begin_major_fault(),
        Op::Call | Op::Section { .. } | Op::Memory { .. } => begin_section(x, op),
        Op::Reap => begin_reap(x),
        Op::FutexWait { object, .. } => queue::begin_futex_wait(x, object),
        Op::FutexWake { object, .. } | Op::FutexRequeue { object, .. } => x.futex_wake(Word::Object(object)),
        Op::FutexMismatch(object) => x.futex_mismatch(Word::Object(object)),
        Op::FutexUnlockPi(object) => x.futex_wake(Word::Object(object)),
        Op::FutexLockPi(object) => pi::begin_lock(x, object),
        Op::Send { object, from } => queue::begin_send(x, object, from),
        Op::TryReceive { object, into, empty } => queue::try_receive(x, object, into, empty),
        Op::Receive { object, into } => queue::begin_receive(x, object, into),
        Op::Barrier(object) | Op::CondWait { object, .. } => x.futex_wait(Word::Object(object)),
        Op::CondSignal(object) | Op::CondBroadcast(object) => x.futex_wake(Word::Object(object)),
        Op::SetNice(_) | Op::SetPolicy(_) | Op::SetAffinity(_) | Op::SetCgroup(_) | Op::SetSlice(_) => x.kernel_call(0),
        Op::Sleep(_) | Op::SleepUntil(_) | Op::Timer { .. } => {
            let dice = &mut x.kernel.tasks[x.task.index()].dice;
            let program = x.machine.costs.timer_program.draw(dice);
            x.kernel_call(program)
        }
        Op::Fork { kind, .. } => begin_fork(x, kind),
        Op::Exec(_) => {
            x.position().phase = 0;
            x.kernel_call(0)
        }
        Op::Exit => begin_exit(x),
        Op::VcpuRun => vcpu::begin_run(x),
        Op::VcpuHalt(register) => vcpu::begin_halt(x, register),
        _ => compute(x, op),
    }
}

fn begin_fork<S: Sink>(x: &mut Running<S>, kind: TaskKind) -> Next {
    let costs = &x.machine.costs;
    let (table, call) = match kind {
        TaskKind::Process => (&costs.fork_process, x.kernel.points.call(Call::Fork, 0)),
        // Neither copies page tables.
        TaskKind::Thread | TaskKind::Vfork => (&costs.fork_thread, 0),
    };
    Next::Call(call, table.draw(&mut x.kernel.tasks[x.task.index()].dice))
}

fn begin_exit<S: Sink>(x: &mut Running<S>) -> Next {
    let t = &mut x.kernel.tasks[x.task.index()];
    let costs = &x.machine.costs;
    let (table, call) =
        if t.thread { (&costs.exit_thread, 0) } else { (&costs.exit_process, x.kernel.points.call(Call::Exit, 0)) };
    Next::Call(call, table.draw(&mut t.dice))
}

fn begin_reap<S: Sink>(x: &mut Running<S>) -> Next {
    let t = &mut x.kernel.tasks[x.task.index()];
    let table = if t.zombies > 0 { &x.machine.costs.reap } else { &x.machine.costs.reap_wait };
    let cost = table.draw_any(&mut t.dice);
    x.kernel_call(cost)
}

/// As long as it takes one CPU alone.
fn begin_stream<S: Sink>(x: &mut Running<S>, bytes: u32) -> Next {
    match x.machine.memory_of_cpu() {
        Some(rate) => Next::Work(Mode::Stream, (u64::from(bytes) * 1000).div_ceil(u64::from(rate.max(1)))),
        None => x.fail_program("stream: the machine does not say what its memory delivers"),
    }
}

/// The time counts from when the CPU has finished the overhead it has incurred.
fn begin_wall<S: Sink>(x: &mut Running<S>, amount: Amount) -> Next {
    let spin = x.amount(amount);
    let position = &mut x.programs.positions[x.task.index()];
    let c = &mut x.machine.cpus[x.cpu.index()];
    position.carry = 0;
    position.step = Step::Effect;
    c.segment.until = x.run.now + c.pending_wall().unwrap_or(0) + spin;
    c.segment.mode = Mode::Wall;
    c.segment.work_left = 0;
    if spin == 0 {
        return Next::Done;
    }
    position.idle_steps = 0;
    Next::Stop
}
