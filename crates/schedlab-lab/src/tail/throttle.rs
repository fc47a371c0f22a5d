//! Which waiting tasks have no runtime left: their group's quota is used up, real-time throttling is in force on their
//! CPU, or their deadline reservation is. No event of a trace shows it, so the scheduler is asked after each instant.
//!
//! Left out: the deadline server of the fair class. While it takes precedence over a real-time task, a task runs.

use std::cell::RefCell;
use std::rc::Rc;

use schedlab_model::{CpuId, KernelId, Nanos, Pid};
use schedlab_policy::decision::Action;
use schedlab_sim::{Detail, SimError, Watch};
use schedlab_spec::RunSpec;
use schedlab_trace::{Digest, Event, Flags, Sink, Tee};

use crate::erased::ErasedSession;

use super::kernel::Kernel;
use super::names::Names;
use super::reduce::Reduction;

const REAL_TIME: &str = "the real-time class";
const DEADLINE: &str = "its deadline reservation";

/// The digest and the reduction of a run.
pub type Sinks = Tee<Digest, Reduction>;

/// Sinks that are read while the run is in progress.
#[derive(Clone)]
struct Shared(Rc<RefCell<Sinks>>);

impl Sink for Shared {
    fn event(&mut self, event: &Event) {
        self.0.borrow_mut().event(event);
    }

    fn name(&mut self, kernel: KernelId, pid: Pid, name: &str) {
        self.0.borrow_mut().name(kernel, pid, name);
    }

    fn is_trace(&self) -> bool {
        true
    }

    fn takes_trace_only(&self) -> bool {
        false
    }

    fn flags(&mut self, flags: Flags) {
        self.0.borrow_mut().flags(flags);
    }
}

/// Runs the specification. Returns the sinks, and when the run ended.
pub fn run<W: Watch>(spec: &RunSpec, sinks: Sinks, watch: &W) -> Result<(Sinks, Nanos), SimError> {
    let shared = Shared(Rc::new(RefCell::new(sinks)));
    let mut sink = shared.clone();
    let mut erased: &mut dyn Sink = &mut sink;
    let mut session = ErasedSession::new(spec, &mut erased);
    session.record(Detail::Decisions);
    let kernel = session.kernel_id().index();
    shared.0.borrow_mut().1.watch_throttling(kernel);
    let mut over = false;
    while !over {
        over = session.step(watch)?.is_some();
        let changed = session.decided().fold(false, |any, kept| any | changes_runtime(kept.decision.action));
        let mut sinks = shared.0.borrow_mut();
        let (tasks, names) = sinks.1.kernel_and_names(kernel);
        note_throttling(&session, changed, tasks, names);
    }
    let end = session.now();
    drop(session);
    drop(sink);
    let sinks = match Rc::try_unwrap(shared.0) {
        Ok(sinks) => sinks.into_inner(),
        Err(_) => unreachable!("the session has ended, which alone had the other one"),
    };
    Ok((sinks, end))
}

/// Whether the decision may change which tasks have runtime.
pub fn changes_runtime(action: Action) -> bool {
    matches!(action, Action::Throttle(_) | Action::Unthrottle(_) | Action::Leave(_))
}

/// Looks at the tasks whose runtime may have changed in the last instant: all that wait if a decision has `changed` it,
/// else those that were enqueued.
pub fn note_throttling(session: &ErasedSession<'_>, changed: bool, kernel: &mut Kernel, names: &mut Names) {
    let enqueued = kernel.take_enqueued();
    for pid in if changed { kernel.waiting() } else { enqueued } {
        let by = out_of_runtime(session, pid).map(|name| names.number(&name));
        kernel.throttle(session.now(), pid, by);
    }
}

/// What has no runtime left for the task.
fn out_of_runtime(session: &ErasedSession<'_>, pid: Pid) -> Option<String> {
    let sched = session.sched();
    let task = session.task_of(pid)?;
    if let Some(group) = sched.fair.view().throttled_by(task) {
        return session.groups().find(|(number, _)| *number == group.0).map(|(_, path)| path);
    }
    let cpu: CpuId = sched.cpu_of(task);
    if sched.rt.policy(task).is_some() && sched.rt.is_throttled(cpu) {
        return Some(REAL_TIME.to_owned());
    }
    sched.dl.is_throttled(task).then(|| DEADLINE.to_owned())
}
