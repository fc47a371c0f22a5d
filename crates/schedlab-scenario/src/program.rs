//! Task programs in the scenario: reads the tables of steps into the tree of verbs that is common to all programs.

use schedlab_model::SEC;
use schedlab_workload::verbs::{NamedObject, Own, Step, StepKind, Times, Tree, TreeTask};
use schedlab_workload::{MemoryWork, ObjectSpec, SpinLockSpec, TaskKind, TaskMemory, TaskSpec, TimerMode};

use crate::attribute_values;
use crate::attributes::Attributes;
use crate::dist::amount;
use crate::error::Result;
use crate::kernel_sections;
use crate::keys::{OBJECT, REMOTE, TASK, WORKLOAD};
use crate::naming::word;
use crate::remote;
use crate::task_memory;
use crate::value::{Table, Value};

/// The maximum number of tasks of one kind.
const MOST_TASKS: i64 = 100_000;

/// Reads a workload with `program` or `task`.
pub(crate) fn tree(workload: &Table, name: &str, nr_cpus: usize) -> Result<Tree> {
    let mut tree = Tree { name: name.to_owned(), ..Tree::default() };
    for object in tables(workload, "object")? {
        tree.objects.push(named_object(&object.only(&OBJECT)?)?);
    }
    for table in tables(workload, "remote")? {
        tree.remotes.push(remote::read(&table.only(&REMOTE)?, nr_cpus)?);
    }
    if let Some(program) = workload.get("program") {
        let count = count_of(workload, 1..=MOST_TASKS)?;
        let memory = own_memory(workload)?;
        let spec = TaskSpec { name: name.to_owned(), count, memory, ..TaskSpec::default() };
        tree.tasks.push(TreeTask { line: program.line(), spec, own: Own::default(), steps: steps(&program, nr_cpus)? });
    }
    let tasks = tables(workload, "task")?;
    if let Some(value) = workload.get("memory").filter(|_| !tasks.is_empty()) {
        return Err(value.error("memory of a workload with several tasks").hint("state it in each [[workload.task]]"));
    }
    for table in tasks {
        tree.tasks.push(task(&table.only(&TASK)?, nr_cpus)?);
    }
    if tree.tasks.is_empty() {
        return Err(workload.error("there is no task").expected("a program, or [[workload.task]] tables"));
    }
    tree.ends = !tree.tasks.iter().any(|task| endless(&task.steps));
    Ok(tree)
}

fn tables<'a>(workload: &Table<'a>, key: &str) -> Result<Vec<Table<'a>>> {
    let Some(value) = workload.get(key) else { return Ok(Vec::new()) };
    let form = format!("[[{}.{key}]] tables", WORKLOAD.name.trim_matches(['[', ']']));
    value.array(&form)?.iter().map(|item| item.table(&form)).collect()
}

fn count_of(table: &Table, range: std::ops::RangeInclusive<i64>) -> Result<u32> {
    Ok(table.get("count").map(|value| value.integer(range)).transpose()?.unwrap_or(1) as u32)
}

fn task(table: &Table, nr_cpus: usize) -> Result<TreeTask> {
    let name = word(&table.require("name", "the task's name")?)?.to_owned();
    let mut spec = TaskSpec { name, count: count_of(table, 0..=MOST_TASKS)?, ..TaskSpec::default() };
    spec.process = table.get("process").map(|value| value.integer(0..=1_000_000)).transpose()?.unwrap_or(0) as u32;
    let attributes = Attributes::read(table, &[], nr_cpus)?;
    if let Some(value) = table.get("memory").filter(|_| spec.count == 0) {
        let error = value.error("memory of forked tasks is not modelled");
        return Err(error.hint("give memory only to tasks that are not forked"));
    }
    for (key, what) in [("working-set", "working set"), ("code", "code")] {
        if let Some(value) = table.get(key).filter(|_| spec.count == 0) {
            let message = format!("a forked task has the {what} of its parent");
            return Err(value.error(message).hint("state it of the parent"));
        }
    }
    attributes.apply(&mut spec);
    spec.memory = own_memory(table)?;
    let program = table.require("program", "an array of steps")?;
    Ok(TreeTask { line: table.line(), spec, own: attributes.own(), steps: steps(&program, nr_cpus)? })
}

