//! From records to operations: which part of the kernel emitted a record, and what it decided.
//!
//! Follows core.c and fair.c: which records an operation emits and in which order is the same in every modelled version,
//! with three exceptions that are told apart by the records themselves. What was decided is read from the need-resched
//! flag of the next record on the CPU. Knows nothing of vruntimes except to find a task's weight.

mod account;
mod ahead;
mod balance;
mod class;
mod clock;
mod flag;
mod switch;
mod told;
mod wake;

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_trace::Kind;

use self::ahead::{charged_before_probe, waiting};
use crate::operation::{Operation, Weight, Whereabouts};
use crate::step::{Address, Set, Step, What, UNNAMED};
use crate::window::Window;

/// What is known from the records so far.
pub struct Reading {
    cpus: Vec<Cpu>,
    tasks: BTreeMap<Pid, Task>,
    operations: Vec<Operation>,
    /// CONFIG_SCHED_AUTOGROUP: an exiting task is moved to its group once more.
    autogroup: bool,
    /// Sessions are groups, as sched_autogroup_enabled says.
    sessions: bool,
    /// The tick's period, where HRTICK is on: a second timer interrupt in one period may be a slice's.
    hrtick: Option<Nanos>,
    /// The trace has runtimes.
    charges: bool,
    /// Tasks that waited on a queue when the recording began, until their CPU's first record.
    waiting: Option<Vec<(Pid, CpuId)>>,
    /// The group that each task was last shown in.
    shown_in: BTreeMap<Pid, Address>,
    /// A probe at an accounting reads the state behind it, not before it.
    probes_charged: Option<bool>,
    now: Nanos,
}

/// A CPU.
#[derive(Clone, Default)]
struct Cpu {
    /// The running task; `None` until the first record.
    current: Option<Pid>,
    /// An arriving task has shown where its queue stands in virtual time.
    primed: bool,
    /// When its running task was charged last.
    charged: Nanos,
    /// Need-resched as last seen.
    flag: bool,
    /// Tasks that code on this CPU has detached and not yet attached: where they go, and where that leaves them.
    moving: Vec<(Pid, CpuId, Place)>,
    /// The clock by which code on this CPU queued a task that was not woken.
    attaches: Option<Nanos>,
    /// The timer of a slice fired, and its accounting is to come.
    hrtick: bool,
    /// The last period whose tick was seen.
    ticked: u64,
    /// Its last record was an interrupt's.
    interrupted: bool,
    /// This record is a charge that only `schedule()` can have made.
    schedules: bool,
    /// The running task already left its queue.
    blocked: bool,
    /// It idles, and was brought tasks: it looks for one to run once the interrupt that brought them is over.
    brought: bool,
    /// Its last record was a charge.
    just_charged: bool,
    /// The clock stands still: a fork found nothing to charge.
    stands: bool,
    /// The running task entered `sched_yield`.
    yields: bool,
    /// It entered `setsid`.
    begins: bool,
    /// It has yielded: its switch says nothing about the flag.
    yielded: bool,
    /// Code on this CPU charged the current task of another, where it wakes a task: the flag there before its check.
    checking: Option<(CpuId, bool)>,
}

/// A task.
#[derive(Clone)]
struct Task {
    prio: i32,
    weight: Weight,
    place: Place,
    /// Its state was taken from the trace.
    taken: bool,
    exiting: bool,
    /// Its wakeup has begun and not ended.
    waking: bool,
    /// When it began.
    asked: Nanos,
    /// It was woken while it had the CPU: it may call `schedule()` and stay runnable.
    woken: bool,
    /// It changed CPU within its wakeup.
    moved: bool,
    /// It left the fair class, and a model remembers it.
    away: bool,
    /// It is about to change its own or another's scheduling.
    sets: Option<Set>,
    /// Whose, as its system call says.
    names: Option<Pid>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Running(CpuId),
    Queued(CpuId),
    /// On no queue: asleep, being woken, not yet woken for the first time, or between two queues.
    Off(CpuId),
}

impl Reading {
    pub fn new(cpus: usize, (autogroup, sessions): (bool, bool), hrtick: Option<Nanos>) -> Self {
        Reading {
            cpus: vec![Cpu::default(); cpus.max(1)],
            tasks: BTreeMap::new(),
            operations: Vec::new(),
            autogroup,
            sessions,
            hrtick,
            charges: false,
            waiting: None,
            shown_in: BTreeMap::new(),
            probes_charged: None,
            now: 0,
        }
    }

