//! The order of the effects of a wakeup, a fork and `__schedule`, case by case.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId, Topology, MSEC};
use schedlab_policy::procedure::{
    __schedule, sched_ttwu_pending, try_to_wake_up, wake_off_cpu, wake_up_new_task, Driver, Effect, Leaving, Schedule,
    Timer, Wakeup,
};
use schedlab_policy::rt::RtPolicy;
use schedlab_policy::{KernelConfig, Moves, Sched, Selection, TaskAttr, Version};

struct Lab {
    sched: Sched,
    now: Nanos,
}

impl Lab {
    /// Caches of so many CPUs each.
    fn new(version: &str, caches: u32, cpus: u32) -> Lab {
        Lab::with(version, caches, cpus, |_| {})
    }

    fn with(version: &str, caches: u32, cpus: u32, set: impl Fn(&mut KernelConfig)) -> Lab {
        let topology = Topology::regular(1, caches, cpus, 1, true).unwrap();
        let mut config = KernelConfig::new(Version::find(version).unwrap(), topology.nr_cpus(), 1000);
        set(&mut config);
        Lab { sched: Sched::new(config, Arc::new(topology)), now: 100 * MSEC }
    }

    /// The effects of what `procedure` does.
    fn effects(&mut self, procedure: impl FnOnce(&mut Words)) -> Vec<String> {
        let mut words = Words { lab: self, words: Vec::new(), place_on: None, at_preempt: None };
        procedure(&mut words);
        words.words
    }

    fn schedule(&mut self, cpu: u32) -> Vec<String> {
        self.effects(|driver| __schedule(driver, CpuId(cpu), Schedule::default()))
    }

    fn leave(&mut self, cpu: u32, leaving: Leaving) -> Vec<String> {
        let found = Schedule { leaving: Some(leaving), ..Schedule::default() };
        self.effects(|driver| __schedule(driver, CpuId(cpu), found))
    }

    fn wake(&mut self, task: TaskId, waker: u32) -> Vec<String> {
        self.effects(|driver| try_to_wake_up(driver, wakeup(task, waker)))
    }

    fn wake_new(&mut self, task: TaskId, parent_cpu: u32) -> Vec<String> {
        self.effects(|driver| wake_up_new_task(driver, task, CpuId(parent_cpu)))
    }

    fn pending(&mut self, cpu: u32) -> Vec<String> {
        self.effects(|driver| sched_ttwu_pending(driver, CpuId(cpu)))
    }

    fn task(&mut self, attr: TaskAttr) -> TaskId {
        self.sched.add_task(&attr)
    }

    /// A task that runs on the CPU, alone.
    fn running(&mut self, cpu: u32) -> TaskId {
        let task = self.pinned(cpu);
        self.wake_new(task, cpu);
        self.schedule(cpu);
        assert_eq!(self.sched.curr(CpuId(cpu)), Some(task));
        self.sched.set_affinity(task, None, CpuId(0), self.now);
        task
    }

    /// A task that may run on one CPU only.
    fn pinned(&mut self, cpu: u32) -> TaskId {
        let affinity = CpuMask::from_list(&cpu.to_string());
        self.task(TaskAttr { cpu: CpuId(cpu), affinity, ..TaskAttr::default() })
    }

    /// A task that ran on the CPU for a millisecond and sleeps, off its queue.
    fn sleeping(&mut self, cpu: u32) -> TaskId {
        let task = self.running(cpu);
        self.now += MSEC;
        self.leave(cpu, Leaving::Sleeps);
        assert!(!self.sched.on_rq(task));
        task
    }
}

fn wakeup(task: TaskId, waker: u32) -> Wakeup {
    Wakeup { task, waker_cpu: CpuId(waker), sync: false, here: false, in_task: true }
}

/// A change that another CPU makes in the middle of a procedure.
type Interference = Box<dyn Fn(&mut Lab)>;

/// A driver that puts effects into words.
struct Words<'a> {
    lab: &'a mut Lab,
    words: Vec<String>,
    /// Where a task goes instead of the CPU selected for it.
    place_on: Option<CpuId>,
    /// What happens right after a preemption check.
    at_preempt: Option<Interference>,
}

