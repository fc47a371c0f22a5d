//! The running task blocks, or leaves its call.

use schedlab_model::Nanos;
use schedlab_trace::Sink;

use super::objects::Object;
use super::position::{Next, Step};
use super::running::Running;
use crate::kernel::{self, Leaving, Life, Wait};

/// The running task stops until it is woken. It then continues with `step` of its operation.
pub fn block<S: Sink>(x: &mut Running<S>, wait: Wait, step: Step) {
    let costs = &x.machine.costs;
    let after = match wait {
        Wait::Nothing | Wait::Halt | Wait::Mutex(_) | Wait::MmapLock | Wait::Vfork => None,
        Wait::Timer => Some(&costs.timer_resume),
        Wait::Child => Some(&costs.reap),
        Wait::Own => Some(&costs.futex_resume),
        Wait::Object(object) => match &x.programs.objects[object as usize] {
            Object::Channel(channel) if channel.is_socket() => Some(&costs.socket_resume),
            Object::Channel(_) => Some(&costs.pipe_resume),
            Object::Gate { .. } => None,
            Object::Disk(_) => Some(&costs.fault),
            _ => Some(&costs.futex_resume),
        },
    };
    let after = after.map_or(0, |cost| cost.draw_any(&mut x.kernel.tasks[x.task.index()].dice));
    block_for(x, wait, step, after);
}

/// The same of a task that first spends `after` once it is woken.
#[inline(always)]
pub fn block_for<S: Sink>(x: &mut Running<S>, wait: Wait, step: Step, after: Nanos) {
    let t = &mut x.kernel.tasks[x.task.index()];
    t.after = after;
    t.life = Life::Sleeping;
    t.wait = wait;
    t.blocked_at = x.run.now;
    let position = x.position();
    position.step = step;
    position.resumed = true;
    kernel::begin_block(x.run, x.machine, x.kernel, x.cpu, Leaving::Sleeps);
}

/// Blocks the running task; when woken it repeats the effect of its operation.
pub fn wait_and_retry<S: Sink>(x: &mut Running<S>, wait: Wait) -> Next {
    block(x, wait, Step::Effect);
    Next::Stop
}

/// Blocks the running task; when woken it continues with its next operation.
pub fn wait_once<S: Sink>(x: &mut Running<S>, wait: Wait) -> Next {
    x.position().pc += 1;
    block(x, wait, Step::Fetch);
    Next::Stop
}

/// The operation is over. If it was a system call that sees a resched flag on its way out (`exit_to_user_mode`), the
/// overhead so far is spent first, then comes `__schedule` (see [`kernel::segment_end`]): true.
#[inline(always)]
pub fn leave_call<S: Sink>(x: &mut Running<S>, called: bool) -> bool {
    let seen = exit_to_user(x, called);
    x.position().advance() || seen
}

/// The same, for an operation that continues elsewhere in the program.
#[inline(always)]
pub fn exit_to_user<S: Sink>(x: &mut Running<S>, called: bool) -> bool {
    if called {
        kernel::resume_user_mode_work(x.run, x.machine, x.kernel, x.cpu);
    }
    let c = &mut x.kernel.cpus[x.cpu.index()];
    let seen = called & (c.need_resched | c.need_resched_lazy);
    if seen {
        c.resched_seen = true;
    }
    seen
}