fn own_memory(table: &Table) -> Result<Option<TaskMemory>> {
    table.get("memory").map(|value| task_memory::read(&value)).transpose()
}

fn named_object(table: &Table) -> Result<NamedObject> {
    let name = word(&table.require("name", "the object's name")?)?.to_owned();
    let kinds = ["pipe", "socket", "mutex", "barrier", "semaphore", "spinlock", "disk"];
    let kind = table.require("kind", "pipe, socket, mutex, barrier, semaphore, spinlock or disk")?;
    let kind = kind.choice(&kinds.map(|kind| (kind, kind)))?;
    let number = |key: &str, most: i64, default: i64| -> Result<u32> {
        let value = table.get(key).map(|value| value.integer(i64::from(key != "initial")..=most)).transpose()?;
        Ok(value.unwrap_or(default) as u32)
    };
    let flag = |key: &str| -> Result<bool> { Ok(table.get(key).map(|v| v.boolean()).transpose()?.unwrap_or(false)) };
    let (spec, keys): (_, &[&str]) = match kind {
        "pipe" => {
            (ObjectSpec::Pipe { pages: number("pages", 65536, 16)?, packet: flag("packet")? }, &["pages", "packet"])
        }
        "socket" => (ObjectSpec::UnixStream { sndbuf: number("sndbuf", 1 << 30, 212_992)? }, &["sndbuf"]),
        "mutex" => (ObjectSpec::Mutex { pi: flag("pi")? }, &["pi"]),
        "barrier" => {
            let parties = table.require("parties", "how many tasks meet there")?.integer(1..=MOST_TASKS)? as u32;
            (ObjectSpec::Barrier { parties }, &["parties"])
        }
        "disk" => {
            let depth = table.require("depth", "how many requests the disk serves at once")?.integer(1..=1024)? as u32;
            (ObjectSpec::Disk { depth }, &["depth"])
        }
        "spinlock" => (spinlock(table)?, &["spin", "sleep", "sleep-max", "slice-extension"]),
        _ => (ObjectSpec::Semaphore { initial: number("initial", 1_000_000, 0)? }, &["initial"]),
    };
    let line = table.line();
    table.clone().only_these(&[&["name", "kind"], keys].concat(), &format!("a {kind}"))?;
    Ok(NamedObject { line, name, spec })
}

/// Reads how a spinlock is waited for. Spinning for a limited time needs a sleep after it.
fn spinlock(table: &Table) -> Result<ObjectSpec> {
    let length = |key: &str| table.get(key).map(|value| value.duration(1..=SEC)).transpose();
    let (spin, sleep) = match (length("spin")?, length("sleep")?) {
        (None, None) => (0, 0),
        (Some(spin), Some(sleep)) => (spin, sleep),
        _ => {
            return Err(table
                .error("a spinlock with only one of spin and sleep")
                .expected("both, or neither (then it spins until it has the lock)"))
        }
    };
    let sleep_max = length("sleep-max")?.unwrap_or(0);
    if sleep_max > 0 && sleep_max < sleep.max(1) {
        return Err(table
            .error("sleep-max is shorter than sleep")
            .expected("a spinlock with sleep, and a longer sleep-max"));
    }
    let slice_extension = table.get("slice-extension").map(|value| value.boolean()).transpose()?.unwrap_or(false);
    Ok(ObjectSpec::SpinLock(SpinLockSpec { spin, sleep, sleep_max, slice_extension }))
}

fn endless(steps: &[Step]) -> bool {
    steps.iter().any(|step| match &step.kind {
        StepKind::Loop { times, body } => *times == Times::Forever || endless(body),
        _ => false,
    })
}

