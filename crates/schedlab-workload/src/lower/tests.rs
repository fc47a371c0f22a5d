use super::*;
use crate::verbs::{Length, NamedObject, Own, Times};
use crate::Policy;
use crate::{Dist, ObjectSpec, TaskKind, TimerMode};

fn step(line: u32, kind: StepKind) -> Step {
    Step::new(line, kind)
}

fn run(line: u32) -> Step {
    step(line, StepKind::Run(Length::Fixed(1000)))
}

fn task(name: &str, steps: Vec<Step>) -> TreeTask {
    TreeTask { line: 1, spec: TaskSpec { name: name.into(), ..TaskSpec::default() }, own: Own::default(), steps }
}

fn tree(tasks: Vec<TreeTask>) -> Tree {
    Tree { name: "w".into(), tasks, ..Tree::default() }
}

#[test]
fn loops_become_counted_jumps_with_lines() {
    let body = vec![run(3)];
    let inner = step(2, StepKind::Loop { times: Times::Count(7), body });
    let lowered =
        lower(&tree(vec![task("a", vec![step(1, StepKind::Loop { times: Times::Forever, body: vec![inner] })])]));
    let program = &lowered.unwrap().programs[0];
    let run = Op::Run(crate::Amount::Fixed(1000));
    assert_eq!(program.ops, [Op::Set(0, 7), run, Op::DecJump { reg: 0, to: 1 }, Op::Jump(0)]);
    assert_eq!(program.lines, [2, 3, 2, 1]);
}

#[test]
fn errors_have_the_line_of_the_step() {
    let lock = |name: &str| step(5, StepKind::Lock(name.into()));
    let sem = |name: &str| step(6, StepKind::SemWait(name.into()));
    let forever = |body| step(8, StepKind::Loop { times: Times::Forever, body });
    let fork = |name: &str| step(9, StepKind::Fork { task: name.into(), kind: TaskKind::Thread, memory: 0 });
    let reversed = Dist::Uniform { low: 2, high: 1 };
    let nested = (0..70).fold(run(1), |inner, _| forever(vec![inner]));
    let counted = (0..9).fold(run(1), |inner, _| step(4, StepKind::Loop { times: Times::Count(2), body: vec![inner] }));
    let cases: Vec<(Vec<Step>, &str)> = vec![
        (vec![lock("m"), sem("m")], "`m` is a mutex, not a semaphore"),
        (vec![forever(vec![])], "the loop has no steps"),
        (vec![fork("b")], "there is no task `b`"),
        (vec![step(1, StepKind::SampleEnd("x".into()))], "ends before it begins"),
        (vec![step(1, StepKind::Run(Length::Drawn(reversed)))], "above high"),
        (vec![step(1, StepKind::Nice(20))], "outside -20..=19"),
        (vec![step(1, StepKind::Read { channel: "c".into(), bytes: 0 })], "0 bytes"),
        (vec![step(1, StepKind::Affinity(schedlab_model::CpuMask::default()))], "mask is empty"),
        (vec![nested], "nested more than"),
        (vec![counted], "too many nested loops"),
        (vec![step(1, StepKind::Policy(Policy::Fifo(0)))], "outside 1..=99"),
        (
            vec![
                step(1, StepKind::Count { metric: "n".into(), count: 1 }),
                step(2, StepKind::SampleBegin { metric: "n".into(), at: None }),
            ],
            "cannot be sampled",
        ),
    ];
    for (steps, want) in cases {
        let error = lower(&tree(vec![task("a", steps)])).unwrap_err();
        assert!(error.what.contains(want) && error.line > 0, "{error:?} expected {want}");
    }
}

#[test]
fn a_tree_that_ends_waits_for_all_tasks_including_forked_ones() {
    let child = TreeTask {
        spec: TaskSpec { name: "child".into(), count: 0, ..TaskSpec::default() },
        ..task("child", vec![run(1)])
    };
    let fork = step(2, StepKind::Fork { task: "child".into(), kind: TaskKind::Thread, memory: 0 });
    let parent = task("parent", vec![step(1, StepKind::Loop { times: Times::Count(3), body: vec![fork] })]);
    let tree = Tree { ends: true, ..tree(vec![parent, child]) };
    let workload = lower(&tree).unwrap();
    assert!(workload.ends);
    let main = &workload.programs[workload.tasks[0].program as usize];
    assert_eq!(main.ops[1], Op::Set(1, 4), "one parent and three children");
    let endless = Tree {
        ends: true,
        ..super::tests::tree(vec![task(
            "a",
            vec![step(4, StepKind::Loop { times: Times::Forever, body: vec![run(5)] })],
        )])
    };
    assert!(lower(&endless).unwrap_err().what.contains("an endless loop"));
}

#[test]
fn a_forked_task_sets_its_own_attributes_and_inherits_the_others() {
    let forked = |own, cgroup: Option<&str>| {
        let spec = TaskSpec { name: "child".into(), count: 0, nice: 3, policy: Policy::Batch, ..TaskSpec::default() };
        let spec = TaskSpec { cgroup: cgroup.map(str::to_owned), ..spec };
        let child = TreeTask { spec, own, ..task("child", vec![run(1)]) };
        let fork = step(2, StepKind::Fork { task: "child".into(), kind: TaskKind::Thread, memory: 0 });
        let workload = lower(&tree(vec![task("parent", vec![fork]), child])).unwrap();
        let program = workload.programs.iter().rfind(|program| program.name == "child");
        program.unwrap().ops.iter().filter(|op| !matches!(op, Op::Run(_) | Op::Exit)).copied().collect::<Vec<_>>()
    };
    assert_eq!(forked(Own::default(), None), []);
    assert_eq!(forked(Own { nice: true, ..Own::default() }, None), [Op::SetNice(3)]);
    let all = [Op::SetCgroup(0), Op::SetPolicy(Policy::Batch), Op::SetNice(3)];
    assert_eq!(forked(Own { nice: true, policy: true }, Some("/web")), all);
}

