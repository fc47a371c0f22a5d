//! What the cache lines of task groups cost.

use std::sync::Arc;

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::{CpuId, CpuMask, Nanos, MSEC, USEC};
use schedlab_spec::{Cgroup, RunSpec};
use schedlab_trace::{Kind, Lock};
use schedlab_workload::{Amount, Dist, ObjectSpec, Op};

const CPUS: u32 = 8;

/// Tasks that migrate from CPU to CPU, 50 us on each, with or without a group (an autogroup) and lines that cost
/// `transfer`.
fn migrating(version: &str, autogroup: bool, transfer: Nanos) -> RunSpec {
    let hop = |mask| [Op::SetAffinity(mask), Op::Sleep(Amount::Fixed(10 * USEC)), Op::Run(Amount::Fixed(40 * USEC))];
    let program = |first: u32| {
        let mut ops: Vec<Op> = (0..CPUS).flat_map(|nth| hop((first + nth) % CPUS)).collect();
        ops.push(Op::Jump(0));
        ops
    };
    let list = (0..CPUS).map(|cpu| ("t", 0, None, program(cpu))).collect();
    let mut workload = tasks(list);
    workload.masks = (0..CPUS).map(|cpu| CpuMask::from_iter([CpuId(cpu)])).collect();
    let mut machine = flat(CPUS, 100);
    machine.physics.lines = transfer > 0;
    machine.physics.locks = transfer > 0;
    machine.costs.line_transfer.iter_mut().for_each(|table| *table = Dist::Constant(transfer));
    let mut spec = spec(machine, kernel(version, CPUS as usize, 250), vec![workload]);
    spec.autogroup = autogroup;
    spec.duration = 200 * MSEC;
    spec
}

/// How often a CPU waited until another one had changed a line.
fn waits(spec: &RunSpec) -> usize {
    let (outcome, record) = record(spec);
    outcome.unwrap();
    record.events.iter().filter(|event| matches!(event.kind, Kind::LockWait { lock: Lock::Line, .. })).count()
}

#[test]
fn a_groups_sum_is_contended_until_6_7_limits_its_updates() {
    let [before, after] = ["6.6", "6.8"].map(|version| waits(&migrating(version, true, USEC)));
    assert!(before > 3 * after && before > 1_000, "{before} waits on 6.6, {after} on 6.8");
}

#[test]
fn without_a_group_or_where_lines_cost_nothing_nobody_waits() {
    assert_eq!(waits(&migrating("6.6", false, USEC)), 0);
    assert_eq!(waits(&migrating("6.6", true, 0)), 0);
}

/// How often a task wakes another one on the next CPU in 200 ms, between runs of 50 us; both are in a group of this
/// path.
fn wakeups(path: &str) -> usize {
    let waker = vec![Op::Run(Amount::Fixed(50 * USEC)), Op::Post(0), Op::Jump(0)];
    let wakee = vec![Op::Wait(0), Op::Jump(0)];
    let mut workload = tasks(vec![("waker", 0, Some(0), waker), ("wakee", 0, Some(1), wakee)]);
    workload.objects = vec![ObjectSpec::Futex];
    let levels = path.match_indices('/').map(|(end, _)| &path[..end]).chain([path]).filter(|level| !level.is_empty());
    let cgroups = levels.map(|level| Cgroup { path: level.into(), ..Cgroup::default() }).collect();
    workload.tasks.iter_mut().for_each(|task| task.cgroup = (!path.is_empty()).then(|| path.into()));
    let mut spec = RunSpec { cgroups: Arc::new(cgroups), ..migrating("6.8", false, USEC) };
    spec.workloads = Arc::new(vec![workload]);
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    record.events.iter().filter(|event| matches!(event.kind, Kind::Waking { .. })).count()
}

#[test]
fn every_level_of_groups_costs_its_lines() {
    let [none, one, two] = ["", "a", "a/b"].map(wakeups);
    assert!(none > one && one > two && two > 1_000, "{none} wakeups outside, {one} and {two} in one and two levels");
}
