//! `mmap_lock`: which operations of two threads exclude each other, by the kernel's release.

use std::sync::Arc;

use crate::support::{flat, kernel, record, sampled_time, spec, tasks};
use schedlab_model::{Nanos, MSEC, USEC};
use schedlab_spec::RunSpec;
use schedlab_workload::{Amount, Dist, MemoryWork, Op, TaskKind};

/// Time for which mmap, munmap and fork hold the lock for writing.
const WRITE: Nanos = 100 * USEC;
const FAULT: Nanos = 10 * USEC;
/// munmap of 100 pages, after its first part.
const PAGES: Nanos = 400 * USEC;
/// The second thread begins later than the first one by this.
const LATER: Nanos = 10 * USEC;

const MMAP: Op = Op::Memory { work: MemoryWork::Mmap, kib: 4 };
const UNMAP: Op = Op::Memory { work: MemoryWork::Unmap, kib: 400 };
const FILE_FAULT: Op = Op::Memory { work: MemoryWork::Map, kib: 4 };
const FAULT_4K: Op = Op::Memory { work: MemoryWork::Zero, kib: 4 };
const FORK: Op = Op::Fork { program: 2, kind: TaskKind::Process, into: 2 };
const CLONE: Op = Op::Fork { program: 2, kind: TaskKind::Thread, into: 2 };

/// After 1 ms the first thread does `first`, and a little later the second one does `second`, whose time is a sample;
/// `before` is what the second one does at the beginning.
fn two(version: &str, same_process: bool, on: bool, first: Op, before: &[Op], second: Op) -> RunSpec {
    let run = |length| Op::Run(Amount::Fixed(length));
    let sleep = |length| Op::Sleep(Amount::Fixed(length));
    let measured = [
        run(MSEC + LATER),
        Op::Clock(0),
        second,
        Op::Clock(1),
        Op::SubReg { into: 1, from: 0 },
        Op::Sample { metric: 0, reg: 1 },
    ];
    // What comes before takes at most a mmap and a fault.
    let settled = [Op::Clock(3), Op::AddConst(3, 0)];
    let mut ops = [before, &settled[..], &measured[..]].concat();
    if !before.is_empty() {
        // Begins at the same time whatever came before.
        let at = before.len() + settled.len();
        let spent = if before.len() == 1 { WRITE } else { WRITE + FAULT };
        ops[at] = run(MSEC + LATER - spent);
    }
    let idle = vec![sleep(20 * MSEC)];
    let mut workload = tasks(vec![
        ("first", 0, Some(0), vec![run(MSEC), first, run(MSEC)]),
        ("second", 0, Some(1), ops),
        ("child", 0, Some(2), idle),
    ]);
    for (task, process) in workload.tasks.iter_mut().zip([0, u32::from(!same_process), 2]) {
        task.process = process;
    }
    workload.metrics = vec![sampled_time("second")];
    let mut machine = flat(4, 0);
    machine.costs.mmap = Dist::Constant(WRITE);
    machine.costs.munmap = Dist::Constant(WRITE);
    machine.costs.fork_process = Dist::Constant(WRITE);
    machine.costs.fork_thread = Dist::Constant(WRITE);
    machine.costs.fault = Dist::Constant(FAULT);
    machine.costs.clear_kib = Dist::Constant(0);
    machine.costs.unmap_page = Dist::Constant(PAGES / 100);
    machine.physics.mmap_lock = on;
    let mut spec = spec(machine, kernel(version, 4, 250), vec![workload]);
    spec.duration = 10 * MSEC;
    spec
}

fn time_of_second(spec: &RunSpec) -> Nanos {
    let (outcome, record) = record(spec);
    outcome.unwrap();
    record.samples()[0]
}

#[test]
fn threads_wait_for_what_excludes_them() {
    let until_downgrade = WRITE - LATER;
    for (name, version, first, before, second, expected) in [
        ("a reader waits for the write part of munmap", "6.1", UNMAP, &[][..], FAULT_4K, until_downgrade + FAULT),
        ("a writer waits for all of it", "6.1", UNMAP, &[], MMAP, until_downgrade + PAGES + WRITE),
        ("writers", "6.12.107", MMAP, &[], MMAP, until_downgrade + WRITE),
        ("readers do not exclude each other", "6.1", FAULT_4K, &[], FAULT_4K, FAULT),
        ("the lock of a mapping instead", "6.12.107", UNMAP, &[], FAULT_4K, FAULT),
        ("fork holds those of all mappings", "6.12.107", FORK, &[], FAULT_4K, until_downgrade + FAULT),
        ("clone copies nothing", "6.1", CLONE, &[], FAULT_4K, FAULT),
        ("faults of files before 6.7", "6.6", UNMAP, &[], FILE_FAULT, until_downgrade + FAULT),
        ("faults of files from 6.7 on", "6.8", UNMAP, &[], FILE_FAULT, FAULT),
        ("the first fault of a mapping", "6.6", UNMAP, &[MMAP], FAULT_4K, until_downgrade + FAULT),
        ("the same, tried", "6.12.107", UNMAP, &[MMAP], FAULT_4K, until_downgrade + FAULT),
        ("the second fault of a mapping", "6.6", UNMAP, &[MMAP, FAULT_4K], FAULT_4K, FAULT),
    ] {
        let time = |same, on| time_of_second(&two(version, same, on, first, before, second));
        assert_eq!(time(true, true), expected, "{name}");
        let alone = if second == MMAP { WRITE } else { FAULT };
        assert_eq!([time(false, true), time(true, false)], [alone; 2], "{name}: another process, and without the lock");
    }
}

/// A process of one thread behaves as without the mechanism, event for event.
#[test]
fn a_single_thread_never_waits_for_its_own_lock() {
    for version in ["6.1", "6.12.107"] {
        let [on, off] =
            [true, false].map(|on| record(&two(version, false, on, UNMAP, &[MMAP, FAULT_4K], UNMAP)).1.events);
        assert_eq!(on, off, "{version}");
    }
}

#[test]
fn pages_without_cost_end_a_munmap_at_once() {
    let mut spec = two("6.12.0", true, true, Op::Run(Amount::Fixed(USEC)), &[], UNMAP);
    Arc::make_mut(&mut spec.machine).costs.unmap_page = Dist::Constant(0);
    assert_eq!(time_of_second(&spec), WRITE);
}
