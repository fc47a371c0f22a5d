//! The interpreter on a real thread: each operation of a program is carried out as the system call or the work that it
//! describes.
//!
//! The semantics are those of crates/schedlab-sim/src/programs/{exec,effect,sync}.rs; the conformance tests compare the
//! two. Livelocks are not detected; they simply use the CPU.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::Arc;

use rustix::thread::futex::Flags;
use schedlab_model::{Nanos, Stream};
use schedlab_workload::{Amount, Dist, Op, Workload};

use crate::attributes;
use crate::burn::{self, Kernel};
use crate::clock;
use crate::log::AppEvent;
use crate::memory_work::Memory;
use crate::objects::{wait_open, Object};
use crate::shared_state::{Failure, SharedState};
use crate::stream;
use crate::sys;
use crate::task::Slot;

/// The longest step, as in the simulator.
const AMOUNT_MAX: Nanos = 1 << 50;

/// The thread-local state of a task.
#[derive(Debug)]
pub struct Worker {
    pub(crate) shared: &'static SharedState,
    pub(crate) id: u32,
    pub(crate) slot: &'static Slot,
    pub(crate) workload: usize,
    program: usize,
    pc: u32,
    /// The random stream for its distributions.
    pub(crate) stream: Stream,
    /// The key from which its stream and those of its children are derived.
    pub(crate) key: u64,
    pub(crate) forked: u32,
    /// The private list of tasks: the id of the first plus 1.
    stack: u32,
    /// Children that have not been reaped, by kind.
    pub(crate) processes: u32,
    pub(crate) threads: u32,
    pub(crate) reaped: u32,
    pub(crate) cpu_lock: Option<(u32, usize)>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) kernel: Option<Kernel>,
    pub(crate) memory: Option<Memory>,
    /// The buffer that its steps waiting for memory copy.
    streamed: Vec<u8>,
    pub(crate) flags: Flags,
    pub(crate) tid: u32,
}

/// What to do after a step.
enum Next {
    Done,
    Goto(u32),
    End,
}

impl Worker {
    /// Creates the worker of task `id` for the calling thread.
    #[must_use]
    pub fn new(shared: &'static SharedState, id: u32, key: u64) -> Worker {
        let slot = &shared.slots[id as usize];
        let (workload, program) = slot.runs();
        let mut worker = Worker {
            shared,
            id,
            slot,
            workload,
            program,
            pc: 0,
            stream: schedlab_workload::identity::work_stream(shared.seed, key),
            key,
            forked: 0,
            stack: 0,
            processes: 0,
            threads: 0,
            reaped: 0,
            cpu_lock: None,
            buffer: Vec::new(),
            kernel: None,
            memory: None,
            streamed: Vec::new(),
            flags: shared.flags[workload],
            tid: 0,
        };
        worker.record_thread();
        worker.prepare_memory();
        worker
    }

    /// Maps the memory that the program's steps work on, before the first of them.
    fn prepare_memory(&mut self) {
        let Some(files) = &self.shared.memory else { return };
        match Memory::of(files, &self.shared.workloads[self.workload].programs[self.program]) {
            Ok(memory) => self.memory = memory,
            Err(_) => self.shared.fail(self.id, 0, Failure::Memory, libc::ENOMEM),
        }
    }

    /// Records which thread runs the task.
    pub fn record_thread(&mut self) {
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        self.tid = tid as u32;
        self.slot.tid.store(tid, Relaxed);
        self.slot.pid.store(rustix::process::getpid().as_raw_nonzero().get(), Relaxed);
    }

    /// Runs the program to its end.
    pub fn run(&mut self) {
        let workloads = Arc::clone(&self.shared.workloads);
        let ops = &workloads[self.workload].programs[self.program].ops;
        loop {
            let op = ops.get(self.pc as usize).copied().unwrap_or(Op::Exit);
            match self.step(op) {
                Ok(Next::Done) => self.pc += 1,
                Ok(Next::Goto(label)) => self.pc = label,
                Ok(Next::End) => return,
                Err((why, errno)) => {
                    self.shared.fail(self.id, self.pc, why, errno);
                    return;
                }
            }
        }
    }

