//! What a step does once its time has been spent: transfer, block, wake, fork, exit.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_policy::fair::GroupId;
use schedlab_policy::rt::RtPolicy;
use schedlab_policy::{FairPolicy, Resched};
use schedlab_trace::Sink;
use schedlab_workload::{Amount, Op, Policy, TimerMode};

use crate::channel::{Outcome, Wake};
use crate::cpu::Leaving;
use crate::engine::Engine;
use crate::exec::{register, Next};
use crate::objects::Object;
use crate::task::{Handle, Life, Mode, Step, Wait};

impl<S: Sink> Engine<'_, S> {
    /// The time of a step has been spent: it takes effect.
    pub fn effect(&mut self, cpu: CpuId, task: TaskId, op: Op) -> Next {
        match op {
            Op::Wait(_) | Op::WaitOwn | Op::Post(_) | Op::PostPeer(_) => self.futex_effect(cpu, task, op),
            Op::Lock(object) => self.acquire(cpu, task, object),
            Op::Unlock(object) => self.wake_mutex_waiter(cpu, object),
            Op::CpuLock(object) => self.try_cpu_lock(cpu, task, object),
            Op::SemWait(_) | Op::SemPost(_) | Op::Barrier(_) => self.sync_effect(cpu, task, op),
            Op::CondWait { .. } | Op::CondSignal(_) | Op::CondBroadcast(_) => self.sync_effect(cpu, task, op),
            Op::GateWait(_) | Op::GateOpen(_) | Op::GateClose(_) => self.gate_effect(cpu, task, op),
            Op::Sleep(amount) => self.sleep(cpu, task, amount),
            Op::SleepUntil(reg) => {
                let until = (*register(&mut self.tasks[task.index()], reg)).max(0) as Nanos;
                self.sleep_until(cpu, task, until)
            }
            Op::Timer { object, period, mode } => self.timer(cpu, task, object, period, mode),
            Op::Yield => {
                self.sched.yield_current(cpu, self.now);
                self.cpus[cpu.index()].need_resched = true;
                Next::Done
            }
            Op::Fork { program, kind, into } => self.fork(cpu, task, program, kind, into),
            Op::Reap => self.reap(cpu, task),
            Op::Exit => self.exit(cpu, task),
            Op::SetNice(_) | Op::SetPolicy(_) | Op::SetAffinity(_) | Op::SetCgroup(_) | Op::SetSlice(_) => {
                self.change(cpu, task, op)
            }
            _ => Next::Done,
        }
    }

    /// Blocks the running task; when woken it tries the step again, or goes on if `over`.
    fn wait_for(&mut self, cpu: CpuId, task: TaskId, wait: Wait, over: bool) -> Next {
        if over {
            self.tasks[task.index()].pc += 1;
        }
        self.block(cpu, task, wait, if over { Step::Fetch } else { Step::Effect });
        Next::Stop
    }

    /// The bytes of a read or write; whether the interpreter is through for now: the task blocks, or reschedules on its
    /// way out of the call.
    #[inline(always)]
    pub fn transfer(&mut self, cpu: CpuId, task: TaskId, object: u32, write: bool) -> bool {
        let t = &mut self.tasks[task.index()];
        // A call is over unless it blocks again: back in user mode.
        t.mode = Mode::User;
        let Object::Channel(channel) = &mut self.objects[object as usize] else { return t.on() };
        let resumed = std::mem::take(&mut t.resumed);
        let outcome: Outcome = if write { channel.write(t.io_left, resumed) } else { channel.read(t.io_left, resumed) };
        t.io_left = outcome.left;
        if outcome.left > 0 {
            if write {
                channel.writers.push_back(task);
            } else {
                channel.readers.push_back(task);
            }
        }
        if outcome.wake_readers != Wake::Nobody {
            self.wake_channel(cpu, object, outcome.wake_readers, false, task);
        }
        if outcome.wake_writers != Wake::Nobody {
            self.wake_channel(cpu, object, outcome.wake_writers, true, task);
        }
        if outcome.left > 0 {
            self.block(cpu, task, Wait::Object(object), Step::Effect);
            return true;
        }
        self.call_over(cpu, task, true)
    }

    /// Wakes readers or writers of a channel, but not `but`, who has just queued itself.
    #[inline(never)]
    fn wake_channel(&mut self, cpu: CpuId, index: u32, wake: Wake, writers: bool, but: TaskId) {
        let Object::Channel(channel) = &mut self.objects[index as usize] else { return };
        let queue = if writers { &mut channel.writers } else { &mut channel.readers };
        match wake {
            Wake::Nobody => {}
            Wake::One => {
                let Some(waiter) = queue.front().copied().filter(|waiter| *waiter != but) else { return };
                queue.pop_front();
                self.wake(waiter, cpu, true);
                self.charge_telling(cpu, index);
            }
            Wake::All if queue.is_empty() => {}
            Wake::All => {
                let mut waiting = std::mem::take(queue);
                if waiting.contains(&but) {
                    waiting.retain(|waiter| *waiter != but);
                    queue.push_back(but);
                }
                // prepare_to_wait puts those that are not exclusive before the others: the last to come is first.
                for waiter in waiting.iter().rev() {
                    self.wake(*waiter, cpu, true);
                }
                self.charge_telling(cpu, index);
            }
        }
    }

    /// What it adds to a call that somebody waited for it.
    #[inline(always)]
    fn charge_telling(&mut self, cpu: CpuId, index: u32) {
        let socket = matches!(&self.objects[index as usize], Object::Channel(channel) if channel.is_socket());
        let table = if socket { &self.costs.socket_wake } else { &self.costs.pipe_wake };
        let cost = table.draw_any(&mut self.cpus[cpu.index()].dice);
        self.charge(cpu, cost);
    }

    fn gate_effect(&mut self, cpu: CpuId, task: TaskId, op: Op) -> Next {
        let (Op::GateWait(object) | Op::GateOpen(object) | Op::GateClose(object)) = op else { return Next::Done };
        let Object::Gate { open, waiting } = &mut self.objects[object as usize] else { return Next::Done };
        match op {
            Op::GateWait(_) if *open => {}
            Op::GateWait(_) => {
                waiting.push(task);
                return self.wait_for(cpu, task, Wait::Object(object), false);
            }
            Op::GateOpen(_) => {
                *open = true;
                // __pollwait's add_wait_queue: the last to come is first.
                for waiter in std::mem::take(waiting).into_iter().rev() {
                    self.wake(waiter, cpu, true);
                }
            }
            _ => *open = false,
        }
        Next::Done
    }

    fn sleep(&mut self, cpu: CpuId, task: TaskId, amount: Amount) -> Next {
        let soft = self.now + self.amount(task, amount);
        self.start_timer(cpu, task, soft);
        self.wait_for(cpu, task, Wait::Timer, true)
    }

    /// A timer whose latest time has passed fires at once: the call returns without blocking.
    fn sleep_until(&mut self, cpu: CpuId, task: TaskId, soft: Nanos) -> Next {
        if soft.saturating_add(self.tasks[task.index()].timer_slack) <= self.now {
            return Next::Done;
        }
        self.start_timer(cpu, task, soft);
        self.wait_for(cpu, task, Wait::Timer, true)
    }

    /// rt-app's timer event: the next expiry is one period after the last; a missed one is not waited for.
    fn timer(&mut self, cpu: CpuId, task: TaskId, object: u32, period: Amount, mode: TimerMode) -> Next {
        let period = self.amount(task, period);
        let now = self.now;
        let Object::Timer(last) = self.object(object) else { return Next::Done };
        let next = last.unwrap_or(now).saturating_add(period);
        let missed = next <= now;
        *last = Some(if missed && mode == TimerMode::Relative { now } else { next });
        if missed {
            return Next::Done;
        }
        self.start_timer(cpu, task, next);
        self.wait_for(cpu, task, Wait::Timer, true)
    }

    fn reap(&mut self, cpu: CpuId, task: TaskId) -> Next {
        let t = &mut self.tasks[task.index()];
        if t.zombies > 0 {
            t.zombies -= 1;
            return Next::Done;
        }
        if t.children == 0 {
            return self.fail_program(task, "reap: the task has no child left to wait for".into());
        }
        self.wait_for(cpu, task, Wait::Child, false)
    }

    fn exit(&mut self, cpu: CpuId, task: TaskId) -> Next {
        let t = &mut self.tasks[task.index()];
        let (pid, prio, parent, thread) = (t.pid, t.prio, t.parent, t.thread);
        t.life = Life::Dead;
        self.emit(cpu, schedlab_trace::Kind::Exit { pid, prio });
        self.alive -= 1;
        if let Some(parent) = parent {
            self.tell_parent(cpu, parent, thread);
        }
        self.checks.fair.changed(cpu, self.now);
        if self.cgroups.is_autogroup(self.sched.fair.group_of(task)) {
            // sched_autogroup_exit_task: the last steps are taken in the root group.
            self.sched.move_to_group(task, GroupId::ROOT, self.now);
        }
        self.go(cpu, task, Leaving::Exits);
        Next::Stop
    }

    /// `do_notify_parent`, unless the parent has gone before.
    fn tell_parent(&mut self, cpu: CpuId, parent: Handle, thread: bool) {
        let p = &mut self.tasks[parent.task.index()];
        if p.pid != parent.pid {
            return;
        }
        p.children -= 1;
        p.zombies += 1;
        if p.life == Life::Sleeping && p.wait == Wait::Child {
            p.wait = Wait::Nothing;
            // A process wakes its parent by signal, synchronously; a thread its joiner by futex.
            self.wake(parent.task, cpu, !thread);
        }
    }

    /// System calls by which a task changes its own attributes.
    fn change(&mut self, cpu: CpuId, task: TaskId, op: Op) -> Next {
        let now = self.now;
        self.checks.fair.changed(cpu, now);
        let wish = match op {
            Op::SetNice(nice) => {
                if self.sched.rt.policy(task).is_none() {
                    self.tasks[task.index()].prio = 120 + i32::from(nice);
                }
                self.sched.set_nice(task, nice, now)
            }
            Op::SetPolicy(policy) => {
                self.tasks[task.index()].prio = prio(policy, self.sched.fair.entity(task).nice);
                match (fair_policy(policy), rt_policy(policy)) {
                    (Some(policy), _) => self.sched.set_policy(task, policy, now),
                    (None, Some(policy)) => self.sched.set_rt_policy(task, policy, now),
                    (None, None) => Resched::No,
                }
            }
            Op::SetSlice(slice) => self.sched.set_slice(task, (slice > 0).then_some(slice), now),
            Op::SetCgroup(index) => {
                let number = self.tasks[task.index()].workload as usize;
                let path = self.workloads[number].cgroups.get(index as usize).filter(|path| *path != "/");
                let group = self.cgroups.of(path.map(String::as_str), number);
                if self.sched.fair.group_of(task) == group {
                    return Next::Done;
                }
                self.sched.move_to_group(task, group, now)
            }
            Op::SetAffinity(mask) => {
                let workload = &self.workloads[self.tasks[task.index()].workload as usize];
                let Some(mask) = workload.masks.get(mask as usize).copied() else { return Next::Done };
                return self.set_affinity(cpu, task, mask);
            }
            _ => return Next::Done,
        };
        self.request_resched(cpu, wish, cpu);
        Next::Done
    }

    /// A task that runs where it no longer may leaves at its CPU's next schedule() (the stopper's work).
    fn set_affinity(&mut self, cpu: CpuId, task: TaskId, mask: schedlab_model::CpuMask) -> Next {
        let Some(dest) = self.sched.set_affinity(task, Some(mask), self.now) else { return Next::Done };
        let t = &mut self.tasks[task.index()];
        t.pc += 1;
        t.step = Step::Fetch;
        self.cpus[cpu.index()].push_away = Some((task, dest));
        self.mark(cpu);
        Next::Stop
    }
}

/// The real-time class's name of a policy.
pub(crate) fn rt_policy(policy: Policy) -> Option<RtPolicy> {
    match policy {
        Policy::Fifo(priority) => Some(RtPolicy { priority, round_robin: false }),
        Policy::RoundRobin(priority) => Some(RtPolicy { priority, round_robin: true }),
        Policy::Normal | Policy::Batch | Policy::Idle => None,
    }
}

/// `task_struct.prio`, as trace events show it.
pub(crate) fn prio(policy: Policy, nice: i8) -> i32 {
    rt_policy(policy).map_or(120 + i32::from(nice), |policy| i32::from(policy.prio()))
}

/// The fair class's name of a policy; `None` for real-time ones.
pub(crate) fn fair_policy(policy: Policy) -> Option<FairPolicy> {
    match policy {
        Policy::Normal => Some(FairPolicy::Normal),
        Policy::Batch => Some(FairPolicy::Batch),
        Policy::Idle => Some(FairPolicy::Idle),
        Policy::Fifo(_) | Policy::RoundRobin(_) => None,
    }
}
