//! One task's steps as operations.

use std::collections::BTreeMap;

use super::names::Kind;
use super::{check_policy, Lowering};
use crate::build::Code;
use crate::verbs::{CallSection, Length, LowerError, Step, StepKind, Times, TreeTask};
use crate::{Amount, MemoryWork, Op, Reg, TimerMode};

/// From when a task's own timers count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// From the start of the run plus the task's delay: the registers returned hold it from the beginning.
    AtZero,
    /// From the task's first step.
    Now,
}

/// A program being lowered.
struct Steps<'l, 'a> {
    out: &'l mut Lowering<'a>,
    code: Code,
    /// Register with the begin of each open sample.
    samples: BTreeMap<String, Reg>,
    /// Register with the next expiry of each own timer.
    timers: BTreeMap<String, Reg>,
    /// Semaphore to give before exiting.
    done: Option<u32>,
}

/// The program of a task, after the operations `code` already has; and the registers of its own timers.
pub(super) fn program(
    out: &mut Lowering<'_>,
    task: &TreeTask,
    code: Code,
    done: Option<u32>,
    start: Start,
) -> Result<(Code, Vec<Reg>), LowerError> {
    let mut code = code;
    if out.tree.by_task {
        code.sample_also(out.names.of_task(&task.spec.name));
    }
    let mut steps = Steps { out, code, samples: BTreeMap::new(), timers: BTreeMap::new(), done };
    steps.own_timers(task, start)?;
    steps.all(&task.steps)?;
    steps.leave();
    let timers = steps.timers.into_values().collect();
    Ok((steps.code, timers))
}

impl Steps<'_, '_> {
    fn own_timers(&mut self, task: &TreeTask, start: Start) -> Result<(), LowerError> {
        let mut found: Vec<(String, u32)> = Vec::new();
        super::visit(&task.steps, &mut |step| {
            if let StepKind::Period { timer, .. } = &step.kind {
                found.push((timer.clone(), step.line));
            }
            Ok(())
        })?;
        for (timer, line) in found {
            if !self.timers.contains_key(&timer) {
                let reg = self.register(line)?;
                self.timers.insert(timer, reg);
                if start == Start::Now {
                    self.code.op(Op::Clock(reg));
                }
            }
        }
        Ok(())
    }

    fn register(&mut self, line: u32) -> Result<Reg, LowerError> {
        self.code.take().ok_or_else(|| {
            let what = "this task has too many nested loops, open samples and timers of its own";
            LowerError::new(line, what).hint("a program has 8 registers; split it into two tasks")
        })
    }

    fn all(&mut self, steps: &[Step]) -> Result<(), LowerError> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Result<(), LowerError> {
        self.code.at(step.line);
        match &step.kind {
            StepKind::Loop { times, body } => self.repeat(step.line, *times, body),
            StepKind::Period { timer, period, mode, latency, slack, misses } => {
                let metrics = [latency, slack, misses].map(Option::as_deref);
                self.period(step.line, timer, *period, *mode, metrics)
            }
            StepKind::SampleBegin { metric, at } => self.begin(metric, at.as_deref(), step.line),
            StepKind::SampleEnd(metric) => self.end(metric, step.line),
            StepKind::Send { queue, sample } => self.send(queue, sample.as_deref(), step.line),
            StepKind::Receive { queue, sample } => self.receive(queue, sample.as_deref(), step.line),
            StepKind::Exit => {
                self.leave();
                self.code.op(Op::Exit);
                Ok(())
            }
            StepKind::Fork { task, kind, memory } => {
                if *memory > 0 {
                    self.code.op(Op::Memory { work: MemoryWork::CopyPageTables, kib: *memory });
                }
                let index = self.out.tasks.find(task, step.line)?;
                let program = self.out.forked.get(&index).copied().unwrap_or(self.out.programs[index]);
                let into = self.register(step.line)?;
                self.code.op(Op::Fork { program, kind: *kind, into });
                self.code.give(into);
                Ok(())
            }
            StepKind::Call(sections) => self.call(sections, step.line),
            StepKind::Memory { work, kib, times } => {
                let body = Op::Memory { work: *work, kib: *kib };
                self.repeated(body, *times, step.line)
            }
            StepKind::MajorFault { disk, service, times } => {
                let object = self.object(disk, Kind::Disk, step.line)?;
                let service = self.amount(service, step.line)?;
                self.repeated(Op::MajorFault { object, service }, *times, step.line)
            }
            kind => {
                let op = self.plain(kind, step.line)?;
                self.code.op(op);
                Ok(())
            }
        }
    }

