//! The averages of a new task (`init_entity_runnable_average`, `post_init_entity_util_avg`).

use super::sched_avg::SchedAvg;
use crate::pelt::signals::Signals;
use crate::weight::LoadWeight;

impl SchedAvg {
    /// `init_entity_runnable_average` of a task: full load, so that it looks heavy until it has a history. A group's
    /// entity starts with nothing.
    pub fn init_entity_runnable_average(&mut self, load: LoadWeight, signals: &Signals) {
        let load_avg = load.scaled();
        let runnable_avg = if signals.runnable_load { load_avg } else { 0 };
        *self = SchedAvg { load_avg, runnable_avg, ..SchedAvg::default() };
    }

    /// `post_init_entity_util_avg` at the first wakeup: a share of the queue's utilisation by weight, but at most half
    /// of what the CPU of this capacity has left.
    pub fn post_init_entity_util_avg(&mut self, load: LoadWeight, cfs_rq: &SchedAvg, capacity: u64, signals: &Signals) {
        let left = capacity as i64 - i64::from(cfs_rq.util_avg);
        let cap = left / 2;
        if cap > 0 {
            let weight = if signals.init_full_weight { load.weight } else { load.scaled() };
            let share = u64::from(cfs_rq.util_avg) * weight / (cfs_rq.load_avg + 1);
            let cap = cap as u64;
            self.util_avg = if cfs_rq.util_avg == 0 { cap } else { share.min(cap) } as u32;
        }
        if !signals.runnable_load {
            self.runnable_avg = u64::from(self.util_avg);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FairPolicy;

    #[test]
    fn guesses_of_utilisation() {
        // (signals, nice, queue's util_avg, queue's load_avg) -> util_avg
        let table = [
            (Signals::of("6.1"), 0, 0, 0, 512),
            (Signals::of("6.1"), 0, 100, 1024, 462),
            (Signals::of("6.12.107"), 0, 100, 1024, 99),
            (Signals::of("6.12.107"), 10, 100, 1024, 10),
            (Signals::of("6.12.107"), -10, 400, 1024, 312),
            (Signals::of("6.12.107"), 0, 1024, 1024, 0),
            (Signals::of("6.12.107"), 0, 1030, 9000, 0),
        ];
        for (signals, nice, util_avg, load_avg, expected) in table {
            let load = LoadWeight::of_task(nice, FairPolicy::Normal);
            let mut avg = SchedAvg::default();
            avg.init_entity_runnable_average(load, &signals);
            assert_eq!((avg.load_avg, avg.util_avg), (load.scaled(), 0));
            avg.post_init_entity_util_avg(
                load,
                &SchedAvg { util_avg, load_avg, ..SchedAvg::default() },
                1024,
                &signals,
            );
            assert_eq!(avg.util_avg, expected, "nice {nice} on {util_avg}");
            assert_eq!(avg.runnable_avg, u64::from(expected));
        }
    }
}