impl Driver for Words<'_> {
    type Sched = Sched;

    fn sched(&mut self) -> &mut Sched {
        &mut self.lab.sched
    }

    fn clock(&self, _: CpuId) -> Nanos {
        self.lab.now
    }

    fn clock_task(&self, _: CpuId) -> Nanos {
        self.lab.now
    }

    fn need_resched(&self, _: CpuId) -> bool {
        false
    }

    fn effect(&mut self, effect: Effect) {
        self.words.push(word(effect));
        if let (Effect::Preempt { .. }, Some(call)) = (effect, &self.at_preempt) {
            call(self.lab);
        }
    }

    fn balanced(&mut self, moves: &Moves) {
        self.words.push(format!("balance moves {}", moves.moved.len()));
    }

    fn selected(&mut self, _: TaskId, selection: &Selection) -> CpuId {
        self.words.push(format!("select {}", selection.cpu.0));
        self.place_on.unwrap_or(selection.cpu)
    }
}

fn word(effect: Effect) -> String {
    let pid = |task: Option<TaskId>| task.map_or("idle".into(), |task| task.0.to_string());
    match effect {
        Effect::Waking { task, cpu } => format!("waking {} on {}", task.0, cpu.0),
        Effect::WaitOnCpu { cpu, .. } => format!("wait for {}", cpu.0),
        Effect::Migrate { task, from, to } => format!("migrate {} {}->{}", task.0, from.0, to.0),
        Effect::WakelistQueued { cpu, first, .. } => format!("wakelist {}{}", cpu.0, if first { " IPI" } else { "" }),
        Effect::Wakeup { task, cpu, new } => {
            format!("wakeup{} {} on {}", if new { "_new" } else { "" }, task.0, cpu.0)
        }
        Effect::Preempt { cpu, resched } => format!("preempt {} {resched:?}", cpu.0),
        Effect::Resched { cpu, resched } => format!("resched {} {resched:?}", cpu.0),
        Effect::Program(Timer::Hrtick { update, .. }) => format!("hrtick{}", if update { " update" } else { "" }),
        Effect::Program(Timer::Classes(_)) => "timer".into(),
        Effect::Switch { prev, next } => format!("switch {}->{}", pid(prev), pid(next)),
        Effect::Repicked { next } => format!("repick {}", pid(next)),
    }
}

#[test]
fn a_wakeup_on_the_wakers_cache_is_enqueued_by_the_waker() {
    let mut lab = Lab::new("6.12.0", 1, 2);
    let task = lab.sleeping(1);
    lab.running(0);
    // CPU 1 is empty: since 5.18 such a CPU enqueues the task itself.
    assert_eq!(lab.wake(task, 0), ["waking 0 on 1", "select 1", "wakelist 1 IPI"]);
    let pending = lab.pending(1);
    assert_eq!(pending, ["preempt 1 Full", "wakeup 0 on 1"]);
    assert_eq!(lab.schedule(1), ["switch idle->0"]);
    // Without TTWU_QUEUE the waker does all of it.
    let mut lab = Lab::with("6.12.0", 1, 2, |config| config.set_feature("TTWU_QUEUE", false).unwrap());
    let task = lab.sleeping(1);
    lab.running(0);
    assert_eq!(lab.wake(task, 0), ["waking 0 on 1", "select 1", "preempt 1 Full", "wakeup 0 on 1"]);
}

#[test]
fn a_wakelist_takes_one_interrupt_for_many_tasks() {
    let mut lab = Lab::new("6.12.0", 2, 1);
    let (a, b) = (lab.sleeping(1), lab.sleeping(1));
    lab.sched.set_affinity(a, CpuMask::from_list("1"), CpuId(0), lab.now);
    lab.sched.set_affinity(b, CpuMask::from_list("1"), CpuId(0), lab.now);
    assert_eq!(lab.wake(a, 0), ["waking 0 on 1", "select 1", "wakelist 1 IPI"]);
    assert_eq!(lab.wake(b, 0), ["waking 1 on 1", "select 1", "wakelist 1"]);
    let pending = lab.pending(1);
    assert_eq!(pending, ["preempt 1 Full", "wakeup 0 on 1", "preempt 1 Full", "wakeup 1 on 1"]);
    assert!(lab.sched.wakelist(CpuId(1)).is_empty());
}

#[test]
fn a_task_that_moves_shows_its_migration_before_it_is_enqueued() {
    let mut lab = Lab::with("6.12.0", 1, 2, |config| config.set_feature("TTWU_QUEUE", false).unwrap());
    let task = lab.sleeping(0);
    lab.running(0);
    let expected = ["waking 0 on 0", "select 1", "migrate 0 0->1", "preempt 1 Full", "wakeup 0 on 1"];
    assert_eq!(lab.wake(task, 0), expected);
}

