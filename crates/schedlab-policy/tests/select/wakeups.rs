//! Where wakeups and forks go, example by example.

use schedlab_model::{CpuId, CpuMask, Topology, MSEC, SEC};
use schedlab_policy::procedure::{sched_ttwu_pending, try_to_wake_up, Effect, Recorder, Wakeup};
use schedlab_policy::{KernelConfig, TaskAttr, WakeKind};

use crate::lab::{Lab, Shape, SYNC, WAKE};

/// Two CPUs under one cache. Waker runs on CPU 0; the wakee last ran on CPU 1.
struct TwoCpus {
    version: &'static str,
    /// Tasks on each CPU, the waker included.
    tasks: [u32; 2],
    kind: WakeKind,
    expected: u32,
    rule: &'static str,
}

#[test]
fn two_cpus_one_cache() {
    let case = |tasks, kind, expected, rule| TwoCpus { version: "6.1", tasks, kind, expected, rule };
    let mut cases = vec![
        // prev idle: wake_affine returns it (sync or not: without sync because prev is idle), and it is idle.
        case([1, 0], WAKE, 1, "target idle"),
        case([2, 0], SYNC, 1, "target idle"),
        // sync and the waker alone: target is the waker's CPU, which is busy; prev shares the cache and is idle.
        case([1, 0], SYNC, 1, "prev idle"),
        // both busy, sync and the waker alone: stays with the waker.
        case([1, 1], SYNC, 0, "wake_affine: sync"),
        // both busy, not sync: 0's load with the wakee against 1's without it, (1+1)*100 against (1-1)*108.
        case([1, 1], WAKE, 1, "wake_affine: prev"),
        // the waker's own load does not count for sync wakeups: (2-1+1)*100 < (3-1)*108.
        case([2, 3], SYNC, 0, "wake_affine: lighter"),
        case([2, 3], WAKE, 1, "wake_affine: prev"),
        case([1, 4], WAKE, 0, "wake_affine: lighter"),
    ];
    cases.extend((0..cases.len()).map(|i| TwoCpus { version: "6.12.0", ..cases[i] }).collect::<Vec<_>>());
    for (index, c) in cases.iter().enumerate() {
        let mut lab = Lab::new(c.version, (1, 1, 2, 1));
        let wakee = lab.task_on(1);
        for (cpu, count) in c.tasks.iter().enumerate() {
            for _ in 0..*count {
                lab.running(cpu as u32);
            }
        }
        let selection = lab.select(wakee, 0, c.kind);
        assert_eq!((selection.cpu.0, selection.rule), (c.expected, c.rule), "case {index} on {}", c.version);
    }
}

#[test]
fn an_interrupt_on_an_idle_cpu_pulls_only_within_the_cache() {
    for (shape, expected) in [((1, 1, 4, 1), 0), ((1, 2, 2, 1), 3)] as [(Shape, u32); 2] {
        let mut lab = Lab::new("6.1", shape);
        let wakee = lab.task_on(2);
        lab.running(2);
        assert_eq!(lab.select(wakee, 0, WAKE).cpu.0, expected, "{shape:?}");
    }
}

#[test]
fn the_cache_is_searched_from_target_plus_one_within_the_budget() {
    // 8 cores without SMT; CPUs 0..=5 busy, the wakee's CPU 2 too: 3, 4, 5 are tested in vain, then 6 is idle.
    let mut lab = Lab::new("6.12.0", (1, 1, 8, 1));
    let wakee = lab.task_on(2);
    for cpu in 0..6 {
        lab.running(cpu);
    }
    let selection = lab.select(wakee, 2, WAKE);
    assert_eq!((selection.cpu, selection.rule), (CpuId(6), "idle CPU search"));
    // The target itself, then 3, 4, 5, 6.
    assert_eq!(selection.tested, [1, 0, 4, 0, 0]);
}

#[test]
fn a_wakeup_can_ask_for_the_wakers_cpu() {
    for (version, mask, expected) in [
        ("6.12.107", "0-3", (0, "WF_CURRENT_CPU: the waker's CPU")),
        ("6.12.107", "1-3", (2, "target idle")),
        ("6.1", "0-3", (2, "target idle")),
    ] {
        let mut lab = Lab::new(version, (1, 1, 4, 1));
        let wakee = lab.pinned(2, mask);
        lab.running(0);
        let selection = lab.sched.select_task_rq_for(
            Wakeup { task: wakee, waker_cpu: CpuId(0), sync: false, here: true, in_task: true },
            WAKE,
            lab.now,
        );
        assert_eq!((selection.cpu.0, selection.rule), expected, "{version} on {mask}");
    }
}

