//! How tasks come into being and end: threads, forked processes, and the processes that the run starts with.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use rustix::thread::futex::{self, Flags};
use schedlab_model::Nanos;
use schedlab_workload::{TaskSpec, REGISTERS};

use crate::attributes;
use crate::clock;
use crate::exec::Worker;
use crate::program::launch;
use crate::sys::{self, Forked};
use crate::task::Slot;
use crate::world::{Failure, World};

/// First register a child inherits.
const INHERITED: usize = 4;
/// The interpreter needs little.
const STACK: usize = 64 << 10;

/// Threads of this process that still run a task, the main one included.
static LIVE: AtomicU32 = AtomicU32::new(0);

/// A task that the run starts with.
#[derive(Clone, Copy, Debug)]
pub struct First {
    /// Its id.
    pub id: u32,
    /// Its streams' key.
    pub key: u64,
    /// When it starts, in run time.
    pub at: Nanos,
}

/// What a child takes from its parent.
pub fn inherit(parent: &Slot, child: &Slot, workload: usize, program: u32) {
    child.runs.store((workload as u64) << 32 | u64::from(program), Relaxed);
    for reg in INHERITED..REGISTERS {
        child.registers[reg].store(parent.registers[reg].load(Relaxed), Relaxed);
    }
}

/// Starts a task as a thread of this process. The error is the system's.
pub fn spawn_thread(world: &'static World, id: u32, key: u64, parent: Option<u32>) -> Result<(), i32> {
    LIVE.fetch_add(1, AcqRel);
    let main = move || {
        let mut worker = Worker::new(world, id, key);
        call_by_program(world, id);
        worker.run();
        end(world, id, parent);
        leave();
    };
    spawn(main)
}

fn spawn(main: impl FnOnce() + Send + 'static) -> Result<(), i32> {
    let spawned = std::thread::Builder::new().stack_size(STACK).spawn(main);
    spawned.map(drop).map_err(|error| {
        LIVE.fetch_sub(1, AcqRel);
        error.raw_os_error().unwrap_or(libc::EAGAIN)
    })
}

/// Starts a task as a process. The error is the system's.
pub fn spawn_process(world: &'static World, id: u32, key: u64, parent: u32) -> Result<(), i32> {
    match sys::fork() {
        Err(error) => Err(error.raw_os_error().unwrap_or(libc::EAGAIN)),
        Ok(Forked::Parent(_)) => Ok(()),
        Ok(Forked::Child) => {
            LIVE.store(1, Release);
            let mut worker = Worker::new(world, id, key);
            call_by_program(world, id);
            worker.run();
            end(world, id, Some(parent));
            leave();
            wait_for_threads();
            sys::exit_now(0);
        }
    }
}

/// A process whose tasks the run starts with: the first is its main thread. Never returns.
pub fn first_process(world: &'static World, tasks: &[First]) -> ! {
    LIVE.store(1, Release);
    let Some((main, others)) = tasks.split_first() else { sys::exit_now(0) };
    for task in others.iter().copied() {
        LIVE.fetch_add(1, AcqRel);
        if let Err(error) = spawn(move || first_task(world, task)) {
            world.fail(task.id, 0, Failure::Fork, error);
        }
    }
    first_task(world, *main);
    wait_for_threads();
    sys::exit_now(0);
}

/// A task of the start: takes on its attributes, waits for the run to begin, then for its own time.
fn first_task(world: &'static World, task: First) {
    let First { id, key, at } = task;
    let mut worker = Worker::new(world, id, key);
    let spec = spec_of(world, id);
    let prepared = spec.map_or(Ok(()), |spec| prepare(world, spec));
    if let Err((why, errno)) = prepared {
        world.fail(id, 0, why, errno);
    }
    let control = world.control;
    control.ready.fetch_add(1, AcqRel);
    world.ring();
    while control.started.load(Acquire) == 0 {
        let _ = futex::wait(&control.started, Flags::empty(), 0, None);
    }
    if prepared.is_ok() {
        clock::sleep_until(control.begin.load(Relaxed) + at);
        let workload = worker.slot.runs().0;
        match &world.real[workload] {
            None => worker.run(),
            Some(real) => {
                launch::drive(world, id, real, world.duration);
                world.finish(workload);
            }
        }
    }
    end(world, id, None);
    leave();
}

/// The entry of the workload's tasks that a task came from.
#[must_use]
pub fn spec_of(world: &World, id: u32) -> Option<&TaskSpec> {
    let slot = &world.slots[id as usize];
    let index = slot.spec.load(Relaxed).checked_sub(1)?;
    world.workloads.get(slot.runs().0)?.tasks.get(index as usize)
}

fn prepare(world: &World, spec: &TaskSpec) -> Result<(), (Failure, i32)> {
    if let (Some(groups), Some(path)) = (&world.groups, &spec.cgroup) {
        let entered = groups.enter(path);
        entered.map_err(|error| (Failure::Cgroup, error.raw_os_error().unwrap_or(0)))?;
    }
    attributes::name(&spec.name);
    attributes::timer_slack(spec.timer_slack)?;
    if let Some(mask) = &spec.affinity {
        attributes::affinity(&world.cpu_set(mask))?;
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

/// A forked task has its program's name, unless its parent already had that.
fn call_by_program(world: &World, id: u32) {
    let (workload, program) = world.slots[id as usize].runs();
    let name = world.workloads[workload].programs.get(program).map_or("", |program| program.name.as_str());
    let same = rustix::thread::name().is_ok_and(|now| now.as_bytes() == &name.as_bytes()[..name.len().min(15)]);
    if !same {
        attributes::name(name);
    }
}

/// The task is over: what the kernel counted for it is kept, its parent is told.
fn end(world: &World, id: u32, parent: Option<u32>) {
    let slot = &world.slots[id as usize];
    let usage = sys::thread_usage();
    slot.cpu_ns.store(usage.cpu_ns, Relaxed);
    slot.voluntary.store(usage.voluntary, Relaxed);
    slot.involuntary.store(usage.involuntary, Relaxed);
    slot.dead.store(1, Release);
    world.gone();
    if let Some(parent) = parent {
        let parent = &world.slots[parent as usize];
        parent.exited.fetch_add(1, SeqCst);
        if parent.reaping.load(SeqCst) != 0 {
            let _ = futex::wake(&parent.exited, Flags::empty(), 1);
        }
    }
}

fn leave() {
    if LIVE.fetch_sub(1, AcqRel) == 1 {
        let _ = futex::wake(&LIVE, Flags::PRIVATE, 1);
    }
}

fn wait_for_threads() {
    loop {
        let live = LIVE.load(Acquire);
        if live == 0 {
            return;
        }
        let _ = futex::wait(&LIVE, Flags::PRIVATE, live, None);
    }
}
