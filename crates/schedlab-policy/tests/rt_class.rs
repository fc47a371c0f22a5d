//! The real-time class above the fair one: order, slices, what limits it, which CPUs it uses, changes of class.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use proptest::prelude::*;
use schedlab_model::{CpuId, CpuMask, Nanos, TaskId, Topology, MSEC};
use schedlab_policy::class::SchedClass;
use schedlab_policy::fair::GroupId;
use schedlab_policy::rt::RtPolicy;
use schedlab_policy::{FairPolicy, KernelConfig, Moves, Resched, Sched, TaskAttr, Version, WakeKind};

const WAKE: WakeKind = WakeKind::Wakeup { sync: false };
const VERSIONS: &[&str] = &[
    "5.2",
    "5.10",
    "5.13",
    "5.15",
    "6.1",
    "eevdf-rfc",
    "6.6",
    "6.8",
    "6.12.0",
    "6.12.107",
    "6.18.2",
    "6.18.44",
    "7.2",
];

fn fifo(priority: u8) -> RtPolicy {
    RtPolicy { priority, round_robin: false }
}

fn rr(priority: u8) -> RtPolicy {
    RtPolicy { priority, round_robin: true }
}

/// A scheduler whose CPUs reschedule whenever they are asked to, with a tick of 1 ms.
struct Lab {
    sched: Sched,
    now: Nanos,
    ran: Vec<Nanos>,
    idle: Nanos,
    cpus: u32,
}

impl Lab {
    fn new(version: &str, cpus: u32) -> Lab {
        Lab::with(version, cpus, |_| {})
    }

    fn with(version: &str, cpus: u32, set: impl Fn(&mut KernelConfig)) -> Lab {
        let version = Version::all().iter().find(|row| row.name == version).unwrap();
        let topology = Arc::new(Topology::regular(1, 1, cpus, 1, true).unwrap());
        let mut config = KernelConfig::new(version, cpus as usize, 1000);
        set(&mut config);
        Lab { sched: Sched::new(config, topology), now: MSEC, ran: Vec::new(), idle: 0, cpus }
    }

    fn add(&mut self, rt: Option<RtPolicy>) -> TaskId {
        self.ran.push(0);
        self.sched.add_task(&TaskAttr { rt, ..TaskAttr::default() })
    }

    fn hog(&mut self, rt: Option<RtPolicy>) -> TaskId {
        let task = self.add(rt);
        self.wake(task);
        task
    }

    fn wake(&mut self, task: TaskId) {
        if self.sched.requeue_delayed(task, self.now) {
            let cpu = self.sched.cpu_of(task);
            let resched = self.sched.wakeup_preempt(cpu, task, WAKE, false, self.now);
            return self.ask(cpu, resched);
        }
        let cpu = self.sched.select_task_rq(task, CpuId(0), WAKE, self.now).cpu;
        self.sched.activate(task, cpu, WAKE, self.now);
        let idle = self.sched.curr(cpu).is_none();
        let resched = self.sched.wakeup_preempt(cpu, task, WAKE, false, self.now);
        let moves = self.sched.task_woken(task, resched != Resched::No, self.now);
        self.ask(cpu, if idle { Resched::Full } else { resched });
        self.carry_out(&moves);
    }

    fn sleep(&mut self, task: TaskId) {
        let cpu = self.sched.cpu_of(task);
        self.sched.block(task, false, self.now);
        self.schedule(cpu);
    }

    fn ask(&mut self, cpu: CpuId, resched: Resched) {
        if resched != Resched::No {
            self.schedule(cpu);
        }
    }

    fn carry_out(&mut self, moves: &Moves) {
        moves.resched.iter().for_each(|(cpu, resched)| self.ask(*cpu, *resched));
    }

    fn schedule(&mut self, cpu: CpuId) {
        let pulled = self.sched.balance(cpu, self.now);
        if self.sched.pick_next_task(cpu, self.now).is_none() {
            self.sched.idle_enter(cpu, self.now);
        }
        let pushed = self.sched.balance_callback(cpu, self.now);
        self.carry_out(&pulled);
        self.carry_out(&pushed);
    }