    /// The operations that a record stands for or completes.
    pub fn read(&mut self, step: &Step, ahead: &Window<'_>) -> std::vec::Drain<'_, Operation> {
        let needed = step.cpu.index() + 1;
        if self.cpus.len() < needed {
            self.cpus.resize(needed, Cpu::default());
        }
        self.step(step, ahead);
        self.operations.drain(..)
    }

    fn step(&mut self, step: &Step, ahead: &Window<'_>) {
        let kind = match step.what {
            What::Event(kind) => kind,
            What::Probe(probe) => {
                if let Some(address) = probe.address {
                    self.shown_in.insert(probe.pid, address);
                }
                let charged = *self.probes_charged.get_or_insert_with(|| charged_before_probe(ahead));
                return self.push(Operation::Show { probe, charged });
            }
            What::Hrtick => {
                self.cpu(step.cpu).hrtick = true;
                return;
            }
            What::Yield => {
                self.cancel(step.pid);
                self.cpu(step.cpu).yields = true;
                return;
            }
            What::Session => {
                self.cpu(step.cpu).begins = true;
                return;
            }
            What::Set(set) => {
                if let Some(task) = self.tasks.get_mut(&step.pid) {
                    task.announce(set, step.pid);
                }
                return;
            }
            What::Names(pid) => {
                if let Some(task) = self.tasks.get_mut(&step.pid) {
                    task.names = Some(pid);
                }
                return;
            }
            What::Clock { cpu: Some(cpu), clock, .. } => {
                self.cpu(step.cpu).attaches = Some(clock);
                return self.push(Operation::Clock { cpu, clock });
            }
            What::AgesAll { cpu } => return self.age(step, cpu, ahead),
            What::Aged { cpu, at, state: Some(state) } => {
                let next = ahead.next_event_on(step.cpu);
                let wakes = matches!(next, Some(Kind::Wakeup { .. } | Kind::WakeupNew { .. } | Kind::Migrate { .. }));
                let tells = !wakes && !step.in_irq() && self.cpu(step.cpu).moving.is_empty();
                let in_task = step.in_task();
                if self.cpu(step.cpu).moving.iter().any(|(_, to, _)| *to == cpu) {
                    self.cpu(step.cpu).attaches = Some(state.clock);
                }
                self.push(Operation::Clock { cpu, clock: state.clock });
                self.tell_group(step, state.group.at, cpu, ahead);
                return self.push(Operation::AgeOne { cpu, at, state, tells, in_task });
            }
            What::Clock { .. } | What::Aged { .. } => return,
            What::Lost => return self.lost(),
            What::Other => return,
        };
        self.start(step, ahead);
        self.arrive_before(step, kind, ahead);
        self.arrive_to_run(step, kind, ahead);
        self.leave_before_switching(step, kind, ahead);
        self.tell_clock(step, kind, ahead);
        self.tell_groups(step, kind, ahead);
        self.now = step.time;
        self.cpu(step.cpu).schedules = false;
        let before = self.follow_flag(step, kind, ahead);
        if step.in_task() && !matches!(kind, Kind::Switch { .. }) {
            self.cpu(step.cpu).yielded = false;
        }
        if step.in_task() && !matches!(kind, Kind::Runtime { .. }) {
            self.set_pending(step.pid, false);
            self.cpu(step.cpu).begins = false;
        }
        let interrupted = std::mem::replace(&mut self.cpu(step.cpu).interrupted, !step.in_task());
        match kind {
            Kind::Runtime { pid, runtime, vruntime } => self.runtime(step, pid, runtime, vruntime, ahead),
            Kind::Waking { pid, prio, target_cpu } => self.waking(pid, prio, target_cpu, ahead),
            Kind::Wakeup { pid, prio, target_cpu } => self.wakeup(step, (pid, prio, target_cpu), before, ahead),
            Kind::WakeupNew { pid, prio, target_cpu } => self.wakeup_new(step, (pid, prio, target_cpu), ahead),
            Kind::Migrate { pid, prio, orig_cpu, dest_cpu } => {
                self.migrate(step, (pid, prio), orig_cpu, dest_cpu, ahead);
            }
            Kind::Fork { parent, child } => {
                self.cancel(parent);
                // Where nothing is shown, nothing better comes than the place of now.
                self.fork(step.cpu, parent, child, !interrupted || !ahead.shows_state());
            }
            Kind::Exit { pid, .. } => self.exit(pid),
            Kind::Switch { .. } => self.switch(step, kind, ahead),
            Kind::Sample { .. } | Kind::Count { .. } | Kind::Scan { .. } => {}
        }
        self.cpu(step.cpu).just_charged = matches!(kind, Kind::Runtime { .. });
        self.repick_before_next(step, ahead);
    }

    /// The first record on a CPU says who runs there.
    fn start(&mut self, step: &Step, ahead: &Window<'_>) {
        if self.cpu(step.cpu).current.is_some() {
            return;
        }
        let pid = match step.kind() {
            Some(Kind::Switch { prev, .. }) => prev,
            _ => step.pid,
        };
        self.cpu(step.cpu).current = Some(pid);
        self.cpu(step.cpu).flag = step.flag();
        self.start_clock(step.cpu, ahead);
        if pid != 0 {
            self.introduce(pid, None, Whereabouts::Running(step.cpu), Some(step), ahead);
        }
        let waiting = self.waiting.take().unwrap_or_else(|| waiting(step, ahead));
        let (own, others) = waiting.into_iter().partition(|(_, cpu)| *cpu == step.cpu);
        self.waiting = Some(others);
        for (pid, cpu) in own {
            if !self.tasks.contains_key(&pid) {
                self.introduce(pid, None, Whereabouts::Queued(cpu), None, ahead);
            }
        }
    }

    /// What the task announced did not happen.
    fn cancel(&mut self, pid: Pid) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.sets = None;
        }
    }

    fn exit(&mut self, pid: Pid) {
        self.cancel(pid);
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.exiting = true;
        }
    }

    fn lost(&mut self) {
        let cpus = self.cpus.len();
        *self = Reading::new(cpus, (self.autogroup, self.sessions), self.hrtick);
        self.push(Operation::Lost);
    }

    fn push(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        let index = cpu.index();
        if index >= self.cpus.len() {
            self.cpus.resize(index + 1, Cpu::default());
        }
        &mut self.cpus[index]
    }

    fn current(&self, cpu: CpuId) -> Option<Pid> {
        self.cpus.get(cpu.index())?.current
    }

    fn current_is_fair(&self, cpu: CpuId) -> bool {
        self.current(cpu).and_then(|pid| self.tasks.get(&pid)).is_some_and(Task::is_fair)
    }

    fn place(&self, pid: Pid) -> Option<Place> {
        self.tasks.get(&pid).map(|task| task.place)
    }

    fn put(&mut self, pid: Pid, place: Place) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.place = place;
        }
    }
}