/// Eight CPUs under one cache in two clusters; the waker is alone on CPU 0 and about to sleep, the wakee last ran on
/// CPU 7, in the other cluster.
#[test]
fn the_cluster_of_the_target_is_searched_first() {
    for (version, busy, expected) in [
        ("6.6", &[0][..], (7, "prev idle")),
        ("6.8", &[0], (1, "idle CPU search")),
        ("6.8", &[0, 1, 2], (3, "idle CPU search")),
        ("6.8", &[0, 1, 2, 3], (4, "idle CPU search")),
        ("7.2", &[0, 1, 2, 3, 4], (5, "idle CPU search")),
    ] {
        let topology = Topology::regular(1, 1, 8, 1, true).and_then(|flat| flat.clustered(4)).unwrap();
        let mut lab = Lab::on(version, topology, |_| {});
        let wakee = lab.task_on(7);
        for cpu in busy {
            lab.running(*cpu);
        }
        let selection = lab.select(wakee, 0, SYNC);
        assert_eq!((selection.cpu.0, selection.rule), expected, "{version} with {busy:?} busy");
    }
}

#[test]
fn an_idle_prev_in_another_cluster_is_better_than_none() {
    let topology = Topology::regular(1, 1, 8, 1, true).and_then(|flat| flat.clustered(4)).unwrap();
    let mut lab = Lab::on("6.8", topology, |_| {});
    let wakee = lab.task_on(7);
    for cpu in 0..7 {
        lab.running(cpu);
    }
    // As above, the cache is too busy to be searched.
    lab.now += SEC;
    (0..7).for_each(|cpu| _ = lab.sched.tick(CpuId(cpu), lab.now));
    lab.sched.sched_balance_domains(CpuId(7), true, lab.now);
    lab.sched.sched_balance_domains(CpuId(0), false, lab.now);
    let selection = lab.select(wakee, 2, SYNC);
    assert_eq!((selection.cpu, selection.rule), (CpuId(7), "prev idle in another cluster"));
}

#[test]
fn a_busy_cache_is_not_searched_at_all() {
    let mut lab = Lab::new("6.12.0", (1, 1, 8, 1));
    let wakee = lab.task_on(2);
    for cpu in 0..7 {
        lab.running(cpu);
    }
    // 7 of 8 CPUs busy for a long time: 87.5 % is above the 85.5 % at which SIS_UTIL gives up.
    lab.now += SEC;
    (0..7).for_each(|cpu| _ = lab.sched.tick(CpuId(cpu), lab.now));
    lab.sched.sched_balance_domains(CpuId(0), false, lab.now);
    lab.sched.sched_balance_domains(CpuId(7), true, lab.now);
    let selection = lab.select(wakee, 2, WAKE);
    assert_eq!((selection.cpu, selection.tested), (CpuId(2), [1, 0, 0, 0, 0]));
}

#[test]
fn with_smt_an_idle_core_goes_before_an_idle_thread() {
    // Cores of 2: (0,1) (2,3) (4,5) (6,7).
    let mut lab = Lab::new("6.1", (1, 1, 4, 2));
    let wakee = lab.task_on(0);
    for cpu in [0, 2, 4] {
        lab.running(cpu);
    }
    let selection = lab.select(wakee, 0, WAKE);
    assert_eq!((selection.cpu, selection.rule), (CpuId(6), "idle core search"));
    lab.running(6);
    // No core is idle any more: the search takes the first idle thread that it has found and clears the hint.
    let selection = lab.select(wakee, 0, WAKE);
    assert_eq!((selection.cpu, selection.rule), (CpuId(1), "idle core search"));
    // Without the hint the sibling of prev comes first.
    let selection = lab.select(wakee, 0, WAKE);
    assert_eq!((selection.cpu, selection.rule), (CpuId(1), "sibling of prev idle"));
}

#[test]
fn a_cpu_with_only_idle_policy_tasks_counts_as_idle() {
    let mut lab = Lab::new("6.12.0", (1, 1, 2, 1));
    let wakee = lab.task_on(1);
    lab.running(0);
    let background = lab.idle_policy_on(1);
    lab.enqueue(background);
    lab.schedule(CpuId(1));
    assert_eq!(lab.select(wakee, 0, WAKE).rule, "target idle");
    lab.running(1);
    assert_eq!(lab.select(wakee, 0, WAKE).rule, "wake_affine: prev");
}

