//! A reference interpreter of task programs: as many CPUs as tasks, no scheduler, no costs. It shows what a program
//! does, not how long a kernel takes for it.

#![allow(dead_code)]

mod sync;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::mem::{discriminant, Discriminant};

use schedlab_model::{stream, Nanos, Stream};
use schedlab_workload::{Amount, MemoryWork, MetricKind, ObjectSpec, Op, TimerMode, Workload};

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// Every task has exited.
    Exited,
    /// A task executed `Finish`.
    Finished,
    /// The limit of time was reached.
    Limit,
    /// Nothing can run any more: these tasks wait.
    Deadlock(Vec<String>),
    /// A task did so many steps without any time passing.
    Livelock(String),
}

/// What a run did.
#[derive(Debug)]
pub struct Outcome {
    pub end: End,
    pub now: Nanos,
    /// Messages written and read, by object.
    pub written: Vec<u64>,
    pub read: Vec<u64>,
    /// Samples by metric.
    pub samples: Vec<Vec<i64>>,
    /// Counted operations by metric.
    pub counts: Vec<u64>,
    /// Tasks created, at the start and by fork.
    pub created: usize,
    pub exited: usize,
    /// Most tasks alive at once.
    pub alive_max: usize,
    /// Times a gate let tasks through while they waited.
    pub storms: Vec<usize>,
    /// Programs replaced.
    pub execs: usize,
    /// System calls, but for sleeps, forks and exits.
    pub calls: u64,
    /// Page faults.
    pub faults: u64,
    /// Bytes moved between CPU and memory.
    pub streamed: u64,
    /// Registers of other tasks that were set, and to what.
    pub peer_registers: Vec<(u8, i64)>,
    /// Operations that were completed, by kind.
    completed: Vec<(Discriminant<Op>, u64)>,
}

impl Outcome {
    /// How many operations of the kind of this one were completed; one that blocks is when its task goes on.
    pub fn completed(&self, like: Op) -> u64 {
        self.completed.iter().find(|(kind, _)| *kind == discriminant(&like)).map_or(0, |(_, count)| *count)
    }

