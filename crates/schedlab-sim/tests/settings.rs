//! Nothing is accepted and ignored: on every row each feature, knob and preemption model is refused, or changes a run.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use crate::support::swarm::scenario;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use schedlab_model::{CpuMask, MSEC};
use schedlab_policy::{ConfigError, Feature, KernelConfig, Knob, PreemptModel, Version};
use schedlab_spec::RunSpec;
use schedlab_trace::Digest;
use schedlab_workload::{
    Amount, Deadline, ObjectSpec, Op, Policy, Program, Section, SectionContext, TaskMemory, TaskSpec, Workload,
};

/// Random runs looked at before a setting counts as one that changes nothing.
const RUNS: u64 = 400;

/// Runs of one row, with the digests of those as the row boots.
struct Row {
    version: &'static Version,
    specs: BTreeMap<u64, (RunSpec, String)>,
}

impl Row {
    fn new(version: &'static Version) -> Row {
        Row { version, specs: BTreeMap::new() }
    }

    fn spec(&mut self, seed: u64) -> &(RunSpec, String) {
        let version = self.version;
        self.specs.entry(seed).or_insert_with(|| {
            let spec = drawn(version, seed);
            let digest = digest(&spec);
            (spec, digest)
        })
    }

    /// Whether some run changes with the setting.
    fn changes(&mut self, set: impl Fn(&mut KernelConfig)) -> bool {
        (0..RUNS).any(|seed| {
            let (spec, before) = self.spec(seed);
            let mut changed = spec.clone();
            set(&mut changed.kernel);
            digest(&changed) != *before
        })
    }

    /// Whether some run with one feature switched changes with another.
    fn changes_beside(&mut self, beside: &str, on: bool, feature: &str) -> bool {
        (0..RUNS).any(|seed| {
            let mut with = self.spec(seed).0.clone();
            with.kernel.set_feature(beside, on).unwrap();
            let mut both = with.clone();
            let now = both.kernel.has(Feature::find(feature).unwrap());
            both.kernel.set_feature(feature, !now).unwrap();
            digest(&with) != digest(&both)
        })
    }
}

/// A random run of the swarm test, with what that does not draw: real-time and deadline tasks, synchronous wakeups,
/// latency-nice.
fn drawn(version: &'static Version, seed: u64) -> RunSpec {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut spec = scenario(vec![version]).new_tree(&mut runner).unwrap().current();
    let mut workloads = spec.workloads.to_vec();
    if version.has_latency_nice() {
        let tasks = workloads.iter_mut().flat_map(|workload| &mut workload.tasks);
        tasks.zip((0..40).step_by(13).cycle()).for_each(|(task, nice)| task.latency_nice = Some(nice as i8 - 20));
    }
    if seed % 3 == 0 {
        workloads.push(real_time(seed));
        // A period of real-time tasks is a second.
        spec.duration = 1500 * MSEC;
    }
    if seed % 7 == 5 {
        workloads.push(deadline());
    }
    if seed % 9 == 4 {
        workloads.push(memory());
        // NUMA balancing scans after a second.
        spec.duration = 2500 * MSEC;
    }
    workloads.push(ping_pong());
    workloads.push(sections());
    spec.workloads = Arc::new(workloads);
    spec
}

/// A workload of these tasks, one program each: name, policy, count and operations.
fn workload(name: &str, tasks: Vec<(Policy, u32, Vec<Op>)>) -> Workload {
    let mut workload = Workload { name: name.into(), ..Workload::default() };
    for (i, (policy, count, ops)) in tasks.into_iter().enumerate() {
        let name = format!("{name}{i}");
        workload.programs.push(Program { name: name.clone(), ops, ..Program::default() });
        workload.tasks.push(TaskSpec { name, program: i as u32, count, policy, ..TaskSpec::default() });
    }
    workload
}

/// Threads with memory.
fn memory() -> Workload {
    let hog = vec![Op::Run(Amount::Fixed(MSEC)), Op::Jump(0)];
    let mut workload = workload("memory", vec![(Policy::Normal, 2, hog)]);
    let memory = TaskMemory { private: 1024, pass: 20 * MSEC, ..TaskMemory::default() };
    workload.tasks.iter_mut().for_each(|task| (task.nice, task.memory) = (-20, Some(memory)));
    workload
}

/// Tasks of one priority in turn, and some that use more than their share of a CPU.
fn real_time(seed: u64) -> Workload {
    let work = |ms: u64, pause: u64| {
        let (run, sleep) = (Op::Run(Amount::Fixed(ms * MSEC)), Op::Sleep(Amount::Fixed(pause * MSEC + 1)));
        vec![Op::Set(7, 30), run, sleep, Op::DecJump { reg: 7, to: 1 }]
    };
    let tasks = vec![
        (Policy::RoundRobin(10), 2, work(125, 0)),
        (Policy::Fifo(20), 2, work(5, 3)),
        (Policy::RoundRobin(10), 2, work(220, 1)),
    ];
    let mut workload = workload("rt", tasks);
    if seed % 2 == 0 {
        workload.tasks.iter_mut().for_each(|task| task.affinity = Some(CpuMask::first(1)));
    }
    workload
}

/// Deadline tasks that need more than their runtime.
fn deadline() -> Workload {
    let policy = Policy::Deadline(Deadline { runtime: 1_300_000, deadline: 20 * MSEC, period: 20 * MSEC });
    let work = vec![Op::Set(7, 20), Op::Run(Amount::Fixed(3_100_000)), Op::DecJump { reg: 7, to: 1 }];
    workload("deadline", vec![(policy, 2, work)])
}