impl Task {
    fn new(prio: i32, weight: Weight, place: Place) -> Self {
        let (taken, exiting, waking, woken, moved, away) = (false, false, false, false, false, false);
        Task { prio, weight, place, taken, exiting, waking, woken, moved, away, sets: None, names: None, asked: 0 }
    }

    /// The task, `own`, says what it is about to do.
    fn announce(&mut self, set: Set, own: Pid) {
        let named = self.sets.map(Set::whose).or(self.names.take()).unwrap_or(own);
        self.sets = Some(match set {
            Set::Scheduler { pid: UNNAMED, policy, nice, slice } => Set::Scheduler { pid: named, policy, nice, slice },
            set => set,
        });
    }

    /// Whether the fair class has it now.
    fn is_fair(&self) -> bool {
        is_fair(self.prio) && !self.away
    }

    fn at(&self) -> Whereabouts {
        match self.place {
            Place::Running(cpu) => Whereabouts::Running(cpu),
            Place::Queued(cpu) => Whereabouts::Queued(cpu),
            Place::Off(cpu) => Whereabouts::Asleep(cpu),
        }
    }
}

/// Whether a kernel priority (0..=139) belongs to the fair class.
fn is_fair(prio: i32) -> bool {
    (100..140).contains(&prio)
}

/// The nice value of a fair priority.
fn nice(prio: i32) -> i8 {
    (prio - 120).clamp(-20, 19) as i8
}