    fn workload(&self) -> &'static Workload {
        &self.shared.workloads[self.workload]
    }

    pub(crate) fn object(&self, object: u32) -> &'static Object {
        &self.shared.objects[self.workload][object as usize]
    }

    #[inline]
    fn step(&mut self, op: Op) -> Result<Next, (Failure, i32)> {
        match op {
            Op::Run(amount) => {
                let work = self.amount(amount);
                self.shared.speed.run(work);
            }
            Op::RunWall(amount) => {
                let spin = self.amount(amount);
                burn::spin_until(clock::now() + spin);
            }
            Op::System(amount) => {
                let work = self.amount(amount);
                self.system(work)?;
            }
            Op::Stream { bytes } => stream::stream(&mut self.streamed, bytes),
            Op::Memory { work, kib } => {
                if let (Some(memory), Some(files)) = (&mut self.memory, &self.shared.memory) {
                    let done = memory.step(files, work, kib);
                    done.map_err(|error| (Failure::Memory, error.raw_os_error().unwrap_or(0)))?;
                }
            }
            Op::Read { object, bytes } => self.transfer(object, bytes, false)?,
            Op::Write { object, bytes } => self.transfer(object, bytes, true)?,
            // A program cannot choose what its disk takes: the task sleeps for as long as the model's would.
            Op::Sleep(amount) | Op::MajorFault { service: amount, .. } => {
                let length = self.amount(amount);
                clock::sleep_until(clock::now() + length);
            }
            Op::SleepUntil(reg) => self.sleep_until(self.slot.register(reg).max(0) as Nanos),
            Op::Timer { object, period, mode } => self.timer(object, period, mode),
            Op::Yield => rustix::thread::sched_yield(),
            Op::Fork { program, kind, into } => self.fork(program, kind, into)?,
            Op::Reap => self.reap()?,
            Op::Exec(_) => return Err((Failure::Exec, 0)),
            Op::Exit => return Ok(Next::End),
            Op::SetNice(nice) => attributes::nice(nice)?,
            Op::SetPolicy(policy) => attributes::policy(policy)?,
            Op::SetSlice(slice) => attributes::slice(slice)?,
            Op::SetCgroup(index) => {
                let path = self.workload().cgroups.get(index as usize);
                if let (Some(groups), Some(path)) = (&self.shared.groups, path) {
                    let entered = groups.enter(path);
                    entered.map_err(|error| (Failure::Cgroup, error.raw_os_error().unwrap_or(0)))?;
                }
            }
            Op::SetAffinity(mask) => {
                if let Some(mask) = self.workload().masks.get(mask as usize) {
                    attributes::affinity(&self.shared.cpu_set(mask))?;
                }
            }
            Op::Finish => self.shared.finish(self.workload),
            _ => return self.step_objects(op),
        }
        Ok(Next::Done)
    }

    /// Executes operations on objects other than channels.
    #[inline]
    fn step_objects(&mut self, op: Op) -> Result<Next, (Failure, i32)> {
        let fail = |why| Err((why, 0));
        match op {
            Op::Wait(object) => match self.object(object) {
                Object::Futex(futex) if !futex.wait(self.flags) => return fail(Failure::SecondWaiter),
                _ => {}
            },
            Op::WaitOwn => {
                if !self.slot.own.wait(self.flags) {
                    return fail(Failure::SecondWaiter);
                }
            }
            Op::Post(object) | Op::PostHere(object) => {
                if let Object::Futex(futex) = self.object(object) {
                    futex.post(self.flags);
                }
            }
            Op::PostPeer(reg) => {
                if let Some(peer) = self.peer(reg) {
                    peer.own.post(self.flags);
                }
            }
            Op::Lock(object) => self.lock(object),
            Op::Unlock(object) if !self.unlock(object) => return fail(Failure::NotHeld),
            Op::Barrier(object) => {
                if let Object::Barrier(barrier, parties) = self.object(object) {
                    barrier.arrive(self.flags, *parties);
                }
            }
            Op::CondWait { object, mutex } => {
                if let Object::Condition(condition) = self.object(object) {
                    condition.enter();
                    if !self.unlock(mutex) {
                        return fail(Failure::CondWithoutMutex);
                    }
                    condition.wait(self.flags);
                    self.lock(mutex);
                }
            }
            Op::CondSignal(object) | Op::CondBroadcast(object) => {
                if let Object::Condition(condition) = self.object(object) {
                    condition.signal(self.flags, matches!(op, Op::CondBroadcast(_)));
                }
            }
            Op::GateWait(object) => {
                if let Object::Gate(read, _) = self.object(object) {
                    wait_open(read);
                }
            }
            Op::GateOpen(object) | Op::GateClose(object) => self.set_gate(object, matches!(op, Op::GateOpen(_))),
            _ => return self.step_futexes(op),
        }
        Ok(Next::Done)
    }

    /// Executes operations on futexes that take the kernel's arguments.
    #[inline]
    fn step_futexes(&mut self, op: Op) -> Result<Next, (Failure, i32)> {
        match op {
            Op::FutexWait { object, timeout, expired } => {
                if !self.futex_wait(object, timeout) {
                    return Ok(Next::Goto(expired));
                }
            }
            Op::FutexWake { object, count, into } => self.futex_wake(object, count, into),
            Op::FutexRequeue { object, to, count, into } => self.futex_requeue(object, to, count, into)?,
            Op::FutexMismatch(object) => self.futex_mismatch(object),
            Op::FutexLockPi(object) => self.futex_lock_pi(object)?,
            Op::FutexUnlockPi(object) => {
                if let Object::PiFutex(word) = self.object(object) {
                    if rustix::thread::futex::unlock_pi(word, self.flags).is_err() {
                        return Err((Failure::NotHeld, 0));
                    }
                }
            }
            _ => return self.step_semaphores_and_mailboxes(op),
        }
        Ok(Next::Done)
    }

    /// Executes operations on semaphores and mailboxes.
    #[inline]
    fn step_semaphores_and_mailboxes(&mut self, op: Op) -> Result<Next, (Failure, i32)> {
        match op {
            Op::SemWait(object) => {
                if let Object::Semaphore(semaphore) = self.object(object) {
                    semaphore.wait(self.flags);
                }
            }
            Op::SemPost(object) => {
                if let Object::Semaphore(semaphore) = self.object(object) {
                    semaphore.post(self.flags);
                }
            }
            Op::Send { object, from } => {
                if let Object::Queue(values, semaphore) = self.object(object) {
                    if !values.push(self.slot.register(from)) {
                        return Err((Failure::MailboxFull, 0));
                    }
                    semaphore.post(self.flags);
                }
            }
            Op::Receive { object, into } => {
                if let Object::Queue(values, semaphore) = self.object(object) {
                    semaphore.wait(self.flags);
                    self.slot.set(into, values.pop_counted());
                }
            }
            Op::TryReceive { object, into, empty } => {
                if let Object::Queue(values, semaphore) = self.object(object) {
                    if !semaphore.try_wait() {
                        return Ok(Next::Goto(empty));
                    }
                    self.slot.set(into, values.pop_counted());
                }
            }
            Op::SemTryWait { object, none } => {
                if let Object::Semaphore(semaphore) = self.object(object) {
                    if !semaphore.try_wait() {
                        return Ok(Next::Goto(none));
                    }
                }
            }
            _ => return self.step_spinning(op),
        }
        Ok(Next::Done)
    }

    /// Executes operations on locks that spin.
    #[inline]
    fn step_spinning(&mut self, op: Op) -> Result<Next, (Failure, i32)> {
        let me = self.id + 1;
        let fail = |why| Err((why, 0));
        match op {
            Op::CpuLock(object) => self.cpu_lock(object, me),
            Op::CpuUnlock(object) => {
                let held = self.cpu_lock.take().filter(|(lock, _)| *lock == object);
                let (Some((_, slot)), Object::CpuLocks(locks)) = (held, self.object(object)) else {
                    return fail(Failure::NoCpuLock);
                };
                locks[slot].store(0, Release);
            }
            Op::SpinLock { object, metric } => {
                if let Some(spun) = self.spin_lock(object, me) {
                    self.log_event(false, metric, spun);
                }
            }
            Op::SpinUnlock(object) => {
                let Object::SpinLock(owner, ..) = self.object(object) else { return fail(Failure::NotHeld) };
                if owner.compare_exchange(me, 0, Release, Relaxed).is_err() {
                    return fail(Failure::NotHeld);
                }
            }
            _ => return self.step_registers(op),
        }
        Ok(Next::Done)
    }

    /// Executes operations on registers, jumps, and operations that log.
    #[inline]
    fn step_registers(&mut self, op: Op) -> Result<Next, (Failure, i32)> {
        let slot = self.slot;
        match op {
            Op::Set(reg, value) => slot.set(reg, value),
            Op::Copy { into, from } => slot.set(into, slot.register(from)),
            Op::AddConst(reg, value) => slot.set(reg, slot.register(reg).wrapping_add(value)),
            Op::AddReg { into, from } => slot.set(into, slot.register(into).wrapping_add(slot.register(from))),
            Op::SubReg { into, from } => slot.set(into, slot.register(into).wrapping_sub(slot.register(from))),
            Op::Draw(reg, dist) => slot.set(reg, self.draw(dist) as i64),
            Op::Clock(reg) => slot.set(reg, self.shared.time() as i64),
            Op::MulReg { into, by } => slot.set(into, slot.register(into).wrapping_mul(slot.register(by))),
            Op::DivReg { into, by } => {
                slot.set(into, slot.register(into).checked_div(slot.register(by)).unwrap_or(i64::MAX));
            }
            Op::IdleTime(reg) => slot.set(reg, sys::idle_time() as i64),
            Op::CpuTime(reg) => slot.set(reg, sys::cpu_time() as i64),
            Op::UserTime(reg) => slot.set(reg, sys::user_time() as i64),
            Op::Preemptions(reg) => slot.set(reg, sys::thread_usage().involuntary as i64),
            Op::TimerDue { object, into } => {
                if let Object::Timer(last) = self.object(object) {
                    slot.set(into, last.load(Acquire).saturating_sub(1) as i64);
                }
            }
            Op::Jump(to) => return Ok(Next::Goto(to)),
            Op::JumpBelow { reg, than, to } if slot.register(reg) < than => return Ok(Next::Goto(to)),
            Op::DecJump { reg, to } => {
                let value = slot.register(reg).wrapping_sub(1);
                slot.set(reg, value);
                if value != 0 {
                    return Ok(Next::Goto(to));
                }
            }
            Op::Sample { metric, reg } => self.log_event(false, metric, slot.register(reg).max(0) as u64),
            Op::Count { metric, count } => self.log_event(true, metric, u64::from(count)),
            _ => return self.step_peers(op),
        }
        Ok(Next::Done)
    }

    /// Executes operations on lists of tasks, and on registers and mailboxes of other tasks.
    #[inline]
    fn step_peers(&mut self, op: Op) -> Result<Next, (Failure, i32)> {
        let slot = self.slot;
        match op {
            Op::ListPush(object) => {
                if let Object::List(list) = self.object(object) {
                    list.push(self.id, slot);
                }
            }
            Op::ListTake(object) => {
                if let Object::List(list) = self.object(object) {
                    self.stack = list.take();
                }
            }
            Op::ListPop { into, empty } => {
                let Some(top) = self.stack.checked_sub(1) else { return Ok(Next::Goto(empty)) };
                self.stack = self.shared.slots[top as usize].next.load(Relaxed);
                slot.set(into, i64::from(top));
            }
            Op::SetPeer { peer, register, from } => {
                if let Some(peer) = self.peer(peer) {
                    peer.set(register, slot.register(from));
                }
            }
            Op::MailPeer { peer, from } => {
                let value = slot.register(from);
                if self.peer(peer).is_some_and(|peer| !self.shared.mailbox(peer).is_some_and(|mail| mail.push(value))) {
                    return Err((Failure::MailboxFull, 0));
                }
            }
            Op::MailTake { into, empty } => match self.shared.mailbox(slot).and_then(crate::task::Mailbox::pop) {
                Some(value) => slot.set(into, value),
                None => return Ok(Next::Goto(empty)),
            },
            _ => {}
        }
        Ok(Next::Done)
    }

    fn log_event(&self, is_count: bool, metric: u16, value: u64) {
        let metric = self.shared.metric_base[self.workload] + metric;
        let note = AppEvent { time: self.shared.time(), cpu: sys::current_cpu(), is_count, metric, value };
        self.shared.pool.write(&self.slot.log, note);
    }

    fn peer(&self, reg: u8) -> Option<&'static Slot> {
        let id = u32::try_from(self.slot.register(reg)).ok()?;
        (id < self.shared.control.tasks.load(Acquire)).then(|| &self.shared.slots[id as usize])
    }

    pub(crate) fn amount(&mut self, amount: Amount) -> Nanos {
        let ns = match amount {
            Amount::Fixed(ns) => ns,
            Amount::Drawn(dist) => self.draw(dist),
            Amount::Reg(reg) => self.slot.register(reg).max(0) as Nanos,
        };
        ns.min(AMOUNT_MAX)
    }

    fn draw(&mut self, dist: u32) -> Nanos {
        let shared = self.shared;
        let places = shared.taken[self.workload].get(dist as usize);
        let Some((dist, place)) = shared.workloads[self.workload].dists.get(dist as usize).zip(places) else {
            return 0;
        };
        let mut taken = match dist {
            Dist::Recorded(_) => u64::from(place.fetch_add(1, Relaxed)),
            _ => 0,
        };
        dist.next(&mut taken, shared.noise, &mut self.stream)
    }
}