    fn all(&self) -> impl Iterator<Item = CpuId> {
        (0..self.cpus).map(CpuId)
    }

    /// One tick of every CPU.
    fn step(&mut self) {
        for cpu in self.all() {
            match self.sched.curr(cpu) {
                Some(task) => self.ran[task.index()] += MSEC,
                None => self.idle += MSEC,
            }
        }
        self.now += MSEC;
        if self.sched.next_timer().is_some_and(|at| at <= self.now) {
            let moves = self.sched.timer_expired(self.now);
            self.carry_out(&moves);
        }
        for cpu in self.all().filter(|cpu| self.sched.curr(*cpu).is_some()).collect::<Vec<_>>() {
            let resched = self.sched.tick(cpu, self.now);
            self.ask(cpu, resched);
        }
    }

    fn run(&mut self, ms: u64) {
        (0..ms).for_each(|_| self.step());
    }
}

#[test]
fn a_fifo_hog_leaves_the_fair_class_a_twentieth() {
    for version in VERSIONS {
        let mut lab = Lab::new(version, 1);
        let (hog, fair) = (lab.hog(Some(fifo(50))), lab.hog(None));
        lab.run(10_000);
        let share = lab.ran[fair.index()] as f64 / (10_000.0 * MSEC as f64);
        assert!((0.04..=0.055).contains(&share), "{version}: {share}");
        assert_eq!(lab.ran[hog.index()] + lab.ran[fair.index()] + lab.idle, 10_000 * MSEC);
    }
}

#[test]
fn only_throttling_leaves_a_cpu_idle_that_no_other_task_wants() {
    for (version, idle) in [("6.1", 490..=510), ("6.6", 490..=510), ("6.12.0", 0..=1), ("7.2", 0..=1)] {
        let mut lab = Lab::new(version, 1);
        lab.hog(Some(fifo(1)));
        lab.run(10_000);
        assert!(idle.contains(&(lab.idle / MSEC)), "{version}: {} ms idle", lab.idle / MSEC);
    }
}

#[test]
fn without_a_limit_the_fair_class_starves() {
    let mut lab = Lab::with("6.1", 1, |config| {
        config.set_knob("sched_rt_runtime_us", 1_000_000).unwrap();
    });
    lab.hog(Some(rr(50)));
    let fair = lab.hog(None);
    lab.run(5_000);
    assert!(lab.ran[fair.index()] <= MSEC);
}

#[test]
fn runtime_is_borrowed_where_the_feature_is_on() {
    // 5.7 shares: a hog on one of four CPUs takes what the others do not use, up to the whole period.
    let mut lab = Lab::new("5.7", 4);
    lab.hog(Some(fifo(50)));
    lab.run(5_000);
    assert_eq!(lab.idle, 3 * 5_000 * MSEC);
}

#[test]
fn round_robin_goes_on_after_its_slice_and_fifo_never() {
    for (policy, share) in [(rr(10), [1, 1, 1]), (fifo(10), [3, 0, 0])] {
        let mut lab = Lab::with("6.12.0", 1, |config| config.set_knob("rr_timeslice_ms", 20).unwrap());
        let tasks = [0; 3].map(|_| lab.hog(Some(policy)));
        let below = lab.hog(Some(rr(9)));
        lab.run(3 * 20 * 30);
        let ran = tasks.map(|task| lab.ran[task.index()] / (20 * 30 * MSEC));
        assert_eq!(ran, share, "{policy:?}");
        assert_eq!(lab.ran[below.index()], 0);
    }
}

#[test]
fn the_best_tasks_of_the_machine_run() {
    // Seven tasks of all priorities on three CPUs, woken in bad order; then the best sleeps.
    let mut lab = Lab::new("6.1", 3);
    let tasks: Vec<TaskId> = [10, 70, 30, 50, 60, 20, 40].iter().map(|p| lab.hog(Some(fifo(*p)))).collect();
    let running = |lab: &Lab| {
        let mut priorities: Vec<u8> =
            lab.all().filter_map(|cpu| Some(lab.sched.rt.policy(lab.sched.curr(cpu)?)?.priority)).collect();
        priorities.sort_unstable();
        priorities
    };
    assert_eq!(running(&lab), [50, 60, 70]);
    lab.sleep(tasks[1]);
    assert_eq!(running(&lab), [40, 50, 60]);
    lab.sched.set_rt_policy(tasks[0], fifo(99), lab.now);
    lab.wake(tasks[1]);
    lab.all().collect::<Vec<_>>().into_iter().for_each(|cpu| lab.schedule(cpu));
    assert_eq!(running(&lab), [60, 70, 99]);
}

