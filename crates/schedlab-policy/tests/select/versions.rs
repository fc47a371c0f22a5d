//! What older and newer kernels do differently, one worked example for each rule.

use schedlab_model::{CpuId, MSEC, USEC};
use schedlab_policy::{Counts, Selection, WakeKind};

use crate::lab::{Lab, SYNC, WAKE};

/// The same in each version: what it comes to.
fn each<T: PartialEq + std::fmt::Debug>(expected: &[(&str, T)], mut run: impl FnMut(&str) -> T) {
    for (version, expected) in expected {
        assert_eq!(run(version), *expected, "{version}");
    }
}

#[test]
fn an_idle_prev_with_sleepers_load() {
    // Caches 0-1 and 2-3. The wakee's CPU 2 is idle, three tasks sleep there. 5.7 compares (1 + 1) * 100 with (3 - 1) *
    // 112, sleepers and their load included, and moves the wakee to the waker's cache. 5.2 does not see sleepers; 5.13
    // keeps an idle prev before it compares anything.
    let expected = [
        ("5.2", (2, "target idle")),
        ("5.7", (1, "idle CPU search")),
        ("5.13", (2, "target idle")),
        ("6.1", (2, "target idle")),
    ];
    each(&expected, |version| {
        let mut lab = Lab::new(version, (1, 2, 2, 1));
        lab.running(0);
        let wakee = lab.running(2);
        lab.block(CpuId(2));
        for _ in 0..2 {
            lab.running(2);
            lab.block(CpuId(2));
        }
        let selection = lab.select(wakee, 0, WAKE);
        (selection.cpu.0, selection.rule)
    });
}

#[test]
fn the_budget_and_the_thread_after_it() {
    // 8 cores of 2, all busy but CPU 0; target and prev are CPU 1. The first time the hint of an idle core is followed:
    // 5.2 tests all 16 threads, 5.7 two of the first core and one of each other, then both all 16 CPUs; 5.13 stops at
    // the first busy thread once it has found an idle one, 6.1 begins with the next core and finds CPU 0 last. A test
    // costs 10 us, so avg_idle / 512 is short against the search: the second time three CPUs, then the target's core;
    // the one-pass search without the hint tries the sibling of prev first.
    let passes = |first| ("idle CPU search", first, "sibling of target idle", 3 + 1);
    let one_pass = |first| ("idle core search", first, "sibling of prev idle", 1);
    let expected = [("5.2", passes(32)), ("5.7", passes(25)), ("5.13", one_pass(9)), ("6.1", one_pass(16))];
    each(&expected, |version| {
        let mut lab = Lab::new(version, (1, 1, 8, 2));
        lab.sched.set_scan_cost([10 * USEC; 5]);
        let wakee = lab.task_on(1);
        (1..16).for_each(|cpu| _ = lab.running(cpu));
        let (first, second) = (lab.select(wakee, 1, WAKE), lab.select(wakee, 1, WAKE));
        assert_eq!((first.cpu, second.cpu), (CpuId(0), CpuId(0)));
        // Less the test of the target before the search.
        let tests = |selection: &Selection| selection.tested.iter().sum::<u32>() - 1;
        (first.rule, tests(&first), second.rule, tests(&second))
    });
}

#[test]
fn forbidden_cpus_cost_budget_in_5_2() {
    // 16 CPUs, all busy but 9. The wakee may use 0 and 8 to 15: within three, 5.2 looks at 0, 1 and 2, 5.7 at 0, 8 and
    // 9.
    each(&[("5.2", 0), ("5.7", 9)], |version| {
        let mut lab = Lab::new(version, (1, 1, 16, 1));
        lab.sched.set_scan_cost([100 * USEC; 5]);
        let teacher = lab.task_on(0);
        let wakee = lab.pinned(0, "0,8-15");
        (0..16).filter(|cpu| *cpu != 9).for_each(|cpu| _ = lab.running(cpu));
        lab.select(teacher, 0, WAKE);
        lab.select(wakee, 0, WAKE).cpu.0
    });
}

