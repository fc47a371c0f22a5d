//! PELT's integers against the definition it approximates, in real numbers, over random histories.

use proptest::prelude::*;
use schedlab_policy::pelt::{QueueLoad, SchedAvg, Signals, LOAD_AVG_MAX};
use schedlab_policy::weight::LoadWeight;
use schedlab_policy::Version;

fn signals(row: &str) -> Signals {
    Version::find(row).expect("a modelled version").rules.pelt
}

const NS_PER_UNIT: f64 = 1024.0;
/// `y` per 1024 ns would be continuous; PELT decays whole segments: a segment `age` segments old counts `y^age`.
const HALF_LIFE: f64 = 32.0;

/// The definition: segments of 2^20 ns, each weighted by y^age, running time in units of 1024 ns.
#[derive(Default)]
struct Reference {
    sum: f64,
    position: u64,
}

impl Reference {
    fn run(&mut self, mut units: u64, running: bool) {
        while units > 0 {
            let step = units.min(1024 - self.position);
            self.sum += if running { step as f64 } else { 0.0 };
            self.position += step;
            units -= step;
            if self.position == 1024 {
                self.position = 0;
                self.sum *= 0.5f64.powf(1.0 / HALF_LIFE);
            }
        }
    }

    fn average(&self) -> f64 {
        1024.0 * self.sum / (LOAD_AVG_MAX as f64 - 1024.0 + self.position as f64)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_task_follows_the_definition(steps in prop::collection::vec((1u64..40_000_000, any::<bool>()), 1..120)) {
        let (mut avg, mut reference) = (SchedAvg::default(), Reference::default());
        let mut now = 0;
        for (delta, running) in steps {
            now += delta;
            let units = (now >> 10) - (avg.last_update_time >> 10);
            reference.run(units, running);
            if avg.__update_load_avg_se(now, LoadWeight::of_sum(1024 << 10), running, u64::from(running), running, &signals("6.1")) {
                let exact = reference.average();
                // Three floors per update, and the table's own rounding of LOAD_AVG_MAX (about 0.1%).
                for (name, value) in
                    [("util", f64::from(avg.util_avg)), ("load", avg.load_avg as f64), ("runnable", avg.runnable_avg as f64)]
                {
                    prop_assert!((value - exact).abs() <= 4.0, "{} {} against {}", name, value, exact);
                }
            }
            prop_assert!(avg.util_avg <= 1024 && u64::from(avg.util_sum) <= LOAD_AVG_MAX << 10);
            prop_assert_eq!(now - avg.last_update_time, now % NS_PER_UNIT as u64);
        }
    }

    /// The queue's average is the sum of its tasks', whichever sleep, run or move.
    #[test]
    fn a_queue_is_the_sum_of_its_tasks(
        steps in prop::collection::vec((1u64..20_000_000, 0usize..4, 0u8..4), 1..80),
        version in 0usize..5,
    ) {
        let signals = [signals("5.7"), signals("5.13"), signals("6.1"), signals("6.12.0"), signals("7.2")][version];
        let weights = [1024u64, 335, 3121, 15];
        let mut queue = QueueLoad::default();
        let mut tasks = weights.map(|load_avg| SchedAvg { load_avg, ..SchedAvg::default() });
        let (mut queued, mut attached, mut current) = ([false; 4], [false; 4], None);
        let mut now = 1 << 30;
        for (delta, task, action) in steps {
            now += delta;
            let load: u64 = (0..4).filter(|i| queued[*i]).map(|i| weights[i]).sum();
            let runnable = queued.iter().filter(|on| **on).count() as u64;
            for i in (0..4).filter(|i| attached[*i]) {
                let on = queued[i];
                tasks[i].__update_load_avg_se(now, LoadWeight::of_sum(weights[i] << 10), on, u64::from(on), current == Some(i), &signals);
            }
            queue.update_cfs_rq_load_avg(now, load, runnable, current.is_some(), &signals);
            match action {
                0 if !queued[task] => {
                    if !attached[task] {
                        queue.attach_entity_load_avg(&mut tasks[task], weights[task], &signals);
                        attached[task] = true;
                    }
                    queued[task] = true;
                }
                1 if queued[task] => {
                    queued[task] = false;
                    current = current.filter(|curr| *curr != task);
                }
                2 if queued[task] => current = Some(task),
                3 if attached[task] && queued[task] => {
                    queue.detach_entity_load_avg(&tasks[task], weights[task], &signals);
                    (attached[task], queued[task]) = (false, false);
                    current = current.filter(|curr| *curr != task);
                }
                3 if attached[task] => {
                    queue.remove_entity_load_avg(&mut tasks[task], weights[task], &signals);
                    attached[task] = false;
                }
                _ => {}
            }
        }
        now += 1 << 20;
        let load: u64 = (0..4).filter(|i| queued[*i]).map(|i| weights[i]).sum();
        let runnable = queued.iter().filter(|on| **on).count() as u64;
        queue.update_cfs_rq_load_avg(now, load, runnable, current.is_some(), &signals);
        let (mut load_avg, mut util_avg) = (0.0, 0.0);
        for i in (0..4).filter(|i| attached[*i]) {
            let on = queued[i];
            tasks[i].__update_load_avg_se(now, LoadWeight::of_sum(weights[i] << 10), on, u64::from(on), current == Some(i), &signals);
            load_avg += tasks[i].load_avg as f64;
            util_avg += f64::from(tasks[i].util_avg);
        }
        let close = |queue: f64, tasks: f64, weight: f64| (queue - tasks).abs() <= 8.0 + weight * 0.02;
        prop_assert!(close(queue.avg.load_avg as f64, load_avg, 4495.0), "load {} {load_avg}", queue.avg.load_avg);
        prop_assert!(close(f64::from(queue.avg.util_avg), util_avg, 1024.0), "util {} {util_avg}", queue.avg.util_avg);
    }
}

/// Ten years of updates at odd distances, the heaviest queue: nothing overflows, averages stay in range.
#[test]
fn ten_simulated_years() {
    const YEAR: u64 = 365 * 24 * 3600 * 1_000_000_000;
    for signals in [signals("5.2"), signals("6.1"), signals("7.2")] {
        let (mut queue, mut task) = (QueueLoad::default(), SchedAvg { last_update_time: 1, ..SchedAvg::default() });
        let weight = 100_000 * 88_761;
        let (mut now, mut step) = (0u64, 1u64);
        while now < 10 * YEAR {
            // From below a unit to days, back and forth.
            step = if step > 200_000_000_000_000 { 700 } else { step * 7 / 3 + 1 };
            now += step;
            // LOAD_AVG_MAX is rounded: a sum may pass it by a few units.
            queue.update_cfs_rq_load_avg(now, weight, 100_000, true, &signals);
            task.__update_load_avg_se(now, LoadWeight::of_sum(88_761 << 10), true, 1, true, &signals);
            assert!(queue.avg.load_avg <= weight + weight / 1000 && queue.avg.util_avg <= 1024, "at {now} {queue:?}");
            assert!(task.load_avg <= 88_761 && task.util_avg <= 1024 && task.runnable_avg <= 88_761, "at {now}");
        }
        assert!(task.util_avg >= 1020 && queue.avg.load_avg >= weight / 1024 * 1020);
    }
}
