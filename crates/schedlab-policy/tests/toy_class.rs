//! What a further class takes: `Toy`, between real-time and fair, one FIFO queue per CPU with a slice of three ticks.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::VecDeque;
use std::sync::Arc;

use schedlab_model::{CpuId, Nanos, TaskId, Topology, MSEC};
use schedlab_policy::class::{ClassId, Idle, SchedClass};
use schedlab_policy::fair::{Dequeue, Enqueue, Fair, WakeFlags};
use schedlab_policy::rt::{Rt, RtPolicy};
use schedlab_policy::{class_list, Core, FairPolicy, KernelConfig, Resched, Sched, TaskAttr, Version, WakeKind};

class_list! { struct WithToy { rt: Rt, toy: Toy, fair: Fair, idle: Idle } }

/// The queue of a CPU, its running task first in it or not at all; ticks left of the slice.
#[derive(Clone, Default, Debug)]
struct Toy {
    id: ClassId,
    queues: Vec<VecDeque<TaskId>>,
    left: u32,
}

impl Toy {
    fn changed(&self, core: &mut Core, cpu: CpuId) {
        core.set_nr_running(cpu, self.id, self.queues[cpu.index()].len() as u32);
    }
}

impl SchedClass for Toy {
    fn id(&self) -> ClassId {
        self.id
    }

    fn set_id(&mut self, id: ClassId) {
        self.id = id;
    }

    fn takes(&self, attr: &TaskAttr) -> bool {
        attr.other.is_some_and(|(name, _)| name == "toy")
    }

    fn on_rq(&self, task: TaskId) -> bool {
        self.queues.iter().any(|queue| queue.contains(&task))
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _: Enqueue, _: Nanos) {
        self.queues[cpu.index()].push_back(task);
        self.changed(core, cpu);
    }

    fn dequeue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _: Dequeue, _: Nanos) -> bool {
        self.queues[cpu.index()].retain(|queued| *queued != task);
        self.changed(core, cpu);
        true
    }

    fn yield_task(&mut self, _: &mut Core, cpu: CpuId, _: Nanos) {
        self.queues[cpu.index()].rotate_left(1);
    }

    /// First come, first served; the idle task gives way.
    fn wakeup_preempt(&mut self, core: &mut Core, cpu: CpuId, _: TaskId, _: WakeFlags, _: bool, _: Nanos) -> Resched {
        if core.curr(cpu).is_none() {
            Resched::Full
        } else {
            Resched::No
        }
    }

    fn pick_task(&mut self, _: &mut Core, cpu: CpuId, _: Nanos) -> Option<TaskId> {
        self.queues[cpu.index()].front().copied()
    }

    fn put_prev_task(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: Nanos) {}

    fn set_next_task(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: bool, _: Nanos) {
        self.left = 3;
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, _: TaskId, now: Nanos) -> Resched {
        self.left -= 1;
        if self.left > 0 {
            return Resched::No;
        }
        self.left = 3;
        self.yield_task(core, cpu, now);
        Resched::Full
    }

    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, _: TaskId, running: bool, _: Nanos) -> Resched {
        let outranks = core.curr(cpu).is_none_or(|curr| core.class_of(curr) > self.id);
        if !running && outranks {
            Resched::Full
        } else {
            Resched::No
        }
    }
}

const CPU: CpuId = CpuId(0);
const WAKE: WakeKind = WakeKind::Wakeup { sync: false };

/// One CPU that reschedules whenever it is asked to.
struct Lab {
    sched: Sched<WithToy>,
    now: Nanos,
}

impl Lab {
    fn new() -> Lab {
        let config = KernelConfig::new(Version::find("6.12.0").unwrap(), 1, 1000);
        let toy = Toy { queues: vec![VecDeque::new()], ..Toy::default() };
        let classes = WithToy { rt: Rt::new(&config), toy, fair: Fair::new(config.clone()), idle: Idle::default() };
        let topology = Arc::new(Topology::regular(1, 1, 1, 1, true).unwrap());
        Lab { sched: Sched::with_classes(classes, &config, topology), now: MSEC }
    }

    fn wake_new(&mut self, attr: &TaskAttr) -> TaskId {
        let task = self.sched.add_task(attr);
        self.wake(task);
        task
    }

