//! The reduction itself: every event moves a task and a CPU through their states and feeds counters and histograms.

use schedlab_model::{CpuId, KernelId, Nanos, Pid};
use schedlab_trace::{Event, Kind, Lock, ScanTimes, Section, Sink, TaskState};

use crate::state::{App, Cpu, Metrics, Totals};
use crate::tasks::{State, Task, Tasks, NEVER};
use crate::{Cause, Histogram, Report};

impl Metrics {
    /// Closes everything still open at `end` and makes the report.
    #[must_use]
    pub fn finish(mut self, end: Nanos) -> Report {
        self.close(end);
        Report::of(&self, end)
    }

    /// Notes the state at the end of a third of the measured time.
    #[cold]
    fn end_third(&mut self, now: Nanos) {
        while now >= self.next_third {
            let mut thirds = std::mem::take(&mut self.thirds);
            let mut state = self.clone();
            state.close(self.next_third);
            thirds.push(state);
            self.thirds = thirds;
            self.next_third = self.plan.end_of_third(self.thirds.len()).unwrap_or(Nanos::MAX);
        }
    }

    fn close(&mut self, end: Nanos) {
        self.idle.advance(end);
        self.resched_delay_in.iter().for_each(|part| self.resched_delay.merge(part));
        let warmup = self.plan.warmup;
        for cpu in 0..self.cpus.len() {
            self.charge_running(cpu, end);
        }
        for slot in self.tasks.slots() {
            let task = self.tasks.at(slot);
            if task.state == State::Waiting {
                task.wait_ns += measured(task.since, end, warmup);
            }
        }
        for app in &mut self.apps {
            if let App::PerSecond(seconds) = app {
                seconds.advance(end);
            }
        }
    }

    /// Makes sure the CPU exists. `None` for a number no kernel has.
    #[inline]
    fn cpu(&mut self, cpu: CpuId) -> Option<usize> {
        let index = cpu.index();
        if index < self.cpus.len() {
            return Some(index);
        }
        self.add_cpus(index + 1);
        (index < self.cpus.len()).then_some(index)
    }

    #[inline]
    fn switch(&mut self, event: &Event, prev: Pid, prev_state: TaskState, next: Pid) {
        let next_slot = if next == 0 { Some(0) } else { self.tasks.seen_slot(next) };
        match (self.running_slot(event.cpu, prev), next_slot) {
            (Some(prev), Some(next)) => self.switch_slots(event, prev, prev_state, next),
            _ => self.switch_unknown(event, prev, prev_state, next),
        }
    }

    /// The slot of the task that a CPU switches from, if that is what is known to run there. The first switch of a CPU
    /// shows what ran there before; later ones should agree with what is known, unless events were lost.
    #[inline(always)]
    fn running_slot(&self, cpu: CpuId, prev: Pid) -> Option<usize> {
        let Cpu { running, known, .. } = *self.cpus.get(cpu.index())?;
        let task = self.tasks.get(running);
        // Where events were lost, the entry may have been freed, or its pid given to another task.
        let agrees = if running == 0 { prev == 0 } else { task.pid == prev && task.state == State::Running };
        (known && agrees).then_some(running)
    }

    #[cold]
    fn switch_unknown(&mut self, event: &Event, prev: Pid, prev_state: TaskState, next: Pid) {
        let Some(cpu) = self.cpu(event.cpu) else { return };
        let prev = self.running_slot(event.cpu, prev).unwrap_or_else(|| self.adopt(cpu, prev));
        let next = if next == 0 { 0 } else { self.tasks.slot(next) };
        self.switch_slots(event, prev, prev_state, next);
    }

    #[inline(always)]
    fn switch_slots(&mut self, event: &Event, prev: usize, prev_state: TaskState, next: usize) {
        self.totals.switches += u64::from(event.time >= self.plan.warmup);
        let (c, tasks, mut measures) = self.at_switch(event.cpu.index());
        let old = c.queue();
        if prev != 0 {
            measures.leave(c, tasks.at(prev), prev_state, event);
        }
        let elsewhere = if next == 0 { None } else { measures.enter(c, tasks.at(next), event) };
        c.running = next;
        c.since = event.time;
        let new = c.queue();
        self.idle.change(old, new);
        if let Some(other) = elsewhere {
            self.wait_less(other);
        }
        self.idle.settle(if next == 0 { Cause::Newidle } else { Cause::Preempt }, event.time);
        if prev_state == TaskState::Dead && prev != 0 {
            self.tasks.ended(prev);
        }
    }

