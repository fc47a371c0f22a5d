//! The interpreter: takes the running task from one step of its program to the next that takes time.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_trace::{Kind, Sink};
use schedlab_workload::{Amount, Op, TaskKind};

use crate::cost::CostTables;
use crate::engine::Engine;
use crate::error::SimError;
use crate::objects::Object;
use crate::task::{Handle, Life, Mode, Step, Task, WORK_SHIFT};

/// Longest step, 13 days: beyond any run, and far from overflow as work or as a time.
const AMOUNT_MAX: Nanos = 1 << 50;
/// Jumps without time before a program counts as stuck.
const IDLE_STEPS: u32 = 1_000_000;

/// What a step needs.
pub(crate) enum Next {
    /// No time: on to the next operation.
    Done,
    /// No time: on to this label.
    Goto(u32),
    /// A segment of work, after which the operation takes effect.
    Work(Mode, Nanos),
    /// The task has left the CPU (blocked, yielded, exited) or its segment is set up already.
    Stop,
}

impl<S: Sink> Engine<'_, S> {
    /// The running task's segment has ended: continue until the next segment, block or exit.
    ///
    /// Transfers, plain work and jumps are most of what a run executes: they are inlined here and keep hold of the task,
    /// all other operations are calls.
    #[inline(always)]
    pub fn advance(&mut self, cpu: CpuId, task: TaskId) {
        loop {
            let t = &mut self.tasks[task.index()];
            let op = self.code.get(t.pc as usize).unwrap_or(&Op::Exit);
            let over = match (t.step, op) {
                (Step::Fetch, Op::Read { object, bytes }) => {
                    let amount = begin_io(&self.costs, &self.objects, t, *object, *bytes, false);
                    t.work(Mode::Kernel, amount)
                }
                (Step::Fetch, Op::Write { object, bytes }) => {
                    let amount = begin_io(&self.costs, &self.objects, t, *object, *bytes, true);
                    t.work(Mode::Kernel, amount)
                }
                (Step::Fetch, Op::Run(Amount::Fixed(amount))) => t.work(Mode::User, *amount),
                (Step::Fetch, Op::DecJump { reg, to }) => {
                    let value = register(t, *reg);
                    *value = value.wrapping_sub(1);
                    if *value == 0 {
                        t.on()
                    } else if t.idle_steps < IDLE_STEPS {
                        t.go(*to)
                    } else {
                        return self.fail_livelock(task);
                    }
                }
                (Step::Fetch, op) => {
                    t.resumed = false;
                    let op = *op;
                    let next = self.begin(cpu, task, op);
                    let t = &mut self.tasks[task.index()];
                    if t.idle_steps >= IDLE_STEPS {
                        return self.fail_livelock(task);
                    }
                    t.follow(next)
                }
                (Step::Effect, Op::Run(_)) => {
                    t.mode = Mode::User;
                    t.on()
                }
                (Step::Effect, Op::Read { object, .. }) => self.transfer(cpu, task, *object, false),
                (Step::Effect, Op::Write { object, .. }) => self.transfer(cpu, task, *object, true),
                (Step::Effect, op) => self.other_effect(cpu, task, *op),
            };
            if over {
                return;
            }
        }
    }

    #[inline(never)]
    fn other_effect(&mut self, cpu: CpuId, task: TaskId, op: Op) -> bool {
        // A call is over unless it blocks again: back in user mode.
        let called = std::mem::replace(&mut self.tasks[task.index()].mode, Mode::User) == Mode::Kernel;
        match self.effect(cpu, task, op) {
            Next::Done => self.call_over(cpu, task, called),
            next => self.tasks[task.index()].follow(next),
        }
    }

    /// The operation is over. If it was a system call that saw a resched flag on its way out (`exit_to_user_mode`), the
    /// overhead so far is spent first, then schedule() (see [`Engine::settle`]): true.
    #[inline(always)]
    pub fn call_over(&mut self, cpu: CpuId, task: TaskId, called: bool) -> bool {
        if called {
            self.resume_user_mode(cpu);
        }
        let c = &mut self.cpus[cpu.index()];
        let seen = called && (c.need_resched || c.need_resched_lazy);
        c.resched_seen |= seen;
        self.tasks[task.index()].on();
        seen
    }

    /// A step begins: what does it take?
    #[inline(never)]
    fn begin(&mut self, cpu: CpuId, task: TaskId, op: Op) -> Next {
        match op {
            Op::Run(amount) => Next::Work(Mode::User, self.amount(task, amount)),
            Op::Jump(to) => Next::Goto(to),
            Op::System(amount) => {
                let work = self.amount(task, amount) + self.syscall(task);
                Next::Work(Mode::Kernel, work)
            }
            Op::RunWall(amount) => self.begin_wall(cpu, task, amount),
            Op::Wait(object) => self.begin_wait(task, Some(object)),
            Op::WaitOwn => self.begin_wait(task, None),
            Op::Post(object) => self.begin_post(task, object),
            Op::PostPeer(reg) => self.begin_post_peer(task, reg),
            Op::Lock(object) => self.begin_lock(task, object),
            Op::Unlock(object) => self.begin_unlock(task, object),
            Op::SemWait(object) => self.begin_sem_wait(task, object),
            Op::SemPost(object) => self.begin_sem_post(task, object),
            Op::CpuLock(object) => self.try_cpu_lock(cpu, task, object),
            Op::CpuUnlock(object) => self.cpu_unlock(task, object),
            Op::GateOpen(_) | Op::GateClose(_) | Op::GateWait(_) | Op::Yield => self.kernel_call(task, 0),
            Op::Reap => self.begin_reap(task),
            Op::Barrier(_) | Op::CondWait { .. } => self.futex_wait(task),
            Op::CondSignal(_) | Op::CondBroadcast(_) => self.futex_wake(task),
            Op::SetNice(_) | Op::SetPolicy(_) | Op::SetAffinity(_) | Op::SetCgroup(_) | Op::SetSlice(_) => {
                self.kernel_call(task, 0)
            }
            Op::Sleep(_) | Op::SleepUntil(_) | Op::Timer { .. } => {
                let program = self.costs.timer_program.draw(&mut self.tasks[task.index()].dice);
                self.kernel_call(task, program)
            }
            Op::Fork { kind, .. } => {
                let table = match kind {
                    TaskKind::Process => &self.costs.fork_process,
                    TaskKind::Thread => &self.costs.fork_thread,
                };
                Next::Work(Mode::Kernel, table.draw(&mut self.tasks[task.index()].dice))
            }
            Op::Exit => {
                let t = &mut self.tasks[task.index()];
                let table = if t.thread { &self.costs.exit_thread } else { &self.costs.exit_process };
                // zap_pte_range and its callers call cond_resched() again and again: a request is noticed at once.
                let mode = if t.thread { Mode::Kernel } else { Mode::User };
                Next::Work(mode, table.draw(&mut t.dice))
            }
            _ => self.compute(task, op),
        }
    }

    /// Operations on the task's own registers and lists: no time but the carry of a user-mode operation.
    fn compute(&mut self, task: TaskId, op: Op) -> Next {
        let now = self.now;
        let t = &mut self.tasks[task.index()];
        match op {
            Op::Set(reg, value) => *register(t, reg) = value,
            Op::Copy { into, from } => *register(t, into) = *register(t, from),
            Op::AddConst(reg, value) => *register(t, reg) = register(t, reg).wrapping_add(value),
            Op::AddReg { into, from } => *register(t, into) = register(t, into).wrapping_add(*register(t, from)),
            Op::SubReg { into, from } => *register(t, into) = register(t, into).wrapping_sub(*register(t, from)),
            Op::Draw(reg, dist) => *register(t, reg) = draw(&self.workloads, t, dist, self.spec.noise) as i64,
            Op::Clock(reg) => {
                *register(t, reg) = now as i64;
                t.carry += self.costs.user_op.draw(&mut t.dice) << WORK_SHIFT;
            }
            Op::JumpBelow { reg, than, to } => {
                if *register(t, reg) < than {
                    return Next::Goto(to);
                }
            }
            Op::Sample { metric, reg } => {
                let value = (*register(t, reg)).max(0) as u64;
                let pid = t.pid;
                let cpu = self.sched.cpu_of(task);
                self.emit(cpu, Kind::Sample { pid, metric, value });
            }
            Op::Count { metric, count } => {
                let pid = t.pid;
                let cpu = self.sched.cpu_of(task);
                self.emit(cpu, Kind::Count { pid, metric, count: u64::from(count) });
            }
            Op::Finish => {
                if std::mem::take(&mut self.unfinished[t.workload as usize]) && !self.unfinished.contains(&true) {
                    self.stop = true;
                    self.next_look = 0;
                }
            }
            _ => return self.pass_on(task, op),
        }
        Next::Done
    }

    /// Operations on lists, mailboxes and other tasks' registers.
    fn pass_on(&mut self, task: TaskId, op: Op) -> Next {
        self.carry_user_op(task);
        match op {
            Op::ListPush(object) => {
                let handle = self.tasks[task.index()].handle();
                if let Object::List(list) = self.object(object) {
                    list.push(handle);
                }
            }
            Op::ListTake(object) => {
                if let Object::List(list) = self.object(object) {
                    let taken = std::mem::take(list);
                    self.tasks[task.index()].stack = taken;
                }
            }
            Op::ListPop { into, empty } => {
                let t = &mut self.tasks[task.index()];
                let Some(peer) = t.stack.pop() else { return Next::Goto(empty) };
                *register(t, into) = peer.to_register();
            }
            Op::SetPeer { peer, register: dest, from } => {
                let value = *register(&mut self.tasks[task.index()], from);
                if let Some(peer) = self.peer(task, peer) {
                    *register(&mut self.tasks[peer.index()], dest) = value;
                }
            }
            Op::MailPeer { peer, from } => {
                let value = *register(&mut self.tasks[task.index()], from);
                if let Some(peer) = self.peer(task, peer) {
                    self.tasks[peer.index()].mail.push_back(value);
                }
            }
            Op::MailTake { into, empty } => {
                let t = &mut self.tasks[task.index()];
                let Some(value) = t.mail.pop_front() else { return Next::Goto(empty) };
                *register(t, into) = value;
            }
            _ => {}
        }
        Next::Done
    }

    fn begin_wall(&mut self, cpu: CpuId, task: TaskId, amount: Amount) -> Next {
        let spin = self.amount(task, amount);
        let c = &mut self.cpus[cpu.index()];
        let t = &mut self.tasks[task.index()];
        t.carry = 0;
        t.until = self.now + c.wall(c.pending << WORK_SHIFT) + spin;
        t.mode = Mode::Wall;
        t.work_left = 0;
        t.step = Step::Effect;
        if spin == 0 {
            return Next::Done;
        }
        t.idle_steps = 0;
        Next::Stop
    }

    /// A system call that costs `beyond` more than entering and leaving the kernel.
    pub fn kernel_call(&mut self, task: TaskId, beyond: Nanos) -> Next {
        let work = self.syscall(task) + beyond;
        Next::Work(Mode::Kernel, work)
    }

    /// FUTEX_WAKE.
    pub fn futex_wake(&mut self, task: TaskId) -> Next {
        let futex = self.costs.futex_wake.draw(&mut self.tasks[task.index()].dice);
        self.kernel_call(task, futex)
    }

    /// FUTEX_WAIT.
    pub fn futex_wait(&mut self, task: TaskId) -> Next {
        let futex = self.costs.futex_wait.draw(&mut self.tasks[task.index()].dice);
        self.kernel_call(task, futex)
    }

    fn begin_reap(&mut self, task: TaskId) -> Next {
        let t = &mut self.tasks[task.index()];
        let table = if t.zombies > 0 { &self.costs.reap } else { &self.costs.reap_wait };
        let cost = table.draw_any(&mut t.dice);
        self.kernel_call(task, cost)
    }

    fn syscall(&mut self, task: TaskId) -> Nanos {
        self.costs.syscall.draw(&mut self.tasks[task.index()].dice)
    }

    pub fn carry_user_op(&mut self, task: TaskId) {
        let t = &mut self.tasks[task.index()];
        t.carry += self.costs.user_op.draw(&mut t.dice) << WORK_SHIFT;
    }

    pub fn amount(&mut self, task: TaskId, amount: Amount) -> Nanos {
        let t = &mut self.tasks[task.index()];
        let ns = match amount {
            Amount::Fixed(ns) => ns,
            Amount::Drawn(dist) => draw(&self.workloads, t, dist, self.spec.noise),
            Amount::Reg(reg) => (*register(t, reg)).max(0) as Nanos,
        };
        ns.min(AMOUNT_MAX)
    }

    pub fn object(&mut self, object: u32) -> &mut Object {
        &mut self.objects[object as usize]
    }

    /// The task whose id is in the register, if it lives.
    pub fn peer(&mut self, task: TaskId, reg: u8) -> Option<TaskId> {
        let handle = Handle::from_register(*register(&mut self.tasks[task.index()], reg));
        let peer = self.tasks.get(handle.task.index())?;
        (peer.pid == handle.pid && peer.life != Life::Dead).then_some(handle.task)
    }

    /// Stops the run: the task's program did what the kernel refuses.
    pub fn fail_program(&mut self, task: TaskId, message: String) -> Next {
        let (task, step, line) = self.where_is(task);
        self.fail(SimError::Program { task, step, line, message });
        Next::Stop
    }

    #[cold]
    #[inline(never)]
    fn fail_livelock(&mut self, task: TaskId) {
        let (task, step, line) = self.where_is(task);
        self.fail(SimError::Livelock { at: self.now, task, step, line });
    }

    /// The first failure ends the run.
    fn fail(&mut self, error: SimError) {
        self.failure.get_or_insert(error);
        self.next_look = 0;
    }

    /// Time no longer moves although every step takes its time: name whoever runs.
    pub fn livelock(&self) -> SimError {
        let busiest = self.cpus.iter().find_map(|cpu| cpu.curr).unwrap_or_default();
        let (task, step, line) = self.where_is(busiest);
        SimError::Livelock { at: self.now, task, step, line }
    }

    fn where_is(&self, task: TaskId) -> (String, u32, Option<u32>) {
        let t = &self.tasks[task.index()];
        let base = self.bases[t.workload as usize].program;
        let program = &self.workloads[t.workload as usize].programs[(t.program - base) as usize];
        let step = t.pc - self.entries[t.program as usize];
        (program.name.clone(), step, program.line(step))
    }
}

