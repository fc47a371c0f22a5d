//! The busiest group by load (`find_busiest_group`, `calculate_imbalance`, `fix_small_imbalance`, kernel/sched/fair.c
//! 5.2).
//!
//! Before 5.5 balancing compared the runnable load per capacity of the groups. A group is overloaded if it has more
//! tasks than CPUs and little spare capacity, or if its tasks should be spread over siblings. The imbalance is the load
//! that brings both groups to the domain's average; an imbalance smaller than a task is rounded up to one task unless
//! that makes the balance worse. Not modelled: misfit tasks, asymmetric packing, NUMA preferences, load averages over
//! longer times (LB_BIAS is off).

use schedlab_model::CpuId;

use super::{CpuIdle, Env, Migrate};
use crate::core::types::Moves;
use crate::fair::class::FairClass;
use crate::pelt::series::CAPACITY_SCALE;

/// `enum group_type`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Other,
    Imbalanced,
    Overloaded,
}

/// `struct sg_lb_stats`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Group {
    kind: Kind,
    load: u64,
    util: u64,
    nr_running: u64,
    idle_cpus: u64,
    weight: u64,
    capacity: u64,
    load_per_task: u64,
}

impl Group {
    fn avg_load(&self) -> u64 {
        self.load * CAPACITY_SCALE / self.capacity
    }

    /// `group_has_capacity`.
    fn group_has_capacity(&self, pct: u64) -> bool {
        self.nr_running < self.weight || self.capacity * 100 > self.util * pct
    }

    /// `group_is_overloaded`.
    fn group_is_overloaded(&self, pct: u64) -> bool {
        self.nr_running > self.weight && self.capacity * 100 < self.util * pct
    }
}

/// The values that the tests of `find_busiest_group` compare.
struct Compared {
    local: Group,
    busiest: Group,
    /// Load per capacity of the whole domain.
    avg_load: u64,
    pct: u64,
    /// Load per task of the pulling CPU.
    dst_load_per_task: u64,
}

impl FairClass<'_> {
    /// The group to pull from by load (`find_busiest_group` of 5.2): its index; the imbalance is stored in `env`.
    pub(super) fn find_busiest_group_by_load(&mut self, env: &mut Env, moves: &mut Moves) -> Option<usize> {
        self.update_group_capacity(env);
        let domain = self.core.domains.at(env.this, env.level);
        moves.looked_at += domain.weight;
        let (pct, count) = (u64::from(domain.imbalance_pct), domain.groups.len());
        let local_group = self.core.domains.local_group(env.this, env.level);
        let local = self.update_sg_lb_stats_by_load(env, local_group, pct);
        let (mut load, mut capacity, mut busiest) = (local.load, local.capacity, None::<(usize, Group)>);
        for step in 1..count {
            let index = (local_group + step) % count;
            let mut group = self.update_sg_lb_stats_by_load(env, index, pct);
            if env.level > 0 && local.group_has_capacity(pct) && group.nr_running > local.nr_running + 1 {
                group.kind = Kind::Overloaded;
            }
            load += group.load;
            capacity += group.capacity;
            let (kind, most) = busiest.map_or((Kind::Other, 0), |(_, group)| (group.kind, group.avg_load()));
            if group.kind > kind || (group.kind == kind && group.avg_load() > most) {
                busiest = Some((index, group));
            }
        }
        if env.level + 1 == self.core.domains.depth(env.this) {
            let overload = self.core.domains.at(env.this, env.level).overloaded > 0;
            self.core.domains.set_overload(overload);
        }
        let (index, busiest) = busiest.filter(|(_, group)| group.nr_running > 0)?;
        let nr = u64::from(self.core.rqs[env.dst.index()].nr_running);
        let dst_load_per_task = self.fair.cpu_load(env.dst).checked_div(nr).unwrap_or(0);
        let compared = Compared { local, busiest, avg_load: load * CAPACITY_SCALE / capacity, pct, dst_load_per_task };
        env.migrate = Migrate::Load;
        env.imbalance = if compared.is_imbalanced(env.idle) { compared.calculate_imbalance() } else { 0 };
        (env.imbalance > 0).then_some(index)
    }

    /// The statistics of one group (`update_sg_lb_stats` of 5.2).
    fn update_sg_lb_stats_by_load(&self, env: &Env, index: usize, pct: u64) -> Group {
        let group = &self.core.domains.at(env.this, env.level).groups[index];
        let weight = group.cpus.len() as u64;
        let kind = Kind::Other;
        let mut stats = Group {
            kind,
            load: 0,
            util: 0,
            nr_running: 0,
            idle_cpus: 0,
            weight,
            capacity: group.capacity,
            load_per_task: 0,
        };
        for &cpu in group.cpus.iter().filter(|cpu| env.considers(**cpu)) {
            self.add_cpu(&mut stats, cpu);
        }
        stats.load_per_task = stats.load.checked_div(stats.nr_running).unwrap_or(0);
        stats.kind = match () {
            () if stats.group_is_overloaded(pct) => Kind::Overloaded,
            () if group.imbalance => Kind::Imbalanced,
            () => Kind::Other,
        };
        stats
    }

    fn add_cpu(&self, stats: &mut Group, cpu: CpuId) {
        stats.load += self.fair.cpu_load(cpu);
        stats.util += self.fair.cpu_util_cfs(cpu);
        stats.nr_running += u64::from(self.fair.rq(cpu).h_nr_running);
        stats.idle_cpus += u64::from(self.core.rqs[cpu.index()].nr_running == 0 && self.core.is_idle(cpu));
    }
}

