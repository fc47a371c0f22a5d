//! Symbolic names of a tree and the numbers they become.

use std::collections::BTreeMap;

use super::visit;
use crate::build::Builder;
use crate::verbs::{LowerError, StepKind, Tree};
use crate::{Better, MetricDecl, MetricKind, ObjectId, ObjectSpec, SpinLockSpec, Unit};
use schedlab_model::closest;

/// Kinds of objects as verbs see them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Channel,
    Futex,
    Mutex,
    Barrier,
    Semaphore,
    Condition,
    Timer,
    Queue,
    SpinLock,
    KernelLock,
    Disk,
    Other,
}

impl Kind {
    fn of(spec: &ObjectSpec) -> Kind {
        match spec {
            ObjectSpec::Pipe { .. } | ObjectSpec::UnixStream { .. } => Kind::Channel,
            ObjectSpec::Futex => Kind::Futex,
            ObjectSpec::Mutex { .. } => Kind::Mutex,
            ObjectSpec::Barrier { .. } => Kind::Barrier,
            ObjectSpec::Semaphore { .. } => Kind::Semaphore,
            ObjectSpec::Condition => Kind::Condition,
            ObjectSpec::Timer => Kind::Timer,
            ObjectSpec::Queue => Kind::Queue,
            ObjectSpec::List | ObjectSpec::Gate | ObjectSpec::CpuLocks => Kind::Other,
            ObjectSpec::FutexQueue | ObjectSpec::PiFutex => Kind::Other,
            ObjectSpec::SpinLock(_) => Kind::SpinLock,
            ObjectSpec::KernelLock => Kind::KernelLock,
            ObjectSpec::Disk { .. } => Kind::Disk,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Kind::Channel => "a pipe or socket",
            Kind::Futex => "a futex word (wait, post)",
            Kind::Mutex => "a mutex",
            Kind::Barrier => "a barrier",
            Kind::Semaphore => "a semaphore",
            Kind::Condition => "a condition",
            Kind::Timer => "a timer",
            Kind::Queue => "a queue (send, receive)",
            Kind::SpinLock => "a spinlock",
            Kind::KernelLock => "a spinlock of the kernel",
            Kind::Disk => "a disk",
            Kind::Other => "an object without a verb",
        }
    }
}

/// Names of objects and metrics.
pub(crate) struct Names {
    objects: BTreeMap<String, (ObjectId, Kind)>,
    metrics: BTreeMap<String, u16>,
    parties: BTreeMap<String, Parties>,
}

/// Who names an undeclared barrier.
#[derive(Clone, Copy)]
enum Parties {
    Count(u32),
    /// A task of unknown number names it.
    Unknown,
}

impl Names {
    /// Numbers what the tree declares.
    pub fn declare(tree: &Tree, builder: &mut Builder) -> Result<Names, LowerError> {
        let mut names = Names { objects: BTreeMap::new(), metrics: BTreeMap::new(), parties: parties(tree)? };
        for object in &tree.objects {
            let id = builder.object(object.name.clone(), object.spec.clone());
            let known = names.objects.insert(object.name.clone(), (id, Kind::of(&object.spec)));
            if known.is_some() {
                return Err(LowerError::new(object.line, format!("object `{}` is declared twice", object.name)));
            }
        }
        for metric in &tree.metrics {
            let id = builder.metric(metric.clone());
            names.metrics.insert(metric.name.clone(), id);
        }
        Ok(names)
    }

    /// The object of this name and kind, created with default parameters if it is not declared.
    pub fn object(&mut self, builder: &mut Builder, name: &str, kind: Kind, line: u32) -> Result<ObjectId, LowerError> {
        match self.objects.get(name) {
            Some((id, known)) if *known == kind => return Ok(*id),
            Some((_, known)) => {
                let what = format!("`{name}` is {}, not {}", known.word(), kind.word());
                return Err(LowerError::new(line, what).hint("an object has only one kind; use two names"));
            }
            None => {}
        }
        let id = builder.object(name.to_string(), self.default_spec(name, kind, line)?);
        self.objects.insert(name.to_string(), (id, kind));
        Ok(id)
    }

    /// The spinlock of this name with its metric, if a spinlock is declared under it.
    pub fn spinlock(&mut self, builder: &mut Builder, name: &str) -> Option<(ObjectId, u16)> {
        let (id, _) = *self.objects.get(name).filter(|(_, kind)| *kind == Kind::SpinLock)?;
        Some((id, self.spin_metric(builder, name)))
    }

    /// The spinlock of the kernel of this name, with its metric.
    pub fn kernel_lock(&mut self, builder: &mut Builder, name: &str, line: u32) -> Result<(ObjectId, u16), LowerError> {
        let id = self.object(builder, name, Kind::KernelLock, line)?;
        Ok((id, self.spin_metric(builder, name)))
    }

    fn spin_metric(&mut self, builder: &mut Builder, name: &str) -> u16 {
        self.declared(
            builder,
            MetricDecl {
                name: format!("{name}.spin"),
                help: "CPU time of a task that spun for the lock, until it had it".to_string(),
                unit: Unit::Microseconds,
                better: Better::Lower,
                kind: MetricKind::Samples,
                default_stats: ["mean", "p99"].map(String::from).to_vec(),
                divide: 1,
                queueing: false,
            },
        )
    }

