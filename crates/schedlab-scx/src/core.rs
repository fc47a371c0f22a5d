//! The state of sched_ext: tasks, CPUs, dispatch queues, and why the scheduler has ended.

use std::collections::BTreeMap;

use schedlab_bpf::{Memory, RegionId};
use schedlab_model::Stream;

use crate::layout::Layout;

/// The number of a task.
pub type TaskNo = usize;

pub(crate) const DSQ_GLOBAL: u64 = 1 << 63 | 1;
pub(crate) const DSQ_LOCAL: u64 = 1 << 63 | 2;
pub(crate) const DSQ_LOCAL_ON: u64 = 1 << 63 | 1 << 62;
/// `SCX_SLICE_DFL`, in ns.
pub(crate) const SLICE_DFL: u64 = 20_000_000;
pub(crate) const ENQ_HEAD: u64 = 1 << 4;
pub(crate) const ENQ_PREEMPT: u64 = 1 << 32;
pub(crate) const ENQ_LAST: u64 = 1 << 41;
/// Internal: ordered by vtime (`SCX_ENQ_DSQ_PRIQ`).
pub(crate) const ENQ_PRIQ: u64 = 1 << 57;

/// The kinds of ends (`enum scx_exit_kind`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitKind {
    /// The scheduler called `scx_bpf_exit`.
    UnregBpf = 65,
    /// The core found an error.
    Error = 1024,
    /// The scheduler called `scx_bpf_error`.
    ErrorBpf = 1025,
    /// A runnable task did not run for as long as the watchdog allows.
    ErrorStall = 1026,
}

impl ExitKind {
    /// Its name in the kernel.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ExitKind::UnregBpf => "SCX_EXIT_UNREG_BPF",
            ExitKind::Error => "SCX_EXIT_ERROR",
            ExitKind::ErrorBpf => "SCX_EXIT_ERROR_BPF",
            ExitKind::ErrorStall => "SCX_EXIT_ERROR_STALL",
        }
    }
}

/// Why a scheduler has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exit {
    /// The kind.
    pub kind: ExitKind,
    /// What happened.
    pub message: String,
    /// The operation and the place in the scheduler, if one was running.
    pub place: String,
    /// When, in ns since the start.
    pub at: u64,
}

/// Where a task is queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Nowhere,
    /// The scheduler has it (`SCX_OPSS_QUEUED`).
    Bpf,
    Local(usize),
    /// The global queue or one of the scheduler.
    Dsq(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub region: RegionId,
    pub mask_region: RegionId,
    pub pid: i32,
    pub name: String,
    pub cpu: usize,
    /// A bit per CPU.
    pub allowed: u64,
    /// `SCX_TASK_QUEUED`: runnable.
    pub queued: bool,
    pub place: Place,
    /// Counts enqueues on the scheduler (`ops_qseq`).
    pub qseq: u64,
    /// `ddsp_dsq_id` and its flags.
    pub direct: Option<(u64, u64)>,
    /// Since when it is runnable and does not run.
    pub runnable_at: Option<u64>,
}

impl Task {
    pub fn address(&self) -> u64 {
        Memory::address(self.region, 0)
    }
}

/// A dispatch queue: the task, its vtime if the queue is ordered by it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Dsq {
    pub tasks: Vec<(TaskNo, Option<u64>)>,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct Cpu {
    pub local: Dsq,
    pub curr: Option<TaskNo>,
    pub exec_start: u64,
    pub need_resched: bool,
    /// The built-in idle mask.
    pub idle: bool,
    /// The CPU is idle, whatever the mask says.
    pub is_idle: bool,
}

/// What the running operation may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Calling {
    Nothing,
    /// `select_cpu` or `enqueue` of a task, which may be inserted once.
    Direct {
        task: TaskNo,
        done: bool,
    },
    Dispatch {
        cpu: usize,
    },
    Init,
    Other,
}

/// An entry of the dispatch buffer.
#[derive(Clone, Debug)]
pub(crate) struct Buffered {
    pub task: TaskNo,
    pub qseq: u64,
    pub dsq: u64,
    pub flags: u64,
}