impl Compared {
    /// The tests of `sched_balance_find_src_group`, first match wins.
    fn is_imbalanced(&self, idle: CpuIdle) -> bool {
        let (local, busiest) = (&self.local, &self.busiest);
        if busiest.kind == Kind::Imbalanced {
            return true;
        }
        // A group is also marked as overloaded if its tasks should be spread over siblings.
        let no_capacity = busiest.kind == Kind::Overloaded;
        if idle != CpuIdle::Not && local.group_has_capacity(self.pct) && no_capacity {
            return true;
        }
        if local.avg_load() >= busiest.avg_load() || local.avg_load() >= self.avg_load {
            return false;
        }
        match idle {
            CpuIdle::Idle => no_capacity || local.idle_cpus > busiest.idle_cpus + 1,
            CpuIdle::Newly | CpuIdle::Not => 100 * busiest.avg_load() > self.pct * local.avg_load(),
        }
    }

    /// `calculate_imbalance`.
    fn calculate_imbalance(&self) -> u64 {
        let (local, busiest) = (&self.local, &self.busiest);
        let per_task = match busiest.kind {
            Kind::Imbalanced => busiest.load_per_task.min(self.avg_load),
            _ => busiest.load_per_task,
        };
        if busiest.avg_load() <= self.avg_load || local.avg_load() >= self.avg_load {
            return self.fix_small_imbalance(per_task).unwrap_or(0);
        }
        let above = busiest.avg_load() - self.avg_load;
        let most = if busiest.kind == Kind::Overloaded && local.kind == Kind::Overloaded {
            // No CPU of the busiest group should become idle.
            let tasks = busiest.nr_running * CAPACITY_SCALE;
            let over = tasks.checked_sub(busiest.capacity).filter(|over| *over > 0);
            over.map_or(above, |over| above.min(over * CAPACITY_SCALE / busiest.capacity))
        } else {
            above
        };
        let room = (self.avg_load - local.avg_load()) * local.capacity;
        let imbalance = (most * busiest.capacity).min(room) / CAPACITY_SCALE;
        if imbalance < per_task {
            return self.fix_small_imbalance(per_task).unwrap_or(imbalance);
        }
        imbalance
    }

