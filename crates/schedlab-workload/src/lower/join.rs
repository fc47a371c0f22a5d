//! The main thread of a tree that ends: waits for every task, reports the time, finishes the workload.

use std::collections::BTreeMap;

use super::{Lowering, MAX_DEPTH};
use crate::build::Code;
use crate::verbs::{LowerError, Step, StepKind, Times};
use crate::{Better, MetricDecl, MetricKind, ObjectSpec, Op, TaskSpec, Unit};

/// Adds the main thread and returns the semaphore that every task gives before it exits.
pub(super) fn add_main(out: &mut Lowering<'_>) -> Result<u32, LowerError> {
    let tasks = Exits::of(out)?;
    let time = MetricDecl {
        name: "time".to_string(),
        help: "from the start until the last task has exited".to_string(),
        unit: Unit::Seconds,
        better: Better::Lower,
        kind: MetricKind::Headline,
        default_stats: Vec::new(),
        divide: 1,
        queueing: false,
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
    add_task(out, code);
    Ok(done)
}

fn add_task(out: &mut Lowering<'_>, code: Code) {
    let program = out.builder.program(&out.tree.name, code);
    out.builder.task(TaskSpec { name: out.tree.name.clone(), program, jitter: false, ..TaskSpec::default() });
}

/// Counts how many tasks will have exited at the end, forked ones included.
struct Exits<'o, 'a> {
    out: &'o Lowering<'a>,
    /// What is counted already, by task.
    known: Vec<Option<u64>>,
}

impl Exits<'_, '_> {
    fn of(out: &Lowering<'_>) -> Result<u64, LowerError> {
        let mut exits = Exits { out, known: vec![None; out.tree.tasks.len()] };
        let mut total: u64 = 0;
        for (index, task) in out.tree.tasks.iter().enumerate() {
            if task.spec.count > 0 {
                let each = exits.of_task(index, 0)?;
                total = total.saturating_add(each.saturating_mul(u64::from(task.spec.count)));
            }
        }
        Ok(total)
    }

    /// How many tasks exit because one task of this kind ran: itself and all it forks.
    fn of_task(&mut self, index: usize, depth: usize) -> Result<u64, LowerError> {
        if let Some(total) = self.known[index] {
            return Ok(total);
        }
        let task = &self.out.tree.tasks[index];
        if depth > MAX_DEPTH {
            let what = format!("forks of `{}` are nested more than {MAX_DEPTH} deep or endlessly", task.spec.name);
            return Err(LowerError::new(task.line, what));
        }
        let mut forks = BTreeMap::new();
        self.count_forks(&task.steps, 1, &mut forks)?;
        let mut total: u64 = 1;
        for (child, times) in forks {
            total = total.saturating_add(self.of_task(child, depth + 1)?.saturating_mul(times));
        }
        self.known[index] = Some(total);
        Ok(total)
    }

    /// Adds the forks of `steps`, each executed `times` times; true if they end in an exit.
    fn count_forks(&self, steps: &[Step], times: u64, forks: &mut BTreeMap<usize, u64>) -> Result<bool, LowerError> {
        for step in steps {
            let exits = match &step.kind {
                StepKind::Exit => true,
                StepKind::Fork { task, .. } => {
                    let index = self.out.tasks.find(task, step.line)?;
                    add(forks, index, times);
                    false
                }
                StepKind::Loop { times: Times::Count(0), .. } => false,
                StepKind::Loop { times: Times::Count(rounds), body } => {
                    let mut inner = BTreeMap::new();
                    let exits = self.count_forks(body, 1, &mut inner)?;
                    let rounds = if exits { 1 } else { u64::from(*rounds) };
                    inner
                        .into_iter()
                        .for_each(|(index, n)| add(forks, index, n.saturating_mul(rounds).saturating_mul(times)));
                    exits
                }
                StepKind::Loop { times: Times::Forever, body } => {
                    if !self.count_forks(body, times, forks)? {
                        return Err(LowerError::new(
                            step.line,
                            "an endless loop in a workload that must end by itself",
                        ));
                    }
                    true
                }
                _ => false,
            };
            if exits {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn add(forks: &mut BTreeMap<usize, u64>, index: usize, times: u64) {
    let entry = forks.entry(index).or_insert(0);
    *entry = entry.saturating_add(times);
}
