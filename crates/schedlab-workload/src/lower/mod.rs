//! Turns the tree of verbs into a workload: objects and metrics numbered, loops flattened to jumps.
//!
//! A tree that ends by itself gets one more task, its main thread: it waits until every task has exited, as
//! `pthread_join` does, and reports `time`.

mod due;
mod join;
mod names;
mod queued_samples;
mod steps;

use std::collections::BTreeMap;

use crate::build::{Builder, Code};
use crate::verbs::{Length, LowerError, Step, StepKind, Tree, TreeRemote, TreeSends, TreeTask};
use crate::{Amount, Dist, Op, Policy, ProgramId, Remote, Sends, TaskSpec, Workload};
use schedlab_model::closest;

/// The workload of a tree.
pub fn lower(tree: &Tree) -> Result<Workload, LowerError> {
    due::check(tree)?;
    queued_samples::check(tree)?;
    let mut out = Lowering::new(tree)?;
    let done = if tree.ends { Some(join::add_main(&mut out)?) } else { None };
    for (index, task) in tree.tasks.iter().enumerate() {
        out.add_task(index, task, done)?;
    }
    for remote in &tree.remotes {
        out.add_remote(remote)?;
    }
    Ok(out.builder.finish(tree.ends))
}

/// The state of one lowering.
pub(crate) struct Lowering<'a> {
    tree: &'a Tree,
    tasks: TaskNames<'a>,
    builder: Builder,
    names: names::Names,
    /// Program of each task that starts by itself, by index in the tree.
    programs: Vec<ProgramId>,
    /// Program of each task that is forked: it sets the task's own attributes first.
    forked: BTreeMap<usize, ProgramId>,
}

impl<'a> Lowering<'a> {
    fn new(tree: &'a Tree) -> Result<Self, LowerError> {
        let mut builder = Builder::new(&tree.name);
        let names = names::Names::declare(tree, &mut builder)?;
        let programs = tree.tasks.iter().map(|_| builder.reserve_program()).collect();
        let tasks = TaskNames::of(tree);
        let mut forked = BTreeMap::new();
        for target in fork_targets(tree, &tasks)? {
            forked.entry(target).or_insert_with(|| builder.reserve_program());
        }
        Ok(Lowering { tree, tasks, builder, names, programs, forked })
    }

    fn add_task(&mut self, index: usize, task: &TreeTask, done: Option<u32>) -> Result<(), LowerError> {
        check_attributes(task)?;
        let mut spec = TaskSpec { program: self.programs[index], ..task.spec.clone() };
        let (code, registers) = steps::program(self, task, Code::default(), done, steps::Start::AtZero)?;
        for reg in registers {
            spec.registers[usize::from(reg)] = i64::try_from(task.spec.delay).unwrap_or(i64::MAX);
        }
        self.builder.fill_program(spec.program, &task.spec.name, code);
        if spec.count > 0 {
            self.builder.task(spec);
        }
        if let Some(program) = self.forked.get(&index).copied() {
            let own = self.own_attributes(task);
            let (code, _) = steps::program(self, task, own, done, steps::Start::Now)?;
            self.builder.fill_program(program, &task.spec.name, code);
        }
        Ok(())
    }

    fn add_remote(&mut self, remote: &TreeRemote) -> Result<(), LowerError> {
        let line = remote.line;
        let sends = match &remote.sends {
            TreeSends::Every(every) => Sends::Every(self.length(every, line)?),
            TreeSends::Closed { clients, think, network, replies } => Sends::Closed {
                clients: *clients,
                think: self.length(think, line)?,
                network: self.length(network, line)?,
                replies: self.names.object(&mut self.builder, replies, names::Kind::Queue, line)?,
            },
        };
        let queue = self.names.object(&mut self.builder, &remote.queue, names::Kind::Queue, line)?;
        let softirq = self.length(&remote.softirq, line)?;
        self.builder.remote(Remote { name: remote.name.clone(), queue, sends, irq_cpus: remote.irq_cpus, softirq });
        Ok(())
    }

