//! One queue for the tasks of all groups (7.3: `enqueue_task_fair`, `__dequeue_task`, `put_prev_task_fair`,
//! `set_next_task_fair`, `__calc_prop_weight`).
//!
//! Groups still have a queue and an entity per CPU, with weights and load averages, but only tasks compete, all of them
//! on the queue of their CPU. A task's weight there is its part of its group's weight, and so on up to the root:
//!
//! ```text
//! h = 1024 * w(task) / W(its queue) * w(group) / W(queue above) * ... * w(group at the root) / 1024, each step rounded down, at least 2
//! ```
//!
//! where W is the sum of the weights queued there. It is computed when the task is queued or picked and at its ticks,
//! and nowhere else: when another task of its group is enqueued or dequeued, a waiting task keeps its weight.

use super::arena::Counted;
use super::entity::EntityId;
use super::place_entity::relative;
use super::queues::Queues;
use crate::features::Feature;
use crate::flags::{Dequeue, Enqueue};
use crate::weight::{LoadWeight, NICE_0_LOAD};
use schedlab_model::{CpuId, Nanos};

/// `MIN_SHARES`.
const MIN_SHARES: u64 = 2;

/// Joining and leaving.
impl Queues {
    /// `enqueue_task_fair` from 7.3 on, of a task that is not queued.
    pub(super) fn enqueue_flat(&mut self, cpu: CpuId, id: EntityId, flags: Enqueue, now: Nanos) {
        let root = cpu.index();
        self.update_curr_eevdf(root, now);
        let q = &mut self.arena.rqs[root];
        let (curr, others) = (q.curr == id, q.h_nr_running);
        if curr {
            q.place_entity(&mut self.arena.entities, &self.config, id, flags, others);
        }
        self.enqueue_hierarchy(id, flags, now);
        if !curr {
            self.reweight_eevdf(root, id, false);
            let (q, entities) = (&mut self.arena.rqs[root], &mut self.arena.entities);
            q.place_entity(entities, &self.config, id, flags, others);
            q.__enqueue_entity(entities, &self.config, id);
        }
    }

    /// `enqueue_hierarchy`: the task counts on its group's queue, and the groups above it on theirs.
    fn enqueue_hierarchy(&mut self, task: EntityId, mut flags: Enqueue, now: Nanos) {
        let (mut id, mut counted) = (task, Counted::task(&self.arena.entities[task]));
        while id.is_some() {
            let rq = self.arena.entities[id].rq();
            self.update_curr(rq, now);
            match self.arena.entities[id].on_rq {
                false => self.join_hierarchy(rq, id, flags, now),
                true => self.follow_group(rq, id, now),
            }
            let q = &mut self.arena.rqs[rq];
            q.count(counted);
            counted.pass(q.idle);
            flags = Enqueue::WAKEUP;
            id = self.arena.entities[id].parent;
        }
    }

    /// `__dequeue_task`; false: the task stays, delayed.
    pub(super) fn dequeue_flat(&mut self, root: usize, id: EntityId, flags: Dequeue, now: Nanos) -> bool {
        self.arena.clear_buddies(root, id);
        self.update_curr_eevdf(root, now);
        self.arena.rqs[root].update_entity_lag(&mut self.arena.entities, &self.config, id);
        if !flags.delayed && self.delays(root, id, flags) {
            self.set_delayed(root, id, now);
            return false;
        }
        self.dequeue_hierarchy(id, flags, now);
        let (q, se) = (&mut self.arena.rqs[root], &mut self.arena.entities[id]);
        if self.config.has(Feature::PlaceRelDeadline) && !flags.sleep {
            se.deadline = relative(se.deadline, se.vruntime);
            se.rel_deadline = true;
        }
        if q.curr != id {
            q.__dequeue_entity(&mut self.arena.entities, &self.config, id);
        }
        if flags.delayed {
            self.clear_delayed(root, id);
        }
        true
    }

    /// `dequeue_hierarchy`: the task is dequeued from its group's queue, and a group that becomes empty from the queue
    /// above.
    fn dequeue_hierarchy(&mut self, task: EntityId, mut flags: Dequeue, now: Nanos) {
        let (mut id, mut counted) = (task, Counted::task(&self.arena.entities[task]).leaving());
        if flags.delayed {
            // The end of the delayed dequeue decrements the count itself.
            counted.delayed = 0;
        }
        let mut leaves = true;
        while id.is_some() {
            let rq = self.arena.entities[id].rq();
            self.update_curr(rq, now);
            if leaves {
                self.leave_hierarchy(rq, id, flags, now);
                leaves = self.arena.rqs[rq].load.weight == 0;
            } else {
                self.follow_group(rq, id, now);
            }
            let q = &mut self.arena.rqs[rq];
            q.count(counted);
            counted.pass(q.idle);
            flags = Dequeue { sleep: true, special: false, delayed: false, migrating: false, ..flags };
            id = self.arena.entities[id].parent;
        }
    }

