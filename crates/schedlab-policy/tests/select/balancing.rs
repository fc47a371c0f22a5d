//! Who pulls what, example by example.

use schedlab_model::{CpuId, CpuMask, TaskId, MSEC, SEC, USEC};
use schedlab_policy::KernelConfig;

use crate::lab::{Lab, Shape, SYNC, WAKE};

/// New tasks on a CPU that take their turns from now on, and then 20 ms pass: those waiting are not cache hot.
fn crowd(lab: &mut Lab, cpu: u32, count: usize) -> Vec<TaskId> {
    let tasks: Vec<TaskId> = (0..count).map(|_| lab.task_on(cpu)).collect();
    tasks.iter().for_each(|task| lab.enqueue(*task));
    lab.schedule(CpuId(cpu));
    lab.now += 20 * MSEC;
    tasks
}

#[test]
fn newidle_pulls_one_waiting_task() {
    for version in ["6.1", "6.12.0"] {
        let mut lab = Lab::configured(version, (1, 1, 2, 1), no_dice);
        let tasks = crowd(&mut lab, 0, 4);
        let moves = lab.sched.sched_balance_newidle(CpuId(1), lab.now);
        assert_eq!(moves.moved.len(), 1, "{version}");
        let (task, from) = moves.moved[0];
        assert_eq!((from, lab.sched.cpu_of(task)), (CpuId(0), CpuId(1)));
        assert!(tasks.contains(&task) && lab.sched.curr(CpuId(0)) != Some(task), "never the running one");
        assert_eq!((lab.counts(), moves.passes), (vec![3, 1], 1));
        assert_eq!(moves.looked_at, 2);
    }
}

/// Only CONFIG_PREEMPTION limits a newidle pass to one task; before PREEMPT_DYNAMIC only full preemption sets it.
#[test]
fn newidle_pulls_several_where_the_kernel_is_not_preemptible() {
    let models = [("none", true), ("voluntary", true), ("full", false)];
    let rows = [("5.2", true), ("5.7", true), ("5.10", true), ("5.13", true), ("5.15", true), ("6.1", false)];
    for ((version, before), (model, may)) in rows.into_iter().flat_map(|row| models.map(|model| (row, model))) {
        let mut lab = Lab::configured(version, (1, 1, 2, 1), |config| {
            no_dice(config);
            config.set_preempt(model.parse().expect("a model")).expect("a model of the row");
        });
        crowd(&mut lab, 0, 6);
        let moved = lab.sched.sched_balance_newidle(CpuId(1), lab.now).moved.len();
        let found = ["none", "one", "several"][moved.min(2)];
        assert_eq!(found, if before && may { "several" } else { "one" }, "{version}, {model}: {moved}");
    }
}

/// NI_RANDOM would skip a pass now and then.
fn no_dice(config: &mut KernelConfig) {
    // Only 6.1.192 of the modelled versions has it.
    let _ = config.set_feature("NI_RANDOM", false);
}

#[test]
fn newidle_leaves_hot_tasks() {
    for (age, pulled) in [(400 * USEC, 0), (600 * USEC, 1)] {
        let mut lab = Lab::configured("6.1", (1, 1, 2, 1), no_dice);
        crowd(&mut lab, 0, 2);
        // The one that ran is put back: it has just run, the other runs.
        let first = lab.sched.curr(CpuId(0)).expect("it runs");
        lab.sched.yield_current(CpuId(0), lab.now);
        lab.schedule(CpuId(0));
        assert_ne!(lab.sched.curr(CpuId(0)), Some(first));
        // exec_start of the first is when its accounting last began: now.
        lab.now += age;
        let moves = lab.sched.sched_balance_newidle(CpuId(1), lab.now);
        assert_eq!(moves.moved.len(), pulled, "after {age} ns");
    }
}

