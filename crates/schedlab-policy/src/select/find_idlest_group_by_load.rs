//! The group for a new task by load (`find_idlest_group`, kernel/sched/fair.c 5.2).
//!
//! Before 5.5: the group with clearly less runnable load per capacity, or with about as much but a smaller load
//! average. At exec the group whose least used CPU has the most spare capacity is preferred. In close cases the task
//! stays.

use schedlab_model::{CpuId, TaskId};

use crate::core::types::{Tested, WakeKind};
use crate::fair::class::FairClass;
use crate::pelt::series::CAPACITY_SCALE;

/// The loads per capacity of a group, without and with blocked tasks, and the largest spare capacity of one of its
/// CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Load {
    runnable: u64,
    average: u64,
    spare: u64,
}

impl FairClass<'_> {
    /// A group other than the CPU's own, or `None` to stay (`find_idlest_group` of 5.2).
    pub(super) fn find_idlest_group_by_load(
        &self,
        task: TaskId,
        kind: WakeKind,
        cpu: CpuId,
        level: usize,
        tested: &mut Tested,
    ) -> Option<usize> {
        let domain = self.core.domains.at(cpu, level);
        let local_group = self.core.domains.local_group(cpu, level);
        let affinity = self.core.tasks[task.index()].affinity.as_deref();
        let (mut local, mut others) = (None, Vec::new());
        for step in 0..domain.groups.len() {
            let index = (local_group + step) % domain.groups.len();
            let group = &domain.groups[index];
            if affinity.is_some_and(|mask| !mask.intersects(&group.mask)) {
                continue;
            }
            let mut load = Load::default();
            for &cpu in &group.cpus {
                tested.add_load(&self.core.topology, cpu);
                load.runnable += self.fair.cpu_load(cpu);
                load.average += self.fair.rq(cpu).pelt.avg.load_avg;
                load.spare = load.spare.max(self.capacity_spare_without(cpu, task));
            }
            let per_capacity = |sum: u64| sum * CAPACITY_SCALE / group.capacity;
            load = Load { runnable: per_capacity(load.runnable), average: per_capacity(load.average), ..load };
            if index == local_group {
                local = Some(load);
            } else {
                others.push((index, load));
            }
        }
        let size = (kind == WakeKind::Exec).then(|| u64::from(self.fair.entity(task).avg.util_avg));
        choose(local, &others, size, u64::from(domain.imbalance_pct), domain.is_numa())
    }

    /// `capacity_spare_without`: capacity that the task itself uses there counts as spare.
    fn capacity_spare_without(&self, cpu: CpuId, task: TaskId) -> u64 {
        let entity = self.fair.entity(task);
        let own = entity.on_rq && self.core.tasks[task.index()].cpu == cpu;
        let used = match own {
            false => self.fair.cpu_util_cfs(cpu),
            true => {
                let avg = &self.fair.rq(cpu).pelt.avg;
                let estimate = u64::from(avg.util_est).saturating_sub(self.fair.task_util_est(task));
                estimate.max(u64::from(avg.util_avg.saturating_sub(entity.avg.util_avg)))
            }
        };
        self.capacity_of(cpu).saturating_sub(used)
    }
}

/// The comparisons. `size` is the task's utilisation at exec; at fork it is unknown.
fn choose(local: Option<Load>, others: &[(usize, Load)], size: Option<u64>, pct: u64, numa: bool) -> Option<usize> {
    let margin = CAPACITY_SCALE * (pct - 100) / 100;
    let factor = 100 + (pct - 100) / 2;
    let mut idlest = None::<(usize, Load)>;
    for &(index, load) in others {
        match &mut idlest {
            None => idlest = Some((index, load)),
            Some((_, least)) if least.runnable > load.runnable + margin => idlest = Some((index, load)),
            // About equal: only the load average is recorded as the new minimum.
            Some((at, least))
                if load.runnable < least.runnable + margin && 100 * least.average > factor * load.average =>
            {
                (*at, least.average) = (index, load.average);
            }
            Some(_) => {}
        }
    }
    // If affinity excludes the local group, the kernel compares with the largest load and without spare capacity.
    let local = local.unwrap_or(Load { runnable: u64::MAX / 256, average: u64::MAX / 256, spare: 0 });
    if let Some(size) = size {
        let most = others.iter().rev().max_by_key(|(_, load)| load.spare);
        let best = most.map_or(0, |(_, load)| load.spare);
        if local.spare > size / 2 && factor * local.spare > 100 * best {
            return None;
        }
        if best > size / 2 {
            return most.map(|(index, _)| *index);
        }
    }
    let (index, least) = idlest?;
    let stays = (numa && least.runnable + margin >= local.runnable)
        || least.runnable > local.runnable + margin
        || (local.runnable < least.runnable + margin && 100 * local.average < factor * least.average);
    (!stays).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand_from_5_2() {
        let load = |runnable, average, spare| Load { runnable, average, spare };
        // imbalance_pct 117: margin 174, factor 108. Local, others, size at exec, NUMA, choice.
        for (local, others, size, numa, expected) in [
            (load(0, 0, 1024), vec![load(0, 0, 1024)], None, false, Some(0)),
            (load(1024, 1024, 0), vec![load(1024, 1024, 0), load(0, 0, 1024)], None, false, Some(1)),
            // 850 is not less than 1024 by more than 174, but its load average is: 100 * 1024 > 108 * 900.
            (load(1024, 1024, 0), vec![load(1024, 1024, 0), load(850, 900, 0)], None, false, Some(1)),
            // 100 * 1024 is not more than 108 * 1000, so the first group is kept, which is no better than the local
            // one.
            (load(1024, 1024, 0), vec![load(1024, 1024, 0), load(850, 1000, 0)], None, false, None),
            // The other group is busier by more than the margin.
            (load(0, 0, 0), vec![load(175, 175, 0)], None, false, None),
            // About equal, and the local load average is smaller.
            (load(100, 100, 0), vec![load(100, 110, 0)], None, false, None),
            // Between nodes an advantage within the margin does not count.
            (load(174, 174, 0), vec![load(0, 0, 0)], None, true, None),
            (load(175, 175, 0), vec![load(0, 0, 0)], None, true, Some(0)),
            // At exec spare capacity decides: there is enough in the local group and not much more in the other.
            (load(900, 900, 1000), vec![load(0, 0, 1024)], Some(400), false, None),
            (load(900, 900, 500), vec![load(0, 0, 1024)], Some(400), false, Some(0)),
        ] {
            let others: Vec<_> = others.into_iter().enumerate().collect();
            assert_eq!(choose(Some(local), &others, size, 117, numa), expected, "{local:?} {others:?}");
        }
    }
}