#[test]
fn the_cpu_used_before_prev_is_tried() {
    let mut lab = Lab::new("6.1", (1, 1, 4, 1));
    let wakee = lab.task_on(3);
    lab.running(0);
    lab.running(1);
    // First wakeup: 3 is idle, so the CPU before it is not recorded.
    assert_eq!(lab.wake(wakee, CpuId(0), WAKE).map(|s| s.cpu), Some(CpuId(3)));
    lab.block(CpuId(3));
    lab.running(3);
    // Now it moves to the next idle CPU after 3, wrapping: 2; and 3 is remembered.
    assert_eq!(lab.wake(wakee, CpuId(0), WAKE).map(|s| s.cpu), Some(CpuId(2)));
    lab.block(CpuId(2));
    lab.running(2);
    lab.block(CpuId(3));
    let selection = lab.select(wakee, 0, WAKE);
    assert_eq!((selection.cpu, selection.rule), (CpuId(3), "recently used idle"));
}

#[test]
fn affinity_is_honoured_on_every_path() {
    for version in ["6.1", "6.12.0"] {
        for kind in [WAKE, SYNC, WakeKind::Fork, WakeKind::Exec] {
            for (mask, expected) in [("5", 5), ("4-7", 4), ("2-3", 2)] {
                let mut lab = Lab::new(version, (2, 1, 2, 2));
                // Its last CPU is idle but forbidden.
                let task = lab.pinned(0, mask);
                lab.running(1);
                let cpu = lab.select(task, 1, kind).cpu;
                assert!(lab.sched.allows(task, cpu), "{version} {kind:?} {mask} gave {cpu}");
                if mask == "5" {
                    assert_eq!(cpu.0, expected);
                }
            }
        }
    }
}

#[test]
fn a_forbidden_choice_falls_back_to_the_same_node() {
    // Nodes 0-3 and 4-7. The last CPU, 5, is idle and would be kept, but only 1 and 6-7 are allowed.
    let mut lab = Lab::new("6.1", (2, 1, 4, 1));
    let task = lab.pinned(5, "1,6-7");
    lab.running(0);
    let selection = lab.select(task, 0, WAKE);
    assert_eq!((selection.cpu, selection.rule), (CpuId(6), "not allowed on the choice"));
}

#[test]
fn fork_goes_to_the_idlest_group_of_each_level() {
    // Two nodes of two caches of two cores: fork from CPU 0 with all of node 0 busy goes to node 1.
    let mut lab = Lab::new("6.12.0", (2, 2, 2, 1));
    for cpu in 0..4 {
        lab.running(cpu);
    }
    lab.running(4);
    let parent = lab.sched.curr(CpuId(0)).expect("it runs");
    let (child, _) = lab.sched.sched_fork(parent, lab.now);
    assert_eq!(lab.sched.cpu_of(child), CpuId(0));
    let selection = lab.select(child, 0, WakeKind::Fork);
    assert!((6..8).contains(&selection.cpu.0), "{selection:?}");
    assert_eq!(selection.rule, "idlest group");
}

#[test]
fn fork_stays_near_while_the_node_is_nearly_empty() {
    let mut lab = Lab::new("6.12.0", (2, 1, 16, 1));
    lab.running(0);
    let parent = lab.sched.curr(CpuId(0)).expect("it runs");
    let (child, _) = lab.sched.sched_fork(parent, lab.now);
    let cpu = lab.select(child, 0, WakeKind::Fork).cpu;
    assert!((1..16).contains(&cpu.0), "left its node for {cpu}");
}

#[test]
fn exec_does_not_count_the_task_itself() {
    let mut lab = Lab::new("6.1", (1, 1, 4, 1));
    let task = lab.running(2);
    assert_eq!(lab.select(task, 2, WakeKind::Exec).cpu, CpuId(2), "alone on its CPU it has no reason to go");
    lab.running(2);
    assert_ne!(lab.select(task, 2, WakeKind::Exec).cpu, CpuId(2));
}