    /// Steps that are one operation.
    fn plain(&mut self, kind: &StepKind, line: u32) -> Result<Op, LowerError> {
        use StepKind as S;
        Ok(match kind {
            S::Run(length) => Op::Run(self.amount(length, line)?),
            S::Runtime(length) => Op::RunWall(self.amount(length, line)?),
            S::System(length) => Op::System(self.amount(length, line)?),
            S::Sleep(length) => Op::Sleep(self.amount(length, line)?),
            S::Timer { timer, period, mode } => {
                let object = self.object(timer, Kind::Timer, line)?;
                Op::Timer { object, period: self.amount(period, line)?, mode: *mode }
            }
            S::Read { channel, bytes } => Op::Read { object: self.channel(channel, *bytes, line)?, bytes: *bytes },
            S::Write { channel, bytes } => Op::Write { object: self.channel(channel, *bytes, line)?, bytes: *bytes },
            S::Wait(name) => Op::Wait(self.object(name, Kind::Futex, line)?),
            S::Post(name) => Op::Post(self.object(name, Kind::Futex, line)?),
            S::Lock(name) | S::Unlock(name) if self.spinlock(name).is_some() => {
                let (object, metric) = self.spinlock(name).unwrap_or_default();
                match kind {
                    S::Lock(_) => Op::SpinLock { object, metric },
                    _ => Op::SpinUnlock(object),
                }
            }
            S::Lock(name) => Op::Lock(self.object(name, Kind::Mutex, line)?),
            S::Unlock(name) => Op::Unlock(self.object(name, Kind::Mutex, line)?),
            S::Barrier(name) => Op::Barrier(self.object(name, Kind::Barrier, line)?),
            S::SemWait(name) => Op::SemWait(self.object(name, Kind::Semaphore, line)?),
            S::SemPost(name) => Op::SemPost(self.object(name, Kind::Semaphore, line)?),
            S::CondWait { condition, mutex } => {
                let object = self.object(condition, Kind::Condition, line)?;
                Op::CondWait { object, mutex: self.object(mutex, Kind::Mutex, line)? }
            }
            S::Signal(name) => Op::CondSignal(self.object(name, Kind::Condition, line)?),
            S::Broadcast(name) => Op::CondBroadcast(self.object(name, Kind::Condition, line)?),
            S::Yield => Op::Yield,
            S::Reap => Op::Reap,
            S::Nice(nice) => {
                check_nice(*nice, line)?;
                Op::SetNice(*nice)
            }
            S::Affinity(mask) if mask.is_empty() => return Err(LowerError::new(line, "the affinity mask is empty")),
            S::Affinity(mask) => Op::SetAffinity(self.out.builder.mask(*mask)),
            S::Slice(slice) => Op::SetSlice(*slice),
            S::Cgroup(path) => Op::SetCgroup(self.out.builder.cgroup(path)),
            S::Policy(policy) => {
                check_policy(*policy, line)?;
                Op::SetPolicy(*policy)
            }
            S::Count { metric, count } => {
                let metric = self.out.names.counted(&mut self.out.builder, metric, line)?;
                Op::Count { metric, count: *count }
            }
            S::Loop { .. }
            | S::Period { .. }
            | S::SampleBegin { .. }
            | S::SampleEnd(_)
            | S::Send { .. }
            | S::Receive { .. }
            | S::Exit
            | S::Fork { .. }
            | S::Call(_)
            | S::Memory { .. }
            | S::MajorFault { .. } => {
                // Handled by `step`, the only caller.
                Op::Yield
            }
        })
    }

