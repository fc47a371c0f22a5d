//! Selects one of several equally suitable CPUs (`cpumask_any_and_distribute`, lib/cpumask.c).

use schedlab_model::{CpuId, CpuMask, TaskId};

use super::Core;

impl Core {
    /// `cpumask_any_and_distribute`: the next CPU after the one that the executing CPU (`this`) selected last; the
    /// first selection starts after CPU 0.
    pub(crate) fn cpumask_any_and_distribute(&mut self, this: CpuId, wanted: &CpuMask) -> Option<CpuId> {
        let prev = &mut self.distribute_cpu_mask_prev[this.index()];
        let next = wanted.next_from(*prev + 1).or_else(|| wanted.lowest())?;
        *prev = next.index();
        Some(next)
    }

    /// The second half of `find_lowest_rq` and of `find_later_rq`: the task's own CPU if it is wanted, else the
    /// executing one (`this`) or any wanted CPU in the smallest domain of the task's CPU that has one.
    pub(crate) fn nearest_to(&mut self, task: TaskId, wanted: &CpuMask, this: CpuId) -> Option<CpuId> {
        let (home, distributes) = (self.cpu_of(task), self.rules.rt_distributes);
        if wanted.has(home) {
            return Some(home);
        }
        for level in 0..self.domains.depth(home) {
            let span = &self.domains.at(home, level).span;
            if wanted.has(this) && span.has(this) {
                return Some(this);
            }
            let near = wanted.and(span);
            let any = if distributes { self.cpumask_any_and_distribute(this, &near) } else { near.lowest() };
            if any.is_some() {
                return any;
            }
        }
        if wanted.has(this) {
            return Some(this);
        }
        match distributes {
            true => self.cpumask_any_and_distribute(this, wanted),
            false => wanted.lowest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use schedlab_model::{Ties, Topology, MSEC};

    use super::*;
    use crate::rt::RtPolicy;
    use crate::{KernelConfig, Sched, TaskAttr, Version, WakeKind};

    fn four_cpus(row: &str) -> Sched {
        let topology = Arc::new(Topology::regular(1, 1, 4, 1, true).unwrap());
        Sched::new(KernelConfig::new(Version::find(row).unwrap(), 4, 250), topology)
    }

    fn running(sched: &mut Sched, cpu: u32, rt: Option<RtPolicy>) -> TaskId {
        let task = sched.add_task(&TaskAttr { cpu: CpuId(cpu), rt, ..TaskAttr::default() });
        sched.activate(task, CpuId(cpu), WakeKind::Fork, MSEC);
        sched.pick_next_task(CpuId(cpu), MSEC);
        task
    }

    /// A task on CPU 0 is confined to CPUs 1 to 3, then to CPUs 0 and 1, which it need not leave, and so on.
    #[test]
    fn a_change_of_affinity_advances_the_rotor_though_the_task_stays() {
        for (row, chosen) in [("5.2", [1, 1]), ("5.7", [1, 3]), ("7.3", [1, 3])] {
            let mut sched = four_cpus(row);
            let tasks = [running(&mut sched, 0, None), running(&mut sched, 0, None)];
            let mut confine = |task, cpus| sched.set_affinity(task, CpuMask::from_list(cpus), CpuId(2), MSEC);
            let first = confine(tasks[0], "1-3");
            assert_eq!(confine(tasks[1], "0,2"), None, "{row}");
            let second = confine(tasks[1], "1-3");
            assert_eq!([first, second], chosen.map(|cpu| Some(CpuId(cpu))), "{row}");
        }
    }

    /// A real-time task that is woken beside a running one finds CPUs 1 to 3 equally good.
    #[test]
    fn real_time_tasks_are_spread_from_5_11_on() {
        let fifo = |priority| Some(RtPolicy { priority, round_robin: false });
        for (row, chosen) in [("5.10", [1, 1]), ("5.13", [1, 2]), ("7.3", [1, 2])] {
            let mut sched = four_cpus(row);
            running(&mut sched, 0, fifo(50));
            let found = [0, 1].map(|_| {
                let task = sched.add_task(&TaskAttr { rt: fifo(10), ..TaskAttr::default() });
                let lowest = CpuMask::from_list("1-3").unwrap();
                sched.core.nearest_to(task, &lowest, CpuId(0))
            });
            assert_eq!(found, chosen.map(|cpu| Some(CpuId(cpu))), "{row}");
        }
    }

    #[test]
    fn the_rotor_of_a_cpu_stands_anywhere_at_the_start() {
        let first = |draw| {
            let mut sched = four_cpus("6.12.107");
            sched.set_ties(Ties::new(draw, 1));
            let mut next = |cpu| sched.core.cpumask_any_and_distribute(CpuId(cpu), &CpuMask::first(4)).unwrap();
            let (first, second) = (next(2), next(2));
            assert_eq!(second.0, (first.0 + 1) % 4);
            if draw.is_none() {
                assert_eq!(next(3), first, "each CPU has its own");
            }
            first
        };
        assert_eq!(first(None), CpuId(1), "the first one skips CPU 0");
        assert_eq!((0..50).map(|draw| first(Some(draw))).collect::<BTreeSet<_>>().len(), 4);
    }
}