#[test]
fn where_the_search_starts() {
    // CPUs 0 to 5 are busy, the target is 3: it is tested again, or not.
    each(&[("5.7", 4), ("5.13", 4), ("6.1", 3)], |version| {
        let mut lab = Lab::configured(version, (1, 1, 8, 1), |config| {
            // Every version without a limit.
            let _ = (config.set_feature("SIS_PROP", false), config.set_feature("SIS_UTIL", false));
        });
        let wakee = lab.task_on(3);
        (0..6).for_each(|cpu| _ = lab.running(cpu));
        let selection = lab.select(wakee, 3, WAKE);
        assert_eq!(selection.cpu, CpuId(6));
        // Beside the test of the target before the search.
        selection.tested.iter().sum::<u32>() - 1
    });
}

#[test]
fn cpus_that_run_only_idle_policy_tasks() {
    let on = |version: &str, background: bool| {
        let mut lab = Lab::new(version, (1, 1, 2, 1));
        let wakee = if background { lab.idle_policy_on(1) } else { lab.task_on(1) };
        lab.running(0);
        let other = lab.idle_policy_on(1);
        lab.enqueue(other);
        lab.schedule(CpuId(1));
        lab.select(wakee, 1, WAKE).rule
    };
    each(&[("5.2", "previous CPU"), ("5.7", "target idle"), ("6.18.2", "target idle"), ("7.2", "target idle")], |v| {
        on(v, false)
    });
    each(&[("5.7", "target idle"), ("6.18.2", "target idle"), ("7.2", "previous CPU")], |v| on(v, true));
}

#[test]
fn the_recently_used_cpu() {
    // A task begins on CPU 4, wakes another while it runs on 0, and runs on 3 last. When it wakes itself, 3 and 4 are
    // busy: up to 5.14 it is known to have woken others on 0; 6.1 finds 0 by searching.
    let expected =
        [("5.2", (0, "recently used idle")), ("5.13", (0, "recently used idle")), ("6.1", (0, "idle CPU search"))];
    each(&expected, |version| {
        let mut lab = Lab::new(version, (1, 1, 8, 1));
        let (waker, other) = (lab.pinned(4, "0,3,4"), lab.task_on(5));
        lab.running(4);
        lab.sched.activate(waker, CpuId(0), WAKE, lab.now);
        lab.schedule(CpuId(0));
        lab.select(other, 0, WAKE);
        lab.block(CpuId(0));
        // It last ran on 3.
        lab.sched.activate(waker, CpuId(3), WAKE, lab.now);
        lab.schedule(CpuId(3));
        lab.block(CpuId(3));
        lab.running(3);
        let selection = lab.select(waker, 3, WAKE);
        (selection.cpu.0, selection.rule)
    });
}

#[test]
fn wakeups_of_idle_cpus_within_the_cache() {
    // An idle CPU of the same cache, of another; and a task that is still leaving such a CPU, which the waker of 5.2
    // waits for.
    let expected = [
        ("5.2", [(false, false), (true, false)]),
        ("5.7", [(false, false), (true, false)]),
        ("5.13", [(false, true), (true, true)]),
        ("6.1", [(true, true), (true, true)]),
        ("7.2", [(true, true), (true, true)]),
    ];
    each(&expected, |version| {
        let mut lab = Lab::new(version, (1, 2, 2, 1));
        let task = lab.task_on(0);
        lab.running(0);
        [1, 2].map(|target| {
            let queued = |leaving| lab.sched.ttwu_queue_cond(task, CpuId(0), CpuId(target), leaving);
            (queued(false), queued(true))
        })
    });
}

#[test]
fn a_busy_cpu_balances_every_so_many_jiffies() {
    // 4 CPUs: a balanced pass doubles the interval of 4 ms. 8 ms * 32 are 64 jiffies of 4 ms; 8 * 16 less one are 31.
    each(&[("5.2", 64), ("5.7", 64), ("5.13", 31), ("6.1", 31), ("7.2", 31)], |version| {
        let mut lab = Lab::new(version, (1, 1, 4, 1));
        lab.running(0);
        lab.now = 1000 * MSEC;
        lab.sched.sched_balance_domains(CpuId(0), false, lab.now);
        (1..100).find(|jiffies| lab.sched.balance_due(CpuId(0), lab.now + jiffies * 4 * MSEC)).unwrap_or(0)
    });
}

