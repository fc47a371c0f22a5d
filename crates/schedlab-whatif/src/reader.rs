//! Reads a trace into a [`Recording`], record by record.
//!
//! A wakeup belongs to the task in whose context `sched_waking` was emitted, unless that was an interrupt. A wakeup of
//! a task that has not been switched out yet counts only if the task then blocks.

use std::collections::BTreeMap;

use schedlab_model::{Nanos, Pid};
use schedlab_trace::{Body, Flags, Kind, Record, TaskState, TraceError, TraceReader};

use crate::progress::{Early, Progress};
use crate::recording::{Act, Cause, Recording, Task, TaskIndex, Wait};
use crate::Measure;

/// How long after its wakeup a task may still be on its way off the CPU.
const ON_CPU: Nanos = 50_000;

/// Reads a whole trace.
pub fn read(reader: &mut dyn TraceReader) -> Result<(Recording, Measure), TraceError> {
    let mut state = Reader::default();
    while let Some(record) = reader.next_record()? {
        state.record(&record);
    }
    Ok(state.finish())
}

#[derive(Default)]
struct Reader {
    recording: Recording,
    by_pid: BTreeMap<Pid, TaskIndex>,
    progress: Vec<Progress>,
    measure: Measure,
    started: bool,
}

impl Reader {
    fn record(&mut self, record: &Record<'_>) {
        let counts = &mut self.recording.counts;
        counts.records += 1;
        counts.cpus = counts.cpus.max(record.cpu.index() + 1);
        counts.flagged += u64::from(record.flags != Flags::NONE);
        if !self.started {
            (self.started, self.recording.start) = (true, record.time);
            self.measure.start(record.time);
        }
        self.recording.end = self.recording.end.max(record.time);
        match record.body {
            Body::Lost(count) => counts.lost += count,
            Body::Event(kind, _) => {
                self.kind(record, kind);
                for (pid, name) in record.names() {
                    self.rename(pid, name);
                }
                if let Some(event) = record.event() {
                    self.measure.take(&event, &self.by_pid);
                }
                self.forget(kind);
            }
            Body::Other { .. } => {}
        }
    }

    fn kind(&mut self, record: &Record<'_>, kind: Kind) {
        let time = record.time;
        match kind {
            Kind::Switch { prev, prev_prio, prev_state, next, next_prio } => {
                self.recording.counts.switches += 1;
                self.switch_out(time, prev, prev_prio, prev_state);
                self.switch_in(time, next, next_prio);
            }
            Kind::Waking { pid, prio, .. } => {
                self.recording.counts.wakeups += 1;
                self.wake(record, pid, prio);
            }
            Kind::Wakeup { pid, prio, .. } => {
                // Only where no `sched_waking` came before it.
                let blocked = self.by_pid.get(&pid).is_some_and(|task| self.progress[*task].blocked.is_some());
                if blocked {
                    self.recording.counts.wakeups += 1;
                    self.recording.counts.wakeups_only += 1;
                    self.wake(record, pid, prio);
                }
            }
            Kind::Fork { parent, child } => self.fork(record, parent, child),
            Kind::Runtime { pid, runtime, .. } => self.charge(time, pid, runtime),
            _ => {}
        }
    }

    fn task(&mut self, pid: Pid, prio: i32) -> TaskIndex {
        if let Some(task) = self.by_pid.get(&pid) {
            return *task;
        }
        let task = self.recording.tasks.len();
        self.recording.tasks.push(Task { pid, name: String::new(), parent: None, forked: 0, prio, acts: Vec::new() });
        self.progress.push(Progress::new(prio));
        self.by_pid.insert(pid, task);
        task
    }

    fn rename(&mut self, pid: Pid, name: &str) {
        if let Some(task) = self.by_pid.get(&pid) {
            let known = &mut self.recording.tasks[*task].name;
            if known != name {
                name.clone_into(known);
            }
        }
    }

    fn switch_in(&mut self, time: Nanos, pid: Pid, prio: i32) {
        if pid == 0 {
            return;
        }
        let task = self.task(pid, prio);
        let (progress, task) = (&mut self.progress[task], &mut self.recording.tasks[task]);
        if let Some(from) = progress.blocked.take() {
            task.acts.push(Act::Wait(Wait { from, to: time, cause: Cause::Unknown }));
        }
        progress.switch_in(time);
        progress.set_prio(task, prio);
    }