    /// `fix_small_imbalance`: one task, if moving it does not make the balance worse or uses more capacity.
    fn fix_small_imbalance(&self, per_task: u64) -> Option<u64> {
        let (local, busiest) = (&self.local, &self.busiest);
        let (local_per_task, times) = match local.nr_running {
            0 => (self.dst_load_per_task, 2),
            _ => (local.load_per_task, if per_task > local.load_per_task { 1 } else { 2 }),
        };
        let scaled = per_task * CAPACITY_SCALE / busiest.capacity;
        if busiest.avg_load() + scaled >= local.avg_load() + scaled * times {
            return Some(per_task);
        }
        let now =
            busiest.capacity * per_task.min(busiest.avg_load()) + local.capacity * local_per_task.min(local.avg_load());
        let left = busiest.avg_load().checked_sub(scaled).map_or(0, |left| busiest.capacity * per_task.min(left));
        let moved = (busiest.avg_load() * busiest.capacity).min(per_task * CAPACITY_SCALE) / local.capacity;
        let then = left + local.capacity * local_per_task.min(local.avg_load() + moved);
        (then / CAPACITY_SCALE > now / CAPACITY_SCALE).then_some(per_task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of `weight` CPUs with `nr` tasks of 1024 each that use `util` of it.
    fn group(weight: u64, nr: u64, util: u64) -> Group {
        let load = nr * 1024;
        let mut group = Group {
            kind: Kind::Other,
            load,
            util,
            nr_running: nr,
            idle_cpus: weight.saturating_sub(nr),
            weight,
            capacity: weight * CAPACITY_SCALE,
            load_per_task: load.checked_div(nr).unwrap_or(0),
        };
        if group.group_is_overloaded(125) {
            group.kind = Kind::Overloaded;
        }
        group
    }

    fn compared(local: Group, busiest: Group) -> Compared {
        let avg_load = (local.load + busiest.load) * 1024 / (local.capacity + busiest.capacity);
        Compared { local, busiest, avg_load, pct: 125, dst_load_per_task: 0 }
    }

    #[test]
    fn worked_by_hand_from_5_2() {
        use CpuIdle::{Idle, Newly, Not};
        // Local and busiest tasks of two groups of 4 CPUs, the puller, what is to move.
        for (local, busiest, idle, expected) in [
            // avg 512 against 0 and 1024: min(512 * 4096, 512 * 4096) / 1024.
            (0, 4, Idle, Some(2048)),
            // idle CPUs 3 against 2: not more than one apart.
            (1, 2, Idle, None),
            // 0 against 2: avg 256, above 256, room 256: 1024, as much as a task.
            (0, 2, Idle, Some(1024)),
            // A busy puller: 100 * 1280 <= 125 * 1024.
            (4, 5, Not, None),
            // 100 * 1536 > 125 * 1024, both overloaded or not: avg 1280, above 256, room 256: one task.
            (4, 6, Not, Some(1024)),
            // Newly idle, 3 against 4: 100 * 1024 > 125 * 768. avg 896, above 128: 512 is half a task. Moving it:
            // 1024 + 256 >= 768 + 2 * 256, so a task.
            (3, 4, Newly, Some(1024)),
            // Newly idle, 0 against 1: above 128, 512. 256 + 256 >= 0 + 2 * 256: a task, which runs and stays.
            (0, 1, Newly, Some(1024)),
            (5, 5, Newly, None),
        ] {
            let util = |nr: u64| nr.min(4) * 1024;
            let both = compared(group(4, local, util(local)), group(4, busiest, util(busiest)));
            let found = both.is_imbalanced(idle).then(|| both.calculate_imbalance());
            assert_eq!(found, expected, "{local} against {busiest}, {idle:?}");
        }
    }

    #[test]
    fn an_idle_puller_with_capacity_takes_from_a_group_without() {
        // 6 light tasks on 4 busy CPUs: less load per capacity than the local group's one heavy task.
        let heavy = Group { load: 8192, load_per_task: 8192, ..group(4, 1, 1024) };
        let both = compared(heavy, group(4, 6, 4096));
        assert!(both.local.avg_load() > both.busiest.avg_load());
        assert!(both.is_imbalanced(CpuIdle::Idle) && !both.is_imbalanced(CpuIdle::Not));
        // 1536 + 256 < 2048 + 256, and no capacity is gained: then 4 * (min(1024, 1280) + min(8192, 2304)) against
        // now 4 * (min(1024, 1536) + min(8192, 2048)): 3328 > 3072 per CPU, so a task moves.
        assert_eq!(both.calculate_imbalance(), 1024);
    }
}
