//! One kernel: every event moves a task through its states and leaves a bounded history.

use std::collections::BTreeMap;

use schedlab_metrics::Plan;
use schedlab_model::{Nanos, Pid};
use schedlab_trace::TaskState;

use super::account::Account;
use super::free::Held;
use super::history::{Executed, History, Slice, Stay, Waker, What};
use super::load::Load;
use super::names::Name;
use super::threads::{ProgramThreads, ASLEEP, RUNNING, WAITING};

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
    /// When, by what and on which CPU it was woken.
    woken: Option<(Nanos, Waker, usize)>,
    /// The CPU on whose runqueue it waits.
    queued: Option<usize>,
    history: History,
    /// Begin and end of the last sample of time in a queue.
    queueing: (Nanos, Nanos),
    /// Its state as its program counts it.
    counted: Option<usize>,
}

impl Task {
    fn new(program: Name, now: Nanos) -> Task {
        let (state, history) = (State::Unknown, History::default());
        Task { program, state, since: now, woken: None, queued: None, history, queueing: (1, 0), counted: None }
    }

    /// What it has done since its last interval ended.
    fn open(&self, now: Nanos) -> Vec<Stay> {
        let stay = |from, until, what| Stay { from, until, what };
        match (self.state, self.woken) {
            (State::Unknown, _) => Vec::new(),
            (State::Running(cpu), _) => vec![stay(self.since, now, What::Ran(cpu))],
            (State::Waiting, _) => vec![stay(self.since, now, What::Waited(usize::MAX))],
            (State::Asleep, None) => vec![stay(self.since, now, What::Slept(Waker::Unknown, usize::MAX))],
            (State::Asleep, Some((at, by, on))) => {
                let at = at.clamp(self.since, now);
                vec![stay(at, now, What::Waited(usize::MAX)), stay(self.since, at, What::Slept(by, on))]
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
        self.leave_queue(now, pid);
        let task = self.task(pid, now);
        let latency = task.woken.map(|(at, ..)| now.saturating_sub(at));
        task.waited_on(now, cpu);
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
        let by = match self.running.get(cpu).copied().unwrap_or_default() {
            _ if interrupt => Waker::Interrupt,
            0 => Waker::Interrupt,
            waker => Waker::Task(self.program(waker)),
        };
        let task = self.task(pid, now);
        if task.queued.is_none() && task.state != State::Waiting {
            task.woken.get_or_insert((now, by, cpu));
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
                    task.woken.get_or_insert((now, Waker::Unknown, usize::MAX));
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
            self.leave_queue(now, pid);
            self.task(pid, now).waited_on(now, from);
            self.queue(now, pid, to);
            self.free.set(now, self.load.some_free());
        }
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

    /// Divides a sample that ends now; no task worked on it in its first `queued` ns.
    pub fn divide(&self, now: Nanos, pid: Pid, ns: Nanos, queued: Nanos, host: Option<&Host<'_>>) -> Account {
        let begin = now.saturating_sub(ns);
        let mut account = Account { queued, ..Account::default() };
        let Some(task) = self.tasks.get(&pid) else {
            account.unknown = ns - queued;
            return account;
        };
        if let Some(threads) = self.threads_of.get(&task.program).filter(|_| queued > 0) {
            account.threads = threads.between(begin, begin + queued);
        }
        let mut known = 0;
        for stay in task.between(begin + queued, now, now) {
            known += stay.until - stay.from;
            match stay.what {
                What::Ran(cpu) => self.ran(&mut account, stay, cpu, now, host),
                What::Waited(cpu) => self.waited(&mut account, stay, cpu, now, host),
                What::Slept(by, on) => slept(&mut account, stay, by, on, now, host),
            }
        }
        account.unknown = (ns - queued).saturating_sub(known);
        account
    }

    fn ran(&self, account: &mut Account, stay: Stay, cpu: usize, now: Nanos, host: Option<&Host<'_>>) {
        let stolen = host.map_or(0, |host| host.steal(account, stay.from, stay.until, cpu, now));
        account.ran += stay.until - stay.from - stolen;
    }

    fn waited(&self, account: &mut Account, stay: Stay, cpu: usize, now: Nanos, host: Option<&Host<'_>>) {
        let (low, high) = (stay.from, stay.until);
        let Some(executed) = self.executed.get(cpu) else {
            account.unknown += high - low;
            return;
        };
        let from = executed.known_from().clamp(low, high);
        account.unknown += from - low;
        let stolen = host.map_or(0, |host| host.steal(account, from, high, cpu, now));
        let mut behind = 0;
        for slice in executed.between(from, high) {
            let on = host.map_or(slice.until - slice.from, |host| host.on(slice.from, slice.until, cpu, now));
            behind += on;
            *account.before.entry(slice.program).or_default() += on;
            account.elsewhere += self.free.between(slice.from, slice.until).min(on);
        }
        account.behind += behind;
        account.waking += (high - from).saturating_sub(behind + stolen);
    }

    /// The intervals of a task between two moments, for the guest whose vCPU it is.
    pub fn stays(&self, pid: Pid, low: Nanos, high: Nanos, now: Nanos) -> Vec<Stay> {
        self.tasks.get(&pid).map_or_else(Vec::new, |task| task.between(low, high, now))
    }

    fn task(&mut self, pid: Pid, now: Nanos) -> &mut Task {
        let program = self.programs.get(&pid).copied().unwrap_or_default();
        self.tasks.entry(pid).or_insert_with(|| Task::new(program, now))
    }

    fn queue(&mut self, now: Nanos, pid: Pid, cpu: usize) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.queued = Some(cpu);
            self.load.waits(now, cpu, true);
        }
    }

    /// Whether the task was on a runqueue.
    fn leave_queue(&mut self, now: Nanos, pid: Pid) -> bool {
        let Some(cpu) = self.tasks.get_mut(&pid).and_then(|task| task.queued.take()) else { return false };
        self.load.waits(now, cpu, false);
        true
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
            State::Waiting => Some(WAITING),
            State::Asleep => Some(if task.queued.is_some() { WAITING } else { ASLEEP }),
        };
        threads.change(now, task.counted, state);
        task.counted = state;
    }
}

