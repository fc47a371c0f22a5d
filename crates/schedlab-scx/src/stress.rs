//! Random loads for a scheduler: tasks of several weights that compute, sleep, yield and change their affinities. The
//! watchdog's exit, an error of the core and a bad access are what it looks for.
//!
//! A load follows from its seed, so that a failure can be repeated.

use schedlab_bpf::{BpfError, Btf, Object};

use crate::core::{Exit, TaskNo};
use crate::scheduler::Scheduler;

/// In ns: how far time goes in one step, a tick (CONFIG_HZ=250), the longest sleep.
const STEP: u64 = 250_000;
const TICK: u64 = 4_000_000;
const LONGEST_SLEEP: u64 = 20_000_000;
/// Weights of control groups: nice 0, 19, -20 and others.
const WEIGHTS: [u64; 6] = [100, 100, 100, 1, 8_711, 35];

/// What a random load consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stress {
    /// CPUs, 1 to 64.
    pub cpus: usize,
    /// Tasks.
    pub tasks: usize,
    /// Its duration in ns.
    pub duration: u64,
    /// The seed of all that is random.
    pub seed: u64,
    /// Variables of the scheduler that are set before it starts.
    pub variables: Vec<(String, i64)>,
}

/// The result of a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Why the scheduler has ended; `None`: it has not.
    pub exit: Option<Exit>,
    /// The wakeups of tasks.
    pub wakeups: u64,
    /// The instructions that the scheduler has executed.
    pub instructions: u64,
}

/// Runs a scheduler under a random load.
///
/// # Errors
/// The scheduler cannot be loaded.
pub fn stress(object: &Object, kernel: &Btf, load: &Stress) -> Result<Outcome, BpfError> {
    let mut scheduler = Scheduler::load(object.clone(), kernel, load.cpus, load.seed, &load.variables)?;
    let mut tasks = Vec::new();
    for number in 0..load.tasks {
        let weight = WEIGHTS[scheduler.core.random.below(WEIGHTS.len() as u64) as usize];
        let allowed = affinity(&mut scheduler);
        let task = scheduler.add_task(&format!("task-{number}"), weight, allowed)?;
        // A third of the tasks only computes.
        let sleeps = scheduler.core.random.below(3) > 0;
        tasks.push(Program { task, sleeps, wakes_at: Some(scheduler.core.random.below(LONGEST_SLEEP)) });
    }
    let mut wakeups = 0;
    let mut checked = 0;
    while scheduler.exit().is_none() && scheduler.core.now < load.duration {
        scheduler.core.now += STEP;
        let now = scheduler.core.now;
        for program in &mut tasks {
            wakeups += u64::from(act(&mut scheduler, program));
            scheduler.settle();
        }
        if now % TICK == 0 {
            for cpu in 0..scheduler.core.cpus.len() {
                scheduler.task_tick_scx(cpu);
                scheduler.settle();
            }
        }
        // `scx_watchdog_workfn` runs every half timeout.
        if now - checked >= scheduler.timeout / 2 {
            checked = now;
            scheduler.check_for_timeouts();
        }
    }
    let exit = scheduler.end();
    Ok(Outcome { exit, wakeups, instructions: scheduler.machine.executed() })
}

/// What a task does.
struct Program {
    task: TaskNo,
    sleeps: bool,
    wakes_at: Option<u64>,
}

/// One step of a task; whether it woke up.
fn act(scheduler: &mut Scheduler, program: &mut Program) -> bool {
    let core = &mut scheduler.core;
    let task = program.task;
    if core.random.below(4_000) == 0 {
        let allowed = affinity(scheduler);
        scheduler.set_cpus_allowed(task, allowed);
        return false;
    }
    let cpu = core.tasks[task].cpu;
    if let Some(at) = program.wakes_at {
        if at > core.now {
            return false;
        }
        program.wakes_at = None;
        let from = core.random.below(core.cpus.len() as u64) as usize;
        let sync = core.random.below(4) == 0;
        scheduler.wake_up(task, from, sync);
        return true;
    }
    if core.cpus[cpu].curr != Some(task) {
        return false;
    }
    if program.sleeps && core.random.below(8) == 0 {
        program.wakes_at = Some(core.now + 1 + core.random.below(LONGEST_SLEEP));
        scheduler.block(cpu);
    } else if core.random.below(256) == 0 {
        scheduler.yield_task(cpu);
    }
    false
}

/// Any CPU, in half of the cases; else some, or one.
fn affinity(scheduler: &mut Scheduler) -> u64 {
    let (every, cpus) = (scheduler.core.every_cpu(), scheduler.core.cpus.len() as u64);
    let random = &mut scheduler.core.random;
    let one = 1 << random.below(cpus);
    match random.below(4) {
        0 | 1 => every,
        2 => one,
        _ => (random.next_u64() & every) | one,
    }
}
