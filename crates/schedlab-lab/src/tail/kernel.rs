//! One kernel: every event moves a task through its states and leaves a bounded history.

use std::collections::BTreeMap;

use schedlab_metrics::Plan;
use schedlab_model::{Nanos, Pid};
use schedlab_trace::TaskState;

use super::free::Held;
use super::history::{Executed, History, Slice, Stay, Waker, Wakeup, What};
use super::load::Load;
use super::names::Name;
use super::threads::{ProgramThreads, Times, ASLEEP, RUNNING, THROTTLED, WAITING};

/// What a task does now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No event has shown it yet.
    Unknown,
    Running(usize),
    /// Runnable, since it was preempted or created.
    Waiting,
    Asleep,
}

/// A task that has not ended.
struct Task {
    program: Name,
    state: State,
    since: Nanos,
    /// When and by what it was woken.
    woken: Option<(Nanos, Wakeup)>,
    /// The CPU on whose runqueue it waits.
    queued: Option<usize>,
    /// What has no runtime left for it.
    throttled: Option<Name>,
    history: History,
    /// Begin and end of the last sample of time in a queue.
    queueing: (Nanos, Nanos),
    /// Its state as its program counts it.
    counted: Option<usize>,
}

impl Task {
    fn new(program: Name, now: Nanos) -> Task {
        let (state, history) = (State::Unknown, History::default());
        Task {
            program,
            state,
            since: now,
            woken: None,
            queued: None,
            throttled: None,
            history,
            queueing: (1, 0),
            counted: None,
        }
    }

    /// What it has done since its last interval ended.
    fn open(&self, now: Nanos) -> Vec<Stay> {
        let stay = |from, until, what| Stay { from, until, what };
        match (self.state, self.woken) {
            (State::Unknown, _) => Vec::new(),
            (State::Running(cpu), _) => vec![stay(self.since, now, What::Ran(cpu))],
            (State::Waiting, _) => {
                let what = self.throttled.map_or(What::Waited(usize::MAX), What::Throttled);
                vec![stay(self.since, now, what)]
            }
            (State::Asleep, None) => vec![stay(self.since, now, What::Slept(Wakeup::UNKNOWN))],
            (State::Asleep, Some((at, wakeup))) => {
                let at = at.clamp(self.since, now);
                vec![stay(at, now, What::Waited(usize::MAX)), stay(self.since, at, What::Slept(wakeup))]
            }
        }
    }

    /// Its wait up to now was on the runqueue of this CPU; from now on it may be on another.
    fn waited_on(&mut self, now: Nanos, cpu: usize) {
        for stay in self.open(now).into_iter().rev() {
            let what = if let What::Waited(_) = stay.what { What::Waited(cpu) } else { stay.what };
            self.history.push(stay.from, stay.until, what);
        }
        (self.state, self.since) = (State::Waiting, now);
    }

    /// Its intervals between `low` and `high`, the last first.
    fn between(&self, low: Nanos, high: Nanos, now: Nanos) -> Vec<Stay> {
        let open = self.open(now).into_iter().filter(|stay| stay.from < high && stay.until > low);
        let cut = open.map(|stay| Stay { from: stay.from.max(low), until: stay.until.min(high), ..stay });
        cut.chain(self.history.between(low, high)).collect()
    }
}

/// A wakeup that has ended: how long it took.
pub type Latency = Option<Nanos>;

/// One kernel and its tasks.
pub struct Kernel {
    pub name: String,
    pub load: Load,
    /// Name of the metric, and whether its samples are time in a queue.
    pub metrics: Vec<(String, bool)>,
    running: Vec<Pid>,
    executed: Vec<Executed>,
    tasks: BTreeMap<Pid, Task>,
    programs: BTreeMap<Pid, Name>,
    threads_of: BTreeMap<Name, ProgramThreads>,
    free: Held,
    /// Whether it is asked for the tasks that were enqueued.
    pub watches_throttling: bool,
    enqueued: Vec<Pid>,
}

impl Kernel {
    pub fn new(name: &str, cpus: usize, plan: &Plan, from: Nanos) -> Self {
        let named =
            plan.metrics.iter().map(|entry| (format!("{}.{}", entry.workload, entry.decl.name), entry.decl.queueing));
        Kernel {
            name: name.to_owned(),
            load: Load::new(cpus, from),
            metrics: named.collect(),
            running: vec![0; cpus],
            executed: vec![Executed::default(); cpus],
            tasks: BTreeMap::new(),
            programs: BTreeMap::new(),
            threads_of: BTreeMap::new(),
            free: Held::default(),
            watches_throttling: false,
            enqueued: Vec::new(),
        }
    }