#[test]
fn newidle_after_short_idle_spells() {
    // Idle spells of 10 us: up to 5.15 that is less than migration_cost, so no pass; later a pass may cost that much.
    each(&[("5.2", 0), ("5.7", 0), ("5.13", 0), ("6.1", 1), ("6.12.0", 1)], |version| {
        let mut lab = Lab::configured(version, (1, 1, 2, 1), |config| drop(config.set_feature("NI_RANDOM", false)));
        lab.sched.set_balance_cost(0, 0);
        let task = lab.pinned(1, "1");
        for _ in 0..100 {
            lab.sched.activate(task, CpuId(1), WAKE, lab.now);
            lab.schedule(CpuId(1));
            lab.now += MSEC;
            lab.block(CpuId(1));
            lab.now += 10 * USEC;
        }
        lab.running(0);
        lab.running(0);
        lab.now += 20 * MSEC;
        lab.sched.sched_balance_newidle(CpuId(1), lab.now).passes
    });
}

#[test]
fn whose_idle_spells_count() {
    // A CPU idle for long, then for 10 us at a time, each spell ended by a new task: only 7.2 counts those.
    each(&[("6.18.2", 1), ("7.2", 0)], |version| {
        let mut lab = Lab::configured(version, (1, 1, 2, 1), |config| drop(config.set_feature("NI_RANDOM", false)));
        lab.sched.set_balance_cost(50 * USEC, 0);
        lab.running(0);
        lab.running(0);
        lab.now += 20 * MSEC;
        // What a pass costs is learnt: 50 us.
        lab.sched.sched_balance_newidle(CpuId(1), lab.now);
        lab.schedule(CpuId(1));
        for _ in 0..100 {
            lab.block(CpuId(1));
            lab.now += 10 * USEC;
            let task = lab.pinned(1, "1");
            lab.enqueue(task);
            lab.schedule(CpuId(1));
            lab.now += MSEC;
        }
        lab.running(0);
        lab.running(0);
        lab.now += 20 * MSEC;
        let before = lab.sched.curr(CpuId(1)).expect("it runs");
        lab.sched.block(before, true, lab.now);
        while lab.sched.pick_next_task(CpuId(1), lab.now).is_some() {
            let curr = lab.sched.curr(CpuId(1)).expect("picked");
            lab.sched.block(curr, true, lab.now);
        }
        lab.sched.sched_balance_newidle(CpuId(1), lab.now).passes.min(1)
    });
}

#[test]
fn a_new_task_leaves_its_node() {
    // 2 nodes of 8. With so many tasks on the forking node the child goes to the other: 5.7 as soon as no CPU is idle
    // there, 5.13 from a quarter of the machine on, 6.1 at once (an eighth of a node is one CPU); 5.2 compares load.
    for (version, stays, goes) in [("5.7", 7, 8), ("5.13", 3, 4), ("6.1", 0, 1)] {
        for (running, other_node) in [(stays, false), (goes, true)] {
            if running == 0 {
                continue;
            }
            let mut lab = Lab::new(version, (2, 1, 8, 1));
            (0..running).for_each(|cpu| _ = lab.running(cpu));
            let parent = lab.sched.curr(CpuId(0)).expect("it runs");
            let (child, _) = lab.sched.sched_fork(parent, lab.now);
            let cpu = lab.select(child, 0, WakeKind::Fork).cpu.0;
            assert_eq!(cpu >= 8, other_node, "{version} with {running}: CPU {cpu}");
        }
    }
}

#[test]
fn sync_wakeups_stay_with_a_lone_waker_in_every_version() {
    for version in ["5.2", "5.7", "5.13", "6.3", "6.6", "6.12.107", "7.2"] {
        let mut lab = Lab::new(version, (1, 1, 2, 1));
        let wakee = lab.task_on(1);
        lab.running(0);
        lab.running(1);
        let selection = lab.select(wakee, 0, SYNC);
        assert_eq!((selection.cpu.0, selection.rule), (0, "wake_affine: sync"), "{version}");
    }
}

