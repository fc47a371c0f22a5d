//! Locks, futexes, semaphores, barriers, conditions and gates of the reference interpreter.

use schedlab_workload::Op;

use super::{Flow, Machine, Object, State};

/// Time of a call that has no effect: a program that makes only such calls passes time.
const FUTEX_CALL: u64 = 270;

impl Machine<'_> {
    pub fn lock(&mut self, id: usize, mutex: u32) -> bool {
        let Object::Mutex { owner, waiting } = &mut self.objects[mutex as usize] else { panic!("mutex") };
        assert_ne!(*owner, Some(id), "a task locks what it holds");
        if owner.is_some() {
            waiting.push_back(id);
            return false;
        }
        *owner = Some(id);
        true
    }

    fn unlock(&mut self, id: usize, mutex: u32) {
        let Object::Mutex { owner, waiting } = &mut self.objects[mutex as usize] else { panic!("mutex") };
        assert_eq!(*owner, Some(id), "a task unlocks what it does not hold");
        *owner = None;
        if let Some(next) = waiting.pop_front() {
            self.wake(next);
        }
    }

    pub fn sync_op(&mut self, id: usize, op: Op) -> Flow {
        match op {
            Op::Wait(object) => match &mut self.objects[object as usize] {
                Object::Futex { posted, .. } if *posted => {
                    *posted = false;
                    Flow::Next
                }
                Object::Futex { waiter, .. } => {
                    assert!(waiter.is_none(), "two waiters on one futex");
                    *waiter = Some(id);
                    Flow::BlockPast("futex")
                }
                _ => panic!("futex"),
            },
            Op::Post(object) | Op::PostHere(object) => {
                let Object::Futex { posted, waiter } = &mut self.objects[object as usize] else { panic!("futex") };
                match waiter.take() {
                    Some(other) => self.wake(other),
                    None => *posted = true,
                }
                Flow::Next
            }
            Op::WaitOwn => {
                if std::mem::take(&mut self.tasks[id].posted) {
                    return Flow::Next;
                }
                Flow::BlockPast("own futex")
            }
            Op::PostPeer(reg) => {
                let other = self.tasks[id].regs[usize::from(reg)] as usize;
                if self.tasks[other].state == State::Waiting("own futex") {
                    self.wake(other);
                } else {
                    self.tasks[other].posted = true;
                }
                Flow::Next
            }
            Op::GateWait(_) | Op::GateOpen(_) | Op::GateClose(_) => self.gate_op(id, op),
            Op::Lock(mutex) => match self.lock(id, mutex) {
                true => Flow::Next,
                false => Flow::Block("mutex"),
            },
            Op::Unlock(mutex) => {
                self.unlock(id, mutex);
                Flow::Next
            }
            Op::FutexWait { .. } | Op::FutexWake { .. } | Op::FutexRequeue { .. } => self.futex_op(id, op),
            Op::FutexMismatch(_) => {
                self.out.calls += 1;
                Flow::After(FUTEX_CALL)
            }
            Op::FutexLockPi(object) => {
                self.out.calls += 1;
                let Object::Mutex { owner, waiting } = &mut self.objects[object as usize] else { panic!("PI futex") };
                if owner.is_some() {
                    waiting.push_back(id);
                    return Flow::BlockPast("PI futex");
                }
                *owner = Some(id);
                Flow::Next
            }
            Op::FutexUnlockPi(object) => {
                self.out.calls += 1;
                let Object::Mutex { owner, waiting } = &mut self.objects[object as usize] else { panic!("PI futex") };
                assert_eq!(*owner, Some(id), "a task unlocks what it does not hold");
                let next = waiting.pop_front();
                *owner = next;
                next.into_iter().for_each(|next| self.wake(next));
                Flow::Next
            }
            Op::Send { object, from } => {
                let value = self.tasks[id].regs[usize::from(from)];
                let Object::Queue { values, waiting } = &mut self.objects[object as usize] else { panic!("queue") };
                values.push_back(value);
                self.out.written[object as usize] += 1;
                if let Some(other) = waiting.pop_front() {
                    self.wake(other);
                }
                Flow::Next
            }
            Op::Receive { object, into } => {
                let Object::Queue { values, waiting } = &mut self.objects[object as usize] else { panic!("queue") };
                let Some(value) = values.pop_front() else {
                    waiting.push_back(id);
                    return Flow::Block("queue");
                };
                self.tasks[id].regs[usize::from(into)] = value;
                self.out.read[object as usize] += 1;
                Flow::Next
            }
            Op::TryReceive { object, into, empty } => {
                let Object::Queue { values, .. } = &mut self.objects[object as usize] else { panic!("queue") };
                let Some(value) = values.pop_front() else { return Flow::To(empty) };
                self.tasks[id].regs[usize::from(into)] = value;
                self.out.read[object as usize] += 1;
                Flow::Next
            }
            Op::SemTryWait { object, none } => {
                let Object::Semaphore { units, .. } = &mut self.objects[object as usize] else { panic!("sem") };
                if *units == 0 {
                    return Flow::To(none);
                }
                *units -= 1;
                Flow::Next
            }
            Op::CpuLock(_) | Op::CpuUnlock(_) | Op::SpinLock { .. } | Op::SpinUnlock(_) => Flow::Next,
            Op::Barrier(object) => {
                let Object::Barrier { parties, waiting } = &mut self.objects[object as usize] else {
                    panic!("barrier")
                };
                if waiting.len() + 1 < *parties {
                    waiting.push(id);
                    return Flow::BlockPast("barrier");
                }
                std::mem::take(waiting).into_iter().for_each(|other| self.wake(other));
                Flow::Next
            }
            Op::SemWait(object) => {
                let Object::Semaphore { units, waiting } = &mut self.objects[object as usize] else { panic!("sem") };
                if *units == 0 {
                    waiting.push_back(id);
                    return Flow::Block("semaphore");
                }
                *units -= 1;
                Flow::Next
            }
            Op::SemPost(object) => {
                let Object::Semaphore { units, waiting } = &mut self.objects[object as usize] else { panic!("sem") };
                *units += 1;
                if let Some(other) = waiting.pop_front() {
                    self.wake(other);
                }
                Flow::Next
            }
            Op::CondWait { object, mutex } => {
                self.unlock(id, mutex);
                let Object::Condition(waiting) = &mut self.objects[object as usize] else { panic!("condition") };
                waiting.push_back(id);
                self.tasks[id].relock = Some(mutex);
                Flow::Block("condition")
            }
            Op::CondSignal(object) => {
                let Object::Condition(waiting) = &mut self.objects[object as usize] else { panic!("condition") };
                if let Some(other) = waiting.pop_front() {
                    self.wake(other);
                }
                Flow::Next
            }
            Op::CondBroadcast(object) => {
                let Object::Condition(waiting) = &mut self.objects[object as usize] else { panic!("condition") };
                std::mem::take(waiting).into_iter().for_each(|other| self.wake(other));
                Flow::Next
            }
            other => panic!("the reference interpreter does not know {other:?}"),
        }
    }

    fn futex_op(&mut self, id: usize, op: Op) -> Flow {
        match op {
            Op::FutexWait { object, timeout, expired } => {
                let limit = self.tasks[id].regs[usize::from(timeout)];
                let Object::FutexQueue(waiting) = &mut self.objects[object as usize] else { panic!("futex queue") };
                if std::mem::take(&mut self.tasks[id].expired) {
                    waiting.retain(|waiter| *waiter != id);
                    return Flow::To(expired);
                }
                waiting.push_back(id);
                self.out.calls += 1;
                if limit >= 0 {
                    self.timeout_at(self.now + limit as u64, id);
                }
                // A wake continues after the wait, a timeout repeats it.
                Flow::Block("futex queue")
            }
            Op::FutexWake { object, count, into } => {
                let Object::FutexQueue(waiting) = &mut self.objects[object as usize] else { panic!("futex queue") };
                let woken: Vec<usize> = waiting.drain(..waiting.len().min(count as usize)).collect();
                self.out.calls += 1;
                self.tasks[id].regs[usize::from(into)] = woken.len() as i64;
                for other in woken {
                    self.tasks[other].pc += 1;
                    self.wake(other);
                }
                Flow::Next
            }
            Op::FutexRequeue { object, to, count, into } => {
                let Object::FutexQueue(waiting) = &mut self.objects[object as usize] else { panic!("futex queue") };
                let moved: Vec<usize> = waiting.drain(..waiting.len().min(count as usize)).collect();
                self.out.calls += 1;
                self.tasks[id].regs[usize::from(into)] = moved.len() as i64;
                let Object::FutexQueue(waiting) = &mut self.objects[to as usize] else { panic!("futex queue") };
                waiting.extend(moved);
                Flow::Next
            }
            _ => unreachable!(),
        }
    }

    fn gate_op(&mut self, id: usize, op: Op) -> Flow {
        let (Op::GateWait(object) | Op::GateOpen(object) | Op::GateClose(object)) = op else { unreachable!() };
        let Object::Gate { open, waiting } = &mut self.objects[object as usize] else { panic!("gate") };
        match op {
            Op::GateWait(_) if *open => {}
            Op::GateWait(_) => {
                waiting.push(id);
                return Flow::BlockPast("gate");
            }
            Op::GateOpen(_) => {
                *open = true;
                let woken = std::mem::take(waiting);
                self.out.storms.push(woken.len());
                woken.into_iter().for_each(|other| self.wake(other));
            }
            _ => *open = false,
        }
        Flow::Next
    }
}
