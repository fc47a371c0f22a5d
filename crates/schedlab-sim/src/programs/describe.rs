//! Describes a task for messages: its position in its program, and what it waits for.

use schedlab_model::{Nanos, TaskId};
use schedlab_trace::Section;
use schedlab_workload::Op;

use super::objects::Object;
use super::position::Step;
use super::state::Programs;
use crate::kernel::{Kernel, Life, Task, Wait};
use crate::machine::{Mode, Segment};

impl Programs {
    /// A task's program, its step there, and the step's source line.
    pub fn where_is(&self, task: TaskId) -> (String, u32, Option<u32>) {
        let position = &self.positions[task.index()];
        let (_, program) = self.program_of(task);
        let step = position.pc - self.entries[position.program as usize];
        (program.name.clone(), step, program.line(step))
    }

    /// `workload/program` of a task.
    pub fn name_of(&self, task: TaskId) -> String {
        let (workload, program) = self.program_of(task);
        format!("{}/{}", workload.name, program.name)
    }

    /// Which tasks wait for what, for the report of a deadlock.
    pub fn describe_waits(&self, kernel: &Kernel) -> Vec<String> {
        const SHOWN: usize = 8;
        let sleeping: Vec<&Task> = self.sleeping(kernel).collect();
        let mut phrases: Vec<String> = sleeping.iter().take(SHOWN).map(|task| self.describe_wait(task)).collect();
        if sleeping.len() > SHOWN {
            phrases.push(format!("and {} more", sleeping.len() - SHOWN));
        }
        phrases
    }

    /// When the last of the tasks that sleep went to sleep.
    pub fn last_blocked(&self, kernel: &Kernel) -> Option<Nanos> {
        self.sleeping(kernel).map(|task| task.blocked_at).max()
    }