    fn complete(&mut self, op: &Op) {
        let kind = discriminant(op);
        match self.completed.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.completed.push((kind, 1)),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum State {
    Ready,
    Waiting(&'static str),
    Exited,
}

struct Task {
    program: usize,
    pc: usize,
    regs: [i64; 8],
    state: State,
    parent: Option<usize>,
    children: usize,
    zombies: usize,
    posted: bool,
    stack: Vec<usize>,
    mailbox: VecDeque<i64>,
    relock: Option<u32>,
    /// The timeout of the wait it is in, by its number in the queue of events.
    timeout: Option<u64>,
    /// That timeout has expired.
    expired: bool,
}

enum Object {
    Channel { used: usize, capacity: usize, messages: VecDeque<usize> },
    Futex { posted: bool, waiter: Option<usize> },
    Mutex { owner: Option<usize>, waiting: VecDeque<usize> },
    Barrier { parties: usize, waiting: Vec<usize> },
    Semaphore { units: u32, waiting: VecDeque<usize> },
    Condition(VecDeque<usize>),
    List(Vec<usize>),
    Gate { open: bool, waiting: Vec<usize> },
    Timer(Option<Nanos>),
    CpuLocks,
    FutexQueue(VecDeque<usize>),
    Queue { values: VecDeque<i64>, waiting: VecDeque<usize> },
}

/// Steps of one task at one instant before it counts as a livelock.
const LIVELOCK: u64 = 3_000_000;

pub struct Machine<'w> {
    workload: &'w Workload,
    now: Nanos,
    seq: u64,
    queue: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    /// Events of `queue` that are timeouts.
    timeouts: BTreeSet<u64>,
    steps: u64,
    budget: u64,
    tasks: Vec<Task>,
    objects: Vec<Object>,
    rng: Stream,
    out: Outcome,
}

impl<'w> Machine<'w> {
    pub fn new(workload: &'w Workload) -> Self {
        let objects = workload.objects.iter().map(object).collect();
        let metrics = workload.metrics.len();
        let mut machine = Machine {
            workload,
            now: 0,
            seq: 0,
            queue: BinaryHeap::new(),
            timeouts: BTreeSet::new(),
            steps: 0,
            budget: u64::MAX,
            tasks: Vec::new(),
            objects,
            rng: stream(1, "reference"),
            out: Outcome {
                end: End::Exited,
                now: 0,
                written: vec![0; workload.objects.len()],
                read: vec![0; workload.objects.len()],
                samples: vec![Vec::new(); metrics],
                counts: vec![0; metrics],
                created: 0,
                exited: 0,
                alive_max: 0,
                storms: Vec::new(),
                execs: 0,
                calls: 0,
                faults: 0,
                streamed: 0,
                peer_registers: Vec::new(),
                completed: Vec::new(),
            },
        };
        for spec in &workload.tasks {
            for _ in 0..spec.count {
                let id = machine.create(spec.program as usize, spec.registers, None);
                machine.at(spec.delay, id);
            }
        }
        machine
    }

    /// Cuts the run after so many steps: programs that never sleep do endlessly many in no time.
    pub fn budget(mut self, steps: u64) -> Self {
        self.budget = steps;
        self
    }

    /// Runs until `limit`, or until `passes` headline samples have come.
    pub fn run(mut self, limit: Nanos, passes: usize) -> Outcome {
        while let Some(Reverse((time, event, id))) = self.queue.pop() {
            if self.timeouts.remove(&event) {
                if self.tasks[id].timeout != Some(event) {
                    continue;
                }
                self.tasks[id].expired = true;
                self.tasks[id].state = State::Ready;
            }
            if time > limit {
                return self.end(End::Limit);
            }
            self.now = time;
            if let Some(end) = self.step_task(id, passes) {
                return self.end(end);
            }
        }
        let waiting: Vec<String> = self.tasks.iter().filter_map(|task| self.waits(task)).collect();
        let end = if waiting.is_empty() { End::Exited } else { End::Deadlock(waiting) };
        self.end(end)
    }

    fn waits(&self, task: &Task) -> Option<String> {
        match task.state {
            State::Waiting(on) => Some(format!("{} on {on}", self.workload.programs[task.program].name)),
            _ => None,
        }
    }

    fn end(mut self, end: End) -> Outcome {
        self.out.end = end;
        self.out.now = self.now;
        self.out
    }

    fn create(&mut self, program: usize, regs: [i64; 8], parent: Option<usize>) -> usize {
        self.tasks.push(Task {
            program,
            pc: 0,
            regs,
            state: State::Ready,
            parent,
            children: 0,
            zombies: 0,
            posted: false,
            stack: Vec::new(),
            mailbox: VecDeque::new(),
            relock: None,
            timeout: None,
            expired: false,
        });
        self.out.created += 1;
        self.out.alive_max = self.out.alive_max.max(self.out.created - self.out.exited);
        self.tasks.len() - 1
    }

    fn at(&mut self, time: Nanos, id: usize) {
        self.seq += 1;
        self.queue.push(Reverse((time, self.seq, id)));
    }

    fn timeout_at(&mut self, time: Nanos, id: usize) {
        self.at(time, id);
        self.timeouts.insert(self.seq);
        self.tasks[id].timeout = Some(self.seq);
    }

    fn wake(&mut self, id: usize) {
        self.tasks[id].timeout = None;
        self.tasks[id].state = State::Ready;
        self.at(self.now, id);
    }

    fn amount(&mut self, amount: Amount, id: usize) -> Nanos {
        match amount {
            Amount::Fixed(value) => value,
            Amount::Drawn(dist) => self.workload.dists[dist as usize].draw(&mut self.rng),
            Amount::Reg(reg) => self.tasks[id].regs[usize::from(reg)].max(0) as Nanos,
        }
    }

    fn step_task(&mut self, id: usize, passes: usize) -> Option<End> {
        for _ in 0..LIVELOCK {
            self.steps += 1;
            if self.steps > self.budget {
                return Some(End::Limit);
            }
            let task = &self.tasks[id];
            let program = &self.workload.programs[task.program];
            let op = program.ops.get(task.pc).copied().unwrap_or(Op::Exit);
            if op == Op::Finish {
                return Some(End::Finished);
            }
            let flow = self.step(id, op);
            if !matches!(flow, Flow::Block(_)) {
                self.out.complete(&op);
            }
            match flow {
                Flow::Next => self.tasks[id].pc += 1,
                Flow::To(label) => self.tasks[id].pc = label as usize,
                Flow::After(delay) => {
                    self.tasks[id].pc += 1;
                    self.at(self.now.saturating_add(delay), id);
                    return None;
                }
                Flow::Block(on) => {
                    self.tasks[id].state = State::Waiting(on);
                    return None;
                }
                Flow::BlockPast(on) => {
                    self.tasks[id].pc += 1;
                    self.tasks[id].state = State::Waiting(on);
                    return None;
                }
                Flow::Gone => return None,
            }
            let headlines = self.workload.metrics.iter().zip(&self.out.samples);
            let done = headlines.filter(|(decl, _)| decl.kind == MetricKind::Headline).any(|(_, s)| s.len() >= passes);
            if matches!(op, Op::Sample { .. }) && done && !self.workload.ends {
                return Some(End::Limit);
            }
        }
        Some(End::Livelock(self.workload.programs[self.tasks[id].program].name.clone()))
    }

    fn step(&mut self, id: usize, op: Op) -> Flow {
        if let Some(mutex) = self.tasks[id].relock {
            return match self.lock(id, mutex) {
                true => {
                    self.tasks[id].relock = None;
                    Flow::Next
                }
                false => Flow::Block("mutex"),
            };
        }
        match op {
            Op::Run(amount) | Op::RunWall(amount) | Op::System(amount) | Op::Sleep(amount) => {
                self.out.calls += u64::from(!matches!(op, Op::Run(_) | Op::RunWall(_)));
                Flow::After(self.amount(amount, id))
            }
            // Two of four CPUs are busy.
            Op::IdleTime(reg) => {
                self.out.calls += 1;
                self.tasks[id].regs[usize::from(reg)] = 2 * self.now as i64;
                Flow::Next
            }
            Op::Preemptions(reg) => {
                self.tasks[id].regs[usize::from(reg)] = 0;
                Flow::Next
            }
            // Takes a moment, so that a program that only wakes others passes time.
            Op::CpuTime(reg) | Op::UserTime(reg) => {
                self.tasks[id].regs[usize::from(reg)] = self.now as i64;
                Flow::After(100)
            }
            Op::SleepUntil(reg) => {
                Flow::After((self.tasks[id].regs[usize::from(reg)].max(0) as Nanos).saturating_sub(self.now))
            }
            Op::Timer { object, period, mode } => {
                let period = self.amount(period, id);
                let now = self.now;
                let Object::Timer(next) = &mut self.objects[object as usize] else { panic!("timer") };
                let due = mode.expiry(next.unwrap_or(0) + period, period, now);
                *next = Some(if due <= now && mode == TimerMode::Relative { now } else { due });
                Flow::After(due.saturating_sub(now))
            }
            Op::Call => {
                self.out.calls += 1;
                Flow::Next
            }
            // Part of the call before or after it.
            Op::Section { amount, .. } => Flow::After(self.amount(amount, id)),
            Op::Memory { work, .. } => {
                let fault = matches!(work, MemoryWork::Map | MemoryWork::Zero);
                self.out.faults += u64::from(fault);
                self.out.calls += u64::from(!fault);
                Flow::After(1_000)
            }
            // 10 GB/s.
            Op::Stream { bytes } => {
                self.out.streamed += u64::from(bytes);
                Flow::After(u64::from(bytes) / 10)
            }
            Op::MajorFault { service, .. } => {
                self.out.faults += 1;
                Flow::After(self.amount(service, id))
            }
            Op::Yield => Flow::After(0),
            Op::Exec(program) => {
                self.out.execs += 1;
                self.tasks[id].program = program as usize;
                self.tasks[id].pc = 0;
                self.at(self.now + 100_000, id);
                Flow::Gone
            }
            Op::Fork { .. } | Op::Reap | Op::Exit => self.tasks_op(id, op),
            Op::Read { .. } | Op::Write { .. } => self.channel_op(op),
            Op::ListPush(_)
            | Op::ListTake(_)
            | Op::ListPop { .. }
            | Op::SetPeer { .. }
            | Op::MailPeer { .. }
            | Op::MailTake { .. } => self.list_op(id, op),
            Op::SetNice(_) | Op::SetPolicy(_) | Op::SetAffinity(_) | Op::SetSlice(_) | Op::Finish => Flow::Next,
            Op::Sample { metric, reg } => {
                let value = self.tasks[id].regs[usize::from(reg)];
                self.out.samples[usize::from(metric)].push(value);
                Flow::Next
            }
            Op::Count { metric, count } => {
                self.out.counts[usize::from(metric)] += u64::from(count);
                Flow::Next
            }
            _ => match self.register_op(id, op) {
                Some(flow) => flow,
                None => self.sync_op(id, op),
            },
        }
    }

    fn tasks_op(&mut self, id: usize, op: Op) -> Flow {
        match op {
            Op::Fork { program, into, .. } => {
                let mut regs = [0; 8];
                regs[4..].copy_from_slice(&self.tasks[id].regs[4..]);
                let child = self.create(program as usize, regs, Some(id));
                self.tasks[id].children += 1;
                self.tasks[id].regs[usize::from(into)] = child as i64;
                self.at(self.now, child);
                Flow::Next
            }
            Op::Reap => {
                let task = &mut self.tasks[id];
                assert!(task.children > 0, "reap without a child");
                if task.zombies == 0 {
                    return Flow::Block("child");
                }
                task.zombies -= 1;
                task.children -= 1;
                Flow::Next
            }
            _ => {
                self.out.exited += 1;
                self.tasks[id].state = State::Exited;
                if let Some(parent) = self.tasks[id].parent {
                    self.tasks[parent].zombies += 1;
                    if self.tasks[parent].state == State::Waiting("child") {
                        self.wake(parent);
                    }
                }
                Flow::Gone
            }
        }
    }

    fn channel_op(&mut self, op: Op) -> Flow {
        let (object, bytes, write) = match op {
            Op::Write { object, bytes } => (object as usize, bytes as usize, true),
            Op::Read { object, bytes } => (object as usize, bytes as usize, false),
            _ => unreachable!(),
        };
        let Object::Channel { used, capacity, messages } = &mut self.objects[object] else { panic!("channel") };
        let reason = if write { "write" } else { "read" };
        if write {
            if *used + bytes > *capacity {
                return Flow::Block(reason);
            }
            *used += bytes;
            messages.push_back(bytes);
            self.out.written[object] += 1;
        } else {
            if *used < bytes {
                return Flow::Block(reason);
            }
            *used -= bytes;
            messages.pop_front();
            self.out.read[object] += 1;
        }
        self.wake_channel(object, if write { "read" } else { "write" });
        Flow::Next
    }

    /// Wakes every task that waits at this channel for the other direction.
    fn wake_channel(&mut self, object: usize, reason: &'static str) {
        for id in 0..self.tasks.len() {
            if self.tasks[id].state == State::Waiting(reason) {
                let op = self.workload.programs[self.tasks[id].program].ops[self.tasks[id].pc];
                if matches!(op, Op::Read { object: o, .. } | Op::Write { object: o, .. } if o as usize == object) {
                    self.wake(id);
                }
            }
        }
    }

    fn list_op(&mut self, id: usize, op: Op) -> Flow {
        let peer = |machine: &Self, reg: u8| machine.tasks[id].regs[usize::from(reg)] as usize;
        match op {
            Op::ListPush(list) => {
                let Object::List(list) = &mut self.objects[list as usize] else { panic!("list") };
                list.push(id);
            }
            Op::ListTake(list) => {
                let Object::List(list) = &mut self.objects[list as usize] else { panic!("list") };
                self.tasks[id].stack = std::mem::take(list);
            }
            Op::ListPop { into, empty } => match self.tasks[id].stack.pop() {
                Some(other) => self.tasks[id].regs[usize::from(into)] = other as i64,
                None => return Flow::To(empty),
            },
            Op::SetPeer { peer: reg, register, from } => {
                let value = self.tasks[id].regs[usize::from(from)];
                let other = peer(self, reg);
                self.tasks[other].regs[usize::from(register)] = value;
                self.out.peer_registers.push((register, value));
            }
            Op::MailPeer { peer: reg, from } => {
                let value = self.tasks[id].regs[usize::from(from)];
                let other = peer(self, reg);
                self.tasks[other].mailbox.push_back(value);
            }
            Op::MailTake { into, empty } => match self.tasks[id].mailbox.pop_front() {
                Some(value) => self.tasks[id].regs[usize::from(into)] = value,
                None => return Flow::To(empty),
            },
            _ => unreachable!(),
        }
        Flow::Next
    }

    fn register_op(&mut self, id: usize, op: Op) -> Option<Flow> {
        let now = self.now as i64;
        let drawn = match op {
            Op::Draw(_, dist) => self.workload.dists[dist as usize].draw(&mut self.rng) as i64,
            _ => 0,
        };
        let regs = &mut self.tasks[id].regs;
        let at = |reg: u8| usize::from(reg);
        match op {
            Op::Set(reg, value) => regs[at(reg)] = value,
            Op::Copy { into, from } => regs[at(into)] = regs[at(from)],
            Op::AddConst(reg, value) => regs[at(reg)] += value,
            Op::AddReg { into, from } => regs[at(into)] += regs[at(from)],
            Op::SubReg { into, from } => regs[at(into)] -= regs[at(from)],
            Op::MulReg { into, by } => regs[at(into)] *= regs[at(by)],
            Op::DivReg { into, by } => regs[at(into)] = regs[at(into)].checked_div(regs[at(by)]).unwrap_or(i64::MAX),
            Op::Draw(reg, _) => regs[at(reg)] = drawn,
            Op::Clock(reg) => regs[at(reg)] = now,
            Op::TimerDue { object, into } => {
                let Object::Timer(last) = &self.objects[object as usize] else { panic!("timer") };
                regs[at(into)] = last.unwrap_or(0) as i64;
            }
            Op::Jump(to) => return Some(Flow::To(to)),
            Op::JumpBelow { reg, than, to } if regs[at(reg)] < than => return Some(Flow::To(to)),
            Op::JumpBelow { .. } => {}
            Op::DecJump { reg, to } => {
                regs[at(reg)] -= 1;
                if regs[at(reg)] != 0 {
                    return Some(Flow::To(to));
                }
            }
            _ => return None,
        }
        Some(Flow::Next)
    }
}

pub enum Flow {
    /// On to the next step.
    Next,
    /// On to this step.
    To(u32),
    /// Next step after this time.
    After(Nanos),
    /// Waits, and tries the same step again.
    Block(&'static str),
    /// Waits, and goes on after it.
    BlockPast(&'static str),
    /// Exited.
    Gone,
}

fn object(spec: &ObjectSpec) -> Object {
    match *spec {
        ObjectSpec::Pipe { pages, .. } => {
            Object::Channel { used: 0, capacity: pages as usize * 4096, messages: VecDeque::new() }
        }
        ObjectSpec::UnixStream { sndbuf } => {
            Object::Channel { used: 0, capacity: sndbuf as usize, messages: VecDeque::new() }
        }
        ObjectSpec::Futex => Object::Futex { posted: false, waiter: None },
        ObjectSpec::Mutex { .. } | ObjectSpec::PiFutex => Object::Mutex { owner: None, waiting: VecDeque::new() },
        ObjectSpec::Barrier { parties } => Object::Barrier { parties: parties as usize, waiting: Vec::new() },
        ObjectSpec::Semaphore { initial } => Object::Semaphore { units: initial, waiting: VecDeque::new() },
        ObjectSpec::Condition => Object::Condition(VecDeque::new()),
        ObjectSpec::List => Object::List(Vec::new()),
        ObjectSpec::Gate => Object::Gate { open: false, waiting: Vec::new() },
        ObjectSpec::Timer => Object::Timer(None),
        ObjectSpec::FutexQueue => Object::FutexQueue(VecDeque::new()),
        ObjectSpec::Queue => Object::Queue { values: VecDeque::new(), waiting: VecDeque::new() },
        ObjectSpec::CpuLocks | ObjectSpec::SpinLock(_) | ObjectSpec::KernelLock | ObjectSpec::Disk { .. } => {
            Object::CpuLocks
        }
    }
}