/// A timer of a guest expires late if its vCPU has no CPU of the host when it is due: that part of the sleep is stolen.
fn slept(account: &mut Account, stay: Stay, by: Waker, on: usize, now: Nanos, host: Option<&Host<'_>>) {
    let host = host.filter(|_| by == Waker::Interrupt);
    let stolen = host.map_or(0, |host| host.steal(account, stay.from, stay.until, on, now));
    let left = stay.until - stay.from - stolen;
    account.slept += left;
    if left > 0 {
        *account.wakers.entry(by).or_default() += left;
    }
}

/// The host below a guest.
pub struct Host<'a> {
    pub kernel: &'a Kernel,
    /// The task of the host that each vCPU is.
    pub threads: BTreeMap<usize, Pid>,
}

impl Host<'_> {
    /// For how long the vCPU was on a CPU of the host.
    fn on(&self, low: Nanos, high: Nanos, vcpu: usize, now: Nanos) -> Nanos {
        let Some(pid) = self.threads.get(&vcpu) else { return high - low };
        let stays = self.kernel.stays(*pid, low, high, now);
        stays.iter().filter(|stay| matches!(stay.what, What::Ran(_))).map(|stay| stay.until - stay.from).sum()
    }

    /// Adds the time for which the vCPU was runnable and not on a CPU, and what ran there instead. Returns it.
    fn steal(&self, account: &mut Account, low: Nanos, high: Nanos, vcpu: usize, now: Nanos) -> Nanos {
        let Some(pid) = self.threads.get(&vcpu) else { return 0 };
        let mut stolen = 0;
        for stay in self.kernel.stays(*pid, low, high, now) {
            let What::Waited(cpu) = stay.what else { continue };
            stolen += stay.until - stay.from;
            for slice in self.kernel.executed.get(cpu).into_iter().flat_map(|cpu| cpu.between(stay.from, stay.until)) {
                *account.thieves.entry(slice.program).or_default() += slice.until - slice.from;
            }
        }
        account.stolen += stolen;
        stolen
    }
}

/// The vCPU that a thread of the host is by its name, `GUEST/NUMBER`.
pub fn vcpu_of(thread: &str, guests: &[Kernel]) -> Option<(usize, usize)> {
    guests.iter().enumerate().skip(1).find_map(|(index, guest)| {
        let vcpu = thread.strip_prefix(guest.name.as_str())?.strip_prefix('/')?.parse().ok()?;
        (vcpu < guest.cpus()).then_some((index, vcpu))
    })
}
