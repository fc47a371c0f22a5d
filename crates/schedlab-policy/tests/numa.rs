//! NUMA balancing on two nodes of four CPUs, with tasks that never sleep.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;
use schedlab_model::{CpuId, CpuMask, Nanos, TaskId, Topology, MSEC};
use schedlab_policy::procedure::{__schedule, wake_up_new_task, Recorder, Schedule};
use schedlab_policy::{KernelConfig, NumaAccess, NumaMemory, Sched, TaskAttr, Version};

const CPUS: u32 = 8;
const TICK: Nanos = 4 * MSEC;
/// 4 MiB in pages.
const PAGES: u32 = 1024;

struct Lab {
    sched: Sched,
    tasks: Vec<TaskId>,
    masks: Vec<CpuMask>,
    now: Nanos,
    faults: u64,
    migrated: u64,
    moves: u32,
}

impl Lab {
    fn new(row: &str, active: bool) -> Lab {
        let mut config = KernelConfig::new(Version::find(row).unwrap(), CPUS as usize, 250);
        config.knobs.numa_balancing = u64::from(active);
        config.knobs.numa_scan_size = 1;
        let topology = Arc::new(Topology::regular(2, 1, 4, 1, true).unwrap());
        let mut sched = Sched::new(config.clone(), topology);
        assert!(sched.init_numa(&config));
        Lab { sched, tasks: Vec::new(), masks: Vec::new(), now: TICK, faults: 0, migrated: 0, moves: 0 }
    }

    fn add(&mut self, mm: u64, mask: CpuMask, memory: NumaMemory) {
        let cpu = mask.lowest().unwrap();
        let task = self.sched.add_task(&TaskAttr { cpu, affinity: Some(mask), ..TaskAttr::default() });
        self.sched.init_numa_balancing(task, mm, &memory, self.now);
        self.tasks.push(task);
        self.masks.push(mask);
        wake_up_new_task(&mut Recorder::new(&mut self.sched, self.now), task, cpu);
    }

    fn reschedule(&mut self, cpu: CpuId, migrate: Option<(TaskId, CpuId)>) {
        let found = Schedule { migrate, ..Schedule::default() };
        __schedule(&mut Recorder::new(&mut self.sched, self.now), cpu, found);
    }

    /// A tick of every CPU.
    fn tick(&mut self) {
        self.now += TICK;
        for cpu in (0..CPUS).map(CpuId) {
            self.reschedule(cpu, None);
            let Some(task) = self.sched.curr(cpu) else { continue };
            self.sched.tick(cpu, self.now);
            if self.sched.has_numa_work(task) {
                self.sched.task_numa_work(task, 10, self.now);
            }
            let access = self.sched.numa_access(cpu, task, TICK, true, self.now);
            self.apply(cpu, access);
            if self.sched.balance_due(cpu, self.now) {
                self.sched.sched_balance_domains(cpu, false, self.now);
            }
        }
    }

    fn apply(&mut self, cpu: CpuId, access: NumaAccess) {
        assert!(access.local <= access.faults && access.migrations <= access.faults - access.local, "{access:?}");
        self.faults += u64::from(access.faults);
        self.migrated += access.migrated;
        let Some(moves) = access.moves else { return };
        assert_eq!(self.sched.cpu_of(moves.task), cpu);
        self.moves += 1;
        self.reschedule(cpu, Some((moves.task, moves.dest)));
        if let Some(swap) = moves.swap {
            self.reschedule(moves.dest, Some((swap, cpu)));
        }
    }

    fn run(&mut self, seconds: u64) {
        (0..seconds * 250).for_each(|_| self.tick());
    }

    fn node_of(&self, task: usize) -> u32 {
        self.sched.cpu_of(self.tasks[task]).0 / 4
    }
}

fn all() -> CpuMask {
    CpuMask::first(CPUS as usize)
}

fn memory(private: u32, shared: u32, node: Option<u32>) -> NumaMemory {
    NumaMemory { private, shared, pass: 20 * MSEC, node, huge: false }
}

#[test]
fn what_only_one_task_uses_comes_to_its_node() {
    for (row, active) in
        [("5.7", true), ("6.1", true), ("6.6", true), ("6.12.107", true), ("7.2", true), ("6.12.107", false)]
    {
        let mut lab = Lab::new(row, active);
        lab.add(1, CpuMask::from_list("0-3").unwrap(), memory(PAGES, 0, Some(1)));
        lab.run(8);
        let expected = if active { [u64::from(PAGES), 0] } else { [0, u64::from(PAGES)] };
        assert_eq!(lab.sched.numa_pages(lab.tasks[0]), expected, "{row} {active}");
        // Once they are there, the scan of a process with a single thread leaves them alone.
        let once = if active { u64::from(PAGES) } else { 0 };
        assert_eq!((lab.faults, lab.migrated), (once, once), "{row} {active}");
    }
}

