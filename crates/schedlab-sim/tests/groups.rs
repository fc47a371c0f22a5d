//! Task groups in whole runs: what share each gets, on few CPUs and on many.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::{CpuId, CpuMask, Nanos, SEC};
use schedlab_policy::fair::GroupShares;
use schedlab_policy::Version;
use schedlab_spec::{Cgroup, RunSpec};
use schedlab_trace::Kind;
use schedlab_workload::{Amount, Op, Workload};

fn cgroup(path: &str, weight: u64) -> Cgroup {
    Cgroup { path: path.into(), shares: Some(GroupShares::Weight(weight)), ..Cgroup::default() }
}

/// Hogs: group, how many, nice value.
fn hogs(list: &[(&str, u32, i8)]) -> Workload {
    let hog = || vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)];
    let mut workload = tasks(list.iter().map(|(path, _, nice)| (*path, *nice, None, hog())).collect());
    for (task, (path, count, _)) in workload.tasks.iter_mut().zip(list) {
        task.count = *count;
        task.cgroup = (!path.is_empty()).then(|| (*path).to_string());
    }
    workload
}

fn run_of(version: &str, cpus: u32, cgroups: Vec<Cgroup>, workload: Workload) -> RunSpec {
    let mut spec = spec(flat(cpus, 500), kernel(version, cpus as usize, 250), vec![workload]);
    spec.cgroups = Arc::new(cgroups);
    spec.duration = 12 * SEC;
    spec
}

/// CPU time per task name in ns, in the second half; by then load is balanced.
fn service(spec: &RunSpec) -> BTreeMap<String, Nanos> {
    let (outcome, record) = record(spec);
    outcome.unwrap();
    let names: BTreeMap<i32, &str> = record.names.iter().map(|(pid, name)| (*pid, name.as_str())).collect();
    let mut since = vec![(0, 0); spec.machine.topology.nr_cpus()];
    let mut service = BTreeMap::new();
    let from = spec.duration / 2;
    let mut account = |(pid, start): (i32, Nanos), now: Nanos| {
        if let Some(name) = names.get(&pid).filter(|_| pid != 0) {
            *service.entry((*name).to_string()).or_default() += now.saturating_sub(start.max(from));
        }
    };
    for event in &record.events {
        if let Kind::Switch { next, .. } = event.kind {
            account(since[event.cpu.index()], event.time);
            since[event.cpu.index()] = (next, event.time);
        }
    }
    since.into_iter().for_each(|last| account(last, spec.duration));
    service
}

/// The share of all CPU time of tasks whose names begin with `prefix`.
fn part(service: &BTreeMap<String, Nanos>, prefix: &str) -> f64 {
    let all: Nanos = service.values().sum();
    let own: Nanos = service.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, ns)| ns).sum();
    own as f64 / all as f64
}

/// Loads that are unbalanced inside the groups: (CPUs, tasks of the light group, tasks of the heavy one).
const MACHINES: [(u32, u32, u32); 3] = [(1, 7, 2), (4, 23, 11), (64, 160, 200)];

#[test]
fn a_groups_share_does_not_depend_on_its_number_of_tasks() {
    for version in Version::all() {
        for (cpus, light, heavy) in MACHINES {
            let list = [("/a", light, 0), ("/b", heavy, 0), ("/b", heavy / 2, 5)];
            let run = run_of(version.name, cpus, vec![cgroup("/a", 100), cgroup("/b", 300)], hogs(&list));
            let got = part(&service(&run), "/a");
            // On several CPUs whole tasks move, and up to 17% of imbalance stays: a real 6.1 is off as much
            // (docs/models/fair.md).
            let bound = if cpus == 1 { 0.0005 } else { 0.0125 };
            assert!((got - 0.25).abs() < bound, "{} on {cpus} CPUs: {got:.4} instead of a quarter", version.name);
        }
    }
}

/// Where no task migrates, a group's weight is divided among the CPUs by its load there, however unbalanced: on each
/// CPU it competes with its part of its weight. Up to 6.18 that part counts in whole 1024ths of nice 0
/// (`scale_load_down` in `__calc_delta`): 6 instead of 6.4 for one task of 160.
#[test]
fn a_groups_weight_is_divided_by_its_load_on_each_cpu() {
    for version in Version::all() {
        for cpus in [4, 64] {
            let crowds: Vec<(u32, u32)> = (0..cpus).map(|cpu| (1 + cpu % 4, 1 + cpu * 7 % 5)).collect();
            let all = crowds.iter().fold((0, 0), |all, crowd| (all.0 + crowd.0, all.1 + crowd.1));
            let weight = |part: u32, all: u32, shares: f64| {
                let weight = shares * f64::from(part) / f64::from(all);
                if version.rules.delta_divides {
                    weight
                } else {
                    weight.floor()
                }
            };
            let share = |&(light, heavy): &(u32, u32)| {
                let (light, heavy) = (weight(light, all.0, 1024.0), weight(heavy, all.1, 3072.0));
                light / (light + heavy)
            };
            let expected = crowds.iter().map(share).sum::<f64>() / f64::from(cpus);
            let list: Vec<_> = crowds.iter().flat_map(|crowd| [("/a", crowd.0, 0), ("/b", crowd.1, 0)]).collect();
            let mut workload = hogs(&list);
            for (nth, task) in workload.tasks.iter_mut().enumerate() {
                task.affinity = Some(CpuMask::from_iter([CpuId(nth as u32 / 2)]));
            }
            let run = run_of(version.name, cpus, vec![cgroup("/a", 100), cgroup("/b", 300)], workload);
            let got = part(&service(&run), "/a");
            assert!((got / expected - 1.0).abs() < 0.005, "{} on {cpus}: {got:.4}, not {expected:.4}", version.name);
        }
    }
}

