//! A task set as the program rt-app reads it: fragments merged, repeated keys numbered, shorthands spelled out. Where
//! the program writes its log, and how fast it is, is the caller's to add.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::event::{kind_of, Event};
use super::json::{Json, Member, Node};
use super::merge::Sections;
use super::parsed::Task;

/// A task set for the program rt-app, and what its log contains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskSet {
    tasks: String,
    resources: String,
    global: String,
    /// The speed of the calibrated work.
    pub calibration: Calibration,
    /// A key that version 1.0 of the program does not have.
    pub later: Option<&'static str>,
    /// The tasks whose threads have logs.
    pub logged: Vec<LoggedTask>,
}

/// How long a loop of the calibrated work takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Calibration {
    /// So many ns.
    NsPerLoop(u64),
    /// As long as measured on this CPU.
    Cpu(u32),
}

/// A task of a [`TaskSet`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedTask {
    /// Its name in the task set, where every name is unique.
    pub written: String,
    /// Its name in the file.
    pub name: String,
    /// The log's column `run`.
    pub run: Column,
    /// The columns `wu_lat` and `slack`.
    pub timer: Column,
}

/// What a row of the log, which is about one pass through a phase, says of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// Nothing: the task has no such event, or the metric leaves it out.
    Nothing,
    /// One sample.
    Sample,
    /// A value for several events together.
    Several,
}

/// Keys of the global section that the caller sets, or that concern files of the program which nobody reads.
const NOT_PASSED: [&str; 7] = ["calibration", "logdir", "log_basename", "log_size", "gnuplot", "ftrace", "frag"];

impl TaskSet {
    /// The task set of a file. `followed` has, for each of its `tasks`, the timers that its metrics follow.
    pub(super) fn new(sections: &Sections, tasks: &[Task], followed: &[Vec<&str>], calibration: Calibration) -> Self {
        let names = unique(sections.tasks.iter().map(|task| task.key.as_str()));
        let members = sections.tasks.iter().zip(&names).map(|(task, name)| member(name, &written_task(task)));
        let global = sections.global.iter().filter(|member| !NOT_PASSED.contains(&member.key.as_str()));
        let logged = tasks.iter().zip(&names).zip(followed).map(|((task, written), followed)| LoggedTask {
            written: written.clone(),
            name: task.name.clone(),
            run: task.column(|event| matches!(event, Event::Run(_) | Event::Runtime(_)), |_| true),
            timer: task.column(
                |event| matches!(event, Event::Timer { .. }),
                |event| matches!(event, Event::Timer { name, .. } if followed.contains(&name.as_str())),
            ),
        });
        TaskSet {
            tasks: object(members),
            resources: object(last_of_each(&sections.resources).map(|one| member(&one.key, &text(&one.value)))),
            global: global.map(|one| member(&one.key, &text(&one.value)) + ",").collect(),
            calibration,
            later: sections.tasks.iter().find_map(later),
            logged: logged.collect(),
        }
    }

    /// The file for the program, which writes its logs as `DIRECTORY/PREFIX-TASK-NUMBER.log`.
    #[must_use]
    pub fn json(&self, directory: &str, prefix: &str, ns_per_loop: u64) -> String {
        let [directory, prefix] = [directory, prefix].map(quoted);
        let TaskSet { tasks, resources, global, .. } = self;
        format!(
            "{{\"tasks\":{tasks},\"resources\":{resources},\"global\":{{{global}\"calibration\":{ns_per_loop},\
             \"logdir\":{directory},\"log_basename\":{prefix},\"gnuplot\":false,\"ftrace\":false}}}}\n"
        )
    }
}

impl Task {
    /// The column of the events for which `is` holds, of which the metrics have those for which `sampled` holds.
    fn column(&self, is: impl Fn(&Event) -> bool, sampled: impl Fn(&Event) -> bool) -> Column {
        let of_phase = |events: &[(_, Event)]| events.iter().filter(|(_, event)| is(event)).count();
        let most = self.phases.iter().map(|phase| of_phase(&phase.events)).max().unwrap_or(0);
        let events = || self.events().map(|(_, event)| event).filter(|event| is(event));
        match (most, events().any(&sampled)) {
            (_, false) => Column::Nothing,
            (1, true) if events().all(sampled) => Column::Sample,
            _ => Column::Several,
        }
    }
}