    /// A group that stays queued is updated after an enqueue or dequeue below it.
    fn follow_group(&mut self, rq: usize, id: EntityId, now: Nanos) {
        self.arena.update_load_avg(&self.config.rules.pelt, rq, id, true, now);
        self.arena.se_update_runnable(&self.config.rules.pelt, id);
        self.update_cfs_group(id, now);
    }
}

/// Weights along the hierarchy.
impl Queues {
    /// `__calc_prop_weight` over all levels: the weight by which a queued task competes.
    fn calc_prop_weight(&self, mut id: EntityId) -> u64 {
        let mut weight = NICE_0_LOAD;
        while id.is_some() {
            let se = &self.arena.entities[id];
            let of = if se.parent.is_some() { self.arena.rqs[se.rq()].load.weight } else { NICE_0_LOAD };
            weight = (weight * se.load.weight / of.max(1)).max(MIN_SHARES);
            id = se.parent;
        }
        weight
    }

    /// `reweight_eevdf`: the task competes by its present weight along the hierarchy; `queued`: it is on the CPU's
    /// queue already.
    pub(super) fn reweight_eevdf(&mut self, root: usize, id: EntityId, queued: bool) {
        let weight = self.calc_prop_weight(id);
        if self.arena.entities[id].h_load.weight == weight {
            return;
        }
        let load = LoadWeight::of_sum(weight).dividing(self.config.rules.delta_divides);
        let (q, entities) = (&mut self.arena.rqs[root], &mut self.arena.entities);
        match queued {
            true => q.reweight_eevdf(entities, &self.config, id, load),
            false => entities[id].rescale(&self.config, load),
        }
    }
}

/// Switching.
impl Queues {
    /// `next` replaces `prev`, as in `put_prev_task_fair` of 7.3; either may be none.
    pub(super) fn put_prev_flat(&mut self, root: usize, prev: EntityId, next: EntityId, now: Nanos) {
        let (mut id, mut towards) = (prev, next);
        while id.is_some() {
            let rq = self.arena.entities[id].rq();
            if towards.is_nil() || self.arena.rqs[rq].h_curr.is_some() {
                self.put_prev_entity(rq, id, now);
            }
            if towards.is_some() {
                let (from, to) = (&self.arena.entities[id], &self.arena.entities[towards]);
                if from.cfs_rq == to.cfs_rq {
                    break;
                }
                let (depth, deeper) = (from.depth, to.depth > from.depth);
                if to.depth >= depth {
                    towards = to.parent;
                }
                if deeper {
                    continue;
                }
            }
            id = self.arena.entities[id].parent;
        }
        let (q, entities) = (&mut self.arena.rqs[root], &mut self.arena.entities);
        q.curr = EntityId::NIL;
        if entities[prev].on_rq {
            q.__enqueue_entity(entities, &self.config, prev);
        }
    }