#[test]
fn newidle_is_gated_by_the_overload_flag_and_avg_idle() {
    let mut lab = Lab::configured("6.1", (1, 1, 4, 1), no_dice);
    lab.running(0);
    assert!(!lab.sched.overloaded());
    assert_eq!(lab.sched.sched_balance_newidle(CpuId(1), lab.now).passes, 0, "no CPU has two tasks");
    crowd(&mut lab, 0, 1);
    assert!(lab.sched.overloaded());
    // A CPU whose idle periods are short makes no pass: the first one shows its cost, 10 ms.
    lab.sched.set_balance_cost(10 * MSEC, 0);
    assert_eq!(lab.sched.sched_balance_newidle(CpuId(1), lab.now).moved.len(), 1);
    crowd(&mut lab, 0, 1);
    lab.schedule(CpuId(1));
    lab.block(CpuId(1));
    assert!(lab.sched.overloaded());
    assert_eq!(lab.sched.sched_balance_newidle(CpuId(1), lab.now).passes, 0, "avg_idle is below 10 ms");
    // Another CPU has not learnt it yet.
    assert_eq!(lab.sched.sched_balance_newidle(CpuId(2), lab.now).passes, 1);
}

#[test]
fn the_overload_flag_is_cleared_by_a_pass_over_the_whole_machine() {
    let mut lab = Lab::configured("6.1", (2, 1, 2, 1), no_dice);
    crowd(&mut lab, 0, 2);
    lab.block(CpuId(0));
    assert_eq!(lab.counts().iter().max(), Some(&1));
    assert!(lab.sched.overloaded(), "set until a pass clears it");
    let moves = lab.sched.sched_balance_newidle(CpuId(3), lab.now);
    assert_eq!((moves.moved.len(), moves.passes), (0, 2), "cache, then nodes");
    assert!(!lab.sched.overloaded());
}

#[test]
fn ni_random_skips_passes_that_never_succeed() {
    let passes = |version: &str| {
        let mut lab = Lab::new(version, (1, 1, 2, 1));
        // Two pinned tasks: there is always overload and never anything to pull.
        for _ in 0..2 {
            let task = lab.pinned(0, "0");
            lab.enqueue(task);
        }
        lab.schedule(CpuId(0));
        let mut passes = [0; 2];
        for call in 0..8000 {
            lab.now += MSEC;
            passes[call / 4000] += lab.sched.sched_balance_newidle(CpuId(1), lab.now).passes;
        }
        passes
    };
    let [early, late] = passes("6.1");
    assert!(early < 3000 && late < early / 4, "about half at first, then ever fewer: {early} {late}");
    assert_eq!(passes("6.12.0"), passes("6.12.0"));
}

/// 155213a2aed4, in 6.17, 6.18 and some stable sublevels: after a pass in vain the domain counts as half as expensive
/// again, up to migration_cost and 200 ns. Once its cost exceeds `avg_idle`, the CPU does not search.
#[test]
fn a_newidle_pass_in_vain_raises_the_cost_of_its_domain() {
    let rows = [
        ("6.1", false),
        ("6.12.0", false),
        ("6.12.43", true),
        ("6.12.107", false),
        ("6.16", true),
        ("6.17", true),
        ("6.18.2", true),
        ("6.18.12", false),
        ("6.19.6", false),
        ("7.3", false),
    ];
    for (version, raised) in rows {
        let mut lab = Lab::configured(version, (1, 1, 2, 1), no_dice);
        lab.sched.set_balance_cost(10 * USEC, 0);
        let tasks = crowd(&mut lab, 0, 3);
        assert_eq!(lab.sched.sched_balance_newidle(CpuId(1), lab.now).moved.len(), 1, "{version}");
        let pulled = lab.schedule(CpuId(1)).expect("the pulled task");
        // From now on nothing may move.
        for task in tasks {
            let cpu = lab.sched.cpu_of(task);
            lab.sched.set_affinity(task, CpuMask::from_list(&cpu.0.to_string()), cpu, lab.now);
        }
        // A task that sleeps for 300 us at a time: avg_idle falls from 1 ms towards that.
        let mut passes = Vec::new();
        for _ in 0..80 {
            lab.sched.block(pulled, false, lab.now);
            assert_eq!(lab.sched.pick_next_task(CpuId(1), lab.now), None, "{version}");
            passes.push(lab.sched.sched_balance_newidle(CpuId(1), lab.now).passes);
            lab.sched.idle_enter(CpuId(1), lab.now);
            lab.now += 300 * USEC;
            lab.sched.activate(pulled, CpuId(1), WAKE, lab.now);
            assert_eq!(lab.sched.pick_next_task(CpuId(1), lab.now), Some(pulled), "{version}");
            lab.now += 10 * USEC;
        }
        // 10, 15, 22.5 and so on; the ninth pass in vain makes it 384 us, which exceeds avg_idle later on.
        assert!(passes[..9].iter().all(|pass| *pass == 1), "{version}: {passes:?}");
        assert_eq!(passes[60..].iter().sum::<u32>(), if raised { 0 } else { 20 }, "{version}: {passes:?}");
    }
}