/// A task with its phases spelled out: version 1.0 repeats a task without phases `loop` times `loop` times.
fn written_task(task: &Member) -> String {
    let Json::Object(members) = &task.value.json else { return text(&task.value) };
    let (phases, own): (Vec<&Member>, Vec<&Member>) = members.iter().partition(|member| member.key == "phases");
    let Some(phases) = phases.first() else {
        let (mut inside, outside): (Vec<&Member>, Vec<&Member>) =
            own.into_iter().partition(|member| kind_of(&member.key).is_some());
        let (loops, outside): (Vec<&Member>, Vec<&Member>) =
            outside.into_iter().partition(|member| member.key == "loop");
        let times = if loops.is_empty() { "-1" } else { "1" };
        inside.extend(loops);
        let phase = object([member("p1", &events(&inside, &task.key))]);
        let properties = outside.iter().map(|one| member(&one.key, &text(&one.value)));
        return object(properties.chain([member("loop", times), member("phases", &phase)]));
    };
    let Json::Object(inner) = &phases.value.json else { return text(&task.value) };
    let names = unique(inner.iter().map(|phase| phase.key.as_str()));
    let of_phase = |phase: &Member| match &phase.value.json {
        Json::Object(members) => events(&members.iter().collect::<Vec<_>>(), &task.key),
        _ => text(&phase.value),
    };
    let inner = inner.iter().zip(&names).map(|(phase, name)| member(name, &of_phase(phase)));
    let phases = member("phases", &object(inner));
    object(own.iter().map(|one| member(&one.key, &text(&one.value))).chain([phases]))
}

/// The members of a phase. Keys of events are numbered where they repeat, and `suspend` alone names its task.
fn events(members: &[&Member], task: &str) -> String {
    let names = unique(members.iter().map(|member| member.key.as_str()));
    object(members.iter().zip(&names).map(|(one, name)| match one.value.json {
        Json::Absent => member(name, &quoted(task)),
        _ => member(name, &text(&one.value)),
    }))
}

/// The names, each once: a repeated one is followed by a number.
fn unique<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut taken: BTreeSet<String> = names.clone().map(str::to_owned).collect();
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    let one = |name: &'a str| {
        let number = last.entry(name).or_insert(0);
        if *number == 0 {
            *number = 1;
            return name.to_owned();
        }
        loop {
            *number += 1;
            let numbered = format!("{name}_{number}");
            if taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    };
    names.map(one).collect()
}

/// What of a task version 1.0 of the program does not have.
fn later(task: &Member) -> Option<&'static str> {
    let Json::Object(members) = &task.value.json else { return None };
    let has = |members: &[Member], key: &str| members.iter().any(|member| member.key == key);
    let is = |member: &Member, values: &[&str]| matches!(&member.value.json, Json::Text(text) if values.contains(&text.as_str()));
    let deadline = |members: &[Member]| members.iter().any(|member| is(member, &["SCHED_DEADLINE"]));
    let phases = members.iter().find(|member| member.key == "phases").and_then(|phases| phases.value.members());
    let phases = phases.unwrap_or_default().iter().filter_map(|phase| phase.value.members());
    let levels = || std::iter::once(&members[..]).chain(phases.clone());
    let keys = || levels().flatten().map(|member| member.key.as_str());
    let event = |wanted: &str| keys().any(|key| kind_of(key) == Some(wanted));
    let findings = [
        (event("fork"), "fork"),
        (event("sem_post") || event("sem_wait"), "sem_post and sem_wait"),
        (keys().any(|key| key == "taskgroup"), "taskgroup"),
        (levels().flatten().any(|member| is(member, &["SCHED_BATCH", "SCHED_IDLE"])), "SCHED_BATCH and SCHED_IDLE"),
        (levels().any(|members| has(members, "dl-runtime") && !deadline(members)), "dl-runtime as a slice"),
        (phases.clone().any(|phase| has(phase, "priority") || has(phase, "policy")), "policy and priority of a phase"),
        (members.iter().any(|member| member.key == "instance" && member.value.json == Json::Int(0)), "instance 0"),
    ];
    findings.into_iter().find(|(found, _)| *found).map(|(_, what)| what)
}

