//! Futex words that several CPUs use, and the futex calls on them.

use schedlab_model::Nanos;
use schedlab_trace::{Call, Lock as LockKind, Sink};

use super::lines::Word;
use super::position::Next;
use super::running::Running;
use crate::kernel::lock_waited;
use crate::machine::{touched, Stall, WORK_SHIFT};

impl<S: Sink> Running<'_, '_, S> {
    /// FUTEX_WAKE.
    pub fn futex_wake(&mut self, word: Word) -> Next {
        let dice = &mut self.kernel.tasks[self.task.index()].dice;
        let futex = self.machine.costs.futex_wake.draw(dice);
        let stall = if self.machine.shares() { touch_futex(self, word, futex) } else { 0 };
        self.measured_call(Call::FutexWake, futex + stall)
    }

    /// FUTEX_WAIT.
    pub fn futex_wait(&mut self, word: Word) -> Next {
        let dice = &mut self.kernel.tasks[self.task.index()].dice;
        let futex = self.machine.costs.futex_wait.draw(dice);
        let stall = if self.machine.shares() { touch_futex(self, word, futex) } else { 0 };
        self.measured_call(Call::FutexWait, futex + stall)
    }

    /// FUTEX_WAIT whose word has another value: the word, which nobody changes, is read under the lock of the bucket.
    pub fn futex_mismatch(&mut self, word: Word) -> Next {
        let dice = &mut self.kernel.tasks[self.task.index()].dice;
        let futex = self.machine.costs.futex_wake.draw(dice);
        let stall = if self.machine.shares() { touch_bucket(self, word, futex, Stall::new(self.arrival())) } else { 0 };
        self.measured_call(Call::FutexWake, futex + stall)
    }

    /// An operation of user mode on a futex word.
    pub fn word_op(&mut self, word: Word) {
        self.carry_user_op();
        if self.machine.shares() {
            touch_word(self, word);
        }
    }
}

/// FUTEX_WAIT or FUTEX_WAKE touches the word and then the bucket: how much work that adds to the call.
fn touch_futex<S: Sink>(x: &mut Running<S>, word: Word, work: Nanos) -> Nanos {
    let (cpu, mut stall) = (x.cpu, Stall::new(x.arrival()));
    let machine = &mut *x.machine;
    let Some(shared) = x.programs.word(word) else { return 0 };
    stall.atomic(machine, cpu, &mut shared.atomic, touched::FUTEX_WORD);
    lock_waited(x.run, x.kernel, cpu, LockKind::Line, stall.waits);
    touch_bucket(x, word, work, stall)
}

/// A futex call of that much work touches the bucket under its lock, after `stall`: how much work both add to the call.
fn touch_bucket<S: Sink>(x: &mut Running<S>, word: Word, work: Nanos, stall: Stall) -> Nanos {
    let cpu = x.cpu;
    let machine = &mut *x.machine;
    let Some(shared) = x.programs.word(word) else { return 0 };
    let before = shared.locked;
    let locked = machine.write_lines(cpu, &mut shared.locked, touched::FUTEX_BUCKET);
    let mut wait = 0;
    if machine.has_locks() {
        let hold = locked + machine.wall_of(cpu, work);
        wait = shared.lock.take_polling(stall.over(), hold, || machine.slows_holder(cpu, &before));
    }
    lock_waited(x.run, x.kernel, cpu, LockKind::Futex, wait);
    x.machine.stall(cpu, stall.whole() + locked + wait)
}

/// An atomic operation in user mode on a futex word.
fn touch_word<S: Sink>(x: &mut Running<S>, word: Word) {
    let (cpu, mut stall) = (x.cpu, Stall::new(x.arrival()));
    let machine = &mut *x.machine;
    let Some(shared) = x.programs.word(word) else { return };
    stall.atomic(machine, cpu, &mut shared.atomic, touched::FUTEX_WORD);
    lock_waited(x.run, x.kernel, cpu, LockKind::Line, stall.waits);
    let work = x.machine.stall(cpu, stall.whole());
    x.position().carry += work << WORK_SHIFT;
}
