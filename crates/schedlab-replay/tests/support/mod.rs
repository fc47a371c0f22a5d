//! A tiny generator: the fair class driven at random and recorded as the kernel's tracepoints would, so that replay
//! must find every decision again. Physics there is none.

use schedlab_model::{stream, CpuId, Nanos, Pid, Stream, TaskId};
use schedlab_policy::fair::{Dequeue, Enqueue, Fair, WakeFlags};
use schedlab_policy::{Algorithm, KernelConfig, Resched, TaskAttr, Version};
use schedlab_trace::{Body, Flags, Header, Kind, Record, TaskState, TraceError, TraceReader, Words};

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    time: Nanos,
    cpu: CpuId,
    pid: Pid,
    flags: Flags,
    kind: Kind,
}

/// A trace in memory.
pub struct Recorded {
    header: Header,
    lines: Vec<Line>,
    at: usize,
}

impl Recorded {
    /// The same trace with some lines lost and some pids, CPUs and runtimes wrong.
    pub fn damage(mut self, seed: u64) -> Self {
        let mut draw = stream(seed, "damage");
        self.lines.retain(|_| draw.below(20) > 0);
        for line in &mut self.lines {
            if draw.below(20) == 0 {
                damage(line, &mut draw);
            }
        }
        self
    }
}

fn damage(line: &mut Line, draw: &mut Stream) {
    let wrong = draw.below(12) as Pid;
    match (&mut line.kind, draw.below(3)) {
        (Kind::Switch { prev, .. }, 0) => *prev = wrong,
        (Kind::Switch { next, next_prio, .. }, _) => (*next, *next_prio) = (wrong, draw.below(140) as i32),
        (Kind::Waking { pid, .. } | Kind::WakeupNew { pid, .. } | Kind::Exit { pid, .. }, _) => *pid = wrong,
        (Kind::Wakeup { target_cpu, .. }, _) => *target_cpu = CpuId(draw.below(6) as u32),
        (Kind::Migrate { orig_cpu, dest_cpu, .. }, 0) => (*orig_cpu, *dest_cpu) = (*dest_cpu, *orig_cpu),
        (Kind::Migrate { pid, .. }, _) => *pid = wrong,
        (Kind::Fork { parent, child }, 0) => (*parent, *child) = (*child, *parent),
        (Kind::Fork { child, .. }, _) => *child = wrong,
        (Kind::Runtime { runtime, .. }, 0) => *runtime = draw.next_u64(),
        (Kind::Runtime { vruntime, .. }, 1) => *vruntime = Some(draw.next_u64()),
        (Kind::Runtime { pid, .. }, _) => *pid = wrong,
        _ => line.cpu = CpuId(draw.below(6) as u32),
    }
}

impl TraceReader for Recorded {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        let Some(line) = self.lines.get(self.at).copied() else { return Ok(None) };
        self.at += 1;
        let Line { time, cpu, pid, flags, kind } = line;
        Ok(Some(Record { time, cpu, comm: "", pid, flags, body: Body::Event(kind, Words::default()) }))
    }
}

/// Where a record is emitted from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Task,
    Yield,
    Softirq,
    Tick,
}

#[derive(Clone, Default)]
struct Cpu {
    clock: Nanos,
    flag: bool,
    /// A record shows the flag.
    shown: bool,
    /// `rq_clock_skip_update` was called.
    skip: bool,
}

struct Task {
    id: TaskId,
    asleep: bool,
    dead: bool,
}

/// The generator.
pub struct Generator {
    fair: Fair,
    eevdf: bool,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    lines: Vec<Line>,
    now: Nanos,
    draw: Stream,
}

/// A trace of `steps` random operations of one version on some CPUs.
pub fn generate(version: &'static Version, cpus: usize, steps: usize, seed: u64) -> Recorded {
    let config = KernelConfig::new(version, cpus, 250);
    let mut generator = Generator {
        fair: Fair::new(config),
        eevdf: version.rules.algorithm == Algorithm::Eevdf,
        cpus: vec![Cpu::default(); cpus],
        tasks: Vec::new(),
        lines: Vec::new(),
        now: 1_000_000,
        draw: stream(seed, "replay"),
    };
    generator.boot();
    for _ in 0..steps {
        generator.step();
    }
    let header = Header {
        kernel: Some(version.name.to_owned()),
        nr_cpus: Some(cpus),
        comments: vec!["hz 250".to_owned(), "sched_autogroup_enabled 0".to_owned()],
        ..Header::default()
    };
    Recorded { header, lines: generator.lines, at: 0 }
}

