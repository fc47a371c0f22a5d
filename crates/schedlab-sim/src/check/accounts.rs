//! Time conservation: busy + idle + cost + stolen = wall, per CPU, against a separate record of the
//! times at which a task was on the CPU.

use schedlab_model::{CpuId, Nanos, Table};

use super::Finding;
use crate::machine::CpuTime;

/// The checker's record of every CPU.
#[derive(Clone, Debug)]
pub struct Accounts {
    cpus: Table<Occupancy>,
    pub looks: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Occupancy {
    since: Nanos,
    /// Time with a task on the CPU.
    occupied: Nanos,
    /// Time without.
    empty: Nanos,
}

impl Accounts {
    pub fn new(nr_cpus: usize) -> Self {
        Accounts { cpus: vec![Occupancy::default(); nr_cpus].into(), looks: 0 }
    }

    /// The CPU switches; `occupied` = a task ran on it until now.
    #[inline]
    pub fn switched(&mut self, cpu: CpuId, occupied: bool, now: Nanos) {
        let own = &mut self.cpus[cpu.index()];
        let passed = now - std::mem::replace(&mut own.since, now);
        if occupied {
            own.occupied += passed;
        } else {
            own.empty += passed;
        }
    }

    /// Compares where a CPU's time went up to `now` with the record; `occupied` = a task is on it.
    pub fn look(&mut self, cpu: CpuId, occupied: bool, time: CpuTime, now: Nanos) -> Option<Finding> {
        self.looks += 1;
        self.switched(cpu, occupied, now);
        let own = self.cpus[cpu.index()];
        let CpuTime { busy, cost, idle, stolen } = time;
        // Tasks' work happens only under a task, idling only without one, overhead in either.
        let fits = busy <= own.occupied && idle <= own.empty;
        let sum = busy + cost + idle + stolen;
        if sum == now && fits {
            return None;
        }
        let found = format!(
            "{cpu:?} at {now}: busy {busy} + cost {cost} + idle {idle} + stolen {stolen} = {sum}; \
             occupied {} + empty {} by the switches",
            own.occupied, own.empty
        );
        Some(("time_conservation", found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nanosecond_is_accounted_once() {
        let mut accounts = Accounts::new(1);
        accounts.switched(CpuId(0), false, 10);
        let good = CpuTime { busy: 25, cost: 4, idle: 9, stolen: 2 };
        assert_eq!(accounts.clone().look(CpuId(0), true, good, 40), None);
        let lost = CpuTime { busy: 24, ..good };
        assert!(accounts.clone().look(CpuId(0), true, lost, 40).is_some());
        let idle_under_a_task = CpuTime { busy: 20, cost: 6, idle: 14, stolen: 0 };
        assert!(accounts.look(CpuId(0), true, idle_under_a_task, 40).is_some());
    }
}