    fn switch_out(&mut self, time: Nanos, pid: Pid, prio: i32, state: TaskState) {
        if pid == 0 {
            return;
        }
        let first = !self.by_pid.contains_key(&pid);
        let task = self.task(pid, prio);
        let start = self.recording.start;
        let (progress, task) = (&mut self.progress[task], &mut self.recording.tasks[task]);
        let acts = &mut task.acts;
        if first {
            progress.switch_in(start);
        }
        self.recording.counts.uncharged += u64::from(progress.switch_out(time));
        let early = progress.early.take();
        if state == TaskState::Running {
            return self.without_effect(early.and_then(|early| early.act));
        }
        progress.emit_all(acts);
        progress.set_prio(task, prio);
        match (state, early) {
            (TaskState::Dead, _) => task.acts.push(Act::Exit),
            (_, Some(early)) if time - early.at <= ON_CPU => {
                task.acts.push(Act::Wait(Wait { from: time, to: time, cause: early.cause }));
            }
            (_, early) => {
                progress.blocked = Some(time);
                self.without_effect(early.and_then(|early| early.act));
            }
        }
    }

    /// A wakeup did not end a wait.
    fn without_effect(&mut self, act: Option<(TaskIndex, usize)>) {
        if let Some((waker, place)) = act {
            self.recording.tasks[waker].acts[place] = Act::Nothing;
        }
    }

    fn wake(&mut self, record: &Record<'_>, pid: Pid, prio: i32) {
        let (time, start) = (record.time, self.recording.start);
        if pid == 0 {
            return;
        }
        if record.pid != 0 {
            let running = self.running(record.pid);
            self.progress[running].count_wakeup();
        }
        let known = self.by_pid.contains_key(&pid);
        let task = self.task(pid, prio);
        let waker = self.waker(record).filter(|waker| *waker != task);
        let cause = waker.map_or_else(|| interrupt(record), Cause::Task);
        let act = waker.map(|waker| {
            let acts = &mut self.recording.tasks[waker].acts;
            self.progress[waker].emit(acts, time);
            acts.push(Act::Wake(task));
            (waker, acts.len() - 1)
        });
        let (progress, acts) = (&mut self.progress[task], &mut self.recording.tasks[task].acts);
        match progress.blocked.take() {
            Some(from) => acts.push(Act::Wait(Wait { from, to: time, cause })),
            // Asleep since before the recording.
            None if !known => acts.push(Act::Wait(Wait { from: start, to: time, cause })),
            None if progress.is_running() => progress.early = Some(Early { at: time, act, cause }),
            None => self.without_effect(act),
        }
    }

    /// The task that woke another one; `None`: an interrupt.
    fn waker(&mut self, record: &Record<'_>) -> Option<TaskIndex> {
        (record.pid != 0 && !record.flags.in_interrupt()).then(|| self.running(record.pid))
    }

    /// The task that runs; one that no record has named has been running since the start.
    fn running(&mut self, pid: Pid) -> TaskIndex {
        let known = self.by_pid.contains_key(&pid);
        let task = self.task(pid, 120);
        if !known {
            self.progress[task].switch_in(self.recording.start);
        }
        task
    }

    fn fork(&mut self, record: &Record<'_>, parent: Pid, child: Pid) {
        if self.by_pid.remove(&child).is_some() {
            self.recording.counts.reused += 1;
        }
        // A parent that is not running, as in simulated traces, has no work at which the fork could be placed.
        let parent = (parent == record.pid && parent != 0).then(|| self.running(parent));
        let prio = parent.map_or(120, |parent| self.progress[parent].prio);
        let task = self.task(child, prio);
        self.recording.tasks[task].parent = parent;
        self.recording.tasks[task].forked = record.time - self.recording.start;
        if let Some(parent) = parent {
            let acts = &mut self.recording.tasks[parent].acts;
            self.progress[parent].emit(acts, record.time);
            acts.push(Act::Fork(task));
        }
    }

    fn charge(&mut self, time: Nanos, pid: Pid, runtime: Nanos) {
        self.recording.counts.charges += 1;
        if pid != 0 {
            let task = self.running(pid);
            // What ran before the recording is none of its work.
            self.progress[task].charge(time, runtime.min(time - self.recording.start));
        }
    }

    /// The pid of a task that is dead may be used again.
    fn forget(&mut self, kind: Kind) {
        if let Kind::Switch { prev, prev_state: TaskState::Dead, .. } = kind {
            self.by_pid.remove(&prev);
        }
    }

    fn finish(mut self) -> (Recording, Measure) {
        let end = self.recording.end;
        for (progress, task) in self.progress.iter_mut().zip(&mut self.recording.tasks) {
            if task.acts.last() == Some(&Act::Exit) {
                continue;
            }
            progress.switch_out(end);
            progress.emit_all(&mut task.acts);
            if let Some(from) = progress.blocked {
                task.acts.push(Act::Wait(Wait { from, to: end, cause: Cause::End }));
            }
        }
        for task in &mut self.recording.tasks {
            task.acts.retain(|act| *act != Act::Nothing);
        }
        self.measure.end(end);
        (self.recording, self.measure)
    }
}

/// What an interrupt was, by the flags of the record.
fn interrupt(record: &Record<'_>) -> Cause {
    match record.flags.0[2] {
        b'h' | b'H' | b'z' | b'Z' => Cause::HardInterrupt,
        b's' => Cause::SoftInterrupt,
        _ => Cause::Idle,
    }
}
