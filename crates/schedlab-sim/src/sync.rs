//! Futex-based synchronisation: the fast path in user mode, the slow path in the kernel.

use schedlab_model::{CpuId, TaskId};
use schedlab_trace::Sink;
use schedlab_workload::Op;

use crate::cpu::Activity;
use crate::engine::{Engine, Source};
use crate::exec::Next;
use crate::objects::{Futex, Object};
use crate::task::{Mode, Step, Wait};

impl<S: Sink> Engine<'_, S> {
    /// The futex word of an object, or the task's own.
    fn word(&mut self, task: TaskId, object: Option<u32>) -> Option<&mut Futex> {
        match object {
            None => Some(&mut self.tasks[task.index()].own),
            Some(object) => match self.object(object) {
                Object::Futex(futex) => Some(futex),
                _ => None,
            },
        }
    }

    pub fn begin_wait(&mut self, task: TaskId, object: Option<u32>) -> Next {
        let posted = self.word(task, object).is_none_or(|word| std::mem::take(&mut word.posted));
        if posted {
            self.carry_user_op(task);
            return Next::Done;
        }
        self.futex_wait(task)
    }

    pub fn begin_post(&mut self, task: TaskId, object: u32) -> Next {
        self.post_or_call(task, task, Some(object))
    }

    pub fn begin_post_peer(&mut self, task: TaskId, reg: u8) -> Next {
        match self.peer(task, reg) {
            Some(peer) => self.post_or_call(task, peer, None),
            None => Next::Done,
        }
    }

    /// FUTEX_WAKE is called only if somebody waits; else the word alone is set.
    fn post_or_call(&mut self, task: TaskId, of: TaskId, object: Option<u32>) -> Next {
        let Some(word) = self.word(of, object) else { return Next::Done };
        if word.waiter.is_some() {
            return self.futex_wake(task);
        }
        word.posted = true;
        self.carry_user_op(task);
        Next::Done
    }

    pub fn futex_effect(&mut self, cpu: CpuId, task: TaskId, op: Op) -> Next {
        let (of, object) = match op {
            Op::Wait(object) | Op::Post(object) => (task, Some(object)),
            Op::PostPeer(reg) => match self.peer(task, reg) {
                Some(peer) => (peer, None),
                None => return Next::Done,
            },
            _ => (task, None),
        };
        let wait = object.map_or(Wait::Own, Wait::Object);
        let Some(word) = self.word(of, object) else { return Next::Done };
        if matches!(op, Op::Post(_) | Op::PostPeer(_)) {
            match word.waiter.take() {
                Some(waiter) => self.wake(waiter, cpu, false),
                None => word.posted = true,
            }
            return Next::Done;
        }
        if std::mem::take(&mut word.posted) {
            return Next::Done;
        }
        if word.waiter.is_some() {
            return self.fail_program(task, "wait: another task already waits on this futex word".into());
        }
        word.waiter = Some(task);
        self.tasks[task.index()].pc += 1;
        self.block(cpu, task, wait, Step::Fetch);
        Next::Stop
    }

    pub fn begin_lock(&mut self, task: TaskId, object: u32) -> Next {
        self.carry_user_op(task);
        let pid = self.tasks[task.index()].pid;
        let Object::Mutex(mutex) = self.object(object) else { return Next::Done };
        match mutex.owner {
            None => {
                mutex.owner = Some(pid);
                Next::Done
            }
            Some(_) => self.futex_wait(task),
        }
    }

    /// `futex_wait` on a contended mutex, and the retry after a wakeup.
    pub fn acquire(&mut self, cpu: CpuId, task: TaskId, object: u32) -> Next {
        let Object::Mutex(mutex) = &mut self.objects[object as usize] else { return Next::Done };
        if mutex.owner.is_none() {
            mutex.owner = Some(self.tasks[task.index()].pid);
            return Next::Done;
        }
        mutex.waiting.push_back(task);
        self.block(cpu, task, Wait::Object(object), Step::Effect);
        Next::Stop
    }

    pub fn begin_unlock(&mut self, task: TaskId, object: u32) -> Next {
        self.carry_user_op(task);
        let pid = self.tasks[task.index()].pid;
        let Object::Mutex(mutex) = self.object(object) else { return Next::Done };
        if mutex.owner != Some(pid) {
            return self.fail_program(task, "unlock: the task does not hold this mutex".into());
        }
        mutex.owner = None;
        if mutex.waiting.is_empty() {
            return Next::Done;
        }
        self.futex_wake(task)
    }

    pub fn wake_mutex_waiter(&mut self, cpu: CpuId, object: u32) -> Next {
        let Object::Mutex(mutex) = self.object(object) else { return Next::Done };
        if let Some(waiter) = mutex.waiting.pop_front() {
            self.wake(waiter, cpu, false);
        }
        Next::Done
    }

    pub fn begin_sem_wait(&mut self, task: TaskId, object: u32) -> Next {
        self.carry_user_op(task);
        match self.object(object) {
            Object::Semaphore { units, .. } if *units > 0 => {
                *units -= 1;
                Next::Done
            }
            _ => self.futex_wait(task),
        }
    }

    pub fn begin_sem_post(&mut self, task: TaskId, object: u32) -> Next {
        self.carry_user_op(task);
        match self.object(object) {
            Object::Semaphore { units, waiting } => {
                *units = units.saturating_add(1);
                if waiting.is_empty() {
                    return Next::Done;
                }
                self.futex_wake(task)
            }
            _ => Next::Done,
        }
    }

    pub fn sync_effect(&mut self, cpu: CpuId, task: TaskId, op: Op) -> Next {
        match op {
            Op::SemWait(object) => self.sem_wait(cpu, task, object),
            Op::SemPost(object) => {
                let Object::Semaphore { waiting, .. } = self.object(object) else { return Next::Done };
                if let Some(waiter) = waiting.pop_front() {
                    self.wake(waiter, cpu, false);
                }
                Next::Done
            }
            Op::Barrier(object) => self.arrive(cpu, task, object),
            Op::CondWait { object, mutex } => self.cond_wait(cpu, task, object, mutex),
            Op::CondSignal(object) => self.signal(cpu, object, 1),
            Op::CondBroadcast(object) => self.signal(cpu, object, usize::MAX),
            _ => Next::Done,
        }
    }

    fn sem_wait(&mut self, cpu: CpuId, task: TaskId, object: u32) -> Next {
        let Object::Semaphore { units, waiting } = &mut self.objects[object as usize] else { return Next::Done };
        if *units > 0 {
            *units -= 1;
            return Next::Done;
        }
        waiting.push_back(task);
        self.block(cpu, task, Wait::Object(object), Step::Effect);
        Next::Stop
    }

    fn arrive(&mut self, cpu: CpuId, task: TaskId, object: u32) -> Next {
        let Object::Barrier { parties, waiting } = &mut self.objects[object as usize] else { return Next::Done };
        if waiting.len() + 1 >= *parties as usize {
            for waiter in std::mem::take(waiting) {
                self.wake(waiter, cpu, false);
            }
            return Next::Done;
        }
        waiting.push(task);
        self.tasks[task.index()].pc += 1;
        self.block(cpu, task, Wait::Object(object), Step::Fetch);
        Next::Stop
    }

    /// Gives the mutex up and waits; woken, it competes for the mutex again.
    fn cond_wait(&mut self, cpu: CpuId, task: TaskId, object: u32, mutex: u32) -> Next {
        if self.tasks[task.index()].resumed {
            return self.acquire(cpu, task, mutex);
        }
        let pid = self.tasks[task.index()].pid;
        let Object::Mutex(lock) = self.object(mutex) else { return Next::Done };
        if lock.owner != Some(pid) {
            return self.fail_program(task, "wait: the task does not hold the mutex".into());
        }
        lock.owner = None;
        let waiter = lock.waiting.pop_front();
        if let Some(waiter) = waiter {
            self.wake(waiter, cpu, false);
        }
        if let Object::Condition(waiting) = &mut self.objects[object as usize] {
            waiting.push_back((task, mutex));
        }
        self.block(cpu, task, Wait::Object(object), Step::Effect);
        Next::Stop
    }

    fn signal(&mut self, cpu: CpuId, object: u32, count: usize) -> Next {
        for _ in 0..count {
            let Object::Condition(waiting) = &mut self.objects[object as usize] else { return Next::Done };
            let Some((waiter, _)) = waiting.pop_front() else { break };
            self.wake(waiter, cpu, false);
        }
        Next::Done
    }

    /// Tries the lock of the CPU the task is on; spins there until the holder lets go or the task is moved.
    pub fn try_cpu_lock(&mut self, cpu: CpuId, task: TaskId, object: u32) -> Next {
        self.carry_user_op(task);
        let Object::CpuLocks(holders) = &mut self.objects[object as usize] else { return Next::Done };
        let Some(holder) = holders.get_mut(cpu.index()) else { return Next::Done };
        if holder.is_none() {
            *holder = Some(task);
            let t = &mut self.tasks[task.index()];
            t.cpu_lock = Some((object, cpu.index()));
            t.mode = Mode::User;
            return Next::Done;
        }
        let t = &mut self.tasks[task.index()];
        t.mode = Mode::Spin;
        t.step = Step::Effect;
        t.work_left = 0;
        t.idle_steps = 0;
        Next::Stop
    }

    pub fn cpu_unlock(&mut self, task: TaskId, object: u32) -> Next {
        self.carry_user_op(task);
        let held = self.tasks[task.index()].cpu_lock.take();
        let Some((index, slot)) = held.filter(|(held, _)| *held == object) else {
            return self.fail_program(task, "cpu unlock: the task holds no per-CPU lock".into());
        };
        if let Object::CpuLocks(holders) = &mut self.objects[index as usize] {
            holders[slot] = None;
        }
        let cpu = CpuId(slot as u32);
        let c = &self.cpus[slot];
        let spins = c.activity == Activity::Busy
            && c.curr.is_some_and(|spinner| spinner != task && self.tasks[spinner.index()].mode == Mode::Spin);
        if spins {
            self.progress(cpu);
            let left = self.cpus[slot].curr.map_or(0, |spinner| self.tasks[spinner.index()].cost_left);
            let end = self.now + self.cpus[slot].wall(left);
            self.set_event(Source::SEGMENT, cpu, end);
        }
        Next::Done
    }
}
