//! The cache lines and locks of the scheduler's own structures.

use schedlab_model::{CpuId, Nanos};

use crate::machine::{touched, Changed, Lines, Lock, Machine};

/// The lines of a task.
#[derive(Clone, Copy, Default, Debug)]
pub struct TaskLines {
    /// What a waker changes before the enqueue.
    pub wake: Lines,
    pub entity: Lines,
    /// What the CPU that runs the task changes.
    pub body: Lines,
}

/// The lines and the lock of a CPU's runqueue.
#[derive(Clone, Default, Debug)]
pub struct RunqueueLines {
    pub lines: Lines,
    pub wakelist: Lines,
    pub lock: Lock,
    pub buffers: Buffers,
}

/// The socket buffers that a CPU has allocated and other CPUs have freed. They return to the free lists of the CPU's
/// slabs, so it allocates them again, with lines that are elsewhere.
#[derive(Clone, Copy, Default, Debug)]
pub struct Buffers {
    /// Freed elsewhere, and not allocated again.
    freed: u32,
    /// By this CPU last.
    by: CpuId,
}

impl Buffers {
    /// The CPU allocates one: how long it waits for lines.
    pub fn allocate(&mut self, machine: &mut Machine, cpu: CpuId) -> Nanos {
        if self.freed == 0 {
            return 0;
        }
        self.freed -= 1;
        machine.read_fresh_lines(cpu, self.by, touched::SLAB_OBJECTS)
    }

    /// A CPU frees one that `from` has allocated, whose buffers these are: how long it waits for lines.
    pub fn free(&mut self, machine: &mut Machine, cpu: CpuId, from: CpuId) -> Nanos {
        if cpu == from {
            return 0;
        }
        (self.freed, self.by) = (self.freed.saturating_add(1), cpu);
        machine.read_fresh_lines(cpu, from, touched::SLAB_FREE)
    }
}

/// The list of all tasks, and the lock that everybody needs to change it.
#[derive(Clone, Default, Debug)]
pub struct Tasklist {
    pub lines: Lines,
    pub lock: Lock,
}

/// The lines of one group.
#[derive(Clone, Debug)]
pub struct GroupLines {
    /// `tg->load_avg`.
    pub load_avg: Changed,
    /// The queue of the group on each CPU, with the entity that stands for it one level up.
    pub queues: Vec<Lines>,
}

impl GroupLines {
    /// Lines that no CPU has touched, of every group.
    pub fn of_all(nr_groups: usize, nr_cpus: usize) -> Vec<GroupLines> {
        vec![GroupLines { load_avg: Changed::default(), queues: vec![Lines::default(); nr_cpus] }; nr_groups]
    }
}