    fn length(&mut self, length: &Length, line: u32) -> Result<Amount, LowerError> {
        match length {
            Length::Fixed(value) => Ok(Amount::Fixed(*value)),
            Length::Drawn(dist) => {
                dist.validate().map_err(|error| LowerError::new(line, error.to_string()))?;
                Ok(self.builder.amount(Dist::clone(dist)))
            }
        }
    }

    /// What a forked task sets for itself; all else it inherits (`sched_fork`).
    fn own_attributes(&mut self, task: &TreeTask) -> Code {
        let mut code = Code::default();
        code.at(task.line);
        let spec = &task.spec;
        if let Some(path) = &spec.cgroup {
            code.op(Op::SetCgroup(self.builder.cgroup(path)));
        }
        if task.own.policy {
            code.op(Op::SetPolicy(spec.policy));
        }
        if task.own.nice {
            code.op(Op::SetNice(spec.nice));
        }
        if let Some(mask) = spec.affinity {
            code.op(Op::SetAffinity(self.builder.mask(mask)));
        }
        if let Some(slice) = spec.slice {
            code.op(Op::SetSlice(slice));
        }
        if spec.delay > 0 {
            code.op(Op::Sleep(crate::Amount::Fixed(spec.delay)));
        }
        code
    }
}

/// Indices of the tasks that some step forks.
fn fork_targets(tree: &Tree, tasks: &TaskNames<'_>) -> Result<Vec<usize>, LowerError> {
    let mut targets = Vec::new();
    for task in &tree.tasks {
        visit(&task.steps, &mut |step| {
            if let StepKind::Fork { task: name, .. } = &step.kind {
                targets.push(tasks.find(name, step.line)?);
            }
            Ok(())
        })?;
    }
    Ok(targets)
}

/// Indices of tasks by name; of equal names the first.
struct TaskNames<'a>(BTreeMap<&'a str, usize>);

impl<'a> TaskNames<'a> {
    fn of(tree: &'a Tree) -> Self {
        let tasks = tree.tasks.iter().enumerate().rev();
        TaskNames(tasks.map(|(index, task)| (task.spec.name.as_str(), index)).collect())
    }

    fn find(&self, name: &str, line: u32) -> Result<usize, LowerError> {
        self.0.get(name).copied().ok_or_else(|| {
            let error = LowerError::new(line, format!("there is no task `{name}`"));
            match closest(name, self.0.keys().copied()) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint("fork names a task of the same workload"),
            }
        })
    }
}

/// Deepest nesting of loops that a tree may have.
const MAX_DEPTH: usize = 64;

/// Calls `f` for every step, outer ones first.
fn visit<'a>(steps: &'a [Step], f: &mut impl FnMut(&'a Step) -> Result<(), LowerError>) -> Result<(), LowerError> {
    visit_at(steps, 0, f)
}

fn visit_at<'a>(
    steps: &'a [Step],
    depth: usize,
    f: &mut impl FnMut(&'a Step) -> Result<(), LowerError>,
) -> Result<(), LowerError> {
    for step in steps {
        f(step)?;
        if let StepKind::Loop { body, .. } = &step.kind {
            if depth >= MAX_DEPTH {
                return Err(LowerError::new(step.line, format!("loops are nested more than {MAX_DEPTH} deep")));
            }
            visit_at(body, depth + 1, f)?;
        }
    }
    Ok(())
}

/// Ranges of nice and priority.
fn check_attributes(task: &TreeTask) -> Result<(), LowerError> {
    steps::check_nice(task.spec.nice, task.line)?;
    if task.spec.slice.is_some_and(|slice| slice > 0) && matches!(task.spec.policy, Policy::Deadline(_)) {
        return Err(LowerError::new(task.line, "a SCHED_DEADLINE task with a slice").hint("its runtime is its slice"));
    }
    check_policy(task.spec.policy, task.line)
}

fn check_policy(policy: Policy, line: u32) -> Result<(), LowerError> {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) if !(1..=99).contains(&priority) => {
            Err(LowerError::new(line, format!("priority {priority} is outside 1..=99")))
        }
        Policy::Deadline(deadline) => deadline.check().map_err(|(what, hint)| LowerError::new(line, what).hint(hint)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