impl Generator {
    /// One task per CPU is current when recording begins.
    fn boot(&mut self) {
        for cpu in 0..self.cpus.len() {
            let cpu = CpuId(cpu as u32);
            let id = self.fair.add_task(&TaskAttr { cpu, ..TaskAttr::default() });
            self.tasks.push(Task { id, asleep: false, dead: false });
            // A full slice: what replay assumes of a task it finds running without knowing its deadline.
            self.fair.enqueue_task(cpu, id, Enqueue::default(), 0);
            self.fair.pick_next_task(cpu, 0);
            self.elapse();
            self.update_clock(cpu);
            self.charge(cpu, cpu, From::Task);
        }
    }

    fn step(&mut self) {
        self.elapse();
        let cpu = CpuId(self.below(self.cpus.len()) as u32);
        if self.fair.curr(cpu).is_none() {
            return self.wake(cpu);
        }
        if self.cpus[cpu.index()].flag && self.below(3) > 0 {
            return self.schedule(cpu, TaskState::Running);
        }
        match self.below(20) {
            0..=4 => self.tick(cpu),
            5..=10 => self.wake(cpu),
            11..=13 if !self.cpus[cpu.index()].flag => self.schedule(cpu, TaskState::Sleeping),
            14..=15 => self.fork(cpu),
            16 => self.sched_yield(cpu),
            17 => self.renice(cpu),
            18 => self.pull(cpu),
            19 if self.alive() > 4 => self.exit(cpu),
            _ => self.tick(cpu),
        }
    }

    fn elapse(&mut self) {
        self.now += 1_000 + self.draw.below(2_000_000);
    }

    fn below(&mut self, bound: usize) -> usize {
        self.draw.below(bound as u64) as usize
    }

    fn alive(&self) -> usize {
        self.tasks.iter().filter(|task| !task.dead).count()
    }

    fn pid(&self, id: TaskId) -> Pid {
        let place = self.tasks.iter().position(|task| task.id == id);
        place.map_or(0, |place| place as Pid + 1)
    }

    fn task(&self, pid: Pid) -> &Task {
        &self.tasks[pid as usize - 1]
    }

    fn current(&self, cpu: CpuId) -> Pid {
        self.fair.curr(cpu).map_or(0, |id| self.pid(id))
    }

    fn prio(&self, pid: Pid) -> i32 {
        if pid == 0 {
            120
        } else {
            120 + i32::from(self.fair.entity(self.task(pid).id).nice)
        }
    }

    /// `update_rq_clock`.
    fn update_clock(&mut self, cpu: CpuId) -> Nanos {
        self.cpus[cpu.index()].clock = self.now;
        self.now
    }

    fn emit(&mut self, cpu: CpuId, from: From, kind: Kind) {
        let flag = if self.cpus[cpu.index()].flag { b'N' } else { b'.' };
        let flags = match from {
            From::Task => Flags([b'd', flag, b'.', b'2', b'.']),
            From::Yield => Flags([b'd', flag, b'.', b'1', b'.']),
            From::Softirq => Flags([b'd', flag, b's', b'4', b'.']),
            From::Tick => Flags([b'd', flag, b'h', b'1', b'.']),
        };
        self.cpus[cpu.index()].shown |= flag == b'N';
        let pid = self.current(cpu);
        self.now += 1;
        self.lines.push(Line { time: self.now, cpu, pid, flags, kind });
    }

    /// `update_curr` of `cpu`, by code on `by`.
    fn charge(&mut self, cpu: CpuId, by: CpuId, from: From) {
        let Some(curr) = self.fair.curr(cpu) else { return };
        let before = self.fair.entity(curr).sum_exec_runtime;
        self.fair.update_curr(cpu, self.cpus[cpu.index()].clock);
        let se = self.fair.entity(curr);
        let (runtime, vruntime) = (se.sum_exec_runtime - before, Some(se.vruntime.0));
        if runtime > 0 {
            let pid = self.pid(curr);
            self.emit(by, from, Kind::Runtime { pid, runtime, vruntime });
            self.follow(cpu);
        }
    }

