//! An operation takes effect, once its time has been spent.

use schedlab_model::Nanos;
use schedlab_trace::Sink;
use schedlab_workload::{Amount, Op, TimerMode};

use super::attributes::change;
use super::block::{wait_and_retry, wait_once};
use super::kernel_lock::kernel_lock;
use super::objects::Object;
use super::pi;
use super::position::Next;
use super::queue;
use super::running::Running;
use super::spawn::{exec, fork};
use super::wait_queue::Queue;
use super::wait_queue_head::READERS;
use super::{spin, sync};
use crate::kernel::{self, Wait};

/// The effect of any operation but reads, writes, sleeps and plain work.
pub fn effect<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    match op {
        Op::Wait(_) | Op::WaitOwn | Op::Post(_) | Op::PostHere(_) | Op::PostPeer(_) => sync::futex_effect(x, op),
        Op::Sleep(amount) => sleep(x, amount),
        Op::Lock(object) => sync::acquire(x, object),
        Op::Unlock(object) => sync::wake_mutex_waiter(x, object),
        Op::CpuLock(object) => sync::try_cpu_lock(x, object),
        Op::KernelLock { object, metric } => kernel_lock(x, object, metric),
        Op::SpinLock { object, metric } => spin::spin_lock(x, object, metric),
        Op::SemWait(_) | Op::SemPost(_) | Op::Barrier(_) => sync::sync_effect(x, op),
        Op::CondWait { .. } | Op::CondSignal(_) | Op::CondBroadcast(_) => sync::sync_effect(x, op),
        Op::FutexWait { .. } | Op::FutexWake { .. } | Op::FutexRequeue { .. } => queue::futex_queue_effect(x, op),
        Op::FutexLockPi(object) => pi::lock(x, object),
        Op::FutexUnlockPi(object) => pi::unlock(x, object),
        Op::Send { object, .. } => queue::wake_receiver(x, object),
        Op::Receive { object, into } => queue::receive(x, object, into),
        Op::GateWait(_) | Op::GateOpen(_) | Op::GateClose(_) => gate_effect(x, op),
        Op::MajorFault { object, service } => x.wait_for_disk(object, service),
        Op::SleepUntil(register) => {
            let until = (*x.register(register)).max(0) as Nanos;
            sleep_until(x, until)
        }
        Op::Timer { object, period, mode } => timer(x, object, period, mode),
        Op::Yield => {
            kernel::do_sched_yield(x.run, x.kernel, x.cpu);
            Next::Done
        }
        Op::Fork { program, kind, into } => fork(x, program, kind, into),
        Op::Exec(program) => exec(x, program),
        Op::Reap => reap(x),
        Op::VcpuHalt(_) => wait_once(x, Wait::Halt),
        Op::Exit => {
            kernel::do_exit(x.run, x.machine, x.kernel, x.cpu, x.task);
            Next::Stop
        }
        Op::SetNice(_) | Op::SetPolicy(_) | Op::SetAffinity(_) | Op::SetCgroup(_) | Op::SetSlice(_) => change(x, op),
        _ => Next::Done,
    }
}

fn gate_effect<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    let (Op::GateWait(object) | Op::GateOpen(object) | Op::GateClose(object)) = op else { return Next::Done };
    let task = x.task;
    let (queue, shares) = (Queue { object, side: READERS }, x.machine.shares());
    if shares && matches!(op, Op::GateWait(_)) {
        // poll() enters the queue, and leaves it when it has been woken.
        x.change_wait_queue(queue);
    }
    let Object::Gate { open, waiting } = x.object(object) else { return Next::Done };
    match op {
        Op::GateWait(_) if *open => {}
        Op::GateWait(_) => {
            waiting.push(task);
            return wait_and_retry(x, Wait::Object(object));
        }
        Op::GateOpen(_) => {
            *open = true;
            // __pollwait's add_wait_queue: the last to come is first.
            let waiting = std::mem::take(waiting);
            if shares {
                x.lock_wait_queue(queue, &waiting);
            }
            for waiter in waiting.into_iter().rev() {
                x.wake(waiter, true);
            }
        }
        _ => *open = false,
    }
    Next::Done
}

/// The task sleeps for so long.
#[inline(never)]
pub fn sleep<S: Sink>(x: &mut Running<S>, amount: Amount) -> Next {
    let soft = x.run.now + x.amount(amount);
    sleep_to(x, soft)
}

fn sleep_to<S: Sink>(x: &mut Running<S>, soft: Nanos) -> Next {
    kernel::start_timer(x.run, x.machine, x.kernel, x.cpu, x.task, soft);
    wait_once(x, Wait::Timer)
}

/// A timer whose latest time has passed fires at once: the call returns without blocking.
fn sleep_until<S: Sink>(x: &mut Running<S>, soft: Nanos) -> Next {
    if soft.saturating_add(x.task().timer_slack) <= x.run.now {
        return Next::Done;
    }
    sleep_to(x, soft)
}

/// rt-app's timer event: the next expiry is one period after the last; a missed one is not waited for.
fn timer<S: Sink>(x: &mut Running<S>, object: u32, period: Amount, mode: TimerMode) -> Next {
    let period = x.amount(period);
    let now = x.run.now;
    let Object::Timer(last) = x.object(object) else { return Next::Done };
    let next = mode.expiry(last.unwrap_or(now).saturating_add(period), period, now);
    let missed = next <= now;
    *last = Some(if missed && mode == TimerMode::Relative { now } else { next });
    if missed {
        return Next::Done;
    }
    sleep_to(x, next)
}

fn reap<S: Sink>(x: &mut Running<S>) -> Next {
    let t = x.task();
    if t.zombies > 0 {
        t.zombies -= 1;
        kernel::lock_tasklist(x.run, x.machine, x.kernel, x.cpu);
        return Next::Done;
    }
    if t.children == 0 {
        return x.fail_program("reap: the task has no child left to wait for");
    }
    wait_and_retry(x, Wait::Child)
}