/// The verbs that are tables, each with its additional keys.
const VERBS: &[(&str, &[&str])] = &[
    ("run", &[]),
    ("runtime", &[]),
    ("system", &[]),
    ("call", &[]),
    ("fault", &["page", "clear", "major", "service"]),
    ("mmap", &[]),
    ("munmap", &[]),
    ("read-file", &[]),
    ("sleep", &[]),
    ("timer", &["period", "mode"]),
    ("read", &["bytes"]),
    ("write", &["bytes"]),
    ("wait", &[]),
    ("post", &[]),
    ("lock", &[]),
    ("unlock", &[]),
    ("barrier", &[]),
    ("sem-wait", &[]),
    ("sem-post", &[]),
    ("cond-wait", &["mutex"]),
    ("signal", &[]),
    ("broadcast", &[]),
    ("fork", &["as", "memory"]),
    ("nice", &[]),
    ("policy", &[]),
    ("cpus", &[]),
    ("slice", &[]),
    ("cgroup", &[]),
    ("loop", &["do"]),
    ("begin", &["at"]),
    ("end", &[]),
    ("send", &["sample"]),
    ("receive", &["sample"]),
    ("count", &["by"]),
];

const WORDS: &[(&str, StepKind)] = &[("yield", StepKind::Yield), ("exit", StepKind::Exit), ("reap", StepKind::Reap)];

fn steps(value: &Value, nr_cpus: usize) -> Result<Vec<Step>> {
    let items = value.array("an array of steps")?;
    if items.is_empty() {
        return Err(value.error("there is no step").expected("at least one step"));
    }
    items.iter().map(|item| Ok(Step::new(item.line(), step(item, nr_cpus)?))).collect()
}

fn step(value: &Value, nr_cpus: usize) -> Result<StepKind> {
    const FORM: &str = "a step such as { run = \"1ms\" } or \"yield\"";
    if let Some(name) = value.as_string() {
        let words = || WORDS.iter().map(|(word, _)| *word);
        return match WORDS.iter().find(|(word, _)| *word == name) {
            Some((_, kind)) => Ok(kind.clone()),
            None if VERBS.iter().any(|(verb, _)| *verb == name) => {
                Err(value.refuse("this step needs a value").expected(FORM))
            }
            None => Err(value.unknown("step", name, words())),
        };
    }
    let table = value.table(FORM)?;
    let entries = table.entries();
    let verbs: Vec<_> = VERBS.iter().filter(|(verb, _)| entries.iter().any(|(key, _)| key == verb)).collect();
    match verbs[..] {
        [(verb, companions)] => {
            let table = table.only_these(&[&[*verb], *companions].concat(), &format!("the step {verb}"))?;
            // The verb is one of the keys, so the value exists.
            let operand = table.require(verb, FORM)?;
            verb_step(verb, &operand, &table, nr_cpus)
        }
        [] => match entries.first() {
            Some((key, _)) => {
                let all = VERBS.iter().map(|(verb, _)| *verb);
                let error = table.key_error(key, format!("unknown step {}", crate::error::quote(key)));
                Err(error.expected(FORM).hint(schedlab_model::suggest(key, all)))
            }
            None => Err(table.error("an empty step").expected(FORM)),
        },
        [first, second, ..] => {
            let message = format!("\"{}\" and \"{}\" in one step", first.0, second.0);
            Err(table.error(message).expected("one step per table"))
        }
    }
}

