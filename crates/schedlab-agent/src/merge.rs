//! Prepares the kernel's events for the metrics: in run time, with the scenario's CPU numbers, without foreign tasks.
//!
//! A simulated machine runs only the scenario. To give the metrics the same meaning on a real machine, the events of
//! foreign tasks are removed: a CPU that runs one counts as idle, its wakeups and forks are dropped, and its CPU time
//! is reported as noise. Idle-while-runnable is the exception, because a CPU is not idle while a foreign task runs on
//! it.

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_trace::{Continuity, Event, Kind, TaskState};

/// The events without and with foreign tasks, and statistics of the foreign tasks.
#[derive(Debug, Default)]
pub struct Merged {
    /// The events in which foreign tasks count as idle.
    pub own: Vec<Event>,
    /// The events in which foreign tasks run but are never woken and never wait.
    pub all: Vec<Event>,
    /// CPU time of foreign tasks within the measured time, by name, largest first.
    pub foreign: Vec<(String, Nanos)>,
    /// The comm of each task of the scenario.
    pub names: BTreeMap<Pid, String>,
    /// The number of switches from a task of the scenario to a foreign task within the measured time.
    pub displaced: u64,
    /// The number of switches between foreign tasks and idle within the measured time.
    pub foreign_switches: u64,
    /// The number of switches within the run, of all tasks.
    pub switches: u64,
    /// Those among them from a task to which the same CPU had not switched before: the kernel has not recorded every
    /// switch.
    pub unrecorded: u64,
}

/// Separates the events of the scenario from those of foreign tasks.
#[derive(Debug)]
pub struct Merger {
    /// The start of the run on the trace's clock.
    begin: Nanos,
    warmup: Nanos,
    end: Nanos,
    /// The scenario's number of each of the system's CPUs.
    cpus: BTreeMap<u32, CpuId>,
    /// The owner of each task.
    tasks: BTreeMap<Pid, Owner>,
    /// The task that each CPU runs, and since when.
    running: BTreeMap<u32, (Pid, Nanos)>,
    continuity: Continuity,
    /// Whether the run has started.
    started: bool,
    foreign: BTreeMap<Pid, Nanos>,
    merged: Merged,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Owner {
    Scenario,
    Other(String),
}

impl Merger {
    /// Creates a merger for a run that starts at `begin` and lasts until `end`, measured after `warmup`; `ours` are the
    /// threads of the scenario.
    #[must_use]
    pub fn new(begin: Nanos, warmup: Nanos, end: Nanos, cpus: &[u32], ours: impl Iterator<Item = Pid>) -> Merger {
        Merger {
            begin,
            warmup,
            end,
            cpus: cpus.iter().zip(0..).map(|(cpu, number)| (*cpu, CpuId(number))).collect(),
            tasks: ours.map(|pid| (pid, Owner::Scenario)).collect(),
            running: BTreeMap::new(),
            continuity: Continuity::default(),
            started: false,
            foreign: BTreeMap::new(),
            merged: Merged::default(),
        }
    }

    /// Adds one event; `comm` and `other` are the comms of its tasks.
    pub fn add(&mut self, event: &Event, comm: &str, other: &str) {
        if let Kind::Fork { parent, child } = event.kind {
            if self.is_ours(parent) {
                self.tasks.insert(child, Owner::Scenario);
            }
        }
        if event.time < self.begin || event.time > self.begin + self.end {
            self.continuity.breaks(event.cpu, &event.kind);
            self.track_running(event, comm, other);
            return;
        }
        self.add_running_at_start();
        let time = event.time - self.begin;
        match event.kind {
            Kind::Switch { .. } => self.switch(event, time, comm, other),
            kind => {
                let about = match kind {
                    Kind::Fork { child, .. } => child,
                    Kind::Waking { pid, .. }
                    | Kind::Wakeup { pid, .. }
                    | Kind::WakeupNew { pid, .. }
                    | Kind::Migrate { pid, .. }
                    | Kind::Exit { pid, .. }
                    | Kind::Runtime { pid, .. } => pid,
                    _ => return,
                };
                let cpu = self.cpu(event.cpu);
                if let (true, Some(cpu), Some(kind)) = (self.is_ours(about), cpu, self.renumber(kind)) {
                    self.push(Event::new(time, cpu, kind), true);
                }
            }
        }
    }

    /// Ends the stream and returns the result.
    #[must_use]
    pub fn finish(mut self) -> Merged {
        let end = self.begin + self.end;
        let running: Vec<u32> = self.running.keys().copied().collect();
        running.into_iter().for_each(|cpu| self.account(cpu, end));
        let name = |pid: &Pid| match self.tasks.get(pid) {
            Some(Owner::Other(name)) => name.clone(),
            _ => format!("pid {pid}"),
        };
        let mut by_name: BTreeMap<String, Nanos> = BTreeMap::new();
        for (pid, time) in self.foreign.iter().filter(|(_, time)| **time > 0) {
            *by_name.entry(name(pid)).or_default() += time;
        }
        self.merged.foreign = by_name.into_iter().collect();
        self.merged.foreign.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        self.merged
    }