/// Pairs that wake each other through pipes, which makes their wakeups synchronous.
fn ping_pong() -> Workload {
    let turn = |there: u32, back: u32, first: bool| {
        let (write, read) = (Op::Write { object: there, bytes: 100 }, Op::Read { object: back, bytes: 100 });
        let run = Op::Run(Amount::Fixed(70_000));
        let [a, b] = if first { [write, read] } else { [read, write] };
        vec![Op::Set(7, 200), a, run, b, Op::DecJump { reg: 7, to: 1 }]
    };
    let mut workload =
        workload("pipe", vec![(Policy::Normal, 1, turn(0, 1, true)), (Policy::Normal, 1, turn(1, 0, false))]);
    workload.objects = vec![ObjectSpec::Pipe { pages: 16, packet: false }; 2];
    workload
}

/// Long calls: with points at which the kernel may reschedule, and under a spinlock.
fn sections() -> Workload {
    let section = |context, might_sleep, every, last| Op::Section {
        amount: Amount::Fixed(MSEC),
        section: Section { context, might_sleep, every },
        last,
    };
    let call = vec![
        Op::Call,
        section(SectionContext::Preemptible, true, 20_000, false),
        section(SectionContext::Spinlock, false, 0, true),
        Op::Sleep(Amount::Fixed(300_000)),
        Op::Jump(0),
    ];
    workload("section", vec![(Policy::Normal, 3, call)])
}

fn digest(spec: &RunSpec) -> String {
    let mut digest = Digest::default();
    let outcome = schedlab_sim::run(spec, &mut digest, &AtomicBool::new(false));
    format!("{} {}", digest.hex(), outcome.map_or_else(|error| error.to_string(), |_| String::new()))
}

/// `set` is refused as not simulated, or changes a run.
fn acts_or_is_refused(
    row: &mut Row,
    what: &str,
    set: impl Fn(&mut KernelConfig) -> Result<(), ConfigError>,
) -> Result<(), String> {
    let mut fresh = KernelConfig::new(row.version, 4, 250);
    match set(&mut fresh) {
        Err(ConfigError::NotModelled { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(()) => {
            let beside = BESIDE.iter().find(|(feature, ..)| *feature == what);
            let acts = match beside.filter(|(_, other, _)| has(row.version, other)) {
                Some((feature, other, on)) => row.changes_beside(other, *on, feature),
                None => row.changes(|config| set(config).unwrap()),
            };
            acts.then_some(()).ok_or_else(|| format!("{what} is accepted on {} and changes no run", row.version.name))
        }
    }
}

/// Features that act only while another is switched so, in the kernel too.
const BESIDE: [(&str, &str, bool); 3] =
    [("DOUBLE_TICK", "HRTICK", true), ("SIS_PROP", "SIS_UTIL", false), ("CACHE_HOT_BUDDY", "NEXT_BUDDY", true)];

fn has(version: &Version, feature: &str) -> bool {
    Feature::find(feature).is_some_and(|feature| feature.info().default_in(version).is_some())
}

/// Another value than the default, far enough away to matter.
fn other_value(knob: Knob, version: &'static Version) -> u64 {
    let default = KernelConfig::new(version, 4, 250).knobs.get(knob);
    match knob {
        Knob::TunableScaling | Knob::LlcEnabled => 0,
        Knob::NumaBalancing => 1 - default,
        Knob::NumaScanSize => 1,
        Knob::NumaScanPeriodMin => default / 10,
        Knob::NumaScanPeriodMax => default / 600,
        Knob::ChildRunsFirst => 1,
        Knob::MigrationCost => default * 20,
        Knob::RrTimeslice | Knob::RtRuntime | Knob::NrMigrate | Knob::CfsBandwidthSlice => default / 10,
        Knob::RtPeriod => default * 10,
        _ => default * 4,
    }
}

/// Every two models of the row differ in some run; auto-full requests what full does.
fn preemption_models_that_are_alike(row: &mut Row) -> Vec<String> {
    let mut alike = Vec::new();
    let same = |model: &PreemptModel| *model == PreemptModel::AutoFull;
    let accepted: Vec<PreemptModel> = row.version.preempt_models.iter().copied().filter(|m| !same(m)).collect();
    for (i, a) in accepted.iter().enumerate() {
        for b in &accepted[i + 1..] {
            let run = |spec: &RunSpec, model| {
                let mut spec = spec.clone();
                spec.kernel.set_preempt(model).unwrap();
                digest(&spec)
            };
            if !(0..RUNS).any(|seed| run(&row.spec(seed).0, *a) != run(&row.spec(seed).0, *b)) {
                alike.push(format!("preempt={a} of {} is as {b}", row.version.name));
            }
        }
    }
    alike
}

#[test]
fn every_accepted_setting_changes_a_run() {
    let mut wrong = Vec::new();
    for version in Version::all() {
        let mut row = Row::new(version);
        for info in Feature::all() {
            let Some(default) = info.default_in(version) else { continue };
            wrong.extend(acts_or_is_refused(&mut row, info.name, |c| c.set_feature(info.name, !default)).err());
        }
        for info in Knob::all().iter().filter(|info| info.exists_in(version)) {
            let value = other_value(info.knob, version);
            wrong.extend(acts_or_is_refused(&mut row, info.name, |c| c.set_knob(info.name, value)).err());
        }
        wrong.extend(preemption_models_that_are_alike(&mut row));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