    /// `set_next_task_fair`; `first`: picked, not merely requeued while it runs.
    pub(super) fn set_next_flat(&mut self, root: usize, task: EntityId, first: bool, now: Nanos) {
        let on_rq = self.arena.entities[task].on_rq;
        self.arena.clear_buddies(root, task);
        if on_rq {
            self.arena.rqs[root].__dequeue_entity(&mut self.arena.entities, &self.config, task);
        }
        let (mut id, mut throttled) = (task, false);
        while id.is_some() {
            let rq = self.arena.entities[id].rq();
            // A group that runs already stays.
            if !first || self.arena.rqs[rq].h_curr.is_nil() {
                self.set_next_entity(rq, id, first, now);
            }
            throttled |= self.lacks_bandwidth(rq, now);
            id = self.arena.entities[id].parent;
        }
        if throttled {
            self.task_throttle_setup_work(task);
        }
        self.arena.rqs[root].curr = task;
        if on_rq {
            self.reweight_eevdf(root, task, true);
            self.arena.rqs[root].set_protect_slice(&mut self.arena.entities, &self.config, task, first);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fair::{Dequeue, Enqueue, Fair, GroupId, GroupShares};
    use crate::{KernelConfig, TaskAttr, Version};
    use schedlab_model::{CpuId, Nanos, TaskId, MSEC};

    const CPU: CpuId = CpuId(0);
    const NICE_0: u64 = 1 << 20;
    const WAKE: Enqueue = Enqueue::WAKEUP;

    fn fair(row: &str, cpus: usize) -> Fair {
        Fair::new(KernelConfig::new(Version::find(row).unwrap(), cpus, 250))
    }

    fn task(fair: &mut Fair, group: GroupId, nice: i8, cpu: CpuId) -> TaskId {
        let task = fair.add_task(&TaskAttr { group, nice, cpu, ..TaskAttr::default() });
        fair.enqueue_task(cpu, task, WAKE, MSEC);
        task
    }

    /// Runs the picked task, with a tick every ms, and returns how long each task ran.
    fn run(fair: &mut Fair, tasks: &[TaskId], ms: u64) -> Vec<Nanos> {
        let cpus: Vec<CpuId> = tasks.iter().map(|task| fair.entity(*task).cpu).collect();
        for now in (2..ms + 2).map(|ms| ms * MSEC) {
            for cpu in &cpus {
                fair.task_tick(*cpu, now);
                fair.pick_next_task(*cpu, now);
            }
        }
        tasks.iter().map(|task| fair.entity(*task).sum_exec_runtime).collect()
    }

    #[test]
    fn a_task_competes_by_its_part_of_its_groups_weight_and_waits_with_that() {
        let mut fair = fair("7.3", 1);
        let outer = fair.sched_create_group(GroupId::ROOT);
        let inner = fair.sched_create_group(outer);
        let weight = |fair: &Fair, task| fair.entity(task).h_load.weight;
        let first = task(&mut fair, inner, 0, CPU);
        let second = task(&mut fair, inner, 0, CPU);
        let beside = task(&mut fair, outer, 0, CPU);
        // Tasks that are queued later get their share; the first was alone when it was queued.
        assert_eq!([first, second, beside].map(|task| weight(&fair, task)), [NICE_0, NICE_0 / 2, NICE_0 / 2]);
        assert_eq!(fair.pick_next_task(CPU, MSEC), Some(first));
        assert_eq!(weight(&fair, first), NICE_0 / 4, "the pick takes over the present weight");
        fair.dequeue_task(CPU, second, Dequeue::default(), MSEC);
        assert_eq!(weight(&fair, first), NICE_0 / 4, "one that leaves changes nothing for the others");
        fair.task_tick(CPU, 2 * MSEC);
        assert_eq!(weight(&fair, first), NICE_0 / 2, "the tick does");
        assert_eq!(fair.group_rq(inner, CPU).min_vruntime, fair.group_rq(outer, CPU).min_vruntime);
        assert_eq!((fair.rq(CPU).h_nr_running, fair.view().waiting(GroupId::ROOT, CPU).count()), (2, 1));
    }

    /// `__dequeue_task` ages the queue of the task's group (`cfs_rq_of`) when it delays, `requeue_delayed_entity` the
    /// CPU's own: each of the two averages then misses a time in which the task was delayed, or counts one in which it
    /// was not.
    #[test]
    fn a_delay_ages_the_queue_of_the_group_and_its_end_that_of_the_cpu() {
        let mut fair = fair("7.3", 1);
        let group = fair.sched_create_group(GroupId::ROOT);
        let [sleeper, _] = [0; 2].map(|nice| task(&mut fair, group, nice, CPU));
        assert_eq!(fair.pick_next_task(CPU, MSEC), Some(sleeper));
        let ages =
            |fair: &Fair| [group, GroupId::ROOT].map(|group| fair.group_rq(group, CPU).pelt.avg.last_update_time);
        let [[of_group, of_cpu], [delayed, same], [unchanged, woken]] = {
            let begin = ages(&fair);
            assert!(!fair.dequeue_task(CPU, sleeper, Dequeue { sleep: true, ..Dequeue::default() }, 5 * MSEC));
            let delayed = ages(&fair);
            fair.enqueue_task(CPU, sleeper, WAKE, 7 * MSEC);
            [begin, delayed, ages(&fair)]
        };
        assert_eq!((delayed / MSEC, same), (of_group / MSEC + 4, of_cpu));
        assert_eq!((unchanged, woken / MSEC), (delayed, of_cpu / MSEC + 6));
    }

    #[test]
    fn groups_share_a_cpu_by_weight_whatever_is_in_them() {
        for row in ["7.2", "7.3"] {
            let mut fair = fair(row, 1);
            let (light, heavy) = (fair.sched_create_group(GroupId::ROOT), fair.sched_create_group(GroupId::ROOT));
            fair.sched_group_set_shares(heavy, GroupShares::Weight(300), 0);
            let tasks: Vec<TaskId> = [(light, 0), (light, 0), (light, 5), (heavy, 0)]
                .into_iter()
                .map(|(group, nice)| task(&mut fair, group, nice, CPU))
                .collect();
            let ran = run(&mut fair, &tasks, 4000);
            let part = |times: &[Nanos]| times.iter().sum::<Nanos>() * 1000 / ran.iter().sum::<Nanos>();
            assert!(part(&ran[3..]).abs_diff(750) < 8, "{row}: {ran:?}");
            assert!(part(&ran[..1]).abs_diff(part(&ran[1..2])) < 4, "{row}: {ran:?}");
        }
    }

    /// Of four tasks three count: the sum of their averages stays a little below 4, and is rounded down.
    #[test]
    fn a_group_divides_its_shares_once_for_each_busy_task() {
        for (row, expected) in [("7.2", NICE_0 / 4), ("7.3", NICE_0 * 3 / 4)] {
            let mut fair = fair(row, 4);
            let group = fair.sched_create_group(GroupId::ROOT);
            let cpus = (0..4).map(CpuId);
            let tasks: Vec<TaskId> = cpus.clone().map(|cpu| task(&mut fair, group, 0, cpu)).collect();
            run(&mut fair, &tasks, 500);
            for cpu in cpus {
                let weight = fair.group_entity(group, cpu).unwrap().load.weight;
                assert!(weight.abs_diff(expected) < expected / 50, "{row}: {weight} instead of {expected}");
            }
        }
    }
}