    /// The default parameters of an object that is not declared.
    fn default_spec(&self, name: &str, kind: Kind, line: u32) -> Result<ObjectSpec, LowerError> {
        Ok(match kind {
            Kind::Channel | Kind::Other => ObjectSpec::Pipe { pages: 16, packet: false },
            Kind::Futex => ObjectSpec::Futex,
            Kind::Mutex => ObjectSpec::Mutex { pi: false },
            Kind::Semaphore => ObjectSpec::Semaphore { initial: 0 },
            Kind::Condition => ObjectSpec::Condition,
            Kind::Timer => ObjectSpec::Timer,
            Kind::Queue => ObjectSpec::Queue,
            Kind::SpinLock => ObjectSpec::SpinLock(SpinLockSpec::default()),
            Kind::KernelLock => ObjectSpec::KernelLock,
            Kind::Disk => {
                let what = format!("disk `{name}` is not declared");
                return Err(LowerError::new(line, what).hint("declare it with its depth"));
            }
            Kind::Barrier => match self.parties.get(name) {
                Some(Parties::Count(parties)) => ObjectSpec::Barrier { parties: *parties },
                Some(Parties::Unknown) | None => {
                    let what =
                        format!("barrier `{name}` is used by forked tasks, so the number of its parties is unknown");
                    return Err(LowerError::new(line, what).hint("declare the barrier with parties"));
                }
            },
        })
    }

    /// The metric of this declaration's name, the user's own declaration first.
    pub fn declared(&mut self, builder: &mut Builder, decl: MetricDecl) -> u16 {
        let name = decl.name.clone();
        *self.metrics.entry(name).or_insert_with(|| builder.metric(decl))
    }

    /// The metric that a step samples.
    pub fn sampled(&mut self, builder: &mut Builder, name: &str, line: u32) -> Result<u16, LowerError> {
        let decl = || MetricDecl {
            name: name.to_string(),
            help: "time between begin and end in the program".to_string(),
            unit: Unit::Microseconds,
            better: Better::Lower,
            kind: MetricKind::Samples,
            default_stats: ["p50", "p99", "max"].map(String::from).to_vec(),
            divide: 1,
            queueing: false,
        };
        self.metric(builder, name, line, &[MetricKind::Samples, MetricKind::Headline], "sampled", decl)
    }

    /// The metric that a step counts.
    pub fn counted(&mut self, builder: &mut Builder, name: &str, line: u32) -> Result<u16, LowerError> {
        let decl = || MetricDecl {
            name: name.to_string(),
            help: "operations completed".to_string(),
            unit: Unit::PerSecond,
            better: Better::Higher,
            kind: MetricKind::Rate,
            default_stats: Vec::new(),
            divide: 1,
            queueing: false,
        };
        self.metric(builder, name, line, &[MetricKind::Rate], "counted", decl)
    }

    /// The declared metrics of which a task of this name has one of its own, `NAME.METRIC`, with that one.
    pub(crate) fn of_task(&self, task: &str) -> BTreeMap<u16, u16> {
        let prefix = format!("{task}.");
        let own = self.metrics.range(prefix.clone()..).map_while(|(name, id)| Some((name.strip_prefix(&prefix)?, *id)));
        own.filter_map(|(metric, id)| Some((*self.metrics.get(metric)?, id))).collect()
    }

    fn metric(
        &mut self,
        builder: &mut Builder,
        name: &str,
        line: u32,
        kinds: &[MetricKind],
        verb: &str,
        decl: impl FnOnce() -> MetricDecl,
    ) -> Result<u16, LowerError> {
        let id = match self.metrics.get(name) {
            Some(id) => *id,
            None if self.metrics.len() >= usize::from(u16::MAX) => {
                return Err(LowerError::new(line, "a workload has at most 65535 metrics"));
            }
            None => *self.metrics.entry(name.to_string()).or_insert(builder.metric(decl())),
        };
        let kind = builder.metrics()[usize::from(id)].kind;
        if !kinds.contains(&kind) {
            let error = LowerError::new(line, format!("metric `{name}` cannot be {verb}: its kind is {kind:?}"));
            let others = self.metrics.keys().map(String::as_str).filter(|other| *other != name);
            return Err(match closest(name, others) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint("a metric is either sampled or counted"),
            });
        }
        Ok(id)
    }
}

/// How many tasks name each barrier.
fn parties(tree: &Tree) -> Result<BTreeMap<String, Parties>, LowerError> {
    let mut parties: BTreeMap<String, Parties> = BTreeMap::new();
    for task in &tree.tasks {
        let mut own: Vec<String> = Vec::new();
        visit(&task.steps, &mut |step| {
            if let StepKind::Barrier(name) = &step.kind {
                own.push(name.clone());
            }
            Ok(())
        })?;
        own.sort_unstable();
        own.dedup();
        for name in own {
            let entry = parties.entry(name).or_insert(Parties::Count(0));
            *entry = match *entry {
                Parties::Count(n) if task.spec.count > 0 => Parties::Count(n.saturating_add(task.spec.count)),
                _ => Parties::Unknown,
            };
        }
    }
    Ok(parties)
}