#[derive(Clone, Debug)]
enum Action {
    Wake(usize),
    Sleep,
    Yield,
    Priority(usize, u8),
    Tick,
}

/// The order of one CPU, kept the slow way: lists by priority, the running task at the head of its own.
#[derive(Default)]
struct Model {
    lists: Vec<(u8, Vec<TaskId>)>,
}

impl Model {
    fn list(&mut self, priority: u8) -> &mut Vec<TaskId> {
        if let Some(at) = self.lists.iter().position(|(p, _)| *p == priority) {
            return &mut self.lists[at].1;
        }
        self.lists.push((priority, Vec::new()));
        &mut self.lists.last_mut().unwrap().1
    }

    fn remove(&mut self, task: TaskId) -> bool {
        let found = self.lists.iter_mut().find_map(|(_, list)| Some((list.iter().position(|t| *t == task)?, list)));
        found.map(|(at, list)| list.remove(at)).is_some()
    }

    fn best(&self) -> Option<TaskId> {
        self.lists.iter().filter(|(_, list)| !list.is_empty()).max_by_key(|(p, _)| *p).map(|(_, list)| list[0])
    }
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (0usize..8).prop_map(Action::Wake),
        2 => Just(Action::Sleep),
        1 => Just(Action::Yield),
        2 => (0usize..8, 1u8..=5).prop_map(|(task, priority)| Action::Priority(task, priority)),
        1 => Just(Action::Tick),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn one_cpu_runs_in_the_order_of_brute_force(
        priorities in prop::collection::vec(1u8..=5, 8),
        actions in prop::collection::vec(action(), 1..200),
    ) {
        let mut lab = Lab::with("6.12.0", 1, |_| {});
        let mut model = Model::default();
        let mut priorities = priorities;
        let tasks: Vec<TaskId> = priorities.iter().map(|p| lab.add(Some(fifo(*p)))).collect();
        for action in actions {
            lab.now += 10_000;
            match action {
                Action::Wake(i) => if !lab.sched.on_rq(tasks[i]) {
                    model.list(priorities[i]).push(tasks[i]);
                    lab.wake(tasks[i]);
                },
                Action::Sleep => if let Some(curr) = lab.sched.curr(CpuId(0)) {
                    model.remove(curr);
                    lab.sleep(curr);
                },
                Action::Yield => if let Some(curr) = lab.sched.curr(CpuId(0)) {
                    model.remove(curr);
                    model.list(priorities[curr.index()]).push(curr);
                    lab.sched.yield_current(CpuId(0), lab.now);
                    lab.schedule(CpuId(0));
                },
                Action::Priority(i, priority) => {
                    if model.remove(tasks[i]) {
                        let lowered = priority < priorities[i];
                        let list = model.list(priority);
                        list.insert(if lowered { 0 } else { list.len() }, tasks[i]);
                    }
                    priorities[i] = priority;
                    let resched = lab.sched.set_rt_policy(tasks[i], fifo(priority), lab.now);
                    lab.ask(CpuId(0), resched);
                    // A running task that goes behind an equal one keeps the CPU until something reschedules.
                    lab.schedule(CpuId(0));
                }
                Action::Tick => lab.step(),
            }
            prop_assert_eq!(lab.sched.curr(CpuId(0)), model.best());
        }
    }