    fn spinlock(&mut self, name: &str) -> Option<(u32, u16)> {
        self.out.names.spinlock(&mut self.out.builder, name)
    }

    /// Enters the kernel, executes the sections and returns after the last one.
    fn call(&mut self, sections: &[CallSection], line: u32) -> Result<(), LowerError> {
        self.code.op(Op::Call);
        for (index, CallSection { length, section, lock }) in sections.iter().enumerate() {
            let (amount, last) = (self.amount(length, line)?, index + 1 == sections.len());
            let Some(name) = lock else {
                self.code.op(Op::Section { amount, section: *section, last });
                continue;
            };
            let (object, metric) = self.out.names.kernel_lock(&mut self.out.builder, name, line)?;
            self.code.op(Op::KernelLock { object, metric });
            self.code.op(Op::Section { amount, section: *section, last: false });
            self.code.op(Op::KernelUnlock { object, last });
        }
        Ok(())
    }

    fn repeated(&mut self, op: Op, times: u32, line: u32) -> Result<(), LowerError> {
        if times == 1 {
            self.code.op(op);
            return Ok(());
        }
        let counter = self.register(line)?;
        self.code.op(Op::Set(counter, i64::from(times)));
        let top = self.code.here();
        self.code.op(op);
        self.code.dec_jump(counter, top);
        self.code.give(counter);
        Ok(())
    }

    fn object(&mut self, name: &str, kind: Kind, line: u32) -> Result<u32, LowerError> {
        self.out.names.object(&mut self.out.builder, name, kind, line)
    }

    fn channel(&mut self, name: &str, bytes: u32, line: u32) -> Result<u32, LowerError> {
        if bytes == 0 {
            return Err(LowerError::new(line, format!("a transfer of 0 bytes to or from `{name}`"))
                .hint("transfer at least 1 byte"));
        }
        self.object(name, Kind::Channel, line)
    }

    fn amount(&mut self, length: &Length, line: u32) -> Result<Amount, LowerError> {
        self.out.length(length, line)
    }

    fn repeat(&mut self, line: u32, times: Times, body: &[Step]) -> Result<(), LowerError> {
        if body.is_empty() {
            return Err(LowerError::new(line, "the loop has no steps").hint("add steps that take time"));
        }
        match times {
            Times::Count(0) => Ok(()),
            Times::Count(times) => {
                let counter = self.register(line)?;
                self.code.op(Op::Set(counter, i64::from(times)));
                let top = self.code.here();
                self.all(body)?;
                self.code.at(line);
                self.code.dec_jump(counter, top);
                self.code.give(counter);
                Ok(())
            }
            Times::Forever => {
                let top = self.code.here();
                self.all(body)?;
                self.code.at(line);
                self.code.jump(top);
                Ok(())
            }
        }
    }

    fn begin(&mut self, metric: &str, at: Option<&str>, line: u32) -> Result<(), LowerError> {
        let into = self.stamp(metric, line)?;
        let op = match at {
            None => Op::Clock(into),
            Some(timer) => Op::TimerDue { object: self.object(timer, Kind::Timer, line)?, into },
        };
        self.code.op(op);
        Ok(())
    }

    /// The register with the begin of a sample.
    fn stamp(&mut self, metric: &str, line: u32) -> Result<Reg, LowerError> {
        self.out.names.sampled(&mut self.out.builder, metric, line)?;
        if let Some(reg) = self.samples.get(metric) {
            return Ok(*reg);
        }
        let reg = self.register(line)?;
        self.samples.insert(metric.to_string(), reg);
        Ok(reg)
    }