/// What a transfer takes before its bytes are there.
#[inline(always)]
fn begin_io(costs: &CostTables, objects: &[Object], t: &mut Task, object: u32, bytes: u32, write: bool) -> Nanos {
    let (socket, waits) = match &objects[object as usize] {
        Object::Channel(channel) => (channel.is_socket(), if write { !channel.has_room() } else { channel.is_empty() }),
        _ => (false, false),
    };
    t.resumed = false;
    t.io_left = bytes;
    let call = match (socket, waits, write) {
        (true, true, _) => &costs.socket_wait,
        (true, false, true) => &costs.socket_send,
        (true, false, false) => &costs.socket_receive,
        (false, true, _) => &costs.pipe_wait,
        (false, false, true) => &costs.pipe_write,
        (false, false, false) => &costs.pipe_read,
    };
    let copy = costs.copy_kib.draw(&mut t.dice) * u64::from(bytes) / 1024;
    costs.syscall.draw(&mut t.dice) + call.draw(&mut t.dice) + copy
}

impl Task {
    /// On to the next operation; false, as [`Task::follow`].
    #[inline(always)]
    pub fn on(&mut self) -> bool {
        self.pc += 1;
        self.step = Step::Fetch;
        false
    }

    /// On to the label. Only jumps can go round without time passing, so only they are counted.
    #[inline(always)]
    fn go(&mut self, to: u32) -> bool {
        self.pc = to;
        self.step = Step::Fetch;
        self.idle_steps += 1;
        false
    }

