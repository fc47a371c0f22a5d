//! Operations of user mode: registers, lists, mailboxes, samples.

use schedlab_model::Nanos;
use schedlab_trace::{Kind, Sink};
use schedlab_workload::Op;

use super::objects::Object;
use super::position::Next;
use super::running::Running;
use crate::kernel;

/// Operations on the task's own registers: no time but the carry of a user-mode operation.
pub fn compute<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    let position = &mut x.programs.positions[x.task.index()];
    match op {
        Op::Set(register, value) => *position.register(register) = value,
        Op::Copy { into, from } => *position.register(into) = *position.register(from),
        Op::AddConst(register, value) => {
            *position.register(register) = position.register(register).wrapping_add(value);
        }
        Op::AddReg { into, from } => {
            *position.register(into) = position.register(into).wrapping_add(*position.register(from));
        }
        Op::SubReg { into, from } => {
            *position.register(into) = position.register(into).wrapping_sub(*position.register(from));
        }
        Op::MulReg { into, by } => {
            *position.register(into) = position.register(into).wrapping_mul(*position.register(by));
        }
        Op::DivReg { into, by } => {
            let by = *position.register(by);
            *position.register(into) = position.register(into).checked_div(by).unwrap_or(i64::MAX);
        }
        Op::Draw(register, dist) => *x.register(register) = x.draw(dist) as i64,
        Op::JumpBelow { reg, than, to } => {
            if *position.register(reg) < than {
                return Next::Goto(to);
            }
        }
        _ => return observe(x, op),
    }
    Next::Done
}

/// Operations that read a clock or a counter of the kernel, or report something.
fn observe<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    match op {
        Op::Clock(register) => {
            *x.register(register) = x.run.now as i64;
            x.carry_user_op();
        }
        Op::IdleTime(_) | Op::CpuTime(_) | Op::UserTime(_) => return read_time(x, op),
        Op::Preemptions(register) => *x.register(register) = i64::from(x.task().nivcsw),
        Op::TimerDue { object, into } => {
            let due = match x.object(object) {
                Object::Timer(last) => last.unwrap_or(0),
                _ => 0,
            };
            *x.register(into) = due as i64;
        }
        Op::Sample { metric, reg } => {
            let value = (*x.register(reg)).max(0) as u64;
            let pid = x.task().pid;
            emit(x, Kind::Sample { pid, metric, value });
        }
        Op::Count { metric, count } => {
            let pid = x.task().pid;
            emit(x, Kind::Count { pid, metric, count: u64::from(count) });
        }
        Op::Finish => {
            let workload = x.position().workload as usize;
            if std::mem::take(&mut x.programs.unfinished[workload]) {
                x.run.finished_one();
            }
        }
        _ => return exchange(x, op),
    }
    Next::Done
}

/// System calls that read how long the CPUs were idle, or how long the task ran.
fn read_time<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    let (register, time): (_, Nanos) = match op {
        Op::IdleTime(register) => {
            let now = x.run.now;
            (register, x.machine.cpus.iter().map(|cpu| cpu.idle_at(now)).sum())
        }
        Op::CpuTime(register) => (register, kernel::cpu_time(x.run, x.kernel, x.cpu, x.task)),
        Op::UserTime(register) => (register, kernel::user_time(x.machine, x.kernel, x.cpu, x.task)),
        _ => return Next::Done,
    };
    *x.register(register) = time as i64;
    x.kernel_call(0)
}

fn emit<S: Sink>(x: &mut Running<S>, kind: Kind) {
    let cpu = x.kernel.sched.cpu_of(x.task);
    x.kernel.emit(x.run, cpu, kind);
}

/// Operations on lists, mailboxes and other tasks' registers.
fn exchange<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    x.carry_user_op();
    match op {
        Op::ListPush(object) => {
            let handle = x.task().handle();
            if let Object::List(list) = x.object(object) {
                list.push(handle);
            }
        }
        Op::ListTake(object) => {
            if let Object::List(list) = x.object(object) {
                let taken = std::mem::take(list);
                x.position().stack = taken;
            }
        }
        Op::ListPop { into, empty } => {
            let Some(peer) = x.position().stack.pop() else { return Next::Goto(empty) };
            *x.register(into) = peer.to_register();
        }
        Op::SetPeer { peer, register, from } => {
            let value = *x.register(from);
            if let Some(peer) = x.peer(peer) {
                *x.programs.positions[peer.index()].register(register) = value;
            }
        }
        Op::MailPeer { peer, from } => {
            let value = *x.register(from);
            if let Some(peer) = x.peer(peer) {
                x.programs.positions[peer.index()].mail.push_back(value);
            }
        }
        Op::MailTake { into, empty } => {
            let Some(value) = x.position().mail.pop_front() else { return Next::Goto(empty) };
            *x.register(into) = value;
        }
        _ => {}
    }
    Next::Done
}
