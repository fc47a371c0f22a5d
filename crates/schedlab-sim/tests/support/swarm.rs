//! Random machines, kernels and programs, as the swarm test and the digest tool draw them.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;
use schedlab_model::{Capacities, CpuId, CpuMask, PerfDomain, PerfState, Topology, MSEC};
use schedlab_policy::fair::GroupShares;
use schedlab_policy::{PreemptModel, Version};
use schedlab_spec::{Cgroup, CpuMax, Frequency, IdleState, Mechanism, RunSpec};
use schedlab_workload::{Amount, Dist, MemoryWork, ObjectSpec, Op, Policy, Program, TaskKind, TaskSpec, Workload};

use super::{in_parts, kernel, machine};

/// Steps of which none blocks for ever on its own.
fn step() -> impl Strategy<Value = Vec<Op>> {
    let amount = || prop_oneof![(1u64..3_000_000).prop_map(Amount::Fixed), Just(Amount::Drawn(0))];
    prop_oneof![
        4 => amount().prop_map(|a| vec![Op::Run(a)]),
        1 => amount().prop_map(|a| vec![Op::RunWall(a)]),
        1 => (1u32..3_000_000).prop_map(|bytes| vec![Op::Stream { bytes }]),
        1 => (1u64..200_000).prop_map(|ns| vec![Op::System(Amount::Fixed(ns))]),
        3 => amount().prop_map(|a| vec![Op::Sleep(a)]),
        1 => Just(vec![Op::Yield]),
        2 => (1u64..500_000).prop_map(|ns| vec![Op::Lock(0), Op::Run(Amount::Fixed(ns)), Op::Unlock(0)]),
        1 => (1u64..500_000).prop_map(|ns| vec![Op::CpuLock(1), Op::Run(Amount::Fixed(ns)), Op::CpuUnlock(1)]),
        1 => Just(vec![Op::SemPost(2), Op::SemWait(2)]),
        1 => (1u32..300).prop_map(|bytes| vec![Op::Write { object: 3, bytes }, Op::Read { object: 3, bytes }]),
        1 => (-20i8..20).prop_map(|nice| vec![Op::SetNice(nice)]),
        1 => prop_oneof![Just(Policy::Normal), Just(Policy::Batch), Just(Policy::Idle)].prop_map(|p| vec![Op::SetPolicy(p)]),
        1 => (0u32..3).prop_map(|mask| vec![Op::SetAffinity(mask)]),
        1 => (0u64..5_000_000).prop_map(|ns| vec![Op::SetSlice(ns)]),
        1 => Just(vec![Op::Fork { program: 0, kind: TaskKind::Thread, into: 0 }, Op::Reap]),
    ]
}

fn program() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(step(), 1..6).prop_map(|steps| {
        let mut ops = vec![Op::Set(7, 60)];
        ops.extend(steps.into_iter().flatten());
        // A loop must take time whatever its steps are.
        ops.extend([Op::Run(Amount::Fixed(1000)), Op::DecJump { reg: 7, to: 1 }]);
        ops
    })
}

/// Two nested groups and a third one, some with quotas, or no groups at all.
fn groups() -> impl Strategy<Value = Vec<Cgroup>> {
    let quota = || prop::option::weighted(0.3, (1u64..30, 5u64..30, 0u64..20));
    let group = || (1u64..10_000, quota(), prop::bool::weighted(0.1));
    prop_oneof![
        Just(Vec::new()),
        (group(), group(), group()).prop_map(|(a, b, c)| {
            [("/a", a), ("/a/b", b), ("/c", c)]
                .into_iter()
                .map(|(path, (weight, quota, idle))| Cgroup {
                    path: path.into(),
                    shares: Some(GroupShares::Weight(weight)),
                    idle,
                    latency_nice: 0,
                    counted: quota.is_some(),
                    bandwidth: quota.map(|(quota, period, burst)| CpuMax {
                        quota: quota * MSEC,
                        period: period * MSEC,
                        burst: burst.min(quota) * MSEC,
                    }),
                    ..Cgroup::default()
                })
                .collect()
        })
    ]
}

