//! Writes programs and workloads: jumps by symbolic label, registers handed out, objects and metrics numbered.

use std::collections::BTreeMap;

use schedlab_model::CpuMask;

use crate::{
    Amount, Dist, DistId, Label, MetricDecl, ObjectId, ObjectSpec, Op, Program, ProgramId, Reg, Remote, TaskSpec,
    Workload, REGISTERS,
};

/// A place in a [`Code`], known before it is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark(u32);

/// A program being written. Until [`Code::finish`] every jump holds the number of its [`Mark`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    ops: Vec<Op>,
    lines: Vec<u32>,
    line: u32,
    /// Where each mark is bound.
    marks: Vec<Option<Label>>,
    /// Registers in use, bit n = register n.
    used: u8,
    /// Metrics whose samples are those of another one as well.
    also: BTreeMap<u16, u16>,
}

impl Code {
    /// The source line of the operations that follow; 0 for none.
    pub fn at(&mut self, line: u32) {
        self.line = line;
    }

    /// Appends an operation.
    pub fn op(&mut self, op: Op) {
        self.ops.push(op);
        self.lines.push(self.line);
        if let Op::Sample { metric, reg } = op {
            if let Some(also) = self.also.get(&metric) {
                self.ops.push(Op::Sample { metric: *also, reg });
                self.lines.push(self.line);
            }
        }
    }

    /// From here on every sample of a metric is one of another metric too.
    pub fn sample_also(&mut self, pairs: BTreeMap<u16, u16>) {
        self.also = pairs;
    }

    /// A free register, if there is one.
    pub fn take(&mut self) -> Option<Reg> {
        let reg = (0..REGISTERS as u8).find(|reg| self.used >> reg & 1 == 0)?;
        self.used |= 1 << reg;
        Some(reg)
    }

    /// Gives a register back.
    pub fn give(&mut self, reg: Reg) {
        self.used &= !(1 << reg);
    }

    /// A mark to be bound later.
    pub fn mark(&mut self) -> Mark {
        self.marks.push(None);
        Mark(self.marks.len() as u32 - 1)
    }

    /// Binds a mark to the next operation.
    pub fn bind(&mut self, mark: Mark) {
        self.marks[mark.0 as usize] = Some(self.ops.len() as Label);
    }

    /// A mark at the next operation.
    pub fn here(&mut self) -> Mark {
        let mark = self.mark();
        self.bind(mark);
        mark
    }

    /// Continues at the mark.
    pub fn jump(&mut self, to: Mark) {
        self.op(Op::Jump(to.0));
    }

    /// Jumps when the register is below the constant.
    pub fn jump_below(&mut self, reg: Reg, than: i64, to: Mark) {
        self.op(Op::JumpBelow { reg, than, to: to.0 });
    }

    /// Decrements the register and jumps unless it became 0.
    pub fn dec_jump(&mut self, reg: Reg, to: Mark) {
        self.op(Op::DecJump { reg, to: to.0 });
    }

    /// Pops the private stack, or jumps.
    pub fn list_pop(&mut self, into: Reg, empty: Mark) {
        self.op(Op::ListPop { into, empty: empty.0 });
    }

    /// Takes from the own mailbox, or jumps.
    pub fn mail_take(&mut self, into: Reg, empty: Mark) {
        self.op(Op::MailTake { into, empty: empty.0 });
    }

    /// Waits on a futex queue, or jumps when the timeout in the register expires first.
    pub fn futex_wait(&mut self, object: ObjectId, timeout: Reg, expired: Mark) {
        self.op(Op::FutexWait { object, timeout, expired: expired.0 });
    }

    /// Takes the oldest value of a queue, or jumps.
    pub fn try_receive(&mut self, object: ObjectId, into: Reg, empty: Mark) {
        self.op(Op::TryReceive { object, into, empty: empty.0 });
    }

    /// Takes a unit of a semaphore, or jumps.
    pub fn sem_try_wait(&mut self, object: ObjectId, none: Mark) {
        self.op(Op::SemTryWait { object, none: none.0 });
    }

    /// Runs the body `times` times, counting in `reg`; nothing at all for 0.
    pub fn repeat(&mut self, reg: Reg, times: u64, body: impl FnOnce(&mut Code)) {
        if times == 0 {
            return;
        }
        self.op(Op::Set(reg, i64::try_from(times).unwrap_or(i64::MAX)));
        let top = self.here();
        body(self);
        self.dec_jump(reg, top);
    }

    /// Runs the body for ever.
    pub fn forever(&mut self, body: impl FnOnce(&mut Code)) {
        let top = self.here();
        body(self);
        self.jump(top);
    }

    /// The register := nanoseconds since the time in `since`, using the clock.
    pub fn elapsed(&mut self, into: Reg, since: Reg) {
        self.op(Op::Clock(into));
        self.op(Op::SubReg { into, from: since });
    }