    pub fn cpus(&self) -> usize {
        self.running.len()
    }

    pub fn rename(&mut self, pid: Pid, program: Name) {
        self.programs.insert(pid, program);
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.program = program;
        }
    }

    pub fn program(&self, pid: Pid) -> Name {
        self.programs.get(&pid).copied().unwrap_or_default()
    }

    /// `sched_switch`. Returns how long the wakeup of the task that begins to run took.
    pub fn switch(&mut self, now: Nanos, cpu: usize, prev: Pid, state: TaskState, next: Pid) -> Latency {
        if cpu >= self.running.len() {
            return None;
        }
        if prev != 0 {
            self.leaves(now, cpu, prev, state);
        }
        let latency = if next == 0 { None } else { self.enters(now, cpu, next) };
        self.running[cpu] = next;
        self.load.busy(now, cpu, next != 0);
        self.free.set(now, self.load.some_free());
        latency
    }

    fn leaves(&mut self, now: Nanos, cpu: usize, pid: Pid, state: TaskState) {
        let task = self.task(pid, 0);
        let since = if task.state == State::Unknown { 0 } else { task.since };
        task.history.push(since, now, What::Ran(cpu));
        let program = task.program;
        task.since = now;
        let preempted = state == TaskState::Running;
        task.state = if preempted { State::Waiting } else { State::Asleep };
        if preempted {
            task.woken = None;
        }
        self.executed[cpu].push(Slice { from: since, until: now, pid, program });
        self.leave_queue(now, pid);
        if preempted {
            self.queue(now, pid, cpu);
        }
        self.count(now, pid);
        if state == TaskState::Dead {
            self.ended(now, pid);
        }
    }

    fn enters(&mut self, now: Nanos, cpu: usize, pid: Pid) -> Latency {
        self.task(pid, now).waited_on(now, cpu);
        self.leave_queue(now, pid);
        let task = self.task(pid, now);
        let latency = task.woken.map(|(at, _)| now.saturating_sub(at));
        (task.state, task.since, task.woken) = (State::Running(cpu), now, None);
        self.count(now, pid);
        latency
    }

    fn ended(&mut self, now: Nanos, pid: Pid) {
        if let Some(task) = self.tasks.remove(&pid) {
            if let Some(threads) = self.threads_of.get_mut(&task.program) {
                threads.change(now, task.counted, None);
            }
        }
        self.programs.remove(&pid);
    }

    /// `sched_waking`, on the CPU of the waker.
    pub fn waking(&mut self, now: Nanos, cpu: usize, interrupt: bool, pid: Pid) {
        let wakeup = match self.running.get(cpu).copied().unwrap_or_default() {
            waker if interrupt || waker == 0 => Wakeup { by: Waker::Interrupt, pid: 0, cpu },
            waker => Wakeup { by: Waker::Task(self.program(waker)), pid: waker, cpu },
        };
        let task = self.task(pid, now);
        if task.queued.is_none() && task.state != State::Waiting {
            task.woken.get_or_insert((now, wakeup));
        }
    }

    /// `sched_wakeup`, or `sched_wakeup_new` of a new task: it is on a runqueue.
    pub fn wakeup(&mut self, now: Nanos, pid: Pid, cpu: usize, new: bool) {
        let task = self.task(pid, now);
        match task.state {
            // The wakeup found it still running.
            State::Running(_) => task.woken = None,
            _ if task.queued.is_some() => {}
            _ => {
                if new {
                    (task.state, task.since, task.woken) = (State::Waiting, now, None);
                } else {
                    task.woken.get_or_insert((now, Wakeup::UNKNOWN));
                }
                self.queue(now, pid, cpu);
                self.free.set(now, self.load.some_free());
                self.count(now, pid);
            }
        }
    }

    /// `sched_migrate_task`; it concerns a runqueue only if the task waits on one.
    pub fn migrate(&mut self, now: Nanos, pid: Pid, to: usize) {
        if let Some(from) = self.tasks.get(&pid).and_then(|task| task.queued) {
            self.task(pid, now).waited_on(now, from);
            self.leave_queue(now, pid);
            self.queue(now, pid, to);
            self.free.set(now, self.load.some_free());
        }
    }

    /// From now on the waiting task is, or is not, kept from running by a lack of runtime.
    pub fn throttle(&mut self, now: Nanos, pid: Pid, by: Option<Name>) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let Some(cpu) = task.queued.filter(|_| task.throttled != by) else { return };
        task.waited_on(now, cpu);
        let was = std::mem::replace(&mut task.throttled, by).is_some();
        if was != by.is_some() {
            // No CPU can run it, so it is not one that waits for a CPU.
            self.load.waits(now, cpu, was);
            self.free.set(now, self.load.some_free());
            self.count(now, pid);
        }
    }

    /// The tasks on runqueues.
    pub fn waiting(&self) -> Vec<Pid> {
        self.tasks.iter().filter(|(_, task)| task.queued.is_some()).map(|(pid, _)| *pid).collect()
    }

    /// The tasks that were put on a runqueue since the last call.
    pub fn take_enqueued(&mut self) -> Vec<Pid> {
        std::mem::take(&mut self.enqueued)
    }

    /// For how long the sample was in a queue before the task took it. For time in a queue, that is all of it.
    pub fn queued(&mut self, now: Nanos, pid: Pid, metric: usize, ns: Nanos) -> Nanos {
        let begin = now.saturating_sub(ns);
        let queue = self.metrics.get(metric).is_some_and(|(_, queue)| *queue);
        let task = self.task(pid, now);
        if queue {
            task.queueing = (begin, now);
            let program = task.program;
            self.add_program(now, program);
            return ns;
        }
        let (since, until) = task.queueing;
        if since == begin && until <= now {
            until - since
        } else {
            0
        }
    }

    /// What the threads of the task's program did between two moments.
    pub fn threads(&self, pid: Pid, low: Nanos, high: Nanos) -> Times {
        let program = self.tasks.get(&pid).map(|task| task.program);
        program.and_then(|program| self.threads_of.get(&program)).map_or([0; 4], |threads| threads.between(low, high))
    }

    /// What a CPU executed.
    pub fn executed(&self, cpu: usize) -> Option<&Executed> {
        self.executed.get(cpu)
    }

    /// For how long some CPU was idle with nothing on its runqueue.
    pub fn free(&self, low: Nanos, high: Nanos) -> Nanos {
        self.free.between(low, high)
    }

    /// Whether the history of the task is kept.
    pub fn is_known(&self, pid: Pid) -> bool {
        self.tasks.contains_key(&pid)
    }

    /// The intervals of a task between two moments, the last first.
    pub fn stays(&self, pid: Pid, low: Nanos, high: Nanos, now: Nanos) -> Vec<Stay> {
        self.tasks.get(&pid).map_or_else(Vec::new, |task| task.between(low, high, now))
    }

    fn task(&mut self, pid: Pid, now: Nanos) -> &mut Task {
        let programs = &self.programs;
        let program = || programs.get(&pid).copied().unwrap_or_default();
        self.tasks.entry(pid).or_insert_with(|| Task::new(program(), now))
    }

    fn queue(&mut self, now: Nanos, pid: Pid, cpu: usize) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.queued = Some(cpu);
            self.load.waits(now, cpu, true);
            self.enqueued.extend(self.watches_throttling.then_some(pid));
        }
    }

    fn leave_queue(&mut self, now: Nanos, pid: Pid) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let throttled = task.throttled.take().is_some();
        if let Some(cpu) = task.queued.take().filter(|_| !throttled) {
            self.load.waits(now, cpu, false);
        }
    }

    /// The tasks of a program, counted by state from now on.
    fn add_program(&mut self, now: Nanos, program: Name) {
        if self.threads_of.contains_key(&program) {
            return;
        }
        self.threads_of.insert(program, ProgramThreads::default());
        let pids: Vec<Pid> =
            self.tasks.iter().filter(|(_, task)| task.program == program).map(|(pid, _)| *pid).collect();
        pids.into_iter().for_each(|pid| self.count(now, pid));
    }

    /// Updates the counts of the program, if there are any, with the state of a task.
    fn count(&mut self, now: Nanos, pid: Pid) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let Some(threads) = self.threads_of.get_mut(&task.program) else { return };
        let state = match task.state {
            State::Unknown => None,
            State::Running(_) => Some(RUNNING),
            _ if task.throttled.is_some() => Some(THROTTLED),
            State::Waiting => Some(WAITING),
            State::Asleep => Some(if task.queued.is_some() { WAITING } else { ASLEEP }),
        };
        threads.change(now, task.counted, state);
        task.counted = state;
    }
}

/// The vCPU that a thread of the host is by its name, `GUEST/NUMBER`.
pub fn vcpu_of(thread: &str, guests: &[Kernel]) -> Option<(usize, usize)> {
    guests.iter().enumerate().skip(1).find_map(|(index, guest)| {
        let vcpu = thread.strip_prefix(guest.name.as_str())?.strip_prefix('/')?.parse().ok()?;
        (vcpu < guest.cpus()).then_some((index, vcpu))
    })
}