/// Runs under these version rows: random machines, programs and groups.
pub fn scenario(versions: Vec<&'static Version>) -> impl Strategy<Value = RunSpec> {
    (run(versions), groups(), any::<bool>(), 0usize..4).prop_map(|(mut spec, cgroups, autogroup, first)| {
        let paths: Vec<Option<String>> = cgroups.iter().map(|cgroup| Some(cgroup.path.clone())).chain([None]).collect();
        let mut workloads = spec.workloads.to_vec();
        for (i, task) in workloads[0].tasks.iter_mut().enumerate() {
            task.cgroup.clone_from(&paths[(first + i) % paths.len()]);
        }
        (spec.workloads, spec.cgroups, spec.autogroup) = (Arc::new(workloads), Arc::new(cgroups), autogroup);
        spec
    })
}

fn run(versions: Vec<&'static Version>) -> impl Strategy<Value = RunSpec> {
    let shape = (1u32..3, 1u32..3, 1u32..4, 1u32..3, any::<bool>(), 0u64..3000);
    let kernels = (prop::sample::select(versions), prop_oneof![Just(100u32), Just(250), Just(1000)]);
    let programs = prop::collection::vec((program(), 1u32..7, -20i8..20, any::<bool>()), 1..6);
    (shape, kernels, programs, any::<u64>(), any::<bool>(), any::<prop::sample::Index>()).prop_map(
        |((nodes, llcs, cores, threads, adjacent, cost), (version, hz), programs, seed, noise, model)| {
            let topology = Topology::regular(nodes, llcs, cores, threads, adjacent).unwrap();
            let nr_cpus = topology.nr_cpus();
            let masks =
                vec![CpuMask::first(nr_cpus), CpuMask::first(1), CpuMask::from_iter([CpuId(nr_cpus as u32 - 1)])];
            let mut workload = Workload { name: "swarm".into(), masks, ..Workload::default() };
            workload.programs.push(Program {
                name: "child".into(),
                ops: vec![Op::Run(Amount::Drawn(0))],
                ..Program::default()
            });
            workload.objects = vec![
                ObjectSpec::Mutex { pi: false },
                ObjectSpec::CpuLocks,
                ObjectSpec::Semaphore { initial: 0 },
                ObjectSpec::Pipe { pages: 16, packet: false },
            ];
            workload.dists = vec![Dist::Exponential { mean: 300_000 }];
            for (i, (ops, count, nice, pinned)) in programs.into_iter().enumerate() {
                workload.programs.push(Program { name: format!("p{i}"), ops, ..Program::default() });
                workload.tasks.push(TaskSpec {
                    name: format!("p{i}"),
                    program: i as u32 + 1,
                    count,
                    nice,
                    affinity: pinned.then(|| CpuMask::first(1)),
                    ..TaskSpec::default()
                });
            }
            let mut config = kernel(version.name, nr_cpus, hz);
            // A model more would change what every seed draws; the others have tests of their own.
            let others = |model: &&PreemptModel| !model.has_sleeping_locks() && !model.name().starts_with("auto");
            let models: Vec<&PreemptModel> = version.preempt_models.iter().filter(others).collect();
            config.set_preempt(**model.get(&models)).unwrap();
            RunSpec {
                machine: Arc::new(in_parts(machine(topology, cost), if seed % 2 == 0 { cost } else { 0 })),
                kernel: config,
                workloads: Arc::new(vec![workload]),
                cgroups: Arc::default(),
                autogroup: false,
                duration: 300 * MSEC,
                warmup: 0,
                seed,
                noise,
                ties: None,
                hotplug: Arc::default(),
                guests: Arc::default(),
            }
        },
    )
}

/// The run on a machine with some of the mechanisms, as its seed says.
pub fn with_physics(spec: RunSpec) -> RunSpec {
    let mut machine = schedlab_spec::Machine::clone(&spec.machine);
    for (bit, mechanism) in Mechanism::ALL.into_iter().enumerate() {
        machine.physics.set(mechanism, spec.seed >> (8 + bit) & 1 != 0);
    }
    if machine.physics.cpuidle {
        machine.idle_states = idle_states();
    }
    if machine.physics.frequency {
        let turbo = vec![(1, 3_000 + (spec.seed >> 20 & 511) as u32), (2, 2_500), (8, 1_900)];
        machine.frequency = Some(Frequency { base: 2_000, min: 500, turbo, rate_limit: spec.seed >> 24 & 0xfffff });
    }
    let transfer = spec.seed >> 16 & 1023;
    machine.costs.line_transfer = [0, 1, 2, 3, 4].map(|distance| Dist::Constant(distance * transfer));
    RunSpec { machine: Arc::new(machine), ..spec }
}