    /// The program, its jumps resolved. A mark never bound is the end of the program.
    pub fn finish(self, name: &str) -> Program {
        let end = self.ops.len() as Label;
        let place = |label: Label| self.marks.get(label as usize).copied().flatten().unwrap_or(end);
        let resolve = |op: &Op| match *op {
            Op::Jump(to) => Op::Jump(place(to)),
            Op::JumpBelow { reg, than, to } => Op::JumpBelow { reg, than, to: place(to) },
            Op::DecJump { reg, to } => Op::DecJump { reg, to: place(to) },
            Op::ListPop { into, empty } => Op::ListPop { into, empty: place(empty) },
            Op::MailTake { into, empty } => Op::MailTake { into, empty: place(empty) },
            Op::FutexWait { object, timeout, expired } => Op::FutexWait { object, timeout, expired: place(expired) },
            Op::TryReceive { object, into, empty } => Op::TryReceive { object, into, empty: place(empty) },
            Op::SemTryWait { object, none } => Op::SemTryWait { object, none: place(none) },
            other => other,
        };
        let ops = self.ops.iter().map(resolve).collect();
        let lines = if self.lines.iter().any(|line| *line > 0) { self.lines } else { Vec::new() };
        Program { name: name.to_string(), ops, lines, working_set: 0 }
    }
}

/// A workload being put together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Builder {
    workload: Workload,
}

impl Builder {
    /// An empty workload of this name.
    pub fn new(name: &str) -> Self {
        Builder { workload: Workload { name: name.to_string(), ..Workload::default() } }
    }

    /// Adds an object; `name` is what messages call it.
    pub fn object(&mut self, name: String, spec: ObjectSpec) -> ObjectId {
        self.workload.objects.push(spec);
        self.workload.object_names.push(name);
        self.workload.objects.len() as ObjectId - 1
    }

    /// The amount for a distribution; equal distributions of one workload stay apart, each has its own stream.
    pub fn amount(&mut self, dist: Dist) -> Amount {
        match dist {
            Dist::Constant(value) => Amount::Fixed(value),
            other => Amount::Drawn(self.dist(other)),
        }
    }

    /// Adds clients on other machines.
    pub fn remote(&mut self, remote: Remote) {
        self.workload.remotes.push(remote);
    }

    /// Adds a distribution.
    pub fn dist(&mut self, dist: Dist) -> DistId {
        self.workload.dists.push(dist);
        self.workload.dists.len() as DistId - 1
    }

    /// Adds an affinity mask, or finds the equal one.
    pub fn mask(&mut self, mask: CpuMask) -> u32 {
        let known = self.workload.masks.iter().position(|m| *m == mask);
        known.unwrap_or_else(|| {
            self.workload.masks.push(mask);
            self.workload.masks.len() - 1
        }) as u32
    }

    /// Adds the path of a control group, or finds the equal one.
    pub fn cgroup(&mut self, path: &str) -> u32 {
        let known = self.workload.cgroups.iter().position(|known| known == path);
        known.unwrap_or_else(|| {
            self.workload.cgroups.push(path.to_owned());
            self.workload.cgroups.len() - 1
        }) as u32
    }

    /// Adds a metric.
    pub fn metric(&mut self, decl: MetricDecl) -> u16 {
        self.workload.metrics.push(decl);
        (self.workload.metrics.len() - 1) as u16
    }

    /// The metrics so far.
    pub fn metrics(&self) -> &[MetricDecl] {
        &self.workload.metrics
    }

    /// Adds a program.
    pub fn program(&mut self, name: &str, code: Code) -> ProgramId {
        self.workload.programs.push(code.finish(name));
        self.workload.programs.len() as ProgramId - 1
    }

    /// The tasks of the programs with this name use so many KiB repeatedly.
    pub fn working_set(&mut self, name: &str, kib: u32) {
        let named = self.workload.programs.iter_mut().filter(|program| program.name == name);
        named.for_each(|program| program.working_set = kib);
    }

    /// Reserves the id of a program that is written later.
    pub fn reserve_program(&mut self) -> ProgramId {
        self.workload.programs.push(Program::default());
        self.workload.programs.len() as ProgramId - 1
    }

    /// Fills a reserved program.
    pub fn fill_program(&mut self, id: ProgramId, name: &str, code: Code) {
        self.workload.programs[id as usize] = code.finish(name);
    }

    /// Adds a task that exists from the start.
    pub fn task(&mut self, task: TaskSpec) {
        self.workload.tasks.push(task);
    }

    /// The workload; `ends` says whether it finishes by itself.
    pub fn finish(mut self, ends: bool) -> Workload {
        self.workload.ends = ends;
        self.workload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_positions_and_unbound_ones_the_end() {
        let mut code = Code::default();
        let end = code.mark();
        code.op(Op::Clock(0));
        code.jump_below(0, 5, end);
        code.repeat(1, 3, |code| code.op(Op::Yield));
        let program = code.finish("p");
        assert_eq!(program.ops[1], Op::JumpBelow { reg: 0, than: 5, to: 5 });
        assert_eq!(program.ops[2..], [Op::Set(1, 3), Op::Yield, Op::DecJump { reg: 1, to: 3 }]);
        assert!(program.lines.is_empty());
    }

    #[test]
    fn registers_run_out_and_come_back() {
        let mut code = Code::default();
        let all: Vec<_> = std::iter::from_fn(|| code.take()).collect();
        assert_eq!(all, (0..REGISTERS as u8).collect::<Vec<_>>());
        code.give(3);
        assert_eq!((code.take(), code.take()), (Some(3), None));
    }
}
