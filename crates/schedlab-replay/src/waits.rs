//! The longest waits for a CPU that a trace shows, and what the trace shows of their cause: no row is needed.
//!
//! A wait begins where a task becomes runnable (`sched_wakeup`, or `sched_waking` where that is not recorded, as by
//! perf sched record; `sched_wakeup_new`; or a switch that preempts it) and ends where a CPU switches to it. Its cause
//! is what the CPU of its queue did meanwhile: which tasks ran and for how long, of which class, how long it was idle,
//! and how long each other CPU was idle. Nothing is measured across a loss. Not known are affinities and quotas, which
//! no record shows.

mod history;

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_trace::{Body, Continuity, Kind, Record, TaskState, TraceError, TraceReader};
use serde::Serialize;

use crate::answer::is_meant;
use history::{History, Turn};

/// Priorities below this one are those of real-time and deadline tasks.
const MAX_RT_PRIO: i32 = 100;

/// The longest waits of a trace.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Waits {
    /// Kernel release.
    pub kernel: Option<String>,
    /// CPUs that records name.
    pub cpus: usize,
    /// Records.
    pub records: u64,
    /// Events that the recorder lost, and one for each gap that only the switches show.
    pub lost: u64,
    /// From the first record to the last.
    pub span_ns: Nanos,
    /// Tasks, the one with the longest wait first.
    pub tasks: Vec<Waiter>,
    /// Waits that had not ended at the end of the trace.
    pub unfinished: u64,
}

/// A task that waited.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Waiter {
    /// The task.
    pub pid: Pid,
    /// Its name.
    pub name: String,
    /// How often it waited.
    pub waits: u64,
    /// For how long altogether.
    pub total_ns: Nanos,
    /// Its longest waits, the longest first.
    pub longest: Vec<Wait>,
}

/// One wait.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Wait {
    /// When it began.
    pub since_ns: Nanos,
    /// How long it was.
    pub ns: Nanos,
    /// The CPU on which the task ran at its end.
    pub cpu: u32,
    /// What made it runnable.
    pub began: Began,
    /// By which task: that which preempted it, or that which woke it; 0: idle, or an interrupt of it.
    pub by: Pid,
    /// The task was moved to that CPU during the wait: from this one.
    pub moved_from: Option<u32>,
    /// What ran meanwhile on the CPU whose queue it was on, the longest first.
    pub ran: Vec<Ran>,
    /// For how long that CPU was idle.
    pub idle_ns: Nanos,
    /// The CPU that was idle for longest while the task was on the queue of another one, and for how long.
    pub idle_elsewhere: Option<(u32, Nanos)>,
    /// Parts of it are no longer known, because it was too long.
    pub cut: bool,
}

/// What made a task runnable.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Began {
    /// A wakeup.
    Woken,
    /// A fork.
    Forked,
    /// It was preempted, or yielded.
    Preempted,
}

/// The tasks of a name that ran while another one waited.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Ran {
    /// Their name.
    pub name: String,
    /// The task, if it was one.
    pub pid: Option<Pid>,
    /// How many tasks.
    pub tasks: u32,
    /// For how long altogether.
    pub ns: Nanos,
    /// Its real-time priority, as `chrt` shows it; -1 of a deadline task.
    pub realtime: Option<i32>,
}

/// A wait that has not ended.
struct Waiting {
    since: Nanos,
    /// The queues that the task was on, and since when.
    queues: Vec<(CpuId, Nanos)>,
    began: Began,
    by: Pid,
    /// Only `sched_waking` has shown it so far.
    waking: bool,
}

#[derive(Default)]
struct Found {
    waits: u64,
    total: Nanos,
    /// With what each task ran, until all names are known.
    longest: Vec<(Wait, Vec<Turn>)>,
}

/// Reads a trace and keeps the `keep` longest waits of each task; with `only`, of one task: a pid, a name, or
/// `NAME/PID`.
pub fn waits(reader: &mut dyn TraceReader, keep: usize, only: Option<&str>) -> Result<Waits, TraceError> {
    let mut walk = Walk { keep: keep.max(1), ..Walk::default() };
    while let Some(record) = reader.next_record()? {
        walk.note(&record);
    }
    let kernel = reader.header().kernel.clone();
    Ok(walk.end(kernel, only))
}

#[derive(Default)]
struct Walk {
    keep: usize,
    names: BTreeMap<Pid, String>,
    waiting: BTreeMap<Pid, Waiting>,
    found: BTreeMap<Pid, Found>,
    history: History,
    continuity: Continuity,
    records: u64,
    lost: u64,
    first: Option<Nanos>,
    last: Nanos,
}