    fn is_ours(&self, pid: Pid) -> bool {
        self.tasks.get(&pid) == Some(&Owner::Scenario)
    }

    fn cpu(&self, cpu: CpuId) -> Option<CpuId> {
        self.cpus.get(&cpu.0).copied()
    }

    /// The same event with the scenario's CPU numbers.
    fn renumber(&self, kind: Kind) -> Option<Kind> {
        Some(match kind {
            Kind::Waking { pid, prio, target_cpu } => Kind::Waking { pid, prio, target_cpu: self.cpu(target_cpu)? },
            Kind::Wakeup { pid, prio, target_cpu } => Kind::Wakeup { pid, prio, target_cpu: self.cpu(target_cpu)? },
            Kind::WakeupNew { pid, prio, target_cpu } => {
                Kind::WakeupNew { pid, prio, target_cpu: self.cpu(target_cpu)? }
            }
            Kind::Migrate { pid, prio, orig_cpu, dest_cpu } => {
                Kind::Migrate { pid, prio, orig_cpu: self.cpu(orig_cpu)?, dest_cpu: self.cpu(dest_cpu)? }
            }
            other => other,
        })
    }

    /// Tracks the task that each CPU runs.
    fn track_running(&mut self, event: &Event, comm: &str, other: &str) {
        if let Kind::Switch { prev, next, .. } = event.kind {
            self.record_comm(prev, comm);
            self.record_comm(next, other);
            self.account(event.cpu.0, event.time);
            self.running.insert(event.cpu.0, (next, event.time));
        }
    }

    fn record_comm(&mut self, pid: Pid, comm: &str) {
        if pid == 0 || *self.tasks.entry(pid).or_insert_with(|| Owner::Other(comm.to_owned())) != Owner::Scenario {
            return;
        }
        if self.merged.names.get(&pid).is_none_or(|known| known != comm) {
            self.merged.names.insert(pid, comm.to_owned());
        }
    }

    /// Accounts the CPU time of the running task, if it is foreign.
    fn account(&mut self, cpu: u32, now: Nanos) {
        let Some((pid, since)) = self.running.get(&cpu).copied() else { return };
        // A run may end before its warm-up does; then nothing is measured.
        let (from, to) = (self.begin + self.warmup.min(self.end), self.begin + self.end);
        let time = now.clamp(from, to).saturating_sub(since.clamp(from, to));
        if pid != 0 && !self.is_ours(pid) && self.cpus.contains_key(&cpu) {
            *self.foreign.entry(pid).or_default() += time;
        }
    }

    fn switch(&mut self, event: &Event, time: Nanos, comm: &str, other: &str) {
        let breaks = self.continuity.breaks(event.cpu, &event.kind);
        self.track_running(event, comm, other);
        let (Kind::Switch { prev, prev_prio, prev_state, next, next_prio }, Some(cpu)) =
            (event.kind, self.cpu(event.cpu))
        else {
            return;
        };
        self.merged.switches += 1;
        self.merged.unrecorded += u64::from(breaks);
        let (from_us, to_us) = (self.is_ours(prev), self.is_ours(next));
        let foreign = |pid| pid != 0 && !self.is_ours(pid);
        let (theirs, displaced) = (foreign(prev) || foreign(next), from_us && foreign(next));
        if time >= self.warmup {
            self.merged.foreign_switches += u64::from(theirs && !from_us && !to_us);
            self.merged.displaced += u64::from(displaced);
        }
        let of = |prev: Pid, prev_state: TaskState, next: Pid| {
            let kind = Kind::Switch { prev, prev_prio, prev_state, next, next_prio };
            Event::new(time, cpu, kind)
        };
        if from_us || to_us {
            // A foreign task is replaced by the idle task, which is always runnable.
            let mine = |pid: Pid, ours: bool| if ours { pid } else { 0 };
            let state = if from_us { prev_state } else { TaskState::Running };
            let event = of(mine(prev, from_us), state, mine(next, to_us));
            self.push(event, false);
        }
        // A foreign task never counts as waiting.
        let state = if from_us || prev == 0 { prev_state } else { TaskState::Sleeping };
        self.merged.all.push(of(prev, state, next));
    }

    /// Adds switches to the tasks that were running at the start of the run.
    fn add_running_at_start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let running = self.running.iter().filter(|(_, (pid, _))| *pid != 0);
        let begun = running.filter_map(|(cpu, (pid, _))| {
            let (prev_prio, prev_state, next_prio) = (0, TaskState::Running, 0);
            let kind = Kind::Switch { prev: 0, prev_prio, prev_state, next: *pid, next_prio };
            Some(Event::new(0, self.cpu(CpuId(*cpu))?, kind))
        });
        self.merged.all = begun.collect();
    }