#[test]
fn pinned_tasks_stay_and_others_go() {
    let mut lab = Lab::configured("6.1", (1, 1, 2, 1), no_dice);
    for _ in 0..3 {
        let task = lab.pinned(0, "0");
        lab.enqueue(task);
    }
    let free = crowd(&mut lab, 0, 1)[0];
    let moves = lab.sched.sched_balance_newidle(CpuId(1), lab.now);
    assert_eq!(moves.moved, [(free, CpuId(0))]);
    assert_eq!(lab.sched.sched_balance_newidle(CpuId(1), lab.now).moved, []);
}

#[test]
fn what_may_not_go_here_goes_to_a_neighbour() {
    // Nodes 0-1 and 2-3; CPU 2 balances, the waiting tasks may only use 0 and 3.
    let mut lab = Lab::new("6.1", (2, 1, 2, 1));
    lab.running(0);
    for _ in 0..5 {
        let task = lab.pinned(0, "0,3");
        lab.enqueue(task);
    }
    lab.running(1);
    for _ in 0..200 {
        lab.now += 4 * MSEC;
        lab.tick(CpuId(0));
        lab.tick(CpuId(1));
    }
    assert!(lab.sched.nr_running(CpuId(3)) >= 1, "{:?}", lab.counts());
    assert_eq!(lab.sched.nr_running(CpuId(2)), 0);
}

#[test]
fn ticks_and_nohz_spread_a_crowd_over_the_machine() {
    for version in ["6.1", "6.12.0"] {
        for shape in [(1, 1, 8, 1), (2, 1, 4, 1), (2, 2, 2, 1), (1, 1, 4, 2)] as [Shape; 4] {
            let mut lab = Lab::new(version, shape);
            crowd(&mut lab, 0, 16);
            for _ in 0..500 {
                lab.now += 4 * MSEC;
                for cpu in lab.cpus() {
                    lab.tick(cpu);
                    lab.schedule(cpu);
                }
            }
            let counts = lab.counts();
            assert!(counts.iter().all(|n| (1..=3).contains(n)), "{version} {shape:?}: {counts:?}");
            assert_eq!(counts.iter().sum::<u32>(), 16);
        }
    }
}

#[test]
fn a_busy_cpu_balances_sixteen_times_less_often() {
    // 8 CPUs: every 8 ms; a balanced pass doubles that, once; busy 16 times that less a jiffy; HZ 250.
    for (busy, expected) in [(true, [252, 252]), (false, [16, 16])] {
        let mut lab = Lab::new("6.1", (1, 1, 8, 1));
        if busy {
            lab.running(0);
        }
        lab.now = SEC;
        for ms in expected {
            lab.sched.sched_balance_domains(CpuId(0), !busy, lab.now);
            let start = lab.now;
            while !lab.sched.balance_due(CpuId(0), lab.now) {
                lab.now += 4 * MSEC;
            }
            assert_eq!(lab.now - start, ms * MSEC, "busy: {busy}");
        }
    }
}