    /// The CPU of a switch, the tasks, and the parts of the metrics that a switch changes.
    #[inline(always)]
    fn at_switch(&mut self, cpu: usize) -> (&mut Cpu, &mut Tasks, Measures<'_>) {
        let Metrics { plan, tasks, cpus, totals, wakeup_latency, run_delay, run_time, .. } = self;
        let measures = Measures { warmup: plan.warmup, totals, wakeup_latency, run_delay, run_time };
        (&mut cpus[cpu], tasks, measures)
    }

    #[cold]
    fn adopt(&mut self, cpu: usize, prev: Pid) -> usize {
        let prev = if prev == 0 { 0 } else { self.tasks.slot(prev) };
        let running = self.cpus[cpu].running;
        if running == prev && self.cpus[cpu].known {
            return prev;
        }
        if running != 0 && running != prev {
            self.tasks.at(running).state = State::Unknown;
        }
        let old = self.cpus[cpu].queue();
        self.cpus[cpu].known = true;
        self.cpus[cpu].running = prev;
        self.idle.change(old, self.cpus[cpu].queue());
        if prev != 0 {
            let (since, task) = (self.cpus[cpu].since, self.tasks.at(prev));
            let waited_on = (task.state == State::Waiting).then_some(task.cpu.index());
            task.state = State::Running;
            task.since = since;
            if let Some(other) = waited_on {
                self.wait_less(other);
            }
        }
        prev
    }

    /// Charges the time since the CPU's last switch to it and its task.
    #[inline]
    fn charge_running(&mut self, cpu: usize, now: Nanos) {
        let cpu = &mut self.cpus[cpu];
        if cpu.running != 0 {
            let ran = measured(cpu.since, now, self.plan.warmup);
            cpu.busy_ns += ran;
            self.tasks.at(cpu.running).cpu_ns += ran;
        }
    }

    #[inline]
    fn waking(&mut self, time: Nanos, pid: Pid) {
        let slot = self.tasks.slot(pid);
        let task = self.tasks.at(slot);
        match task.state {
            State::Sleeping | State::Unknown => {
                task.state = State::Waking;
                task.since = time;
                task.waking_at = time;
            }
            State::Running => task.waking_at = time,
            State::Waking | State::Waiting | State::Dead => {}
        }
    }

    #[inline]
    fn wakeup(&mut self, time: Nanos, pid: Pid, target: CpuId) {
        let slot = self.tasks.slot(pid);
        let live = time >= self.plan.warmup;
        let task = self.tasks.at(slot);
        if matches!(task.state, State::Waking | State::Sleeping | State::Unknown) {
            task.waking_at = if task.waking_at == NEVER { time } else { task.waking_at };
            task.wakeups += u64::from(live);
            self.totals.wakeups += u64::from(live);
            self.enqueue(slot, time, target, Cause::Wakeup);
        } else if task.state == State::Running {
            // It had not left the CPU yet: the wakeup was absorbed.
            task.waking_at = NEVER;
        }
    }

    fn wakeup_new(&mut self, time: Nanos, pid: Pid, target: CpuId) {
        let slot = self.tasks.slot(pid);
        if !matches!(self.tasks.at(slot).state, State::Running | State::Waiting) {
            self.tasks.at(slot).waking_at = NEVER;
            self.enqueue(slot, time, target, Cause::Fork);
        }
    }

    #[inline]
    fn enqueue(&mut self, slot: usize, time: Nanos, target: CpuId, cause: Cause) {
        let Some(cpu) = self.cpu(target) else { return };
        if slot == 0 {
            return;
        }
        let task = self.tasks.at(slot);
        task.state = State::Waiting;
        task.since = time;
        task.cpu = target;
        self.wait_more(cpu);
        self.idle.settle(cause, time);
    }

    fn migrate(&mut self, time: Nanos, pid: Pid, dest: CpuId) {
        let live = time >= self.plan.warmup;
        let slot = self.tasks.slot(pid);
        let Some(dest_cpu) = self.cpu(dest) else { return };
        self.totals.migrations += u64::from(live);
        let task = self.tasks.at(slot);
        task.migrations += u64::from(live);
        let Task { state, cpu, .. } = *task;
        if state == State::Waiting {
            task.cpu = dest;
            self.wait_less(cpu.index());
            self.wait_more(dest_cpu);
            self.idle.settle(Cause::Migrate, time);
        }
    }