#[test]
fn a_driver_may_place_the_task_elsewhere() {
    let mut lab = Lab::with("6.12.0", 1, 3, |config| config.set_feature("TTWU_QUEUE", false).unwrap());
    let task = lab.sleeping(0);
    lab.running(0);
    let effects = lab.effects(|driver| {
        driver.place_on = Some(CpuId(2));
        try_to_wake_up(driver, wakeup(task, 0));
    });
    assert_eq!(effects, ["waking 0 on 0", "select 1", "migrate 0 0->2", "preempt 2 Full", "wakeup 0 on 2"]);
    assert_eq!((lab.sched.cpu_of(task), lab.sched.nr_running(CpuId(2))), (CpuId(2), 1));
}

#[test]
fn a_task_still_on_its_cpu_is_waited_for_or_left_to_that_cpu() {
    // From the same cache the waker waits where another task is queued there; from another cache it never does.
    for (caches, cpus, waits) in [(1, 2, true), (2, 1, false)] {
        let mut lab = Lab::new("6.1", caches, cpus);
        let task = lab.running(1);
        let other = lab.pinned(1);
        lab.wake_new(other, 1);
        lab.running(0);
        // It has decided to sleep, and is not yet in __schedule.
        let begun = lab.wake(task, 0);
        let end = if waits { "wait for 1" } else { "wakelist 1 IPI" };
        assert_eq!(begun, ["waking 0 on 1", end]);
        assert_eq!(lab.leave(1, Leaving::Sleeps), ["switch 0->1"]);
        if waits {
            let rest = lab.effects(|driver| wake_off_cpu(driver, wakeup(task, 0)));
            assert_eq!(rest.first().unwrap(), "select 1");
        }
    }
}

#[test]
fn a_delayed_task_wakes_where_it_is() {
    let mut lab = Lab::new("6.12.0", 1, 2);
    let task = lab.running(1);
    let other = lab.pinned(1);
    lab.wake_new(other, 1);
    lab.now += 3 * MSEC;
    // It has run ahead of its share, so its dequeue is delayed.
    assert_eq!(lab.leave(1, Leaving::Sleeps), ["switch 0->1"]);
    assert!(lab.sched.fair.entity(task).sched_delayed);
    let effects = lab.wake(task, 0);
    assert_eq!(effects, ["waking 0 on 1", "preempt 1 No", "wakeup 0 on 1"]);
}

#[test]
fn a_forked_task_shows_its_wakeup_before_the_check_for_preemption() {
    let mut lab = Lab::new("6.12.0", 1, 2);
    let parent = lab.running(0);
    let (child, _) = lab.sched.sched_fork(parent, lab.now);
    let effects = lab.wake_new(child, 0);
    assert_eq!(effects, ["select 1", "migrate 1 0->1", "wakeup_new 1 on 1", "preempt 1 Full"]);
}

#[test]
fn what_schedule_does() {
    let mut lab = Lab::new("6.12.0", 1, 2);
    assert_eq!(lab.schedule(0), ["balance moves 0", "repick idle"]);
    let task = lab.running(0);
    assert_eq!(lab.schedule(0), ["repick 0"]);
    lab.now += MSEC;
    assert_eq!(lab.leave(0, Leaving::Sleeps), ["balance moves 0", "switch 0->idle"]);
    assert!(!lab.sched.on_rq(task) && lab.sched.is_idle(CpuId(0)));
    // Two tasks: the one that exits is never delayed.
    lab.running(0);
    let other = lab.pinned(0);
    lab.wake_new(other, 0);
    lab.now += 3 * MSEC;
    assert_eq!(lab.leave(0, Leaving::Exits), ["switch 1->2"]);
    assert!(!lab.sched.on_rq(TaskId(1)));
}

#[test]
fn a_cpu_that_runs_dry_pulls() {
    let mut lab = Lab::new("6.12.0", 1, 2);
    let (running, leaving) = (lab.running(0), lab.running(1));
    let waiting = lab.pinned(0);
    lab.wake_new(waiting, 0);
    lab.sched.set_affinity(waiting, None, CpuId(0), lab.now);
    lab.now += MSEC;
    let effects = lab.leave(1, Leaving::Sleeps);
    assert_eq!(effects, ["balance moves 1", "switch 1->2"]);
    assert_eq!([running, leaving, waiting].map(|task| lab.sched.cpu_of(task)), [CpuId(0), CpuId(1), CpuId(1)]);
}