fn verb_step(verb: &str, value: &Value, table: &Table, nr_cpus: usize) -> Result<StepKind> {
    let name = || word(value).map(str::to_owned);
    Ok(match verb {
        "run" => StepKind::Run(amount(value)?),
        "runtime" => StepKind::Runtime(amount(value)?),
        "system" => StepKind::System(amount(value)?),
        "call" => StepKind::Call(kernel_sections::read(value)?),
        "fault" => kernel_sections::fault(value, table)?,
        "mmap" => memory(MemoryWork::Mmap, value)?,
        "munmap" => memory(MemoryWork::Unmap, value)?,
        "read-file" => memory(MemoryWork::ReadFile, value)?,
        "sleep" => StepKind::Sleep(amount(value)?),
        "timer" => StepKind::Timer {
            timer: name()?,
            period: amount(&table.require("period", "the timer's period")?)?,
            mode: mode(table)?,
        },
        "read" => StepKind::Read { channel: name()?, bytes: bytes(table)? },
        "write" => StepKind::Write { channel: name()?, bytes: bytes(table)? },
        "wait" => StepKind::Wait(name()?),
        "post" => StepKind::Post(name()?),
        "lock" => StepKind::Lock(name()?),
        "unlock" => StepKind::Unlock(name()?),
        "barrier" => StepKind::Barrier(name()?),
        "sem-wait" => StepKind::SemWait(name()?),
        "sem-post" => StepKind::SemPost(name()?),
        "cond-wait" => {
            let mutex = word(&table.require("mutex", "the mutex held")?)?.to_owned();
            StepKind::CondWait { condition: name()?, mutex }
        }
        "signal" => StepKind::Signal(name()?),
        "broadcast" => StepKind::Broadcast(name()?),
        "fork" => StepKind::Fork {
            task: name()?,
            kind: task_kind(table)?,
            memory: table.get("memory").map(|value| kernel_sections::kib(&value)).transpose()?.unwrap_or(0),
        },
        "nice" => StepKind::Nice(attribute_values::nice(value)?),
        "policy" => StepKind::Policy(attribute_values::policy(value)?),
        "cpus" => StepKind::Affinity(attribute_values::cpus(value, nr_cpus)?),
        "slice" if value.as_string() == Some("0s") => StepKind::Slice(0),
        "slice" => StepKind::Slice(attribute_values::slice(value)?),
        "cgroup" if value.as_string() == Some("/") => StepKind::Cgroup("/".into()),
        "cgroup" => StepKind::Cgroup(crate::cgroup::path(value)?),
        "loop" => {
            StepKind::Loop { times: times(value)?, body: steps(&table.require("do", "an array of steps")?, nr_cpus)? }
        }
        "begin" => StepKind::SampleBegin { metric: name()?, at: other(table, "at")? },
        "send" => StepKind::Send { queue: name()?, sample: other(table, "sample")? },
        "receive" => StepKind::Receive { queue: name()?, sample: other(table, "sample")? },
        "end" => StepKind::SampleEnd(name()?),
        _ => {
            let by = table.get("by").map(|value| value.integer(1..=1_000_000)).transpose()?.unwrap_or(1);
            StepKind::Count { metric: name()?, count: by as u32 }
        }
    })
}

/// A second name in a step.
fn other(table: &Table, key: &str) -> Result<Option<String>> {
    table.get(key).map(|value| word(&value).map(str::to_owned)).transpose()
}

fn memory(work: MemoryWork, value: &Value) -> Result<StepKind> {
    Ok(StepKind::Memory { work, kib: kernel_sections::kib(value)?, times: 1 })
}

fn times(value: &Value) -> Result<Times> {
    match value.as_string() {
        Some("forever") => Ok(Times::Forever),
        Some(other) => Err(value.unknown("count", other, ["forever"]).expected("a count or \"forever\"")),
        None => Ok(Times::Count(value.integer(0..=i64::from(u32::MAX))? as u32)),
    }
}

fn mode(table: &Table) -> Result<TimerMode> {
    let modes = [("relative", TimerMode::Relative), ("absolute", TimerMode::Absolute), ("skip", TimerMode::Skip)];
    Ok(table.get("mode").map(|value| value.choice(&modes)).transpose()?.unwrap_or(TimerMode::Relative))
}

fn task_kind(table: &Table) -> Result<TaskKind> {
    let kinds = [("process", TaskKind::Process), ("thread", TaskKind::Thread), ("vfork", TaskKind::Vfork)];
    Ok(table.get("as").map(|value| value.choice(&kinds)).transpose()?.unwrap_or(TaskKind::Process))
}

fn bytes(table: &Table) -> Result<u32> {
    Ok(table.get("bytes").map(|value| value.integer(1..=1 << 20)).transpose()?.unwrap_or(1) as u32)
}
