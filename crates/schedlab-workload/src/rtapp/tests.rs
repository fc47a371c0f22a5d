use super::*;
use crate::{Amount, ObjectSpec, Op, Policy};
use schedlab_model::USEC;

fn parse(text: &str) -> Result<RtApp, RtAppError> {
    read("w", &[Source { name: "f.json", bytes: text.as_bytes() }], 4)
}

fn workload(text: &str) -> Workload {
    parse(text).unwrap_or_else(|error| panic!("{}:{}: {}: {error}", error.line, error.column, error.key)).workload
}

/// The operations of the first task's program, without those that measure.
fn ops(text: &str) -> Vec<Op> {
    let program = workload(text).programs.swap_remove(0);
    let measures = |op: &Op| matches!(op, Op::Clock(_) | Op::SubReg { .. } | Op::Sample { .. });
    program.ops.into_iter().filter(|op| !measures(op)).collect()
}

#[test]
fn events_become_operations() {
    let run = |ns| Op::Run(Amount::Fixed(ns));
    let cases: &[(&str, &[Op])] = &[
        (r#""loop": 1, "run0": 5"#, &[run(5_000), Op::SemPost(0)]),
        (r#""loop": 1, "runtime": 50"#, &[Op::RunWall(Amount::Fixed(64_000)), Op::SemPost(0)]),
        (r#""loop": 1, "sleep_a": 7, "yield": """#, &[Op::Sleep(Amount::Fixed(7_000)), Op::Yield, Op::SemPost(0)]),
        (r#""loop": 1, "sem_post": "s", "sem_wait": "s""#, &[Op::SemPost(1), Op::SemWait(1), Op::SemPost(0)]),
        (
            r#""loop": 1, "lock": "m", "sync": {"ref": "c", "mutex": "m"}, "unlock": "m""#,
            &[Op::Lock(1), Op::CondSignal(2), Op::CondWait { object: 2, mutex: 1 }, Op::Unlock(1), Op::SemPost(0)],
        ),
        (
            r#""loop": 1, "suspend""#,
            &[Op::Lock(1), Op::CondWait { object: 2, mutex: 1 }, Op::Unlock(1), Op::SemPost(0)],
        ),
        (r#""loop": 1, "resume": "t""#, &[Op::Lock(1), Op::CondBroadcast(2), Op::Unlock(1), Op::SemPost(0)]),
    ];
    for (events, want) in cases {
        let got = ops(&format!(r#"{{"tasks": {{"t": {{{events}}}}}}}"#));
        assert_eq!(&got, want, "{events}");
    }
}

#[test]
fn loops_nest_and_negative_counts_are_endless() {
    let cases: &[(&str, &str, bool)] = &[
        (r#""run": 1"#, "no loop: for ever", false),
        (r#""loop": 3, "run": 1"#, "three times", true),
        (r#""loop": -1, "run": 1"#, "for ever", false),
        (r#""phases": {"p": {"run": 1}}"#, "phases for ever", false),
        (r#""loop": 2, "phases": {"p": {"loop": 3, "run": 1}, "q": {"run": 1}}"#, "ends", true),
        (r#""loop": 2, "phases": {"p": {"loop": 0, "run": 1}}"#, "a phase's 0 never ends", false),
        (r#""loop": 0, "phases": {"p": {"run": 1}}"#, "never runs", true),
    ];
    for (task, what, ends) in cases {
        assert_eq!(workload(&format!(r#"{{"tasks": {{"t": {{{task}}}}}}}"#)).ends, *ends, "{what}");
    }
}

#[test]
fn the_global_duration_has_precedence_over_the_end_of_the_tasks() {
    let read = parse(r#"{"tasks": {"t": {"loop": 1, "run": 1}}, "global": {"duration": 2}}"#).unwrap();
    assert_eq!((read.duration, read.workload.ends), (Some(2_000_000_000), false));
    let forever = parse(r#"{"tasks": {"t": {"loop": 1, "run": 1}}, "global": {"duration": -1}}"#).unwrap();
    assert_eq!((forever.duration, forever.workload.ends), (None, true));
}

#[test]
fn calibrated_work_is_whole_loops() {
    let text = r#"{"tasks": {"t": {"loop": 1, "run": 1000}}, "global": {"calibration": 300}}"#;
    assert_eq!(ops(text)[0], Op::Run(Amount::Fixed(999_900)));
}

#[test]
fn properties_reach_the_task_and_its_phases() {
    let text = r#"{"tasks": {"t": {"instance": 3, "delay": 10, "priority": -5, "policy": "SCHED_BATCH", "dl-runtime": 700,
        "cpus": [2], "loop": 2, "phases": {"a": {"cpus": [0, 1], "run": 1}, "b": {"run": 1, "priority": 3}}}}}"#;
    let workload = workload(text);
    let task = &workload.tasks[1];
    assert_eq!((task.count, task.delay, task.nice, task.policy), (3, 10_000, -5, Policy::Batch));
    assert_eq!((task.slice, task.affinity.unwrap().to_list().as_str()), (Some(700_000), "0-1"));
    let ops = &workload.programs[task.program as usize].ops;
    let changes: Vec<&Op> = ops.iter().filter(|op| matches!(op, Op::SetAffinity(_) | Op::SetNice(_))).collect();
    assert_eq!(changes, [&Op::SetAffinity(0), &Op::SetAffinity(1), &Op::SetNice(3)], "each loop sets both again");
    assert_eq!([workload.masks[0].to_list(), workload.masks[1].to_list()], ["0-1", "2"]);
}

#[test]
fn deadline_parameters_are_in_microseconds_and_default_to_each_other() {
    let of = |text: &str| {
        let text = format!(r#"{{"tasks": {{"t": {{"run": 1, "policy": "SCHED_DEADLINE", {text}}}}}}}"#);
        match workload(&text).tasks[0].policy {
            Policy::Deadline(deadline) => [deadline.runtime, deadline.deadline, deadline.period].map(|ns| ns / USEC),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(of(r#""dl-runtime": 2000"#), [2000, 2000, 2000]);
    assert_eq!(of(r#""dl-runtime": 2000, "dl-period": 9000"#), [2000, 9000, 9000]);
    assert_eq!(of(r#""dl-runtime": 2000, "dl-period": 9000, "dl-deadline": 5000, "priority": 0"#), [2000, 5000, 9000]);
    assert_eq!(of(r#""dl-runtime": 2000, "cpus": [0, 1, 2, 3]"#), [2000, 2000, 2000]);
}

#[test]
fn task_groups_are_entered_once_and_by_phases() {
    let text = r#"{"tasks": {"t": {"taskgroup": "/tg1/tg11", "loop": 2,
        "phases": {"a": {"run": 1}, "b": {"taskgroup": "/", "run": 1}, "c": {"taskgroup": "", "run": 1}}}}}"#;
    let workload = workload(text);
    let ops = &workload.programs[workload.tasks[1].program as usize].ops;
    let moves: Vec<&Op> = ops.iter().filter(|op| matches!(op, Op::SetCgroup(_))).collect();
    assert_eq!(moves, [&Op::SetCgroup(0), &Op::SetCgroup(1)], "the second loop stays in the root");
    assert_eq!(workload.cgroups, ["/tg1/tg11", "/"]);
    assert_eq!(ops[0], Op::SetCgroup(0), "before the first loop");
}

#[test]
fn timers_of_one_thread_are_followed_and_shared_ones_are_objects() {
    let own = workload(r#"{"tasks": {"t": {"run": 1, "timer": {"ref": "tick", "period": 10}}}}"#);
    assert!(own.metrics.iter().any(|metric| metric.name == "wu_lat"));
    assert!(own.objects.is_empty());
    let timer = r#""run": 1, "timer": {"ref": "tick", "period": 10, "mode": "absolute"}"#;
    let shared = workload(&format!(r#"{{"tasks": {{"t": {{{timer}}}, "u": {{{timer}}}}}}}"#));
    assert_eq!(shared.objects, [ObjectSpec::Timer]);
    assert!(!shared.metrics.iter().any(|metric| metric.name == "wu_lat"));
    let unique = r#"{"tasks": {"t": {"instance": 12, "run": 1, "timer": {"ref": "unique1", "period": 10}}}}"#;
    assert!(workload(unique).objects.is_empty(), "each instance has its own");
}

/// rt-app writes one log per thread.
#[test]
fn each_of_several_tasks_has_metrics_by_its_name() {
    let one = workload(r#"{"tasks": {"t": {"run": 1, "timer": {"ref": "tick", "period": 10}}}}"#);
    assert!(one.metrics.iter().all(|metric| !metric.name.contains('.')));
    let text =
        r#"{"tasks": {"t": {"run": 1, "timer": {"ref": "tick", "period": 10}}, "u": {"instance": 2, "run": 1}}}"#;
    let two = workload(text);
    let place = |name: &str| two.metrics.iter().position(|metric| metric.name == name).map(|id| id as u16);
    let samples = |name: &str| -> Vec<u16> {
        let task = two.tasks.iter().find(|task| task.name == name).unwrap();
        let ops = &two.programs[task.program as usize].ops;
        ops.iter().filter_map(|op| if let Op::Sample { metric, .. } = op { Some(*metric) } else { None }).collect()
    };
    for (name, others) in [("t", "u"), ("u", "t")] {
        let own = samples(name);
        for column in ["run", "period", "wu_lat", "slack"] {
            let times = |name: &str| place(name).map_or(0, |id| own.iter().filter(|metric| **metric == id).count());
            let has = place(&format!("{name}.{column}")).is_some();
            assert_eq!(has, name == "t" || column == "run" || column == "period", "{name}.{column}");
            // Each sample of the column is one of the task's own.
            assert_eq!(times(column), times(&format!("{name}.{column}")), "{name}.{column}");
            assert_eq!(times(&format!("{others}.{column}")), 0);
        }
    }
    assert!(two
        .metrics
        .iter()
        .filter(|metric| metric.name.contains('.'))
        .all(|metric| metric.default_stats.is_empty()));
}

#[test]
fn barriers_wait_for_every_instance_of_every_event() {
    let text = r#"{"tasks": {"t": {"instance": 2, "barrier": "b", "run": 1}, "u": {"barrier": "b", "run": 1}}}"#;
    assert_eq!(workload(text).objects, [ObjectSpec::Barrier { parties: 3 }]);
    let pi = r#"{"tasks": {"t": {"lock": "m", "run": 1, "unlock": "m"}}, "global": {"pi_enabled": true}}"#;
    assert_eq!(workload(pi).objects, [ObjectSpec::Mutex { pi: true }]);
}

#[test]
fn repeated_keys_keep_their_order() {
    let got = ops(r#"{"tasks": {"t": {"loop": 1, "run": 1, "sleep": 2, "run": 3, "sleep": 4}}}"#);
    let [run, sleep] = [|ns| Op::Run(Amount::Fixed(ns)), |ns| Op::Sleep(Amount::Fixed(ns))];
    assert_eq!(got[..4], [run(1_000), sleep(2_000), run(3_000), sleep(4_000)]);
    assert_eq!(workload(r#"{"tasks": {"t": {"run": 1}, "t": {"run": 2}}}"#).tasks.len(), 2);
}

#[test]
fn fragments_load_as_a_list_and_later_keys_replace_earlier_ones() {
    let source = |name, text: &'static str| Source { name, bytes: text.as_bytes() };
    let tasks = source("tasks.json", r#"{"tasks": {"t": {"run": 1}, "u": {"run": 2}}, "global": {"duration": 9}}"#);
    let global = source("global.json", r#"{"global": {"duration": 3}}"#);
    let replaced = source("t.json", r#"{"tasks": {"t": {"loop": 1, "run": 7}}}"#);
    let read = |sources: &[Source<'_>]| super::read("w", sources, 4);
    assert_eq!(read(&[tasks, global]).unwrap().duration, Some(3_000_000_000));
    assert_eq!(read(&[global, tasks]).unwrap().duration, Some(9_000_000_000));
    let merged = read(&[tasks, global, replaced]).unwrap().workload;
    assert_eq!(merged.tasks.len(), 2);
    let alone = read(&[global]).unwrap_err();
    assert_eq!((alone.file.as_str(), alone.key.as_str()), ("global.json", "tasks"));
    let broken = source("broken.json", "{\n  \"tasks\" : {\"t\" : {\"rum\" : 1}}\n}");
    let error = read(&[global, broken]).unwrap_err();
    assert_eq!(
        (error.file.as_str(), error.line, error.column, error.key.as_str()),
        ("broken.json", 2, 21, "tasks.t.rum")
    );
    assert_eq!(error.hint.as_deref(), Some("did you mean \"run\"?"));
}

/// Refused files: the text, the key, and a part of the message.
const REFUSED: &[(&str, &str, &str)] = &[
    ("[]", "", "not an object"),
    (r#"{"task": {}}"#, "task", "unknown section"),
    (r#"{"tasks": []}"#, "tasks", "an array, not an object"),
    (r#"{"tasks": {}}"#, "tasks", "no task is started"),
    (r#"{"tasks": {"t": 1}}"#, "tasks.t", "not an object"),
    (r#"{"tasks": {"t": {}}}"#, "tasks.t", "no events"),
    (r#"{"tasks": {"t": {"phases": {}}}}"#, "tasks.t.phases", "no phases"),
    (r#"{"tasks": {"t": {"phases": {"p": {}}}}}"#, "tasks.t.phases.p", "no events"),
    (r#"{"tasks": {"t": {"phases": {"p": 1}}}}"#, "tasks.t.phases.p", "not an object"),
    (r#"{"tasks": {"t": {"run": 1, "phases": {"p": {"run": 1}}}}}"#, "tasks.t.run", "next to"),
    (r#"{"tasks": {"t": {"run": "1"}}}"#, "tasks.t.run", "a string, not a whole number"),
    (r#"{"tasks": {"t": {"run": -1}}}"#, "tasks.t.run", "not a valid duration"),
    (r#"{"tasks": {"t": {"run": 1.5}}}"#, "tasks.t.run", "fraction"),
    (r#"{"tasks": {"t": {"run"}}}"#, "tasks.t.run", "without a value"),
    (r#"{"tasks": {"t": {"sleep": false}}}"#, "tasks.t.sleep", "a boolean"),
    (r#"{"tasks": {"t": {"lock": ["a"]}}}"#, "tasks.t.lock", "an array"),
    (r#"{"tasks": {"t": {"lock_order": ["a"]}}}"#, "tasks.t.lock_order", "before rt-app 1.0"),
    (r#"{"tasks": {"t": {"exec": 1, "run": 1}}}"#, "tasks.t.exec", "before rt-app 1.0"),
    (r#"{"tasks": {"t": {"run": 1, "colour": 1}}}"#, "tasks.t.colour", "unknown key"),
    (r#"{"tasks": {"t": {"run": 1, "loop": 1, "loop": 2}}}"#, "tasks.t.loop", "given twice"),
    (r#"{"tasks": {"t": {"mem": 1}}}"#, "tasks.t.mem", "no model"),
    (r#"{"tasks": {"t": {"memrun": {"type": "read", "size": 1, "count": 1}}}}"#, "tasks.t.memrun", "no model"),
    (r#"{"tasks": {"t": {"iorun": 1}}}"#, "tasks.t.iorun", "no model"),
    (r#"{"tasks": {"t": {"run": 1, "policy": "SCHED_FIFO", "priority": 100}}}"#, "tasks.t.priority", "1..=99"),
    (r#"{"tasks": {"t": {"run": 1, "policy": "SCHED_DEADLINE"}}}"#, "tasks.t.policy", "without a runtime"),
    (
        r#"{"tasks": {"t": {"run": 1, "policy": "SCHED_DEADLINE", "dl-runtime": 1}}}"#,
        "tasks.t.dl-runtime",
        "too short for SCHED_DEADLINE",
    ),
    (
        r#"{"tasks": {"t": {"run": 1, "policy": "SCHED_DEADLINE", "dl-runtime": 900, "dl-period": 800}}}"#,
        "tasks.t.dl-runtime",
        "is shorter than the runtime",
    ),
    (
        r#"{"tasks": {"t": {"run": 1, "policy": "SCHED_DEADLINE", "dl-runtime": 900, "cpus": [0, 1]}}}"#,
        "tasks.t.cpus",
        "may not use every CPU",
    ),
    (
        r#"{"tasks": {"t": {"run": 1, "policy": "SCHED_DEADLINE", "dl-runtime": 900, "priority": 5}}}"#,
        "tasks.t.priority",
        "leave it out",
    ),
    (
        r#"{"tasks": {"t": {"run": 1, "policy": "SCHED_DEADLINE", "dl-runtime": 900, "taskgroup": "/a"}}}"#,
        "tasks.t.taskgroup",
        "cannot be in a task group",
    ),
    (
        r#"{"tasks": {"t": {"policy": "SCHED_DEADLINE", "dl-runtime": 900, "phases": {"p": {"run": 1, "dl-runtime": 800}}}}}"#,
        "tasks.t.phases.dl-runtime",
        "without its policy",
    ),
    (r#"{"tasks": {"t": {"run": 1, "policy": "OTHER"}}}"#, "tasks.t.policy", "unknown policy"),
    (r#"{"tasks": {"t": {"run": 1, "dl-period": 1}}}"#, "tasks.t.dl-period", "of use to SCHED_DEADLINE alone"),
    (r#"{"tasks": {"t": {"run": 1, "priority": 20}}}"#, "tasks.t.priority", "outside -20..=19"),
    (r#"{"tasks": {"t": {"run": 1, "cpus": [4]}}}"#, "tasks.t.cpus", "no CPU 4"),
    (r#"{"tasks": {"t": {"run": 1, "cpus": []}}}"#, "tasks.t.cpus", "no CPU at all"),
    (r#"{"tasks": {"t": {"run": 1, "cpus": 1}}}"#, "tasks.t.cpus", "not an array"),
    (r#"{"tasks": {"t": {"run": 1, "taskgroup": "a"}}}"#, "tasks.t.taskgroup", "not a task group path"),
    (r#"{"tasks": {"t": {"run": 1, "taskgroup": "/a/.."}}}"#, "tasks.t.taskgroup", "not a task group path"),
    (
        r#"{"tasks": {"t": {"run": 1, "taskgroup": "/a", "policy": "SCHED_FIFO"}}}"#,
        "tasks.t.taskgroup",
        "cannot be in a task group",
    ),
    (r#"{"tasks": {"t": {"run": 1, "nodes_membind": [0]}}}"#, "tasks.t.nodes_membind", "no model"),
    (r#"{"tasks": {"t": {"run": 1, "util_min": 512}}}"#, "tasks.t.util_min", "no model"),
    (r#"{"tasks": {"t": {"run": 1, "util_max": 2000}}}"#, "tasks.t.util_max", "outside 0..=1024"),
    (r#"{"tasks": {"t": {"run": 1, "instance": -1}}}"#, "tasks.t.instance", "-1 instances"),
    (r#"{"tasks": {"t": {"run": 1, "instance": 0}}}"#, "tasks", "no task is started"),
    (r#"{"tasks": {"t": {"run": 1, "instance": 4000000}}}"#, "tasks", "more than 200000"),
    (r#"{"tasks": {"t": {"run": 1, "loop": 99999999999}}}"#, "tasks.t.loop", "loops"),
    (r#"{"tasks": {"t": {"timer": {"period": 1, "mode": "odd"}}}}"#, "tasks.t.mode", "unknown mode"),
    (r#"{"tasks": {"t": {"timer": {"perod": 1}}}}"#, "tasks.t.perod", "unknown key"),
    (r#"{"tasks": {"t": {"wait": "c"}}}"#, "tasks.t.wait", "not an object"),
    (r#"{"tasks": {"t": {"wait": {"ref": "c", "mutex": "m"}}}}"#, "tasks.t", "not held here"),
    (r#"{"tasks": {"t": {"run": 1, "unlock": "m"}}}"#, "tasks.t", "not held here"),
    (r#"{"tasks": {"t": {"fork": "u"}}}"#, "tasks.t", "there is no task `u`"),
    (r#"{"tasks": {"t": {"run": 1}}, "global": {"durations": 1}}"#, "global.durations", "unknown key"),
    (r#"{"tasks": {"t": {"run": 1}}, "global": {"duration": "1s"}}"#, "global.duration", "not a whole number"),
    (
        r#"{"tasks": {"t": {"run": 1}}, "global": {"default_policy": "SCHED_DEADLINE"}}"#,
        "tasks.t.policy",
        "without a runtime",
    ),
    (
        r#"{"tasks": {"t": {"phases": {"p": {"run": 1, "dl-runtime": 1}}}}, "global": {"default_policy": "SCHED_DEADLINE"}}"#,
        "tasks.t.policy",
        "without a runtime",
    ),
    (r#"{"tasks": {"t": {"run": 1}}, "global": {"logsize": "big"}}"#, "global.logsize", "a number of MB"),
    (r#"{"tasks": {"t": {"run": 1}}, "global": {"calibration": "GPU"}}"#, "global.calibration", "is not a CPU"),
    (r#"{"tasks": {"t": {"run": 1}}, "global": {"calibration": -4}}"#, "global.calibration", "ns per loop"),
    (r#"{"tasks": {"t": {"run": 1}}, "global": {"log_size": "big"}}"#, "global.log_size", "\"disable\""),
    (r#"{"tasks": {"t": {"run": 1}}, "global": {"ftrace": "all"}}"#, "global.ftrace", "list of"),
    (r#"{"tasks": {"t": {"run": 1}}, "resources": {"m": {"type": "mutx"}}}"#, "resources.m.type", "unknown type"),
];

#[test]
fn a_default_of_sched_deadline_is_for_tasks_that_state_its_parameters() {
    let parameters = r#""dl-runtime": 2000, "dl-period": 10000, "dl-deadline": 8000"#;
    let text = format!(
        r#"{{"global": {{"default_policy": "SCHED_DEADLINE", "logsize": 2}}, "tasks": {{
            "a": {{{parameters}, "run": 1}},
            "b": {{{parameters}, "phases": {{"p": {{"run": 1}}, "q": {{"run": 2}}}}}},
            "c": {{"policy": "SCHED_OTHER", "priority": 5, "run": 1}}}}}}"#
    );
    let workload = workload(&text);
    let policies: Vec<(&str, Policy)> = workload.tasks.iter().map(|task| (task.name.as_str(), task.policy)).collect();
    let deadline = |policy: &Policy| match policy {
        Policy::Deadline(own) => Some([own.runtime, own.deadline, own.period].map(|ns| ns / USEC)),
        _ => None,
    };
    for (name, policy) in policies {
        let own = ["a", "b"].iter().any(|task| name.starts_with(task));
        assert_eq!(deadline(&policy), own.then_some([2_000, 8_000, 10_000]), "{name}: {policy:?}");
    }
}

#[test]
fn unsupported_files_are_refused_with_the_key() {
    for (text, key, what) in REFUSED {
        let error = parse(text).unwrap_err();
        assert_eq!(error.key, *key, "{text}: {error}");
        let said = format!("{error} {}", error.hint.as_deref().unwrap_or_default());
        assert!(said.contains(what), "{text}: {said}");
        assert_eq!((error.file.as_str(), error.line), ("f.json", 1), "{text}");
    }
}

#[test]
fn forked_templates_run_with_their_own_properties() {
    let text =
        r#"{"tasks": {"t": {"loop": 2, "fork": "u"}, "u": {"instance": 0, "priority": 4, "loop": 1, "run": 9}}}"#;
    let workload = workload(text);
    assert!(workload.ends);
    let child = workload.programs.iter().find(|p| p.name == "u" && p.ops.contains(&Op::SetNice(4))).unwrap();
    assert!(child.ops.contains(&Op::Run(Amount::Fixed(9_000))));
    let main = workload.programs.iter().find(|program| program.ops.contains(&Op::Finish)).unwrap();
    assert!(main.ops.contains(&Op::Set(1, 3)), "main waits for the parent and two children");
}