    /// Tasks that wander between the classes and CPUs keep the fair class's books right.
    #[test]
    fn changes_of_class_keep_the_sums(
        version in prop::sample::select(VERSIONS),
        actions in prop::collection::vec((0usize..6, 0u8..6), 1..120),
    ) {
        let mut lab = Lab::new(version, 2);
        let tasks: Vec<TaskId> = (0..6).map(|i| lab.add((i % 3 == 0).then(|| rr(5)))).collect();
        for (i, what) in actions {
            let task = tasks[i];
            match what {
                0 | 1 => if !lab.sched.on_rq(task) || lab.sched.fair.entity(task).sched_delayed { lab.wake(task) },
                2 => if lab.all().any(|cpu| lab.sched.curr(cpu) == Some(task)) { lab.sleep(task) },
                3 => {
                    let resched = lab.sched.set_rt_policy(task, fifo(1 + i as u8), lab.now);
                    lab.ask(lab.sched.cpu_of(task), resched);
                }
                4 => {
                    let resched = lab.sched.set_policy(task, FairPolicy::Normal, lab.now);
                    lab.ask(lab.sched.cpu_of(task), resched);
                }
                _ => lab.run(7),
            }
            for cpu in lab.all() {
                prop_assert_eq!(lab.sched.fair.view().sums(GroupId::ROOT, cpu), lab.sched.fair.view().recomputed_sums(GroupId::ROOT, cpu), "{:?} on {}", cpu, version);
                let rt = lab.sched.rt.queued(cpu).count() as u32;
                let counted = lab.sched.fair.rq(cpu).h_nr_running + if lab.sched.rt.is_throttled(cpu) { 0 } else { rt };
                prop_assert_eq!(lab.sched.nr_running(cpu), counted);
                let curr = lab.sched.curr(cpu);
                prop_assert!(curr.is_some() || lab.sched.nr_running(cpu) == 0, "{:?} idles with work", cpu);
            }
        }
        // No task is lost: each that is queued runs once the others sleep.
        for task in tasks {
            prop_assert!(!(lab.sched.fair.entity(task).on_rq && lab.sched.rt.on_rq(task)));
        }
    }
}

/// `pull_rt_task` takes the task that has waited longest among equals: one that was preempted waits from then on,
/// though it is the first to run on its CPU.
#[test]
fn a_cpu_pulls_the_task_that_has_waited_longest() {
    for version in VERSIONS {
        let mut lab = Lab::new(version, 2);
        let attr = |priority, cpus: &str| TaskAttr {
            rt: Some(fifo(priority)),
            affinity: CpuMask::from_list(cpus),
            ..TaskAttr::default()
        };
        let [first, second, best] =
            [attr(50, "0-1"), attr(50, "0-1"), attr(80, "0")].map(|attr| lab.sched.add_task(&attr));
        let other = lab.sched.add_task(&TaskAttr { cpu: CpuId(1), ..attr(60, "1") });
        let cpus = [CpuId(0), CpuId(1)];
        lab.sched.activate(other, cpus[1], WakeKind::Fork, lab.now);
        lab.sched.pick_next_task(cpus[1], lab.now);
        for task in [first, second] {
            lab.sched.activate(task, cpus[0], WakeKind::Fork, lab.now);
        }
        assert_eq!(lab.sched.pick_next_task(cpus[0], lab.now), Some(first), "{version}");
        lab.sched.activate(best, cpus[0], WakeKind::Fork, lab.now);
        assert_eq!(lab.sched.pick_next_task(cpus[0], lab.now), Some(best), "{version}");
        lab.sched.block(other, false, lab.now);
        let moves = lab.sched.balance(cpus[1], lab.now);
        assert_eq!(moves.moved, [(second, cpus[0])], "{version}");
        assert_eq!(lab.sched.rt.queued(cpus[0]).collect::<Vec<_>>(), [best, first], "{version}");
    }
}

/// `select_task_rq_rt` chooses for wakeups and forks alone: a task that calls execve stays, though other CPUs are idle.
#[test]
fn a_real_time_task_stays_where_it_is_at_exec() {
    for version in VERSIONS {
        let mut lab = Lab::new(version, 4);
        let task = lab.hog(Some(fifo(50)));
        let cpu = lab.sched.cpu_of(task);
        assert_eq!(lab.sched.curr(cpu), Some(task), "{version}");
        assert_eq!(lab.sched.select_task_rq(task, cpu, WakeKind::Exec, lab.now).cpu, cpu, "{version}");
    }
}