impl Walk {
    fn note(&mut self, record: &Record<'_>) {
        if record.lost() > 0 {
            self.lost = self.lost.saturating_add(record.lost());
            self.waiting.clear();
            self.history.forget();
            self.continuity.forget();
            return;
        }
        self.records += 1;
        self.first.get_or_insert(record.time);
        self.last = record.time;
        for (pid, comm) in record.names() {
            match self.names.get_mut(&pid) {
                Some(known) if known == comm => {}
                Some(known) => comm.clone_into(known),
                None => drop(self.names.insert(pid, comm.to_owned())),
            }
        }
        let Body::Event(kind, _) = record.body else { return };
        let (now, cpu) = (record.time, record.cpu);
        // A task in whose context an event is emitted has a CPU, also where its switch is not recorded.
        self.waiting.remove(&record.pid);
        match kind {
            Kind::Waking { pid, target_cpu, .. } => {
                self.begin(pid, now, target_cpu, Began::Woken, record.pid);
                if let Some(waiting) = self.waiting.get_mut(&pid).filter(|waiting| waiting.since == now) {
                    waiting.waking = true;
                }
            }
            Kind::Wakeup { pid, target_cpu, .. } => {
                let waking = self.waiting.get(&pid).filter(|waiting| waiting.waking).map(|waiting| waiting.by);
                if waking.is_some() {
                    self.waiting.remove(&pid);
                }
                self.begin(pid, now, target_cpu, Began::Woken, waking.unwrap_or(record.pid));
            }
            Kind::WakeupNew { pid, target_cpu, .. } => self.begin(pid, now, target_cpu, Began::Forked, record.pid),
            Kind::Migrate { pid, dest_cpu, .. } => {
                if let Some(waiting) = self.waiting.get_mut(&pid) {
                    waiting.queues.push((dest_cpu, now));
                }
            }
            Kind::Switch { prev, prev_state, next, next_prio, .. } => {
                let breaks = self.continuity.breaks(cpu, &kind);
                self.history.switch(cpu, now, !breaks, (next, next_prio));
                if breaks {
                    // What waits on this CPU may have run.
                    self.lost = self.lost.saturating_add(1);
                    self.waiting.retain(|_, waiting| waiting.queues.last().is_none_or(|(queue, _)| *queue != cpu));
                }
                self.finish(next, now, cpu);
                if prev != 0 && prev_state == TaskState::Running {
                    self.begin(prev, now, cpu, Began::Preempted, next);
                }
                self.prune();
            }
            Kind::Exit { pid, .. } => drop(self.waiting.remove(&pid)),
            _ => {}
        }
    }

    fn begin(&mut self, pid: Pid, since: Nanos, cpu: CpuId, began: Began, by: Pid) {
        if pid != 0 && self.history.current(cpu) != Some(pid) {
            self.waiting.entry(pid).or_insert(Waiting { since, queues: vec![(cpu, since)], began, by, waking: false });
        }
    }

    fn finish(&mut self, pid: Pid, now: Nanos, cpu: CpuId) {
        let Some(waiting) = self.waiting.remove(&pid) else { return };
        let ns = now - waiting.since;
        let found = self.found.entry(pid).or_default();
        found.waits += 1;
        found.total += ns;
        let full = found.longest.len() == self.keep;
        if full && found.longest.last().is_some_and(|(shortest, _)| shortest.ns >= ns) {
            return;
        }
        let meanwhile = self.history.meanwhile(&waiting.queues, now, pid);
        let first = waiting.queues.first().map(|(queue, _)| *queue);
        let wait = Wait {
            since_ns: waiting.since,
            ns,
            cpu: cpu.0,
            began: waiting.began,
            by: waiting.by,
            moved_from: first.filter(|from| *from != cpu).map(|from| from.0),
            ran: Vec::new(),
            idle_ns: meanwhile.idle,
            idle_elsewhere: meanwhile.elsewhere.map(|(cpu, ns)| (cpu.0, ns)),
            cut: meanwhile.cut,
        };
        let at = found.longest.partition_point(|(longer, _)| longer.ns >= ns);
        found.longest.insert(at, (wait, meanwhile.ran));
        found.longest.truncate(self.keep);
    }

    /// What happened before every wait that is still open is no longer needed.
    fn prune(&mut self) {
        if self.history.is_long() {
            let from = self.waiting.values().map(|waiting| waiting.since).min().unwrap_or(self.last);
            self.history.forget_before(from);
        }
    }

    fn end(mut self, kernel: Option<String>, only: Option<&str>) -> Waits {
        let names = std::mem::take(&mut self.names);
        let name = |pid: Pid| names.get(&pid).cloned().unwrap_or_else(|| "?".to_owned());
        let wanted = |pid: Pid, name: &str| only.is_none_or(|only| is_meant(only, pid, name));
        let mut tasks: Vec<Waiter> = Vec::new();
        for (pid, found) in self.found {
            let known = name(pid);
            if !wanted(pid, &known) {
                continue;
            }
            let longest = found.longest.into_iter().map(|(wait, ran)| Wait { ran: by_name(&ran, &name), ..wait });
            let longest = longest.collect();
            tasks.push(Waiter { pid, name: known, waits: found.waits, total_ns: found.total, longest });
        }
        tasks.sort_by_key(|task| std::cmp::Reverse(task.longest.first().map_or(0, |wait| wait.ns)));
        Waits {
            kernel,
            cpus: self.history.cpus(),
            records: self.records,
            lost: self.lost,
            span_ns: self.last - self.first.unwrap_or(self.last),
            tasks,
            unfinished: self.waiting.len() as u64,
        }
    }
}

/// Tasks of one name and priority together, the longest first.
fn by_name(turns: &[Turn], name: &dyn Fn(Pid) -> String) -> Vec<Ran> {
    let mut named: BTreeMap<(String, Option<i32>), Ran> = BTreeMap::new();
    for turn in turns {
        let (name, realtime) = (name(turn.pid), realtime(turn.prio));
        let ran = named.entry((name.clone(), realtime)).or_insert(Ran { name, pid: None, tasks: 0, ns: 0, realtime });
        ran.tasks += 1;
        ran.ns += turn.ns;
        ran.pid = (ran.tasks == 1).then_some(turn.pid);
    }
    let mut ran: Vec<Ran> = named.into_values().collect();
    ran.sort_by_key(|ran| std::cmp::Reverse(ran.ns));
    ran
}

fn realtime(prio: i32) -> Option<i32> {
    (prio < MAX_RT_PRIO).then_some(if prio < 0 { -1 } else { MAX_RT_PRIO - 1 - prio })
}