/// The core's state.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub layout: Layout,
    pub now: u64,
    pub this_cpu: usize,
    pub tasks: Vec<Task>,
    pub by_address: BTreeMap<u64, TaskNo>,
    pub cpus: Vec<Cpu>,
    pub dsqs: BTreeMap<u64, Dsq>,
    pub calling: Calling,
    pub buffer: Vec<Buffered>,
    pub max_batch: usize,
    pub kicks: Vec<(usize, u64)>,
    pub exit: Option<Exit>,
    /// The random numbers of the load and of the scheduler.
    pub random: Stream,
    pub masks: BTreeMap<&'static str, RegionId>,
}

impl Core {
    /// `scx_error`: the first error counts.
    pub fn error(&mut self, kind: ExitKind, message: String) {
        if self.exit.is_none() {
            self.exit = Some(Exit { kind, message, place: String::new(), at: self.now });
        }
    }

    /// `NAME[PID]`, as the kernel names a task in messages.
    pub fn named(&self, task: TaskNo) -> String {
        self.tasks.get(task).map_or(String::new(), |task| format!("{}[{}]", task.name, task.pid))
    }

    /// The task at an address.
    pub fn task_at(&self, address: u64) -> Result<TaskNo, String> {
        self.by_address.get(&address).copied().ok_or_else(|| format!("{address:#x} is no task"))
    }

    pub fn cpu_at(&self, cpu: u64) -> Result<usize, String> {
        let cpu = cpu as u32 as i32;
        let valid = usize::try_from(cpu).ok().filter(|cpu| *cpu < self.cpus.len());
        valid.ok_or_else(|| format!("invalid CPU {cpu}"))
    }

    pub fn allows(&self, task: TaskNo, cpu: usize) -> bool {
        self.tasks[task].allowed >> cpu & 1 != 0
    }

    pub fn read(&self, memory: &Memory, task: TaskNo, (offset, size): (usize, usize)) -> u64 {
        memory.load(Memory::address(self.tasks[task].region, offset), size.min(8)).unwrap_or(0)
    }

    pub fn write(&self, memory: &mut Memory, task: TaskNo, (offset, size): (usize, usize), value: u64) {
        memory.set(self.tasks[task].region, offset, &value.to_le_bytes()[..size.min(8)]);
    }

    pub fn slice(&self, memory: &Memory, task: TaskNo) -> u64 {
        self.read(memory, task, self.layout.slice)
    }

    pub fn set_slice(&self, memory: &mut Memory, task: TaskNo, slice: u64) {
        self.write(memory, task, self.layout.slice, slice);
    }

    /// `test_and_clear_cpu_idle`.
    pub fn test_and_clear_cpu_idle(&mut self, cpu: usize) -> bool {
        std::mem::take(&mut self.cpus[cpu].idle)
    }

    /// `scx_pick_idle_cpu` of a machine without SMT: the first idle CPU of the mask.
    pub fn pick_idle_cpu(&mut self, allowed: u64) -> Option<usize> {
        let cpu = (0..self.cpus.len()).find(|cpu| allowed >> cpu & 1 != 0 && self.cpus[*cpu].idle)?;
        self.cpus[cpu].idle = false;
        Some(cpu)
    }

    /// `scx_select_cpu_dfl`: the CPU, and whether it is idle.
    pub fn select_cpu_dfl(&mut self, task: TaskNo, prev: usize, wake_flags: u64) -> (usize, bool) {
        const WAKE_SYNC: u64 = 1 << 4;
        let this = self.this_cpu;
        let somebody_idle = self.cpus.iter().any(|cpu| cpu.idle);
        if wake_flags & WAKE_SYNC != 0
            && somebody_idle
            && self.cpus[this].local.tasks.is_empty()
            && self.allows(task, this)
        {
            return (this, true);
        }
        if self.allows(task, prev) && self.test_and_clear_cpu_idle(prev) {
            return (prev, true);
        }
        match self.pick_idle_cpu(self.tasks[task].allowed) {
            Some(cpu) => (cpu, true),
            None => (prev, false),
        }
    }
}
