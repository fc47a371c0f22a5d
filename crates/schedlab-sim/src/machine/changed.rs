//! A line that CPUs change by atomic operations, and the time that a CPU spends on lines and on waiting for others.

use schedlab_model::{CpuId, Nanos};

use super::lines::Lines;
use super::lock::{Arrival, Lock};
use super::state::Machine;

/// A line that CPUs change by atomic operations: only one CPU at a time gets it.
#[derive(Clone, Default, Debug)]
pub struct Changed {
    lines: Lines,
    turn: Lock,
}

/// Time for lines, and for locks that others hold.
#[derive(Clone, Copy)]
pub struct Stall {
    began: Arrival,
    pub lines: Nanos,
    pub waits: Nanos,
}

impl Stall {
    /// A CPU that has not waited for anything since `began`.
    pub fn new(began: Arrival) -> Stall {
        Stall { began, lines: 0, waits: 0 }
    }

    /// An atomic operation: the line is handed from CPU to CPU, one after the other.
    pub fn atomic(&mut self, machine: &mut Machine, cpu: CpuId, changed: &mut Changed, steps: u32) {
        let lines = machine.write_lines(cpu, &mut changed.lines, steps);
        if lines > 0 && machine.has_locks() {
            self.waits += changed.turn.take(self.over(), lines);
        }
        self.lines += lines;
    }

    /// A read of such a line. It waits until the CPU that owns the line has changed it, but delays no other CPU, as
    /// several CPUs can hold copies.
    pub fn read(&mut self, machine: &mut Machine, cpu: CpuId, changed: &mut Changed, steps: u32) {
        let lines = machine.read_lines(cpu, &mut changed.lines, steps);
        if lines > 0 && machine.has_locks() {
            self.waits += changed.turn.free_after(self.over().at);
        }
        self.lines += lines;
    }

    /// When the CPU has waited for all of it.
    pub fn over(&self) -> Arrival {
        self.began.after(self.whole())
    }

    /// All of it.
    pub fn whole(&self) -> Nanos {
        self.lines + self.waits
    }
}
