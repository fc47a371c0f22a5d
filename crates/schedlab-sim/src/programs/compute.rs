//! Operations of user mode: registers, lists, mailboxes, samples.

use schedlab_model::Nanos;
use schedlab_trace::{Kind, Sink};
use schedlab_workload::Op;

use super::objects::Object;
use super::position::Next;
use super::running::Running;
use crate::kernel;
use crate::machine::WORK_SHIFT;

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
        Op::IdleTime(register) => {
            let now = x.run.now;
            let idle: Nanos = x.machine.cpus.iter().map(|cpu| cpu.idle_at(now)).sum();
            *x.register(register) = idle as i64;
            return x.kernel_call(0);
        }
        Op::Draw(register, dist) => *x.register(register) = x.draw(dist) as i64,
        Op::Clock(register) => {
            *position.register(register) = x.run.now as i64;
            let dice = &mut x.kernel.tasks[x.task.index()].dice;
            position.carry += x.machine.costs.user_op.draw(dice) << WORK_SHIFT;
        }
        Op::CpuTime(register) => {
            let time = kernel::cpu_time(x.run, x.kernel, x.cpu, x.task);
            *x.register(register) = time as i64;
            return x.kernel_call(0);
        }
        Op::UserTime(register) => {
            let time = kernel::user_time(x.machine, x.kernel, x.cpu, x.task);
            *x.register(register) = time as i64;
            return x.kernel_call(0);
        }
        Op::Preemptions(register) => *x.register(register) = i64::from(x.task().nivcsw),
        Op::TimerDue { object, into } => {
            let due = match x.object(object) {
                Object::Timer(last) => last.unwrap_or(0),
                _ => 0,
            };
            *x.register(into) = due as i64;
        }
        Op::JumpBelow { reg, than, to } => {
            if *position.register(reg) < than {
                return Next::Goto(to);
            }
        }
        Op::Sample { metric, reg } => {
            let value = (*position.register(reg)).max(0) as u64;
            let pid = x.task().pid;
            emit(x, Kind::Sample { pid, metric, value });
        }
        Op::Count { metric, count } => {
            let pid = x.task().pid;
            emit(x, Kind::Count { pid, metric, count: u64::from(count) });
        }
        Op::Finish => {
            let workload = position.workload as usize;
            if std::mem::take(&mut x.programs.unfinished[workload]) {
                x.run.finished_one();
            }
        }
        _ => return exchange(x, op),
    }
    Next::Done
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