#[test]
fn a_page_is_on_the_node_of_the_cpu_that_uses_it_first() {
    for (cpus, expected) in [("0-3", [u64::from(PAGES), 0]), ("4-7", [0, u64::from(PAGES)])] {
        let mut lab = Lab::new("6.12.107", false);
        lab.add(1, CpuMask::from_list(cpus).unwrap(), memory(PAGES, 0, None));
        assert_eq!(lab.sched.numa_pages(lab.tasks[0]), [0, 0]);
        lab.run(1);
        assert_eq!(lab.sched.numa_pages(lab.tasks[0]), expected);
    }
}

/// Two threads have to stay on node 1, the third may go there. They are not equally fast, so that each of them uses
/// every page before the others now and then. `others` tasks keep node 0 busy.
fn threads_that_share(others: u32) -> Lab {
    let mut lab = Lab::new("6.12.107", true);
    for (cpus, pass) in [("4-7", 20), ("4-7", 23), ("0-7", 29)] {
        let memory = NumaMemory { pass: pass * MSEC, ..memory(0, PAGES, Some(1)) };
        lab.add(1, CpuMask::from_list(cpus).unwrap(), memory);
    }
    for other in 0..others {
        lab.add(2 + u64::from(other), CpuMask::from_list("0-3").unwrap(), memory(1, 0, Some(0)));
    }
    lab.run(20);
    lab
}

#[test]
fn a_thread_comes_to_the_pages_that_others_keep_unless_nodes_become_uneven() {
    let lab = threads_that_share(3);
    assert_eq!((lab.node_of(2), lab.sched.numa_preferred_nid(lab.tasks[2])), (1, Some(1)));
    assert!(lab.moves > 0);
    // With nothing else on node 0 three tasks would run on one node and none on the other.
    let lab = threads_that_share(0);
    assert_eq!((lab.node_of(2), lab.moves), (0, 0));
    assert_eq!(lab.sched.numa_pages(lab.tasks[0]), [0, u64::from(PAGES)]);
}

#[test]
fn memory_is_given_back() {
    let mut lab = Lab::new("6.12.107", true);
    lab.add(1, all(), memory(PAGES, PAGES, Some(0)));
    lab.add(1, all(), memory(PAGES, PAGES, Some(0)));
    assert_eq!(lab.sched.numa_pages(lab.tasks[0]), [3 * u64::from(PAGES), 0]);
    lab.run(2);
    lab.sched.task_numa_free(lab.tasks[1]);
    assert_eq!(lab.sched.numa_pages(lab.tasks[0]).iter().sum::<u64>(), 2 * u64::from(PAGES));
    assert_eq!(lab.sched.numa_pages(lab.tasks[1]), [0, 0]);
}

/// A task: its process, its CPUs as bits, its private memory, where it is, and whether its pages are huge.
type Spec = (u64, u8, u32, Option<u32>, bool);

fn spec() -> impl Strategy<Value = Spec> {
    (1u64..4, 1u8..=255, 1u32..3 * PAGES, prop::option::of(0u32..2), any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever tasks there are: no page is lost or made, and no task leaves the CPUs that it may use.
    #[test]
    fn pages_are_conserved_and_affinities_kept(
        row in prop::sample::select(vec!["5.7", "5.10", "5.15", "6.1", "6.6", "6.12.107", "6.18", "7.2", "7.3"]),
        specs in prop::collection::vec(spec(), 1..14),
    ) {
        let mut lab = Lab::new(row, true);
        let mut owned = [0u64; 4];
        for (mm, cpus, private, node, huge) in &specs {
            let mask = (0..CPUS).filter(|cpu| cpus >> cpu & 1 == 1).map(CpuId).collect::<CpuMask>();
            let whole = NumaMemory { huge: *huge, ..memory(*private, 0, *node) };
            owned[*mm as usize] += if *huge { u64::from(*private).next_multiple_of(512) } else { u64::from(*private) };
            lab.add(*mm, mask, whole);
        }
        for _ in 0..12 {
            (0..50).for_each(|_| lab.tick());
            for (index, (mm, ..)) in specs.iter().enumerate() {
                let cpu = lab.sched.cpu_of(lab.tasks[index]);
                prop_assert!(lab.masks[index].has(cpu), "task {} on {:?}", index, cpu);
                let pages: u64 = lab.sched.numa_pages(lab.tasks[index]).iter().sum();
                prop_assert!(pages <= owned[*mm as usize], "{} of {}", pages, owned[*mm as usize]);
                if specs.iter().all(|spec| spec.3.is_some()) {
                    prop_assert_eq!(pages, owned[*mm as usize]);
                }
            }
        }
    }
}