#[test]
fn only_one_cpu_of_a_group_balances_upwards() {
    // Nodes 0-3 and 4-7: of node 1's busy CPUs only its first balances between the nodes.
    let mut lab = Lab::new("6.1", (2, 1, 4, 1));
    crowd(&mut lab, 0, 8);
    for cpu in 4..8 {
        lab.running(cpu);
    }
    lab.now += SEC;
    let higher = |lab: &mut Lab, cpu| lab.sched.sched_balance_domains(CpuId(cpu), false, lab.now).passes;
    assert_eq!(higher(&mut lab, 5), 1, "its own cache only");
    assert_eq!(higher(&mut lab, 4), 2);
}

#[test]
fn nohz_kick_needs_a_reason_and_an_idle_cpu() {
    let mut lab = Lab::new("6.1", (1, 1, 2, 1));
    lab.running(0);
    assert_eq!(lab.sched.nohz_balancer_kick(CpuId(0), lab.now), None, "one task, no other CPU busy");
    lab.running(0);
    assert_eq!(lab.sched.nohz_balancer_kick(CpuId(0), lab.now), Some(CpuId(1)));
    assert_eq!(lab.sched.nohz_balancer_kick(CpuId(0), lab.now), None, "once a jiffy");
    lab.now += 8 * MSEC;
    assert_eq!(lab.sched.nohz_balancer_kick(CpuId(0), lab.now), None, "still on its way");
    lab.sched.nohz_idle_balance(CpuId(1), lab.now);
    lab.now += SEC;
    assert_eq!(lab.sched.nohz_balancer_kick(CpuId(1), lab.now), None, "an idle CPU does not ask");
}

#[test]
fn a_successful_pull_leaves_avg_idle_unsampled() {
    // The wakeup after a pull must not count the busy time since as an idle spell.
    let mut lab = Lab::configured("6.1", (1, 1, 2, 1), no_dice);
    crowd(&mut lab, 0, 3);
    let moves = lab.sched.sched_balance_newidle(CpuId(1), lab.now);
    assert_eq!(moves.moved.len(), 1);
    lab.schedule(CpuId(1));
    let sleeper = lab.task_on(1);
    lab.wake(sleeper, CpuId(1), WAKE);
    lab.wake(sleeper, CpuId(1), SYNC);
    assert_eq!(lab.sched.nr_running(CpuId(1)) + lab.sched.nr_running(CpuId(0)), 4);
}

#[test]
fn a_push_separates_two_hogs_on_one_core() {
    // Cores (0,1) (2,3) (4,5): both hogs run, so nothing can be pulled; after four failures one is pushed.
    for version in ["6.1", "6.12.0"] {
        let mut lab = Lab::new(version, (1, 1, 3, 2));
        let hogs = [lab.running(0), lab.running(1)];
        let cores = |lab: &Lab| hogs.map(|hog| lab.sched.cpu_of(hog).0 / 2);
        for _ in 0..400 {
            lab.now += 4 * MSEC;
            for cpu in lab.cpus() {
                lab.tick(cpu);
                if !lab.idle[cpu.index()] {
                    lab.schedule(cpu);
                }
            }
        }
        let [a, b] = cores(&lab);
        assert_ne!(a, b, "{version}");
        assert_eq!(lab.counts().iter().sum::<u32>(), 2);
    }
}

#[test]
fn a_pinned_hog_is_not_pushed() {
    let mut lab = Lab::new("6.1", (1, 1, 2, 2));
    let hogs = [lab.pinned(0, "0"), lab.pinned(1, "1")];
    for hog in hogs {
        lab.enqueue(hog);
        let cpu = lab.sched.cpu_of(hog);
        lab.schedule(cpu);
    }
    for _ in 0..400 {
        lab.now += 4 * MSEC;
        for cpu in [0, 1].map(CpuId) {
            lab.tick(cpu);
            lab.schedule(cpu);
        }
    }
    assert_eq!(hogs.map(|hog| lab.sched.cpu_of(hog).0), [0, 1]);
}