#[test]
fn a_fork_counts_the_cpus_that_the_child_may_use() {
    // Cores 0-1 and 2-3. The parent may use CPU 0, whose sibling is busy, and CPU 2, where it runs.
    for (row, cpu) in [("5.7", 2), ("5.15", 2), ("6.12.43", 2), ("6.18.12", 2)].into_iter().chain([
        ("5.10", 0),
        ("6.1", 0),
        ("6.12.107", 0),
        ("6.18.44", 0),
        ("7.2", 0),
        ("7.3", 0),
    ]) {
        let mut lab = Lab::new(row, (1, 1, 2, 2));
        let hog = lab.pinned(1, "1");
        lab.enqueue(hog);
        lab.schedule(CpuId(1));
        let parent = lab.pinned(2, "0,2");
        lab.enqueue(parent);
        lab.schedule(CpuId(2));
        let (child, _) = lab.sched.sched_fork(parent, lab.now);
        assert_eq!(lab.select(child, 2, WakeKind::Fork).cpu, CpuId(cpu), "{row}");
    }
}

#[test]
fn exec_ages_the_task_up_to_the_last_update_of_its_queue() {
    for mask in ["0-3", "2"] {
        let mut lab = Lab::new("6.12.107", (1, 1, 4, 1));
        let task = lab.pinned(2, mask);
        lab.enqueue(task);
        lab.schedule(CpuId(2));
        lab.now += 5 * MSEC;
        let other = lab.task_on(2);
        lab.enqueue(other);
        let averages = |lab: &Lab| lab.sched.fair.entity(task).avg;
        let before = averages(&lab);
        lab.select(task, 2, WakeKind::Fork);
        assert_eq!(averages(&lab).last_update_time, before.last_update_time, "only a new image");
        lab.select(task, 2, WakeKind::Exec);
        let after = averages(&lab);
        assert!(after.last_update_time > before.last_update_time + 4 * MSEC && after.load_avg < before.load_avg);
    }
}

#[test]
fn a_waker_of_many_does_not_pull_another() {
    // Caches 0-1 and 2-3. The wakee itself wakes two others in turn; both sides flip more than a cache has CPUs.
    let mut lab = Lab::new("6.1", (1, 2, 2, 1));
    lab.running(0);
    let wakee = lab.running(2);
    let others: Vec<_> = (0..10).map(|_| lab.task_on(3)).collect();
    for turn in 0..4 {
        lab.select(others[turn % 2], 2, WAKE);
    }
    assert_eq!(lab.select(wakee, 0, SYNC).cpu, CpuId(1), "pulled to the waker's cache");
    for other in &others {
        lab.select(*other, 0, WAKE);
    }
    assert_eq!(lab.select(wakee, 0, SYNC).cpu, CpuId(3), "stays near its own");
    // A quiet second halves the waker's count below the factor.
    lab.now += 2 * SEC;
    assert_eq!(lab.select(wakee, 0, SYNC).cpu, CpuId(1));
}

#[test]
fn remote_queueing() {
    let on = |config: &mut KernelConfig| drop(config.set_feature("TTWU_QUEUE", true));
    let off = |config: &mut KernelConfig| drop(config.set_feature("TTWU_QUEUE", false));
    // Caches 0-1 and 2-3; CPU 1 idle, 0 busy, 2 idle, 3 busy.
    for (waker, target, expected) in
        [(0, 1, true), (0, 0, false), (1, 0, false), (0, 2, true), (0, 3, true), (1, 1, false)]
    {
        for (feature, configure) in [(true, on as fn(&mut KernelConfig)), (false, off)] {
            let mut lab = Lab::configured("6.1", (1, 2, 2, 1), configure);
            let task = lab.task_on(0);
            lab.running(0);
            lab.running(3);
            let queued = lab.sched.ttwu_queue_cond(task, CpuId(waker), CpuId(target), false);
            assert_eq!(queued, expected && feature, "{waker} wakes on {target}, TTWU_QUEUE {feature}");
        }
    }
}

#[test]
fn a_pending_wakeup_hides_an_idle_cpu() {
    let mut lab = Lab::new("6.1", (1, 1, 2, 1));
    let task = lab.task_on(1);
    lab.running(0);
    let mut recorder = Recorder::new(&mut lab.sched, lab.now);
    try_to_wake_up(&mut recorder, Wakeup { task, waker_cpu: CpuId(0), sync: false, here: false, in_task: true });
    let queued = Effect::WakelistQueued { task, cpu: CpuId(1), first: true };
    assert_eq!(recorder.effects, [Effect::Waking { task, cpu: CpuId(1) }, queued]);
    assert_eq!((lab.sched.is_idle(CpuId(1)), lab.sched.nr_running(CpuId(1))), (false, 0));
    assert_eq!(lab.sched.sched_balance_newidle(CpuId(1), lab.now).passes, 0);
    sched_ttwu_pending(&mut Recorder::new(&mut lab.sched, lab.now), CpuId(1));
    assert_eq!((lab.sched.wakelist(CpuId(1)), lab.sched.nr_running(CpuId(1))), (&[][..], 1));
}

