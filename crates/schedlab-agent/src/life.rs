//! Creation and exit of tasks: threads, forked processes, and the initial processes of a run.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use rustix::thread::futex::{self, Flags};
use schedlab_model::Nanos;
use schedlab_workload::{TaskSpec, REGISTERS};

use crate::attributes;
use crate::clock;
use crate::exec::Worker;
use crate::launch;
use crate::shared_state::{Failure, SharedState};
use crate::sys::{self, Forked};
use crate::task::Slot;

/// The first register that a child inherits.
const INHERITED: usize = 4;
/// The stack size of threads; the interpreter needs little.
const STACK: usize = 64 << 10;

/// The number of threads of this process that still run a task, including the main thread.
static LIVE_THREADS: AtomicU32 = AtomicU32::new(0);

/// Whether this process has more than one thread.
pub fn has_several_threads() -> bool {
    LIVE_THREADS.load(Relaxed) > 1
}

/// An initial task of the run.
#[derive(Clone, Copy, Debug)]
pub struct InitialTask {
    /// The id of the task.
    pub id: u32,
    /// The key of its random streams.
    pub key: u64,
    /// Its start time, in run time.
    pub at: Nanos,
}

/// Copies to a child what it inherits from its parent.
pub fn inherit(parent: &Slot, child: &Slot, workload: usize, program: u32) {
    child.runs.store((workload as u64) << 32 | u64::from(program), Relaxed);
    for reg in INHERITED..REGISTERS {
        child.registers[reg].store(parent.registers[reg].load(Relaxed), Relaxed);
    }
}

/// Starts a task as a thread of this process. The error is an errno.
pub fn spawn_thread(shared: &'static SharedState, id: u32, key: u64, parent: Option<u32>) -> Result<(), i32> {
    LIVE_THREADS.fetch_add(1, AcqRel);
    let main = move || {
        let mut worker = Worker::new(shared, id, key);
        set_comm(shared, id);
        worker.run();
        end(shared, id, parent);
        thread_done();
    };
    spawn(main)
}

fn spawn(main: impl FnOnce() + Send + 'static) -> Result<(), i32> {
    let spawned = std::thread::Builder::new().stack_size(STACK).spawn(main);
    spawned.map(drop).map_err(|error| {
        LIVE_THREADS.fetch_sub(1, AcqRel);
        error.raw_os_error().unwrap_or(libc::EAGAIN)
    })
}

/// Starts a task as a process. The error is an errno.
pub fn spawn_process(shared: &'static SharedState, id: u32, key: u64, parent: u32) -> Result<(), i32> {
    match sys::fork() {
        Err(error) => Err(error.raw_os_error().unwrap_or(libc::EAGAIN)),
        Ok(Forked::Parent(_)) => Ok(()),
        Ok(Forked::Child) => {
            LIVE_THREADS.store(1, Release);
            let mut worker = Worker::new(shared, id, key);
            set_comm(shared, id);
            worker.run();
            end(shared, id, Some(parent));
            thread_done();
            wait_for_threads();
            sys::exit_now(0);
        }
    }
}

/// Runs an initial process with its tasks, of which the first is its main thread. Never returns.
pub fn run_initial_process(shared: &'static SharedState, tasks: &[InitialTask]) -> ! {
    LIVE_THREADS.store(1, Release);
    let Some((main, others)) = tasks.split_first() else { sys::exit_now(0) };
    for task in others.iter().copied() {
        LIVE_THREADS.fetch_add(1, AcqRel);
        if let Err(error) = spawn(move || run_initial_task(shared, task)) {
            shared.fail(task.id, 0, Failure::Fork, error);
        }
    }
    run_initial_task(shared, *main);
    wait_for_threads();
    sys::exit_now(0);
}