    /// Whether the task preempts what runs.
    fn wake(&mut self, task: TaskId) -> bool {
        self.sched.activate(task, CPU, WAKE, self.now);
        let resched = self.sched.wakeup_preempt(CPU, task, WAKE, false, self.now);
        self.follow(resched);
        resched != Resched::No
    }

    fn follow(&mut self, resched: Resched) {
        if resched != Resched::No && self.sched.pick_next_task(CPU, self.now).is_none() {
            self.sched.idle_enter(CPU, self.now);
        }
    }

    fn sleep(&mut self, task: TaskId) {
        self.sched.block(task, false, self.now);
        self.follow(Resched::Full);
    }

    /// What runs during each of so many ticks.
    fn ticks(&mut self, n: u32) -> Vec<Option<TaskId>> {
        let tick = |_| {
            let curr = self.sched.curr(CPU);
            self.now += MSEC;
            let resched = self.sched.tick(CPU, self.now);
            self.follow(resched);
            curr
        };
        (0..n).map(tick).collect()
    }
}

fn toy() -> TaskAttr {
    TaskAttr { other: Some(("toy", 0)), ..TaskAttr::default() }
}

fn fifo() -> RtPolicy {
    RtPolicy { priority: 1, round_robin: false }
}

#[test]
fn it_is_picked_after_real_time_and_before_fair() {
    let mut lab = Lab::new();
    let fair = lab.wake_new(&TaskAttr::default());
    let (a, b) = (lab.wake_new(&toy()), lab.wake_new(&toy()));
    let rt = lab.wake_new(&TaskAttr { rt: Some(fifo()), ..TaskAttr::default() });
    assert_eq!((lab.sched.curr(CPU), lab.sched.nr_running(CPU)), (Some(rt), 4));
    lab.sleep(rt);
    assert_eq!(lab.ticks(9), [[a; 3], [b; 3], [a; 3]].concat().into_iter().map(Some).collect::<Vec<_>>());
    assert_eq!(lab.sched.curr(CPU), Some(b));
    lab.sleep(b);
    lab.sleep(a);
    assert_eq!(lab.sched.curr(CPU), Some(fair));
    lab.sleep(fair);
    assert_eq!((lab.sched.curr(CPU), lab.sched.is_idle(CPU)), (None, true));
}

#[test]
fn wakeups_preempt_by_the_order_of_the_classes() {
    let of = [TaskAttr { rt: Some(fifo()), ..TaskAttr::default() }, toy(), TaskAttr::default()];
    for (wakee, running) in (0..3).flat_map(|wakee| (0..3).map(move |running| (wakee, running))) {
        let mut lab = Lab::new();
        let task = lab.sched.add_task(&of[wakee]);
        lab.wake_new(&of[running]);
        if wakee != running {
            assert_eq!(lab.wake(task), wakee < running, "class {wakee} wakes, class {running} runs");
        }
    }
}

#[test]
fn tasks_move_into_it_and_out_of_it() {
    let mut lab = Lab::new();
    let (a, b) = (lab.wake_new(&TaskAttr::default()), lab.wake_new(&TaskAttr::default()));
    // The running task stays current; the waiting one then goes first.
    let resched = lab.sched.__sched_setscheduler(b, toy(), lab.now);
    lab.follow(resched);
    assert_eq!(lab.sched.curr(CPU), Some(b));
    let resched = lab.sched.__sched_setscheduler(a, toy(), lab.now);
    lab.follow(resched);
    assert_eq!(lab.ticks(6), [[b; 3], [a; 3]].concat().into_iter().map(Some).collect::<Vec<_>>());
    let resched = lab.sched.set_rt_policy(a, fifo(), lab.now);
    lab.follow(resched);
    assert_eq!(lab.sched.curr(CPU), Some(a));
    let resched = lab.sched.set_policy(a, FairPolicy::Normal, lab.now);
    lab.follow(resched);
    assert_eq!(lab.sched.curr(CPU), Some(b));
    let resched = lab.sched.set_policy(b, FairPolicy::Normal, lab.now);
    lab.follow(resched);
    assert_eq!((lab.sched.nr_running(CPU), lab.sched.fair.rq(CPU).h_nr_running), (2, 2));
    assert!(lab.sched.toy.queues[0].is_empty());
}