    #[inline]
    fn wait_more(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let old = c.queue();
        c.waiting += 1;
        self.idle.change(old, c.queue());
    }

    #[inline]
    fn wait_less(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let old = c.queue();
        c.waiting = c.waiting.saturating_sub(1);
        self.idle.change(old, c.queue());
    }

    /// Notes to which workload's metrics the task reports, where a metric is about those tasks.
    #[inline]
    fn reports(&mut self, pid: Pid, metric: u16) {
        if let Some(number) = self.reporters.of_metric.get(usize::from(metric)).copied().filter(|number| *number > 0) {
            let slot = self.tasks.slot(pid);
            self.tasks.at(slot).reporter = number;
        }
    }

    fn sample(&mut self, time: Nanos, metric: u16, value: u64) {
        let live = time >= self.plan.warmup;
        match self.apps.get_mut(usize::from(metric)) {
            Some(App::Samples(histogram)) if live => histogram.record(value),
            Some(App::BestRate { samples, shortest, .. }) if live => {
                *samples += 1;
                *shortest = value.min(*shortest);
            }
            Some(App::CpuRate { time, .. }) if live => *time = time.saturating_add(value),
            Some(App::Headline { measured, warmup }) => {
                let mean = if live { measured } else { warmup };
                mean.sum += u128::from(value);
                mean.count += 1;
            }
            _ => {}
        }
    }

    fn count(&mut self, time: Nanos, metric: u16, count: u64) {
        match self.apps.get_mut(usize::from(metric)) {
            Some(
                App::Rate { counted }
                | App::Total { counted }
                | App::CpuRate { counted, .. }
                | App::BestRate { counted, .. },
            ) if time >= self.plan.warmup => *counted = counted.saturating_add(count),
            Some(App::PerSecond(seconds)) => seconds.count(time, count),
            _ => {}
        }
    }

    fn scan(&mut self, time: Nanos, tested: u32, cost: Nanos, functions: &ScanTimes) {
        if time >= self.plan.warmup {
            self.searches.record(cost, functions);
            self.totals.scans += 1;
            self.totals.scan_tested += u64::from(tested);
            self.totals.scan_cost_ns += cost;
        }
    }

    fn resched(&mut self, time: Nanos, waited: Nanos, section: Section) {
        if time >= self.plan.warmup {
            self.resched_delay_in[section as usize].record(waited);
        }
    }

    fn lock_wait(&mut self, time: Nanos, lock: Lock, wait: Nanos) {
        if time >= self.plan.warmup {
            self.lock_waits[lock as usize].record(wait);
            // A wait for mmap_lock may be spent asleep.
            self.totals.lock_wait_ns += if lock == Lock::Mmap { 0 } else { wait };
        }
    }

    fn fault(&mut self, time: Nanos, major: bool) {
        if time >= self.plan.warmup {
            self.totals.faults += 1;
            self.totals.major_faults += u64::from(major);
        }
    }

    fn fork(&mut self, time: Nanos, child: Pid) {
        self.totals.forks += u64::from(time >= self.plan.warmup);
        self.tasks.forked(child);
    }
}

/// The parts of the metrics that a context switch changes.
struct Measures<'a> {
    warmup: Nanos,
    totals: &'a mut Totals,
    wakeup_latency: &'a mut Histogram,
    run_delay: &'a mut Histogram,
    run_time: &'a mut Histogram,
}