    fn send(&mut self, queue: &str, sample: Option<&str>, line: u32) -> Result<(), LowerError> {
        let object = self.object(queue, Kind::Queue, line)?;
        let Some(metric) = sample else {
            let from = self.register(line)?;
            self.code.op(Op::Send { object, from });
            self.code.give(from);
            return Ok(());
        };
        let Some(from) = self.samples.get(metric).copied() else {
            let what = format!("sample `{metric}` is sent before it begins in this task");
            return Err(LowerError::new(line, what).hint("put begin, or receive with the same sample, before send"));
        };
        self.code.op(Op::Send { object, from });
        Ok(())
    }

    fn receive(&mut self, queue: &str, sample: Option<&str>, line: u32) -> Result<(), LowerError> {
        let object = self.object(queue, Kind::Queue, line)?;
        match sample {
            Some(metric) => {
                let into = self.stamp(metric, line)?;
                self.code.op(Op::Receive { object, into });
            }
            None => {
                let into = self.register(line)?;
                self.code.op(Op::Receive { object, into });
                self.code.give(into);
            }
        }
        Ok(())
    }

    fn end(&mut self, metric: &str, line: u32) -> Result<(), LowerError> {
        let Some(begin) = self.samples.get(metric).copied() else {
            let what = format!("sample `{metric}` ends before it begins in this task");
            return Err(LowerError::new(line, what).hint("begin it in the same task, or receive it from a queue"));
        };
        let id = self.out.names.sampled(&mut self.out.builder, metric, line)?;
        let now = self.register(line)?;
        self.code.elapsed(now, begin);
        self.code.op(Op::Sample { metric: id, reg: now });
        self.code.give(now);
        Ok(())
    }

    /// Waits for the next expiry kept in a register; `metrics` are latency, slack and misses.
    fn period(
        &mut self,
        line: u32,
        timer: &str,
        period: u64,
        mode: TimerMode,
        [latency, slack, misses]: [Option<&str>; 3],
    ) -> Result<(), LowerError> {
        let next = self.timers[timer];
        let (left, now) = (self.register(line)?, self.register(line)?);
        let (missed, after) = (self.code.mark(), self.code.mark());
        self.code.op(Op::AddConst(next, i64::try_from(period).unwrap_or(i64::MAX)));
        self.code.op(Op::Clock(now));
        self.code.op(Op::Copy { into: left, from: next });
        self.code.op(Op::SubReg { into: left, from: now });
        if let Some(slack) = slack {
            let metric = self.out.names.sampled(&mut self.out.builder, slack, line)?;
            self.code.op(Op::Sample { metric, reg: left });
        }
        self.code.jump_below(left, 1, missed);
        self.code.op(Op::SleepUntil(next));
        if let Some(latency) = latency {
            let metric = self.out.names.sampled(&mut self.out.builder, latency, line)?;
            self.code.elapsed(now, next);
            self.code.op(Op::Sample { metric, reg: now });
        }
        self.code.jump(after);
        self.code.bind(missed);
        if let Some(misses) = misses {
            let metric = self.out.names.counted(&mut self.out.builder, misses, line)?;
            self.code.op(Op::Count { metric, count: 1 });
        }
        if mode == TimerMode::Relative {
            self.code.op(Op::Copy { into: next, from: now });
        }
        self.code.bind(after);
        self.code.give(left);
        self.code.give(now);
        Ok(())
    }

    /// Signals the main thread, if there is one, that this task is done.
    fn leave(&mut self) {
        if let Some(done) = self.done {
            self.code.op(Op::SemPost(done));
        }
    }
}

pub(super) fn check_nice(nice: i8, line: u32) -> Result<(), LowerError> {
    if (-20..=19).contains(&nice) {
        return Ok(());
    }
    Err(LowerError::new(line, format!("nice {nice} is outside -20..=19")))
}