#[test]
fn a_wakee_belongs_to_its_new_cpu_before_it_is_queued_there() {
    // What it slept on is what its vruntime is relative to, as it was at the wakeup: 10 ms more run there before the
    // other CPU takes it from its list.
    for version in ["5.2", "6.1"] {
        let run = |waits: bool| {
            let mut lab = Lab::new(version, (1, 2, 1, 1));
            let wakee = lab.running(0);
            lab.now += 2 * MSEC;
            lab.block(CpuId(0));
            lab.running(0);
            lab.running(1);
            lab.now += 20 * MSEC;
            for cpu in [0, 1] {
                lab.sched.tick(CpuId(cpu), lab.now);
            }
            lab.sched.set_wakee_cpu(wakee, CpuId(1), lab.now);
            assert_eq!(lab.sched.cpu_of(wakee), CpuId(1), "{version}");
            if waits {
                lab.now += 10 * MSEC;
                lab.sched.tick(CpuId(0), lab.now);
            }
            lab.sched.activate(wakee, CpuId(1), WAKE, lab.now);
            lab.sched.fair.entity(wakee).vruntime.since(lab.sched.fair.rq(CpuId(1)).min_vruntime)
        };
        assert_eq!(run(true), run(false), "{version}");
    }
}

#[test]
fn the_iterator_mask_saves_tests_and_decides_alike() {
    // 16 cores of 2. Without a budget the mask changes what is tested, never what is found.
    let masked = |on: bool, busy: &[u32]| {
        let mut lab = Lab::configured("5.2", (1, 1, 16, 2), |config| {
            config.set_feature("SIS_PROP", false).expect("5.2 has it");
            config.set_feature("SIS_ITERATOR_MASK", on).expect("5.2 has the proposal");
        });
        let wakee = lab.task_on(1);
        busy.iter().for_each(|cpu| _ = lab.running(*cpu));
        lab.select(wakee, 1, WAKE)
    };
    let tested = |counts: Option<Counts>| counts.map_or(0, |counts| counts.iter().sum::<u32>());
    // One thread of each core is busy, the first of them the target: the core scan tests all 32 threads and fails.
    let half: Vec<u32> = (1..32).step_by(2).collect();
    let (without, with) = (masked(false, &half), masked(true, &half));
    assert_eq!((without.cpu, with.cpu), (CpuId(2), CpuId(2)));
    assert_eq!([without.scans.core, with.scans.core].map(tested), [32, 32]);
    assert_eq!([without.scans.cpu, with.scans.cpu].map(tested), [2, 1]);
    // Only the last thread before the target is idle: 32 tests against 1; none at all is idle: 32 against 0.
    let last: Vec<u32> = (1..32).collect();
    assert_eq!([masked(false, &last), masked(true, &last)].map(|s| (s.cpu.0, tested(s.scans.cpu))), [(0, 32), (0, 1)]);
    let all: Vec<u32> = (0..32).collect();
    assert_eq!([masked(false, &all), masked(true, &all)].map(|s| (s.cpu.0, tested(s.scans.cpu))), [(1, 32), (1, 0)]);
}

#[test]
fn every_domain_of_a_machine_that_was_idle_for_long_is_due_at_once() {
    // 480 CPUs: the NUMA domain's interval is 960 ms on an idle CPU. The first CPU of another node pulls at its first
    // turn.
    let mut lab = Lab::new("6.12.0", (4, 1, 60, 2));
    for _ in 0..8 {
        lab.running(0);
    }
    lab.now += 4 * MSEC;
    assert!(lab.sched.balance_due(CpuId(120), lab.now));
    let moves = lab.sched.sched_balance_domains(CpuId(120), true, lab.now);
    assert_eq!(moves.passes, 3, "SMT, MC and NUMA");
    assert!(!moves.moved.is_empty());
}