/// CPU 0 runs a hog, beside a task that waits and one whose dequeue is delayed. CPU 1 pulls the latter first, and the
/// pick dequeues it.
#[test]
fn a_pulled_task_whose_dequeue_is_delayed_is_followed_by_another_pass() {
    let rows = [
        // A fair task leaves: pick_next_task_fair balances again.
        ("6.12.0", false, &["balance moves 1", "balance moves 1", "switch 3->2"][..]),
        ("6.12.107", false, &["balance moves 1", "balance moves 1", "switch 3->2"]),
        // A real-time task leaves: balance_fair comes before the pick, and once.
        ("6.12.0", true, &["balance moves 0", "balance moves 1", "switch 3->idle", "balance moves 0", "timer"]),
    ];
    for (version, rt, expected) in rows {
        let mut lab = Lab::with(version, 1, 2, |config| drop(config.set_feature("NI_RANDOM", false)));
        let delayed = lab.running(0);
        for hog in [1, 2].map(|_| lab.pinned(0)) {
            lab.wake_new(hog, 0);
        }
        lab.now += 10 * MSEC;
        lab.leave(0, Leaving::Sleeps);
        assert!(lab.sched.on_rq(delayed), "{version}: its dequeue is delayed");
        for task in (0..3).map(TaskId) {
            lab.sched.set_affinity(task, None, CpuId(0), lab.now);
        }
        let leaving = lab.running(1);
        if rt {
            lab.sched.set_rt_policy(leaving, RtPolicy { priority: 1, round_robin: false }, lab.now);
        }
        lab.now += 10 * MSEC;
        assert_eq!(lab.leave(1, Leaving::Sleeps), expected, "{version}, real-time: {rt}");
        assert!(!lab.sched.on_rq(delayed), "{version}");
    }
}

#[test]
fn the_stopper_migrates_before_the_pick() {
    let mut lab = Lab::new("6.12.0", 1, 2);
    let task = lab.running(0);
    let dest = lab.sched.set_affinity(task, CpuMask::from_list("1"), CpuId(0), lab.now).unwrap();
    let found = Schedule { migrate: Some((task, dest)), ..Schedule::default() };
    let effects = lab.effects(|driver| __schedule(driver, CpuId(0), found));
    let expected = ["migrate 0 0->1", "resched 1 Full", "balance moves 0", "balance moves 0", "switch 0->idle"];
    assert_eq!(effects, expected);
}

#[test]
fn real_time_pushes_after_a_wakeup_and_after_the_switch() {
    let mut lab = Lab::new("6.12.0", 1, 2);
    let fifo = |priority| TaskAttr { rt: Some(RtPolicy { priority, round_robin: false }), ..TaskAttr::default() };
    let high = lab.task(fifo(2));
    let first = lab.wake_new(high, 0);
    assert_eq!(first, ["select 0", "wakeup_new 0 on 0", "preempt 0 Full", "balance moves 0", "timer"]);
    assert_eq!(lab.schedule(0), ["balance moves 0", "switch idle->0", "balance moves 0", "timer"]);
    // A second one would wait there: it is pushed at once.
    let low = lab.task(fifo(1));
    lab.sched.set_affinity(low, CpuMask::from_list("0"), CpuId(0), lab.now);
    let second = lab.effects(|driver| {
        driver.at_preempt = Some(Box::new(move |lab| _ = lab.sched.set_affinity(low, None, CpuId(0), lab.now)));
        wake_up_new_task(driver, low, CpuId(0));
    });
    assert_eq!(second[second.len() - 2..], ["balance moves 1", "timer"]);
    assert_eq!(lab.sched.cpu_of(low), CpuId(1));
}

#[test]
fn hrtick_follows_the_wakeup_and_the_pick() {
    let mut lab = Lab::with("6.12.0", 1, 1, |config| config.set_feature("HRTICK", true).unwrap());
    lab.running(0);
    let task = lab.task(TaskAttr::default());
    let woken = lab.wake_new(task, 0);
    assert_eq!(woken, ["select 0", "wakeup_new 1 on 0", "preempt 0 No", "hrtick update"]);
    assert_eq!(lab.schedule(0), ["repick 0", "hrtick"]);
}
