//! A queue of the fair class on which each test sets what it needs.

use schedlab_model::{CpuId, Nanos, TaskId, Vruntime};
use schedlab_policy::fair::{Dequeue, Enqueue, Fair, GroupId, TaskState, WakeFlags};
use schedlab_policy::{KernelConfig, Resched, TaskAttr, Version};

pub const CPU: CpuId = CpuId(0);
pub const SLEEP: Dequeue =
    Dequeue { sleep: true, special: false, throttle: false, save: false, delayed: false, migrating: false };
pub const WAKE: Enqueue = Enqueue { wakeup: true, migrated: false, initial: false, delayed: false };
/// Where the test queues start; far from the kernel's initial value so that nothing sits at 0.
pub const BASE: u64 = 1 << 40;

/// A class with 8 CPUs' tunables and 250 Hz; features as "NAME" or "NO_NAME".
pub fn fair(version: &str, features: &[&str]) -> Fair {
    let mut config = KernelConfig::new(Version::find(version).expect("a modelled version"), 8, 250);
    for feature in features {
        let on = !feature.starts_with("NO_");
        config.set_feature(feature.trim_start_matches("NO_"), on).expect("a modelled feature");
    }
    let mut fair = Fair::new(config);
    fair.restore().min_vruntime(GroupId::ROOT, CPU, Vruntime(BASE));
    fair
}

pub fn add(fair: &mut Fair, nice: i8) -> TaskId {
    fair.add_task(&TaskAttr { nice, ..TaskAttr::default() })
}

/// A task asleep at a distance from [`BASE`].
pub fn sleeper(fair: &mut Fair, nice: i8, at: i64) -> TaskId {
    let task = add(fair, nice);
    place(fair, task, at);
    task
}

pub fn place(fair: &mut Fair, task: TaskId, at: i64) {
    let state = fair.view().task_state(task);
    fair.restore().task(task, TaskState { vruntime: Vruntime(BASE).plus(at), ..state });
}

/// A task that runs from time 0 at [`BASE`].
pub fn runner(fair: &mut Fair, nice: i8) -> TaskId {
    let task = sleeper(fair, nice, 0);
    fair.enqueue_task(CPU, task, WAKE, 0);
    assert_eq!(fair.pick_next_task(CPU, 0), Some(task));
    task
}

pub fn at(fair: &Fair, task: TaskId) -> i64 {
    fair.entity(task).vruntime.since(Vruntime(BASE))
}

pub fn deadline(fair: &Fair, task: TaskId) -> i64 {
    fair.entity(task).deadline.since(Vruntime(BASE))
}

pub fn wake(fair: &mut Fair, task: TaskId, now: Nanos) -> Resched {
    fair.enqueue_task(CPU, task, WAKE, now);
    fair.wakeup_preempt(CPU, task, WakeFlags::default(), false, now)
}
