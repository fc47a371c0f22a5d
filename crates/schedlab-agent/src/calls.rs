//! Operations that take more than one system call: transfers, timers, locks, forks, reaping.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

use rustix::thread::futex::{self, Flags, Timespec};
use schedlab_model::Nanos;
use schedlab_workload::{identity, Amount, TaskKind, TimerMode};

use crate::burn::Kernel;
use crate::clock;
use crate::exec::Worker;
use crate::life;
use crate::objects::Object;
use crate::shared_state::Failure;
use crate::sys;

impl Worker {
    /// Reads or writes exactly `bytes` bytes.
    pub(crate) fn transfer(&mut self, object: u32, bytes: u32, write: bool) -> Result<(), (Failure, i32)> {
        let Object::Channel(reader, writer) = self.object(object) else { return Ok(()) };
        if self.buffer.len() < bytes as usize {
            self.buffer.resize(bytes as usize, 0);
        }
        let mut at = 0;
        while at < bytes as usize {
            let rest = &mut self.buffer[at..bytes as usize];
            let moved = if write { rustix::io::write(writer, rest) } else { rustix::io::read(reader, rest) };
            match moved {
                Ok(moved) if moved > 0 => at += moved,
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Err((Failure::Io, libc::EPIPE)),
                Err(error) => return Err((Failure::Io, error.raw_os_error())),
            }
        }
        Ok(())
    }

    pub(crate) fn system(&mut self, work: Nanos) -> Result<(), (Failure, i32)> {
        if self.kernel.is_none() {
            let opened = Kernel::open();
            self.kernel = Some(opened.map_err(|error| (Failure::Io, error.raw_os_error().unwrap_or(0)))?);
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.run(&self.shared.speed, life::has_several_threads(), work);
        }
        Ok(())
    }

    pub(crate) fn sleep_until(&self, time: Nanos) {
        clock::sleep_until(self.shared.control.begin.load(Relaxed).saturating_add(time));
    }

    /// rt-app's timer event: the next expiry is one period after the last. An expiry in the past is not waited for.
    pub(crate) fn timer(&mut self, object: u32, period: Amount, mode: TimerMode) {
        let period = self.amount(period);
        let Object::Timer(last) = self.object(object) else { return };
        let now = self.shared.time();
        // Tasks that share the timer advance it one after the other.
        let mut seen = last.load(Relaxed);
        let next = loop {
            let next = mode.expiry(seen.checked_sub(1).unwrap_or(now).saturating_add(period), period, now);
            let kept = if next <= now && mode == TimerMode::Relative { now } else { next };
            match last.compare_exchange_weak(seen, 1 + kept, AcqRel, Relaxed) {
                Ok(_) => break next,
                Err(changed) => seen = changed,
            }
        };
        if next > now {
            self.sleep_until(next);
        }
    }

    pub(crate) fn lock(&self, object: u32) {
        if let Object::Mutex(mutex, pi) = self.object(object) {
            if *pi {
                mutex.lock_pi(self.flags, self.id + 1, self.tid);
            } else {
                mutex.lock(self.flags, self.id + 1);
            }
        }
    }

    pub(crate) fn unlock(&self, object: u32) -> bool {
        match self.object(object) {
            Object::Mutex(mutex, true) => mutex.unlock_pi(self.flags, self.id + 1, self.tid),
            Object::Mutex(mutex, false) => mutex.unlock(self.flags, self.id + 1),
            _ => true,
        }
    }

