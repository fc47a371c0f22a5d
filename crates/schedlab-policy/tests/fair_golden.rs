//! Golden traces: two hogs on one CPU, ticks exactly at multiples, tunables of a machine with 8 CPUs.

use schedlab_model::{CpuId, Nanos, TaskId, MSEC};
use schedlab_policy::fair::{Enqueue, Fair};
use schedlab_policy::{KernelConfig, Resched, TaskAttr, Version};

const CPU: CpuId = CpuId(0);

/// Who starts running when, in ms, until `until`: "A0 B12 A24".
fn trace(version: &str, hz: u32, nices: [i8; 2], until: u64, fork: bool) -> String {
    let mut fair = Fair::new(KernelConfig::new(Version::find(version).expect("a modelled version"), 8, hz));
    let tasks = nices.map(|nice| fair.add_task(&TaskAttr { nice, ..TaskAttr::default() }));
    for task in tasks {
        fair.enqueue_task(CPU, task, Enqueue { wakeup: !fork, initial: fork, ..Enqueue::default() }, 0);
    }
    let mut running = fair.pick_next_task(CPU, 0);
    let mut starts = vec![start(&tasks, running, 0)];
    let tick = fair.config.tick_nsec();
    for now in (tick..=until * MSEC).step_by(tick as usize) {
        if fair.task_tick(CPU, now) != Resched::No {
            let next = fair.pick_next_task(CPU, now);
            if next != running {
                running = next;
                starts.push(start(&tasks, running, now));
            }
        }
    }
    starts.join(" ")
}

fn start(tasks: &[TaskId; 2], running: Option<TaskId>, now: Nanos) -> String {
    let name = if running == Some(tasks[0]) { 'A' } else { 'B' };
    format!("{name}{}", now / MSEC)
}

#[test]
fn two_hogs() {
    for (version, hz, nices, expected) in [
        ("6.1", 250, [0, 0], "A0 B12 A24 B36"),
        ("6.1", 1000, [0, 0], "A0 B12 A24 B36"),
        ("6.1", 250, [0, 5], "A0 B20 A28 B48 A56"),
        ("6.1", 1000, [0, 5], "A0 B19 A26 B45 A51 B70"),
        ("eevdf-rfc", 250, [0, 0], "A0 B4 A8 B12 A16"),
        ("eevdf-rfc", 1000, [0, 0], "A0 B1 A2 B3 A4 B5"),
        ("eevdf-rfc", 250, [0, 5], "A0 B4 A8 B20 A24 B36"),
        ("eevdf-rfc", 1000, [0, 5], "A0 B1 A2 B5 A6 B9"),
        ("6.6", 250, [0, 0], "A0 B4 A12 B20 A28"),
        ("6.6", 1000, [0, 0], "A0 B3 A9 B15 A21 B27"),
        ("6.6", 250, [0, 5], "A0 B4 A8 B20 A24 B36"),
        ("6.6", 1000, [0, 5], "A0 B3 A7 B19 A23 B35"),
        ("6.18.2", 250, [0, 0], "A0 B4 A8 B12 A16"),
        ("6.18.2", 1000, [0, 0], "A0 B3 A6 B9 A12"),
        ("6.18.2", 250, [0, 5], "A0 B4 A8 B20 A24 B36"),
        ("6.18.2", 1000, [0, 5], "A0 B3 A6 B13 A16 B25"),
        ("6.12.0", 250, [0, 0], "A0 B4 A8 B12 A16"),
        ("6.12.0", 1000, [0, 0], "A0 B3 A6 B9 A12"),
        ("6.12.0", 250, [0, 5], "A0 B4 A8 B20 A24 B36"),
        ("6.12.0", 1000, [0, 5], "A0 B3 A7 B17 A21 B33"),
    ] {
        let last = expected.rsplit(['A', 'B']).next().and_then(|ms| ms.parse().ok()).unwrap();
        assert_eq!(trace(version, hz, nices, last, false), expected, "{version} at {hz} Hz, nice {nices:?}");
    }
}

#[test]
fn forked_hogs_start_with_half_a_deadline() {
    assert_eq!(trace("6.12.0", 1000, [0, 0], 7, true), "A0 B2 A4 B7");
}