#[test]
fn barriers_count_their_parties() {
    let meet = || vec![step(1, StepKind::Barrier("b".into()))];
    let three = TreeTask { spec: TaskSpec { name: "t".into(), count: 3, ..TaskSpec::default() }, ..task("t", meet()) };
    let workload = lower(&tree(vec![three, task("u", meet())])).unwrap();
    assert_eq!(workload.objects, [ObjectSpec::Barrier { parties: 4 }]);
    let declared = NamedObject { line: 1, name: "b".into(), spec: ObjectSpec::Barrier { parties: 2 } };
    let workload = lower(&Tree { objects: vec![declared], ..tree(vec![task("u", meet())]) }).unwrap();
    assert_eq!(workload.objects, [ObjectSpec::Barrier { parties: 2 }]);
}

#[test]
fn own_timers_count_from_the_start_of_the_run_and_from_a_fork() {
    let period = StepKind::Period {
        timer: "t".into(),
        period: 10_000,
        mode: TimerMode::Absolute,
        latency: Some("wu_lat".into()),
        slack: None,
        misses: None,
    };
    let mut only = task(
        "a",
        vec![step(1, period), step(2, StepKind::Fork { task: "a".into(), kind: TaskKind::Thread, memory: 0 })],
    );
    only.spec.delay = 500;
    let workload = lower(&tree(vec![only])).unwrap();
    assert_eq!(workload.tasks[0].registers[0], 500);
    assert_eq!(workload.programs[0].ops[0], Op::AddConst(0, 10_000));
    assert!(workload.programs[1].ops.contains(&Op::Clock(0)), "{:?}", workload.programs[1]);
    assert_eq!(workload.metrics[0].name, "wu_lat");
}

/// A sample begins in the sender, travels through a queue and ends in the receiver.
#[test]
fn a_sample_travels_with_an_entry_of_a_queue() {
    let begin = StepKind::SampleBegin { metric: "r".into(), at: Some("t".into()) };
    let send = StepKind::Send { queue: "q".into(), sample: Some("r".into()) };
    let receive = StepKind::Receive { queue: "q".into(), sample: Some("r".into()) };
    let task = |name: &str, kinds: Vec<StepKind>| TreeTask {
        line: 1,
        spec: TaskSpec { name: name.into(), ..TaskSpec::default() },
        own: Own::default(),
        steps: kinds.into_iter().map(|kind| step(1, kind)).collect(),
    };
    let tree = |first: Vec<StepKind>, second: Vec<StepKind>| Tree {
        tasks: vec![task("a", first), task("b", second)],
        ..Tree::default()
    };
    let workload = lower(&tree(vec![begin, send.clone()], vec![receive, StepKind::SampleEnd("r".into())])).unwrap();
    assert_eq!(workload.programs[0].ops, [Op::TimerDue { object: 0, into: 0 }, Op::Send { object: 1, from: 0 }]);
    let received = [
        Op::Receive { object: 1, into: 0 },
        Op::Clock(1),
        Op::SubReg { into: 1, from: 0 },
        Op::Sample { metric: 0, reg: 1 },
    ];
    assert_eq!(workload.programs[1].ops, received);
    let never = lower(&tree(vec![send.clone()], vec![StepKind::Yield])).unwrap_err();
    assert!(never.what.contains("sent before it begins"), "{never}");
    let receive = StepKind::Receive { queue: "q".into(), sample: Some("other".into()) };
    for (sample, what) in
        [(None, "without a sample, but line 1 receives sample `other`"), (Some("r"), "sample `r` is sent")]
    {
        let begin = StepKind::SampleBegin { metric: "r".into(), at: None };
        let send = StepKind::Send { queue: "q".into(), sample: sample.map(str::to_owned) };
        let found = lower(&tree(vec![begin.clone(), send.clone()], vec![receive.clone()])).unwrap_err();
        assert!(found.what.contains(what), "{found}");
        assert!(lower(&tree(vec![begin, send], vec![StepKind::Yield])).is_ok(), "no receiver takes it");
    }
}

/// The last expiry of a timer belongs to the task that waits for it, so only one may.
#[test]
fn a_sample_does_not_begin_with_the_expiry_of_a_shared_timer() {
    let wait = || StepKind::Timer { timer: "t".into(), period: Length::Fixed(1000), mode: TimerMode::Absolute };
    let begin = || StepKind::SampleBegin { metric: "r".into(), at: Some("t".into()) };
    let of = |count: u32, steps: Vec<StepKind>| TreeTask {
        line: 1,
        spec: TaskSpec { name: format!("task{count}"), count, ..TaskSpec::default() },
        own: Own::default(),
        steps: steps.into_iter().enumerate().map(|(at, kind)| step(at as u32 + 2, kind)).collect(),
    };
    let both = |count| vec![of(count, vec![wait(), begin(), StepKind::SampleEnd("r".into())])];
    let tree = |tasks| Tree { tasks, ..Tree::default() };
    assert!(lower(&tree(both(1))).is_ok());
    let shared = [both(8), vec![of(1, vec![wait()]), of(1, vec![wait(), begin(), StepKind::SampleEnd("r".into())])]];
    for tasks in shared {
        let error = lower(&tree(tasks)).unwrap_err();
        assert_eq!((error.line, error.what.contains("several tasks wait for timer `t`")), (3, true), "{error:?}");
    }
}