/// The run on a machine whose CPUs flush their TLBs for each other, with programs that unmap memory in every round. The
/// tasks of an odd seed belong to two processes.
pub fn with_munmaps(spec: RunSpec) -> RunSpec {
    let mut machine = schedlab_spec::Machine::clone(&spec.machine);
    machine.costs.ipi_send = Dist::Constant((spec.seed >> 9) % 3_000);
    machine.costs.tlb_flush = Dist::Constant(1 + (spec.seed >> 5) % 700);
    let mut workloads = spec.workloads.to_vec();
    for (index, program) in workloads.iter_mut().flat_map(|workload| workload.programs.iter_mut().skip(1)).enumerate() {
        let unmap = Op::Memory { work: MemoryWork::Unmap, kib: 4 << ((spec.seed >> index) % 6) };
        program.ops.insert(1, unmap);
    }
    if spec.seed % 2 == 1 {
        let tasks = workloads.iter_mut().flat_map(|workload| &mut workload.tasks);
        tasks.enumerate().for_each(|(index, task)| task.process = index as u32 % 2);
    }
    RunSpec { machine: Arc::new(machine), workloads: Arc::new(workloads), ..spec }
}

/// The run with CPUs for its control groups, which change twice, as its seed says. Its tasks ask for every CPU then,
/// since the kernel refuses an affinity to CPUs outside of a group's.
pub fn with_cpusets(spec: RunSpec) -> RunSpec {
    let nr_cpus = spec.machine.topology.nr_cpus();
    if spec.seed >> 32 & 1 == 0 || spec.cgroups.is_empty() {
        return spec;
    }
    let some = |nth: u64| {
        let chosen = (0..nr_cpus as u32).filter(|cpu| (spec.seed >> 33).wrapping_mul(nth + 3) >> cpu & 1 == 1);
        let mask = CpuMask::from_iter(chosen.map(CpuId));
        if mask.is_empty() {
            CpuMask::first(nr_cpus)
        } else {
            mask
        }
    };
    let (mut cgroups, mut workloads) = (spec.cgroups.to_vec(), spec.workloads.to_vec());
    for (cgroup, nth) in cgroups.iter_mut().zip(0..) {
        cgroup.cpus = Some(some(nth));
        cgroup.cpus_later = vec![((70 + nth) * MSEC, some(nth + 7)), (160 * MSEC + nth * 1_234_567, some(nth + 13))];
    }
    workloads.iter_mut().flat_map(|workload| &mut workload.masks).for_each(|mask| *mask = CpuMask::first(nr_cpus));
    RunSpec { cgroups: Arc::new(cgroups), workloads: Arc::new(workloads), ..spec }
}

/// The run on CPUs of different capacity, every other one with an energy model, if its row and machine can have them.
pub fn with_capacities(spec: RunSpec) -> RunSpec {
    let topology = &spec.machine.topology;
    let nr_cpus = topology.nr_cpus();
    let smt = topology.smt(CpuId(0)).count() > 1;
    if spec.seed >> 40 & 3 > 1 || smt || nr_cpus < 2 || !spec.kernel.version.knows_capacities() {
        return spec;
    }
    let half = nr_cpus / 2;
    let of = (0..nr_cpus).map(|cpu| if cpu < half { 400 } else { 1024 }).collect();
    let domain = |from: usize, to: usize, states: [(u32, u64); 2]| PerfDomain {
        cpus: CpuMask::from_iter((from..to).map(|cpu| CpuId(cpu as u32))),
        states: states.map(|(performance, power)| PerfState { performance, power }).to_vec(),
    };
    let energy = vec![
        domain(0, half, [(150, 30_000), (400, 200_000)]),
        domain(half, nr_cpus, [(400, 250_000), (1024, 1_500_000)]),
    ];
    let capacities = Capacities::new(of, if spec.seed >> 40 & 1 == 1 { energy } else { vec![] });
    let topology = Topology::clone(topology).with_capacities(capacities).unwrap();
    let machine =
        schedlab_spec::Machine { topology: Arc::new(topology), ..schedlab_spec::Machine::clone(&spec.machine) };
    RunSpec { machine: Arc::new(machine), ..spec }
}

/// A state that polls and two deeper ones, for a governor to choose from.
fn idle_states() -> Vec<IdleState> {
    let state = |(name, exit, target_residency): (&str, u64, u64)| IdleState {
        name: name.into(),
        exit: Dist::Constant(exit),
        latency: None,
        target_residency,
        polling: target_residency == 0,
    };
    [("POLL", 300, 0), ("C1", 2_000, 10_000), ("C6", 100_000, 600_000)].map(state).to_vec()
}