    /// The tasks of programs that sleep.
    fn sleeping<'k>(&self, kernel: &'k Kernel) -> impl Iterator<Item = &'k Task> {
        kernel.tasks.iter().filter(|task| task.life == Life::Sleeping && !kernel.sched.is_kthread(task.id))
    }

    fn describe_wait(&self, task: &Task) -> String {
        let position = &self.positions[task.id.index()];
        let (workload, program) = self.program_of(task.id);
        let step = match position.step {
            Step::Fetch => position.pc.saturating_sub(1),
            Step::Effect => position.pc,
        };
        let step = step.saturating_sub(self.entries[position.program as usize]);
        let line = program.line(step).map_or(String::new(), |line| format!(" (line {line})"));
        let what = match task.wait {
            Wait::Object(index) => {
                let local = index - self.bases[position.workload as usize].object;
                let holder = match &self.objects[index as usize] {
                    Object::Mutex(mutex) | Object::PiFutex(mutex) => mutex.owner,
                    _ => None,
                };
                let held = holder.map_or(String::new(), |task| format!(", held by task {task}"));
                let name = workload.object_names.get(local as usize).filter(|name| !name.is_empty());
                let name = name.map_or_else(|| local.to_string(), |name| format!("\"{name}\""));
                format!("{} {name}{held}", self.objects[index as usize].kind())
            }
            Wait::Mutex(_) => "the mutex of a pipe".into(),
            Wait::MmapLock => "the mmap_lock of its process".into(),
            Wait::Own => "its own futex word".into(),
            Wait::Child => "a child's exit".into(),
            Wait::Vfork => "a child's exec".into(),
            Wait::Halt => "an interrupt for its vCPU".into(),
            Wait::Timer | Wait::Nothing => "nothing that can come".into(),
        };
        format!("{}/{} (task {}) waits on {what}{line}", workload.name, program.name, task.pid)
    }

    /// What a task executes in this mode, as far as that decides when it can be preempted.
    pub fn executes(&self, kernel: &Kernel, task: TaskId, segment: &Segment) -> String {
        let call = kernel.points.call_of(segment).map_or(String::new(), |call| format!(", in {}", call.name()));
        match segment.mode {
            Mode::Spin => self.spins(kernel, task),
            Mode::User | Mode::Wall if kernel.cpus[kernel.sched.cpu_of(task).index()].slice_ctrl.granted => {
                "is in user mode, in a time slice extension of a critical section".into()
            }
            Mode::User | Mode::Stream | Mode::Wall => "is in user mode".into(),
            Mode::Guest => "runs a guest".into(),
            Mode::Poll => "polls for the end of a guest's halt".into(),
            Mode::Kernel if kernel.points.section(segment) == Section::Spinlock => {
                format!("holds a spinlock in the kernel{call}")
            }
            Mode::Kernel => format!("is in preemptible kernel code{call}"),
            Mode::Locked => format!("holds {} in the kernel", self.held_lock(task)),
            Mode::LockSpin if kernel.cpus[kernel.sched.cpu_of(task).index()].flush.waits() => {
                "waits until other CPUs have flushed their TLBs".into()
            }
            Mode::LockSpin => "spins for a spinlock of the kernel".into(),
            Mode::PvWait => "has halted until it gets a spinlock of the kernel".into(),
            Mode::PreemptOff => "has preemption disabled".into(),
            Mode::IrqOff => "has interrupts disabled".into(),
        }
    }

    /// The spinlock of the kernel that it holds, with its name if the program has one.
    fn held_lock(&self, task: TaskId) -> String {
        let position = &self.positions[task.index()];
        let (workload, _) = self.program_of(task);
        let rest = self
            .code
            .iter()
            .skip(position.pc as usize)
            .take_while(|op| matches!(op, Op::Section { .. } | Op::KernelUnlock { .. }));
        let object = rest.into_iter().find_map(|op| match op {
            Op::KernelUnlock { object, .. } => Some(object - self.bases[position.workload as usize].object),
            _ => None,
        });
        let name = object.and_then(|object| workload.object_names.get(object as usize)).filter(|name| !name.is_empty());
        name.map_or("a spinlock".into(), |name| format!("the spinlock \"{name}\""))
    }

    /// Which lock it spins for, and what the holder of that does.
    fn spins(&self, kernel: &Kernel, task: TaskId) -> String {
        let position = &self.positions[task.index()];
        let Some(Op::SpinLock { object, .. }) = self.code.get(position.pc as usize) else {
            return "spins for the lock of its CPU".into();
        };
        let (workload, _) = self.program_of(task);
        let local = object - self.bases[position.workload as usize].object;
        let name = workload.object_names.get(local as usize).map_or("", String::as_str);
        let Object::SpinLock(lock) = &self.objects[*object as usize] else { return "spins".into() };
        let holder = lock.owner.and_then(|pid| kernel.tasks.iter().find(|task| task.pid == pid));
        let held = match holder.map(|holder| (holder.pid, holder.life)) {
            None => "which is free".into(),
            Some((pid, Life::Running)) => format!("held by task {pid}, which runs"),
            Some((pid, Life::Runnable | Life::Waking)) => format!("held by task {pid}, which was preempted"),
            Some((pid, _)) => format!("held by task {pid}, which does not run"),
        };
        format!("spins for \"{name}\", {held}")
    }

    /// What a sleeping task waits for.
    pub fn waits_for(&self, wait: Wait) -> Option<String> {
        Some(match wait {
            Wait::Timer => "a timer".into(),
            Wait::Object(index) => format!("a {}", self.objects[index as usize].kind()),
            Wait::Mutex(_) => "the mutex of a pipe".into(),
            Wait::MmapLock => "the mmap_lock of its process".into(),
            Wait::Own => "its own futex word".into(),
            Wait::Child => "a child's exit".into(),
            Wait::Vfork => "a child's exec".into(),
            Wait::Halt => "an interrupt for its vCPU".into(),
            Wait::Nothing => return None,
        })
    }
}
