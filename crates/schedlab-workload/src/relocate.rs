//! Operations of one workload in the tables of all.

use crate::program::{Label, Op};

impl Op {
    /// The step when the workload's objects begin at `objects` of a longer table, its metrics at `metrics`, and the
    /// program itself at `first`.
    #[must_use]
    pub fn relocated(mut self, objects: u32, metrics: u16, first: Label) -> Op {
        match &mut self {
            Op::Timer { object, .. }
            | Op::TimerDue { object, .. }
            | Op::Read { object, .. }
            | Op::Write { object, .. }
            | Op::Wait(object)
            | Op::Post(object)
            | Op::PostHere(object)
            | Op::GateWait(object)
            | Op::GateOpen(object)
            | Op::GateClose(object)
            | Op::Lock(object)
            | Op::Unlock(object)
            | Op::CpuLock(object)
            | Op::CpuUnlock(object)
            | Op::SpinUnlock(object)
            | Op::Barrier(object)
            | Op::SemWait(object)
            | Op::SemPost(object)
            | Op::CondSignal(object)
            | Op::CondBroadcast(object)
            | Op::FutexWake { object, .. }
            | Op::FutexMismatch(object)
            | Op::FutexLockPi(object)
            | Op::FutexUnlockPi(object)
            | Op::MajorFault { object, .. }
            | Op::Send { object, .. }
            | Op::Receive { object, .. }
            | Op::ListPush(object)
            | Op::KernelUnlock { object, .. }
            | Op::ListTake(object) => *object += objects,
            Op::SpinLock { object, metric } | Op::KernelLock { object, metric } => {
                *object += objects;
                *metric += metrics;
            }
            Op::CondWait { object, mutex } => {
                *object += objects;
                *mutex += objects;
            }
            Op::FutexRequeue { object, to, .. } => {
                *object += objects;
                *to += objects;
            }
            Op::FutexWait { object, expired: to, .. }
            | Op::TryReceive { object, empty: to, .. }
            | Op::SemTryWait { object, none: to } => {
                *object += objects;
                *to += first;
            }
            Op::Sample { metric, .. } | Op::Count { metric, .. } => *metric += metrics,
            Op::Call | Op::Section { .. } | Op::Memory { .. } | Op::Stream { .. } => {}
            Op::Run(_) | Op::RunWall(_) | Op::System(_) | Op::Sleep(_) | Op::SleepUntil(_) | Op::Yield => {}
            Op::Jump(to)
            | Op::JumpBelow { to, .. }
            | Op::DecJump { to, .. }
            | Op::ListPop { empty: to, .. }
            | Op::MailTake { empty: to, .. } => *to += first,
            Op::WaitOwn | Op::PostPeer(_) | Op::SetPeer { .. } | Op::MailPeer { .. } => {}
            Op::Fork { .. } | Op::Exec(_) | Op::Reap | Op::Exit | Op::Finish => {}
            Op::SetNice(_) | Op::SetPolicy(_) | Op::SetAffinity(_) | Op::SetCgroup(_) | Op::SetSlice(_) => {}
            Op::Set(..) | Op::Copy { .. } | Op::AddConst(..) | Op::AddReg { .. } | Op::SubReg { .. } => {}
            Op::MulReg { .. } | Op::DivReg { .. } | Op::IdleTime(_) => {}
            Op::Draw(..)
            | Op::Clock(_)
            | Op::CpuTime(_)
            | Op::UserTime(_)
            | Op::Preemptions(_)
            | Op::VcpuRun
            | Op::VcpuHalt(_) => {}
        }
        self
    }
}