impl Node {
    fn members(&self) -> Option<&[Member]> {
        match &self.json {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }
}

fn quoted(text: impl AsRef<str>) -> String {
    Value::from(text.as_ref()).to_string()
}

fn member(key: &str, value: &str) -> String {
    format!("{}:{value}", quoted(key))
}

fn object(members: impl IntoIterator<Item = String>) -> String {
    format!("{{{}}}", members.into_iter().collect::<Vec<_>>().join(","))
}

/// Of members with one key the program reads the last.
fn last_of_each(members: &[Member]) -> impl Iterator<Item = &Member> {
    let last: BTreeMap<&str, &Member> = members.iter().map(|one| (one.key.as_str(), one)).collect();
    members.iter().filter(move |one| last.get(one.key.as_str()).is_some_and(|last| std::ptr::eq(*last, *one)))
}

/// A value as strict JSON.
fn text(node: &Node) -> String {
    match &node.json {
        Json::Absent | Json::Null => "null".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Int(value) => value.to_string(),
        Json::Float(value) => Value::from(*value).to_string(),
        Json::Text(value) => quoted(value),
        Json::Array(nodes) => format!("[{}]", nodes.iter().map(text).collect::<Vec<_>>().join(",")),
        Json::Object(members) => object(last_of_each(members).map(|one| member(&one.key, &text(&one.value)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtapp::{read, Source};

    fn of(tasks: &str, global: &str) -> TaskSet {
        let text = format!("{{ \"tasks\" : {{ {tasks} }}, \"global\" : {{ {global} }} }}");
        read("w", &[Source { name: "f", bytes: text.as_bytes() }], 4).unwrap().task_set
    }

    #[test]
    fn shorthands_are_spelled_out() {
        let set = of(
            r#""a" : { "priority" : 3, "loop" : 2, "suspend", "run" : 1, "run_2" : 2, "run" : 3, },
               "b" : { "phases" : { "p" : { "cpus" : [0, 1], "sleep" : 4 } } }"#,
            r#""duration" : 5, "log_size" : "file", "logdir" : "./", "calibration" : "CPU3", "pi_enabled" : true"#,
        );
        assert_eq!(set.calibration, Calibration::Cpu(3));
        let want = concat!(
            r#"{"tasks":{"a":{"priority":3,"loop":1,"phases":{"p1":{"suspend":"a","run":1,"run_2":2,"run_3":3,"loop":2}}},"#,
            r#""b":{"phases":{"p":{"cpus":[0,1],"sleep":4}}}},"resources":{},"#,
            r#""global":{"duration":5,"pi_enabled":true,"calibration":7,"logdir":"/t\"x","log_basename":"log","#,
            r#""gnuplot":false,"ftrace":false}}"#,
            "\n"
        );
        assert_eq!(set.json("/t\"x", "log", 7), want);
    }

    #[test]
    fn a_resource_that_is_declared_twice_is_written_once() {
        let file = r#"{ "tasks" : { "a" : { "run" : 1 } }, "resources" : { "m" : { "type" : "mutex" }, "n" : { "type" : "wait" },
            "m" : { "type" : "signal" } } }"#;
        let set = read("w", &[Source { name: "f", bytes: file.as_bytes() }], 4).unwrap().task_set;
        let text = set.json("/t", "log", 1);
        assert!(text.contains(r#""resources":{"n":{"type":"wait"},"m":{"type":"signal"}},"#), "{text}");
    }

    #[test]
    fn what_a_row_adds_up_is_known() {
        use Column::{Nothing, Sample, Several};
        let unique = |name: &str, number: u32| format!(r#""timer{number}" : {{ "ref" : "{name}", "period" : 9 }}"#);
        let cases = [
            (r#""a" : { "run" : 1, "sleep" : 2 }"#.to_owned(), (Sample, Nothing)),
            (r#""a" : { "run" : 1, "runtime" : 2 }"#.to_owned(), (Several, Nothing)),
            (r#""a" : { "phases" : { "p" : { "run" : 1 }, "q" : { "run" : 2 } } }"#.to_owned(), (Sample, Nothing)),
            (format!(r#""a" : {{ {} }}"#, unique("unique", 0)), (Nothing, Sample)),
            (format!(r#""a" : {{ {}, {} }}"#, unique("t", 0), unique("u", 1)), (Nothing, Several)),
            // The metrics leave out a timer that several threads use.
            (format!(r#""a" : {{ "instance" : 2, {} }}"#, unique("t", 0)), (Nothing, Nothing)),
        ];
        for (tasks, want) in cases {
            let task = &of(&tasks, "").logged[0];
            assert_eq!((task.run, task.timer), want, "{tasks}");
        }
    }

    #[test]
    fn what_version_1_0_lacks_is_found() {
        let cases = [
            (r#""a" : { "run" : 1, "policy" : "SCHED_FIFO", "priority" : 5 }"#, None),
            (r#""a" : { "run" : 1, "fork" : "a" }"#, Some("fork")),
            (r#""a" : { "sem_wait" : "s" }"#, Some("sem_post and sem_wait")),
            (r#""a" : { "run" : 1, "taskgroup" : "/g" }"#, Some("taskgroup")),
            (r#""a" : { "run" : 1, "policy" : "SCHED_IDLE" }"#, Some("SCHED_BATCH and SCHED_IDLE")),
            (r#""a" : { "run" : 1, "dl-runtime" : 500 }"#, Some("dl-runtime as a slice")),
            (r#""a" : { "run" : 1, "policy" : "SCHED_DEADLINE", "dl-runtime" : 500, "dl-period" : 5000 }"#, None),
            (r#""a" : { "phases" : { "p" : { "run" : 1, "priority" : 2 } } }"#, Some("policy and priority of a phase")),
            (r#""b" : { "run" : 1 }, "a" : { "run" : 1, "instance" : 0 }"#, Some("instance 0")),
        ];
        for (tasks, want) in cases {
            assert_eq!(of(tasks, "").later, want, "{tasks}");
        }
    }
}