impl Measures<'_> {
    /// The task that ran on the CPU is charged and leaves it.
    #[inline(always)]
    fn leave(&mut self, cpu: &mut Cpu, task: &mut Task, state: TaskState, event: &Event) {
        let (now, warmup) = (event.time, self.warmup);
        let preempted = state == TaskState::Running;
        let ran = measured(cpu.since, now, warmup);
        cpu.busy_ns += ran;
        task.cpu_ns += ran;
        if now >= warmup {
            self.run_time.record(now.saturating_sub(task.since));
            let (total, own) = match preempted {
                true => (&mut self.totals.involuntary, &mut task.involuntary),
                false => (&mut self.totals.voluntary, &mut task.voluntary),
            };
            *total += 1;
            *own += 1;
        }
        task.state = match state {
            TaskState::Running => State::Waiting,
            TaskState::Dead => State::Dead,
            // A waker may have found it on its way out of the CPU.
            _ if task.waking_at != NEVER => State::Waking,
            _ => State::Sleeping,
        };
        task.since = now;
        task.cpu = event.cpu;
        if preempted {
            task.waking_at = NEVER;
            cpu.waiting += 1;
        }
    }

    /// A task starts to run on the CPU. Returns the other CPU on whose runqueue it was last known to wait, if any.
    #[inline(always)]
    fn enter(&mut self, cpu: &mut Cpu, task: &mut Task, event: &Event) -> Option<usize> {
        let (now, live, warmup) = (event.time, event.time >= self.warmup, self.warmup);
        let mut elsewhere = None;
        if task.state == State::Waiting || task.state == State::Waking {
            let waited = now.saturating_sub(task.since);
            if live {
                self.run_delay.record(waited);
                task.wait_ns += measured(task.since, now, warmup);
                task.wait_ns_max = task.wait_ns_max.max(waited);
                if task.waking_at != NEVER {
                    self.wakeup_latency.record(now.saturating_sub(task.waking_at));
                }
            }
            // Without sched_wakeup (perf sched record leaves it out) it was on no runqueue that is known.
            if task.state == State::Waking {
                task.wakeups += u64::from(live);
                self.totals.wakeups += u64::from(live);
            } else if task.cpu == event.cpu {
                cpu.waiting = cpu.waiting.saturating_sub(1);
            } else {
                elsewhere = Some(task.cpu.index());
            }
        }
        task.state = State::Running;
        task.since = now;
        task.cpu = event.cpu;
        task.waking_at = NEVER;
        elsewhere
    }
}

impl Sink for Metrics {
    #[inline(always)]
    fn event(&mut self, event: &Event) {
        let time = event.time;
        if time >= self.next_third {
            self.end_third(time);
        }
        match event.kind {
            Kind::Switch { prev, prev_state, next, .. } => self.switch(event, prev, prev_state, next),
            Kind::Waking { pid, .. } => self.waking(time, pid),
            Kind::Wakeup { pid, target_cpu, .. } => self.wakeup(time, pid, target_cpu),
            Kind::WakeupNew { pid, target_cpu, .. } => self.wakeup_new(time, pid, target_cpu),
            Kind::Migrate { pid, dest_cpu, .. } => self.migrate(time, pid, dest_cpu),
            Kind::Fork { child, .. } => self.fork(time, child),
            Kind::Sample { pid, metric, value } => {
                self.reports(pid, metric);
                self.sample(time, metric, value);
            }
            Kind::Count { pid, metric, count } => {
                self.reports(pid, metric);
                self.count(time, metric, count);
            }
            Kind::Scan { tested, cost, ref functions, .. } => self.scan(time, tested, cost, functions),
            Kind::Fault { major, .. } => self.fault(time, major),
            Kind::Extension { what, .. } => {
                self.totals.extensions[what as usize] += u64::from(time >= self.plan.warmup)
            }
            Kind::Resched { waited, section, .. } => self.resched(time, waited, section),
            Kind::NonPreemptible { time: length, section, call, .. } if time >= self.plan.warmup => {
                self.totals.longest.record(length, section, call);
            }
            Kind::LockWait { lock, wait, .. } => self.lock_wait(time, lock, wait),
            Kind::Refill { time: refill, .. } => {
                self.totals.refill_ns += if time >= self.plan.warmup { refill } else { 0 }
            }
            Kind::Numa { faults, local, migrated, time: remote, .. } if time >= self.plan.warmup => {
                self.totals.numa.add(faults, local, migrated, remote);
            }
            Kind::Numa { .. } => {}
            Kind::Exit { .. } | Kind::Runtime { .. } | Kind::NonPreemptible { .. } => {}
        }
    }

    fn name(&mut self, _kernel: KernelId, pid: Pid, name: &str) {
        if pid != 0 {
            self.tasks.rename(pid, name);
        }
    }
}

/// The part of `since..now` that lies after the warm-up.
#[inline]
fn measured(since: Nanos, now: Nanos, warmup: Nanos) -> Nanos {
    now.saturating_sub(since.max(warmup))
}