/// Rows with the shared wakequeue, switched on.
fn swqueue(row: &str, shape: Shape) -> Lab {
    Lab::configured(row, shape, |config| config.set_feature("SWQUEUE", true).expect("a row with the series"))
}

/// A task that has run on CPU 0 and sleeps, while another one runs there.
fn sleeper_behind_a_hog(lab: &mut Lab, affinity: Option<&str>) -> TaskId {
    let task = match affinity {
        Some(mask) => lab.pinned(0, mask),
        None => lab.task_on(0),
    };
    lab.enqueue(task);
    lab.schedule(CpuId(0));
    // It is cache hot when it is woken: newidle balancing alone would leave it.
    lab.now += 100 * USEC;
    lab.block(CpuId(0));
    lab.running(0);
    task
}

#[test]
fn the_shared_wakequeue_feeds_a_cpu_that_becomes_idle() {
    // (affinity, CPU that pulls, whether it gets the task)
    let cases = [
        (None, 1, true),
        (None, 3, true),
        // Another cache has another queue.
        (None, 4, false),
        (Some("0"), 1, false),
        (Some("0,2"), 1, false),
        (Some("0,2"), 2, true),
    ];
    for row in ["6.3", "eevdf-rfc"] {
        for (affinity, puller, gets) in cases {
            let mut lab = swqueue(row, (1, 2, 4, 1));
            let task = sleeper_behind_a_hog(&mut lab, affinity);
            // Woken where it slept: no time has passed in which newidle balancing would find it cold.
            lab.sched.activate(task, CpuId(0), WAKE, lab.now);
            let moves = lab.sched.sched_balance_newidle(CpuId(puller), lab.now);
            assert_eq!(lab.sched.cpu_of(task), CpuId(if gets { puller } else { 0 }), "{row} {affinity:?} {puller}");
            assert_eq!(moves.moved.len(), usize::from(gets));
            // It is taken once.
            assert!(lab.sched.sched_balance_newidle(CpuId(2), lab.now).moved.is_empty() || puller == 4 || !gets);
        }
    }
}

/// Whether CPU 1 gets a task before newidle balancing looks at any domain.
fn pulled_without_a_pass(lab: &mut Lab) -> bool {
    let moves = lab.sched.sched_balance_newidle(CpuId(1), lab.now);
    !moves.moved.is_empty() && moves.passes == 0
}

#[test]
fn a_task_leaves_the_shared_wakequeue_when_it_runs_or_sleeps_and_joins_it_only_where_it_slept() {
    for row in ["6.3", "eevdf-rfc"] {
        // Moved by select_task_rq.
        let mut lab = swqueue(row, (1, 1, 4, 1));
        let task = sleeper_behind_a_hog(&mut lab, None);
        lab.running(2);
        lab.sched.activate(task, CpuId(2), WAKE, lab.now);
        assert!(!pulled_without_a_pass(&mut lab), "{row}: moved");
        // It has run meanwhile.
        let mut lab = swqueue(row, (1, 1, 4, 1));
        let task = lab.running(0);
        lab.block(CpuId(0));
        lab.sched.activate(task, CpuId(0), WAKE, lab.now);
        lab.schedule(CpuId(0));
        assert_eq!(lab.sched.curr(CpuId(0)), Some(task));
        lab.running(0);
        lab.sched.yield_current(CpuId(0), lab.now);
        assert!(!pulled_without_a_pass(&mut lab), "{row}: ran");
        // A new task does not join.
        let mut lab = swqueue(row, (1, 1, 4, 1));
        lab.running(0);
        let new = lab.task_on(0);
        lab.enqueue(new);
        assert!(!pulled_without_a_pass(&mut lab), "{row}: new");
    }
}