/// Runs an initial task: sets its attributes, waits for the start of the run and then for its own start time.
fn run_initial_task(shared: &'static SharedState, task: InitialTask) {
    let InitialTask { id, key, at } = task;
    let mut worker = Worker::new(shared, id, key);
    let spec = spec_of(shared, id);
    let prepared = spec.map_or(Ok(()), |spec| prepare(shared, spec));
    if let Err((why, errno)) = prepared {
        shared.fail(id, 0, why, errno);
    }
    let control = shared.control;
    control.ready.fetch_add(1, AcqRel);
    shared.wake_supervisor();
    while control.started.load(Acquire) == 0 {
        let _ = futex::wait(&control.started, Flags::empty(), 0, None);
    }
    if prepared.is_ok() {
        clock::sleep_until(control.begin.load(Relaxed) + at);
        let workload = worker.slot.runs().0;
        match &shared.real[workload] {
            None => worker.run(),
            Some(real) => {
                launch::run_program(shared, id, real, shared.duration);
                shared.finish(workload);
            }
        }
    }
    end(shared, id, None);
    thread_done();
}

/// The specification of a task; `None` if it was forked.
#[must_use]
pub fn spec_of(shared: &SharedState, id: u32) -> Option<&TaskSpec> {
    let slot = &shared.slots[id as usize];
    let index = slot.spec.load(Relaxed).checked_sub(1)?;
    shared.workloads.get(slot.runs().0)?.tasks.get(index as usize)
}

fn prepare(shared: &SharedState, spec: &TaskSpec) -> Result<(), (Failure, i32)> {
    if let (Some(groups), Some(path)) = (&shared.groups, &spec.cgroup) {
        let entered = groups.enter(path);
        entered.map_err(|error| (Failure::Cgroup, error.raw_os_error().unwrap_or(0)))?;
    }
    attributes::name(&spec.name);
    attributes::timer_slack(spec.timer_slack)?;
    if let Some(mask) = &spec.affinity {
        attributes::affinity(&shared.cpu_set(mask))?;
    }
    if spec.nice != 0 {
        attributes::nice(spec.nice)?;
    }
    if spec.policy != schedlab_workload::Policy::Normal {
        attributes::policy(spec.policy)?;
    }
    match spec.slice {
        Some(slice) if slice > 0 => attributes::slice(slice),
        _ => Ok(()),
    }
}

/// Sets the comm of a forked task to the name of its program, unless it inherited that name.
fn set_comm(shared: &SharedState, id: u32) {
    let (workload, program) = shared.slots[id as usize].runs();
    let name = shared.workloads[workload].programs.get(program).map_or("", |program| program.name.as_str());
    let same = rustix::thread::name().is_ok_and(|now| now.as_bytes() == &name.as_bytes()[..name.len().min(15)]);
    if !same {
        attributes::name(name);
    }
}

/// Records the kernel's statistics of a task that exits, and wakes its parent if it waits.
fn end(shared: &SharedState, id: u32, parent: Option<u32>) {
    let slot = &shared.slots[id as usize];
    let usage = sys::thread_usage();
    slot.cpu_ns.store(usage.cpu_ns, Relaxed);
    slot.voluntary.store(usage.voluntary, Relaxed);
    slot.involuntary.store(usage.involuntary, Relaxed);
    slot.dead.store(1, Release);
    shared.task_exited();
    if let Some(parent) = parent {
        let parent = &shared.slots[parent as usize];
        parent.exited.fetch_add(1, SeqCst);
        if parent.reaping.load(SeqCst) != 0 {
            let _ = futex::wake(&parent.exited, Flags::empty(), 1);
        }
    }
}

fn thread_done() {
    if LIVE_THREADS.fetch_sub(1, AcqRel) == 1 {
        let _ = futex::wake(&LIVE_THREADS, Flags::PRIVATE, 1);
    }
}

fn wait_for_threads() {
    loop {
        let live = LIVE_THREADS.load(Acquire);
        if live == 0 {
            return;
        }
        let _ = futex::wait(&LIVE_THREADS, Flags::PRIVATE, live, None);
    }
}
