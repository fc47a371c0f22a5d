//! Random trees of verbs: lowering answers, and what it makes is sound.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use schedlab_model::CpuMask;
use schedlab_workload::verbs::{Length, Own, Step, StepKind, Times, Tree, TreeTask};
use schedlab_workload::{lower, Dist, Op, TaskKind, TaskSpec, TimerMode, Workload, REGISTERS};

/// Mostly a name that only one kind of thing has.
fn name(kind: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![30 => (0..3).prop_map(move |i| format!("{kind}{i}")), 1 => Just("time".to_string())]
}

fn length() -> impl Strategy<Value = Length> {
    prop_oneof![
        any::<u64>().prop_map(Length::Fixed),
        (0u64..100, 0u64..100).prop_map(|(low, high)| Length::Drawn(Dist::Uniform { low, high })),
    ]
}

fn simple() -> impl Strategy<Value = StepKind> {
    prop_oneof![
        length().prop_map(StepKind::Run),
        length().prop_map(StepKind::Sleep),
        (name("timer"), length()).prop_map(|(timer, period)| StepKind::Timer {
            timer,
            period,
            mode: TimerMode::Relative
        }),
        (name("own"), any::<u64>(), name("sample"), name("count")).prop_map(|(timer, period, latency, misses)| {
            StepKind::Period {
                timer,
                period,
                mode: TimerMode::Absolute,
                latency: Some(latency),
                slack: None,
                misses: Some(misses),
            }
        }),
        (name("pipe"), 0u32..99).prop_map(|(channel, bytes)| StepKind::Read { channel, bytes }),
        (name("pipe"), 0u32..99).prop_map(|(channel, bytes)| StepKind::Write { channel, bytes }),
        name("futex").prop_map(StepKind::Wait),
        name("mutex").prop_map(StepKind::Lock),
        name("barrier").prop_map(StepKind::Barrier),
        name("sem").prop_map(StepKind::SemPost),
        (name("cond"), name("mutex")).prop_map(|(condition, mutex)| StepKind::CondWait { condition, mutex }),
        name("t").prop_map(|task| StepKind::Fork { task, kind: TaskKind::Process, memory: 0 }),
        Just(StepKind::Exit),
        (-20i8..=20).prop_map(StepKind::Nice),
        (0usize..20).prop_map(|cpus| StepKind::Affinity(CpuMask::first(cpus))),
        name("sample").prop_map(|metric| StepKind::SampleBegin { metric, at: None }),
        name("sample").prop_map(StepKind::SampleEnd),
        (name("count"), 0u32..9).prop_map(|(metric, count)| StepKind::Count { metric, count }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let leaf = simple().prop_map(|kind| Step::new(1, kind));
    leaf.prop_recursive(5, 40, 6, |inner| {
        let times = prop_oneof![(0u32..4).prop_map(Times::Count), Just(Times::Forever)];
        (times, prop::collection::vec(inner, 1..6))
            .prop_map(|(times, body)| Step::new(2, StepKind::Loop { times, body }))
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    let task = (0u32..3, prop::collection::vec(step(), 0..5));
    (prop::collection::vec(task, 1..4), prop::bool::weighted(0.2)).prop_map(|(tasks, ends)| {
        let task = |(index, (count, steps))| {
            let spec = TaskSpec { name: format!("t{index}"), count, ..TaskSpec::default() };
            TreeTask { line: 1, spec, own: Own::default(), steps }
        };
        Tree { name: "w".into(), tasks: tasks.into_iter().enumerate().map(task).collect(), ends, ..Tree::default() }
    })
}

/// Every number in the workload names something that exists.
fn check_sound(workload: &Workload) {
    assert_eq!(workload.objects.len(), workload.object_names.len());
    for task in &workload.tasks {
        assert!((task.program as usize) < workload.programs.len());
    }
    for program in &workload.programs {
        assert!(program.lines.is_empty() || program.lines.len() == program.ops.len());
        for op in &program.ops {
            let (object, reg, label) = match *op {
                Op::Wait(o) | Op::Post(o) | Op::Lock(o) | Op::Unlock(o) | Op::Barrier(o) | Op::SemPost(o) => (o, 0, 0),
                Op::Read { object, .. } | Op::Write { object, .. } | Op::Timer { object, .. } => (object, 0, 0),
                Op::CondWait { object, mutex } => (object.max(mutex), 0, 0),
                Op::Set(reg, _) | Op::Clock(reg) | Op::SleepUntil(reg) | Op::AddConst(reg, _) => (0, reg, 0),
                Op::DecJump { reg, to } | Op::JumpBelow { reg, to, .. } => (0, reg, to),
                Op::Jump(to) => (0, 0, to),
                Op::Sample { metric, reg } => {
                    assert!(usize::from(metric) < workload.metrics.len());
                    (0, reg, 0)
                }
                Op::Fork { program, into, .. } => {
                    assert!((program as usize) < workload.programs.len());
                    (0, into, 0)
                }
                _ => (0, 0, 0),
            };
            assert!(object == 0 || (object as usize) < workload.objects.len(), "{op:?}");
            assert!(usize::from(reg) < REGISTERS && label as usize <= program.ops.len(), "{op:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trees_are_lowered_or_refused(tree in tree()) {
        match lower(&tree) {
            Ok(workload) => check_sound(&workload),
            Err(error) => prop_assert!(error.line > 0 && !error.what.is_empty()),
        }
    }
}