    /// The flag follows the request of the class.
    fn follow(&mut self, cpu: CpuId) {
        self.cpus[cpu.index()].flag |= self.fair.need_resched(cpu) == Resched::Full;
    }

    fn tick(&mut self, cpu: CpuId) {
        let now = self.update_clock(cpu);
        self.charge(cpu, cpu, From::Tick);
        self.fair.task_tick(cpu, now);
        self.follow(cpu);
    }

    fn wake(&mut self, by: CpuId) {
        let asleep: Vec<Pid> = (1..=self.tasks.len() as Pid).filter(|pid| self.task(*pid).asleep).collect();
        if asleep.is_empty() {
            return;
        }
        let pid = asleep[self.below(asleep.len())];
        let (id, prio) = (self.task(pid).id, self.prio(pid));
        let from = self.fair.entity(id).cpu;
        let delayed = self.fair.entity(id).on_rq;
        let to = if delayed { from } else { CpuId(self.below(self.cpus.len()) as u32) };
        self.emit(by, From::Softirq, Kind::Waking { pid, prio, target_cpu: from });
        if to != from {
            self.emit(by, From::Softirq, Kind::Migrate { pid, prio, orig_cpu: from, dest_cpu: to });
            self.fair.migrate_task_rq(id, from, to);
        }
        let now = self.update_clock(to);
        if delayed {
            let stale = self.fair.curr(to).map_or(now, |curr| self.fair.entity(curr).exec_start);
            self.fair.enqueue_task(to, id, Enqueue { wakeup: true, delayed, ..Enqueue::default() }, stale);
        }
        self.charge(to, by, From::Softirq);
        let flags = Enqueue { wakeup: true, migrated: to != from, ..Enqueue::default() };
        self.fair.enqueue_task(to, id, flags, now);
        self.tasks[pid as usize - 1].asleep = false;
        self.check_preempt(to, id, WakeFlags::default());
        self.emit(by, From::Softirq, Kind::Wakeup { pid, prio, target_cpu: to });
        self.leave_idle(to);
    }

    fn check_preempt(&mut self, cpu: CpuId, id: TaskId, flags: WakeFlags) {
        let (now, flag) = (self.cpus[cpu.index()].clock, self.cpus[cpu.index()].flag);
        self.fair.wakeup_preempt(cpu, id, flags, flag, now);
        self.follow(cpu);
        self.cpus[cpu.index()].skip |= self.cpus[cpu.index()].flag && self.fair.curr(cpu).is_some();
    }

    /// An idle CPU takes what it was given.
    fn leave_idle(&mut self, cpu: CpuId) {
        if self.fair.curr(cpu).is_none() {
            self.now += 500;
            self.switch(cpu, 0, TaskState::Running);
        }
    }

    fn schedule(&mut self, cpu: CpuId, state: TaskState) {
        if self.cpus[cpu.index()].flag && !self.cpus[cpu.index()].shown {
            // No record would tell of a flag that is set and cleared in between.
            self.tick(cpu);
            self.now += 5_000;
        }
        if !std::mem::take(&mut self.cpus[cpu.index()].skip) {
            self.update_clock(cpu);
        }
        let prev = self.current(cpu);
        self.charge(cpu, cpu, From::Task);
        if state != TaskState::Running {
            let sleep = Dequeue { sleep: true, special: state == TaskState::Dead, ..Dequeue::default() };
            self.fair.dequeue_task(cpu, self.task(prev).id, sleep, self.cpus[cpu.index()].clock);
            let task = &mut self.tasks[prev as usize - 1];
            (task.asleep, task.dead) = (state == TaskState::Sleeping, state == TaskState::Dead);
        }
        self.switch(cpu, prev, state);
    }