    /// FUTEX_WAIT with a relative timeout. Returns false if it has expired.
    pub(crate) fn futex_wait(&self, object: u32, timeout: u8) -> bool {
        let Object::FutexQueue(word) = self.object(object) else { return true };
        let timeout = u64::try_from(self.slot.register(timeout)).ok();
        let timeout =
            timeout.map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ });
        loop {
            match futex::wait(word, self.flags, 0, timeout.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                result => return result != Err(rustix::io::Errno::TIMEDOUT),
            }
        }
    }

    pub(crate) fn futex_wake(&self, object: u32, count: u32, into: u8) {
        if let Object::FutexQueue(word) = self.object(object) {
            let woken = futex::wake(word, self.flags, count.min(i32::MAX as u32)).unwrap_or(0);
            self.slot.set(into, woken as i64);
        }
    }

    pub(crate) fn futex_requeue(&self, object: u32, to: u32, count: u32, into: u8) -> Result<(), (Failure, i32)> {
        if let (Object::FutexQueue(word), Object::FutexQueue(to)) = (self.object(object), self.object(to)) {
            let moved = futex::requeue(word, self.flags, 0, count.min(i32::MAX as u32), to);
            self.slot.set(into, moved.map_err(|error| (Failure::Io, error.raw_os_error()))? as i64);
        }
        Ok(())
    }

    /// FUTEX_WAIT with another value than the word's: returns at once with EAGAIN.
    pub(crate) fn futex_mismatch(&self, object: u32) {
        if let Object::FutexQueue(word) = self.object(object) {
            let _ = futex::wait(word, self.flags, 1, None);
        }
    }

    /// FUTEX_LOCK_PI, always by the system call.
    pub(crate) fn futex_lock_pi(&self, object: u32) -> Result<(), (Failure, i32)> {
        let Object::PiFutex(word) = self.object(object) else { return Ok(()) };
        loop {
            match futex::lock_pi(word, self.flags, None) {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err((Failure::Io, error.raw_os_error())),
            }
        }
    }

    /// Opens or closes a gate, which is a pipe that holds a byte while the gate is open.
    pub(crate) fn set_gate(&self, object: u32, open: bool) {
        let Object::Gate(read, write) = self.object(object) else { return };
        let mut buffer = [0; 16];
        // Both ends are non-blocking, so that an open gate may be opened again and a closed one closed again.
        let _ = rustix::io::read(read, &mut buffer);
        if open {
            let _ = rustix::io::write(write, &[1]);
        }
    }

    /// Spins for the lock of the current CPU, which is determined anew after every pause.
    pub(crate) fn cpu_lock(&mut self, object: u32, me: u32) {
        let Object::CpuLocks(locks) = self.object(object) else { return };
        loop {
            let cpu = sys::current_cpu();
            let slot = self.shared.cpus.iter().position(|known| *known == cpu).unwrap_or(0);
            if locks[slot].compare_exchange(0, me, Acquire, Relaxed).is_ok() {
                self.cpu_lock = Some((object, slot));
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Spins for a spinlock; the time spent spinning, sleeps not counted, unless the lock was free.
    pub(crate) fn spin_lock(&mut self, object: u32, me: u32) -> Option<u64> {
        let Object::SpinLock(owner, spec) = self.object(object) else { return None };
        let (owner, spec) = (*owner, *spec);
        let free = || owner.compare_exchange(0, me, Acquire, Relaxed).is_ok();
        if free() {
            return None;
        }
        let (mut begun, mut spun, mut sleep) = (clock::now(), 0, spec.sleep);
        while !free() {
            std::hint::spin_loop();
            let now = clock::now();
            if spec.spin > 0 && now - begun >= spec.spin {
                spun += now - begun;
                clock::sleep_until(now + sleep);
                if spec.sleep_max > 0 {
                    let longer = sleep + self.stream.below(sleep);
                    sleep = if longer > spec.sleep_max { spec.sleep } else { longer };
                }
                begun = clock::now();
            }
        }
        Some(spun + (clock::now() - begun))
    }

    pub(crate) fn fork(&mut self, program: u32, kind: TaskKind, into: u8) -> Result<(), (Failure, i32)> {
        let id = self.shared.new_task().ok_or((Failure::TooManyTasks, 0))?;
        self.forked += 1;
        let key = identity::child_key(self.key, self.forked);
        let child = &self.shared.slots[id as usize];
        life::inherit(self.slot, child, self.workload, program);
        self.slot.set(into, i64::from(id));
        let parent = self.id;
        match kind {
            TaskKind::Thread => {
                self.threads += 1;
                life::spawn_thread(self.shared, id, key, Some(parent)).map_err(|error| (Failure::Fork, error))
            }
            // The agent does not stop the parent of a vfork.
            TaskKind::Process | TaskKind::Vfork => {
                self.processes += 1;
                life::spawn_process(self.shared, id, key, parent).map_err(|error| (Failure::Fork, error))
            }
        }
    }

    /// Waits for one child: for processes with waitpid(), for threads on a futex as in pthread_join().
    pub(crate) fn reap(&mut self) -> Result<(), (Failure, i32)> {
        match (self.processes, self.threads) {
            (0, 0) => return Err((Failure::NoChild, 0)),
            (_, 0) => {
                let status = match sys::wait_any(true, true) {
                    Ok(reaped) => reaped.map_or(0, |(_, status)| status),
                    Err(error) => return Err((Failure::NoChild, error.raw_os_error().unwrap_or(0))),
                };
                self.processes -= 1;
                self.reaped += 1;
                return if sys::ended_badly(status).is_some() { Err((Failure::ChildKilled, 0)) } else { Ok(()) };
            }
            _ => {}
        }
        self.slot.reaping.store(1, SeqCst);
        loop {
            let exited = self.slot.exited.load(SeqCst);
            if exited != self.reaped {
                break;
            }
            // Returns when a child exits, or at once if one has exited since.
            let _ = futex::wait(&self.slot.exited, Flags::empty(), exited, None);
        }
        self.slot.reaping.store(0, Relaxed);
        self.reaped += 1;
        // The child was a process if one can be reaped, otherwise a thread.
        if self.processes > 0 && matches!(sys::wait_any(false, true), Ok(Some(_))) {
            self.processes -= 1;
        } else {
            self.threads -= 1;
        }
        Ok(())
    }
}