/// Shares of nested groups on one CPU: weights apply at each level, and the root's own tasks compete with the groups.
#[test]
fn weights_of_nested_groups_multiply() {
    let groups = || vec![cgroup("/a", 100), cgroup("/a/x", 100), cgroup("/a/x/deep", 50), cgroup("/a/y", 300)];
    let list = [("/a/x/deep", 3, 0), ("/a/y", 1, 0), ("/a/y", 1, 19), ("", 2, 0)];
    let expected = [("/a/x", 1.0 / 12.0), ("/a/y", 3.0 / 12.0), ("/a", 1.0 / 3.0)];
    for version in Version::all() {
        let got = service(&run_of(version.name, 1, groups(), hogs(&list)));
        for (path, share) in expected {
            let got = part(&got, path);
            assert!((got - share).abs() < 0.0005, "{}: {path} gets {got:.4} instead of {share:.4}", version.name);
        }
    }
}

#[test]
fn an_idle_group_has_weight_three_whatever_its_tasks() {
    for version in Version::all().iter().filter(|version| version.has_cpu_idle()) {
        let groups = vec![Cgroup { path: "/i".into(), idle: true, ..Cgroup::default() }, cgroup("/b", 100)];
        let run = run_of(version.name, 1, groups, hogs(&[("/i", 4, -20), ("/b", 1, 0)]));
        let got = part(&service(&run), "/i");
        let expected = 3.0 / 1027.0;
        assert!((got - expected).abs() < 0.003, "{}: {got:.5} instead of {expected:.5}", version.name);
    }
}

/// A session of one task against one of nine: half each with autogroups, a tenth without.
#[test]
fn sessions_share_equally_with_autogroup() {
    let named = |name: &str, count| {
        let mut workload = hogs(&[("", count, 0)]);
        (workload.name, workload.tasks[0].name) = (name.into(), name.into());
        workload
    };
    for version in Version::all() {
        for (autogroup, expected) in [(true, 0.5), (false, 0.1)] {
            let mut run = run_of(version.name, 1, Vec::new(), Workload::default());
            run.workloads = Arc::new(vec![named("one", 1), named("many", 9)]);
            run.autogroup = autogroup;
            let got = part(&service(&run), "one");
            assert!((got - expected).abs() < 0.0005, "{}: {got:.4} instead of {expected}", version.name);
        }
    }
}

#[test]
fn a_task_that_moves_has_its_new_groups_share() {
    for version in Version::all() {
        let hog = vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)];
        // 1 s of work, then a move to the group of weight 300, against a hog of weight 100: three quarters from then
        // on.
        let work = Op::Run(Amount::Fixed(SEC));
        let mover = vec![work, Op::SetCgroup(0), work, Op::Jump(2)];
        let mut workload = tasks(vec![("hog", 0, None, hog), ("mover", 0, None, mover)]);
        workload.cgroups = vec!["/big".to_string()];
        for task in &mut workload.tasks {
            task.cgroup = Some("/small".to_string());
        }
        let mut spec = run_of(version.name, 1, vec![cgroup("/big", 300), cgroup("/small", 100)], workload);
        spec.duration = 20 * SEC;
        let service = service(&spec);
        let share = service["mover"] as f64 / (service["mover"] + service["hog"]) as f64;
        assert!((share - 0.75).abs() < 0.002, "{}: {share:.3}", version.name);
    }
}

/// A parent changes its nice value, group and affinity, forks and exits: its child inherits all three.
#[test]
fn a_child_inherits_its_parents_attributes() {
    for version in Version::all() {
        let hog = vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)];
        let fork = Op::Fork { program: 2, kind: schedlab_workload::TaskKind::Process, into: 0 };
        let change = [Op::SetNice(5), Op::SetAffinity(0), Op::SetCgroup(0)];
        let parent = [&change[..], &[fork, Op::Exit]].concat();
        let list = vec![("hog", 0, Some(1), hog.clone()), ("parent", 0, None, parent), ("child", 0, None, hog)];
        let mut workload = tasks(list);
        workload.tasks.truncate(2);
        workload.masks = vec![CpuMask::from_iter([CpuId(1)])];
        workload.cgroups = vec!["/b".to_string()];
        // Against the hog in the group, on the hog's CPU.
        workload.tasks[0].cgroup = Some("/b".to_string());
        let share = part(&service(&run_of(version.name, 2, vec![cgroup("/b", 100)], workload)), "child");
        let expected = 335.0 / 1359.0;
        assert!((share - expected).abs() < 0.002, "{}: {share:.4} instead of {expected:.4}", version.name);
    }
}