    fn switch(&mut self, cpu: CpuId, prev: Pid, prev_state: TaskState) {
        if prev == 0 {
            self.update_clock(cpu);
        }
        let prev_prio = self.prio(prev);
        let next = self.fair.pick_next_task(cpu, self.cpus[cpu.index()].clock).map_or(0, |id| self.pid(id));
        let next_prio = self.prio(next);
        self.cpus[cpu.index()] = Cpu { clock: self.cpus[cpu.index()].clock, ..Cpu::default() };
        if next != prev {
            let kind = Kind::Switch { prev, prev_prio, prev_state, next, next_prio };
            self.emit(cpu, From::Task, kind);
            if let Some(line) = self.lines.last_mut() {
                line.pid = prev;
            }
        } else if next != 0 {
            // Nor of one that clears and is set again.
            self.now += 50_000;
            self.tick(cpu);
        }
    }

    fn fork(&mut self, cpu: CpuId) {
        let parent = self.current(cpu);
        let se = self.fair.entity(self.task(parent).id);
        let id = self.fair.add_task(&TaskAttr { nice: se.nice, cpu, ..TaskAttr::default() });
        self.tasks.push(Task { id, asleep: false, dead: false });
        let child = self.tasks.len() as Pid;
        if !self.eevdf {
            let now = self.update_clock(cpu);
            self.charge(cpu, cpu, From::Task);
            self.fair.task_fork(cpu, id, now);
        }
        self.emit(cpu, From::Task, Kind::Fork { parent, child });
        self.now += 700;
        let to = CpuId(self.below(self.cpus.len()) as u32);
        if to != cpu {
            self.fair.migrate_task_rq(id, cpu, to);
        }
        let now = self.update_clock(to);
        self.charge(to, cpu, From::Task);
        self.fair.enqueue_task(to, id, Enqueue { initial: true, ..Enqueue::default() }, now);
        let prio = self.prio(child);
        self.emit(cpu, From::Task, Kind::WakeupNew { pid: child, prio, target_cpu: to });
        self.check_preempt(to, id, WakeFlags { fork: true, sync: false });
        self.leave_idle(to);
    }

    fn sched_yield(&mut self, cpu: CpuId) {
        if self.fair.rq(cpu).nr_running < 2 {
            return;
        }
        let prev = self.current(cpu);
        let now = self.update_clock(cpu);
        self.charge(cpu, cpu, From::Yield);
        self.fair.yield_task(cpu, now);
        self.switch(cpu, prev, TaskState::Running);
    }

    fn renice(&mut self, cpu: CpuId) {
        let (pid, nice) = (self.current(cpu), self.below(10) as i8);
        let now = self.update_clock(cpu);
        self.charge(cpu, cpu, From::Task);
        self.fair.set_user_nice(self.task(pid).id, nice, now);
        self.follow(cpu);
        self.elapse();
        self.schedule(cpu, TaskState::Sleeping);
    }

    /// The balancer pulls a queued task to `to`.
    fn pull(&mut self, to: CpuId) {
        let from = CpuId(self.below(self.cpus.len()) as u32);
        let awake = |id: &TaskId| !self.fair.entity(*id).sched_delayed;
        let Some(id) = self.fair.view().queued(from).find(awake).filter(|_| from != to) else { return };
        let (pid, now) = (self.pid(id), self.update_clock(from));
        self.charge(from, to, From::Softirq);
        self.fair.dequeue_task(from, id, Dequeue { migrating: true, ..Dequeue::default() }, now);
        self.fair.migrate_task_rq(id, from, to);
        let prio = self.prio(pid);
        self.emit(to, From::Softirq, Kind::Migrate { pid, prio, orig_cpu: from, dest_cpu: to });
        let now = self.update_clock(to);
        self.charge(to, to, From::Softirq);
        self.fair.enqueue_task(to, id, Enqueue::default(), now);
        self.check_preempt(to, id, WakeFlags::default());
    }

    fn exit(&mut self, cpu: CpuId) {
        let pid = self.current(cpu);
        let prio = self.prio(pid);
        self.emit(cpu, From::Task, Kind::Exit { pid, prio });
        self.now += 900;
        let now = self.update_clock(cpu);
        self.charge(cpu, cpu, From::Task);
        self.fair.requeue_task(self.task(pid).id, now);
        self.follow(cpu);
        self.now += 900;
        self.schedule(cpu, TaskState::Dead);
    }
}