#[test]
fn sis_prop_bounds_the_search_by_idle_time() {
    let configure = |config: &mut KernelConfig| {
        config.set_feature("SIS_PROP", true).expect("6.1 has it");
        config.set_feature("SIS_UTIL", false).expect("6.1 has it");
    };
    let mut lab = Lab::configured("6.1", (1, 1, 16, 1), configure);
    let (wakee, waker) = (lab.task_on(0), lab.task_on(0));
    lab.wake(waker, CpuId(0), WAKE);
    lab.schedule(CpuId(0));
    for cpu in 1..15 {
        lab.running(cpu);
    }
    assert_eq!(lab.select(wakee, 0, WAKE).cpu, CpuId(15), "the waker's CPU was idle for long: all are tested");
    // Two hundred jiffies of work later nothing is left of that idle time: 3 CPUs are tested.
    lab.now += 800 * MSEC;
    let selection = lab.select(wakee, 0, WAKE);
    assert_eq!((selection.cpu, selection.tested), (CpuId(0), [1, 0, 3, 0, 0]));
}

#[test]
fn affinity_changes_name_a_destination_only_for_queued_tasks() {
    let mut lab = Lab::new("6.12.0", (1, 1, 4, 1));
    let (sleeper, runner) = (lab.task_on(0), lab.running(0));
    let to = |list: &str| CpuMask::from_list(list);
    assert_eq!(lab.sched.set_affinity(sleeper, to("2"), CpuId(0), lab.now), None);
    assert_eq!(lab.sched.set_affinity(runner, to("0,3"), CpuId(0), lab.now), None);
    assert_eq!(lab.sched.set_affinity(runner, to("900"), CpuId(0), lab.now), None, "no such CPU: refused");
    let dest = lab.sched.set_affinity(runner, to("2-3"), CpuId(0), lab.now).expect("it must go");
    lab.sched.move_queued_task(runner, dest, lab.now);
    assert_eq!((lab.sched.curr(CpuId(0)), lab.sched.cpu_of(runner)), (None, dest));
    assert_eq!((lab.schedule(CpuId(0)), lab.schedule(dest)), (None, Some(runner)));
}

#[test]
fn a_wakee_stays_with_the_per_cpu_kthread_that_wakes_it() {
    // Four cores under one cache; the wakee was on CPU 0, where a kworker of that CPU runs, and CPU 2 was used before.
    const STAYS: (u32, &str) = (0, "prev, with the per-CPU kthread that wakes");
    const GOES: (u32, &str) = (1, "idle CPU search");
    for (name, version, affinity, kthread, others, in_task, expected) in [
        ("a kworker", "7.2", "0", true, 0, true, STAYS),
        ("a kworker", "5.10", "0", true, 0, true, STAYS),
        ("before 5.6", "5.2", "0", true, 0, true, GOES),
        ("a pinned task of a user", "6.1", "0", false, 0, true, GOES),
        ("an unbound kworker", "6.1", "0-3", true, 0, true, GOES),
        ("another task waits", "6.1", "0", true, 1, true, GOES),
        ("an interrupt", "6.1", "0", true, 0, false, GOES),
        ("an interrupt, up to 5.15", "5.13", "0", true, 0, false, STAYS),
    ] {
        let mut lab = Lab::new(version, (1, 1, 4, 1));
        let wakee = lab.task_on(0);
        let (cpu, affinity) = (CpuId(0), CpuMask::from_list(affinity));
        let waker = lab.sched.add_task(&TaskAttr { cpu, affinity, kthread, ..TaskAttr::default() });
        lab.enqueue(waker);
        lab.schedule(cpu);
        for _ in 0..others {
            let other = lab.task_on(0);
            lab.enqueue(other);
        }
        let wakeup = Wakeup { task: wakee, waker_cpu: cpu, sync: false, here: false, in_task };
        let selection = lab.sched.select_task_rq_for(wakeup, WAKE, lab.now);
        assert_eq!((selection.cpu.0, selection.rule), expected, "{name}, {version}");
    }
}