    fn push(&mut self, event: Event, both: bool) {
        self.merged.own.push(event);
        if both {
            self.merged.all.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::{Metrics, Plan};
    use schedlab_trace::Sink;

    const OURS: Pid = 10;
    const THEIRS: Pid = 20;

    fn switch(time: Nanos, cpu: u32, prev: Pid, state: TaskState, next: Pid) -> Event {
        let kind = Kind::Switch { prev, prev_prio: 120, prev_state: state, next, next_prio: 120 };
        Event::new(time, CpuId(cpu), kind)
    }

    fn merged(events: &[Event]) -> Merged {
        let mut merger = Merger::new(1000, 0, 100, &[4, 6], [OURS].into_iter());
        events.iter().for_each(|event| merger.add(event, "a", "b"));
        merger.finish()
    }

    fn report(events: &[Event]) -> schedlab_metrics::Report {
        let mut metrics = Metrics::new(Plan { nr_cpus: 2, ..Plan::default() });
        events.iter().for_each(|event| metrics.event(event));
        metrics.finish(100)
    }

    #[test]
    fn a_run_that_ends_before_its_warmup_measures_no_foreign_time() {
        let mut merger = Merger::new(1000, 200, 100, &[4], [OURS].into_iter());
        let events = [
            switch(1000, 4, 0, TaskState::Running, THEIRS),
            switch(1050, 4, THEIRS, TaskState::Sleeping, OURS),
            switch(1090, 4, OURS, TaskState::Sleeping, THEIRS),
        ];
        events.iter().for_each(|event| merger.add(event, "a", "b"));
        let merged = merger.finish();
        assert!(merged.foreign.is_empty(), "{:?}", merged.foreign);
        assert_eq!((merged.switches, merged.foreign_switches, merged.displaced), (3, 0, 0));
    }

    #[test]
    fn foreign_tasks_count_as_idle_but_their_cpus_are_not_idle_while_runnable() {
        // CPU 4 runs a foreign task from 1020 on; our task, preempted there, waits until 1080 while CPU 6 idles.
        let events = [
            switch(1000, 4, 0, TaskState::Running, OURS),
            switch(1020, 4, OURS, TaskState::Running, THEIRS),
            switch(1030, 6, 0, TaskState::Running, THEIRS + 1),
            switch(1040, 6, THEIRS + 1, TaskState::Sleeping, 0),
            switch(1080, 4, THEIRS, TaskState::Sleeping, OURS),
            switch(1101, 4, OURS, TaskState::Sleeping, 0),
        ];
        let merged = merged(&events);
        assert_eq!(merged.own.len(), 3);
        assert_eq!(merged.own[1], switch(20, 0, OURS, TaskState::Running, 0));
        assert_eq!(merged.foreign, [("b".to_owned(), 70)]);
        assert_eq!((merged.foreign_switches, merged.displaced), (2, 1));
        let (own, all) = (report(&merged.own), report(&merged.all));
        assert_eq!(own.metric("sched.cpu_busy"), Some(20.0));
        assert_eq!(own.metric("sched.run_delay.max"), Some(0.06));
        // CPU 6 idles for 50 of the 60 during which our task waits; CPU 4 never idles.
        assert_eq!(all.metric("sched.idle_while_runnable"), Some(25.0));
    }

    #[test]
    fn switches_that_the_kernel_did_not_record_are_counted() {
        // CPU 4 is idle, then switches from our task; CPU 6 is complete.
        let events = [
            switch(1000, 4, OURS, TaskState::Sleeping, 0),
            switch(1010, 6, 0, TaskState::Running, OURS),
            switch(1020, 6, OURS, TaskState::Sleeping, 0),
            switch(1030, 4, OURS, TaskState::Sleeping, 0),
            switch(1040, 4, 0, TaskState::Running, THEIRS),
        ];
        let merged = merged(&events);
        assert_eq!((merged.switches, merged.unrecorded), (5, 1));
    }

    #[test]
    fn foreign_wakeups_are_dropped_and_our_children_kept() {
        let at = |time, kind| Event::new(time, CpuId(4), kind);
        let wake = |pid| Kind::Wakeup { pid, prio: 120, target_cpu: CpuId(6) };
        let events = [
            at(1001, wake(THEIRS)),
            at(1002, Kind::Fork { parent: OURS, child: 30 }),
            at(1003, wake(30)),
            at(1004, Kind::Fork { parent: THEIRS, child: 31 }),
            at(1005, wake(31)),
            at(1006, Kind::Wakeup { pid: OURS, prio: 120, target_cpu: CpuId(5) }),
        ];
        let merged = merged(&events);
        let kinds: Vec<Kind> = merged.own.iter().map(|event| event.kind).collect();
        let wanted = Kind::Wakeup { pid: 30, prio: 120, target_cpu: CpuId(1) };
        assert_eq!(kinds, [Kind::Fork { parent: OURS, child: 30 }, wanted]);
    }
}