    /// A segment of work begins, after which the operation takes effect; whether it takes any time.
    #[inline(always)]
    fn work(&mut self, mode: Mode, amount: Nanos) -> bool {
        self.work_left = (amount.min(AMOUNT_MAX) << WORK_SHIFT) + std::mem::take(&mut self.carry);
        self.step = Step::Effect;
        self.mode = mode;
        let takes = self.work_left > 0;
        self.idle_steps *= u32::from(!takes);
        takes
    }

    /// Takes what a step needs; whether the interpreter is through for now.
    fn follow(&mut self, next: Next) -> bool {
        match next {
            Next::Done => self.on(),
            Next::Goto(label) => self.go(label),
            Next::Work(mode, amount) => self.work(mode, amount),
            Next::Stop => true,
        }
    }
}

/// The task's register; a number beyond the last wraps round, so that no program can panic the engine.
#[inline]
pub(crate) fn register(task: &mut Task, reg: u8) -> &mut i64 {
    &mut task.registers[reg as usize % schedlab_workload::REGISTERS]
}

fn draw(workloads: &[schedlab_workload::Workload], task: &mut Task, dist: u32, noise: bool) -> Nanos {
    let Some(dist) = workloads[task.workload as usize].dists.get(dist as usize) else { return 0 };
    if noise {
        dist.draw(&mut task.stream)
    } else {
        dist.typical()
    }
}
