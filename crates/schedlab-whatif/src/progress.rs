//! How far a task has come with its work, while a trace is read.

use schedlab_model::Nanos;

use crate::recording::{Act, Cause, Task, TaskIndex};

/// A wakeup of a task that had not been switched out.
#[derive(Clone, Copy, Debug)]
pub struct Early {
    /// When.
    pub at: Nanos,
    /// The waker, and the place of its act.
    pub act: Option<(TaskIndex, usize)>,
    /// What it was.
    pub cause: Cause,
}

/// The state of a task at one point of the trace.
#[derive(Clone, Debug)]
pub struct Progress {
    /// CPU time so far.
    done: Nanos,
    /// How much of it is in its acts.
    emitted: Nanos,
    /// How many wakeups there were on its CPU since.
    wakeups: u32,
    /// How often it was switched out since.
    switches: u32,
    /// On a CPU: up to when its time is in `done`.
    running: Option<Nanos>,
    /// Whether a record showed its run time since it was switched in.
    charged: bool,
    /// Blocked since.
    pub blocked: Option<Nanos>,
    /// A wakeup that counts if the task blocks next.
    pub early: Option<Early>,
    /// Its priority.
    pub prio: i32,
}

impl Progress {
    /// A task with this priority, which is not on a CPU.
    pub fn new(prio: i32) -> Progress {
        Progress {
            done: 0,
            emitted: 0,
            wakeups: 0,
            switches: 0,
            running: None,
            charged: false,
            blocked: None,
            early: None,
            prio,
        }
    }

    /// It is switched in.
    pub fn switch_in(&mut self, time: Nanos) {
        (self.running, self.charged) = (Some(time), false);
    }

    /// Whether it is on a CPU.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// A wakeup takes place while it is on the CPU.
    pub fn count_wakeup(&mut self) {
        self.wakeups += 1;
    }

    /// It is switched out; whether the time between the switches had to stand for its run time.
    pub fn switch_out(&mut self, time: Nanos) -> bool {
        let Some(since) = self.running.take() else { return false };
        self.switches += 1;
        let uncharged = !self.charged && time > since;
        if uncharged {
            self.done += time - since;
        }
        uncharged
    }

    /// The kernel charged this much run time.
    pub fn charge(&mut self, time: Nanos, runtime: Nanos) {
        self.done += runtime;
        (self.running, self.charged) = (Some(time), true);
    }

    /// Puts the work up to this time into the acts.
    pub fn emit(&mut self, acts: &mut Vec<Act>, time: Nanos) {
        let since = self.running.map_or(0, |since| time.saturating_sub(since));
        self.emit_up_to(acts, self.done + since);
    }

    /// Puts all of the work into the acts.
    pub fn emit_all(&mut self, acts: &mut Vec<Act>) {
        self.emit_up_to(acts, self.done);
    }

    /// The estimate within a stay on a CPU may be above what is charged later; then the next work is shorter.
    fn emit_up_to(&mut self, acts: &mut Vec<Act>, done: Nanos) {
        if done > self.emitted {
            acts.push(Act::Work { time: done - self.emitted, wakeups: self.wakeups, switches: self.switches });
            (self.emitted, self.wakeups, self.switches) = (done, 0, 0);
        }
    }

    /// A switch shows its priority.
    pub fn set_prio(&mut self, task: &mut Task, prio: i32) {
        if prio != self.prio {
            self.prio = prio;
            match task.acts.is_empty() {
                true => task.prio = prio,
                false => task.acts.push(Act::Prio(prio)),
            }
        }
    }
}
