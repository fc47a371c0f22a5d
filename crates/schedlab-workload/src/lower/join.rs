//! The main thread of a tree that ends: waits for every task, reports the time, finishes the workload.

use std::collections::BTreeMap;

use super::{task_named, Lowering, MAX_DEPTH};
use crate::build::Code;
use crate::verbs::{LowerError, Step, StepKind, Times, Tree};
use crate::{Better, MetricDecl, MetricKind, ObjectSpec, Op, TaskSpec, Unit};

/// Adds the main thread and returns the semaphore that every task gives before it exits.
pub(super) fn add_main(out: &mut Lowering<'_>) -> Result<u32, LowerError> {
    let tasks = exits(out.tree)?;
    let time = MetricDecl {
        name: "time".to_string(),
        help: "from the start until the last task has exited".to_string(),
        unit: Unit::Seconds,
        better: Better::Lower,
        kind: MetricKind::Headline,
        default_stats: Vec::new(),
        divide: 1,
    };
    let metric = out.names.declared(&mut out.builder, time);
    let done = out.builder.object("exit of the tasks".to_string(), ObjectSpec::Semaphore { initial: 0 });
    let (begin, counter) = (0, 1);
    let mut code = Code::default();
    code.op(Op::Clock(begin));
    code.repeat(counter, tasks, |code| code.op(Op::SemWait(done)));
    code.elapsed(counter, begin);
    code.op(Op::Sample { metric, reg: counter });
    code.op(Op::Finish);
    let program = out.builder.program(&out.tree.name, code);
    out.builder.task(TaskSpec { name: out.tree.name.clone(), program, jitter: false, ..TaskSpec::default() });
    Ok(done)
}

/// How many tasks will have exited at the end, forked ones included.
fn exits(tree: &Tree) -> Result<u64, LowerError> {
    let mut total: u64 = 0;
    let mut known = vec![None; tree.tasks.len()];
    for (index, task) in tree.tasks.iter().enumerate() {
        if task.spec.count > 0 {
            let each = exits_of(tree, index, 0, &mut known)?;
            total = total.saturating_add(each.saturating_mul(u64::from(task.spec.count)));
        }
    }
    Ok(total)
}

/// How many tasks exit because one task of this kind ran: itself and all it forks. `known` holds what is counted.
fn exits_of(tree: &Tree, index: usize, depth: usize, known: &mut [Option<u64>]) -> Result<u64, LowerError> {
    if let Some(total) = known[index] {
        return Ok(total);
    }
    let task = &tree.tasks[index];
    if depth > MAX_DEPTH {
        let what = format!("forks of `{}` are nested more than {MAX_DEPTH} deep, or never end", task.spec.name);
        return Err(LowerError::new(task.line, what));
    }
    let mut forks = BTreeMap::new();
    count_forks(tree, &task.steps, 1, &mut forks)?;
    let mut total: u64 = 1;
    for (child, times) in forks {
        total = total.saturating_add(exits_of(tree, child, depth + 1, known)?.saturating_mul(times));
    }
    known[index] = Some(total);
    Ok(total)
}

/// Adds the forks of `steps`, each executed `times` times; true if they end in an exit.
fn count_forks(tree: &Tree, steps: &[Step], times: u64, forks: &mut BTreeMap<usize, u64>) -> Result<bool, LowerError> {
    for step in steps {
        match &step.kind {
            StepKind::Exit => return Ok(true),
            StepKind::Fork { task, .. } => {
                let index = task_named(tree, task, step.line)?;
                let entry = forks.entry(index).or_insert(0);
                *entry = entry.saturating_add(times);
            }
            StepKind::Loop { times: Times::Count(0), .. } => {}
            StepKind::Loop { times: Times::Count(n), body } => {
                let mut inner = BTreeMap::new();
                let exits = count_forks(tree, body, 1, &mut inner)?;
                let rounds = if exits { 1 } else { u64::from(*n) };
                for (index, count) in inner {
                    let entry = forks.entry(index).or_insert(0);
                    *entry = entry.saturating_add(count.saturating_mul(rounds).saturating_mul(times));
                }
                if exits {
                    return Ok(true);
                }
            }
            StepKind::Loop { times: Times::Forever, body } => {
                if !count_forks(tree, body, times, forks)? {
                    let what = "a loop for ever in a workload that is to end by itself";
                    return Err(LowerError::new(step.line, what));
                }
                return Ok(true);
            }
            _ => {}
        }
    }
    Ok(false)
}
