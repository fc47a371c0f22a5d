//! Memory on several nodes, and what it costs tasks.

use crate::support::{kernel, machine, record, spec, tasks};
use proptest::prelude::*;
use schedlab_model::{CpuMask, Nanos, Topology, MSEC, USEC};
use schedlab_spec::RunSpec;
use schedlab_trace::{Event, Kind};
use schedlab_workload::{Amount, Op, TaskMemory, Workload};

/// What a page of the test machine (1 GB/s, 80 and 130 ns) costs more on the other node.
const REMOTE_PAGE: Nanos = 4_096 * 50 / 80;

/// Two nodes with two CPUs each, on which kernel code takes no time.
fn on_nodes(workload: Workload, row: &str, active: bool) -> RunSpec {
    let mut kernel = kernel(row, 4, 250);
    kernel.set_knob("numa_balancing", u64::from(active)).unwrap();
    kernel.set_knob("numa_balancing/scan_delay_ms", 20).unwrap();
    kernel.set_knob("numa_balancing/scan_period_min_ms", 20).unwrap();
    let mut spec = spec(machine(Topology::regular(2, 1, 2, 1, true).unwrap(), 0), kernel, vec![workload]);
    spec.duration = 500 * MSEC;
    spec
}

fn memory(private: u32, node: Option<u32>) -> TaskMemory {
    TaskMemory { private, shared: 0, pass: 10 * MSEC, node, huge: false }
}

fn events(spec: &RunSpec) -> Vec<Event> {
    let (outcome, record) = record(spec);
    outcome.unwrap();
    record.events
}

fn hog() -> Vec<Op> {
    vec![Op::Run(Amount::Fixed(MSEC)), Op::Jump(0)]
}

/// A hog on CPU 0 whose memory is on node 1.
fn misplaced(active: bool) -> RunSpec {
    let mut workload = tasks(vec![("hog", 0, Some(0), hog())]);
    workload.tasks[0].memory = Some(memory(100, Some(1)));
    on_nodes(workload, "6.12.107", active)
}

fn sums(events: &[Event]) -> (u64, u64, Nanos) {
    events.iter().fold((0, 0, 0), |sum, event| match event.kind {
        Kind::Numa { faults, migrated, time, .. } => {
            (sum.0 + u64::from(faults), sum.1 + u64::from(migrated), sum.2 + time)
        }
        _ => sum,
    })
}

#[test]
fn a_page_on_the_other_node_takes_the_difference_of_the_latencies_longer() {
    let (faults, migrated, time) = sums(&events(&misplaced(false)));
    // 100 pages each 10 ms of work and 100 times the extra time.
    let used = 500 * MSEC * 100 / (10 * MSEC + 100 * REMOTE_PAGE);
    assert_eq!((faults, migrated), (0, 0));
    assert!((time / REMOTE_PAGE).abs_diff(used) <= 50, "{} {used}", time / REMOTE_PAGE);
}

#[test]
fn numa_balancing_brings_each_page_to_its_task_once() {
    let (faults, migrated, time) = sums(&events(&misplaced(true)));
    let (.., never) = sums(&events(&misplaced(false)));
    assert_eq!((faults, migrated), (100, 100));
    assert!(time * 4 < never, "{time} of {never}");
}

#[test]
fn without_memory_and_on_one_node_nothing_changes() {
    let plain = |spec: RunSpec| events(&spec);
    let mut none = misplaced(true);
    std::sync::Arc::make_mut(&mut none.workloads)[0].tasks[0].memory = None;
    let with = |active| {
        let mut spec = misplaced(active);
        spec.machine = std::sync::Arc::new(crate::support::flat(4, 0));
        spec
    };
    let mut flat = with(true);
    std::sync::Arc::make_mut(&mut flat.workloads)[0].tasks[0].memory = None;
    assert_eq!(plain(with(true)), plain(flat));
    assert_eq!(sums(&plain(none)), (0, 0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    /// Whatever tasks there are, all checkers of the simulator pass, and pages move only as long as there are faults.
    #[test]
    fn any_tasks_run(
        row in prop::sample::select(vec!["5.7", "6.1", "6.6", "6.12.107", "7.2"]),
        list in prop::collection::vec((1u64..6_000, 0u64..4_000, 1u8..16, 1u32..700, prop::option::of(0u32..2), 0u32..3), 1..9),
    ) {
        let programs = list.iter().map(|(run, sleep, ..)| {
            let run = Op::Run(Amount::Fixed(run * USEC));
            let sleep = (*sleep > 0).then_some(Op::Sleep(Amount::Fixed(sleep * USEC)));
            ("task", 0, None, std::iter::once(run).chain(sleep).chain([Op::Jump(0)]).collect())
        });
        let mut workload = tasks(programs.collect());
        for (task, (.., cpus, pages, node, process)) in workload.tasks.iter_mut().zip(&list) {
            task.process = *process;
            task.affinity = Some((0..4).filter(|cpu| cpus >> cpu & 1 == 1).map(schedlab_model::CpuId).collect::<CpuMask>());
            let shared = if *process == 0 { 300 } else { 0 };
            task.memory = Some(TaskMemory { shared, ..memory(*pages, if shared > 0 { Some(1) } else { *node }) });
        }
        let (faults, migrated, _) = sums(&events(&on_nodes(workload, row, true)));
        prop_assert!(migrated <= faults);
    }
}
