//! Dispatch queues: inserting, consuming, the dispatch buffer (`dispatch_enqueue`, `consume_dispatch_q`,
//! `finish_dispatch`, kernel/sched/ext.c of 6.12).

use schedlab_bpf::Memory;

use crate::core::{Buffered, Core, Dsq, ExitKind, Place, TaskNo, DSQ_GLOBAL, DSQ_LOCAL, DSQ_LOCAL_ON};
use crate::core::{ENQ_HEAD, ENQ_PREEMPT, ENQ_PRIQ};

impl Core {
    /// The CPU whose local queue an id names, seen from a CPU; `None`: it is another queue.
    fn local_of(&self, dsq: u64, from: usize) -> Result<Option<usize>, String> {
        if dsq == DSQ_LOCAL {
            return Ok(Some(from));
        }
        if dsq & DSQ_LOCAL_ON == DSQ_LOCAL_ON {
            return self.cpu_at(dsq & u64::from(u32::MAX)).map(Some);
        }
        Ok(None)
    }

    /// `dispatch_enqueue` on the queue that an id names (`find_dsq_for_dispatch`). A queue that does not exist is an
    /// error, and the task goes to the global one.
    pub fn dispatch_enqueue(&mut self, memory: &mut Memory, dsq: u64, task: TaskNo, flags: u64) {
        let cpu = match self.local_of(dsq, self.tasks[task].cpu) {
            Ok(cpu) => cpu,
            Err(message) => {
                self.error(ExitKind::Error, format!("{message} in SCX_DSQ_LOCAL_ON verdict for {}", self.named(task)));
                None
            }
        };
        if let Some(cpu) = cpu {
            return self.dispatch_to_local_dsq(memory, cpu, task, flags);
        }
        let (mut dsq, name) = (dsq, self.named(task));
        if !self.dsqs.contains_key(&dsq) {
            self.error(ExitKind::Error, format!("non-existent DSQ {dsq:#x} for {name}"));
            dsq = DSQ_GLOBAL;
        }
        let ordered = flags & ENQ_PRIQ != 0;
        if ordered && dsq >> 63 != 0 {
            return self.error(ExitKind::Error, "cannot use vtime ordering for built-in DSQs".to_owned());
        }
        let vtime = ordered.then(|| self.read(memory, task, self.layout.vtime));
        let Some(queue) = self.dsqs.get_mut(&dsq) else { return };
        if queue.tasks.iter().any(|(_, other)| other.is_some() != ordered) {
            let has = if ordered { "FIFO" } else { "PRIQ" };
            return self.error(ExitKind::Error, format!("DSQ ID {dsq:#018x} already had {has}-enqueued tasks"));
        }
        queue.insert(task, vtime, flags);
        self.tasks[task].place = Place::Dsq(dsq);
    }

    /// `dispatch_to_local_dsq`: the task moves to the CPU if it may run there.
    pub fn dispatch_to_local_dsq(&mut self, memory: &mut Memory, cpu: usize, task: TaskNo, flags: u64) {
        if flags & ENQ_PRIQ != 0 {
            return self.error(ExitKind::Error, "cannot use vtime ordering for built-in DSQs".to_owned());
        }
        if !self.allows(task, cpu) {
            let name = self.named(task);
            let message = format!("SCX_DSQ_LOCAL[_ON] verdict target cpu {cpu} not allowed for {name}");
            self.error(ExitKind::Error, message);
            return self.dispatch_enqueue(memory, DSQ_GLOBAL, task, flags & !ENQ_PRIQ);
        }
        self.cpus[cpu].local.insert(task, None, flags);
        (self.tasks[task].place, self.tasks[task].cpu) = (Place::Local(cpu), cpu);
        match self.cpus[cpu].curr {
            Some(curr) if flags & ENQ_PREEMPT != 0 && curr != task => {
                self.set_slice(memory, curr, 0);
                self.cpus[cpu].need_resched = true;
            }
            Some(_) => {}
            None => self.cpus[cpu].need_resched = true,
        }
    }

    /// `dispatch_dequeue`: takes the task off its queue.
    pub fn dispatch_dequeue(&mut self, task: TaskNo) {
        let queue = match self.tasks[task].place {
            Place::Local(cpu) => Some(&mut self.cpus[cpu].local),
            Place::Dsq(dsq) => self.dsqs.get_mut(&dsq),
            Place::Bpf | Place::Nowhere => None,
        };
        if let Some(queue) = queue {
            queue.tasks.retain(|(queued, _)| *queued != task);
        }
        self.tasks[task].place = Place::Nowhere;
    }

    /// `consume_dispatch_q`: the first task of the queue that may run on the CPU moves to its local queue.
    pub fn consume_dispatch_q(&mut self, memory: &mut Memory, cpu: usize, dsq: u64) -> bool {
        let Some(queue) = self.dsqs.get(&dsq) else { return false };
        let Some((task, _)) = queue.tasks.iter().copied().find(|(task, _)| self.allows(*task, cpu)) else {
            return false;
        };
        self.dispatch_dequeue(task);
        self.dispatch_to_local_dsq(memory, cpu, task, 0);
        true
    }

    /// `flush_dispatch_buf`: an entry whose task was enqueued anew or taken off since then is dropped. The number of
    /// entries.
    pub fn flush_dispatch_buf(&mut self, memory: &mut Memory, cpu: usize) -> usize {
        let entries = std::mem::take(&mut self.buffer);
        for Buffered { task, qseq, dsq, flags } in &entries {
            let state = &self.tasks[*task];
            if state.place != Place::Bpf || state.qseq != *qseq {
                continue;
            }
            self.tasks[*task].place = Place::Nowhere;
            match self.local_of(*dsq, cpu) {
                Ok(Some(target)) => self.dispatch_to_local_dsq(memory, target, *task, *flags),
                _ => self.dispatch_enqueue(memory, *dsq, *task, *flags),
            }
        }
        entries.len()
    }
}

impl Dsq {
    fn insert(&mut self, task: TaskNo, vtime: Option<u64>, flags: u64) {
        let at = match vtime {
            // Compared by the sign of the difference; equal ones keep their order.
            Some(vtime) => self
                .tasks
                .partition_point(|(_, other)| other.is_some_and(|other| (other.wrapping_sub(vtime) as i64) <= 0)),
            None if flags & (ENQ_HEAD | ENQ_PREEMPT) != 0 => 0,
            None => self.tasks.len(),
        };
        self.tasks.insert(at, (task, vtime));
    }
}
